"""The optimum within bounds: against the whole programme with those rows, by hand, and in what it says of the rest."""

from dataclasses import replace

import numpy as np
import pytest
from checked_optima import check_bounded, expected
from full_programme import full_value
from proofs_by_hand import least_lost
from random_problems import small_adjacency

from policies import AnyRecord, DecisionProblem, make_policy
from policies.adjacency import Listed
from policies.distinct import once_each
from policies.optimal import rows as programme_rows
from policies.optimal.bounded import bounded_optimum, penalised_point, programme_of
from policies.optimal.bounds import ONE_FOR_ALL, InfeasibleError, bounds_on
from policies.optimal.mixtures import Column, best_mixture
from policies.optimal.optimum import Optimal, OptimalSafe
from policies.policy import NotApplicableError
from policies.reference import BestFixed

EPSILONS = [0.0, 0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 20.0, np.inf]


def random_problem(rng, kind):
    """Two outcomes, records of probability 0; four in ten with ties."""
    k = int(rng.integers(2, 5))
    adjacency, n = small_adjacency(rng, kind)
    tables = [rng.normal(size=(n, k)), rng.random((n, k)), rng.random((n, k))]
    if rng.random() < 0.4:
        tables = [np.round(2 * tables[0]) / 2, np.round(4 * tables[1]) / 4, np.round(3 * tables[2]) / 3]
    prior = rng.dirichlet(np.full(n, 0.6)) * (rng.random(n) < 0.85)
    prior = prior / prior.sum() if prior.any() else np.eye(1, n)[0]
    return DecisionProblem(tables[0], prior, adjacency, outcomes={"death": tables[1], "days": tables[2]}, lead="death")


def random_bounds(rng, problem):
    """One to three bounds: on an outcome or two, on shares, or on both."""
    which = int(rng.integers(5))
    at_most, capacity = {}, {}
    if which in (0, 2, 4):
        at_most["death"] = ONE_FOR_ALL if rng.random() < 0.5 else float(rng.uniform(0.2, 0.6))
    if which in (1, 2):
        at_most["days"] = float(rng.uniform(0.2, 0.6))
    if which in (3, 4):
        for action in rng.permutation(problem.n_actions)[: int(rng.integers(1, problem.n_actions + 1))]:
            capacity[problem.actions[action]] = float(rng.uniform(0, 0.7))
    return at_most, capacity


def as_rows(problem, at_most, capacity):
    """The bounds as tables and limits."""
    tables = [problem.outcomes[name] for name in at_most]
    of_all = [float(problem.prior @ table[:, problem.best_fixed_action]) for table in tables]
    limits = [one if limit == ONE_FOR_ALL else limit for one, limit in zip(of_all, at_most.values(), strict=True)]
    for name, share in capacity.items():
        tables.append(np.tile(np.array(problem.actions) == name, (problem.n_records, 1)).astype(float))
        limits.append(share)
    return list(zip(tables, limits, strict=True))


@pytest.mark.parametrize(("kind", "count"), [("any-record", 100), ("sensitive", 80), ("one-feature", 20)])
def test_it_is_the_best_within_the_bounds_by_the_whole_programme(kind, count):
    kept = 0
    for seed in range(count):
        rng = np.random.default_rng(seed)
        problem = random_problem(rng, kind)
        # Beyond 18, one-feature is solved as if the whole record were hidden.
        epsilon = float(rng.choice(EPSILONS if kind != "one-feature" else EPSILONS[:8]))
        at_most, capacity = random_bounds(rng, problem)
        rows = as_rows(problem, at_most, capacity)
        kept += check_bounded(problem, epsilon, at_most, capacity, rows, seed=seed)
    assert kept > count / 2


@pytest.mark.parametrize("kind", ["any-record", "sensitive"])
def test_what_is_possible_is_what_the_whole_programme_finds(kind):
    refused = 0
    for seed in range(16):
        rng = np.random.default_rng(seed)
        problem = random_problem(rng, kind)
        at_most = {"death": float(rng.uniform(0.1, 0.4)), "days": float(rng.uniform(0.1, 0.4))}
        try:
            bounded_optimum(problem, 1.0, at_most=at_most)
        except InfeasibleError as error:
            refused += 1
            message = str(error)
        else:
            continue
        for name, other in (("death", "days"), ("days", "death")):
            about = problem.with_utilities(-problem.outcomes[name])
            alone = -full_value(about, 1.0)
            within = full_value(about, 1.0, [(problem.outcomes[other], at_most[other])])
            said = message.partition(f"{name} at most {at_most[name]:.6g} (the least possible is ")[2].partition(")")[0]
            numbers = [float(word) for word in said.replace(",", "").split() if word[0].isdigit()]
            assert numbers == pytest.approx([alone] if within is None else [alone, -within], rel=2e-5)
            # What is said to be possible can be asked for.
            bounded_optimum(problem, 1.0, at_most={name: numbers[0]})
            if within is not None:
                bounded_optimum(problem, 1.0, at_most={other: at_most[other], name: numbers[1]})
    assert refused > 3


def test_a_mixture_of_tables_at_different_multipliers_is_not_the_best_and_the_dual_bound_shows_it():
    problem = random_problem(np.random.default_rng(1), "any-record")
    best = bounded_optimum(problem, 1.0, at_most={"death": 0.45})
    programme = programme_of(problem, 1.0, bounds_on(problem, {"death": 0.45}, None))
    # Another table has its own value.
    worse = replace(best, log_probabilities=best.log_probabilities[:, ::-1])
    assert worse.value == pytest.approx(problem.value(np.exp(worse.log_probabilities))) and worse.value < best.value
    # The planted defect: the optimum and the safest table, which are optimal at multipliers 0 and infinity, mixed.
    ends = [programme.oracle.best(np.array(prices))[0] for prices in ((1.0, 0.0), (0.0, 1.0))]
    low, high = (end.expectations[1] for end in reversed(ends))
    assert low < programme.limits[0] < high
    share = (programme.limits[0] - low) / (high - low)
    mixed = np.exp(programme.oracle.table([(share, ends[0]), (1 - share, ends[1])], problem.n_records))
    assert expected(problem, problem.outcomes["death"], mixed) == pytest.approx(0.45, abs=1e-12)
    assert problem.value(mixed) < best.bound - 1e-3
    assert best.value == pytest.approx(best.bound, abs=1e-12)


def test_where_the_optimum_keeps_the_bounds_it_is_returned():
    for kind in ("any-record", "sensitive", "one-feature"):
        problem = random_problem(np.random.default_rng(3), kind)
        for epsilon in (0.0, 0.5, 3.0, np.inf):
            found = bounded_optimum(problem, epsilon, at_most={"death": 1.0}, capacity={"a0": 1.0})
            np.testing.assert_array_equal(found.log_probabilities, Optimal(epsilon).log_probabilities(problem))
            assert set(found.multipliers.values()) == {0.0}
            assert found.bound - found.value <= 1e-9


def test_at_epsilon_0_constants_are_mixed():
    # a1 is best for all, but there is enough for a quarter of them; the rest get the second best.
    problem = DecisionProblem([[0.0, 4.0, 1.0], [1.0, 3.0, 2.0]], [0.5, 0.5], AnyRecord())
    found = bounded_optimum(problem, 0.0, capacity={"a1": 0.25})
    np.testing.assert_allclose(np.exp(found.log_probabilities), [[0, 0.25, 0.75]] * 2, atol=1e-12)
    assert (found.log_probabilities[0] == found.log_probabilities[1]).all()
    assert found.multipliers["a1"] == pytest.approx(3.5 - 1.5)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 40.0, np.inf])
def test_an_action_of_capacity_0_is_not_there(epsilon):
    for kind in ("any-record", "sensitive"):
        problem = random_problem(np.random.default_rng(46), kind)
        assert problem.n_actions > 2
        last = problem.n_actions - 1
        found = bounded_optimum(problem, epsilon, at_most={"death": 0.5}, capacity={problem.actions[last]: 0.0})
        assert (found.log_probabilities[:, last] == -np.inf).all()
        without = DecisionProblem(
            problem.utilities[:, :last],
            problem.prior,
            problem.adjacency,
            outcomes={"death": problem.outcomes["death"][:, :last]},
            lead="death",
        )
        same = bounded_optimum(without, epsilon, at_most={"death": 0.5})
        np.testing.assert_allclose(found.log_probabilities[:, :last], same.log_probabilities, rtol=1e-9)
        assert found.bound - found.value <= 1e-9
        greedy = float(problem.prior @ problem.utilities.max(axis=1))
        lost = least_lost(problem, epsilon, {"death": 0.5}, {problem.actions[last]: 0.0})
        assert lost == pytest.approx(greedy - found.value, abs=1e-9)


def test_one_for_all_is_kept_exactly_where_nothing_better_keeps_it():
    # The best single treatment is the least harmful: any other table costs more deaths at a small epsilon.
    problem = DecisionProblem(
        [[1.0, 0.9], [0.2, 1.0]], [0.9, 0.1], AnyRecord(), outcomes={"death": [[0.1, 0.5], [0.3, 0.1]]}, lead="death"
    )
    policy = make_policy("optimal-safe", epsilon=0.5)
    np.testing.assert_array_equal(policy.log_probabilities(problem), BestFixed().log_probabilities(problem))
    best = full_value(problem, 8.0, as_rows(problem, {"death": ONE_FOR_ALL}, {}))
    assert problem.value(make_policy("optimal-safe", epsilon=8.0).probabilities(problem)) == pytest.approx(best)
    assert best > problem.fixed_values.max() + 0.01


def penalised(problem, penalty):
    return problem.with_utilities(problem.utilities - penalty * problem.outcomes["death"])


def test_a_penalty_takes_one_pass_over_the_records_for_all_epsilons(monkeypatch):
    problem = random_problem(np.random.default_rng(9), "any-record")
    passes = []
    monkeypatch.setattr(
        programme_rows,
        "order_codes",
        lambda columns, real=programme_rows.order_codes: passes.append(1) or real(columns),
    )
    for epsilon in (0.5, 1.0, 2.0):
        for penalty in (0.3, 3.0):
            value, deaths = penalised_point(problem, epsilon, "death", penalty)
            policy = Optimal(epsilon).probabilities(penalised(problem, penalty))
            assert value == pytest.approx(problem.value(policy), abs=1e-12)
            assert deaths == pytest.approx(expected(problem, problem.outcomes["death"], policy), abs=1e-12)
    assert len(passes) == 2


@pytest.mark.parametrize("kind", ["sensitive", "one-feature"])
def test_a_point_of_the_frontier_is_the_penalised_optimum(kind):
    problem = random_problem(np.random.default_rng(4), kind)
    policy = Optimal(1.0).probabilities(penalised(problem, 2.0))
    value, deaths = penalised_point(problem, 1.0, "death", 2.0)
    score = problem.value(policy) - 2 * expected(problem, problem.outcomes["death"], policy)
    assert value - 2 * deaths == pytest.approx(score, abs=1e-7)
    with pytest.raises(ValueError, match="penalty must be >= 0, got penalty=-1"):
        penalised_point(problem, 1.0, "death", -1)
    with pytest.raises(ValueError, match="penalty must be finite"):
        penalised_point(problem, 1.0, "death", np.inf)


class _Corners:
    """An oracle of some given columns: the least of a finite set."""

    precision = 1e-13

    def __init__(self, columns):
        self.columns = [Column(row, place) for place, row in enumerate(columns)]

    def nearby(self, prices):
        return prices

    def best(self, prices):
        found = min(self.columns, key=lambda column: float(prices @ column.expectations))
        return found, float(prices @ found.expectations)


@pytest.mark.parametrize("ties", [False, True])
def test_the_master_programme_is_a_linear_programme_over_all_columns(ties):
    from scipy.optimize import linprog  # noqa: PLC0415

    for seed in range(60):
        rng = np.random.default_rng(seed)
        n_losses, n_limits, n = int(rng.integers(1, 4)), int(rng.integers(0, 4)), int(rng.integers(2, 30))
        rows = rng.random((n, n_losses + n_limits))
        rows = np.round(4 * rows) / 4 if ties else rows
        limits = rng.uniform(0.2, 0.8, n_limits)
        oracle = _Corners(rows)
        found = best_mixture(oracle, [oracle.columns[0]], limits)
        full = linprog(
            np.r_[np.zeros(n), 1],
            A_ub=np.column_stack([rows.T, -np.r_[np.ones(n_losses), np.zeros(n_limits)]]),
            b_ub=np.r_[np.zeros(n_losses), limits],
            A_eq=np.r_[np.ones(n), 0][None],
            b_eq=[1.0],
        )
        if found is None:
            assert full.status == 2
            continue
        assert found.value == pytest.approx(full.fun, abs=1e-9)
        assert found.bound == pytest.approx(full.fun, abs=1e-9)
        expectations = np.sum([weight * column.expectations for weight, column in found.parts], axis=0)
        assert (expectations[n_losses:] <= limits + 1e-12).all()


def test_policies_with_the_same_bounds_are_the_same_key():
    one, other = (Optimal(1.0, at_most={"death": 0.1}, capacity={"a": 0.5}) for _ in range(2))
    assert one == other
    assert len({one, other, Optimal(1.0), Optimal(1.0, at_most={"death": 0.2}), OptimalSafe(1.0)}) == 4
    assert make_policy("optimal-safe", epsilon=1.0) == OptimalSafe(1.0) != OptimalSafe(1.0, at_most={})
    assert Optimal(1.0, at_most={}) == Optimal(1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"at_most": {"death": np.nan}}, r"at_most\['death'\] must be a finite number or 'one for all', got .*=nan"),
        ({"at_most": {"death": "none"}}, r"got at_most\['death'\]='none'"),
        ({"at_most": {"death": True}}, r"got at_most\['death'\]=True"),
        ({"at_most": 0.003}, "at_most must be a mapping of names to limits, got at_most=0.003"),
        ({"capacity": {"a1": 1.5}}, r"capacity\['a1'\] must be a number in \[0, 1\], got capacity\['a1'\]=1.5"),
        ({"capacity": {"a1": -0.1}}, r"got capacity\['a1'\]=-0.1"),
        ({"at_most": {"death": 0.1}, "priors": [[1.0]]}, r"bounds \(at_most, capacity\) or priors, not both"),
    ],
)
def test_what_is_no_bound_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make_policy("optimal", epsilon=1.0, **options)


def test_what_the_problem_does_not_have_is_refused_with_what_it_has():
    problem = random_problem(np.random.default_rng(0), "any-record")
    with pytest.raises(ValueError, match=r"unknown outcome 'deaht'; did you mean 'death'.*known: death, days"):
        Optimal(1.0, at_most={"deaht": 0.1}).log_probabilities(problem)
    with pytest.raises(ValueError, match=r"unknown action 'b'.*known: a0, a1"):
        Optimal(1.0, capacity={"b": 0.1}).log_probabilities(problem)
    bare = DecisionProblem(problem.utilities, problem.prior, AnyRecord())
    with pytest.raises(ValueError, match="unknown outcome 'death'; known: none"):
        Optimal(1.0, at_most={"death": 0.1}).log_probabilities(bare)
    for refuses in (OptimalSafe(1.0).check, OptimalSafe(1.0).log_probabilities):
        with pytest.raises(NotApplicableError, match="bounds the outcome that leads, and the problem has no lead"):
            refuses(bare)
    clash = DecisionProblem(problem.utilities, problem.prior, AnyRecord(), outcomes={"a0": problem.outcomes["days"]})
    with pytest.raises(ValueError, match="at_most and capacity must not both name 'a0'"):
        Optimal(1.0, at_most={"a0": 0.5}, capacity={"a0": 0.5}).log_probabilities(clash)


def test_a_capacity_that_cannot_serve_everybody_is_refused():
    problem = DecisionProblem(np.eye(2), [0.5, 0.5], AnyRecord())
    policy = Optimal(1.0, capacity={"a0": 0.3, "a1": 0.5})
    for refuses in (policy.check, policy.log_probabilities):
        with pytest.raises(InfeasibleError, match=r"capacity cannot serve everybody: the shares sum to 0\.8"):
            refuses(problem)
    # Ten shares of a tenth serve everybody, whatever their sum in floating point.
    tenths = DecisionProblem(np.eye(10), np.full(10, 0.1), AnyRecord())
    served = Optimal(1.0, capacity=dict.fromkeys(tenths.actions, 0.1)).probabilities(tenths)
    np.testing.assert_allclose(tenths.prior @ served, 0.1, atol=1e-12)


def test_a_bound_nobody_can_meet_is_refused_before_and_while_it_is_computed():
    problem = random_problem(np.random.default_rng(2), "any-record")
    policy = Optimal(1.0, at_most={"death": -1.0})
    for refuses in (policy.check, policy.log_probabilities):
        with pytest.raises(InfeasibleError, match="no policy keeps this bound at epsilon=1: death at most -1 "):
            refuses(problem)
    Optimal(1.0, at_most={"death": 1.0}).check(problem)


def test_one_feature_over_a_list_at_epsilon_0_is_refused():
    listed = DecisionProblem(
        np.eye(3), np.full(3, 1 / 3), Listed.one_feature([[0, 0], [0, 1], [1, 1]]), outcomes={"death": np.eye(3)}
    )
    with pytest.raises(NotApplicableError, match="over a list of records is known at epsilon > 0 alone"):
        bounded_optimum(listed, 0.0, at_most={"death": 0.1})
    # There the outcome is the utility: the best within the bound is at the bound.
    assert bounded_optimum(listed, 1.0, at_most={"death": 0.2}).value == pytest.approx(0.2, abs=1e-9)


def test_distinct_rows_keep_the_same_one_for_all():
    rng = np.random.default_rng(8)
    which = rng.integers(6, size=40)
    utilities, deaths = rng.normal(size=(6, 3))[which], rng.random((6, 3))[which]
    problem = DecisionProblem(
        utilities, rng.dirichlet(np.ones(40)), AnyRecord(), outcomes={"death": deaths}, lead="death"
    )
    policy = make_policy("optimal-safe", epsilon=2.0)
    on = once_each(policy, problem)
    assert on.n_records == 6
    assert bounds_on(on, {"death": ONE_FOR_ALL}, None)[0].room == 0
    assert on.value(policy.probabilities(on)) == pytest.approx(problem.value(policy.probabilities(problem)), rel=1e-12)
