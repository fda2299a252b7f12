"""Which figure files a report has, and the files themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from policysim.question.answer import Drawing, SizeName

FileFormat: TypeAlias = Literal["svg", "png", "pdf"]
FORMATS: tuple[FileFormat, ...] = get_args(FileFormat)


@dataclass(frozen=True)
class FigureFiles:
    """The kinds of files, and what the figures are sized for; the page always has figures for a page."""

    formats: tuple[FileFormat, ...] = ("svg", "png")
    size: SizeName = "page"

    def of(self, drawing: Drawing) -> dict[str, bytes]:
        """The files of one drawing, by relative path."""
        # matplotlib is the slowest import of all; options are read before it is needed.
        from policysim import figures  # noqa: PLC0415

        figure = drawing.at(self.size)
        kinds: dict[FileFormat, Callable[[], bytes]] = {
            "svg": lambda: figures.to_svg(figure, title=drawing.title, description=drawing.description).encode(),
            "png": lambda: figures.to_png(figure),
            "pdf": lambda: figures.to_pdf(figure),
        }
        return {f"figures/{drawing.name}.{kind}": kinds[kind]() for kind in self.formats}


DEFAULT = FigureFiles()
