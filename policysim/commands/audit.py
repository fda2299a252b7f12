"""`policysim audit`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from policies.adjacency import AnyRecord, Sensitive
from policysim.audit import (
    Finding,
    audit,
    audit_document,
    audit_table,
    exceeds,
    table_adjacency,
)
from policysim.audit_screen import audit_screen, table_heading
from policysim.comparison import number_of_jobs
from policysim.console import EXIT_CHECK, print_json, progress
from policysim.options import UsageError, chosen_study, parse_epsilons
from policysim.probability_table import read_probability_table
from policysim.problem import build_problem
from policysim.words import hidden


def run(chosen: argparse.Namespace) -> int:
    """`policysim audit`; exit code 4 if a claim does not hold."""
    findings, heading, about = _audit_of_table(chosen) if chosen.table else _audit_of_study(chosen)
    if chosen.json:
        print_json({**about, **audit_document(findings)})
    else:
        sys.stdout.write(audit_screen(findings, heading) + "\n")
    return EXIT_CHECK if exceeds(findings) else 0


def _audit_of_study(chosen: argparse.Namespace) -> tuple[list[Finding], list[str], dict[str, Any]]:
    if chosen.actions is not None:
        raise UsageError("--actions only goes with --table")
    study = chosen_study(chosen)
    with progress(number_of_jobs(study.policies, study.epsilons)) as advance:
        problem = build_problem(study)
        findings = audit(problem, study.policies, study.epsilons, advance)
    heading = [
        study.title,
        f"Hidden: {hidden(study)}. {problem.n_records:,} records, {problem.n_actions} actions; exact, over all pairs.",
    ]
    return findings, heading, {"study": study.name, "adjacency": study.adjacency, "sensitive": list(study.sensitive)}


def _audit_of_table(chosen: argparse.Namespace) -> tuple[list[Finding], list[str], dict[str, Any]]:
    if chosen.policy:
        raise UsageError("--policy does not go with --table: the table is the policy")
    claims = [] if chosen.epsilon is None else parse_epsilons(chosen.epsilon)
    if chosen.epsilon is not None and (len(claims) != 1 or not claims[0] >= 0):
        raise UsageError(f"--epsilon must be one number >= 0 with --table, got {chosen.epsilon!r}")
    actions = None if chosen.actions is None else [name.strip() for name in chosen.actions.split(",")]
    table = read_probability_table(Path(chosen.table), actions)
    sensitive = chosen.sensitive or []
    name = chosen.adjacency or (Sensitive.name if sensitive else AnyRecord.name)
    try:
        adjacency = table_adjacency(table, name, sensitive)
    except ValueError as error:
        raise UsageError(str(error)) from None
    about = {"table": chosen.table, "adjacency": name, "sensitive": sensitive}
    return audit_table(table, adjacency, *claims), table_heading(table, adjacency), about
