"""Tables with names, as DataFrames have them: they come in under their names and in any order."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import policysim as ps
from policies.adjacency import AnyRecord

INDEX = pd.MultiIndex.from_tuples([("young", 0), ("young", 1), ("old", 0), ("old", 1)], names=["age", "infected"])
UTILITY = pd.DataFrame({"none": [0.9, 0.2, 0.8, 0.1], "drug": [0.7, 0.6, 0.5, 0.4]}, index=INDEX)
PRIOR = pd.Series([0.4, 0.1, 0.3, 0.2], index=INDEX)


@pytest.fixture(scope="module")
def problem():
    return ps.DecisionProblem(UTILITY, PRIOR, AnyRecord(), outcomes={"death": 1 - UTILITY}, lead="death")


def test_columns_name_actions_and_the_index_records_and_features(problem):
    assert list(problem.actions) == ["none", "drug"]
    assert problem.records.describe(2) == "age old, infected 0"
    codes, labels = problem.records.groups("age")
    assert (codes.tolist(), labels) == ([0, 0, 1, 1], ("young", "old"))
    table = ps.compare(problem, policies=["greedy"], epsilons=1.0, by=["age"])
    assert table["level"].tolist() == ["all", "young", "old"] and "p_drug" in table
    with pytest.raises(ValueError, match="unknown group 'sex': it has age, infected"):
        ps.compare(problem, policies=["greedy"], epsilons=1.0, by=["sex"])


def test_what_is_given_in_another_order_is_put_in_this_one(problem):
    order = [3, 1, 0, 2]
    turned = ps.DecisionProblem(
        UTILITY, PRIOR.iloc[order], AnyRecord(), outcomes={"death": (1 - UTILITY).iloc[order, ::-1]}
    )
    assert turned.digest == problem.digest
    # The old may not get the drug; who is infected is hidden.
    allowed = pd.DataFrame({"none": True, "drug": [age == "young" for age, _ in INDEX]}, index=INDEX)
    masked = ps.DecisionProblem(UTILITY, PRIOR, ps.Sensitive((2, 2), [1]), admissible=allowed.iloc[order, ::-1])
    assert masked.admissible.tolist() == allowed.to_numpy().tolist()
    as_arrays = ps.DecisionProblem(UTILITY.to_numpy(), PRIOR.to_numpy(), AnyRecord(), ["none", "drug"])
    assert as_arrays.value(ps.make_policy("greedy")) == problem.value(ps.make_policy("greedy"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"prior": PRIOR.rename({"old": "aged"})}, "prior must have the index of utilities"),
        ({"outcomes": {"death": UTILITY.rename(columns={"drug": "pill"})}}, "death must have the columns of"),
        ({"utilities": UTILITY.rename(index={"old": "young"})}, "index without repetition, got young, 0 twice"),
    ],
)
def test_names_that_do_not_fit_are_told(given, message):
    with pytest.raises(ValueError, match=message):
        ps.DecisionProblem(**{"utilities": UTILITY, "prior": PRIOR, "adjacency": AnyRecord(), **given})


def test_a_plain_index_gives_numbers():
    plain = ps.DecisionProblem(UTILITY.reset_index(drop=True), PRIOR.to_numpy(), AnyRecord())
    assert plain.records.describe(1) == "record 1" and plain.records.names == ()


@pytest.mark.parametrize("policy", ["optimal", "exponential", "greedy", "best-fixed"])
def test_a_policy_has_a_value_by_itself_or_its_table(problem, policy):
    made = ps.make_policy(policy, epsilon=1.0)
    table = made.probabilities(problem)
    expected = float((PRIOR.to_numpy()[:, None] * table * UTILITY.to_numpy()).sum())
    for given in (made, table, pd.DataFrame(table)):
        assert problem.value(given) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("optimal", r"policy must be a table or a Policy, got 'optimal'; make_policy\('optimal'\) makes one"),
        (np.ones((4, 3)), r"policy must have shape \(4, 2\), got \(4, 3\)"),
    ],
)
def test_what_has_no_value_is_told(problem, policy, message):
    with pytest.raises(ValueError, match=message):
        problem.value(policy)


def test_a_problem_knows_its_sensitivity(problem):
    found = ps.sensitivity(problem)
    assert found == ps.sensitivity(UTILITY, AnyRecord()) and math.isclose(found.value, 0.8)
    with pytest.raises(ValueError, match="a problem has an adjacency of its own"):
        ps.sensitivity(problem, AnyRecord())


def test_one_epsilon_is_a_list_of_one(problem):
    for one, listed in (
        (ps.compare(problem, epsilons=1), ps.compare(problem, epsilons=[1.0])),
        (ps.frontier(problem, epsilons=1.0), ps.frontier(problem, epsilons=[1.0])),
        (ps.ways_to_publish(problem, epsilons=1.0), ps.ways_to_publish(problem, epsilons=[1.0])),
    ):
        pd.testing.assert_frame_equal(one, listed)
    with pytest.raises(ValueError, match="epsilon must be a number >= 0, got -1"):
        ps.compare(problem, epsilons=-1)


def test_what_is_printed_is_short(problem):
    mdp = ps.TabularMDP(np.full((2, 2, 2), 0.5), np.eye(2), [0.5, 0.5], horizon=2, axes="SAS")
    study = ps.load_study(Path(__file__).parents[2] / "examples" / "ward" / "study.toml")
    for shown in (problem, mdp, study, ps.build_course(study, 3), ps.build_problem(study), ps.report(problem)):
        text = repr(shown)
        assert text.count("\n") < 5 and len(text) < 400
    assert repr(problem) == "DecisionProblem(4 records, any-record, actions none, drug, outcomes death)"


def test_only_public_names_are_listed():
    assert dir(ps) == sorted(ps.__all__)
    assert all(getattr(ps, name) is not None for name in dir(ps))


def test_the_columns_of_compare_are_explained_where_they_are_asked_for(problem):
    text = ps.compare.__doc__
    for column in ps.compare(problem, policies=["optimal"], epsilons=1.0):
        family = column if column in text else f"{column.split('_')[0]}_*"
        assert f"`{family}`" in text, column
    mdp = ps.TabularMDP(np.full((2, 2, 2), 0.5), np.eye(2), [0.5, 0.5], horizon=2, axes="SAS")
    for column in ps.compare(mdp, policies=["exponential"], total_epsilons=1.0):
        assert f"`{column}`" in text, column
