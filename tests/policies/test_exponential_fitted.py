"""The exponential mechanism between public floors and ceilings: its rows, its privacy, its distance to the limit."""

import math

import numpy as np
import pytest

from policies import AnyRecord, DecisionProblem, OneFeature, Sensitive, make_policy
from policies.boxes import Boxes, log_rows, regrets_of
from policies.exponential import Exponential, ExponentialFitted
from policies.privacy_loss import privacy_loss, privacy_loss_of_logs

LOW_EPSILON = math.exp(-1)


def fitted(epsilon, **parameters):
    return make_policy("exponential-fitted", epsilon=epsilon, **parameters)


def uniform_problem(table, adjacency=None):
    table = np.asarray(table, dtype=float)
    return DecisionProblem(table, np.full(len(table), 1 / len(table)), adjacency or AnyRecord())


def row_by_bisection(regrets, floors, sharpness, epsilon):
    """clip(lambda w exp(-s r), w, e^epsilon w), with lambda by bisection of its logarithm."""
    gaps = np.minimum(sharpness * regrets, 1e6)
    low, high = 0.0, gaps.max() + epsilon + 1.0
    for _ in range(200):
        middle = (low + high) / 2
        total = (floors * np.exp(np.clip(middle - gaps, 0.0, epsilon))).sum()
        low, high = (middle, high) if total < 1 else (low, middle)
    return floors * np.exp(np.clip(low - gaps, 0.0, epsilon))


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0, 9.0])
@pytest.mark.parametrize("n_actions", [2, 3, 8])
def test_rows_are_those_that_bisection_finds(epsilon, n_actions):
    rng = np.random.default_rng([n_actions, int(100 * epsilon)])
    for _ in range(20):
        floors = rng.random(n_actions) * (rng.random(n_actions) < 0.8)
        floors[0] += 0.01
        floors *= math.exp(-epsilon * rng.random()) / floors.sum()
        regrets = regrets_of(np.round(rng.normal(size=(n_actions, 30)), 1))
        sharpness = 10.0 ** rng.uniform(-2, 2)
        with np.errstate(divide="ignore"):
            box = Boxes(epsilon, np.log(floors)[:, None], np.array([sharpness]))
        rows = np.exp(log_rows(regrets[:, None, :], box)[:, 0, :])
        for row, regret in zip(rows.T, regrets.T, strict=True):
            assert row == pytest.approx(row_by_bisection(regret, floors, sharpness, epsilon), abs=1e-12)
        # What bounds of privacy are for holds to the last digit.
        logs = log_rows(regrets[:, None, :], box)
        assert (logs >= box.log_floors[:, :, None]).all() and (logs <= box.log_floors[:, :, None] + epsilon).all()


def test_a_row_by_hand():
    # Floors of 0.2, ceilings of 0.2 e: 0.4 is left to pour. The first record regrets 0, 0.1 and 9: the last action
    # stays at its floor, and the others share 0.8 as 1 to e^-0.1. The second regrets 9, 10 and 0: its last action is
    # full before the first one leaves its floor, and that gets what is left.
    problem = uniform_problem([[1.0, 0.9, -8.0], [-8.0, -9.0, 1.0]])
    table = fitted(1.0, floors=[0.2, 0.2, 0.2], sharpness=1.0).probabilities(problem)
    first = 0.8 / (1 + math.exp(-0.1))
    expected = [[first, 0.8 - first, 0.2], [0.8 - 0.2 * math.e, 0.2, 0.2 * math.e]]
    assert table == pytest.approx(np.array(expected), abs=1e-5)


def test_its_loss_is_at_most_epsilon_and_its_value_nearly_that_of_the_limit(random_problems):
    shares = []
    for index, case in enumerate(random_problems[:60]):
        problem, epsilon = case.problem, case.epsilon
        logs = fitted(epsilon).log_probabilities(problem)
        assert privacy_loss_of_logs(logs, problem.adjacency).epsilon <= epsilon * (1 + 1e-12), index
        value, limit = problem.value(np.exp(logs)), problem.value(case.optimum)
        single = problem.value(make_policy("best-fixed").probabilities(problem))
        best = problem.value(make_policy("greedy").probabilities(problem))
        tolerance = 1e-8 * np.ptp(problem.utilities) + 1e-12 * np.abs(problem.utilities).max()
        assert single - tolerance <= value <= limit + tolerance, index
        # Nothing is promised where cliques overlap, or where no mechanism keeps anything.
        if not isinstance(problem.adjacency, OneFeature) and limit - single > 0.05 * (best - single) + tolerance:
            shares.append((value - single) / (limit - single))
    assert len(shares) >= 20
    assert np.quantile(shares, 0.1) >= 0.98 and np.median(shares) >= 0.99


def test_sensitive_classes_are_problems_of_their_own():
    rng = np.random.default_rng(4)
    table, prior = rng.normal(size=(3, 10, 4)) * [[[1.0]], [[5.0]], [[0.01]]], rng.dirichlet(np.ones(30)).reshape(3, 10)
    prior[1, :4] = 0.0
    problem = DecisionProblem(table.reshape(30, 4), (prior / prior.sum()).ravel(), Sensitive((3, 10), (1,)))
    together = fitted(1.5).probabilities(problem).reshape(3, 10, 4)
    for one, utilities, weights in zip(together, table, prior, strict=True):
        alone = DecisionProblem(utilities, weights / weights.sum(), AnyRecord())
        assert one == pytest.approx(fitted(1.5).probabilities(alone), abs=1e-5)  # s is rounded to six digits
        assert alone.value(one) >= alone.fixed_values.max() - 1e-12


def test_a_mask_leaves_the_box_of_the_actions_that_are_allowed():
    rng = np.random.default_rng(5)
    mask = np.repeat([[True, True, False], [True, True, True]], 6, axis=0)
    table = rng.normal(size=(12, 3))
    problem = DecisionProblem(table, np.full(12, 1 / 12), Sensitive((2, 6), (1,)), admissible=mask)
    for floors in (None, [0.3, 0.2, 0.2]):
        found = fitted(1.0, floors=floors).probabilities(problem)
        first = uniform_problem(table[:6, :2])
        # 0.3 and 0.2 of 0.7, scaled to the same sum.
        alone = fitted(1.0, floors=floors and [0.42, 0.28]).probabilities(first)
        assert found[:6, :2] == pytest.approx(alone, abs=1e-6) and (found[:6, 2] == 0).all()
    with pytest.raises(ValueError, match=r"floors must allow an action wherever records do, got none of \[0, 1\]"):
        fitted(1.0, floors=[0, 0, 0.5]).probabilities(problem)


@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 700.0, 1e10, 1.7e308, math.inf])
@pytest.mark.parametrize("adjacency", [AnyRecord(), Sensitive((2, 3), (1,)), OneFeature((2, 3))])
def test_very_small_and_large_epsilons(epsilon, adjacency):
    problem = uniform_problem(np.random.default_rng(6).normal(size=(6, 3)), adjacency)
    policy = fitted(epsilon)
    table = policy.probabilities(problem)
    assert table.sum(axis=1) == pytest.approx(np.ones(6), abs=1e-12)
    if epsilon < 1:
        assert privacy_loss_of_logs(policy.log_probabilities(problem), adjacency).epsilon <= epsilon
        assert problem.value(table) >= problem.fixed_values.max() - 1e-15
    else:
        assert table == pytest.approx(make_policy("greedy").probabilities(problem), abs=1e-12)


def test_where_nothing_is_to_be_gained_everybody_gets_the_same():
    equal = uniform_problem(np.ones((5, 3)))
    one_record = uniform_problem([[0.0, 2.0, 1.0]])
    for epsilon in (0.0, 1.0, 50.0):
        table = fitted(epsilon).probabilities(equal)
        assert (table == table[0]).all()
        assert table.sum(axis=1) == pytest.approx(np.ones(5), abs=1e-12)
        assert fitted(epsilon).probabilities(one_record).tolist() == [[0.0, 1.0, 0.0]]


def test_floors_and_sharpness_are_rounded_to_six_digits_before_use():
    problem = uniform_problem(np.random.default_rng(7).normal(size=(8, 3)))
    floors, sharpness = [0.2, 0.25, 0.3], 1.5
    table = fitted(1.0, floors=floors, sharpness=sharpness).probabilities(problem)
    near = fitted(1.0, floors=np.array(floors) * (1 + 1e-9), sharpness=sharpness * (1 + 1e-9)).probabilities(problem)
    assert (table == near).all()
    other = fitted(1.0, floors=np.array(floors) * (1 + 1e-4), sharpness=sharpness).probabilities(problem)
    assert not np.allclose(table, other, atol=1e-6)


@pytest.mark.parametrize("total", [1.0, LOW_EPSILON])
def test_rounded_floors_are_repaired_until_their_sum_is_in_its_bounds(total):
    # Logarithms of six digits may sum to more than 1, or to less than e^-epsilon: then no row of the box sums to 1.
    rng = np.random.default_rng(8)
    problem = uniform_problem(rng.normal(size=(20, 6)))
    for _ in range(20):
        policy = fitted(1.0, floors=rng.dirichlet(np.ones(6)) * total)
        assert policy.probabilities(problem).sum(axis=1) == pytest.approx(np.ones(20), abs=1e-12)
        assert privacy_loss_of_logs(policy.log_probabilities(problem), AnyRecord()).epsilon <= 1.0


def test_what_was_given_stands_in_its_name():
    text = repr(fitted(1.0, floors=np.array([0.25, 0.5]), sharpness=2.0))
    assert "floors=(0.25, 0.5)" in text and "sharpness=2.0" in text
    assert Exponential(1.0, calibration="fitted").name == ExponentialFitted.name == "exponential-fitted"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"floors": [0.6, -0.1]}, r"floors must be one number >= 0 for each action, got \[0.6, -0.1\]"),
        ({"floors": [0.6, math.nan]}, "floors must be one number >= 0 for each action"),
        ({"floors": [0.6, 0.6]}, r"at least e\^-epsilon = 0.367879 and at most 1, got a sum of 1.2\."),
        ({"floors": [0.1, 0.2]}, r"got a sum of 0.3\."),
        ({"floors": [0.2, 0.2, 0.2]}, "floors must have 2 numbers, one for each action, got 3"),
        ({"sharpness": 0.0}, "sharpness must be > 0, got sharpness=0.0"),
        ({"sharpness": math.nan}, "sharpness must be > 0, got sharpness=nan"),
        ({"base_measure": [1, 1]}, "base_measure does not go with calibration='fitted'"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        fitted(1.0, **parameters).probabilities(uniform_problem([[0.0, 1.0], [1.0, 0.0]]))


def test_floors_are_no_parameter_of_the_textbook():
    for parameter in ({"floors": [0.5, 0.5]}, {"sharpness": 1.0}):
        with pytest.raises(ValueError, match="does not go with calibration='sensitivity'"):
            make_policy("exponential", epsilon=1.0, **parameter)
    with pytest.raises(ValueError, match=r"calibration must be one of .*, got calibration='tight'"):
        Exponential(1.0, calibration="tight")


@pytest.mark.parametrize("epsilon", [5e-324, 1e-310, 1e308])
def test_an_epsilon_at_the_end_of_the_floats_is_kept_without_a_warning(epsilon):
    table = fitted(epsilon).probabilities(uniform_problem([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]))
    assert table.sum(axis=1) == pytest.approx(np.ones(2), abs=1e-12)
    assert privacy_loss(table, AnyRecord()).epsilon <= epsilon


def test_scores_of_any_kind_stay_in_the_box():
    rng = np.random.default_rng(9)
    scores = rng.choice([math.nan, math.inf, -math.inf, 0.0, 1e308, -1e308, 1e-308], size=(3, 2000))
    regrets = regrets_of(scores)
    assert (regrets >= 0).all() and (regrets.min(axis=0) == 0).all()
    for sharpness in (1e-300, 1.0, 1e300, math.inf):
        box = Boxes(2.0, np.log([[0.1], [0.2], [0.3]]), np.array([sharpness]))
        logs = log_rows(regrets[:, None, :], box)
        assert (logs >= box.log_floors[:, :, None]).all() and (logs <= box.log_floors[:, :, None] + 2.0).all()
        assert np.exp(logs).sum(axis=0) == pytest.approx(np.ones((1, 2000)), abs=1e-12)
