"""The smallest epsilon against closed forms."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import policysim as ps
from policysim.decision.demands import Curve

# Two records with opposite best actions; by symmetry every policy gives the right one the same probability p, so
# benefit kept (over best-fixed, worth 1/2) is 2p - 1 and normalised loss 2(1 - p).
SYMMETRIC = ps.DecisionProblem([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5], ps.AnyRecord())


@pytest.mark.parametrize("keep", [0.01, 0.3, 0.8, 0.999, 1 - 1e-9])
def test_the_epsilon_found_is_the_closed_form_and_never_too_small(keep):
    odds = (1 + keep) / (1 - keep)
    # A value of 1 that is short by its rounding, 1e-14, counts as reached; that is 1e-14 of 1 - keep in the odds.
    rounding = 2e-14 / (1 - keep)
    found = ps.smallest_epsilon(SYMMETRIC, "randomized-response", keep=keep)
    assert math.log(odds) - rounding <= found <= math.log(odds) * (1 + 1e-4)
    # p = 1/(1 + e^(-eps/2)): the exponential mechanism has Delta = 1, s = 2/eps.
    found = ps.smallest_epsilon(SYMMETRIC, "exponential", keep=keep)
    assert 2 * math.log(odds) - 2 * rounding <= found <= 2 * math.log(odds) * (1 + 1e-4)


def test_loss_and_benefit_are_two_ways_to_ask():
    # Here V(uniform) = V(best-fixed), so losing 20 % is keeping 80 %.
    by_loss = ps.smallest_epsilon(SYMMETRIC, "randomized-response", max_loss=0.2)
    assert by_loss == pytest.approx(ps.smallest_epsilon(SYMMETRIC, "randomized-response", keep=0.8), rel=1e-4)


def test_a_demand_that_every_epsilon_meets_needs_none():
    assert ps.smallest_epsilon(SYMMETRIC, "exponential", keep=-0.1) == 0
    assert ps.smallest_epsilon(SYMMETRIC, "best-fixed", keep=0) == 0


def test_an_epsilon_in_the_ten_thousands_is_found():
    # Delta = 1 from a rare record, while the others' choice is worth 1e-4: a scale set by the tail.
    table = np.array([[0.0, 1e-4], [1e-4, 0.0], [0.0, 1.0]])
    problem = ps.DecisionProblem(table, [0.5, 0.5, 0.0], ps.AnyRecord())
    found = ps.smallest_epsilon(problem, "exponential", keep=0.8)
    assert found == pytest.approx(2 / 1e-4 * math.log(9), rel=1e-4)


@pytest.mark.parametrize("policy", ["uniform", "best-fixed"])
def test_a_demand_that_nothing_meets_is_refused_by_name(policy):
    with pytest.raises(ValueError, match=f"{policy} does not reach the demand at any epsilon"):
        ps.smallest_epsilon(SYMMETRIC, policy, keep=0.5)


@pytest.mark.parametrize(
    ("demands", "message"),
    [
        ({}, "at least one demand is needed: max_loss, keep, max_extra_lead"),
        ({"keep": 80}, "keep must be a number <= 1, got keep=80"),
        ({"keep": math.nan}, "keep must be a number <= 1, got keep=nan"),
        ({"max_loss": -0.1}, r"max_loss must be a number >= 0, got max_loss=-0\.1"),
        ({"max_extra_lead": 0.01}, "needs a problem with an outcome that leads"),
    ],
)
def test_what_is_no_demand_is_refused(demands, message):
    with pytest.raises(ValueError, match=message):
        ps.smallest_epsilon(SYMMETRIC, "exponential", **demands)


def test_all_demands_are_met_together():
    both = ps.smallest_epsilon(SYMMETRIC, "randomized-response", keep=0.3, max_loss=0.2)
    assert both == pytest.approx(ps.smallest_epsilon(SYMMETRIC, "randomized-response", max_loss=0.2), rel=1e-4)


def test_extra_deaths_can_be_limited():
    # The wrong action kills one patient in ten, one for all one in 20: 4/100 fewer leave 1/10: eps = log 9.
    deaths = [[0.0, 0.1], [0.1, 0.0]]
    problem = ps.DecisionProblem(
        [[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5], ps.AnyRecord(), outcomes={"death": deaths}, lead="death"
    )
    found = ps.smallest_epsilon(problem, "randomized-response", max_extra_lead=-0.04)
    assert math.log(9) * (1 - 1e-12) <= found <= math.log(9) * (1 + 1e-4)


def test_a_measure_that_is_flat_up_to_rounding_is_searched_without_a_false_start():
    # The optimum is one action for all until epsilon = log 3; below, its value equals the demand but for rounding.
    problem = ps.DecisionProblem([[0.1, 0.0], [0.0, 0.3]], [0.5, 0.5], ps.AnyRecord())
    assert ps.smallest_epsilon(problem, "optimal", keep=0) == 0
    found = ps.smallest_epsilon(problem, "optimal", keep=1e-6)
    # V = (0.1 p + 0.3 (1 - p/e^eps)) / 2 with p = 1/(1 + e^-eps) ... > 0.15 only where 0.1 e^eps > 0.3.
    assert found == pytest.approx(math.log(3), rel=1e-3)


def test_a_curve_can_start_from_values_that_are_known_already():
    calls = []

    def measure(epsilon):
        calls.append(epsilon)
        return math.tanh(epsilon)

    known = {0.0: 0.0, 0.5: math.tanh(0.5), 1.0: math.tanh(1.0)}
    found = Curve("tanh", measure, known).first_reaching(math.tanh(0.7))
    assert found == pytest.approx(0.7, rel=1e-4)
    assert math.tanh(found) >= math.tanh(0.7)
    assert all(0.5 < epsilon < 1 for epsilon in calls)


DECIMALS = [float(f"{digits}e{power}") for power in range(-8, 10) for digits in range(10, 100)]


@given(
    st.floats(1e-5, 1e8),
    st.lists(st.sampled_from([float(each) for each in np.geomspace(0.05, 20, 24)]), max_size=24),
)
@example(1.3, [1.3])
@example(1.2999999, [0.05, 20.0])
@example(0.1, [])
def test_the_least_of_two_digits_is_the_first_of_all_such_decimals_that_reaches(threshold, known):
    measure = {epsilon: float(epsilon >= threshold) for epsilon in known}
    found = Curve("step", lambda epsilon: float(epsilon >= threshold), measure).least_reaching(1.0)
    assert found == next(decimal for decimal in DECIMALS if decimal >= threshold)


def test_where_all_reach_or_none_does_no_decimal_is_named():
    assert Curve("all", lambda _: 1.0).least_reaching(1.0) == 0
    assert Curve("all above 0", lambda epsilon: float(epsilon > 0)).least_reaching(1.0) == 0
    assert Curve("none", lambda _: 0.0).least_reaching(1.0) == math.inf
    assert math.isnan(Curve("not asked", lambda _: 0.0).least_reaching(math.nan))
