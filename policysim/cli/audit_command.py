"""`policysim audit`."""

from __future__ import annotations

import argparse
from pathlib import Path

from policysim.cli.options import chosen_study, parse_epsilons
from policysim.decision.audit_question import AuditQuestion, TableAuditQuestion
from policysim.question.protocol import Question, UsageError, refuse
from policysim.report.deliver import deliver


def run(chosen: argparse.Namespace) -> int:
    """`policysim audit`; exit code 4 if a claim does not hold."""
    return deliver(_question(chosen), as_json=chosen.json)


def _question(chosen: argparse.Namespace) -> Question:
    if not chosen.table:
        refuse(AuditQuestion, vars(chosen))
        return AuditQuestion(chosen_study(chosen))
    refuse(TableAuditQuestion, vars(chosen))
    claims = [] if chosen.epsilon is None else parse_epsilons(chosen.epsilon)
    if chosen.epsilon is not None and (len(claims) != 1 or not claims[0] >= 0):
        raise UsageError(f"--epsilon must be one number >= 0 with --table, got {chosen.epsilon!r}")
    return TableAuditQuestion(
        path=Path(chosen.table),
        actions=None if chosen.actions is None else tuple(name.strip() for name in chosen.actions.split(",")),
        adjacency=chosen.adjacency,
        sensitive=tuple(chosen.sensitive or ()),
        claimed=claims[0] if claims else None,
    )
