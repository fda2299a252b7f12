"""The figures of the study of age and sex."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from policies.local import expected_errors
from policysim.sources.adult_age_sex import ERRORS, ITS_METHOD, Constants, bands, simulated, standard_errors
from policysim.sources.drawing import EPSILON, SOURCE_POINTS, draw_lines, grid, headed, log_axis, panels, share_axis
from policysim.sources.model import Drawing

ERRORS_NAME, ESTIMATORS, SAMPLED = "errors-vs-epsilon", "estimators-vs-epsilon", "standard-errors"
PRINTED = "as the source ran it"
EXPECTED, BAND = "expected, in closed form (unbiased)", "95 % of single runs (clipped, as there)"
EPSILONS = grid(0.05, 8, 25)
# Where estimates leave [0, 1].
SMALL_EPSILONS = grid(0.005, 0.5, 25)
METHOD_NAMES = {"clipped": "clipped (the source)", "maximum-likelihood": "maximum likelihood"}
RUNS = 20_000


def errors_drawing(constants: Constants, seed: int) -> Drawing:
    """Expected errors over epsilon with the band of single runs, and the runs of the source."""
    rows: list[dict[str, object]] = []
    for epsilon in EPSILONS:
        closed = expected_errors(constants.table, constants.channel(epsilon))
        band = bands(constants, epsilon, runs=RUNS, seed=seed)
        for error, value, (low, high) in (("L1", closed.l1, band.l1), ("L2", closed.l2, band.l2)):
            rows.append(
                {"error": error, "line": EXPECTED, "epsilon": epsilon, "value": value, "low": low, "high": high}
            )
    for quote in constants.errors:
        band = bands(constants, quote.epsilon, runs=RUNS, seed=seed)
        rows += [
            {
                "error": error,
                "line": PRINTED,
                "epsilon": quote.epsilon,
                "value": float(quote.printed[error].replace(",", "")),
                "low": ends[0],
                "high": ends[1],
            }
            for error, ends in (("L1", band.l1), ("L2", band.l2))
            if error in quote.printed
        ]
    description = (
        "L1 and L2 error of the estimated counts, in people, against ε, both on log scales: expected errors, the band "
        "of 95 % of single runs, and the source's single runs; those outside the band are marked."
    )
    return Drawing(ERRORS_NAME, description, pd.DataFrame(rows), _draw_errors)


def _draw_errors(table: pd.DataFrame) -> Figure:
    with panels(2, width=9.6, height=4.6) as (figure, both):
        for axes, error in zip(both, ERRORS, strict=True):
            rows = table[table["error"] == error]
            line, points = rows[rows["line"] == EXPECTED], rows[rows["line"] == PRINTED]
            axes.fill_between(
                line["epsilon"], line["low"], line["high"], color="#0072B2", alpha=0.18, linewidth=0, label=BAND
            )
            axes.plot(line["epsilon"], line["value"], color="#0072B2", label=EXPECTED)
            axes.plot(points["epsilon"], points["value"], label=PRINTED, **{**SOURCE_POINTS, "markersize": 9})
            outside = points[(points["value"] < points["low"]) | (points["value"] > points["high"])]
            for x, y in zip(outside["epsilon"], outside["value"], strict=True):
                axes.annotate("just outside", (x, y), xytext=(7, 5), textcoords="offset points")
            log_axis(axes, "x", line["epsilon"])
            log_axis(axes, "y", pd.concat([line["low"], line["high"]]))
            headed(axes, f"{error} error of one run", EPSILON, "people (log scale)")
    return figure


def estimators_drawing(constants: Constants, seed: int) -> Drawing:
    """The estimators' errors relative to the unbiased one, and what the estimated counts sum to."""
    n = int(constants.table.sum())
    rows = []
    for epsilon in SMALL_EPSILONS:
        found = simulated(constants, epsilon, runs=RUNS, seed=seed)
        unbiased = next(one for one in found if one.method == "unbiased")
        for one in sorted(found, key=lambda one: one.method != ITS_METHOD):
            mean, low, high = (value / n for value in one.total)
            rows.append(
                {
                    "line": METHOD_NAMES.get(one.method, one.method),
                    "epsilon": epsilon,
                    "error": one.error / unbiased.error,
                    "sum": mean,
                    "low": low,
                    "high": high,
                }
            )
    description = (
        "Left: mean L2 error of each estimator, as a share of the unbiased one's, against ε. Right: what the estimated "
        "shares sum to, the clipped ones with a band of 95 % of runs; all others sum to 1."
    )
    return Drawing(ESTIMATORS, description, pd.DataFrame(rows), _draw_estimators)


def _draw_estimators(table: pd.DataFrame) -> Figure:
    with panels(2, width=9.6, height=4.2) as (figure, (left, right)):
        draw_lines(left, table.drop(columns=["low", "high"]), "epsilon", "error")
        draw_lines(right, table, "epsilon", "sum")
        for axes in (left, right):
            log_axis(axes, "x", table["epsilon"])
            share_axis(axes)
        left.set_ylim(0, 1.05)
        headed(left, "Mean error, the unbiased one's being 1", EPSILON, "mean L2 error / that of unbiased")
        headed(right, "What the estimates sum to", EPSILON, "sum of the estimated shares")
    return figure


def sampled_drawing(constants: Constants) -> Drawing:
    """Standard errors for these people and for a population, over epsilon."""
    category = min(constants.counts, key=lambda name: constants.counts[name])
    rows = []
    for epsilon in EPSILONS:
        given, population = standard_errors(constants, epsilon, category)
        rows.append({"line": "of these people (the source's formula)", "epsilon": epsilon, "value": given})
        rows.append({"line": "of a population that they are a sample of", "epsilon": epsilon, "value": population})
    description = (
        f"Standard error of the estimated share of “{category}”, against ε, both on log scales. The mechanism's "
        "part vanishes as ε grows; that of sampling does not."
    )
    return Drawing(SAMPLED, description, pd.DataFrame(rows), _draw_sampled)


def _draw_sampled(table: pd.DataFrame) -> Figure:
    with panels(height=3.8) as (figure, (axes,)):
        draw_lines(axes, table, "epsilon")
        log_axis(axes, "x", table["epsilon"])
        log_axis(axes, "y", table["value"])
        headed(axes, "Standard error of one share", EPSILON, "standard error (log scale)")
    return figure
