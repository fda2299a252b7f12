"""`policysim evaluate`."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from pathlib import Path

from envs.toml_reader import unknown
from policies.catalogue import CATALOGUE, make_policy, unknown_policy
from policysim.cli.options import parse_epsilons
from policysim.logs.outcome_models import OUTCOME_MODELS
from policysim.question.protocol import UsageError
from policysim.report.deliver import deliver
from policysim.study.declared import LoggedStudy, require_scenario
from policysim.study.study_file import load_study
from policysim.trials.estimate_value import ESTIMATORS, NEED_MODEL
from policysim.trials.evaluated_log import Target
from policysim.trials.evaluated_policy import CataloguePolicy, read_table_policy
from policysim.trials.evaluation_question import EvaluationQuestion

COVID = "covid"


def run(chosen: argparse.Namespace) -> int:
    """`policysim evaluate`; exit code 4 if the estimate and a known exact value disagree."""
    _check_choices(chosen)
    clip = _parse_clip(chosen.clip)
    study = _logged_study(chosen.log)
    target = _target(chosen, study)
    question = EvaluationQuestion(
        study or Path(chosen.log), target, chosen.estimator, model=chosen.model, clip=clip, seed=chosen.seed
    )
    return deliver(question, as_json=chosen.json)


def _check_choices(chosen: argparse.Namespace) -> None:
    """UsageError for options that do not exist or go together, before anything is read."""
    if (chosen.table is None) == (chosen.policy is None):
        raise UsageError("evaluate needs a policy: --table FILE, or --policy NAME with --epsilon E")
    if chosen.table is not None:
        for name in ("epsilon", "study"):
            if getattr(chosen, name) is not None:
                raise UsageError(f"--{name} only goes with --policy")
    if chosen.estimator not in ESTIMATORS:
        raise UsageError(f"--estimator: {unknown('estimator', chosen.estimator, tuple(ESTIMATORS))}")
    if chosen.model is not None:
        if chosen.model not in OUTCOME_MODELS:
            raise UsageError(f"--model: {unknown('outcome model', chosen.model, OUTCOME_MODELS)}")
        if chosen.estimator not in NEED_MODEL:
            raise UsageError(f"--model only goes with the estimators {' and '.join(NEED_MODEL)}")
    if chosen.seed is not None and chosen.seed < 0:
        raise UsageError(f"--seed must be >= 0, got {chosen.seed}")


def _parse_clip(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        clip = float(text)
    except ValueError:
        clip = math.nan
    if not 0 < clip < math.inf:
        raise UsageError(f"--clip must be a number > 0, got {text!r}")
    return clip


def _logged_study(name: str) -> LoggedStudy | None:
    """The study of a log; None for a file of rows."""
    if name.lower().endswith((".csv", ".parquet")):
        return None
    study = load_study(name)
    if isinstance(study, LoggedStudy):
        return study
    raise UsageError(
        f"{name} is a study of a scenario, which has no log: simulate {name} --log FILE writes one, to evaluate on"
    )


def _target(chosen: argparse.Namespace, logged: LoggedStudy | None) -> Target:
    if chosen.table is not None:
        return read_table_policy(Path(chosen.table))
    if chosen.policy not in CATALOGUE:
        raise UsageError(unknown_policy(chosen.policy))
    template = make_policy(chosen.policy)
    if template.uses_epsilon:
        template = replace(template, epsilon=_parse_epsilon(chosen.epsilon))
    elif chosen.epsilon is not None:
        raise UsageError(f"--epsilon does not go with {template.name}, which has none")
    if logged is not None and chosen.study is None:
        raise UsageError(
            f"--policy needs the --study of a scenario whose records are those of {logged.name}; policies learned from "
            f"the log itself are evaluated on held-out patients by policysim compare {chosen.log}"
        )
    try:
        return CataloguePolicy(template, require_scenario(load_study(chosen.study or COVID)))
    except ValueError as error:
        raise UsageError(str(error)) from None


def _parse_epsilon(text: str | None) -> float:
    values = [] if text is None else parse_epsilons(text)
    if len(values) != 1 or not values[0] >= 0:
        raise UsageError(f"--policy needs one --epsilon, a number >= 0, got {text!r}")
    return values[0]
