"""Quantiles of the patients' losses, against their definition."""

import numpy as np
import pytest

import policysim as ps
from policysim.study.example_patients import loss_quantiles, losses_of

LEVELS = (np.arange(50) + 0.5) / 50


@pytest.mark.parametrize("name", ["greedy", "uniform", "exponential", "randomized-response", "optimal"])
def test_each_quantile_is_the_least_loss_that_enough_patients_do_not_exceed(name, random_problems):
    for problem in [case.problem for case in random_problems[:24] if case.problem.admissible is None]:
        probabilities = ps.make_policy(name, epsilon=1.0).probabilities(problem)
        losses = problem.utilities.max(axis=1) - (probabilities * problem.utilities).sum(axis=1)
        table = loss_quantiles(problem, [name], 1.0)
        assert table["policy"].unique().tolist() == [name]
        assert table["quantile"].tolist() == pytest.approx(LEVELS)
        rounding = 1e-13 * (1 + abs(problem.utilities).max())
        for level, quantile in zip(LEVELS, table["loss"], strict=True):
            assert problem.prior[losses <= quantile + rounding].sum() >= level - 1e-11
            assert problem.prior[losses < quantile - rounding].sum() <= level + 1e-11


def test_patients_who_never_come_do_not_count():
    problem = ps.DecisionProblem([[0, 1000], [1, 0]], [0.0, 1.0], ps.AnyRecord())
    assert loss_quantiles(problem, ["uniform"], 1.0)["loss"].max() == 0.5


def test_the_mean_of_the_losses_is_the_loss_of_the_comparison():
    problem = ps.DecisionProblem([[0, 3], [1, 0], [2, 2.5]], [0.2, 0.5, 0.3], ps.AnyRecord())
    probabilities = ps.make_policy("exponential", epsilon=2.0).probabilities(problem)
    expected = ps.compare(problem, policies=["exponential"], epsilons=[2.0])["loss"].iloc[0]
    assert problem.prior @ losses_of(problem, probabilities) == pytest.approx(expected, abs=1e-14)


def test_an_optimum_that_is_only_bounded_is_left_out():
    shape = (2,) * 12
    rng = np.random.default_rng(1)
    problem = ps.DecisionProblem(rng.normal(size=(4096, 4)), np.full(4096, 1 / 4096), ps.OneFeature(shape))
    table = loss_quantiles(problem, ["optimal", "exponential"], 1.0)
    assert table["policy"].unique().tolist() == ["exponential"]


def test_what_cannot_be_asked_is_refused():
    problem = ps.DecisionProblem([[0, 1], [1, 0]], [0.5, 0.5], ps.AnyRecord())
    with pytest.raises(ValueError, match="unknown policy 'nothing'"):
        loss_quantiles(problem, ["nothing"], 1.0)
    with pytest.raises(ValueError, match="epsilon must be a number >= 0, got -1"):
        loss_quantiles(problem, ["uniform"], -1.0)
