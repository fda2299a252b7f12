"""The certificate of the limit, read by a script that knows nothing but the JSON."""

import json

import numpy as np
import pytest
from check_certificate import proven_bound
from hypothesis import given, settings
from hypothesis import strategies as st

from policies import AnyRecord, DecisionProblem, OneFeature, Sensitive
from policies.optimal import Optimal
from policies.optimal_certificate import optimal_certificate
from policies.reference import BestFixed, Greedy


def random_problem(seed, n_actions=4, factor=1.0):
    rng = np.random.default_rng(seed)
    utilities = factor * rng.normal(size=(40, n_actions)).round(1)
    prior = rng.dirichlet(np.full(40, 0.4)) * (rng.random(40) < 0.8)
    return DecisionProblem(utilities, prior / prior.sum(), AnyRecord())


@given(
    seed=st.integers(0, 2**32 - 1),
    n_actions=st.integers(2, 6),
    epsilon=st.sampled_from([0.0, 0.01, 0.1, 1.0, 5.0, 20.0, 100.0, 1000.0]),
    factor=st.sampled_from([1.0, 1e6, 1e-12]),
)
@settings(max_examples=80, deadline=None, derandomize=True)
def test_the_bound_is_proven_and_equals_the_optimum(seed, n_actions, epsilon, factor):
    problem = random_problem(seed, n_actions, factor)
    certificate = optimal_certificate(problem, epsilon)
    attained = problem.value(Optimal(epsilon).probabilities(problem))
    tolerance = 1e-9 * np.ptp(problem.utilities)
    assert proven_bound(json.dumps(certificate)) == pytest.approx(attained, rel=0, abs=tolerance)
    assert certificate["value"] == pytest.approx(attained, rel=0, abs=tolerance)


def test_the_weights_are_those_of_the_problem():
    problem = random_problem(1)
    certificate = optimal_certificate(problem, 1.0)
    groups = certificate["groups"]
    np.testing.assert_allclose(np.sum([group["weights"] for group in groups], axis=0), problem.fixed_values, atol=1e-14)
    assert sum(group["records"] for group in groups) == problem.n_records
    assert sum(group["prior"] for group in groups) == pytest.approx(1.0)
    assert len({tuple(group["order"]) for group in groups}) == len(groups)
    for group in groups:
        ranks = [problem.actions.index(name) for name in group["order"]]
        assert (np.diff(np.array(group["weights"])[ranks]) <= 1e-15).all()
        assert group["greedy"] == max(group["weights"])


def test_the_groups_that_force_the_bound_come_first():
    problem = random_problem(2)
    charged = [group["greedy"] - group["lambda"] for group in optimal_certificate(problem, 1.0)["groups"]]
    assert charged == sorted(charged, reverse=True)
    greedy, limit = (problem.value(p.probabilities(problem)) for p in (Greedy(), Optimal(1.0)))
    assert sum(charged) == pytest.approx(greedy - limit, rel=1e-9)


def test_a_smaller_epsilon_proves_a_smaller_bound():
    problem = random_problem(3)
    bounds = [optimal_certificate(problem, epsilon)["bound"] for epsilon in (0.0, 0.5, 1.0, 4.0)]
    assert bounds == sorted(bounds)
    assert bounds[0] == pytest.approx(problem.value(BestFixed().probabilities(problem)), rel=1e-9)
    assert bounds[0] < bounds[-1]


def tampered(certificate, name):
    group = certificate["groups"][0]
    worst = int(np.argmax(group["alpha"]))
    if name == "lambda lowered":
        group["lambda"] -= 1e-6
    elif name == "alpha raised":
        group["alpha"] = [alpha + 1e-6 for alpha in group["alpha"]]
    elif name == "beta lowered":
        certificate["groups"] = [
            {**g, "beta": [beta * (1 - 1e-6) for beta in g["beta"]]} for g in certificate["groups"]
        ]
    elif name == "a negative multiplier":
        group["beta"][worst] -= 1.0
    elif name == "bound lowered":
        certificate["bound"] -= 1e-6
    elif name == "epsilon raised":
        certificate["epsilon"] *= 1 + 1e-6
    elif name == "weight raised":
        group["weights"] = [weight + 1e-6 for weight in group["weights"]]
    return certificate


@pytest.mark.parametrize(
    "change",
    [
        "lambda lowered",
        "alpha raised",
        "beta lowered",
        "a negative multiplier",
        "bound lowered",
        "epsilon raised",
        "weight raised",
    ],
)
def test_a_certificate_that_was_tampered_with_is_caught(change):
    certificate = optimal_certificate(random_problem(4), 1.0)
    proven_bound(json.dumps(certificate))
    with pytest.raises(ValueError, match="fail"):
        proven_bound(json.dumps(tampered(certificate, change)))


@pytest.mark.parametrize("adjacency", [OneFeature((4, 10)), Sensitive((4, 10), (0,))], ids=lambda a: a.name)
def test_other_adjacencies_are_refused(adjacency):
    base = random_problem(5)
    problem = DecisionProblem(base.utilities, base.prior, adjacency)
    with pytest.raises(ValueError, match=f"needs the adjacency any-record, got {adjacency.name}"):
        optimal_certificate(problem, 1.0)


@pytest.mark.parametrize("epsilon", [-1.0, np.nan, np.inf])
def test_an_epsilon_that_is_not_finite_and_non_negative_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon must be"):
        optimal_certificate(random_problem(6), epsilon)
