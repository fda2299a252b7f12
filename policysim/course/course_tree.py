"""A tree of published courses with reference weights: the best mechanism that reacts within it, and what bounds all.

A mechanism publishes a course of actions a with probability q(a|s), given the course of states s so far. It is
epsilon-private exactly if there are weights z_a >= 0 with e^-epsilon z_a <= q(a|s) <= z_a for all s. With z fixed, the
largest value V(z) is found backwards. A published prefix h has weight Z(h), the sum of those of its courses, and mass
q Z(h) + (1 - q) y for some y in [0, Z(h)], where q = e^-epsilon. The value of this mass in state s is q base + (1 - q)
times the integral of a falling function of y, the same for all that hide each other: concave and piecewise linear. Its
pieces are those of the branches h + a, each the reward and the mean of the pieces that follow, sorted by slope.

V is concave in z. Any prices lambda of the mass of each history bound it for every z' on any courses whatever:

    V(z') <= E[lambda(root)] + sum over the prefixes h + a of Z'(h + a) E[f(r(s, a) + E lambda(h + a) - lambda(h))],

f(x) = max(x, 0) - q max(-x, 0): add lambda times (mass that enters a history - mass that leaves it) = 0 to the value,
and bound each mass by q Z' and Z'. Prices may be drawn at random, since the identity holds for each draw. The slopes of
the pieces at the optimum of z are prices for which both sides agree at z. The best weights are found by such bounds as
cutting planes, which also say what no weights exceed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from policies.arrays import FloatArray
from policysim.course.schedules import Schedule, Schedules, mass_after

# So many states are sorted at a time.
BLOCK = 1 << 14
NOTHING = np.zeros((0, 0))
# Points nearer than this share of a weight are one.
SAME = 1e-7
# A course of no weight has this share of the largest: so its prices are those of what would come of it.
LEAST_WEIGHT = 1e-9
# Of the way to where the cuts are highest, from the best weights.
STEP = 1 / 3
# Weights are at most this in the linear programme.
MOST_WEIGHT = 1e9


@dataclass(eq=False)
class Branch:
    """An action after a published prefix, and what follows it; `slopes`, (L, n), are those of the child before it."""

    action: int
    child: Node
    base: FloatArray
    slopes: FloatArray
    charge: float = 0.0

    @property
    def rest(self) -> Schedule | None:
        """The only course that begins with it; None where there are several."""
        return None if self.child.rest is None else (self.action, *self.child.rest)


@dataclass(eq=False)
class Node:
    """A published prefix.

    Attributes
    ----------
    place : int
        How many actions it has.
    base : array, (n,)
        What each state is worth per mass, at the lowest mass.
    slopes : array, (L, n)
        What each piece of mass is worth, falling.
    widths : array, (L,)
        Of the pieces: their sum is the weight of the prefix.
    branches : tuple of Branch
        None after the last action.
    owners : array of int, (L, n), or None
        From which branch each piece is, if there are several.
    mass : array, (L, n)
        Of the states that pay the slope of each piece as the price of mass (`charged`), discounted.
    rest : tuple of int, or None
        The only course that follows it; None where there are several.
    """

    place: int
    base: FloatArray
    slopes: FloatArray
    widths: FloatArray
    branches: tuple[Branch, ...] = ()
    owners: NDArray[np.uint8] | None = None
    mass: FloatArray = field(default_factory=lambda: NOTHING)
    rest: Schedule | None = None

    @property
    def weight(self) -> float:
        """Z(h)."""
        return float(self.widths.sum())

    def branch(self, action: int) -> Branch | None:
        """That of an action, if there is one."""
        return next((branch for branch in self.branches if branch.action == action), None)


Join: TypeAlias = Callable[[int, tuple[Branch, ...]], Node]


def value_tree(
    family: Schedules,
    weights: Mapping[Schedule, float],
    join: Join,
    ends: FloatArray | None = None,
    *,
    bare: bool = False,
    known: dict[Schedule, FloatArray] | None = None,
) -> Node:
    """The root of a tree of courses, with the pieces of all its nodes.

    Parameters
    ----------
    family : Schedules
    weights : mapping of Schedule to float
        Of the courses, > 0.
    join : callable
        Makes a node of its place and several branches.
    ends : array, (n,), optional
        What each state is worth after the last action; 0 by default.
    bare : bool
        Whether to drop what the pieces below the root are worth: less memory, and enough to act by.
    known : dict of Schedule to array, (n,), optional
        What the last actions are worth where no others follow: filled, and not computed again.
    """
    last = np.zeros(len(family.process.initial)) if ends is None else ends
    nodes = {
        course: Node(len(course), last, last[None], np.array([weight], dtype=np.float64), rest=())
        for course, weight in sorted(weights.items())
    }
    for place in reversed(range(len(family.held))):
        groups: dict[Schedule, list[Branch]] = {}
        for (*prefix, action), child in nodes.items():
            if child.rest is None:
                base, *rows = (family.before(row, action, place) for row in (child.base, *child.slopes))
                slopes = np.stack(rows)
            else:
                # Whatever its mass is, the same follows.
                rest = (action, *child.rest)
                base = known[rest] if known and rest in known else family.before(child.base, action, place)
                slopes = base[None]
                if known is not None:
                    known[rest] = base
            groups.setdefault(tuple(prefix), []).append(Branch(action, child, base, slopes))
        nodes = {}
        for start, branches in groups.items():
            one = branches[0]
            nodes[start] = (
                Node(place, one.base, one.slopes, one.child.widths, (one,), rest=one.rest)
                if len(branches) == 1
                else join(place, tuple(branches))
            )
            for branch in branches if bare else ():
                branch.base = branch.slopes = branch.child.base = branch.child.slopes = NOTHING
    return nodes[()]


def weighed_tree(
    family: Schedules, weights: Mapping[Schedule, int], q: float, known: dict[Schedule, FloatArray] | None = None
) -> tuple[Node, float, float]:
    """The best mechanism of courses and whole weights, at the best scale of these: one of so many values.

    Returns its root, how much is poured onto the lowest mass of the root, so that all is 1 in some unit, and its value.
    """
    prior, root = family.process.initial, value_tree(family, weights, joined_pieces, bare=True, known=known)
    poured = np.concatenate([[0.0], np.cumsum(root.widths)])
    gained = np.concatenate([[0.0], np.cumsum(root.widths * (root.slopes @ prior))])
    mass = q * root.weight + (1 - q) * poured
    worth = q * root.weight * float(prior @ root.base) + (1 - q) * gained
    values = np.divide(worth, mass, out=np.full(len(mass), -np.inf), where=mass > 0)
    level = int(values.argmax())
    return root, float(poured[level]), float(values[level])


def joined_pieces(place: int, branches: tuple[Branch, ...]) -> Node:
    """The pieces of several branches, sorted by slope in each state, where all weights are whole numbers."""
    widths = np.concatenate([branch.child.widths for branch in branches])
    unit = np.gcd.reduce(widths.astype(np.int64))
    of_branch = [np.rint(branch.child.widths / unit).astype(np.int64) for branch in branches]
    owner = np.repeat(np.arange(len(branches), dtype=np.uint8), [parts.sum() for parts in of_branch])
    slopes = np.empty((len(owner), len(branches[0].base)))
    owners = np.empty(slopes.shape, dtype=np.uint8)
    for some in state_blocks(slopes.shape[1]):
        pieces = np.concatenate(
            [
                np.repeat(branch.slopes[:, some], parts, axis=0)
                for branch, parts in zip(branches, of_branch, strict=True)
            ]
        )
        order = np.argsort(-pieces, axis=0, kind="stable")
        slopes[:, some], owners[:, some] = np.take_along_axis(pieces, order, axis=0), owner[order]
    return Node(place, mean_base(branches), slopes, np.full(len(owner), float(unit)), branches, owners)


def poured(branches: Sequence[Branch], points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What the best so many units of the branches' pieces are worth, and what the next piece is: (P, n) each."""
    widths = np.concatenate([branch.child.widths for branch in branches])
    worth = np.empty((len(points), len(branches[0].base)))
    slopes = np.empty(worth.shape)
    for some in state_blocks(worth.shape[1]):
        pieces = np.concatenate([branch.slopes[:, some] for branch in branches])
        order = np.argsort(-pieces, axis=0)
        pieces = np.take_along_axis(pieces, order, axis=0)
        ends = np.cumsum(widths[order], axis=0)
        totals, columns = np.cumsum(widths[order] * pieces, axis=0), np.arange(pieces.shape[1])
        for row, point in enumerate(points):
            last = np.minimum((ends < point).sum(axis=0), len(pieces) - 1)
            slopes[row, some] = pieces[last, columns]
            worth[row, some] = totals[last, columns] - slopes[row, some] * (ends[last, columns] - point)
    return worth, slopes


def mixed(place: int, branches: tuple[Branch, ...], most: int) -> Node:
    """The pieces of several branches of any weights: exact where their sums are `most` or fewer, else some of them.

    Fewer pieces have a lower value, that of a lottery.
    """
    points = np.zeros(1)
    for branch in branches:
        ends = np.concatenate([[0.0], np.cumsum(branch.child.widths)])
        sums = np.sort(np.add.outer(points, ends).ravel())
        apart = np.concatenate([[True], np.diff(sums) > SAME * sums[-1]])
        apart[-1] = True
        points = sums[apart]
        if len(points) > most + 1:
            even = np.linspace(0.0, points[-1], most + 1)
            points = points[np.unique(np.abs(points[:, None] - even).argmin(axis=0))]
    widths = np.diff(points)
    slopes = np.diff(poured(branches, points)[0], axis=0) / widths[:, None]
    return Node(place, mean_base(branches), slopes, widths, branches)


def mean_base(branches: Sequence[Branch]) -> FloatArray:
    """What mass is worth at its lowest, (n,): the mean of the branches by their weights."""
    shares = np.array([branch.child.weight for branch in branches])
    base: FloatArray = np.einsum("a,an->n", shares / shares.sum(), np.stack([branch.base for branch in branches]))
    return base


def state_blocks(size: int) -> Iterator[slice]:
    """Of so many states, some at a time."""
    return (slice(start, start + BLOCK) for start in range(0, size, BLOCK))


def gains(surplus: FloatArray, q: float) -> FloatArray:
    """f: what a unit of weight gains where its mass is worth so much more than its price."""
    return np.where(surplus > 0, surplus, q * surplus)


def charged(family: Schedules, root: Node, mass: FloatArray, q: float, *, wanted: bool = False) -> None:
    """Set the masses of all nodes and the charges of all branches, from the mass of the root's prices, (L, n).

    A branch whose price lies between two slopes draws one of them, with this price as the mean. With `wanted`, states
    whose price is above all slopes are left out: they get the branch as seldom as they can. Then masses say where
    there is something to gain, and charges bound nothing.
    """
    root.mass = mass
    waiting = [root]
    while waiting:
        node = waiting.pop()
        for branch in node.branches:
            _charge(family, node, branch, q, wanted=wanted)
            waiting.append(branch.child)


def _charge(family: Schedules, node: Node, branch: Branch, q: float, *, wanted: bool) -> None:
    """Set the charge of a branch and the mass of its child."""
    slopes = branch.slopes
    slack = SAME * float(np.abs(slopes).max())
    piece, state = np.nonzero((node.mass > 0) & (slopes[0] >= node.slopes - slack) if wanted else node.mass)
    price, mass = node.slopes[piece, state], node.mass[piece, state]
    # How many slopes of the state are not below the price: by bisection, since they fall.
    place, past = np.zeros(len(price), dtype=np.intp), np.full(len(price), len(slopes))
    while (open_ := place < past).any():
        middle = (place + past) // 2
        higher = slopes[np.minimum(middle, len(slopes) - 1), state] >= price
        place, past = np.where(open_ & higher, middle + 1, place), np.where(open_ & ~higher, middle, past)
    above, below = np.maximum(place - 1, 0), np.minimum(place, len(slopes) - 1)
    high, low = slopes[above, state], slopes[below, state]
    share = np.divide(price - low, high - low, out=np.ones_like(price), where=high > low).clip(0.0, 1.0)
    branch.charge = float(mass @ gains(share * high + (1 - share) * low - price, q))
    drawn = np.concatenate([above * slopes.shape[1] + state, below * slopes.shape[1] + state])
    parts = np.concatenate([share * mass, (1 - share) * mass])
    entering = np.asarray(np.bincount(drawn, parts, minlength=slopes.size), dtype=np.float64).reshape(slopes.shape)
    process, held = family.process, family.held[node.place]
    if branch.child.branches:
        for row in entering:
            for _ in range(held if row.any() else 0):
                row[:] = process.discount * mass_after(process, row, branch.action)
        branch.child.mass = entering


def course_gain(family: Schedules, root: Node, course: Schedule, q: float) -> float:
    """What a unit of weight of any course adds to the bound, of which the tree is `charged`."""
    node, total = root, 0.0
    for place, action in enumerate(course):
        branch = node.branch(action)
        if branch is None:
            rest = Schedules(family.process, family.held[place:])
            worth = rest.values([course[place:]])[:, 0]
            return total + departure_gain(node, worth, q)
        total, node = total + branch.charge, branch.child
    return total


def departure_gain(node: Node, worth: FloatArray, q: float) -> float:
    """What a unit of weight of a course gains from where it leaves the tree, if it is worth so much there, (n,)."""
    return float(sum(mass @ gains(worth - price, q) for mass, price in zip(node.mass, node.slopes, strict=True)))


def inner_nodes(root: Node) -> Iterator[tuple[Schedule, Node]]:
    """All prefixes that another action can follow, with their nodes."""
    waiting: list[tuple[Schedule, Node]] = [((), root)]
    while waiting:
        prefix, node = waiting.pop()
        if node.branches:
            yield prefix, node
            waiting += [((*prefix, branch.action), branch.child) for branch in node.branches]


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
        highest, height, _ = lowest_cuts(np.array(cuts), q)
        if len(cuts) >= most or idle >= patience or height - best.value <= gap:
            return Climb(best_weights, best, tried, np.array(cuts))
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
