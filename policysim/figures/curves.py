"""What figures ask of their tables, checked once; lines over epsilon, a panel at a time; and in words what is seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rcParams
from matplotlib.axes import Axes

from policies.arrays import FloatArray
from policies.exponential import Exponential, ExponentialFitted
from policies.optimal.optimum import Optimal, OptimalSafe
from policies.reference import BestFixed, Greedy
from policysim.figures.layout import LIKE, LineEnd
from policysim.figures.looks import Look, as_line, is_level, label
from policysim.numbers import percent, plain, tick
from policysim.words import ACHIEVABLE, ALL, UNBEATABLE, in_a_row

# Of the width of a panel together with its names, the names may take this much.
NAMES_SHARE = 0.36
# So many markers, about, has a line.
MARKERS = 4
# Two lines nearer than this, of the range of all, are one to the eye.
SAME_LINE = 0.002
# One treatment for all, which costs no privacy, stands at the left.
STAR: dict[str, Any] = {"marker": "*", "markersize": 9.0}


def draw_policies(
    axes: Axes,
    rows: pd.DataFrame,
    column: str,
    *,
    looks: Mapping[str, Look],
    scale: float = 1.0,
    labels: Mapping[str, str],
    widths: Mapping[str, float] = MappingProxyType({}),
) -> None:
    """A line over epsilon for each policy that the column holds numbers of; those without epsilon are level lines.

    One treatment for all has a star at the left. Lines are as wide as `widths` says, or as all are. Where the table has
    `column`_low and `column`_high, what is between them is shaded.
    """
    drawn = [name for name in names_of(rows, "policy") if rows.loc[rows["policy"] == name, column].notna().any()]
    for place, name in enumerate(drawn):
        line = rows[(rows["policy"] == name) & rows[column].notna()].sort_values("epsilon")
        level, values, shown = is_level(name), line[column] * scale, labels.get(name, label(name))
        look = as_line(name, looks[name], level=level)
        width = widths.get(name, thin() if level else float(rcParams["lines.linewidth"]))
        if level:
            star = {**STAR, "markevery": [0], "clip_on": False} if name == BestFixed.name else {}
            axes.axhline(values.iloc[0], **look, **star, linewidth=width, label=shown, zorder=1)
            continue
        every = sparse(len(line), place)
        axes.plot(line["epsilon"], values, **look, linewidth=width, label=shown, markevery=every)
        if has_band(line, column):
            # Between two thin lines.
            about = {"color": look["color"], "gid": look["gid"]}
            low, high = (line[f"{column}_{end}"] * scale for end in ("low", "high"))
            axes.fill_between(line["epsilon"], low, high, **about, alpha=0.09, linewidth=0, zorder=0.5)
            for edge in (low, high):
                axes.fill_between(line["epsilon"], edge, edge, **about, alpha=0.6, linewidth=thin() / 2, zorder=0.6)


def sparse(points: int, place: int) -> tuple[int, int]:
    """Which of the points of a line have a marker, by its place: others than those of a line that lies beneath it."""
    every = max(1, points // MARKERS)
    return place % every, every


def merged(ends: Sequence[LineEnd], *, log: bool = False) -> list[LineEnd]:
    """Lines that are the same to the eye all along share a name: that of the first, and those that are like it."""
    kept: list[LineEnd] = []
    seen = [np.log(end.values) if log else np.array(end.values) for end in ends]
    room = SAME_LINE * float(np.ptp(np.concatenate([*seen, [seen[0][0]]]))) if seen else 0.0
    heights: list[FloatArray] = []
    for end, height in zip(ends, seen, strict=True):
        # A level line has one height.
        same = (
            place
            for place, other in enumerate(heights)
            if (len(other) == len(height) or 1 in (len(other), len(height))) and np.abs(height - other).max() <= room
        )
        place = next(same, None)
        if place is None:
            kept.append(end)
            heights.append(height)
            continue
        other = kept[place]
        kept[place] = replace(other, name=f"{other.name}\n{LIKE}{end.name}", beside=(*other.beside, end.look))
    return kept


def line_end(name: str, xs: pd.Series, ys: pd.Series, drawn: dict[str, Any], *, at_edge: bool = False) -> LineEnd:
    """Where a line ends; of two with the same end, the one that is higher on average comes higher."""
    x = np.nan if at_edge else float(xs.iloc[-1])
    values = (float(ys.iloc[-1]),) if at_edge else tuple(ys.astype(float))
    return LineEnd(name, x, float(ys.iloc[-1]), float(ys.mean()), drawn, values)


def has_band(rows: pd.DataFrame, column: str) -> bool:
    """Whether the table has an interval of a column."""
    ends = [f"{column}_low", f"{column}_high"]
    return set(ends) <= set(rows.columns) and bool(rows[ends].notna().all(axis=1).any())


def thin() -> float:
    """The width of a line that is not a policy's."""
    return 0.7 * float(rcParams["lines.linewidth"])


# Columns that hold numbers, where a table has them, and how the columns of outcomes begin, which do.
OF_OUTCOMES = ("expected_", "extra_")
NUMBERS = {
    *("epsilon", "epsilon_spent", "benefit_kept", "difference", "share", "loss"),
    *("probability", "quantile", "weight", "sensitivity", "contribution", "horizon", "total_epsilon"),
    *("type_1_error", "type_2_error"),
}
# What a row of a comparison is about.
KEYS = ("policy", "epsilon", "group", "level")
# So many named curves, at most, can be followed in one panel.
MOST_CURVES = 7
# What others are read against, first of all.
FRAME = (
    *(BestFixed.name, Optimal.name, OptimalSafe.name, ACHIEVABLE, UNBEATABLE),
    *(ExponentialFitted.name, Exponential.name, Greedy.name),
)


def _holds_numbers(column: object) -> bool:
    name = str(column).removesuffix("_low").removesuffix("_high")
    return name in NUMBERS or name.startswith(OF_OUTCOMES)


def checked(table: pd.DataFrame, figure: str, columns: Sequence[str]) -> pd.DataFrame:
    """The table; ValueError if a figure cannot be drawn from it.

    No table, a column that is missing, no rows, text in place of a number, or two rows where a curve has one point.
    """
    if not isinstance(table, pd.DataFrame):
        raise ValueError(f"{figure} needs a table (a pandas DataFrame), got {type(table).__name__}.")
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise ValueError(f"{figure} needs the column{'s' * (len(missing) > 1)} {', '.join(missing)} in its table.")
    if table.empty:
        raise ValueError(f"{figure} has nothing to draw: its table has no rows.")
    for column in filter(_holds_numbers, table.columns):
        values = table[column]
        if not pd.api.types.is_numeric_dtype(values):
            text = values[values.notna() & pd.to_numeric(values, errors="coerce").isna()]
            wrong = text if len(text) else values
            raise ValueError(f"{figure} needs numbers in the column {column}, got {wrong.iloc[0]!r}.")
    if {"policy", "epsilon"} <= set(columns) and "patient" not in columns:
        keys = [name for name in KEYS if name in table.columns]
        twice = table[table.duplicated(keys)]
        if not twice.empty:
            where = ", ".join(f"{name}={twice[name].iloc[0]}" for name in keys)
            raise ValueError(f"{figure} needs one row for each {' x '.join(keys)}, its table has several for {where}.")
    return table


def at_one_epsilon(rows: pd.DataFrame, figure: str) -> pd.DataFrame:
    """The rows; ValueError if they are of several epsilons."""
    if rows["epsilon"].nunique() > 1:
        shown = ", ".join(tick(value) for value in sorted(rows["epsilon"].unique()))
        raise ValueError(f"{figure} draws one epsilon, its table has several: {shown}.")
    return rows


def nonempty(rows: pd.DataFrame, figure: str, wanted: str) -> pd.DataFrame:
    """The rows; ValueError if there are none, saying which are wanted."""
    if rows.empty:
        raise ValueError(f"{figure} has nothing to draw: its table has no rows {wanted}.")
    return rows


def over_epsilon(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of everyone with 0 < epsilon < inf: those that can stand on a log axis."""
    rows: pd.DataFrame = table[(table["group"] == ALL) & (table["epsilon"] > 0) & np.isfinite(table["epsilon"])]
    return rows


def names_of(table: pd.DataFrame, column: str) -> list[str]:
    """The distinct entries of a column, in the table's order."""
    return [str(name) for name in dict.fromkeys(table[column])]


def telling(
    table: pd.DataFrame,
    *,
    epsilon: float = 1.0,
    policies: Sequence[str] | None = None,
    most: int = MOST_CURVES,
    along: str = "epsilon",
) -> list[str]:
    """The policies whose curves are drawn where there may be more than a panel can show, in the table's order.

    First best-fixed, the optimum (or its bounds), the exponential mechanisms and the best for each, which frame all
    others; then those that depend on epsilon, the best at `epsilon` first; last the other references.

    Parameters
    ----------
    table : DataFrame
        From a comparison: policy, `along` and, of value, benefit_kept, difference and loss, what it has; the first of
        these decides. Only its rows of everyone count, where it has such.
    epsilon : float
        Where policies are ranked: at the nearest one of the table.
    policies : sequence of str, optional
        Those to draw, however many, in place of the rule.
    most : int
        How many, if there is no such request.
    along : str
        The column of epsilon.

    Raises
    ------
    ValueError
        For a policy that is not in the table.
    """
    names = names_of(table, "policy")
    if policies is not None:
        missing = [name for name in policies if name not in names]
        if missing:
            raise ValueError(f"no policy {missing[0]!r} in the table; it has {', '.join(names)}.")
        return [name for name in names if name in policies]
    # What each is worth at the nearest epsilon of the table; nothing where the table does not say.
    worth: dict[str, float] = {}
    measures = [name for name in ("value", "benefit_kept", "difference", "loss") if name in table]
    known = next((name for name in measures if table[name].notna().any()), None)
    if known:
        rows = table[(table["group"] == ALL)] if "group" in table and (table["group"] == ALL).any() else table
        if along in rows:
            distance = (rows[along] - epsilon).abs()
            rows = rows[distance == distance.min()]
        means = rows[known].groupby(rows["policy"], sort=False).mean().dropna()
        worth = {str(name): -float(mean) if known == "loss" else float(mean) for name, mean in means.items()}
    frame = {name: FRAME.index(name) if name in FRAME else len(FRAME) for name in names}
    ranked = sorted(names, key=lambda name: (frame[name], is_level(name), -worth.get(name, -np.inf)))
    return [name for name in names if name in ranked[:most]]


def undrawn(names: Sequence[str], drawn: Sequence[str], asked: Sequence[str] | None) -> str:
    """What a figure says of the policies that it leaves out; "" if it leaves out none, or was asked for those."""
    missing = [name for name in names if name not in drawn]
    if not missing or asked is not None:
        return ""
    return f"Not drawn: {missing[0]}." if len(missing) == 1 else f"Drawn: {len(drawn)} of {len(names)} policies."


def lines_seen(
    rows: pd.DataFrame,
    column: str,
    write: Callable[[float], str],
    *,
    epsilon: float,
    names: Sequence[str] | None = None,
) -> str:
    """What each line of a panel shows at its ends, and at one epsilon between them; a level line has one number.

    Parameters
    ----------
    rows : DataFrame
        What is drawn: policy, epsilon, `column`.
    column : str
        The numbers.
    write : callable
        How a number is written, with its unit.
    epsilon : float
        The place between the ends to describe: the nearest one of the line.
    names : sequence of str, optional
        The policies that are drawn; all by default.

    Returns
    -------
    str
        "optimal has 0 % at ε = 0.05, 30 % at ε = 1 and 100 % at ε = 20; greedy has 100 %".
    """
    some, seen = rows[rows[column].notna()], []
    for name in names_of(some, "policy") if names is None else names:
        line = some[some["policy"] == name].sort_values("epsilon").set_index("epsilon")[column]
        if line.empty:
            continue
        if is_level(name):
            seen.append(f"{name} has {write(float(line.iloc[0]))}")
            continue
        places = sorted({line.index[0], min(line.index, key=lambda place: abs(place - epsilon)), line.index[-1]})
        texts = [f"{write(float(line[place]))} at ε = {plain(place)}" for place in places]
        seen.append(f"{name} has {in_a_row(texts, 'and')}")
    return "; ".join(seen)


def choices_seen(choices: pd.DataFrame, epsilon: float) -> str:
    """What example patients most probably get at one epsilon, and how probably.

    Parameters
    ----------
    choices : DataFrame
        Of one policy: patient, epsilon, action, probability.
    epsilon : float
        The nearest one of the table is described.
    """
    finite = choices[(choices["epsilon"] > 0) & (choices["epsilon"] < float("inf"))]
    sentences = []
    for patient, rows in finite.groupby("patient", sort=False):
        distance = (rows["epsilon"] - epsilon).abs()
        near = rows[distance == distance.min()]
        most = near.iloc[int(near["probability"].to_numpy().argmax())]
        sentences.append(f"“{patient}” gets {most['action']} in {percent(float(most['probability']))} of cases")
    at = "" if finite.empty else f"At ε = {plain(float(near['epsilon'].iloc[0]))}: "
    return f"{at}{'; '.join(sentences)}." if sentences else ""
