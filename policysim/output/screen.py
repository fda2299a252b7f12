"""The screen of an answer, at most 100 columns wide, and the same lines and table for a page: from the same slots."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader

from policysim.output.choice_slots import choice_slots
from policysim.study.cells import Cells, Label, Shown, environment
from policysim.study.certainty import BETTER, VERDICTS
from policysim.study.options_table import BENEFIT, COPY, EACH, EXPONENTIAL, LOSS, PRIVATE
from policysim.study.six_lines import filled, six_lines, words_of

TEMPLATES = Path(__file__).parent / "templates"
SCREENS = {"decision": "screen.txt", "trial": "trial-screen.txt", "choice": "choice-screen.txt"}
WIDTH = 100
# The texts of the six lines begin here.
INDENT = 11
# What is not hidden from whoever sees the treatment stands behind the bar.
SEEN = (COPY, EACH)
# The trace of ε: at the study's times these, or at what is nearest.
TRACE = (0.5, 1.0, 2.0, 5.0, 10.0)


def screen(tables: Mapping[str, pd.DataFrame], kind: str = "decision") -> str:
    """What is printed, from the tables of an answer."""
    engine = environment(html=False, loader=FileSystemLoader(TEMPLATES))
    engine.filters.update(lines=lines, grid=grid)
    return engine.get_template(SCREENS[kind]).render(slots(tables, kind)).rstrip() + "\n"


def page_part(found: Mapping[str, Any]) -> str:
    """The lines, the tables and the notes as HTML, from slots; what changes with epsilon is marked with data-at."""
    return "".join(page_engine().get_template(name).render(found) for name in ("options.html", "notes.html"))


@cache
def page_engine() -> Environment:
    """The engine of the templates of pages that print cells."""
    return environment(html=True, loader=FileSystemLoader(TEMPLATES))


def slots(tables: Mapping[str, pd.DataFrame], kind: str) -> dict[str, Any]:
    """What the templates of an answer print and loop over: cells, names, and lists in their order.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        "options", "columns", "certainty", "facts" and "names", and "who" where there is such. Of a decision also "rows"
        and "differences", and "beliefs" and "best for all" where there are such.
        Of a choice those of `policysim.decision.choice_answer.choice_tables`.
    kind : str
        The kind of question, whose words are used.
    """
    cell, columns = Cells(tables), tables["columns"]
    found: dict[str, Any] = {
        "cell": cell,
        "hundred": cell("facts", "hundred"),
        "names": {key: Label(text) for key, text in tables["names"].itertuples(index=False, name=None)},
    }
    if kind == "choice":
        return _with_heads(choice_slots(tables, found))
    epsilon = float(columns.loc[columns["stated"], "epsilon"].dropna().iloc[0])
    found |= {
        "epsilon": epsilon,
        "trace": trace(sorted(columns["epsilon"].dropna().unique()), epsilon),
    }
    found = _trial_slots(tables, found) if kind == "trial" else _decision_slots(tables, found)
    return {**found, "findings": six_lines(kind, VERDICTS[kind](tables), found)}


def _decision_slots(tables: Mapping[str, pd.DataFrame], common: dict[str, Any]) -> dict[str, Any]:
    """Options as columns, what is counted of them as rows."""
    cell, names, epsilon, columns = common["cell"], common["names"], common["epsilon"], tables["columns"]
    facts = tables["facts"]["row"]
    stated = columns.loc[columns["stated"], ["option", "title", "hides"]]
    heads = [
        SimpleNamespace(key=option, title=Label(title), hides=Label(hides))
        for option, title, hides in stated.itertuples(index=False, name=None)
    ]
    best = tables["best for all"].query("value > 0")["row"] if "best for all" in tables else ()
    rows = _rows(tables, epsilon)
    found: dict[str, Any] = {
        **common,
        "patients": cell("facts", "patients"),
        "who": _who(tables, epsilon),
        "model": [each for each in names if each == "model"],
        "illustrative": list(facts[facts == "illustrative"]),
        "weighed": list(facts[facts == "a death weighs"]),
        # Deaths come first, and then what matters most.
        "gains": [row for row in rows if row.moved < 0][:1],
        "costs": [row for row in rows if row.moved > 0][:2],
        "for_all": [SimpleNamespace(key=key, name=names[f"treatment {key}"]) for key in best],
        "hiding": [head for head in heads if head.key not in SEEN],
        "seen": [head for head in heads if head.key in SEEN],
        "options": [head for head in heads if head.key in {PRIVATE, EXPONENTIAL}],
    }
    titles = words_of("decision").titles
    for row in rows:
        row.title = filled(titles[row.section], {**found, "row": row})
    by_key = {row.key: row for row in rows}
    found["traced"] = [by_key.pop(BENEFIT, by_key[LOSS])]
    found["rows"] = list(by_key.values())
    widths = [max(len(cell("options", row.key, head.key, row.epsilon)) for row in found["rows"]) for head in heads]
    found["title"] = {name: filled(titles[name], found) for name in ("stated", "hidden")}
    room = WIDTH - max(map(len, [*found["title"].values(), *(row.title for row in found["rows"])]))
    found["heads"] = _heads(found["title"]["stated"], heads, widths, room)
    return found


def _trial_slots(tables: Mapping[str, pd.DataFrame], common: dict[str, Any]) -> dict[str, Any]:
    """Arms as rows, then policies against one of them."""
    names, facts, columns = common["names"], set(tables["facts"]["row"]), tables["columns"]
    stated = columns.loc[columns["stated"], ["option", "title", "section"]]
    said = tables["certainty"].query("section == 'policy'").set_index("option")["verdict"]
    rows = [
        SimpleNamespace(
            key=option,
            title=Label(title),
            name=Label(f"{title[:1].upper()}{title[1:]}"),
            section=section,
            verdict=names.get(f"verdict {option}", Label()),
        )
        for option, title, section in stated.itertuples(index=False, name=None)
    ]
    policies = [row for row in rows if row.section == "policy"]
    found: dict[str, Any] = {
        **common,
        "warnings": [text for key, text in names.items() if key.startswith("warning ")],
        "arms": [row for row in rows if row.section == "arm"],
        "policies": policies,
        "options": [row for row in policies if row.key in {PRIVATE, EXPONENTIAL}],
        "gaining": [row for row in policies if row.key in {PRIVATE, EACH} and said[row.key] == BETTER],
        "further": [f"outcome: {names[each]}" for each in names if each == "further"],
        "confidence": common["cell"]("facts", "confidence"),
    }
    # A clause for each of these numbers that there is.
    clauses = {"counted": "of", "powered": "least gain", "more_arms": "more arms"}
    clauses |= {each: each for each in ("unread", "untreated", "missing", "censored")}
    found |= {clause: [fact for fact in [fact] if fact in facts] for clause, fact in clauses.items()}
    titles = words_of("trial").titles
    for name in ("of", "unit"):
        found[name] = filled(titles[name], found)
    found["title"] = {name: filled(titles[name], found) for name in ("arms", "policies", "interval")}
    return found


def _who(tables: Mapping[str, pd.DataFrame], epsilon: float) -> Label:
    """Who pays most at an epsilon; nobody has no name."""
    found = tables["who"].loc[tables["who"]["epsilon"] == epsilon, "name"] if "who" in tables else ()
    return Label(next(iter(found), ""))


def _heads(title: Shown, heads: Sequence[SimpleNamespace], widths: Sequence[int], room: int) -> list[SimpleNamespace]:
    """The lines of the heads of columns: two, or three where the titles of rows would have too little room."""
    for count in (2, 3):
        wrapped = [_wrapped(head.title, count) for head in heads]
        needed = [max(width, *map(len, lines)) + 1 for width, lines in zip(widths, wrapped, strict=True)]
        # The bar has a column of its own.
        if sum(needed) + 2 <= room:
            break
    return [
        SimpleNamespace(
            title=title if place == 0 else Label(),
            hiding=[lines[place] for head, lines in zip(heads, wrapped, strict=True) if head.key not in SEEN],
            seen=[lines[place] for head, lines in zip(heads, wrapped, strict=True) if head.key in SEEN],
        )
        for place in range(count)
    ]


def _with_heads(found: dict[str, Any]) -> dict[str, Any]:
    """The same with the lines of the heads of columns, where options are rows: two, or three where room is short."""
    lines = found["lines"]
    widths = [max(len(line.cells[place]) for line in lines) for place in range(len(found["columns"]))]
    # Titles of rows, and remarks.
    room = WIDTH - max(len(line.title) for line in lines) - max(len(line.remark) for line in lines) - 1
    for count in (2, 3):
        wrapped = [_wrapped(column.title, count) for column in found["columns"]]
        if sum(max(width, *map(len, of)) + 1 for width, of in zip(widths, wrapped, strict=True)) <= room:
            break
    titles = (found["title"]["options"], *(Label() for _ in range(count - 1)))
    heads = [SimpleNamespace(title=title, texts=texts) for title, *texts in zip(titles, *wrapped, strict=True)]
    return {**found, "heads": heads}


def _wrapped(title: str, count: int) -> list[Label]:
    """A title in so many lines, the longest as short as it can be; the last ones are filled first."""
    words = title.split(" ")
    cuts = itertools.combinations_with_replacement(range(len(words)), count - 1)
    parts = [[" ".join(words[a:b]) for a, b in itertools.pairwise((0, *cut, len(words)))] for cut in cuts]
    return [Label(part) for part in min(parts, key=lambda lines: max(map(len, lines)))]


def _rows(tables: Mapping[str, pd.DataFrame], epsilon: float) -> list[SimpleNamespace]:
    """The rows of options, each with the epsilon of its cells; the first says what is counted among how many."""
    found = []
    for place, row in enumerate(tables["rows"].itertuples()):
        cells = tables["options"].loc[tables["options"]["row"] == row.row, "epsilon"]
        stays = not cells.eq(epsilon).any()
        found.append(
            SimpleNamespace(
                key=row.row,
                name=Label(row.title),
                section="first" if row.section == "count" and place == 0 else row.section,
                moved=row.moved,
                epsilon=float(cells.iloc[0]) if stays else epsilon,
                # What is known at the stated epsilon only.
                stays=[row.row] if cells.nunique() == 1 < tables["columns"]["epsilon"].nunique() else [],
            )
        )
    return found


def trace(epsilons: Sequence[float], epsilon: float) -> list[float]:
    """At most five epsilons of a study around the stated one.

    Examples
    --------
    >>> trace([0.1, 0.5, 1.0, 2.0, 5.0, 10.0], 1.0), trace([0.0, 3.0], 3.0)
    ([0.5, 1.0, 2.0, 5.0, 10.0], [3.0])
    """
    finite = [each for each in epsilons if 0 < each < math.inf]
    if not 0 < epsilon < math.inf:
        return [epsilon]
    return sorted({min(finite, key=lambda each: abs(math.log(each / (epsilon * factor)))) for factor in TRACE})


def lines(text: str) -> str:
    """Lines at most 100 columns wide; after a name and a tab, the rest of a line stands to the right of the name."""
    found = []
    for line in text.splitlines():
        name, tab, rest = line.rpartition("\t")
        first, later = (f"{name:<{INDENT}}", " " * INDENT) if tab else ("", "")
        found += textwrap.wrap(rest, WIDTH, initial_indent=first, subsequent_indent=later, break_on_hyphens=False)
    return "\n".join([*found, ""])


def grid(text: str) -> str:
    """Lines of cells with tabs between them, in columns over the whole width: the first to the left, others right."""
    rows = [line.split("\t") for line in text.splitlines()]
    if not rows:
        return ""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    gap = 2 if sum(widths) + 2 * (len(widths) - 1) <= WIDTH else 1
    room = WIDTH - sum(widths[1:]) - gap * (len(widths) - 1)
    return "\n".join([*(_aligned(row, room, widths[1:], gap) for row in rows), ""])


def _aligned(row: Sequence[str], first: int, widths: Sequence[int], gap: int) -> str:
    title = row[0] if len(row[0]) <= first else f"{row[0][: first - 1]}…"
    cells = (f"{cell:>{width}}" for cell, width in zip(row[1:], widths, strict=True))
    return (" " * gap).join([f"{title:<{first}}", *cells]).rstrip()
