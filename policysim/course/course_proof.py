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

from policies.arrays import FloatArray
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


class _Moves:
    """The transitions of a process as integers, of which `whole` are a probability of 1; discounted."""

    def __init__(self, process: Process) -> None:
        moves = stacked_moves(process)
        self.n = len(process.initial)
        (chances, (discount,)), unit = as_integers(moves.data, np.array([process.discount]))
        state = np.repeat(np.arange(len(moves.indptr) - 1), np.diff(moves.indptr)) % self.n
        # The entries of each action: from which state, to which, and with which chance.
        self.entries = [
            (state[first:end], moves.indices[first:end], chances[first:end] * discount)
            for first, end in pairwise(moves.indptr[:: self.n])
        ]
        self.whole = unit.denominator**2

    def expected(self, values: Any, action: int) -> Any:
        """`whole` times discount E[values(next state)], (n,)."""
        state, following, chances = self.entries[action]
        return self._summed(state, chances * values[following])

    def moved(self, mass: Any, action: int) -> Any:
        """`whole` times the discounted mass of the next state, (n,)."""
        state, following, chances = self.entries[action]
        return self._summed(following, chances * mass[state])

    def _summed(self, states: Any, numbers: Any) -> Any:
        sums = np.zeros(self.n, dtype=object)
        np.add.at(sums, states, numbers)
        return sums


def proven(process: Process, proof: CourseProof) -> Fraction | None:
    """The least limit that a proof proves for a process; None if it proves nothing."""
    shares = [Fraction(share) for share, _ in proof.cuts]
    if len(proof.values) != (process.horizon or 0) + 1 or not shares or min(shares) <= 0:
        return None
    moves, ends = _Moves(process), proof.values[proof.days :]
    if not _earn_enough(process, moves, ends):
        return None
    constant, gains = Fraction(0), dict.fromkeys(product(proof.actions, repeat=proof.days), Fraction(0))
    for share, (_, prices) in zip(shares, proof.cuts, strict=True):
        cost, charges = _charges(process, moves, proof, prices)
        constant += share / sum(shares) * cost
        for course in gains:
            gains[course] += share / sum(shares) * sum(charges[course[: day + 1]] for day in range(proof.days))
    most = max(gains.values())
    return constant + most * (1 / floor_of(proof.epsilon) if most > 0 else 1)


def _earn_enough(process: Process, moves: _Moves, values: Sequence[FloatArray]) -> bool:
    """Whether values, (n,) of each day, are those of the best plan or more."""
    (rewards, *tables), _ = as_integers(np.asarray(process.rewards), *values)
    for today, later in pairwise(tables):
        for action, earned in enumerate(rewards.T):
            lacks = moves.whole * (today - earned) < moves.expected(later, action)
            if (lacks if process.admissible is None else lacks & process.admissible[:, action]).any():
                return False
    return not (tables[-1] < 0).any()


def _charges(
    process: Process, moves: _Moves, proof: CourseProof, prices: Mapping[Schedule, FloatArray]
) -> tuple[Fraction, dict[Schedule, Fraction]]:
    """What the mass of the root costs, and what a unit of the weight of each longer prefix adds."""
    q, columns = floor_of(proof.epsilon), np.arange(len(process.initial))
    (rewards, ends, *tables), unit = as_integers(
        np.asarray(process.rewards), proof.values[proof.days][None], *prices.values()
    )
    priced = dict(zip(prices, tables, strict=True))
    (initial,), initial_unit = as_integers(process.initial)
    charges: dict[Schedule, Fraction] = {}
    waiting: list[tuple[Schedule, Any, Fraction]] = [((), initial[None], initial_unit)]
    while waiting:
        prefix, masses, mass_unit = waiting.pop()
        for action in proof.actions:
            longer = (*prefix, action)
            child = priced.get(longer, ends)
            # What follows the action, and the price before it, in the same unit: that of rewards over `whole`.
            worth = np.stack([moves.whole * rewards[:, action] + moves.expected(row, action) for row in child])
            entering, gained = np.zeros(child.shape, dtype=object), Fraction(0)
            for price, mass in zip(moves.whole * priced[prefix], masses, strict=True):
                high, low, share = _drawn(worth, price)
                surplus = share * worth[high, columns] + (WHOLE - share) * worth[low, columns] - WHOLE * price
                gained += (mass * surplus)[surplus > 0].sum() + q * (mass * surplus)[surplus < 0].sum()
                np.add.at(entering, (high, columns), share * mass)
                np.add.at(entering, (low, columns), (WHOLE - share) * mass)
            charges[longer] = gained * unit * mass_unit / (moves.whole * WHOLE)
            if len(longer) < proof.days:
                moved = np.stack([moves.moved(row, action) for row in entering])
                waiting.append((longer, moved, mass_unit / (moves.whole * WHOLE)))
    return Fraction((initial * priced[()][0]).sum()) * initial_unit * unit, charges


def _drawn(worth: Any, price: Any) -> tuple[Any, Any, Any]:
    """Two rows of `worth` between which a price lies, and the share of the first one, in parts of `WHOLE`."""
    above = (worth >= price).sum(axis=0).astype(np.intp)
    high, low, columns = np.maximum(above - 1, 0), np.minimum(above, len(worth) - 1), np.arange(len(price))
    gaps, parts = worth[high, columns] - worth[low, columns], price - worth[low, columns]
    shares = [min(max(WHOLE * part // gap, 0), WHOLE) if gap else WHOLE for part, gap in zip(parts, gaps, strict=True)]
    return high, low, np.array(shares, dtype=object)


def stacked_moves(process: Process) -> Matrix:
    """The transitions, (A * S, S), of a process that need not be given by them."""
    if isinstance(process, TabularMDP):
        return process.stacked
    n = len(process.initial)
    columns = [sparse.csc_array(process.continuation(np.eye(1, n, state)[0]).T.reshape(-1, 1)) for state in range(n)]
    return sparse.csr_array(sparse.hstack(columns))
