"""From a study to the decision problem that policies work on."""

from __future__ import annotations

from envs.cohort import prior
from envs.response import ResponseModel
from envs.scenario import DEATH
from policies.problem import DecisionProblem
from policysim.study import LoggedStudy, Study, build_adjacency, require_scenario
from policysim.utility import expected_utilities


def build_problem(study: Study) -> DecisionProblem:
    """The expected utility, prior and adjacency of a study, over all its records.

    Returns
    -------
    DecisionProblem
        For a scenario, `.outcomes` holds expected deaths and numbers of symptoms (what can clear, beside the infection)
        per patient. For a log, the utilities are an outcome model's, fitted on all of it, and the prior is that of its
        patients (`policysim.logged.fitting`).

    Examples
    --------
    >>> from policysim.study_file import load_study
    >>> build_problem(load_study("covid")).utilities.shape
    (1310720, 4)
    """
    if isinstance(study, LoggedStudy):
        # Only such a study needs these modules.
        from policysim.logged.fitting import problem_of_log  # noqa: PLC0415
        from policysim.logs.trial import load_log  # noqa: PLC0415

        return problem_of_log(study, load_log(study.log))
    modelled = require_scenario(study)
    scenario = modelled.scenario
    response = ResponseModel(scenario)
    symptoms = [name for name in scenario.transient if name not in scenario.death.acute]
    return DecisionProblem(
        expected_utilities(response, modelled.utility),
        prior(scenario),
        build_adjacency(study),
        scenario.actions,
        records=scenario.space,
        outcomes={"deaths": response.probability(DEATH), "symptoms": response.expected_count(symptoms)},
    )
