"""Days and nights of many patients as counts: `envs.treatment_response`, drawn cell by cell (`envs.crowd`).

Treatment by treatment, flag by flag, event by event, death, and the flags of the night: each takes a binomial number of
patients out of each cell of a crowd. What a flag was in the morning is forgotten as soon as nothing that follows reads
it, and on the last day what it is in the evening, too: patients who differ in nothing else are one cell from then on.
So there are never more cells than records, but for each combination of the flags that something else reads in the
morning, which are treated one after the other. In a night nothing appears for most patients: one number says for how
many anything does, and only these are drawn flag by flag.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envs.backup import flags_read, sum_over_flags
from envs.cohort import FloatArray
from envs.crowd import CountArray, Crowd, CrowdCells, Tally
from envs.records import IntArray
from envs.scenario import DEATH
from envs.treatment_response import Course, Hazard, forbidden, treatment_costs
from envs.utility import Utility

# A flag and its level, of each that something else reads in the morning.
Morning = tuple[tuple[int, int], ...]


class CountedDays:
    """Days and nights of a crowd.

    Parameters
    ----------
    course : Course
        The numbers of a day.
    utility : Utility
        What is paid.
    tables : sequence of array, (n_records or more, k), optional
        What else is read of a patient, one row a record: how treatments are chosen.

    Attributes
    ----------
    cells : Cells
        Those of the crowds.
    """

    def __init__(self, course: Course, utility: Utility, tables: Sequence[NDArray[Any]] = ()) -> None:
        scenario, response = course.scenario, course.response
        space, actions = scenario.space, range(len(scenario.actions))
        masks = [forbidden(scenario, name) for name in scenario.actions]
        costs = treatment_costs(scenario, utility.costs)
        hazards = [[response.hazard(name, action) for name in (*scenario.events, DEATH)] for action in actions]
        read = [*masks, *costs, *course.onset, *(grid for row in response.presence for grid in row)]
        read += [grid for row in hazards for each in row for grid in (each.level, each.slope)]
        self.cells = CrowdCells.of(space, [space.axis(flag) for flag in scenario.transient], read, tables)
        self._scenario, self._shape, over = scenario, self.cells.shape, self.cells.grid
        # The axis of a flag is its number.
        self._flags = range(len(scenario.transient))
        self._forbidden, self._costs = [over(mask) for mask in masks], [over(cost) for cost in costs]
        self._presence = [[over(grid) for grid in row] for row in response.presence]
        self._hazards = [[Hazard(over(each.level), over(each.slope), each.kappa) for each in row] for row in hazards]
        # The other way round than backwards in time: an onset looks at the evening, before anything appears.
        self._nights = [
            (flag, over(np.where(space.along(scenario.transient[flag], [0, 1]) > 0, 0.0, onset)))
            for flag in reversed(course.night_order)
            if (onset := course.onset[flag]).any()
        ]
        if self._nights:
            self._anything = _over(_any_from_here_on([chance for _, chance in self._nights])[0], self._shape)
        grids = (grid for row in self._hazards for each in row for grid in (each.level, each.slope))
        self._read = flags_read(self._presence, grids)
        # The combinations of the flags, numbered as in `sum_over_flags`, over the grid of cells.
        self._every = np.arange(2 ** len(self._flags)).reshape(*(2 for _ in self._flags), 1)
        self._weights = utility.weight_vector(scenario.outcomes)
        self._harm = sum_over_flags(self._weights[: len(self._flags)]).ravel()
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
            mask = self._forbidden[action]
            wrong = np.flatnonzero((crowd.counts != 0) & _over(mask, self._shape)) if mask.any() else crowd.where[:0]
            if wrong.size:
                who = self._scenario.space.describe(int(self.cells.records[wrong[0]]))
                name = self._scenario.actions[action]
                raise ValueError(f"{name} is contraindicated for [{who}], and is given to them.")
            tally.given[action] += crowd.size
            for levels in product((0, 1), repeat=len(self._read)):
                morning = tuple(zip(self._read, levels, strict=True))
                part = crowd.of(_cells(self._shape, morning))
                if last:
                    tally.end(self._survivors(part, morning, action, tally, rng, kept=False)[1])
                else:
                    evening.enter(*self._survivors(part, morning, action, tally, rng, kept=True))
        if self._flags:  # without flags nobody recovers
            tally.end(evening.taken(np.flatnonzero(_over(self._every, self._shape) == 0)))
        if self._nights and not last:
            self._night(evening, rng)
        return evening

    def _survivors(
        self, part: Crowd, morning: Morning, action: int, tally: Tally, rng: np.random.Generator, *, kept: bool
    ) -> tuple[IntArray, Crowd]:
        """The day of those who have some levels of the flags that are read: the cells of who survives it, and who.

        Cells are records if they are kept; otherwise flags are forgotten that no hazard reads in the evening.
        """
        happened, cost = tally.happened[action], _at(self._costs[action], morning)
        paid = any(cost.shape[flag] > 1 for flag in self._flags)
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
        for flag in self._flags:
            happened[flag] += by_flags.reshape([2 for _ in self._flags]).take(1, axis=flag).sum()
        for place, hazard in enumerate(self._hazards[action], len(self._flags)):
            level, slope = (_chances(_at(grid, morning), part.shape, where) for grid in (hazard.level, hazard.slope))
            danger = self._dangers[place - len(self._flags)][flags]
            cells, struck = left.leave(np.arange(where.size), -np.expm1(-level - slope * danger), rng)
            happened[place] += struck.size
            struck.pay(-self._weights[place])
            if place < len(happened) - 1:
                left.enter(cells, struck)
            else:
                tally.end(struck)
        some = left.where
        return where[some], left.taken(some)

    def _night(self, evening: Crowd, rng: np.random.Generator) -> None:
        """What appears in a night, for those for whom anything does."""
        where = evening.where
        where, quiet = evening.leave(where, self._anything[where], rng)
        changed = Crowd.empty(self._shape, quiet)
        chances = [_chances(onset, self._shape, where) for _, onset in self._nights]
        for (flag, onset), own, any_more in zip(self._nights, chances, _any_from_here_on(chances), strict=True):
            _turn(changed, flag, _at(onset, ((flag, 0),)), None, rng)
            # The first that appears: its share of what is left, which is 1 for the last.
            here = np.flatnonzero((quiet.counts != 0) & (own > 0))
            cells, others = quiet.leave(here, own[here] / any_more[here], rng)
            changed.enter(where[cells] + _step(self._shape, flag), others)
        arrived = changed.where
        evening.enter(arrived, changed.taken(arrived))

    def _turned(
        self, part: Crowd, morning: Morning, action: int, happened: CountArray, rng: np.random.Generator, *, kept: bool
    ) -> tuple[Crowd, Morning]:
        """The same patients in the evening, and which flags are forgotten: counted, paid, and all as if absent."""
        steep = [hazard.kappa for hazard in self._hazards[action] if _at(hazard.slope, morning).any()]
        needed = [kept or any(kappa[flag] > 0 for kappa in steep) for flag in self._flags]
        appears = [_at(grid, ((flag, 0),)).max() for flag, grid in enumerate(self._presence[action])]
        known, forgotten = dict(morning), []
        # First those that can be forgotten, then those that seldom appear, last those that something reads in the
        # morning: so there are fewest cells.
        for flag in sorted(self._flags, key=lambda flag: (needed[flag], flag in known, appears[flag])):
            if flag in known:
                part = _with_both_levels(part, flag, known[flag])
            presence = _at(self._presence[action][flag], [place for place in morning if place[0] != flag])
            _turn(part, flag, _at(presence, ((flag, 0),)), 1 - _at(presence, ((flag, 1),)), rng)
            if not needed[flag]:
                forgotten.append((flag, 0))
                part, others = (part.of(_cells(part.shape, ((flag, level),))).with_returns() for level in (0, 1))
                where = others.where
                present = others.taken(where)
                happened[flag] += present.size
                present.pay(-self._weights[flag])
                part.enter(where, present)
        return part, tuple(forgotten)


def _turn(crowd: Crowd, flag: int, appears: FloatArray, clears: FloatArray | None, rng: np.random.Generator) -> None:
    """Draw what becomes of a flag: the chances that it appears where it is absent, and clears where it is present."""
    step = _step(crowd.shape, flag)
    moves = [(0, appears, step)] + ([] if clears is None else [(1, clears, -step)])
    moving = []
    for level, chance, to in moves:
        if chance.any():
            here, index = np.zeros(crowd.shape, dtype=np.bool_), _cells(crowd.shape, ((flag, level),))
            here[index] = crowd.counts.reshape(crowd.shape)[index] != 0
            cells = np.flatnonzero(here)
            cells, others = crowd.leave(cells, _chances(chance, crowd.shape, cells), rng)
            moving.append((cells + to, others))
    # All are drawn before any arrives.
    for cells, others in moving:
        crowd.enter(cells, others)


def _any_from_here_on(chances: Sequence[FloatArray]) -> list[FloatArray]:
    """P(any of these and of those after it), of independent events: never less than its own chance."""
    found: list[FloatArray] = []
    for own in reversed(chances):
        found.insert(0, own + (1 - own) * found[0] if found else own)
    return found


def _chances(grid: FloatArray, shape: tuple[int, ...], where: IntArray) -> FloatArray:
    """Entries of some cells of a grid of this shape, in an array that broadcasts over it."""
    place: IntArray | int = 0
    for axis, length in enumerate(grid.shape):
        if length > 1:
            place = place * length + where // _step(shape, axis) % length
    return grid.ravel().take(place)


def _step(shape: tuple[int, ...], axis: int) -> int:
    """How many cells on the next one along an axis is."""
    return math.prod(shape[axis + 1 :])


def _with_both_levels(crowd: Crowd, flag: int, level: int) -> Crowd:
    """The same patients, who all have one level of a flag, in a grid that has both."""
    shape = tuple(2 if axis == flag else length for axis, length in enumerate(crowd.shape))
    both, index = Crowd.empty(shape, crowd), _cells(shape, ((flag, level),))
    both.counts.reshape(shape)[index] = crowd.counts.reshape(crowd.shape)
    both.returns.reshape(-1, *shape)[:, *index] = crowd.returns.reshape(-1, *crowd.shape)
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
