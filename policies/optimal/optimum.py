"""The limit as a policy: the epsilon-private table of highest value, also within bounds, or in the worst case.

Where every record has one clique of neighbours, it is solved class by class (`policies.optimal.classes`). Where a
record has several (one-feature), it is the whole linear programme (`policies.optimal.whole_programme`). Bounds and
several priors lead to mixtures of such optima (`policies.optimal.mixtures`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from policies.adjacency import AnyRecord
from policies.arrays import FloatArray
from policies.optimal.bounded import Programme, programme_of, robust_optimum
from policies.optimal.bounds import (
    ONE_FOR_ALL,
    bounds_on,
    checked_limits,
    checked_priors,
    checked_shares,
    require_priors,
)
from policies.optimal.ceilings import require_few
from policies.optimal.classes import class_logs, hiding_partitions
from policies.optimal.whole_programme import require_fit, solve_full
from policies.policy import NotApplicableError, Policy
from policies.problem import DecisionProblem
from policies.reference import BestFixed, Greedy


@dataclass(frozen=True)
class Optimal(Policy):
    """Maximise sum prior(x) p(a|x) u(x, a) such that p(a|x) <= e^epsilon p(a|x') for all neighbours x, x'.

    Exact for any-record and sensitive features at any number of records (`policies.optimal.ceilings`), and for
    one-feature up to `policies.optimal.whole_programme.MAX_ENTRIES`. epsilon = 0 gives each public class its best
    constant action, epsilon = inf is greedy.

    No epsilon-private policy has a higher value *under this prior*; it trusts the prior, and can do worse than others
    where patients come from another one.

    Parameters
    ----------
    epsilon : float
        The privacy parameter, >= 0.
    at_most : mapping of str to float or "one for all", optional
        The best of the policies under which these outcomes are expected to be at most so much per patient
        (`policies.optimal.bounded`).
    capacity : mapping of str to float, optional
        The best of those that give these actions to at most this share of the patients.
    priors : sequence of array, (n_records,) each, optional
        The best in the worst case over these priors, in place of the problem's (`policies.optimal.bounded`).

    Raises
    ------
    ValueError
        For limits that are no finite numbers, shares outside [0, 1], or priors together with bounds.
    """

    at_most: Mapping[str, float | str] | None = field(default=None, hash=False)
    capacity: Mapping[str, float] | None = field(default=None, hash=False)
    priors: Sequence[ArrayLike] | None = None
    name = "optimal"
    row_wise = True  # reads the order of the row's actions, and sums with the prior of what each order has at stake

    def __post_init__(self) -> None:
        """Check all, and keep copies."""
        super().__post_init__()
        object.__setattr__(self, "at_most", checked_limits(self.at_most) or None)
        object.__setattr__(self, "capacity", checked_shares(self.capacity) or None)
        if self.priors is not None:
            if self.bounded:
                raise ValueError("optimal takes bounds (at_most, capacity) or priors, not both.")
            object.__setattr__(self, "priors", checked_priors(self.priors))
            # The priors are those of records.
            object.__setattr__(self, "row_wise", False)
        # What is bounded, and the worst case, are those of all records together.
        object.__setattr__(self, "across_masks", self.bounded or self.priors is not None)

    @property
    def bounded(self) -> bool:
        """Whether it has bounds to keep."""
        return bool(self.at_most or self.capacity)

    def _programme(self, problem: DecisionProblem) -> Programme:
        return programme_of(problem, self.epsilon, bounds_on(problem, self.at_most, self.capacity))

    def _check(self, problem: DecisionProblem) -> None:
        """NotApplicableError for too many actions, one-feature with too many records, or bounds that cannot be kept.

        `value_limit` still bounds what is worth how much under one-feature.
        """
        if len(hiding_partitions(problem.adjacency, problem.n_records)) > 1:
            require_fit(problem)
        elif not self.bounded and self.priors is None:
            require_few(problem.n_actions)
        if self.bounded:
            programme = self._programme(problem)
            # Quick where one action for all keeps them.
            if not any((column.expectations[1:] <= programme.limits).all() for column in programme.constants):
                programme.solve()

    def _log_probabilities(self, problem: DecisionProblem) -> FloatArray:
        """log p(a|x), (n_records, n_actions), column-major; the loss is at most epsilon up to rounding of the logs.

        Raises
        ------
        NotApplicableError
            For one-feature with too many records, for more than 62 actions, or for bounds that cannot be kept.
        ValueError
            For bounds on what the problem does not have, or priors that are no distributions over its records.
        """
        if self.bounded:
            programme = self._programme(problem)
            return programme.table(programme.solve().parts)
        if self.priors is not None:
            return robust_optimum(problem, self.epsilon, self.priors).log_probabilities
        if np.isinf(self.epsilon):
            return Greedy().log_probabilities(problem)
        partitions = hiding_partitions(problem.adjacency, problem.n_records)
        if len(partitions) == 1:
            return class_logs(problem, partitions[0], self.epsilon)
        if self.epsilon == 0:
            # Every record can be reached from every other one, one feature at a time.
            return BestFixed().log_probabilities(problem)
        return solve_full(problem, self.epsilon).log_probabilities


@dataclass(frozen=True)
class OptimalSafe(Policy):
    """The optimum among the policies that cost no more of the lead (deaths, say) than one treatment for all.

    Parameters
    ----------
    epsilon : float
        The privacy parameter, >= 0.
    at_most, capacity : mapping, optional
        As for `Optimal`; by default the outcome that leads (`DecisionProblem.lead`), if one does, is at most that of
        one treatment for all.
    """

    at_most: Mapping[str, float | str] | None = field(default=None, hash=False)
    capacity: Mapping[str, float] | None = field(default=None, hash=False)
    name = "optimal-safe"
    row_wise = True  # as `Optimal`, with the order of the utilities less multiples of the outcomes
    across_masks = True

    def __post_init__(self) -> None:
        """Check all, and keep copies."""
        super().__post_init__()
        object.__setattr__(self, "at_most", None if self.at_most is None else checked_limits(self.at_most))
        object.__setattr__(self, "capacity", checked_shares(self.capacity) or None)

    def limits_on(self, problem: DecisionProblem) -> Mapping[str, float | str] | None:
        """The bounds on outcomes of a problem, by default on the one that leads; None where there is none."""
        if self.at_most is None and problem.lead is not None:
            return {problem.lead: ONE_FOR_ALL}
        return self.at_most

    def _optimal(self, problem: DecisionProblem) -> Optimal:
        """The optimum within the bounds on a problem; NotApplicableError where nothing says what to bound."""
        at_most = self.limits_on(problem)
        if at_most is None and self.capacity is None:
            raise NotApplicableError("optimal-safe bounds the outcome that leads, and the problem has no lead.")
        return Optimal(self.epsilon, at_most=at_most, capacity=self.capacity)

    def _check(self, problem: DecisionProblem) -> None:
        """NotApplicableError as for `Optimal`, and where the problem has no lead to bound."""
        self._optimal(problem).check(problem)

    def _log_probabilities(self, problem: DecisionProblem) -> FloatArray:
        """log p(a|x), (n_records, n_actions), column-major; NotApplicableError as from `check`."""
        return self._optimal(problem).log_probabilities(problem)


@dataclass(frozen=True)
class SameWithinLimits(OptimalSafe):
    """The best draw within the bounds that has the same chances for everyone: it reveals nothing.

    Where the best action for all keeps the bounds, it is that action. It is not in the catalogue, as it has no epsilon
    to compare it at.
    """

    epsilon: float = 0.0
    name = "same-within-limits"
    uses_epsilon = False

    def _log_probabilities(self, problem: DecisionProblem) -> FloatArray:
        """Those of the optimum at epsilon 0 where all records are neighbours; NotApplicableError as from `check`."""
        return super()._log_probabilities(problem.with_adjacency(AnyRecord()))


@dataclass(frozen=True)
class OptimalRobust(Policy):
    """The largest worst-case benefit kept over the priors that patients may come from.

    Parameters
    ----------
    epsilon : float
        The privacy parameter, >= 0.
    priors : sequence of array, (n_records,) each, optional
        Those of the problem (`DecisionProblem.priors`) by default.
    """

    priors: Sequence[ArrayLike] | None = None
    name = "optimal-robust"
    row_wise = True  # as `Optimal`, with the sums of each prior
    across_masks = True

    def __post_init__(self) -> None:
        """Check all, and keep copies."""
        super().__post_init__()
        if self.priors is not None:
            object.__setattr__(self, "priors", checked_priors(self.priors))
            # The priors are those of records.
            object.__setattr__(self, "row_wise", False)

    def _check(self, problem: DecisionProblem) -> None:
        """NotApplicableError for a problem without priors, or for one-feature with too many records."""
        if self.priors is None:
            require_priors(problem)
        if len(hiding_partitions(problem.adjacency, problem.n_records)) > 1:
            require_fit(problem)

    def _log_probabilities(self, problem: DecisionProblem) -> FloatArray:
        """log p(a|x), (n_records, n_actions), column-major; NotApplicableError as from `check`."""
        return robust_optimum(problem, self.epsilon, self.priors).log_probabilities


# What the optimum is called where a process is decided day by day.
OPTIMAL_DAILY = "optimal-daily"


def daily_name(name: str) -> str:
    """The name of a policy on a process: the optimum of each day's decision is not the optimum of the course.

    Examples
    --------
    >>> daily_name("optimal"), daily_name("exponential")
    ('optimal-daily', 'exponential')
    """
    return OPTIMAL_DAILY if name == Optimal.name else name


def catalogue_name(name: str) -> str:
    """The name in the catalogue of a policy that is asked for on a process: the inverse of `daily_name`."""
    return Optimal.name if name == OPTIMAL_DAILY else name
