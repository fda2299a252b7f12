"""From a study to the decision problem that policies work on."""

from __future__ import annotations

from envs.cohort import prior
from envs.response import ResponseModel
from envs.scenario import DEATH
from policies.adjacency import Adjacency, AnyRecord, OneFeature, Sensitive
from policies.problem import DecisionProblem
from policysim.study import Study
from policysim.utility import expected_utilities


def build_problem(study: Study) -> DecisionProblem:
    """The expected utility, prior and adjacency of a study, over all its records.

    Returns
    -------
    DecisionProblem
        `.outcomes` holds expected deaths and numbers of symptoms (what can clear, beside the infection) per patient.

    Examples
    --------
    >>> from policysim.study import load_study
    >>> build_problem(load_study("covid")).utilities.shape
    (1310720, 4)
    """
    scenario = study.scenario
    response = ResponseModel(scenario)
    symptoms = [name for name in scenario.transient if name not in scenario.death.acute]
    return DecisionProblem(
        expected_utilities(response, study.utility),
        prior(scenario),
        build_adjacency(study),
        scenario.actions,
        records=scenario.space,
        outcomes={"deaths": response.probability(DEATH), "symptoms": response.expected_count(symptoms)},
    )


def build_adjacency(study: Study) -> Adjacency:
    """The adjacency of a study, over its scenario's features."""
    space = study.scenario.space
    if study.adjacency == OneFeature.name:
        return OneFeature(space.shape)
    if study.adjacency == Sensitive.name:
        return Sensitive(space.shape, tuple(space.axis(name) for name in study.sensitive))
    return AnyRecord()
