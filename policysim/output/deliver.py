"""A question asked, and its answer delivered: printed, or as one JSON document, and as a folder of files.

A folder has tables, figures, pages from templates, and the manifest of what they depend on. Templates escape what is
inserted, and write numbers with the filters of `policysim.numbers`.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from policysim.errors import OutputError, UsageError
from policysim.files.terminal import json_text, print_json, progress_bar, say
from policysim.files.whole_files import check_writable, is_unfinished, write_files
from policysim.numbers import to_csv
from policysim.output.answer_page import Vector, answer_page, captioned
from policysim.output.screen import printed, screen, slots
from policysim.progress import SILENT, Progress
from policysim.question.answer import MANIFEST, PAGE, Answer, Drawing, SizeName
from policysim.question.protocol import Question
from policysim.report.differences import same_numbers
from policysim.study.cells import COLUMNS
from policysim.words import WIDEST

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# Of manifests: those of another format are refused.
FORMAT = 2
LIBRARIES = ("policysim", "numpy", "scipy", "pandas", "gymnasium", "matplotlib")
FileFormat: TypeAlias = Literal["svg", "png", "pdf"]
FORMATS: tuple[FileFormat, ...] = get_args(FileFormat)


@dataclass(frozen=True)
class FigureFiles:
    """The kinds of files, what the figures are sized for, and which are drawn; the page has figures for a page.

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
            svg = figures.to_svg(figure, title=drawing.title, description=drawing.alternative)
            # Only a figure that has been drawn knows where its axes are.
            vectors[size] = Vector(svg, epsilon_markers(figure, drawing.epsilons) if drawing.epsilons else [])
        if "svg" in self.formats:
            made["svg"] = vectors[self.size].svg.encode()
        on_page = replace(vectors["page"], narrow=vectors["column"] if narrow else None)
        return {f"figures/{drawing.name}.{kind}": made[kind] for kind in self.formats}, on_page


DEFAULT = FigureFiles()


def folder_files(
    answer: Answer,
    command: str,
    wanted: FigureFiles = DEFAULT,
    folder: Path | None = None,
    progress: Progress = SILENT,
    *,
    given: Sequence[str] = (),
) -> dict[str, bytes]:
    """Everything that an answer leaves behind, by relative path, in the order of the page.

    Parameters
    ----------
    answer : Answer
        What a question found.
    command : str
        What asks it again on a command line, for people; the same in any folder.
    wanted : FigureFiles, optional
        The figure files; SVG and PNG for a page by default.
    folder : Path, optional
        Where an earlier run may have left the same tables: one of the same numbers (`same_numbers`) is taken as it is,
        so that the last bit of another processor's logarithm changes no file.
    progress : Progress, optional
        Told of each drawing and page.
    given : sequence of str, optional
        The options of the question that were given, and are not the study's own.
    """
    answer = replace(answer, drawings=wanted.chosen(answer.drawings))
    if answer.is_report:
        answer = replace(answer, drawings=captioned(answer))
    said = what_it_says(answer)
    files = {f"{name}.csv": to_csv(table) for name, table in written_tables(answer).items()}
    if folder:
        for name, table in files.items():
            with suppress(OSError):  # where none is there, or none that can be read
                old = (folder / name).read_bytes()
                files[name] = old if same_numbers(old, table) else table
    progress.expect(len(answer.drawings) + answer.is_report)
    vectors = {}
    for place, drawing in enumerate(answer.drawings):
        made, vectors[drawing.name] = wanted.of(drawing, narrow=place == 0)
        files |= made
        progress.advance()
    if answer.is_report:
        tables = [name for name in files if name.endswith(".csv")]
        files[PAGE] = answer_page(answer, command, said["versions"], tables, vectors).encode()
        progress.advance()
    if answer.depends is not None:
        results = {name: digest(content) for name, content in files.items()}
        first = {"format": FORMAT, "command": command, "given": list(given), "figures": asdict(wanted)}
        return {**files, **answer.files, MANIFEST: json_text({**first, **said, "results": results}).encode()}
    return {**files, **answer.files}


def written_tables(answer: Answer) -> dict[str, pd.DataFrame]:
    """The tables of a folder: of what is looked up, those with numbers; then all others."""
    cells = {
        name: table
        for name, table in answer.options.items()
        if answer.is_report and (name == "certainty" or set(COLUMNS) <= set(table.columns))
    }
    return {**cells, **answer.tables}


def what_it_says(answer: Answer) -> dict[str, Any]:
    """What the manifest says beside the command, the figures and the digests of the results."""
    versions = {"python": platform.python_version()}
    for name in LIBRARIES:
        # A copy that was not installed has none of its own.
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    findings = slots(*answer.on_screen)["findings"] if answer.is_report else []
    return {
        **(answer.depends or {}),
        "versions": {**versions, **answer.packages},
        "answer": [f"{line.name}: {line.text}" for line in findings],
    }


def digest(content: bytes) -> str:
    """SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


REPORTS = Path("reports")


def deliver(
    question: Question,
    *,
    command: str = "",
    given: Sequence[str] = (),
    out: Path | None = None,
    wanted: FigureFiles = DEFAULT,
    as_json: bool = False,
    full: bool = False,
) -> int:
    """Answer a question; returns the exit code.

    Parameters
    ----------
    question : Question
        What is asked.
    command : str, optional
        What asks it again on a command line, for people who read the page or the manifest.
    given : sequence of str, optional
        As for `folder_files`.
    out : Path, optional
        Where files go; among the reports, under the question's name, by default.
    wanted : FigureFiles, optional
        The figure files.
    as_json : bool, optional
        Print one JSON document in place of the screen.
    full : bool, optional
        Print the tables behind the screen, too.

    Raises
    ------
    OutputError
        If the folder cannot be written; before anything is computed where the question surely writes.
    """
    folder = REPORTS / question.name if out is None else out
    if question.writes:
        check_writable(folder)
    with progress_bar(question.unit) as progress:
        answer = question.answer(progress)
        files = folder_files(answer, command, wanted, folder, progress, given=given)
    if files:
        write_answer(folder, answer, files)
    paths = {label: (folder / name).as_posix() for label, name in answer.named.items()}
    if as_json:
        manifest = {"manifest": json.loads(files[MANIFEST])} if MANIFEST in files else {}
        document = answer.document
        if answer.is_report and not answer.choice:
            document = {name: table.to_dict(orient="records") for name, table in written_tables(answer).items()}
        # "Certificate file" -> "certificate_file"
        beside = {label.lower().replace(" ", "_"): path for label, path in paths.items()}
        print_json({**manifest, **document, **beside})
    else:
        say("\n".join(_printed(answer, paths, full=full)) + "\n")
    return answer.exit_code


def _printed(answer: Answer, paths: Mapping[str, str], *, full: bool) -> list[str]:
    """The lines of the screen, and where what was written stands: beside the last note where there is room."""
    text = printed(answer.screen) if answer.screen else screen(*answer.on_screen, full=full)
    lines = text.splitlines()
    for line in (f"{label}: {path}" for label, path in paths.items()):
        beside = f"{lines[-1]} {line}" if answer.kind and not full else ""
        lines = [*lines[:-1], beside] if 0 < len(beside) <= WIDEST else [*lines, line]
    return lines


def write_answer(folder: Path, answer: Answer, files: Mapping[str, bytes]) -> None:
    """Write what `folder_files` made; OutputError if a study or scenario that no run of ours wrote would be lost."""
    manifest = folder / MANIFEST
    if not manifest.exists() and not is_unfinished(manifest):
        results = answer.named.values()
        for name, content in answer.files.items():
            path = folder / name
            if name not in results and path.exists() and path.read_bytes() != content:
                raise OutputError(
                    f"{path} is there already, and is not the one that the report keeps: name another folder"
                )
    write_files(folder, files)
