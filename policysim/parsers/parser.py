"""The parser of all commands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from policysim.parsers.logs import add_evaluate, add_init
from policysim.parsers.studies import add_audit, add_choose, add_compare, add_sensitivity, add_simulate
from policysim.parsers.tools import add_privatize, add_reproduce, add_select

# In the order in which --help shows them.
COMMANDS = (
    add_init,
    add_compare,
    add_choose,
    add_audit,
    add_simulate,
    add_reproduce,
    add_sensitivity,
    add_evaluate,
    add_privatize,
    add_select,
)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="policysim", description="What does choosing treatments privately cost the patients?"
    )
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for add in COMMANDS:
        add(commands)
    return parser


class _Version(argparse.Action):
    """Look the version up only when it is asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version  # noqa: PLC0415

        sys.stdout.write(f"policysim {version('policysim')}\n")
        parser.exit()
