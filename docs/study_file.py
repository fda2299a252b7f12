"""Write the tables of keys in docs/study-file.md anew, from docstrings: python docs/study_file.py."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from envs.scenario import DeathModel, EventModel, Rule, Scenario, Treatment, TreatmentRule
from policysim.logs.data_section import read_feature
from policysim.logs.log_source import LogSource
from policysim.study.declared import CohortStudy, LoggedStudy, ModelledStudy, ScenarioStudy, Study

PAGE = Path(__file__).with_name("study-file.md")
HEAD = "| key | default | what it is |\n|---|---|---|"
# For each table of the page the classes that its keys fill, or their readers, each with what stands before its keys.
TABLES: dict[str, dict[Callable[..., object], str]] = {
    "a study": {Study: "", ScenarioStudy: "", ModelledStudy: "", CohortStudy: "", LoggedStudy: ""},
    "the table data": {LogSource: "data.", read_feature: "data.features.NAME."},
    "a scenario": {
        Scenario: "",
        Rule: "rules[].",
        Treatment: "treatments.NAME.",
        TreatmentRule: "treatments.NAME.rules[].",
        EventModel: "events.NAME.",
        DeathModel: "death.",
    },
}
KEY = re.compile(r"^(?P<key>\S+)(?: : (?P<default>.+))?\n(?P<help>(?: {4}.+\n)+)", re.MULTILINE)


def rows(record: Callable[..., object], above: str) -> Iterator[str]:
    """The rows of the page for the keys that a docstring lists: the key, its default, what it is."""
    section = re.search(r"^Keys\n----\n((?:.+\n)+)", f"{inspect.getdoc(record)}\n", re.MULTILINE)
    for key, default, text in KEY.findall(section[1] if section else ""):
        columns = f"`{above}{key}`", default, re.sub(r"\s+", " ", text).strip()
        yield f"| {' | '.join(columns)} |".replace("|  |", "| |")


def page_of(text: str) -> str:
    """The page with its tables made anew; each stands between two comments that name it."""
    for name, records in TABLES.items():
        table = "\n".join([HEAD, *(row for record, above in records.items() for row in rows(record, above))])
        pattern = re.compile(rf"(<!-- keys of {name} -->\n).*?(\n<!-- end -->)", re.DOTALL)
        text, n = pattern.subn(lambda part, table=table: part[1] + table + part[2], text)
        if n != 1:
            raise ValueError(f"{PAGE.name} must have one table of the keys of {name}, got {n}")
    return text


if __name__ == "__main__":
    PAGE.write_text(page_of(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
