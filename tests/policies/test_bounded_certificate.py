"""The proof of what the optimum within bounds loses: tight, and refused if any of it is wrong."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from policies import AnyRecord, DecisionProblem, OneFeature, Sensitive
from policies.optimal import certificate
from policies.optimal.bounded import bounded_optimum
from policies.optimal.bounded_certificate import bounded_certificate
from policies.optimal.bounds import ONE_FOR_ALL, InfeasibleError
from policies.optimal.certificate import optimal_certificate
from policies.optimal.optimum import Optimal

ADJACENCIES = {"any-record": AnyRecord(), "sensitive": Sensitive((4, 6), (1,)), "one-feature": OneFeature((4, 6))}


def random_problem(seed, adjacency, offset=0.0):
    rng = np.random.default_rng(seed)
    utilities = rng.normal(size=(24, 3)).round(1)
    prior = rng.dirichlet(np.full(24, 0.4)) * (rng.random(24) < 0.8)
    outcomes = {"deaths": rng.random((24, 3)).round(2), "days": 10 * rng.random((24, 3)) - 5}
    return DecisionProblem(utilities + offset, prior / prior.sum(), adjacency, outcomes=outcomes)


def least_lost(problem, epsilon, **bounds):
    """What the best within the bounds loses against greedy, without the offset of the utilities."""
    found = bounded_optimum(problem, epsilon, **bounds)
    regrets = problem.utilities.max(axis=1, keepdims=True) - problem.utilities
    return float((problem.prior[:, None] * np.exp(found.log_probabilities) * regrets).sum())


BOUNDS = [
    {"at_most": {"deaths": ONE_FOR_ALL}},
    {"at_most": {"deaths": 0.4, "days": 0.0}},
    {"capacity": {"a0": 0.2, "a2": 0.3}},
    {"at_most": {"deaths": 0.45}, "capacity": {"a1": 0.25}},
]


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("name", ["any-record", "sensitive"])
def test_the_bound_is_proven_and_equals_the_optimum(name, bounds):
    proven = 0
    for seed in range(6):
        for epsilon in (0.0, 0.5, 2.0, 8.0, np.inf):
            problem = random_problem(seed, ADJACENCIES[name])
            try:
                found = bounded_certificate(problem, epsilon, **bounds)
            except InfeasibleError:
                continue
            proven += 1
            assert found.holds(problem)
            assert found.bound == pytest.approx(least_lost(problem, epsilon, **bounds), rel=0, abs=1e-10)
            assert json.loads(json.dumps(found.document()))["bound"] == found.bound
    assert proven > 12


@pytest.mark.parametrize("offset", [1e6, 1e12])
def test_an_offset_however_large_leaves_a_proof_of_nearly_the_same_bound(offset):
    problem = random_problem(3, AnyRecord(), offset)
    found = bounded_certificate(problem, 1.0, at_most={"deaths": 0.43})
    assert found.multipliers["deaths"] > 0
    assert found.holds(problem)
    assert found.bound == pytest.approx(least_lost(problem, 1.0, at_most={"deaths": 0.43}), rel=1e-9)


def test_under_one_feature_the_bound_is_below_the_optimum_and_above_none():
    problem = random_problem(8, ADJACENCIES["one-feature"])
    found = bounded_certificate(problem, 1.0, at_most={"deaths": 0.4})
    assert found.holds(problem)
    assert 0 < found.bound <= least_lost(problem, 1.0, at_most={"deaths": 0.4}) + 1e-7


def test_it_proves_more_than_without_bounds_and_as_much_where_they_do_not_bind():
    problem = random_problem(5, AnyRecord())
    without = optimal_certificate(problem, 1.0).bound
    loose = bounded_certificate(problem, 1.0, at_most={"deaths": 1.0})
    assert loose.multipliers == {"deaths": 0.0}
    assert loose.bound == pytest.approx(without, rel=1e-12)
    strict = bounded_certificate(problem, 1.0, at_most={"deaths": 0.4})
    assert strict.multipliers["deaths"] > 0
    assert strict.bound > without + 1e-3


def exactly(table):
    return [[Fraction(number) for number in row] for row in table.tolist()]


def test_weak_duality_by_rationals_for_policies_within_the_bound():
    # The claim itself, for tables that are private and keep the bound exactly, without a float in between.
    problem = random_problem(4, AnyRecord())
    found = bounded_certificate(problem, 1.0, at_most={"deaths": 0.45})
    assert found.multipliers["deaths"] > 0
    utilities, deaths = exactly(problem.utilities), exactly(problem.outcomes["deaths"])
    prior = [Fraction(chance) for chance in problem.prior.tolist()]
    limit, most = Fraction(0.45), Fraction(np.e)
    rng = np.random.default_rng(0)
    within = 0
    for _ in range(40):
        # Private tables of all kinds, some of which are nearly as safe as possible.
        other = problem.with_utilities(rng.normal(size=(24, 3)) - 30 * rng.random() * problem.outcomes["deaths"])
        table = exactly(Optimal(0.99).probabilities(other))
        rows = [[chance / sum(row) for chance in row] for row in table]
        used = [column for column in zip(*rows, strict=True) if any(column)]
        cells = [
            (w * p, d, max(u) - v)
            for w, row, of, u in zip(prior, rows, deaths, utilities, strict=True)
            for p, d, v in zip(row, of, u, strict=True)
        ]
        if max(max(column) / min(column) for column in used) > most or sum(p * d for p, d, _ in cells) > limit:
            continue
        within += 1
        assert sum(p * lost for p, _, lost in cells) >= Fraction(found.bound)
    assert within > 10


@pytest.mark.parametrize(
    "name", ["bound", "multipliers", "negative", "missing", "limit", "epsilon", "proof", "unknown"]
)
def test_what_was_tampered_with_is_refused(name):
    problem = random_problem(4, AnyRecord())
    bounds = {"at_most": {"deaths": 0.4}, "capacity": {"a1": 0.3}}
    found = bounded_certificate(problem, 1.0, **bounds)
    assert found.holds(problem)
    assert min(found.multipliers.values()) > 0.01
    other = bounded_certificate(random_problem(5, AnyRecord()), 1.0, at_most={"deaths": 0.4})
    wrong = {
        "bound": {"bound": float(np.nextafter(found.bound * (1 + 1e-12), 1))},
        "multipliers": {"multipliers": {**found.multipliers, "deaths": found.multipliers["deaths"] * (1 - 1e-6)}},
        "negative": {"multipliers": {**found.multipliers, "a1": -0.1}},
        "missing": {"multipliers": {"deaths": found.multipliers["deaths"]}},
        "limit": {"at_most": {"deaths": 0.4 + 1e-6}},
        "epsilon": {"epsilon": 1 + 1e-9},
        "proof": {"proof": other.proof},
        "unknown": {"at_most": {"deahts": 0.4}},
    }
    assert not replace(found, **wrong[name]).holds(problem)
    assert not found.holds(random_problem(5, AnyRecord()))


def test_costs_of_another_problem_are_not_accepted_either_where_there_are_many_records(monkeypatch):
    problem = random_problem(4, AnyRecord())
    found = bounded_certificate(problem, 1.0, at_most={"deaths": 0.4})
    # Beyond so many entries costs are not added up in rationals.
    monkeypatch.setattr(certificate, "MAX_ENTRIES", 24 * 3 - 1)
    assert found.holds(problem)
    higher = {"deaths": found.multipliers["deaths"] * 1.01}
    assert not replace(found, multipliers=higher, bound=0.0).holds(problem)


def test_bounds_that_nobody_meets_have_no_certificate():
    with pytest.raises(InfeasibleError, match="no policy keeps this bound"):
        bounded_certificate(random_problem(0, AnyRecord()), 1.0, at_most={"deaths": -1.0})
