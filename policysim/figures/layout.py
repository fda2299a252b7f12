"""The last step of drawing: everything finds its place, and keeps it."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from policysim.figures.end_labels import EndLabels
from policysim.figures.glyphs import use_fallbacks
from policysim.figures.sizes import Canvas
from policysim.figures.ticks import thin_ticks
from policysim.figures.wrapping import show_wrapped

# Until the words are broken into lines that fit: each round the room changes a little.
ROUNDS = 4


def settle(canvas: Canvas, labels: Sequence[EndLabels] = ()) -> None:
    """Lay the figure out, break words that are too wide, and put names beside the ends of lines.

    Afterwards the layout is fixed: the figure is the same in every format.
    """
    figure = canvas.figure
    use_fallbacks(figure)
    beside = {panel.axes: panel.width for panel in labels}
    texts = {axes: [_title(axes), axes.xaxis.label, axes.yaxis.label] for axes in figure.axes}
    words = {text: text.get_text() for of_panel in texts.values() for text in of_panel}
    for _ in range(ROUNDS):
        _lay_out(figure)
        changed = [
            show_wrapped(text, words[text], width)
            for axes, of_panel in texts.items()
            for text, width in zip(of_panel, _widths(axes, beside.get(axes, 0.0)), strict=True)
        ]
        if not any(changed):
            break
    figure.set_layout_engine("none")
    for axes in figure.axes:
        thin_ticks(axes)
    for panel in labels:
        panel.place()


def _lay_out(figure: Figure) -> None:
    engine = figure.get_layout_engine()
    assert engine is not None  # every canvas has one
    engine.execute(figure)


def _title(axes: Axes) -> Text:
    words = axes.get_title(loc="left")
    return next(text for text in axes.get_children() if isinstance(text, Text) and text.get_text() == words)


def _widths(axes: Axes, beside: float) -> tuple[float, float, float]:
    """Points that the title and the labels of the axes may take: a title also what is beside the panel."""
    panel = axes.get_window_extent().transformed(axes.figure.dpi_scale_trans.inverted())
    return 72 * panel.width + beside, 72 * panel.width, 72 * panel.height
