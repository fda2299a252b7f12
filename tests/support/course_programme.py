"""The full linear programme over all mechanisms for the days of a small process: the independent oracle."""

import math
from functools import cache
from itertools import product

import numpy as np
from scipy import optimize, sparse

from policysim.course.tabular import TabularMDP


@cache
def best_of_all_courses(process, epsilon):
    """The largest value of any mechanism that hides the whole course of states.

    Variables: q(a_1..a_t | s_1..s_t) of each day t, and m(a). Each sums to that of the day before over its last action;
    on the last day m(a) <= q(a|s) <= e^epsilon m(a).
    """
    n, k = process.rewards.shape
    horizon = process.horizon
    moves = process.stacked.toarray().reshape(k, n, n)
    sizes = [(n * k) ** (t + 1) for t in range(horizon)]
    starts = np.cumsum([0, *sizes])

    def place(states, actions):
        index = 0
        for state, action in zip(states, actions, strict=True):
            index = (index * n + state) * k + action
        return starts[len(states) - 1] + index

    gain = np.zeros(starts[-1] + k**horizon)
    equal, sums = [], []
    for t in range(horizon):
        for states in product(range(n), repeat=t + 1):
            for before in product(range(k), repeat=t):
                chance = process.initial[states[0]]
                for day in range(t):
                    chance *= process.discount * moves[before[day], states[day], states[day + 1]]
                row = [(place(states, (*before, action)), 1.0) for action in range(k)]
                for (where, _), reward in zip(row, process.rewards[states[-1]], strict=True):
                    gain[where] = chance * reward
                if t:
                    row.append((place(states[:-1], before), -1.0))
                equal.append(row)
                sums.append(0.0 if t else 1.0)
    most = []
    for code, actions in enumerate(product(range(k), repeat=horizon)):
        weight = starts[-1] + code
        for states in product(range(n), repeat=horizon):
            where = place(states, actions)
            most += [[(weight, 1.0), (where, -1.0)], [(where, 1.0), (weight, -math.exp(epsilon))]]
    found = optimize.linprog(
        -gain, A_ub=_matrix(most, len(gain)), b_ub=np.zeros(len(most)), A_eq=_matrix(equal, len(gain)), b_eq=sums
    )
    assert found.status == 0
    return -found.fun


def _matrix(rows, width):
    entries = [(row, column, value) for row, entries in enumerate(rows) for column, value in entries]
    row, column, value = zip(*entries, strict=True)
    return sparse.csr_array((value, (row, column)), shape=(len(rows), width))


@cache
def four_states(horizon):
    """Infected or not, with a symptom or not (state 2 p + f); none, treat or antiviral."""
    moves, rewards = np.zeros((4, 3, 4)), np.zeros((4, 3))
    for state, (action, (clears, relieves, cost)) in product(
        range(4), enumerate([(0.1, 0.2, 0.0), (0.6, 0.4, 0.06), (0.2, 0.7, 0.03)])
    ):
        infected, symptom = divmod(state, 2)
        stays, keeps = infected * (1 - clears), symptom * (1 - relieves)
        for after, chance in ((0, 1 - stays), (1, stays)):
            there = keeps + (1 - keeps) * (0.02 + 0.2 * after)
            moves[state, action, 2 * after : 2 * after + 2] += chance * np.array([1 - there, there])
        rewards[state, action] = -(0.5 * stays + 0.1 * keeps + cost)
    return TabularMDP(moves, rewards, [0.75, 0.10, 0.08, 0.07], horizon=horizon)


def chances_of_courses(plan, states):
    """q(a|s) of each course of a tree, (m, K), given courses of states of one class, (m, H): day by day."""
    kind = int(plan.classes[states[0, 0]])
    tree, days = plan.trees[kind], np.cumsum([0, *plan.held])
    local = np.searchsorted(plan.family.states[kind], states)
    chances, waiting = {}, [((), tree.root, tree.poured, np.ones(len(states)))]
    while waiting:
        course, node, poured, chance = waiting.pop()
        if not node.branches:
            chances[course] = chances.get(course, 0.0) + chance
            continue
        place = len(node.prefix)
        for branch, end, likely in tree.after(node, poured, local[:, days[place]]):
            longer = (*course, *[branch.action] * plan.held[place])
            waiting.append((longer, branch.child, end, chance * likely))
    courses = plan.courses if plan.courses.ndim == 2 else plan.courses[kind]
    # A course that fills up the rows of a class stands for itself once.
    return np.column_stack([chances.pop(tuple(course), np.zeros(len(states))) for course in courses.tolist()])
