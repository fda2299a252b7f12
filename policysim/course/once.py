"""One private draw at admission of the treatments of every day.

What is published over all days is a function of that one choice, and the choice looks at the first record alone. So
the whole course, however long, loses what the choice loses: nothing is added up, and delta is 0 (post-processing: Dwork
& Roth 2014, The algorithmic foundations of differential privacy, proposition 2.1).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from policies.arrays import FloatArray, IntArray
from policies.catalogue import make_policy
from policies.policy import Policy
from policies.problem import DecisionProblem
from policysim.course.process import Process, checked_features, one_start, require_process
from policysim.course.schedules import ClassSchedules, Schedule, Schedules
from policysim.progress import SILENT, Progress
from policysim.study.checks import checked_tables

CANNOT_REACT = (
    "plan_once cannot react here: all who are hidden among each other begin in one state, and the choice is made by "
    "that alone. compare() chooses day by day."
)

# How many schedules there are at most, if not said otherwise, and how many can be.
SCHEDULES, MOST_SCHEDULES = 16, 62


@dataclass(frozen=True, eq=False)
class OncePlan:
    """A schedule for each first state, chosen privately.

    Attributes
    ----------
    schedules : array of int, (m, H)
        The action of each decision under each schedule; without a horizon (m, B), where the last action goes on. With
        public classes (n_classes, m, H): each has its own.
    policy : Policy
        What chooses.
    classes : array of int, (n,)
        The public class of each first state, which are hidden among each other; 0 of all if there are none.
    problem : DecisionProblem
        The choice: what each schedule is worth to each first state, (n, m), under the initial distribution, with
        the outcomes of the process. `policysim.compare` evaluates any policy on it, at any epsilon, in any group; what
        is private on it hides the whole course.
    probabilities, log_probabilities : array, (n, m)
        Of each schedule, for each first state; column-major.
    value : float
        The expected return from the initial distribution, exactly.
    epsilon_spent : float
        The exact privacy loss of the whole published course: that of the one choice. delta is 0. It is that between
        any two courses of states, not between first states alone (`plan_once`).
    """

    schedules: IntArray
    policy: Policy
    classes: IntArray
    problem: DecisionProblem
    probabilities: FloatArray = field(init=False)
    log_probabilities: FloatArray = field(init=False)
    value: float = field(init=False)
    epsilon_spent: float = field(init=False)

    def __post_init__(self) -> None:
        """Choose."""
        logs, probabilities, spent = checked_tables(self.policy, self.problem)
        value = self.problem.value(probabilities)
        vars(self).update(probabilities=probabilities, log_probabilities=logs, value=value, epsilon_spent=spent)

    @property
    def horizon(self) -> int:
        """How many decisions a schedule has."""
        return int(self.schedules.shape[-1])

    def actions(self, first: IntArray, chosen: IntArray, day: int) -> IntArray:
        """The actions of a day, (m,), for first states, (m,), and the schedules that were chosen for them, (m,)."""
        of_day = self.schedules[..., day]
        found: IntArray = of_day[chosen] if of_day.ndim == 1 else of_day[self.classes[first], chosen]
        return found

    def __repr__(self) -> str:
        """In a line."""
        m, length = self.schedules.shape[-2:]
        return (
            f"OncePlan({self.policy.name}, {m} schedules of {length} decisions, value={self.value:.6g}, "
            f"epsilon_spent={self.epsilon_spent:.6g})"
        )


def plan_once(
    process: Process,
    epsilon: float,
    *,
    policy: str | Policy = "optimal",
    schedules: int | ArrayLike = SCHEDULES,
    held: int | None = None,
    public: Sequence[str] = (),
    advance: Callable[[], object] | Progress = SILENT,
) -> OncePlan:
    """Choose one of m public schedules privately, by the first state, and follow it through all decisions.

    The schedules come from the process and its initial distribution alone, which are public: the best schedule, each
    other first action before its rest, and then those that raise the value of the best epsilon-private draw, until
    the gain is below 0.1 % of what there is to gain (`policysim.course.schedules.public_schedules`; the search is
    local, and others may be better). What each is worth to each first state is exact.

    Parameters
    ----------
    process : Process
        A `TabularMDP`, or the course of a treatment (`build_course`).
    epsilon : float
        Of the whole course, >= 0.
    policy : str or Policy
        What chooses among the schedules, by their values: any policy of the catalogue. Its epsilon is replaced.
    schedules : int, or array of int, (m, H)
        How many there are at most, from 2 to 62; or the schedules themselves, as actions from 0 (without a horizon
        (m, B), where the last action goes on). These must not be made from anybody's record.
    held : int, optional
        For how many decisions each action of a schedule is held: by default 1, or for horizons above 32 what makes at
        most 32 changes. Without a horizon a schedule changes eight times, and then its last action goes on.
    public : sequence of str, optional
        Features of the state that are public, beside those that are so in the process (`with_public`): only first
        states that agree in all of them are hidden among each other. They must never change.
    advance : callable or Progress, optional
        Called after each part of the work.

    Returns
    -------
    OncePlan

    Raises
    ------
    ValueError
        For something else than a process, schedules that do not fit it, an action that some state does not allow, or
        a policy that cannot be used on the choice, or gives no table of probabilities.
    ClaimError
        For a policy that reveals more than it claims.

    Warns
    -----
    UserWarning
        If all who are hidden among each other begin in one state, as in FrozenLake: the choice cannot react.

    Notes
    -----
    The whole course of states is hidden. What is published, a = (a_1, ..., a_H), follows from the first state and the
    chosen schedule: given a course of states s, its probability is q(a|s) = sum of p(j|s_1) over the schedules j that
    begin with a. As p(j|s_1) <= e^epsilon p(j|s'_1) for every j, q(a|s) <= e^epsilon q(a|s') for any two courses of the
    same length, whatever follows their first states.

    Any two states of a class are hidden among each other, one in which a patient is no longer treated too. Each
    public class has schedules of its own, since which class somebody is in is public. That a process
    ends by itself shows, and is taken as public, as everywhere; treatment over days is published through the last day
    instead, unless its length is declared public.

    Examples
    --------
    Two states that never change, each helped by another action on three days. Daily choices would share the epsilon;
    one choice of the three days has all of it:

    >>> from policysim.course.tabular import TabularMDP
    >>> mdp = TabularMDP([[[1, 0], [1, 0]], [[0, 1], [0, 1]]], [[1, 0], [0, 1]], [0.5, 0.5], horizon=3, axes="SAS")
    >>> found = plan_once(mdp, epsilon=1.0)
    >>> found.schedules.tolist(), round(found.value, 3), round(found.epsilon_spent, 9)
    ([[0, 0, 0], [1, 1, 1]], 2.193, 1.0)
    """
    require_process(process, "plan_once takes")
    chosen = make_policy(policy) if isinstance(policy, str) else policy
    if not isinstance(chosen, Policy):
        raise ValueError(f"policy must be a name or a Policy, as make_policy makes it, got policy={policy!r}.")
    chosen = replace(chosen, epsilon=epsilon)
    process = process.with_public(checked_features(public))
    progress = Progress.of(advance)
    progress.expect(3)
    if np.isscalar(schedules):
        family = ClassSchedules.of(process, held)
        if isinstance(schedules, (bool, np.bool_)) or not isinstance(schedules, (int, np.integer)):
            raise ValueError(f"schedules must be a whole number, or actions (m, H), got schedules={schedules!r}.")
        if not 2 <= schedules <= MOST_SCHEDULES:
            raise ValueError(f"schedules must be from 2 to {MOST_SCHEDULES}, got schedules={schedules!r}.")
        first = family.best()
        progress.advance()
        names = family.found(first, int(schedules))
    else:
        if held is not None:
            raise ValueError("held goes with a number of schedules, not with schedules of their own.")
        family, names = _given(process, schedules)
        progress.advance()
    if one_start(process.initial, family.classes):
        warnings.warn(CANNOT_REACT, UserWarning, stacklevel=2)
    progress.advance()
    problem = family.problem(names)
    progress.advance()
    return OncePlan(family.expanded(names), chosen, family.classes, problem)


def _given(process: Process, schedules: ArrayLike) -> tuple[ClassSchedules, list[list[Schedule]]]:
    """Schedules that a user gives, checked: the same for every class."""
    try:
        table: Any = np.asarray(schedules)
        shape = f"shape {table.shape}"
    except ValueError:
        table, shape = np.zeros(()), "rows of several lengths"
    wanted = "H" if process.horizon is None else process.horizon
    if table.ndim != 2 or not np.issubdtype(table.dtype, np.integer) or process.horizon not in (None, table.shape[1]):
        raise ValueError(f"schedules must be whole numbers of shape (m, {wanted}), got {shape}.")
    if len(table) < 2 or len(table) > MOST_SCHEDULES or len(np.unique(table, axis=0)) < len(table):
        raise ValueError(f"schedules must be 2 to {MOST_SCHEDULES} distinct rows, got {len(table)} rows.")
    family = ClassSchedules.of_days(process, table.shape[1])
    for own in family.families:
        own.checked()
    everybody = Schedules(process, (1,) * table.shape[1])
    for place in range(table.shape[1]):
        bad = np.flatnonzero(~np.isin(table[:, place], everybody.choices(place)))
        if bad.size:
            row = int(bad[0])
            raise ValueError(
                f"schedules[{row}, {place}] must be one of the actions {everybody.choices(place)} that every state "
                f"allows, got {int(table[row, place])}."
            )
    rows = [tuple(map(int, row)) for row in table]
    return family, [rows] * len(family.families)
