"""The limit where records do not allow every action: against the whole programme in which what is forbidden is 0."""

import numpy as np
import pytest
from checked_optima import check_bounded, check_robust
from full_programme import full_value
from proofs_by_hand import least_lost
from random_problems import with_mask

from policies import AnyRecord, DecisionProblem, OneFeature, Sensitive
from policies.optimal.bounded import bounded_optimum, penalised_point
from policies.optimal.bounds import ONE_FOR_ALL, InfeasibleError
from policies.optimal.certificate import optimal_certificate
from policies.optimal.optimum import Optimal, OptimalRobust, OptimalSafe
from policies.optimal.value_limit import value_limit

EPSILONS = [0.0, 0.1, 1.0, 4.0, np.inf]


def random_problem(rng):
    """Three to four actions; by the public feature, records allow one to all of them."""
    kind, k = rng.choice(["sensitive", "sensitive", "sensitive", "any-record", "one-feature"]), int(rng.integers(3, 5))
    shape = (int(rng.integers(3, 6)), int(rng.integers(2, 4)))
    if kind == "sensitive":
        adjacency, n = Sensitive(shape, (1,)), shape[0] * shape[1]
        mask = rng.random((shape[0], k)) < 0.6
        mask[np.arange(shape[0]), rng.integers(k, size=shape[0])] = True
        # At least one class has a choice, and one has a mask.
        mask[0], mask[1, :2], mask[1, 2:] = True, True, False
        mask = np.repeat(mask, shape[1], axis=0)
    else:
        adjacency, n = (AnyRecord(), 7) if kind == "any-record" else (OneFeature((2, 3)), 6)
        mask = np.tile(np.arange(k) != rng.integers(k), (n, 1))
    tables = rng.normal(size=(n, k)), rng.random((n, k)), rng.random((n, k))
    prior = rng.dirichlet(np.full(n, 0.6)) * (rng.random(n) < 0.85)
    prior = prior / prior.sum() if prior.any() else np.eye(1, n)[0]
    plain = DecisionProblem(tables[0], prior, adjacency, outcomes={"death": tables[1], "days": tables[2]}, lead="death")
    return with_mask(plain, mask)


def one_for_all(problem, table, prior):
    """What everybody gets who allow the same, by the sets of records that do: of the table, at the best by utility."""
    total = 0.0
    for mask in np.unique(problem.admissible, axis=0):
        rows = (problem.admissible == mask).all(axis=1)
        best = np.where(mask, prior[rows] @ problem.utilities[rows], -np.inf).argmax()
        total += float(prior[rows] @ table[rows, best])
    return total


def random_bounds(rng, problem):
    """Bounds as asked for, and as tables with limits."""
    at_most, capacity, rows = {}, {}, []
    if rng.random() < 0.6:
        limit = ONE_FOR_ALL if rng.random() < 0.5 else float(rng.uniform(0.3, 0.6))
        at_most["death"] = limit
        known = one_for_all(problem, problem.outcomes["death"], problem.prior) if limit == ONE_FOR_ALL else limit
        rows.append((problem.outcomes["death"], known))
    if rng.random() < 0.3:
        at_most["days"] = float(rng.uniform(0.3, 0.6))
        rows.append((problem.outcomes["days"], at_most["days"]))
    for action in rng.permutation(problem.n_actions)[: int(rng.integers(0 if at_most else 1, 3))]:
        share = 0.0 if rng.random() < 0.3 else float(rng.uniform(0.1, 0.7))
        capacity[problem.actions[action]] = share
        rows.append((np.tile(np.arange(problem.n_actions) == action, (problem.n_records, 1)).astype(float), share))
    return at_most, capacity, rows


def test_within_bounds_it_is_the_best_of_all_that_keep_to_the_mask():
    kept = 0
    for seed in range(90):
        rng = np.random.default_rng(seed)
        problem, epsilon = random_problem(rng), float(rng.choice(EPSILONS))
        at_most, capacity, rows = random_bounds(rng, problem)
        kept += check_bounded(problem, epsilon, at_most, capacity, rows, seed=seed)
    assert 40 < kept < 80


def test_the_bound_is_proven_and_equals_the_optimum():
    for seed in range(25):
        rng = np.random.default_rng(seed)
        problem = random_problem(rng)
        if isinstance(problem.adjacency, OneFeature):
            continue
        best = problem.prior @ problem.utilities.max(axis=1)
        proof = optimal_certificate(problem, 1.0)
        assert proof.holds(problem)
        assert best - proof.bound == pytest.approx(full_value(problem, 1.0), rel=0, abs=1e-7)
        limit = value_limit(problem, 1.0)
        assert limit.exact
        assert limit.achievable == pytest.approx(limit.unbeatable, abs=1e-9)
        at_most, capacity, rows = random_bounds(rng, problem)
        within = full_value(problem, 1.0, rows)
        if within is not None:
            lost = least_lost(problem, 1.0, at_most, capacity)
            assert best - lost == pytest.approx(within, rel=0, abs=1e-7), seed


def test_a_proof_for_another_mask_is_not_accepted():
    problem = random_problem(np.random.default_rng(1))
    free = DecisionProblem(problem.utilities + np.where(problem.admissible, 0, 9), problem.prior, problem.adjacency)
    assert optimal_certificate(problem, 1.0).holds(problem)
    assert not optimal_certificate(free, 1.0).holds(problem)


def test_in_the_worst_case_it_is_the_best_of_all_that_keep_to_the_mask():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        problem, epsilon = random_problem(rng), float(rng.choice(EPSILONS))
        priors = rng.dirichlet(np.full(problem.n_records, 0.6), size=3)
        if rng.random() < 0.5:
            # Under the first prior nobody of some sets comes.
            priors[0, : problem.n_records // 2] = 0
            priors[0] /= priors[0].sum()
        best = [prior @ problem.utilities.max(axis=1) for prior in priors]
        gains = np.array(best) - [one_for_all(problem, problem.utilities, prior) for prior in priors]
        if min(gains) > 1e-9:
            check_robust(problem, epsilon, priors, gains, seed=seed)


def test_the_frontier_goes_from_the_optimum_to_the_least_harm_that_is_allowed():
    for seed in range(12):
        problem = random_problem(np.random.default_rng(seed))
        first, last = (penalised_point(problem, 1.0, "death", penalty) for penalty in (0.0, 1e6))
        assert first[0] == pytest.approx(full_value(problem, 1.0), abs=1e-6)
        least = -full_value(problem.with_utilities(-problem.outcomes["death"]), 1.0)
        assert last[1] == pytest.approx(least, abs=1e-5)


def test_the_policies_of_the_catalogue_weigh_the_sets_against_each_other():
    gained = []
    for seed in range(10):
        problem = random_problem(np.random.default_rng(seed))
        table = OptimalSafe(2.0).probabilities(problem)
        assert (table[~problem.admissible] == 0).all()
        deaths = one_for_all(problem, problem.outcomes["death"], problem.prior)
        assert problem.prior @ (table * problem.outcomes["death"]).sum(axis=1) <= deaths + 1e-12
        # Each set within its own bound is a policy within the bound of all.
        apart = 0.0
        for part in problem.classes:
            if part.problem is None:
                apart += problem.prior[part.rows] @ problem.utilities[part.rows, part.columns[0]]
            else:
                alone = OptimalSafe(2.0).probabilities(part.problem)
                apart += problem.prior[part.rows] @ (alone * part.problem.utilities).sum(axis=1)
        gained.append(problem.value(table) - apart)
    assert min(gained) > -1e-9
    assert max(gained) > 1e-3
    priors = list(np.random.default_rng(0).dirichlet(np.ones(problem.n_records), size=2))
    robust = OptimalRobust(2.0, priors=priors).probabilities(problem)
    assert (robust == Optimal(2.0, priors=priors).probabilities(problem)).all()


def test_an_outcome_that_cannot_be_kept_is_said_with_the_least_that_is_allowed():
    problem = random_problem(np.random.default_rng(3))
    least = -full_value(problem.with_utilities(-problem.outcomes["death"]), 1.0)
    with pytest.raises(InfeasibleError, match="the least possible is") as refusal:
        bounded_optimum(problem, 1.0, at_most={"death": 0.5 * least})
    said = float(str(refusal.value).rpartition("the least possible is ")[2].rstrip(".)"))
    assert said == pytest.approx(least, rel=2e-5)


def test_who_has_no_choice_is_counted_in_the_share_of_an_action():
    mask = [[True, True], [True, True], [False, True], [False, True]]
    problem = DecisionProblem(
        [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 1.0]], [0.3, 0.3, 0.2, 0.2], Sensitive((2, 2), (1,)), admissible=mask
    )
    for share in (0.0, 0.3):
        with pytest.raises(InfeasibleError, match=r"the share of a1 at most .*the least possible is 0.4\)"):
            bounded_optimum(problem, 1.0, capacity={"a1": share})
    assert bounded_optimum(problem, 1.0, capacity={"a1": 0.4}).value == pytest.approx(0.3 + 0.2)
