"""Options that several commands have."""

from __future__ import annotations

import argparse
from typing import TypeAlias

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_study(parser: argparse.ArgumentParser) -> None:
    """STUDY and its choices."""
    parser.add_argument(
        "study", nargs="?", default="covid", metavar="STUDY", help="a built-in study or a study.toml (default: covid)"
    )
    parser.add_argument(
        "--adjacency", metavar="NAME", help="any-record, one-feature or sensitive, in place of the study's"
    )
    parser.add_argument(
        "--sensitive", action="append", metavar="FEATURE", help="hide only this feature; may be repeated"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="for what is drawn at random, in place of the study's")
    add_json(parser)


def add_policies(parser: argparse.ArgumentParser) -> None:
    """--policy, as often as wanted."""
    parser.add_argument(
        "--policy", action="append", metavar="NAME", help="a policy, or all, in place of the study's; may be repeated"
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """--json."""
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of text")
