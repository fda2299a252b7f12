"""A question asked, and its answer delivered: printed, or as one JSON document, and as a folder of files.

A folder has tables, figures, pages from templates, and the manifest of what they depend on. Templates escape what is
inserted, and write numbers with the filters of `policysim.question.formats`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from policysim.files.terminal import say
from policysim.files.whole_folders import alone_in, json_text, print_json, progress_bar, write_files
from policysim.output.differences import same_numbers
from policysim.output.screen import screen
from policysim.question import OutputError, formats, words
from policysim.question.answer import CARD, Answer, Drawing, Page, SizeName
from policysim.question.formats import FILTERS, to_csv, unmarked
from policysim.question.protocol import SILENT, Progress, Question
from policysim.question.screen_lines import fitted
from policysim.study.basis import OUTSIDE, hidden
from policysim.study.gain import benefit
from policysim.study.study_reader import study_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policysim.figures.writing import Marker

MANIFEST = "manifest.json"
# Of manifests: those of another format are refused.
FORMAT = 2
LIBRARIES = ("policysim", "numpy", "scipy", "pandas", "gymnasium", "matplotlib", "scikit-learn")
FileFormat: TypeAlias = Literal["svg", "png", "pdf"]
FORMATS: tuple[FileFormat, ...] = get_args(FileFormat)


@dataclass(frozen=True)
class Vector:
    """A drawing as SVG, and where the page's markers of epsilon stand in it; and how it is drawn for narrow screens."""

    svg: str
    markers: Sequence[Marker]
    narrow: Callable[[], Vector] | None = None

    @classmethod
    def of(cls, drawing: Drawing, figure: Figure) -> Vector:
        """A figure of the drawing, with its words."""
        # matplotlib is the slowest import of all; options are read before it is needed.
        from policysim.figures.writing import epsilon_markers, to_svg  # noqa: PLC0415

        svg = to_svg(figure, title=drawing.title, description=f"{drawing.description} {drawing.seen}".strip())
        # Only a figure that has been drawn knows where its axes are.
        return cls(svg, epsilon_markers(figure, drawing.epsilons) if drawing.epsilons else [])

    @classmethod
    def on_page(cls, drawing: Drawing) -> Vector:
        """The figure of a page, with that of a column for where the page is narrow and its words would be too small."""
        from policysim.figures.looks import READABLE_WIDTH  # noqa: PLC0415

        wide = cls.of(drawing, drawing.at("page"))
        if drawing.at("page").get_figwidth() <= READABLE_WIDTH:
            return wide
        # Not every drawing has a place on a page.
        return replace(wide, narrow=lambda: cls.of(drawing, drawing.at("column")))


@dataclass(frozen=True)
class FigureFiles:
    """The kinds of files, and what the figures are sized for; the page always has figures for a page."""

    formats: tuple[FileFormat, ...] = ("svg", "png")
    size: SizeName = "page"

    def of(self, drawing: Drawing) -> tuple[dict[str, bytes], Vector]:
        """The files of one drawing, by relative path, and what the page has, which is not drawn again."""
        from policysim import figures  # noqa: PLC0415 - matplotlib, as above

        figure = drawing.at(self.size)
        # SVG last: a figure keeps what it was drawn on last, and that of a PNG is a picture of some 10 MB.
        kinds: dict[FileFormat, Callable[[Figure], bytes]] = {"png": figures.to_png, "pdf": figures.to_pdf}
        made = {kind: kinds[kind](figure) for kind in self.formats if kind in kinds}
        on_page = Vector.on_page(drawing)
        if "svg" in self.formats:
            made["svg"] = (on_page if self.size == "page" else Vector.of(drawing, figure)).svg.encode()
        return {f"figures/{drawing.name}.{kind}": made[kind] for kind in self.formats}, on_page


DEFAULT = FigureFiles()
# A page of an answer, from the command that asks it again, what the manifest says, and the drawings by name.
PageOf: TypeAlias = Callable[[Page, Answer, str, Mapping[str, Any], Mapping[str, Vector]], str]


def folder_files(
    answer: Answer,
    command: str,
    wanted: FigureFiles = DEFAULT,
    folder: Path | None = None,
    progress: Progress = SILENT,
    *,
    given: Sequence[str] = (),
    page_of: PageOf | None = None,
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
    page_of : callable, optional
        What makes a page; `render` by default.
    """
    said = what_it_says(answer)
    files = {f"{name}.csv": to_csv(table) for name, table in answer.tables.items()}
    if folder:
        for name, table in files.items():
            with suppress(OSError):  # where none is there, or none that can be read
                old = (folder / name).read_bytes()
                files[name] = old if same_numbers(old, table) else table
    progress.expect(len(answer.drawings) + len(answer.pages))
    vectors = {}
    for drawing in answer.drawings:
        made, vectors[drawing.name] = wanted.of(drawing)
        files |= made
        progress.advance()
    for name, page in answer.pages.items():
        files[name] = (page_of or render)(page, answer, command, said, vectors).encode()
        progress.advance()
    if answer.depends is not None:
        results = {name: digest(content) for name, content in files.items()}
        first = {"format": FORMAT, "command": command, "given": list(given), "figures": asdict(wanted)}
        return {**files, **answer.files, MANIFEST: json_text({**first, **said, "results": results}).encode()}
    return {**files, **answer.files}


def what_it_says(answer: Answer) -> dict[str, Any]:
    """What the manifest says beside the command, the figures and the digests of the results."""
    versions = {"python": platform.python_version()}
    for name in LIBRARIES:
        # Not everybody has those of an extra.
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    # What the drawing shows that stands for the report, for readers who cannot see it; "" without one.
    seen = next((drawing.alternative for drawing in answer.drawings if drawing.name == CARD), "")
    return {
        **(answer.depends or {}),
        "versions": {**versions, **answer.packages},
        **({} if answer.headline is None else {"headline": {**asdict(answer.headline), "seen": seen}}),
        "answer": [said.striptags() if isinstance(said, Markup) else said for said in answer.sentences],
    }


def render(page: Page, answer: Answer, command: str, said: Mapping[str, Any], vectors: Mapping[str, Vector]) -> str:
    """A page: one file, nothing fetched from anywhere."""
    styles: dict[str, str] = {}
    values = {
        "answer": answer.sentences,
        "headline": answer.headline,
        "figures": {
            drawing.name: (drawing, Placed(vectors[drawing.name], answer.position, f"f{place}", styles))
            for place, drawing in enumerate(answer.drawings)
            if drawing.name != CARD
        },
        "versions": said["versions"],
        "command": command,
        # Whether it can be run where the manifest is.
        "beside": bool(answer.files) or said.get("study", {}).get("name") in study_names(),
        "formats": formats,
        "words": words,
        **page.values,
    }
    return page_text(page.template, values, styles)


def page_text(template: str, values: Mapping[str, Any], styles: dict[str, str]) -> str:
    """A page from a template, whose figures add their rules to `styles`, and so do elements by `look`."""

    def look(rule: str) -> str:
        return styles.setdefault(rule, f"s_{len(styles)}")

    def rules() -> Markup:
        # After all that adds to them.
        return Markup("\n".join(f".{name}{{{rule}}}" for rule, name in styles.items()))

    return page_environment().get_template(template).render(values, look=look, rules=rules)


def content_policy(style: str, script: str = "") -> Markup:
    """What a browser may do with a page: take its own style and script, known by their digests, and nothing else."""
    allowed = {"style-src": style, "script-src": script}
    digests = {
        name: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for name, text in allowed.items()
        if text
    }
    own = [f"{name} 'sha256-{digest}'" for name, digest in digests.items()]
    return Markup("; ".join(["default-src 'none'", *own, "base-uri 'none'", "form-action 'none'"]))


@dataclass(frozen=True)
class Placed:
    """A drawing where a template may place it; of those that are not placed no style is named.

    Attributes
    ----------
    vector : Vector
        The figure for a page.
    position : int
        Of the slider: where the markers of epsilon stand.
    prefix : str
        Begins the names within it.
    styles : dict
        Those of the drawings before it on the page, to which its own are added.
    """

    vector: Vector
    position: int
    prefix: str
    styles: dict[str, str]

    def __html__(self) -> Markup:
        """The drawing as a part of a page; no two drawings of a page share a name within it."""
        from policysim.figures.writing import inline  # noqa: PLC0415 - matplotlib, as above

        place = partial(inline, position=self.position, styles=self.styles)
        wide = place(self.vector.svg, self.prefix, markers=self.vector.markers)
        if self.vector.narrow is None:
            return wide
        small = self.vector.narrow()
        narrow = place(small.svg, f"{self.prefix}n", markers=small.markers, icons=self.prefix)
        return Markup(f'<div class="wide">{wide}</div><div class="narrow">{narrow}</div>')


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
    environment.filters.update(FILTERS, named=words.level_name, contents=contents)
    environment.globals.update(
        hidden_by=hidden, outside_epsilon=OUTSIDE, about_benefit=benefit, content_policy=content_policy
    )
    return environment


class Entry(NamedTuple):
    """A line of a page's contents: where it leads, what it says, and whether it begins a layer of the page."""

    id: str
    text: str
    layer: bool


_HEADING = re.compile(r'<(h2|hgroup) id="([^"]+)"[^>]*>(?:<(?:p|h3)[^>]*>)?(.*?)</')


def contents(page: str) -> list[Entry]:
    """The contents of a page, from its headings that have an identifier: of a section, the line above its finding."""
    return [Entry(name, unmarked(Markup(text)), tag == "h2") for tag, name, text in _HEADING.findall(page)]


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
    page_of: PageOf | None = None,
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
    page_of : callable, optional
        As for `folder_files`.

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
            files = folder_files(answer, command, wanted, folder, progress, given=given, page_of=page_of)
        if files and not question.writes:
            claims.enter_context(alone_in(folder))
        write_answer(folder, answer, files)
    paths = {label: (folder / name).as_posix() for label, name in answer.named.items()}
    if as_json:
        manifest = {"manifest": json.loads(files[MANIFEST])} if MANIFEST in files else {}
        print_json({**manifest, **answer.document, **{_key(label): path for label, path in paths.items()}})
    else:
        lines = screen(answer.options, answer.kind).splitlines() if answer.options else answer.screen
        shown = (part for line in lines for part in fitted(line))
        say("\n".join([*shown, *(f"{label}: {path}" for label, path in paths.items())]) + "\n")
    return answer.exit_code


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


def _key(label: str) -> str:
    """Of a path in the JSON document: "Decision record" -> "decision_record"."""
    return label.lower().replace(" ", "_")
