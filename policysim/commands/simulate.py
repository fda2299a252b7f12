"""`policysim simulate`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from policies.arrays import FloatArray
from policies.catalogue import CATALOGUE, make_policy, unknown_policy
from policies.policy import Policy
from policysim.columns_file import check_ending
from policysim.commands.compare_days import parse_horizon, parse_whole, with_catalogue_names
from policysim.console import EXIT_CHECK, print_json, progress
from policysim.options import UsageError, chosen_scenario_study, parse_epsilons
from policysim.probability_table import DataError
from policysim.problem import build_problem
from policysim.processes.planning import policy_value
from policysim.processes.step_problems import daily_name, optimal_course
from policysim.processes.treatment_course import build_course, require_any_record
from policysim.simulated_log import check_log_path, open_simulated_log
from policysim.simulation import MOST_ERRORS, Simulation, simulate
from policysim.study import ScenarioStudy
from policysim.text import wrap
from policysim.words import DISCLAIMER, days

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
    with progress(patients, unit="patient") as advance:
        tables, exact = _tables(study, policy, horizon, length_public=chosen.length_public)
        with open_simulated_log(study.scenario, tables[0], log) if log else nullcontext() as keep:
            found = simulate(study, tables, patients=patients, exact=exact, seed=study.seed, advance=advance, keep=keep)
    if chosen.json:
        print_json(_document(study, policy, horizon, found) | ({"log": log.as_posix()} if log else {}))
    else:
        sys.stdout.write("\n".join(_lines(study, policy, horizon, found) + _log_lines(log)) + "\n")
    return 0 if found.agrees else EXIT_CHECK


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


def _log_lines(log: Path | None) -> list[str]:
    return [f"Log: {log.as_posix()}"] if log else []


def _tables(
    study: ScenarioStudy, policy: Policy, horizon: int, *, length_public: bool
) -> tuple[Sequence[FloatArray], float]:
    """p(a|x) of each day, and the exact value."""
    if horizon == 1:
        problem = build_problem(study)
        table = policy.probabilities(problem)
        return [table], problem.value(table)
    process = build_course(study, horizon, length_public=length_public)
    tables = [day.tables(policy)[1] for day in optimal_course(process).decisions(policy)]
    return tables, policy_value(process, tables)


def _policy(chosen: argparse.Namespace) -> Policy:
    if chosen.policy not in CATALOGUE:
        raise UsageError(unknown_policy(chosen.policy))
    epsilons = parse_epsilons(chosen.epsilon)
    if len(epsilons) != 1 or not epsilons[0] >= 0:
        raise UsageError(f"--epsilon must be one number >= 0, got {chosen.epsilon!r}")
    template = make_policy(chosen.policy)
    return replace(template, epsilon=epsilons[0]) if template.uses_epsilon else template


def _name(policy: Policy, horizon: int) -> str:
    return daily_name(policy.name) if horizon > 1 else policy.name


def _lines(study: ScenarioStudy, policy: Policy, horizon: int, found: Simulation) -> list[str]:
    low, high = found.interval
    spends = f" at ε = {policy.epsilon:g} a day" if policy.uses_epsilon else ""
    if not found.agrees:
        verdict = f"they DISAGREE: more than {MOST_ERRORS:g} is no chance"
    elif found.errors_apart > MOST_ERRORS:
        verdict = (
            "no verdict. So few patients may not show an outcome as rare as death at all, and then the standard error "
            "and the interval do not know of it: simulate more"
        )
    else:
        verdict = "they agree"
    return [
        f"{found.patients:,} simulated patients, {days(horizon)}, {_name(policy, horizon)}{spends}.",
        f"{DISCLAIMER} Random numbers from seed {study.seed}.",
        "",
        f"Mean return    {found.mean:.6f}   95 % interval {low:.6f} to {high:.6f}",
        f"Exact value    {found.exact:.6f}",
        *wrap(f"Difference     {found.errors_apart:.2f} standard errors: {verdict}."),
    ]


def _document(study: ScenarioStudy, policy: Policy, horizon: int, found: Simulation) -> dict[str, Any]:
    return {
        "study": study.name,
        "policy": _name(policy, horizon),
        "epsilon": policy.epsilon if policy.uses_epsilon else None,
        "horizon": horizon,
        "seed": study.seed,
        **asdict(found),
        "interval": list(found.interval),
        "errors_apart": found.errors_apart,
        "agrees": found.agrees,
    }
