"""`policysim sensitivity`: how far utilities can move between neighbours."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from policysim.cli.options import Commands, add_study, chosen_study

if TYPE_CHECKING:
    from policies.problem import DecisionProblem
    from policies.sensitivity import Witness
    from policysim.report.screen import Line


def add(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "sensitivity",
        help="compute how far utilities can differ between two records, and name the two",
        description="Compute the exact sensitivity of the expected utilities, and name the two records that attain it.",
    )
    add_study(parser)


def run(chosen: argparse.Namespace) -> int:
    """Print Δ and Γ, each with the two records that show it."""
    from policysim.files.terminal import print_json, say
    from policysim.report.screen import Screen
    from policysim.study.labels import hidden
    from policysim.study.study_problem import build_problem

    study = chosen_study(chosen)
    problem = build_problem(study)
    found = problem.sensitivity
    if chosen.json:
        document = {"study": study.name, "adjacency": study.adjacency, "value": found.value, "range": found.range}
        witnesses = {"witness": found.witness, "range_witness": found.range_witness}
        print_json(document | {name: witness_document(problem, witness) for name, witness in witnesses.items()})
        return 0
    lines = (
        shown_by(problem, "Sensitivity Δ", found.value, "one treatment's expected utility differs", found.witness),
        shown_by(problem, "Range Γ", found.range, "a difference of two treatments does (≤ 2Δ)", found.range_witness),
    )
    say(Screen(title=study.title, about=(f"Secret: {hidden(study)}.",), lines=lines).text())
    return 0


def witness_document(problem: DecisionProblem, witness: Witness) -> dict[str, Any]:
    """Two neighbours and the treatments by which they differ most."""
    return {
        "record": problem.records.describe(witness.record),
        "neighbour": problem.records.describe(witness.neighbour),
        "actions": [problem.actions[action] for action in witness.actions],
    }


def shown_by(problem: DecisionProblem, label: str, value: float, what: str, witness: Witness) -> Line:
    """A number, and below it the utilities of the two neighbours that show it."""
    from policysim.numbers import rounded, rounded_up, steady
    from policysim.report.screen import Line

    rows = []
    for record in (witness.record, witness.neighbour):
        utilities = [
            f"u({problem.actions[action]}) = {rounded(problem.utilities[record, action], digits=6)}"
            for action in witness.actions
        ]
        rows.append((", ".join(utilities), problem.records.describe(record)))
    return Line(label, f"{rounded_up(steady(value), 6)}: the most by which {what} between two neighbours", tuple(rows))
