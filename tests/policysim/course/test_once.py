"""One private choice of a schedule: its value by brute force and a full programme, its loss by enumeration."""

from itertools import product

import numpy as np
import pytest
from full_programme import full_value
from small_processes import moves_of, random_arrays, value_of_schedule

import policysim as ps
from policysim.course.schedules import Schedules


def chain(seed, horizon=4, n_states=4, **options):
    """States that change little, so that choosing pays, and one that absorbs; three actions."""
    rng = np.random.default_rng(seed)
    moves = rng.dirichlet(np.full(n_states, 0.5), size=(n_states, 3)) + 3 * np.eye(n_states)[:, None, :]
    moves[-1] = np.eye(n_states)[-1]
    rewards = rng.normal(size=(n_states, 3))
    rewards[-1] = 0.0
    initial = [*rng.dirichlet(np.ones(n_states - 1)), 0.0]
    return ps.TabularMDP(moves / moves.sum(axis=2, keepdims=True), rewards, initial, horizon=horizon, **options)


def full_programme(table, prior, epsilon):
    """The largest value of any table p(j|x) with p(j|x) <= e^epsilon p(j|x') for all pairs."""
    return full_value(ps.DecisionProblem(table, prior, ps.AnyRecord()), epsilon)


def published(process, plan):
    """P(published course | first state), (n, k^H): a state is drawn, a schedule chosen, and followed to the end.

    Every path of states is followed, so that what is published may depend on nothing else than it does.
    """
    n, k = process.rewards.shape
    moves, joint = moves_of(process), np.zeros((n, k ** plan.schedules.shape[1]))
    for first, chosen in product(range(n), range(len(plan.schedules))):
        reached = np.eye(n)[first] * plan.probabilities[first, chosen]
        code = 0
        for action in plan.schedules[chosen]:
            code = code * k + action
            reached = reached @ moves[:, action]
        joint[first, code] += reached.sum()
    return joint


@pytest.mark.parametrize("seed", range(4))
def test_a_larger_epsilon_is_never_worth_less(seed):
    values = [ps.plan_once(chain(seed), epsilon=epsilon, schedules=4).value for epsilon in (0.0, 0.3, 1.0, 4.0, 30.0)]
    assert values == sorted(values) and values[-1] > values[0]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
def test_the_search_finds_what_the_full_programme_over_all_schedules_finds(seed, epsilon):
    process = chain(seed)
    everything = list(product(range(3), repeat=4))
    table = np.column_stack([value_of_schedule(process, schedule) for schedule in everything])
    most = full_programme(table, process.initial, epsilon)
    found = ps.plan_once(process, epsilon=epsilon)
    stakes = process.initial @ table.max(axis=1) - (process.initial @ table).max()
    assert most - 0.01 * stakes <= found.value <= most + 1e-9
    # And among schedules that are given, exactly.
    given = ps.plan_once(process, epsilon=epsilon, schedules=everything[:50])
    assert given.value == pytest.approx(full_programme(table[:, :50], process.initial, epsilon), abs=1e-7)
    best = process.initial @ value_of_schedule(process, Schedules(process, (1,) * 4).best(process.initial, (0,) * 4))
    assert best == pytest.approx((process.initial @ table).max(), abs=1e-9)


# Where privacy costs more than choosing gains, these give all patients the same schedule.
MAY_IGNORE_RECORDS = ("optimal", "exponential-fitted")


@pytest.mark.parametrize(
    "policy", ["optimal", "exponential", "exponential-fitted", "randomized-response", "permute-and-flip"]
)
@pytest.mark.parametrize("seed", range(2))
def test_the_whole_published_course_loses_what_the_one_choice_loses(policy, seed):
    process = chain(seed)
    found = ps.plan_once(process, epsilon=1.5, policy=policy)
    # All 81 courses that may be published, from every first state, the absorbed one too; delta is 0.
    joint = published(process, found)
    assert joint.shape == (4, 81) and joint.sum(axis=1) == pytest.approx(np.ones(4))
    assert ps.privacy_loss(joint, ps.AnyRecord()).epsilon == pytest.approx(found.epsilon_spent, abs=1e-12)
    assert found.epsilon_spent <= 1.5 + 1e-12 and (found.epsilon_spent > 0 or policy in MAY_IGNORE_RECORDS)
    # Its value is that of what is published and earned, path by path.
    values = np.column_stack([value_of_schedule(process, schedule) for schedule in found.schedules])
    assert found.value == pytest.approx((process.initial[:, None] * found.probabilities * values).sum(), abs=1e-12)


@pytest.mark.parametrize("policy", ["optimal", "exponential"])
def test_one_choice_hides_the_whole_course_of_states(policy):
    process = chain(1, horizon=3)
    found = ps.plan_once(process, epsilon=1.5, policy=policy)
    # q(a|s) for all 64 courses of states: nothing after the first one counts.
    courses, actions = (list(product(range(size), repeat=3)) for size in (4, 3))
    logs = np.full((len(courses), len(actions)), -np.inf)
    for row, states in enumerate(courses):
        for chosen, schedule in enumerate(found.schedules.tolist()):
            logs[row, actions.index(tuple(schedule))] = found.log_probabilities[states[0], chosen]
    possible = np.isfinite(logs).all(axis=0)
    assert np.isneginf(logs[:, ~possible]).all()
    ratios = logs[:, None, possible] - logs[None, :, possible]
    assert ratios.max() == pytest.approx(found.epsilon_spent, abs=1e-12) and found.epsilon_spent <= 1.5 + 1e-12


def test_a_choice_that_is_made_again_on_the_second_day_loses_more():
    """The planted bug: the schedule is chosen anew, by the same table, from the second day's state."""
    process = chain(0)
    found = ps.plan_once(process, epsilon=1.5)
    moves, joint = moves_of(process), np.zeros((4, 81))
    for first, one, other in product(range(4), *(range(len(found.schedules)),) * 2):
        start, later = found.schedules[one], found.schedules[other]
        again = moves[first, start[0]] @ found.probabilities[:, other]
        code = int(np.ravel_multi_index((start[0], *later[1:]), (3,) * 4))
        joint[first, code] += found.probabilities[first, one] * again
    assert joint.sum(axis=1) == pytest.approx(np.ones(4))
    assert ps.privacy_loss(joint, ps.AnyRecord()).epsilon > found.epsilon_spent + 0.1


def test_within_public_classes_only_their_members_are_hidden_among_each_other(study):
    process = ps.build_course(study, 3)
    found = ps.plan_once(process, epsilon=1.0, public=["age"])
    process = process.with_public(["age"])
    codes, _ = process.records.groups("age")
    losses = [
        ps.privacy_loss(found.probabilities[codes == level], ps.AnyRecord()).epsilon for level in np.unique(codes)
    ]
    assert max(losses) == pytest.approx(found.epsilon_spent, abs=1e-12)
    assert found.epsilon_spent <= 1.0 + 1e-12
    whole = ps.plan_once(process, epsilon=1.0)
    assert found.value >= whole.value - 1e-12
    assert found.value == pytest.approx(ps.plan_once(process, epsilon=1.0).value, abs=1e-15)
    # A class alone is the choice of its own patients.
    for level in np.unique(codes):
        inside = codes == level
        values = np.asarray(found.problem.utilities)[inside]
        alone = ps.DecisionProblem(values, process.initial[inside] / process.initial[inside].sum(), ps.AnyRecord())
        table = ps.make_policy("optimal", epsilon=1.0).probabilities(alone)
        assert alone.value(found.probabilities[inside]) == pytest.approx(alone.value(table), abs=1e-9)


def test_a_public_feature_that_changes_is_refused(study):
    with pytest.raises(ValueError, match="public must name features that never change, got 'fever'"):
        ps.plan_once(ps.build_course(study, 3), epsilon=1.0, public=["age", "fever"])


def test_an_endless_process_holds_its_last_action():
    moves, rewards, initial, _ = random_arrays(np.random.default_rng(3))
    process = ps.TabularMDP(moves, rewards, initial, discount=0.9)
    found = ps.plan_once(process, epsilon=2.0)
    for column, schedule in zip(found.problem.utilities.T, found.schedules, strict=True):
        forever = np.linalg.solve(np.eye(4) - 0.9 * moves[:, schedule[-1]], rewards[:, schedule[-1]])
        values = forever
        for action in reversed(schedule[:-1]):
            values = rewards[:, action] + 0.9 * moves[:, action] @ values
        assert column == pytest.approx(values, abs=1e-9)
    assert found.value <= ps.course_limit(process, epsilon=2.0)


def test_a_long_horizon_holds_each_action_for_several_decisions():
    process = chain(1, horizon=70)
    found = ps.plan_once(process, epsilon=2.0, held=30)
    assert found.schedules.shape[1] == 70
    changes = np.flatnonzero((np.diff(found.schedules, axis=1) != 0).any(axis=0)) + 1
    assert set(changes.tolist()) <= {30, 60}
    assert Schedules.of(process).held == (3,) * 23 + (1,)
    assert repr(found).startswith("OncePlan(optimal, ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": -1.0}, r"epsilon must be >= 0, got epsilon=-1.0"),
        ({"policy": 3}, "policy must be a name or a Policy"),
        ({"schedules": 1}, "schedules must be from 2 to 62, got schedules=1"),
        ({"schedules": [[0, 1, 2]]}, r"schedules must be whole numbers of shape \(m, 4\), got shape \(1, 3\)"),
        ({"schedules": [[0, 1, 2, 0]]}, "schedules must be 2 to 62 distinct rows, got 1 rows"),
        ({"schedules": [[0, 1, 2, 0], [0, 1, 3, 0]]}, r"schedules\[1, 2\] must be one of the actions \[0, 1, 2\]"),
        ({"held": 0}, "held must be a whole number >= 1 and <= the horizon 4, got held=0"),
        ({"held": 2, "schedules": [[0, 1, 2, 0], [0, 0, 0, 0]]}, "held goes with a number of schedules"),
        ({"public": "age"}, "public must be a list of features, got public='age'"),
        ({"public": ["age"]}, "unknown group 'age'"),
    ],
)
def test_what_does_not_fit_is_one_line(options, message):
    with pytest.raises(ValueError, match=message):
        ps.plan_once(chain(0), **{"epsilon": 1.0, **options})


def test_a_process_that_has_no_schedule_says_why():
    mask = np.array([[True, False], [False, True]])
    moves = np.full((2, 2, 2), 0.5)
    with pytest.raises(ValueError, match="no action is open to every state"):
        ps.plan_once(ps.TabularMDP(moves, np.eye(2), [0.5, 0.5], horizon=3, admissible=mask, axes="SAS"), epsilon=1.0)
    with pytest.raises(ValueError, match="no action has a value in every state if it goes on for ever"):
        ps.plan_once(ps.TabularMDP(moves, np.eye(2), [0.5, 0.5], axes="SAS"), epsilon=1.0)
    one = ps.TabularMDP(moves, np.eye(2), [0.5, 0.5], horizon=3, admissible=[[True, True], [True, False]], axes="SAS")
    with pytest.raises(ValueError, match="there is only one schedule to choose"):
        ps.plan_once(one, epsilon=1.0)
    with pytest.raises(ValueError, match="plan_once takes a process"):
        ps.plan_once(3, epsilon=1.0)
