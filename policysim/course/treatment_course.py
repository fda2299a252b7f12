"""Treatment over days as a process: the records of a study's scenario, and one more for patients no longer treated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envs.backup import Backup
from envs.cohort import Where, prior
from envs.records import RecordSpace
from envs.scenario import Scenario
from envs.treatment_response import Course, ResponseModel, treatment_costs
from policies.adjacency import AnyRecord, OneFeature
from policies.arrays import BoolArray, FloatArray, IntArray, read_only
from policies.outcomes import Outcomes, outcome_table
from policies.records import NumberedRecords, Records
from policysim.course.process import WHY_UNCHANGING, checked_features, refined
from policysim.study.declared import ScenarioStudy
from policysim.study.stated_bounds import hidden_contraindications, why_refused
from policysim.study.study_problem import expected_utilities, outcome_grids
from policysim.utility import COSTS, Utility

ABSORBED = "no longer treated: recovered or dead"


@dataclass(frozen=True)
class CourseRecords:
    """The records of a scenario, then one for a patient who is no longer treated, of each public class.

    Parameters
    ----------
    space : RecordSpace
        The records.
    public : tuple of str
        Features that are public and never change.
    """

    space: RecordSpace
    public: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The features of a record."""
        return self.space.names

    @property
    def shape(self) -> tuple[int, ...]:
        """How many levels each public feature has."""
        return tuple(self.space.shape[self.space.axis(name)] for name in self.public)

    def describe(self, record: int) -> str:
        """One record in words."""
        if record < self.space.size:
            return self.space.describe(record)
        if not self.public:
            return ABSORBED
        levels = np.unravel_index(record - self.space.size, self.shape)
        known = [f"{name} {self.space.groups(name)[1][level]}" for name, level in zip(self.public, levels, strict=True)]
        return ", ".join([ABSORBED, *known])

    def groups(self, feature: str) -> tuple[IntArray, tuple[str, ...]]:
        """The level of each record.

        Of who is no longer treated, which nobody is on the first day, the first level, but for what is public.
        """
        codes, labels = self.space.groups(feature)
        absorbed = np.zeros(math.prod(self.shape), dtype=codes.dtype)
        if feature in self.public:
            absorbed[:] = np.indices(self.shape)[self.public.index(feature)].ravel()
        return np.concatenate([codes, absorbed]), labels

    def classes(self) -> IntArray:
        """The public class of each record, numbered in the order of the levels of the public features."""
        levels = [self.groups(name)[0] for name in self.public]
        found: IntArray = np.ravel_multi_index(levels, self.shape)
        return found


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

    Each day one treatment is published for each patient. If treatments stopped, an observer would know that a patient
    has died or recovered; so they are published through the last day, and "no longer treated" is one more record: it
    is among the records that the published action hides, and no treatment changes anything for it. Where features are
    public, which never change, records are hidden among those that agree in them. Each such class has a record of its
    own for those who are no longer treated: who leaves stays in the class. These are the last records, in the order of
    the classes.

    Use `build_course`. The immediate reward is the expected utility of the day; `outcomes` are further expectations.

    Attributes
    ----------
    horizon : int
        Days.
    length_public : bool
        Whether the length of stay is declared public; then there are no last records, and the process just ends.
    actions : tuple of str
    initial : array, (n,)
        The distribution on the first morning.
    rewards : array, (n, k)
        The expected utility of a day.
    outcomes : mapping of str to array (n, k)
        Expected deaths on a day, and how often each event happens.
    daily_outcomes : Outcomes
        How likely each symptom is in the evening, and what treatments cost, of the records in treatment: counted among
        everyone alone (`counted`).
    lead : str or None
        The one of these that leads; None where the study's is none of them.
    classes : array of int, (n,), or None
        The public class of each record; None if any two records are hidden among each other.
    admissible : array of bool, (n, k), or None
        Which treatments each record may get; None if all may get all. Rewards are 0 at the others.
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
    daily_outcomes: Outcomes
    backup: Backup
    lead: str | None = None
    classes: IntArray | None = None
    admissible: BoolArray | None = None
    first_records: FirstRecords | None = None
    discount: float = field(default=1.0, init=False)

    def __repr__(self) -> str:
        """Size, horizon and actions."""
        classes = "" if self.classes is None else f", {int(self.classes.max()) + 1} public classes"
        names = ", ".join(self.actions)
        return f"TreatmentCourse({len(self.rewards):,} states{classes}, horizon={self.horizon}, actions {names})"

    @property
    def n_absorbed(self) -> int:
        """How many records are those of patients who are no longer treated: one for each class, or none."""
        if self.length_public:
            return 0
        return 1 if self.classes is None else int(self.classes[-1]) + 1

    @property
    def _n_treated(self) -> int:
        return len(self.rewards) - self.n_absorbed

    def counted(self, occupancy: FloatArray) -> dict[str, float]:
        """How often patients are expected to have each outcome, on how many days each symptom, and what they cost.

        Parameters
        ----------
        occupancy : array, (n, k)
            On how many days each record is expected to get each treatment (`policysim.course.occupancy`).
        """
        often = {name: float((occupancy * table).sum()) for name, table in self.outcomes.items()}
        return often | self.daily_outcomes.means(occupancy[: self._n_treated])

    def continuation(self, values: FloatArray, actions: list[int] | None = None) -> FloatArray:
        """E[values(next morning)], (n,) -> (n, k), of all actions or of some."""
        if self.length_public:
            return self.backup.continuation(values, actions=actions)
        # Averaged as distances from the last record's value: what is lost by ending then needs no word.
        n = self._n_treated
        last = values[n:] if self.classes is None else values[n + self.classes]
        ended = bool(last.any())
        treated = values[:n] - last[: 1 if self.classes is None else n] if ended else values[:n]
        result = np.zeros((len(values), len(self.actions if actions is None else actions)), order="F")
        self.backup.continuation(treated, out=result[:n], actions=actions)
        return result + last[:, None] if ended else result

    def push(self, distribution: FloatArray, probabilities: FloatArray, actions: list[int] | None = None) -> FloatArray:
        """The distribution of the next morning, (n,); `probabilities` are those of all actions, or of some."""
        if self.length_public:
            return self.backup.push(distribution, probabilities, actions=actions)
        n = self._n_treated
        staying = self.backup.push(distribution[:n], probabilities[:n], actions=actions)
        if self.classes is None:
            return np.append(staying, distribution.sum() - staying.sum())
        before = np.bincount(self.classes, weights=distribution)
        return np.concatenate([staying, before - np.bincount(self.classes[:n], weights=staying, minlength=len(before))])

    def with_public(self, features: Sequence[str]) -> TreatmentCourse:
        """The same course in which features of the record are public besides; they must never change.

        ValueError for features that change, or that the records do not have.
        """
        public = checked_features(features)
        if not public:
            return self
        records = self.records
        space = records.space if isinstance(records, CourseRecords) else records
        if not isinstance(space, RecordSpace):
            raise ValueError("public features need a course whose records are not merged: as build_course makes it.")
        for feature in public:
            if space.axis(feature) in self.backup.transient:
                raise ValueError(
                    f"public must name features that never change, got {feature!r}, which may differ from day to day: "
                    f"{WHY_UNCHANGING}"
                )
        known = records.public if isinstance(records, CourseRecords) else ()
        within = CourseRecords(space, tuple(dict.fromkeys([*known, *public])))
        n, classes = self._n_treated, within.classes()
        if self.length_public:
            classes = refined(self.classes, classes[:n])
            return replace(self, classes=classes)
        every = len(classes) - n
        allowed = None
        if self.admissible is not None:
            # Who is no longer treated may get what all of the class may.
            allowed = _with_last_rows(self.admissible[:n], every, value=True)
            for row, of_class in enumerate(classes[n:], n):
                allowed[row] = allowed[:n][classes[:n] == of_class].all(axis=0)
        return replace(
            self,
            records=within,
            classes=classes,
            initial=read_only(np.append(self.initial[:n], np.zeros(every))),
            rewards=read_only(_with_last_rows(self.rewards[:n], every, 0.0)),
            outcomes={name: read_only(_with_last_rows(table[:n], every, 0.0)) for name, table in self.outcomes.items()},
            admissible=allowed,
        )

    def by_class(self) -> tuple[tuple[IntArray, TreatmentCourse], ...]:
        """The records of each class, and the course of its patients alone."""
        if self.classes is None:
            return ((np.arange(len(self.rewards)), self),)
        everything = self.backup.restricted(np.arange(self.backup.n_fixed))[1]
        of_fixed = self.classes[everything[: self.backup.n_fixed]]
        found = []
        for place in range(int(self.classes.max()) + 1):
            rows, part = self._restricted(np.flatnonzero(of_fixed == place))
            total = part.initial.sum()
            found.append((rows, replace(part, initial=part.initial / total) if total > 0 else part))
        return tuple(found)

    def merged(self) -> TreatmentCourse:
        """The same course with one state for all records that differ in nothing that matters for it.

        Fixed parts of a record are merged where every bit of every number agrees: of the days and nights, of the
        rewards, of the outcomes and of what is allowed; and only within a public class. So states are worth what their
        records are, bit by bit. `first_records` says which records share a state.
        """
        n = self._n_treated
        everything, records = self.backup.restricted(np.arange(self.backup.n_fixed))
        allowed = [] if self.admissible is None else [self.admissible.astype(np.float64)]
        tables = [table[:n][records] for table in (self.rewards, *self.outcomes.values(), *allowed)]
        columns = [column.reshape(-1, everything.n_fixed) for table in tables for column in table.T]
        if self.classes is not None:
            columns.append(self.classes[records[: everything.n_fixed]][None, :].astype(np.float64))
        found, inverse = np.unique(
            np.concatenate([everything.numbers, *columns]), axis=1, return_index=True, return_inverse=True
        )[1:]
        part = self._restricted(found)[1]
        state = np.empty(len(self.rewards), dtype=np.intp)
        state[records] = (np.arange(len(records)) // everything.n_fixed) * len(found) + np.tile(
            inverse.ravel(), len(records) // everything.n_fixed
        )
        state[n:] = np.arange(part._n_treated, len(part.rewards))
        first = FirstRecords(self.initial, self.records, state)
        initial = np.zeros(len(part.initial))
        np.add.at(initial, state, self.initial)
        return replace(part, initial=initial, first_records=first)

    def _restricted(self, fixed: IntArray) -> tuple[IntArray, TreatmentCourse]:
        """The records of some of the fixed parts, by their positions, and their course, with their own masses.

        Of who is no longer treated, those of their classes. Classes that are left out are no longer counted.
        """
        backup, rows = self.backup.restricted(fixed)
        classes = None if self.classes is None else np.unique(self.classes[rows])
        treated = rows
        if not self.length_public:
            rows = np.append(rows, self._n_treated + (np.arange(1) if classes is None else classes))
        part = replace(
            self,
            records=NumberedRecords(),
            initial=self.initial[rows],
            rewards=np.asfortranarray(self.rewards[rows]),
            outcomes={name: np.asfortranarray(table[rows]) for name, table in self.outcomes.items()},
            daily_outcomes=self.daily_outcomes.of_records(treated),
            backup=backup,
            admissible=None if self.admissible is None else np.asfortranarray(self.admissible[rows]),
        )
        if self.classes is None or classes is None or len(classes) == 1:
            return rows, replace(part, classes=None)
        return rows, replace(part, classes=np.searchsorted(classes, self.classes[rows]))

    def sketch(self, n_fixed: int) -> TreatmentCourse:
        """A smaller course that stands in for this one where nothing has to be exact: some of the fixed parts only.

        They are taken at equal steps of probability in the order of the record, so that each stands for others that
        are like it; each has the probability of those that it stands for. Every public class that patients have is
        there. The course itself if it has no more.

        Parameters
        ----------
        n_fixed : int
            How many fixed parts to take; more if there are more public classes.
        """
        if self.backup.n_fixed <= n_fixed:
            return self
        records = self.backup.restricted(np.arange(self.backup.n_fixed))[1]
        shares = self.initial[records].reshape(-1, self.backup.n_fixed).sum(axis=0)
        classes = (
            np.zeros(self.backup.n_fixed) if self.classes is None else self.classes[records[: self.backup.n_fixed]]
        )
        weight = np.zeros(self.backup.n_fixed)
        for place in np.unique(classes[shares > 0]):
            members = np.flatnonzero(classes == place)
            ends = np.cumsum(shares[members])
            # Rounded down, but for what a sum of shares may lack.
            count = max(1, int(n_fixed * ends[-1] + 1e-9))
            steps = (np.arange(count) + 0.5) / count * ends[-1]
            np.add.at(weight, members[np.searchsorted(ends, steps)], ends[-1] / count)
        taken = np.flatnonzero(weight)
        if len(taken) == self.backup.n_fixed:
            return self  # such as one for each class
        part = self._restricted(taken)[1]
        # Of each flag's levels in turn, the fixed parts side by side; who is no longer treated has no mass.
        weights = np.resize(weight[taken] / shares[taken], len(part.initial))
        return replace(part, initial=part.initial * weights, first_records=None)


def build_course(
    study: ScenarioStudy, horizon: int, *, length_public: bool = False, where: Where | None = None
) -> TreatmentCourse:
    """Treatment over `horizon` days of a study's scenario.

    Parameters
    ----------
    study : ScenarioStudy
        Its scenario and utility, and its public features: records are hidden among those that agree in these.
    horizon : int
        Days, >= 1. The hazards of death and events of one decision are spread evenly over them; weights and costs count
        each day.
    length_public : bool, optional
        Whether when a patient's stay ends is public.
    where : mapping of str to level or list of levels, optional
        Only patients with these levels on the first day come, as `reset(options={"where": where})` of the environment
        draws them.

    Raises
    ------
    ValueError
        For a horizon that is not a whole number >= 1, for what does not compose over days (`public_over_days`), and for
        a condition on features or levels that do not exist, or that nobody meets.

    Examples
    --------
    >>> from policysim.study.study_reader import load_study
    >>> build_course(load_study("covid"), 14).rewards.shape
    (1310721, 4)
    """
    public = public_over_days(study)
    lead = study.lead if study.lead in study.scenario.hazards else None
    course = scenario_course(study.scenario, study.utility, horizon, length_public=length_public, where=where)
    return replace(course, lead=lead).with_public(public)


def scenario_course(
    scenario: Scenario, utility: Utility, horizon: int, *, length_public: bool = False, where: Where | None = None
) -> TreatmentCourse:
    """The same of a scenario and what its outcomes are worth, in which nothing is public and no outcome leads."""
    course = Course(ResponseModel(scenario), horizon)
    allowed, grids = course.response.admissible, outcome_grids(course.response)
    tables = {
        "rewards": expected_utilities(course.response, utility),
        **{name: course.response.probability(name) for name in scenario.hazards},
    }
    if allowed is not None:
        tables["rewards"] = np.where(allowed, tables["rewards"], 0.0)
    counted = {name: grids[name] for name in scenario.transient} | {COSTS: treatment_costs(scenario, utility.costs)}
    initial = prior(scenario, where)
    if not length_public:
        tables = {name: _with_last_rows(table, 1, 0.0) for name, table in tables.items()}
        initial = np.append(initial, 0.0)
        # Only until classes are known, of which each has its own last record.
        allowed = None if allowed is None else _with_last_rows(allowed, 1, value=True)
    return TreatmentCourse(
        horizon=course.horizon,
        length_public=length_public,
        actions=scenario.actions,
        records=scenario.space if length_public else CourseRecords(scenario.space),
        initial=read_only(initial),
        rewards=read_only(np.asfortranarray(tables["rewards"])),
        outcomes={name: read_only(table) for name, table in tables.items() if name != "rewards"},
        daily_outcomes=Outcomes({name: outcome_table(grid, scenario.space.shape) for name, grid in counted.items()}),
        backup=Backup(course),
        admissible=allowed,
    )


def _with_last_rows(table: NDArray[Any], count: int, value: float) -> NDArray[Any]:
    longer = np.full((len(table) + count, table.shape[1]), value, dtype=table.dtype, order="F")
    longer[: len(table)] = table
    return longer


def public_over_days(study: ScenarioStudy) -> tuple[str, ...]:
    """The features of a study that are public on all days; empty under any-record.

    ValueError for what does not compose over days: one-feature, and public features that may change from day to day;
    and for contraindications by hidden features.
    """
    read = hidden_contraindications(study.scenario, study.adjacency, study.sensitive)
    if read:
        raise ValueError(why_refused(read, study.epsilon))
    if study.adjacency == AnyRecord.name:
        return ()
    if study.adjacency == OneFeature.name:
        raise ValueError(
            f"over days {study.adjacency} does not compose: a feature that differs today makes several differ "
            'tomorrow, so that the days together lose more than was claimed; set adjacency = "any-record", or name '
            "the features that are public and never change, with [privacy] public"
        )
    scenario = study.scenario
    public = tuple(name for name in scenario.space.names if name not in study.sensitive)
    changing = [name for name in public if name in scenario.transient]
    if changing:
        kept = ", ".join(f'"{name}"' for name in public if name not in changing)
        instead = f"[privacy] public = [{kept}]" if kept else 'adjacency = "any-record"'
        raise ValueError(
            f"over days a public feature must never change, and {', '.join(changing)} may: tomorrow's public value "
            f"depends on today's hidden record, and would reveal it; set {instead}"
        )
    return public
