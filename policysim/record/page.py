"""The decision record as a page: one file, one sheet of paper, the same bytes for the same run."""

from __future__ import annotations

from typing import Any

from policies.problem import DecisionProblem
from policysim.basis import basis
from policysim.choose import Choices
from policysim.record import sections
from policysim.record.methods import methods
from policysim.record.price import Price
from policysim.study import Study

# Lines for those who decide.
SIGNATURES = 3


def record_values(study: Study, problem: DecisionProblem, choices: Choices, price: Price | None) -> dict[str, Any]:
    """What the page shows; it holds no date but the lines to write one on.

    Parameters
    ----------
    study : Study
        What was asked.
    problem : DecisionProblem
        Built from it.
    choices : Choices
        What was found.
    price : Price or None
        Of the least choice; None if there is none.
    """
    count, rows = sections.alternatives(problem, choices)
    return {
        "study": study,
        "disclaimer": basis(study).disclaimer,
        "decided": sections.decided(problem, choices),
        "made": choices.least is not None,
        "terms": sections.terms(study, problem, choices, price),
        "has_deaths": sections.DEATHS in problem.outcomes,
        "count": count,
        "rows": rows,
        "not_guaranteed": sections.not_guaranteed(study, choices),
        "certificate": choices.certificate is not None,
        "methods": methods(study, problem, choices, price),
        "signatures": SIGNATURES,
        "inputs": _inputs(study),
    }


def _inputs(study: Study) -> dict[str, str]:
    """The digest of each file that the numbers depend on."""
    identity = study.identity
    inputs = {f"study {study.name}": study.digest}
    if "scenario" in identity:
        inputs[f"scenario {identity['scenario']}"] = identity["scenario_sha256"]
    return inputs | {f"data {name}": digest for name, digest in identity.get("data", {}).items()}
