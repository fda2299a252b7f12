"""Planning: the decisions of a process, the best that can be done in it, and what a policy is worth, exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from policies.arrays import FloatArray, IntArray, probability_table
from policies.masked import MaskedProblem, masked_problem
from policies.policy import Policy, two_values
from policysim.course.planning_infinite import EndlessError, chain_values, chain_visits, solve_infinite
from policysim.course.process import Process, require_memory
from policysim.course.tabular import TabularMDP
from policysim.question.protocol import SILENT, Progress

Tables = ArrayLike | Sequence[ArrayLike]


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


@dataclass(frozen=True, eq=False)
class Plan:
    """What each state and action is worth.

    Attributes
    ----------
    q_values : array, (H, n, k), or (n, k) for an infinite horizon
        The expected return of an action if what follows is optimal (or as the private policy does it); -inf for
        inadmissible actions.
    values : array, (H, n) or (n,)
        The expected return from each state.
    value : float
        The expected return from the initial distribution.
    error : float
        No value is further than this from the best, by proof; 0 where values are exact but for the rounding of sums.
    """

    q_values: FloatArray
    values: FloatArray
    value: float
    error: float = 0.0
    _actions: IntArray | None = None

    @cached_property
    def actions(self) -> IntArray:
        """A best action in each state, (H, n) or (n,).

        Without a horizon, the largest Q-value is not enough: of actions that are equally good, some may put off the
        end for ever. These do not.
        """
        best: IntArray = self.q_values.argmax(axis=-1) if self._actions is None else self._actions
        return best


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
        Called after each day; without a horizon, after each hundredth of the way to the accuracy of large processes.

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
    >>> mdp = TabularMDP([[[1, 0], [0, 1]], [[0, 1], [0, 1]]], [[1, 0], [2, 2]], [1, 0], horizon=3)
    >>> plan(mdp).q_values.tolist()
    [[[3.0, 4.0], [6.0, 6.0]], [[2.0, 2.0], [4.0, 4.0]], [[1.0, 0.0], [2.0, 2.0]]]
    >>> plan(mdp).value
    4.0
    """
    if not hasattr(process, "continuation"):
        raise ValueError(f"plan takes a process, such as a TabularMDP, got {process!r}.")
    if policy is not None and not isinstance(policy, Policy):
        raise ValueError(f"policy must be a Policy, as make_policy makes it, got policy={policy!r}.")
    progress = Progress.of(advance)
    if process.horizon is None:
        if policy is not None:
            raise ValueError(
                "Q-values under a private policy need a horizon: without one they would have to be found together with "
                "the policy that is made of them, which need not be possible. Give a horizon."
            )
        found = solve_infinite(require_tabular(process), progress)
        return Plan(found.q_values, found.values, float(process.initial @ found.values), found.error, found.actions)
    n, k = process.rewards.shape
    require_memory(process, 8 * (k + 1))
    columns, values = np.empty((process.horizon, k, n)), np.empty((process.horizon, n))
    private = None if policy is None else _private(process, policy)

    progress.expect(process.horizon)

    def decide(day: int, q_values: FloatArray) -> FloatArray:
        progress.advance()
        values[day] = q_values.max(axis=1) if private is None else private(day, q_values)
        best: FloatArray = values[day]
        return best

    first = backward(process, decide, columns)
    return Plan(columns.transpose(0, 2, 1), values, float(process.initial @ first))


def policy_value(process: Process, probabilities: Tables) -> float:
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
    >>> mdp = TabularMDP([[[1, 0], [0, 1]], [[0, 1], [0, 1]]], [[1, 0], [2, 2]], [1, 0], horizon=3)
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


def policy_values(process: Process, probabilities: Tables) -> FloatArray:
    """The exact expected return of a policy from each first state, (n,); see `policy_value`.

    Without a horizon and a discount, states from which rewards may go on for ever have -inf if these are <= 0, inf if
    they are >= 0, and NaN if they are mixed.
    """
    table = _daily_tables(process, probabilities)
    if process.horizon is None:
        return chain_values(require_tabular(process), table(0))
    return backward(process, lambda day, q_values: expected(process, table(day), q_values))


def expected(process: Process, probabilities: FloatArray, q_values: FloatArray) -> FloatArray:
    """The sum over admissible actions of p(a|s) q(s, a), (n,)."""
    values = np.zeros(len(q_values))
    for action, (chance, column) in enumerate(zip(probabilities.T, q_values.T, strict=True)):
        values += chance * (
            column if process.admissible is None else np.where(process.admissible[:, action], column, 0)
        )
    return values


def _private(process: Process, policy: Policy) -> Callable[[int, FloatArray], FloatArray]:
    """The values of a day under a private policy."""
    priors = reference_priors(process) if policy.uses_prior else [process.initial]

    def choose(day: int, q_values: FloatArray) -> FloatArray:
        problem = decision(process, q_values, priors[min(day, len(priors) - 1)])
        return expected(process, problem.tables(policy)[1], q_values)

    return choose


def _daily_tables(process: Process, probabilities: Tables) -> Callable[[int], FloatArray]:
    """The checked table of each day, (n, k), checked when it is asked for: all at once may not fit into memory."""
    given: Any = probabilities
    if not isinstance(given, (np.ndarray, Sequence)) or len(given) == 0:
        raise ValueError(f"probabilities must be (n, k), or (H, n, k), got {type(given).__name__} without rows.")
    if np.ndim(given[0]) < 2:
        table = _checked(process, given, "probabilities")
        return lambda _: table
    if len(given) != process.horizon:
        raise ValueError(f"probabilities must hold {process.horizon} days or be one table, got {len(given)} tables.")
    return lambda day: _checked(process, given[day], f"probabilities[{day}]")


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
