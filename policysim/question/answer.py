"""What comes out of a question: plain values, of which screen, JSON document, page, folder and manifest are made.

An `Answer` has tables, drawings and what its screen prints. A `Drawing` is a figure with its words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What a figure is laid out for.
SizeName: TypeAlias = Literal["page", "column", "slide"]


@dataclass(frozen=True)
class Drawing:
    """A figure with its words and data.

    Attributes
    ----------
    name : str
        Of its files.
    draw : callable
        The figure, laid out for a size.
    title, description : str
        What it is about; what is drawn, and how. Of a kind of question its file of words says so (`captioned`).
    epsilons : tuple of float
        The positions of the page's slider, if epsilon is its horizontal axis.
    seen : str
        What is seen, for readers who cannot see it: the numbers of this run.
    """

    name: str
    draw: Callable[[SizeName], Figure]
    title: str = ""
    description: str = ""
    epsilons: tuple[float, ...] = ()
    seen: str = ""
    _drawn: dict[SizeName, Figure] = field(default_factory=dict, repr=False, compare=False)

    def at(self, size: SizeName) -> Figure:
        """The figure, laid out for a size; drawn once for each."""
        if size not in self._drawn:
            self._drawn[size] = self.draw(size)
        return self._drawn[size]

    @property
    def alternative(self) -> str:
        """The words that stand for it where it cannot be seen."""
        return self.seen or self.description


# The page and the manifest in the folder of a report.
PAGE, MANIFEST = "report.html", "manifest.json"


@dataclass(frozen=True)
class Page:
    """A screen to be rendered: a template, and the values that only this question knows."""

    template: str
    values: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a question found.

    Attributes
    ----------
    screen : Page or None
        What is printed, if there is no kind: a template of text, and the texts that it prints.
    document : mapping
        What --json prints beside the manifest, if there is no kind; else the lines and all tables.
    tables : mapping of str to DataFrame
        All its numbers; the name of each is that of its file, without ".csv".
    drawings : sequence of Drawing
        In the order of the page.
    kind : str
        Of question, whose words and templates it takes; "" for one that prints lines of its own.
    options : mapping of str to DataFrame
        What `policysim.output.screen` looks up, if there is a kind; what has cells is written, too.
    choice : mapping of str to DataFrame
        What `choose` found, if the report goes with it: printed in place of the options, and first on the page.
    packages : mapping of str to str
        Versions of packages that not every run uses, such as those that a mechanism comes from.
    depends : mapping or None
        What the numbers depend on, for the manifest; None if the question cannot be run again from one.
    files : mapping of file name to bytes
        What is kept beside, such as the study.
    related : mapping of name to text
        The reports beside this one that are about the same patients, and why they say something else.
    named : mapping of label to file name
        Files whose paths are printed below the screen, "Report: PATH"; in the JSON document as `report`.
    exit_code : int
        0, or 4 where a check did not hold.
    """

    screen: Page | None = None
    document: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    drawings: Sequence[Drawing] = ()
    kind: str = ""
    options: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    choice: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)
    depends: Mapping[str, Any] | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    related: Mapping[str, str] = field(default_factory=dict)
    named: Mapping[str, str] = field(default_factory=dict)
    exit_code: int = 0

    @property
    def is_report(self) -> bool:
        """Whether its kind has a page and tables of its own; a choice alone has a screen."""
        return self.kind != "" and self.depends is not None

    @property
    def on_screen(self) -> tuple[Mapping[str, pd.DataFrame], str]:
        """The tables that the screen is made of, and the kind whose words it takes."""
        return (self.choice, "choice") if self.choice else (self.options, self.kind)
