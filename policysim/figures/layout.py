"""The last step of drawing: everything finds its place, and keeps it.

Names beside the ends of lines: in the order of the ends, moved apart where they would touch, each with its look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.axes._secondary_axes import SecondaryAxis
from matplotlib.lines import Line2D
from matplotlib.text import Annotation, Text
from matplotlib.transforms import offset_copy
from scipy.optimize import isotonic_regression

from policies.arrays import FloatArray
from policysim.figures.lettering import (
    LINE_HEIGHT,
    LINE_SPACING,
    cut,
    show_wrapped,
    thin_ticks,
    use_fallbacks,
    width_of,
)
from policysim.figures.looks import LEAST_FONT, Canvas

# Until the words are broken into lines that fit: each round the room changes a little.
ROUNDS = 4
# Names side by side in a legend below all panels.
LEGEND_COLUMNS = {"page": 3, "column": 2, "slide": 3}


def settle(canvas: Canvas, labels: Sequence[EndLabels] = ()) -> None:
    """Lay the figure out, break words that are too wide, and put names beside the ends of lines.

    Afterwards the layout is fixed, but for that of axes that were given: the figure is the same in every format. In a
    paper one legend stands for the names, where that leaves more room, and panels have letters.
    """
    figure = canvas.figure
    if labels and canvas.plain and (canvas.given or _legend_is_smaller(canvas, labels)):
        _name_in_legend(canvas, labels)
        labels = ()
    if canvas.plain:
        _set_letters(canvas)
    use_fallbacks(figure)
    beside = {panel.axes: panel.width for panel in labels}
    # The axes on top of a panel and at its right, if it has such.
    seconds = {axes: [child for child in axes.child_axes if isinstance(child, SecondaryAxis)] for axes in canvas.axes}
    texts: dict[Axes, list[Text]] = {}
    for axes in canvas.axes:
        title = axes.get_title(loc="left")
        titles = [text for text in axes.get_children() if isinstance(text, Text) and text.get_text() == title]
        texts[axes] = [titles[0], axes.xaxis.label, axes.yaxis.label]
        texts[axes] += [axis.label for second in seconds[axes] for axis in (second.xaxis, second.yaxis)]
    words = {text: text.get_text() for of_panel in texts.values() for text in of_panel}
    # Every canvas has one, but not every figure whose axes were given.
    engine = figure.get_layout_engine()
    for _ in range(ROUNDS):
        if engine is not None:
            engine.execute(figure)
        changed = False
        for axes, of_panel in texts.items():
            panel = axes.get_window_extent().transformed(figure.dpi_scale_trans.inverted())
            wide, high = 72 * panel.width, 72 * panel.height
            # A title also has what is beside the panel.
            rooms = (wide + beside.get(axes, 0.0), *((wide, high) * (1 + len(seconds[axes]))))
            for text, room in zip(of_panel, rooms, strict=True):
                changed |= show_wrapped(text, words[text], room)
        if not changed:
            break
    # Not "none", which leaves an engine that does nothing, but for which every file is drawn twice.
    with rc_context({"figure.autolayout": False, "figure.constrained_layout.use": False}):
        if not canvas.given:
            figure.set_layout_engine(None)
    for axes in canvas.axes:
        thin_ticks(axes)
        for second in seconds[axes]:
            thin_ticks(second)
    for names in labels:
        names.place()
    _set_legends_below(canvas)


def _set_letters(canvas: Canvas) -> None:
    """A letter at each panel, before its title, if there are several; axes that were given have their owner's."""
    if not canvas.given and len(canvas.axes) > 1:
        for letter, axes in zip(ascii_lowercase, canvas.axes, strict=False):
            axes.set_title(f"{letter}  {axes.get_title(loc='left')}".rstrip(), loc="left")


def _set_legends_below(canvas: Canvas) -> None:
    """The legends of axes that were given: below all that stands below them, if a layout makes room for that."""
    figure = canvas.figure
    for axes in canvas.given if figure.get_layout_engine() else ():
        legend = axes.get_legend()
        if legend is not None:
            legend.set_in_layout(False)
            whole = axes.get_tightbbox()
            assert whole is not None  # axes that are drawn on are seen
            down = 72 * (whole.y0 - axes.get_window_extent().y0) / figure.dpi
            legend.set_loc("upper center")
            legend.set_bbox_to_anchor((0.5, 0), transform=offset_copy(axes.transAxes, figure, y=down, units="points"))
            legend.set_in_layout(True)


def _legend_is_smaller(canvas: Canvas, labels: Sequence[EndLabels]) -> bool:
    """Whether one legend below all panels takes less room than the names beside their lines."""
    spec = labels[0].axes.get_subplotspec()
    across = spec.get_gridspec().ncols if spec else 1
    names = {str(line.get_label()) for panel in labels for line in panel.axes.get_lines()}
    beside = across * float(np.mean([panel.width for panel in labels])) * 72 * canvas.figure.get_figheight()
    rows = -(-len(names) // LEGEND_COLUMNS[canvas.size])
    return (LINE_SPACING + 0.5) * canvas.font * rows * canvas.width < beside


def _name_in_legend(canvas: Canvas, labels: Sequence[EndLabels]) -> None:
    """Names in one legend for all panels; on axes that were given, in one for each that has lines of its own."""
    named: dict[str, Any] = {}
    for panel in labels:
        panel.remove()
        lines, names = panel.axes.get_legend_handles_labels()
        new = {name: line for name, line in zip(names, lines, strict=True) if name not in named}
        named |= new
        if canvas.given and new:
            canvas.legend(handles=list(new.values()), width=canvas.width, axes=panel.axes)
    if not canvas.given:
        columns = LEGEND_COLUMNS[canvas.size]
        width = canvas.width / columns - 5 * canvas.font
        canvas.legend(handles=list(named.values()), width=width, ncols=columns, below=True)


# In widths of a letter (the font size): where the leader to a name ends, where its sample ends, where it begins.
LEADER, SAMPLE, NAME = 1.2, 2.8, 3.2
# Between two names, in font sizes.
GAP = 0.25
# Names may be so much smaller than other words; before they are, they are cut to so many lines each.
LEAST_SIZE, LEAST_NARROW, MOST_LINES = 0.85, 0.97, (4, 3, 2)
# How the name of a line begins that is like another one all along.
LIKE = "≈\u00a0"


@dataclass(frozen=True)
class LineEnd:
    """The right end of a line.

    Attributes
    ----------
    name : str
        What stands beside it.
    x : float
        In data coordinates; NaN for a line that ends at the edge.
    y : float
        In data coordinates.
    rank : float
        Which of two lines with the same end comes higher: the one of higher rank.
    look : dict
        Of the line.
    values : tuple of float
        What the line shows, from left to right; one number for a level line.
    beside : tuple of dict
        The looks of lines that share its name, each in a paragraph of the name that begins with `LIKE`.
    """

    name: str
    x: float
    y: float
    rank: float
    look: dict[str, Any]
    values: tuple[float, ...] = ()
    beside: tuple[dict[str, Any], ...] = ()


class EndLabels:
    """The names of the lines of one panel.

    They are made in two steps: the layout needs their widths to make room, and their heights need the layout.
    """

    def __init__(self, canvas: Canvas, axes: Axes, ends: Sequence[LineEnd], *, width: float) -> None:
        """Put the names to the right of the panel, no wider than `width` (points)."""
        self._canvas, self.axes = canvas, axes
        # Ends that differ by rounding alone are the same end.
        self._ends = sorted(ends, key=lambda end: (float(f"{end.y:.9g}"), end.rank))
        self._texts: list[Annotation] = []
        # What the names take beside the panel, points.
        self.width = at = NAME * canvas.font
        for end in self._ends:
            text = axes.annotate(
                end.name,
                (1, 0.5),
                xycoords="axes fraction",
                xytext=(at, 0),
                textcoords="offset points",
                va="center",
                annotation_clip=False,
                # What several policies share is marked as none's.
                gid=None if end.beside else end.look.get("gid"),
            )
            show_wrapped(text, end.name, width - at)
            font = text.get_fontproperties()
            self.width = max(self.width, *(at + width_of(line, font) for line in text.get_text().split("\n")))
            self._texts.append(text)

    def remove(self) -> None:
        """Take the names away."""
        for text in self._texts:
            text.remove()

    def place(self) -> None:
        """Move the names to the ends of their lines, as near as they can be without touching, and draw samples."""
        if not self._ends:
            return
        box, point = self.axes.get_window_extent(), self._canvas.figure.dpi / 72
        # In font sizes, with the line height of a browser.
        room = (box.height / point) / self._canvas.font + LINE_HEIGHT / 2
        least = max(LEAST_NARROW if self._canvas.narrow else LEAST_SIZE, LEAST_FONT / self._canvas.font)
        for most in (*MOST_LINES, 1):
            heights = np.array([LINE_HEIGHT + text.get_text().count("\n") * LINE_SPACING + GAP for text in self._texts])
            if least * heights.sum() <= room:
                break
            # Names that would be too small to read lose their ends; a name for several lines keeps a line for each.
            for end, text in zip(self._ends, self._texts, strict=True):
                names = text.get_text().split(f"\n{LIKE}") if end.beside else [text.get_text()]
                text.set_text(f"\n{LIKE}".join(cut(name, most) for name in names))
        size = self._canvas.font * min(1.0, room / heights.sum())
        unit = size * point
        ends = np.array([self.axes.transData.transform((1, end.y))[1] for end in self._ends])
        margin = LINE_HEIGHT / 2 * unit
        centres = spread_out(ends, heights * unit, box.y0 - margin, box.y1)
        for end, text, centre, height in zip(self._ends, self._texts, centres, ends, strict=True):
            text.set_fontsize(size)
            text.xy = (1, (centre - box.y0) / box.height)
            rows = text.get_text().split("\n")
            # The line of the name at which each of those that share it begins.
            first = [0, *(place for place, line in enumerate(rows) if line.startswith(LIKE))][: 1 + len(end.beside)]
            middle = (len(rows) - 1) / 2
            own = [centre + (middle - place) * LINE_SPACING * unit for place in first] if end.beside else [centre]
            self._connect(end, height, own)

    def _connect(self, end: LineEnd, height: float, centres: Sequence[float]) -> None:
        """A leader from the line's end to its name, and before each line of the name a piece of the line that it names.

        In pixels: the height of the end, and those of the samples.
        """
        figure, box, font = self._canvas.figure, self.axes.get_window_extent(), self._canvas.font
        em = font * figure.dpi / 72
        start = box.x1 if np.isnan(end.x) else self.axes.transData.transform((end.x, end.y))[0]
        gid = None if end.beside else end.look.get("gid")
        leader = {"color": end.look["color"], "gid": gid, "linewidth": 0.06 * font, "alpha": 0.8}
        xs = [start, box.x1 + 0.3 * em, box.x1 + LEADER * em]
        drawn = [Line2D(xs, [height, height, centres[0]], solid_joinstyle="round", **leader)]
        sample = np.array([LEADER, SAMPLE]) * em + box.x1
        for look, centre in zip([end.look, *end.beside], centres, strict=True):
            line = {name: value for name, value in look.items() if name != "marker"}
            drawn.append(Line2D(sample, [centre, centre], **line))
            if "marker" in look:
                drawn.append(Line2D([sample.mean()], [centre], **{**look, "linestyle": "none"}))
        for piece in drawn:
            # In fractions of the figure, so that it can be saved at any resolution.
            piece.set_data(*figure.transFigure.inverted().transform(np.asarray(piece.get_xydata())).T)
            piece.set_transform(figure.transFigure)
            piece.set_in_layout(False)
            figure.add_artist(piece)


def spread_out(wanted: FloatArray, heights: FloatArray, low: float, high: float) -> FloatArray:
    """Centres of boxes that do not overlap, in the order given, as near as possible to where they are wanted.

    Parameters
    ----------
    wanted : array, (n,)
        Rising.
    heights : array, (n,)
        Of the boxes.
    low, high : float
        Between which all boxes lie if there is room.

    Returns
    -------
    array, (n,)
        With the least sum of squared distances to `wanted`. Less what stands below it, a centre only has to rise: an
        isotonic regression, and with bounds, the same one cut off at them.

    Examples
    --------
    >>> spread_out(np.array([0.0, 0.0, 5.0]), np.ones(3), -10.0, 10.0).tolist()
    [-0.5, 0.5, 5.0]
    """
    below = np.cumsum(heights) - heights / 2
    free = isotonic_regression(wanted - below).x
    last = max(low, high - heights.sum())
    centres: FloatArray = np.clip(free, low, last) + below
    return centres
