"""What a comparison over days says: what can be kept, what cannot, and which way of spending a total keeps most.

And the first screen of its page: what its sections found within one total, beside one treatment for all.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from envs.cohort import prior
from policies.optimal.optimum import OPTIMAL_DAILY, Optimal
from policies.reference import BestFixed
from policysim.course.days import DaysQuestion
from policysim.course.process import one_start
from policysim.course.treatment_course import CourseRecords, public_over_days
from policysim.question.answer import Headline
from policysim.question.first_screen import Brief, Point, Tile
from policysim.question.formats import days, events, of_100, percent, percent_down, percent_up, population
from policysim.question.words import ALL, ASSUMED_PUBLIC, KEEP, NO_MECHANISM, PLAN_ONCE, in_a_row
from policysim.question.words import BEST_SCHEDULE as SCHEDULE
from policysim.study.basis import listed
from policysim.study.declared import ScenarioStudy

# The ways to spend a total: nothing, on one choice of all days, or day by day.
DAILY = "day by day"
# Of values that differ by no more than this share of the largest, the plainest way counts as the best.
EQUAL = 1e-9
# Up to so many public features are named.
NAMED = 4

BEGIN_ALIKE = (
    " Here all who are hidden among each other begin alike: choosing once cannot react to anything, and what is said "
    "to be the most bounds nothing."
)
PER_DAY = (
    f"{OPTIMAL_DAILY} is the best ε-private choice of each day between that day's Q-values, which count on what it "
    "does itself on the days that follow. It is no limit for the course: another mechanism, compared here or not, may "
    "keep more."
)
WAYS = {SCHEDULE: "One schedule for all", PLAN_ONCE: "One private choice", DAILY: "Choosing day by day"}
HOW = {
    SCHEDULE: "best-schedule gives everybody who must look alike the same treatment on a day, from day to day "
    "perhaps another.",
    PLAN_ONCE: "plan-once chooses one of several schedules for each patient at admission, and follows it on all days: "
    "nothing adds up over the days.",
    DAILY: "What chooses day by day spends its total on the days on which it buys most.",
}


def ways(table: pd.DataFrame) -> pd.DataFrame:
    """The best of each way to spend a total, at each horizon and total, and which way is best.

    The ways are one schedule for all (best-schedule), one private choice of a schedule (plan-once), and the best of
    the policies that choose day by day, of those that stay within the total. What a smaller total allows, a larger one
    does: so no way keeps less at a larger total.

    Parameters
    ----------
    table : DataFrame
        From `compare_days`.

    Returns
    -------
    DataFrame
        horizon, total_epsilon, way, policy, hides, value, benefit_kept, best, most_kept: `best` is true for the way
        that keeps most, the plainest of equals; `most_kept` is what no mechanism exceeds, even if it hides no more than
        the first state.
    """
    private = table["total_spent"] <= table["total_epsilon"] * (1 + EQUAL)
    overall = table[(table["group"] == ALL) & private].to_dict("records")
    rows = []
    for horizon, total in sorted({(row["horizon"], row["total_epsilon"]) for row in overall}):
        allowed = [row for row in overall if row["horizon"] == horizon and row["total_epsilon"] <= total]
        kinds: dict[str, list[dict[Hashable, Any]]] = {SCHEDULE: [], PLAN_ONCE: [], DAILY: []}
        for row in allowed:
            kinds.get(row["policy"], kinds[DAILY]).append(row)
        found = {way: max(of_way, key=lambda row: row["value"]) for way, of_way in kinds.items() if of_way}
        most = max(row["value"] for row in found.values())
        best = next(way for way, row in found.items() if row["value"] >= most - EQUAL * abs(most))
        proved = [row.get("most_kept", math.nan) for row in allowed if row["total_epsilon"] == total]
        rows += [
            {
                "horizon": horizon,
                "total_epsilon": total,
                "way": way,
                "policy": row["policy"],
                "hides": row["hides"],
                "value": row["value"],
                "benefit_kept": row["benefit_kept"],
                "best": way == best,
                "most_kept": proved[0],
            }
            for way, row in found.items()
        ]
    return pd.DataFrame(rows)


def best_mechanisms(table: pd.DataFrame) -> pd.DataFrame:
    """The mechanism of the table that keeps most at each horizon, of those that stay within the total epsilon.

    Returns
    -------
    DataFrame
        The best rows of `ways`: horizon, total_epsilon, policy, benefit_kept, most_kept; the plainest of equals.
    """
    found = ways(table)
    best: pd.DataFrame = found[found["best"]].reset_index(drop=True)
    return best[["horizon", "total_epsilon", "policy", "benefit_kept", "most_kept"]]


def headline(question: DaysQuestion, table: pd.DataFrame) -> Headline:
    """What can be kept over the whole course, within the least total that keeps most of it, or else the largest."""
    row = telling_total(question, best_mechanisms(table))
    over, policy = f"Over {days(question.horizon)}", str(row["policy"])
    if math.isnan(row["benefit_kept"]):
        return Headline(f"{over}, choosing for each patient gains nothing that a share could be given of")
    kept, within = percent_down(row["benefit_kept"]), f"a total ε of {row['total_epsilon']:g}"
    what = {SCHEDULE: "one schedule for all, which costs no privacy,", PLAN_ONCE: "one private choice of a schedule"}
    finding = f"{over}, {what.get(policy, 'choosing privately day by day')} keeps {kept} of the benefit"
    return Headline(
        finding if policy == SCHEDULE else f"{finding} within {within}",
        kept,
        f"of the benefit kept within {within}, by {policy}{_most(row, f'; {NO_MECHANISM} keeps more than ')}",
    )


def telling_total(question: DaysQuestion, best: pd.DataFrame) -> dict[Hashable, Any]:
    """The row of the least total that keeps most of the benefit over the whole course, or else of the largest.

    `best` is from `best_mechanisms`.
    """
    rows = best[best["horizon"] == question.horizon].to_dict("records")
    return next((row for row in rows if row["benefit_kept"] >= KEEP), rows[-1])


def answer(study: ScenarioStudy, question: DaysQuestion, table: pd.DataFrame) -> list[str]:
    """What can be kept over the whole course, by what, and what no mechanism can; what schedules are, if they win."""
    best = best_mechanisms(table)
    rows = best[best["horizon"] == question.horizon].to_dict("records")
    first, *others = rows
    sentence = (
        f"Over {days(question.horizon)}, within a total ε of {first['total_epsilon']:g}, "
        f"{percent_down(first['benefit_kept'])} of the benefit can be kept (by {first['policy']})"
        + _most(first, f", and {NO_MECHANISM} keeps more than ")
        + "".join(
            f"; within {row['total_epsilon']:g}, {percent_down(row['benefit_kept'])} ({row['policy']})"
            + _most(row, " and no more than ")
            for row in others
        )
        + f". Compared are {', '.join(dict.fromkeys(table['policy']))}."
    )
    names = {row["policy"] for row in rows}
    words = ways_words(study)
    said = {PLAN_ONCE: words["once_words"], SCHEDULE: words["schedule_words"]}
    return [sentence, *(about for name, about in said.items() if name in names)]


def _most(row: Mapping[Hashable, Any], words: str) -> str:
    return "" if math.isnan(row["most_kept"]) else words + percent_up(row["most_kept"])


def ways_words(study: ScenarioStudy) -> dict[str, str]:
    """What the ways to spend a total are, what they are measured against, and what bounds them."""
    public = public_over_days(study)
    # Which patients are hidden among each other; empty if all are.
    agree = f"who agree in {_named(public, 'all that is public')}" if public else ""
    everybody, get = (f"all patients {agree}", "get") if agree else ("everybody", "gets")
    own = f" Patients {agree} share their schedules; others may have others." if agree else ""
    classes = CourseRecords(study.scenario.space, public).classes() if agree else None
    return {
        "schedule_words": f"best-schedule gives {everybody} the same treatment on a day, which may change from day to "
        f"day: it looks {'at what is public alone' if agree else 'at nobody'} and costs no privacy. A mechanism earns "
        "its ε by what it keeps beyond that.",
        "never_falls": "A mechanism with an ε that chooses day by day starts from best-schedule, and spends its total "
        f"on the days on which it buys most; on the other days {everybody} {get} the same treatment. So it keeps no "
        "less than best-schedule, and no less at a larger total. It may spend less than the total, and nothing where "
        "nothing was found that is worth it.",
        "once_words": "plan-once chooses one of several schedules for each patient at admission, by the best ε-private "
        "choice, and follows it on all days. Schedules are found from the model and the prior, which are "
        f"public.{own} What is published on all days follows from one choice, by the first day's record: so it hides "
        "the whole course, nothing adds up over the days, and δ is 0."
        + (BEGIN_ALIKE if one_start(prior(study.scenario), classes) else ""),
        "limit_words": f"Within the total, {NO_MECHANISM} keeps more than what is said to be the most, whatever it "
        f"does on which day: its first treatment alone is as private{f' among patients {agree}' if agree else ''} as "
        "the whole course, and what follows is worth no more than the best choice for each on all later days. That "
        "bounds what hides the first day's record, and so what hides the whole course. What no mechanism compared here "
        "reaches, another one may.",
        "one_for_all": "Benefit kept: 0 % = the same treatment for "
        f"{'all who may get the same' if study.scenario.contraindication_features else 'all'} on every day; 100 % = "
        "the best for each on each day.",
        "per_day": PER_DAY if Optimal.name in study.policies else "",
    }


def _named(public: tuple[str, ...], many: str) -> str:
    """The public features, or what else to say of many."""
    *most, last = (listed([name]) for name in public)
    return many if len(public) > NAMED else f"{', '.join(most)} and {last}" if most else last


def privacy_words(study: ScenarioStudy, question: DaysQuestion) -> str:
    """What is hidden over the days, what a total ε (and δ) promises, and how the days add up to it."""
    length = (
        "The length of a patient's stay is declared public."
        if question.length_public
        else f"Treatments are published through day {question.horizon}: a patient who has died or recovered is one "
        "more record that they hide."
    )
    hidden, known, agree, plus, other = "the whole record of a patient on all days", "", "", "", ""
    if public := public_over_days(study):
        hidden = f"all of a patient's record but {_named(public, 'what is public')}, on all days"
        known, agree = f"{listed(public)}, ", " that agree in what is public"
    if question.delta > 0:
        plus = f", plus δ = {question.delta:g}"
        other = (
            ", by that of their ρ (zero-concentrated composition), or by the distributions of their privacy loss, "
            "whichever is proved to spend least"
        )
    return (
        f"Hidden: {hidden}, from {study.hidden_from}, within the total ε of the course: of any two courses of a "
        f"patient's records{agree}, any set of courses of treatments is at most e^ε times as probable under one as "
        f"under the other{plus}. As treatment itself changes records, what an observer believes is to be compared with "
        "what is probable given the treatments. Choices made day by day add up by the sum of their tables' exact "
        f"losses{other}. {length} Assumed public: {known}{ASSUMED_PUBLIC}, the policies' Q-values and the schedules."
    )


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
    # That no more than all can be kept is no finding.
    proved = "" if percent_up(row["most_kept"]) == percent_up(1.0) else _most(row, f"; {NO_MECHANISM} keeps more than ")
    kept = (
        f"Within a total ε of {row['total_epsilon']:g}, {row['policy']} keeps {percent_down(row['benefit_kept'])} "
        f"of the benefit{proved}.{at_others}"
    )
    way = str(row["policy"]) if row["policy"] in WAYS else DAILY
    points = [Point("Benefit kept", kept), Point(WAYS[way], HOW[way])]
    free = _row(question, table, SCHEDULE)
    if free is not None and not math.isnan(free["benefit_kept"]):
        said = f"The best schedule for all keeps {percent(free['benefit_kept'])} of the benefit over "
        said += f"{days(question.horizon)}, and reveals nothing."
        points.append(Point("Costs no privacy", said))
    total = float(row["total_epsilon"])
    shown, fixed = _row(question, table, str(row["policy"]), total), _row(question, table, BestFixed.name)
    assert shown is not None
    tiles = []
    if not math.isnan(shown["benefit_kept"]):
        share = float(shown["benefit_kept"])
        tiles.append(Tile("benefit_kept", "of the benefit is kept", share, percent_down(share), percent(0)))
    deaths = [float(each["extra_deaths"]) for each in (shown, fixed) if each is not None]
    if not any(map(math.isnan, deaths)) and any(deaths):
        count = population(deaths)
        own, *for_all = (events(rate, count, sign=True) for rate in deaths)
        label = f"extra deaths per {count:,} patients, beyond the best treatment for each on each day"
        tiles.append(Tile("extra_deaths", label, deaths[0], own, "".join(for_all)))
    right = right_guesses(total, question.delta)
    label = "times of 100 at most, an observer can tell which of two patients had this course"
    tiles.append(Tile("right_guesses", label, right, of_100(right), "50"))
    return Brief(tuple(points), tuple(tiles))


def _row(question: DaysQuestion, table: pd.DataFrame, policy: str, total: float = math.nan) -> dict[str, Any] | None:
    """A policy over the whole course; within any total where none is given."""
    found = table[(table["horizon"] == question.horizon) & (table["group"] == ALL) & (table["policy"] == policy)]
    if not math.isnan(total):
        found = found[found["total_epsilon"] <= total].sort_values("value", ascending=False)
    return None if found.empty else {str(name): value for name, value in found.iloc[0].items()}


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
