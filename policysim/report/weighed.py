"""The table of what options weigh against each other: its printed rows, and the sentences that its columns make."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import pandas as pd

from policysim.numbers import about, apart, change, rounded_weight, to_places
from policysim.report.findings import UTILITY, rows_of
from policysim.utility import COSTS
from policysim.words import capital

# What all patients get and lose under each option, by its letter.
Letters: TypeAlias = Mapping[str, Mapping[str, Any]]
# Rates that differ by less, per patient, are the same.
LEAST_MOVED = 1e-6
# What makes so much of a gain, or of a loss, is named, if it is also so much of the larger of the two.
LEAST_PART, LEAST_OF_LARGER = 0.1, 0.01
# A screen has room for so many outcomes.
MOST_ROWS = 6
# The row that makes the columns of differences add up.
REST = "all else"


class Weighed(NamedTuple):
    """What is counted of each option: the outcomes in their order, the one that leads, their weights and titles."""

    outcomes: Sequence[str]
    lead: str | None
    weights: Mapping[str, float]
    titles: Mapping[str, str]


def named_outcomes(of: Weighed, now: Letters, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """The outcomes that sentences name: what leads, and each that makes a tenth of a gain or of a loss of some pair.

    By the weights; of a problem alone, by the numbers themselves.
    """
    weights, outcomes = of.weights, of.outcomes
    parts = dict.fromkeys(outcomes, 0.0)
    for option, than in pairs:
        moved = {name: float(now[option][f"expected_{name}"] - now[than][f"expected_{name}"]) for name in outcomes}
        worth = {name: value * weights.get(name, 0.0 if weights else 1.0) for name, value in moved.items()}
        lost, gained = (sum(max(sign * value, 0.0) for value in worth.values()) for sign in (1, -1))
        for name, value in worth.items():
            whole = lost if value > 0 else gained
            if abs(value) >= LEAST_OF_LARGER * max(lost, gained) > 0 and abs(value) >= LEAST_PART * whole:
                parts[name] = max(parts[name], abs(value))
    named = sorted((name for name in outcomes if parts[name] > 0), key=lambda name: -parts[name])
    lead = [name for name in outcomes if name == of.lead and _differs(now, f"expected_{name}")]
    return list(dict.fromkeys([*lead, *named]))[:MOST_ROWS]


def printed_rows(
    of: Weighed, now: Letters, pairs: Sequence[tuple[str, str]], count: int
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The rows of the table as printed, and what its row `REST` sums.

    Numbers are rounded first and subtracted then: a reader who subtracts printed numbers gets the printed difference.
    """
    weights, outcomes = of.weights, of.outcomes
    named = named_outcomes(of, now, pairs)
    shown = [*(name for name in named if name != COSTS), *(name for name in named if name == COSTS)]
    rows: list[dict[str, Any]] = [
        {"outcome": name, "title": of.titles[name], "weight": weights.get(name, math.nan)}
        | rounded_numbers(now, f"expected_{name}", pairs, count)
        for name in shown
    ]
    lost: dict[str, Any] = {"outcome": UTILITY, "title": "utility lost", "weight": math.nan}
    lost |= rounded_numbers(now, "loss", pairs, count)
    rest = [name for name in outcomes if name not in shown and _differs(now, f"expected_{name}")]
    if weights:
        beside: dict[str, Any] = {"outcome": REST, "title": REST, "weight": math.nan, "decimals": lost["decimals"]}
        for pair in (f"{option} − {than}" for option, than in pairs):
            counted = sum(row["weight"] * row[pair] for row in rows if row["weight"] > 0)
            beside[pair] = round(lost[pair] - counted, lost["decimals"]) + 0.0
        rows.append(beside)
    return pd.DataFrame([*rows, lost]), tuple(of.titles[name] for name in rest)


def _differs(now: Letters, column: str) -> bool:
    """Whether options differ in a number."""
    values = [row[column] for row in now.values()]
    return bool(max(values) - min(values) > LEAST_MOVED)


def rounded_numbers(now: Letters, column: str, pairs: Sequence[tuple[str, str]], count: int) -> dict[str, Any]:
    """The numbers of each option among so many patients, with decimals that distinguish A, B and C; and differences."""
    values = {letter: float(row[column]) for letter, row in now.items()}
    decimals = apart({values[letter] for letter in "ABC"}, count)
    shown = {letter: round(value * count, decimals) + 0.0 for letter, value in values.items()}
    beyond = {f"{option} − {than}": round(shown[option] - shown[than], decimals) + 0.0 for option, than in pairs}
    return {"patients": count, "decimals": decimals, **shown, **beyond}


def unit_of_exchange(of: Weighed, rows: pd.DataFrame, pair: str, *, saved: bool = True) -> str | None:
    """The outcome in whose units one of the lead is counted; None without any.

    That which the first option of a pair saves most of by the weights, or costs most of.
    """
    sign = -1 if saved else 1
    moved = {row["outcome"]: sign * row[pair] * row["weight"] for row in rows_of(rows) if row["weight"] > 0}
    moved.pop(of.lead, None)
    unit = max(moved, key=lambda name: moved[name], default=None)
    return None if of.lead is None or unit is None or not moved[unit] > 0 else str(unit)


def changed(table: pd.DataFrame, option: str, than: str) -> tuple[list[str], list[str]]:
    """What an option has more of, and less of, than another: "30 deaths"; first what weighs most."""
    pair = f"{option} − {than}"
    rows = [row for row in rows_of(table) if row["outcome"] not in (REST, UTILITY)]
    rows.sort(key=lambda row: -abs(row[pair]) * (1.0 if math.isnan(row["weight"]) else row["weight"]))
    more = [f"{about(row[pair])} more {row['title']}" for row in rows if row[pair] > 0]
    fewer = [f"{about(row[pair])} fewer {row['title']}" for row in rows if row[pair] < 0]
    return more, fewer


def cells_of(row: Mapping[str, Any], letters: Sequence[str], pairs: Sequence[str]) -> tuple[str, ...]:
    """One row of the table after its title: its weight, and its numbers."""
    places = int(row["decimals"])
    weight = "" if math.isnan(row["weight"]) else rounded_weight(row["weight"])
    values = ["" if row["outcome"] == REST else to_places(row[letter], places) for letter in letters]
    return (weight, *values, *(change(row[pair], places) for pair in pairs))


def row_title(row: Mapping[str, Any], rest: Sequence[str], with_costs: bool) -> str:
    """What a printed row is called: `rest` is what the row `REST` sums; whether costs are counted among the rows."""
    if row["outcome"] == REST:
        more = len(rest) - 1
        summed = f"All else ({rest[0]}{f' and {more} more' if more else ''})" if rest else "All else (rounding)"
        return f"{summed}, in utility"
    if row["outcome"] == UTILITY:
        return f"Utility lost against C{', in units of cost' if with_costs else ''}"
    return capital(str(row["title"]))
