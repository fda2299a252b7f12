"""The search for a tree of courses: those that gain most, and the weights at which they are worth most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product

import numpy as np

from policies.arrays import FloatArray
from policysim.course.course_tree import Node, course_gain, departure_gain, joined, value_tree
from policysim.course.schedules import LEAST_GAIN, ROUNDING, Schedule, Schedules
from policysim.course.tree_weights import PricedTree, climb, even_weights, priced_tree

# Weights are whole numbers that sum to about this.
UNITS = 48
# Where there are so few courses, all are looked at.
FEW = 128
# From how many nodes courses may leave the tree at a time, and how many are added.
LEFT, ADDED = 6, 6
# The weights take so many steps at most, and end within this share of what there is to gain.
STEPS, GAP = 60, 2e-4
# Pieces of a node while the weights are sought.
PIECES = 64


@dataclass(frozen=True, eq=False)
class WeighedTree:
    """Courses with whole weights, and the best mechanism that reacts within their tree.

    Attributes
    ----------
    weights : mapping of Schedule to int
    root : Node
    level : int
        How many pieces are poured onto the lowest masses of the root, so that all are 1.
    value : float
    """

    weights: Mapping[Schedule, int]
    root: Node
    level: int
    value: float


def weighed_tree(family: Schedules, weights: Mapping[Schedule, int], q: float) -> WeighedTree:
    """The best mechanism of courses and whole weights, at the best scale of these."""
    prior, root = family.process.initial, value_tree(family, weights, joined)
    widths = np.concatenate([[0.0], root.widths])
    gained = np.cumsum(widths * np.concatenate([[0.0], root.slopes @ prior]))
    worth = q * root.weight * float(prior @ root.base) + (1 - q) * gained
    mass = q * root.weight + (1 - q) * np.cumsum(widths)
    values = np.divide(worth, mass, out=np.full(len(mass), -np.inf), where=mass > 0)
    level = int(values.argmax())
    return WeighedTree(weights, root, level, float(values[level]))


@dataclass(frozen=True, eq=False)
class TreeSearch:
    """The search of one public class.

    Parameters
    ----------
    family : Schedules
    q : float
        e^-epsilon.
    most : int
        How many courses there may be.
    stakes : float
        What the best plan gains over one schedule for all.
    """

    family: Schedules
    q: float
    most: int
    stakes: float

    @cached_property
    def best_values(self) -> list[FloatArray]:
        """What each state is worth at each place without privacy, (n,)."""
        values, found = np.zeros(len(self.family.process.initial)), []
        for place in reversed(range(len(self.family.held))):
            values = np.max([self.family.before(values, a, place) for a in self.family.choices(place)], axis=0)
            found.append(values)
        return found[::-1]

    def found(self, start: Sequence[Schedule], weights: FloatArray) -> Mapping[Schedule, int]:
        """Whole weights of courses, from some to start with and their weights."""
        choices = [self.family.choices(place) for place in range(len(self.family.held))]
        few = np.prod([float(len(each)) for each in choices]) <= FEW
        if few:
            pool = list(product(*choices))
        else:
            pool = list(dict.fromkeys([*start, *self.grown()]))
        by_course = dict(zip(start, weights, strict=True))
        even = even_weights(len(pool), self.q)[0]
        chosen = self.climbed(dict.fromkeys(pool, even))
        if os.environ.get("START"):
            chosen = max(chosen, self.climbed({c: by_course.get(c, 0.0) for c in pool}), key=lambda c: c[1].value)
        while not few:
            new = [c for c in self.lacking(chosen[1], self.q) if c not in chosen[0]][:ADDED]
            more = self.climbed({**chosen[0], **dict.fromkeys(new, 0.0)})
            gain = more[1].value - chosen[1].value
            if gain > 0:
                chosen = more
            if not gain > LEAST_GAIN * self.stakes:
                break
        return self.whole(chosen[0])

    def climbed(self, weights):
        """The best weights of courses, at most as many as there may be."""
        price = partial(priced_tree, self.family, q=self.q, most=PIECES)
        while True:
            pool = list(weights)
            start = MIX * np.array(list(weights.values())) + (1 - MIX) * even_weights(len(pool), self.q)
            end = climb(self.family, price, pool, start, self.q, GAP * self.stakes, STEPS)
            if os.environ.get("TREE"): print("climbed", len(pool), len(end.cuts), end.best.value, end.bound, (end.weights > 1e-2).sum())
            order = [i for i in np.argsort(-end.weights, kind="stable") if end.weights[i] > 1e-2 * end.weights.max()]
            weights = {pool[i]: end.weights[i] for i in order[: self.most]}
            if len(order) <= self.most:
                return weights, end.best
            total = sum(weights.values()); s = len(weights) / (self.q * (len(weights) - 1) + 1) / total
            weights = {c: w * s for c, w in weights.items()}

    def whole(self, weights: Mapping[Schedule, float]) -> Mapping[Schedule, int]:
        """Whole weights near these: of those tried, the ones that are worth most."""
        total = sum(weights.values())
        tried = [dict.fromkeys(weights, 1)]
        for units in (UNITS // 2, UNITS):
            near = {course: round(units * weight / total) for course, weight in weights.items()}
            tried.append({course: weight for course, weight in near.items() if weight})
        return max(tried, key=lambda each: weighed_tree(self.family, each, self.q).value)

    def grown(self) -> list[Schedule]:
        """Courses that, each in turn, are worth most where nothing has to be hidden."""
        first = best_of_all(self.family)
        found = [first]
        while len(found) < 1.5 * self.most:
            tree = priced_tree(self.family, dict.fromkeys(sorted(found), 1.0), 0.0, PIECES)
            new = [c for c in self.lacking(tree, 0.0) if c not in found][:2]
            if not new:
                break
            found += new
        if os.environ.get("TREE"): print("grown", found)
        return found

    def lacking(self, tree: PricedTree, q: float) -> list[Schedule]:
        """Courses that would gain most, of those that were looked at."""
        nodes = sorted(
            _inner(tree.root), key=lambda pair: -departure_gain(pair[1], self.best_values[pair[1].place], 0.0)
        )
        gained: dict[Schedule, float] = {}
        for prefix, node in nodes[:LEFT]:
            rest = replace(self.family, held=self.family.held[node.place :])
            for action in self.family.choices(node.place):
                course = (*prefix, *_ascent(node, rest, (action,) * len(rest.held), q))
                if course not in gained:
                    gained[course] = course_gain(self.family, tree.root, course, q)
        return sorted(gained, key=lambda course: -gained[course])


def _ascent(node: Node, rest: Schedules, course: Schedule, q: float) -> Schedule:
    """The rest of a course that gains more, where it leaves a tree at a node."""
    gained, worth = -np.inf, rest.values([course])[:, 0]
    while True:
        weights = np.zeros(len(worth))
        for mass, price in zip(node.mass, node.slopes, strict=True):
            weights += mass * np.where(worth > price, 1.0, q)
        better = rest.best(weights, course)
        worth = rest.values([better])[:, 0]
        gain = departure_gain(node, worth, q)
        if not gain > gained + ROUNDING * abs(gain):
            return course
        course, gained = better, gain


def _inner(root: Node) -> Iterator[tuple[Schedule, Node]]:
    """All nodes at which another action can follow, with their prefixes."""
    waiting: list[tuple[Schedule, Node]] = [((), root)]
    while waiting:
        prefix, node = waiting.pop()
        if node.branches:
            yield prefix, node
            waiting += [((*prefix, branch.action), branch.child) for branch in node.branches]
import os
from policysim.course.schedules import best_of_all
MIX = float(os.environ.get('MIX', '.5'))
