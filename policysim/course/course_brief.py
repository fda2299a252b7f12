"""The first screen of a course's page, and what its sections found: within one total, beside one treatment for all."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from policies.reference import BestFixed
from policysim.course.course_findings import (
    DAILY,
    best_mechanisms,
    telling_total,
)
from policysim.course.days import DaysQuestion
from policysim.question.answer import Headline
from policysim.question.first_screen import Brief, Point, Tile
from policysim.question.formats import days, events, of_100, percent, percent_down, percent_up, population
from policysim.question.words import ALL, BEST_SCHEDULE, NO_MECHANISM, PLAN_ONCE, in_a_row

WAYS = {BEST_SCHEDULE: "One schedule for all", PLAN_ONCE: "One private choice", DAILY: "Choosing day by day"}
HOW = {
    BEST_SCHEDULE: "best-schedule gives everybody who must look alike the same treatment on a day, from day to day "
    "perhaps another.",
    PLAN_ONCE: "plan-once chooses one of several schedules for each patient at admission, and follows it on all days: "
    "nothing adds up over the days.",
    DAILY: "What chooses day by day spends its total on the days on which it buys most.",
}


def brief(question: DaysQuestion, table: pd.DataFrame) -> Brief:
    """What each total keeps, how, what costs no privacy, and the numbers at the total of the headline."""
    best = best_mechanisms(table)
    rows = best[best["horizon"] == question.horizon].to_dict("records")
    row = telling_total(question, best)
    others = [
        f"{percent_down(each['benefit_kept'])} within {each['total_epsilon']:g}"
        + (f" ({each['policy']})" if each["policy"] != row["policy"] else "")
        for each in rows
        if each["total_epsilon"] != row["total_epsilon"]
    ]
    at_others = f" It is {in_a_row(others, 'and')}." if others else ""
    kept = (
        f"Within a total ε of {row['total_epsilon']:g}, {row['policy']} keeps {percent_down(row['benefit_kept'])} "
        f"of the benefit{_most(row)}.{at_others}"
    )
    way = str(row["policy"]) if row["policy"] in WAYS else DAILY
    points = [
        Point("Benefit kept", kept),
        Point(WAYS[way], HOW[way]),
        *_without_privacy(question, table),
    ]
    return Brief(tuple(points), _strip(question, table, row))


def _most(row: Mapping[Hashable, Any]) -> str:
    most = percent_up(row["most_kept"])
    # That no more than all can be kept is no finding.
    return "" if math.isnan(row["most_kept"]) or most == percent_up(1.0) else f"; {NO_MECHANISM} keeps more than {most}"


def _without_privacy(question: DaysQuestion, table: pd.DataFrame) -> list[Point]:
    row = _row(question, table, BEST_SCHEDULE)
    if row is None or math.isnan(row["benefit_kept"]):
        return []
    kept = percent(row["benefit_kept"])
    said = f"The best schedule for all keeps {kept} of the benefit over {days(question.horizon)}, and reveals nothing."
    return [Point("Costs no privacy", said)]


def _row(question: DaysQuestion, table: pd.DataFrame, policy: str, total: float = math.nan) -> dict[str, Any] | None:
    """A policy over the whole course; within any total where none is given."""
    found = table[(table["horizon"] == question.horizon) & (table["group"] == ALL) & (table["policy"] == policy)]
    if not math.isnan(total):
        found = found[found["total_epsilon"] <= total].sort_values("value", ascending=False)
    return None if found.empty else {str(name): value for name, value in found.iloc[0].items()}


def _strip(question: DaysQuestion, table: pd.DataFrame, best: Mapping[Hashable, Any]) -> tuple[Tile, ...]:
    total = float(best["total_epsilon"])
    row, fixed = _row(question, table, str(best["policy"]), total), _row(question, table, BestFixed.name)
    assert row is not None
    tiles = []
    if not math.isnan(row["benefit_kept"]):
        kept = float(row["benefit_kept"])
        tiles.append(Tile("benefit_kept", "of the benefit is kept", kept, percent_down(kept), percent(0)))
    deaths = [float(each["extra_deaths"]) for each in (row, fixed) if each is not None]
    if not any(map(math.isnan, deaths)) and any(deaths):
        count = population(deaths)
        own, *for_all = (events(rate, count, sign=True) for rate in deaths)
        label = f"extra deaths per {count:,} patients, beyond the best treatment for each on each day"
        tiles.append(Tile("extra_deaths", label, deaths[0], own, "".join(for_all)))
    right = right_guesses(total, question.delta)
    label = "times of 100 at most, an observer can tell which of two patients had this course"
    tiles.append(Tile("right_guesses", label, right, of_100(right), "50"))
    return tuple(tiles)


def right_guesses(epsilon: float, delta: float) -> float:
    """How often a guess between two equally likely neighbours is right at most, by what (ε, δ) bounds.

    The total variation between two courses is at most (e^ε - 1 + 2δ)/(e^ε + 1) (Kairouz, Oh & Viswanath 2015, The
    composition theorem for differential privacy), and the best guess is right (1 + that)/2 of the time.

    Examples
    --------
    >>> right_guesses(0.0, 0.0), right_guesses(0.0, 1.0), round(right_guesses(1.0, 0.0), 3)
    (0.5, 1.0, 0.731)
    """
    return (1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon))


def headings(question: DaysQuestion, table: pd.DataFrame, ways: pd.DataFrame, headline: Headline) -> dict[str, str]:
    """What the sections of the page found, by their identifiers."""
    best = ways[ways["best"]]
    most = str(best["way"].value_counts().idxmax())
    count = int((best["way"] == most).sum())
    row = telling_total(question, best_mechanisms(table))
    return {
        "totals": f"{row['policy']} keeps most within a total ε of {row['total_epsilon']:g}" if headline.number else "",
        "ways": f"{WAYS[most]} keeps most at {count} of {len(best)} pairs of a horizon and a total",
    }
