"""What the lessons of `source_documents` and `experiments` share: rows of a comparison, lines of a figure, a report."""

import math
import sys
from collections.abc import Mapping, Sequence
from decimal import ROUND_DOWN, Decimal
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.style import context
from scipy.signal import fftconvolve
from scipy.stats import binom

from policysim.figures import looks, to_svg
from policysim.figures.looks import STYLE

REPORTS = Path(__file__).parents[1] / "reports"
Row = dict[str, Any]
Figures = Mapping[str, tuple[Figure, pd.DataFrame]]  # each with the table that it draws, by the name of its files


class Run(NamedTuple):
    """What to expect of a number that one random run gives."""

    expected: float
    low: float  # where 95 % of runs lie
    high: float
    chance: float | None = None  # of a number as unlikely as the one that was seen


def compare_claim(figure: str, where: str, says: str, right: str, *, holds: bool | None, why: str = "") -> Row:
    """A claim of the source beside what is right; it is an erratum if it does not hold, plausible if None."""
    row = {"figure": figure, "where": where, "source": says, "ours": right, "low": None, "high": None, "chance": None}
    return {**row, "agreement": {None: "plausible", True: "agrees", False: "erratum"}[holds], "why": why}


def compare_number(figure: str, where: str, printed: str, ours: float) -> Row:
    """A printed number beside ours: they agree if ours, rounded to the printed digits, is the printed number."""
    number = Decimal(printed.replace(",", ""))
    last_digit = Decimal(1).scaleb(int(number.as_tuple().exponent))
    agreement, why = "differs", ""
    if Decimal(ours).quantize(last_digit) == number:
        agreement = "agrees"
    elif Decimal(ours).quantize(last_digit, ROUND_DOWN) == number:
        agreement, why = "erratum", "Its last digit is cut off, not rounded."
    row = compare_claim(figure, where, printed, "", holds=None, why=why)
    return {**row, "ours": float(ours), "agreement": agreement}


def compare_run(figure: str, where: str, printed: str, run: Run) -> Row:
    """A number that one run of the source gave, beside what to expect of such runs."""
    band = {"ours": float(run.expected), "low": float(run.low), "high": float(run.high), "chance": run.chance}
    agreement = "in the band" if run.low <= float(printed) <= run.high else "outside the band"
    return {**compare_claim(figure, where, printed, "", holds=None), **band, "agreement": agreement}


def binomial_run(seen: int, *parts: tuple[int, float]) -> Run:
    """What to expect of a count where `seen` was counted: each part is a number of draws and their probability."""
    chances = reduce(fftconvolve, [binom.pmf(np.arange(n + 1), n, p) for n, p in parts]).clip(min=0)
    low, high = np.searchsorted(np.cumsum(chances), [0.025, 0.975])
    # Probabilities that are equal but for rounding count as equal, as in scipy.stats.binomtest.
    as_unlikely = chances[chances <= chances[seen] * (1 + 1e-7)].sum()
    return Run(float(np.arange(len(chances)) @ chances), low, high, min(1.0, float(as_unlikely)))


def new_figure(*titles: str, across: int = 2, height: float = 4.2) -> tuple[Figure, list[Axes]]:
    """A figure with a panel for each title, and so many panels in a row."""
    across = min(across, len(titles))
    down = math.ceil(len(titles) / across)
    with context([STYLE, {"axes.titlelocation": "left"}]):
        figure = Figure(figsize=(9.6, height), layout="constrained")
        panels = [figure.add_subplot(down, across, place, title=title) for place, title in enumerate(titles, 1)]
    return figure, panels


def draw_lines(axes: Axes, table: pd.DataFrame, x: str, y: str = "value", *, stars: str = "") -> None:
    """A line for each name in the column "line", with a band from "low" to "high" of the values; `stars` are points."""
    for name, look in looks(list(dict.fromkeys(table["line"]))).items():
        rows = table[table["line"] == name]
        style: dict[str, Any] = {"color": look.colour, "marker": look.marker, "linestyle": look.dashes}
        if name == stars:
            style = {"marker": "*", "linestyle": "none", "markersize": 12, "markerfacecolor": "#C84F00"}
        axes.plot(rows[x], rows[y], label=name, markevery=max(1, len(rows) // 8), **style)
        if "low" in rows and y == "value" and name != stars:
            axes.fill_between(rows[x], rows["low"], rows["high"], color=look.colour, alpha=0.18, linewidth=0)


def in_markdown(table: pd.DataFrame) -> str:
    """A table of texts as Markdown."""
    lines = [list(table.columns), ["---"] * table.shape[1], *table.astype(str).to_numpy().tolist()]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def comparison_in_markdown(rows: Sequence[Row]) -> str:
    """The comparison as Markdown; for a single run, the band stands in brackets after what to expect."""
    shown = []
    for row in rows:
        ours = row["ours"] if isinstance(row["ours"], str) else f"{row['ours']:.8g}"
        if row["low"] is not None:
            ours = f"{row['ours']:,.1f} ({row['low']:,.0f} to {row['high']:,.0f})"
        verdict = f"{row['agreement']}. {row['why']}" if row["why"] else row["agreement"]
        shown.append((row["figure"], row["source"], ours, verdict, row["where"]))
    return in_markdown(pd.DataFrame(shown, columns=["figure", "source", "ours", "agreement", "where"]))


def write_report(folder: Path, readme: str, rows: Sequence[Row], figures: Figures) -> None:
    """README.md, comparison.csv, and each figure as SVG beside the numbers that it draws."""
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(readme, encoding="utf-8")
    texts = [{name: f"{cell:.8g}" if isinstance(cell, float) else cell for name, cell in row.items()} for row in rows]
    pd.DataFrame(texts).to_csv(folder / "comparison.csv", index=False)
    for name, (figure, numbers) in figures.items():
        (folder / "figures" / f"{name}.svg").write_text(to_svg(figure), encoding="utf-8")
        numbers.to_csv(folder / "figures" / f"{name}.csv", index=False, float_format="%.8g")
    sys.stdout.write(f"{folder / 'README.md'}\n")
