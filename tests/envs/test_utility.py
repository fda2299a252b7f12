"""Utility: of what happened, and its expectation, which tests/envs/test_language.py enumerates."""

import numpy as np
import pytest
from small_studies import DEPENDENT, SCENARIO, STUDY, write_small_study

import envs
import policysim as ps
from policysim.study.study_problem import expected_utilities
from policysim.utility import Utility

# The weights are those of source [R] of envs/scenarios/covid.toml, the costs illustrative.
WEIGHTS = {
    "covid_positive": 0.2,
    "taste": 0.1,
    "fever": 0.1,
    "headache": 0.1,
    "pneumonia": 0.5,
    "stomach": 0.2,
    "myocarditis": 0.5,
    "blood_clots": 1.0,
    "death": 100.0,
}
COSTS = (0.0, 0.03, 0.01, 0.04)


def test_the_weights_and_costs_are_those_of_the_report(covid):
    utility = Utility.of(covid)
    assert dict(utility.weights) == WEIGHTS
    assert tuple(utility.costs[action] for action in ("a0", "a1", "a2", "a3")) == COSTS


def test_realized_utility_by_hand(covid):
    outcomes = [[name in happened for name in covid.outcomes] for happened in ((), ("fever", "stomach"), ("death",))]
    worth = Utility.of(covid).realized(covid, outcomes, [1, 3, 2])
    assert worth == pytest.approx([-0.03, -0.1 - 0.2 - 0.04, -100 - 0.01])


def test_outcomes_and_actions_that_are_not_named_cost_nothing(covid):
    worth = Utility({"fever": 2.0}, {"a2": 0.5}).realized(covid, np.ones((4, 9)), [0, 1, 2, 3])
    assert worth == pytest.approx([-2.0, -2.0, -2.5, -2.0])


def test_a_utility_of_other_outcomes_or_treatments_is_refused(covid_response):
    with pytest.raises(ValueError, match=r"^unknown outcome 'fewer'; did you mean 'fever'\? known: "):
        expected_utilities(covid_response, Utility({"fewer": 1}, {}))
    with pytest.raises(ValueError, match=r"^unknown action 'a9'; known: a0, a1, a2, a3\.$"):
        expected_utilities(covid_response, Utility({}, {"a9": 1}))


def test_expected_utilities_are_stored_by_column(covid, covid_response):
    utilities = expected_utilities(covid_response, Utility.of(covid))
    # Mechanisms go through the table action by action: several times as fast as with the other order.
    assert utilities.shape == (1_310_720, 4)
    assert utilities.flags.f_contiguous
    assert np.isfinite(utilities).all()


def test_utilities_are_minus_the_weighed_outcomes_of_the_problem(tmp_path):
    for scenario in (SCENARIO, DEPENDENT):
        study = ps.load_study(write_small_study(tmp_path, STUDY, scenario))
        problem = ps.build_problem(study)
        harm = sum(study.utility.weights[name] * problem.outcomes[name] for name in study.scenario.outcomes)
        assert np.abs(problem.utilities + harm + problem.outcomes["costs"]).max() <= 1e-12
        response = envs.ResponseModel(study.scenario)
        for name in study.scenario.outcomes:
            assert np.abs(problem.outcomes[name] - response.probability(name)).max() <= 1e-15
