"""The screen that `policysim compare --horizon` prints."""

from __future__ import annotations

import pandas as pd

from policies.optimal.optimum import OPTIMAL_DAILY, Optimal
from policysim.course.days import DaysQuestion
from policysim.question.words import (
    ALL,
    ASSUMED_PUBLIC,
    DISCLAIMER,
    cells,
    days,
    events,
    percent,
    population,
    rounded,
    wrap,
)
from policysim.study.declared import ScenarioStudy

HEADINGS = (
    ("", "ε of", "", "benefit", "extra deaths", "ε spent"),
    ("Total ε = {total}", "a day", "composition", "kept", "per {count:,}", "in all"),
)
COLUMNS = (28, 9, 20, 10, 15, 10)
BEST_COLUMN = 30
PER_DAY = (
    f"{OPTIMAL_DAILY} is the best ε-private choice of each day between that day's Q-values, which count on the best "
    "choice for each on the days that follow. It is no limit for the course: another mechanism, compared here or not, "
    "may keep more."
)
SCHEDULE_WORDS = (
    "best-schedule gives everybody the same treatment on a day, which may change from day to day: it looks at nobody "
    "and costs no privacy. A mechanism earns its ε by what it keeps beyond that."
)
NEVER_FALLS = (
    "Each mechanism has the largest daily ε that its total affords, or a smaller one that is worth more over the "
    "course: so it never keeps less at a larger total, and may spend less than it."
)


def days_screen(study: ScenarioStudy, question: DaysQuestion, table: pd.DataFrame) -> list[str]:
    """What a course of treatment costs under each budget, and the best of the policies compared at each horizon."""
    overall = table[(table["group"] == ALL) & (table["horizon"] == question.horizon)]
    lines = [
        f"{study.title} Over {days(question.horizon)}.",
        f"{DISCLAIMER} {study.scenario.space.size:,} possible records, {len(study.scenario.actions)} treatments a day.",
        "",
        *wrap(privacy_words(study, question)),
    ]
    for total in question.totals:
        lines += ["", *total_table(overall[overall["total_epsilon"] == total], total)]
    lines += [
        "Benefit kept: 0 % = the same treatment for all on every day; 100 % = the best for each on each day.",
        *wrap(NEVER_FALLS),
        *wrap(SCHEDULE_WORDS),
        *wrap(per_day_words(study)),
        "",
        *best_table(question, table),
        "",
    ]
    return lines


def per_day_words(study: ScenarioStudy) -> str:
    """What optimal-daily is and is not, if it is compared."""
    return PER_DAY if Optimal.name in study.policies else ""


def privacy_words(study: ScenarioStudy, question: DaysQuestion) -> str:
    """What is hidden over the days, and how the days add up."""
    length = (
        "The length of a patient's stay is declared public."
        if question.length_public
        else f"Treatments are published through day {question.horizon}: a patient who has died or recovered is one "
        "more record that they hide."
    )
    return (
        f"Hidden: the whole record of a patient on all days, from {study.hidden_from}, within the total ε of the "
        f"course: {guarantee_words(question)} {length} Assumed public: {ASSUMED_PUBLIC}, and the policies' Q-values."
    )


def guarantee_words(question: DaysQuestion) -> str:
    """What a total ε (and δ) promises, and how the days add up to it."""
    plus = f", plus δ = {question.delta:g}" if question.delta > 0 else ""
    rho = ", or by that of their ρ (zero-concentrated composition)" if question.delta > 0 else ""
    return (
        f"any set of courses that may be published is at most e^ε times as probable under one record as under "
        f"another{plus}. The days add up by the sum of their ε or of their tables' exact losses{rho}, whichever lets "
        "more through."
    )


def total_table(rows: pd.DataFrame, total: float) -> list[str]:
    """A row per policy at one total epsilon."""
    count = population(rows["extra_deaths"])
    lines = [cells([cell.format(total=f"{total:g}", count=count) for cell in row], COLUMNS) for row in HEADINGS]
    for _, row in rows.iterrows():
        lines.append(
            cells(
                [
                    str(row["policy"]),
                    rounded(row["epsilon"]),
                    str(row["composition"]),
                    percent(row["benefit_kept"]),
                    events(row["extra_deaths"], count, sign=True),
                    rounded(row["total_spent"]),
                ],
                COLUMNS,
            )
        )
    return lines


def best_mechanisms(table: pd.DataFrame) -> pd.DataFrame:
    """The policy of the table that keeps most at each horizon, of those that stay within the total epsilon.

    Returns
    -------
    DataFrame
        horizon, total_epsilon, policy, benefit_kept; the first of equals.
    """
    private = table["total_spent"] <= table["total_epsilon"] * (1 + 1e-9)
    overall = table[(table["group"] == ALL) & private]
    ranked = overall.sort_values("value", ascending=False, kind="stable")
    best: pd.DataFrame = ranked.groupby(["horizon", "total_epsilon"], as_index=False).first()
    return best[["horizon", "total_epsilon", "policy", "benefit_kept"]]


def best_table(question: DaysQuestion, table: pd.DataFrame) -> list[str]:
    """The best of the policies compared at each horizon (rows) and total epsilon (columns)."""
    best = best_mechanisms(table)
    widths = (14, *(BEST_COLUMN for _ in question.totals))
    lines = [cells(["Best of these", *(f"total ε = {total:g}" for total in question.totals)], widths)]
    for horizon in question.horizons:
        rows = best[best["horizon"] == horizon]  # one for each total, rising as the question has them
        shown = [f"{name} {percent(kept)}" for name, kept in zip(rows["policy"], rows["benefit_kept"], strict=True)]
        lines.append(cells([days(horizon), *shown], widths))
    return lines
