"""Lines that mark epsilon in figures on a page: where they can stand, and as elements that its script moves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from matplotlib.figure import Figure


@dataclass(frozen=True)
class Marker:
    """A line over one panel: where it stands at each epsilon, NaN where the axis has no place for it; in points."""

    places: tuple[float, ...]
    top: float
    bottom: float


def epsilon_markers(figure: Figure, epsilons: Sequence[float]) -> list[Marker]:
    """A marker for each panel of a laid-out figure whose horizontal axis is epsilon, on a log scale.

    Parameters
    ----------
    figure : Figure
        Already drawn once, so that its panels are where they stay.
    epsilons : sequence of float
        Where the markers can stand.
    """
    width, height = 72 * figure.get_figwidth(), 72 * figure.get_figheight()
    to_figure = figure.transFigure.inverted()
    markers = []
    for axes in figure.axes:
        if axes.get_xscale() != "log":
            continue
        low, high = sorted(axes.get_xlim())
        places = [
            float(to_figure.transform(axes.transData.transform((epsilon, 1.0)))[0]) * width
            if low <= epsilon <= high
            else math.nan
            for epsilon in epsilons
        ]
        box = axes.get_position()
        markers.append(Marker(tuple(places), height * (1 - box.y1), height * (1 - box.y0)))
    return markers


def marker_line(marker: Marker, position: int, decimals: int) -> ElementTree.Element:
    """The marker as an element of its figure; data-x lists its places, which a script moves it to."""
    places = ["-" if math.isnan(place) else f"{place:.{decimals}f}" for place in marker.places]
    here = places[position]
    # Where the axis has no place for epsilon, the line waits out of sight.
    return ElementTree.Element(
        "line",
        {
            "data-marker": "",
            "data-x": " ".join(places),
            "x1": "-9" if here == "-" else here,
            "x2": "-9" if here == "-" else here,
            "y1": f"{marker.top:.{decimals}f}",
            "y2": f"{marker.bottom:.{decimals}f}",
        },
    )
