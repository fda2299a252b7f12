"""An answer as a folder of files: tables, figures, pages, and the manifest of what they depend on."""

from __future__ import annotations

import hashlib
import json
import platform
import shlex
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from markupsafe import Markup, escape

from policysim import words
from policysim.question.answer import Answer, Drawing, Page
from policysim.report.csv_file import to_csv
from policysim.report.environment import page_environment
from policysim.report.figure_files import DEFAULT, FigureFiles

MANIFEST, STUDY = "manifest.json", "study.toml"
LIBRARIES = ("policysim", "numpy", "scipy", "pandas", "gymnasium", "matplotlib", "scikit-learn")


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
    manifest = {"command": list(command), **said, "results": {name: digest(content) for name, content in files.items()}}
    return {**files, **answer.files, MANIFEST: _text(manifest).encode()}


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
            manifest=escape(_text(said)),
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
    from policysim import figures  # noqa: PLC0415 - matplotlib, the slowest import of all
    from policysim.figures.embed import inline  # noqa: PLC0415
    from policysim.figures.markers import epsilon_markers  # noqa: PLC0415

    figure = drawing.at("page")
    vector = figures.to_svg(figure, title=drawing.title, description=drawing.description)
    # Only a figure that has been drawn knows where its axes are.
    markers = epsilon_markers(figure, drawing.epsilons) if drawing.epsilons else []
    return inline(vector, prefix, markers=markers, position=position)


def digest(content: bytes) -> str:
    """SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


def _text(manifest: Mapping[str, Any]) -> str:
    return json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
