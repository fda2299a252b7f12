"""`policysim audit`: claimed and exact privacy loss."""

from __future__ import annotations

import argparse
from pathlib import Path

from policysim.cli.options import Commands, add_policies, add_study, chosen_study, epsilons, names


def add(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "audit",
        help="compare the claimed privacy loss of policies with the exact one, and name the records that attain it",
        description="Compare the claimed privacy loss with the exact one, and name the two records that attain it. "
        "Exit code 4 if a claim does not hold.",
    )
    add_study(parser)
    parser.add_argument(
        "--table", type=Path, metavar="FILE", help="audit the probabilities in this CSV file instead of a study"
    )
    parser.add_argument(
        "--actions", type=names, metavar="A,B", help="the file's action columns (default: those named p_<action>)"
    )
    parser.add_argument(
        "--epsilon",
        type=epsilons,
        metavar="0.1,1,10",
        help="the values of ε, in place of the study's; with --table, the claimed loss",
    )
    add_policies(parser)


def run(chosen: argparse.Namespace) -> int:
    """Ask; exit code 4 if a claim does not hold."""
    from policysim.decision.audit_question import AuditQuestion, TableAuditQuestion
    from policysim.errors import UsageError
    from policysim.output.deliver import deliver
    from policysim.question.protocol import refuse

    if chosen.table is None:
        refuse(AuditQuestion, vars(chosen))
        study = chosen_study(chosen, epsilons=chosen.epsilon, policies=chosen.policy)
        return deliver(AuditQuestion(study), as_json=chosen.json)
    refuse(TableAuditQuestion, vars(chosen))
    claims = chosen.epsilon or [None]
    if len(claims) > 1:
        given = ",".join(f"{claim:g}" for claim in claims)
        raise UsageError(f"--epsilon must be one number >= 0 with --table, got {given!r}")
    question = TableAuditQuestion(
        path=chosen.table,
        actions=None if chosen.actions is None else tuple(chosen.actions),
        adjacency=chosen.adjacency,
        sensitive=tuple(chosen.sensitive or ()),
        claimed=claims[0],
    )
    return deliver(question, as_json=chosen.json)
