"""What the templates of `policysim choose` print: its screen, and its decision record."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pandas as pd

from policysim.study.cells import Label
from policysim.study.six_lines import filled_words, six_lines, words_of

# Facts that a sentence needs, by the name of the slot that is a list of one where there is such a fact.
CLAUSES = {
    "keep": "keep",
    "max_loss": "max loss",
    "max_extra_deaths": "max extra deaths",
    "max_guess": "max guess",
    "max_guess_rate": "max guess rate",
    "more_allowed": "takes more",
    "illustrative": "illustrative",
    "odds": "odds",
    "lost": "lost",
    "redrawn": "draws",
    "scanned": "step",
    "accepted": "accepted",
    "who": "who share",
}


# What is decided, each a list of one where it is.
DECIDED = ("private", "published", "one for all", "limit")


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
        "at_most": _named(facts.loc[facts["row"] == "at most", "option"]),
        "least_possible": _named(facts.loc[facts["row"] == "least possible", "option"]),
        "as_for_all": [SimpleNamespace(name=text) for key, text in names.items() if key.startswith("as for all ")],
        "never": [name for name in names if name == "never"],
        "unused": [name for key, name in names.items() if key == "unused"],
        "is_hidden": ["hidden"] if holds["private"] or holds["one for all"] else [],
        "is_undecided": [] if holds["private"] or holds["one for all"] or holds["published"] else ["undecided"],
        **{f"is_{key.replace(' ', '_')}": [key] if holds[key] else [] for key in DECIDED},
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
    texts = tables.get("texts", pd.DataFrame(columns=["section", "text"]))
    for section in ("not guaranteed", "reference", "digest"):
        found[section.replace(" ", "_")] = [Label(text) for text in texts.loc[texts["section"] == section, "text"]]
    return found


def _named(keys: pd.Series) -> list[SimpleNamespace]:
    """Outcomes by their keys, with their names."""
    return [SimpleNamespace(key=key, name=Label(key.replace("_", " "))) for key in keys]
