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
the pieces at the optimum of z are prices for which both sides agree at z: so they are a supergradient of V.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from policies.arrays import FloatArray
from policysim.course.schedules import Schedule, Schedules, gains, mass_after

# So many states are sorted at a time.
BLOCK = 1 << 14
NOTHING = np.zeros((0, 0))
# Points nearer than this share of a weight are one.
SAME = 1e-7
# A course of no weight has this share of the largest: so its prices are those of what would come of it.
LEAST_WEIGHT = 1e-9
# So many numbers of what the last actions of courses are worth are remembered.
REMEMBERED = 1 << 25


@dataclass(eq=False)
class Branch:
    """An action after a published prefix, and what follows; `base` and `slopes` are the child's, a decision before."""

    action: int
    child: Node
    base: FloatArray
    slopes: FloatArray


@dataclass(eq=False)
class Node:
    """A published prefix.

    Attributes
    ----------
    prefix : tuple of int
        Its actions.
    base : array, (n,)
        What each state is worth per mass, at the lowest mass.
    slopes : array, (L, n)
        What each piece of mass is worth, falling.
    widths : array, (L,)
        Of the pieces: their sum is the weight of the prefix.
    branches : tuple of Branch
        None after the last action.
    owners : array of int, (L, n), or None
        From which branch each piece is, if all weights are whole; then each piece has a width of 1.
    rest : tuple of int, or None
        The only course that follows; None where there may be several.
    mass : array, (L, n)
        Of the states that pay the slope of each piece as the price of mass (`charge_prices`), discounted.
    """

    prefix: Schedule
    base: FloatArray
    slopes: FloatArray
    widths: FloatArray
    branches: tuple[Branch, ...] = ()
    owners: NDArray[np.uint8] | None = None
    rest: Schedule | None = None
    mass: FloatArray = field(default_factory=lambda: NOTHING)

    @property
    def weight(self) -> float:
        """Z(h)."""
        return float(self.widths.sum())


class RestValues:
    """What each state is worth before the last actions of a course, (n,): remembered as far as memory allows.

    Parameters
    ----------
    family : Schedules
    ends : array, (n,), optional
        What each state is worth after the last action; 0 by default.
    """

    def __init__(self, family: Schedules, ends: FloatArray | None = None) -> None:
        self.family = family
        self.ends = np.zeros(len(family.process.initial)) if ends is None else ends
        self._remembered: dict[Schedule, FloatArray] = {}

    def __call__(self, rest: Schedule) -> FloatArray:
        """What each state is worth if these actions are the last ones."""
        if not rest:
            return self.ends
        if rest not in self._remembered:
            values = self.family.before(self(rest[1:]), rest[0], len(self.family.held) - len(rest))
            if (len(self._remembered) + 1) * len(values) > REMEMBERED:
                self._remembered.clear()
            self._remembered[rest] = values
        return self._remembered[rest]


Join: TypeAlias = Callable[[Schedule, tuple[Branch, ...]], Node]


def first_branches(
    worth: RestValues, weights: Mapping[Schedule, float], join: Join, *, bare: bool = False
) -> tuple[Branch, ...]:
    """The branches of the root of a tree of courses, with the pieces of all nodes below.

    Parameters
    ----------
    worth : RestValues
    weights : mapping of Schedule to float
        Of the courses, > 0.
    join : callable
        Makes a node of its prefix and several branches.
    bare : bool
        Whether to drop what the pieces below the branches are worth: less memory, and enough to act by.
    """

    def branches_after(prefix: Schedule, rests: Mapping[Schedule, float]) -> tuple[Branch, ...]:
        by_action: dict[int, dict[Schedule, float]] = {}
        for rest, weight in sorted(rests.items()):
            by_action.setdefault(rest[0], {})[rest[1:]] = weight
        return tuple(branch_to(prefix, action, later) for action, later in by_action.items())

    def branch_to(prefix: Schedule, action: int, rests: Mapping[Schedule, float]) -> Branch:
        longer = (*prefix, action)
        if len(rests) == 1:
            # Whatever its mass is, the same follows.
            ((rest, weight),) = rests.items()
            base = worth((action, *rest))
            return Branch(action, settled_node(longer, rest, weight, None if bare else worth), base, base[None])
        branches = branches_after(longer, rests)
        only = branches[0]
        child = (
            Node(longer, only.base, only.slopes, only.child.widths, branches)
            if len(branches) == 1
            else join(longer, branches)
        )
        base, *slopes = (worth.family.before(row, action, len(prefix)) for row in (child.base, *child.slopes))
        if bare:
            child.base = child.slopes = NOTHING
            for later in branches:
                later.base = later.slopes = NOTHING
        return Branch(action, child, base, np.stack(slopes))

    return branches_after((), weights)


def settled_node(prefix: Schedule, rest: Schedule, weight: float, worth: RestValues | None = None) -> Node:
    """A prefix after which one course only goes on; without `worth` there is enough to act by."""
    base = NOTHING if worth is None else worth(rest)
    branches: tuple[Branch, ...] = ()
    if rest:
        branches = (Branch(rest[0], settled_node((*prefix, rest[0]), rest[1:], weight, worth), base, base[None]),)
    return Node(prefix, base, base[None], np.array([weight], dtype=np.float64), branches, rest=rest)


def weighed_tree(worth: RestValues, weights: Mapping[Schedule, int], q: float) -> tuple[Node, float, float]:
    """The best mechanism of courses and whole weights, at the best scale of these: one of so many values.

    Returns its root, how much is poured onto the lowest mass of the root, so that all is 1 in some unit, and its value.
    """
    prior = worth.family.process.initial
    root = joined_pieces((), first_branches(worth, weights, joined_pieces, bare=True))
    poured = np.arange(len(root.widths) + 1)
    gained = np.concatenate([[0.0], np.cumsum(root.slopes @ prior)])
    mass = q * root.weight + (1 - q) * poured
    total = q * root.weight * float(prior @ root.base) + (1 - q) * gained
    values = np.divide(total, mass, out=np.full(len(mass), -np.inf), where=mass > 0)
    level = int(values.argmax())
    return root, float(level), float(values[level])


def joined_pieces(prefix: Schedule, branches: tuple[Branch, ...]) -> Node:
    """The pieces of branches of whole weights, sorted by slope in each state."""
    counts = [round(branch.child.weight) for branch in branches]
    owner = np.repeat(np.arange(len(branches), dtype=np.uint8), counts)
    slopes = np.empty((len(owner), len(branches[0].base)))
    owners = np.empty(slopes.shape, dtype=np.uint8)
    for block in state_blocks(slopes.shape[1]):
        # A settled branch has the same slope for all of its weight.
        pieces = np.concatenate(
            [
                np.repeat(branch.slopes[:, block], count // len(branch.slopes), axis=0)
                for branch, count in zip(branches, counts, strict=True)
            ]
        )
        order = np.argsort(-pieces, axis=0, kind="stable")
        slopes[:, block], owners[:, block] = np.take_along_axis(pieces, order, axis=0), owner[order]
    return Node(prefix, mean_base(branches), slopes, np.ones(len(owner)), branches, owners)


def pour(branches: Sequence[Branch], points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What the best so many units of the branches' pieces are worth, and what the next piece is: (P, n) each."""
    widths = np.concatenate([branch.child.widths for branch in branches])
    worth = np.empty((len(points), len(branches[0].base)))
    slopes = np.empty(worth.shape)
    for block in state_blocks(worth.shape[1]):
        pieces = np.concatenate([branch.slopes[:, block] for branch in branches])
        order = np.argsort(-pieces, axis=0)
        pieces = np.take_along_axis(pieces, order, axis=0)
        ends = np.cumsum(widths[order], axis=0)
        totals, columns = np.cumsum(widths[order] * pieces, axis=0), np.arange(pieces.shape[1])
        for row, point in enumerate(points):
            last = np.minimum((ends < point).sum(axis=0), len(pieces) - 1)
            slopes[row, block] = pieces[last, columns]
            worth[row, block] = totals[last, columns] - slopes[row, block] * (ends[last, columns] - point)
    return worth, slopes


def mixed_pieces(prefix: Schedule, branches: tuple[Branch, ...], most: int) -> Node:
    """The pieces of branches of any weights: exact where their sums are `most` or fewer, else some of them.

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
    slopes = np.diff(pour(branches, points)[0], axis=0) / widths[:, None]
    return Node(prefix, mean_base(branches), slopes, widths, branches)


def mean_base(branches: Sequence[Branch]) -> FloatArray:
    """What mass is worth at its lowest, (n,): the mean of the branches by their weights."""
    shares = np.array([branch.child.weight for branch in branches])
    base: FloatArray = np.einsum("a,an->n", shares / shares.sum(), np.stack([branch.base for branch in branches]))
    return base


def state_blocks(size: int) -> Iterator[slice]:
    """Of so many states, some at a time."""
    return (slice(start, start + BLOCK) for start in range(0, size, BLOCK))


@dataclass(frozen=True, eq=False)
class PricedTree:
    """The value of courses with weights, and prices that bound the value of all others.

    Attributes
    ----------
    root : Node
    value : float
        Of these weights.
    constant : float
        What mass costs at the root.
    gains : dict of Schedule to float
        The value of any weights of these courses is at most the constant and each weight times its gain.
    """

    root: Node
    value: float
    constant: float
    gains: dict[Schedule, float]


def priced_tree(worth: RestValues, weights: Mapping[Schedule, float], q: float, most: int) -> PricedTree:
    """The largest value under weights >= 0 whose sum is from 1 to 1 / q, with at most so many pieces of a node."""
    least = LEAST_WEIGHT * max(weights.values())
    raised = {course: max(weight, least) for course, weight in weights.items()}
    total = sum(raised.values())
    branches = first_branches(worth, raised, lambda prefix, later: mixed_pieces(prefix, later, most))
    # So much is poured onto the lowest masses that all are 1; the price is that of the piece on which this ends.
    point = np.clip([(1 - q * total) / (1 - q)], 0.0, total) if q < 1 else np.zeros(1)
    (gained,), prices = pour(branches, point)
    root = Node((), mean_base(branches), prices, np.array([total]), branches)
    prior = worth.family.process.initial
    value = float(prior @ (q * total * root.base + (1 - q) * gained))
    return PricedTree(root, value, float(prior @ prices[0]), charge_prices(worth.family, root, prior[None], q))


def charge_prices(
    family: Schedules, root: Node, mass: FloatArray, q: float, *, wanted: bool = False
) -> dict[Schedule, float]:
    """Set the masses of all nodes, from that of the root's prices, (L, n); what a unit of weight of each course gains.

    A branch whose price lies between two slopes draws one of them, with this price as the mean. With `wanted`, states
    whose price is above all slopes are left out: they get the branch as seldom as they can. Then masses say where
    there is something to gain, and gains bound nothing.
    """
    root.mass, gained = mass, {}
    waiting = [(root, 0.0)]
    while waiting:
        node, total = waiting.pop()
        if not node.branches:
            gained[node.prefix] = total
        waiting += [(branch.child, total + _charge(family, node, branch, q, wanted=wanted)) for branch in node.branches]
    return gained


def _charge(family: Schedules, node: Node, branch: Branch, q: float, *, wanted: bool) -> float:
    """What a unit of weight of a branch gains at the prices of its node; sets the mass of its child."""
    slopes = branch.slopes
    slack = SAME * float(np.abs(slopes).max())
    piece, state = np.nonzero((node.mass > 0) & (slopes[0] >= node.slopes - slack) if wanted else node.mass)
    price, mass = node.slopes[piece, state], node.mass[piece, state]
    # How many slopes of the state are not below the price: by bisection, since they fall.
    count, past = np.zeros(len(price), dtype=np.intp), np.full(len(price), len(slopes))
    while (open_ := count < past).any():
        middle = (count + past) // 2
        higher = slopes[np.minimum(middle, len(slopes) - 1), state] >= price
        count, past = np.where(open_ & higher, middle + 1, count), np.where(open_ & ~higher, middle, past)
    above, below = np.maximum(count - 1, 0), np.minimum(count, len(slopes) - 1)
    high, low = slopes[above, state], slopes[below, state]
    share = np.divide(price - low, high - low, out=np.ones_like(price), where=high > low).clip(0.0, 1.0)
    if branch.child.branches:
        drawn = np.concatenate([above * slopes.shape[1] + state, below * slopes.shape[1] + state])
        shares = np.concatenate([share * mass, (1 - share) * mass])
        entering = np.asarray(np.bincount(drawn, shares, minlength=slopes.size), dtype=np.float64)
        entering = entering.reshape(slopes.shape)
        for row in entering:
            for _ in range(family.held[len(node.prefix)] if row.any() else 0):
                row[:] = family.process.discount * mass_after(family.process, row, branch.action)
        branch.child.mass = entering
    return float(mass @ gains(share * high + (1 - share) * low - price, q))


def inner_nodes(root: Node) -> Iterator[Node]:
    """The nodes of all prefixes that another action can follow."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.branches:
            yield node
            waiting += [branch.child for branch in node.branches]
