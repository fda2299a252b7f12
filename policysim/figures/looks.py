"""The look of each policy and action: a colour, a marker and a dash pattern, never colour alone; and sizes of figures.

The built-in policies have a look of their own, the same in every figure (`POLICY_LOOKS`). A policy of another package
gets the first of the palette that nothing beside it is like, so that two policies that are shown together look
different. A figure is laid out for a page, for a column of a journal, or for a slide; or for a paper, at its width and
in its style, or on axes of its own.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, Unpack, get_args

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.style import context

from policies.catalogue import CATALOGUE
from policies.optimal.optimum import Optimal
from policysim.figures.lettering import LINE_SPACING, cut, fix_ticks, no_glyph_warnings, show_wrapped, wrapped
from policysim.words import ACHIEVABLE, UNBEATABLE, SizeName

# Colours that colour-blind readers tell apart (Okabe & Ito 2008; wine from Tol 2021, an olive in place of yellow, which
# is too light for a line), but for the olive and the grey, which some confuse with another one: these come last below.
# A marker goes with each, never colour alone.
COLOURS = (
    "#0072B2", "#8A8A8A", "#009E73", "#CC79A7", "#C08A10", "#3A9AD9", "#8C7A00", "#C84F00", "#882255", "#000000",
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
DASHES = ("solid", "dashed", "dashdot", "dotted")
GREY, BLACK = "#555555", "#000000"
# Of the outcome that leads, in every figure, and of no policy: the words of an axis that counts it, and what is lost
# or gained by it.
LEAD = "#7A1420"
# Each colour that figures use, by the name that a page's style gives it a light and a dark value by.
NAMED_COLOURS = {
    "#000000": "black", "#0072B2": "blue", "#8A8A8A": "grey", "#009E73": "green", "#CC79A7": "pink", "#C08A10": "amber",
    "#3A9AD9": "sky", "#8C7A00": "olive", "#C84F00": "orange", "#882255": "wine", "#1B7837": "forest",
    "#762A83": "purple", "#555555": "soft", "#DDDDDD": "line", "#BBBBBB": "shade", "#F3F3F3": "stripe",
    "#FFFFFF": "paper", "#7A1420": "lead",
}  # fmt: skip
# How identifiers of what belongs to a policy begin, in a figure as an SVG file.
POLICY_GID = "policy."
# The title of a whole figure in its SVG: a page, which has a heading for it, leaves it out.
HEAD = "head"


@dataclass(frozen=True)
class Look:
    """How a policy is drawn, never by colour alone.

    Attributes
    ----------
    colour : str
        "#rrggbb".
    marker, dashes : str
        A filled marker and a dash pattern of Matplotlib.
    label : str
        What stands beside its line; "" for its name.
    """

    colour: str
    marker: str
    dashes: str = "solid"
    label: str = field(default="", compare=False, repr=False)


# The look of each built-in policy. Those that do not depend on epsilon are grey.
POLICY_LOOKS = {
    "greedy": Look(GREY, "*", "dashed", "best for each (greedy)"),
    "best-fixed": Look(GREY, "s", label="same for all (best-fixed)"),
    "uniform": Look(GREY, "d", "dotted", "equal odds (uniform)"),
    "exponential": Look("#0072B2", "o"),
    "exponential-fitted": Look("#CC79A7", "D"),
    "permute-and-flip": Look("#3A9AD9", "P"),
    "report-noisy-max": Look("#8C7A00", "X"),
    "randomized-response": Look("#C84F00", "<"),
    "randomized-features": Look("#882255", ">"),
    "optimal": Look(BLACK, "p"),
    "optimal-safe": Look("#1B7837", "h", "dashdot"),
    "optimal-robust": Look("#762A83", "8", "dotted"),
}
# The palette: first the colours that are furthest apart, then the same with other markers and dashes.
ORDER = (9, 0, 7, 2, 3, 4, 5, 8, 6, 1)
PALETTE = tuple(
    Look(COLOURS[place], MARKERS[(place + shift) % 10], dashes)
    for shift, dashes in enumerate(DASHES)
    for place in ORDER
)
# Of policies that do not depend on epsilon: grey, their lines level and their dots hollow.
LEVELS = tuple(Look(GREY, marker, dashes) for marker in ("*", "s", "d", "h", "8", "^") for dashes in reversed(DASHES))
STYLE = Path(__file__).parent / "figures.mplstyle"


def is_level(name: str) -> bool:
    """Whether a policy is the same at every epsilon."""
    return name in CATALOGUE and not CATALOGUE[name].uses_epsilon


def label(name: str) -> str:
    """What stands beside the line of a policy."""
    look = POLICY_LOOKS.get(name)
    return look.label if look and look.label else name


def looks(names: Sequence[str]) -> dict[str, Look]:
    """The look of each of the policies that are shown together; the bounds of the limit share its colour and marker.

    Examples
    --------
    >>> looks(["exponential", "of my own"])["of my own"]
    Look(colour='#000000', marker='p', dashes='solid')
    >>> looks(["optimal", "of my own"])["of my own"]
    Look(colour='#0072B2', marker='o', dashes='solid')
    """
    bounds = {ACHIEVABLE: "solid", UNBEATABLE: "dashed"}
    wanted = {Optimal.name if name in bounds else name for name in names}
    found: dict[str, Look] = {}
    # The built-in ones first, and all in an order that is not that of a table.
    for name in sorted(wanted, key=lambda name: (name not in POLICY_LOOKS, name)):
        if name in POLICY_LOOKS:
            found[name] = POLICY_LOOKS[name]
            continue
        level = is_level(name)
        beside = [look for other, look in found.items() if is_level(other) == level]
        found[name] = min(LEVELS if level else PALETTE, key=lambda free: sum(_alike(free, other) for other in beside))
    limit = found.get(Optimal.name)
    shared = {name: Look(limit.colour, limit.marker, bounds[name]) for name in names if name in bounds and limit}
    return {name: shared.get(name) or found[name] for name in names}


def _alike(one: Look, other: Look) -> int:
    """How much two looks have in common: what cannot be told apart counts far more than what can, if with care."""
    line = (one.colour, one.dashes) == (other.colour, other.dashes)
    dot = (one.colour, one.marker) == (other.colour, other.marker)
    return 10_000 * (one == other) + 100 * (line + dot) + (one.marker == other.marker) + (one.colour == other.colour)


def as_line(name: str, look: Look, *, level: bool = False) -> dict[str, Any]:
    """For a line of a policy; a level one has no markers."""
    line: dict[str, Any] = {"color": look.colour, "linestyle": look.dashes, "gid": POLICY_GID + name}
    return line if level else {**line, "marker": look.marker, "clip_on": False}


def as_dot(name: str, look: Look) -> dict[str, Any]:
    """For dots: hollow where the policy does not depend on epsilon, or is a bound that is not reached."""
    hollow = {"markerfacecolor": "white"} if is_level(name) or name == UNBEATABLE else {}
    clipped = {} if is_level(name) else {"clip_on": False}
    dot = {"color": look.colour, "marker": look.marker, "linestyle": "none", "gid": POLICY_GID + name}
    return {**dot, **clipped, **hollow}


def look_of_action(place: int) -> dict[str, Any]:
    """Colour, marker and dashes of the action at a place in the order of the actions: distinct for the first 40."""
    return {
        "color": COLOURS[ORDER[place % 10]],
        "marker": MARKERS[place % 10],
        "linestyle": DASHES[(place % 4 + place // 10) % 4],
        "clip_on": False,
    }


SIZES: tuple[SizeName, ...] = get_args(SizeName)
COLUMN_WIDTH = 85 / 25.4  # inches: a column of most journals, 85 mm
SLIDE = (13.33, 7.5)  # inches: a screen of 16:9
FONTS = {"page": 9.0, "column": 7.5, "slide": 14.0}  # points
# On a screen of 400 CSS pixels 368 are left for a figure: the words of one that is not wider than this have 11.
READABLE_WIDTH = 368 / 11.1 * FONTS["page"] / 72  # inches
# What grows and shrinks with the font.
SCALED = {
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "axes.linewidth": 0.8,
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.6,
    "xtick.major.size": 3.5,
    "xtick.major.width": 0.8,
    "ytick.major.size": 3.5,
    "ytick.major.width": 0.8,
    "figure.constrained_layout.w_pad": 0.08,
    "figure.constrained_layout.h_pad": 0.07,
}
# Of axes that were given, a column of the legend is at least so wide, in font sizes.
LEGEND_WIDTH = 16
# An entry of a legend has no more lines.
LEGEND_LINES = 3

StyleName: TypeAlias = Literal["report", "nature"]
STYLES: tuple[StyleName, ...] = get_args(StyleName)
# Nature's, mm and points: https://www.nature.com/nature/for-authors/final-submission; the letters of all figures there
# are as large.
NATURE_WIDTH, NATURE_WIDEST, NATURE_HIGHEST, NATURE_FONT = 89.0, 183.0, 170.0, 7.0
# No word of a paper is smaller, points.
LEAST_FONT = 6.0
# A figure has at least the width of a narrow column, and at most that of a sheet, mm; panels stand below each other in
# one that is narrower than the third.
LEAST_WIDTH, MOST_WIDTH, NARROW = 60.0, 210.0, 150.0
PLAIN = {"axes.titlesize": "medium", "axes.titleweight": "normal"}


class Paper(TypedDict, total=False):
    """What a figure is drawn for: the keywords of every function that draws one.

    For a paper it has no title and no remark: these stand in its caption. Panels have letters, and nothing is bold.

    Attributes
    ----------
    size : {"page", "column", "slide"}
        Of a report.
    ax : Axes or sequence of Axes
        To draw on: one for each panel, which are then returned in place of the Figure. A legend stands below them if
        their figure has a layout that makes room, such as "constrained"; otherwise in them.
    width_mm : float
        Of a figure of its own, from 60 to 210, with words of 7.5 points; below 150 panels stand below each other.
    style : {"report", "nature"}
        "nature": 89 mm wide, or `width_mm` up to 183, at most 170 mm high, with words of 6 to 7 points.
    """

    size: SizeName
    ax: Axes | Sequence[Axes] | None
    width_mm: float | None
    style: StyleName


def size_of(
    size: SizeName = "page",
    ax: Axes | Sequence[Axes] | None = None,
    width_mm: float | None = None,
    style: StyleName = "report",
) -> SizeName:
    """The size whose layout a figure has; ValueError for what there is not, or does not go together."""
    for name, value, known in (("size", size, SIZES), ("style", style, STYLES)):
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}, got {name}={value!r}.")
    if sum((size != "page", ax is not None, width_mm is not None)) > 1:
        raise ValueError("give one of size, ax and width_mm: each says how wide a figure is.")
    if size != "page" and style != "report":
        raise ValueError(f"style={style!r} is for a paper: give ax or width_mm with it, not size={size!r}.")
    most = NATURE_WIDEST if style == "nature" else MOST_WIDTH
    if width_mm is not None and not LEAST_WIDTH <= width_mm <= most:
        raise ValueError(f"width_mm must be from {LEAST_WIDTH:g} to {most:g} in style {style!r}, got {width_mm!r}.")
    if ax is None and width_mm is None and style == "report":
        return size
    return "column" if _inches(ax, width_mm) < NARROW / 25.4 else "page"


def _inches(ax: Axes | Sequence[Axes] | None, width_mm: float | None) -> float:
    """How wide a figure for a paper is."""
    if ax is None:
        return (width_mm or NATURE_WIDTH) / 25.4
    return float(np.ravel(np.asarray(ax, dtype=object))[0].get_figure(root=True).get_figwidth())


def side_by_side(count: int, most: int, **paper: Unpack[Paper]) -> int:
    """How many of the panels stand side by side: in a column one, or two where more than three would be too high."""
    size = size_of(**paper)
    two = count > 3 and size != paper.get("size")
    return min(count, 1 + two if size == "column" else most)


@dataclass(frozen=True)
class Canvas:
    """A figure to draw on, with what drawing depends on.

    Attributes
    ----------
    figure : Figure
        Empty.
    size : str
        "page", "column" or "slide".
    font, width : float
        Of the words, and of the figure, points.
    plain : bool
        Whether it is for a paper: without titles and remarks, which stand in the words below a figure there.
    given : tuple of Axes
        To draw on, if it is no figure of its own.
    highest : float
        Which height it cannot exceed, inches, if its words were those of the size.
    narrow : bool
        Whether panels stand below each other.
    drawn : Figure, Axes or tuple of Axes
        What a function returns: the figure, or the axes that were given, which only their owner knows of.
    """

    figure: Figure
    size: SizeName
    font: float
    width: float
    plain: bool
    given: tuple[Axes, ...]
    highest: float
    narrow: bool
    drawn: Figure

    @property
    def axes(self) -> Sequence[Axes]:
        """The panels."""
        return self.given or self.figure.axes

    def set_height(self, inches: float) -> None:
        """Another height, once it is known what is drawn, with the words of the size; a slide keeps its own."""
        if self.size != "slide" and not self.given:
            self.figure.set_figheight(min(inches, self.highest) * self.font / FONTS[self.size])

    def panels(self, count: int = 1, across: int = 1, **shared: Any) -> list[Axes]:
        """So many panels, row by row; what they share goes to `Figure.subplots`."""
        if self.given:
            if len(self.given) != count:
                raise ValueError(f"ax must hold {count} axes, one for each panel, got {len(self.given)}.")
            for axes in self.given:
                self._restyle(axes, [letter for letter in "xy" if shared.get(f"share{letter}")])
            return list(self.given)
        grid = list(self.figure.subplots(-(-count // across), across, squeeze=False, **shared).flat)
        for empty in grid[count:]:
            empty.remove()
        return grid[:count]

    def _restyle(self, axes: Axes, shared: Sequence[str]) -> None:
        """Axes that were given look as those of a figure of its own."""
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(visible=True, color=rcParams["grid.color"], linewidth=rcParams["grid.linewidth"])
        axes.grid(visible=False, axis="x")
        axes.set_axisbelow(True)
        axes.tick_params(labelsize=self.font)
        for text in (axes.xaxis.label, axes.yaxis.label):
            text.set_fontsize(self.font)
        first = self.given[0]
        for letter in shared:
            if not getattr(axes, f"get_shared_{letter}_axes")().joined(axes, first):
                getattr(axes, f"share{letter}")(first)
                axes.label_outer()

    def name(
        self,
        axes: Axes,
        title: str,
        x: str,
        y: str = "",
        *,
        alone: str = "",
        notes: Sequence[str] = (),
        colour: str = BLACK,
    ) -> None:
        """The title of a panel and the names of its axes; in a paper `alone`, or what there is, stands for both."""
        if not self.plain:
            axes.set_title(title, loc="left", color=colour)
        axes.set_xlabel(self.below(x, *notes))
        axes.set_ylabel(alone or y or title if self.plain else y, color=colour)

    def below(self, words: str, *notes: str) -> str:
        """What stands below an axis: its name and, but for a paper, the notes that are not empty."""
        return "\n".join([words, *(note for note in notes if note and not self.plain)])

    def lines(self, words: str, width: float, most: int) -> str:
        """The words in lines of at most `width` points, of which there are at most so many."""
        return cut(wrapped(words, width, FontProperties(size=self.font, family=rcParams["font.family"])), most)

    def legend(self, *, width: float, axes: Axes | None = None, below: bool = False, **about: Any) -> None:
        """At the right of the panels, or below them in a column, its words no wider than `width` (points).

        The figure is made as high as the words need, if it is not: beside what it was, or below. On axes that were
        given it stands in those named, or in the first, until `layout.settle`.
        """
        below = below or self.narrow
        if self.given:
            axes = axes or self.given[0]
            wide = 72 * axes.get_window_extent().width / self.figure.dpi
            ncols = max(1, int(wide / (LEGEND_WIDTH * self.font)))
            width = max(wide / ncols, LEGEND_WIDTH * self.font) - 5 * self.font
            legend = axes.legend(**{**about, "framealpha": 0.8, "edgecolor": "none", "ncols": ncols})
        else:
            place = "outside lower center" if below else "outside right upper"
            legend = self.figure.legend(**{"loc": place, "frameon": False, **about})
        lines = 1.0
        for text in legend.get_texts():
            show_wrapped(text, text.get_text(), width)
            text.set_text(cut(text.get_text(), LEGEND_LINES))
            lines += LINE_SPACING * (text.get_text().count("\n") + 1) + 0.5
        unit = FONTS[self.size] / self.font
        high, needed = self.figure.get_figheight() * unit, lines * FONTS[self.size] / 72 / int(about.get("ncols", 1))
        self.set_height(high + needed if below else max(high, needed))

    def head(self, words: str) -> None:
        """A title for the whole figure, at its left; none in a paper."""
        if self.plain:
            return
        font = FontProperties(size=1.2 * self.font, weight="bold", family=rcParams["font.family"])
        text = wrapped(words, 0.97 * self.width, font)
        self.figure.suptitle(text, x=0.01, ha="left", fontproperties=font, linespacing=LINE_SPACING, gid=HEAD)


@contextmanager
def canvas(*, page: tuple[float, float], column: float, **paper: Unpack[Paper]) -> Iterator[Canvas]:
    """A figure of one of the sizes or for a paper, or axes to draw on, in the style of all figures while it is drawn.

    Parameters
    ----------
    page : tuple of float
        Width and height on a page, inches.
    column : float
        Height in a column, inches; these heights are for the words of the size, and shrink with them.
    **paper : Paper
        What it is drawn for.

    Raises
    ------
    ValueError
        For another size or style, another width, or what does not go together.
    """
    size, ax, width_mm = size_of(**paper), paper.get("ax"), paper.get("width_mm")
    nature = paper.get("style") == "nature"
    given = () if ax is None else tuple(np.ravel(np.asarray(ax, dtype=object)))
    plain = bool(given) or nature or width_mm is not None
    font = NATURE_FONT if nature else rcParams["font.size"] if given else FONTS["column" if plain else size]
    inches = {"page": page, "column": (COLUMN_WIDTH, column), "slide": SLIDE}[size]
    highest = NATURE_HIGHEST / 25.4 * FONTS[size] / font if nature else np.inf
    if plain:
        inches = _inches(ax, width_mm), min(inches[1], highest) * font / FONTS[size]
    scaled = {name: value * font / FONTS["page"] for name, value in SCALED.items()}
    # Whoever saves it: letters as TrueType, as journals ask, and as wide as was measured.
    rcParams["pdf.fonttype"] = rcParams["ps.fonttype"] = 42
    rcParams["text.hinting"] = "no_hinting"
    sizes = {"font.size": font, **scaled, **(PLAIN if plain else {})}
    # Axes that were given look as their owner has set; a figure of its own begins with matplotlib's defaults.
    with context([STYLE, sizes], after_reset=not given), no_glyph_warnings():
        figure = given[0].get_figure(root=True) if given else Figure(figsize=inches, layout="constrained")
        drawn: Any = given[0] if len(given) == 1 else given or figure
        yield Canvas(figure, size, font, 72 * inches[0], plain, given, highest, size == "column", drawn)
        if not given:
            fix_ticks(figure, font)


def difference_axis(columns: Container[object]) -> str:
    """What stands at the axis of differences on logged data: of utilities, where treatments cost something."""
    what = "utility" if "difference_costs" in columns else "outcome"
    return f"mean {what}, minus that of one treatment for all"


def list_rows(axes: Axes) -> None:
    """A panel of names one below the other: without ticks at them, and with upright lines alone."""
    axes.grid(visible=True, axis="x")
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
