"""The privacy profile of a table of action probabilities: how much neighbours differ, at every factor e^epsilon."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from policies.adjacency import Adjacency, Partition
from policies.arrays import SUM_TOLERANCE, FloatArray, Frozen
from policies.policy import NotApplicableError

# Sums of probabilities that are looked at, at most: about a second.
MOST_STEPS = 1 << 28
# What sorting the actions of two records takes beside one sum.
SORTING = 16


@dataclass(frozen=True, eq=False)
class Profile(Frozen):
    """delta(epsilon) = max over neighbours x, x' and sets S of actions of P_x(S) - e^epsilon P_x'(S).

    As a function of e^epsilon it is convex and piecewise linear. Each set gives a line, and the highest lines remain:
    they are the corners of the best tests of x' against x, which reject after an action of S. Neighbours go both ways,
    so a test (l, h) comes with its mirror image (1 - h, 1 - l); only tests with ratios above 1 are kept.

    Attributes
    ----------
    false_alarms, powers : array, (m,)
        P_x'(S) and P_x(S), from (0, 0) upwards. The ratios of their differences fall, and all of them are above 1. A
        power above 0 with no false alarms belongs to actions that rule a record out.

    References
    ----------
    Balle, Barthe & Gaboardi (2020), Privacy profiles and amplification by subsampling, JPC 10: the profile.
    Zhu, Dong & Wang (2022), Optimal accounting of differential privacy via characteristic function, AISTATS, section 3:
    it is that of one pair of distributions.
    Dong, Roth & Su (2022), Gaussian differential privacy, JRSS-B 84, section 2: the tests.
    """

    false_alarms: FloatArray
    powers: FloatArray

    def delta_at(self, epsilons: ArrayLike) -> FloatArray:
        """delta at each epsilon >= 0 (inf allowed), of the same shape."""
        wanted = np.asarray(epsilons, dtype=np.float64)[..., None]
        with np.errstate(over="ignore", invalid="ignore"):
            missed = np.where(self.false_alarms > 0, np.exp(wanted) * self.false_alarms, 0.0)
        found: FloatArray = np.maximum(self.powers - missed, 0.0).max(axis=-1)
        return found

    @cached_property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Two distributions P and Q with this profile, (2m - 1,) each: no two neighbours have a larger one.

        The hockey-stick divergence, the sum of max(p - c q, 0), is that of the table's worst neighbours at each c, also
        below 1, and of Q against P. So products of such pairs dominate adaptive composition (Zhu, Dong & Wang,
        proposition 8 and theorem 10).
        """
        p, q = np.diff(self.powers), np.diff(self.false_alarms)
        rest = max(0.0, 1 - float(self.powers[-1] + self.false_alarms[-1]))
        return np.concatenate([p, [rest], q]), np.concatenate([q, [rest], p])


def profile(log_probabilities: FloatArray, adjacency: Adjacency) -> Profile:
    """The privacy profile of log p(a|x), (n_records, n_actions); -inf where an action is never taken.

    The maximum over neighbours and sets of actions is taken in either order: the largest and the smallest P_x(S) of
    each clique, for each of the 2^k sets, or the k best sets of each pair of neighbours, whichever takes less work.

    Raises
    ------
    NotApplicableError
        A ValueError, where both are too many.

    Examples
    --------
    >>> from policies.adjacency import AnyRecord
    >>> found = profile(np.log([[0.75, 0.25], [0.25, 0.75]]), AnyRecord())
    >>> found.delta_at([0.0, np.log(2), np.log(3)]).round(12).tolist()
    [0.5, 0.25, 0.0]
    """
    n_records, n_actions = log_probabilities.shape
    partitions = adjacency.partitions(n_records)
    of_pairs = SORTING * n_actions * 2 * sum(each.n_pairs for each in partitions)
    of_sets = n_records * len(partitions) * 2**n_actions
    if min(of_pairs, of_sets) > MOST_STEPS:
        raise NotApplicableError(
            f"the privacy profile of {n_actions} actions for {n_records:,} records takes too long: both the sets of "
            "actions and the pairs of neighbours are too many."
        )
    table = np.exp(log_probabilities)
    found = Profile(np.zeros(1), np.zeros(1))
    for partition in partitions:
        sets = map(partition.extremes, _sums(list(table.T)))
        for low, high in _best_sets(table, partition) if of_pairs < of_sets else sets:
            found = largest_profile([found, Profile(low, high)])
    return found


def largest_profile(profiles: Sequence[Profile]) -> Profile:
    """The largest of several profiles at each epsilon; their tests may stand in any order."""
    tests_of = [(each.false_alarms, each.powers) for each in profiles]
    # A sum of probabilities may round above 1.
    low, high = (np.minimum(np.concatenate(parts), 1.0) for parts in zip(*tests_of, strict=True))
    # The mirror images of what is left out have ratios above 1.
    kept = (high > low) & (low + high <= 1 + SUM_TOLERANCE)
    low, high = low[kept], high[kept]
    order = np.lexsort((-high, low))
    low, high = low[order], high[order]
    best = np.diff(np.maximum.accumulate(high), prepend=0.0) > 0
    corners = [(0.0, 0.0)]
    for x, y in zip(low[best].tolist(), high[best].tolist(), strict=True):
        # A corner below the line from the one before it to the next is none.
        while len(corners) > 1 and (
            (corners[-1][1] - corners[-2][1]) * (x - corners[-1][0])
            <= (y - corners[-1][1]) * (corners[-1][0] - corners[-2][0])
        ):
            corners.pop()
        corners.append((x, y))
    tests = np.array(corners)
    tests = tests[: int((tests[:, 1] - tests[:, 0]).argmax()) + 1]
    return Profile(tests[:, 0], tests[:, 1])


def _sums(columns: list[FloatArray]) -> Iterator[FloatArray]:
    """The sum of each set of columns but the empty one."""
    for place, column in enumerate(columns):
        yield column
        for rest in _sums(columns[place + 1 :]):
            yield column + rest


def _best_sets(table: FloatArray, partition: Partition) -> Iterator[tuple[FloatArray, FloatArray]]:
    """P_x'(S) and P_x(S) of each record against all of its clique: S are the actions with the largest ratios."""
    rows = np.stack([partition.by_clique(column) for column in table.T], axis=-1)
    for place in range(rows.shape[1]):
        one = np.broadcast_to(rows[:, place : place + 1], rows.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            order = np.argsort(rows / one, axis=-1)
        sums = (np.cumsum(np.take_along_axis(each, order, axis=-1), axis=-1) for each in (rows, one))
        low, high = (each.ravel() for each in sums)
        yield low, high
