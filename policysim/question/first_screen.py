"""The first screen of a page, whatever it is about: short sentences, and a strip of numbers."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

# What a guess rate is; beside that of one treatment for all, which is chance.
TOLD_APART = "times of 100 at most, an observer can tell which of two patients got it"


@dataclass(frozen=True)
class Point:
    """A sentence of the brief, and the word that says what it is about."""

    lead: str
    sentence: Markup | str


@dataclass(frozen=True)
class Tile:
    """A number of the strip.

    Attributes
    ----------
    name : str
        In the slider's numbers, where the page has a slider.
    label : str
        What it counts, with its unit.
    value, text : float, str
        At the slider's first position.
    for_all : str
        That of one treatment for all; "" where there is none.
    is_estimate : bool
        Whether the text has an interval, and so is longer than a number.
    """

    name: str
    label: str
    value: float
    text: str
    for_all: str = ""
    is_estimate: bool = False


@dataclass(frozen=True)
class Brief:
    """Sentences, a strip of numbers, and a line that says what they are of; "" for none."""

    points: tuple[Point, ...]
    strip: tuple[Tile, ...]
    about: Markup | str = ""
