"""What a tree of courses publishes, as tables: its courses, which can be read back, and what is given on each day."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from policysim.course.course_evaluation import ProcessEvaluator
from policysim.course.once import MOST_SCHEDULES
from policysim.course.plan_tree import TreePlan
from policysim.course.schedules import Schedule, Schedules

# Between the treatments of a course.
THEN = " > "
# More parts than a search ever ends with are not read back: each is a piece of work for all states.
MOST_PARTS = 128
COURSES = ["horizon", "total_epsilon", "class", "course", "least", "parts"]


def courses_of(plan: TreePlan, horizon: int, total: float) -> pd.DataFrame:
    """The courses that may be published: the table "courses" of `policysim.course.days.compare_days`."""
    actions = plan.family.process.actions
    rows = [
        (
            horizon,
            total,
            kind,
            THEN.join(actions[action] for action in course),
            tree.unit * tree.q * weight,
            math.nan if tree.first is not None else weight,
        )
        for kind, tree in enumerate(plan.trees)
        for course, weight, _, _ in sorted(tree.leaves())
    ]
    return pd.DataFrame(rows, columns=COURSES)


def weights_of(
    table: pd.DataFrame | None, family: Schedules, horizon: int, total: float, kind: int
) -> Mapping[Schedule, int] | None:
    """The courses of a class with whole weights, from such a table: none of one choice, None if it cannot be used."""
    if table is None or list(table.columns) != COURSES:
        return None
    of_total = np.isclose(table["total_epsilon"].astype(float), total, rtol=1e-6) if math.isfinite(total) else False
    rows = table[(table["horizon"] == horizon) & of_total & (table["class"] == kind)]
    codes = {name: place for place, name in enumerate(family.process.actions)}
    courses = [tuple(codes.get(name, -1) for name in str(course).split(THEN)) for course in rows["course"]]
    parts = rows["parts"].to_numpy(dtype=np.float64)
    if len(parts) and np.isnan(parts).all():
        return {}
    usable = (
        1 <= len(courses) == len(set(courses)) <= MOST_SCHEDULES
        and all(len(course) == len(family.held) and set(course) <= set(family.open) for course in courses)
        and bool((parts >= 1).all() and (parts == np.rint(parts)).all() and parts.sum() <= MOST_PARTS)
    )
    return dict(zip(courses, map(int, parts), strict=True)) if usable else None


def published_by_day(plan: TreePlan, evaluator: ProcessEvaluator, features: Sequence[str]) -> pd.DataFrame:
    """What is given on each day, to everyone and by features of the first record: the table "published"."""
    actions = plan.family.process.actions
    given = np.zeros((plan.horizon, len(actions), len(plan.classes)))
    for states, own, tree in zip(plan.family.states, plan.family.families, plan.trees, strict=True):
        for course, chance in tree.chances(own).items():
            for day, action in enumerate(own.expanded([course])[0].tolist()):
                given[day, action, states] += chance
    rows = []
    for place, groups in enumerate(evaluator.grouped([name] if name else []) for name in ("", *features)):
        means = np.array([[evaluator.means(values, groups) for values in of_day] for of_day in given])
        # Everyone is told of once.
        for member, group in list(enumerate(groups))[min(place, 1) :]:
            rows += [
                (group.feature, group.level, group.share, day, *of_day[:, member])
                for day, of_day in enumerate(means, start=1)
            ]
    return pd.DataFrame(rows, columns=["group", "level", "share", "day", *(f"p_{name}" for name in actions)])
