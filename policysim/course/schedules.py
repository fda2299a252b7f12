"""Schedules: the same action for everybody in a public class, which may change from step to step, and looks at nobody.

What a schedule is worth to each first state is exact. Which ones to choose among privately is found from a process and
its prior alone. Both are public, so that the list of schedules reveals nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import TypeAlias

import numpy as np

from envs.treatment_response import is_whole
from policies.adjacency import Adjacency, AnyRecord, Listed
from policies.arrays import BoolArray, FloatArray, IntArray
from policies.optimal.certificate import optimal_certificate
from policies.optimal.optimum import Optimal
from policies.policy import NotApplicableError, two_values
from policies.problem import DecisionProblem
from policies.proof import LOST, grouped
from policysim.course.planning import require_tabular
from policysim.course.planning_infinite import EndlessError, chain_values
from policysim.course.process import Process, outcomes_of, q_table

Schedule = tuple[int, ...]
# What everybody gets on a day; or what everybody in each public class does, where classes never change.
DayAction: TypeAlias = int | tuple[int, ...]
# Of a process without a horizon, how often a schedule may change before its last action goes on for ever.
CHANGES = 8
# Schedules of a finite horizon have at most so many steps of their own; of a longer one each is held for several.
MOST_STEPS = 32
# What is worth more by less than this, relative, is rounding.
ROUNDING = 1e-12
# How many schedules a search adds at a time, and from how many it starts.
BATCH, STARTS = 2, 6
# The search ends if it gains less than this share of what the best for each gains over one schedule for all.
LEAST_GAIN = 1e-3
# The epsilons that schedules are searched for, whichever is asked: so the value at one depends on no other, and never
# falls as it grows.
SEARCHED = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
# Of how many fixed parts of a record the sketch of a course is made that is searched.
SKETCH = 16


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
            ends = {end: self.before(ends[end[1:]], end[0], place, rewards) for end in needed}
        table = np.empty((len(self.process.initial), len(schedules)), order="F")
        for column, schedule in zip(table.T, schedules, strict=True):
            column[:] = ends[schedule]
        return table

    def constant_value(self, action: int) -> float:
        """What it is worth to give everybody the same action on all days, from the initial distribution."""
        return float(self.process.initial @ self.values([(action,) * len(self.held)])[:, 0])

    def before(self, values: FloatArray, action: int, place: int, rewards: FloatArray | None = None) -> FloatArray:
        """What the states are worth before an action is held, (n,), if these are their values after it."""
        process = self.process
        if process.horizon is None and place == len(self.held) - 1:
            return self._endless[action]
        gains, discount = (process.rewards, process.discount) if rewards is None else (rewards, 1.0)
        for _ in range(self.held[place]):
            values = gains[:, action] + discount * following(process, values, action)
        return values

    def best(self, weights: FloatArray, start: Schedule) -> Schedule:
        """The schedule that is worth most to first states of these weights, as far as changes of one place show.

        Coordinate ascent: the action of each place, from the last to the first, is made the best one given the
        others, until none changes. The value rises with every change, so that this ends; another schedule that
        differs at several places may be better still.

        Parameters
        ----------
        weights : array, (n,)
            >= 0, of any sum.
        start : tuple of int, (B,)
        """
        process, schedule = self.process, start
        while True:
            # The mass of the states at each place.
            masses = [weights]
            for place, action in enumerate(schedule[:-1]):
                mass = masses[-1]
                for _ in range(self.held[place]):
                    mass = mass_after(process, mass, action)
                masses.append(mass)
            found, values = list(schedule), np.zeros(len(weights))
            for place in reversed(range(len(schedule))):
                if self.held[place] == 1 and process.admissible is None and process.horizon is not None:
                    before = dict(enumerate(q_table(process, values).T))
                else:
                    before = {action: self.before(values, action, place) for action in self.choices(place)}
                worth = {action: float(masses[place] @ column) for action, column in before.items()}
                most = max(worth, key=lambda action: worth[action])
                if worth[most] > worth[schedule[place]] + ROUNDING * max(map(abs, worth.values())):
                    found[place] = most
                values = before[found[place]]
            if tuple(found) == schedule:
                return schedule
            schedule = tuple(found)


def following(process: Process, values: FloatArray, action: DayAction) -> FloatArray:
    """E[values(next state)] if everybody gets what is given on a day, (n,)."""
    if isinstance(action, tuple):
        return _of_own(process, action, lambda one, _: following(process, values, one))
    return process.continuation(values, [action])[:, 0]


def mass_after(process: Process, mass: FloatArray, action: DayAction) -> FloatArray:
    """The mass of the next state if everybody gets what is given on a day."""
    if isinstance(action, tuple):
        # No mass goes from one class to another.
        return _of_own(process, action, lambda one, own: mass_after(process, np.where(own, mass, 0.0), one))
    return process.push(mass, np.ones((len(mass), 1)), [action])


def at_given(process: Process, table: FloatArray, action: DayAction) -> FloatArray:
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


def best_of_all(family: Schedules) -> Schedule:
    """The best schedule, climbed to from every constant one: on a sketch of the process, if it has one, and then on it.

    It is worth no less than any that differs at one place.
    """
    searched, places = replace(family, process=sketch_of(family.process)), range(len(family.held))
    constants = [tuple(action for _ in places) for action in family.choices(len(places) - 1)]
    found = sorted({searched.best(searched.process.initial, constant) for constant in constants})
    worth = searched.process.initial @ searched.values(found)
    return family.best(family.process.initial, found[int(worth.argmax())])


def sketch_of(process: Process) -> Process:
    """A smaller process that stands in for one where nothing has to be exact, if it has a `sketch`; else itself."""
    sketch: Callable[[int], Process] | None = getattr(process, "sketch", None)
    return process if sketch is None else sketch(SKETCH)


def public_schedules(family: Schedules, first: Schedule, most: int) -> list[Schedule]:
    """Schedules to choose among privately, from the process (or its sketch, if it has one) and its prior alone.

    The best schedule, each other first action before its rest, and then those that raise the value of the best
    epsilon-private draw: the columns that its linear programme still lacks (column generation: Dantzig & Wolfe 1960,
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

    Returns
    -------
    list of tuple of int
        Those that the best choice uses at some epsilon of `SEARCHED`, and at least two.
    """
    family = replace(family, process=sketch_of(family.process))
    chosen = [first, *((action, *first[1:]) for action in family.choices(0) if action != first[0])][:most]
    used: dict[Schedule, None] = {}
    # To a class that nobody is in, no schedule is worth more than another.
    for epsilon in SEARCHED if len(chosen) > 1 and family.process.initial.any() else ():
        room = most - len([schedule for schedule in chosen if schedule not in used])
        used |= dict.fromkeys(_used(family, chosen, epsilon, max(room, len(chosen))))
        chosen = list(dict.fromkeys([*used, *chosen]))[:most]
    enough = [*used, *(schedule for schedule in chosen if schedule not in used)][: max(2, len(used))]
    return enough[:most]


def _used(family: Schedules, chosen: Sequence[Schedule], epsilon: float, most: int) -> list[Schedule]:
    """The schedules that the best private choice uses, of those chosen and of those that it lacks, so many at most.

    They are added until another one gains less than `LEAST_GAIN`.
    """
    names, prior = list(chosen), family.process.initial
    table, worth = family.values(names), -np.inf
    while True:
        problem = DecisionProblem(table, prior, AnyRecord())
        probabilities = Optimal(epsilon).probabilities(problem)
        before, worth = worth, problem.value(probabilities)
        uses = probabilities.max(axis=0) > 0
        stakes = float(prior @ (table.max(axis=1) - table[:, 0]))
        if len(names) >= most or not worth - before > LEAST_GAIN * stakes:
            break
        lacking = _lacking(family, names, table, uses, epsilon)[: most - len(names)]
        if not lacking:
            break
        names += lacking
        table = np.column_stack([table, family.values(lacking)])
    return [schedule for schedule, is_used in zip(names, uses, strict=True) if is_used]


def _lacking(
    family: Schedules, chosen: list[Schedule], table: FloatArray, uses: BoolArray, epsilon: float
) -> list[Schedule]:
    """The schedules that would gain most, as far as small changes of the first ones can tell, at most `BATCH`."""
    q, prior = float(np.exp(-epsilon)), family.process.initial
    margin = _margin(prior, table, uses, epsilon)
    slack = ROUNDING * float(prior @ np.abs(table).max(axis=1))
    gained = dict(most_gaining(family, prior[None], margin[None], start, q) for start in chosen[:STARTS])
    lacking = [schedule for schedule, gain in gained.items() if schedule not in chosen and gain > slack]
    return sorted(lacking, key=lambda schedule: -gained[schedule])[:BATCH]


def most_gaining(
    family: Schedules, masses: FloatArray, prices: FloatArray, start: Schedule, q: float
) -> tuple[Schedule, float]:
    """The schedule that gains most where mass has prices, and its gain, as far as small changes of one show.

    The gain is convex in what a schedule is worth: so the best schedule for first states of its slope as their weight
    gains no less, and this is repeated until nothing changes.

    Parameters
    ----------
    masses, prices : array, (L, n)
    start : tuple of int
    q : float
        e^-epsilon.
    """
    schedule, gained, worth = start, -np.inf, family.values([start])[:, 0]
    slack = ROUNDING * float((masses * np.abs(prices)).sum())
    while True:
        weights = np.zeros(len(worth))
        for mass, price in zip(masses, prices, strict=True):
            weights += mass * np.where(worth > price, 1.0, q)
        better = family.best(weights, schedule)
        worth = family.values([better])[:, 0]
        gain = gain_over(masses, prices, worth, q)
        if not gain > gained + slack:
            return schedule, gained
        schedule, gained = better, gain


def gain_over(masses: FloatArray, prices: FloatArray, worth: FloatArray, q: float) -> float:
    """What a unit of weight gains that is worth so much, (n,), where masses, (L, n), have prices, (L, n)."""
    return float(sum(mass @ gains(worth - price, q) for mass, price in zip(masses, prices, strict=True)))


def gains(surplus: FloatArray, q: float) -> FloatArray:
    """What a unit of weight gains where its mass is worth so much more than its price: all of it, or q of a loss."""
    return np.where(surplus > 0, surplus, q * surplus)


def _margin(prior: FloatArray, table: FloatArray, uses: BoolArray, epsilon: float) -> FloatArray:
    """mu, (n,), from the dual of the choice among those that are used."""
    columns = np.flatnonzero(uses)
    if len(columns) < 2:
        columns = np.arange(min(2, table.shape[1]))
    table = table[:, columns]
    try:
        problem = DecisionProblem(table, prior, AnyRecord())
        proof = optimal_certificate(problem, epsilon)
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
        states, parts = zip(*process.by_class(), strict=True)
        return cls(process, states, tuple(Schedules.of(part, held) for part in parts))

    @classmethod
    def of_days(cls, process: Process, days: int) -> ClassSchedules:
        """Those of so many decisions that may change every day, whether or not there are any (`Schedules.open`)."""
        states, parts = zip(*process.by_class(), strict=True)
        return cls(process, states, tuple(Schedules(part, (1,) * days) for part in parts))

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

    def best(self) -> tuple[Schedule, ...]:
        """The best schedule of each class (`policysim.course.schedules.best_of_all`)."""
        return tuple(best_of_all(family) for family in self.families)

    def by_day(self, schedules: Sequence[Schedule]) -> tuple[DayAction, ...]:
        """A schedule of each class as what is given on each day."""
        return schedules[0] if self.single else tuple(zip(*schedules, strict=True))

    def found(self, first: Sequence[Schedule], most: int) -> list[list[Schedule]]:
        """The public schedules of each class, of which `first` has the best ones."""
        return [public_schedules(family, best, most) for family, best in zip(self.families, first, strict=True)]

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
        if self.single:
            adjacency: Adjacency = AnyRecord()
            # Each action with how often it comes in a row, such as "drug, none x 2".
            runs = [[(process.actions[action], len(list(run))) for action, run in groupby(held)] for held in actions]
            names = [", ".join(name if times == 1 else f"{name} x {times}" for name, times in held) for held in runs]
        else:
            adjacency = Listed.sensitive(np.column_stack([self.classes] * 2), [1])
            names = [f"schedule {place + 1} of the class" for place in range(actions.shape[1])]
        return DecisionProblem(
            self._table(schedules),
            process.initial,
            adjacency,
            names,
            records=process.records,
            outcomes={name: self._table(schedules, name) for name in outcomes_of(process)},
        )

    def _table(self, schedules: Sequence[Sequence[Schedule]], outcome: str | None = None) -> FloatArray:
        """What each schedule of a state's class is worth to it, (n, m), or what it adds to an outcome."""
        most = max(map(len, schedules))
        table = np.empty((len(self.process.initial), most), order="F")
        for states, family, of_class in zip(self.states, self.families, schedules, strict=True):
            counted = None if outcome is None else outcomes_of(family.process)[outcome]
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
    family = ClassSchedules.of_days(process, process.horizon)
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
