"""Proofs of what no mechanism for a course exceeds, in rational numbers: without rounding and without tolerance.

A published prefix h has a weight Z(h) = the sum of those of its courses of d actions, of which all sums are from 1 to
1 / q, and the mass of each history of states that has published h is from q Z(h) to Z(h), q = e^-epsilon. Whatever
prices lambda the masses have (and these may be drawn at random, mass by mass), the value of a mechanism is at most

    E[lambda(root)] + sum over the prefixes h + a of Z(h + a) E[f(r(s, a) + discount E lambda(h + a) - lambda(h))]

with f(x) = max(x, 0) - q max(-x, 0) and, after d actions, lambda = what the best plan still earns, or more. This
follows from adding lambda times (mass that comes - mass that goes on) = 0 to the value, and bounding each mass by q Z
and Z. Here a price is one of a table of each prefix, the same for all histories that end in a state with the same draw.
A mean of such bounds is a bound, and a linear function of the weights is largest where one of them has all weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
from scipy import sparse

from policies.arrays import FloatArray, IntArray
from policies.proof import as_integers, floor_of
from policysim.course.process import Matrix, Process
from policysim.course.schedules import Schedule
from policysim.course.tabular import TabularMDP

# Draws are in parts of this.
WHOLE = 1 << 32


@dataclass(frozen=True, eq=False)
class CourseProof:
    """A proof for one public class: what the best plan earns from each day on, or more, (n,) each; and the cuts.

    Each cut is its share of the mean, > 0, and the prices of each prefix of fewer than d actions, (L, n) each; of the
    root one.
    """

    epsilon: float
    actions: Sequence[int]
    days: int
    values: Sequence[FloatArray]
    cuts: Sequence[tuple[float, Mapping[Schedule, FloatArray]]]


class _Exact:
    """A process whose floats are exact numbers: integers, and the unit of each table."""

    def __init__(self, process: Process) -> None:
        moves = stacked_moves(process)
        self.n, self.k = process.rewards.shape
        row = np.repeat(np.arange(len(moves.indptr) - 1), np.diff(moves.indptr))
        self.action, self.state, self.following = row // self.n, row % self.n, moves.indices
        (chances, discount), unit = as_integers(moves.data, np.array([process.discount]))
        self.chances, self.step = chances * discount[0], unit * unit
        (self.rewards,), self.reward_unit = as_integers(np.asarray(process.rewards))
        (self.initial,), self.initial_unit = as_integers(process.initial)

    def expected(self, values: Any, action: int) -> Any:
        """discount E[values(next state)], (n,), in units of `step`."""
        own, found = self.action == action, np.zeros(self.n, dtype=object)
        np.add.at(found, self.state[own], self.chances[own] * values[self.following[own]])
        return found

    def moved(self, mass: Any, action: int) -> Any:
        """The discounted mass of the next state, (n,), in units of `step`."""
        own, found = self.action == action, np.zeros(self.n, dtype=object)
        np.add.at(found, self.following[own], self.chances[own] * mass[self.state[own]])
        return found


def proven(process: Process, proof: CourseProof) -> Fraction | None:
    """The least limit that a proof proves for a process; None if it proves nothing."""
    exact, days, q = _Exact(process), proof.days, floor_of(proof.epsilon)
    if len(proof.values) != (process.horizon or 0) + 1 or not _enough(process, exact, proof.values[days:]):
        return None
    gains = dict.fromkeys(product(proof.actions, repeat=days), Fraction(0))
    constant = Fraction(0)
    shares = [Fraction(share) for share, _ in proof.cuts]
    if not shares or min(shares) <= 0:
        return None
    for share, (_, prices) in zip(shares, proof.cuts, strict=True):
        one, charges = _charges(exact, proof, prices, q)
        constant += share / sum(shares) * one
        for course in gains:
            gains[course] += share / sum(shares) * sum(charges[course[: place + 1]] for place in range(days))
    most = max(gains.values())
    return constant + most * (1 / q if most > 0 else 1)


def _enough(process: Process, exact: _Exact, values: Sequence[FloatArray]) -> bool:
    """Whether values, (n,) of each day, are those of the best plan or more."""
    tables, unit = as_integers(*values)
    mask = process.admissible
    for now, later in pairwise(tables):
        for action in range(exact.k):
            worth = _added(
                (exact.rewards[:, action], exact.reward_unit), (exact.expected(later, action), unit * exact.step)
            )
            lacks = _added((now, unit), (-worth[0], worth[1]))[0] < 0
            if (lacks if mask is None else lacks & mask[:, action]).any():
                return False
    return not (tables[-1] < 0).any()


def _charges(
    exact: _Exact, proof: CourseProof, prices: Mapping[Schedule, FloatArray], q: Fraction
) -> tuple[Fraction, dict[Schedule, Fraction]]:
    """What the mass of the root costs, and what a unit of the weight of each longer prefix adds."""
    tables, unit = as_integers(*prices.values(), proof.values[proof.days][None])
    priced, ends = dict(zip(prices, tables[:-1], strict=True)), tables[-1]
    charges: dict[Schedule, Fraction] = {}
    waiting: list[tuple[Schedule, Any, Fraction]] = [((), exact.initial[None], exact.initial_unit)]
    while waiting:
        prefix, mass, mass_unit = waiting.pop()
        for action in proof.actions:
            name = (*prefix, action)
            child = priced.get(name, ends)
            rewards = exact.rewards[:, action], exact.reward_unit
            later = np.stack([exact.expected(row, action) for row in child]), unit * exact.step
            worth, worth_unit = _added(rewards, later)
            entering, parts = np.zeros(child.shape, dtype=object), []
            for price, of_price in zip(priced[prefix], mass, strict=True):
                high, low, share = _drawn(worth, price, worth_unit / unit)
                columns = np.arange(exact.n)
                mean = share * worth[high, columns] + (WHOLE - share) * worth[low, columns]
                surplus, surplus_unit = _added((mean, worth_unit / WHOLE), (-price, unit))
                gained = of_price * surplus
                parts.append((gained[surplus > 0].sum() + q * gained[surplus < 0].sum()) * surplus_unit * mass_unit)
                np.add.at(entering, (high, columns), share * of_price)
                np.add.at(entering, (low, columns), (WHOLE - share) * of_price)
            charges[name] = sum(parts, Fraction(0))
            if len(name) < proof.days:
                moved = np.stack([exact.moved(row, action) for row in entering])
                waiting.append((name, moved, mass_unit * exact.step / WHOLE))
    return Fraction((exact.initial * priced[()][0]).sum()) * exact.initial_unit * unit, charges


def _drawn(worth: Any, price: Any, ratio: Fraction) -> tuple[IntArray, IntArray, Any]:
    """Two rows of `worth` between which a price lies, and the share of the first one, in parts of `WHOLE`."""
    target = price * ratio.denominator
    scaled = worth * ratio.numerator
    above = (scaled >= target).sum(axis=0).astype(np.intp)
    high, low, columns = np.maximum(above - 1, 0), np.minimum(above, len(worth) - 1), np.arange(len(price))
    gap, part = scaled[high, columns] - scaled[low, columns], target - scaled[low, columns]
    share = [
        WHOLE if not wide else min(max(WHOLE * some // wide, 0), WHOLE) for wide, some in zip(gap, part, strict=True)
    ]
    return high, low, np.array(share, dtype=object)


def _added(one: tuple[Any, Fraction], other: tuple[Any, Fraction]) -> tuple[Any, Fraction]:
    """The sum of two tables of integers, each with its unit, a power of two."""
    unit = min(one[1], other[1])
    return one[0] * (one[1] / unit).numerator + other[0] * (other[1] / unit).numerator, unit


def stacked_moves(process: Process) -> Matrix:
    """The transitions, (A * S, S), of a process that need not be given by them."""
    if isinstance(process, TabularMDP):
        return process.stacked
    n = len(process.initial)
    columns = [sparse.csc_array(process.continuation(np.eye(1, n, state)[0]).T.reshape(-1, 1)) for state in range(n)]
    return sparse.csr_array(sparse.hstack(columns))
