"""The optimum within bounds and in the worst case, checked against the whole programme."""

import numpy as np
import pytest
from full_programme import full_value, full_worst_case

from policies import OneFeature
from policies.optimal.bounded import bounded_optimum, robust_optimum
from policies.optimal.bounds import InfeasibleError
from policies.privacy_loss import privacy_loss_of_logs


def expected(problem, table, probabilities):
    """The expectation of a table, (n_records, n_actions)."""
    return float((problem.prior[:, None] * table * probabilities).sum())


def private_table(problem, epsilon, logs, seed):
    """The probabilities of a table of logarithms, which is checked to be one that is private and keeps to the mask."""
    table = np.exp(logs)
    np.testing.assert_allclose(table.sum(axis=1), 1, rtol=1e-12)
    assert problem.admissible is None or (table[~problem.admissible] == 0).all(), seed
    assert privacy_loss_of_logs(logs, problem.adjacency).epsilon <= epsilon * (1 + 1e-12) + 1e-15, seed
    return table


def check_bounded(problem, epsilon, at_most, capacity, rows, *, seed):
    """Whether a private policy keeps the bounds, with `rows` of their tables and limits: then the best one is found."""
    best = full_value(problem, epsilon, rows)
    if best is None:
        with pytest.raises(InfeasibleError):
            bounded_optimum(problem, epsilon, at_most=at_most, capacity=capacity)
        return False
    found = bounded_optimum(problem, epsilon, at_most=at_most, capacity=capacity)
    table = private_table(problem, epsilon, found.log_probabilities, seed)
    spread = np.ptp(problem.utilities) + 1e-300
    assert found.value == pytest.approx(best, rel=0, abs=1e-6 * spread), seed
    assert found.bound - found.value <= (1e-7 if isinstance(problem.adjacency, OneFeature) else 1e-9) * spread, seed
    assert all(expected(problem, bounded, table) <= limit + 1e-12 for bounded, limit in rows), seed
    return True


def check_robust(problem, epsilon, priors, gains, *, seed):
    """Check that no private policy loses less of the gains in the worst case."""
    found = robust_optimum(problem, epsilon, priors)
    table = private_table(problem, epsilon, found.log_probabilities, seed)
    best = [prior @ problem.utilities.max(axis=1) for prior in priors]
    values = [float((prior[:, None] * problem.utilities * table).sum()) for prior in priors]
    worst = (1 - (np.array(best) - values) / gains).min()
    most = full_worst_case(problem, epsilon, priors, gains)
    scale = max(1.0, abs(most))
    assert worst == pytest.approx(most, rel=0, abs=1e-6 * scale), seed
    assert found.kept == pytest.approx(worst, rel=0, abs=1e-9 * scale), seed
    assert found.bound - found.kept <= (1e-6 if isinstance(problem.adjacency, OneFeature) else 1e-9) * scale, seed
    assert found.weights.sum() == pytest.approx(1) or not found.weights.any()
