"""What a study of a source finds: plain values that screen, page and files are made of; nothing here writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import pandas as pd

from policysim.figures.card import Panel
from policysim.figures.described import Described
from policysim.question.answer import Headline
from policysim.sources.chances import SingleRun
from policysim.sources.printed import Claim, Quote, as_printed, cut_to, rounds_to

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
CUT = "Its last digit is cut off, not rounded."


@dataclass(frozen=True)
class Judgement:
    """What is to be said of something that the source says in words."""

    right: str  # what holds
    holds: bool | None  # whether that is what it says; None if that is not known, but possible
    reason: str = ""
    more: str = ""  # what is to be known beside the reason, if the source is wrong or should not be followed
    drawing: str = ""  # the name of the drawing that shows it, if one does


@dataclass(frozen=True)
class Erratum:
    """Where the source is wrong, or right but not to be followed: what it says, what holds, why, and what shows it."""

    says: str
    right: str  # "" if the source says so
    reason: str
    drawing: str


@dataclass(frozen=True)
class Row:
    """One figure of the source, or one claim, beside ours."""

    what: str  # in words
    where: str  # where the source has it
    printed: str  # as printed there
    ours: float | SingleRun | Judgement  # the value, what to expect of a single run, or what holds

    @property
    def verdict(self) -> str:
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
        return CUT if self.verdict == WRONG else ""

    @property
    def shown(self) -> str:
        """Ours: a figure to the digits printed there, and with more of them where it differs."""
        if isinstance(self.ours, Judgement):
            return self.ours.right
        if isinstance(self.ours, SingleRun):
            return number(self.ours.expected)
        digits, more = as_printed(self.ours, self.printed), f"{self.ours:.8f}".rstrip("0")
        return {AGREES: digits, WRONG: f"{digits} ({more})"}.get(self.verdict, more)

    @property
    def erratum(self) -> Erratum | None:
        """What is to be said about it at length, if anything is."""
        more, drawing = (self.ours.more, self.ours.drawing) if isinstance(self.ours, Judgement) else ("", "")
        if self.verdict != WRONG and not more:
            return None
        says = f"{self.what}: {self.printed} ({self.where})."
        right = f"{self.shown}." if self.verdict == WRONG else ""
        return Erratum(says, right, f"{self.why} {more}".strip(), drawing)


def number(value: float) -> str:
    """A count or an error in people: whole if large, one decimal below 100."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == round(value) else f"{value:.1f}"


def figure_rows(
    quotes: Iterable[Quote], ours: Callable[[Quote], Mapping[str, float] | Mapping[str, SingleRun]], what: str
) -> list[Row]:
    """A row for each quoted figure; `what` may name {name}, {data}, {epsilon} and {runs}."""
    rows = []
    for quote in quotes:
        found = ours(quote)
        for name, text in quote.printed.items():
            words = what.format(name=name, data=quote.data, epsilon=f"{quote.epsilon:g}", runs=quote.runs)
            rows.append(Row(words, quote.where, text, found[name]))
    return rows


def claim_rows(claims: Iterable[Claim], found: Mapping[str, Judgement]) -> list[Row]:
    """A row for each claim; `found` has the judgement of each subject."""
    return [Row(claim.about, claim.where, claim.says, found[claim.about]) for claim in claims]


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
    """All that a study of a source found."""

    lead: tuple[str, ...]  # the answer in plain words, with numbers
    rows: tuple[Row, ...]  # every figure of the source beside ours
    sections: tuple[Section, ...]  # what else is to be shown
    headline: Headline  # the finding as a title, with one number
    card: Panel  # the figure that goes with it where many reports are shown
    assumptions: tuple[str, ...]  # what is public or taken for granted, and how numbers were computed

    @property
    def errata(self) -> tuple[Erratum, ...]:
        """Where the source is wrong, or not to be followed."""
        return tuple(row.erratum for row in self.rows if row.erratum is not None)

    @property
    def drawings(self) -> tuple[Described, ...]:
        """The drawings of all sections."""
        return tuple(section.drawing for section in self.sections if section.drawing is not None)

    @property
    def answer(self) -> list[str]:
        """The first two sentences of the lead: what the manifest quotes."""
        return re.split(r"(?<=\.) (?=[A-Z(])", " ".join(self.lead))[:2]

    @property
    def summary(self) -> str:
        """How many figures agree, in one sentence."""
        verdicts = [row.verdict for row in self.rows]
        if len(verdicts) == 1:
            return f"One claim of the source is set beside ours: {verdicts[0]}."
        parts = [words.format(verdicts.count(name)) for name, words in COUNTED.items() if name in verdicts]
        return f"Of {len(verdicts)} figures and claims of the source: {'; '.join(parts)}."

    @property
    def table(self) -> pd.DataFrame:
        """Every figure of the source beside ours: figure, where, source, ours, low, high, chance, verdict, reason."""
        rows = []
        for row in self.rows:
            run = (*row.run.band, row.run.chance) if row.run else (None, None, None)
            rows.append((row.what, row.where, row.printed, row.value, *run, row.verdict, row.why))
        names = ["figure", "where", "source", "ours", "low", "high", "chance", "verdict", "reason"]
        return pd.DataFrame(rows, columns=names)
