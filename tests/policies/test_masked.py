"""Policies where some records do not allow every action."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_problems import LOOK_FURTHER, loss_by_pairs

from policies import CATALOGUE, AnyRecord, DecisionProblem, make_policy, privacy_loss
from policies.mask import admissible_mask, mask_classes
from policies.masked import masked_problem

MASK = np.array([[1, 1, 0, 1], [1, 1, 0, 1], [1, 1, 1, 1], [0, 0, 1, 0], [1, 1, 0, 1], [1, 1, 1, 1]], dtype=bool)


def example(seed=0, *, public=False):
    rng = np.random.default_rng(seed)
    utilities = np.where(MASK, rng.normal(size=MASK.shape), -np.inf)
    prior = rng.random(len(MASK))
    return (
        utilities,
        prior / prior.sum(),
        masked_problem(utilities, prior / prior.sum(), MASK, classes=mask_classes(MASK) if public else None),
    )


SAME_MASK = [(x, y) for x in range(6) for y in range(6) if (MASK[x] == MASK[y]).all()]
ALL_PAIRS = [(x, y) for x in range(6) for y in range(6)]
APPLICABLE = [name for name in CATALOGUE if name not in LOOK_FURTHER]


@pytest.mark.parametrize("name", APPLICABLE)
def test_within_records_that_allow_the_same_every_policy_keeps_its_promise(name):
    policy = make_policy(name, epsilon=0.7)
    _, _, problem = example(public=True)
    logs, probabilities = problem.tables(policy)
    assert (logs[~MASK] == -np.inf).all() and (probabilities[~MASK] == 0).all()
    spent = problem.epsilon_spent(logs)
    assert spent == pytest.approx(loss_by_pairs(probabilities, SAME_MASK))
    assert spent <= policy.guarantee + 1e-12


@pytest.mark.parametrize("name", ["exponential", "randomized-response", "uniform"])
def test_a_mask_that_is_not_public_loses_everything(name):
    _, _, problem = example(public=False)
    logs, probabilities = problem.tables(make_policy(name, epsilon=0.7))
    assert problem.epsilon_spent(logs) == loss_by_pairs(probabilities, ALL_PAIRS) == np.inf


def test_a_class_is_a_decision_of_its_own():
    utilities, prior, problem = example()
    rows, columns = [0, 1, 4], [0, 1, 3]
    alone = DecisionProblem(
        utilities[np.ix_(rows, columns)], prior[rows] / prior[rows].sum(), AnyRecord(), ["a0", "a1", "a3"]
    )
    for name in ("exponential-fitted", "optimal", "best-fixed", "randomized-features"):
        policy = make_policy(name, epsilon=1.3)
        assert problem.tables(policy)[1][np.ix_(rows, columns)] == pytest.approx(policy.probabilities(alone), abs=1e-14)


def test_the_only_admissible_action_is_taken_and_best_actions_are_admissible():
    utilities, _, problem = example()
    assert problem.tables(make_policy("exponential", epsilon=1.0))[1][3].tolist() == [0, 0, 1, 0]
    assert problem.best_actions().tolist() == utilities.argmax(axis=1).tolist()


def test_a_base_measure_counts_for_the_actions_that_are_left():
    _, _, problem = example()
    table = problem.tables(make_policy("exponential", epsilon=0.0, base_measure=[1, 2, 3, 1]))[1]
    assert table[0] == pytest.approx([0.25, 0.5, 0, 0.25])
    assert table[2] == pytest.approx([1 / 7, 2 / 7, 3 / 7, 1 / 7])
    with pytest.raises(ValueError, match="base_measure must have 4 numbers, one for each action, got 3"):
        problem.tables(make_policy("exponential", epsilon=1.0, base_measure=[1, 2, 3]))


def test_one_mask_for_all_loses_no_more_than_promised_whether_it_is_public_or_not():
    utilities = np.random.default_rng(1).normal(size=(5, 4))
    mask = np.tile([True, False, True, True], (5, 1))
    for public in (False, True):
        problem = masked_problem(utilities, np.full(5, 0.2), mask, classes=mask_classes(mask) if public else None)
        logs, probabilities = problem.tables(make_policy("exponential-fitted", epsilon=1.0))
        # tight attains epsilon up to its grid of 1e-6
        assert problem.epsilon_spent(logs) == pytest.approx(1.0, abs=1e-5)
        assert (probabilities[:, 1] == 0).all()


@given(st.integers(0, 10_000))
def test_without_a_mask_it_is_the_plain_problem(seed):
    rng = np.random.default_rng(seed)
    utilities, prior = rng.normal(size=(5, 3)), np.full(5, 0.2)
    policy = make_policy("exponential", epsilon=1.0)
    plain = policy.probabilities(DecisionProblem(utilities, prior, AnyRecord()))
    problem = masked_problem(utilities, prior, None)
    logs, table = problem.tables(policy)
    assert (table == plain).all()
    assert problem.epsilon_spent(logs) == pytest.approx(privacy_loss(plain, AnyRecord()).epsilon)


def test_another_prior_is_used_class_by_class():
    utilities, _, problem = example()
    other = np.array([0.5, 0.0, 0.0, 0.5, 0.0, 0.0])
    moved = problem.with_prior(other)
    fresh = masked_problem(utilities, other, MASK)
    policy = make_policy("best-fixed")
    assert (moved.tables(policy)[1] == fresh.tables(policy)[1]).all()
    # all mass of the first class is on record 0, so that its best action is that of the class
    assert moved.tables(policy)[1][1].argmax() == utilities[0].argmax()


def test_a_record_of_a_class_goes_by_its_own_number():
    utilities = np.array([[0.0, 0.0, 9.0], [1.0, -1.0, 9.0], [5.0, 5.0, 5.0], [0.0, 1.0, 9.0]])
    mask = np.array([[True, True, False]] * 2 + [[True, True, True]] + [[True, True, False]])
    problem = masked_problem(utilities, np.full(4, 0.25), mask)
    (part,) = (part for part in problem.classes if len(part.rows) == 3)
    assert [part.problem.records.describe(row) for row in range(3)] == ["record 0", "record 1", "record 3"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[True, False], [False, False]], "row 1 allows none"),
        ([[True, False]], r"must have shape \(2, 2\), got \(1, 2\)"),
        ([[1, 2], [1, 1]], "true and false"),
        ([[1.0, np.nan], [1, 1]], "true and false"),
    ],
)
def test_a_bad_mask_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        admissible_mask(values, (2, 2))


def test_a_utility_that_is_not_finite_is_named_where_it_counts():
    utilities = np.array([[0.0, np.nan], [0.0, np.nan]])
    with pytest.raises(ValueError, match=r"utilities\[1, 1\]=nan"):
        masked_problem(utilities, np.full(2, 0.5), np.array([[True, False], [True, True]]))
