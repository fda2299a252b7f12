"""The folder of a report: its tables, figures, page and manifest; and what is printed of it."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from envs.toml_reader import require_file, text_of
from policysim.errors import OutputError, UsageError
from policysim.files.terminal import json_text, print_json, say
from policysim.files.whole_files import has_content, is_unfinished, write_files
from policysim.numbers import to_csv
from policysim.progress import SILENT, Progress
from policysim.report.contents import MANIFEST, PAGE, Contents, Drawing
from policysim.report.differences import same_numbers
from policysim.report.page import Vector, page
from policysim.words import WIDEST, SizeName

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Of manifests: those of another format are refused.
FORMAT = 4
LIBRARIES = ("policysim", "numpy", "scipy", "pandas", "gymnasium", "matplotlib")
FileFormat: TypeAlias = Literal["svg", "png", "pdf"]
FORMATS: tuple[FileFormat, ...] = get_args(FileFormat)
REPORTS = Path("reports")


@dataclass(frozen=True)
class FigureFiles:
    """The kinds of figure files, what the figures are sized for, and which are drawn; a page has figures for a page.

    Attributes
    ----------
    formats : tuple of str
        Among "svg", "png" and "pdf".
    size : {"page", "column", "slide"}
        Of the files.
    names : tuple of str
        Of the figures that are drawn; all of them if it is empty.
    """

    formats: tuple[FileFormat, ...] = ("svg", "png")
    size: SizeName = "page"
    names: tuple[str, ...] = ()

    def chosen(self, drawings: Sequence[Drawing]) -> list[Drawing]:
        """Those to draw, in their order; UsageError for a name that none has."""
        known = [drawing.name for drawing in drawings]
        for name in self.names:
            if name not in known:
                raise UsageError(f"--figures: must be among {', '.join(known)}, separated by commas, got {name!r}")
        return [drawing for drawing in drawings if drawing.name in (self.names or known)]

    def paths(self, drawing: Drawing) -> dict[str, FileFormat]:
        """The relative path of each file of a drawing, and its kind."""
        return {f"figures/{drawing.name}.{kind}": kind for kind in self.formats}

    def of(self, drawing: Drawing, *, narrow: bool = False) -> tuple[dict[str, bytes], Vector]:
        """The files of one drawing, by relative path, and what the page has: each size is drawn once."""
        # matplotlib is the slowest import of all; options are read before it is needed.
        from policysim import figures  # noqa: PLC0415
        from policysim.figures.writing import epsilon_markers  # noqa: PLC0415

        # SVG last: a figure keeps what it was drawn on last, and that of a PNG is a picture of some 10 MB.
        kinds: dict[FileFormat, Callable[[Figure], bytes]] = {"png": figures.to_png, "pdf": figures.to_pdf}
        made = {kind: kinds[kind](drawing.at(self.size)) for kind in self.formats if kind in kinds}
        sizes = {"page": True, "column": narrow, self.size: True}
        vectors = {}
        for size in (each for each in figures.SIZES if sizes.get(each)):
            figure = drawing.at(size)
            svg = figures.to_svg(figure, title=drawing.title, description=drawing.alternative or drawing.caption)
            # Only a figure that has been drawn knows where its axes are.
            vectors[size] = Vector(svg, epsilon_markers(figure, drawing.epsilons) if drawing.epsilons else [])
        if "svg" in self.formats:
            made["svg"] = vectors[self.size].svg.encode()
        on_page = replace(vectors["page"], narrow=vectors["column"] if narrow else None)
        return {path: made[kind] for path, kind in self.paths(drawing).items()}, on_page


DEFAULT = FigureFiles()


def folder_files(
    report: Contents, wanted: FigureFiles = DEFAULT, folder: Path | None = None, progress: Progress = SILENT
) -> dict[str, bytes]:
    """Everything that a report leaves behind, by relative path, in the order of the page.

    Parameters
    ----------
    report : Contents
        What was found.
    wanted : FigureFiles, optional
        The figure files; SVG and PNG for a page by default.
    folder : Path, optional
        Where an earlier run may have left the same tables: one of the same numbers (`same_numbers`) is taken as it is,
        so that the last bit of another processor's logarithm changes no file.
    progress : Progress, optional
        Reports each drawing and page.
    """
    drawings = wanted.chosen(report.drawings)
    files = {f"{name}.csv": to_csv(table) for name, table in report.tables.items()}
    for name, table in files.items() if folder else ():
        with suppress(OSError):  # where none is there, or none that can be read
            path = (folder or Path()) / name
            require_file(path)
            old = path.read_bytes()
            files[name] = old if same_numbers(old, table) else table
    progress.expect(len(drawings) + 1)
    vectors = {}
    for place, drawing in enumerate(drawings):
        made, vectors[drawing.name] = wanted.of(drawing, narrow=place == 0)
        files |= made
        progress.advance()
    versions = versions_of(report)
    files[PAGE] = page(report, drawings, vectors, versions, [name for name in files if name.endswith(".csv")]).encode()
    progress.advance()
    digests = report.data.digests()
    assert digests is not None  # a key that is missing is made
    manifest = {
        "format": FORMAT,
        "command": list(report.arguments),
        **report.identity,
        **report.data.document(digests),
        "versions": versions,
        "answer": [f"{line.label}: {line.text}" for line in report.printed.lines],
        "results": {name: digests.of(content) for name, content in files.items()},
    }
    return {**files, **report.files, MANIFEST: json_text(manifest).encode()}


def versions_of(report: Contents) -> dict[str, str]:
    """The versions of Python and of the packages that the report came from."""
    versions = {"python": platform.python_version()}
    for name in LIBRARIES:
        # A copy that was not installed has none of its own.
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {**versions, **report.packages}


def write_report(folder: Path, report: Contents, files: Mapping[str, bytes]) -> None:
    """Write what `folder_files` made, and remove what an earlier report had there that this one has not.

    OutputError if a file would be lost that no run of ours wrote.
    """
    manifest = folder / MANIFEST
    earlier = _results_of(manifest)
    if not manifest.exists() and not is_unfinished(manifest):
        # A run that was interrupted leaves no manifest, but its page or that of the run before it.
        own, named = report.files if (folder / PAGE).exists() else files, report.named.values()
        for name, content in own.items():
            path = folder / name
            if name not in named and os.path.lexists(path) and not has_content(path, content):
                raise OutputError(
                    f"{path} is there already, and is not the one that the report keeps: name another folder"
                )
    write_files(folder, files, report.data.files)
    digests = report.data.digests()
    for name, digest in earlier.items():
        path = folder / name
        if name in files or ".." in path.parts or Path(name).is_absolute() or path.parent.is_symlink():
            continue
        with suppress(OSError):  # it is gone, or a link, or may not be removed
            if digests is not None and digests.of_file(path) == digest:
                path.unlink()


def _results_of(manifest: Path) -> dict[str, str]:
    """The files of an earlier report and their digests; none of what is no manifest."""
    try:
        results = json.loads(text_of(manifest))["results"]
        return {str(name): str(digest) for name, digest in results.items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}


def print_report(
    report: Contents,
    files: Mapping[str, bytes],
    folder: Path,
    *,
    as_json: bool,
    full: bool = False,
    brief: bool = False,
) -> None:
    """Print the screen and where the files are, or one JSON document."""
    paths = {label: (folder / name).as_posix() for label, name in report.named.items() if name in files}
    if as_json:
        manifest = {"manifest": json.loads(files[MANIFEST])} if MANIFEST in files else {}
        # "Certificate file" -> "certificate_file"
        beside: dict[str, Any] = {label.lower().replace(" ", "_"): path for label, path in paths.items()}
        print_json({**manifest, **report.document(), **beside})
        return
    text = report.printed.text(full=full, brief=brief).rstrip("\n")
    for line in (f"{label}: {path}" for label, path in paths.items()):
        last = text.rpartition("\n")[2]
        text += f" {line}" if not full and len(f"{last} {line}") <= WIDEST else f"\n{line}"
    say(text + "\n")
