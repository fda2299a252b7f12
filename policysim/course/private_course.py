"""A policy over the days of a process, each day by its Q-values under the policy's own continuation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

import numpy as np

from policies.accounting import Use
from policies.arrays import FloatArray
from policies.masked import MaskedProblem
from policies.policy import Policy
from policies.reference import BestFixed
from policysim.course.course_evaluation import CourseResult, ProcessEvaluator
from policysim.course.process import Process
from policysim.course.schedules import Schedule, moved
from policysim.course.step_problems import decision


@dataclass(frozen=True, eq=False)
class PrivateCourse:
    """A policy over days under its own continuation.

    Attributes
    ----------
    policies : tuple of Policy
        That of each day. Where every state allows every action, a `BestFixed` names its action.
    priors : sequence of array, (n,)
        What they were told of the state on each day.
    uses : tuple of Use
        What each day's table reveals.
    result : CourseResult
        What it is worth, causes and loses.
    """

    policies: tuple[Policy, ...]
    priors: Sequence[FloatArray]
    uses: tuple[Use, ...]
    result: CourseResult
    _states: Callable[[], list[FloatArray]]

    @property
    def value(self) -> float:
        """The expected return of everyone."""
        return float(self.result.value[0])

    @cached_property
    def states(self) -> list[FloatArray]:
        """The distribution of the state on each day under the course itself, (n,) each, found when first asked for."""
        return self._states()


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
        The distribution of the state that each day's policy is told.
    visit : callable, optional
        Told of each day and its decision, the last day first. The decisions of all days may not fit into memory.
    """
    process = evaluator.process
    # On the last days everybody may get actions that are known: nothing is to be decided there.
    end = () if visit is not None or process.admissible is not None else _public_end(policies)
    uses, chosen = [Use(0.0, 0.0)] * len(policies), list(policies)
    tables: dict[int, FloatArray] = {}

    def decide(day: int, q_values: FloatArray) -> tuple[FloatArray, FloatArray]:
        problem = decision(process, q_values, priors[day])
        logs, probabilities = problem.tables(policies[day])
        uses[day] = problem.use(policies[day], logs)
        if problem.whole is not None and isinstance(policies[day], BestFixed):
            chosen[day] = BestFixed(action=int(probabilities[0].argmax()))
        else:
            tables[day] = probabilities
        if visit is not None:
            visit(day, problem)
        return logs, probabilities

    result = evaluator.backward(decide, end)
    days = tuple(chosen)
    return PrivateCourse(days, priors, tuple(uses), result, lambda: _state_distributions(process, days, tables))


def _public_end(policies: Sequence[Policy]) -> Schedule:
    """The actions that everybody gets on the last days, as far as they are known."""
    actions = [policy.action if isinstance(policy, BestFixed) else None for policy in reversed(policies)]
    return tuple(action for action in takewhile(lambda action: action is not None, actions) if action is not None)[::-1]


def _state_distributions(
    process: Process, policies: Sequence[Policy], tables: dict[int, FloatArray]
) -> list[FloatArray]:
    """The distribution of each day's state, (n,) each; where nobody is left, that of the last day with somebody.

    `tables` has p(a|x) of the days on which not everybody gets the same; they are let go.
    """
    mass, found = process.initial, [process.initial]
    for day, policy in enumerate(policies[:-1]):
        if day in tables:
            mass = process.push(mass, tables[day])
        else:
            assert isinstance(policy, BestFixed) and policy.action is not None
            mass = moved(process, mass, policy.action)
        # What is left over from a difference of sums may be the rounding of 0.
        mass = np.maximum(mass, 0.0)
        left = mass.sum()
        found.append(mass / left if left > 0 else found[-1])
    tables.clear()
    return found
