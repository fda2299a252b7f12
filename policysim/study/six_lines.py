"""The six lines that answer first: Safest, Gain, Cost, Who pays, Observer, Certain? A file of words has each kind's."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from jinja2 import Template

from policysim.study.cells import Label, Shown, environment, faults_of

FOLDER = Path(__file__).parent / "findings"
# So many findings a kind of question has at most, and so many wordings a line.
MOST, WORDINGS = 12, 2
TEXT, HTML = environment(html=False), environment(html=True)


class Wording(NamedTuple):
    """A wording of a line, the name of `verdict` under which it holds, and whether only at the stated epsilon."""

    line: str
    when: str
    text: str
    stays: bool = False


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
    return [
        Line(Label(each.line), filled_words(each.text, slots), (Label(each.line),) if each.stays else ())
        for each in words_of(kind).findings
        if holds[each.when]
    ]
