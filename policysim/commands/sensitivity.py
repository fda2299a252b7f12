"""`policysim sensitivity`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from policies.problem import DecisionProblem
from policysim import screen
from policysim.console import print_json
from policysim.options import chosen_study
from policysim.problem import build_problem


def run(chosen: argparse.Namespace) -> int:
    """`policysim sensitivity`."""
    study = chosen_study(chosen)
    problem = build_problem(study)
    if chosen.json:
        print_json({"study": study.name, "adjacency": study.adjacency, **_sensitivity_document(problem)})
    else:
        sys.stdout.write(screen.sensitivity_screen(study, problem) + "\n")
    return 0


def _sensitivity_document(problem: DecisionProblem) -> dict[str, Any]:
    found = problem.sensitivity
    witnesses = {
        "witness": found.witness,
        "range_witness": found.range_witness,
        "monotone_witness": found.monotone_witness,
    }
    return {
        "value": found.value,
        "range": found.range,
        "monotone": found.monotone,
        **{
            name: witness
            and {
                "record": problem.records.describe(witness.record),
                "neighbour": problem.records.describe(witness.neighbour),
                "actions": [problem.actions[action] for action in witness.actions],
            }
            for name, witness in witnesses.items()
        },
    }
