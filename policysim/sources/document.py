"""A source document: constants read from a study file, ours computed by a class, and the words of a text file.

The words of a document are in `texts/NAME.toml`, of which each name in braces is a fact of the class, as `str.format`
has it. Of its formats, "r" is a number to two digits, "+r" the same with its sign, "u" an upper bound, rounded up, and
"n" a count or an error in people.
"""

from __future__ import annotations

import string
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from envs.toml_reader import Table
from policysim.figures.card import Curves
from policysim.figures.described import EPSILON, Described, Intervals, Lines
from policysim.question.answer import Headline
from policysim.question.words import rounded, rounded_up
from policysim.sources.chances import SingleRun
from policysim.sources.engine import INSIDE, Judgement, Row, Section, SourceFindings, number
from policysim.sources.printed import Quote, read_claims

TEXTS = Path(__file__).parent / "texts"


class Document(ABC):
    """What a study file holds, and what follows from it.

    Parameters
    ----------
    table : Table
        The file; mistakes are noted in it.

    Attributes
    ----------
    quotes : dict
        The figures of the source, by their name in the texts.
    """

    name: ClassVar[str]

    def __init__(self, table: Table) -> None:
        """Read the words and the claims; a document reads its constants and quotes."""
        self.texts: dict[str, Any] = tomllib.loads((TEXTS / f"{self.name}.toml").read_text(encoding="utf-8"))
        self.claims = read_claims(table, self.texts["claims"])
        self.quotes: dict[str, tuple[Quote, ...]] = {}

    @abstractmethod
    def ours(self, kind: str, quote: Quote, seed: int) -> Mapping[str, float] | Mapping[str, SingleRun]:
        """Our figures beside a quote, by name."""

    @abstractmethod
    def holds(self) -> dict[str, bool | None]:
        """Whether each claim is right of which the texts do not say it; None for one that is possible."""

    @abstractmethod
    def facts(self, seed: int) -> dict[str, object]:
        """What the words name beside the attributes."""

    @abstractmethod
    def drawn(self, seed: int) -> dict[str, pd.DataFrame]:
        """The tidy tables that are drawn, by the name of the drawing."""

    def findings(self, seed: int, *, told: bool = True) -> SourceFindings:
        """All that a page shows.

        Parameters
        ----------
        seed : int
            For what is drawn at random.
        told : bool, optional
            Whether the constants are those that the findings were written about; of others only the figures are told.
        """
        rows = self._figures(seed)
        verdicts = [row.agreement for row in rows if row.run]
        counted = {"random": len(verdicts), "inside": verdicts.count(INSIDE), "axis": EPSILON}
        fill, tables, holds = Filling({**vars(self), **self.facts(seed), **counted}), self.drawn(seed), self.holds()
        for claim in self.claims:
            words = fill.each(self.texts["claims"][claim.about])
            right = words["holds"] if "holds" in words else holds[claim.about]
            ours = Judgement(words["right"], right, words.get("why", ""), words.get("drawing", ""))
            rows.append(Row(fill(claim.about), claim.where, claim.says, ours))
        found = SourceFindings(
            lead=tuple(map(fill, self.texts["findings"])),
            rows=tuple(rows),
            sections=tuple(_section(fill.each(part), tables) for part in self.texts["sections"]),
            headline=Headline(**fill.each(self.texts["headline"])),
            card=_card(fill.each(self.texts["card"]), tables),
            assumptions=tuple(map(fill, self.texts["assumptions"])),
        )
        return found if told else replace(found, lead=(found.summary,), headline=Headline(found.summary.rstrip(".")))

    def _figures(self, seed: int) -> list[Row]:
        rows = []
        for kind, quotes in self.quotes.items():
            for quote in quotes:
                found = self.ours(kind, quote, seed)
                fill = Filling({"data": quote.data, "epsilon": f"{quote.epsilon:g}", "runs": quote.runs})
                together = fill(self.texts["figures"][kind], name=", ".join(quote.printed))
                for name, text in quote.printed.items():
                    what = fill(self.texts["figures"][kind], name=name)
                    rows.append(Row(what, quote.where, text, found[name], together))
        return rows


class Filling(string.Formatter):
    r"""Words with the facts that they name.

    Examples
    --------
    >>> Filling({"loss": 0.0321})("about {loss:r}, at most {loss:u}, {loss:.1%}")
    'about 0.032, at most 0.033, 3.2\xa0%'
    """

    def __init__(self, facts: Mapping[str, object]) -> None:
        """Facts by name."""
        self._facts = facts

    def __call__(self, text: str, **more: object) -> str:
        """One text."""
        return self.vformat(text, (), {**self._facts, **more})

    def each(self, words: Any) -> Any:
        """The texts in tables and lists, and the names in tables; numbers and truth values as they are."""
        if isinstance(words, dict):
            return {self(key): self.each(value) for key, value in words.items()}
        if isinstance(words, list):
            return tuple(map(self.each, words))
        return self(words) if isinstance(words, str) else words

    def format_field(self, value: Any, format_spec: str) -> str:
        """A fact in one of its formats."""
        if format_spec in {"r", "+r"}:
            return rounded(float(value), sign=format_spec == "+r")
        if format_spec == "u":
            return rounded_up(float(value))
        text = number(float(value)) if format_spec == "n" else str(super().format_field(value, format_spec))
        return f"{text[:-1]}\u00a0%" if format_spec.endswith("%") else text


def _section(part: dict[str, Any], tables: Mapping[str, pd.DataFrame]) -> Section:
    """A part of the page, whose drawing is the table of that name with the panels that the words describe."""
    words = part["title"], part.get("text", ())
    if "drawing" not in part:
        return Section(*words, part["headings"], part["rows"])
    table = tables[part["drawing"]]
    panels = tuple(_panel(panel, table) for panel in part["panels"])
    drawing = Described(part["drawing"], part["description"], table, panels, height=part.get("height", 4.2))
    return Section(*words, drawing=drawing)


def _card(words: dict[str, Any], tables: Mapping[str, pd.DataFrame]) -> Curves:
    """Some lines of one of the drawings, under other names, as a share of a number if there is one."""
    table = _rows(tables[words.pop("of")], words.pop("only", {}))
    table = table.assign(value=table["value"] / float(words.pop("share_of", 1)))
    lines = {label: _rows(table, {"line": line})[["epsilon", "value"]] for line, label in words.pop("lines").items()}
    points = {label: list(part.itertuples(index=False, name=None)) for label, part in lines.items()}
    return Curves(points, **{**words, "dots": frozenset(words.get("dots", ()))})


def _rows(table: pd.DataFrame, only: Mapping[str, str]) -> pd.DataFrame:
    """The rows in which columns hold these."""
    for column, wanted in only.items():
        table = table[table[column] == wanted]
    return table


def _panel(words: dict[str, Any], table: pd.DataFrame) -> Lines | Intervals:
    if "names" in words:
        return Intervals(**words)
    notes = [(float(x), float(y), text) for x, y, text in words.pop("notes", ())]
    outside = words.pop("outside", "")
    if outside:
        rows = _rows(table[(table["value"] < table["low"]) | (table["value"] > table["high"])], words["only"])
        notes += [(x, y, outside) for x, y in rows[["epsilon", "value"]].itertuples(index=False)]
    if "headroom" in words:
        words["limits"] = (0.0, words.pop("headroom") * float(table["high"].max()))
    return Lines(**words, notes=tuple(notes))


def curves(
    lines: Mapping[str, Callable[[Any], float]],
    xs: Sequence[float],
    printed: Iterable[tuple[float, float]] = (),
    *,
    x: str = "epsilon",
    star: str = "as the source prints it",
) -> pd.DataFrame:
    """Functions of x as a tidy table, a line each, and the points that a source prints, as another line."""
    rows = [{"line": line, x: at, "value": value(at)} for line, value in lines.items() for at in xs]
    return pd.DataFrame([*rows, *({"line": star, x: at, "value": value} for at, value in printed)])
