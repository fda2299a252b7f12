"""The search for a tree of courses: those that gain most, and the weights at which they are worth most."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import linprog

from policies.arrays import FloatArray
from policysim.course.course_tree import (
    Node,
    PricedTree,
    RestValues,
    charge_prices,
    inner_nodes,
    priced_tree,
    weighed_tree,
)
from policysim.course.schedules import LEAST_GAIN, Schedule, Schedules, best_of_all, gain_over, most_gaining

# Of the way to where the cuts are highest, from the best weights.
STEP = 1 / 3
# Weights are at most this in the linear programme.
MOST_WEIGHT = 1e9
# Where there are so few courses, all are looked at.
FEW = 128
# Else so many times those that are kept, as they gain most where nothing is hidden, and then more by their gains. At so
# many prefixes, those of the largest gains, courses leave the tree at a time.
GROWN, PAIR, ADDED, PIECES = 1.25, 2, 6, 24
# While the weights are sought, nodes have so many pieces; so many steps are taken at most, and they end within this
# share of what there is to gain: finer of so few states.
STEPS, GAP = 18, 1e-3
FEW_STATES, FINE_PIECES, FINE_STEPS, FINE_GAP = 1000, 64, 100, 2e-4
# Of so many courses of the least weights one goes, where there are too many: of all of them, of few states.
LIGHTEST = 8
# So many steps that gain less than this share end the search of weights.
PATIENCE = 10
# A weight of this share of the largest is none. In the end weights are whole numbers of such sums.
NO_WEIGHT, SUMS = 1e-2, (24, 48)
# Equal weights are taken where others are worth no more than by this share of what there is to gain.
NEARLY = 1e-4


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
    shares : array, (m,)
        Of the cuts, in their lowest mean (`lowest_cuts`).
    """

    weights: FloatArray
    best: PricedTree
    tried: list[FloatArray]
    cuts: FloatArray
    shares: FloatArray


def climb(
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
        cuts.append([tree.constant, *(tree.gains[course] for course in pool)])
        if best is None or tree.value > best.value:
            best, best_weights = tree, weights
        rises = best.value > reached + gap
        reached, idle = (best.value, 0) if rises else (reached, idle + 1)
        if len(tried) < len(starts):
            weights = starts[len(tried)]
            continue
        highest, height, shares = lowest_cuts(np.array(cuts), q)
        if len(cuts) >= most or idle >= patience or height - best.value <= gap:
            return Climb(best_weights, best, tried, np.array(cuts), shares)
        weights = best_weights + STEP * (highest - best_weights)


def lowest_cuts(cuts: FloatArray, q: float) -> tuple[FloatArray, float, FloatArray]:
    """Where the lowest of the cuts is highest: the weights, (K,), how high, and the shares of the cuts, (m,).

    By the dual of this linear programme their mean by the shares is nowhere higher.
    """
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
    return solution.x[:-1], float(-solution.fun * unit), shares / shares.sum()


def even_weights(count: int, q: float) -> FloatArray:
    """Those of equal chances: each course is published with probability 1 at one extreme of its mass."""
    return np.full(count, 1 / (q * (count - 1) + 1))


class TreeSearch:
    """The search of one public class.

    Parameters
    ----------
    family : Schedules
    q : float
        e^-epsilon.
    most : int
        How many courses there may be.
    """

    def __init__(self, family: Schedules, q: float, most: int) -> None:
        self.family, self.q, self.most = family, q, most
        self.worth = RestValues(family)
        self.choices = [family.choices(step) for step in range(len(family.held))]
        # Whether there are so few courses that all are looked at; so few states that weights are sought more finely.
        self.few = math.prod(map(len, self.choices)) <= FEW
        self.fine = len(family.process.initial) <= FEW_STATES
        self.first = best_of_all(family)

    @cached_property
    def stakes(self) -> float:
        """What the best plan gains over the best schedule for all."""
        family, best = self.family, self.worth.ends
        for step in reversed(range(len(family.held))):
            best = np.max([family.before(best, action, step) for action in self.choices[step]], axis=0)
        return float(family.process.initial @ (best - self.worth(self.first)))

    def weights(self, start: Sequence[Schedule]) -> Mapping[Schedule, int]:
        """Courses with whole weights; some to start with, such as those of the best choice once."""
        pool = list(product(*self.choices)) if self.few else self.grown(start)
        weights, tree = self.climbed(dict.fromkeys(pool, 0.0))
        while not self.few:
            lacking = [course for course in self.lacking(tree, self.q) if course not in weights][:ADDED]
            more, larger = self.climbed({**weights, **dict.fromkeys(lacking, 0.0)})
            gain = larger.value - tree.value
            if gain > 0:
                weights, tree = more, larger
            if not gain > LEAST_GAIN * self.stakes:
                break
        return self.whole(weights)

    def grown(self, start: Sequence[Schedule]) -> list[Schedule]:
        """Courses of which each pair that is added is worth most where nothing has to be hidden."""
        pool = list(dict.fromkeys([self.first, *start]))
        while len(pool) < GROWN * self.most:
            tree = priced_tree(self.worth, dict.fromkeys(pool, 1.0), 0.0, PIECES)
            lacking = [course for course in self.lacking(tree, 0.0) if course not in pool][:PAIR]
            if not lacking:
                break
            pool += lacking
        return pool

    def climbed(self, weights: Mapping[Schedule, float]) -> tuple[dict[Schedule, float], PricedTree]:
        """The best weights of at most so many of some courses, from halfway between theirs and even ones."""
        even = even_weights(len(weights), self.q)
        start = np.array(list(weights.values()))
        start = (start + even) / 2 if start.any() else even
        steps, gap = (FINE_STEPS, FINE_GAP) if self.fine else (STEPS, GAP)
        top = climb(self.priced, list(weights), [start], q=self.q, gap=gap * self.stakes, most=steps, patience=PATIENCE)
        heavy = {
            course: float(weight)
            for course, weight in zip(weights, top.weights, strict=True)
            if weight > NO_WEIGHT * top.weights.max()
        }
        if len(heavy) <= self.most:
            return heavy, top.best
        fewer = self.fewest(heavy)
        if self.fine:
            return self.climbed(dict.fromkeys(fewer, 0.0))
        scale = even_weights(len(fewer), self.q).sum() / sum(heavy[course] for course in fewer)
        scaled = {course: heavy[course] * scale for course in fewer}
        return scaled, self.priced(scaled)

    def fewest(self, weights: Mapping[Schedule, float]) -> list[Schedule]:
        """As many courses as there may be: one after the other goes, that whose loss costs least.

        All others have equal weights then: of two courses that stand in for each other only one may go.
        """
        courses = list(weights)
        while len(courses) > self.most:
            lightest = sorted(courses, key=lambda course: weights[course])[: None if self.fine else LIGHTEST]
            without = [[course for course in courses if course != out] for out in lightest]
            courses = max(without, key=lambda left: self.value(dict.fromkeys(left, 1)))
        return courses

    def priced(self, weights: Mapping[Schedule, float]) -> PricedTree:
        """The tree of some weights, while better ones are sought."""
        return priced_tree(self.worth, weights, self.q, FINE_PIECES if self.fine else PIECES)

    def value(self, weights: Mapping[Schedule, int]) -> float:
        """What whole weights are worth."""
        return weighed_tree(self.worth, weights, self.q)[2]

    def whole(self, weights: Mapping[Schedule, float]) -> Mapping[Schedule, int]:
        """Whole weights near these: of those tried, the ones that are worth most, or equal ones if that is as good."""
        tried = [dict.fromkeys(weights, 1)]
        for units in SUMS:
            near = {course: round(units * weight / sum(weights.values())) for course, weight in weights.items()}
            unit = math.gcd(*near.values())
            tried.append({course: weight // unit for course, weight in near.items() if weight})
        values = list(map(self.value, tried))
        return tried[next(i for i, value in enumerate(values) if value >= max(values) - NEARLY * self.stakes)]

    def lacking(self, tree: PricedTree, q: float) -> list[Schedule]:
        """Courses that gain most, one for each prefix that they leave the tree at: another action for a while."""
        family, courses = self.family, sorted(tree.gains)
        charge_prices(family, tree.root, tree.root.mass, q, wanted=True)
        best: list[tuple[float, Schedule, Node]] = []
        for node in inner_nodes(tree.root):
            step, inside = len(node.prefix), {branch.action for branch in node.branches}
            outside = [action for action in self.choices[step] if action not in inside]
            rests = dict.fromkeys(
                (action,) * length + course[step + length :]
                for course, action, length in product(courses, outside, range(1, len(family.held) - step + 1))
                if course[:step] == node.prefix
            )
            gains = {rest: gain_over(node.mass, node.slopes, self.worth(rest), q) for rest in rests}
            if gains:
                most = max(gains, key=lambda rest: gains[rest])
                best.append((gains[most], most, node))
        lacking = []
        for _, start, node in sorted(best, key=lambda leaving: -leaving[0])[:ADDED]:
            later = replace(family, held=family.held[len(node.prefix) :])
            lacking.append((*node.prefix, *most_gaining(later, node.mass, node.slopes, start, q)[0]))
        return lacking
