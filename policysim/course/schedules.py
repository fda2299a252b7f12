"""Schedules: the same action for everybody, which may change from step to step, and looks at nobody.

What a schedule is worth to each first state is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from envs.treatment_response import is_whole
from policies.arrays import FloatArray, IntArray
from policies.policy import two_values
from policysim.course.chain import EndlessError, chain_values
from policysim.course.process import BoolArray, Process
from policysim.course.step_problems import q_table, require_tabular

Schedule = tuple[int, ...]
# What everybody gets on a day; or what everybody in each public class does, where classes never change.
DayAction: TypeAlias = int | tuple[int, ...]
# Of a process without a horizon, how often a schedule may change before its last action goes on for ever.
CHANGES = 8
# Schedules of a finite horizon have at most so many steps of their own; of a longer one each is held for several.
MOST_STEPS = 32
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
        if held is not None and (not is_whole(held) or held < 1 or (horizon is not None and held > horizon)):
            most = "" if horizon is None else f" and <= the horizon {horizon}"
            raise ValueError(f"held must be a whole number >= 1{most}, got held={held!r}.")
        if horizon is None:
            return cls(process, (held or 1,) * (CHANGES + 1)).checked()
        step = held or -(-horizon // MOST_STEPS)
        lengths = [step] * (horizon // step)
        return cls(process, (*lengths, *([horizon % step] if horizon % step else []))).checked()

    def checked(self) -> Schedules:
        """Itself; ValueError for a process that has no schedule."""
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

    @cached_property
    def _endless(self) -> dict[int, FloatArray]:
        """What each action is worth if it goes on for ever, where that is finite in every state."""
        known: dict[int, FloatArray] = {}
        mdp = require_tabular(self.process)
        for action in self.open:
            chosen = np.full(len(mdp.initial), action)
            try:
                values = chain_values(mdp, two_values(chosen, len(mdp.actions), 1.0, 0.0))
            except EndlessError:
                continue
            if np.isfinite(values).all():
                known[action] = values
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

    def constant_value(self, action: int) -> float:
        """What it is worth to give everybody the same action on all days, from the initial distribution."""
        return float(self.process.initial @ self.values([(action,) * len(self.held)])[:, 0])

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


def following(process: Process, values: FloatArray, action: DayAction) -> FloatArray:
    """E[values(next state)] if everybody gets what is given on a day, (n,).

    By the process's own `continuation_of` if it has one.
    """
    if isinstance(action, tuple):
        return _of_own(process, action, lambda one, _: following(process, values, one))
    of_one: Callable[[FloatArray, int], FloatArray] | None = getattr(process, "continuation_of", None)
    return process.continuation(values)[:, action] if of_one is None else of_one(values, action)


def moved(process: Process, mass: FloatArray, action: DayAction) -> FloatArray:
    """The mass of the next state if everybody gets what is given on a day: by the process's own `push_by`, if any."""
    if isinstance(action, tuple):
        # No mass goes from one class to another.
        return _of_own(process, action, lambda one, own: moved(process, np.where(own, mass, 0.0), one))
    by_one: Callable[[FloatArray, int], FloatArray] | None = getattr(process, "push_by", None)
    if by_one is not None:
        return by_one(mass, action)
    return process.push(mass, two_values(np.full(len(mass), action), len(process.actions), 1.0, 0.0))


def given(process: Process, table: FloatArray, action: DayAction) -> FloatArray:
    """The entries of a table, (n, k), at what everybody gets on a day, (n,)."""
    return _of_own(process, action, lambda one, _: table[:, one]) if isinstance(action, tuple) else table[:, action]


def _of_own(
    process: Process, actions: tuple[int, ...], of_action: Callable[[int, BoolArray], FloatArray]
) -> FloatArray:
    """What stands for each state at the action of its class, (n,); asked for once for each action."""
    chosen, found = np.array(actions)[process.classes], np.empty(len(process.initial))
    for action in sorted(set(actions)):
        own = chosen == action
        found[own] = of_action(action, own)[own]
    return found


def best_schedule(process: Process, start: Sequence[int]) -> Schedule:
    """The action that everybody gets on each day of a finite horizon; see `Schedules.best`.

    Parameters
    ----------
    process : Process
    start : sequence of int, (H,)
        The actions of the days to begin with.
    """
    return Schedules(process, (1,) * len(start)).best(process.initial, tuple(start))
