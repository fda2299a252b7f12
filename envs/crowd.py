"""Many patients as counts: how many have each record, what they get, and what comes of it, day by day.

Patients who have the same record and get the same treatment are exchangeable, so nobody has to be followed: a crowd is
how many patients are in each cell of a grid, and what happens by chance takes a binomial number out of each cell. Who
comes: feature by feature, given those before it. What they get: treatment by treatment. What comes of it: flag by flag,
event by event, death, and the flags of the night, as `envs.treatment_response` says. What a flag was in the morning is
forgotten as soon as nothing that follows reads it, so that there are never more cells than records. The counts have
exactly the distribution of those of as many single patients, and how many random numbers they take is bounded by the
number of cells, not by that of patients.

What a patient has got until an evening is not followed either, but the mean over all patients and its standard error
are needed. Each cell knows the sum of its patients' returns so far, and that of their squares, in expectation given all
counts. Who leaves a cell does not depend on what they had before, so any k of its n patients are as likely to leave as
any other k: k/n of both sums goes with them. In the end the sum of returns is exact, as the counts alone say what is
paid; that of squares is E[sum of squares | counts]. So the sample variance that it gives is unbiased, as that of single
patients is, and varies no more than that (Rao 1945; Blackwell 1947, Conditional expectation and unbiased sequential
estimation).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envs.cohort import FloatArray, prior
from envs.flag_products import sum_over_flags
from envs.records import IntArray
from envs.scenario import DEATH, Scenario
from envs.treatment_effects import forbidden, treatment_costs
from envs.treatment_response import Course
from envs.utility import Utility

CountArray = NDArray[np.int64]
# An axis and a level, of each flag that something else reads in the morning.
Morning = tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Crowd:
    """How many patients are in each cell of a grid, and what they have got so far.

    Attributes
    ----------
    shape : tuple of int
        Of the grid; its cells are numbered in C order.
    counts : array of int64, (n_cells,)
        Patients.
    returns : array, (2, n_cells), or (0, n_cells) as long as nobody has got anything
        The sum of their returns so far, and that of the squares of these, in expectation given all counts.
    """

    shape: tuple[int, ...]
    counts: CountArray
    returns: FloatArray

    @classmethod
    def empty(cls, shape: tuple[int, ...], like: Crowd | None = None) -> Crowd:
        """Nobody, but room for those who come from another crowd, or for returns."""
        size = math.prod(shape)
        return cls(shape, np.zeros(size, dtype=np.int64), np.zeros((2 if like is None else len(like.returns), size)))

    @classmethod
    def admitted(cls, scenario: Scenario, patients: int, rng: np.random.Generator) -> Crowd:
        """New patients of a cohort, over the grid of records: a multinomial number of each.

        Feature by feature: of those who agree in the features before it, a binomial number has its first level, of the
        others another number its second, and so on.
        """
        masses = [prior(scenario).reshape(scenario.space.shape)]
        for _ in masses[0].shape:
            masses.append(masses[-1].sum(axis=-1))
        crowd = cls((), np.array([patients], dtype=np.int64), np.zeros((0, 1)))
        for mass in reversed(masses[:-1]):
            levels = crowd.shared(mass.reshape(-1, mass.shape[-1]), rng)
            counts = np.stack([level.counts for level in levels], axis=-1).ravel()
            crowd = cls(mass.shape, counts, np.zeros((0, counts.size)))
        return crowd

    @property
    def size(self) -> int:
        """The number of patients."""
        return int(self.counts.sum())

    @property
    def where(self) -> IntArray:
        """The cells that have patients."""
        return np.flatnonzero(self.counts != 0)  # in a quarter of the time that it takes with numbers

    def taken(self, where: IntArray | slice) -> Crowd:
        """Take everybody out of some cells."""
        found = self._looked_at(where)
        self._put(where, np.zeros_like(found.counts), np.zeros_like(found.returns))
        return found

    def of(self, cells: Sequence[slice]) -> Crowd:
        """A copy of those in some cells, by an index of the grid."""
        counts = self.counts.reshape(self.shape)[*cells]
        returns = np.array(self.returns.reshape(-1, *self.shape)[:, *cells])
        return Crowd(counts.shape, counts.flatten(), returns.reshape(-1, counts.size))

    def with_returns(self) -> Crowd:
        """The same patients, ready to be paid."""
        return self if len(self.returns) else replace(self, returns=np.zeros((2, self.counts.size)))

    def pay(self, amount: FloatArray | float) -> None:
        """Add the same to the return of every patient of a cell, (n_cells,)."""
        total, squares = self.returns
        paid = amount * self.counts
        squares += amount * (2 * total + paid)
        total += paid

    def leave(self, where: IntArray | slice, chance: FloatArray | float, rng: np.random.Generator) -> Crowd:
        """Take a binomial number of patients out of each of some cells, which must have some."""
        here = self._looked_at(where)
        counts = rng.binomial(here.counts, chance)
        returns = here.returns * (counts / here.counts)
        self._put(where, here.counts - counts, here.returns - returns)
        return Crowd(counts.shape, counts, returns)

    def enter(self, where: IntArray | slice, others: Crowd) -> None:
        """Let others in, each of their cells to one of these, no two to the same."""
        here = self._looked_at(where)
        self._put(where, here.counts + others.counts, here.returns + others.returns)

    def shared(self, chances: FloatArray, rng: np.random.Generator) -> Iterator[Crowd]:
        """Share everybody out, by the distribution of each cell, (n_cells, k): k grids of the same shape.

        One after the other, each by its share of what is left of the distribution.
        """
        everywhere = self.where
        rows = chances[everywhere]
        # Summed from its end: where nothing is behind an option, its share of the rest is exactly 1.
        rest = np.cumsum(rows[:, ::-1], axis=1)[:, ::-1]
        last = rows.shape[1] - 1
        for option in range(last + 1):
            some = np.flatnonzero((rows[:, option] > 0) & (self.counts[everywhere] > 0))
            found, where = Crowd.empty(self.shape, self), everywhere[some]
            share = rows[some, option] / rest[some, option]
            found.enter(where, self.leave(where, share, rng) if option < last else self.taken(where))
            yield found

    def _looked_at(self, where: IntArray | slice) -> Crowd:
        """A copy of some cells."""
        if isinstance(where, slice):
            counts, returns = self.counts[where].copy(), self.returns[:, where].copy()
        else:
            counts, returns = self.counts.take(where), self.returns.take(where, axis=1)
        return Crowd(counts.shape, counts, returns)

    def _put(self, where: IntArray | slice, counts: CountArray, returns: FloatArray) -> None:
        """What some cells hold from now on; row by row, which is quicker."""
        self.counts[where] = counts
        for row, new in zip(self.returns, returns, strict=True):
            row[where] = new


@dataclass
class Tally:
    """What is counted of all patients on all days.

    Attributes
    ----------
    given : array of int64, (n_actions,)
        How often each treatment was given.
    happened : array of int64, (n_actions, n_outcomes)
        After how many of these each outcome was there.
    ended : int
        Patients whose stay has ended.
    returns : array, (2,)
        The sum of their returns, and that of the squares of these, in expectation given all counts.
    """

    given: CountArray
    happened: CountArray
    ended: int = 0
    returns: FloatArray = field(default_factory=lambda: np.zeros(2))

    @classmethod
    def of(cls, scenario: Scenario) -> Tally:
        """Of nobody yet."""
        shape = len(scenario.actions), len(scenario.outcomes)
        return cls(np.zeros(shape[0], dtype=np.int64), np.zeros(shape, dtype=np.int64))

    def end(self, crowd: Crowd) -> None:
        """The stay of these patients ends."""
        self.ended += crowd.size
        self.returns += crowd.returns.sum(axis=1)

    @property
    def mean(self) -> float:
        """The mean return of those whose stay has ended."""
        return float(self.returns[0]) / self.ended

    @property
    def variance(self) -> float:
        """The sample variance of their returns, in expectation given all counts."""
        total, squares = map(float, self.returns)
        return max(squares - total * total / self.ended, 0.0) / (self.ended - 1)


class CountedDays:
    """Days and nights of a crowd over the grid of records.

    Parameters
    ----------
    course : Course
        The numbers of a day.
    utility : Utility
        What is paid.
    """

    def __init__(self, course: Course, utility: Utility) -> None:
        scenario, response = course.scenario, course.response
        self._scenario, self._shape = scenario, scenario.space.shape
        self._forbidden = [forbidden(scenario, action) for action in scenario.actions]
        self._axes = [scenario.space.axis(flag) for flag in scenario.transient]
        self._costs = treatment_costs(scenario, utility.costs)
        self._presence = response.presence
        self._hazards = [
            [response.hazard(name, action) for name in (*scenario.events, DEATH)]
            for action in range(len(scenario.actions))
        ]
        # The other way round than backwards in time: an onset looks at the evening, before anything appears.
        self._nights = [(self._axes[flag], course.onset[flag]) for flag in reversed(course.night_order)]
        self._read = self._read_by_others()
        # The combinations of the flags, numbered as in `sum_over_flags`, over the grid of records.
        lengths = [2 if axis in self._axes else 1 for axis in range(len(self._shape))]
        self._every = np.arange(2 ** len(self._axes)).reshape(lengths)
        self._weights = utility.weight_vector(scenario.outcomes)
        self._harm = sum_over_flags(self._weights[: len(self._axes)]).ravel()
        self._dangers = [sum_over_flags(hazard.kappa).ravel() for hazard in self._hazards[0]]

    def day(self, treated: Iterable[tuple[int, Crowd]], tally: Tally, rng: np.random.Generator, *, last: bool) -> Crowd:
        """Treat crowds, each with one action; who is still treated on the next morning.

        Parameters
        ----------
        treated : iterable of (int, Crowd)
            The position of a treatment, and who gets it.
        tally : Tally
            Is told of everybody.
        rng : Generator
            Draws treatment by treatment: flags, events, death; then what appears in the night.
        last : bool
            Whether all stays end in the evening.

        Raises
        ------
        ValueError
            If anybody gets a treatment that is contraindicated.
        """
        evening = Crowd.empty(self._shape)
        for action, crowd in treated:
            self._require_allowed(crowd, action)
            tally.given[action] += crowd.size
            for levels in product((0, 1), repeat=len(self._read)):
                morning = tuple(zip(self._read, levels, strict=True))
                part = crowd.of(_cells(self._shape, morning))
                if last:
                    tally.end(self._survivors(part, morning, action, tally, rng, kept=False)[1])
                else:
                    evening.enter(*self._survivors(part, morning, action, tally, rng, kept=True))
        if self._axes:  # without flags nobody recovers
            tally.end(evening.taken(np.flatnonzero(_over(self._every, self._shape) == 0)))
        for axis, onset in self._nights:
            _turn(evening, axis, _at(onset, ((axis, 0),)), None, rng)
        return evening

    def _require_allowed(self, crowd: Crowd, action: int) -> None:
        mask = self._forbidden[action]
        wrong = np.flatnonzero((crowd.counts != 0) & _over(mask, self._shape)) if mask.any() else crowd.where[:0]
        if wrong.size:
            who = self._scenario.space.describe(int(wrong[0]))
            raise ValueError(f"{self._scenario.actions[action]} is contraindicated for [{who}], and is given to them.")

    def _survivors(
        self, part: Crowd, morning: Morning, action: int, tally: Tally, rng: np.random.Generator, *, kept: bool
    ) -> tuple[IntArray, Crowd]:
        """The day of those who have some levels of the flags that are read: the cells of who survives it, and who.

        Cells are records if they are kept; otherwise flags are forgotten that no hazard reads in the evening.
        """
        happened, cost = tally.happened[action], _at(self._costs[action], morning)
        paid = any(cost.shape[axis] > 1 for axis in self._axes)
        if paid:
            # By flags, before they change; what is paid later needs no place in the cells until then.
            part = part.with_returns()
            part.pay(-_over(cost, part.shape))
        part, forgotten = self._turned(part, morning, action, happened, rng, kept=kept)
        where, flags = part.where, _over(_at(self._every, forgotten), part.shape)
        left, flags = part.taken(where).with_returns(), flags[where]
        left.pay(-self._harm[flags] - (0.0 if paid else _chances(cost, part.shape, where)))
        by_flags = np.zeros(self._harm.size, dtype=np.int64)
        np.add.at(by_flags, flags, left.counts)
        for flag in range(len(self._axes)):
            happened[flag] += by_flags.reshape([2] * len(self._axes)).take(1, axis=flag).sum()
        for place, hazard in enumerate(self._hazards[action], len(self._axes)):
            level, slope = (_chances(_at(grid, morning), part.shape, where) for grid in (hazard.level, hazard.slope))
            danger = self._dangers[place - len(self._axes)][flags]
            struck = left.leave(slice(None), -np.expm1(-level - slope * danger), rng)
            happened[place] += struck.size
            struck.pay(-self._weights[place])
            if place < len(happened) - 1:
                left.enter(slice(None), struck)
            else:
                tally.end(struck)
        return where, left

    def _turned(
        self, part: Crowd, morning: Morning, action: int, happened: CountArray, rng: np.random.Generator, *, kept: bool
    ) -> tuple[Crowd, Morning]:
        """The same patients in the evening, and which flags are forgotten: counted, paid, and all as if absent."""
        steep = [hazard.kappa for hazard in self._hazards[action] if _at(hazard.slope, morning).any()]
        needed = [kept or any(kappa[flag] > 0 for kappa in steep) for flag in range(len(self._axes))]
        known, forgotten = dict(morning), []
        # First those that can be forgotten, last those that something reads in the morning: so there are fewest cells.
        for flag in sorted(range(len(self._axes)), key=lambda flag: (needed[flag], self._axes[flag] in known)):
            axis = self._axes[flag]
            if axis in known:
                part = _with_both_levels(part, axis, known[axis])
            presence = _at(self._presence[action][flag], [place for place in morning if place[0] != axis])
            _turn(part, axis, _at(presence, ((axis, 0),)), 1 - _at(presence, ((axis, 1),)), rng)
            if not needed[flag]:
                forgotten.append((axis, 0))
                part, present = (part.of(_cells(part.shape, ((axis, level),))).with_returns() for level in (0, 1))
                happened[flag] += present.size
                present.pay(-self._weights[flag])
                part.enter(slice(None), present)
        return part, tuple(forgotten)

    def _read_by_others(self) -> list[int]:
        """The axes of the flags that a hazard reads in the morning, or the day of another flag."""
        grids = [(-1, grid) for row in self._hazards for each in row for grid in (each.level, each.slope)]
        grids += [(own, grid) for row in self._presence for own, grid in zip(self._axes, row, strict=True)]
        return [axis for axis in self._axes if any(grid.shape[axis] > 1 for own, grid in grids if own != axis)]


def _turn(crowd: Crowd, axis: int, appears: FloatArray, clears: FloatArray | None, rng: np.random.Generator) -> None:
    """Draw what becomes of a flag: the chances that it appears where it is absent, and clears where it is present."""
    step, where = math.prod(crowd.shape[axis + 1 :]), crowd.where
    present = where // step % 2 == 1
    moves = [(where[~present], appears, step)]
    if clears is not None:
        moves.append((where[present], clears, -step))
    moving = [
        (cells + to, crowd.leave(cells, _chances(chance, crowd.shape, cells), rng))
        for cells, chance, to in moves
        if chance.any()
    ]
    # All are drawn before any arrives.
    for cells, others in moving:
        crowd.enter(cells, others)


def _chances(grid: FloatArray, shape: tuple[int, ...], where: IntArray) -> FloatArray | float:
    """Entries of some cells, in a grid of this shape."""
    return float(grid.item()) if grid.size == 1 else _over(grid, shape)[where]


def _with_both_levels(crowd: Crowd, axis: int, level: int) -> Crowd:
    """The same patients, who all have one level of a flag, in a grid that has both."""
    shape = tuple(2 if each == axis else length for each, length in enumerate(crowd.shape))
    both, outer, inner = Crowd.empty(shape, crowd), math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    both.counts.reshape(outer, 2, inner)[:, level] = crowd.counts.reshape(outer, inner)
    both.returns.reshape(-1, outer, 2, inner)[:, :, level] = crowd.returns.reshape(-1, outer, inner)
    return both


def _cells(shape: tuple[int, ...], places: Iterable[tuple[int, int]]) -> tuple[slice, ...]:
    """An index of the cells with some levels, (axis, level); axes stay, those of length 1 as they are."""
    index = [slice(None)] * len(shape)
    for axis, level in places:
        if shape[axis] > 1:
            index[axis] = slice(level, level + 1)
    return tuple(index)


def _at(grid: FloatArray, places: Iterable[tuple[int, int]]) -> FloatArray:
    return grid[_cells(grid.shape, places)]


def _over(grid: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Of each cell of a grid, what broadcasts over it."""
    return np.broadcast_to(grid, shape).reshape(-1)
