"""Where to spend a total: policies over the days of a process, each under its own continuation.

Epsilon goes to the days on which it buys most; on a day that has none, everybody gets the same action, which costs no
privacy.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from operator import attrgetter

import numpy as np

from policies.accounting import Use, bounded_use, largest_use
from policies.arrays import FloatArray
from policies.masked import MaskedProblem
from policies.policy import Policy
from policies.reference import BestFixed
from policysim.course import occupancy
from policysim.course.affordable import buy_most, most_affordable
from policysim.course.budget import PrivacyBudget, claimed_uses
from policysim.course.course_evaluation import CourseResult, ProcessEvaluator
from policysim.course.planning import daily_distributions, decision, distributions, optimal_course
from policysim.course.process import Process, counts_of
from policysim.course.schedules import ClassSchedules, DayAction, mass_after, sketch_of

# A policy that uses a prior is planned again under its own distribution of the state so often, while it gains.
ROUNDS = 2
# A sum of losses may be above what it is by this share of it.
ROUNDED = 1e-12
# So many factors are tried until what is bought fits into a total.
TRIES = 5
# What is gained by planning again must be this share of the value.
GAIN = 1e-6
# The totals that are searched in any case: others stand between them.
LADDER = (0.0, 0.5, *map(float, range(1, 11)), 20.0, 50.0, 100.0, math.inf)
TENTHS = 10
# What courses are compared by.
VALUE = attrgetter("value")


@dataclass(frozen=True, eq=False)
class PrivateCourse:
    """A policy over days under its own continuation.

    Attributes
    ----------
    policies : tuple of Policy
        That of each day. Where every state allows every action, a `BestFixed` names its action.
    priors : sequence of array, (n,)
        What they knew of the state on each day.
    uses : tuple of tuple of Use
        What each day's table reveals within each public class, or, where these may change or nothing is revealed, in
        all of them.
    result : CourseResult
        What it is worth, causes and loses.
    """

    policies: tuple[Policy, ...]
    priors: Sequence[FloatArray]
    uses: tuple[tuple[Use, ...], ...]
    result: CourseResult
    _process: Process
    _tables: dict[int, FloatArray]

    @property
    def value(self) -> float:
        """The expected return of everyone."""
        return float(self.result.value[0])

    @property
    def states(self) -> list[FloatArray]:
        """The distribution of the state on each day under the course itself, (n,) each."""
        return self._forwards[0]

    @property
    def counts(self) -> Mapping[str, float]:
        """What everyone is expected to have in all (`policysim.course.process.counts_of`)."""
        return self._forwards[1]

    @cached_property
    def _forwards(self) -> tuple[list[FloatArray], Mapping[str, float]]:
        """Both, found when first asked for."""

        def chosen(day: int) -> FloatArray | int:
            if day in self._tables:
                return self._tables[day]
            policy = self.policies[day]
            assert isinstance(policy, BestFixed)
            assert policy.action is not None
            return policy.action

        masses, occupied = occupancy.of_days(self._process, chosen)
        # Those of all days may take much memory, and nobody else asks.
        self._tables.clear()
        return distributions(masses), counts_of(self._process, lambda: occupied)


def follow(
    evaluator: ProcessEvaluator,
    policies: Sequence[Policy],
    priors: Sequence[FloatArray],
    visit: Callable[[int, MaskedProblem], object] | None = None,
) -> PrivateCourse:
    """Plan and evaluate a policy for each day, from the last day to the first.

    Parameters
    ----------
    evaluator : ProcessEvaluator
        Of a process with a finite horizon H.
    policies : sequence of Policy
        One a day.
    priors : sequence of array, (n,)
        The distribution of the state that each day's policy knows.
    visit : callable, optional
        Called with each day and its decision, the last day first. The decisions of all days may not fit into memory.

    Raises
    ------
    ClaimError
        If a day's table reveals more than its policy claims.
    """
    process = evaluator.process
    # On the last days everybody may get actions that are known: nothing is to be decided there.
    end: list[int] = []
    if visit is None and process.admissible is None:
        for policy in reversed(policies):
            if not isinstance(policy, BestFixed) or policy.action is None:
                break
            end.insert(0, policy.action)
    uses: list[tuple[Use, ...]] = [(bounded_use(0.0),)] * len(policies)
    chosen = list(policies)
    tables: dict[int, FloatArray] = {}

    def decide(day: int, q_values: FloatArray) -> tuple[FloatArray, FloatArray]:
        problem = decision(process, q_values, priors[day])
        logs, probabilities = problem.tables(policies[day])
        found = problem.uses(policies[day], logs)
        # Where what is hidden shows in what is allowed, no policy can keep a claim.
        of_day = found if problem.told_apart else claimed_uses(policies[day], found)
        uses[day] = of_day if evaluator.classes_stay else (largest_use(of_day),)
        if problem.whole is not None and isinstance(policies[day], BestFixed):
            chosen[day] = BestFixed(action=int(probabilities[0].argmax()))
        else:
            tables[day] = probabilities
        if visit is not None:
            visit(day, problem)
        return logs, probabilities

    result = evaluator.backward(decide, tuple(end))
    return PrivateCourse(tuple(chosen), priors, tuple(uses), result, process, tables)


class PrivatePlanner:
    """Policies over the days of a process under their own continuation.

    Policies that need a prior are planned with the distribution of the state under the best policy, and under the best
    schedule (one action for all, or for all of a public class, that may change by the day); then, as long as the course
    gains, under their own. All of them are public. So the optimum of each day is worth no less than that schedule.

    Parameters
    ----------
    evaluator : ProcessEvaluator
        Of a process with a finite horizon.
    schedule : tuple, (H,), optional
        The best schedule, if it is known (`ClassSchedules.by_day`); by default it is climbed to from the best constant
        action, in each public class.
    """

    def __init__(self, evaluator: ProcessEvaluator, schedule: tuple[DayAction, ...] | None = None) -> None:
        self.evaluator, self.process = evaluator, evaluator.process
        self.horizon = evaluator.process.horizon or 0
        self._start = self._first_course(schedule)
        small = sketch_of(self.process)
        # A sketch may lack classes of patients who never come.
        same = schedule if self.process.classes is None else None
        whole = small is self.process
        self._sketch = None if whole else PrivatePlanner(ProcessEvaluator(small, optimal_course(small)), same)

    def _first_course(self, schedule: tuple[DayAction, ...] | None) -> PrivateCourse:
        """What costs no privacy: the best schedule, or, where states do not allow the same, what is best on average."""
        nothing = [BestFixed()] * self.horizon
        family = ClassSchedules.of_days(self.process, self.horizon)
        if not all(own.open for own in family.families):
            return self._settled(follow(self.evaluator, nothing, self._reference))
        if schedule is None:
            # Climbed to from the best constant action.
            constants = [(max(own.open, key=own.constant_value),) * self.horizon for own in family.families]
            pairs = zip(family.families, constants, strict=True)
            schedule = family.by_day([own.best(own.process.initial, start) for own, start in pairs])
        if self.process.classes is None and self.process.admissible is None:
            policies = [BestFixed(action=action) for action in schedule if isinstance(action, int)]
            return follow(self.evaluator, policies, [self.process.initial] * self.horizon)
        # Day by day what is best on average in each class, given who is there under the schedule: worth no less.
        under_it = daily_distributions(self.process, lambda day, mass: mass_after(self.process, mass, schedule[day]))
        return self._settled(follow(self.evaluator, nothing, under_it))

    @cached_property
    def _reference(self) -> list[FloatArray]:
        return self.evaluator.priors()

    def result_of(self, course: PrivateCourse) -> CourseResult:
        """The result of a course, with what is counted among everyone alone."""
        return self.evaluator.with_counts(course.result, course.counts)

    def plan(self, policies: Sequence[Policy]) -> PrivateCourse:
        """The course of a policy for each day."""
        starts = [self._reference]
        if any(policy.uses_prior for policy in policies):
            starts.append(self._start.states)
        return self._settled(max((follow(self.evaluator, policies, priors) for priors in starts), key=VALUE))

    def _settled(self, best: PrivateCourse, budget: PrivacyBudget | None = None) -> PrivateCourse:
        """The course, planned again under its own distribution of the state as long as that gains within a budget."""
        if not any(policy.uses_prior for policy in best.policies):
            return best
        policies = [BestFixed() if isinstance(policy, BestFixed) else policy for policy in best.policies]

        def again(course: PrivateCourse) -> list[PrivateCourse]:
            planned = follow(self.evaluator, policies, course.states)
            return [planned] if budget is None or _share(budget, planned) <= 1 else []

        return _improved(best, again)

    def within(self, template: Policy, totals: Sequence[float], delta: float) -> Iterator[PrivateCourse]:
        """The course found within each total: the same whichever others are asked for, and a larger one is worth more.

        A fixed ladder of totals is climbed (`LADDER`): from the best schedule, and at each rung from the course of the
        one below. Between two rungs the tenths up to the total are climbed too, but never to more than the rung above
        is worth. So no total is worth less than a smaller one; it may spend as little as the last tenth.

        Equal epsilons on the first days (on all of them, half of them, a quarter, ...) compete with epsilons that were
        bought day by day (`buy_most`), at the gains and exact costs of the best course so far. Where a process can be
        sketched (`TreatmentCourse.sketch`), the sketch is searched; what it found is planned anew on the process, and
        scaled to what the process affords. The choice looks at the model alone, which is public; the course that is
        chosen is planned, evaluated and accounted for exactly.
        """
        climbed, sketches = [self._start], dict[float, PrivateCourse]()
        if self._sketch is not None:
            highest = bisect_right(LADDER, max(totals)) + 1
            steps = sorted({*LADDER[:highest], *chain.from_iterable(map(_tenths, totals))})
            sketches = dict(zip(steps, self._sketch.within(template, steps, delta), strict=True))

        def better(step: float, below: float, base: PrivateCourse) -> PrivateCourse:
            if step == math.inf:
                return max(base, self.plan([replace(template, epsilon=step)] * self.horizon), key=VALUE)
            if self._sketch is None:
                return self._searched(template, PrivacyBudget(step, delta), base)
            same = sketches[step] is sketches[below]
            return base if same else self._like(sketches[step], template, PrivacyBudget(step, delta), base)

        def rung(place: int) -> PrivateCourse:
            for higher in range(len(climbed), place + 1):
                climbed.append(better(LADDER[higher], LADDER[higher - 1], climbed[-1]))
            return climbed[place]

        for total in totals:
            place = bisect_right(LADDER, total) - 1
            best, below = rung(place), LADDER[place]
            for tenth in _tenths(total):
                found = better(tenth, below, best)
                best, below = found if found.value <= rung(place + 1).value else best, tenth
            yield best

    def _searched(self, template: Policy, budget: PrivacyBudget, base: PrivateCourse) -> PrivateCourse:
        """The best course so far, or a better one within the budget."""
        # The first days with the largest epsilon that was found affordable: all of them, half of them, ..., one.
        equal, days = [base], self.horizon
        while days > 0 and (even := budget.daily_epsilon(days)) > 0:
            weights = np.where(np.arange(self.horizon) < days, 1.0, 0.0)
            equal += self._scaled(template, weights, even, budget, base.states)
            days //= 2
        best = _improved(max(equal, key=VALUE), lambda course: self._bought(template, budget, course))
        return best if best is base else self._settled(best, budget)

    def _like(
        self, sketched: PrivateCourse, template: Policy, budget: PrivacyBudget, best: PrivateCourse
    ) -> PrivateCourse:
        """The best course so far, or a better one that spends as the course of the sketch does."""
        weights = np.array([policy.epsilon if policy.uses_epsilon else 0.0 for policy in sketched.policies])
        rounds = ROUNDS if template.uses_prior and weights[1:].any() else 1

        def scaled(public: Sequence[Policy], course: PrivateCourse) -> list[PrivateCourse]:
            return self._scaled(template, weights, 1.0, budget, course.states, otherwise=public)

        # Where everybody gets the same, what the sketch has is taken over, or else decided anew.
        for public in (sketched.policies, [BestFixed()] * self.horizon) if weights.any() else ():
            better = _improved(best, partial(scaled, public), rounds)
            if better is not best:
                return better
        return best

    def _scaled(
        self,
        template: Policy,
        weights: FloatArray,
        start: float,
        budget: PrivacyBudget,
        priors: list[FloatArray],
        *,
        otherwise: Sequence[Policy] = (),
    ) -> list[PrivateCourse]:
        """The day's weight times the largest factor that was found affordable; none if none was.

        On days without a weight the policy is that of `otherwise`, by default the action that is best on average.
        """
        affordable: dict[float, PrivateCourse] = {}
        public = otherwise or [BestFixed()] * self.horizon

        def share(factor: float) -> float:
            # 0 times infinity is a day without any.
            epsilons = [weight * factor if weight > 0 else 0.0 for weight in weights.tolist()]
            policies = [
                replace(template, epsilon=e) if e > 0 else anyhow for e, anyhow in zip(epsilons, public, strict=True)
            ]
            course = follow(self.evaluator, policies, priors)
            found = _share(budget, course)
            if found <= 1 and factor >= max(affordable, default=0.0):
                affordable.clear()
                affordable[factor] = course
            # Where all get the same in spite of what they may have, there is nothing to scale.
            return found or 1.0

        most_affordable(share, start, 0.0, TRIES)
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
                use = largest_use(here.uses(policy, logs))
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


def _improved(
    best: PrivateCourse, proposed: Callable[[PrivateCourse], Sequence[PrivateCourse]], rounds: int = ROUNDS
) -> PrivateCourse:
    """The best course that proposals lead to: each round's come from the best so far, while they gain."""
    for _ in range(rounds):
        better = max([best, *proposed(best)], key=VALUE)
        if not better.value > best.value + GAIN * abs(best.value):
            break
        best = better
    return best


def _tenths(total: float) -> list[float]:
    """The tenths of the way from one rung of the ladder to the next that are at most a total."""
    place = bisect_right(LADDER, total) - 1
    low, high = LADDER[place], LADDER[min(place + 1, len(LADDER) - 1)]
    if high == math.inf:
        return []
    # A total that is a tenth but for rounding is that tenth.
    steps = (low + (high - low) * tenth / TENTHS for tenth in range(1, TENTHS))
    return [min(step, total) for step in steps if step <= total * (1 + ROUNDED)]


def _share(budget: PrivacyBudget, course: PrivateCourse) -> float:
    """What share of the budget a course spends; above 1 by no more than the rounding of a sum, it is 1."""
    found = budget.share(course.uses)
    return min(found, 1.0) if found <= 1 + ROUNDED else found
