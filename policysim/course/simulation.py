"""The check by simulation: what simulated patients get and have, beside what is computed exactly.

Patients are drawn batch by batch, through the vector environment, so memory does not grow with their number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias, cast

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from envs.scenario import Scenario
from policies.arrays import BoolArray, FloatArray, IntArray
from policies.policy import ClaimError, Policy
from policies.problem import DecisionProblem
from policies.sampler import draw_actions
from policysim.course import occupancy
from policysim.course.course_tree import Node
from policysim.course.once import OncePlan, plan_once
from policysim.course.plan_tree import TreePlan, plan_tree
from policysim.course.planning import optimal_course, policy_value
from policysim.course.treatment_course import TreatmentCourse, build_course
from policysim.numbers import days, decimals, percent_1, plain, to_places
from policysim.progress import SILENT, Progress
from policysim.report.screen import Grid, Line, Screen
from policysim.study.checks import MOST_ERRORS, Agreement, checked_tables, claim_fault
from policysim.study.declared import ScenarioStudy
from policysim.study.labels import about_model
from policysim.study.study_problem import build_problem
from policysim.words import PLAN_ONCE, PLAN_TREE

ENVIRONMENT = "policysim:policysim/Treatment-v1"
# Patients treated at once: enough to keep the processor busy, few enough for its memory.
BATCH = 1 << 16

Plan: TypeAlias = Sequence[FloatArray] | OncePlan | TreePlan
# From a day, the patients in treatment and their records of the morning, (m,) each, to their treatments, (m,). On day 0
# all patients of the batch are in treatment.
Chooser: TypeAlias = Callable[[int, IntArray, IntArray], IntArray]
# Takes records, positions of treatments, rewards and outcomes by name, (m,) each, of a batch.
WriteBatch: TypeAlias = Callable[[IntArray, IntArray, FloatArray, Mapping[str, BoolArray]], None]


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


def simulate(
    study: ScenarioStudy,
    plan: Plan,
    *,
    patients: int,
    exact: float,
    seed: int,
    write: WriteBatch | None = None,
    progress: Progress = SILENT,
) -> Simulated:
    """Treat simulated patients over the days of a plan, batch by batch.

    Parameters
    ----------
    study : ScenarioStudy
        Its scenario and utility.
    plan : sequence of array, (n_records or more, n_actions), OncePlan or TreePlan
        p(a|x) of each day; a schedule for each first record, which is drawn on the first day and followed; or a tree of
        courses, within which it reacts.
    patients : int
        How many, >= 2. A batch has 65,536; time grows with their number, memory does not.
    exact : float
        The value to compare with.
    seed : int
        Of two streams, `numpy.random.SeedSequence(seed).spawn(2)`: one for what is chosen, one that seeds the
        environment.
    write : callable, optional
        Of a plan of one day: called with the records before treatment, the treatments, the rewards and the outcomes of
        each batch.
    progress : Progress, optional
        Advances by a step a batch.

    Returns
    -------
    Simulated

    Raises
    ------
    ValueError
        For fewer than two patients, and for a plan that gives a contraindicated treatment.
    """
    if patients < 2:
        raise ValueError(f"patients must be >= 2 for a standard error, got patients={patients}.")
    horizon = plan.horizon if isinstance(plan, OncePlan | TreePlan) else len(plan)
    scenario = study.scenario
    choosing, arriving = np.random.SeedSequence(seed).spawn(2)
    rng = np.random.default_rng(choosing)
    env = gymnasium.make_vec(
        ENVIRONMENT,
        num_envs=min(BATCH, patients),
        study=study,
        horizon=horizon,
        autoreset_mode="Disabled",
    )
    tally = Tally.empty(scenario)
    progress.expect(math.ceil(patients / env.num_envs))
    env_seed: int | None = int(arriving.generate_state(1)[0])
    while tally.patients < patients:
        observations, _ = env.reset(seed=env_seed)
        env_seed = None  # later batches go on with the same stream
        n_counted = min(env.num_envs, patients - tally.patients)  # the last batch is cut
        _treat_batch(
            env,
            observations,
            horizon=horizon,
            chooser=_chooser(plan, rng),
            tally=tally,
            n_counted=n_counted,
            write=write,
        )
        progress.advance()
    return Simulated(
        Agreement(
            patients,
            tally.mean,
            math.sqrt(tally.variance / patients),
            exact,
            study.utility.spread(scenario, horizon),
        ),
        dict(zip(scenario.actions, tally.given.tolist(), strict=True)),
        dict(zip(scenario.outcomes, tally.happened.tolist(), strict=True)),
    )


def _treat_batch(
    env: VectorEnv[Any, Any, Any],
    observations: NDArray[np.int16],
    *,
    horizon: int,
    chooser: Chooser,
    tally: Tally,
    n_counted: int,
    write: WriteBatch | None,
) -> None:
    """Treat all patients of the environment until their stays have ended; count and write the first `n_counted`."""
    space = tally.scenario.space
    returns = np.zeros(env.num_envs)
    treated = np.arange(env.num_envs)
    for day in range(horizon):
        records = space.indices(observations[treated, : len(space.shape)])
        actions = np.zeros(env.num_envs, dtype=np.intp)
        actions[treated] = chooser(day, treated, records)
        observations, rewards, over, _, infos = env.step(actions)
        returns += rewards
        outcomes = {name: infos["outcome"][name][:n_counted] for name in tally.scenario.outcomes}
        tally.add_day(actions[treated[treated < n_counted]], outcomes)
        if write is not None:
            write(records[:n_counted], actions[:n_counted], rewards[:n_counted], outcomes)
        treated = np.flatnonzero(~over)
        if not treated.size:
            break
    tally.add_returns(returns[:n_counted])


@dataclass
class Tally:
    """What is counted of the patients of all batches.

    Attributes
    ----------
    scenario : Scenario
        Names treatments and outcomes.
    given : array of int, (n_actions,)
        How often each treatment was given.
    happened : array of int, (n_outcomes,)
        After how many treatments each outcome was there.
    patients : int
        Patients whose returns were added.
    mean : float
        The mean of these returns.
    squares : float
        The sum of their squared distances from it.
    """

    scenario: Scenario
    given: NDArray[np.int64]
    happened: NDArray[np.int64]
    patients: int = 0
    mean: float = 0.0
    squares: float = 0.0

    @classmethod
    def empty(cls, scenario: Scenario) -> Tally:
        """Of nobody yet."""
        n_actions, n_outcomes = len(scenario.actions), len(scenario.outcomes)
        return cls(scenario, np.zeros(n_actions, dtype=np.int64), np.zeros(n_outcomes, dtype=np.int64))

    def add_day(self, actions: IntArray, outcomes: Mapping[str, BoolArray]) -> None:
        """Count the treatments and outcomes of a day of a batch."""
        self.given += np.bincount(actions, minlength=len(self.given))
        self.happened += [np.count_nonzero(happened) for happened in outcomes.values()]

    def add_returns(self, returns: FloatArray) -> None:
        """Add the returns of a batch, (m,); mean and squares as Chan, Golub & LeVeque (1983) update them."""
        total = self.patients + len(returns)
        mean = float(returns.mean())
        distance = mean - self.mean
        self.squares += float(((returns - mean) ** 2).sum()) + distance**2 * self.patients * len(returns) / total
        self.mean += distance * len(returns) / total
        self.patients = total

    @property
    def variance(self) -> float:
        """The sample variance of the returns."""
        return self.squares / (self.patients - 1)


def _chooser(plan: Plan, rng: np.random.Generator) -> Chooser:
    """What chooses for a new batch."""
    if isinstance(plan, OncePlan):
        return ScheduleChooser(plan, rng).actions
    if isinstance(plan, TreePlan):
        return TreeChooser(plan, rng).actions

    def draw(day: int, _treated: IntArray, records: IntArray) -> IntArray:
        return draw_actions(plan[day][records], rng)

    return draw


@dataclass
class ScheduleChooser:
    """Draws a schedule for each patient on the first day, and follows it."""

    plan: OncePlan
    rng: np.random.Generator
    first_records: IntArray = field(init=False)
    schedules: IntArray = field(init=False)

    def actions(self, day: int, treated: IntArray, records: IntArray) -> IntArray:
        """See `Chooser`."""
        if day == 0:
            self.first_records = records
            self.schedules = draw_actions(self.plan.probabilities[records], self.rng)
        return self.plan.actions(self.first_records[treated], self.schedules[treated], day)


# Where a patient is in a tree of courses: the public class, the published prefix, and what is poured onto it.
Position: TypeAlias = tuple[int, Node, float]


@dataclass
class TreeChooser:
    """Follows the tree of each patient's class: what comes next depends on the position in it and on the record.

    Attributes
    ----------
    positions : dict of Position to int
        The positions that patients have reached, numbered.
    position_numbers, held_actions : array of int, (n,)
        Of each patient of the batch.
    """

    plan: TreePlan
    rng: np.random.Generator
    positions: dict[Position, int] = field(init=False)
    position_numbers: IntArray = field(init=False)
    held_actions: IntArray = field(init=False)

    def actions(self, day: int, treated: IntArray, records: IntArray) -> IntArray:
        """See `Chooser`."""
        if day == 0:
            roots = enumerate(self.plan.trees)
            self.positions = {(kind, tree.root, tree.poured): kind for kind, tree in roots}
            self.position_numbers = self.plan.classes[records]
            self.held_actions = np.zeros(len(records), dtype=np.intp)
        # An action is held for some days.
        if day in np.cumsum([0, *self.plan.held[:-1]]):
            self._publish(treated, records)
        return self.held_actions[treated]

    def _publish(self, treated: IntArray, records: IntArray) -> None:
        """Draw the next branch of each patient in treatment, and move there."""
        numbers = self.position_numbers[treated]
        for (kind, node, poured), number in list(self.positions.items()):
            here = np.flatnonzero(numbers == number)
            if not here.size:
                continue
            states = np.searchsorted(self.plan.family.states[kind], records[here])  # among those of their class
            branches = list(self.plan.trees[kind].after(node, poured, states))
            chosen = draw_actions(np.stack([chance for _, _, chance in branches], axis=1), self.rng)
            for option, (branch, amount, _) in enumerate(branches):
                patients = treated[here[chosen == option]]
                position = (kind, branch.child, amount)
                self.position_numbers[patients] = self.positions.setdefault(position, len(self.positions))
                self.held_actions[patients] = branch.action


@dataclass(frozen=True)
class Planned:
    """What simulated patients are treated by, and what is expected of them exactly.

    Attributes
    ----------
    plan : Plan
        p(a|x) of each day, a schedule for each first record, or a tree of courses.
    model : DecisionProblem or TreatmentCourse
        What the plan is made for: one decision, or a course of several days.
    """

    plan: Plan
    model: DecisionProblem | TreatmentCourse

    @cached_property
    def value(self) -> float:
        """The expected sum of rewards per patient."""
        if isinstance(self.plan, OncePlan | TreePlan):
            return self.plan.value
        if isinstance(self.model, DecisionProblem):
            return self.model.value(self.plan[0])
        return policy_value(self.model, self.plan)

    @cached_property
    def outcomes(self) -> dict[str, float]:
        """On how many days a patient has each outcome, and what treatments cost."""
        if not isinstance(self.model, DecisionProblem):
            return self.model.counted(_occupied(self.model, self.plan))
        (table,) = cast("Sequence[FloatArray]", self.plan)
        return self.model.outcomes.means(self.model.prior[:, np.newaxis] * table)


def _occupied(course: TreatmentCourse, plan: Plan) -> FloatArray:
    """On how many days each record is expected to get each treatment, (n, k)."""
    if isinstance(plan, TreePlan):
        return occupancy.of_tree(plan)
    if isinstance(plan, OncePlan):
        return occupancy.of_schedules(course, plan.schedules, plan.probabilities)
    return occupancy.of_days(course, plan.__getitem__)[1]


def planned(
    study: ScenarioStudy,
    policy: Policy,
    *,
    horizon: int = 1,
    length_public: bool = False,
    whole: str | None = None,
    progress: Progress = SILENT,
) -> Planned:
    """Plan a policy over the days of a study.

    Parameters
    ----------
    study : ScenarioStudy
        Scenario and utility.
    policy : Policy
        Chooses each day, or once; of plan-tree only its epsilon counts.
    horizon : int, optional
        Days.
    length_public : bool, optional
        Whether when a patient's stay ends is declared public.
    whole : {"plan-once", "plan-tree"}, optional
        What spends one epsilon on the whole course in place of a choice each day.
    progress : Progress, optional
        Reports the planned days.
    """
    if horizon == 1:
        problem = build_problem(study)
        return Planned([checked_tables(policy, problem)[1]], problem)
    process = build_course(study, horizon, length_public=length_public)
    if whole == PLAN_TREE:
        return Planned(plan_tree(process, epsilon=policy.epsilon, advance=progress), process)
    if whole == PLAN_ONCE:
        return Planned(plan_once(process, epsilon=policy.epsilon, policy=policy, advance=progress), process)
    progress.expect(horizon)
    tables = []
    for day in optimal_course(process).decisions(policy):
        logs, table = day.tables(policy)
        if not day.told_apart and (fault := claim_fault(policy, day.epsilon_spent(logs))):
            raise ClaimError(fault)
        tables.append(table)
        progress.advance()
    return Planned(tables, process)


# Decimals of the means, and more where the standard error has more.
LEAST_DECIMALS = 6


def simulated_screen(
    study: ScenarioStudy, simulated: Simulated, exact: Mapping[str, float], treated: str, horizon: int
) -> Screen:
    """The words on simulated patients: their mean utility beside the exact value, treatments, and each outcome.

    Parameters
    ----------
    study : ScenarioStudy
        Whose patients they are.
    simulated : Simulated
        What came of them.
    exact : mapping of str to float
        On how many days a patient is expected to have each outcome.
    treated : str
        The policy, in words.
    horizon : int
        Days.
    """
    agreement, scenario = simulated.agreement, study.scenario
    places = max(LEAST_DECIMALS, decimals(agreement.standard_error))
    mean, value, low, high = (
        to_places(number, places) for number in (agreement.mean, agreement.exact, *agreement.interval)
    )
    apart = f"{agreement.errors_apart:.2f} standard errors apart"
    if not agreement.agrees:
        verdict = f"No: they are {apart}; chance alone does not bring them more than {plain(MOST_ERRORS)} apart."
    elif agreement.errors_apart > MOST_ERRORS:
        verdict = f"Not known: they are {apart}, but among so few patients none may have died. Simulate more."
    else:
        verdict = f"Yes: they are {apart}."
    n_treatments = sum(simulated.treatments.values())
    treatments = [
        (scenario.treatments[name].title, f"{count:,}", percent_1(count / n_treatments))
        for name, count in simulated.treatments.items()
    ]
    outcomes = [
        (
            scenario.counted_title(name),
            f"{count:,}",
            to_places(exact[name] * agreement.patients, 1),
        )
        for name, count in simulated.outcomes.items()
    ]
    return Screen(
        title=f"{agreement.patients:,} simulated patients, {days(horizon)}, {treated}",
        about=(f"{about_model(study)} Random numbers from seed {study.seed}.",),
        lines=(
            Line("Utility per patient", f"simulated {mean} (95 % interval {low} to {high}); exact {value}."),
            Line("Do they agree?", verdict),
        ),
        tables=(
            Grid(("Treatment", "given", "share"), tuple(treatments)),
            Grid(("Patients with" if horizon == 1 else "Days with", "simulated", "exact"), tuple(outcomes)),
        ),
    )
