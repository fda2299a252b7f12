"""What the study of age and sex says: rows, errata, sections and their words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from policies.local import estimate, expected_errors
from policysim.sources import two_coins
from policysim.sources.adult_age_sex import (
    CLIP,
    CUT,
    ERRORS,
    ITS_METHOD,
    Constants,
    Simulated,
    bands,
    expected_reports,
    simulated,
    standard_errors,
)
from policysim.sources.adult_age_sex_drawings import (
    ESTIMATORS,
    errors_drawing,
    estimators_drawing,
    sampled_drawing,
)
from policysim.sources.model import OUTSIDE, Erratum, Findings, Row, Section, number
from policysim.sources.reading import Quote
from policysim.sources.rows import claim_rows, figure_rows, run_row

RUNS = 100_000


def analyse(constants: Constants, seed: int) -> Findings:
    """All that the page shows; the bands are simulated with the seed."""
    found = tuple(rows(constants, seed))
    least = min((quote.epsilon for quote in constants.errors), default=0.1)
    estimators = simulated(constants, least, runs=RUNS, seed=seed)
    return Findings(
        lead=_lead(constants, found, estimators, least),
        rows=found,
        errata=_errata(constants, estimators, least),
        sections=(
            Section("Errors of single runs", _errors(constants), drawing=errors_drawing(constants, seed)),
            *(_estimates(constants, quote) for quote in constants.reports),
            Section("Estimates that are proportions", drawing=estimators_drawing(constants, seed)),
            Section("Of these people, or of a population?", _population(constants), drawing=sampled_drawing(constants)),
            two_coins.section(constants.coins),
        ),
        assumptions=(
            "Public: the categories, the cut of age, how many people there are, and ε. Each person's report is made "
            "before anybody else sees the values (the local model); neighbours are any two values of one person.",
            "Expected errors are in closed form, of the unbiased estimate: L1 is √(2/π) times the sum of the standard "
            "deviations, L2 the root of the mean square. The randomness is the mechanism's; the people are given.",
            f"Bands of errors: {RUNS:,} simulated runs (20,000 in the figures), estimated and clipped as the source "
            "does. Bands and chances of reports are exact.",
        ),
    )


def rows(constants: Constants, seed: int) -> list[Row]:
    """Every figure of the source beside ours."""
    people = {"people": float(constants.table.sum())}
    result = figure_rows(constants.people, lambda _: people, "{name}, the sum of the counts")
    for quote in constants.errors:
        closed = expected_errors(constants.table, constants.channel(quote.epsilon))
        band = bands(constants, quote.epsilon, runs=RUNS, seed=seed)
        ours = {"L1": (closed.l1, band.l1), "L2": (closed.l2, band.l2)}
        result += [
            Row(f"{name} error, ε = {quote.epsilon:g}", quote.where, text, *ours[name])
            for name, text in quote.printed.items()
        ]
    for quote in constants.reports:
        for name, text in quote.printed.items():
            run = expected_reports(constants, quote.epsilon, name, int(text))
            result.append(run_row(f"reports of “{name}”, ε = {quote.epsilon:g}", quote.where, text, run))
    return [*result, *claim_rows(constants.claims, _claims(constants))]


def _claims(constants: Constants) -> Mapping[str, tuple[str, bool, str]]:
    return {
        CLIP: ("a hack", True, "Clipped shares need not sum to 1."),
        CUT: ("∞, or 0 if the cut is public", False, "An exact median of private ages has no finite ε."),
        **two_coins.claims(constants.coins),
    }


def _lead(constants: Constants, found: Sequence[Row], estimators: Sequence[Simulated], least: float) -> tuple[str, ...]:
    random = [row for row in found if row.band is not None]
    outside = [row for row in random if row.verdict == OUTSIDE]
    told = "; ".join(
        f"{row.what}: {int(row.printed.replace(',', '')):,} (band {number(row.band[0])} to {number(row.band[1])})"
        for row in outside
        if row.band is not None
    )
    one, n = expected_errors(constants.table, constants.channel(1.0)), int(constants.table.sum())
    errors = {estimator.method: estimator.error for estimator in estimators}
    _, low, high = next(estimator.total for estimator in estimators if estimator.method == ITS_METHOD)
    return (
        f"The source's runs are what its mechanism gives: of {len(random)} random figures {len(random) - len(outside)} "
        "lie where 95 % of such runs do" + (f". Just outside: {told}." if outside else "."),
        f"At ε = 1 the estimated counts of {n:,} people are off by {one.l1:,.0f} in all (expected L1, "
        f"{100 * one.l1 / n:.1f} % of the people).",
        f"Clipped estimates are not proportions: at ε = {least:g} they sum to {low:,.0f} to {high:,.0f} people in "
        f"95 % of runs. Their mean L2 error is {number(errors[ITS_METHOD])} people, by projection "
        f"{number(errors['projected'])}, by maximum likelihood {number(errors['maximum-likelihood'])}.",
        "Two costs are not counted: the median that cuts age comes from the private data, and two fair coins cost "
        f"ε = ln 3 = {constants.coins.epsilon:.4f} an answer, not 0.",
    )


def _errata(constants: Constants, estimators: Sequence[Simulated], least: float) -> tuple[Erratum, ...]:
    clipped = next(one for one in estimators if one.method == ITS_METHOD)
    mean, low, high = clipped.total
    n = int(constants.table.sum())
    return (
        Erratum(
            "Estimated shares are clipped to [0, 1] (a hack, as its author says).",
            "Project them onto the proportions, or maximise the likelihood.",
            f"At ε = {least:g} the clipped counts sum to {mean:,.0f} on average, in 95 % of runs to {low:,.0f} to "
            f"{high:,.0f}, instead of {n:,}.",
            ESTIMATORS,
        ),
        Erratum(
            "Age is cut at the median of the data; only the reports are charged.",
            "Declare the cut public (ε = 0), or find it privately and charge that.",
            "The exact median is a function of the private ages: where one person's age decides it, its loss is "
            "infinite, whatever ε the reports have. And in the local model nobody has the ages to take it of.",
        ),
        two_coins.erratum(constants.coins),
    )


def _errors(constants: Constants) -> tuple[str, ...]:
    channel = constants.channel(1.0)
    return (
        f"Each person reports one of {channel.n_values} categories: at ε = 1 the true one with probability "
        f"{channel.truth:.4f}, each other one with {channel.lie[0]:.4f}. A single run can be far better or worse than "
        "what is expected: the band spans a factor of about six.",
    )


def _estimates(constants: Constants, quote: Quote) -> Section:
    """The source's reports of one run, and what each estimator makes of them."""
    channel, true = constants.channel(quote.epsilon), constants.table
    n = int(true.sum())
    seen = np.array([int(quote.printed[name]) for name in constants.counts])
    unbiased = estimate(seen, channel)
    others = [n * estimate(seen, channel, method=method).shares for method in ("projected", "maximum-likelihood")]
    off = n * unbiased.shares - true
    same = bool(np.allclose(others, n * unbiased.shares))
    cells = tuple(
        (
            name,
            f"{true[i]:,}",
            f"{seen[i]:,}",
            f"{n * unbiased.shares[i]:,.0f} ± {n * unbiased.standard_errors[i]:,.0f}",
            f"{n * unbiased.interval[i, 0]:,.0f} to {n * unbiased.interval[i, 1]:,.0f}",
            *(f"{other[i]:,.0f}" for other in others),
        )
        for i, name in enumerate(constants.counts)
    )
    printed = next((dict(q.printed) for q in constants.errors if q.epsilon == quote.epsilon), {})
    beside = " and ".join(f"{printed[name]} ({name})" for name in ERRORS if name in printed)
    return Section(
        f"What its reports at ε = {quote.epsilon:g} say",
        (
            f"Their errors are {np.abs(off).sum():,.0f} (L1) and {np.linalg.norm(off):,.0f} (L2)"
            + (f"; the source's errors at this ε, {beside}, are those of another run." if beside else ".")
            + (" All estimates are proportions already, so the estimators agree." if same else ""),
        ),
        (
            "category",
            "true",
            "reports",
            "estimate ± standard error",
            "95 % interval",
            "projected",
            "maximum likelihood",
        ),
        cells,
    )


def _population(constants: Constants) -> tuple[str, ...]:
    category = min(constants.counts, key=lambda name: constants.counts[name])
    given, population = standard_errors(constants, 5.0, category)
    return (
        "The formula for the variance is about the people who reported. If they stand for a population, f(1 − f)/n "
        f"comes on top: at ε = 5 the standard error of “{category}” is {100 * given:.3f} % of these people and "
        f"{100 * population:.3f} % of a population.",
    )
