"""What drives the sensitivity, against the utility's own terms over all pairs of neighbours."""

import numpy as np
import pytest
from random_problems import neighbour_pairs
from small_studies import DEPENDENT, STUDY, write_small_study

import policysim as ps
from envs.treatment_response import ResponseModel
from policysim.decision.scenario_outcomes import COSTS, sensitivity_by_outcome

ADJACENCIES = {
    "any-record": 'adjacency = "any-record"',
    "one-feature": 'adjacency = "one-feature"',
    "sensitive": 'adjacency = "sensitive"\nsensitive = ["smoker", "fever"]',
}


@pytest.fixture(params=ADJACENCIES.values(), ids=ADJACENCIES)
def study(request, tmp_path):
    return ps.load_study(write_small_study(tmp_path, STUDY.replace('adjacency = "any-record"', request.param)))


def test_contributions_add_up_to_the_sensitivity(study):
    problem = ps.build_problem(study)
    table = sensitivity_by_outcome(study, problem)
    assert table["contribution"].sum() == pytest.approx(problem.sensitivity.value, abs=1e-13)
    assert table["share"].sum() == pytest.approx(1.0, abs=1e-13)
    assert table["contribution"].is_monotonic_decreasing or table["contribution"].iloc[-2] < 0
    assert table["outcome"].iloc[-1] == COSTS


def test_each_outcome_has_the_largest_difference_of_its_term_over_neighbours(study):
    problem = ps.build_problem(study)
    table = sensitivity_by_outcome(study, problem).set_index("outcome")
    model = ResponseModel(study.scenario)
    chances = model.outcome_probabilities(range(problem.n_records))
    pairs = neighbour_pairs(problem.adjacency, problem.n_records)
    for place, outcome in enumerate(study.scenario.outcomes):
        term = study.utility.weights[outcome] * chances[:, :, place]
        largest = max(np.abs(term[x] - term[y]).max() for x, y in pairs)
        assert table.loc[outcome, "sensitivity"] == pytest.approx(largest, abs=1e-12)
    assert table.loc[COSTS, "sensitivity"] == 0


def test_costs_that_depend_on_the_record_are_a_part_of_it(tmp_path):
    weights = "\n[utility]\nweights = { death = 0.1, stroke = 0.1 }\n"
    study = ps.load_study(write_small_study(tmp_path, STUDY + weights, DEPENDENT))
    problem = ps.build_problem(study)
    table = sensitivity_by_outcome(study, problem).set_index("outcome")
    assert table["contribution"].sum() == pytest.approx(problem.sensitivity.value, abs=1e-13)
    assert table.loc[COSTS, ["sensitivity", "contribution"]].tolist() == pytest.approx([0.75, 0.75])
    assert "stroke" in table.index


def test_no_outcome_contributes_more_than_its_own_sensitivity(study):
    table = sensitivity_by_outcome(study, ps.build_problem(study))
    assert (table["contribution"].abs() <= table["sensitivity"] + 1e-12).all()


def test_an_outcome_without_a_weight_is_left_out(tmp_path):
    text = STUDY + "\n[utility]\nweights = { death = 0, cough = 5 }\n"
    study = ps.load_study(write_small_study(tmp_path, text))
    problem = ps.build_problem(study)
    table = sensitivity_by_outcome(study, problem)
    assert table["outcome"].tolist() == ["cough", "fever", "infected", COSTS]
    assert table.loc[0, "weight"] == 5
    assert table["contribution"].sum() == pytest.approx(problem.sensitivity.value, abs=1e-13)


def test_no_sensitivity_is_nobodys_share(tmp_path):
    text = STUDY + "\n[utility]\nweights = { death = 0, cough = 0, fever = 0, infected = 0 }\n"
    study = ps.load_study(write_small_study(tmp_path, text))
    table = sensitivity_by_outcome(study, ps.build_problem(study))
    assert table["outcome"].tolist() == [COSTS]
    assert table["share"].tolist() == [0.0]


def test_the_covid_study_is_driven_by_death(covid, covid_problem):
    table = sensitivity_by_outcome(covid, covid_problem)
    assert table.loc[0, "outcome"] == "death"
    assert table["contribution"].sum() == pytest.approx(covid_problem.sensitivity.value, abs=1e-10)
    assert len(table) == len(covid.scenario.outcomes) + 1
