"""The full linear programme over all mechanisms for the days of a small process: the independent oracle."""

import math
from itertools import product

import numpy as np
from scipy import optimize, sparse


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
