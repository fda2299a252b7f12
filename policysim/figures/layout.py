"""The last steps of drawing: the lines of all panels get one legend, everything finds its place, and keeps it."""

from __future__ import annotations

from string import ascii_lowercase
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.axes._secondary_axes import SecondaryAxis
from matplotlib.text import Text
from matplotlib.transforms import offset_copy

from policysim.figures.lettering import (
    show_wrapped,
    thin_ticks,
    use_fallbacks,
)
from policysim.figures.looks import Canvas

# Until the words are broken into lines that fit: each round the room changes a little.
ROUNDS = 4
# Names side by side in a legend below all panels.
LEGEND_COLUMNS = {"page": 3, "column": 2, "slide": 3}


def settle(canvas: Canvas) -> None:
    """Lay the figure out, and break words that are too wide; panels of a paper have letters.

    Afterwards the layout is fixed, but for that of axes that were given: the figure is the same in every format.
    """
    figure = canvas.figure
    if canvas.plain:
        _set_letters(canvas)
    use_fallbacks(figure)
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
            rooms = (wide, *((wide, high) * (1 + len(seconds[axes]))))
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


def name_lines(canvas: Canvas) -> None:
    """Name the lines in one legend for all panels; on axes that were given, in one for each with lines of its own."""
    named: dict[str, Any] = {}
    for axes in canvas.axes:
        lines, names = axes.get_legend_handles_labels()
        new = {name: line for name, line in zip(names, lines, strict=True) if name not in named}
        named |= new
        if canvas.given and new:
            canvas.legend(handles=list(new.values()), width=canvas.width, axes=axes)
    if not canvas.given:
        columns = LEGEND_COLUMNS[canvas.size]
        width = canvas.width / columns - 5 * canvas.font
        canvas.legend(handles=list(named.values()), width=width, ncols=columns, below=True)
