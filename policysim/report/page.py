"""The page of a report: its words, a slider of ε and its figures; one file that fetches nothing.

The slider swaps answers: the words and tables are rendered once for each ε, and handed to the script.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from policysim.numbers import plain, six_digits
from policysim.report.contents import MANIFEST, Contents, Drawing
from policysim.report.glossary import GLOSSARY
from policysim.report.screen import Screen
from policysim.study.study_reader import SCRIPTS

if TYPE_CHECKING:
    from policysim.figures.writing import Marker

TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Vector:
    """A drawing as SVG, and where the page's markers of epsilon stand in it; of the first, also for narrow screens."""

    svg: str
    markers: Sequence[Marker]
    narrow: Vector | None = None


@cache
def engine() -> Environment:
    """Jinja with our templates: what is inserted is escaped."""
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def page(
    report: Contents,
    drawings: Sequence[Drawing],
    vectors: Mapping[str, Vector],
    versions: Mapping[str, str],
    files: Sequence[str],
) -> str:
    """The page.

    Parameters
    ----------
    report : Contents
        What was found.
    drawings : sequence of Drawing
        Those on the page, in their order.
    vectors : mapping of str to Vector
        The drawings by name.
    versions : mapping of str to str
        Of Python and its packages.
    files : sequence of str
        The tables of the folder.
    """
    styles: dict[str, str] = {}
    position = sorted(report.screens).index(report.epsilon) if report.screens else 0
    figures = [
        {"drawing": drawing, "svg": placed(vectors[drawing.name], position, f"f{place}", styles)}
        for place, drawing in enumerate(drawings)
    ]
    rules = "\n".join(f".{name}{{{rule}}}" for rule, name in styles.items())
    style = "\n".join([_text("figures.css"), _text("answer.css"), _text("page.css"), rules])
    script = _text("page.js")
    # JSON that ends no script.
    strings = json.dumps(moving(report), ensure_ascii=False).replace("<", "\\u003c")
    return (
        engine()
        .get_template("page.html")
        .render(
            report=report,
            screen=report.screen,
            figures=figures,
            style=Markup(style),
            script=Markup(script),
            moving=Markup(strings),
            policy=content_policy(style, script),
            files=files,
            manifest=MANIFEST,
            scripts=SCRIPTS,
            versions=versions,
            shown=plain(report.epsilon),
            glossary=GLOSSARY,
        )
    )


def answer_part(screen: Screen) -> str:
    """The words and tables of a screen as HTML."""
    return engine().get_template("answer.html").render(screen=screen)


def notebook_part(report: Contents) -> str:
    """The words and tables of a report for a notebook, with their style."""
    style = f".policysim {{\n{_text('answer.css')}}}"
    return f'<div class="policysim"><style>{style}</style>\n{answer_part(report.printed)}</div>'


def moving(report: Contents) -> dict[str, Any]:
    """What the controls change.

    Returns
    -------
    dict
        position (of the stated epsilon), epsilons (as the address has them), labels (as they are printed), and answers:
        the HTML of the answer at each; and the page's data.
    """
    epsilons = sorted(report.screens) or [report.epsilon]
    return {
        "position": epsilons.index(report.epsilon),
        "epsilons": [six_digits(epsilon) for epsilon in epsilons],
        "labels": [plain(epsilon) for epsilon in epsilons],
        "answers": [answer_part(report.screens.get(epsilon, report.screen)) for epsilon in epsilons],
        **report.page_data,
    }


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


def placed(vector: Vector, position: int, prefix: str, styles: dict[str, str]) -> Markup:
    """A drawing as a part of a page; no two drawings of a page share a name within it.

    Parameters
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
    # matplotlib is the slowest import of all; options are read before it is needed.
    from policysim.figures.writing import inline  # noqa: PLC0415

    wide = inline(vector.svg, prefix, markers=vector.markers, position=position, styles=styles)
    if vector.narrow is None:
        return wide
    small = vector.narrow
    narrow = inline(small.svg, f"{prefix}n", markers=small.markers, position=position, styles=styles)
    return Markup(f'<div class="wide">{wide}</div><div class="narrow">{narrow}</div>')


def _text(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")
