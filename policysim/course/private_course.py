"""A policy over the days of a process, each day by its Q-values under the policy's own continuation.

And the same within a total: epsilon goes to the days on which it buys most; on a day that has none, everybody gets the
action that is best on average, which costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np

from policies.accounting import Use
from policies.arrays import FloatArray
from policies.masked import MaskedProblem
from policies.policy import Policy
from policies.reference import BestFixed
from policysim.course.allocation import buy_most, most_affordable
from policysim.course.budget import PrivacyBudget
from policysim.course.composition import SAFE, Composition, composed
from policysim.course.course_evaluation import (
    CourseResult,
    DailyTables,
    ProcessEvaluator,
    schedule_tables,
)
from policysim.course.process import Process
from policysim.course.schedules import Schedule, Schedules, best_schedule, constant_value
from policysim.course.step_problems import decision, optimal_course, reference_priors

# A policy that uses a prior is planned again under its own distribution of the state so often, while it gains.
ROUNDS = 2
# How many of the fixed parts of a course are searched for where to spend.
SKETCH = 32
# What is gained by planning again must be this share of the value.
GAIN = 1e-6


@dataclass(frozen=True, eq=False)
class PrivateCourse:
    """A policy over days under its own continuation.

    Attributes
    ----------
    policies : tuple of Policy
        That of each day.
    priors : sequence of array, (n,)
        What they were told of the state on each day.
    states : list of array, (n,)
        The distribution of the state on each day under the course itself.
    uses : tuple of Use
        What each day's table reveals.
    result : CourseResult
        What it is worth, causes and loses.
    """

    policies: tuple[Policy, ...]
    priors: Sequence[FloatArray]
    states: list[FloatArray]
    uses: tuple[Use, ...]
    result: CourseResult

    @property
    def value(self) -> float:
        """The expected return of everyone."""
        return float(self.result.means[0, 0])


@dataclass(frozen=True, eq=False)
class CourseWithin:
    """A course within a total: what proves it, and what it spends at most, at the delta of the budget."""

    course: PrivateCourse
    composition: Composition
    total_spent: float


def follow(
    evaluator: ProcessEvaluator,
    policies: Sequence[Policy],
    priors: Sequence[FloatArray],
    visit: Callable[[int, MaskedProblem], object] = lambda *_: None,
) -> PrivateCourse:
    """Plan and evaluate a policy for each day, from the last day to the first.

    Parameters
    ----------
    evaluator : ProcessEvaluator
        Of a process with a finite horizon H.
    policies : sequence of Policy
        One a day.
    priors : sequence of array, (n,)
        The distribution of the state that each day's policy is told.
    visit : callable, optional
        Told of each day and its decision, the last day first. The decisions of all days may not fit into memory.
    """
    process, uses, tables = evaluator.process, {}, {}

    def decide(day: int, q_values: FloatArray) -> tuple[FloatArray, FloatArray]:
        problem = decision(process, q_values, priors[day])
        logs, probabilities = problem.tables(policies[day])
        uses[day] = _within_guarantee(problem.use(policies[day], logs), policies[day])
        tables[day] = probabilities
        visit(day, problem)
        return logs, probabilities

    result = evaluator.backward(decide)
    states = state_distributions(process, lambda day: (tables[day], tables[day]))
    return PrivateCourse(tuple(policies), priors, states, tuple(uses[day] for day in range(len(uses))), result)


def _within_guarantee(use: Use, policy: Policy) -> Use:
    """A loss that is above the policy's proved guarantee in the last digits is the rounding of a logarithm."""
    guarantee = policy.guarantee
    return use._replace(loss=guarantee) if guarantee < use.loss <= guarantee / SAFE else use


def state_distributions(process: Process, tables: DailyTables) -> list[FloatArray]:
    """The distribution of each day's state, (n,) each; where nobody is left, that of the last day with somebody."""
    mass, found = process.initial, [process.initial]
    for day in range((process.horizon or 1) - 1):
        # What is left over from a difference of sums may be the rounding of 0.
        mass = np.maximum(process.push(mass, tables(day)[1]), 0.0)
        left = mass.sum()
        found.append(mass / left if left > 0 else found[-1])
    return found


class PrivatePlanner:
    """Policies over the days of a process under their own continuation.

    Policies that need a prior are planned with the distribution of the state under the best policy, and under the best
    schedule (one action for all of a public class that may change by the day); then, as long as the course gains, under
    their own. All of them are public. So the optimum of each day is worth no less than that schedule.

    Parameters
    ----------
    evaluator : ProcessEvaluator
        Of a process with a finite horizon.
    """

    def __init__(self, evaluator: ProcessEvaluator) -> None:
        self.evaluator, self.process = evaluator, evaluator.process
        self.horizon = evaluator.process.horizon or 0
        self._starts = [reference_priors(self.process)]
        families = [Schedules(part, (1,) * self.horizon) for _, part in self.process.by_class()]
        if all(family.open for family in families):
            schedules = [_best_schedule(family) for family in families]
            self._starts.append(state_distributions(self.process, schedule_tables(self.process, schedules)))
        sketch: Callable[[int], Process] | None = getattr(self.process, "sketch", None)
        small = self.process if sketch is None else sketch(SKETCH)
        whole = small is self.process
        self._sketch = None if whole else PrivatePlanner(ProcessEvaluator(small, optimal_course(small)))

    def plan(self, policies: Sequence[Policy]) -> PrivateCourse:
        """The course of a policy for each day."""
        starts = self._starts if any(policy.uses_prior for policy in policies) else self._starts[:1]
        return self._settled(max((follow(self.evaluator, policies, priors) for priors in starts), key=_value))

    def _settled(self, best: PrivateCourse) -> PrivateCourse:
        """The course, planned again under its own distribution of the state as long as that gains."""
        if not any(policy.uses_prior for policy in best.policies):
            return best
        for _ in range(ROUNDS):
            again = follow(self.evaluator, best.policies, best.states)
            if not again.value > best.value + GAIN * abs(best.value):
                break
            best = again
        return best

    def within(self, template: Policy, totals: Sequence[float], delta: float) -> Iterator[CourseWithin]:
        """The course found that is worth most within each total, rising: a larger one is never worth less.

        Equal epsilons on the first days (on all of them, half of them, a quarter, ...) compete with epsilons that were
        bought day by day (`buy_most`), at the gains and exact costs of the best course so far: at first the best
        schedule, then that of the total before. Where a process can be sketched (`TreatmentCourse.sketch`), the sketch
        is searched, and what it found is scaled to what the process affords. The choice looks at the model alone, which
        is public; the course that is chosen is planned, evaluated and accounted for exactly.
        """
        best = self._settled(follow(self.evaluator, [BestFixed()] * self.horizon, self._starts[-1]))
        sketched = repeat(None) if self._sketch is None else self._sketch.within(template, totals, delta)
        for total, sketch in zip(totals, sketched, strict=False):
            budget = PrivacyBudget(total, delta)
            if total == math.inf:
                best = max(best, self.plan([replace(template, epsilon=total)] * self.horizon), key=_value)
            elif sketch is None:
                best = max([best, *self._equal(template, budget, best.states)], key=_value)
            for _ in range(ROUNDS if total < math.inf else 0):
                if sketch is None:
                    tried = self._bought(template, budget, best)
                else:
                    weights = np.array([p.epsilon if p.uses_epsilon else 0.0 for p in sketch.course.policies])
                    tried = self._scaled(template, weights, 1.0, budget, best.states) if weights.any() else []
                better = max([best, *tried], key=_value)
                if not better.value > best.value + GAIN * abs(best.value):
                    break
                best = better
                if sketch is not None and not template.uses_prior:
                    break
            yield CourseWithin(best, *composed(best.uses, delta))

    def _equal(self, template: Policy, budget: PrivacyBudget, priors: list[FloatArray]) -> list[PrivateCourse]:
        """The first days with the largest epsilon that was found affordable: all of them, half of them, ..., one."""
        found, days = [], self.horizon
        while days > 0 and (even := budget.daily_epsilon(days)) > 0:
            weights = np.where(np.arange(self.horizon) < days, 1.0, 0.0)
            found += self._scaled(template, weights, even, budget, priors)
            days //= 2
        return found

    def _scaled(
        self, template: Policy, weights: FloatArray, start: float, budget: PrivacyBudget, priors: list[FloatArray]
    ) -> list[PrivateCourse]:
        """The day's weight times the largest factor that was found affordable; none if none was."""
        affordable: dict[float, PrivateCourse] = {}

        def share(factor: float) -> float:
            # 0 times infinity is a day without any.
            epsilons = [weight * factor if weight > 0 else 0.0 for weight in weights.tolist()]
            policies = [replace(template, epsilon=e) if e > 0 else BestFixed() for e in epsilons]
            course = follow(self.evaluator, policies, priors)
            found = budget.share(course.uses)
            found = min(found, 1.0) if found <= 1 / SAFE else found
            if found <= 1 and factor >= max(affordable, default=0.0):
                affordable.clear()
                affordable[factor] = course
            return found

        most_affordable(share, start, 0.0)
        return list(affordable.values())

    def _bought(self, template: Policy, budget: PrivacyBudget, base: PrivateCourse) -> list[PrivateCourse]:
        """Courses whose days have what buys most at the gains of a base, by the sum of losses and by that of rho."""
        if budget.epsilon == 0:
            return []
        levels = budget.epsilon * 2.0 ** np.arange(1, -math.ceil(math.log2(4 * self.horizon)), -1)
        gains = np.zeros((self.horizon, len(levels)))
        losses, rhos = np.zeros_like(gains), np.zeros_like(gains)

        def visit(day: int, problem: MaskedProblem) -> None:
            mass = base.states[day]
            here = problem.with_prior(mass)
            nothing = here.value(mass, here.tables(BestFixed())[1])
            for level, epsilon in enumerate(levels.tolist()):
                policy = replace(template, epsilon=epsilon)
                logs, probabilities = here.tables(policy)
                use = _within_guarantee(here.use(policy, logs), policy)
                gains[day, level] = here.value(mass, probabilities) - nothing
                losses[day, level], rhos[day, level] = use.loss, use.rho

        follow(self.evaluator, base.policies, base.priors, visit)
        found = []
        for costs, most in [(losses, budget.epsilon), (rhos, budget.rho)][: 2 if budget.delta > 0 else 1]:
            bought = buy_most(gains, costs, most)
            weights = np.where(bought >= 0, levels[bought], 0.0)
            if weights.any():
                found += self._scaled(template, weights, 1.0, budget, base.states)
        return found


def _best_schedule(family: Schedules) -> Schedule:
    """The best schedule that is climbed to from the best constant one."""
    best = max(family.open, key=lambda action: constant_value(family.process, action))
    return best_schedule(family.process, [best] * len(family.held))


def _value(course: PrivateCourse) -> float:
    return course.value
