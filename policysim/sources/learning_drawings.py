"""The figures of the study of learning: scores over epsilon, and how far predictions can be trusted."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.style import context

from policysim.figures.looks import STYLE
from policysim.sources.drawing import draw_lines, headed, log_axis, panels
from policysim.sources.learning_runs import CONSTANT, CORRECTED, KNOWN, LEFT_OUT, LIMIT, REPORTED, REPORTS, TRUE
from policysim.sources.model import Drawing

RELIABILITY = "reliability"
# In the order of the lines' looks.
LINES = (REPORTS, CORRECTED, TRUE, LEFT_OUT, LIMIT, CONSTANT)
PANELS = {
    "error_rate": "error rate (1 − accuracy)",
    "auc": "AUC",
    "brier": "Brier score",
    "calibration_error": "calibration error",
}
ASKED = (KNOWN, REPORTED)
# Below this a calibration error is what chance leaves of none.
LEAST_SHOWN = 5e-4


def scores_drawing(name: str, private: str, table: pd.DataFrame) -> Drawing:
    """All scores over epsilon; a column of panels per question, a line per way to train."""
    chosen = table[table["private"] == private].rename(columns={"trained": "line", "mean": "value"})
    wrong = chosen[chosen["score"] == "accuracy"].assign(score="error_rate")
    wrong[["value", "low", "high"]] = 1 - wrong[["value", "high", "low"]].to_numpy()
    place = chosen["line"].map(LINES.index)
    ordered = pd.concat([wrong, chosen]).assign(place=place).sort_values(["asked", "score", "place", "epsilon"])
    description = (
        f"Private: {private}. Error rate (1 − accuracy), area under the ROC curve, Brier score and expected "
        "calibration error against ε, a line for each way to train; on the left for patients whose record is known, "
        "on the right for patients of whom only a report is. Bands: 95 % intervals of the mean over the repeats. Low "
        f"is good but for AUC; what is below {LEAST_SHOWN:g} is drawn there."
    )
    return Drawing(name, description, ordered.drop(columns=["private", "place"]), _draw_scores)


def _draw_scores(table: pd.DataFrame) -> Figure:
    with context(STYLE):
        figure = Figure(figsize=(6.8, 9.6), layout="constrained")
        grid = figure.subplots(len(PANELS), len(ASKED), sharex=True, sharey="row")
        for (score, title), row in zip(PANELS.items(), grid, strict=True):
            for axes, asked in zip(row, ASKED, strict=True):
                rows = table[(table["score"] == score) & (table["asked"] == asked)]
                shown = rows[["value", "low", "high"]].clip(lower=LEAST_SHOWN)
                draw_lines(axes, rows.assign(**shown), "epsilon")
            row[0].set_ylabel(title)
            if score != "auc":
                log_axis(row[0], "y", table.loc[table["score"] == score, "value"].clip(lower=LEAST_SHOWN))
        for top, bottom, asked in zip(grid[0], grid[-1], ASKED, strict=True):
            top.set_title(capital(asked), loc="left", fontweight="bold")
            bottom.set_xlabel("ε (log scale)")
        log_axis(grid[-1][0], "x", table["epsilon"])
        handles, labels = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


def reliability_drawing(private: str, epsilon: float, table: pd.DataFrame) -> Drawing:
    """Rate of the outcome against what was predicted."""
    chosen = table[table["trained"].isin(LINES[:3])].rename(columns={"trained": "line", "rate": "value"})
    place = chosen["line"].map(LINES.index)
    ordered = chosen.assign(place=place).sort_values(["asked", "place", "predicted"]).drop(columns="place")
    description = (
        f"Private: {private}, ε = {epsilon:g}. How many patients of those with about the same predicted probability "
        "had the outcome. On the grey line a prediction can be taken at its word; above it patients are in more danger "
        "than they are told."
    )
    return Drawing(RELIABILITY, description, ordered, _draw_reliability)


def _draw_reliability(table: pd.DataFrame) -> Figure:
    with panels(2, height=4.0) as (figure, both):
        both_values = pd.concat([table["predicted"], table["value"]])
        for axes, asked in zip(both, ASKED, strict=True):
            rows = table[table["asked"] == asked]
            _diagonal(axes, both_values)
            draw_lines(axes, rows, "predicted")
            log_axis(axes, "x", both_values)
            log_axis(axes, "y", both_values)
            headed(axes, capital(asked), "predicted probability (log scale)", "rate of the outcome (log scale)")
    return figure


def capital(text: str) -> str:
    """With a capital first letter."""
    return text[0].upper() + text[1:]


def _diagonal(axes: Axes, values: pd.Series) -> None:
    ends = [values.min(), values.max()]
    axes.plot(ends, ends, color="#777777", linewidth=1, zorder=1)
