"""Treatments that some records must not get: every policy, and what the problem says of itself, by brute force."""

import math
from copy import copy

import numpy as np
import pytest
from full_programme import full_value
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import LOOK_FURTHER, masked_problems, neighbour_pairs, problems, with_mask

import policysim as ps
from policies import CATALOGUE, AnyRecord, DecisionProblem, OneFeature, Sensitive, make_policy
from policies.accounting import policy_use
from policies.adjacency import Listed
from policies.exponential import Exponential
from policies.mask import least_given, same_masks
from policies.policy import InadmissibleError, NoTableError, Policy, one_hot_logs
from policies.privacy_loss import privacy_loss_of_logs
from policies.reference import BestFixed, Uniform

# A mask by the first of two features, the second hidden.
PUBLIC = Sensitive((3, 4), (1,))
MASK = np.repeat([[1, 1, 0], [1, 1, 1], [0, 0, 1]], 4, axis=0).astype(bool)


def example(seed=0, **changed):
    rng = np.random.default_rng(seed)
    prior = rng.random(12)
    arrays = {"utilities": rng.normal(size=(12, 3)), "prior": prior / prior.sum(), "admissible": MASK, **changed}
    return DecisionProblem(adjacency=PUBLIC, outcomes={"death": rng.random((12, 3)) / 100}, lead="death", **arrays)


@pytest.mark.parametrize("name", sorted(set(CATALOGUE) - set(LOOK_FURTHER)))
@settings(max_examples=25, deadline=None)
@given(problem=masked_problems(), epsilon=st.sampled_from([0.0, 0.3, 2.0, math.inf]))
def test_every_policy_keeps_to_the_mask_and_to_its_promise(name, problem, epsilon):
    policy = make_policy(name, epsilon=epsilon)
    logs, table = policy.tables(problem)
    assert (table[~problem.admissible] == 0).all()
    assert (logs[~problem.admissible] == -np.inf).all()
    np.testing.assert_allclose(table.sum(axis=1), 1, rtol=1e-9)
    np.testing.assert_allclose(np.exp(logs), table, rtol=1e-9, atol=1e-300)
    # By pairs of neighbours: an action that one of them gets, the other gets, too.
    for x, y in neighbour_pairs(problem.adjacency, problem.n_records):
        likelier = logs[x] > logs[y]
        assert (logs[x][likelier] - logs[y][likelier]).max(initial=0.0) <= policy.guarantee * (1 + 1e-9) + 1e-12
    assert (policy.log_probabilities(problem) == logs).all()
    assert (policy.probabilities(problem) == table).all()


@settings(max_examples=60, deadline=None)
@given(problem=masked_problems(max_actions=4), epsilon=st.sampled_from([0.0, 0.5, 3.0, math.inf]))
def test_the_optimum_is_that_of_the_whole_programme_without_what_is_forbidden(problem, epsilon):
    value = problem.value(make_policy("optimal", epsilon=epsilon).probabilities(problem))
    size = np.abs(problem.utilities).max()
    expected = full_value(problem, epsilon)
    assert value == pytest.approx(expected, rel=0, abs=1e-7 * np.ptp(problem.utilities) + 1e-9 * size)


@settings(max_examples=60, deadline=None)
@given(problem=masked_problems(), seed=st.integers(0, 1000))
def test_what_stands_at_forbidden_pairs_does_not_matter(problem, seed):
    rng = np.random.default_rng(seed)
    size = 10 * np.abs(problem.utilities).max()
    other = DecisionProblem(
        np.where(problem.admissible, problem.utilities, rng.normal(size=problem.utilities.shape) * size),
        problem.prior,
        problem.adjacency,
        outcomes={"death": np.where(problem.admissible, problem.outcomes["death"], rng.random())},
        lead="death",
        priors=problem.priors,
        admissible=problem.admissible,
    )
    assert (other.utilities == problem.utilities).all()
    assert (other.outcomes["death"] == problem.outcomes["death"]).all()
    assert other.sensitivity == problem.sensitivity


@settings(max_examples=60, deadline=None)
@given(problem=masked_problems())
def test_what_a_problem_says_of_itself_counts_what_is_allowed_alone(problem):
    utilities = np.where(problem.admissible, problem.utilities, np.nan)
    pairs = neighbour_pairs(problem.adjacency, problem.n_records)
    steps = np.array([utilities[x] - utilities[y] for x, y in pairs])
    found = problem.sensitivity
    assert found.value == np.nanmax(np.abs(steps))
    most, least = np.nanmax(steps, axis=1), np.nanmin(steps, axis=1)
    assert found.range == pytest.approx((most - least).max(), rel=1e-9, abs=1e-9 * np.nanmax(np.abs(utilities)))
    best = np.nanargmax(utilities, axis=1)
    assert (problem.best_actions == best).all()
    one_for_all = problem.best_fixed_actions
    assert problem.admissible[np.arange(problem.n_records), one_for_all].all()
    for mask in np.unique(problem.admissible, axis=0):
        rows = (problem.admissible == mask).all(axis=1)
        values = problem.prior[rows] @ utilities[rows]
        (chosen,) = set(one_for_all[rows])
        if problem.prior[rows].sum() > 0:
            assert values[chosen] == pytest.approx(np.nanmax(values), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("name", sorted(set(CATALOGUE) - set(LOOK_FURTHER)))
@settings(max_examples=5, deadline=None)
@given(problem=problems())
def test_a_mask_that_allows_everything_changes_nothing(name, problem):
    policy = make_policy(name, epsilon=1.0)
    allows_all = with_mask(problem, np.ones(problem.utilities.shape, dtype=bool))
    assert allows_all.admissible is None
    assert all(map(np.array_equal, policy.tables(problem), policy.tables(allows_all)))


def test_neighbours_that_do_not_allow_the_same_are_refused():
    utilities, prior = np.zeros((12, 3)), np.full(12, 1 / 12)
    for adjacency in (AnyRecord(), OneFeature((3, 4)), Sensitive((3, 4), (0,))):
        with pytest.raises(ValueError, match=r"admissible must be public: .* with probability at least e\^-epsilon q"):
            DecisionProblem(utilities, prior, adjacency, admissible=MASK)
        with pytest.raises(ValueError, match=r"\[record \d+\] allows a\d, and its neighbour \[record \d+\] does not"):
            example().with_adjacency(adjacency)
    everybody = DecisionProblem(utilities, prior, AnyRecord(), admissible=np.tile([True, False, True], (12, 1)))
    assert everybody.with_adjacency(OneFeature((3, 4))).admissible is not None


def test_an_outcome_at_forbidden_pairs_is_the_worst_that_is_allowed():
    problem = example()
    assert (problem.outcomes["death"].max(axis=1) == np.where(MASK, problem.outcomes["death"], -1).max(axis=1)).all()
    assert (problem.utilities.min(axis=1) == np.where(MASK, problem.utilities, np.inf).min(axis=1)).all()


def test_a_figure_that_some_private_policy_attains():
    # Two neighbours; the first gets the action with probability q. The best for the second is found on a grid.
    for given_to_first in (0.0, 0.2, 0.7, 1.0):
        for epsilon in (0.0, 0.5, 2.0):
            grid = np.linspace(0, 1, 100_001)
            with np.errstate(divide="ignore", invalid="ignore"):
                losses = [
                    np.abs(np.log(p) - np.log(q)) for p, q in [(given_to_first, grid), (1 - given_to_first, 1 - grid)]
                ]
            private = np.nan_to_num(np.maximum(*losses), nan=0.0) <= epsilon + 1e-9
            assert least_given(given_to_first, epsilon) == pytest.approx(grid[private].min(), abs=2e-5)
    assert least_given(0.5, math.inf) == 0
    with pytest.raises(ValueError, match=r"probability must be in \[0, 1\]"):
        least_given(1.5, 1.0)
    with pytest.raises(ValueError, match="epsilon must be >= 0"):
        least_given(0.5, -1.0)


class Foreign(Policy):
    """Draws by the softmax of the utilities: a policy of another package that knows of no mask."""

    name = "foreign"

    def _log_probabilities(self, problem):
        assert problem.admissible is None
        logs = problem.utilities / 4
        return logs - np.logaddexp.reduce(logs, axis=1)[:, None]


def test_a_policy_of_another_package_looks_at_no_mask():
    problem = example()
    logs, table = Foreign(1.0).tables(problem)
    assert (table[~MASK] == 0).all()
    weights = np.where(MASK, np.exp(problem.utilities / 4), 0)
    np.testing.assert_allclose(table, weights / weights.sum(axis=1, keepdims=True), rtol=1e-12)
    assert privacy_loss_of_logs(logs, problem.adjacency).epsilon < np.inf


def the_last_action(problem):
    return one_hot_logs(np.full(problem.n_records, problem.n_actions - 1), problem.n_actions)


# A mechanism that gives everyone the last action, whatever they allow: what each of its methods answers.
EVERYONE_THE_LAST = {
    "log_probabilities": lambda _, problem: the_last_action(problem),
    "probabilities": lambda _, problem: np.exp(the_last_action(problem)),
    "tables": lambda _, problem: (the_last_action(problem), np.exp(the_last_action(problem))),
    "check": lambda _, __: None,
    "loss_bound": lambda _, __: 0.0,
}
# No patient of this problem allows the last action. How much of it they get, by each way to use a policy.
NOBODY_ALLOWS = example(prior=np.repeat([1 / 4, 0, 0], 4))
GIVEN = {
    "compare": lambda policy: ps.compare(NOBODY_ALLOWS, policies=[policy], epsilons=1.0)["p_a2"].max(),
    "table": lambda policy: NOBODY_ALLOWS.prior @ policy.probabilities(NOBODY_ALLOWS)[:, 2],
    "logarithms": lambda policy: NOBODY_ALLOWS.prior @ np.exp(policy.log_probabilities(NOBODY_ALLOWS)[:, 2]),
    "both": lambda policy: NOBODY_ALLOWS.prior @ policy.tables(NOBODY_ALLOWS)[1][:, 2],
}


@pytest.mark.parametrize("parent", [Uniform, BestFixed])
@pytest.mark.parametrize("method", EVERYONE_THE_LAST)
def test_no_policy_is_made_of_a_class_that_replaces_a_public_method(method, parent):
    """As mechanisms were once written: such a method would see the mask, and could ignore it."""
    kind = type("Old", (parent,), {"name": "old", method: EVERYONE_THE_LAST[method]})
    for make in (lambda: kind(1.0), lambda: kind(epsilon=1.0), lambda: copy(object.__new__(kind))):
        with pytest.raises(TypeError, match=f"Old replaces {method}, .*; implement _{method}"):
            make()


@pytest.mark.parametrize("user", [user for user in GIVEN if user != "logarithms"])
def test_a_mechanism_of_one_method_is_kept_to_what_records_allow(user):
    """The simplest plug-in: `log_probabilities` alone, which knows nothing of masks."""
    kind = type("Simple", (Policy,), {"name": "simple", "log_probabilities": EVERYONE_THE_LAST["log_probabilities"]})
    plain = DecisionProblem(NOBODY_ALLOWS.utilities, NOBODY_ALLOWS.prior, AnyRecord())
    assert (kind(1.0).probabilities(plain)[:, -1] == 1).all()
    assert GIVEN[user](kind(1.0)) == 0


def test_a_method_that_would_never_be_asked_is_refused():
    with pytest.raises(
        TypeError, match=r"Unasked implements _log_probabilities, but inherits _tables, .* implement _tab"
    ):
        type("Unasked", (Exponential,), {"_log_probabilities": EVERYONE_THE_LAST["log_probabilities"]})(1.0)


def test_a_mechanism_without_probabilities_is_no_mechanism():
    with pytest.raises(TypeError, match="the class Empty lacks _log_probabilities"):
        type("Empty", (Policy,), {"name": "empty"})(1.0)


@pytest.mark.parametrize("user", GIVEN)
@pytest.mark.parametrize("method", EVERYONE_THE_LAST)
def test_no_record_gets_what_it_does_not_allow_whatever_a_mechanism_answers(method, user):
    hook = {f"_{method}": EVERYONE_THE_LAST[method]}
    try:
        assert GIVEN[user](type("Careless", (Uniform,), {"name": "careless", **hook})(1.0)) == 0
    except NoTableError as error:  # one method says something else than the others
        assert str(error).startswith("careless gives no table of probabilities")
    # A mechanism that looks at the mask itself is checked. Where no method that ignores it is used, nothing is wrong.
    looks = type("Looks", (BestFixed,), {"name": "looks", "across_masks": True, **hook})(1.0)
    try:
        assert GIVEN[user](looks) == 0
    except NoTableError as error:
        assert str(error).startswith("looks gives no table of probabilities")
    except InadmissibleError as error:
        assert str(error).startswith("looks gives a2 to [record 0], who must not get it")


def pairs_of(adjacency, n_records):
    """Who is a neighbour of whom, from the cliques."""
    found = set()
    for partition in adjacency.partitions(n_records):
        for members in partition.by_clique(np.arange(n_records)):
            found |= {(int(x), int(y)) for x in members for y in members}
    return found


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_each_set_of_records_that_allow_the_same_keeps_its_neighbours(seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, size=(12, 3))
    kinds = [
        Sensitive((2, 3, 2), (0, 2)),
        Sensitive((2, 3, 2), (1,)),
        Listed.sensitive(codes, [1, 2]),
        # Rows with the same first feature, in two ways: by the second, and by the third.
        Listed(codes, [(1,), (2,)], "two-ways"),
    ]
    adjacency = kinds[seed % len(kinds)]
    before = pairs_of(adjacency, 12)
    # Whoever can be reached from a record, step by step, allows the same.
    reached = np.arange(12)
    for _ in range(12):
        for x, y in before:
            reached[x] = reached[y] = min(reached[x], reached[y])
    mask = rng.random((12, 3))[reached] < 0.6
    mask[~mask.any(axis=1), 0] = True
    after = set()
    for rows, columns, own in same_masks(mask, adjacency):
        assert (mask[rows] == np.isin(np.arange(3), columns)).all()
        after |= {(int(rows[x]), int(rows[y])) for x, y in pairs_of(own, len(rows))}
    assert after == before


def test_randomised_features_are_those_that_are_hidden():
    # Two hidden features of two and three levels, each kept with half of epsilon; the third decides the mask.
    rng = np.random.default_rng(8)
    adjacency, mask = Sensitive((2, 2, 3), (0, 2)), np.ones((2, 2, 3, 3), dtype=bool)
    mask[:, 1, :, 0] = False
    mask = mask.reshape(12, 3)
    problem = DecisionProblem(rng.normal(size=(12, 3)), np.full(12, 1 / 12), adjacency, admissible=mask)
    table = make_policy("randomized-features", epsilon=2.0).probabilities(problem)
    stay = [np.exp(1) / (np.exp(1) + levels - 1) for levels in (2, 3)]
    lie = [(1 - p) / (levels - 1) for p, levels in zip(stay, (2, 3), strict=True)]
    channel = [q + np.eye(levels) * (p - q) for p, q, levels in zip(stay, lie, (2, 3), strict=True)]
    for public in (0, 1):
        allowed = [1, 2] if public else [0, 1, 2]
        utilities = problem.utilities.reshape(2, 2, 3, 3)[:, public].reshape(6, 3)[:, allowed]
        reports = np.kron(*channel)
        decisions = (reports @ utilities).argmax(axis=1)
        expected = np.stack([reports @ (decisions == place) for place in range(len(allowed))], axis=1)
        np.testing.assert_allclose(table.reshape(2, 2, 3, 3)[:, public].reshape(6, 3)[:, allowed], expected, atol=1e-12)


def test_the_bound_on_the_loss_is_that_of_the_sets_together():
    problem = example(9)
    policy = make_policy("exponential", epsilon=0.5)
    bound = policy.loss_bound(problem)
    expected = 0.0
    for rows, columns in ((slice(0, 4), [0, 1]), (slice(4, 8), [0, 1, 2])):
        part = problem.utilities[rows][:, columns]
        delta = max(np.ptp(column) for column in part.T)
        expected += problem.prior[rows].sum() * 2 * delta / 0.5 * math.log(len(columns))
    assert bound == pytest.approx(expected, rel=1e-12)
    assert problem.prior @ problem.utilities.max(axis=1) - problem.value(policy.probabilities(problem)) <= bound


def test_a_base_measure_that_leaves_nothing_to_some_records_is_refused():
    with pytest.raises(ValueError, match=r"base_measure must allow an action wherever records do, .* \[0, 1\]"):
        make_policy("exponential", epsilon=1.0, base_measure=[0, 0, 1]).probabilities(example())


def test_a_use_of_a_policy_is_accounted_for_by_what_its_table_shows():
    problem = example(10)
    for name in ("exponential", "exponential-fitted", "randomized-response", "optimal"):
        policy = make_policy(name, epsilon=1.0)
        logs = policy.log_probabilities(problem)
        pairs = neighbour_pairs(problem.adjacency, 12)
        # An action that neighbours never get says nothing.
        steps = [logs[x][logs[x] > -np.inf] - logs[y][logs[x] > -np.inf] for x, y in pairs]
        loss, eta, _ = policy_use(policy, problem)
        assert loss == pytest.approx(max(step.max() for step in steps), abs=1e-12)
        assert eta == pytest.approx(max(np.ptp(step) for step in steps), abs=1e-12)
