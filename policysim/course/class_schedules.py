"""The schedules of each public class: who is in a class is public, so each may have its own, at no cost in privacy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from policies.adjacency import Adjacency, AnyRecord, Listed
from policies.arrays import FloatArray, IntArray
from policies.problem import DecisionProblem
from policysim.course.process import Process
from policysim.course.schedule_search import best_of_all, public_schedules
from policysim.course.schedules import DayAction, Schedule, Schedules, moved


@dataclass(frozen=True, eq=False)
class ClassSchedules:
    """The schedules of a process, class by class; of all states where there are no classes, or where they change.

    Attributes
    ----------
    process : Process
    states : tuple of array of int
        Those of each class.
    families : tuple of Schedules
        The schedules of each class: those of its own process.
    """

    process: Process
    states: tuple[IntArray, ...]
    families: tuple[Schedules, ...]

    @classmethod
    def of(cls, process: Process, held: int | None = None) -> ClassSchedules:
        """Those that hold each action for `held` decisions; ValueError as `Schedules.of`."""
        return cls._made(process, lambda part: Schedules.of(part, held))

    @classmethod
    def of_days(cls, process: Process) -> ClassSchedules:
        """Those of a finite horizon that may change every day, whether or not there are any (`open`)."""
        return cls._made(process, lambda part: Schedules(part, (1,) * (process.horizon or 0)))

    @classmethod
    def given(cls, process: Process, length: int) -> ClassSchedules:
        """Those of so many decisions of their own; ValueError for a process that has none."""
        return cls._made(process, lambda part: Schedules(part, (1,) * length).checked())

    @classmethod
    def _made(cls, process: Process, make: Callable[[Process], Schedules]) -> ClassSchedules:
        parts = process.by_class()
        return cls(process, tuple(states for states, _ in parts), tuple(make(part) for _, part in parts))

    @property
    def open(self) -> bool:
        """Whether each class has an action that all of its states allow."""
        return all(family.open for family in self.families)

    @property
    def single(self) -> bool:
        """Whether there is one class only."""
        return len(self.states) == 1

    @property
    def classes(self) -> IntArray:
        """The position of each state's class in `families`, (n,)."""
        found = np.empty(len(self.process.initial), dtype=np.intp)
        for place, states in enumerate(self.states):
            found[states] = place
        return found

    @property
    def adjacency(self) -> Adjacency:
        """Which first states are hidden among each other."""
        return AnyRecord() if self.single else Listed.sensitive(np.column_stack([self.classes] * 2), [1])

    def best(self) -> tuple[Schedule, ...]:
        """The best schedule of each class (`policysim.course.schedule_search.best_of_all`)."""
        return tuple(best_of_all(family) for family in self.families)

    def by_day(self, schedules: Sequence[Schedule]) -> tuple[DayAction, ...]:
        """A schedule of each class as what is given on each day."""
        return schedules[0] if self.single else tuple(zip(*schedules, strict=True))

    def masses(self, schedule: Sequence[DayAction]) -> list[FloatArray]:
        """The distribution of each day's state, (n,) each; where nobody is left, that of the last day with somebody."""
        mass, found = self.process.initial, [self.process.initial]
        for action in schedule[:-1]:
            # What is left over from a difference of sums may be the rounding of 0.
            mass = np.maximum(moved(self.process, mass, action), 0.0)
            left = mass.sum()
            found.append(mass / left if left > 0 else found[-1])
        return found

    def found(self, first: Sequence[Schedule], most: int, epsilons: Sequence[float]) -> list[list[Schedule]]:
        """The public schedules of each class, of which `first` has the best ones."""
        return [
            public_schedules(family, best, most, epsilons) for family, best in zip(self.families, first, strict=True)
        ]

    def expanded(self, schedules: Sequence[Sequence[Schedule]]) -> IntArray:
        """The action of every decision, (m, H), or (n_classes, m, H); of a class that has fewer, the first again."""
        most = max(map(len, schedules))
        actions = [
            family.expanded([*of_class, *[of_class[0]] * (most - len(of_class))])
            for family, of_class in zip(self.families, schedules, strict=True)
        ]
        return actions[0] if self.single else np.stack(actions)

    def problem(self, schedules: Sequence[Sequence[Schedule]]) -> DecisionProblem:
        """The choice among schedules: what each of a state's class is worth to it, exactly, (n, m).

        ValueError if no class has two.
        """
        if max(map(len, schedules)) < 2:
            raise ValueError(
                "there is only one schedule to choose: every state allows one action only, or schedules is below 2."
            )
        process = self.process
        actions = self.expanded(schedules)
        names = [_in_words(process, held) for held in actions] if self.single else None
        outcomes: dict[str, FloatArray] = getattr(process, "outcomes", {})
        return DecisionProblem(
            self._table(schedules),
            process.initial,
            self.adjacency,
            names or [f"schedule {place + 1} of the class" for place in range(actions.shape[1])],
            records=process.records,
            outcomes={name: self._table(schedules, name) for name in outcomes},
        )

    def _table(self, schedules: Sequence[Sequence[Schedule]], outcome: str | None = None) -> FloatArray:
        """What each schedule of a state's class is worth to it, (n, m), or what it adds to an outcome."""
        most = max(map(len, schedules))
        table = np.empty((len(self.process.initial), most), order="F")
        for states, family, of_class in zip(self.states, self.families, schedules, strict=True):
            counted = None if outcome is None else family.process.outcomes[outcome]  # type: ignore[attr-defined]  # it has them
            values = family.values(of_class, counted)
            if self.single:
                return values
            table[np.ix_(states, np.arange(len(of_class)))] = values
            table[np.ix_(states, np.arange(len(of_class), most))] = values[:, :1]
        return table


def best_constants(process: Process) -> tuple[DayAction, ...] | None:
    """What is worth most on all days to all who allow the same, (H,): for each public class.

    None where every state allows all, or where what a state allows may change.
    """
    if process.admissible is None or process.horizon is None:
        return None
    family = ClassSchedules.of_days(process)
    masks = [process.admissible[states] for states in family.states]
    if any((mask != mask[0]).any() for mask in masks):
        return None
    worth: dict[tuple[bool, ...], FloatArray] = {}
    for states, own, mask in zip(family.states, family.families, masks, strict=True):
        values = np.full(len(process.actions), -np.inf)
        share = process.initial[states].sum()
        for action in own.open:
            values[action] = share * own.constant_value(action)
        allowed = tuple(mask[0].tolist())
        worth[allowed] = worth.get(allowed, 0.0) + values
    best = tuple(int(worth[tuple(mask[0].tolist())].argmax()) for mask in masks)
    return (best if len(best) > 1 else best[0],) * process.horizon


def _in_words(process: Process, actions: IntArray) -> str:
    """The actions of a schedule by their names, each with how often it comes in a row.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> _in_words(SimpleNamespace(actions=("none", "drug")), np.array([1, 0, 0]))
    'drug, none x 2'
    """
    runs = [(process.actions[action], len(list(run))) for action, run in groupby(actions)]
    return ", ".join(name if times == 1 else f"{name} x {times}" for name, times in runs)
