"""The tree of courses: its value and its loss by enumeration, against the full programme over all mechanisms."""

import math
from dataclasses import fields, replace
from itertools import product

import numpy as np
import pytest
from course_programme import best_of_all_courses, chances_of_courses, four_states
from small_processes import moves_of, random_arrays
from small_studies import SCENARIO, write_small_study

import policysim as ps
from policysim.course.course_evaluation import ProcessEvaluator
from policysim.course.course_tree import RestValues, priced_tree
from policysim.course.days import courses_of, published_by_day
from policysim.course.plan_tree import ClassTree
from policysim.course.planning import optimal_course
from policysim.course.schedules import Schedules
from policysim.course.tree_search import even_weights

SLACK = 1e-12


def share_of(process, value):
    """The share of the benefit: 0 for the best constant action, 1 for the best plan."""
    constant = max(map(Schedules(process, (1,) * process.horizon).constant_value, range(len(process.actions))))
    return (value - constant) / (ps.plan(process).value - constant)


def small(seed, horizon=3):
    rng = np.random.default_rng(seed)
    moves, rewards, initial, _ = random_arrays(rng, int(rng.integers(2, 5)), int(rng.integers(2, 4)), sparse=True)
    return ps.TabularMDP(moves, rewards, initial, horizon=horizon, discount=float(rng.choice([1.0, 0.8])), axes="SAS")


def enumerated(process, plan):
    """q(a|s) of every course of states, (n^H, K), the value of what is published, and the largest log-ratio.

    And the joint probabilities of first states and published courses, (n, K).
    """
    moves = moves_of(process)
    states = np.array(list(product(range(len(moves)), repeat=process.horizon)))
    chances, value = chances_of_courses(plan, states), 0.0
    joint = np.empty((len(moves), len(plan.courses)))
    for place, (course, column) in enumerate(zip(plan.courses, chances.T, strict=True)):
        reached, earned = column * process.initial[states[:, 0]], np.zeros(len(states))
        for day, action in enumerate(course):
            earned += process.discount**day * process.rewards[states[:, day], action]
            if day + 1 < len(course):
                reached = reached * moves[states[:, day], action, states[:, day + 1]]
        value += float(reached @ earned)
        joint[:, place] = np.bincount(states[:, 0], weights=reached, minlength=len(moves))
    return chances, value, float(np.log(chances.max(axis=0) / chances.min(axis=0)).max()), joint


@pytest.mark.parametrize(("epsilon", "least"), [(1.0, 0.4329), (2.0, 0.6569), (5.0, 0.946), (8.0, 0.994)])
def test_the_process_of_four_states_keeps_what_its_full_programme_does(epsilon, least):
    process = four_states(3)
    plan = ps.plan_tree(process, epsilon=epsilon)
    assert share_of(process, plan.value) >= least
    assert plan.value <= best_of_all_courses(process, epsilon) + SLACK <= plan.upper_bound + 1e-9


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0, 6.0])
@pytest.mark.parametrize("seed", range(3))
def test_value_and_loss_are_those_of_all_courses_of_states(seed, epsilon):
    process = small(seed)
    plan = ps.plan_tree(process, epsilon=epsilon)
    chances, value, loss, joint = enumerated(process, plan)
    assert chances.sum(axis=1) == pytest.approx(np.ones(len(chances)), abs=SLACK)
    assert value == pytest.approx(plan.value, abs=SLACK * 100)
    assert process.initial @ plan.counted() == pytest.approx(value, abs=SLACK * 100)
    assert loss == pytest.approx(plan.epsilon_spent, abs=SLACK) and loss <= epsilon + SLACK
    of_first = plan.trees[0].chances(plan.family.families[0])
    for course, column in zip(plan.courses.tolist(), joint.T, strict=True):
        assert process.initial * of_first[tuple(course)] == pytest.approx(column, abs=SLACK)
    assert (chances.min(axis=0) >= plan.weights * (1 - SLACK)).all()
    assert (chances.max(axis=0) <= math.exp(epsilon) * plan.weights * (1 + SLACK)).all()
    once = ps.plan_once(process, epsilon=epsilon)
    assert plan.value >= once.value - SLACK


def test_actions_that_are_held_are_reacted_to_after_they_end():
    process = four_states(4)
    plan = ps.plan_tree(process, epsilon=4.0, held=2)
    assert (plan.courses[:, ::2] == plan.courses[:, 1::2]).all()
    _, value, loss, _ = enumerated(process, plan)
    assert [value, process.initial @ plan.counted()] == pytest.approx([plan.value] * 2, abs=SLACK)
    assert loss == pytest.approx(plan.epsilon_spent, abs=SLACK) and loss <= 4.0 + SLACK
    assert plan.value >= ps.plan_once(process, epsilon=4.0, held=2).value - SLACK


def test_tables_have_the_courses_that_are_published_and_what_is_given_on_each_day():
    process = four_states(3)
    plan = ps.plan_tree(process, epsilon=3.0)
    table = courses_of(plan, 3, 3.0)
    named = [" > ".join(process.actions[action] for action in course) for course in plan.courses.tolist()]
    assert table.set_index("course")["least"].to_dict() == pytest.approx(dict(zip(named, plan.weights, strict=True)))
    # Whole weights: their sum is that of the weights.
    assert table["parts"].to_numpy() / table["parts"].sum() == pytest.approx(table["least"] / table["least"].sum())
    joint = enumerated(process, plan)[-1]
    days = published_by_day(plan, ProcessEvaluator(process, optimal_course(process)), [])
    assert days["day"].tolist() == [1, 2, 3]
    for row, (action, name) in product(days.to_dict("records"), enumerate(process.actions)):
        there = plan.courses[:, row["day"] - 1] == action
        assert row[f"p_{name}"] == pytest.approx(joint[:, there].sum(), abs=SLACK)


# Of seeds 5 and 6 the best constant action is the best plan.
@pytest.mark.parametrize(("seed", "epsilon"), [(0, 0.5), (1, 2.0), (2, 5.0), (3, 0.5), (4, 2.0), (7, 5.0)])
def test_random_processes_keep_what_the_full_programme_does(seed, epsilon):
    process = small(seed)
    most = best_of_all_courses(process, epsilon)
    plan = ps.plan_tree(process, epsilon=epsilon)
    assert share_of(process, most) - 0.01 <= share_of(process, plan.value)
    assert plan.value <= most + 1e-8 <= plan.upper_bound + 2e-8


def test_a_tree_that_forgets_what_was_spent_loses_more():
    """The planted bug: each day pours as much as the first one did, whatever is left of it."""
    plan = ps.plan_tree(four_states(3), epsilon=5.0)
    (tree,) = plan.trees

    class Forgetful(ClassTree):
        def split(self, node, poured, states=slice(None)):
            yield from super().split(node, min(self.poured, node.weight), states)

    forgetful = Forgetful(*(getattr(tree, each.name) for each in fields(tree)))
    _, _, loss, _ = enumerated(four_states(3), replace(plan, trees=(forgetful,)))
    assert loss > 5.0 + 0.1


def test_prices_bound_the_value_of_all_other_weights_and_meet_their_own():
    process = four_states(3)
    worth, q = RestValues(Schedules(process, (1, 1, 1))), math.exp(-3.0)
    rng = np.random.default_rng(0)
    pool = list(product(range(3), repeat=3))
    even = even_weights(len(pool), q)
    for _ in range(4):
        some, other = (even * (0.5 + rng.random(len(pool))) for _ in range(2))
        some, other = some / some.sum() * even.sum(), other / other.sum() * even.sum()
        tree = priced_tree(worth, dict(zip(pool, some, strict=True)), q, 512)
        gained = np.array([tree.gains[course] for course in pool])
        assert tree.constant + gained @ some == pytest.approx(tree.value, abs=1e-7)
        beside = priced_tree(worth, dict(zip(pool, other, strict=True)), q, 512)
        assert beside.value <= tree.constant + gained @ other + 1e-9


def test_public_classes_have_trees_of_their_own(tmp_path):
    process = ps.build_course(ps.load_study(write_small_study(tmp_path, scenario=SCENARIO)), 2).with_public(["age"])
    plan = ps.plan_tree(process, epsilon=3.0, courses=6)
    assert plan.courses.shape[0] == 2 and plan.weights.shape == plan.courses.shape[:2]
    assert plan.epsilon_spent <= 3.0 + SLACK
    assert ps.plan_once(process, epsilon=3.0).value - SLACK <= plan.value <= plan.upper_bound
    assert process.initial @ plan.counted() == pytest.approx(plan.value, abs=SLACK)
    free = ps.plan_tree(process, epsilon=0.0).counted("death")
    assert process.initial @ plan.counted("death") < process.initial @ free
    states = [np.flatnonzero(plan.family.classes == kind) for kind in range(2)]
    for own in states:
        courses = np.random.default_rng(1).choice(own, size=(50, 2))
        chances = chances_of_courses(plan, courses)
        assert chances.sum(axis=1) == pytest.approx(np.ones(50), abs=SLACK)
        used = chances.max(axis=0) > 0
        assert np.log(chances[:, used].max(axis=0) / chances[:, used].min(axis=0)).max() <= 3.0 + SLACK


def test_what_some_states_must_not_get_is_published_for_nobody():
    rng = np.random.default_rng(3)
    moves, rewards, initial, _ = random_arrays(rng)
    allowed = np.ones((4, 3), dtype=bool)
    allowed[0, 2] = False
    plan = ps.plan_tree(ps.TabularMDP(moves, rewards, initial, horizon=3, admissible=allowed), epsilon=3.0)
    assert plan.courses.max() == 1


def test_one_start_can_be_reacted_to_later():
    rng = np.random.default_rng(5)
    moves, rewards, _, _ = random_arrays(rng)
    process = ps.TabularMDP(moves, rewards, np.eye(4)[0], horizon=2)
    plan = ps.plan_tree(process, epsilon=5.0)
    with pytest.warns(UserWarning, match="cannot react"):
        once = ps.plan_once(process, epsilon=5.0)
    assert plan.value > once.value + 0.01
    assert plan.value <= ps.course_limit(process, epsilon=5.0, days=2, hides="course")


@pytest.mark.parametrize("epsilon", [1e-310, 1e-17, 1.2e-16])
def test_next_to_no_epsilon_keeps_what_none_does(epsilon):
    process = four_states(2)
    plan, none = ps.plan_tree(process, epsilon=epsilon), ps.plan_tree(process, epsilon=0.0)
    assert plan.value == pytest.approx(none.value, abs=1e-9) and plan.epsilon_spent <= 1e-15


@pytest.mark.parametrize(
    ("options", "message"),
    [({"epsilon": -1.0}, "epsilon must be >= 0"), ({"epsilon": 1.0, "courses": 1}, "courses must be from 2 to 62")],
)
def test_what_is_out_of_range_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        ps.plan_tree(four_states(2), **options)
    with pytest.raises(ValueError, match="plan_tree takes a process"):
        ps.plan_tree("covid", epsilon=1.0)
    endless = ps.TabularMDP(np.full((2, 2, 2), 0.5), np.eye(2), [0.5, 0.5], discount=0.9, axes="SAS")
    with pytest.raises(ValueError, match="plan_tree needs a horizon"):
        ps.plan_tree(endless, epsilon=1.0)
