"""Planning: the decisions of a process, the best that can be done in it, and what a policy is worth, exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from policies.arrays import FloatArray, IntArray, probability_table
from policies.masked import MaskedProblem, masked_problem
from policies.policy import Policy, two_values
from policysim.course.planning_infinite import EndlessError, Plan, chain_values, chain_visits, solve_infinite
from policysim.course.process import Process, q_table, require_memory, require_process
from policysim.course.tabular import TabularMDP
from policysim.progress import SILENT, Progress

HorizonTables = ArrayLike | Sequence[ArrayLike]


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
    priors : callable
        Computes the distribution of the state under the best policy, (n,) for each of `plain`.
    """

    plain: tuple[MaskedProblem, ...]
    actions: tuple[IntArray, ...]
    values: FloatArray
    priors: Callable[[], list[FloatArray]]

    @cached_property
    def days(self) -> tuple[MaskedProblem, ...]:
        """The same decisions with the distribution of the state under the best policy as their prior.

        That on the day, or over all (discounted) decisions. Where nobody is left on a day, it is that of the last day
        with somebody.
        """
        return tuple(day.with_prior(prior) for day, prior in zip(self.plain, self.priors(), strict=True))

    def decisions(self, policy: Policy) -> tuple[MaskedProblem, ...]:
        """The decisions that a policy faces: those with priors only if it looks at them."""
        return self.days if policy.uses_prior else self.plain


def optimal_course(process: Process) -> DailyDecisions:
    """The decisions under the best policy; ValueError if that does not exist (see `plan`)."""
    if process.horizon is None:
        mdp = require_tabular(process)
        found = solve_infinite(mdp)
        visits = chain_visits(mdp, two_values(found.actions, mdp.n_actions, 1.0, 0.0))
        prior = visits / visits.sum() if visits.sum() > 0 else mdp.initial
        only = decision(mdp, found.q_values, mdp.initial)
        return DailyDecisions((only,), (found.actions,), found.values, lambda: [prior])
    # Q-values, a best action, and the distribution of the state.
    require_memory(process, 8 * (len(process.actions) + 2))
    values, days = np.zeros(len(process.initial)), []
    for _ in range(process.horizon):
        q_values = q_table(process, values)
        days.append(decision(process, q_values, process.initial))
        values = q_values.max(axis=1)
    # In few bytes: the priors keep them, where the decisions are no longer needed.
    few_bytes = np.min_scalar_type(len(process.actions))
    actions = tuple(day.best_actions().astype(few_bytes) for day in reversed(days))

    def step(day: int, mass: FloatArray) -> FloatArray:
        return process.push(mass, two_values(actions[day], len(process.actions), 1.0, 0.0))

    return DailyDecisions(tuple(reversed(days)), actions, values, partial(daily_distributions, process, step))


def daily_distributions(process: Process, step: Callable[[int, FloatArray], FloatArray]) -> list[FloatArray]:
    """The distribution of the state on each day of a horizon, (n,) each; of the last day with somebody.

    `step` goes from a day and the mass of its states, (n,), to the mass of the next day's.
    """
    masses = [process.initial]
    for day in range((process.horizon or 0) - 1):
        # What is left over from a difference of sums may be the rounding of 0.
        masses.append(np.maximum(step(day, masses[-1]), 0.0))
    return distributions(masses)


def distributions(masses: Sequence[FloatArray]) -> list[FloatArray]:
    """The distribution of the state on each day, from its mass; of the last day with somebody."""
    found = [masses[0]]
    for mass in masses[1:]:
        left = mass.sum()
        found.append(mass / left if left > 0 else found[-1])
    return found


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


def plan(process: Process, *, policy: Policy | None = None, advance: Callable[[], object] | Progress = SILENT) -> Plan:
    """Q-values of a process under optimal continuation, or under a private policy's own.

    Parameters
    ----------
    process : Process
        A `TabularMDP`, or the course of a treatment.
    policy : Policy, optional
        A private policy, used on every day on that day's Q-values under its own continuation. Policies that need a
        prior get the distribution of the state under optimal actions.
    advance : callable or Progress, optional
        Called after each day of a horizon.

    Returns
    -------
    Plan
        Exact but for the rounding of sums; for discounted processes of more than 1,500 states without a horizon, to
        `Plan.error`, about 1e-10 unless values are large.

    Raises
    ------
    ValueError
        For a process without a horizon or a discount that never ends from some state, or in which the reward grows
        for ever (names the state); for a policy without a horizon.

    References
    ----------
    Puterman (1994), Markov decision processes: backward induction, section 4.5; policy iteration, 6.4 and 7.2;
    modified policy iteration, 6.5.

    Examples
    --------
    One more day of waiting in state 0 is worth less than moving on to state 1, which earns 2 a day:

    >>> from policysim.course.tabular import TabularMDP
    >>> mdp = TabularMDP([[[1, 0], [0, 1]], [[0, 1], [0, 1]]], [[1, 0], [2, 2]], [1, 0], horizon=3, axes="SAS")
    >>> plan(mdp).q_values.tolist()
    [[[3.0, 4.0], [6.0, 6.0]], [[2.0, 2.0], [4.0, 4.0]], [[1.0, 0.0], [2.0, 2.0]]]
    >>> plan(mdp).value
    4.0
    """
    require_process(process, "plan takes")
    if policy is not None and not isinstance(policy, Policy):
        raise ValueError(f"policy must be a Policy, as make_policy makes it, got policy={policy!r}.")
    progress = Progress.of(advance)
    if process.horizon is None:
        if policy is not None:
            raise ValueError(
                "Q-values under a private policy need a horizon: without one, the policy "
                "and its own values depend on each other. Give a horizon."
            )
        return solve_infinite(require_tabular(process))
    n, k = process.rewards.shape
    require_memory(process, 8 * (k + 1))
    # Every policy that uses a prior gets that of its day, any other one the same for all.
    priors = optimal_course(process).priors() if policy is not None and policy.uses_prior else [process.initial]
    columns, values = np.empty((process.horizon, k, n)), np.empty((process.horizon, n))
    progress.expect(process.horizon)
    later = np.zeros(n)
    for day in reversed(range(process.horizon)):
        q_values = q_table(process, later)
        columns[day] = q_values.T
        progress.advance()
        if policy is None:
            values[day] = q_values.max(axis=1)
        else:
            problem = decision(process, q_values, priors[min(day, len(priors) - 1)])
            values[day] = expected(process, problem.tables(policy)[1], q_values)
        later = values[day]
    return Plan(columns.transpose(0, 2, 1), values, process.initial)


def policy_value(process: Process, probabilities: HorizonTables) -> float:
    """The exact expected return of a policy from the initial distribution.

    Parameters
    ----------
    process : Process
    probabilities : array, (n, k), or (H, n, k)
        p(a|s) for every decision, or for each day of a finite horizon (also as a sequence of H tables).

    Raises
    ------
    ValueError
        For rows that are no distribution, a probability other than 0 at an inadmissible action, or, without a horizon
        and a discount, a policy under which rewards go on for ever (names the state).

    Examples
    --------
    >>> from policysim.course.tabular import TabularMDP
    >>> mdp = TabularMDP([[[1, 0], [0, 1]], [[0, 1], [0, 1]]], [[1, 0], [2, 2]], [1, 0], horizon=3, axes="SAS")
    >>> policy_value(mdp, [[0.5, 0.5], [0.5, 0.5]])
    3.375
    """
    values = policy_values(process, probabilities)
    possible = np.flatnonzero(process.initial)
    endless = possible[~np.isfinite(values[possible])]
    if endless.size:
        raise EndlessError(
            f"from state {int(endless[0])} the process may go on for ever, with rewards that are not 0: under this "
            "policy it has no value."
        )
    return float(process.initial[possible] @ values[possible])


def policy_values(process: Process, probabilities: HorizonTables) -> FloatArray:
    """The exact expected return of a policy from each first state, (n,); see `policy_value`.

    Without a horizon and a discount, states from which rewards may go on for ever have -inf if these are <= 0, inf if
    they are >= 0, and NaN if they are mixed.
    """
    given: Any = probabilities
    if not isinstance(given, (np.ndarray, Sequence)) or len(given) == 0:
        raise ValueError(f"probabilities must be (n, k), or (H, n, k), got {type(given).__name__} without rows.")
    alike = _checked(process, given, "probabilities") if np.ndim(given[0]) < 2 else None
    if alike is None and len(given) != process.horizon:
        raise ValueError(f"probabilities must hold {process.horizon} days or be one table, got {len(given)} tables.")
    if alike is not None and process.horizon is None:
        return chain_values(require_tabular(process), alike)
    values = np.zeros(len(process.initial))
    for day in reversed(range(process.horizon or 0)):
        q_values = q_table(process, values)
        # Checked when it is asked for: all at once may not fit into memory.
        table = _checked(process, given[day], f"probabilities[{day}]") if alike is None else alike
        values = expected(process, table, q_values)
    return values


def expected(process: Process, probabilities: FloatArray, q_values: FloatArray) -> FloatArray:
    """The sum over admissible actions of p(a|s) q(s, a), (n,)."""
    values = np.zeros(len(q_values))
    for action, (chance, column) in enumerate(zip(probabilities.T, q_values.T, strict=True)):
        values += chance * (
            column if process.admissible is None else np.where(process.admissible[:, action], column, 0)
        )
    return values


def _checked(process: Process, values: ArrayLike, name: str) -> FloatArray:
    table = probability_table(values, name)
    if table.shape != process.rewards.shape:
        raise ValueError(f"{name} must have shape {process.rewards.shape}, got {table.shape}.")
    if process.admissible is not None:
        refused = np.argwhere((table > 0) & ~process.admissible)
        if refused.size:
            state, action = (int(i) for i in refused[0])
            raise ValueError(
                f"{name}[{state}, {action}] must be 0, got {float(table[state, action])!r}: "
                f"state {state} does not allow {process.actions[action]}."
            )
    return table
