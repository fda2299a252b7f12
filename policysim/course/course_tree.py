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
the pieces at the optimum of z are prices for which both sides agree at z.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from policies.arrays import FloatArray
from policysim.course.schedules import Schedule, Schedules, mass_after

# So many states are sorted at a time.
BLOCK = 1 << 14
NOTHING = np.zeros((0, 0))
# Points nearer than this share of a weight are one.
SAME = 1e-7


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

    @property
    def forks(self) -> bool:
        """Whether anything is still to be chosen after it."""
        return self.rest is None

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


@dataclass(frozen=True, eq=False)
class WeighedTree:
    """Courses with whole weights, and the best mechanism that reacts within their tree.

    Attributes
    ----------
    root : Node
    poured : float
        How much is poured onto the lowest mass of the root, so that all is 1 in some unit.
    value : float
    """

    root: Node
    poured: float
    value: float


def weighed_tree(
    family: Schedules, weights: Mapping[Schedule, int], q: float, known: dict[Schedule, FloatArray] | None = None
) -> WeighedTree:
    """The best mechanism of courses and whole weights, at the best scale of these: one of so many values."""
    prior, root = family.process.initial, value_tree(family, weights, joined_pieces, bare=True, known=known)
    poured = np.concatenate([[0.0], np.cumsum(root.widths)])
    gained = np.concatenate([[0.0], np.cumsum(root.widths * (root.slopes @ prior))])
    mass = q * root.weight + (1 - q) * poured
    worth = q * root.weight * float(prior @ root.base) + (1 - q) * gained
    values = np.divide(worth, mass, out=np.full(len(mass), -np.inf), where=mass > 0)
    level = int(values.argmax())
    return WeighedTree(root, float(poured[level]), float(values[level]))


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
