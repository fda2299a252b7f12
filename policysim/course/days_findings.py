"""What a comparison over days found: its options, their differences, who is harmed, what leaks, and how ε is spent.

A is the best schedule for everyone, B the best private way within the total, C the best treatment for each patient on
each day; policies that were asked for by name follow with letters of their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from policies.reference import BestFixed, Greedy, Uniform
from policysim.course.days import EQUAL, stated_total, ways
from policysim.numbers import NEGLIGIBLE, population, written
from policysim.report import findings as verdicts
from policysim.report.findings import UTILITY, Findings, hides_of, rows_of
from policysim.report.weighed import Weighed, printed_rows, unit_of_exchange
from policysim.study.declared import ScenarioStudy
from policysim.study.labels import level_in_words
from policysim.utility import COSTS
from policysim.words import ALL, BEST_SCHEDULE

# What composes without the δ of the totals.
WITHOUT_DELTA = ("exact-losses", "one-choice", "tree")
# The letters of policies that were asked for by name; further ones stand among the ways.
LETTERS = "DEF"
A, B, C = "A", "B", "C"
TITLES = {A: "Best schedule for all", B: "Best private way", C: "Best for each patient"}
# The policies of A and C; and what a row holds beside the value.
OUTER = (BEST_SCHEDULE, Greedy.name)
NUMBERS = ("loss", "benefit_kept", "total_spent", "epsilon_spent")
# Whose differences are columns of the printed table.
PAIRS = ((A, C), (B, A))
# In whose units an exchange is, where no outcome is saved for another.
UNITS = "units of utility"
# A group is harmed if it has so many cases more among those who are counted.
LEAST_HARM = 0.5
# Differences below this share of what they are between are equal: files have eight digits.
LAST_DIGITS = 1e-7


@dataclass(frozen=True, eq=False, kw_only=True)
class DaysDetails:
    """What a report over days holds beside the core of its findings.

    Attributes
    ----------
    horizon : int
        Days.
    total_epsilon : float
        The total of the printed table.
    delta : float
        Of (ε, δ)-privacy.
    length_public : bool
        Whether when a stay ends is public.
    patients : int
        How many patients outcomes are counted among.
    odds : mapping of float to float
        By how much the treatments of all days change the odds of any fact at most: e^ε of each total.
    bounds : DataFrame
        total_epsilon, least_loss (what every mechanism loses at least), most_kept, hides and proof, where that is
        proven (`policysim.course.days.compare_days`).
    rows : DataFrame
        epsilon, outcome, title, weight, decimals, a column for each letter, and "A − C" and "B − A": the table of
        outcomes as it is printed at each total, among `patients` (`policysim.report.weighed.printed_rows`).
    rest : mapping of float to tuple of str
        Of each total, the titles of what the row `REST` sums.
    exchange : DataFrame
        epsilon, unit (the outcome that B saves most of, or costs most of where it saves the one that leads, in words),
        unit_weight, stated (how many of these one of the outcome that leads counts in the study) and equal_at (how
        many make A and B equal): a row for each total at which some number does.
    ways : DataFrame
        The best of each way at each horizon and total (`policysim.course.days.ways`).
    spent : DataFrame
        What each policy that draws anew each day spends on each day, and what proves how it adds up.
    schedule : DataFrame
        The treatments of A, by public class and day.
    courses, published : DataFrame
        The courses that plan-tree may publish, and what it gives on each day at the total of the printed table.
    """

    horizon: int
    total_epsilon: float
    delta: float
    length_public: bool
    patients: int
    odds: Mapping[float, float]
    bounds: pd.DataFrame
    rows: pd.DataFrame
    rest: Mapping[float, tuple[str, ...]]
    exchange: pd.DataFrame
    ways: pd.DataFrame
    spent: pd.DataFrame
    schedule: pd.DataFrame
    courses: pd.DataFrame
    published: pd.DataFrame


def find(
    study: ScenarioStudy,
    tables: Mapping[str, pd.DataFrame],
    *,
    delta: float = 0.0,
    length_public: bool = False,
    named: Sequence[str] = (),
    left_out: Sequence[str] = (),
) -> Findings:
    """What a comparison over days found, at the longest of its horizons and each of its totals.

    Parameters
    ----------
    study : ScenarioStudy
        From which the comparison was made.
    tables : mapping of str to DataFrame
        From `policysim.course.days.compare_days`, with `Greedy` among its policies.
    delta, length_public
        As the comparison had them.
    named : sequence of str, optional
        Policies with letters of their own.
    left_out : sequence of str, optional
        What was not compared, and why.
    """
    tables = {name: written(table) for name, table in tables.items()}
    horizon = int(tables["comparison"]["horizon"].max())
    comparison = tables["comparison"][tables["comparison"]["horizon"] == horizon]
    everyone = comparison[comparison["group"] == ALL]
    lead = study.lead if f"expected_{study.lead}" in everyone else None
    totals = sorted(float(total) for total in everyone["total_epsilon"].unique())
    stated = stated_total(totals, study.epsilon)
    of_ways = ways(tables["comparison"])
    options = _options(everyone, private_ways(of_ways[of_ways["horizon"] == horizon]), stated, named, delta)
    lettered = options[options["section"] == "option"]
    of = _weighed(study, everyone)
    columns = [f"expected_{name}" for name in of.outcomes]
    count = population(lettered.loc[lettered["epsilon"] == stated, columns].to_numpy().ravel())
    differences = _differences(of, lettered)
    core = Findings(options=options, differences=differences, harmed=pd.DataFrame(), leaks=_leaks(lettered))
    printed = {total: printed_rows(of, core.lettered(total), PAIRS, count) for total in totals}
    rows = {total: table for total, (table, _) in printed.items()}
    return replace(
        core,
        harmed=_harmed(study, comparison, lettered, lead, count),
        warnings=tuple(f"not compared: {reason}" for reason in left_out),
        details=DaysDetails(
            horizon=horizon,
            total_epsilon=stated,
            delta=delta,
            length_public=length_public,
            patients=count,
            odds={total: math.exp(total) if total < math.log(1e300) else math.inf for total in totals},
            rows=pd.concat([table.assign(epsilon=total) for total, table in rows.items()], ignore_index=True),
            rest={total: rest for total, (_, rest) in printed.items()},
            exchange=_exchange(of, differences, rows),
            bounds=_bounds(everyone),
            ways=of_ways,
            spent=tables["spent"],
            schedule=tables["schedule"],
            courses=tables["courses"],
            published=tables["published"],
        ),
    )


def guess_rate(epsilon: float, delta: float) -> float:
    """How often a guess between two equally likely neighbours is right at most, by what (ε, δ) bounds.

    The total variation between two courses is at most (e^ε - 1 + 2δ)/(e^ε + 1) (Kairouz, Oh & Viswanath 2015, The
    composition theorem for differential privacy), and the best guess is right (1 + that)/2 of the time.

    Examples
    --------
    >>> guess_rate(0.0, 0.0), guess_rate(0.0, 1.0), round(guess_rate(1.0, 0.0), 3)
    (0.5, 1.0, 0.731)
    """
    return (1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon))


def _options(
    everyone: pd.DataFrame, private: Mapping[float, str], stated: float, named: Sequence[str], delta: float
) -> pd.DataFrame:
    """A row for each option at each total, by letter; then one for each further policy."""
    policies = list(everyone["policy"].unique())
    others = [name for name in dict.fromkeys(named) if name in policies and name not in (*OUTER, private[stated])]
    further = dict(zip(LETTERS, others, strict=False))
    policy_of = {A: BEST_SCHEDULE, C: Greedy.name, **further}
    keys = [
        ("option", letter, title, policy_of.get(letter, best), total)
        for letter, title in {**TITLES, **further}.items()
        for total, best in private.items()
    ]
    keys += [("way", "", name, name, total) for name in policies if name not in OUTER for total in private]
    table = pd.DataFrame(keys, columns=["section", "option", "title", "policy", "epsilon"])
    outcomes = [name for name in everyone if str(name).startswith("expected_")]
    numbers = everyone[["policy", "total_epsilon", "value", *NUMBERS, *outcomes, "composition"]]
    table = table.merge(numbers, left_on=["policy", "epsilon"], right_on=["policy", "total_epsilon"], how="left")
    within = [0.0 if composition in WITHOUT_DELTA else delta for composition in table["composition"]]
    rates = [guess_rate(spent, slack) for spent, slack in zip(table["total_spent"], within, strict=True)]
    hides = table["total_spent"].map(hides_of)
    return table.drop(columns="total_epsilon").assign(hides=hides, low=math.nan, high=math.nan, guess_rate=rates)


def private_ways(of_ways: pd.DataFrame) -> dict[float, str]:
    """The policy of the best private way at each total: of equals one choice, then a tree, then what draws daily.

    Parameters
    ----------
    of_ways : DataFrame
        Of one horizon, from `policysim.course.days.ways`.
    """
    # The best single treatment, and the uniform draw, look at no record.
    drawn = of_ways[~of_ways["policy"].isin([BEST_SCHEDULE, BestFixed.name, Uniform.name])]
    most = drawn.groupby("total_epsilon")["value"].transform("max")
    # The ways stand in this order.
    equal = drawn[drawn["value"] >= most - EQUAL * most.abs()].drop_duplicates("total_epsilon")
    return {float(total): str(policy) for total, policy in zip(equal["total_epsilon"], equal["policy"], strict=True)}


def _weighed(study: ScenarioStudy, everyone: pd.DataFrame) -> Weighed:
    """What is counted of everyone: what has a weight, and the outcome that leads."""
    weights = {**study.weights, COSTS: 1.0}
    titles = {name: study.scenario.daily_title(name) for name in study.weights} | {COSTS: "units of cost"}
    outcomes = [name for name in titles if f"expected_{name}" in everyone and (weights[name] or name == study.lead)]
    return Weighed(outcomes, study.lead if study.lead in outcomes else None, weights, titles)


def _differences(of: Weighed, lettered: pd.DataFrame) -> pd.DataFrame:
    """What hiding everything costs, what a total buys, and what privacy costs in all; and further options against A."""
    rows = []
    measures = [*((name, f"expected_{name}", -1) for name in of.outcomes), (UTILITY, "value", 1)]
    by_option = lettered.set_index(["epsilon", "option"])
    pairs = [(A, C), (B, A), (B, C), *((letter, A) for letter in lettered["option"].unique() if letter > C)]
    for total in lettered["epsilon"].unique():
        for option, than in pairs:
            one, other = by_option.loc[(total, option)], by_option.loc[(total, than)]
            for name, column, sign in measures:
                more = float(one[column] - other[column])
                verdict = as_stated(sign * more, max(abs(one[column]), abs(other[column])))
                rows.append((total, option, than, name, more, math.nan, math.nan, verdict))
    columns = ["epsilon", "option", "than", "outcome", "value", "low", "high", "verdict"]
    return pd.DataFrame(rows, columns=columns)


def as_stated(gain: float, size: float) -> str:
    """The verdict by the stated numbers alone: equal up to the last digits that files have of numbers of this size."""
    if abs(gain) <= max(LAST_DIGITS * size, NEGLIGIBLE):
        return verdicts.EQUAL
    return verdicts.BETTER if gain > 0 else verdicts.WORSE


def _harmed(
    study: ScenarioStudy, comparison: pd.DataFrame, lettered: pd.DataFrame, lead: str | None, count: int
) -> pd.DataFrame:
    """The groups with more of the lead, or less utility, under B than under A, at each total."""
    measure, sign = (f"expected_{lead}", 1.0) if lead else ("value", -1.0)
    groups = comparison[comparison["share"].between(0, 1, inclusive="neither")]
    keys = ["total_epsilon", "group", "level", "share", "policy"]
    by_policy = groups.set_index(keys)[measure].unstack("policy")
    rows = []
    for row in rows_of(lettered[lettered["option"] == B]) if len(groups) else ():
        more = sign * (by_policy[row["policy"]] - by_policy[BEST_SCHEDULE]).loc[row["epsilon"]]
        for (group, level, share), extra in more[more * count >= LEAST_HARM].items():
            name = level_in_words(study.space, group, str(level))
            rows.append((row["epsilon"], B, A, name, share, extra))
    table = pd.DataFrame(rows, columns=["epsilon", "option", "than", "group", "share", "value"])
    return table.sort_values(["epsilon", "value"], ascending=[True, False], ignore_index=True)


def _leaks(lettered: pd.DataFrame) -> pd.DataFrame:
    """Which of two equally likely courses of records it is: before and after the treatments of all days are seen."""
    table = lettered[["epsilon", "option", "guess_rate"]].rename(columns={"guess_rate": "high"})
    table = table.assign(belief="which of two courses", among="", before=0.5, low=1 - table["high"])
    return table[["epsilon", "option", "belief", "among", "before", "low", "high"]].reset_index(drop=True)


def _bounds(everyone: pd.DataFrame) -> pd.DataFrame:
    """What no mechanism does better, at each total where that is proven."""
    proven = everyone[(everyone["policy"] == Greedy.name) & everyone["unbeatable"].notna()]
    bounds = proven[["total_epsilon", "most_kept"]].assign(
        least_loss=(proven["value"] - proven["unbeatable"]).clip(lower=0.0),
        hides=proven["most_kept_hides"],
        proof=proven["most_kept_proof"],
    )
    return bounds.reset_index(drop=True)


def _exchange(of: Weighed, differences: pd.DataFrame, printed: Mapping[float, pd.DataFrame]) -> pd.DataFrame:
    """What one of the lead must count for A and B to be equal, at each total at which something makes them so."""
    found, lead = [], of.lead or ""
    of_b = differences[(differences["option"] == B) & (differences["than"] == A)]
    for total, table in printed.items() if lead else ():
        rows = of_b[of_b["epsilon"] == total].set_index("outcome")
        more, gain = (float(rows["value"][name]) for name in (lead, UTILITY))
        weight = of.weights[lead]
        if rows["verdict"][lead] == verdicts.EQUAL or not (gain + weight * more) / more > 0:
            continue
        unit = unit_of_exchange(of, table, f"{B} − {A}", saved=more > 0)
        title, worth = (UNITS, 1.0) if unit is None else (of.titles[unit], of.weights[unit])
        found.append((total, title, worth, weight / worth, (gain + weight * more) / more / worth))
    return pd.DataFrame(found, columns=["epsilon", "unit", "unit_weight", "stated", "equal_at"])
