"""What a report holds: findings, tables, figures, and the words that screen and page show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from policysim.files.keyed_digests import DataFiles
from policysim.numbers import written
from policysim.report.findings import Findings
from policysim.report.screen import Screen
from policysim.words import SizeName

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The page and the manifest in the folder of a report.
PAGE, MANIFEST = "report.html", "manifest.json"


@dataclass(frozen=True)
class Drawing:
    """A figure with its words.

    Attributes
    ----------
    name : str
        Of its files.
    draw : callable
        The figure, laid out for a size.
    title, caption : str
        What it is about; what is drawn, and how.
    alternative : str
        What is seen, for readers who cannot see it: the numbers of this run.
    file : str
        The table of its numbers, such as "comparison.csv".
    epsilons : tuple of float
        The positions of the page's slider, if epsilon is its horizontal axis.
    """

    name: str
    draw: Callable[[SizeName], Figure]
    title: str = ""
    caption: str = ""
    alternative: str = ""
    file: str = ""
    epsilons: tuple[float, ...] = ()
    _drawn: dict[SizeName, Figure] = field(default_factory=dict, init=False, repr=False, compare=False)

    def at(self, size: SizeName) -> Figure:
        """The figure, laid out for a size; drawn once for each."""
        if size not in self._drawn:
            self._drawn[size] = self.draw(size)
        return self._drawn[size]


class Figures(Mapping[str, "Figure"]):
    """The figures of a report by their names; each is drawn when it is first asked for."""

    def __init__(self, drawings: Sequence[Drawing]) -> None:
        self._drawings = {drawing.name: drawing for drawing in drawings}

    def __getitem__(self, name: str) -> Figure:
        """Laid out for a page; KeyError for an unknown name."""
        return self._drawings[name].at("page")

    def __iter__(self) -> Iterator[str]:
        """The names, in the order of a page."""
        return iter(self._drawings)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._drawings)

    def __repr__(self) -> str:
        """The names."""
        return f"figures: {', '.join(self)}"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Contents:
    """What a comparison found, in words, numbers and figures.

    Attributes
    ----------
    findings : Findings
        Each number that is printed.
    screen : Screen
        The words.
    more_tables : mapping of str to DataFrame
        Those beside the findings, as far as they apply, such as "comparison" (as `policysim.compare` returns it).
    name : str
        Of its folder among the reports.
    before : Screen or None
        Words that are printed in place of the screen, and stand before it on the page: which ε was chosen, of a report
        at that ε.
    screens : mapping of float to Screen
        The words at each ε of the page's slider; empty for a page without one.
    epsilon : float
        Where the slider starts.
    page_data : mapping
        What the page's other controls show, as far as it has them: "weight" and "compare"
        (`policysim.decision.page_data`).
    drawings : sequence of Drawing
        The figures, in the order of the page.
    identity : mapping
        What the numbers depend on, for the manifest, beside the data: the study and its files' digests.
    data : DataFiles
        The files of patients' data, of which the manifest has digests, too: what is written is open to nobody else than
        they are.
    arguments : tuple of str
        The command line that makes it again, such as ("compare", "covid"); empty where none does.
    packages : mapping of str to str
        Versions of packages that not every run uses.
    files : mapping of str to bytes
        What is kept beside, such as the study.
    related : mapping of str to str
        The reports beside this one that are about the same patients, and why they say something else.
    named : mapping of str to str
        Files whose paths are printed below the screen, by their label.
    exit_code : int
        0, or 4 where a check did not hold.
    """

    findings: Findings
    screen: Screen
    more_tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    drawings: Sequence[Drawing] = ()
    name: str = "problem"
    before: Screen | None = None
    screens: Mapping[float, Screen] = field(default_factory=dict)
    epsilon: float = 1.0
    page_data: Mapping[str, Any] = field(default_factory=dict)
    identity: Mapping[str, Any] = field(default_factory=dict)
    data: DataFiles = field(default_factory=DataFiles)
    arguments: tuple[str, ...] = ()
    packages: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    related: Mapping[str, str] = field(default_factory=dict)
    named: Mapping[str, str] = field(default_factory=lambda: {"Report": PAGE})
    exit_code: int = 0

    @property
    def printed(self) -> Screen:
        """The words that a terminal shows."""
        return self.before or self.screen

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """All numbers by the names of their files, without ".csv"; with the digits that files have."""
        return {name: written(table) for name, table in {**self.findings.tables, **self.more_tables}.items()}

    @property
    def figures(self) -> Figures:
        """The figures by name, such as "frontier"; each is drawn when it is first asked for."""
        return Figures(self.drawings)

    def document(self) -> dict[str, Any]:
        """What `--json` prints beside the manifest: the lines, the details, and all tables by their names."""
        details: dict[str, Any] = {} if self.findings.details is None else {**vars(self.findings.details)}
        frames = {name: details.pop(name) for name in list(details) if isinstance(details[name], pd.DataFrame)}
        details.pop("tables", None)  # those that have rows are files, too
        return {
            "title": self.printed.title,
            "answer": {line.label: line.whole for line in self.printed.lines},
            "warnings": list(self.findings.warnings),
            "details": as_values(details),
            **as_values({**frames, **self.tables}),
        }


def as_values(value: Any) -> Any:
    """A value as a JSON document has it: tables are lists of rows, dataclasses are mappings."""
    if isinstance(value, pd.DataFrame):
        return written(value).to_dict("records")
    if is_dataclass(value) and not isinstance(value, type):
        return {key: as_values(getattr(value, key)) for key in value.__dataclass_fields__}
    if isinstance(value, Mapping):
        return {str(key): as_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_values(item) for item in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
