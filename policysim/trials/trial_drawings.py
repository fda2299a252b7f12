"""The figures of a study of a log, with their words and data."""

from __future__ import annotations

from functools import partial

import pandas as pd

from policysim import figures
from policysim.figures.curves import MOST_CURVES, choices_seen, lines_seen
from policysim.figures.described import Described, Lines
from policysim.question import formats, words
from policysim.question.answer import ColumnGroup, Drawing, TextTable, wide
from policysim.question.words import ALL


def gain_drawing(table: pd.DataFrame, epsilon: float) -> Drawing | None:
    """What each policy gains over the best single treatment at each epsilon; None without such rows.

    `epsilon` is the study's: where it is decided which policies are drawn, if they are many.
    """
    drawn = figures.over_epsilon(table)
    if drawn.empty:
        return None
    # Percentages are refused on many logs, and differences never: the same figure for all of them.
    plain = drawn.assign(benefit_kept=float("nan"))
    # The line of the best arm is one of the panel's.
    names = figures.telling(drawn, epsilon=epsilon, most=MOST_CURVES - 1)
    seen = lines_seen(drawn, "difference", partial(formats.rounded, sign=True), epsilon=epsilon, names=names)
    return Drawing(
        "frontier",
        "Against one treatment for all",
        "The mean outcome of each policy minus that of one treatment for all (the line at 0), against ε. Patients are "
        "those who had no part in making the policy. Shaded: the 95\u00a0% interval, which is sampling error. On top: "
        "of 100 guesses between two records that must look alike, how many an observer can get right at most.",
        lambda size: figures.frontier(plain, epsilon=epsilon, size=size),
        _with_intervals(drawn.sort_values("epsilon", kind="stable"), "epsilon", "ε", "difference", "{:g}"),
        tuple(float(value) for value in sorted(table["epsilon"].unique())),
        seen=f"{seen}.",
    )


def choices_drawing(examples: pd.DataFrame) -> Drawing:
    """What example patients get by the private choice; `examples` are its cells (`trial_answer`)."""
    names = {"row": "patient", "option": "action", "value": "probability"}
    mine = examples.rename(columns=names).assign(policy="private choice")
    panels = [
        ColumnGroup(str(patient), rows, "probability", formats.percent)
        for patient, rows in mine.groupby("patient", sort=False)
    ]
    return Drawing(
        "action-probabilities",
        "What example patients get by the private choice",
        "The probability of each treatment against ε by the private choice, made from the whole log; a panel for each "
        "example patient.",
        lambda size: figures.action_probabilities(mine, size=size),
        wide(panels, index="epsilon", columns="action", name_index=lambda epsilon: f"{epsilon:g}"),
        tuple(float(value) for value in sorted(mine["epsilon"].unique())),
        table="examples.csv",
        seen=choices_seen(mine, 1.0),
    )


def calibration_drawing(calibration: pd.DataFrame) -> Drawing | None:
    """Scores beside what was seen; None where no arm has patients enough."""
    if calibration.empty:
        return None
    panel = Lines(
        "What was seen against what scores predict",
        "mean score of a third of an arm's patients",
        "their mean outcome, with its 95 % interval",
        x="predicted",
        log="",
        diagonal=(float(calibration["predicted"].min()), float(calibration["predicted"].max())),
    )
    description = (
        "Each arm's patients are in thirds by their score under it: their mean outcome against their mean score, which "
        "was fitted without them. On the grey line scores are right."
    )
    rows = tuple(
        (
            str(row["line"]),
            formats.rounded(row["predicted"]),
            formats.with_interval(row["value"], row["low"], row["high"]),
            f"{row['patients']:,}",
        )
        for row in calibration.to_dict("records")
    )  # fmt: skip
    made = Described("calibration", description, calibration, (panel,))
    return Drawing(
        made.name,
        "Are the scores right on average?",
        description,
        made.figure,
        TextTable(("arm", "mean score", "mean outcome", "patients"), rows),
        table="calibration.csv",
    )


def propensities_drawing(propensities: pd.DataFrame) -> Drawing | None:
    """How probable the treatments were that patients got; None where that does not vary within the arms."""
    if propensities.empty:
        return None
    panel = Lines(
        "How probable the treatments were that patients got",
        "probability of the treatment that the patient got",
        "share of the arm's patients with at most this",
        x="propensity",
        log="",
    )
    description = (
        "For each arm the share of its patients whose treatment had at most a given probability (propensity). Curves "
        "that start near 0 belong to arms in which few patients stand for many others."
    )
    rows = tuple(
        (str(name), *(formats.rounded(float(mine["propensity"].quantile(q))) for q in (0, 0.25, 0.5, 0.75, 1)))
        for name, mine in propensities.groupby("line", sort=False)
    )
    made = Described("propensities", description, propensities, (panel,))
    return Drawing(
        made.name,
        panel.title,
        description,
        made.figure,
        TextTable(("arm", "least", "a quarter", "half", "three quarters", "largest"), rows),
        table="propensities.csv",
    )


def groups_drawing(at_epsilon: pd.DataFrame) -> Drawing | None:
    """Against one treatment for all, group by group; None without groups."""
    rows = at_epsilon[at_epsilon["difference"].notna()]
    if rows.empty or (rows["group"] == ALL).all():
        return None
    names = rows.apply(lambda row: words.group_name(row["group"], row["level"]), axis=1)
    names_drawn = figures.telling(rows)
    shown = rows[rows["policy"].isin(names_drawn)]
    everyone = shown[shown["group"] == ALL]
    told = [f"{row['policy']} {_with_ends(row, 'difference')}" for _, row in everyone.iterrows()]
    clear = (shown["difference_low"] > 0) | (shown["difference_high"] < 0)
    others = "" if len(shown) == len(rows) else " The policies that are not drawn are among the numbers."
    return Drawing(
        "forest",
        "Against one treatment for all, group by group",
        "The mean outcome of each policy minus that of one treatment for all (the line at 0), of everyone and of each "
        f"group of patients, a panel for each policy.{others} Bars are 95\u00a0% intervals, which are sampling error: "
        "the estimate of a small group says little.",
        lambda size: figures.forest(rows, size=size),
        _with_intervals(rows.assign(name=names), "name", "group", "difference"),
        seen=f"Of everyone: {'; '.join(told)}. Of {len(shown)} intervals {int(clear.sum())} exclude 0.",
    )


def _with_intervals(table: pd.DataFrame, index: str, heading: str, column: str, write: str = "{}") -> TextTable:
    """A row for each entry of `index`, and for each policy the estimate with its interval."""
    names = [str(name) for name in dict.fromkeys(table["policy"])]
    rows = []
    for key, group in table.groupby(index, sort=False):
        of = {str(row["policy"]): row for _, row in group.iterrows()}
        cells = [_with_ends(of[name], column) if name in of else "–" for name in names]
        rows.append((write.format(key), *cells))
    return TextTable((heading, *names), tuple(rows))


def _with_ends(row: pd.Series, column: str) -> str:
    triple = float(row[column]), float(row[f"{column}_low"]), float(row[f"{column}_high"])
    return f"{formats.estimate(*triple, sign=True)} ({formats.interval(*triple[1:], sign=True)})"
