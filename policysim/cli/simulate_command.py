"""`policysim simulate`: simulated patients beside the exact value."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from policysim.cli.compare_command import horizon
from policysim.cli.options import Commands, add_study, as_usage, chosen_study, one_epsilon, rows_file, whole

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from policies.policy import Policy
    from policysim.study.declared import ScenarioStudy

# Minutes to hours of work, and as many rows as a log may have.
MOST_PATIENTS = 10**9


def add(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "simulate",
        help="treat simulated patients, and compare their mean return with the exact value",
        description="Treat simulated patients, and compare their mean return, with its 95 % interval, with the exact "
        "value. Time grows with the number of patients, memory does not. Exit code 4 if mean and value are more than "
        "five standard errors apart.",
    )
    add_study(parser)
    parser.add_argument(
        "--patients",
        type=whole(2, MOST_PATIENTS),
        default="100000",
        metavar="N",
        help="the number of patients: 1000000, 1_000_000 or 1e6 (default: 100000)",
    )
    parser.add_argument(
        "--policy",
        default="exponential",
        metavar="NAME",
        help="the policy (default: exponential); over days also plan-once and plan-tree",
    )
    parser.add_argument(
        "--epsilon",
        type=one_epsilon,
        default="1",
        metavar="E",
        help="the ε of each day's decision, or of the whole course of plan-once and plan-tree (default: 1)",
    )
    parser.add_argument("--horizon", type=horizon, default="1", metavar="H", help="days of treatment (default: 1)")
    parser.add_argument("--length-public", action="store_true", help="the end of a stay is public, not hidden")
    parser.add_argument(
        "--log",
        type=rows_file,
        metavar="FILE",
        help="also write each patient to this .csv or .parquet file: record, action, its exact propensity, reward and "
        "outcomes (one day only)",
    )


def run(chosen: argparse.Namespace) -> int:
    """Simulate and print; exit code 4 if simulated and exact values disagree."""
    from contextlib import nullcontext
    from dataclasses import asdict

    from policies.optimal.optimum import daily_name
    from policysim.course.process import NotEnoughMemoryError
    from policysim.course.simulation import planned, simulate, simulated_screen
    from policysim.errors import EXIT_CHECK, UsageError
    from policysim.files.terminal import print_json, progress_bar, say
    from policysim.study.study_reader import beside_log, check_simulated_log

    study, policy, whole = _wanted(chosen)
    writer: AbstractContextManager[Any] = nullcontext()
    log = chosen.log
    if log is not None:
        from policysim.course.simulated_log import check_log_path, open_simulated_log

        check_log_path(log)  # before anything is computed
        check_simulated_log(log)
    with progress_bar("step") as progress:
        try:
            way = planned(
                study,
                policy,
                horizon=chosen.horizon,
                length_public=chosen.length_public,
                whole=whole,
                progress=progress,
            )
        except NotEnoughMemoryError as error:
            raise UsageError(f"--horizon {chosen.horizon}: {error}") from None
        if log is not None and isinstance(way.plan, list):
            writer = open_simulated_log(study.scenario, way.plan[0], log, beside_log(log, chosen.study, study))
        with writer as write:
            simulated = simulate(
                study,
                way.plan,
                patients=chosen.patients,
                exact=way.value,
                seed=study.seed,
                write=write,
                progress=progress,
            )
    agreement, uses_epsilon = simulated.agreement, policy.uses_epsilon
    shown = whole or (daily_name(policy.name) if chosen.horizon > 1 else policy.name)
    if chosen.json:
        print_json(
            {
                "study": study.name,
                "policy": shown,
                "epsilon": policy.epsilon if uses_epsilon else None,
                "horizon": chosen.horizon,
                "seed": study.seed,
                **asdict(agreement),
                "interval": list(agreement.interval),
                "errors_apart": agreement.errors_apart,
                "agrees": agreement.agrees,
                "treatments": simulated.treatments,
                "outcomes": simulated.outcomes,
                "exact_outcomes": {name: way.outcomes[name] for name in simulated.outcomes},
                **({"log": log.as_posix()} if log else {}),
            }
        )
    else:
        per = " for the whole course" if whole else " on each day" if chosen.horizon > 1 else ""
        treated = f"{shown} at ε = {policy.epsilon:g}{per}" if uses_epsilon else shown
        text = simulated_screen(study, simulated, way.outcomes, treated, chosen.horizon).text().rstrip("\n")
        say(f"{text}\n" + (f"Log: {log.as_posix()}\n" if log else ""))
    return 0 if agreement.agrees else EXIT_CHECK


def _wanted(chosen: argparse.Namespace) -> tuple[ScenarioStudy, Policy, str | None]:
    """The study, the policy, and what spends its epsilon on the whole course; UsageError for what does not fit."""
    from policies.catalogue import make_policy
    from policies.optimal.optimum import Optimal, catalogue_name
    from policysim.course.treatment_course import public_over_days
    from policysim.errors import UsageError
    from policysim.study.declared import require_scenario
    from policysim.words import PLAN_ONCE, PLAN_TREE

    over_days = chosen.horizon > 1
    if chosen.length_public and not over_days:
        raise UsageError("--length-public only goes with a --horizon of several days")
    if chosen.log is not None and over_days:
        raise UsageError(
            "--log writes single decisions: over several days the propensities of a course multiply, and no estimator "
            "here weighs whole courses; leave out --horizon"
        )
    whole = chosen.policy if chosen.policy in {PLAN_ONCE, PLAN_TREE} else None
    if whole and not over_days:
        raise UsageError(f"--policy {whole} only goes with a --horizon of several days")
    # One choice of a schedule is the best one; --epsilon is then that of the whole course.
    name = Optimal.name if whole else catalogue_name(chosen.policy) if over_days else chosen.policy
    with as_usage():
        make_policy(name, epsilon=chosen.epsilon)  # before a study is read
        study = require_scenario(chosen_study(chosen))
        policy = study.policy(name, chosen.epsilon)
        if over_days:
            public_over_days(study)
    return study, policy, whole
