"""What the numbers of a comparison depend on."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from policies.catalogue import CATALOGUE
from policies.problem import DecisionProblem
from policysim.reproduce.manifest import scenario_digest
from policysim.study import ScenarioStudy

LIBRARIES = ("policysim", "numpy", "scipy", "pandas", "gymnasium", "matplotlib")


def build_manifest(study: ScenarioStudy, problem: DecisionProblem) -> dict[str, Any]:
    """What the numbers depend on; nothing in it changes from run to run on one machine."""
    found = problem.sensitivity
    neighbours = [problem.records.describe(r) for r in (found.witness.record, found.witness.neighbour)]
    return {
        "study": {"name": study.name, "title": study.title, "sha256": study.digest},
        "scenario": study.scenario.name,
        "scenario_sha256": scenario_digest(study),
        "records": problem.n_records,
        "actions": list(problem.actions),
        "adjacency": study.adjacency,
        "sensitive": list(study.sensitive),
        "epsilon": study.epsilon,
        "epsilons": list(study.epsilons),
        "policies": list(study.policies),
        "by": list(study.by),
        "seed": study.seed,
        "sensitivity": {
            "value": found.value,
            "range": found.range,
            "monotone": found.monotone,
            "neighbours": neighbours,
            "action": problem.actions[found.witness.action],
        },
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in LIBRARIES},
            **CATALOGUE.versions(study.policies),
        },
    }


def manifest_text(manifest: Mapping[str, Any]) -> str:
    """As a file."""
    return json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
