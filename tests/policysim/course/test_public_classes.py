"""Days within public classes: the loss of all that is published by enumeration, values by each class's own process."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import adjacencies, loss_by_pairs, neighbour_pairs
from small_processes import expected_by_paths, moves_of, published, replayed, value_of_schedule

import policysim as ps
from policies import make_policy
from policies.masked import masked_problem
from policies.problem import DecisionProblem
from policysim.course.budget import PrivacyBudget, spend
from policysim.course.composition import composed_in_classes
from policysim.course.course_evaluation import ProcessEvaluator
from policysim.course.planning import daily_distributions, optimal_course, policy_value
from policysim.course.private_planner import PrivatePlanner
from policysim.course.schedules import ClassSchedules, best_constants, mass_after

N, K, H = 4, 3, 4  # the states of a class, of which the last absorbs; actions; days
CODES = np.repeat([0, 1], N)


def members(place):
    """Which states are in a class."""
    return np.equal(CODES, place)


class Sexes:
    """Names for states of two classes."""

    names = ("sex", "half")

    def describe(self, record):
        return f"state {record}"

    def groups(self, feature):
        codes = {"sex": CODES, "half": np.arange(2 * N) % 2}
        if feature not in codes:
            raise ValueError(f"unknown group {feature!r}")
        return codes[feature], ("f", "m")


def arrays(seed, *, shared=False):
    """Two classes of states that change little, each with its own absorbing state, or a shared one."""
    rng = np.random.default_rng(seed)
    moves = np.zeros((2 * N, K, 2 * N))
    for block in (slice(0, N), slice(N, 2 * N)):
        part = rng.dirichlet(np.full(N, 0.5), size=(N, K)) + 2 * np.eye(N)[:, None, :]
        part[-1] = np.eye(N)[-1]
        moves[block, :, block] = part / part.sum(axis=2, keepdims=True)
    rewards = rng.normal(size=(2 * N, K))
    rewards[[N - 1, 2 * N - 1]] = 0.0
    initial = rng.dirichlet(np.ones(2 * N - 2))
    initial = np.array([*initial[: N - 1], 0.0, *initial[N - 1 :], 0.0])
    if shared:
        moves[N:, :, N - 1] += moves[N:, :, -1]
        moves[N:, :, -1] = 0.0
    return moves, rewards, initial


def chain(seed, *, public=("sex",), horizon=H, **options):
    mdp = ps.TabularMDP(*arrays(seed, **options), horizon=horizon, records=Sexes())
    return mdp.with_public(public)


def alone(process, place):
    """The process of one class, made anew from the dense arrays."""
    inside = members(place)
    initial = process.initial[inside]
    return ps.TabularMDP(
        moves_of(process)[np.ix_(inside, np.ones(K, dtype=bool), inside)],
        process.rewards[inside],
        initial / initial.sum(),
        process.discount,
        process.horizon,
    )


def shares(process):
    return [float(process.initial[members(place)].sum()) for place in (0, 1)]


def loss(joint):
    return ps.privacy_loss(joint, ps.AnyRecord()).epsilon


def within(joint):
    """The loss within the classes."""
    return max(loss(joint[members(place)]) for place in (0, 1))


def once_published(process, plan):
    n, k = process.rewards.shape
    joint = np.zeros((n, k**H))
    for first, chosen in product(range(n), range(plan.schedules.shape[-2])):
        schedule = plan.schedules[CODES[first], chosen]
        joint[first, np.ravel_multi_index(tuple(schedule), (k,) * H)] += plan.probabilities[first, chosen]
    return joint


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("policy", ["optimal", "exponential", "randomized-response"])
def test_one_choice_loses_what_it_claims_within_a_class_and_claims_nothing_across(seed, policy):
    process = chain(seed)
    found = ps.plan_once(process, epsilon=1.0, policy=policy)
    assert found.schedules.ndim == 3 and np.array_equal(found.classes, CODES)
    joint = once_published(process, found)
    assert joint.sum(axis=1) == pytest.approx(np.ones(2 * N))
    assert within(joint) == pytest.approx(found.epsilon_spent, abs=1e-12)
    assert found.epsilon_spent <= 1.0 + 1e-12
    assert loss(joint) > 1.0  # between classes, whose schedules differ
    if policy == "optimal":
        # Each class is served as if it were alone.
        values = [ps.plan_once(alone(process, place), epsilon=1.0).value for place in (0, 1)]
        assert found.value == pytest.approx(np.dot(shares(process), values), abs=1e-9)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("policy", ["optimal", "exponential-fitted", "randomized-response"])
def test_days_together_lose_no_more_than_is_claimed_within_a_class(seed, policy):
    process = chain(seed)
    daily = make_policy(policy, epsilon=0.5)
    days = optimal_course(process).decisions(daily)
    tables = [day.tables(daily) for day in days]
    claimed = sum(day.epsilon_spent(logs) for day, (logs, _) in zip(days, tables, strict=True))
    joint = published(process, [table for _, table in tables])
    assert within(joint) <= claimed + 1e-12
    assert claimed <= H * 0.5 + 1e-12
    # Each class has the tables of its own process.
    for place in (0, 1):
        own = optimal_course(alone(process, place)).decisions(daily)
        for (_, table), other in zip(tables, own, strict=True):
            assert table[members(place)] == pytest.approx(other.tables(daily)[1], abs=1e-9)


@pytest.mark.parametrize("total", [0.5, 3.0])
def test_a_total_is_kept_and_the_value_is_that_of_the_paths(total):
    process = chain(1)
    table = ps.compare(process, policies=["optimal-daily", "randomized-response"], total_epsilons=[total])
    assert (table["total_spent"] <= total).all()
    limit = ps.course_limit(process, epsilon=total)
    limits = [ps.course_limit(alone(process, place), epsilon=total) for place in (0, 1)]
    assert limit == pytest.approx(np.dot(shares(process), limits), abs=1e-9)
    assert (table["value"] <= limit + 1e-12).all()
    assert ps.plan_once(process, epsilon=total).value <= limit + 1e-12
    budget = PrivacyBudget(total).daily(make_policy("randomized-response"), process)
    tables = [day.tables(budget.policy)[1] for day in optimal_course(process).decisions(budget.policy)]
    assert within(published(process, tables)) <= total + 1e-12
    paths = [expected_by_paths(moves_of(process), process.rewards, tables, state) for state in range(2 * N)]
    assert policy_value(process, tables) == pytest.approx(process.initial @ paths, abs=1e-12)


def test_the_planted_bug_of_an_absorbing_state_that_classes_share():
    """Who leaves either class is in the first one: of the second, who has left is told from who has not."""
    with pytest.raises(ValueError, match="public must name features that never change, got 'sex', which differs betw"):
        chain(0, shared=True)
    # In each class all are served alike, the first by action 0 and the second by action 1: nothing is lost on any day.
    moves = np.zeros((2 * N, 2, 2 * N))
    moves[np.arange(2 * N), :, np.arange(2 * N)] = 1.0
    moves[N, :] = np.eye(2 * N)[N - 1]  # who leaves the second class is put with the first
    rewards = np.where(CODES[:, None] == np.arange(2), 1.0, 0.0)
    planted = ps.TabularMDP(moves, rewards, np.full(2 * N, 1 / (2 * N)), horizon=H)
    object.__setattr__(planted, "classes", CODES)
    days = optimal_course(planted).decisions(make_policy("greedy"))
    tables = [day.tables(make_policy("greedy")) for day in days]
    assert [day.epsilon_spent(logs) for day, (logs, _) in zip(days, tables, strict=True)] == [0.0] * H
    # Yet those of the second class who leave get other treatments from the second day on.
    assert within(published(planted, [table for _, table in tables])) == math.inf
    # Nobody plans by its classes: they are not those of processes of their own.
    assert len(planted.by_class()) == 1
    assert ClassSchedules.of(planted).single


def test_classes_that_mix_are_refused():
    with pytest.raises(ValueError, match="got 'half', which differs between state 0 and state"):
        chain(0, public=("half",))
    with pytest.raises(ValueError, match="unknown group 'age'"):
        chain(0, public=("age",))


def test_a_public_mask_that_never_changes_is_such_a_class():
    mask = np.ones((2 * N, K), dtype=bool)
    mask[N:, 2] = False
    moves, rewards, initial = arrays(2)
    process = ps.TabularMDP(moves, rewards, initial, horizon=H, admissible=mask, mask_public=True)
    masked = ps.TabularMDP(moves, rewards, initial, horizon=H, admissible=mask, records=Sexes()).with_public(["sex"])
    found, same = (ps.plan_once(of, epsilon=1.0) for of in (process, masked))
    assert found.value == pytest.approx(same.value, abs=1e-12)
    for plan in (found, same):
        of_second = plan.schedules[plan.classes[-1]]
        assert (of_second != 2).all() and (plan.schedules[plan.classes[0]] == 2).any()
    # The best action for all who allow the same, by brute force.
    worth = []
    for action in range(K):
        values = value_of_schedule(process, [action] * H)
        worth.append([process.initial[members(place)] @ values[members(place)] for place in (0, 1)])
    expected = [int(np.argmax([row[0] for row in worth])), int(np.argmax([row[1] for row in worth[:2]]))]
    assert best_constants(masked) == (tuple(expected),) * H
    row = ps.compare(masked, policies=["best-fixed"], epsilons=[1.0]).iloc[0]
    assert row["benefit_kept"] == pytest.approx(0.0, abs=1e-12)
    assert row["value"] == pytest.approx(worth[expected[0]][0] + worth[expected[1]][1], abs=1e-12)
    table = ps.compare(masked, policies=["optimal-daily"], total_epsilons=[1.0])
    assert table["total_spent"].iloc[0] <= 1.0 and math.isfinite(table["value"].iloc[0])


def test_a_process_without_a_horizon_has_classes_too():
    process = ps.TabularMDP(*arrays(3), discount=0.9, records=Sexes()).with_public(["sex"])
    found = ps.plan_once(process, epsilon=1.0)
    values = [ps.plan_once(alone(process, place), epsilon=1.0).value for place in (0, 1)]
    assert found.value == pytest.approx(np.dot(shares(process), values), abs=1e-9)
    assert ps.compare(process, policies=["exponential"], epsilons=[1.0])["epsilon_spent"].iloc[0] <= 1 + 1e-12


def test_schedules_of_classes_are_worth_what_their_tables_are_and_days_start_from_them():
    process = chain(4)
    family = ClassSchedules.of(process, held=1)
    schedule = family.by_day(family.best())
    assert len(schedule) == H and all(len(of_day) == 2 for of_day in schedule)
    tables = [np.eye(K)[np.array(of_day)[CODES]] for of_day in schedule]
    worth = policy_value(process, tables)
    evaluator = ProcessEvaluator(process, optimal_course(process))
    assert evaluator.of_schedule(schedule).value[0] == pytest.approx(worth, abs=1e-12)
    # By brute force: all schedules of each class.
    best = np.full(2, -np.inf)
    for actions in product(range(K), repeat=H):
        values = value_of_schedule(process, actions)
        best = np.maximum(best, [process.initial[members(place)] @ values[members(place)] for place in (0, 1)])
    assert worth == pytest.approx(best.sum(), abs=1e-9)
    # Whoever follows them: the mass of each day.
    mass = process.initial
    masses = daily_distributions(process, lambda day, mass: mass_after(process, mass, schedule[day]))
    for found, table in zip(masses, tables, strict=True):
        assert found == pytest.approx(mass, abs=1e-12)
        mass = process.push(mass, table)
    within_nothing = ps.compare(process, policies=["optimal-daily"], total_epsilons=[0.0, 1e-3])
    assert (within_nothing["value"] >= worth - 1e-12).all()
    assert within_nothing["value"].iloc[0] == pytest.approx(worth, abs=1e-9)


# Days are added within each class.


def hockey_stick(days, epsilon):
    """The sum of max(P - e^epsilon Q, 0) of the product of pairs of distributions."""
    p = q = np.ones(1)
    for one, other in days:
        p, q = np.outer(p, one).ravel(), np.outer(q, other).ravel()
    return float(np.maximum(p - np.exp(epsilon) * q, 0).sum())


@settings(max_examples=30, deadline=None)
@given(data=st.data(), seed=st.integers(0, 10**6), delta=st.sampled_from([0.0, 1e-3, 0.1]))
def test_days_spend_what_they_do_in_the_class_where_that_is_most(data, seed, delta):
    adjacency, n = data.draw(adjacencies())
    rng, policy = np.random.default_rng(seed), make_policy("exponential", epsilon=1.0)
    # In each class other days matter.
    neighbours = neighbour_pairs(adjacency, n)
    codes = np.arange(n)
    for _ in range(n):
        for one, other in neighbours:
            codes[one] = codes[other] = min(codes[one], codes[other])
    days = [rng.normal(size=(n, 3)) * (0.01 + rng.choice([0.0, 1.0], size=n)[codes][:, None]) for _ in range(2)]
    problems = [DecisionProblem(utilities, np.full(n, 1 / n), adjacency) for utilities in days]
    tables = [policy.probabilities(problem) for problem in problems]
    of_class = {code: [pair for pair in neighbours if codes[pair[0]] == code] for code in set(codes)}
    losses = {code: [loss_by_pairs(table, pairs) for table in tables] for code, pairs in of_class.items()}
    spent = spend(policy, problems, [1.0, 1.0], classes_stay=True)
    total = composed_in_classes(spent, delta)[1]
    exact = max(sum(of_days) for of_days in losses.values())
    assert total == pytest.approx(exact, abs=1e-9) if delta == 0 else total <= exact + 1e-9
    assert PrivacyBudget(1.0, delta).share(spent) == pytest.approx(exact, abs=1e-9) if delta == 0 else True
    for pairs in of_class.values():
        for first, second in product(pairs[:20], pairs[-20:]):
            apart = [(table[x], table[y]) for table, (x, y) in zip(tables, (first, second), strict=True)]
            assert hockey_stick(apart, total) <= delta * (1 + 1e-6) + 1e-12
    # Where nothing is known of who stays where, the most of each day counts.
    merged = composed_in_classes(spend(policy, problems, [1.0, 1.0]), 0.0)[1]
    assert merged == pytest.approx(sum(max(of_day) for of_day in zip(*losses.values(), strict=True)), abs=1e-9)


def where_class_matters(place, axis=0):
    """Four records in two classes, of which only those of one have something to hide; `axis` is hidden."""
    utilities = np.zeros((2, 2, 2))
    np.moveaxis(utilities, axis, 0)[:, place] = np.eye(2)
    return DecisionProblem(utilities.reshape(4, 2), np.full(4, 0.25), ps.Sensitive((2, 2), (axis,)))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_each_class_has_the_whole_budget_on_the_day_that_matters_to_it(delta):
    response = make_policy("randomized-response")
    found = PrivacyBudget(1.0, delta).daily(response, [where_class_matters(0), where_class_matters(1)])
    assert (found.epsilon, found.total_epsilon) == pytest.approx((1.0, 1.0), abs=1e-5)
    # Where other records are hidden on another day, or nobody knows who stays in a class, days share the budget.
    for other in (where_class_matters(1, axis=1), None):
        days = [where_class_matters(0), other or where_class_matters(1)]
        if other is None:
            halves = [masked_problem(day.utilities, day.prior, None, classes=np.array([0, 1, 0, 1])) for day in days]
        found = PrivacyBudget(1.0, delta).daily(response, days if other else halves)
        assert (found.epsilon, found.total_epsilon) == pytest.approx((0.5, 1.0), abs=1e-5)


def two_classes(*, change):
    """Of two days the first matters to the states A and B, and the second to C, D and Z, who may have a third action.

    On the first day the right action leads A and B to what is worth 1 on the second: to A, or, if they change their
    class, to C or D. C and D earn the same now or later.
    """
    a, b, c, d, z = range(5)
    good, bad = (np.array([0, 0, 0.5, 0.5, 0]), z) if change else (np.eye(5)[a], b)
    moves, rewards = np.zeros((5, 3, 5)), np.zeros((5, 3))
    moves[a, 0], moves[a, 1], moves[b, 0], moves[b, 1] = good, np.eye(5)[bad], np.eye(5)[bad], good
    moves[c, 0, z] = moves[c, 1, c] = moves[d, 0, d] = moves[d, 1, z] = 1.0
    moves[z, :2, z] = moves[[a, b, c, d, z], 2, [a, b, c, d, z]] = 1.0
    rewards[a, :2] = rewards[c, 0] = rewards[d, 1] = 1.0
    rewards[:, 2] = -1.0
    mask = np.ones((5, 3), dtype=bool)
    mask[[a, b], 2] = False
    return ps.TabularMDP(moves, rewards, np.full(5, 0.2), horizon=2, admissible=mask, mask_public=True, axes="SAS")


def worst_courses(process, tables):
    """The largest loss between two courses of states that agree in their classes on both days."""
    courses = [(one, two) for one, two in product(range(5), repeat=2) if moves_of(process)[one, :, two].any()]
    return max(
        sum(loss_by_pairs(table, [pair]) for table, pair in zip(tables, zip(one, other, strict=True), strict=True))
        for one, other in product(courses, repeat=2)
        if [state < 2 for state in one] == [state < 2 for state in other]
    )


@pytest.mark.parametrize("change", [False, True])
def test_days_are_added_within_classes_only_where_nobody_changes_them(change):
    process = two_classes(change=change)
    found = PrivacyBudget(1.0).daily(make_policy("exponential"), process)
    tables = [day.tables(found.policy)[1] for day in optimal_course(process).decisions(found.policy)]
    assert found.total_epsilon == pytest.approx(worst_courses(process, tables), abs=1e-9)
    assert 0.99 < found.total_epsilon <= 1
    asked = {"policies": ["randomized-response"], "continuation": "optimal"}
    assert ps.compare(process, epsilons=[1.0], **asked)["total_epsilon"][0] == pytest.approx(1.0 + change)
    (course,) = PrivatePlanner(ProcessEvaluator(process, optimal_course(process))).within(
        make_policy("exponential-fitted"), [1.0], 0.0
    )
    assert {len(of_day) for of_day in course.uses} == {1 if change else 2}
    tables, value = replayed(process, course)
    spent = composed_in_classes(course.uses, 0.0)[1]
    assert 0 < spent <= 1.0 + 1e-9
    assert (spent, course.value) == pytest.approx((worst_courses(process, tables), value), abs=1e-9)
    row = ps.compare(process, policies=["exponential-fitted"], total_epsilons=[1.0]).iloc[0]
    assert (row["total_spent"], row["value"]) == pytest.approx((spent, value), abs=1e-9)
