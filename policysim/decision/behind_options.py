"""The tables behind the options of a decision, as cells with titles of rows: mechanisms, prices, an observer."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from policies.problem import DecisionProblem
from policies.reference import BestFixed
from policysim.decision.beliefs import moved_beliefs
from policysim.decision.results import Results
from policysim.decision.textbook import median_stake
from policysim.study.cells import as_cells
from policysim.study.labels import Labels, level_in_words
from policysim.study.options_table import FOR_ALL, LEAD, LOSS
from policysim.words import ALL

# Prices that differ by less, as a share of the dearest, are the same.
SAME_PRICE = 1e-4
# The columns of other prevalences, by their factors.
TIMES = {1 / 3: "third", 1 / 2: "half", 1.0: "as-assumed", 2.0: "twice", 3.0: "thrice"}


class CellEntry(NamedTuple):
    """A number of a table before it has an epsilon: its row, the title of that, its column and format."""

    row: str
    title: str
    option: str
    value: float
    format: str
    low: float = math.nan
    high: float = math.nan


def titled_cells(entries: Iterable[CellEntry], epsilon: float = math.nan) -> pd.DataFrame:
    """A table of cells, and the titles of its rows."""
    return as_cells(pd.DataFrame(entries, columns=CellEntry._fields).assign(epsilon=epsilon), "title")


def tables_behind_options(found: Results, tables: Mapping[str, pd.DataFrame], count: int) -> dict[str, pd.DataFrame]:
    """Those of an answer that say something; the lead is counted among so many patients."""
    epsilon = found.asked.epsilon
    shares = bool(tables["rows"]["section"].eq("benefit").any())
    places = int(tables["options"].loc[tables["options"]["row"] == LOSS, "format"].iloc[0].split()[1])
    made = {
        "policies": policies_table(found, count, places, shares=shares),
        "method": method_table(found),
        "ways": ways_table(found.tables["publishing"], epsilon, count, found.labels.lead, shares=shares),
    }
    if "price-list" in found.tables:
        made["prices"] = prices_table(found.tables["price-list"], found, count, places, shares=shares)
    if "beliefs" in found.tables:
        made["observer"] = observer_table(found.tables["beliefs"], found.problem, epsilon)
    if found.redraws is not None:
        made["redrawn"] = redrawn_table(tables["certainty"], tables["best-for-all"], found.labels, epsilon)
    if shares and "prevalence" in found.tables:
        made["prevalences"] = prevalences_table(found.tables["prevalence"], epsilon)
    return {name: table for name, table in made.items() if not table.empty}


def policies_table(found: Results, count: int, places: int, *, shares: bool) -> pd.DataFrame:
    """Every mechanism at the epsilon that is looked at.

    Parameters
    ----------
    found : Results
        With "comparison" and "search".
    count : int
        Among how many patients the outcome that leads is counted.
    places : int
        The decimals of utility.
    shares : bool
        Whether shares of the benefit may be said.
    """
    rows = found.at_epsilon[found.at_epsilon["group"] == ALL].to_dict("records")
    expected = f"expected_{found.labels.lead}"
    searched = found.tables["search"].set_index("policy").to_dict("index")
    entries = []
    for row in rows:
        name, needed = str(row["policy"]), searched.get(row["policy"], {})
        numbers = {
            "lost": (row["loss"], f"lost {places}"),
            **({"kept": (row["benefit_kept"], "kept")} if shares else {}),
            **({LEAD: (row[expected], f"counted {count} 1")} if expected in row else {}),
            "spent": (row["epsilon_spent"], "rounded"),
            "guesses": (row["guess_rate"], "right"),
            "beats": (needed.get("better_from", math.nan), "decimal"),
            **({"keeps": (needed.get("keeps_from", math.nan), "decimal")} if shares else {}),
            "least": (row.get("least_loss", math.nan), "down"),
        }
        entries += [CellEntry(name, name, option, float(value), style) for option, (value, style) in numbers.items()]
    table = titled_cells(entries, found.asked.epsilon)
    # A column without any number says nothing.
    said = table.groupby("option")["value"].transform(lambda values: values.notna().any())
    return table[said].reset_index(drop=True)


def prices_table(prices: pd.DataFrame, found: Results, count: int, places: int, *, shares: bool) -> pd.DataFrame:
    """What hiding each single feature costs at best, dearest first; features of one price share a row."""
    lead = found.labels.lead
    compared = ["loss"] if lead is None else ["loss", f"extra_{lead}"]
    near = {name: SAME_PRICE * prices[name].abs().max() for name in compared}
    groups: list[tuple[list[str], Mapping[Hashable, Any]]] = []
    for price in prices.to_dict("records"):
        name = str(price["hides"]).replace("_", " ")
        # Prices that are the same but for what nobody sees, or both missing, share a row.
        if groups and all(
            np.isclose(groups[-1][1][each], price[each], rtol=0, atol=least, equal_nan=True)
            for each, least in near.items()
        ):
            groups[-1][0].append(name)
        else:
            groups.append(([name], price))
    entries = []
    for names, of in groups:
        title = ", ".join(names)
        if shares:
            entries.append(CellEntry(names[0], title, "kept", of["benefit_kept"], "kept"))
        entries.append(CellEntry(names[0], title, "lost", of["loss"], f"lost {places}"))
        if lead is not None:
            entries.append(CellEntry(names[0], title, LEAD, of[f"extra_{lead}"], f"change {count} 1"))
    return titled_cells(entries, found.asked.epsilon)


def observer_table(beliefs: pd.DataFrame, problem: DecisionProblem, epsilon: float) -> pd.DataFrame:
    """What moves in an observer's mind, farthest first; of two levels of a feature one says the same as the other."""
    entries = []
    for each in moved_beliefs(beliefs).to_dict("records"):
        name = level_in_words(problem.records, each["feature"], each["level"])
        title = f"{name} (among {each['among']})" if each["among"] else name
        entries.append(CellEntry(name, title, "before", math.nan, "span 0", each["before"], each["before"]))
        entries.append(CellEntry(name, title, "after", math.nan, "span 0", each["least"], each["most"]))
    return titled_cells(entries, epsilon)


def ways_table(publishing: pd.DataFrame, epsilon: float, count: int, lead: str | None, *, shares: bool) -> pd.DataFrame:
    """What each way to publish costs the patients, and its reader."""
    entries = []
    for row in publishing[publishing["epsilon"] == epsilon].to_dict("records"):
        name = str(row["way"])
        numbers = {
            **({} if lead is None else {LEAD: (f"expected_{lead}", f"counted {count} 1")}),
            **({"kept": ("benefit_kept", "kept")} if shares else {}),
            "guesses": ("guess_rate", "right"),
            "true": ("true_share", "percent"),
            "error": ("error_of_a_count", "rounded"),
        }
        title = f"{name} ({row['trusted']})"
        entries += [CellEntry(name, title, option, float(row[of]), style) for option, (of, style) in numbers.items()]
    return titled_cells(entries, epsilon)


def redrawn_table(certainty: pd.DataFrame, best: pd.DataFrame, labels: Labels, epsilon: float) -> pd.DataFrame:
    """In how many redraws each treatment is best for all, and each option is better in value and in the lead."""
    counts, entries = best.set_index("row")["value"], []
    for row in certainty[certainty["policy"] != BestFixed.name].to_dict("records"):
        name = str(row["policy"])
        action = name.removeprefix(FOR_ALL)
        title = name if action == name else f"{labels.actions[action]} for all"
        entries.append(CellEntry(name, title, str(row["measure"]), float(row["better"]), "plain"))
        if row["measure"] == "value":
            entries.append(CellEntry(name, title, "best", math.nan if action == name else counts[action], "plain"))
    return titled_cells(entries, epsilon)


def prevalences_table(prevalence: pd.DataFrame, epsilon: float) -> pd.DataFrame:
    """What policies keep of the benefit where the condition is more or less common than assumed."""
    told = prevalence[prevalence["benefit_kept"].notna()]
    entries = [
        CellEntry(str(row["policy"]), str(row["policy"]), TIMES[row["factor"]], row["benefit_kept"], "kept")
        for row in told.to_dict("records")
    ]
    whole = {name for name, of in told.groupby("policy") if len(of) == len(TIMES)}
    return titled_cells((each for each in entries if each.row in whole), epsilon)


def method_table(found: Results) -> pd.DataFrame:
    """Numbers of the problem that the mechanisms work with."""
    problem = found.problem
    numbers = [
        ("records", "Possible records", float(problem.n_records), "counted 1 0"),
        ("treatments", "Treatments", float(problem.n_actions), "counted 1 0"),
        ("sensitivity", "Sensitivity of the utility", problem.sensitivity.value, "up 3"),
        ("range", "Range of the utility", problem.sensitivity.range, "up 3"),
        ("stake", "At stake for half of the patients, in utility, at most", median_stake(problem), "rounded"),
    ]
    return titled_cells(CellEntry(row, title, "value", value, style) for row, title, value, style in numbers)
