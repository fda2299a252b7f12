"""Which figure files a command leaves behind, and the files themselves."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from policysim.options import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policysim.figures.sizes import SizeName

FileFormat: TypeAlias = Literal["svg", "png", "pdf"]
FORMATS: tuple[FileFormat, ...] = get_args(FileFormat)


@dataclass(frozen=True)
class FigureFiles:
    """The kinds of files, and what the figures are sized for; the page always has figures for a page."""

    formats: tuple[FileFormat, ...] = ("svg", "png")
    size: SizeName = "page"

    def of(
        self, name: str, draw: Callable[[SizeName], Figure], *, title: str = "", description: str = ""
    ) -> dict[str, bytes]:
        """The files of one figure by relative path: `draw` is given the size."""
        # matplotlib is the slowest import of all; options are read before it is needed.
        from policysim import figures  # noqa: PLC0415

        figure = draw(self.size)
        kinds: dict[FileFormat, Callable[[], bytes]] = {
            "svg": lambda: figures.to_svg(figure, title=title, description=description).encode(),
            "png": lambda: figures.to_png(figure),
            "pdf": lambda: figures.to_pdf(figure),
        }
        return {f"figures/{name}.{kind}": kinds[kind]() for kind in self.formats}


DEFAULT = FigureFiles()


def chosen_figures(chosen: argparse.Namespace) -> FigureFiles:
    """What --format and --figure-size ask for; UsageError for what does not exist."""
    formats = DEFAULT.formats
    if chosen.format is not None:
        asked = tuple(part.strip() for part in chosen.format.split(","))
        wrong = [name for name in asked if name not in FORMATS]
        if wrong:
            raise UsageError(f"--format must be among {', '.join(FORMATS)}, separated by commas, got {wrong[0]!r}")
        formats = tuple(kind for kind in FORMATS if kind in asked)
    sizes: tuple[SizeName, ...] = ("page", "column", "slide")
    if chosen.figure_size is None:
        return FigureFiles(formats)
    for size in sizes:
        if chosen.figure_size == size:
            return FigureFiles(formats, size)
    raise UsageError(f"--figure-size must be one of {', '.join(sizes)}, got {chosen.figure_size!r}")
