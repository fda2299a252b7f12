"""`policysim reproduce`: the same numbers again."""

from __future__ import annotations

import argparse
import contextlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from policysim.cli import compare_command
from policysim.cli.options import add_json
from policysim.cli.parser import Commands, parse

if TYPE_CHECKING:
    from policysim.question.protocol import Question
    from policysim.report.deliver import FigureFiles


def add(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "reproduce",
        help="run a study again from its manifest.json and say which numbers differ",
        description="Run a study again from its manifest.json and say which numbers differ. Exit code 4 if any does.",
    )
    parser.add_argument("manifest", type=Path, metavar="MANIFEST", help="the manifest.json beside a report")
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    """Ask; exit code 4 if anything but a page or figure does not agree."""
    from policysim.report.deliver import deliver
    from policysim.report.reproduce_question import ReproduceQuestion

    return deliver(ReproduceQuestion(chosen.manifest, ask), as_json=chosen.json)


def ask(arguments: Sequence[str]) -> tuple[Question, FigureFiles]:
    """What a command line of compare asks, and which figures it wants; SystemExit for one that is not understood."""
    with contextlib.redirect_stderr(io.StringIO()):
        chosen = parse(arguments, [compare_command.add])
    return compare_command.asked(chosen)
