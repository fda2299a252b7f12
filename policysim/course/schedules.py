"""Schedules: the same action for everybody, which may change from step to step, and looks at nobody.

What a schedule is worth to each first state is exact. Which schedules are good is found from the process and its prior
alone, so that whoever chooses among them reveals nothing by which ones there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from policies.adjacency import AnyRecord
from policies.arrays import FloatArray, IntArray
from policies.optimal.optimum import Optimal
from policies.policy import two_values
from policies.problem import DecisionProblem
from policysim.course.chain import EndlessError, chain_values
from policysim.course.process import Process
from policysim.course.step_problems import q_table, require_tabular

Schedule = tuple[int, ...]
# Of a process without a horizon, how often a schedule may change before its last action goes on for ever.
CHANGES = 8
# Schedules of a finite horizon have at most so many steps of their own; of a longer one each is held for several.
MOST_STEPS = 32
# How many schedules a search adds at a time, and from how many it starts.
BATCH, STARTS = 2, 6
# The search ends if it gains less than this share of what the best for each gains over one schedule for all.
LEAST_GAIN = 1e-3
# What is worth more by less than this, relative, is rounding.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Schedules:
    """The schedules of a process.

    Parameters
    ----------
    process : Process
    held : tuple of int
        For how many decisions each action of a schedule is held, (B,); their sum is the horizon. Without a horizon
        the last action goes on for ever, whatever its number says.
    """

    process: Process
    held: tuple[int, ...]

    @classmethod
    def of(cls, process: Process, held: int | None = None) -> Schedules:
        """Those that hold each action for `held` decisions; by default for 1, or for what makes 32 of a long horizon.

        Raises
        ------
        ValueError
            For a number of decisions that is not a whole number >= 1 (or is above the horizon), for a process in which
            no action is open to every state, or, without a horizon, in which none has a value if it goes on for ever.
        """
        horizon = process.horizon
        if held is not None and (
            isinstance(held, bool) or not isinstance(held, int) or not 1 <= held <= (horizon or held)
        ):
            upper = "" if horizon is None else f" from 1 to the horizon {horizon}"
            raise ValueError(f"held must be a whole number{upper or ' >= 1'}, got held={held!r}.")
        if horizon is None:
            return cls(process, (held or 1,) * (CHANGES + 1))._checked()
        step = held or -(-horizon // MOST_STEPS)
        lengths = [step] * (horizon // step)
        return cls(process, tuple([*lengths, *([horizon % step] if horizon % step else [])]))._checked()

    def _checked(self) -> Schedules:
        if not self.open:
            raise ValueError(
                "no action is open to every state, so that no schedule can be given to everybody: choose day by day "
                "(compare), or make the process with admissible=True if every state can take every action."
            )
        if self.process.horizon is None and not self._endless:
            raise ValueError(
                "no action has a value in every state if it goes on for ever: give the process a horizon or a "
                "discount below 1."
            )
        return self

    @property
    def open(self) -> list[int]:
        """The actions that every state allows."""
        mask = self.process.admissible
        return [a for a in range(len(self.process.actions)) if mask is None or mask[:, a].all()]

    @property
    def _endless(self) -> dict[int, FloatArray]:
        """What each action is worth if it goes on for ever, where that is finite in every state."""
        known: dict[int, FloatArray] | None = self.__dict__.get("endless")
        if known is None:
            known = {}
            mdp = require_tabular(self.process)
            for action in self.open:
                chosen = np.full(len(mdp.initial), action)
                try:
                    values = chain_values(mdp, two_values(chosen, len(mdp.actions), 1.0, 0.0))
                except EndlessError:
                    continue
                if np.isfinite(values).all():
                    known[action] = values
            self.__dict__["endless"] = known
        return known

    def choices(self, place: int) -> list[int]:
        """The actions that a schedule may have at one of its places."""
        last = place == len(self.held) - 1
        return list(self._endless) if last and self.process.horizon is None else self.open

    def expanded(self, schedules: Iterable[Schedule]) -> IntArray:
        """The action of every decision, (m, H); without a horizon (m, B), where the last one goes on."""
        lengths = self.held if self.process.horizon is not None else (*self.held[:-1], 1)
        return np.array([np.repeat(schedule, lengths) for schedule in schedules], dtype=np.intp)

    def values(self, schedules: Sequence[Schedule], rewards: FloatArray | None = None) -> FloatArray:
        """What each schedule is worth to each first state, (n, m), exactly; column-major.

        Schedules that end alike share the work of their ends.

        Parameters
        ----------
        schedules : sequence of tuple of int, (m,) of (B,)
        rewards : array, (n, k), optional
            What is counted in place of the process's rewards, not discounted.
        """
        ends: dict[Schedule, FloatArray] = {(): np.zeros(len(self.process.initial))}
        for place in reversed(range(len(self.held))):
            needed = dict.fromkeys(schedule[place:] for schedule in schedules)
            ends = {end: self._before(ends[end[1:]], end[0], place, rewards) for end in needed}
        table = np.empty((len(self.process.initial), len(schedules)), order="F")
        for column, schedule in zip(table.T, schedules, strict=True):
            column[:] = ends[schedule]
        return table

    def _before(self, values: FloatArray, action: int, place: int, rewards: FloatArray | None = None) -> FloatArray:
        """What the states are worth before an action is held, (n,), if these are their values after it."""
        process = self.process
        if process.horizon is None and place == len(self.held) - 1:
            return self._endless[action]
        gains, discount = (process.rewards, process.discount) if rewards is None else (rewards, 1.0)
        for _ in range(self.held[place]):
            values = gains[:, action] + discount * following(process, values, action)
        return values

    def best(self, weights: FloatArray, start: Schedule) -> Schedule:
        """The schedule that is worth most to first states of these weights, as far as one place's change can tell.

        Coordinate ascent: the action of each place, from the last to the first, is made the best one given the
        others, until none changes. The value rises with every change, so that this ends; another schedule that
        differs at several places may be better still.

        Parameters
        ----------
        weights : array, (n,)
            >= 0, of any sum.
        start : tuple of int, (B,)
        """
        schedule = start
        while True:
            masses = self._masses(weights, schedule)
            found, values = list(schedule), np.zeros(len(weights))
            for place in reversed(range(len(schedule))):
                before = self._before_each(values, place)
                worth = {action: float(masses[place] @ column) for action, column in before.items()}
                most = max(worth, key=lambda action: worth[action])
                if worth[most] > worth[schedule[place]] + ROUNDING * max(map(abs, worth.values())):
                    found[place] = most
                values = before[found[place]]
            if tuple(found) == schedule:
                return schedule
            schedule = tuple(found)

    def _before_each(self, values: FloatArray, place: int) -> dict[int, FloatArray]:
        if self.held[place] == 1 and self.process.admissible is None and self.process.horizon is not None:
            return dict(enumerate(q_table(self.process, values).T))
        return {action: self._before(values, action, place) for action in self.choices(place)}

    def _masses(self, weights: FloatArray, schedule: Schedule) -> list[FloatArray]:
        """The mass of the states at each place, (B,) of (n,)."""
        masses = [weights]
        for place, action in enumerate(schedule[:-1]):
            mass = masses[-1]
            for _ in range(self.held[place]):
                mass = moved(self.process, mass, action)
            masses.append(mass)
        return masses


def following(process: Process, values: FloatArray, action: int) -> FloatArray:
    """E[values(next state)] of one action, (n,): by the process's own `continuation_of` if it has one."""
    of_one: Callable[[FloatArray, int], FloatArray] | None = getattr(process, "continuation_of", None)
    return process.continuation(values)[:, action] if of_one is None else of_one(values, action)


def moved(process: Process, mass: FloatArray, action: int) -> FloatArray:
    """The mass of the next state if everybody gets one action: by the process's own `push_by` if it has one."""
    by_one: Callable[[FloatArray, int], FloatArray] | None = getattr(process, "push_by", None)
    if by_one is not None:
        return by_one(mass, action)
    return process.push(mass, two_values(np.full(len(mass), action), len(process.actions), 1.0, 0.0))


def best_schedule(process: Process, start: Sequence[int]) -> Schedule:
    """The action that everybody gets on each day of a finite horizon; see `Schedules.best`.

    Parameters
    ----------
    process : Process
    start : sequence of int, (H,)
        The actions of the days to begin with.
    """
    return Schedules(process, (1,) * len(start)).best(process.initial, tuple(start))


def public_schedules(
    family: Schedules, first: Schedule, most: int, epsilons: Sequence[float], advance: Callable[[], object]
) -> list[Schedule]:
    """Schedules to choose among privately, from the process and its prior alone.

    The best schedule, each other first action before its rest, and then those that raise the value of the best
    epsilon-private choice. At its optimum each action j has a ceiling M_j, with q M_j <= p(j|x) <= M_j for
    q = e^-epsilon, and each record x a utility mu(x) of what it gets the last of its probability from
    (`policies.optimal.ceilings`). A schedule s that joins at a ceiling of d takes this probability from there, so it
    gains d sum over x of

        prior(x) (q (u_s(x) - mu(x)) + (1 - q) max(u_s(x) - mu(x), 0)).

    That is convex in u_s: so the best schedule for first states of weight prior(x) (q + (1 - q) [u_s(x) > mu(x)]) gains
    no less, and this is repeated until nothing changes. (Column generation: Dantzig & Wolfe 1960, Decomposition
    principle for linear programs.)

    Parameters
    ----------
    family : Schedules
        Of the process, or of a sketch of it.
    first : tuple of int
        The best schedule.
    most : int
        How many there may be, >= 1.
    epsilons : sequence of float
        Of the choices that they are for, rising.
    advance : callable
        Called after each epsilon.
    """
    chosen = [first, *((action, *first[1:]) for action in family.choices(0) if action != first[0])][:most]
    used = set(chosen[:2])
    for step, epsilon in enumerate(epsilons, start=1):
        room = len(chosen) + -(-(most - len(chosen)) * step // len(epsilons))
        chosen, needed = _enlarged(family, chosen, room, epsilon)
        used |= needed
        advance()
    return [schedule for schedule in chosen if schedule in used]


def _enlarged(
    family: Schedules, chosen: list[Schedule], room: int, epsilon: float
) -> tuple[list[Schedule], set[Schedule]]:
    """The schedules and those that raise the value at one epsilon; and which of them the best choice uses."""
    prior = family.process.initial
    table = family.values(chosen)
    worth, ceilings = _optimum(table, prior, epsilon)
    while len(chosen) < room:
        q = float(np.exp(-epsilon))
        found = _candidates(family, chosen, table, ceilings, q)[: min(BATCH, room - len(chosen))]
        if not found:
            break
        larger = np.column_stack([table, family.values(found)])
        reached, caps = _optimum(larger, prior, epsilon)
        stakes = float(prior @ larger.max(axis=1)) - float(prior @ table[:, 0])
        gained, worth = reached - worth, reached
        chosen, table, ceilings = [*chosen, *found], larger, caps
        if not gained > LEAST_GAIN * stakes:
            break
    return chosen, {schedule for schedule, cap in zip(chosen, ceilings, strict=True) if cap > 0}


def _optimum(table: FloatArray, prior: FloatArray, epsilon: float) -> tuple[float, FloatArray]:
    """The value of the best epsilon-private choice, and the ceilings, (m,)."""
    problem = DecisionProblem(table, prior, AnyRecord())
    probabilities = Optimal(epsilon).probabilities(problem)
    return problem.value(probabilities), probabilities.max(axis=0)


def _candidates(
    family: Schedules, chosen: list[Schedule], table: FloatArray, ceilings: FloatArray, q: float
) -> list[Schedule]:
    """Schedules that would gain, most first."""
    prior, margin = family.process.initial, marginal_utilities(table, ceilings, q)

    def gain(utilities: FloatArray) -> float:
        above = utilities - margin
        return float(prior @ (q * above + (1 - q) * np.maximum(above, 0.0)))

    # From where those that lose most against the best for each would be served, and from each schedule there is.
    starts = [prior * (q + (1 - q) * (column >= margin)) for column in table.T[:STARTS]]
    starts.append(prior * (table.max(axis=1) - margin))
    found: dict[Schedule, float] = {}
    for place, weights in enumerate(starts):
        schedule, gained = chosen[min(place, len(chosen) - 1)], -np.inf
        while True:
            better = family.best(weights, schedule)
            column = family.values([better])[:, 0]
            now = gain(column)
            if better in found or not now > gained + ROUNDING * float(prior @ np.abs(margin)):
                break
            schedule, gained = better, now
            weights = prior * (q + (1 - q) * (column > margin))
        if schedule not in chosen and gained > 0:
            found[schedule] = gained
    return sorted(found, key=lambda schedule: -found[schedule])


def marginal_utilities(table: FloatArray, ceilings: FloatArray, q: float) -> FloatArray:
    """What each record has the last of its probability from, (n,), if it is poured up to the ceilings.

    Parameters
    ----------
    table : array, (n, m)
        Utilities.
    ceilings : array, (m,)
        M, with a sum in [1, 1 / q].
    q : float
        e^-epsilon: of each action everybody gets q M at least.
    """
    order = np.argsort(-table, axis=1, kind="stable")
    poured = q * ceilings.sum() + (1 - q) * np.cumsum(ceilings[order], axis=1)
    full = poured >= 1 - 1e-9
    full[:, -1] = True
    last = np.take_along_axis(order, full.argmax(axis=1)[:, None], axis=1)
    margin: FloatArray = np.take_along_axis(table, last, axis=1)[:, 0]
    return margin
