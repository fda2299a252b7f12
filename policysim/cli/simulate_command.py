"""`policysim simulate`."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from policies.catalogue import CATALOGUE, make_policy, unknown_policy
from policies.policy import Policy
from policysim.cli.compare_command import parse_horizon, with_catalogue_names
from policysim.cli.options import chosen_scenario_study, parse_epsilons, parse_whole
from policysim.course.simulated_log import check_log_path
from policysim.course.simulation_question import SimulationQuestion
from policysim.course.treatment_course import require_any_record
from policysim.files.bad_rows import DataError
from policysim.files.columns_file import check_ending
from policysim.question.protocol import UsageError
from policysim.report.deliver import deliver

MOST_PATIENTS = 10**9


def run(chosen: argparse.Namespace) -> int:
    """`policysim simulate`; exit code 4 if simulated and exact values disagree."""
    horizon = parse_horizon(chosen.horizon)
    policy = _policy(with_catalogue_names(chosen) if horizon > 1 else chosen)
    patients = parse_whole("--patients", chosen.patients, 2, MOST_PATIENTS)
    study = chosen_scenario_study(argparse.Namespace(**{**vars(chosen), "policy": None, "epsilon": None}))
    if chosen.length_public and horizon == 1:
        raise UsageError("--length-public only goes with a --horizon of several days")
    if horizon > 1:
        try:
            require_any_record(study)
        except ValueError as error:
            raise UsageError(str(error)) from None
    log = _log_path(chosen.log, horizon)
    question = SimulationQuestion(study, policy, patients, horizon, length_public=chosen.length_public, log=log)
    return deliver(question, as_json=chosen.json)


def _log_path(text: str | None, horizon: int) -> Path | None:
    """The file of --log, if it can be written; checked before anything is computed."""
    if text is None:
        return None
    if horizon > 1:
        raise UsageError(
            "--log writes single decisions: over several days the propensities of a course multiply, and no estimator "
            "here weighs whole courses; leave out --horizon"
        )
    path = Path(text)
    try:
        check_ending(path)
    except DataError as error:
        raise UsageError(f"--log {error}") from None
    check_log_path(path)
    return path


def _policy(chosen: argparse.Namespace) -> Policy:
    if chosen.policy not in CATALOGUE:
        raise UsageError(unknown_policy(chosen.policy))
    epsilons = parse_epsilons(chosen.epsilon)
    if len(epsilons) != 1 or not epsilons[0] >= 0:
        raise UsageError(f"--epsilon must be one number >= 0, got {chosen.epsilon!r}")
    template = make_policy(chosen.policy)
    return replace(template, epsilon=epsilons[0]) if template.uses_epsilon else template
