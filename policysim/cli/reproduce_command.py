"""`policysim reproduce`."""

from __future__ import annotations

import argparse
import contextlib
import io
from collections.abc import Sequence
from pathlib import Path

from policysim.cli.compare_command import question_of
from policysim.cli.main import build_parser
from policysim.cli.options import chosen_figures
from policysim.question.protocol import Question
from policysim.report.deliver import deliver
from policysim.report.folder import FigureFiles
from policysim.report.reproduce_question import ReproduceQuestion


def run(chosen: argparse.Namespace) -> int:
    """`policysim reproduce`; exit code 4 if anything but the bytes of a page or figure does not agree."""
    return deliver(ReproduceQuestion(Path(chosen.manifest), ask), as_json=chosen.json)


def ask(arguments: Sequence[str]) -> tuple[Question, FigureFiles]:
    """What a command line of compare asks, and which figures it wants; SystemExit for one that is not understood."""
    with contextlib.redirect_stderr(io.StringIO()):
        chosen = build_parser().parse_args(arguments)
    return question_of(chosen), chosen_figures(chosen)
