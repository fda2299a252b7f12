"""The check by simulation: how many of so many patients get and have what, beside what is computed exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from envs.crowd import Cells, Crowd, Tally
from envs.crowd_days import CountedDays
from envs.treatment_response import Course, ResponseModel
from policies.arrays import FloatArray, IntArray
from policysim.course.once import OncePlan
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
    plan: Sequence[FloatArray] | OncePlan,
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
    plan : sequence of array, (n_records or more, n_actions), or OncePlan
        p(a|x) of each day; or a schedule for each first record, which is drawn on the first day and followed.
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
    horizon = plan.schedules.shape[-1] if isinstance(plan, OncePlan) else len(plan)
    progress.expect(horizon)
    choosing, ward = (np.random.default_rng(stream) for stream in np.random.SeedSequence(seed).spawn(2))
    tally = Tally.of(study.scenario)
    tables = [plan.classes[:, np.newaxis]] if isinstance(plan, OncePlan) else plan
    days = CountedDays(Course(ResponseModel(study.scenario), horizon), study.utility, tables)
    crowd = Crowd.admitted(study.scenario, patients, ward)
    treat = partial(days.day, tally=tally, rng=ward)
    if isinstance(plan, OncePlan):
        _follow(plan, crowd.shared(plan.probabilities, choosing), days.cells, treat, progress)
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
    plan: OncePlan, chosen: Iterable[Crowd], cells: Cells, treat: Callable[..., Crowd], progress: Progress
) -> None:
    """Treat those who have drawn each schedule by it to the end."""
    horizon = plan.schedules.shape[-1]
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


def _given(plan: OncePlan, crowd: Crowd, cells: Cells, schedule: int, day: int) -> Iterator[tuple[int, Crowd]]:
    """What those get on a day who have a schedule: everybody of a public class the same."""
    where = crowd.where
    actions = plan.actions(cells.records[where], np.full(len(where), schedule), day)
    for action in np.unique(actions):
        some, part = where[actions == action], Crowd.empty(crowd.shape, crowd)
        part.enter(some, crowd.taken(some))
        yield int(action), part


def _occupied(crowd: Crowd) -> tuple[IntArray, Crowd]:
    """The cells that have patients, and these patients: what many crowds can be kept as."""
    return crowd.where, crowd.taken(crowd.where)
