"""The look of each policy and action: a colour, a marker and a dash pattern, never colour alone; and sizes of figures.

A policy brings its own look (`policies.policy.Policy.look`). One that brings none, or one that is like that of another
policy beside it, gets the first of the palette that nothing beside it is like. So two policies that are shown together
are told apart, whoever wrote them, and the built-in ones look the same in every figure. A figure is laid out for a
page, for a column of a journal, or for a slide.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.style import context

from policies.catalogue import CATALOGUE
from policies.optimal.optimum import Optimal
from policies.policy import DASHES, Look
from policysim.figures.lettering import LINE_SPACING, cut, no_glyph_warnings, show_wrapped, wrapped
from policysim.question.answer import SizeName
from policysim.question.words import ACHIEVABLE, UNBEATABLE

# Colours that colour-blind readers tell apart (Okabe & Ito 2008; wine from Tol 2021, an olive in place of yellow, which
# is too light for a line), but for the olive and the grey, which some confuse with another one: these come last below.
# A marker goes with each, never colour alone.
COLOURS = (
    "#0072B2", "#8A8A8A", "#009E73", "#CC79A7", "#C08A10", "#3A9AD9", "#8C7A00", "#C84F00", "#882255", "#000000",
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
GREY, BLACK = "#555555", "#000000"
# Of deaths, in every figure, and of no policy: the words of an axis that counts them, and what is lost or gained by
# them.
DEATH = "#7A1420"
# Each colour that figures use, by the name that a page's style gives it a light and a dark value by; others, such as
# those that mechanisms of other packages bring, stay as they are.
NAMED_COLOURS = {
    "#000000": "black", "#0072B2": "blue", "#8A8A8A": "grey", "#009E73": "green", "#CC79A7": "pink", "#C08A10": "amber",
    "#3A9AD9": "sky", "#8C7A00": "olive", "#C84F00": "orange", "#882255": "wine", "#1B7837": "forest",
    "#762A83": "purple", "#555555": "soft", "#DDDDDD": "line", "#BBBBBB": "shade", "#F3F3F3": "stripe",
    "#FFFFFF": "paper", "#7A1420": "death",
}  # fmt: skip
# How identifiers of what belongs to a policy begin, in a figure as an SVG file.
POLICY_GID = "policy."
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
    return CATALOGUE[name].label if name in CATALOGUE else name


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
    own = {name: CATALOGUE[name].look if name in CATALOGUE else None for name in wanted}
    # The built-in ones first, and all in an order that is not that of a table.
    for name in sorted(wanted, key=lambda name: (name not in CATALOGUE.built_in, own[name] is None, name)):
        level = is_level(name)
        beside = [look for other, look in found.items() if is_level(other) == level]
        look = own[name]
        # The same marker, or the same line.
        if look is None or any(
            look.marker == other.marker or (look.colour, look.dashes) == (other.colour, other.dashes)
            for other in beside
        ):
            look = min(LEVELS if level else PALETTE, key=lambda free: sum(_alike(free, other) for other in beside))
        found[name] = look
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
# An entry of a legend has no more lines.
LEGEND_LINES = 3


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
    narrow : bool
        Whether panels stand below each other.
    """

    figure: Figure
    size: SizeName
    font: float
    width: float
    narrow: bool

    def set_height(self, inches: float) -> None:
        """Another height, once it is known what is drawn; a slide keeps its own."""
        if self.size != "slide":
            self.figure.set_figheight(inches)

    def panels(self, count: int = 1, across: int = 1, **shared: Any) -> list[Axes]:
        """So many panels, row by row; what they share goes to `Figure.subplots`."""
        grid = list(self.figure.subplots(-(-count // across), across, squeeze=False, **shared).flat)
        for empty in grid[count:]:
            empty.remove()
        return grid[:count]

    def lines(self, words: str, width: float, most: int) -> str:
        """The words in lines of at most `width` points, of which there are at most so many."""
        return cut(wrapped(words, width, FontProperties(size=self.font, family=rcParams["font.family"])), most)

    def legend(self, *, width: float, below: str = "center", **about: Any) -> None:
        """At the right of the panels, or below them in a column, its words no wider than `width` (points).

        The figure is made as high as the words need, if it is not: beside what it was, or below.
        """
        place = f"outside lower {below}" if self.narrow else "outside right upper"
        legend = self.figure.legend(**{"loc": place, "frameon": False, **about})
        lines = 1.0
        for text in legend.get_texts():
            show_wrapped(text, text.get_text(), width)
            text.set_text(cut(text.get_text(), LEGEND_LINES))
            lines += LINE_SPACING * (text.get_text().count("\n") + 1) + 0.5
        high, needed = self.figure.get_figheight(), lines * self.font / 72 / int(about.get("ncols", 1))
        self.set_height(high + needed if self.narrow else max(high, needed))

    def head(self, words: str) -> None:
        """A title for the whole figure, at its left."""
        font = FontProperties(size=1.2 * self.font, weight="bold", family=rcParams["font.family"])
        text = wrapped(words, 0.97 * self.width, font)
        self.figure.suptitle(text, x=0.01, ha="left", fontproperties=font, linespacing=LINE_SPACING)


@contextmanager
def canvas(size: SizeName, *, page: tuple[float, float], column: float) -> Iterator[Canvas]:
    """A figure of one of the sizes, in the style of all figures while it is drawn.

    Parameters
    ----------
    size : str
        "page", "column" (3.5 inches wide) or "slide" (13.33 by 7.5 inches).
    page : tuple of float
        Width and height on a page, inches.
    column : float
        Height in a column, inches.

    Raises
    ------
    ValueError
        For another size.
    """
    if size not in SIZES:
        raise ValueError(f"size must be one of {', '.join(SIZES)}, got size={size!r}.")
    inches = {"page": page, "column": (COLUMN_WIDTH, column), "slide": SLIDE}[size]
    font = FONTS[size]
    ratio = font / FONTS["page"]
    scaled = {name: value * ratio for name, value in SCALED.items()}
    with context([STYLE, {"font.size": font, **scaled}]), no_glyph_warnings():
        yield Canvas(Figure(figsize=inches, layout="constrained"), size, font, 72 * inches[0], size == "column")


def name_panel(axes: Axes, title: str, x: str, y: str = "", *, notes: Sequence[str] = (), colour: str = BLACK) -> None:
    """The title of a panel and the names of its axes; notes, those that are not empty, stand below that of x."""
    axes.set_title(title, loc="left", fontweight="bold", color=colour)
    axes.set_xlabel("\n".join([x, *filter(None, notes)]))
    axes.set_ylabel(y)


def list_rows(axes: Axes) -> None:
    """A panel of names one below the other: without ticks at them, and with upright lines alone."""
    axes.grid(visible=True, axis="x")
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
