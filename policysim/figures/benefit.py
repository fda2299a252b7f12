"""What each policy keeps, and what it costs in deaths, at each epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.path import Path
from matplotlib.ticker import FuncFormatter, PercentFormatter

from policies.optimal import Optimal
from policysim.comparison import UNBEATABLE
from policysim.figures.curves import NAMES_SHARE, draw_policies, has_band
from policysim.figures.end_labels import EndLabels
from policysim.figures.layout import settle
from policysim.figures.looks import LABELS
from policysim.figures.sizes import Canvas, SizeName, canvas
from policysim.figures.tables import checked, nonempty, over_epsilon
from policysim.figures.ticks import set_epsilon_axis
from policysim.words import population

NAME = "loss_vs_epsilon"
BAND = "Shaded: 95 % interval of the estimate (sampling error)."


@dataclass(frozen=True)
class Panel:
    """What one panel shows: a column of the table, times `scale`."""

    column: str
    title: str
    axis: str
    scale: float = 1.0

    @property
    def is_percentage(self) -> bool:
        """Whether its axis is in %."""
        return self.column == "benefit_kept"


def loss_vs_epsilon(table: pd.DataFrame, *, size: SizeName = "page") -> Figure:
    """Benefit kept and extra deaths against epsilon (log scale), a line per policy.

    Parameters
    ----------
    table : DataFrame
        From `compare`: policy, epsilon, group, benefit_kept and, for a second panel, extra_deaths. The rows of
        everyone with 0 < epsilon < inf are drawn. Where there are benefit_kept_low and _high (logged data), they are
        drawn as a band; where benefit_kept holds no number, `difference` is drawn instead.
    size : {"page", "column", "slide"}
        What the figure is for.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        For a table without these columns or rows.
    """
    checked(table, NAME, ["policy", "epsilon", "group", "benefit_kept"])
    rows = nonempty(over_epsilon(table), NAME, "of everyone with 0 < epsilon < inf")
    panels = _panels(rows)
    exact = not any(has_band(rows, panel.column) for panel in panels)
    # The names are below each other; a column has its panels below each other too.
    height = max(4.4, 0.19 * rows["policy"].nunique() + 2.2)
    with canvas(size, page=(9.6 if len(panels) > 1 else 7.2, height), column=0.2 + 0.62 * height * len(panels)) as made:
        axes = _grid(made, len(panels))
        labels = [_draw(made, place, rows, panel, exact) for place, panel in zip(axes, panels, strict=True)]
        settle(made, labels)
        if exact and panels[0].is_percentage:
            _name_region(axes[0], rows)
    return made.figure


def _panels(rows: pd.DataFrame) -> list[Panel]:
    benefit = Panel("benefit_kept", "Benefit kept", "0 %: one treatment for all; 100 %: best for each")
    if rows["benefit_kept"].isna().all() and "difference" in rows:
        benefit = Panel("difference", "Gain over one treatment for all", "reward per patient, more than one for all")
    if "extra_deaths" not in rows or rows["extra_deaths"].isna().all():
        return [benefit]
    count = population(rows["extra_deaths"])
    title = f"Extra deaths per {count:,} patients"
    return [benefit, Panel("extra_deaths", title, "more than with the best treatment for each", count)]


def _grid(made: Canvas, n_panels: int) -> Sequence[Axes]:
    shape = (n_panels, 1) if made.narrow else (1, n_panels)
    return list(made.figure.subplots(*shape, squeeze=False).flat)


def _draw(made: Canvas, axes: Axes, rows: pd.DataFrame, panel: Panel, exact: bool) -> EndLabels:
    ends = draw_policies(axes, rows, panel.column, scale=panel.scale, labels=LABELS if exact else {})
    if exact and panel.is_percentage:
        _shade_beyond_limit(axes, rows)
    set_epsilon_axis(axes, rows["epsilon"])
    if has_band(rows, panel.column):
        axes.set_xlabel(f"{axes.get_xlabel()}\n{BAND}")
    if panel.is_percentage:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    elif panel.column == "extra_deaths":
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_title(panel.title, loc="left", fontweight="bold")
    axes.set_ylabel(panel.axis)
    columns = 1 if made.narrow else len(made.figure.axes)
    return EndLabels(made, axes, ends, width=NAMES_SHARE * made.width / columns)


def _limit(rows: pd.DataFrame) -> pd.DataFrame:
    """The optimum, or what is proven to be unbeatable; fewer than two rows bound no region."""
    names = set(rows["policy"])
    limit: pd.DataFrame = rows[rows["policy"] == (UNBEATABLE if UNBEATABLE in names else Optimal.name)]
    return limit.sort_values("epsilon")


def _shade_beyond_limit(axes: Axes, rows: pd.DataFrame) -> None:
    """Mark the region that no mechanism can reach."""
    limit = _limit(rows)
    if len(limit) > 1:
        axes.fill_between(
            limit["epsilon"], limit["benefit_kept"], 1.0, color="#BBBBBB", alpha=0.45, linewidth=0, zorder=0
        )


def _name_region(axes: Axes, rows: pd.DataFrame) -> None:
    """Say in the region what it is, if there is room for the words."""
    limit = _limit(rows)
    if len(limit) < 2:
        return
    start = limit["epsilon"].iloc[0]
    words = axes.annotate(
        "no mechanism can",
        (start, 1.0),
        xytext=(0.8, -0.6),
        textcoords="offset fontsize",
        va="top",
        color="#333333",
        fontstyle="italic",
    )
    corners = [
        (start, 1.0),
        *zip(limit["epsilon"], limit["benefit_kept"], strict=True),
        (limit["epsilon"].iloc[-1], 1.0),
    ]
    region = Path(axes.transData.transform(corners))
    box = words.get_window_extent()
    if not region.contains_points(box.padded(0.4 * box.height).corners()).all():
        words.remove()
