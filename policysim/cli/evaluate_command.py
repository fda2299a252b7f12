"""`policysim evaluate`: what a policy is worth to the patients of a log."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from policysim.cli.options import (
    Commands,
    add_format,
    add_json,
    add_seed,
    add_workers,
    as_usage,
    asks_to_count,
    chosen_executor,
    chosen_format,
    number,
    one_epsilon,
)

if TYPE_CHECKING:
    from policysim.study.declared import LoggedStudy
    from policysim.trials.outside_policy import OutsidePolicy

COVID = "covid"


def add(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "evaluate",
        help="estimate a policy's value on a log of treated patients",
        description="Estimate a policy's value from a log, with its 95 % interval, and the difference from one "
        "treatment for everyone, chosen on other patients. The policy is a table of your own, or one of the catalogue "
        "on a scenario; then the exact value is printed, too, and the exit code is 4 if they disagree.",
    )
    parser.add_argument(
        "log",
        metavar="LOG",
        help="a study.toml with a table data, or a file (.csv, .tsv, .txt, .dat, .parquet) with the columns action, "
        "reward, propensity and covariates (simulate --log writes such files), or a folder or pattern of such files",
    )
    parser.add_argument(
        "--table",
        type=Path,
        metavar="FILE",
        help="the policy: such a file with a column p_<action> for each action, and covariates that "
        "match its rows to the log's (without them: a row for each row of the log, in its order)",
    )
    parser.add_argument("--policy", metavar="NAME", help="the policy: one of the catalogue, on the records of --study")
    parser.add_argument("--epsilon", type=one_epsilon, metavar="E", help="the ε of --policy")
    parser.add_argument(
        "--study",
        metavar="STUDY",
        help="the study with the contraindications and the records of --policy (default: the study of simulate, if it "
        "made the log; else covid for --policy)",
    )
    parser.add_argument(
        "--estimator",
        default="dr",
        metavar="NAME",
        help="dr (doubly robust, the default), ips, snips or dm",
    )
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="for dr and dm: linear (default), logistic, gradient-boosting, constant, chosen or stacked, in place "
        "of the study's",
    )
    parser.add_argument(
        "--clip",
        type=number("a number > 0", lambda value: 0 < value < math.inf),
        metavar="W",
        help="the largest importance weight allowed (default: no limit)",
    )
    add_format(parser, "LOG")
    add_workers(parser)
    add_seed(parser, "the seed of the folds (default: 0)")
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    """Ask; exit code 4 if the estimate and a known exact value disagree."""
    from envs.toml_reader import unknown
    from policysim.errors import EXIT_CHECK, UsageError
    from policysim.files.csv_format import RECOGNISED
    from policysim.files.terminal import print_json, progress_bar, say
    from policysim.logs.log_source import OUTCOME_MODELS
    from policysim.trials.estimate_value import ESTIMATORS, NEED_MODEL
    from policysim.trials.evaluate_log import evaluate_on
    from policysim.trials.evaluation_words import evaluation_document, evaluation_screen

    # What cannot be, or does not go together, before any row is read.
    if chosen.estimator not in ESTIMATORS:
        raise UsageError(f"--estimator: {unknown('estimator', chosen.estimator, list(ESTIMATORS))}")
    if chosen.model is not None and chosen.model not in OUTCOME_MODELS:
        raise UsageError(f"--model: {unknown('outcome model', chosen.model, OUTCOME_MODELS)}")
    study = _logged_study(chosen.log)
    if (chosen.table is None) == (chosen.policy is None):
        raise UsageError("evaluate needs a policy: --table FILE, or --policy NAME with --epsilon E")
    if chosen.table is not None and chosen.epsilon is not None:
        raise UsageError("--epsilon only goes with --policy")
    if chosen.model is not None and chosen.estimator not in NEED_MODEL:
        raise UsageError(f"--model only goes with the estimators {' and '.join(NEED_MODEL)}")
    target, stated = _target(chosen, study), chosen_format(chosen)
    if study and stated != RECOGNISED:
        raise UsageError(f"{stated.options[0]} goes with a file of rows: a study says so in [data]")
    with chosen_executor(chosen) as executor, progress_bar("fold") as progress:
        evaluated = evaluate_on(
            study or Path(chosen.log),
            target,
            estimator=chosen.estimator,
            model=chosen.model,
            clip=chosen.clip,
            seed=chosen.seed,
            counted=asks_to_count(chosen),
            stated=stated,
            executor=executor,
            progress=progress,
        )
    if chosen.json:
        print_json(evaluation_document(evaluated))
    else:
        say(evaluation_screen(evaluated).text())
    return 0 if evaluated.agreement is None or evaluated.agreement.agrees else EXIT_CHECK


def _logged_study(name: str) -> LoggedStudy | None:
    """The study of a log; None for a file of rows."""
    from policysim.errors import UsageError
    from policysim.files.many_files import is_many, kind_of
    from policysim.study.declared import LoggedStudy, ScenarioStudy
    from policysim.study.study_reader import STUDY, load_study, study_names

    if kind_of(Path(name)) or (is_many(name) and not (Path(name) / STUDY).exists() and name not in study_names()):
        return None
    study = load_study(name)
    if isinstance(study, LoggedStudy):
        return study
    instead = f": policysim simulate {name} evaluates a policy on simulated patients; with --log FILE it writes a log"
    raise UsageError(f"{name} has no log of treated patients{instead if isinstance(study, ScenarioStudy) else ''}")


def _target(chosen: argparse.Namespace, logged: LoggedStudy | None) -> OutsidePolicy:
    from policies.catalogue import make_policy
    from policysim.errors import UsageError
    from policysim.files.probability_table import read_probability_table
    from policysim.study.declared import require_scenario
    from policysim.study.study_reader import load_study, study_of
    from policysim.trials.outside_policy import catalogue_policy, table_policy

    if chosen.table is not None:
        table = read_probability_table(chosen.table)
        with as_usage():
            known = load_study(chosen.study) if chosen.study else None if logged else study_of(Path(chosen.log))
            return table_policy(table, None if known is None else require_scenario(known))
    with as_usage():
        policy = make_policy(chosen.policy)
    if policy.uses_epsilon and chosen.epsilon is None:
        raise UsageError(f"--policy {chosen.policy} needs --epsilon, a number >= 0")
    if not policy.uses_epsilon and chosen.epsilon is not None:
        raise UsageError(f"--epsilon does not go with {policy.name}, which has none")
    if logged is not None and chosen.study is None:
        raise UsageError(
            f"--policy needs the --study of a scenario with the records of {logged.name}; policysim compare "
            f"{chosen.log} tests policies that are learned from the log itself, on other patients"
        )
    with as_usage():
        study = load_study(chosen.study) if chosen.study else study_of(Path(chosen.log)) or load_study(COVID)
        epsilon = math.inf if chosen.epsilon is None else chosen.epsilon
        return catalogue_policy(study.policy(policy.name, epsilon), require_scenario(study))
