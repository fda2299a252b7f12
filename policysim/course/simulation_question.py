"""The check by simulation: simulated patients beside the exact value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from policies.arrays import FloatArray
from policies.optimal.optimum import daily_name
from policies.policy import Policy
from policysim.course.once import OncePlan, plan_once
from policysim.course.plan_tree import TreePlan, plan_tree
from policysim.course.planning import optimal_course, policy_value
from policysim.course.process import NotEnoughMemoryError
from policysim.course.simulation import Simulated, simulate
from policysim.course.treatment_course import build_course
from policysim.question import EXIT_CHECK
from policysim.question.answer import Answer, Page
from policysim.question.formats import days, decimals
from policysim.question.protocol import Progress, Question, UsageError
from policysim.question.words import PLAN_ONCE, PLAN_TREE
from policysim.study.checks import MOST_ERRORS
from policysim.study.declared import ScenarioStudy
from policysim.study.labels import basis
from policysim.study.study_problem import build_problem

# Decimals of the means, and more where the standard error has more.
LEAST_DECIMALS = 6


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
            # Only such a question needs what writes files.
            from policysim.course.simulated_log import simulate_log  # noqa: PLC0415

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
