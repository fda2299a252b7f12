"""An answer as a folder of files: tables, figures, pages from templates, and the manifest of what they depend on.

Templates escape what is inserted, and write numbers with the filters of `policysim.question.shown`.
"""

from __future__ import annotations

import hashlib
import platform
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args
from weakref import WeakKeyDictionary

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from policysim.files.output import json_text, json_values
from policysim.question import words
from policysim.question.answer import Answer, Drawing, Page, SizeName, to_csv
from policysim.question.shown import FILTERS
from policysim.study.basis import hidden
from policysim.study.sweep import benefit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MANIFEST, STUDY = "manifest.json", "study.toml"
LIBRARIES = ("policysim", "numpy", "scipy", "pandas", "gymnasium", "matplotlib", "scikit-learn")
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
            "svg": lambda: as_svg(drawing, figure).encode(),
            "png": lambda: figures.to_png(figure),
            "pdf": lambda: figures.to_pdf(figure),
        }
        return {f"figures/{drawing.name}.{kind}": kinds[kind]() for kind in self.formats}


DEFAULT = FigureFiles()
# The SVG of each figure, forgotten with it.
_SAVED: WeakKeyDictionary[Figure, str] = WeakKeyDictionary()


def folder_files(answer: Answer, command: Sequence[str], wanted: FigureFiles = DEFAULT) -> dict[str, bytes]:
    """Everything that an answer leaves behind, by relative path, in the order of the page.

    Parameters
    ----------
    answer : Answer
        What a question found.
    command : sequence of str
        What asks it again, after "policysim"; the same in any folder.
    wanted : FigureFiles, optional
        The figure files; SVG and PNG for a page by default.
    """
    said = what_it_says(answer)
    files = {name: to_csv(table) for name, table in answer.tables.items()}
    for drawing in answer.drawings:
        files |= wanted.of(drawing)
    files |= {name: render(page, answer, command, said).encode() for name, page in answer.pages.items()}
    if answer.depends is None:
        return {**files, **answer.files}
    return {**files, **answer.files, MANIFEST: json_text(manifest_of(answer, command, files)).encode()}


def manifest_of(answer: Answer, command: Sequence[str], files: Mapping[str, bytes]) -> dict[str, Any]:
    """What the manifest says: the command, what the numbers depend on, the answer, and the digest of each result.

    Parameters
    ----------
    answer : Answer
        What a question found.
    command : sequence of str
        As for `folder_files`.
    files : mapping of str to bytes
        From `folder_files`; of these, neither the manifest itself nor what the answer keeps beside is a result.
    """
    results = {name: digest(content) for name, content in files.items() if name not in (MANIFEST, *answer.files)}
    manifest: dict[str, Any] = json_values({"command": list(command), **what_it_says(answer), "results": results})
    return manifest


def what_it_says(answer: Answer) -> dict[str, Any]:
    """The manifest but for the command and the digests of the results: the same in every run on one machine."""
    return {
        **(answer.depends or {}),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in LIBRARIES},
            **answer.packages,
        },
        "answer": [said.striptags() if isinstance(said, Markup) else said for said in answer.sentences],
    }


def render(page: Page, answer: Answer, command: Sequence[str], said: Mapping[str, Any]) -> str:
    """A page: one file, nothing fetched from anywhere."""
    return (
        page_environment()
        .get_template(page.template)
        .render(
            answer=answer.sentences,
            figures={
                drawing.name: (drawing, markup(drawing, answer.position, f"f{place}"))
                for place, drawing in enumerate(answer.drawings)
            },
            # Text to be copied: nothing in it is tied.
            manifest=escape(json_text(said)),
            versions=said["versions"],
            command=shlex.join(["policysim", *command]),
            # Whether it can be run where the manifest is.
            beside=STUDY in answer.files or STUDY not in command,
            words=words,
            **page.values,
        )
    )


def markup(drawing: Drawing, position: int, prefix: str) -> Markup:
    """A drawing as a part of a page.

    Parameters
    ----------
    drawing : Drawing
        The figure.
    position : int
        Of the slider: where the markers of epsilon stand.
    prefix : str
        Begins the names within it, so that no two drawings of a page share one.
    """
    from policysim.figures.embed import epsilon_markers, inline  # noqa: PLC0415 - matplotlib, the slowest import of all

    figure = drawing.at("page")
    vector = as_svg(drawing, figure)
    # Only a figure that has been drawn knows where its axes are.
    markers = epsilon_markers(figure, drawing.epsilons) if drawing.epsilons else []
    return inline(vector, prefix, markers=markers, position=position)


def as_svg(drawing: Drawing, figure: Figure) -> str:
    """A drawing's figure as SVG; that of the page is saved once, for its own file and for the page."""
    from policysim.figures.saving import to_svg  # noqa: PLC0415 - matplotlib, the slowest import of all

    if figure not in _SAVED:
        _SAVED[figure] = to_svg(figure, title=drawing.title, description=drawing.description)
    return _SAVED[figure]


def digest(content: bytes) -> str:
    """SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


def page_environment() -> Environment:
    """Templates of policysim; what is inserted is escaped, and a name that is missing is an error."""
    environment = Environment(
        loader=PackageLoader("policysim.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_tied,
    )
    environment.filters.update(FILTERS, named=words.level_name)
    environment.globals.update(hidden_by=hidden, about_benefit=benefit)
    return environment


def _tied(value: object) -> object:
    """Text in which "ε = 1" is never broken into two lines; markup and numbers as they are."""
    return value.replace(" = ", "\u00a0=\u00a0") if type(value) is str else value
