"""The page of an answer: its screen, then a slider of ε and the figures; one file that fetches nothing.

The slider swaps strings: the part of the page above the figures is made from its template once for each ε, and what
differs there is handed to the script. Nothing on the page is formatted or computed in a browser.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pandas as pd

from policysim.output.deliver import MANIFEST, Placed, Vector, content_policy
from policysim.output.screen import TEMPLATES, page_engine, page_part, slots
from policysim.question.answer import Answer, Page
from policysim.question.formats import six_digits
from policysim.study.cells import COLUMNS, Label
from policysim.study.certainty import restated
from policysim.study.six_lines import Sketch, filled, words_of

PAGE = "report.html"
# Lines for those who decide.
SIGNATURES = 3
# The colours of figures, in light and in dark, stand in the style of all pages up to here.
END_OF_FIGURES = "/* the end of figures */"
# What differs between epsilons: whatever a template marks in this way.
MOVING = re.compile(r"<(\w+)\b[^>]* data-at>(.*?)</\1>", re.DOTALL)


class Own(Label):
    """What stands on the page as it is: its style, its script, and its drawings."""

    __slots__ = ()

    def __html__(self) -> str:
        """The same."""
        return str(self)


def paged(answer: Answer, kind: str = "decision") -> Answer:
    """The same answer with the files of this page: its tables of cells, the figures that it shows, and itself."""
    cells = {
        name.replace(" ", "-"): table
        for name, table in answer.options.items()
        if name == "certainty" or set(COLUMNS) <= set(table.columns)
    }
    by_name = {drawing.name: drawing for drawing in answer.drawings}
    return replace(
        answer,
        tables={**cells, **answer.tables},
        drawings=[by_name[each.name] for each in words_of(kind).figures if each.name in by_name],
        pages={PAGE: Page("answer.html", {"kind": kind})},
        depends=answer.depends or {},
    )


def answer_page(
    page: Page, answer: Answer, command: str, said: Mapping[str, Any], vectors: Mapping[str, Vector]
) -> str:
    """The page, from what `folder_files` hands to whatever writes one."""
    tables, kind = answer.options, page.values["kind"]
    found = slots(tables, kind)
    styles: dict[str, str] = {}
    figures = list(_figures(answer, found, words_of(kind).figures, vectors, styles))
    colours = _own("style.css").split(END_OF_FIGURES)[0]
    rules = "\n".join(f".{name}{{{rule}}}" for rule, name in styles.items())
    style = "\n".join([colours, _own("options.css"), _own("answer.css"), rules])
    script = _own("answer.js")
    template = page_engine().get_template(page.template)
    return template.render(
        found,
        style=Own(style),
        script=Own(script),
        policy=Own(content_policy(style, script)),
        moving=Own(_json(moving(tables, kind))),
        finding=Label(found["findings"][0].text),
        first_figure=figures[:1],
        figures=figures[1:],
        tables=[Label(f"{name}.csv") for name in answer.tables],
        manifest=Label(MANIFEST),
        commands=[Label(command)] if command else [],
        versions=[Label(f"{name} {number}") for name, number in said["versions"].items()],
    )


def record_page(
    page: Page, answer: Answer, _command: str, said: Mapping[str, Any], _vectors: Mapping[str, Vector]
) -> str:
    """The decision record of a choice, likewise: one sheet of paper, the same bytes for the same run."""
    style = _own("record.css")
    return (
        page_engine()
        .get_template(page.template)
        .render(
            slots(page.values["tables"], answer.kind),
            style=Own(style),
            policy=Own(content_policy(style)),
            versions=[Label(f"{name} {number}") for name, number in said["versions"].items()],
            signatures=range(SIGNATURES),
        )
    )


def _figures(
    answer: Answer,
    found: Mapping[str, Any],
    sketches: Sequence[Sketch],
    vectors: Mapping[str, Vector],
    styles: dict[str, str],
) -> Iterator[SimpleNamespace]:
    """The figures that there are, in the order of the page; their rules are added to the styles."""
    drawn = {each.name: each for each in answer.drawings}
    epsilons = _epsilons(answer.options)
    for place, words in enumerate(each for each in sketches if each.name in drawn):
        title = filled(words.title, found)
        placed = Placed(vectors[words.name], epsilons.index(found["epsilon"]), f"f{place}", styles)
        yield SimpleNamespace(
            name=Label(words.name),
            title=title,
            subject=Label(title),
            caption=filled(words.caption, found),
            file=Label(words.file),
            alternative=Label(drawn[words.name].alternative),
            svg=Own(placed.__html__()),
        )


def _epsilons(tables: Mapping[str, pd.DataFrame]) -> list[float]:
    """The positions of the slider."""
    return sorted(tables["columns"]["epsilon"].unique().tolist())


def notebook_part(tables: Mapping[str, pd.DataFrame], kind: str = "decision") -> str:
    """The six lines and the tables for a notebook, with their style."""
    style = f".policysim {{\n{_own('options.css')}}}"
    return f'<div class="policysim"><style>{style}</style>\n{page_part(slots(tables, kind))}</div>'


def moving(tables: Mapping[str, pd.DataFrame], kind: str) -> dict[str, Any]:
    """What the slider changes.

    Returns
    -------
    dict
        position (of the stated epsilon), epsilons (as the address has them), labels and shown (as they are printed, the
        latter as HTML), and slots: the place of each changing part among all that are marked, and its HTML at each
        epsilon.
    """
    stated = slots(tables, kind)
    epsilons = _epsilons(tables)
    parts = []
    for epsilon in epsilons:
        found = stated
        if epsilon != stated["epsilon"]:
            found = slots(restated(tables, epsilon), kind)
            # What is said of the stated epsilon only stands at every other, too.
            pairs = zip(stated["findings"], found["findings"], strict=True)
            found["findings"] = [first if first.stays else now for first, now in pairs]
        parts.append([inner for _, inner in MOVING.findall(page_part(found))])
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


def _json(value: object) -> str:
    """JSON that ends no script."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")
