"""The look of each policy and action: one colour, marker and dash pattern in every figure, never colour alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from policies.catalogue import CATALOGUE
from policies.optimal import Optimal
from policysim.evaluate import ACHIEVABLE, UNBEATABLE

# In the order of the catalogue. Colours that colour-blind readers tell apart (Okabe & Ito 2008; wine from Tol 2021, an
# olive in place of yellow, which is too light for a line); a marker goes with each, never colour alone.
COLOURS = (
    "#0072B2", "#999999", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C7A00", "#D55E00", "#882255", "#000000",
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
DASHES = ("solid", "dashed", "dashdot", "dotted")
GREY = "#555555"
REFERENCE_LINES = {
    "greedy": ("best for each (greedy)", "dashed"),
    "best-fixed": ("one for all (best-fixed)", "solid"),
    "uniform": ("by lot (uniform)", "dotted"),
}
# Markers of the references where they are dots and not lines: hollow.
REFERENCE_MARKERS = {"greedy": "*", "best-fixed": "s", "uniform": "d"}
STYLE = Path(__file__).parent / "figures.mplstyle"
LABELS = {
    Optimal.name: "optimal (the limit)",
    ACHIEVABLE: "achievable (the limit is above)",
    UNBEATABLE: "unbeatable (the limit is below)",
}


def look(name: str) -> dict[str, Any]:
    """The same colour and marker for a policy in every figure; bounds are dashed."""
    known = [policy for policy in CATALOGUE if policy not in REFERENCE_LINES]
    shown = Optimal.name if name in (ACHIEVABLE, UNBEATABLE) else name
    place = known.index(shown) if shown in known else len(known)
    dashes = "dashed" if name == UNBEATABLE else "solid"
    return {
        "color": COLOURS[place % len(COLOURS)],
        "marker": MARKERS[place % len(MARKERS)],
        "linestyle": dashes,
        "clip_on": False,
    }


def look_of_dot(name: str) -> dict[str, Any]:
    """Colour and marker of a policy that is drawn as a dot, references too."""
    if name in REFERENCE_MARKERS:
        return {"color": GREY, "marker": REFERENCE_MARKERS[name], "linestyle": "none", "markerfacecolor": "white"}
    # The bounds of the limit share a colour; a hollow marker is the one that is not reached.
    hollow = {"markerfacecolor": "white"} if name == UNBEATABLE else {}
    return {**look(name), "linestyle": "none", **hollow}


def look_of_reference(name: str) -> dict[str, Any]:
    """The grey line of a policy that does not depend on epsilon."""
    return {"color": GREY, "linestyle": REFERENCE_LINES[name][1]}


def look_of_action(place: int) -> dict[str, Any]:
    """Colour, marker and dashes of the action at a place in the order of the actions: distinct for the first 40."""
    # The first colours are those that are furthest apart.
    order = (9, 0, 7, 2, 3, 4, 5, 8, 6, 1)
    return {
        "color": COLOURS[order[place % 10]],
        "marker": MARKERS[place % 10],
        "linestyle": DASHES[(place % 4 + place // 10) % 4],
        "clip_on": False,
    }
