"""The certificate of the limit, read by a script that knows nothing but the JSON."""

import json
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from check_certificate import proven_bound
from hypothesis import given, settings
from hypothesis import strategies as st

import policies.optimal.certificate
from policies import AnyRecord, DecisionProblem, OneFeature, Sensitive
from policies.listed import Listed
from policies.optimal.certificate import floor_of, optimal_certificate, rounded_down
from policies.optimal.optimum import Optimal
from policies.policy import NotApplicableError
from policies.reference import BestFixed, Greedy


def random_problem(seed, n_actions=4, factor=1.0):
    rng = np.random.default_rng(seed)
    utilities = factor * rng.normal(size=(40, n_actions)).round(1)
    prior = rng.dirichlet(np.full(40, 0.4)) * (rng.random(40) < 0.8)
    return DecisionProblem(utilities, prior / prior.sum(), AnyRecord())


def as_json(certificate):
    return json.dumps(certificate.document())


@given(
    seed=st.integers(0, 2**32 - 1),
    n_actions=st.integers(2, 6),
    epsilon=st.sampled_from([0.0, 0.01, 0.1, 1.0, 5.0, 20.0, 100.0, 1000.0]),
    factor=st.sampled_from([1.0, 1e6, 1e-12]),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_the_bound_is_proven_and_equals_the_optimum(seed, n_actions, epsilon, factor):
    problem = random_problem(seed, n_actions, factor)
    certificate = optimal_certificate(problem, epsilon)
    greedy, attained = (problem.value(policy.probabilities(problem)) for policy in (Greedy(), Optimal(epsilon)))
    tolerance = 1e-9 * np.ptp(problem.utilities)
    assert certificate.holds(problem)
    assert proven_bound(as_json(certificate)) == pytest.approx(greedy - attained, rel=0, abs=tolerance)
    assert certificate.bound == pytest.approx(greedy - attained, rel=0, abs=tolerance)


@pytest.mark.parametrize("offset", [0.0, 1e9, 1e12])
def test_an_offset_however_large_leaves_a_proof_of_nearly_the_same_bound(offset):
    for seed in range(30):
        problem = random_problem(seed, 3)
        # The floats that are published are those after the offset was added: they are what is proven about.
        utilities = problem.utilities + offset
        shifted = DecisionProblem(utilities, problem.prior, AnyRecord())
        near = DecisionProblem(utilities - offset, problem.prior, AnyRecord())
        certificate = optimal_certificate(shifted, 1.0)
        assert certificate.holds(shifted)
        lost = near.value(Greedy().probabilities(near)) - near.value(Optimal(1.0).probabilities(near))
        assert proven_bound(as_json(certificate)) == pytest.approx(lost, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0, np.inf])
def test_public_features_make_a_class_each_and_the_bound_is_still_the_optimum(epsilon):
    base = random_problem(7)
    problem = DecisionProblem(base.utilities, base.prior, Sensitive((4, 10), (0,)))
    certificate = optimal_certificate(problem, epsilon)
    assert certificate.holds(problem)
    assert len(set(certificate.classes.tolist())) == 10
    lost = problem.value(Greedy().probabilities(problem)) - problem.value(Optimal(epsilon).probabilities(problem))
    assert certificate.bound == pytest.approx(lost, rel=0, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0])
def test_under_one_feature_the_bound_is_below_the_optimum_and_above_none(epsilon):
    base = random_problem(8)
    problem = DecisionProblem(base.utilities, base.prior, OneFeature((4, 10)))
    certificate = optimal_certificate(problem, epsilon)
    lost = problem.value(Greedy().probabilities(problem)) - problem.value(Optimal(epsilon).probabilities(problem))
    assert certificate.holds(problem)
    assert 0 < certificate.bound <= lost + 1e-9
    assert certificate.class_epsilon >= certificate.epsilon


def test_the_costs_are_those_of_the_problem():
    problem = random_problem(1)
    document = optimal_certificate(problem, 1.0).document()
    groups = document["groups"]
    lost = problem.prior @ (problem.utilities.max(axis=1)[:, None] - problem.utilities)
    np.testing.assert_allclose(np.sum([group["costs"] for group in groups], axis=0), lost, atol=1e-14)
    assert sum(group["records"] for group in groups) == problem.n_records
    assert sum(group["prior"] for group in groups) == pytest.approx(1.0)
    assert len({tuple(group["order"]) for group in groups}) == len(groups)
    for group in groups:
        ranks = [problem.actions.index(name) for name in group["order"]]
        assert (np.diff(np.array(group["costs"])[ranks]) >= -1e-15).all()
        assert min(group["costs"]) == 0


def test_costs_of_another_problem_are_not_accepted():
    problem, other = random_problem(1), random_problem(2)
    certificate = optimal_certificate(problem, 1.0)
    assert certificate.holds(problem)
    assert not certificate.holds(other)
    assert not replace(certificate, costs=certificate.costs * (1 + 1e-13)).holds(problem)


def test_the_groups_that_force_the_bound_come_first():
    problem = random_problem(2)
    charged = [group["lambda"] for group in optimal_certificate(problem, 1.0).document()["groups"]]
    assert charged == sorted(charged, reverse=True)
    greedy, limit = (problem.value(p.probabilities(problem)) for p in (Greedy(), Optimal(1.0)))
    assert sum(charged) == pytest.approx(greedy - limit, rel=1e-9)


def test_a_smaller_epsilon_proves_a_larger_loss():
    problem = random_problem(3)
    bounds = [optimal_certificate(problem, epsilon).bound for epsilon in (0.0, 0.5, 1.0, 4.0, np.inf)]
    assert bounds == sorted(bounds, reverse=True)
    greedy, fixed = (problem.value(policy.probabilities(problem)) for policy in (Greedy(), BestFixed()))
    assert bounds[0] == pytest.approx(greedy - fixed, rel=1e-9)
    assert bounds[-1] <= 0 < bounds[-2]


@pytest.mark.parametrize("epsilon", [5e-324, 1e-6, 0.1, 1.0, 30.0, 700.0, 744.0])
def test_the_floor_is_below_the_exponential_and_next_to_it(epsilon):
    with localcontext(prec=80):
        true = Fraction(Decimal(-epsilon).exp())
    assert true * (1 - Fraction(1, 10**37)) < floor_of(epsilon) < true
    assert rounded_down(floor_of(epsilon)) <= floor_of(epsilon)


def test_the_floor_at_the_ends():
    assert (floor_of(0.0), floor_of(1001.0), floor_of(np.inf)) == (1, 0, 0)


def tampered(certificate, name):
    group = certificate["groups"][0]
    worst = int(np.argmax(group["alpha"]))
    if name == "lambda raised":
        group["lambda"] += 1e-6
    elif name == "alpha raised":
        group["alpha"] = [alpha + 1e-6 for alpha in group["alpha"]]
    elif name == "beta lowered":
        certificate["groups"] = [
            {**g, "beta": [beta * (1 - 1e-6) for beta in g["beta"]]} for g in certificate["groups"]
        ]
    elif name == "a negative multiplier":
        group["beta"][worst] = -1.0
    elif name == "bound raised":
        certificate["bound"] += 1e-6
    elif name == "epsilon raised":
        certificate["epsilon"] *= 1 + 1e-6
        certificate["class_epsilon"] *= 1 + 1e-6
    elif name == "cost lowered":
        group["costs"] = [cost - 1e-6 for cost in group["costs"]]
    elif name == "q raised":
        certificate["q"] = np.nextafter(certificate["q"], 1)
    return certificate


@pytest.mark.parametrize(
    "change",
    [
        "lambda raised",
        "alpha raised",
        "beta lowered",
        "a negative multiplier",
        "bound raised",
        "epsilon raised",
        "cost lowered",
        "q raised",
    ],
)
def test_a_certificate_that_was_tampered_with_is_caught(change):
    certificate = optimal_certificate(random_problem(4), 1.0)
    proven_bound(as_json(certificate))
    with pytest.raises(ValueError, match="fail"):
        proven_bound(json.dumps(tampered(certificate.document(), change)))


@pytest.mark.parametrize("name", ["charges", "alpha", "beta", "bound", "epsilon", "costs", "q", "negative"])
def test_the_product_itself_rejects_what_the_script_rejects(name):
    problem = random_problem(4)
    certificate = optimal_certificate(problem, 1.0)
    first = np.zeros_like(certificate.alpha)
    first[0] = 1e-6
    wrong = {
        "charges": {"charges": certificate.charges + 1e-6},
        "alpha": {"alpha": certificate.alpha + first},
        "beta": {"beta": certificate.beta * (1 - 1e-6)},
        "bound": {"bound": certificate.bound + 1e-6},
        "epsilon": {"epsilon": 1 + 1e-9, "class_epsilon": 1 + 1e-9},
        "costs": {"costs": certificate.costs + first},
        "q": {"q": np.nextafter(certificate.q, 1)},
        "negative": {"alpha": certificate.alpha - first},
    }
    assert certificate.holds(problem)
    assert not replace(certificate, **wrong[name]).holds(problem)


def test_one_feature_over_a_list_of_records_is_refused():
    base = random_problem(5)
    codes = np.indices((4, 10)).reshape(2, -1).T
    problem = DecisionProblem(base.utilities, base.prior, Listed.one_feature(codes))
    with pytest.raises(NotApplicableError, match="no certificate for one-feature over a list of records"):
        optimal_certificate(problem, 1.0)
    sensitive = DecisionProblem(base.utilities, base.prior, Listed.sensitive(codes, [0]))
    on_grid = DecisionProblem(base.utilities, base.prior, Sensitive((4, 10), (0,)))
    found, same = optimal_certificate(sensitive, 1.0), optimal_certificate(on_grid, 1.0)
    assert found.holds(sensitive)
    assert found.bound == pytest.approx(same.bound, rel=1e-12)


def test_more_groups_than_can_be_decided_in_rationals_are_refused(monkeypatch):
    monkeypatch.setattr(policies.optimal.certificate, "MAX_ENTRIES", 39)
    base = random_problem(5)
    problem = DecisionProblem(base.utilities, base.prior, Sensitive((4, 10), (0,)))
    with pytest.raises(NotApplicableError, match="at most 9 groups of records with 4 actions, got 40"):
        optimal_certificate(problem, 1.0)


@pytest.mark.parametrize("epsilon", [-1.0, np.nan])
def test_an_epsilon_that_is_no_number_or_negative_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon must be"):
        optimal_certificate(random_problem(6), epsilon)
