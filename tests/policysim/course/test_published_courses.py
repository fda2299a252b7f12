"""What a tree publishes, as tables: by enumeration over all courses of states, and read back."""

import itertools

import numpy as np
import pandas as pd
import pytest
from course_programme import chances_of_courses
from small_studies import SCENARIO, write_small_study

import policysim as ps
from policysim.cli.main import main
from policysim.course.course_evaluation import ProcessEvaluator
from policysim.course.days import MOST_PARTS, courses_of, published_by_day, weights_of
from policysim.course.plan_tree import best_tree
from policysim.course.planning import optimal_course
from policysim.course.schedules import ClassSchedules
from policysim.course.tree_search import TreeSearch

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


def test_courses_that_are_read_back_are_worth_the_same(process, plan, monkeypatch):
    family = ClassSchedules.of(process)
    table = courses_of(plan, HORIZON, EPSILON)
    assert table["least"].to_numpy() == pytest.approx(np.sort(plan.weights)[np.argsort(np.argsort(plan.weights))])
    weights = weights_of(table, family.families[0], HORIZON, EPSILON, 0)
    assert weights is not None
    # Nothing is searched for.
    monkeypatch.delattr(TreeSearch, "weights")
    schedules = family.found(family.best(), 16, [EPSILON])
    again = best_tree(family, schedules, epsilon=EPSILON, courses=16, limit=0.0, weights=[weights])
    assert again.value == pytest.approx(plan.value, abs=1e-14)
    assert again.epsilon_spent <= EPSILON + 1e-12


@pytest.mark.parametrize(
    "spoiled",
    [
        {"course": "0 > 9 > 0"},
        {"course": "0 > 1"},
        {"parts": 0.5},
        {"parts": 0},
        {"parts": MOST_PARTS + 1},
        {"horizon": 2},
        {"total_epsilon": 1.0},
        {"class": 1},
    ],
    ids=str,
)
def test_a_table_that_cannot_be_used_is_not(process, plan, spoiled):
    family = ClassSchedules.of(process).families[0]
    table = courses_of(plan, HORIZON, EPSILON).astype({"parts": float})
    assert weights_of(table, family, HORIZON, EPSILON, 0) is not None
    table = table.head(1).assign(**spoiled)
    assert weights_of(table, family, HORIZON, EPSILON, 0) is None
    assert weights_of(pd.DataFrame({"x": [1]}), family, HORIZON, EPSILON, 0) is None
    assert weights_of(None, family, HORIZON, EPSILON, 0) is None


def test_one_choice_has_no_parts_and_is_not_searched_for(process, plan):
    family = ClassSchedules.of(process)
    table = courses_of(plan, HORIZON, EPSILON).assign(parts=np.nan)
    assert weights_of(table, family.families[0], HORIZON, EPSILON, 0) == {}
    schedules = family.found(family.best(), 16, [EPSILON])
    once = best_tree(family, schedules, epsilon=EPSILON, courses=16, limit=0.0, weights=[{}])
    assert once.value == pytest.approx(ps.plan_once(process, epsilon=EPSILON).value, abs=1e-12)


@pytest.mark.usefixtures("blank_drawings")
def test_a_report_is_reproduced_without_another_search_and_believes_no_courses(tmp_path, capsys, monkeypatch):
    scenario = SCENARIO.replace("[treatments.none]", "[onset]\nfever = 0.5\ncough = 0.3\n\n[treatments.none]")
    path, out = write_small_study(tmp_path / "study", scenario=scenario), tmp_path / "out"
    asked = ["compare", str(path), "--horizon", "2", "--total-epsilon", "4", "--policy", "plan-tree", "--out", str(out)]
    assert main(asked) == 0
    courses = pd.read_csv(out / "courses.csv")
    assert courses["parts"].notna().any()
    capsys.readouterr()
    searches = []
    search = TreeSearch.weights
    monkeypatch.setattr(TreeSearch, "weights", lambda self, start: searches.append(self) or search(self, start))
    assert main(["reproduce", str(out / "manifest.json")]) == 0
    assert searches == []
    # Somebody else's courses: what comes of them is computed, and is not what the report says.
    courses.assign(course=courses["course"].iloc[::-1].to_numpy()).to_csv(out / "courses.csv", index=False)
    assert main(["reproduce", str(out / "manifest.json")]) == 4
