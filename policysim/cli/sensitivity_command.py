"""`policysim sensitivity`: how far utilities can move between neighbours."""

from __future__ import annotations

import argparse

from policysim.cli.options import Commands, add_study, chosen_study


def add(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "sensitivity",
        help="compute how far utilities can differ between two records, and name the two",
        description="Compute the exact sensitivity of the expected utilities, and name the two records that attain it.",
    )
    add_study(parser)


def run(chosen: argparse.Namespace) -> int:
    """Ask."""
    from policysim.decision.audit_question import SensitivityQuestion
    from policysim.output.deliver import deliver

    return deliver(SensitivityQuestion(chosen_study(chosen)), as_json=chosen.json)
