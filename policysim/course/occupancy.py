"""On how many days patients of each state are expected to get each treatment: the occupancy measure of a policy.

Whatever is counted is linear in it (Puterman 1994, Markov decision processes, section 6.9): so one pass forwards
through the days counts everything that everyone has, however many outcomes there are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from policies.arrays import FloatArray, IntArray
from policysim.course.course_tree import Branch
from policysim.course.plan_tree import TreePlan
from policysim.course.process import Process
from policysim.course.schedules import DayAction, mass_after


def of_days(
    process: Process, chosen: Callable[[int], FloatArray | DayAction], initial: FloatArray | None = None
) -> tuple[list[FloatArray], FloatArray]:
    """The occupancy of a policy that draws each day, (n, k), after the mass of the state on each day, (n,) each.

    Parameters
    ----------
    process : Process
        With a horizon.
    chosen : callable
        Gives p(a|x) of a day, (n, k), or what everybody gets on it.
    initial : array, (n,), optional
        The mass of the first states; by default that of everyone.
    """
    masses, occupancy = [process.initial if initial is None else initial], np.zeros_like(process.rewards)
    for day in range(process.horizon or 0):
        table = chosen(day)
        if isinstance(table, np.ndarray):
            occupancy += masses[day][:, None] * table
            after = process.push(masses[day], table)
        else:
            own = table if isinstance(table, int) else np.array(table)[process.classes]
            occupancy[np.arange(len(occupancy)), own] += masses[day]
            after = mass_after(process, masses[day], table)
        # What is left over from a difference of sums may be the rounding of 0.
        masses.append(np.maximum(after, 0.0))
    return masses[:-1], occupancy


def of_schedules(process: Process, schedules: IntArray, chances: FloatArray) -> FloatArray:
    """The occupancy of one draw of a schedule, (n, k).

    Parameters
    ----------
    process : Process
        With a horizon.
    schedules : array of int, (m, H), or (n_classes, m, H)
        The action of each day; each public class may have its own.
    chances : array, (n, m)
        How likely each is, for each first state.
    """
    occupancy = np.zeros_like(process.rewards)
    for place, drawn in enumerate(chances.T):
        days = schedules[..., place, :].T.tolist()
        given = [tuple(each) if isinstance(each, list) else each for each in days]
        if drawn.any():
            occupancy += of_days(process, given.__getitem__, process.initial * drawn)[1]
    return occupancy


def of_tree(plan: TreePlan) -> FloatArray:
    """The occupancy of a tree of courses, (n, k)."""
    process = plan.family.process
    occupancy = np.zeros_like(process.rewards)
    for states, family, tree in zip(plan.family.states, plan.family.families, plan.trees, strict=True):
        occupied = np.zeros_like(family.process.rewards)
        waiting = [(tree.root, tree.poured, process.initial[states])]
        for held in family.held:
            # What comes next: the branch that leads there, and the mass before its action.
            arriving: dict[tuple[int, float], tuple[Branch, FloatArray]] = {}
            for node, poured, mass in waiting:
                for branch, end, chance in tree.after(node, poured):
                    known = arriving[id(branch), end][1] if (id(branch), end) in arriving else 0.0
                    arriving[id(branch), end] = branch, known + mass * chance
            waiting = []
            for (_, end), (branch, mass) in arriving.items():
                for _ in range(held):
                    occupied[:, branch.action] += mass
                    mass = mass_after(family.process, mass, branch.action)  # noqa: PLW2901 - the next day's
                waiting.append((branch.child, end, mass))
        occupancy[states] = occupied
    return occupancy
