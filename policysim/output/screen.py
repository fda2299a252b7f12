"""The screen of an answer, at most 100 columns wide, and the same lines and table for a page: from the same slots."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader

from policysim.question.answer import Page
from policysim.study.cells import (
    Cells,
    Label,
    environment,
    filled_words,
    only_cells,
    only_text,
    six_lines,
    words_of,
)
from policysim.study.certainty import BETTER, VERDICTS, recommended, verdict_of
from policysim.study.options_table import BENEFIT, BOUND, COPY, EACH, EXPONENTIAL, LEAD, LOSS, PRIVATE, TEXTBOOK, trace
from policysim.words import WIDEST, in_a_row, line_width

TEMPLATES = Path(__file__).parent / "templates"
# The titles of rows have at least so much room.
LEAST_ROOM = 15
# And columns of policies that were asked for by name yield to them, up to so much.
MOST_ROOM = 40
# The texts of the six lines begin here.
INDENT = 11
# What is not hidden from whoever sees the treatment stands behind the bar.
SEEN = (COPY, EACH)
# What is said of each option in words.
WORDED = ("policy", "hidden")
# The options whose trace of ε is shown: at the study's times these, or at what is nearest.
TRACED = (PRIVATE, EXPONENTIAL, TEXTBOOK)


def screen(tables: Mapping[str, pd.DataFrame], kind: str, *, full: bool = False) -> str:
    """What is printed, from the tables of an answer; with all tables behind the options, if it is full."""
    found = slots(tables, kind)
    found["sections"] = sections(tables, kind, found) if full else []
    parts = [f"{kind}-screen.txt", *(["tables.txt"] if full else [])]
    return "\n".join(engine().get_template(name).render(found).rstrip() + "\n" for name in parts)


def printed(page: Page) -> str:
    """What is printed of an answer without options: its template, with the texts that Python has put in order."""
    return engine(finalize=only_text).get_template(page.template).render(page.values).rstrip() + "\n"


@cache
def engine(*, html: bool = False, finalize: Callable[[object], object] = only_cells) -> Environment:
    """The engine of the templates of screens, or of pages, which print cells only, or texts only."""
    made = environment(html=html, loader=FileSystemLoader(TEMPLATES), finalize=finalize)
    made.filters.update(lines=lines, grid=aligned)
    return made


def page_part(found: Mapping[str, Any], kind: str) -> str:
    """The lines, the tables and the notes as HTML, from slots; what changes with epsilon is marked with data-at."""
    parts = (f"{kind}-options.html", f"{kind}-notes.html")
    return "".join(engine(html=True).get_template(name).render(found) for name in parts)


def slots(tables: Mapping[str, pd.DataFrame], kind: str, cell: Cells | None = None) -> dict[str, Any]:
    """What the templates of an answer print and loop over: cells, names, and lists in their order.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        "options", "columns", "certainty", "facts" and "names", and "who" where there is such. Of a decision also "rows"
        and "differences", and "beliefs" and "best-for-all" where there are such.
    kind : str
        The kind of question, whose words are used.
    cell : Cells, optional
        Of the same tables, or of those that were restated.
    """
    cell, columns = cell or Cells(tables), tables["columns"]
    found: dict[str, Any] = {
        "cell": cell,
        "hundred": cell("facts", "hundred"),
        "names": {key: Label(text) for key, text in tables["names"].itertuples(index=False, name=None)},
    }
    if kind == "choice":
        return _with_heads(choice_slots(tables, found))
    epsilon = float(columns.loc[columns["stated"], "epsilon"].dropna().iloc[0])
    epsilons = sorted(columns["epsilon"].dropna().unique().tolist())
    # Who pays most: nobody has no name.
    paying = tables["who"].loc[tables["who"]["epsilon"] == epsilon, "name"] if "who" in tables else ()
    found |= {
        "epsilon": epsilon,
        # The positions of a page's slider.
        "epsilons": epsilons,
        "trace": trace(epsilons, epsilon),
        "who": Label(next(iter(paying), "")),
        # What the textbook's mechanism is compared with: one name, or none.
        "beside_textbook": [key for key in found["names"] if key == "fitted odds"],
    }
    holds, words = VERDICTS[kind](tables), words_of(kind)
    found = _trial_slots(tables, found) if kind == "trial" else _options_slots(tables, found, kind, holds)
    found["heading"] = filled_words(words.titles["heading"], found)
    found["finding"] = filled_words(words.titles[f"recommend {recommended(holds)}"], found)
    return {**found, "findings": six_lines(kind, holds, found)}


def sections(tables: Mapping[str, pd.DataFrame], kind: str, found: Mapping[str, Any]) -> list[SimpleNamespace]:
    """The tables behind the options, as far as there are such, in their order; `found` are the slots."""
    listed = []
    for words in words_of(kind).tables:
        if words.name not in tables:
            continue
        table, title = tables[words.name], filled_words(words.title, found)
        options, rows = set(table["option"]), table.drop_duplicates("row")[["row", "title", "epsilon"]]
        listed.append(
            SimpleNamespace(
                name=Label(words.name),
                title=title,
                subject=Label(title),
                head=filled_words(words.head, found),
                # Those columns that it has.
                columns=[
                    SimpleNamespace(key=key, title=filled_words(text, found))
                    for key, text in words.columns.items()
                    if key in options
                ],
                rows=[
                    SimpleNamespace(key=row, title=Label(text), epsilon=at)
                    for row, text, at in rows.to_numpy().tolist()
                ],
                note=filled_words(words.note, found),
                shown=words.shown,
            )
        )
    return listed


def _options_slots(
    tables: Mapping[str, pd.DataFrame], common: dict[str, Any], kind: str, holds: Mapping[str, bool]
) -> dict[str, Any]:
    """Options as columns, what is counted of them as rows."""
    cell, names, epsilon, columns = common["cell"], common["names"], common["epsilon"], tables["columns"]
    facts = tables["facts"]["row"]
    stated = columns.loc[columns["stated"], ["option", "title", "hides", "policy"]]
    named = [
        SimpleNamespace(key=option, title=Label(title), hidden=Label(hides), policy=Label(policy))
        for option, title, hides, policy in stated.itertuples(index=False, name=None)
    ]
    heads = [each for each in named if each.key != TEXTBOOK]
    rows = _rows(tables, epsilon)
    # The treatments that are best for all in some redraws, if it cannot be told which is: one list, or none.
    rivals: list[list[SimpleNamespace]] = []
    if "best-for-all" in tables:
        counts = tables["best-for-all"].query("value > 0").set_index("row")["value"]
        if verdict_of(counts.max() / counts.sum()) != BETTER:
            rivals.append([SimpleNamespace(key=key, name=names[f"treatment {key}"]) for key in counts.index])
    found: dict[str, Any] = {
        **common,
        "patients": cell("facts", "patients"),
        "model": [each for each in names if each == "model"],
        "illustrative": list(facts[facts == "illustrative"]),
        "weighed": list(facts[facts == "lead weighs"]),
        "slack": list(facts[facts == "delta"]),
        **{
            name.replace(" ", "_"): list(facts[facts == name])
            for name in ("drawn together", "drawn stated", "drawn default")
        },
        "draws": cell("facts", "draws") if "draws" in set(facts) else Label(),
        "warnings": [name for key, name in names.items() if key.startswith("warning ")],
        # The lead comes first, and then what matters most.
        "gains": [row for row in rows if row.moved < 0][:1],
        "costs": [row for row in rows if row.moved > 0][:2],
        "rivals": rivals,
        "hiding": [head for head in heads if head.key not in SEEN],
        "seen": [head for head in heads if head.key in SEEN],
        "options": [each for each in named if each.key in TRACED],
    }
    titles = words_of(kind).titles
    # Where a verdict turns that is for a private choice: at another prevalence, and at another weight of the lead.
    known = {"prevalence": "times" in names, "weight": "most the lead may weigh" in set(facts)}
    unless = [name for name, there in known.items() if there and holds["private choice better"]]
    doubts = [filled_words(titles[name], found) for name in unless]
    found |= {"doubt": doubts[:1], "doubts": doubts[1:]}
    for row in rows:
        row.title = filled_words(titles[row.section], {**found, "row": row})
    by_key = {row.key: row for row in rows}
    found["traced"] = [by_key.pop(BENEFIT, by_key[LOSS])]
    if (tables["options"]["option"] == BOUND).any():
        found["options"].append(SimpleNamespace(key=BOUND, title=filled_words(titles[BOUND], found)))
    found["rows"] = list(by_key.values())
    said = {name: filled_words(titles[name], found) for name in ("stated", *WORDED) if name in titles}
    found["title"] = said
    found["worded"] = [SimpleNamespace(key=name, title=said[name]) for name in WORDED if name in said]
    fitting, found["heads"] = _heads(found, heads)
    found["fitting"] = [head for head in fitting if head.key not in SEEN]
    without = [name for key, name in names.items() if key.startswith("no column ")]
    left_out = [*(str(head.policy) for head in heads if head not in fitting), *without]
    found["no_room"] = [Label(in_a_row(left_out, "and"))] if left_out else []
    return found


def _trial_slots(tables: Mapping[str, pd.DataFrame], common: dict[str, Any]) -> dict[str, Any]:
    """Arms as rows, then policies against one of them."""
    names, epsilon, facts, columns = common["names"], common["epsilon"], set(tables["facts"]["row"]), tables["columns"]
    certainty = tables["certainty"]
    said = certainty[certainty["epsilon"] == epsilon].set_index("option")["verdict"]
    stated = columns.loc[columns["stated"], ["option", "title", "section"]]
    rows = [
        SimpleNamespace(
            key=option,
            title=Label(title),
            full=Label(option),
            name=Label(title.rstrip("*")),
            section=section,
            verdict=Label(said[option] if section == "policy" else ""),
        )
        for option, title, section in stated.itertuples(index=False, name=None)
    ]
    policies = [row for row in rows if row.section == "policy"]
    found: dict[str, Any] = {
        **common,
        "warnings": [text for key, text in names.items() if key.startswith("warning ")],
        "caveats": [text for key, text in names.items() if key.startswith("caveat ")],
        "mechanisms": [text for key, text in names.items() if key.startswith("mechanism ")],
        "arms": [row for row in rows if row.section == "arm"],
        "policies": [row for row in policies if row.key != TEXTBOOK],
        "options": [row for row in policies if row.key in TRACED],
        "gaining": [row for row in policies if row.key in {PRIVATE, EACH} and said[row.key] == BETTER],
        "verdict": Label(said[PRIVATE]),
        "estimated": [each for each in [names["propensity"]] if each == "estimate"],
        "patients": [
            SimpleNamespace(key=key, name=Label(key), title=Label(title))
            for key, title in tables["examples"].drop_duplicates("row")[["row", "title"]].to_numpy()
        ],
        "further": [f"outcome: {names[each]}" for each in names if each == "further"],
        "confidence": common["cell"]("facts", "confidence"),
    }
    # A clause for each of these numbers that there is.
    clauses = {"counted": "of", "powered": "least gain", "more_arms": "more arms"}
    clauses |= {each: each for each in ("unread", "untreated", "missing", "censored")}
    found |= {clause: [fact for fact in [fact] if fact in facts] for clause, fact in clauses.items()}
    titles = words_of("trial").titles
    for name in ("of", "unit"):
        found[name] = filled_words(titles[name], found)
    found["title"] = {name: filled_words(titles[name], found) for name in ("arms", "policies", "interval")}
    return found


def _heads(
    found: Mapping[str, Any], heads: Sequence[SimpleNamespace]
) -> tuple[list[SimpleNamespace], list[SimpleNamespace]]:
    """The columns that have room on a screen, and the lines of their heads; the bar has a column of its own.

    The last of the policies that were asked for by name, each a column under its name, finds no room first.
    """
    said, cell = found["title"], found["cell"]
    widths = [
        max(
            *(len(cell("options", row.key, head.key, row.epsilon)) for row in found["rows"]),
            *(len(getattr(head, row.key)) for row in found["worded"]),
        )
        for head in heads
    ]
    longest = max(map(len, [*said.values(), *(row.title for row in found["rows"])]))
    # The bar, and the space before it.
    wrapped = _wrapped([head.title for head in heads], widths, WIDEST - longest - 2)
    named = [place for place, head in enumerate(heads) if head.key == head.policy]
    if named and _width(wrapped, widths) > WIDEST - min(longest, MOST_ROOM) - 2:
        return _heads(found, [head for place, head in enumerate(heads) if place != named[-1]])
    return list(heads), [
        SimpleNamespace(
            title=said["stated"] if place == 0 else Label(),
            hiding=[lines[place] for head, lines in zip(heads, wrapped, strict=True) if head.key not in SEEN],
            seen=[lines[place] for head, lines in zip(heads, wrapped, strict=True) if head.key in SEEN],
        )
        for place in range(len(wrapped[0]))
    ]


def _with_heads(found: dict[str, Any]) -> dict[str, Any]:
    """The same with the lines of the heads of columns, where options are rows."""
    lines = found["lines"]
    widths = [max(len(line.cells[place]) for line in lines) for place in range(len(found["columns"]))]
    # Titles of rows, and remarks.
    room = WIDEST - max(len(line.title) for line in lines) - max(len(line.remark) for line in lines) - 1
    wrapped = _wrapped([column.title for column in found["columns"]], widths, room)
    titles = (found["title"]["options"], *(Label() for _ in wrapped[0][1:]))
    heads = [SimpleNamespace(title=title, texts=texts) for title, *texts in zip(titles, *wrapped, strict=True)]
    return {**found, "heads": heads}


def _wrapped(titles: Sequence[str], widths: Sequence[int], room: int) -> list[list[Label]]:
    """Titles of columns, each in two lines, or in three where the titles of rows would have too little room.

    The longest line is as short as it can be, and the last ones are filled first.
    """
    for count in (2, 3):
        wrapped = []
        for words in (title.split(" ") for title in titles):
            cuts = itertools.combinations_with_replacement(range(len(words)), count - 1)
            parts = [[" ".join(words[a:b]) for a, b in itertools.pairwise((0, *cut, len(words)))] for cut in cuts]
            wrapped.append([Label(part) for part in min(parts, key=lambda lines: max(map(len, lines)))])
        if _width(wrapped, widths) <= room:
            break
    return wrapped


def _width(titles: Sequence[Sequence[str]], widths: Sequence[int]) -> int:
    """What columns take, each with a space before it, with titles in lines and with cells of these widths."""
    return sum(max(width, *map(len, lines)) + 1 for width, lines in zip(widths, titles, strict=True))


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
                section="first" if row.section in {LEAD, "count"} and place == 0 else row.section,
                moved=row.moved,
                epsilon=float(cells.iloc[0]) if stays else epsilon,
                # What is known at the stated epsilon only.
                stays=[row.row] if cells.nunique() == 1 < tables["columns"]["epsilon"].nunique() else [],
            )
        )
    return found


def lines(text: str, hang: str = "") -> str:
    """Lines at most 100 columns wide; after a name and a tab, the rest of a line stands to the right of the name.

    Without one, what begins a line with spaces goes on under its beginning, after `hang`.
    """
    found = []
    for line in text.splitlines():
        name, tab, rest = line.rpartition("\t")
        indent = rest[: len(rest) - len(rest.lstrip())]
        first, later = (f"{name:<{INDENT}}", " " * INDENT) if tab else ("", indent + hang)
        found += textwrap.wrap(
            rest, line_width(), initial_indent=first, subsequent_indent=later, break_on_hyphens=False
        )
    return "\n".join([*found, ""])


def aligned(text: str) -> str:
    """Lines of cells with tabs between them, in columns over the whole width: the first to the left, others right.

    A title that is too long for its column is cut; where it would lose a number, it goes on in lines above its cells.
    """
    rows = [line.split("\t") for line in text.splitlines()]
    if not rows:
        return ""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    gap = 2 if sum(widths) + 2 * (len(widths) - 1) <= WIDEST else 1
    room = WIDEST - sum(widths[1:]) - gap * (len(widths) - 1)
    # A table that is far too wide for a screen is printed as wide as it is.
    room = widths[0] if room < LEAST_ROOM else room
    found = []
    for first, *others in rows:
        title = first
        if len(first) > room and any(letter.isdigit() for letter in first[room - 1 :]):
            indent = " " * (len(first) - len(first.lstrip()) + 2)
            *above, title = textwrap.wrap(first, room, subsequent_indent=indent, break_on_hyphens=False)
            found += above
        elif len(first) > room:
            title = f"{first[: room - 1]}…"
        cells = (f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True))
        found.append((" " * gap).join([f"{title:<{room}}", *cells]).rstrip())
    return "\n".join([*found, ""])


# Facts that a sentence needs, by the name of the slot that is a list of one where there is such a fact.
CLAUSES = {
    "keep": "keep",
    "max_loss": "max loss",
    "max_extra_lead": "max extra lead",
    "max_guess": "max guess",
    "max_guess_rate": "max guess rate",
    "more_allowed": "takes more",
    "illustrative": "illustrative",
    "redrawn": "draws",
    "scanned": "step",
    "copied": "copy epsilon",
}


def choice_slots(tables: Mapping[str, pd.DataFrame], common: dict[str, Any]) -> dict[str, Any]:
    """Cells, names, and lists in their order.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        From `policysim.decision.choice_answer.choice_tables`.
    common : dict
        "cell" and "names", of any answer.
    """
    cell, names, facts = common["cell"], common["names"], tables["facts"]
    known = set(facts["row"])
    holds = dict(tables["verdict"].itertuples(index=False, name=None))
    lines, needed = tables["lines"], tables["lines"].set_index("option")["epsilon"]
    nothing = float("nan")
    found: dict[str, Any] = {
        **common,
        **{slot: [fact for fact in [fact] if fact in known] for slot, fact in CLAUSES.items()},
        "hundred": cell("facts", "hundred"),
        "model": [key for key in names if key == "model"],
        "at_most": _named(facts.loc[facts["row"] == "at most", "option"], names),
        "least_possible": _named(facts.loc[facts["row"] == "least possible", "option"], names),
        "as_for_all": [SimpleNamespace(name=text) for key, text in names.items() if key.startswith("as for all ")],
        "never": [name for name in names if name == "never"],
        "unused": [name for key, name in names.items() if key == "unused"],
        "judged": _judged_on_held_out(tables, names),
        "least_epsilon": needed.get(names.get("least", ""), nothing),
        "chosen_epsilon": needed.get(names.get("chosen", ""), nothing),
    }
    titles = words_of("choice").titles
    found["title"] = {name: filled_words(titles[name], found) for name in ("asked", "options")}
    found["findings"] = six_lines("choice", holds, found)
    found["columns"] = [
        SimpleNamespace(
            key=row, title=filled_words(titles[section], {**found, "row": SimpleNamespace(name=Label(title))})
        )
        for row, section, title in tables["columns"].itertuples(index=False, name=None)
    ]
    found["lines"] = [
        SimpleNamespace(
            title=filled_words(titles[str(line.section)], {**found, "row": SimpleNamespace(name=Label(line.title))}),
            marks=[Label(line.remark)] if line.chosen else [],
            remark=Label(line.remark),
            # Of all mechanisms only the least ε is known.
            cells=[
                cell("options", column.key, line.option, line.epsilon)
                if line.section != "limit" or column.key == "epsilon"
                else Label()
                for column in found["columns"]
            ],
        )
        for line in lines.itertuples()
    ]
    return found


def _judged_on_held_out(tables: Mapping[str, pd.DataFrame], names: Mapping[str, Label]) -> list[Label]:
    """What needs least, if it was judged on patients of a log who were held out."""
    options = set(tables["held out"]["option"]) if "held out" in tables else set()
    return [names[key] for key in names if key == "least" and names[key] in options]


def _named(keys: pd.Series, names: Mapping[str, Label]) -> list[SimpleNamespace]:
    """Outcomes by their keys, with their titles."""
    return [SimpleNamespace(key=key, name=names[f"outcome {key}"]) for key in keys]
