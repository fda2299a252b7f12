"""Treatment over days as a process: the records of a study's scenario, and one more for patients no longer treated."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envs.backup import Backup
from envs.cohort import prior
from envs.records import RecordSpace
from envs.scenario import DEATH
from envs.treatment_response import Course, ResponseModel
from policies.adjacency import AnyRecord
from policies.arrays import FloatArray, IntArray, read_only
from policies.problem import NumberedRecords, Records
from policysim.study.declared import ScenarioStudy
from policysim.study.study_problem import expected_utilities

ABSORBED = "no longer treated: recovered or dead"


@dataclass(frozen=True)
class CourseRecords:
    """The records of a scenario, then one for a patient who is no longer treated."""

    space: RecordSpace

    @property
    def names(self) -> tuple[str, ...]:
        """The features of a record."""
        return self.space.names

    def describe(self, record: int) -> str:
        """One record in words."""
        return ABSORBED if record == self.space.size else self.space.describe(record)

    def groups(self, feature: str) -> tuple[IntArray, tuple[str, ...]]:
        """The level of each record; the last one, which nobody has on the first day, is put with the first level."""
        codes, labels = self.space.groups(feature)
        return np.append(codes, 0), labels


@dataclass(frozen=True, eq=False)
class FirstRecords:
    """The records that patients have on the first day, where several share a state of the process.

    Attributes
    ----------
    initial : array, (n_records,)
        Their distribution.
    records : Records
        Their words and groups.
    state : array of int, (n_records,)
        The state of each.
    """

    initial: FloatArray
    records: Records
    state: IntArray


@dataclass(frozen=True, eq=False)
class TreatmentCourse:
    """A scenario's patients over several days: a `policysim.course.process.Process`.

    Each day one treatment is published for each patient. That treatments stop would tell that a patient has died or
    recovered; so they are published through the last day, and "no longer treated" is one more record, the last one:
    it is among the records that the published action hides, and no treatment changes anything for it.

    Use `build_course`. The immediate reward is the expected utility of the day; `outcomes` are further expectations.

    Attributes
    ----------
    horizon : int
        Days.
    length_public : bool
        Whether the length of stay is declared public; then there is no last record, and the process just ends.
    actions : tuple of str
    initial : array, (n,)
        The distribution on the first morning.
    rewards : array, (n, k)
        The expected utility of a day.
    outcomes : mapping of str to array (n, k)
        Expected deaths on a day.
    admissible : array of bool (n, k), or None
        Which treatments are not contraindicated; None where none is for anybody. Rewards are 0 at the others.
    first_records : FirstRecords or None
        Of a course whose records were merged into states (`merged`), which have which.
    """

    horizon: int
    length_public: bool
    actions: tuple[str, ...]
    records: Records
    initial: FloatArray
    rewards: FloatArray
    outcomes: dict[str, FloatArray]
    backup: Backup
    first_records: FirstRecords | None = None
    admissible: NDArray[np.bool_] | None = None
    discount: float = field(default=1.0, init=False)
    mask_public: bool = field(default=False, init=False)

    def continuation(self, values: FloatArray) -> FloatArray:
        """E[values(next morning)], (n,) -> (n, k)."""
        if self.length_public:
            return self.backup.continuation(values)
        # Averaged as distances from the last record's value: what is lost by ending then needs no word.
        last = float(values[-1])
        result = np.zeros(self.rewards.shape, order="F")
        self.backup.continuation(values[:-1] - last if last else values[:-1], out=result[:-1])
        return result + last if last else result

    def continuation_of(self, values: FloatArray, action: int) -> FloatArray:
        """The column of `continuation` of one action, (n,) -> (n,), in a part of its time."""
        if self.length_public:
            return self.backup.continuation(values, actions=[action])[:, 0]
        last = float(values[-1])
        result = np.zeros((len(values), 1))
        self.backup.continuation(values[:-1] - last if last else values[:-1], out=result[:-1], actions=[action])
        return result[:, 0] + last if last else result[:, 0]

    def push_by(self, distribution: FloatArray, action: int) -> FloatArray:
        """The distribution of the next morning, (n,), if everybody gets one action."""
        everybody = np.ones((len(distribution), 1))
        if self.length_public:
            return self.backup.push(distribution, everybody, actions=[action])
        staying = self.backup.push(distribution[:-1], everybody[:-1], actions=[action])
        return np.append(staying, distribution.sum() - staying.sum())

    def merged(self) -> TreatmentCourse:
        """The same course with one state for all records that differ in nothing that matters for it.

        Fixed parts of a record are merged where every bit of every number agrees: of the days and nights, of the
        rewards, of the outcomes and of what is allowed. So states are worth what their records are, bit by bit.
        `first_records` says which records share a state.
        """
        n = len(self.rewards) - (not self.length_public)
        everything, records = self.backup.restricted(np.arange(self.backup.n_fixed))
        allowed = [] if self.admissible is None else [self.admissible.astype(np.float64)]
        tables = [table[:n][records] for table in (self.rewards, *self.outcomes.values(), *allowed)]
        columns = [column.reshape(-1, everything.n_fixed) for table in tables for column in table.T]
        found, inverse = np.unique(
            np.concatenate([everything.numbers, *columns]), axis=1, return_index=True, return_inverse=True
        )[1:]
        part = self._restricted(found)
        state = np.empty(len(self.rewards), dtype=np.intp)
        state[records] = (np.arange(len(records)) // everything.n_fixed) * len(found) + np.tile(
            inverse.ravel(), len(records) // everything.n_fixed
        )
        if not self.length_public:
            state[-1] = len(part.rewards) - 1
        first = FirstRecords(self.initial, self.records, state)
        initial = np.zeros(len(part.initial))
        np.add.at(initial, state, self.initial)
        return replace(part, initial=initial, first_records=first)

    def _restricted(self, fixed: IntArray) -> TreatmentCourse:
        """The course of some of the fixed parts, by their positions, with the masses of their own records."""
        backup, records = self.backup.restricted(fixed)
        rows = records if self.length_public else np.append(records, len(self.rewards) - 1)
        return replace(
            self,
            records=NumberedRecords(),
            initial=self.initial[rows],
            rewards=np.asfortranarray(self.rewards[rows]),
            outcomes={name: np.asfortranarray(table[rows]) for name, table in self.outcomes.items()},
            backup=backup,
            admissible=None if self.admissible is None else np.asfortranarray(self.admissible[rows]),
        )

    def sketch(self, n_fixed: int) -> TreatmentCourse:
        """A smaller course that stands in for this one where nothing has to be exact: some of the fixed parts only.

        They are taken at equal steps of probability in the order of the record, so that each stands for others that
        are like it; each has the probability of those that it stands for. The course itself if it has no more.

        Parameters
        ----------
        n_fixed : int
            How many fixed parts to take at most.
        """
        if self.backup.n_fixed <= n_fixed:
            return self
        records = self.backup.restricted(np.arange(self.backup.n_fixed))[1]
        shares = self.initial[records].reshape(-1, self.backup.n_fixed).sum(axis=0)
        ends = np.cumsum(shares)
        steps = (np.arange(n_fixed) + 0.5) / n_fixed * ends[-1]
        taken, counts = np.unique(np.searchsorted(ends, steps), return_counts=True)
        part = self._restricted(taken)
        # Of each flag's levels in turn, the fixed parts side by side; who is no longer treated has no mass.
        weights = np.resize(counts / counts.sum() / shares[taken], len(part.initial))
        return replace(part, initial=part.initial * weights, first_records=None)

    def push(self, distribution: FloatArray, probabilities: FloatArray) -> FloatArray:
        """The distribution of the next morning, (n,)."""
        if self.length_public:
            return self.backup.push(distribution, probabilities)
        staying = self.backup.push(distribution[:-1], probabilities[:-1])
        return np.append(staying, distribution.sum() - staying.sum())


def build_course(study: ScenarioStudy, horizon: int, *, length_public: bool = False) -> TreatmentCourse:
    """Treatment over `horizon` days of a study's scenario.

    Parameters
    ----------
    study : ScenarioStudy
        Its scenario and utility.
    horizon : int
        Days, >= 1. The hazard of death of one decision is spread evenly over them; weights and costs count each day.
    length_public : bool, optional
        Whether when a patient's stay ends is public.

    Raises
    ------
    ValueError
        For a horizon that is not a whole number >= 1, and for other adjacencies than any-record.

    Examples
    --------
    >>> from policysim.study.study_file import load_study
    >>> build_course(load_study("covid"), 14).rewards.shape
    (1310721, 4)
    """
    scenario = study.scenario
    course = Course(ResponseModel(scenario), horizon)
    require_any_record(study)
    tables = {
        "rewards": expected_utilities(course.response, study.utility),
        "deaths": course.response.probability(DEATH),
    }
    initial, allowed = prior(scenario), course.response.admissible
    if allowed is not None:
        tables["rewards"][~allowed] = 0.0
    if not length_public:
        tables = {name: _with_last_row(table, 0.0) for name, table in tables.items()}
        initial = np.append(initial, 0.0)
        # Whoever is no longer treated may get anything.
        allowed = None if allowed is None else _with_last_row(allowed, value=True)
    return TreatmentCourse(
        horizon=course.horizon,
        length_public=length_public,
        actions=scenario.actions,
        records=scenario.space if length_public else CourseRecords(scenario.space),
        initial=read_only(initial),
        rewards=read_only(tables["rewards"]),
        outcomes={"deaths": read_only(tables["deaths"])},
        backup=Backup(course),
        admissible=allowed,
    )


def require_any_record(study: ScenarioStudy) -> None:
    """ValueError for another adjacency: none but any-record composes over days."""
    if study.adjacency != AnyRecord.name:
        raise ValueError(
            f"over days only the adjacency any-record composes, got {study.adjacency}: a feature that differs today "
            "makes several differ tomorrow, so that the days together lose more than was claimed; set adjacency = "
            '"any-record". With public features that never change, choose once in Python: plan_once(course, public=...)'
        )


def _with_last_row(table: NDArray[Any], value: float) -> NDArray[Any]:
    longer = np.empty((len(table) + 1, table.shape[1]), dtype=table.dtype, order="F")
    longer[:-1], longer[-1] = table, value
    return longer
