"""The solver behind `optimal`: many packing programmes at once, and what happens when it errs."""

from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from policies import DecisionProblem, Sensitive
from policies.optimal import ceilings
from policies.optimal.ceilings import best_ceilings, members_of
from policies.optimal.optimum import Optimal
from policies.optimal.programmes import solve_packing
from policies.privacy_loss import privacy_loss_of_logs


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(2, 5),
    columns=st.integers(1, 12),
    integral=st.booleans(),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_each_packing_programme_of_a_batch_is_solved_as_if_alone(seed, rows, columns, integral):
    rng = np.random.default_rng(seed)
    matrix = rng.uniform(0.1, 1.0, size=(rows, columns))
    capacities, uppers = rng.uniform(0, 2, size=(5, rows)), rng.uniform(0, 1, size=(5, columns))
    if integral:
        # Ties between bounds and capacities, and capacities of 0.
        matrix, capacities, uppers = np.ceil(2 * matrix) / 2, np.floor(2 * capacities), np.floor(2 * uppers)
    prices, amounts = solve_packing(matrix, capacities, uppers)
    for price, amount, capacity, upper in zip(prices, amounts, capacities, uppers, strict=True):
        alone = linprog(-np.ones(columns), matrix, capacity, bounds=np.column_stack([np.zeros(columns), upper]))
        assert amount.sum() == pytest.approx(-alone.fun, abs=1e-9)
        assert (matrix @ amount <= capacity + 1e-9).all()
        # The prices are optimal too: the dual objective with them is the same.
        dual = price @ capacity + upper @ np.maximum(1 - price @ matrix, 0)
        assert dual == pytest.approx(-alone.fun, abs=1e-9)


def test_a_large_batch_is_solved_in_pieces_with_the_same_result():
    rng = np.random.default_rng(0)
    matrix = rng.uniform(0.1, 1.0, size=(3, 6))
    capacities, uppers = rng.uniform(0, 2, size=(20_000, 3)), rng.uniform(0, 1, size=(20_000, 6))
    _, amounts = solve_packing(matrix, capacities, uppers)
    _, last = solve_packing(matrix, capacities[-5:], uppers[-5:])
    np.testing.assert_allclose(amounts[-5:], last, atol=1e-12)


def test_listing_the_sets_that_occur_gives_the_same_optimum_as_listing_all(monkeypatch):
    rng = np.random.default_rng(2)
    problem = DecisionProblem(rng.normal(size=(30, 4)), rng.dirichlet(np.ones(30)), Sensitive((6, 5), (1,)))
    expected = Optimal(1.0).probabilities(problem)
    monkeypatch.setattr("policies.optimal.ceilings._LIST_ALL", 2)
    np.testing.assert_allclose(Optimal(1.0).probabilities(problem), expected, atol=1e-9)


def test_least_losses_and_proofs_agree():
    rng = np.random.default_rng(3)
    members = members_of(np.arange(1, 15), 4)
    weights = rng.gamma(0.3, size=(500, 14)) * 10.0 ** rng.integers(-300, 3, size=(500, 1))
    for epsilon in (0.0, 0.01, 1.0, 8.0, 20.0):
        found = best_ceilings(members, weights, epsilon)
        np.testing.assert_allclose(found.losses, found.proven, rtol=1e-6)
        assert (found.amounts <= weights * (1 + 1e-12)).all()
        totals = found.ceilings.sum(axis=1)
        assert (totals >= 1 - 1e-12).all()
        assert (totals <= np.exp(epsilon) * (1 + 1e-12)).all()


def wrong_prices(columns, capacities, uppers):
    return np.full((len(capacities), len(columns)), 7.0), np.zeros_like(uppers)


def infeasible_amounts(columns, capacities, uppers):
    return np.zeros((len(capacities), len(columns))), 10 * uppers


@pytest.mark.parametrize("broken", [wrong_prices, infeasible_amounts])
def test_a_batch_that_errs_is_noticed_and_solved_again(monkeypatch, broken):
    rng = np.random.default_rng(4)
    problem = DecisionProblem(rng.normal(size=(40, 4)), rng.dirichlet(np.ones(40)), Sensitive((8, 5), (1,)))
    expected = problem.value(Optimal(1.0).probabilities(problem))
    monkeypatch.setattr(ceilings, "solve_packing", broken)
    assert problem.value(Optimal(1.0).probabilities(problem)) == pytest.approx(expected, abs=1e-12)


def test_with_every_solver_broken_the_policy_is_still_private_and_no_worse_than_a_constant(monkeypatch):
    rng = np.random.default_rng(5)
    problem = DecisionProblem(rng.normal(size=(40, 4)), rng.dirichlet(np.ones(40)), Sensitive((8, 5), (1,)))
    monkeypatch.setattr(ceilings, "solve_packing", wrong_prices)
    monkeypatch.setattr(ceilings, "minimise", Mock(return_value=None))
    logs = Optimal(1.0).log_probabilities(problem)
    assert privacy_loss_of_logs(logs, problem.adjacency).epsilon <= 1.0 + 1e-9
    assert problem.value(np.exp(logs)) >= problem.value(Optimal(0.0).probabilities(problem)) - 1e-12
