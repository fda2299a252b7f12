"""The check by simulation: how many of so many patients get and have what, beside what is computed exactly.

Patients are counted, and only for a log drawn one by one: batch by batch, through the vector environment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias

import numpy as np

from envs.crowd import Crowd, CrowdCells, Tally
from envs.crowd_days import CountedDays
from envs.treatment_response import Course, ResponseModel
from policies.arrays import BoolArray, FloatArray, IntArray
from policies.optimal.optimum import daily_name
from policies.policy import Policy, draw_actions
from policysim.course.course_tree import Node
from policysim.course.once import OncePlan, plan_once
from policysim.course.plan_tree import TreePlan, plan_tree
from policysim.course.planning import optimal_course, policy_value
from policysim.course.process import NotEnoughMemoryError
from policysim.course.treatment_course import build_course
from policysim.question import EXIT_CHECK
from policysim.question.answer import Answer, Page
from policysim.question.formats import days, decimals
from policysim.question.protocol import SILENT, Progress, Question, UsageError
from policysim.question.words import PLAN_ONCE, PLAN_TREE
from policysim.study.checks import MOST_ERRORS, Agreement
from policysim.study.declared import ScenarioStudy
from policysim.study.labels import basis
from policysim.study.study_problem import build_problem

ENVIRONMENT = "policysim:policysim/Treatment-v1"
# Patients treated at once: enough to keep the processor busy, few enough for its memory.
BATCH = 1 << 16
# Decimals of the means, and more where the standard error has more.
LEAST_DECIMALS = 6


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
    counted = CountedDays(Course(ResponseModel(study.scenario), horizon), study.utility, tables)
    crowd = Crowd.admitted(study.scenario, patients, ward)
    treat = partial(counted.day, tally=tally, rng=ward)
    if isinstance(plan, OncePlan):
        _follow(plan, crowd.shared(plan.probabilities, choosing), counted.cells, treat, progress)
    elif isinstance(plan, TreePlan):
        admitted = counted.cells.crowd(crowd)
        _react(plan, admitted, counted.cells, choosing=choosing, treat=treat, progress=progress)
    else:
        crowd = counted.cells.crowd(crowd)
        for day, table in enumerate(plan, 1):
            crowd = treat(enumerate(crowd.shared(counted.cells.table(table), choosing)), last=day == horizon)
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


def simulate_log(
    study: ScenarioStudy,
    table: FloatArray,
    path: Path,
    *,
    patients: int,
    exact: float,
    seed: int,
    beside: Mapping[str, bytes] = MappingProxyType({}),
    progress: Progress = SILENT,
) -> Simulated:
    """Treat simulated patients for one day, and write each of them to a log.

    Parameters
    ----------
    study : ScenarioStudy
        Its scenario and utility.
    table : array, (n_records, n_actions)
        p(a|x).
    path : Path
        See `policysim.course.simulated_log.open_simulated_log`.
    patients : int
        How many, >= 2.
    exact : float
        The value to compare with.
    seed : int
        Of two streams, `numpy.random.SeedSequence(seed).spawn(2)`: one for what is chosen, one that seeds the
        environment.
    beside : mapping of str to bytes, optional
        Files that appear with it, in its folder.
    progress : Progress, optional
        Told of the patients that are done.

    Returns
    -------
    Simulated
        Of the patients of the log.

    Raises
    ------
    ValueError
        For fewer than two patients.
    DataError, OutputError
        See `policysim.course.simulated_log.open_simulated_log`.
    """
    # Only a log needs what makes single patients, and what writes files.
    import gymnasium  # noqa: PLC0415

    from policysim.course.simulated_log import open_simulated_log  # noqa: PLC0415

    require_two(patients)
    progress.expect(patients)
    policy_stream, ward_stream = np.random.SeedSequence(seed).spawn(2)
    rng, tally = np.random.default_rng(policy_stream), Tally.of(study.scenario)
    env = gymnasium.make_vec(
        ENVIRONMENT,
        num_envs=min(BATCH, patients),
        scenario=study.scenario_source,
        utility={"weights": dict(study.utility.weights), "costs": dict(study.utility.costs)},
        autoreset_mode="Disabled",
    )
    ward_seed: int | None = int(ward_stream.generate_state(1)[0])
    with open_simulated_log(study.scenario, table, path, beside) as keep:
        while tally.ended < patients:
            observations, _ = env.reset(seed=ward_seed)
            records = study.scenario.space.indices(observations)
            actions = draw_actions(table[records], rng)
            _, rewards, _, _, infos = env.step(actions)
            # The last batch is cut, and the stream goes on from one to the next.
            some, ward_seed = slice(patients - tally.ended), None
            outcomes = {name: infos["outcome"][name][some] for name in study.scenario.outcomes}
            keep(records[some], actions[some], rewards[some], outcomes)
            _count(tally, actions[some], rewards[some], outcomes)
            progress.advance(len(rewards[some]))
    return Simulated.of(study, tally, exact, 1)


def _count(tally: Tally, actions: IntArray, rewards: FloatArray, outcomes: Mapping[str, BoolArray]) -> None:
    """Count what happened to single patients, whose stay has ended."""
    happened = np.stack(list(outcomes.values()))
    for action in range(len(tally.given)):
        chosen = actions == action
        tally.given[action] += np.count_nonzero(chosen)
        tally.happened[action] += np.count_nonzero(happened & chosen, axis=1)
    tally.ended += len(actions)
    tally.returns += [rewards.sum(), rewards @ rewards]


@dataclass(frozen=True)
class SimulationQuestion(Question):
    """Treat simulated patients.

    Attributes
    ----------
    study : ScenarioStudy
        Scenario, utility and seed.
    policy : Policy
        Chooses each day, or once; of plan-tree only its epsilon counts.
    patients, horizon : int
        How many, over how many days.
    length_public : bool
        Whether when a patient's stay ends is declared public.
    whole : str or None
        What spends one epsilon on the whole course in place of a choice each day: "plan-once" or "plan-tree".
    log : Path or None
        Where each patient is written, on the way; for one day only. Without one, patients are only counted.
    beside : mapping of str to bytes
        Files that appear with it, in its folder.
    """

    study: ScenarioStudy
    policy: Policy
    patients: int
    horizon: int
    length_public: bool = False
    whole: str | None = None
    log: Path | None = None
    beside: Mapping[str, bytes] = field(default_factory=dict)
    unit: ClassVar[str] = "step"

    @property
    def name(self) -> str:
        """The study's."""
        return self.study.name

    def answer(self, progress: Progress) -> Answer:
        """Simulate, and compute the exact value."""
        study, log = self.study, self.log
        try:
            plan, exact = self._plan(progress)
        except NotEnoughMemoryError as error:
            raise UsageError(f"--horizon {self.horizon}: {error}") from None
        if log is None or isinstance(plan, OncePlan | TreePlan):
            found = simulate(study, plan, patients=self.patients, exact=exact, seed=study.seed, progress=progress)
        else:
            found = simulate_log(
                study,
                plan[0],
                log,
                patients=self.patients,
                exact=exact,
                seed=study.seed,
                beside=self.beside,
                progress=progress,
            )
        document = {
            "study": study.name,
            "policy": _name(self),
            "epsilon": self.policy.epsilon if self.policy.uses_epsilon else None,
            "horizon": self.horizon,
            "seed": study.seed,
            **asdict(found.agreement),
            "interval": list(found.agreement.interval),
            "errors_apart": found.agreement.errors_apart,
            "agrees": found.agreement.agrees,
            "treatments": found.treatments,
            "outcomes": found.outcomes,
            **({"log": log.as_posix()} if log else {}),
        }
        return Answer(
            screen=Page("simulation-screen.txt", _texts(self, found)),
            document=document,
            exit_code=0 if found.agreement.agrees else EXIT_CHECK,
        )

    def _plan(self, progress: Progress) -> tuple[Sequence[FloatArray] | OncePlan | TreePlan, float]:
        """p(a|x) of each day, of each schedule, or a tree of courses; and the exact value."""
        if self.horizon == 1:
            problem = build_problem(self.study)
            table = self.policy.probabilities(problem)
            return [table], problem.value(table)
        process = build_course(self.study, self.horizon, length_public=self.length_public)
        if self.whole == PLAN_TREE:
            tree = plan_tree(process, epsilon=self.policy.epsilon, advance=progress)
            return tree, tree.value
        if self.whole == PLAN_ONCE:
            plan = plan_once(process, epsilon=self.policy.epsilon, policy=self.policy, advance=progress)
            return plan, plan.value
        progress.expect(self.horizon)
        tables = []
        for day in optimal_course(process).decisions(self.policy):
            tables.append(day.tables(self.policy)[1])
            progress.advance()
        return tables, policy_value(process, tables)


def _name(question: SimulationQuestion) -> str:
    name = question.policy.name
    return question.whole or (daily_name(name) if question.horizon > 1 else name)


def _texts(question: SimulationQuestion, simulated: Simulated) -> dict[str, Any]:
    """What the screen says: the mean beside the exact value, and what was counted."""
    study, policy, found = question.study, question.policy, simulated.agreement
    places = max(LEAST_DECIMALS, decimals(found.standard_error))
    mean, exact, low, high = (f"{value:.{places}f}" for value in (found.mean, found.exact, *found.interval))
    of_what = " in all" if question.whole else " a day" if question.horizon > 1 else ""
    spends = f" at ε = {policy.epsilon:g}{of_what}" if policy.uses_epsilon else ""
    near = found.errors_apart <= MOST_ERRORS
    treatments, outcomes = (
        ", ".join(f"{name} {count:,}" for name, count in counts.items())
        for counts in (simulated.treatments, simulated.outcomes)
    )
    return {
        "patients": f"{found.patients:,}",
        "days": days(question.horizon),
        "policy": f"{_name(question)}{spends}",
        "model": basis(study).disclaimer,
        "seed": str(study.seed),
        "mean": mean,
        "interval": f"95 % interval {low} to {high}",
        "exact": exact,
        "errors_apart": f"{found.errors_apart:.2f}",
        "agrees": ["agrees"] if found.agrees and near else [],
        "too_few": ["too few"] if found.agrees and not near else [],
        "disagrees": [] if found.agrees else [f"{MOST_ERRORS:g}"],
        "treatments": treatments,
        "outcomes": outcomes,
        "log": [question.log.as_posix()] if question.log else [],
    }
