"""A thousand forged proofs: none is accepted that claims more than the whole linear programme says is true."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from full_programme import full_value

from policies import AnyRecord, DecisionProblem, OneFeature, Sensitive
from policies.adjacency import Listed
from policies.optimal.certificate import optimal_certificate
from policies.proof import LOST, grouped

# What the programme that knows the truth is off by at most, relative to utilities near 1.
SOLVED = 1e-7
SHAPES = [(2, 2), (3, 2), (2, 2, 2), (2, 3, 2), (2, 2, 2, 2), (2, 2, 2, 2, 2), (2, 2, 2, 2, 2, 2)]


def random_problem(seed):
    """Of two to six hidden features, two of three under one-feature."""
    rng = np.random.default_rng(seed)
    shape = SHAPES[seed % len(SHAPES)]
    n, k = int(np.prod(shape)), int(rng.integers(2, 4))
    adjacency = [OneFeature(shape), OneFeature(shape), Sensitive(shape, (0, 1)), AnyRecord()][seed % 4]
    utilities = rng.normal(size=(n, k)).round(2)
    if seed % 2:
        # The ends of the grid alone come, and are best treated differently: d steps matter.
        utilities[0], utilities[-1] = np.eye(k)[0], np.eye(k)[1]
        prior = np.r_[0.5, np.zeros(n - 2), 0.5]
    else:
        prior = rng.dirichlet(np.full(n, 0.5))
    outcomes = {"death": rng.random((n, k)).round(2), "days": rng.normal(size=(n, k)).round(2)}
    return DecisionProblem(utilities, prior, adjacency, outcomes=outcomes)


def costs_of(problem, weights):
    lost = problem.utilities.max(axis=1, keepdims=True) - problem.utilities
    return sum(weight * (lost if name == LOST else problem.outcomes[name]) for name, weight in weights)


@cache
def least(problem, epsilon, weights):
    """The truth: the least objective of an epsilon-private policy."""
    return -full_value(problem.with_utilities(-costs_of(problem, weights)), epsilon)


def forgeries(problem, true, rng):
    """Certificates that differ from a true one in what an adversary may change."""
    digest, epsilon, weights = true.problem, true.epsilon, true.objective
    raised = true.bound + (1e-6 + rng.random()) * max(abs(true.bound), 0.1)
    places = len(problem.adjacency.partitions(problem.n_records))
    # Of a weaker demand, of other data or with another adjacency, under this problem's name.
    yield replace(optimal_certificate(problem, epsilon / 2, weights), epsilon=epsilon)
    yield replace(optimal_certificate(problem, epsilon / places, weights), epsilon=epsilon)
    yield replace(optimal_certificate(problem, 0.75 * epsilon, weights), epsilon=epsilon, bound=raised)
    for adjacency in (AnyRecord(), Listed.any_record(np.zeros((problem.n_records, 1), dtype=int))):
        for steps in {1, 3, places}:
            other = optimal_certificate(problem.with_adjacency(adjacency), steps * epsilon, weights)
            for hidden in ((0,), tuple(range(places)), (0,) * places, tuple(range(min(3, places)))):
                yield replace(other, problem=digest, epsilon=epsilon, hidden=hidden)
    for place in range(places):
        yield replace(true, hidden=(place,))
        yield replace(true, hidden=(place,), bound=raised)
    richer = DecisionProblem(3 * problem.utilities, problem.prior, problem.adjacency, outcomes=problem.outcomes)
    yield replace(optimal_certificate(richer, epsilon, weights), problem=digest)
    yield replace(optimal_certificate(richer, epsilon, weights), problem=digest, bound=raised)
    # Multipliers that are none.
    shape = true.alpha.shape
    one = np.zeros(shape)
    one.ravel()[rng.integers(one.size)] = rng.random()
    for alpha, beta in (
        (true.alpha + one, true.beta),
        (true.alpha, true.beta - true.beta.max() - one),
        (true.alpha - true.alpha.max() - one, true.beta),
        (true.alpha * (1 + 1e-9), true.beta * (1 - 1e-9)),
        (2 * true.alpha, true.beta),
        (true.alpha, np.zeros(shape)),
        (true.alpha, np.full(shape, np.nan)),
        (np.full(shape, np.nan), true.beta),
        (np.full(shape, np.inf), np.full(shape, np.inf)),
        (rng.random(shape), rng.random(shape)),
        (true.alpha.astype(np.float32), true.beta.astype(np.float32)),
        (true.alpha.astype(">f8"), true.beta.astype(">f8")),
        (true.alpha.astype(object), true.beta.astype(object)),
        (true.alpha.astype(complex), true.beta),
        (true.alpha.astype(int), (1e3 * true.beta).astype(int)),
        (np.ma.masked_array(true.alpha + 1, mask=True), true.beta),
        (true.alpha.T, true.beta.T),
        (np.vstack([true.alpha, one]), np.vstack([true.beta, one])),
        (true.alpha[:1], true.beta[:1]),
        (true.alpha[0], true.beta[0]),
        (np.empty((0, shape[1])), np.empty((0, shape[1]))),
        (true.alpha.tolist(), true.beta.tolist()),
        (None, "beta"),
        (rng.permutation(true.alpha), true.beta),
        (true.beta, true.alpha),
    ):
        yield replace(true, alpha=alpha, beta=beta, bound=raised)
    # Claims that are none, or another one.
    for bound in (raised, true.bound + 1e-6, np.inf, np.nan, -np.inf, "1", None, 10**400, True, np.float32(raised)):
        yield replace(true, bound=bound)
    for other in (epsilon / 2, 1.5 * epsilon, -epsilon, np.nan, -np.inf, None, "1", 10**400, 1e308, np.array([1.0])):
        yield replace(true, epsilon=other, bound=raised)
    for hidden in ((), (places,), (-1,), (0.0,), ("a",), [0], None, (None,), (slice(0, 1),), ((0,),), 0, (np.nan,)):
        yield replace(true, hidden=hidden, bound=raised)
    for objective in (
        {},
        {LOST: -1.0},
        {"days": 1.0, LOST: np.inf},
        {LOST: np.nan},
        {LOST: 1e308, "death": 1e308, "days": 1e308},
        {"nothing": 1.0},
        {LOST: "1"},
        {LOST: 1},
        {3: 1.0},
        [(LOST, 1.0)],
        None,
        {"death": 1e-3, "days": 0.5},
    ):
        yield replace(true, objective=objective, bound=raised)
    for name in ("", digest[:-1], digest.encode(), None, random_problem(99).digest, np.array([digest])):
        yield replace(true, problem=name)


def test_no_forged_proof_is_accepted_that_claims_more_than_is_true():
    forged = refused = untrue = 0
    for seed in range(24):
        rng, problem = np.random.default_rng(seed), random_problem(seed)
        epsilon = float(rng.choice([0.1, 0.5, 1.0]))
        weights = {LOST: 1.0} if seed % 3 else {LOST: 1.0, "death": 2.0, "days": 0.25}
        true = optimal_certificate(problem, epsilon, weights)
        assert true.holds(problem)
        for certificate in forgeries(problem, true, rng):
            forged += 1
            # More than is true of the same claim, were it one of a number.
            bound = certificate.bound if isinstance(certificate.bound, float) else np.inf
            untrue += not bound <= least(problem, epsilon, tuple(weights.items()))
            if not certificate.holds(problem):
                refused += 1
            elif max(certificate.objective.values()) < 1e300:  # more than the programme takes
                claimed = tuple(certificate.objective.items())
                truth = least(problem, certificate.epsilon, claimed)
                assert certificate.bound <= truth + SOLVED, (seed, certificate)
    assert forged > 2000
    assert refused > untrue > 1500
    assert refused < forged


def test_not_an_ulp_more_than_is_proven_is_accepted():
    for seed in range(20):
        problem = random_problem(seed)
        true = optimal_certificate(problem, 0.7)
        assert not replace(true, bound=float(np.nextafter(true.bound, np.inf))).holds(problem)


def test_a_proof_of_another_problem_is_refused_even_where_it_would_be_one():
    problem = random_problem(0)
    true = optimal_certificate(problem, 1.0)
    for other in (
        DecisionProblem(problem.utilities, problem.prior, problem.adjacency),
        DecisionProblem(problem.utilities, problem.prior, problem.adjacency, ["x", "y", "z"][: problem.n_actions]),
    ):
        assert not true.holds(other)
        assert replace(true, problem=other.digest).holds(other)


def test_a_partition_is_named_once():
    # True of one or of two steps, but a million names would take the checker's time.
    problem = DecisionProblem(np.eye(2), np.full(2, 0.5), AnyRecord())
    nothing = replace(optimal_certificate(problem, 1.0), alpha=np.zeros((2, 2)), beta=np.zeros((2, 2)), bound=0.0)
    assert nothing.holds(problem)
    assert not replace(nothing, hidden=(0, 0)).holds(problem)


@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_a_negative_multiplier_where_a_group_has_room_does_not_pay_for_the_others(name):
    # The last two lose so much by one action each that a negative multiplier of it costs them nothing.
    costs = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 2.0], [10.0, 5.0, 0.0], [5.0, 10.0, 0.0]])
    problem = DecisionProblem(-costs, np.full(4, 0.25), AnyRecord())
    true = optimal_certificate(problem, 8.0)
    groups = grouped(problem, (0,), ((LOST, 1.0),))
    moved = np.zeros((4, 3))
    moved[groups.codes[[0, 2]], 0] = moved[groups.codes[[1, 3]], 1] = 0.25, -0.25
    none = np.zeros((4, 3))
    forged = replace(true, alpha=moved, beta=none) if name == "alpha" else replace(true, alpha=none, beta=-moved)
    charged = (groups.costs + forged.alpha - forged.beta).min(axis=1).sum()
    assert charged > 0.49
    assert least(problem, 8.0, ((LOST, 1.0),)) < 0.01
    assert true.holds(problem)
    assert not replace(forged, bound=0.1).holds(problem)


@pytest.mark.parametrize("shape", SHAPES)
def test_d_hidden_features_take_d_epsilon_and_no_less(shape):
    # The two ends alone come, and are d steps apart.
    n, d, epsilon = int(np.prod(shape)), len(shape), 0.1
    utilities = np.zeros((n, 2))
    utilities[0], utilities[-1] = (1.0, 0.0), (0.0, 1.0)
    problem = DecisionProblem(utilities, np.r_[0.5, np.zeros(n - 2), 0.5], OneFeature(shape))
    true = optimal_certificate(problem, epsilon)
    assert true.hidden == tuple(range(d))
    assert true.bound == pytest.approx(1 / (1 + np.exp(d * epsilon)), rel=1e-12)
    groups = grouped(problem, true.hidden, ((LOST, 1.0),))
    ends = np.flatnonzero(groups.costs.max(axis=1) > 0)
    for steps in range(1, d + 2):
        # The dual by hand: both ends have one set of weight 1/2, of which q / (1 + q) goes into alpha.
        share = (1 - 1e-12) / (1 + np.exp(steps * epsilon))
        alpha, beta = np.zeros(groups.costs.shape), np.zeros(groups.costs.shape)
        alpha[ends, groups.orders[ends, 0]] = share / 2
        beta[ends, groups.orders[ends, 1]] = (1 - share) / 2
        claimed = float(share * (1 - 1e-12))
        # With one step too few, more is claimed than is true.
        assert steps >= d or claimed > least(problem, epsilon, ((LOST, 1.0),)) + SOLVED
        assert replace(true, alpha=alpha, beta=beta, bound=claimed).holds(problem) == (steps >= d), steps
