"""What a tree publishes, as tables: by enumeration over all courses of states."""

import itertools

import numpy as np
import pytest
from course_programme import chances_of_courses

import policysim as ps
from policysim.course.course_evaluation import ProcessEvaluator
from policysim.course.days import courses_of, published_by_day
from policysim.course.planning import optimal_course

HORIZON, EPSILON = 3, 3.0
RNG = np.random.default_rng(7)
MOVES = RNG.dirichlet(np.full(3, 0.6), size=(3, 2))


@pytest.fixture(scope="module")
def process():
    return ps.TabularMDP(MOVES, RNG.normal(size=(3, 2)), RNG.dirichlet(np.ones(3)), horizon=HORIZON)


@pytest.fixture(scope="module")
def plan(process):
    found = ps.plan_tree(process, epsilon=EPSILON)
    assert found.courses.shape[0] > 2
    return found


def enumerated(plan):
    """P(course | first state), (n, K): each course of states, its probability under a course, and what it is given."""
    states = np.array(list(itertools.product(range(3), repeat=HORIZON)))
    given = chances_of_courses(plan, states)
    chances = np.zeros((3, len(plan.courses)))
    for row, path in enumerate(states):
        for place, course in enumerate(plan.courses):
            moves = [MOVES[path[day], course[day], path[day + 1]] for day in range(HORIZON - 1)]
            chances[path[0], place] += np.prod(moves) * given[row, place]
    return chances


def test_the_chances_of_courses_are_those_of_all_courses_of_states(plan):
    expected = enumerated(plan)
    assert expected.sum(axis=1) == pytest.approx(np.ones(3), abs=1e-12)
    found = plan.trees[0].chances(plan.family.families[0])
    for place, course in enumerate(plan.courses.tolist()):
        assert found[tuple(course)] == pytest.approx(expected[:, place], abs=1e-12)


def test_each_day_has_the_courses_that_give_its_treatment(process, plan):
    evaluator = ProcessEvaluator(process, optimal_course(process))
    table = published_by_day(plan, evaluator, [])
    expected, actions = enumerated(plan), process.actions
    for row in table.to_dict("records"):
        for action, name in enumerate(actions):
            there = plan.courses[:, row["day"] - 1] == action
            assert row[f"p_{name}"] == pytest.approx(process.initial @ expected[:, there].sum(axis=1), abs=1e-12)
    assert len(table) == HORIZON


def test_the_table_of_courses_has_what_the_tree_publishes(process, plan):
    table = courses_of(plan, HORIZON, EPSILON)
    named = [" > ".join(process.actions[action] for action in course) for course in plan.courses.tolist()]
    assert table.set_index("course")["least"].to_dict() == pytest.approx(dict(zip(named, plan.weights, strict=True)))
    # Whole weights: their sum is that of the weights.
    assert table["parts"].to_numpy() / table["parts"].sum() == pytest.approx(table["least"] / table["least"].sum())
