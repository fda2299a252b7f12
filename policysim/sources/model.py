"""What a study of a source finds: plain values that page, screen and JSON are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from policysim.sources.digits import as_printed, cut_to, rounds_to

AGREES, PLAUSIBLE, WRONG, DIFFERS = "agrees", "plausible", "erratum", "differs"
INSIDE, OUTSIDE = "in the band", "outside the band"
CUT = "Its last digit is cut off, not rounded."


@dataclass(frozen=True)
class Row:
    """One figure of the source beside ours.

    Attributes
    ----------
    what : str
        The figure, in words.
    where : str
        Where the source has it.
    printed : str
        As printed there.
    ours : float or str
        What we compute: the value; the expected one of a single run; or, for a claim in words, what holds.
    band : tuple of float, optional
        For a single run: where 95 % of such runs lie, (low, high).
    chance : float, optional
        For a single run: the exact probability of one that is as unlikely or more.
    holds : bool, optional
        For a claim in words: whether it is right; None if that is not known, but possible.
    reason : str
        Why the source is wrong, or what else is to be known.
    """

    what: str
    where: str
    printed: str
    ours: float | str
    band: tuple[float, float] | None = None
    chance: float | None = None
    holds: bool | None = None
    reason: str = ""

    @property
    def verdict(self) -> str:
        """One of the words above."""
        if self.holds is not None:
            return AGREES if self.holds else WRONG
        if isinstance(self.ours, str):
            return PLAUSIBLE
        if self.band is not None:
            return INSIDE if self.band[0] <= float(self.printed.replace(",", "")) <= self.band[1] else OUTSIDE
        if rounds_to(self.ours, self.printed):
            return AGREES
        return WRONG if cut_to(self.ours, self.printed) else DIFFERS

    @property
    def why(self) -> str:
        """The reason; where only the last digit is wrong, that."""
        cut = self.verdict == WRONG and not isinstance(self.ours, str)
        return self.reason or (CUT if cut and cut_to(float(self.ours), self.printed) else "")

    @property
    def shown(self) -> str:
        """Our figure: to the digits printed there, and with more of them where it differs."""
        if isinstance(self.ours, str):
            return self.ours
        if self.band is not None:
            return number(self.ours)
        return as_printed(self.ours, self.printed) if self.verdict == AGREES else f"{self.ours:.8f}".rstrip("0")


def number(value: float) -> str:
    """A count or an error in people: whole if large, one decimal below 100."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == round(value) else f"{value:.1f}"


@dataclass(frozen=True)
class Erratum:
    """Where the source is wrong.

    Attributes
    ----------
    says, right, reason : str
        What it says, what holds, and why; the last two with numbers.
    drawing : str
        The name of the drawing that shows it, if one does.
    """

    says: str
    right: str
    reason: str
    drawing: str = ""


@dataclass(frozen=True)
class Drawing:
    """A figure: a tidy table, and the function that draws it.

    Attributes
    ----------
    name : str
        Its file name, without ending.
    description : str
        What it shows, for who cannot see it; the caption too.
    table : DataFrame
        The numbers.
    draw : callable
        From the table to the figure.
    """

    name: str
    description: str
    table: pd.DataFrame
    draw: Callable[[pd.DataFrame], Figure]


@dataclass(frozen=True)
class Section:
    """A part of the page: a heading, sentences, and a small table (texts, one heading each) or a drawing if any."""

    title: str
    text: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    cells: tuple[tuple[str, ...], ...] = ()
    drawing: Drawing | None = None


@dataclass(frozen=True)
class Findings:
    """All that a study of a source found.

    Attributes
    ----------
    lead : tuple of str
        The answer in plain words, with numbers.
    rows : tuple of Row
        Every figure of the source beside ours.
    errata : tuple of Erratum
        Where it is wrong.
    sections : tuple of Section
        What else is to be shown.
    assumptions : tuple of str
        What is public or taken for granted, and how numbers were computed.
    """

    lead: tuple[str, ...]
    rows: tuple[Row, ...]
    errata: tuple[Erratum, ...]
    sections: tuple[Section, ...]
    assumptions: tuple[str, ...]

    @property
    def drawings(self) -> tuple[Drawing, ...]:
        """The drawings of all sections."""
        return tuple(section.drawing for section in self.sections if section.drawing is not None)
