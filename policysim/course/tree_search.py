"""The search for a tree of courses: those that gain most, and the weights at which they are worth most."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product

import numpy as np

from policies.arrays import FloatArray
from policysim.course.course_tree import Node, course_gain, departure_gain, inner_nodes, weighed_tree
from policysim.course.schedules import LEAST_GAIN, ROUNDING, Schedule, Schedules, best_of_all
from policysim.course.tree_weights import PricedTree, climb, even_weights, priced_tree

# Where there are so few courses, all are looked at.
FEW = 128
# Else so many times those that are kept, which are worth most where nothing is hidden, and then more by their gains:
# from so many prefixes that they leave at a time, so many at a time.
GROWN, LEFT, ADDED = 1.5, 6, 6
# The weights take so many steps at most, and end within this share of what there is to gain.
STEPS, GAP = 40, 5e-4
PAIR=2
import os
if os.environ.get('OPT'): exec(os.environ['OPT'])
# Pieces of a node while the weights are sought. Then weights are whole numbers of such sums.
PIECES, SUMS = 64, (24, 48)
# A weight of this share of the largest is none.
NO_WEIGHT = 1e-2
# Equal weights are taken where others are worth no more than by this share of what there is to gain.
NEARLY = 1e-4


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
    """

    family: Schedules
    q: float
    most: int

    @cached_property
    def best_values(self) -> list[FloatArray]:
        """What each state is worth at each place without privacy, (n,)."""
        found = [np.zeros(len(self.family.process.initial))]
        for place in reversed(range(len(self.family.held))):
            columns = [self.family.before(found[-1], action, place) for action in self.family.choices(place)]
            found.append(np.max(columns, axis=0))
        return found[:0:-1]

    @cached_property
    def first(self) -> Schedule:
        """The best schedule for all."""
        return best_of_all(self.family)

    @cached_property
    def stakes(self) -> float:
        """What the best plan gains over the best schedule for all."""
        constant = self.family.values([self.first])[:, 0]
        return float(self.family.process.initial @ (self.best_values[0] - constant))

    def weights(self, start: Sequence[Schedule]) -> Mapping[Schedule, int]:
        """Courses with whole weights; some to start with, such as those of the best choice once."""
        choices = [self.family.choices(place) for place in range(len(self.family.held))]
        few = math.prod(map(len, choices)) <= FEW
        pool = list(product(*choices)) if few else self.grown(dict.fromkeys([self.first, *start]))
        chosen, tree = self.climbed(dict.fromkeys(pool, 0.0))
        while not few:
            new = [course for course in self.lacking(tree, self.q) if course not in chosen][:ADDED]
            more, other = self.climbed({**chosen, **dict.fromkeys(new, 0.0)})
            gain = other.value - tree.value
            if gain > 0:
                chosen, tree = more, other
            if not gain > LEAST_GAIN * self.stakes:
                break
        return self.whole(chosen)

    def climbed(self, weights: Mapping[Schedule, float]) -> tuple[dict[Schedule, float], PricedTree]:
        """The best weights of at most so many of some courses, from halfway between theirs and even ones."""
        price = partial(priced_tree, self.family, q=self.q, most=PIECES)
        start = np.array(list(weights.values()))
        even = even_weights(len(start), self.q)
        start = (start + even) / 2 if start.any() else even
        end = climb(self.family, price, list(weights), [start], self.q, GAP * self.stakes, STEPS)
        kept = {
            course: float(weight)
            for course, weight in zip(weights, end.weights, strict=True)
            if weight > NO_WEIGHT * end.weights.max()
        }
        if len(kept) <= self.most:
            return kept, end.best
        # Those go whose loss costs least where all others have equal weights.
        left = {out: self.value({course: 1 for course in kept if course != out}) for out in kept}
        return self.climbed(dict.fromkeys(sorted(kept, key=lambda out: left[out])[: self.most], 0.0))

    def value(self, weights: Mapping[Schedule, int]) -> float:
        """What whole weights are worth."""
        return weighed_tree(self.family, weights, self.q).value

    def whole(self, weights: Mapping[Schedule, float]) -> Mapping[Schedule, int]:
        """Whole weights near these: of those tried, the ones that are worth most, or equal ones if that is as good."""
        tried = [dict.fromkeys(weights, 1)]
        for units in SUMS:
            near = {course: round(units * weight / sum(weights.values())) for course, weight in weights.items()}
            unit = math.gcd(*near.values())
            tried.append({course: weight // unit for course, weight in near.items() if weight})
        values = [self.value(each) for each in tried]
        return next(each for each, value in zip(tried, values, strict=True) if value >= max(values) - NEARLY * self.stakes)

    def grown(self, start: Iterable[Schedule]) -> list[Schedule]:
        """Courses of which each pair that is added is worth most where nothing has to be hidden."""
        found = list(start)
        while len(found) < GROWN * self.most:
            tree = priced_tree(self.family, dict.fromkeys(found, 1.0), 0.0, PIECES)
            new = [course for course in self.lacking(tree, 0.0) if course not in found][:PAIR]
            if not new:
                break
            found += new
        return found

    def lacking(self, tree: PricedTree, q: float) -> list[Schedule]:
        """Courses that gain most from where they leave a tree, of those that were looked at."""

        def hoped(left: tuple[Schedule, Node]) -> float:
            return -departure_gain(left[1], self.best_values[left[1].place], 0.0)

        gained: dict[Schedule, float] = {}
        for prefix, node in sorted(inner_nodes(tree.root), key=hoped)[:LEFT]:
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
