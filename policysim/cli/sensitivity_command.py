"""`policysim sensitivity`."""

from __future__ import annotations

import argparse

from policysim.cli.options import chosen_study
from policysim.decision.sensitivity_question import SensitivityQuestion
from policysim.report.deliver import deliver


def run(chosen: argparse.Namespace) -> int:
    """`policysim sensitivity`."""
    return deliver(SensitivityQuestion(chosen_study(chosen)), as_json=chosen.json)
