"""Options that several commands have.

Commands on a study: compare, choose, audit, simulate and sensitivity.

Commands on a log of treated patients: init and evaluate.

Commands on other files: reproduce, privatize and select.
"""

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


def add_compare(commands: Commands) -> None:
    """Compare: policies over ε."""
    parser = commands.add_parser(
        "compare",
        help="compare policies over ε; prints a screen and writes a report",
        description="Compare policies over ε: prints one screen and writes table, figures and report; exactly for a "
        "scenario, with intervals for a log. A study of a source document (sock-groups, adult-age-sex, "
        "common-disease, marital-status) is set beside its source.",
    )
    add_study(parser)
    parser.add_argument("--epsilon", metavar="0.1,1,10", help="the values of ε, in place of the study's")
    add_policies(parser)
    parser.add_argument(
        "--by", action="append", metavar="FEATURE", help="report each level of this feature; may be repeated"
    )
    parser.add_argument("--out", metavar="DIR", help="where to write (default: reports/STUDY)")
    parser.add_argument("--format", metavar="svg,png,pdf", help="the kinds of figure files (default: svg,png)")
    parser.add_argument("--figure-size", metavar="NAME", help="page, column or slide: what the figures are sized for")
    parser.add_argument(
        "--price-list", action="store_true", help="also print what hiding each single feature costs at best"
    )
    parser.add_argument("--horizon", metavar="14", help="treat over so many days, within a total ε for them all")
    parser.add_argument("--total-epsilon", metavar="1,5,10", help="with --horizon: totals of the course (this default)")
    parser.add_argument("--delta", metavar="1e-6", help="with --horizon: the δ of (ε, δ)-privacy (0)")
    parser.add_argument(
        "--length-public",
        action="store_true",
        help="with --horizon: when a stay ends is public, and need not be hidden",
    )


def add_choose(commands: Commands) -> None:
    """Choose: the least ε that is good enough."""
    parser = commands.add_parser(
        "choose",
        help="the least ε of each policy that meets what you ask for",
        description="Find the least ε of each policy that meets all demands, and whether any mechanism at all can.",
    )
    add_study(parser)
    parser.add_argument("--keep", metavar="80%", help="least benefit kept: 0 is one treatment for all, 1 best for each")
    parser.add_argument("--max-loss", metavar="0.2", help="largest normalised loss: 0 is best for each, 1 uniform")
    parser.add_argument("--max-extra-deaths", metavar="5", help="most deaths per 100,000 beyond the best for each")
    parser.add_argument(
        "--max-guess", metavar="65%", help="how often the better guess may be right; sets the largest ε"
    )
    add_policies(parser)
    parser.add_argument(
        "--out", metavar="DIR", help="where a certificate or the decision record is written (default: reports/STUDY)"
    )
    parser.add_argument(
        "--decision-record", action="store_true", help="also write decision-record.html into --out: what was decided"
    )


def add_audit(commands: Commands) -> None:
    """Audit: claimed and exact privacy loss."""
    parser = commands.add_parser(
        "audit",
        help="the privacy loss that policies claim beside the exact one, and who shows it",
        description="Claimed and exact privacy loss, with the two records that attain it. Exit code 4 if one exceeds.",
    )
    add_study(parser)
    parser.add_argument("--table", metavar="FILE", help="audit the probabilities in this CSV file instead of a study")
    parser.add_argument("--actions", metavar="A,B", help="the file's action columns (default: those named p_<action>)")
    parser.add_argument(
        "--epsilon", metavar="0.1,1,10", help="in place of the study's; with --table, the one loss that is claimed"
    )
    add_policies(parser)


def add_simulate(commands: Commands) -> None:
    """Simulate: Monte Carlo beside the exact value."""
    parser = commands.add_parser(
        "simulate",
        help="treat simulated patients; their mean return beside the exact value",
        description="Monte Carlo through the vector environment: the mean return of simulated patients with its 95 % "
        "interval, beside the exact value. Exit code 4 if they are more than five standard errors apart.",
    )
    add_study(parser)
    parser.add_argument("--patients", default="100000", metavar="N", help="how many (default: 100000)")
    parser.add_argument("--policy", default="exponential", metavar="NAME", help="which (default: exponential)")
    parser.add_argument("--epsilon", default="1", metavar="E", help="of each day's decision (default: 1)")
    parser.add_argument("--horizon", default="1", metavar="H", help="days of treatment (default: 1)")
    parser.add_argument(
        "--length-public", action="store_true", help="when a stay ends is public, and need not be hidden"
    )
    parser.add_argument(
        "--log",
        metavar="FILE",
        help="also write each patient to this .csv or .parquet file: record, action, its exact propensity, reward and "
        "outcomes (one day only)",
    )


def add_sensitivity(commands: Commands) -> None:
    """Sensitivity of the expected utilities."""
    parser = commands.add_parser(
        "sensitivity",
        help="how far utilities can move between neighbours, and which two records show it",
        description="Exact sensitivity of the expected utilities, with the two records that attain it.",
    )
    add_study(parser)


def add_init(commands: Commands) -> None:
    """Init: from a data file to a study file."""
    parser = commands.add_parser(
        "init",
        help="write a study.toml for a file of treated patients, with # CHECK on every guess",
        description="Look at a CSV or Parquet file with one row per treated patient, and write a commented study.toml "
        "that compare can run. Every guess is marked # CHECK.",
    )
    parser.add_argument("data", metavar="DATA", help="a .csv or .parquet file with one row per patient")
    parser.add_argument("--out", metavar="FILE", help="the study file to write")
    add_json(parser)


def add_evaluate(commands: Commands) -> None:
    """Evaluate: what a policy is worth to the patients of a log."""
    parser = commands.add_parser(
        "evaluate",
        help="what a policy is worth to the patients of a log in which another policy chose",
        description="Estimate a policy's value from a log, with its 95 % interval, and the difference from the best "
        "single treatment for all. The policy is a table made elsewhere, or one of the catalogue on a scenario; then "
        "the exact value stands beside the estimate, and the exit code is 4 if they disagree.",
    )
    parser.add_argument(
        "log",
        metavar="LOG",
        help="a study.toml with a table data, or a .csv or .parquet file with the columns action, reward, propensity "
        "and covariates (simulate --log writes such files)",
    )
    parser.add_argument(
        "--table",
        metavar="FILE",
        help="the policy: a .csv or .parquet file with a column p_<action> for each action, and covariates by which "
        "its rows are found (none: a row for each row of the log, in its order)",
    )
    parser.add_argument("--policy", metavar="NAME", help="the policy: one of the catalogue, on the records of --study")
    parser.add_argument("--epsilon", metavar="E", help="of --policy")
    parser.add_argument("--study", metavar="STUDY", help="with --policy: the study of a scenario (default: covid)")
    parser.add_argument(
        "--estimator", default="dr", metavar="NAME", help="dr (doubly robust, the default), ips, snips or dm"
    )
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="for dr and dm: linear (default), logistic or gradient-boosting, in place of the study's",
    )
    parser.add_argument("--clip", metavar="W", help="the most that an importance weight may be (default: no limit)")
    parser.add_argument("--seed", type=int, metavar="N", help="decides which rows share a fold (default: 0)")
    add_json(parser)


def add_reproduce(commands: Commands) -> None:
    """Reproduce: the same numbers again."""
    parser = commands.add_parser(
        "reproduce",
        help="run a study again from its manifest.json and say which numbers differ",
        description="Run a study again from its manifest.json and say which numbers differ. Exit code 4 if any does.",
    )
    parser.add_argument("manifest", metavar="MANIFEST", help="the manifest.json beside a report")
    add_json(parser)


def add_privatize(commands: Commands) -> None:
    """Privatize: randomised response on columns of a file."""
    parser = commands.add_parser(
        "privatize",
        help="randomise columns of a file so that no row reveals them; estimate from such a file",
        description="Write a copy of a CSV or Parquet file in which k-ary randomised response replaces some columns, "
        "with a note of the mechanism beside it, and print the table that can be estimated from it. A second release "
        "of the same rows adds its ε: DATA.releases.json, which is private, lists the releases of DATA, and the same "
        "content is released a second time only with --again.",
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
        "--again", action="store_true", help="release the same rows once more, or replace a release; the ε add up"
    )
    parser.add_argument(
        "--ledger", metavar="FILE", help="where releases are listed, which is private (default: DATA.releases.json)"
    )
    parser.add_argument(
        "--estimate", action="store_true", help="DATA is a private file with its note: only print the estimated table"
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="simulate, repeatably; such a file is no release (default: a release)"
    )
    add_json(parser)


def add_select(commands: Commands) -> None:
    """Select: one private choice among candidates."""
    parser = commands.add_parser(
        "select",
        help="one private choice: the candidate that most people have",
        description="Choose one candidate of a table of people or of counts, privately, and print what may be "
        "published. What the choice is worth is private: --analysis shows it. Exit code 4 if the claim of ε does not "
        "hold.",
    )
    parser.add_argument("counts", metavar="COUNTS", help="a CSV file with a row per person, or --score per candidate")
    parser.add_argument("--epsilon", required=True, metavar="0.1", help="the privacy loss that is claimed")
    parser.add_argument("--column", metavar="NAME", help="the column that holds the candidates")
    parser.add_argument("--score", metavar="NAME", help="the column that counts the people of each candidate")
    parser.add_argument("--candidates", metavar="A,B", help="all possible candidates, which are public")
    parser.add_argument("--by", metavar="NAME", help="choose for each group in this column, each with the whole ε")
    parser.add_argument("--groups", metavar="A,B", help="with --by: all possible groups, which are public")
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
    parser.add_argument(
        "--analysis", action="store_true", help="also print counts and probabilities, which must not be published"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="simulate, repeatably; this is no release")
    add_json(parser)
