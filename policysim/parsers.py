"""The options of every command. Imports nothing heavy: --help is immediate."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="policysim", description="What does choosing treatments privately cost the patients?"
    )
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    compare = commands.add_parser(
        "compare",
        help="compare policies over ε; prints a screen and writes a report",
        description="Compare policies over ε, exactly: prints one screen and writes table, figures and report.",
    )
    _add_study(compare)
    compare.add_argument("--epsilon", metavar="0.1,1,10", help="the values of ε, in place of the study's")
    compare.add_argument(
        "--policy", action="append", metavar="NAME", help="a policy, or all, in place of the study's; may be repeated"
    )
    compare.add_argument(
        "--by", action="append", metavar="FEATURE", help="report each level of this feature; may be repeated"
    )
    compare.add_argument("--out", metavar="DIR", help="where to write (default: reports/STUDY)")
    compare.add_argument(
        "--price-list", action="store_true", help="also print what hiding each single feature costs at best"
    )
    choose = commands.add_parser(
        "choose",
        help="the least ε of each policy that meets what you ask for",
        description="Find the least ε of each policy that meets all demands, and whether any mechanism at all can.",
    )
    _add_study(choose)
    choose.add_argument("--keep", metavar="80%", help="least benefit kept: 0 is one treatment for all, 1 best for each")
    choose.add_argument("--max-loss", metavar="0.2", help="largest normalised loss: 0 is best for each, 1 uniform")
    choose.add_argument("--max-extra-deaths", metavar="5", help="most deaths per 100,000 beyond the best for each")
    choose.add_argument(
        "--max-guess", metavar="65%", help="how often the better guess may be right; sets the largest ε"
    )
    choose.add_argument(
        "--policy", action="append", metavar="NAME", help="a policy, or all, in place of the study's; may be repeated"
    )
    choose.add_argument("--out", metavar="DIR", help="where a certificate is written (default: reports/STUDY)")
    audit = commands.add_parser(
        "audit",
        help="the privacy loss that policies claim beside the exact one, and who shows it",
        description="Claimed and exact privacy loss, with the two records that attain it. Exit code 4 if one exceeds.",
    )
    _add_study(audit)
    audit.add_argument("--table", metavar="FILE", help="audit the probabilities in this CSV file instead of a study")
    audit.add_argument("--actions", metavar="A,B", help="the file's action columns (default: those named p_<action>)")
    audit.add_argument(
        "--epsilon", metavar="0.1,1,10", help="in place of the study's; with --table, the one loss that is claimed"
    )
    audit.add_argument(
        "--policy", action="append", metavar="NAME", help="a policy, or all, in place of the study's; may be repeated"
    )
    sensitivity = commands.add_parser(
        "sensitivity",
        help="how far utilities can move between neighbours, and which two records show it",
        description="Exact sensitivity of the expected utilities, with the two records that attain it.",
    )
    _add_study(sensitivity)
    return parser


def _add_study(parser: argparse.ArgumentParser) -> None:
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
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of text")


class _Version(argparse.Action):
    """Look the version up only when it is asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version  # noqa: PLC0415

        sys.stdout.write(f"policysim {version('policysim')}\n")
        parser.exit()
