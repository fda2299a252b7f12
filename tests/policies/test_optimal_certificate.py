"""Proofs of the limit: true ones hold, also for a script that knows nothing of this package, and others do not."""

import json
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from check_certificate import proven_bound
from hypothesis import given, settings
from hypothesis import strategies as st
from proofs_by_hand import least_lost, problem_json
from random_problems import masked_problems, problems

import policies.proof
from policies import AnyRecord, DecisionProblem, OneFeature, Sensitive
from policies.adjacency import Listed
from policies.optimal.bounded import bounded_optimum
from policies.optimal.bounds import ONE_FOR_ALL, InfeasibleError
from policies.optimal.certificate import document, optimal_certificate
from policies.optimal.optimum import Optimal
from policies.policy import NotApplicableError
from policies.proof import LOST, float_below, floor_of, grouped
from policies.reference import Greedy


def random_problem(seed, n_actions=4, factor=1.0):
    rng = np.random.default_rng(seed)
    utilities = factor * rng.normal(size=(40, n_actions)).round(1)
    prior = rng.dirichlet(np.full(40, 0.4)) * (rng.random(40) < 0.8)
    return DecisionProblem(utilities, prior / prior.sum(), AnyRecord())


def as_json(certificate, problem):
    return json.dumps(document(certificate, problem))


def checked(certificate, problem):
    """What the script finds proven, given the problem, too."""
    return proven_bound(as_json(certificate, problem), problem_json(problem))


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
    assert checked(certificate, problem) == pytest.approx(greedy - attained, rel=0, abs=tolerance)
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
        assert checked(certificate, shifted) == pytest.approx(lost, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0, np.inf])
def test_public_features_make_a_class_each_and_the_bound_is_still_the_optimum(epsilon):
    base = random_problem(7)
    problem = DecisionProblem(base.utilities, base.prior, Sensitive((4, 10), (0,)))
    certificate = optimal_certificate(problem, epsilon)
    assert certificate.holds(problem)
    assert len({group["class"] for group in document(certificate, problem)["groups"]}) == 10
    lost = problem.value(Greedy().probabilities(problem)) - problem.value(Optimal(epsilon).probabilities(problem))
    assert certificate.bound == pytest.approx(lost, rel=0, abs=1e-9)


def test_any_number_of_records_in_few_public_classes_has_a_proof(monkeypatch):
    base = random_problem(7, 3)
    problem = DecisionProblem(base.utilities, base.prior, Sensitive((20, 2), (0,)))
    # Twenty groups at most, of forty records: two classes of six orders.
    monkeypatch.setattr(policies.proof, "MAX_ENTRIES", 60)
    certificate = optimal_certificate(problem, 1.0)
    lost = problem.value(Greedy().probabilities(problem)) - problem.value(Optimal(1.0).probabilities(problem))
    assert certificate.holds(problem)
    assert certificate.bound == pytest.approx(lost, rel=0, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0])
def test_under_one_feature_the_bound_is_below_the_optimum_and_above_none(epsilon):
    base = random_problem(8)
    problem = DecisionProblem(base.utilities, base.prior, OneFeature((4, 10)))
    certificate = optimal_certificate(problem, epsilon)
    lost = problem.value(Greedy().probabilities(problem)) - problem.value(Optimal(epsilon).probabilities(problem))
    assert certificate.holds(problem)
    assert 0 < certificate.bound <= lost + 1e-9
    assert checked(certificate, problem) >= certificate.bound


def test_the_groups_are_those_of_the_problem():
    problem = random_problem(1)
    groups = document(optimal_certificate(problem, 1.0), problem)["groups"]
    lost = problem.prior @ (problem.utilities.max(axis=1)[:, None] - problem.utilities)
    np.testing.assert_allclose(np.sum([group["costs"] for group in groups], axis=0), lost, atol=1e-14)
    assert sum(group["records"] for group in groups) == problem.n_records
    assert sum(group["prior"] for group in groups) == pytest.approx(1.0)
    assert len({tuple(group["order"]) for group in groups}) == len(groups)
    for group in groups:
        ranks = [problem.actions.index(name) for name in group["order"]]
        assert (np.diff(np.array(group["costs"])[ranks]) >= -1e-15).all()
        assert min(group["costs"]) == 0


def test_the_groups_that_force_the_bound_come_first():
    problem = random_problem(2)
    charged = [group["lambda"] for group in document(optimal_certificate(problem, 1.0), problem)["groups"]]
    assert charged == sorted(charged, reverse=True)
    greedy, limit = (problem.value(p.probabilities(problem)) for p in (Greedy(), Optimal(1.0)))
    assert sum(charged) == pytest.approx(greedy - limit, rel=1e-9)


@pytest.mark.parametrize("epsilon", [5e-324, 1e-6, 0.1, 1.0, 30.0, 700.0, 744.0])
def test_the_floor_is_below_the_exponential_and_next_to_it(epsilon):
    with localcontext(prec=80):
        true = Fraction(Decimal(-epsilon).exp())
    assert true * (1 - Fraction(1, 10**37)) < floor_of(epsilon) < true
    assert float_below(floor_of(epsilon)) <= floor_of(epsilon)


def test_the_floor_at_the_ends():
    assert (floor_of(0.0), floor_of(1001.0), floor_of(np.inf)) == (1, 0, 0)


def tampered(proof, name):
    group = proof["groups"][0]
    if name == "lambda raised":
        group["lambda"] += 1e-6
    elif name == "alpha raised":
        group["alpha"] = [alpha + 1e-6 for alpha in group["alpha"]]
    elif name == "beta lowered":
        for each in proof["groups"]:
            each["beta"] = [beta * (1 - 1e-6) for beta in each["beta"]]
    elif name == "a negative multiplier":
        group["beta"][int(np.argmax(group["alpha"]))] = -1.0
    elif name == "bound raised":
        proof["bound"] = float(np.nextafter(proof["bound"] * (1 + 1e-14), 1))
    elif name == "epsilon raised":
        proof["epsilon"] *= 1 + 1e-6
    elif name == "cost raised":
        group["costs"] = [cost + 1e-6 for cost in group["costs"]]
    elif name == "class split":
        group["class"] = 1
    elif name == "digest":
        proof["problem"] = random_problem(5).digest
    elif name == "group twice":
        proof["groups"].append(group)
    return proof


@pytest.mark.parametrize(
    "change",
    [
        "lambda raised",
        "alpha raised",
        "beta lowered",
        "a negative multiplier",
        "bound raised",
        "epsilon raised",
        "cost raised",
        "class split",
        "digest",
        "group twice",
    ],
)
def test_a_file_that_was_tampered_with_is_caught(change):
    problem = random_problem(4)
    certificate = optimal_certificate(problem, 1.0)
    checked(certificate, problem)
    with pytest.raises(ValueError, match="fail"):
        proven_bound(json.dumps(tampered(document(certificate, problem), change)), problem_json(problem))


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
    monkeypatch.setattr(policies.proof, "MAX_ENTRIES", 59)
    base = random_problem(5)
    problem = DecisionProblem(base.utilities, base.prior, Sensitive((4, 10), (0,)))
    with pytest.raises(NotApplicableError, match=r"at most 14 groups of records with 4 actions, got \d\d\."):
        optimal_certificate(problem, 1.0)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({LOST: -1.0}, r"objective\['utility lost'\] must be >= 0, got"),
        ({"death": "1"}, r"objective\['death'\] must be >= 0"),
        ({"deaht": 1.0}, "unknown outcome 'deaht'; did you mean 'death'"),
    ],
)
def test_an_objective_that_is_none_is_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        optimal_certificate(with_outcomes(0, AnyRecord()), 1.0, weights)


@pytest.mark.parametrize("epsilon", [-1.0, np.nan])
def test_an_epsilon_that_is_no_number_or_negative_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon must be"):
        optimal_certificate(random_problem(6), epsilon)


# Any objective, and bounds on outcomes.

ADJACENCIES = {"any-record": AnyRecord(), "sensitive": Sensitive((4, 6), (1,)), "one-feature": OneFeature((4, 6))}


def with_outcomes(seed, adjacency, offset=0.0):
    rng = np.random.default_rng(seed)
    utilities = rng.normal(size=(24, 3)).round(1)
    prior = rng.dirichlet(np.full(24, 0.4)) * (rng.random(24) < 0.8)
    outcomes = {"death": rng.random((24, 3)).round(2), "days": 10 * rng.random((24, 3)) - 5}
    return DecisionProblem(utilities + offset, prior / prior.sum(), adjacency, outcomes=outcomes)


def lost_within(problem, epsilon, **bounds):
    """What the best within the bounds loses against greedy, without the offset of the utilities."""
    found = bounded_optimum(problem, epsilon, **bounds)
    regrets = problem.utilities.max(axis=1, keepdims=True) - problem.utilities
    return float((problem.prior[:, None] * np.exp(found.log_probabilities) * regrets).sum())


BOUNDS = [
    {"at_most": {"death": ONE_FOR_ALL}},
    {"at_most": {"death": 0.4, "days": 0.0}},
    {"capacity": {"a0": 0.2, "a2": 0.3}},
    {"at_most": {"death": 0.45}, "capacity": {"a1": 0.25}},
]


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("name", ["any-record", "sensitive"])
def test_within_bounds_what_is_proven_is_the_optimum(name, bounds):
    proven = 0
    for seed in range(4):
        for epsilon in (0.0, 0.5, 2.0, 8.0, np.inf):
            problem = with_outcomes(seed, ADJACENCIES[name])
            try:
                found = least_lost(problem, epsilon, **bounds)
            except InfeasibleError:
                continue
            proven += 1
            assert found == pytest.approx(lost_within(problem, epsilon, **bounds), rel=0, abs=1e-10)
    assert proven > 8


@pytest.mark.parametrize("offset", [1e6, 1e12])
def test_within_bounds_an_offset_leaves_a_proof_of_nearly_the_same_bound(offset):
    problem, at_most = with_outcomes(3, AnyRecord(), offset), {"death": 0.43}
    assert bounded_optimum(problem, 1.0, at_most=at_most).multipliers["death"] > 0
    assert least_lost(problem, 1.0, at_most) == pytest.approx(lost_within(problem, 1.0, at_most=at_most), rel=1e-9)


def test_within_bounds_under_one_feature_the_bound_is_below_the_optimum_and_above_none():
    problem = with_outcomes(8, ADJACENCIES["one-feature"])
    assert 0 < least_lost(problem, 1.0, {"death": 0.4}) <= lost_within(problem, 1.0, at_most={"death": 0.4}) + 1e-7


def exactly(table):
    return [[Fraction(number) for number in row] for row in table.tolist()]


@pytest.mark.parametrize("weights", [{LOST: 1.0}, {LOST: 1.0, "death": 3.7}, {"days": 0.3, "death": 1.0}])
def test_weak_duality_by_rationals_for_private_policies(weights):
    # The claim itself, for tables that are private exactly, without a float in between.
    problem = with_outcomes(4, AnyRecord())
    proof = optimal_certificate(problem, 1.0, weights)
    assert proof.holds(problem)
    utilities, prior = exactly(problem.utilities), [Fraction(chance) for chance in problem.prior.tolist()]
    tables = {LOST: [[max(row) - u for u in row] for row in utilities]}
    tables |= {name: exactly(table) for name, table in problem.outcomes.items()}
    most, rng, closest = Fraction(np.nextafter(np.e, 0)), np.random.default_rng(0), 1.0
    for seed in range(30):
        # Private tables of all kinds; the first is nearly the best for the objective.
        costs = sum(weight * np.array(tables[name], dtype=float) for name, weight in weights.items())
        other = problem.with_utilities(-costs + seed * rng.normal(size=(24, 3)))
        rows = [[chance / sum(row) for chance in row] for row in exactly(Optimal(1 - 1e-9).probabilities(other))]
        used = [column for column in zip(*rows, strict=True) if any(column)]
        assert max(max(column) / min(column) for column in used) <= most
        comes_to = sum(
            w * p * Fraction(weight) * z
            for name, weight in weights.items()
            for w, row, of in zip(prior, rows, tables[name], strict=True)
            for p, z in zip(row, of, strict=True)
        )
        assert comes_to >= Fraction(proof.bound)
        closest = min(closest, float(comes_to - Fraction(proof.bound)))
    assert closest < 1e-6


@given(problem=st.one_of(problems(4), masked_problems(4)), epsilon=st.sampled_from([0.0, 0.3, 1.0, 3.0, np.inf]))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_true_proofs_hold_for_the_checker_and_the_script(problem, epsilon):
    for weights in ({LOST: 1.0}, {LOST: 1.0, "death": 2.5}, {"death": 1.0}):
        certificate = optimal_certificate(problem, epsilon, weights)
        assert certificate.holds(problem)
        text = as_json(certificate, problem).replace("Infinity", '"inf"')
        assert proven_bound(text, problem_json(problem)) >= certificate.bound


@pytest.mark.parametrize("hidden", [Listed.any_record, Listed.one_feature])
def test_the_script_reads_lists_of_records(hidden):
    base = random_problem(5)
    codes = np.column_stack([np.arange(40) // 2, np.zeros(40, dtype=int)])
    problem = DecisionProblem(base.utilities, base.prior, hidden(codes[:, :1]))
    certificate = optimal_certificate(problem, 1.0)
    assert certificate.holds(problem)
    assert checked(certificate, problem) == pytest.approx(certificate.bound)


# Costs of problems that are too large for rational numbers.


@pytest.mark.parametrize("weights", [{LOST: 1.0}, {LOST: 1.0, "death": 3.7}])
def test_costs_in_floats_are_below_the_exact_ones_and_next_to_them(weights, monkeypatch):
    problem = with_outcomes(6, AnyRecord())
    exact = grouped(problem, (0,), tuple(weights.items()))
    monkeypatch.setattr(policies.proof, "MAX_ENTRIES", 24 * 3 - 1)
    other = with_outcomes(6, AnyRecord())
    floats = grouped(other, (0,), tuple(weights.items()))
    assert (floats.costs <= exact.costs).all()
    np.testing.assert_allclose(floats.costs, exact.costs, rtol=1e-13)
    proof = optimal_certificate(other, 1.0, weights)
    assert proof.holds(other)
    assert proof.bound == pytest.approx(optimal_certificate(problem, 1.0, weights).bound, rel=1e-12)
    with pytest.raises(NotApplicableError, match="at most 23 records with outcomes below 0, got 24"):
        optimal_certificate(other, 1.0, {"days": 1.0})
