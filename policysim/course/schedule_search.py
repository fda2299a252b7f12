"""Which schedules to choose among privately: found from a process and its prior alone.

Both are public, so that whoever chooses among the schedules reveals nothing by which ones there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from policies.adjacency import AnyRecord
from policies.arrays import FloatArray
from policies.optimal.certificate import optimal_certificate
from policies.optimal.optimum import Optimal
from policies.policy import NotApplicableError
from policies.problem import DecisionProblem
from policies.proof import LOST, grouped
from policysim.course.process import Process
from policysim.course.schedules import ROUNDING, Schedule, Schedules

# How many schedules a search adds at a time, and from how many it starts.
BATCH, STARTS = 2, 6
# The search ends if it gains less than this share of what the best for each gains over one schedule for all.
LEAST_GAIN = 1e-3
# Of how many fixed parts of a record the sketch of a course is made in which schedules are searched.
SKETCH = 32


def best_of_all(family: Schedules) -> Schedule:
    """The best schedule, climbed to from every constant one: on a sketch of the process, if it has one, and then on it.

    It is worth no less than any that differs at one place.
    """
    searched, places = _sketched(family), range(len(family.held))
    constants = [tuple(action for _ in places) for action in family.choices(len(places) - 1)]
    found = sorted({searched.best(searched.process.initial, constant) for constant in constants})
    worth = searched.process.initial @ searched.values(found)
    return family.best(family.process.initial, found[int(worth.argmax())])


def _sketched(family: Schedules) -> Schedules:
    sketch: Callable[[int], Process] | None = getattr(family.process, "sketch", None)
    return family if sketch is None else replace(family, process=sketch(SKETCH))


def public_schedules(family: Schedules, first: Schedule, most: int, epsilons: Sequence[float]) -> list[Schedule]:
    """Schedules to choose among privately, from the process (or its sketch, if it has one) and its prior alone.

    The best schedule, each other first action before its rest, and then those that raise the value of the best
    epsilon-private choice: the columns that its linear programme still lacks (column generation: Dantzig & Wolfe 1960,
    Decomposition principle for linear programs). The dual of that programme (`policies.proof`) has for each first state
    x the utility mu(x) at which it is indifferent. A schedule s that joins with a ceiling of M, so that
    q M <= p(s|x) <= M for q = e^-epsilon, gains in proportion to

        sum over x of prior(x) (q (u_s(x) - mu(x)) + (1 - q) max(u_s(x) - mu(x), 0)).

    This is convex in u_s. So the best schedule for first states of weight prior(x) (q + (1 - q) [u_s(x) > mu(x)])
    gains no less than s, and this is repeated until nothing changes.

    Parameters
    ----------
    family : Schedules
    first : tuple of int
        The best schedule.
    most : int
        How many there may be, >= 2.
    epsilons : sequence of float
        Of the choices that they are for, rising.

    Returns
    -------
    list of tuple of int
        Those that the best choice uses at some epsilon, and at least two.
    """
    family = _sketched(family)
    chosen = [first, *((action, *first[1:]) for action in family.choices(0) if action != first[0])][:most]
    used: dict[Schedule, None] = {}
    for epsilon in epsilons if len(chosen) > 1 else ():
        room = most - len([schedule for schedule in chosen if schedule not in used])
        found = _Search(family, chosen, epsilon).enlarged(max(room, len(chosen)))
        used |= dict.fromkeys(found.used)
        chosen = list(dict.fromkeys([*used, *chosen]))[:most]
    enough = [*used, *(schedule for schedule in chosen if schedule not in used)][: max(2, len(used))]
    return enough[:most]


class _Search:
    """The best private choice among some schedules at one epsilon, and which others it lacks."""

    def __init__(self, family: Schedules, chosen: list[Schedule], epsilon: float) -> None:
        self.family, self.chosen, self.epsilon = family, list(chosen), epsilon
        self.prior = family.process.initial
        self.table = family.values(chosen)
        self._solve()

    @property
    def used(self) -> list[Schedule]:
        """The schedules that somebody gets."""
        return [schedule for schedule, cap in zip(self.chosen, self.ceilings, strict=True) if cap > 0]

    def enlarged(self, most: int) -> _Search:
        """Itself, with schedules added one by one until another one gains less than `LEAST_GAIN`."""
        while len(self.chosen) < most:
            found, worth = self._lacking(), self.worth
            if not found:
                break
            self.chosen += found[: most - len(self.chosen)]
            self.table = np.column_stack([self.table, self.family.values(self.chosen[self.table.shape[1] :])])
            self._solve()
            stakes = float(self.prior @ (self.table.max(axis=1) - self.table[:, 0]))
            if not self.worth - worth > LEAST_GAIN * stakes:
                break
        return self

    def _solve(self) -> None:
        problem = DecisionProblem(self.table, self.prior, AnyRecord())
        probabilities = Optimal(self.epsilon).probabilities(problem)
        self.worth, self.ceilings = problem.value(probabilities), probabilities.max(axis=0)

    def _lacking(self) -> list[Schedule]:
        """The schedules that would gain most, at most `BATCH`."""
        q, margin = float(np.exp(-self.epsilon)), self._margin()
        slack = ROUNDING * float(self.prior @ np.abs(self.table).max(axis=1))
        found: dict[Schedule, float] = {}
        for place, schedule in enumerate(self.chosen[:STARTS]):
            weights = self.prior * (q + (1 - q) * (self.table[:, place] > margin))
            better, gain = self._climbed(schedule, weights, margin, q)
            if better not in self.chosen and gain > slack:
                found[better] = gain
        return sorted(found, key=lambda schedule: -found[schedule])[:BATCH]

    def _climbed(self, schedule: Schedule, weights: FloatArray, margin: FloatArray, q: float) -> tuple[Schedule, float]:
        """A schedule that gains most, as far as small changes can tell, and its gain."""
        gained = -np.inf
        while True:
            better = self.family.best(weights, schedule)
            above = self.family.values([better])[:, 0] - margin
            gain = float(self.prior @ (q * above + (1 - q) * np.maximum(above, 0.0)))
            if not gain > gained + ROUNDING * float(self.prior @ np.abs(margin)):
                return schedule, gained
            schedule, gained = better, gain
            weights = self.prior * (q + (1 - q) * (above > 0))

    def _margin(self) -> FloatArray:
        """mu, (n,), from the dual of the choice among those that are used."""
        columns = np.flatnonzero(self.ceilings > 0)
        if len(columns) < 2:
            columns = np.arange(min(2, len(self.chosen)))
        table = self.table[:, columns]
        try:
            problem = DecisionProblem(table, self.prior, AnyRecord())
            proof = optimal_certificate(problem, self.epsilon)
        except NotApplicableError:
            # Too many orders of the schedules for a dual: what each state has now, a guess that is good enough.
            highest: FloatArray = table.max(axis=1)
            return highest
        # What the dual charges for each step down a group's order is the same share of every member's own step.
        groups = grouped(problem, proof.hidden, ((LOST, 1.0),))
        charged = -np.diff(np.take_along_axis(proof.alpha, groups.orders, axis=1), axis=1)
        steps = np.diff(np.take_along_axis(groups.costs, groups.orders, axis=1), axis=1)
        shares = np.divide(charged, steps, out=np.zeros_like(steps), where=steps > 0)
        falling = np.take_along_axis(table, groups.orders[groups.codes], axis=1)
        margin: FloatArray = falling[:, 0] + (np.diff(falling, axis=1) * shares[groups.codes]).sum(axis=1)
        return margin
