"""How far utilities can move between two neighbours, and which two show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from policies.problem import DecisionProblem
from policysim.decision.comparison_screen import sensitivity_screen
from policysim.question.answer import Answer
from policysim.question.progress import Progress
from policysim.study.declared import Study
from policysim.study.study_problem import build_problem


@dataclass(frozen=True)
class SensitivityQuestion:
    """The sensitivity of a study's utilities.

    Attributes
    ----------
    study : Study
        Its utilities and its adjacency.
    """

    study: Study
    refuses: ClassVar[Mapping[str, str]] = {}
    unit: ClassVar[str] = "run"
    writes: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The study's."""
        return self.study.name

    def answer(self, progress: Progress) -> Answer:
        """Exactly, over all records."""
        study, problem = self.study, build_problem(self.study)
        document = {"study": study.name, "adjacency": study.adjacency, **_sensitivity_document(problem)}
        return Answer(screen=sensitivity_screen(study, problem), document=document)


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
