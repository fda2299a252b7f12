"""`policysim choose`."""

from __future__ import annotations

import argparse
from pathlib import Path

from policysim.cli.options import chosen_study, chosen_wish
from policysim.decision.choice_question import ChoiceQuestion
from policysim.report.deliver import deliver


def run(chosen: argparse.Namespace) -> int:
    """`policysim choose`; 4 if no mechanism can do what is asked for."""
    question = ChoiceQuestion(
        chosen_study(chosen), chosen_wish(chosen), tuple(chosen.policy or ()), record=chosen.decision_record
    )
    return deliver(question, out=Path(chosen.out) if chosen.out else None, as_json=chosen.json)
