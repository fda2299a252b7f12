"""A question asked, and its answer delivered: printed, or as one JSON document, and as a folder of files.

A folder has tables, figures, pages from templates, and the manifest of what they depend on. Templates escape what is
inserted, and write numbers with the filters of `policysim.question.formats`.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from policysim.files.terminal import say
from policysim.files.whole_folders import alone_in, json_text, print_json, progress_bar, write_files
from policysim.output.answer_page import Vector, answer_page, captioned, card_of, content_policy, record_page
from policysim.output.differences import same_numbers
from policysim.output.screen import printed, screen, slots
from policysim.question import OutputError
from policysim.question.answer import CARD, MANIFEST, PAGE, Answer, Drawing, Headline, SizeName
from policysim.question.formats import to_csv, unmarked
from policysim.question.protocol import SILENT, Progress, Question, UsageError
from policysim.question.words import WIDEST
from policysim.study.cells import COLUMNS

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
        """Those to draw, in their order; UsageError for a name that none has. A card is no choice."""
        known = [drawing.name for drawing in drawings if drawing.name != CARD]
        for name in self.names:
            if name not in known:
                raise UsageError(f"--figures: must be among {', '.join(known)}, separated by commas, got {name!r}")
        return [drawing for drawing in drawings if drawing.name in (self.names or known) or drawing.name == CARD]

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
        answer = replace(answer, drawings=[*captioned(answer), *card_of(answer.options)])
    said = what_it_says(answer)
    files = {f"{name}.csv": to_csv(table) for name, table in written_tables(answer).items()}
    if folder:
        for name, table in files.items():
            with suppress(OSError):  # where none is there, or none that can be read
                old = (folder / name).read_bytes()
                files[name] = old if same_numbers(old, table) else table
    progress.expect(len(answer.drawings) + len(answer.pages) + answer.is_report)
    vectors = {}
    for place, drawing in enumerate(answer.drawings):
        made, vectors[drawing.name] = wanted.of(drawing, narrow=place == 0 and drawing.name != CARD)
        files |= made
        progress.advance()
    for name, page in answer.pages.items():
        files[name] = record_page(page, answer, said).encode()
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
    # What the drawing shows that stands for the report, for readers who cannot see it; "" without one.
    seen = next((drawing.alternative for drawing in answer.drawings if drawing.name == CARD), "")
    headline, lines = answer.headline, answer.sentences
    if answer.is_report:
        found = slots(answer.options, answer.kind)
        headline = Headline(str(found["finding"]))
        lines = [f"{line.name}: {line.text}" for line in found["findings"]]
    return {
        **(answer.depends or {}),
        "versions": {**versions, **answer.packages},
        **({} if headline is None else {"headline": {**asdict(headline), "seen": seen}}),
        "answer": [said.striptags() if isinstance(said, Markup) else str(said) for said in lines],
    }


def page_text(template: str, values: Mapping[str, Any], styles: Mapping[str, str]) -> str:
    """A page from a template; `styles` are the rules of its figures, and their names."""
    rules = Markup("\n".join(f".{name}{{{rule}}}" for rule, name in styles.items()))
    return page_environment().get_template(template).render(values, rules=rules)


def digest(content: bytes) -> str:
    """SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


@cache
def page_environment() -> Environment:
    """Templates of policysim, read once; what is inserted is escaped, and a name that is missing is an error."""
    environment = Environment(
        loader=PackageLoader("policysim.output"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_tied,
    )
    environment.filters["contents"] = contents
    environment.globals["content_policy"] = content_policy
    return environment


class ContentsLine(NamedTuple):
    """A line of a page's contents: where it leads, what it says, and whether it begins a layer of the page."""

    id: str
    text: str
    layer: bool


_HEADING = re.compile(r'<(h2|hgroup) id="([^"]+)"[^>]*>(?:<(?:p|h3)[^>]*>)?(.*?)</')


def contents(page: str) -> list[ContentsLine]:
    """The contents of a page, from its headings that have an identifier: of a section, the line above its finding."""
    return [ContentsLine(name, unmarked(Markup(text)), tag == "h2") for tag, name, text in _HEADING.findall(page)]


def _tied(value: object) -> object:
    """Text in which "ε = 1" is never broken into two lines; markup and numbers as they are."""
    return value.replace(" = ", "\u00a0=\u00a0") if type(value) is str else value


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
        If the folder cannot be written, or another run is writing to it; found out before anything is computed where
        the question surely writes.
    """
    folder = REPORTS / question.name if out is None else out
    with ExitStack() as claims:
        if question.writes:
            claims.enter_context(alone_in(folder))
        with progress_bar(question.unit) as progress:
            answer = question.answer(progress)
            files = folder_files(answer, command, wanted, folder, progress, given=given)
        if files and not question.writes:
            claims.enter_context(alone_in(folder))
        write_answer(folder, answer, files)
    paths = {label: (folder / name).as_posix() for label, name in answer.named.items()}
    if as_json:
        manifest = {"manifest": json.loads(files[MANIFEST])} if MANIFEST in files else {}
        document = answer.document
        if answer.is_report:
            document = {name: table.to_dict(orient="records") for name, table in written_tables(answer).items()}
        # "Decision record" -> "decision_record"
        beside = {label.lower().replace(" ", "_"): path for label, path in paths.items()}
        print_json({**manifest, **document, **beside})
    else:
        say("\n".join(_printed(answer, paths, full=full)) + "\n")
    return answer.exit_code


def _printed(answer: Answer, paths: Mapping[str, str], *, full: bool) -> list[str]:
    """The lines of the screen, and where what was written stands: beside the last note where there is room."""
    text = printed(answer.screen) if answer.screen else screen(answer.options, answer.kind, full=full)
    lines = text.splitlines()
    for line in (f"{label}: {path}" for label, path in paths.items()):
        beside = f"{lines[-1]} {line}" if answer.kind and not full else ""
        lines = [*lines[:-1], beside] if 0 < len(beside) <= WIDEST else [*lines, line]
    return lines


def write_answer(folder: Path, answer: Answer, files: Mapping[str, bytes]) -> None:
    """Write what `folder_files` made; OutputError if a study or scenario that no run of ours wrote would be lost."""
    results = answer.named.values()
    for name, content in answer.files.items():
        path = folder / name
        if name in results:
            continue
        if path.exists() and not (folder / MANIFEST).exists() and path.read_bytes() != content:
            raise OutputError(f"{path} is there already, and is not the one that the report keeps: name another folder")
    write_files(folder, files)
