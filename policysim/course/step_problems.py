"""The decisions of a process, one by one: what a private policy faces on each day."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from policies.arrays import FloatArray, IntArray
from policies.masked import MaskedProblem, masked_problem
from policies.policy import Policy, two_values
from policysim.course.chain import chain_visits
from policysim.course.planning_infinite import solve_infinite
from policysim.course.process import Process, require_memory
from policysim.course.tabular import TabularMDP


@dataclass(frozen=True, eq=False)
class DailyDecisions:
    """The decisions of a process under its best policy.

    Attributes
    ----------
    plain : tuple of MaskedProblem
        One for each day; a single one for an infinite horizon. The utilities are Q-values under optimal continuation;
        the prior is nothing but the initial distribution.
    actions : tuple of array of int, (n,)
        The best action in each state, for each of `plain`.
    values : array, (n,)
        What each first state is worth under the best policy.
    """

    plain: tuple[MaskedProblem, ...]
    actions: tuple[IntArray, ...]
    values: FloatArray
    priors: Callable[[], list[FloatArray]]

    @cached_property
    def days(self) -> tuple[MaskedProblem, ...]:
        """The same decisions with the distribution of the state as their prior, computed when first asked for.

        The distribution under the best policy: on that day, or over all (discounted) decisions. Where nobody is left
        on a day, it is that of the last day with somebody.
        """
        return tuple(day.with_prior(prior) for day, prior in zip(self.plain, self.priors(), strict=True))

    def decisions(self, policy: Policy) -> tuple[MaskedProblem, ...]:
        """The decisions that a policy faces: those with priors only if it looks at them."""
        return self.days if policy.uses_prior else self.plain


def backward(
    process: Process, decide: Callable[[int, FloatArray], FloatArray], store: FloatArray | None = None
) -> FloatArray:
    """Go back through the days of a finite horizon; the values of the first day, (n,).

    Parameters
    ----------
    process : Process
    decide : callable
        From the day and its Q-values, (n, k), -inf at inadmissible actions, to the values of the day, (n,).
    store : array, (H, k, n), optional
        Where the Q-values of each day go; by default nowhere.
    """
    values = np.zeros(len(process.initial))
    for day in reversed(range(process.horizon or 0)):
        q_values = q_table(process, values)
        if store is not None:
            store[day] = q_values.T
        values = decide(day, q_values)
    return values


def q_table(process: Process, values: FloatArray) -> FloatArray:
    """Rewards + discount * continuation of the (n,) values, (n, k), -inf where inadmissible."""
    q_values = process.continuation(values)
    if process.discount != 1:
        q_values *= process.discount
    q_values += process.rewards
    if process.admissible is not None:
        q_values[~process.admissible] = -np.inf
    return q_values


def optimal_course(process: Process) -> DailyDecisions:
    """The decisions under the best policy; ValueError if that does not exist (see `plan`)."""
    return _stationary(process) if process.horizon is None else _day_by_day(process)


def reference_priors(process: Process) -> list[FloatArray]:
    """The distribution of the state on each day, (n,), under the best policy of a finite horizon."""
    best: dict[int, IntArray] = {}

    def decide(day: int, q_values: FloatArray) -> FloatArray:
        best[day] = q_values.argmax(axis=1).astype(np.uint8 if q_values.shape[1] <= 256 else np.intp)
        return np.asarray(q_values.max(axis=1))

    backward(process, decide)
    return _priors(process, [best[day] for day in range(len(best))])


def decision(process: Process, q_values: FloatArray, prior: FloatArray) -> MaskedProblem:
    """The decision between Q-values, (n, k)."""
    return masked_problem(
        q_values,
        prior,
        process.admissible,
        classes=process.classes,
        actions=process.actions,
        records=process.records,
    )


def require_tabular(process: Process) -> TabularMDP:
    """The process itself; ValueError for one without a horizon that is no TabularMDP."""
    if not isinstance(process, TabularMDP):
        raise ValueError(f"a process without a horizon must be a TabularMDP, got {type(process).__name__}.")
    return process


def _day_by_day(process: Process) -> DailyDecisions:
    # Q-values, a best action, and the distribution of the state.
    require_memory(process, 8 * (len(process.actions) + 2))
    days: dict[int, MaskedProblem] = {}

    def decide(day: int, q_values: FloatArray) -> FloatArray:
        days[day] = decision(process, q_values, process.initial)
        return np.asarray(q_values.max(axis=1))

    values = backward(process, decide)
    actions = tuple(days[day].best_actions() for day in range(len(days)))
    plain = tuple(days[day] for day in range(len(days)))
    return DailyDecisions(plain, actions, values, lambda: _priors(process, list(actions)))


def _priors(process: Process, actions: list[IntArray]) -> list[FloatArray]:
    """The distribution of the state on each day if these actions are taken; of the last day with somebody."""
    mass, priors = process.initial, [process.initial]
    for chosen in actions[:-1]:
        # What is left over from a difference of sums may be the rounding of 0.
        mass = np.maximum(process.push(mass, two_values(chosen, len(process.actions), 1.0, 0.0)), 0.0)
        left = mass.sum()
        priors.append(mass / left if left > 0 else priors[-1])
    return priors


def _stationary(process: Process) -> DailyDecisions:
    mdp = require_tabular(process)
    q_values, values, actions, _ = solve_infinite(mdp)
    visits = chain_visits(mdp, two_values(actions, mdp.n_actions, 1.0, 0.0))
    prior = visits / visits.sum() if visits.sum() > 0 else mdp.initial
    return DailyDecisions((decision(mdp, q_values, mdp.initial),), (actions,), values, lambda: [prior])
