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
        description="Compare policies over ε, exactly: prints one screen and writes table, figures and report. A study "
        "of a source document (sock-groups, adult-age-sex, common-disease, marital-status) is set beside its source.",
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
    compare.add_argument("--horizon", metavar="14", help="treat over so many days, within a total ε for them all")
    compare.add_argument(
        "--total-epsilon", metavar="1,5,10", help="with --horizon: totals of the course (this default)"
    )
    compare.add_argument("--delta", metavar="1e-6", help="with --horizon: with which a total may be exceeded (0)")
    compare.add_argument(
        "--length-public",
        action="store_true",
        help="with --horizon: when a stay ends is public, and need not be hidden",
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
    _add_simulate(commands)
    sensitivity = commands.add_parser(
        "sensitivity",
        help="how far utilities can move between neighbours, and which two records show it",
        description="Exact sensitivity of the expected utilities, with the two records that attain it.",
    )
    _add_study(sensitivity)
    _add_privatize(commands)
    _add_select(commands)
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


def _add_simulate(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "simulate",
        help="treat simulated patients; their mean return beside the exact value",
        description="Monte Carlo through the vector environment: the mean return of simulated patients with its 95 % "
        "interval, beside the exact value. Exit code 4 if they are more than five standard errors apart.",
    )
    _add_study(parser)
    parser.add_argument("--patients", default="100000", metavar="N", help="how many (default: 100000)")
    parser.add_argument("--policy", default="exponential", metavar="NAME", help="which (default: exponential)")
    parser.add_argument("--epsilon", default="1", metavar="E", help="of each day's decision (default: 1)")
    parser.add_argument("--horizon", default="1", metavar="H", help="days of treatment (default: 1)")
    parser.add_argument(
        "--length-public", action="store_true", help="when a stay ends is public, and need not be hidden"
    )


def _add_privatize(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "privatize",
        help="randomise columns of a file so that no row reveals them; estimate from such a file",
        description="Write a copy of a CSV or Parquet file in which k-ary randomised response replaces some columns, "
        "with a note of the mechanism beside it, and print the table that can be estimated from it.",
    )
    parser.add_argument("data", metavar="DATA", help="a .csv or .parquet file with one row per person")
    parser.add_argument("--column", action="append", metavar="NAME", help="a column to replace; may be repeated")
    parser.add_argument("--epsilon", metavar="1", help="the privacy loss of one row, all its columns together")
    parser.add_argument("--out", metavar="FILE", help="the private file; its note is FILE.privacy.json")
    parser.add_argument(
        "--levels", action="append", metavar="NAME=A,B", help="what a column may hold (public); may be repeated"
    )
    parser.add_argument(
        "--separately", action="store_true", help="each column by itself with an equal share of ε, not all jointly"
    )
    parser.add_argument(
        "--true", action="store_true", help="also print the true counts and the errors, which are not private"
    )
    parser.add_argument(
        "--estimate", action="store_true", help="DATA is a private file with its note: only print the estimated table"
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="simulate, repeatably; such a file is no release (default: a release)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of text")


def _add_select(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "select",
        help="one private choice: the candidate that most people have",
        description="Choose one candidate of a table of people or of counts, privately. What may be published comes "
        "first; below a line, what the choice is worth, which may not. Exit code 4 if the claim of ε does not hold.",
    )
    parser.add_argument("counts", metavar="COUNTS", help="a CSV file with a row per person, or --score per candidate")
    parser.add_argument("--epsilon", required=True, metavar="0.1", help="the privacy loss that is claimed")
    parser.add_argument("--column", metavar="NAME", help="the column that holds the candidates")
    parser.add_argument("--score", metavar="NAME", help="the column that counts the people of each candidate")
    parser.add_argument("--candidates", metavar="A,B", help="all possible candidates, which are public")
    parser.add_argument("--by", metavar="NAME", help="choose for each group in this column, each with the whole ε")
    parser.add_argument("--split-by-share", action="store_true", help="split ε between groups by their shares instead")
    parser.add_argument(
        "--mechanism",
        default="exponential",
        metavar="NAME",
        help="exponential (default), exponential-monotone, permute-and-flip or report-noisy-max",
    )
    parser.add_argument(
        "--adjacency",
        default="replace-one",
        metavar="NAME",
        help="replace-one (default; the number of people is public) or add-or-remove-one",
    )
    parser.add_argument("--sensitivity", metavar="S", help="declare it (default: the true one, from --adjacency)")
    parser.add_argument("--proportions", action="store_true", help="score shares of people instead of their number")
    parser.add_argument("--seed", type=int, metavar="N", help="simulate, repeatably; this is no release")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of text")


class _Version(argparse.Action):
    """Look the version up only when it is asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version  # noqa: PLC0415

        sys.stdout.write(f"policysim {version('policysim')}\n")
        parser.exit()
