"""The search for a tree of courses and their weights: courses by what they gain, weights by cutting planes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import linprog

from policies.arrays import FloatArray
from policysim.course.course_tree import Node, charged, course_gain, departure_gain, gains, joined, value_tree
from policysim.course.schedules import LEAST_GAIN, ROUNDING, Schedule, Schedules

# Weights are whole numbers that sum to about this.
UNITS = 48
# From how many nodes courses may leave the tree at a time, and how many steps the weights take.
LEFT, STEPS = 8, 25
# After so many courses that raise nothing no other one is tried.
ADDED = 12


@dataclass(frozen=True)
class WeighedTree:
    """Courses with whole weights, and the best mechanism that reacts within their tree.

    Attributes
    ----------
    weights : dict of Schedule to int
    root : Node
    level : int
        How many pieces of the root are taken: its mass is 1.
    value : float
    """

    weights: dict[Schedule, int]
    root: Node
    level: int
    value: float


def weighed_tree(family: Schedules, weights: dict[Schedule, int], q: float) -> WeighedTree:
    """The best mechanism of courses and weights, at their best scale."""
    prior = family.process.initial
    root = value_tree(family, weights, joined)
    widths = np.concatenate([[0.0], root.widths])
    taken = np.cumsum(widths)
    worth = q * root.weight * float(prior @ root.base) + (1 - q) * np.cumsum(
        widths * np.concatenate([[0.0], root.slopes @ prior])
    )
    mass = q * root.weight + (1 - q) * taken
    values = np.divide(worth, mass, out=np.full(len(mass), -np.inf), where=mass > 0)
    level = int(values.argmax())
    return WeighedTree(weights, root, level, float(values[level]))


class TreeSearch:
    """Finds a tree for one public class.

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

    @cached_property
    def best_values(self) -> list[FloatArray]:
        """What each state is worth at each place without privacy, (n,)."""
        values, found = np.zeros(len(self.family.process.initial)), []
        for place in reversed(range(len(self.family.held))):
            values = np.max([self.family.before(values, a, place) for a in self.family.choices(place)], axis=0)
            found.append(values)
        return found[::-1]

    def weighed(self, start: WeighedTree, pool: Sequence[Schedule]) -> WeighedTree:
        """Move the weights of courses to where the value is higher, by cutting planes (it is concave in them)."""
        found, best, cuts, radius = start, start, [], 1.0
        tried = {self.ratio(start, pool)}
        for _ in range(STEPS):
            prices = float(sum(mass @ price for mass, price in zip(found.root.mass, found.root.slopes, strict=True)))
            cuts.append([prices, *(course_gain(self.family, found.root, course, self.q) for course in pool)])
            now = np.array([best.weights.get(course, 0) for course in pool], dtype=np.float64)
            now /= self.q * best.root.weight + (1 - self.q) * best.root.widths[: best.level].sum()
            while radius > 1 / UNITS:
                near = radius * now.sum() / np.count_nonzero(now)
                wanted, bound = highest(np.array(cuts), self.q, now - near, now + near)
                if bound - best.value < 1e-4 * self.stakes:
                    return best
                whole = np.rint(UNITS * wanted / wanted.sum()).astype(int)
                weights = {course: int(weight) for course, weight in zip(pool, whole, strict=True) if weight > 0}
                found = self.at(weights)
                if self.ratio(found, pool) not in tried:
                    break
                radius /= 2
            else:
                return best
            tried.add(self.ratio(found, pool))
            if os.environ.get("TREE"): print("   weighed", found.value, bound, radius, whole)
            if found.value > best.value:
                best = found
            else:
                radius *= 0.6
        return best

    def ratio(self, found, pool):
        whole = np.array([found.weights.get(course, 0) for course in pool])
        return tuple(whole // np.gcd.reduce(whole))

    @cached_property
    def stakes(self) -> float:
        prior = self.family.process.initial
        return float(prior @ self.best_values[0]) - max(float(prior @ self.family.values([(a,) * len(self.family.held)])[:, 0]) for a in self.family.choices(len(self.family.held) - 1))

    def searched(self, start):
        best = self.at(start)
        while True:
            before = best.value
            new = self.lacking(best)
            if not new:
                return best
            mean = max(1, round(sum(best.weights.values()) / len(best.weights)))
            pool = self.at({**best.weights, **dict.fromkeys(new[:ADDED], mean)})
            best = max(self.weighed(pool if pool.value > best.value else best, list(pool.weights)), best, key=lambda f: f.value)
            while len(best.weights) > self.most:
                fewer = sorted(best.weights, key=lambda c: best.weights[c])[:4]
                best = max((self.at({c: w for c, w in best.weights.items() if c != out}) for out in fewer), key=lambda f: f.value)
            if os.environ.get("TREE"): print("round", before, best.value, len(best.weights))
            if not best.value > before + LEAST_GAIN * self.stakes:
                return best

    def at(self, weights: dict[Schedule, int]) -> WeighedTree:
        """The tree of these weights, with its prices."""
        found = weighed_tree(self.family, weights, self.q)
        root, level, prior = found.root, found.level, self.family.process.initial
        # Two prices between which the value is the best of its scale.
        left, right = max(level - 1, 0), min(level, len(root.slopes) - 1)
        high, low = root.slopes[left] @ prior, root.slopes[right] @ prior
        share = min(max((found.value - low) / (high - low), 0.0), 1.0) if high > low else 1.0
        mass = np.zeros(root.slopes.shape)
        mass[left] += share * prior
        mass[right] += (1 - share) * prior
        charged(self.family, root, mass, self.q)
        return found

    def lacking(self, found: WeighedTree) -> list[Schedule]:
        """The courses that gain most, of those that were looked at."""
        nodes = sorted(_inner(found.root), key=lambda pair: -departure_gain(pair[1], self.best_values[pair[1].place], 0.0))
        gained: dict[Schedule, float] = {}
        for prefix, node in nodes[:LEFT]:
            rest = replace(self.family, held=self.family.held[node.place :])
            for action in self.family.choices(node.place):
                course = (*prefix, *self.ascent(node, rest, (action,) * len(rest.held)))
                if course not in found.weights and course not in gained:
                    gained[course] = course_gain(self.family, found.root, course, self.q)
        return sorted(gained, key=lambda course: -gained[course])

    def ascent(self, node: Node, rest: Schedules, course: Schedule) -> Schedule:
        """A rest of a course that gains more, where it leaves the tree at a node."""
        gained = -np.inf
        worth = rest.values([course])[:, 0]
        while True:
            weights = sum(
                (mass * np.where(worth > price, 1.0, self.q) for mass, price in zip(node.mass, node.slopes, strict=True)),
                np.zeros(len(worth)),
            )
            better = rest.best(weights, course)
            worth = rest.values([better])[:, 0]
            gain = departure_gain(node, worth, self.q)
            if not gain > gained + ROUNDING * abs(gained):
                return course
            course, gained = better, gain


def highest(cuts: FloatArray, q: float, low=0.0, high=np.inf) -> tuple[FloatArray, float]:
    """The weights at which the least of the cuts (constant, then for each weight) is highest, and how high."""
    m, k = cuts.shape[0], cuts.shape[1] - 1
    unit = max(1e-300, np.abs(cuts[:, 1:]).max())
    found = linprog(
        np.append(np.zeros(k), -1.0),
        A_ub=np.vstack([np.column_stack([-cuts[:, 1:] / unit, np.ones(m)]), np.append(-np.ones(k), 0.0), np.append(np.ones(k), 0.0)]),
        b_ub=np.concatenate([cuts[:, 0] / unit, [-1.0, min(1 / q if q else 1e12, 1e12)]]),
        bounds=np.vstack([np.column_stack([np.maximum(low, np.zeros(k)), high + np.zeros(k)]), [-np.inf, np.inf]]),
    )
    return found.x[:-1], -found.fun * unit


def _inner(root: Node) -> Iterator[tuple[Schedule, Node]]:
    """All nodes at which another action can follow, with their prefixes."""
    waiting: list[tuple[Schedule, Node]] = [((), root)]
    while waiting:
        prefix, node = waiting.pop()
        if node.branches:
            yield prefix, node
            waiting += [((*prefix, branch.action), branch.child) for branch in node.branches]
import os
