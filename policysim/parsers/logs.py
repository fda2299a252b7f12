"""Commands on a log of treated patients: init and evaluate."""

from __future__ import annotations

from policysim.parsers.shared import Commands, add_json


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
