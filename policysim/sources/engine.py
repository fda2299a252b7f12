"""What is set beside a source: a row per figure with its agreement, the findings in words, and the drawings."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pandas as pd

from policysim.figures.card import Panel
from policysim.figures.described import Described
from policysim.question.answer import Headline
from policysim.sources.chances import SingleRun
from policysim.sources.printed import as_printed, cut_to, rounds_to

AGREES, PLAUSIBLE, WRONG, DIFFERS = "agrees", "plausible", "erratum", "differs"
INSIDE, OUTSIDE = "in the band", "outside the band"
# How many of each, in words, in this order.
COUNTED = {
    AGREES: "{} agree to the digits printed",
    INSIDE: "{} of single runs lie in the 95\u00a0% band of such runs",
    OUTSIDE: "{} outside it",
    PLAUSIBLE: "{} plausible",
    WRONG: "{} wrong in the source",
    DIFFERS: "{} differ without a reason that we know",
}
# What is not as expected. A mark goes with the word, so that a table can be looked through for it.
UNEXPECTED = {WRONG: "✗", DIFFERS: "✗", OUTSIDE: "!"}
CUT = "Its last digit is cut off, not rounded."


@dataclass(frozen=True)
class Judgement:
    """What is to be said of something that the source says in words."""

    right: str  # what holds
    holds: bool | None  # whether that is what it says; None if that is not known, but possible
    reason: str = ""
    drawing: str = ""  # the name of the drawing that shows it, if one does


@dataclass(frozen=True)
class Row:
    """One figure of the source, or one claim, beside ours."""

    what: str  # in words
    where: str  # where the source has it
    printed: str  # as printed there
    ours: float | SingleRun | Judgement  # the value, what to expect of a single run, or what holds
    together: str = ""  # what the figures that are printed together are, in words; "" if it stands alone

    @property
    def agreement(self) -> str:
        """One of the words above."""
        if isinstance(self.ours, Judgement):
            return PLAUSIBLE if self.ours.holds is None else AGREES if self.ours.holds else WRONG
        if isinstance(self.ours, SingleRun):
            low, high = self.ours.band
            return INSIDE if low <= float(self.printed.replace(",", "")) <= high else OUTSIDE
        if rounds_to(self.ours, self.printed):
            return AGREES
        return WRONG if cut_to(self.ours, self.printed) else DIFFERS

    @property
    def marked(self) -> str:
        """The agreement with its mark."""
        return f"{UNEXPECTED.get(self.agreement, '✓')} {self.agreement}"

    @property
    def run(self) -> SingleRun | None:
        """What to expect of a single run; None for what is not random."""
        return self.ours if isinstance(self.ours, SingleRun) else None

    @property
    def value(self) -> float | str:
        """Ours as one number, or in words."""
        if isinstance(self.ours, Judgement):
            return self.ours.right
        return self.ours.expected if isinstance(self.ours, SingleRun) else self.ours

    @property
    def why(self) -> str:
        """The reason; for a figure of which only the last digit is wrong, that."""
        if isinstance(self.ours, Judgement):
            return self.ours.reason
        return CUT if self.agreement == WRONG else ""

    @property
    def drawing(self) -> str:
        """The name of the drawing that shows why; "" for none."""
        return self.ours.drawing if isinstance(self.ours, Judgement) else ""

    @property
    def shown(self) -> str:
        """Ours: a figure to the digits printed there, and with more of them where it differs."""
        if isinstance(self.ours, Judgement):
            return self.ours.right
        if isinstance(self.ours, SingleRun):
            return number(self.ours.expected)
        digits, more = as_printed(self.ours, self.printed), f"{self.ours:.8f}".rstrip("0")
        return {AGREES: digits, WRONG: f"{digits} ({more})"}.get(self.agreement, more)


def number(value: float) -> str:
    """A count or an error in people: whole if large, one decimal below 100."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == round(value) else f"{value:.1f}"


@dataclass(frozen=True)
class Section:
    """A part of the page: a heading, sentences, and a small table (texts, one heading each) or a drawing if any."""

    title: str
    text: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    cells: tuple[tuple[str, ...], ...] = ()
    drawing: Described | None = None

    @property
    def words(self) -> tuple[bool, ...]:
        """Which columns of the table are words, and so begin at the left."""
        return tuple(all(cell[:1].isalpha() for cell in column) for column in zip(*self.cells, strict=True))


@dataclass(frozen=True)
class SourceFindings:
    """All that was found of a source."""

    lead: tuple[str, ...]  # the answer in plain words, with numbers
    rows: tuple[Row, ...]  # every figure of the source beside ours
    sections: tuple[Section, ...]  # what else is to be shown
    headline: Headline  # the finding as a title, with one number
    card: Panel  # the figure that goes with it where many reports are shown
    assumptions: tuple[str, ...]  # what is public or taken for granted, and how numbers were computed

    @property
    def wrong_first(self) -> list[Row]:
        """All rows, those first that are not as expected."""
        return sorted(self.rows, key=lambda row: row.agreement not in UNEXPECTED)

    @property
    def drawings(self) -> tuple[Described, ...]:
        """The drawings of all sections."""
        return tuple(section.drawing for section in self.sections if section.drawing is not None)

    @property
    def answer(self) -> list[str]:
        """The first two sentences: what the manifest quotes."""
        return re.split(r"(?<=\.) (?=[A-Z(])", " ".join(self.lead))[:2]

    @property
    def summary(self) -> str:
        """How many figures agree, in one sentence."""
        verdicts = [row.agreement for row in self.rows]
        if len(verdicts) == 1:
            return f"One claim of the source is set beside ours: {verdicts[0]}."
        parts = [words.format(verdicts.count(name)) for name, words in COUNTED.items() if name in verdicts]
        return f"Of {len(verdicts)} figures and claims of the source: {'; '.join(parts)}."

    @property
    def table(self) -> pd.DataFrame:
        """Every figure beside ours: figure, where, source, ours, low, high, chance, agreement, why."""
        rows = []
        for row in self.rows:
            run = (*row.run.band, row.run.chance) if row.run else (None, None, None)
            rows.append((row.what, row.where, row.printed, row.value, *run, row.agreement, row.why))
        names = ["figure", "where", "source", "ours", "low", "high", "chance", "agreement", "why"]
        return pd.DataFrame(rows, columns=names)
