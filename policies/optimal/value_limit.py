"""The limit as a number: what no epsilon-private policy exceeds, and what one is known to reach."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from policies.adjacency import Listed, OneFeature, Partition
from policies.arrays import non_negative
from policies.optimal import whole_programme
from policies.optimal.ceilings import best_ceilings, members_of
from policies.optimal.classes import by_order, greedy_value, hiding_partitions, solve_classes
from policies.optimal.whole_programme import fits, solve_full
from policies.policy import NotApplicableError
from policies.problem import DecisionProblem, once_per_problem

# How many features the nested feature sets hold at most, beside all of them.
_LARGEST_SET = 4

# A programme counts as solved if its dual agrees to this, relative to the range of utilities.
_GAP = 1e-6


@dataclass(frozen=True)
class ValueLimit:
    """Between which values the best epsilon-private policy lies, in units of utility.

    Attributes
    ----------
    achievable : float
        The value of an epsilon-private policy.
    unbeatable : float
        No epsilon-private policy has a higher value (up to float rounding): a bound by linear duality.
    exact : bool
        Whether the optimum itself was solved for, so that the two agree up to rounding.
    """

    achievable: float
    unbeatable: float
    exact: bool


def value_limit(problem: DecisionProblem, epsilon: float) -> ValueLimit:
    """The optimum of the problem, or an interval for it.

    It is exact for any-record and sensitive features, and for one-feature while the whole linear programme fits
    (`policies.optimal.whole_programme`). Beyond that, `achievable` is the better of two policies that are private under
    one-feature: the optimum that looks at the few features that matter most, and the any-record optimum. `unbeatable`
    follows from
    V*(epsilon) <= the optimum under sensitive = S at |S| epsilon: records that differ only in the features S are at
    most |S| steps apart, and each step multiplies a probability by at most e^epsilon.

    Parameters
    ----------
    problem : DecisionProblem
    epsilon : float
        >= 0; inf gives the value of greedy.

    Raises
    ------
    ValueError
        If epsilon is negative or not a number.
    NotApplicableError
        For one-feature over a list of records (`Listed`) at epsilon = 0, or too long for the whole programme:
        listed records that differ in two features need no record between them, so the bounds above do not hold.
    """
    exact = _exact_limit(problem, epsilon)
    if exact is not None:
        return exact
    achievable = _achievable(problem, epsilon)
    return ValueLimit(achievable, max(achievable, _unbeatable(problem, epsilon)), exact=False)


def achievable_value(problem: DecisionProblem, epsilon: float) -> float:
    """`value_limit(problem, epsilon).achievable`, without the work for the other end where the limit is an interval."""
    exact = _exact_limit(problem, epsilon)
    return _achievable(problem, epsilon) if exact is None else exact.achievable


def _exact_limit(problem: DecisionProblem, epsilon: float) -> ValueLimit | None:
    """The optimum; None where it is too large to be solved for."""
    epsilon = non_negative(epsilon, "epsilon")
    partitions = hiding_partitions(problem.adjacency, problem.n_records)
    if np.isinf(epsilon):
        greedy = greedy_value(problem)
        return ValueLimit(greedy, greedy, exact=True)
    if len(partitions) == 1:
        return _class_limit(problem, partitions[0], epsilon)
    if isinstance(problem.adjacency, Listed) and (epsilon == 0 or not fits(problem)):
        raise NotApplicableError(
            f"the limit under {problem.adjacency.name} over a list of records is known at epsilon > 0 for at most "
            f"{whole_programme.MAX_ENTRIES // problem.n_actions} records of {problem.n_actions} actions, "
            f"got epsilon={epsilon:g}, n_records={problem.n_records}."
        )
    if epsilon == 0:
        value = float(problem.fixed_values.max())
        return ValueLimit(value, value, exact=True)
    if fits(problem):
        full = solve_full(problem, epsilon)
        value = problem.value(np.exp(full.log_probabilities))
        return ValueLimit(value, max(value, full.bound), full.bound - value <= _tolerance(problem))
    return None


def _class_limit(problem: DecisionProblem, partition: Partition, epsilon: float) -> ValueLimit:
    loss = proven = 0.0
    if partition.whole:
        groups = by_order(problem)
        solution = best_ceilings(members_of(groups.sets, problem.n_actions), groups.set_weights, epsilon)
        loss, proven = float(solution.losses[0]), float(solution.proven[0])
    else:
        for solved in solve_classes(problem, partition, epsilon):
            loss += float(solved.units @ solved.solution.losses)
            proven += float(solved.units @ solved.solution.proven)
    greedy = greedy_value(problem)
    return ValueLimit(greedy - loss, greedy - min(loss, proven), loss - proven <= _tolerance(problem))


@once_per_problem
def _tolerance(problem: DecisionProblem) -> float:
    """In units of utility; where utilities hardly differ, what rounding leaves of a value."""
    return _GAP * float(np.ptp(problem.utilities)) + 1e-12 * float(np.abs(problem.utilities).max())


def _achievable(problem: DecisionProblem, epsilon: float) -> float:
    few = _looking_at_few(problem)
    return max(
        _class_limit(problem, Partition((problem.n_records,), (0,)), epsilon).achievable,
        -math.inf if few is None else value_limit(few, epsilon).achievable,
    )


def _unbeatable(problem: DecisionProblem, epsilon: float) -> float:
    """The least bound: from each strong feature, from all, and from the strongest few while more of them help."""
    strongest = _by_strength(problem)
    bounds = [_hiding(problem, (part,), epsilon) for part in strongest[:_LARGEST_SET]]
    bounds.append(_hiding(problem, tuple(strongest), epsilon))
    best = np.inf
    for size in range(2, min(_LARGEST_SET, len(strongest) - 1) + 1):
        bounds.append(_hiding(problem, tuple(strongest[:size]), epsilon))
        if bounds[-1] >= best:
            break
        best = bounds[-1]
    return min(bounds)


@once_per_problem
def _by_strength(problem: DecisionProblem) -> list[Partition]:
    """The features in the order of what hiding each costs at epsilon = 1; any order gives bounds that hold."""
    partitions = hiding_partitions(problem.adjacency, problem.n_records)
    return [partitions[i] for i in np.argsort([_hiding(problem, (part,), 1.0) for part in partitions])]


def _hiding(problem: DecisionProblem, partitions: tuple[Partition, ...], epsilon: float) -> float:
    """The optimum if only these features are hidden, at epsilon for each of them."""
    axes = tuple(sorted(axis for part in partitions for axis in part.axes))
    hidden = Partition(partitions[0].shape, axes)
    return _class_limit(problem, hidden, epsilon * len(partitions)).unbeatable


@once_per_problem
def _looking_at_few(problem: DecisionProblem) -> DecisionProblem | None:
    """The problem of choosing by the strongest features alone, as many as can be solved for; None if not one can.

    Records that agree on these get the same row, so that being private over them is being private over all.
    """
    strongest = _by_strength(problem)
    shape = strongest[0].shape
    kept: list[int] = []
    for (axis,) in (part.axes for part in strongest):
        if math.prod(shape[i] for i in (*kept, axis)) * problem.n_actions <= whole_programme.MAX_ENTRIES:
            kept.append(axis)
    if not kept:
        return None
    others = tuple(axis for axis in range(len(shape)) if axis not in kept)
    prior = problem.prior.reshape(shape).sum(axis=others).ravel()
    totals = [(problem.prior * column).reshape(shape).sum(axis=others).ravel() for column in problem.utilities.T]
    utilities = np.stack(totals, axis=1) / np.where(prior > 0, prior, 1.0)[:, None]
    seen = tuple(shape[axis] for axis in sorted(kept))
    return DecisionProblem(utilities, prior / prior.sum(), OneFeature(seen))
