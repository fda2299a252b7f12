"""Every number that is printed: looked up by its key in the written tables, formatted there, and marked in HTML.

A template, or a finding, is text with slots: it prints cells and names, loops over what Python has put in order, and
decides nothing. `environment` refuses whatever else holds a digit, and `faults_of` finds what a template must not have.
The words of each kind of question stand in files of findings/: among them the six lines that answer first, Safest,
Gain, Cost, Who pays, Observer, Certain?
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from functools import cache
from html import escape, unescape
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import pandas as pd
from jinja2 import BaseLoader, Environment, StrictUndefined, Template, nodes

from envs.toml_reader import one_line
from policysim.numbers import plain, six_digits, table_text

# The columns of a table of cells; `epsilon` is NaN for what no epsilon changes.
COLUMNS = ("row", "option", "epsilon", "value", "low", "high", "format")


def as_cells(table: pd.DataFrame, *more: str) -> pd.DataFrame:
    """A table of cells, and more of its columns; what it lacks has no option, no epsilon, no value or no ends."""
    lacked: dict[str, Any] = {"option": "", "epsilon": math.nan, "value": math.nan, "low": math.nan, "high": math.nan}
    return table.assign(**{name: value for name, value in lacked.items() if name not in table})[[*COLUMNS, *more]]


class Shown(str):
    """Text made of cells, plain and as HTML; whatever is made of it by adding or cutting is a plain text again."""

    __slots__ = ("html",)
    html: str

    def __new__(cls, text: str, html: str) -> Self:
        """The text, and the same as HTML."""
        made = super().__new__(cls, text)
        made.html = html
        return made

    def __html__(self) -> str:
        """What stands on a page."""
        return self.html


class Label(str):
    """A name that people gave to something, with whatever digits it has."""

    __slots__ = ()


class Cells:
    """The numbers of some tables by their keys.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        Those with the columns `COLUMNS` are read.
    prefix : str, optional
        How the names of their files begin, in the keys on a page.

    Examples
    --------
    >>> table = pd.DataFrame([("deaths", "each", 1.0, 0.003, math.nan, math.nan, "counted 1000 1")], columns=COLUMNS)
    >>> cell = Cells({"options": table})("options", "deaths", "each", 1.0)
    >>> cell, cell.html
    ('3.0', '<data data-cell="options/deaths/each/1/value" value="0.003">3.0</data>')
    """

    def __init__(self, tables: Mapping[str, pd.DataFrame], prefix: str = "") -> None:
        self._prefix = prefix
        self._found: dict[tuple[str, str, str, str], list[tuple[float, float, float, str]]] = defaultdict(list)
        for name, table in tables.items():
            if set(COLUMNS) <= set(table.columns):
                for row, option, epsilon, *numbers in table[list(COLUMNS)].itertuples(index=False, name=None):
                    self._found[name, row, option, _position(epsilon)].append(tuple(numbers))

    def __call__(
        self, table: str, row: str, option: str = "", epsilon: float = math.nan, column: str = "value"
    ) -> Shown:
        """One number as text; KeyError unless exactly one cell has the key.

        Parameters
        ----------
        table, row, option, epsilon : str, float
            The key.
        column : str, optional
            "value", "low" or "high".
        """
        key = (table, row, option, _position(epsilon))
        hits = self._found.get(key, [])
        if len(hits) != 1:
            raise KeyError(f"{'/'.join(key)}: {len(hits)} cells")
        value, low, high, style = hits[0]
        number = {"value": value, "low": low, "high": high}[column]
        text = table_text(style, number, low, high)
        # What spans has two numbers, and no value of its own.
        exact = f"{six_digits(low)} {six_digits(high)}" if style.startswith("span") else six_digits(number)
        address = escape(self._prefix + "/".join((*key, column)))
        return Shown(text, f'<data data-cell="{address}" value="{exact}">{escape(text)}</data>')


def _position(epsilon: float) -> str:
    return "" if math.isnan(epsilon) else plain(epsilon)


def only_cells(value: object) -> object:
    """What a template prints; ValueError for digits of something that is neither a cell nor a name."""
    if not isinstance(value, Shown | Label) and any(letter.isnumeric() for letter in str(value)):
        raise ValueError(f"a template prints {value!r}, which is neither a cell nor a name.")
    return value


def only_text(value: object) -> object:
    """What a template without cells prints, within its line; ValueError for a number that is no text yet."""
    if not isinstance(value, str):
        raise ValueError(f"a template prints {value!r}, which is no text.")
    return one_line(re.sub(r"[\n\t]", " ", value))


def environment(
    *, html: bool, loader: BaseLoader | None = None, finalize: Callable[[object], object] = only_cells
) -> Environment:
    """The engine of all templates that print cells: as text, or escaped and with marked cells."""
    return Environment(
        loader=loader,
        autoescape=html,
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


# What decides or computes has no place in a template.
DECIDES = (
    nodes.If,
    nodes.CondExpr,
    nodes.BinExpr,
    nodes.UnaryExpr,
    nodes.Compare,
    nodes.Test,
    nodes.Concat,
    nodes.Slice,
)


def faults_of(source: str, filters: tuple[str, ...] = ()) -> list[str]:
    """What a template must not have: a digit in its visible text, a decision, a computation, or a filter.

    Parameters
    ----------
    source : str
        The template.
    filters : tuple of str, optional
        Those that it may use.

    Examples
    --------
    >>> faults_of("{{ deaths }} of 200 die{{ 's' if one }}")
    ['digit in: of 200 die', 'decides: CondExpr']
    """
    tree = environment(html=False).parse(source)
    words = "\0".join(each.data for each in tree.find_all(nodes.TemplateData))
    # The text of a tag is not seen; a slot may stand in it.
    seen = unescape(re.sub(r"<(style|script)\b.*?</\1>|<[^>]*>", "", words, flags=re.DOTALL)).split("\0")
    faults = [f"digit in: {text.strip()}" for text in seen if any(letter.isnumeric() for letter in text)]
    faults += [f"decides: {type(each).__name__}" for each in tree.find_all(DECIDES)]
    faults += ["decides: a loop with a condition" for each in tree.find_all(nodes.For) if each.test is not None]
    return faults + [f"filter: {each.name}" for each in tree.find_all(nodes.Filter) if each.name not in filters]


FOLDER = Path(__file__).parent / "findings"
# So many findings a kind of question has at most, and so many wordings a line.
MOST, WORDINGS = 12, 2
TEXT, HTML = environment(html=False), environment(html=True)


class Wording(NamedTuple):
    """A wording of a line, the name of `verdict` under which it holds, and whether only at the stated epsilon.

    That is so always, or if a second name holds.
    """

    line: str
    when: str
    text: str
    stays: bool = False
    stays_if: str = ""


class Sketch(NamedTuple):
    """The words of a figure on a page: its heading, what is drawn, and the file of its numbers."""

    name: str
    title: str
    caption: str
    file: str


class TableWords(NamedTuple):
    """The words of a table behind the options: its heading, what its rows are, its columns by option, and a note."""

    name: str
    title: str
    head: str
    columns: Mapping[str, str]
    note: str = ""
    # Whether the page shows it from the start.
    shown: bool = False


class KindWords(NamedTuple):
    """What a kind of question says: findings, titles of rows by section, figures, tables, and a glossary."""

    findings: tuple[Wording, ...]
    titles: Mapping[str, str]
    figures: tuple[Sketch, ...] = ()
    tables: tuple[TableWords, ...] = ()
    glossary: Mapping[str, str] = MappingProxyType({})


class Line(NamedTuple):
    """A line as it is printed; with its name again if it holds at the stated epsilon only."""

    name: Label
    text: Shown
    stays: tuple[Label, ...]


@cache
def words_of(kind: str) -> KindWords:
    """The words of a kind of question; ValueError for a file that says more than it may."""
    return checked_words((FOLDER / f"{kind}.toml").read_text(encoding="utf-8"))


def checked_words(text: str) -> KindWords:
    """The words of a file; ValueError for too many findings, and for a digit or a decision in one."""
    said = tomllib.loads(text)
    found = KindWords(
        tuple(Wording(**each) for each in said["finding"]),
        said["titles"],
        tuple(Sketch(**each) for each in said.get("figure", ())),
        tuple(TableWords(**each) for each in said.get("table", ())),
        said.get("glossary", {}),
    )
    if len(found.findings) > MOST or max(Counter(each.line for each in found.findings).values()) > WORDINGS:
        raise ValueError(f"more than {MOST} findings, or more than {WORDINGS} wordings of a line.")
    lines = [(each.line, each.text) for each in found.findings]
    drawn = [(each.name, f"{each.title} {each.caption}") for each in found.figures]
    listed = [
        (each.name, " ".join([each.title, each.head, *each.columns.values(), each.note])) for each in found.tables
    ]
    for name, words in [*lines, *found.titles.items(), *drawn, *listed, *found.glossary.items()]:
        if faults := faults_of(words):
            raise ValueError(f"{name}: {'; '.join(faults)}")
    return found


def filled_words(text: str, slots: Mapping[str, Any]) -> Shown:
    """Words with their cells and names, plain and as HTML."""
    return Shown(*(each.render(slots) for each in _parsed(text)))


@cache
def _parsed(text: str) -> tuple[Template, Template]:
    return TEXT.from_string(text), HTML.from_string(text)


def six_lines(kind: str, holds: Mapping[str, bool], slots: Mapping[str, Any]) -> list[Line]:
    """The lines of the findings that hold.

    Parameters
    ----------
    kind : str
        The kind of question, whose words are read.
    holds : mapping of str to bool
        From `verdict`; KeyError for a finding that asks for something else.
    slots : mapping
        What the texts print and loop over.
    """
    lines = []
    for each in words_of(kind).findings:
        if holds[each.when]:
            stays = each.stays or (each.stays_if != "" and holds[each.stays_if])
            name = Label(each.line)
            lines.append(Line(name, filled_words(each.text, slots), (name,) if stays else ()))
    return lines
