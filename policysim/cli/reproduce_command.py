"""`policysim reproduce`: the same numbers again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from policysim.cli.compare_command import kind_and_study
from policysim.cli.options import Commands, add_json, as_usage

if TYPE_CHECKING:
    from policysim.question.protocol import StudyQuestion


def add(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "reproduce",
        help="ask the question of a manifest.json again and say which numbers differ",
        description="Ask the question of a manifest.json again, in this process, and say which numbers differ. Nothing "
        "that the manifest names is run, and nothing is written. Exit code 4 if anything differs.",
    )
    parser.add_argument("manifest", type=Path, metavar="MANIFEST", help="the manifest.json beside a report")
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    """Ask; exit code 4 if anything but a page or figure does not agree."""
    from policysim.output.deliver import deliver
    from policysim.output.reproduction import ReproduceQuestion

    return deliver(ReproduceQuestion(chosen.manifest, ask), as_json=chosen.json)


def ask(path: Path, name: str, options: dict[str, Any]) -> StudyQuestion:
    """The question of a manifest; UsageError for an option that it does not take, or that cannot be chosen."""
    from policysim.output.manifest import read_options

    kind, study = kind_and_study(path, options, name)
    with as_usage():
        return kind.of(study, read_options(options, kind.takes))
