"""The experiments beside this file as questions of policysim: asked on the command line, answered as a source study is.

What an experiment finds has the form of what a study of a source finds; so page, tables, figures and manifest are made
as all others are, and the file that the manifest names is the script.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pandas as pd

from policysim.output.deliver import deliver
from policysim.question import EXIT_USAGE, OutputError
from policysim.question.answer import Answer
from policysim.question.protocol import Progress, Question
from policysim.sources.engine import Section, SourceFindings, Subject
from policysim.sources.source_question import answer_about_source


@dataclass(frozen=True)
class Asked(Question):
    """What an experiment asks, as the pipeline of all questions takes it."""

    script: str  # its file, as it is run from the root of the repository
    title: str  # the question
    source: str  # who asked it
    find: Callable[[Progress], SourceFindings]
    seed: int
    unit: ClassVar[str] = "step"
    writes = True

    @property
    def name(self) -> str:
        """Of its folder among the reports."""
        return Path(self.script).stem.replace("_", "-")

    @property
    def command(self) -> str:
        """What asks it again."""
        return f"python {self.script}" + (f" --seed {self.seed}" if self.seed != 1 else "")

    def answer(self, progress: Progress) -> Answer:
        """Run the experiment."""
        text = (Path(__file__).parents[1] / self.script).read_text(encoding="utf-8")
        subject = Subject(self.name, text, self.title, self.source, self.name, self.seed)
        return answer_about_source(subject, self.find(progress), self.script)


def table_section(title: str, text: str, table: pd.DataFrame) -> Section:
    """A part of the page with a small table of texts."""
    return Section(title, (text,), tuple(table.columns), tuple(table.itertuples(index=False, name=None)))


def run(ask: Callable[[int], Asked], arguments: Sequence[str] | None = None) -> int:
    """The command line of an experiment: answer it, print the answer and write the files; returns the exit code."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--out", metavar="FOLDER", type=Path, help="for the report; reports/NAME by default")
    parser.add_argument("--seed", type=int, default=1, help="for what is drawn at random; 1 by default")
    chosen = parser.parse_args(arguments)
    if chosen.seed < 0:
        parser.error(f"seed must be a whole number >= 0, got {chosen.seed}")
    asked = ask(chosen.seed)
    try:
        return deliver(asked, command=asked.command, out=chosen.out)
    except OutputError as error:
        sys.stderr.write(f"{asked.script}: {error}\n")
        return EXIT_USAGE
