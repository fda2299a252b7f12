"""Write the tables of keys in docs/study-file.md anew, from what is declared of them: python docs/study_file.py."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from envs import scenario_reader
from envs.toml_reader import rows
from policysim.logs import log_source
from policysim.study import study_reader

PAGE = Path(__file__).with_name("study-file.md")
HEAD = "| key | default | what it is |\n|---|---|---|"
TABLES = {
    "a study": (tuple(replace(key, keys=()) if key.name == "data" else key for key in study_reader.KEYS), ""),
    "the table data": (log_source.KEYS, "data."),
    "a scenario": (scenario_reader.KEYS, ""),
}


def page_of(text: str) -> str:
    """The page with its tables made anew; each stands between two comments that name it."""
    for name, (keys, above) in TABLES.items():
        made = "\n".join([HEAD, *rows(keys, above)])
        pattern = re.compile(rf"(<!-- keys of {name} -->\n).*?(\n<!-- end -->)", re.DOTALL)
        text, n = pattern.subn(lambda part, made=made: part[1] + made + part[2], text)
        if n != 1:
            raise ValueError(f"{PAGE.name} must have one table of the keys of {name}, got {n}")
    return text


if __name__ == "__main__":
    PAGE.write_text(page_of(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
