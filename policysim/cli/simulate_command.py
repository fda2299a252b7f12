"""`policysim simulate`: simulated patients beside the exact value."""

from __future__ import annotations

import argparse

from policysim.cli.compare_command import horizon
from policysim.cli.options import Commands, add_study, as_usage, chosen_study, one_epsilon, rows_file, whole

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
    """Ask; exit code 4 if simulated and exact values disagree."""
    from policies.catalogue import make_policy
    from policies.optimal.optimum import Optimal, catalogue_name
    from policysim.course.simulation import SimulationQuestion
    from policysim.course.treatment_course import public_over_days
    from policysim.errors import UsageError
    from policysim.output.deliver import deliver
    from policysim.study.declared import require_scenario
    from policysim.study.study_reader import beside_log
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
    if chosen.log is not None:
        from policysim.course.simulated_log import check_log_path

        # Before anything is computed.
        check_log_path(chosen.log)
    question = SimulationQuestion(
        study,
        policy,
        chosen.patients,
        chosen.horizon,
        length_public=chosen.length_public,
        whole=whole,
        log=chosen.log,
        beside={} if chosen.log is None else beside_log(chosen.log, chosen.study, study),
    )
    return deliver(question, as_json=chosen.json)
