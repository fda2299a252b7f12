"""What `policysim.report` returns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from policysim.report.contents import PAGE, Contents
from policysim.report.folder import folder_files, write_report
from policysim.report.page import notebook_part


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Report(Contents):
    """What a comparison found: `print(report)` shows the screen, a notebook the same lines and tables."""

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
        path = Path(folder)
        write_report(path, self, folder_files(self, folder=path))
        return path / PAGE

    def _repr_html_(self) -> str:
        """The words and the tables of the screen."""
        return notebook_part(self)

    def __str__(self) -> str:
        """The screen."""
        return self.printed.text()

    def __repr__(self) -> str:
        """What is in it."""
        return f"Report\n  tables: {', '.join(self.tables)}\n  {self.figures!r}"
