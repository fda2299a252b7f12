"""Doubly robust values of a censored outcome: unbiased, and intervals that cover; benchmarks/offpolicy.py has more."""

import numpy as np
import pytest

from policysim.logs.censoring import pseudo_outcomes
from policysim.logs.log_frame import LoggedData, Observed
from policysim.logs.outcome_models import fit_to_log
from policysim.trials.arms import arm_means
from policysim.trials.estimate_value import CrossFit, estimate_value

ROWS, TRIALS = 400, 100
HAZARDS = np.array([[0.5, 0.9], [1.0, 0.4]])  # of the young and the old, under two arms, up to the horizon 1


def draw(rng, censoring):
    """Two arms by lot; censoring at different rates in them."""
    old, arm = rng.integers(2, size=ROWS), rng.integers(2, size=ROWS)
    times = rng.exponential(1 / HAZARDS[old, arm])
    ends = rng.exponential(1 / np.array(censoring)[arm])
    return old, arm, np.minimum(times, ends), times <= ends


def as_log(arm, times, happened):
    """Each arm by its own estimators."""
    rewards, states, weights = np.zeros((3, len(arm)))
    for each in (0, 1):
        rows = arm == each
        rewards[rows], known = pseudo_outcomes(times[rows], happened[rows], 1.0)
        states[rows], weights[rows] = known.rewards, known.weights
    return LoggedData(arm, rewards, np.full(len(arm), 0.5), ("a", "b"), Observed(states, weights))


def group_means(log, old):
    """The weighted mean of what is known in each group and arm: an outcome model that needs no folds."""
    known = log.known
    table = np.zeros((log.n_rows, 2))
    for group in (0, 1):
        for arm in (0, 1):
            rows = (old == group) & (log.actions == arm)
            table[old == group, arm] = np.average(known.rewards[rows], weights=known.weights[rows])
    return CrossFit(old[:, None].astype(float), np.zeros(log.n_rows, dtype=np.intp), (), table, ())


@pytest.mark.parametrize("censoring", [(0.35, 0.2), (1.0, 0.5)], ids=["20 %", "40 %"])
def test_values_under_censoring_are_unbiased_and_their_intervals_cover(censoring):
    rng = np.random.default_rng(5)
    truth = np.exp(-HAZARDS)
    best, worth = truth.argmax(axis=1), truth.max(axis=1).mean()
    errors, covered, arms = [], 0, 0
    for _ in range(TRIALS):
        old, arm, times, happened = draw(rng, censoring)
        log = as_log(arm, times, happened)
        policy = np.eye(2)[best[old]]
        found = estimate_value(log, policy, fitted=group_means(log, old))
        errors.append((found.value - worth) / found.standard_error)
        covered += found.interval[0] <= worth <= found.interval[1]
        means = arm_means(log)
        arms += means["low"][0] <= truth[:, 0].mean() <= means["high"][0]
    # Four standard errors each.
    assert abs(np.mean(errors)) < 4 / np.sqrt(TRIALS)
    low, high = (end + sign * 4 * np.sqrt(end * (1 - end) / TRIALS) for end, sign in ((0.93, -1), (0.97, 1)))
    assert low < covered / TRIALS < high
    assert low < arms / TRIALS < high


def test_outcome_models_learn_what_is_known_with_its_weight():
    rng = np.random.default_rng(8)
    x, y = rng.normal(size=(60, 2)), rng.integers(2, size=60).astype(float)
    weights = rng.integers(0, 3, size=60).astype(float)

    def followed(outcomes):
        """Rows of one arm, of whose outcomes so much is known."""
        return LoggedData(np.zeros(60, dtype=int), outcomes, np.ones(60), ("all",), Observed(outcomes, weights))

    for name in ("linear", "logistic", "gradient-boosting"):
        weighted = fit_to_log(name, x, followed(y)).predict(x)
        again = fit_to_log(name, x, followed(np.where(weights == 0, 1 - y, y))).predict(x)
        assert np.array_equal(weighted, again)
    mean = fit_to_log("linear", x[:5], followed(y).of(np.arange(5))).predict(x[:1])
    assert mean[0, 0] == pytest.approx(np.average(y[:5], weights=weights[:5]))
