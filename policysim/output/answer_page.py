"""The page of an answer: its screen, then a slider of ε and the figures; one file that fetches nothing.

The slider swaps strings: the part of the page above the figures is made from its template once for each ε, and what
differs there is handed to the script. Nothing on the page is formatted or computed in a browser.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pandas as pd
from markupsafe import Markup

from policysim.numbers import six_digits
from policysim.output.screen import TEMPLATES, engine, page_part, sections, slots
from policysim.question.answer import MANIFEST, Answer, Drawing
from policysim.study.cells import Cells, Label, Sketch, filled_words, words_of
from policysim.study.certainty import RESTATED
from policysim.study.study_reader import SCRIPTS

if TYPE_CHECKING:
    from policysim.figures.writing import Marker

# What differs between epsilons: whatever a template marks in this way.
MOVING = re.compile(r"<(\w+)\b[^>]* data-at>(.*?)</\1>", re.DOTALL)


class Own(Label):
    """What stands on the page as it is: its style, its script, and its drawings."""

    __slots__ = ()

    def __html__(self) -> str:
        """The same."""
        return str(self)


def answer_page(
    answer: Answer, command: str, versions: Mapping[str, str], files: Sequence[str], vectors: Mapping[str, Vector]
) -> str:
    """The page.

    Parameters
    ----------
    answer : Answer
        Of some kind.
    command : str
        What asks it again; "" for nothing.
    versions : mapping of str to str
        Of Python and its packages.
    files : sequence of str
        The tables of the folder.
    vectors : mapping of str to Vector
        The drawings by name.
    """
    tables, kind = answer.options, answer.kind
    cell = Cells(tables)
    found, words = slots(tables, kind, cell), words_of(kind)
    listed = sections(tables, kind, found)
    styles: dict[str, str] = {}
    figures = list(_figures(answer, found, words.figures, vectors, styles))
    colours = _own("figures.css")
    rules = "\n".join(f".{name}{{{rule}}}" for rule, name in styles.items())
    style = "\n".join([colours, _own("options.css"), _own("answer.css"), rules])
    script = _own("answer.js")
    choice = slots(answer.choice, "choice", Cells(answer.choice, prefix="choice-")) if answer.choice else None
    # JSON that ends no script.
    strings = json.dumps(moving(tables, kind, cell), ensure_ascii=False).replace("<", "\\u003c")
    return (
        engine(html=True)
        .get_template("answer.html")
        .render(
            found,
            style=Own(style),
            script=Own(script),
            moving=Own(strings),
            policy=Own(content_policy(style, script)),
            # Within a tag a number is not marked.
            summary=Label(found["finding"]),
            choice=[Own(engine(html=True).get_template("choice-options.html").render(choice))] if choice else [],
            parts={name: f"{kind}-{name}.html" for name in ("about", "options", "notes")},
            first_figure=figures[:1],
            figures=figures[1:],
            opened=[each for each in listed if each.shown],
            closed=[each for each in listed if not each.shown],
            glossary=[
                SimpleNamespace(term=Label(term), meaning=filled_words(meaning, found))
                for term, meaning in words.glossary.items()
            ],
            tables=[Label(name) for name in files],
            related=[
                SimpleNamespace(
                    name=Label(name), page=Label("README.md" if name in SCRIPTS else "report.html"), why=Label(why)
                )
                for name, why in answer.related.items()
            ],
            manifest=Label(MANIFEST),
            commands=[Label(command)] if command else [],
            versions=[Label(f"{name} {number}") for name, number in versions.items()],
        )
    )


def captioned(answer: Answer) -> list[Drawing]:
    """The drawings of an answer, in the order of the page, with the words that its kind of question has for them."""
    found, sketches = slots(answer.options, answer.kind), words_of(answer.kind).figures
    drawn = {each.name: each for each in answer.drawings}
    assert drawn.keys() <= {words.name for words in sketches}
    return [
        replace(
            drawn[words.name],
            title=str(filled_words(words.title, found)),
            description=str(filled_words(words.caption, found)),
        )
        for words in sketches
        if words.name in drawn
    ]


def _figures(
    answer: Answer,
    found: Mapping[str, Any],
    sketches: Sequence[Sketch],
    vectors: Mapping[str, Vector],
    styles: dict[str, str],
) -> Iterator[SimpleNamespace]:
    """The figures that there are, in the order of the page; their rules are added to the styles."""
    drawn = {each.name: each for each in answer.drawings}
    for place, words in enumerate(each for each in sketches if each.name in drawn):
        title = filled_words(words.title, found)
        markup = placed(vectors[words.name], found["epsilons"].index(found["epsilon"]), f"f{place}", styles)
        yield SimpleNamespace(
            name=Label(words.name),
            title=title,
            subject=Label(title),
            caption=filled_words(words.caption, found),
            file=Label(words.file),
            alternative=Label(drawn[words.name].alternative),
            svg=Own(markup),
        )


def notebook_part(tables: Mapping[str, pd.DataFrame], kind: str) -> str:
    """The six lines and the tables for a notebook, with their style."""
    style = f".policysim {{\n{_own('options.css')}}}"
    return f'<div class="policysim"><style>{style}</style>\n{page_part(slots(tables, kind), kind)}</div>'


def moving(tables: Mapping[str, pd.DataFrame], kind: str, cell: Cells) -> dict[str, Any]:
    """What the slider changes, from the tables and their cells.

    Returns
    -------
    dict
        position (of the stated epsilon), epsilons (as the address has them), labels and shown (as they are printed, the
        latter as HTML), and slots: the place of each changing part among all that are marked, and its HTML at each
        epsilon.
    """
    stated = slots(tables, kind, cell)
    epsilons, parts = stated["epsilons"], []
    for epsilon in epsilons:
        found = stated
        if epsilon != stated["epsilon"]:
            found = slots(RESTATED[kind](tables, epsilon), kind, cell)
            # What is said of the stated epsilon only stands at every other, too.
            pairs = zip(stated["findings"], found["findings"], strict=True)
            found["findings"] = [first if first.stays else now for first, now in pairs]
        parts.append([inner for _, inner in MOVING.findall(page_part(found, kind))])
    shown = [stated["cell"]("facts", "at", "", epsilon) for epsilon in epsilons]
    texts = enumerate(zip(*parts, strict=True))
    return {
        "position": epsilons.index(stated["epsilon"]),
        "epsilons": [six_digits(epsilon) for epsilon in epsilons],
        "labels": [str(each) for each in shown],
        "shown": [each.html for each in shown],
        "slots": [[place, list(each)] for place, each in texts if len(set(each)) > 1],
    }


def _own(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


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
class Vector:
    """A drawing as SVG, and where the page's markers of epsilon stand in it; of the first, also for narrow screens."""

    svg: str
    markers: Sequence[Marker]
    narrow: Vector | None = None


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

    place = partial(inline, position=position, styles=styles)
    wide, small = place(vector.svg, prefix, markers=vector.markers), vector.narrow
    if small is None:
        return wide
    narrow = place(small.svg, f"{prefix}n", markers=small.markers)
    return Markup(f'<div class="wide">{wide}</div><div class="narrow">{narrow}</div>')
