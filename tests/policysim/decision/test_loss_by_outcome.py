"""What a loss is made of, against the outcomes of every record one by one."""

import numpy as np
import pandas as pd
import pytest
from small_studies import DEPENDENT, SCENARIO, STUDY, write_small_study

import policysim as ps
from envs.treatment_response import ResponseModel
from policies.catalogue import CATALOGUE
from policysim.decision.comparison import compare_problem
from policysim.decision.scenario_outcomes import COSTS_TITLE, loss_by_outcome
from policysim.study.sweep import applies


@pytest.fixture(scope="module", params=[SCENARIO, DEPENDENT], ids=["same-for-all", "by-patient"])
def study(request, tmp_path_factory):
    return ps.load_study(write_small_study(tmp_path_factory.mktemp("parts"), STUDY, request.param))


@pytest.fixture(scope="module")
def problem(study):
    return ps.build_problem(study)


@pytest.fixture(scope="module")
def policies(problem):
    made = [ps.make_policy(name, epsilon=0.7) for name in CATALOGUE.built_in]
    return [policy for policy in made if applies(policy, problem)]


def losses(study, problem, policies):
    """By outcome, from a comparison at the epsilon of the policies."""
    every = {policy.name: policy for policy in (*policies, ps.make_policy("greedy"))}
    rows = compare_problem(problem, policies=list(every.values()), epsilons=[0.7])
    return loss_by_outcome(rows, study.weights, [policy.name for policy in policies])


def test_the_parts_of_every_policy_add_up_to_its_loss(study, problem, policies):
    table = losses(study, problem, policies)
    best = problem.prior @ problem.utilities.max(axis=1)
    for policy in policies:
        lost = table.loc[table["policy"] == policy.name, "lost"].sum()
        assert lost == pytest.approx(best - problem.value(policy.probabilities(problem)), abs=1e-14)


def test_each_part_is_that_of_its_outcome(study, problem, policies):
    table = losses(study, problem, policies).set_index(["policy", "outcome"])
    chances = ResponseModel(study.scenario).outcome_probabilities(range(problem.n_records))
    best = np.eye(problem.n_actions)[problem.best_actions]
    for policy in policies:
        shift = problem.prior[:, None] * (policy.probabilities(problem) - best)
        for place, outcome in enumerate(study.scenario.outcomes):
            more = (shift * chances[:, :, place]).sum()
            assert table.loc[(policy.name, outcome), "more"] == pytest.approx(more, abs=1e-14)
            assert table.loc[(policy.name, outcome), "lost"] == pytest.approx(
                study.utility.weights[outcome] * more, abs=1e-14
            )
        space = study.scenario.space
        cost = np.tile(study.utility.cost_vector(study.scenario.actions), (space.size, 1))
        if study.scenario.costs_by_record:
            cost[:, 2] += 0.75 * (space.groups("fever")[0] & space.groups("age")[0])
        costs = (shift * cost).sum()
        assert table.loc[(policy.name, COSTS_TITLE), "lost"] == pytest.approx(costs, abs=1e-14)


def test_an_outcome_without_a_weight_is_left_out(tmp_path):
    study = ps.load_study(write_small_study(tmp_path, STUDY + "\n[utility]\nweights = { death = 0, cough = 5 }\n"))
    problem = ps.build_problem(study)
    table = losses(study, problem, [ps.make_policy("uniform")])
    assert "death" not in set(table["outcome"])
    best = problem.prior @ problem.utilities.max(axis=1)
    assert table["lost"].sum() == pytest.approx(best - problem.fixed_values.mean(), abs=1e-13)


def test_an_outcome_of_a_table_that_is_called_costs_counts_once():
    rows = [
        (gene, dose, n, relapse, costs)
        for gene, n, *relapses in (("A", 30, 0.1, 0.3), ("B", 10, 0.5, 0.2))
        for dose, relapse, costs in (("low", relapses[0], 1.0), ("high", relapses[1], 3.0))
    ]
    frame = pd.DataFrame(rows, columns=["gene", "dose", "patients", "relapse", "costs"])
    weights = {"relapse": 1.0, "costs": 0.01}
    asked = {"features": ["gene"], "treatment": "dose", "patients": "patients", "weights": weights}
    table = ps.compare(ps.problem_from_frame(frame, **asked), policies=["greedy", "uniform"], epsilons=[1.0])
    lost = loss_by_outcome(table, weights, ["uniform"]).set_index("outcome")["lost"]
    # By hand: A is best treated low (0.11, and 0.33 if high), B high (0.23, and 0.51 if low).
    assert lost.sum() == pytest.approx(0.75 * 0.5 * (0.33 - 0.11) + 0.25 * 0.5 * (0.51 - 0.23), abs=1e-14)
    assert lost["costs"] == pytest.approx(0.01 * (0.75 * 0.5 * 2 - 0.25 * 0.5 * 2), abs=1e-14)
    assert lost[COSTS_TITLE] == 0
    with pytest.raises(ValueError, match="costs are the costs of treatments: give the column of this outcome another"):
        ps.problem_from_frame(frame, **asked, costs={"low": 1.0})
