"""The decision record as a page: one file, one sheet of paper, the same bytes for the same run."""

from __future__ import annotations

import platform
from importlib.metadata import version

from jinja2 import Environment, PackageLoader, StrictUndefined

from policies.catalogue import CATALOGUE
from policies.problem import DecisionProblem
from policysim.basis import basis
from policysim.choose import Choices
from policysim.record import sections
from policysim.record.methods import methods
from policysim.record.price import Price
from policysim.reproduce.manifest import file_digest, scenario_digest
from policysim.study import LoggedStudy, ScenarioStudy, Study

FILE = "decision-record.html"
LIBRARIES = ("policysim", "numpy", "scipy")
# Lines for those who decide.
SIGNATURES = 3


def decision_record(study: Study, problem: DecisionProblem, choices: Choices, price: Price | None) -> str:
    """The page; it holds no date but the lines to write one on.

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
    environment = Environment(
        loader=PackageLoader("policysim"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    count, rows = sections.alternatives(problem, choices)
    return environment.get_template(FILE).render(
        study=study,
        disclaimer=basis(study).disclaimer,
        decided=sections.decided(problem, choices),
        made=choices.least is not None,
        terms=sections.terms(study, problem, choices, price),
        has_deaths=sections.DEATHS in problem.outcomes,
        count=count,
        rows=rows,
        not_guaranteed=sections.not_guaranteed(study, choices),
        certificate=choices.certificate is not None,
        methods=methods(study, problem, choices, price),
        signatures=SIGNATURES,
        inputs=_inputs(study),
        versions={
            "Python": platform.python_version(),
            **{name: version(name) for name in LIBRARIES},
            **CATALOGUE.versions(row.policy for row in choices.rows),
        },
    )


def _inputs(study: Study) -> dict[str, str]:
    """The digest of each file that the numbers depend on."""
    inputs = {f"study {study.name}": study.digest}
    if isinstance(study, ScenarioStudy):
        inputs[f"scenario {study.scenario.name}"] = scenario_digest(study)
    if isinstance(study, LoggedStudy):
        inputs |= {f"data {path.name}": file_digest(path) for path in study.log.files.values()}
    return inputs
