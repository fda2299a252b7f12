"""The weights of courses by cutting planes: the best ones, and what no weights exceed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import linprog

from policies.arrays import FloatArray
from policysim.course.course_tree import Branch, Node, charged, course_gain, mean_base, mixed, poured, value_tree
from policysim.course.schedules import Schedule, Schedules

# A course of no weight has this share of the largest: so its prices are those of what would come of it.
LEAST_WEIGHT = 1e-9
# Of the way to where the cuts are highest, from the best weights.
STEP = 1 / 3
# Weights are at most this in the linear programme.
MOST_WEIGHT = 1e9


@dataclass(frozen=True, eq=False)
class PricedTree:
    """The value of courses with weights, and prices that bound the value of all others (`charged`).

    Attributes
    ----------
    root : Node
    value : float
        Of these weights.
    constant : float
        What mass costs at the root: the value of any weights is at most this and their gains.
    """

    root: Node
    value: float
    constant: float


def priced_tree(
    family: Schedules,
    weights: Mapping[Schedule, float],
    q: float,
    most: int,
    ends: FloatArray | None = None,
    *,
    known: dict[Schedule, FloatArray] | None = None,
) -> PricedTree:
    """The largest value under weights >= 0 whose sum is from 1 to 1 / q, with at most so many pieces of a node."""
    least = LEAST_WEIGHT * max(weights.values())
    raised = {course: max(weight, least) for course, weight in weights.items()}
    total = sum(raised.values())
    # So much is poured onto the lowest masses that all are 1.
    point = np.clip([(1 - q * total) / (1 - q)], 0.0, total) if q < 1 else np.zeros(1)
    root = value_tree(family, raised, partial(_join, point=point, most=most), ends, known=known)
    if len(root.branches) == 1:
        root = _join(0, root.branches, point, most)
    prior = family.process.initial
    worth = q * total * root.base + (1 - q) * poured(root.branches, point)[0][0]
    charged(family, root, prior[None], q)
    return PricedTree(root, float(prior @ worth), float(prior @ root.slopes[0]))


def _join(place: int, branches: tuple[Branch, ...], point: FloatArray, most: int) -> Node:
    """A node of all its pieces; of the root, only the piece on which its mass lies."""
    if place:
        return mixed(place, branches, most)
    weight = sum(branch.child.weight for branch in branches)
    return Node(0, mean_base(branches), poured(branches, point)[1], np.array([weight]), branches)


@dataclass(frozen=True, eq=False)
class Climb:
    """Where cutting planes ended.

    Attributes
    ----------
    weights : array, (K,)
        The best that were found.
    best : PricedTree
    tried : list of array, (m,) of (K,)
        All weights of which there are cuts.
    cuts : array, (m, K + 1)
        Constants, and what a unit of each weight adds: the value of any weights is at most that of each cut.
    """

    weights: FloatArray
    best: PricedTree
    tried: list[FloatArray]
    cuts: FloatArray


def climb(
    family: Schedules,
    price: Callable[[Mapping[Schedule, float]], PricedTree],
    pool: Sequence[Schedule],
    starts: Sequence[FloatArray],
    *,
    q: float,
    gap: float,
    most: int,
    patience: float = math.inf,
) -> Climb:
    """Raise the value, concave in the weights, by the cuts of at most so many trees, until the cuts are within a gap.

    Or until it has risen by less than the gap for so many steps that patience is lost.

    Each step goes a part of the way from the best weights to where the cuts are highest (Kelley 1960, The cutting-plane
    method for solving convex programs).
    """
    cuts: list[list[float]] = []
    tried: list[FloatArray] = []
    best, best_weights, weights = None, starts[0], starts[0]
    reached, idle = -math.inf, 0
    while True:
        tree = price(dict(zip(pool, weights, strict=True)))
        tried.append(weights)
        cuts.append([tree.constant, *(course_gain(family, tree.root, course, q) for course in pool)])
        if best is None or tree.value > best.value:
            best, best_weights = tree, weights
        rises = best.value > reached + gap
        reached, idle = (best.value, 0) if rises else (reached, idle + 1)
        if len(tried) < len(starts):
            weights = starts[len(tried)]
            continue
        lowest = lowest_cuts(np.array(cuts), q)
        if len(cuts) >= most or idle >= patience or lowest.height - best.value <= gap:
            return Climb(best_weights, best, tried, np.array(cuts))
        weights = best_weights + STEP * (lowest.weights - best_weights)


@dataclass(frozen=True, eq=False)
class LowestCuts:
    """Where the lowest of the cuts is highest: the weights, (K,), how high, and the shares of the cuts, (m,)."""

    weights: FloatArray
    height: float
    shares: FloatArray


def lowest_cuts(cuts: FloatArray, q: float) -> LowestCuts:
    """Solve the linear programme of the cuts; by its dual, their mean by the shares is nowhere higher."""
    m, k = len(cuts), cuts.shape[1] - 1
    unit = max(float(np.abs(cuts).max()), 1e-300)
    sums = np.array([-np.ones(k), np.ones(k)])
    found = linprog(
        np.append(np.zeros(k), -1.0),
        A_ub=np.block([[-cuts[:, 1:] / unit, np.ones((m, 1))], [sums, np.zeros((2, 1))]]),
        b_ub=np.concatenate([cuts[:, 0] / unit, [-1.0, min(1 / q, MOST_WEIGHT) if q > 0 else MOST_WEIGHT]]),
        bounds=[(0, None)] * k + [(None, None)],
        method="highs",
    )
    solution: Any = found  # its static type allows for a failure, of which a programme with these bounds has none
    shares = np.maximum(-solution.ineqlin.marginals[:m], 0.0)
    return LowestCuts(solution.x[:-1], float(-solution.fun * unit), shares / shares.sum())


def even_weights(count: int, q: float) -> FloatArray:
    """Those of equal chances: each course is published with probability 1 at one extreme of its mass."""
    return np.full(count, 1 / (q * (count - 1) + 1))
