"""A patient's chart as an image. Imports matplotlib, so it is imported when the first image is asked for."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from envs.chart import DAYS_SHOWN, Chart, wrapped

# Inches: of the labels on the left, a day, the shortest row of days, a row, what stands around, the narrowest image.
LABELS, DAY, DAYS, ROW, ABOVE, BELOW, RIGHT, NARROWEST = 1.5, 0.42, 1.6, 0.34, 0.85, 0.65, 1.2, 6.0
DOTS = 100
LETTERS_PER_INCH, LINES = 12, 2
INK, FAINT, BAR = "#222222", "#D0D0D0", "#0072B2"
# Light enough for dark letters on them, which are what tells them apart.
TILES = ("#FFFFFF", "#BFE3F5", "#FBE3A6", "#E7C9DC", "#C3E6D8", "#F5CDB6")


def as_image(chart: Chart) -> NDArray[np.uint8]:
    """The chart drawn, (height, width, 3): of even numbers that depend on the scenario and the horizon only."""
    n_days, n_rows = min(chart.horizon, DAYS_SHOWN), len(chart.labels) + 1
    days = max(DAY * n_days, DAYS)
    width, height = _even(max(NARROWEST, LABELS + days + RIGHT)), _even(ABOVE + ROW * n_rows + BELOW)
    figure = Figure(figsize=(width, height), dpi=DOTS, facecolor="white")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((LABELS / width, BELOW / height, days / width, ROW * n_rows / height))
    axes.set(xlim=(0, n_days), ylim=(n_rows - 0.5, -0.5))
    _grid(axes, chart, n_days)
    _treatments(axes, chart)
    _bars(axes, chart)
    _end(axes, chart, n_days)
    _words(figure, chart)
    canvas.draw()  # type: ignore[no-untyped-call]  # matplotlib's
    image = np.asarray(canvas.buffer_rgba())  # type: ignore[no-untyped-call]
    return image[..., :3].copy()


def _even(inches: float) -> float:
    """Rounded to an even number of dots, as video formats want them."""
    return 2 * round(inches * DOTS / 2) / DOTS


def _grid(axes: Axes, chart: Chart, n_days: int) -> None:
    """Days along the top, flags along the side, and a faint line for each: absent."""
    axes.set_xticks(np.arange(n_days) + 0.5, [str(chart.first + day) for day in range(n_days)], fontsize=9)
    axes.set_yticks(range(len(chart.labels) + 1), ["treatment", *chart.labels], fontsize=10)
    axes.tick_params(length=0, labeltop=True, labelbottom=False, colors=INK)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.text(-0.08 / max(DAY, DAYS / n_days), -0.8, "day", ha="right", va="center", fontsize=10, color=INK)
    axes.vlines(np.arange(n_days + 1), 0.5, len(chart.labels) + 0.5, color=FAINT, linewidth=0.6, zorder=0)
    axes.hlines(np.arange(1, len(chart.labels) + 1), 0, n_days, color=FAINT, linewidth=1.2, zorder=0)


def _treatments(axes: Axes, chart: Chart) -> None:
    for day, treatment in enumerate(chart.treatments):
        tile = TILES[treatment % len(TILES)]
        axes.broken_barh([(day + 0.05, 0.9)], (-0.36, 0.72), facecolor=tile, edgecolor=INK, linewidth=0.8)
        name = chart.scenario.actions[treatment]
        axes.text(day + 0.5, 0, name, ha="center", va="center", fontsize=9 if len(name) < 4 else 6, color=INK)


def _bars(axes: Axes, chart: Chart) -> None:
    """A thick bar wherever a flag is present: the left half of a day is its morning, the right half its evening.

    What came of the day stands in the right half: events, too.
    """
    for place in range(len(chart.labels)):
        halves = np.zeros(2 * len(chart.mornings), dtype=np.bool_)
        if place < chart.mornings.shape[1]:
            halves[0::2] = chart.mornings[:, place]
        halves[1 : 2 * len(chart.evenings) : 2] = chart.evenings[:, place]
        edges = np.flatnonzero(np.diff(np.concatenate([[0], halves, [0]]))).reshape(-1, 2) / 2
        axes.broken_barh([(start, end - start) for start, end in edges], (place + 0.72, 0.56), facecolor=BAR)


def _end(axes: Axes, chart: Chart, n_days: int) -> None:
    """Where the stay has got to, or what it came to in words; hatched after that."""
    bottom = len(chart.labels) + 0.5
    if not chart.over:
        now = len(chart.treatments) + 0.5
        axes.vlines([now], -0.35, bottom, color=INK, linewidth=1.2, linestyle=":")
        axes.text(now + 0.1, 0, "now", va="center", fontsize=9, color=INK)
        return
    end = len(chart.treatments)
    axes.vlines([end], -0.5, bottom, color=INK, linewidth=2.5, clip_on=False)
    axes.broken_barh([(end, n_days - end)], (0.5, bottom - 0.5), facecolor="none", edgecolor=FAINT, hatch="//")
    place = end + 0.08 / max(DAY, DAYS / n_days)
    words = chart.status.replace(" on", "\non")
    axes.text(place, 0, words, va="center", fontsize=9, fontweight="bold", color=INK)


def _words(figure: Figure, chart: Chart) -> None:
    """The patient above; below, what the marks and the treatments are."""
    width, height = figure.get_size_inches()
    letters = int(width * LETTERS_PER_INCH)
    who = wrapped(f"At admission: {chart.patient}", letters)
    who = who if len(who) <= LINES else [*who[: LINES - 1], f"{who[LINES - 1]} …"]
    figure.text(0.1 / width, 1 - 0.08 / height, "\n".join(who), va="top", fontsize=10, color=INK)
    key = f"bar: present (left half of a day: morning, right half: evening); {chart.treatment_titles}"
    key = "\n".join(wrapped(key, int(1.3 * letters)))
    figure.text(0.1 / width, (BELOW - 0.12) / height, key, va="top", fontsize=8.5, color=INK)
