"""The check by simulation: how many of so many patients get and have what, beside what is computed exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from envs.crowd import Crowd, CrowdCells, Tally
from envs.crowd_days import CountedDays
from envs.treatment_response import Course, ResponseModel
from policies.arrays import FloatArray, IntArray
from policysim.course.course_tree import Node
from policysim.course.once import OncePlan
from policysim.course.plan_tree import TreePlan
from policysim.question.protocol import SILENT, Progress
from policysim.study.checks import Agreement
from policysim.study.declared import ScenarioStudy


@dataclass(frozen=True)
class Simulated:
    """What came of simulated patients.

    Attributes
    ----------
    agreement : Agreement
        Their mean return beside the exact value.
    treatments : dict of str to int
        How often each treatment was given, on all days.
    outcomes : dict of str to int
        After how many of these each outcome was there.
    """

    agreement: Agreement
    treatments: dict[str, int]
    outcomes: dict[str, int]

    @classmethod
    def of(cls, study: ScenarioStudy, tally: Tally, exact: float, horizon: int) -> Simulated:
        """From what was counted of patients whose stays have all ended."""
        error = math.sqrt(tally.variance / tally.ended)
        spread, scenario = study.utility.spread(study.scenario, horizon), study.scenario
        return cls(
            Agreement(tally.ended, tally.mean, error, exact, spread),
            dict(zip(scenario.actions, tally.given.tolist(), strict=True)),
            dict(zip(scenario.outcomes, tally.happened.sum(axis=0).tolist(), strict=True)),
        )


def simulate(
    study: ScenarioStudy,
    plan: Sequence[FloatArray] | OncePlan | TreePlan,
    *,
    patients: int,
    exact: float,
    seed: int,
    progress: Progress = SILENT,
) -> Simulated:
    """Treat simulated patients over the days of a plan, as counts (`envs.crowd`), however many.

    Parameters
    ----------
    study : ScenarioStudy
        Its scenario and utility.
    plan : sequence of array, (n_records or more, n_actions), OncePlan or TreePlan
        p(a|x) of each day; a schedule for each first record, which is drawn on the first day and followed; or a tree of
        courses, within which it reacts.
    patients : int
        How many, >= 2.
    exact : float
        The value to compare with.
    seed : int
        Of two streams, `numpy.random.SeedSequence(seed).spawn(2)`: one for what is chosen, one for who comes and what
        comes of it.
    progress : Progress, optional
        Told of the days that are done.

    Returns
    -------
    Simulated

    Raises
    ------
    ValueError
        For fewer than two patients.
    """
    require_two(patients)
    horizon = plan.horizon if isinstance(plan, OncePlan | TreePlan) else len(plan)
    progress.expect(horizon)
    choosing, ward = (np.random.default_rng(stream) for stream in np.random.SeedSequence(seed).spawn(2))
    tally = Tally.of(study.scenario)
    tables = [plan.classes[:, np.newaxis]] if isinstance(plan, OncePlan | TreePlan) else plan
    days = CountedDays(Course(ResponseModel(study.scenario), horizon), study.utility, tables)
    crowd = Crowd.admitted(study.scenario, patients, ward)
    treat = partial(days.day, tally=tally, rng=ward)
    if isinstance(plan, OncePlan):
        _follow(plan, crowd.shared(plan.probabilities, choosing), days.cells, treat, progress)
    elif isinstance(plan, TreePlan):
        admitted = days.cells.crowd(crowd)
        _react(plan, admitted, days.cells, choosing=choosing, treat=treat, progress=progress)
    else:
        crowd = days.cells.crowd(crowd)
        for day, table in enumerate(plan, 1):
            crowd = treat(enumerate(crowd.shared(days.cells.table(table), choosing)), last=day == horizon)
            progress.advance()
    return Simulated.of(study, tally, exact, horizon)


def require_two(patients: int) -> None:
    """ValueError for fewer than two patients."""
    if patients < 2:
        raise ValueError(f"patients must be >= 2 for a standard error, got patients={patients}.")


def _follow(
    plan: OncePlan, chosen: Iterable[Crowd], cells: CrowdCells, treat: Callable[..., Crowd], progress: Progress
) -> None:
    """Treat those who have drawn each schedule by it to the end."""
    horizon = plan.horizon
    # Of each schedule, who has it: the cells that have patients, and these.
    groups = [(schedule, *_occupied(cells.crowd(part))) for schedule, part in enumerate(chosen)]
    for day in range(horizon):
        # Schedules that agree from now on are one.
        alike: dict[bytes, list[tuple[int, IntArray, Crowd]]] = {}
        for group in groups:
            alike.setdefault(plan.schedules[..., group[0], day:].tobytes(), []).append(group)
        groups = []
        for same in alike.values():
            everybody = Crowd.empty(cells.shape, same[0][2])
            for _, where, part in same:
                everybody.enter(where, part)
            evening = treat(_given(plan, everybody, cells, same[0][0], day), last=day == horizon - 1)
            groups.append((same[0][0], *_occupied(evening)))
        progress.advance()


def _given(plan: OncePlan, crowd: Crowd, cells: CrowdCells, schedule: int, day: int) -> Iterator[tuple[int, Crowd]]:
    """What those get on a day who have a schedule: everybody of a public class the same."""
    where = crowd.where
    actions = plan.actions(cells.records[where], np.full(len(where), schedule), day)
    for action in np.unique(actions):
        some, part = where[actions == action], Crowd.empty(crowd.shape, crowd)
        part.enter(some, crowd.taken(some))
        yield int(action), part


# Where somebody is in a tree of courses: the public class, the published prefix, and what is poured onto it.
Standing: TypeAlias = tuple[int, Node, float]


def _react(
    plan: TreePlan,
    admitted: Crowd,
    cells: CrowdCells,
    *,
    choosing: np.random.Generator,
    treat: Callable[..., Crowd],
    progress: Progress,
) -> None:
    """Treat everybody by the tree of their class: what is published next follows from the standing and the record."""
    kinds, day = plan.classes[cells.records], 0
    groups: list[tuple[Standing, IntArray, Crowd]] = []
    for kind, tree in enumerate(plan.trees):
        some = np.flatnonzero((admitted.counts > 0) & (kinds == kind))
        groups.append(((kind, tree.root, tree.poured), some, admitted.taken(some)))
    for length in plan.held:
        # Who have published the same, and stand alike, are one crowd.
        coming: dict[Standing, tuple[int, Crowd]] = {}
        for standing, where, part in groups:
            crowd = Crowd.empty(cells.shape, part)
            crowd.enter(where, part)
            for action, after, some, those in _published(plan, standing, crowd, cells, choosing):
                coming.setdefault(after, (action, Crowd.empty(cells.shape, those)))[1].enter(some, those)
        groups = []
        for after, (action, crowd) in coming.items():
            evening = crowd
            for later in range(day + 1, day + length + 1):
                evening = treat([(action, evening)], last=later == plan.horizon)
            groups.append((after, *_occupied(evening)))
        day += length
        progress.advance(length)


def _published(
    plan: TreePlan, standing: Standing, crowd: Crowd, cells: CrowdCells, rng: np.random.Generator
) -> Iterator[tuple[int, Standing, IntArray, Crowd]]:
    """What a crowd gets next, and where it stands then: the cells, and who."""
    kind, node, poured = standing
    where = crowd.where
    states = plan.local(kind, cells.records[where])
    comes = list(plan.trees[kind].after(node, poured, states))
    chances = np.zeros((len(crowd.counts), len(comes)))
    for column, (_, _, chance) in enumerate(comes):
        chances[where, column] = chance
    for (branch, end, _), shared in zip(comes, crowd.shared(chances, rng), strict=True):
        there = shared.where
        yield branch.action, (kind, branch.child, end), there, shared.taken(there)


def _occupied(crowd: Crowd) -> tuple[IntArray, Crowd]:
    """The cells that have patients, and these patients: what many crowds can be kept as."""
    return crowd.where, crowd.taken(crowd.where)
