"""The epsilon-private policy of highest value within bounds on expected outcomes and on shares of actions.

By Lagrange: at the right multipliers mu the optimum of the utilities u - mu . outcome (for a share, minus mu from the
column of its action), or a mixture of several optima at the same mu, is the best within the bounds, and no
epsilon-private policy within the bounds has a higher value than the optimum there plus mu . bound. A mixture of tables
of epsilon-private policies is epsilon-private. `policies.optimal.mixtures` finds the multipliers and the weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from policies.arrays import FloatArray, non_negative
from policies.optimal.bounded_programme import programme_of
from policies.optimal.bounds import bounds_on
from policies.problem import DecisionProblem


@dataclass(frozen=True)
class BoundedOptimum:
    """The best within bounds; n records, k actions.

    Attributes
    ----------
    log_probabilities : array, (n, k)
        An epsilon-private policy within the bounds.
    value : float
        Its value.
    bound : float
        No epsilon-private policy within the bounds has a higher value, up to float rounding (`optimal_certificate` with
        the multipliers for weights is a proof without). It is `value` but for rounding; under one-feature, but for the
        solver's tolerances.
    multipliers : mapping of str to float
        By how much the value grows per unit of each bound, by the name of its outcome or action, >= 0; 0 where it does
        not bind.
    """

    log_probabilities: FloatArray
    value: float
    bound: float
    multipliers: Mapping[str, float]


def bounded_optimum(
    problem: DecisionProblem,
    epsilon: float,
    *,
    at_most: Mapping[str, float | str] | None = None,
    capacity: Mapping[str, float] | None = None,
) -> BoundedOptimum:
    """The best epsilon-private policy that keeps the bounds; where the optimum itself keeps them, that.

    Parameters
    ----------
    problem : DecisionProblem
    epsilon : float
        >= 0; at inf, the best policy of all within the bounds.
    at_most : mapping of str to float or "one for all", optional
        The largest expected value per patient of outcomes of the problem; "one for all" is that of giving everybody
        the action that is best for all.
    capacity : mapping of str to float, optional
        The largest share of patients who may get an action, in [0, 1].

    Raises
    ------
    ValueError
        For an unknown name, or a limit that is no number.
    InfeasibleError
        If no epsilon-private policy keeps the bounds.
    NotApplicableError
        Under one-feature, for more records than the whole programme takes, or for a list of records at epsilon = 0.

    Examples
    --------
    >>> from policies import AnyRecord
    >>> harm = [[0.0, 0.1], [0.0, 0.1]]
    >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord(), outcomes={"harm": harm})
    >>> found = bounded_optimum(problem, 1.0, at_most={"harm": 0.02})
    >>> round(found.value, 4), np.exp(found.log_probabilities).round(4).tolist()  # a fifth of all get the second
    (0.5924, [[0.7076, 0.2924], [0.8924, 0.1076]])
    """
    epsilon = non_negative(epsilon, "epsilon")
    programme = programme_of(problem, epsilon, bounds_on(problem, at_most, capacity))
    found = programme.solve()
    logs = programme.table(found.parts)
    value = problem.value(np.exp(logs))
    return BoundedOptimum(logs, value, max(value, programme.value(found.bound)), programme.multipliers(found))


def penalised_point(problem: DecisionProblem, epsilon: float, outcome: str, penalty: float) -> tuple[float, float]:
    """The value, and the expected outcome, of the optimum for utilities less penalty x outcome; one of them, if tied.

    Where all records are neighbours, the pass over records depends on the penalty alone and is made once for all
    epsilons, and there is no table.

    Raises
    ------
    ValueError
        For an unknown outcome, an epsilon < 0 or a penalty that is not finite and >= 0.
    NotApplicableError
        Under one-feature, for more records than the whole programme takes.

    Examples
    --------
    >>> from policies import AnyRecord
    >>> harm = [[0.0, 0.5], [0.0, 0.5]]
    >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord(), outcomes={"harm": harm})
    >>> [tuple(round(number, 4) for number in penalised_point(problem, 1.0, "harm", p)) for p in (0.0, 1e3)]
    [(0.7311, 0.25), (0.5, 0.0)]
    """
    epsilon = non_negative(epsilon, "epsilon")
    bounds = bounds_on(problem, {outcome: 0.0}, None)
    if np.isinf(non_negative(penalty, "penalty")):
        raise ValueError("penalty must be finite, got penalty=inf.")
    programme = programme_of(problem, epsilon, bounds)
    lost, harmed = programme.oracle.best(np.array([1.0, penalty]) * programme.scales)[0].expectations * programme.scales
    return programme.value(0.0) - float(lost), float(harmed) + bounds[0].limit - bounds[0].room
