"""What no mechanism for a course exceeds: against the full programme over all of them, and against those compared."""

import math
from contextlib import nullcontext
from dataclasses import replace
from itertools import product

import gymnasium
import numpy as np
import pytest
from course_programme import best_of_all_courses, four_states
from scipy import optimize, sparse
from small_processes import moves_of
from small_studies import write_small_study

import policysim as ps
from policies.optimal import certificate
from policies.policy import NotApplicableError
from policysim.course import course_limit
from policysim.course.course_limit import limit_of_first_days
from policysim.course.course_proof import proven
from policysim.course.planning import optimal_course
from policysim.course.schedules import Schedules


def process(seed, n_states=3, n_actions=2, horizon=2):
    rng = np.random.default_rng(seed)
    moves = rng.dirichlet(np.full(n_states, 0.5), size=(n_states, n_actions))
    rewards = rng.normal(size=(n_states, n_actions)) * 10.0 ** rng.integers(-3, 4)
    initial = rng.dirichlet(np.ones(n_states)) if rng.random() < 0.8 else np.eye(n_states)[0]
    return ps.TabularMDP(moves, rewards, initial, horizon=horizon)


def limit_of(mdp, **options):
    """The limit, and the warning that it deserves."""
    one = np.count_nonzero(mdp.initial) == 1
    with pytest.warns(UserWarning, match="^course_limit bounds nothing here") if one else nullcontext():
        return ps.course_limit(mdp, **options)


def best_of_all_mechanisms(mdp, epsilon, delta=0.0):
    """The largest value over two days of any mechanism whose published pair of actions is (epsilon, delta)-private.

    A linear programme: y(x, a, z, b) is the probability to give a on the first day, to come to z, and to give b on the
    second, if the first state is x. The mechanism may depend on everything. With a delta, what one set of courses
    may exceed is bounded for every set of the four courses.
    """
    n, k = mdp.rewards.shape
    moves = moves_of(mdp)
    first = n * k  # p(a | x), then y
    place = {key: first + i for i, key in enumerate(product(range(n), range(k), range(n), range(k)))}
    size = first + len(place)
    equal, most, gain = [], [], np.zeros(size)
    for x in range(n):
        row = np.zeros(size)
        row[x * k : (x + 1) * k] = 1
        equal.append((row, 1.0))
        for a in range(k):
            gain[x * k + a] += mdp.initial[x] * mdp.rewards[x, a]
            for z in range(n):
                row = np.zeros(size)
                row[[place[x, a, z, b] for b in range(k)]] = 1
                row[x * k + a] = -moves[x, a, z]
                equal.append((row, 0.0))
                for b in range(k):
                    gain[place[x, a, z, b]] += mdp.initial[x] * mdp.rewards[z, b]
    courses = list(product(range(k), repeat=2))
    chances = np.zeros((n, len(courses), size))
    for (x, a, _, b), where in place.items():
        chances[x, courses.index((a, b)), where] = 1
    sets = [np.array(bits) for bits in product((0, 1), repeat=len(courses)) if any(bits)]
    for x, y in product(range(n), repeat=2):
        most += [
            (among @ chances[x] - math.exp(epsilon) * among @ chances[y], delta)
            for among in (sets if delta > 0 else np.eye(len(courses)))
        ]
    found = optimize.linprog(
        -gain,
        A_ub=np.array([row for row, _ in most]),
        b_ub=np.array([bound for _, bound in most]),
        A_eq=np.array([row for row, _ in equal]),
        b_eq=np.array([value for _, value in equal]),
    )
    assert found.status == 0
    return -found.fun


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (0.7, 0.0), (2.0, 0.0), (0.7, 0.1), (0.0, 0.3)])
def test_no_mechanism_for_two_days_exceeds_the_limit(seed, epsilon, delta):
    mdp = process(seed)
    limit = limit_of(mdp, epsilon=epsilon, delta=delta)
    size = np.abs(mdp.rewards).max()
    assert best_of_all_mechanisms(mdp, epsilon, delta) <= limit + 1e-7 * size
    assert limit <= ps.plan(mdp).value + 1e-9 * size


@pytest.mark.parametrize("seed", [1, 3, 6, 7])
@pytest.mark.parametrize("epsilon", [0.7, 2.0])
def test_what_hides_the_course_is_worth_no_more_than_the_best_that_does_and_that_no_more_than_the_limit(seed, epsilon):
    mdp = process(seed)
    size = np.abs(mdp.rewards).max()
    of_course, of_first = best_of_all_courses(mdp, epsilon), best_of_all_mechanisms(mdp, epsilon)
    # They are two guarantees.
    assert of_course + 1e-3 * size < of_first <= limit_of(mdp, epsilon=epsilon) + 1e-7 * size
    table = ps.compare(mdp, policies=["optimal-daily", "exponential-fitted"], total_epsilons=[epsilon])
    assert (table["hides"] == "course").all()
    once = ps.plan_once(mdp, epsilon=epsilon)
    assert max(table["value"].max(), once.value) <= of_course + 1e-7 * size


def test_over_one_day_the_limit_is_the_optimum():
    for seed in range(3):
        mdp = process(seed, n_states=4, n_actions=3, horizon=1)
        problem = ps.DecisionProblem(mdp.rewards, mdp.initial, ps.AnyRecord())
        best = problem.value(ps.make_policy("optimal", epsilon=1.3).probabilities(problem))
        limit = limit_of(mdp, epsilon=1.3)
        assert best - 1e-12 <= limit == pytest.approx(best, abs=1e-8 * np.abs(mdp.rewards).max())


# Of the benefit, within one day and within two.
@pytest.mark.parametrize(("epsilon", "most"), [(1.0, (0.758, 0.530)), (2.0, (1.0, 0.723)), (5.0, (1.0, 0.967))])
def test_more_days_lower_the_limit_of_what_hides_the_course_to_the_optimum(epsilon, most):
    mdp = four_states(3)
    constant = max(map(Schedules(mdp, (1, 1, 1)).constant_value, range(3)))
    stakes = ps.plan(mdp).value - constant
    optimum = best_of_all_courses(mdp, epsilon)
    for days, share in enumerate((*most, (optimum - constant) / stakes + 1e-6), start=1):
        limit = limit_of_first_days(mdp, epsilon, days)
        assert limit.proof == "rationals" and optimum <= limit.value + 1e-9
        assert (limit.value - constant) / stakes <= share


@pytest.mark.parametrize(("seed", "epsilon"), [(0, 0.5), (1, 3.0), (3, 1.0)])
def test_no_mechanism_that_hides_the_course_exceeds_its_limit(seed, epsilon):
    mdp = process(seed, n_states=3, n_actions=2, horizon=3)
    size = np.abs(mdp.rewards).max()
    best = best_of_all_courses(mdp, epsilon)
    limits = [ps.course_limit(mdp, epsilon=epsilon, days=days, hides="course") for days in (1, 2, 3)]
    assert best - 1e-8 * size <= limits[2] <= limits[1] + 1e-5 * size <= limits[0] + 2e-5 * size
    assert limits[0] <= ps.plan(mdp).value + 1e-8 * size
    free = mdp.initial @ Schedules(mdp, (1, 1, 1)).values(list(product(range(2), repeat=3)))
    values = [free.max(), ps.plan(mdp).value]
    for extreme, value in zip((0.0, 50.0), values, strict=True):
        days = 2 if extreme else 3
        limit = ps.course_limit(mdp, epsilon=extreme, days=days, hides="course")
        assert value - 1e-9 * size <= limit <= value + 1e-4 * size


def test_rounding_outward_stands_above_what_is_proved_in_rationals(monkeypatch):
    mdp = four_states(3)
    exact = limit_of_first_days(mdp, 2.0, 2)
    monkeypatch.setattr(course_limit, "MOST_EXACT", 3)
    rounded = limit_of_first_days(mdp, 2.0, 2)
    assert (exact.proof, rounded.proof) == ("rationals", "directed rounding")
    # Fewer cuts, and rounded up.
    assert exact.value - 1e-9 <= rounded.value <= exact.value + 2e-3


def test_prices_of_masses_that_promise_less_than_what_follows_prove_nothing():
    """The planted defects: a future that is worth less than it is, and a process that is not the one of the proof."""
    mdp, seen = four_states(3), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(course_limit, "proven", lambda *proof: seen.append(proof) or proven(*proof))
        limit_of_first_days(mdp, 2.0, 2)
    ((_, proof),) = seen
    assert proven(mdp, proof) is not None
    lowered = [values - 1e-6 for values in proof.values]
    assert proven(mdp, replace(proof, values=lowered)) is None
    # At another epsilon the same prices prove another limit, and a higher one.
    assert proven(mdp, replace(proof, epsilon=3.0)) > proven(mdp, proof)
    assert proven(mdp, replace(proof, cuts=[])) is None


def test_public_classes_and_masks_keep_their_limits(tmp_path):
    study = ps.load_study(write_small_study(tmp_path))
    course = ps.build_course(study, 2).with_public(["age"])
    limits = [ps.course_limit(course, epsilon=2.0, days=days, hides="course") for days in (1, 2)]
    assert ps.plan_tree(course, epsilon=2.0, courses=6).value <= limits[1] <= limits[0] + 1e-6
    assert limits[0] == pytest.approx(ps.course_limit(course, epsilon=2.0), abs=1e-6)


def test_more_epsilon_and_more_delta_never_lower_it():
    mdp = process(0, n_states=4, n_actions=3, horizon=5)
    epsilons = [0.0, 0.5, 1.0, 3.0, math.inf]
    limits = [ps.course_limit(mdp, epsilon=epsilon) for epsilon in epsilons]
    assert (np.diff(limits) >= -1e-12 * np.abs(limits[1:])).all()
    assert limits[-1] == pytest.approx(ps.plan(mdp).value, rel=1e-12) and limits[-1] >= ps.plan(mdp).value
    deltas = [ps.course_limit(mdp, epsilon=1.0, delta=delta) for delta in (0.0, 1e-6, 0.1, 0.9)]
    assert (np.diff(deltas) >= -1e-12 * np.abs(deltas[1:])).all() and deltas[-1] <= limits[-1]


def test_without_a_horizon_it_is_that_of_the_first_decision():
    mdp = process(1, n_states=4, n_actions=3)
    endless = ps.TabularMDP(moves_of(mdp), mdp.rewards, mdp.initial, discount=0.8)
    q_values = ps.plan(endless).q_values
    problem = ps.DecisionProblem(q_values, mdp.initial, ps.AnyRecord())
    best = problem.value(ps.make_policy("optimal", epsilon=1.0).probabilities(problem))
    assert ps.course_limit(endless, epsilon=1.0) == pytest.approx(best, abs=1e-7 * np.abs(q_values).max())
    assert ps.plan_once(endless, epsilon=1.0).value <= ps.course_limit(endless, epsilon=1.0) + 1e-12


@pytest.mark.parametrize("public", [False, True])
def test_states_that_allow_different_actions_are_hidden_in_their_classes_at_most(public):
    rng = np.random.default_rng(2)
    allowed = np.array([[True, True, False], [True, True, False], [False, True, True], [False, True, True]])
    mdp = ps.TabularMDP(
        rng.dirichlet(np.ones(4), size=(4, 3)),
        [[1, 0, 9], [0, 1, 9], [9, 1, 0], [9, 0, 1]],
        rng.dirichlet(np.ones(4)),
        horizon=3,
        admissible=allowed,
        mask_public=public,
    )
    limit = ps.course_limit(mdp, epsilon=0.5)
    assert limit < ps.plan(mdp).value
    policy = ps.make_policy("optimal", epsilon=0.1)
    tables = [day.tables(policy)[1] for day in optimal_course(mdp).decisions(policy)]
    assert ps.policy_value(mdp, tables) <= limit


def test_a_proof_that_does_not_hold_proves_nothing(monkeypatch):
    mdp = process(1)
    assert ps.course_limit(mdp, epsilon=0.1) < ps.plan(mdp).value
    monkeypatch.setattr(certificate.Certificate, "holds", lambda *_: False)
    assert ps.course_limit(mdp, epsilon=0.1) == pytest.approx(ps.plan(mdp).value, rel=1e-12)


def test_one_first_state_is_told_that_nothing_is_bounded_and_that_choosing_once_cannot_react():
    lake = ps.TabularMDP.from_env(gymnasium.make("FrozenLake-v1"), horizon=12)
    with pytest.warns(
        UserWarning, match="^course_limit bounds nothing here: .* It is the value of the best plan"
    ) as told:
        assert ps.course_limit(lake, epsilon=1.0) == pytest.approx(ps.plan(lake).value)
    with pytest.warns(UserWarning, match="^plan_once cannot react here: .* compare.. chooses day by day") as once:
        worth = ps.plan_once(lake, epsilon=50.0).value
    # A schedule for all, whatever epsilon is; who chooses by the day's state reaches the best there is.
    assert worth < 0.7 * ps.plan(lake).value
    assert ps.compare(lake, policies=["exponential"], epsilons=[1e4])["value"][0] > 0.99 * ps.plan(lake).value
    for found in (told, once):
        assert len(found) == 1 and found[0].filename == __file__ and "\n" not in str(found[0].message)


@pytest.fixture(scope="module")
def large():
    """One day of 4,000 records and nine actions, and their best private value: too many orders for a certificate."""
    utilities = np.random.default_rng(0).normal(size=(4000, 9))
    nowhere = [sparse.csr_array((4000, 4000))] * 9
    mdp = ps.TabularMDP(nowhere, utilities, np.full(4000, 1 / 4000), ends=np.ones((4000, 9)), horizon=1)
    problem = ps.DecisionProblem(utilities, mdp.initial, ps.AnyRecord())
    with pytest.raises(NotApplicableError):
        certificate.optimal_certificate(problem, 1.0)
    return mdp, problem.value(ps.make_policy("optimal", epsilon=1.0).probabilities(problem))


def test_where_there_is_no_proof_nothing_is_claimed(large):
    mdp, _ = large
    for delta in (0.0, 0.1):
        assert ps.course_limit(mdp, epsilon=1.0, delta=delta) == pytest.approx(ps.plan(mdp).value, rel=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": -0.1}, r"epsilon must be >= 0, got epsilon=-0.1"),
        ({"epsilon": 1.0, "delta": -1e-9}, "delta must be >= 0"),
        ({"epsilon": 1.0, "delta": 1.0}, r"delta must be < 1, got delta=1.0"),
        ({"epsilon": 1.0, "days": 2}, "days must be 1 where"),
        ({"epsilon": 1.0, "days": 3, "hides": "course"}, "days must be a whole number from 1 to the horizon 2"),
        ({"epsilon": 1.0, "delta": 0.1, "hides": "course"}, "delta must be 0 where"),
        ({"epsilon": 1.0, "hides": "nothing"}, "hides must be"),
    ],
)
def test_what_is_out_of_range_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        ps.course_limit(process(1), **options)
    with pytest.raises(ValueError, match="course_limit takes a process"):
        ps.course_limit("covid", epsilon=1.0)
