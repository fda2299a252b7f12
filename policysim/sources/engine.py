"""A source beside ours: what it prints, a row per figure with its agreement, the findings, and how documents are read.

The words of a document are in `texts/NAME.toml`: of each name in braces, the constant or fact as `str.format` has it.
"""

from __future__ import annotations

import hashlib
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Decimal, InvalidOperation
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from envs.toml_reader import TomlTable, shown, unknown
from policies.arrays import IntArray
from policysim.figures.card import CardPanel, Curves
from policysim.figures.described import EPSILON, Described, Lines, log_grid
from policysim.question.answer import Headline
from policysim.study.study_reader import FOLDER

TEXTS = Path(__file__).parent / "texts"
ALL = "all"  # of figures that are of no single group
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
# Counts up to here are exact in floating point.
MOST_EXACT = 2**53


class Quote(NamedTuple):
    """Figures that a source prints together."""

    where: str  # where it has them
    printed: Mapping[str, str]  # by name, with the digits printed there
    data: str = ""  # what they were computed from: a group, or "" if there is only one table
    epsilon: float = float("nan")  # the privacy parameter there; NaN if the figures do not depend on it
    runs: int = 0  # draws that were counted; 0 for figures that are not random


def printed_number(text: str) -> Decimal | None:
    """A printed number with its digits, or None for something else: 0.327, .32, 8.9e-6, 45,222."""
    try:
        number = Decimal(text.replace(",", ""))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def as_printed(value: float, printed: str, rounding: str = ROUND_HALF_EVEN) -> str:
    """The value, rounded to the digits of the printed number: 0.15 for .15, 4e-5 for 4e-5."""
    digits = (printed_number(printed) or Decimal(0)).as_tuple().exponent
    rounded = Decimal(value).quantize(Decimal(1).scaleb(int(digits)), rounding)
    return f"{rounded:e}" if "e" in printed.lower() else f"{rounded:,f}" if "," in printed else f"{rounded:f}"


def rounds_to(value: float, printed: str, rounding: str = ROUND_HALF_EVEN) -> bool:
    """Whether the value, rounded to the digits of the printed number, is that number; with ROUND_DOWN, if cut off.

    Examples
    --------
    >>> rounds_to(0.09975049, "0.0998"), rounds_to(8.92e-6, "8.9e-6"), rounds_to(0.327, ".32")
    (True, True, False)
    """
    number = printed_number(printed)
    return number is not None and printed_number(as_printed(value, printed, rounding)) == number


@dataclass(frozen=True)
class SingleRun:
    """What to expect of a number that one run gives."""

    expected: float
    band: tuple[float, float]  # each end has at most 2.5 % beyond it
    chance: float | None = None  # of a number that is as unlikely as the one seen, or more


@dataclass(frozen=True)
class SourceRow:
    """One figure of the source, or one claim, beside ours."""

    figure: str  # in words
    where: str  # where the source has it
    source: str  # as printed there
    ours: float | str  # as one number, or in words
    shown: str  # the same to the digits printed there, and with more of them where it differs
    agreement: str  # one of the words above
    why: str = ""
    drawing: str = ""  # the name of the drawing that shows why, if one does
    low: float | None = None  # where a single run lies, see `SingleRun`; None for what is not random
    high: float | None = None
    chance: float | None = None

    @classmethod
    def of(cls, figure: str, where: str, source: str, ours: float | SingleRun) -> SourceRow:
        """A number beside ours, or beside what to expect of a single run."""
        if isinstance(ours, SingleRun):
            mean, (low, high) = ours.expected, ours.band
            agreement = INSIDE if low <= float(source.replace(",", "")) <= high else OUTSIDE
            return cls(figure, where, source, mean, people(mean), agreement, "", "", low, high, ours.chance)
        digits, more = as_printed(ours, source), f"{ours:.8f}".rstrip("0").rstrip(".")
        if rounds_to(ours, source):
            return cls(figure, where, source, ours, digits, AGREES)
        if rounds_to(ours, source, ROUND_DOWN):
            return cls(figure, where, source, ours, f"{digits} ({more})", WRONG, CUT)
        return cls(figure, where, source, ours, more, DIFFERS)

    @classmethod
    def claim(
        cls, about: str, where: str, says: str, right: str, *, holds: bool | None, why: str = "", drawing: str = ""
    ) -> SourceRow:
        """Words beside what is right; `holds` is whether they say that, None if it is not known, but possible."""
        agreement = PLAUSIBLE if holds is None else AGREES if holds else WRONG
        return cls(about, where, says, right, right, agreement, why, drawing)

    @property
    def marked(self) -> str:
        """The agreement with its mark."""
        return f"{UNEXPECTED.get(self.agreement, '✓')} {self.agreement}"


def people(value: float) -> str:
    """A count or an error in people: whole if large, one decimal below 100."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == round(value) else f"{value:.1f}"


@dataclass(frozen=True)
class Section:
    """A part of the page: a heading, sentences, and a small table (texts, one heading each) or a drawing if any."""

    title: str
    text: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    drawing: Described | None = None

    @property
    def words(self) -> tuple[bool, ...]:
        """Which columns of the table are words, and so begin at the left."""
        return tuple(all(cell[:1].isalpha() for cell in column) for column in zip(*self.rows, strict=True))


@dataclass(frozen=True)
class SourceFindings:
    """All that was found of a source."""

    lead: tuple[str, ...]  # the answer in plain words, with numbers
    rows: tuple[SourceRow, ...]  # every figure of the source beside ours
    sections: tuple[Section, ...]  # what else is to be shown
    headline: Headline  # the finding as a title, with one number
    card: CardPanel  # the figure that goes with it where many reports are shown
    assumptions: tuple[str, ...]  # what is public or taken for granted, and how numbers were computed
    # Reports beside this one, of the same patients, and why they say something else.
    related: Mapping[str, str] = field(default_factory=dict)

    @property
    def wrong_first(self) -> list[SourceRow]:
        """All rows, those first that are not as expected."""
        return sorted(self.rows, key=lambda row: row.agreement not in UNEXPECTED)

    @property
    def drawings(self) -> tuple[Described, ...]:
        """The drawings of all sections."""
        return tuple(section.drawing for section in self.sections if section.drawing is not None)

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
        """Every figure beside ours: the fields of a `SourceRow` that are no words of the page."""
        names = ["figure", "where", "source", "ours", "low", "high", "chance", "agreement", "why"]
        return pd.DataFrame(self.rows)[names]


def read_constants(table: TomlTable, declared: Mapping[str, Any]) -> dict[str, Any]:
    """The constants of a study file, by name, as the words of its document declare them; mistakes are noted.

    A declaration is "text", "counts", "groups" (counts by name), the limits of a number ("low", "high"), the least of a
    whole number ("least"), or a table of declarations.
    """
    found: dict[str, Any] = {}
    for name, what in declared.items():
        if what == "text":
            found[name] = table.text(name)
        elif what == "counts":
            found[name] = printed_counts(table, name)
        elif what == "groups":
            found[name] = {group: printed_counts(table.table(name), group) for group in table.table(name).values}
        elif "least" in what:
            found[name] = table.integer(name, low=what["least"])
        elif "low" in what:
            found[name] = table.number(name, **what)
        else:
            inner = table.table(name)
            found[name] = read_constants(inner, what)
            inner.close()
    return found


def printed_counts(table: TomlTable, name: str) -> pd.Series:
    """A table of whole numbers, at least two of them and not all 0: how many people have each value."""
    noted, inner = len(table.mistakes.found), table.table(name)
    counts = {key: inner.integer(key, 0, high=MOST_EXACT) for key in inner.values}
    if len(counts) < 2:
        table.fail(f"{name} must count at least 2 values, got {len(counts)}", *([name] if name in table else []))
    elif not any(counts.values()) and len(table.mistakes.found) == noted:
        table.fail("must count somebody, got only 0", name)
    return pd.Series(counts, dtype=np.intp)


def read_quotes(
    table: TomlTable, kind: str, names: Sequence[str], groups: Sequence[str], declared: Mapping[str, Any]
) -> list[Quote]:
    """The tables [[kind]]: `where`, `printed` by names, and the constants of a `Quote` that are declared."""
    quotes, constants = [], {"where": "text", **declared.get("constants", {})}
    for entry in table.tables(kind):
        printed = _read_printed(entry, names, whole="whole" in declared)
        quote = Quote(**read_constants(entry, constants), printed=printed)
        if "data" in constants and "data" in entry and quote.data not in groups:
            entry.fail(unknown("data", quote.data, groups), "data")
        if quote.runs and sum(map(int, printed.values())) > quote.runs:
            entry.fail(f"must not be more than the {quote.runs} runs", "printed")
        quotes.append(quote)
        entry.close()
    if not quotes:
        table.fail(f"{kind} is missing: it must be one or more tables of figures")
    return quotes


def _read_printed(entry: TomlTable, names: Sequence[str], *, whole: bool) -> dict[str, str]:
    if "printed" not in entry:
        entry.fail("printed is missing: it must be a table of figures")
    table = entry.table("printed")
    printed = {}
    for key in table.values:
        text = table.text(key)
        if key not in names:
            table.fail(unknown("name", key, names), key)
        elif whole and text and not text.isdecimal():
            table.fail(f"must be a whole number in quotes, got {shown(text)}", key)
        elif text and printed_number(text) is None:
            table.fail(f"must be a number in quotes, with the digits printed there, got {shown(text)}", key)
        elif text:
            printed[key] = text
    return printed


def read_claims(table: TomlTable, known: Collection[str]) -> list[tuple[str, str, str]]:
    """The tables [[claim]]: `about`, one of the known subjects, `says` and `where`."""
    claims = []
    for entry in table.tables("claim"):
        about, says, where = (entry.text(name) for name in ("about", "says", "where"))
        if about not in known and "about" in entry:
            entry.fail(unknown("subject", about, list(known)), "about")
        entry.close()
        claims.append((about, says, where))
    return claims


@dataclass
class Subject:
    """What is asked about a source document, and the file that asks it."""

    name: str
    text: str  # the file: of a study, or a script
    title: str  # the question
    source: str  # what the source is
    analysis: str  # how it is answered: the name of a document, or of a script's report
    seed: int

    @property
    def digest(self) -> str:
        """SHA-256 of the file."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def identity(self) -> dict[str, Any]:
        """What tells it from others, for a manifest."""
        return {"study": {"name": self.name, "title": self.title, "sha256": self.digest}}


class Document(Subject, ABC):
    """A study of a source document: what its file holds, and what follows from it; a class for each document.

    Its constants are attributes; `quotes` are the figures of the source, by their name in the texts.
    """

    counts: pd.Series
    groups: Mapping[str, pd.Series] = MappingProxyType({})  # the tables of counts, where there are several

    def __init__(self, table: TomlTable, name: str, analysis: str) -> None:
        """Read the file; mistakes are noted in the table, and raised."""
        title, source, seed = table.text("title", name), table.text("source"), table.integer("seed", 0)
        super().__init__(name, table.mistakes.text, title, source, analysis, seed)
        self.texts: dict[str, Any] = tomllib.loads((TEXTS / f"{self.analysis}.toml").read_text(encoding="utf-8"))
        vars(self).update(read_constants(table, self.texts["constants"]))
        self.claims = read_claims(table, self.texts["claims"])
        self.quotes = {
            kind: read_quotes(table, kind, words.get("names") or self.names(kind), [ALL, *self.groups], words)
            for kind, words in self.texts["figures"].items()
        }
        table.close()
        # What constants say together may only be checked where they are all there.
        table.mistakes.raise_if_any()
        self.check(table)
        table.mistakes.raise_if_any()

    def check(self, table: TomlTable) -> None:
        """Note what is wrong with constants that are right each for itself."""

    @abstractmethod
    def ours(self, kind: str, quote: Quote) -> Mapping[str, float | SingleRun]:
        """The figures beside a quote, by name."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What the words name beside the constants.

        Functions are drawn; `stars` are rows of what the source prints there; `holds` says which claims are right, None
        if that is possible, where the texts do not say it.
        """

    def names(self, kind: str) -> Sequence[str]:
        """The names that figures may have."""
        return list(self.counts.index)

    @property
    def table(self) -> IntArray:
        """(k,) counts."""
        return self.counts.to_numpy()

    @property
    def people(self) -> int:
        """How many were counted."""
        return int(self.counts.sum())

    @property
    def commonest(self) -> str:
        """The value of the most people."""
        return str(self.counts.idxmax())

    def findings(self) -> SourceFindings:
        """All that a page shows; words only of a built-in file, which they were written about."""
        rows = []
        for kind, quotes in self.quotes.items():
            for quote in quotes:
                ours, words = self.ours(kind, quote), self.texts["figures"][kind]["what"]
                for name, text in quote.printed.items():
                    facts = {**quote._asdict(), "name": name, "epsilon": f"{quote.epsilon:g}"}
                    rows.append(SourceRow.of(words.format(**facts), quote.where, text, ours[name]))
        inside = [row.agreement == INSIDE for row in rows if row.low is not None]
        facts = {
            **vars(self),
            "people": self.people,
            "commonest": self.commonest,
            **self.facts(),
            "random": len(inside),
            "inside": sum(inside),
            "axis": EPSILON,
        }
        words = filled_texts({part: text for part, text in self.texts.items() if part != "figures"}, facts)
        for about, says, where in self.claims:
            subject = filled_texts(about, facts)
            claim = {"holds": facts["holds"].get(about), **words["claims"][subject]}
            rows.append(SourceRow.claim(subject, where, says, **claim))
        sections = tuple(
            Section(part["title"], drawing=drawn(part["drawing"], facts)) if "drawing" in part else Section(**part)
            for part in words["sections"]
        )
        found = SourceFindings(
            lead=words["findings"],
            rows=tuple(rows),
            sections=sections,
            headline=Headline(**words["headline"]),
            card=source_card(sections, **words["card"]),
            assumptions=words["assumptions"],
        )
        if self.text == (FOLDER / f"{self.analysis}.toml").read_text(encoding="utf-8"):
            return found
        return replace(found, lead=(found.summary,), headline=Headline(found.summary.rstrip(".")))


def filled_texts(words: Any, facts: Mapping[str, Any]) -> Any:
    """The texts in tables and lists, and the names in tables, with facts; numbers and truth values as they are."""
    if isinstance(words, dict):
        return {filled_texts(key, facts): filled_texts(value, facts) for key, value in words.items()}
    if isinstance(words, list):
        return tuple(filled_texts(each, facts) for each in words)
    return words.format(**facts) if isinstance(words, str) else words


def drawn(words: Mapping[str, Any], facts: Mapping[str, Any]) -> Described:
    """A drawing of facts that are functions, over `x`: a line per set of other arguments, and the stars.

    A function gives a value, or rows with columns of their own; `of` is of all lines, or of one.
    """
    rows, x = [], words.get("x", "epsilon")
    places = log_grid(*words["xs"]) if x == "epsilon" else [int(at) for at in np.geomspace(*words["xs"]).round()]
    for line, more in words["lines"].items():
        function = facts[more.pop("of", words["of"])]
        for at in dict.fromkeys(places):
            found = function(**{x: at}, **more)
            rows += [{"line": line, x: at, **row} for row in (found if isinstance(found, list) else [{"value": found}])]
    if "star" in words:
        rows += [{"line": words["star"], **star} for star in facts["stars"]]
    panels = tuple(Lines(**panel) for panel in words["panels"])
    return Described(words["name"], words["description"], pd.DataFrame(rows), panels)


def source_card(sections: Iterable[Section], of: str, lines: Mapping[str, str], **words: Any) -> Curves:
    """Some lines of one of the drawings, under other names; of the rows that are the `only` ones, if not of all."""
    (table,) = (part.drawing.table for part in sections if part.drawing and part.drawing.name == of)
    for column, wanted in words.pop("only", {}).items():
        table = table[table[column] == wanted]
    rows = {label: table[table["line"] == line] for line, label in lines.items()}
    points = {label: list(zip(part["epsilon"], part["value"], strict=True)) for label, part in rows.items()}
    return Curves(points, **{**words, "dots": frozenset(words.get("dots", ()))})
