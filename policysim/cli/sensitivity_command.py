"""`policysim sensitivity`: how far utilities can move between neighbours."""

from __future__ import annotations

import argparse
from typing import Any

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
    """Print Δ and Γ, each with the two neighbours that show it."""
    from policysim.files.terminal import print_json, say
    from policysim.numbers import rounded, rounded_up, steady
    from policysim.report.screen import Line, Screen
    from policysim.study.labels import hidden
    from policysim.study.study_problem import build_problem

    study = chosen_study(chosen)
    problem = build_problem(study)
    records, found = problem.records, problem.sensitivity
    lines = []
    document: dict[str, Any] = {"study": study.name, "adjacency": study.adjacency}
    document |= {"value": found.value, "range": found.range}
    for key, label, value, witness, what in (
        ("witness", "Sensitivity Δ", found.value, found.witness, "one treatment's expected utility differs"),
        ("range_witness", "Range Γ", found.range, found.range_witness, "the difference of two treatments does (≤ 2Δ)"),
    ):
        actions = {problem.actions[action]: problem.utilities[:, action] for action in witness.actions}
        pair = [witness.record, witness.neighbour]
        record, neighbour = map(records.describe, pair)
        document[key] = {"record": record, "neighbour": neighbour, "actions": list(actions)}
        rows = [
            (", ".join(f"u({name}) = {rounded(of[place], digits=6)}" for name, of in actions.items()), words)
            for place, words in zip(pair, (record, neighbour), strict=True)
        ]
        size = rounded_up(steady(value), 6)
        lines.append(Line(label, f"{size}: the most by which {what} between two neighbours", tuple(rows)))
    if chosen.json:
        print_json(document)
    else:
        say(Screen(title=study.title, about=(f"Secret: {hidden(study)}.",), lines=tuple(lines)).text())
    return 0
