"""The search for a tree of courses: those that gain most, and the weights at which they are worth most."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product

import numpy as np

from policies.arrays import FloatArray
from policysim.course.course_tree import (
    Node,
    PricedTree,
    charged,
    climb,
    departure_gain,
    even_weights,
    inner_nodes,
    priced_tree,
    weighed_tree,
)
from policysim.course.schedules import LEAST_GAIN, ROUNDING, Schedule, Schedules, best_of_all

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
# So many numbers of what rests of courses are worth are remembered.
REMEMBERED = 1 << 25


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
    known: dict[Schedule, FloatArray] = field(default_factory=dict)

    @cached_property
    def first(self) -> Schedule:
        """The best schedule for all."""
        return best_of_all(self.family)

    @cached_property
    def stakes(self) -> float:
        """What the best plan gains over the best schedule for all."""
        family, best = self.family, np.zeros(len(self.family.process.initial))
        for place in reversed(range(len(family.held))):
            best = np.max([family.before(best, action, place) for action in family.choices(place)], axis=0)
        return float(family.process.initial @ (best - family.values([self.first])[:, 0]))

    def weights(self, start: Sequence[Schedule]) -> Mapping[Schedule, int]:
        """Courses with whole weights; some to start with, such as those of the best choice once."""
        choices = [self.family.choices(place) for place in range(len(self.family.held))]
        pool = list(product(*choices)) if self.few else self.grown(dict.fromkeys([self.first, *start]))
        chosen, tree = self.climbed(dict.fromkeys(pool, 0.0))
        while not self.few:
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
        even = even_weights(len(weights), self.q)
        start = np.array(list(weights.values()))
        start = (start + even) / 2 if start.any() else even
        steps, gap = (FINE_STEPS, FINE_GAP) if self.fine else (STEPS, GAP)
        least = gap * self.stakes
        end = climb(
            self.family, self.priced, list(weights), [start], q=self.q, gap=least, most=steps, patience=PATIENCE
        )
        kept = {
            course: float(weight)
            for course, weight in zip(weights, end.weights, strict=True)
            if weight > NO_WEIGHT * end.weights.max()
        }
        if len(kept) <= self.most:
            return kept, end.best
        # One after the other goes, that whose loss costs least where all others have equal weights: of two courses that
        # stand in for each other only one may go.
        fewer = dict.fromkeys(kept, 1)
        while len(fewer) > self.most:
            lightest = sorted(fewer, key=lambda course: kept[course])[: None if self.fine else LIGHTEST]
            left = [{course: 1 for course in fewer if course != out} for out in lightest]
            fewer = max(left, key=self.value)
        if self.fine:
            return self.climbed(dict.fromkeys(fewer, 0.0))
        scale = even_weights(len(fewer), self.q).sum() / sum(kept[course] for course in fewer)
        found = {course: kept[course] * scale for course in fewer}
        return found, self.priced(found)

    @cached_property
    def few(self) -> bool:
        """Whether there are so few courses that all are looked at."""
        return math.prod(len(self.family.choices(place)) for place in range(len(self.family.held))) <= FEW

    @property
    def fine(self) -> bool:
        """Whether there are so few states that weights are sought more finely."""
        return len(self.family.process.initial) <= FEW_STATES

    def priced(self, weights: Mapping[Schedule, float]) -> PricedTree:
        """The tree of some weights, while better ones are sought."""
        pieces = FINE_PIECES if self.fine else PIECES
        return priced_tree(self.family, weights, self.q, pieces, known=self.remembered)

    def value(self, weights: Mapping[Schedule, int]) -> float:
        """What whole weights are worth."""
        _, _, value = weighed_tree(self.family, weights, self.q, self.remembered)
        return value

    def whole(self, weights: Mapping[Schedule, float]) -> Mapping[Schedule, int]:
        """Whole weights near these: of those tried, the ones that are worth most, or equal ones if that is as good."""
        tried = [dict.fromkeys(weights, 1)]
        for units in SUMS:
            near = {course: round(units * weight / sum(weights.values())) for course, weight in weights.items()}
            unit = math.gcd(*near.values())
            tried.append({course: weight // unit for course, weight in near.items() if weight})
        values = [self.value(each) for each in tried]
        return next(
            each for each, value in zip(tried, values, strict=True) if value >= max(values) - NEARLY * self.stakes
        )

    def grown(self, start: Iterable[Schedule]) -> list[Schedule]:
        """Courses of which each pair that is added is worth most where nothing has to be hidden."""
        found = list(start)
        while len(found) < GROWN * self.most:
            tree = priced_tree(self.family, dict.fromkeys(found, 1.0), 0.0, PIECES, known=self.remembered)
            new = [course for course in self.lacking(tree, 0.0) if course not in found][:PAIR]
            if not new:
                break
            found += new
        return found

    def lacking(self, tree: PricedTree, q: float) -> list[Schedule]:
        """Courses that gain most, one for each prefix that they leave the tree at: another action for a while."""
        charged(self.family, tree.root, tree.root.mass, q, wanted=True)
        gained: dict[Schedule, tuple[float, Schedule, Node]] = {}
        for prefix, node in inner_nodes(tree.root):
            actions = [action for action in self.family.choices(node.place) if node.branch(action) is None]
            rests = list(_rests(node)) if actions else []
            for rest, action, length in product(rests, actions, range(1, len(self.family.held) - node.place + 1)):
                new = (action,) * length + rest[length:]
                gain = departure_gain(node, self.worth(new), q)
                if prefix not in gained or gain > gained[prefix][0]:
                    gained[prefix] = (gain, new, node)
        found = []
        for prefix, (_, new, node) in sorted(gained.items(), key=lambda left: -left[1][0])[:ADDED]:
            remaining = replace(self.family, held=self.family.held[node.place :])
            found.append((*prefix, *_ascent(node, remaining, new, q)))
        return found

    @property
    def remembered(self) -> dict[Schedule, FloatArray]:
        """What rests of courses are worth, (n,) each, as far as they are remembered."""
        if len(self.known) * len(self.family.process.initial) > REMEMBERED:
            self.known.clear()
        return self.known

    def worth(self, rest: Schedule) -> FloatArray:
        """What each state is worth if the last actions are these, (n,)."""
        if not rest:
            return np.zeros(len(self.family.process.initial))
        known = self.remembered
        if rest not in known:
            known[rest] = self.family.before(self.worth(rest[1:]), rest[0], len(self.family.held) - len(rest))
        return known[rest]


def _rests(node: Node) -> Iterator[Schedule]:
    """The rests of all courses after a prefix."""
    if not node.branches:
        yield ()
    for branch in node.branches:
        yield from ((branch.action, *rest) for rest in _rests(branch.child))


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
