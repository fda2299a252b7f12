"""The answer over days, as tables: one schedule for all, ways to choose privately within a total, and each's best.

The tables of cells (row, option, epsilon, value, low, high, format) are "options", "differences", "who" and "facts";
"columns" and "rows" give their order, "certainty" the verdicts, and "names" what has words and no number. `epsilon` is
the total of a course.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd

from policies.exponential import Exponential
from policies.reference import BestFixed, Greedy, Uniform
from policysim.course.course_limit import ROUNDED
from policysim.course.days import DAILY, EQUAL, ONCE, TREE, DaysQuestion, ways
from policysim.course.treatment_course import public_over_days
from policysim.question.formats import NEGLIGIBLE
from policysim.question.words import ALL, BEST_SCHEDULE, capital
from policysim.study.basis import basis, counted_illustrative, listed
from policysim.study.cells import COLUMNS
from policysim.study.certainty import as_stated, safest_option
from policysim.study.declared import ScenarioStudy
from policysim.study.labels import COUNTED, Labels, level_in_words
from policysim.study.options_table import (
    BENEFIT,
    BOUND,
    DEATHS,
    DRAWN_DAILY,
    EACH,
    EXPONENTIAL,
    LOSS,
    ONE,
    PRIVATE,
    options,
    who_pays,
)

SPENT = "epsilon spent"
TITLES = {
    ONE: "best schedule for all",
    PRIVATE: "best private way*",
    DRAWN_DAILY: "best drawn daily*",
    EXPONENTIAL: "exponential, daily*",
    EACH: "each's best",
}
# What composes without the δ of the question.
WITHOUT_DELTA = ("exact-losses", "one-choice", "tree")
# Up to so many public features are named.
NAMED = 4


def course_tables(
    study: ScenarioStudy, question: DaysQuestion, table: pd.DataFrame, *, left_out: Sequence[str] = ()
) -> dict[str, pd.DataFrame]:
    """Put the ways to treat over the longest horizon side by side, at every total.

    Parameters
    ----------
    study : ScenarioStudy
        From which the course was made.
    question : DaysQuestion
        Its horizon, totals and delta.
    table : DataFrame
        From `compare_days`, with `Greedy` and `Exponential` among its policies.
    left_out : sequence of str, optional
        What was not compared, and why.

    Returns
    -------
    dict of str to DataFrame
        options : cells of the rows "deaths" and other outcomes, "loss", "right guesses", "epsilon spent" (on one day)
            and "benefit kept", of which the option "bound" is what no mechanism exceeds.
        columns : option, epsilon, policy, published (the same), title, hides and stated.
        rows, differences : as of `policysim.study.options_table.options`; against the best schedule for all.
        comparison : the rows of `table` at the horizon, by their totals, and the right guesses at most of each.
        certainty, facts, names, who : see the module.
    """
    comparison = table[table["horizon"] == question.horizon].assign(
        epsilon=lambda rows: rows["total_epsilon"],
        guess_rate=lambda rows: [
            right_guesses(spent, 0.0 if composition in WITHOUT_DELTA else question.delta)
            for spent, composition in zip(rows["total_spent"], rows["composition"], strict=True)
        ],
    )
    stated = question.stated(study.epsilon)
    columns = _columns(comparison, stated)
    counted = [name.removeprefix("expected_") for name in map(str, comparison) if name.startswith("expected_")]
    outcomes = {name: COUNTED.get(name) or study.scenario.outcome_title(name) for name in counted}
    labels = Labels(study.name, study.title, actions={}, outcomes=outcomes)
    found = {"comparison": comparison, "columns": columns, "certainty": as_stated(comparison, stated, BEST_SCHEDULE)}
    cells, rows, found["differences"] = options(comparison, columns, labels, stated, certainty=found["certainty"])
    # Beside what none exceeds it is rounded down, as that is up.
    cells["format"] = cells["format"].mask(cells["row"] == BENEFIT, "reached")
    more = _spent(comparison, columns)
    if BENEFIT in set(rows["row"]):
        more = pd.concat([more, _bounds(comparison)], ignore_index=True)
    count = int(rows["patients"].iloc[0])
    described = {"row": SPENT, "title": "ε spent on one day", "section": SPENT, "patients": count, "moved": 0}
    found["options"] = pd.concat([cells, more], ignore_index=True)
    found["rows"] = pd.concat([rows, pd.DataFrame([described])], ignore_index=True)
    who = who_pays(comparison, columns, count, partial(level_in_words, study.space))
    if not who.empty:
        found["who"] = who
    found["policies"] = _policies(comparison, cells, stated)
    found["facts"] = _facts(study, question, stated, count)
    found["names"] = _names(study, question, found, left_out)
    return found


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


def _columns(comparison: pd.DataFrame, stated: float) -> pd.DataFrame:
    """Which policy stands in which column at each total."""
    draws = ~comparison["policy"].isin([BestFixed.name, Uniform.name])
    found = ways(comparison[draws]).set_index(["total_epsilon", "way"])
    by_way = {way: found.xs(way, level="way") for way in (ONCE, TREE, DAILY)}
    private = by_way[ONCE]
    # Of equals the plainest: one choice, then a tree.
    for way in (by_way[TREE], by_way[DAILY]):
        better = (way["value"] - private["value"]) > EQUAL * private["value"].abs()
        private = pd.concat([private[~better], way[better]]).sort_index()
    given = private[[]].assign(
        **{
            ONE: BEST_SCHEDULE,
            PRIVATE: private["policy"],
            DRAWN_DAILY: by_way[DAILY]["policy"],
            EXPONENTIAL: Exponential.name,
            EACH: Greedy.name,
        }
    )
    others = {EXPONENTIAL: (PRIVATE,), DRAWN_DAILY: (PRIVATE, EXPONENTIAL)}
    given = given.drop(
        columns=[each for each, of in others.items() if any(given[each].equals(given[as_]) for as_ in of)]
    )
    everyone = comparison[comparison["group"] == ALL]
    hides = everyone[["policy", "epsilon"]].assign(hides=list(map(_hides, everyone["hides"], everyone["total_spent"])))
    long = given.melt(ignore_index=False, var_name="option", value_name="policy").rename_axis("epsilon").reset_index()
    found = long.merge(hides, on=["policy", "epsilon"], how="left")
    found = found.assign(
        published=found["policy"], title=found["option"].map(TITLES), stated=found["epsilon"] == stated
    )
    return found[["option", "epsilon", "policy", "published", "title", "hides", "stated"]]


def _hides(hides: str, spent: float) -> str:
    """How much of the whole course of records is hidden."""
    if hides == "course":
        return "fully" if spent < NEGLIGIBLE else "partly"
    return "no" if hides == "nothing" else f"{hides} only"


def _spent(comparison: pd.DataFrame, columns: pd.DataFrame) -> pd.DataFrame:
    """The largest exact loss of one day, of each option: cells."""
    everyone = comparison[comparison["group"] == ALL].set_index(["policy", "epsilon"])["epsilon_spent"]
    values = everyone.loc[list(zip(columns["policy"], columns["epsilon"], strict=True))].to_numpy()
    seen = values[columns["stated"] & np.isfinite(values) & (values > NEGLIGIBLE)]
    places = max(0, 1 - math.floor(math.log10(seen.min()))) if seen.size else 1
    return columns.assign(row=SPENT, value=values, low=math.nan, high=math.nan, format=f"places {places}")[
        list(COLUMNS)
    ]


def _bounds(comparison: pd.DataFrame) -> pd.DataFrame:
    """What no mechanism exceeds of the benefit, at each total: cells; none where that is not known."""
    known = comparison[(comparison["group"] == ALL) & comparison["most_kept"].notna()].drop_duplicates("epsilon")
    found = known[["epsilon"]].assign(row=BENEFIT, option=BOUND, value=known["most_kept"], format="most")
    return found.assign(low=math.nan, high=math.nan)[list(COLUMNS)]


def _policies(comparison: pd.DataFrame, cells: pd.DataFrame, stated: float) -> pd.DataFrame:
    """Every policy at the stated total: cells, and titles of their rows."""
    style = cells.drop_duplicates("row").set_index("row")["format"]
    measures = {
        "kept": ("benefit_kept", "reached"),
        "lost": ("loss", style[LOSS]),
        "deaths": ("expected_deaths", style.get(DEATHS)),
        "spent": ("total_spent", "rounded"),
        "daily": ("epsilon_spent", "rounded"),
        "guesses": ("guess_rate", "right"),
    }
    rows = comparison[(comparison["group"] == ALL) & (comparison["epsilon"] == stated)]
    parts = [
        rows[["policy", "epsilon"]].assign(option=option, value=rows[column], format=format_)
        for option, (column, format_) in measures.items()
        if column in rows and rows[column].notna().any()
    ]
    found = pd.concat(parts, ignore_index=True).rename(columns={"policy": "row"})
    return found.assign(low=math.nan, high=math.nan, title=found["row"])[[*COLUMNS, "title"]]


def _facts(study: ScenarioStudy, question: DaysQuestion, stated: float, count: int) -> pd.DataFrame:
    """Single numbers that words need, as cells."""
    illustrative, total = counted_illustrative(study)
    rows = [
        ("epsilon", math.nan, stated, "plain"),
        ("horizon", math.nan, question.horizon, "plain"),
        ("patients", math.nan, count, "plain"),
        ("hundred", math.nan, 100, "plain"),
        *(("at", each, each, "plain") for each in question.totals),
    ]
    if study.utility.weights.get("death"):
        rows.append(("a death weighs", math.nan, study.utility.weights["death"], "plain"))
    if question.delta > 0:
        rows.append(("delta", math.nan, question.delta, "plain"))
    if illustrative:
        rows += [("illustrative", math.nan, illustrative, "plain"), ("numbers", math.nan, total, "plain")]
    found = pd.DataFrame(rows, columns=["row", "epsilon", "value", "format"])
    return found.assign(option="", low=math.nan, high=math.nan)[list(COLUMNS)]


def _names(
    study: ScenarioStudy, question: DaysQuestion, tables: Mapping[str, pd.DataFrame], left_out: Sequence[str]
) -> pd.DataFrame:
    """What words name: each a text by its key."""
    public = public_over_days(study)
    agree = listed(public) if len(public) <= NAMED else "all that is public"
    stated = tables["columns"][tables["columns"]["stated"]].set_index("option")
    comparison = tables["comparison"]
    bound = comparison[comparison["epsilon"] == stated["epsilon"].iloc[0]].iloc[0]
    rounded = "; of two days by sums that are rounded up" * (bound["most_kept_proof"] == ROUNDED)
    names = {
        "name": capital(study.name.replace("-", " ").replace("_", " ")),
        "hidden": f"all but {agree}" if public else "the patient's records",
        "alike": f"any two courses of records that agree in {agree}" if public else "any two courses of records",
        "one": TITLES[ONE],
        "model": basis(study).disclaimer,
        "days": "day" if question.horizon == 1 else "days",
        # Of how many days the bound at the stated total is, and how it and the others were proved.
        "bounded": "the first two days" if bound["most_kept_hides"] == "course" else "the first day",
        "proof": f"Proven in rational arithmetic{rounded}",
        "length": "how long a stay lasts is public"
        if question.length_public
        else "who has died or recovered is hidden",
        "paid": DEATHS if DEATHS in set(tables["rows"]["row"]) else "units of utility lost",
    }
    names |= {f"warning {place}": f"left out: {reason}" for place, reason in enumerate(left_out)}
    safest = safest_option(tables)
    if safest:
        names |= {
            "safest option": safest,
            "safest": capital(TITLES[safest].removesuffix("*")),
            "safest hides": str(stated.loc[safest, "hides"]),
        }
    return pd.DataFrame(names.items(), columns=["key", "text"])
