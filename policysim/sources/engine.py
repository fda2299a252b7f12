"""A source beside ours: a row per figure with its agreement, the findings, and documents that are read and computed.

The words of a document are in `texts/NAME.toml`: of each name in braces, the constant or fact as `str.format` has it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from envs.toml_reader import Table
from policies.arrays import IntArray
from policysim.figures.card import Curves, Panel
from policysim.figures.described import EPSILON, Described, Lines, grid
from policysim.question.answer import Headline
from policysim.sources.chances import SingleRun
from policysim.sources.printed import as_printed, read_claims, read_constants, read_quotes, rounds_to

TEXTS = Path(__file__).parent / "texts"
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
    value: float | str  # ours as one number, or in words
    shown: str  # the same to the digits printed there, and with more of them where it differs
    agreement: str  # one of the words above
    why: str = ""
    drawing: str = ""  # the name of the drawing that shows why
    run: SingleRun | None = None  # what to expect of a single run; None for what is not random

    @classmethod
    def of(cls, what: str, where: str, printed: str, ours: float | SingleRun | Judgement) -> Row:
        """A figure beside the value, what to expect of a single run, or what holds."""
        if isinstance(ours, Judgement):
            agreement = PLAUSIBLE if ours.holds is None else AGREES if ours.holds else WRONG
            return cls(what, where, printed, ours.right, ours.right, agreement, ours.reason, ours.drawing)
        if isinstance(ours, SingleRun):
            inside = ours.band[0] <= float(printed.replace(",", "")) <= ours.band[1]
            agreement = INSIDE if inside else OUTSIDE
            return cls(what, where, printed, ours.expected, number(ours.expected), agreement, run=ours)
        digits, more = as_printed(ours, printed), f"{ours:.8f}".rstrip("0").rstrip(".")
        if rounds_to(ours, printed):
            return cls(what, where, printed, ours, digits, AGREES)
        if rounds_to(ours, printed, ROUND_DOWN):
            return cls(what, where, printed, ours, f"{digits} ({more})", WRONG, CUT)
        return cls(what, where, printed, ours, more, DIFFERS)

    @property
    def marked(self) -> str:
        """The agreement with its mark."""
        return f"{UNEXPECTED.get(self.agreement, '✓')} {self.agreement}"


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


class Document:
    """What a study file holds, and what follows from it; a class of its own for each document.

    Its constants are attributes; `quotes` are the figures of the source, by their name in the texts. Mistakes are
    noted in the table. `ours(kind, quote, seed)` has the figures beside a quote, numbers or single runs by name, and
    `facts(seed)` what the words name beside the constants: functions that are drawn, `stars` (rows of what the source
    prints), and `holds` (which claims are right, None if possible, where the texts do not say it).
    """

    name: ClassVar[str]
    counts: pd.Series

    def __init__(self, table: Table) -> None:
        """Read the words, and what they declare."""
        self.texts: dict[str, Any] = tomllib.loads((TEXTS / f"{self.name}.toml").read_text(encoding="utf-8"))
        vars(self).update(read_constants(table, self.texts["constants"]))
        self.claims = read_claims(table, self.texts["claims"])
        self.quotes = {
            kind: read_quotes(table, kind, words.get("keys", {}), words.get("names") or self.names(kind))
            for kind, words in self.texts["figures"].items()
        }

    def __getattr__(self, name: str) -> Any:
        """The constants are those that the words declare."""
        raise AttributeError(f"{self.name} declares no constant {name}")

    @property
    def table(self) -> IntArray:
        """(k,) counts."""
        return self.counts.to_numpy()

    @property
    def commonest(self) -> str:
        """The value of the most people."""
        return str(self.counts.idxmax())

    def names(self, kind: str) -> Mapping[str, Sequence[str]]:
        """The names that figures may have, by data set; "" if there is only one."""
        return {"": list(self.counts.index)}

    def check(self, table: Table) -> None:
        """Note what is wrong with constants that are right each for itself."""

    def findings(self, seed: int, *, told: bool = True) -> SourceFindings:
        """All that a page shows; of constants that the findings were not written about, only the figures."""
        rows = []
        for kind, quotes in self.quotes.items():
            for quote in quotes:
                ours, words = self.ours(kind, quote, seed), self.texts["figures"][kind]["what"]
                for name, text in quote.printed.items():
                    facts = {**quote._asdict(), "name": name, "epsilon": f"{quote.epsilon:g}"}
                    rows.append(Row.of(words.format(**facts), quote.where, text, ours[name]))
        inside = [row.agreement == INSIDE for row in rows if row.run]
        facts = {
            **vars(self),
            "commonest": self.commonest,
            **self.facts(seed),
            "random": len(inside),
            "inside": sum(inside),
            "axis": EPSILON,
        }
        for about, says, where in self.claims:
            words = filled(self.texts["claims"][about], facts)
            holds = words.pop("holds") if "holds" in words else facts["holds"][about]
            rows.append(Row.of(filled(about, facts), where, says, Judgement(holds=holds, **words)))
        words = filled({name: self.texts[name] for name in PARTS}, facts)
        tables = {part["drawing"]: drawn(facts, part["curves"]) for part in words["sections"] if "drawing" in part}
        found = SourceFindings(
            lead=words["findings"],
            rows=tuple(rows),
            sections=tuple(_section(part, tables) for part in words["sections"]),
            headline=Headline(**words["headline"]),
            card=_card(tables, **words["card"]),
            assumptions=words["assumptions"],
        )
        return found if told else replace(found, lead=(found.summary,), headline=Headline(found.summary.rstrip(".")))


PARTS = ("findings", "sections", "headline", "card", "assumptions")


def filled(words: Any, facts: Mapping[str, Any]) -> Any:
    """The texts in tables and lists, and the names in tables, with facts; numbers and truth values as they are."""
    if isinstance(words, dict):
        return {filled(key, facts): filled(value, facts) for key, value in words.items()}
    if isinstance(words, list):
        return tuple(filled(each, facts) for each in words)
    return words.format(**facts) if isinstance(words, str) else words


def drawn(facts: Mapping[str, Any], words: Mapping[str, Any]) -> pd.DataFrame:
    """A tidy table of facts that are functions, over `x`: a line per set of other arguments, and the stars.

    A function gives a value, or rows with columns of their own; `of` is of all lines, or of one.
    """
    rows, x = [], words.get("x", "epsilon")
    places = grid(*words["xs"]) if x == "epsilon" else [int(at) for at in np.geomspace(*words["xs"]).round()]
    for line, more in words["lines"].items():
        function = facts[more.pop("of", words["of"])]
        for at in dict.fromkeys(places):
            found = function(**{x: at}, **more)
            rows += [{"line": line, x: at, **row} for row in (found if isinstance(found, list) else [{"value": found}])]
    if "star" in words:
        rows += [{"line": words["star"], **star} for star in facts["stars"]]
    return pd.DataFrame(rows)


def _section(part: dict[str, Any], tables: Mapping[str, pd.DataFrame]) -> Section:
    """A part of the page, whose drawing is the table of that name with the panels that the words describe."""
    if "drawing" not in part:
        return Section(part["title"], part["text"], part["headings"], part["rows"])
    name, panels = part["drawing"], tuple(Lines(**panel) for panel in part["panels"])
    return Section(part["title"], drawing=Described(name, part["description"], tables[name], panels))


def _card(tables: Mapping[str, pd.DataFrame], of: str, lines: Mapping[str, str], **words: Any) -> Curves:
    """Some lines of one of the drawings, under other names; of the rows that are the `only` ones, if not of all."""
    table = tables[of]
    for column, wanted in words.pop("only", {}).items():
        table = table[table[column] == wanted]
    rows = {label: table[table["line"] == line] for line, label in lines.items()}
    points = {label: list(zip(part["epsilon"], part["value"], strict=True)) for label, part in rows.items()}
    return Curves(points, **{**words, "dots": frozenset(words.get("dots", ()))})
