"""What `policysim.output` returns: the tables and figures of an answer, in Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from policysim.output.answer_page import notebook_part
from policysim.output.deliver import folder_files, write_answer, written_tables
from policysim.output.screen import screen
from policysim.question.answer import PAGE, Answer, Drawing

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class Figures(Mapping[str, "Figure"]):
    """The figures of a report by their names; each is drawn when it is first asked for.

    Parameters
    ----------
    drawings : mapping of str to Drawing
        What is drawn.
    """

    def __init__(self, drawings: Mapping[str, Drawing]) -> None:
        self._drawings = drawings

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


class Report:
    """What a comparison found.

    Attributes
    ----------
    tables : dict of str to DataFrame
        By name: "comparison" (as `policysim.compare` returns it), "findings", and others as far as they apply, such as
        "beliefs", "frontier", "examples" and "patient-losses". Numbers have the digits that files have.
    figures : mapping of str to matplotlib Figure
        By name, such as "frontier"; each is drawn when it is first asked for.

    Notes
    -----
    print(report) shows the screen. Of one decision and of a log this is the table of options, whose cells are in
    `tables["options"]` (row, option, epsilon, value, low, high, format), with the verdicts of `tables["certainty"]`.
    A notebook shows the same.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.tables: dict[str, pd.DataFrame] = written_tables(answer)
        self.figures = Figures({drawing.name: drawing for drawing in answer.drawings})

    def save(self, folder: str | Path) -> Path:
        """Write the page `report.html`, the tables as CSV, the figures as SVG and PNG, and `manifest.json`.

        Parameters
        ----------
        folder : str or Path
            Made if needed.

        Returns
        -------
        Path
            The page.

        Raises
        ------
        OutputError
            If the folder cannot be written, or a study of somebody else's is there.
        """
        path, answer = Path(folder), self._answer
        # Of a problem of one's own nothing on a command line asks again.
        command = "policysim reproduce manifest.json" if answer.depends else ""
        write_answer(path, answer, folder_files(answer, command, folder=path))
        return path / PAGE

    def _repr_html_(self) -> str:
        """The six lines and the table of options."""
        return notebook_part(self._answer.options, self._answer.kind)

    def __str__(self) -> str:
        """The screen."""
        return screen(self._answer.options, self._answer.kind)

    def __repr__(self) -> str:
        """What is in it."""
        return f"Report\n  tables: {', '.join(self.tables)}\n  {self.figures!r}"
