"""The epsilon-private policy of highest value within bounds, or of the largest worst-case benefit over several priors.

By Lagrange: at the right multipliers mu the optimum of the utilities u - mu . outcome (for a share, minus mu from the
column of its action), or a mixture of several optima at the same mu, is the best within the bounds, and no
epsilon-private policy within the bounds has a higher value than the optimum there plus mu . bound. A mixture of tables
of epsilon-private policies is epsilon-private. `policies.optimal.mixtures` finds the multipliers and the weights.

In the worst case over several priors the programme has a row for each: the utility lost under it. Under prior j, V_j(p)
is the value of a policy, best_j that of the best action for each record and fixed_j that of the best single action for
all, under which benefit kept is 1 and 0:

    max t  such that  V_j(p) >= fixed_j + t (best_j - fixed_j) for each j:  best_j - V_j(p) <= (1 - t) unit_j

with unit_j = best_j - fixed_j. Under a prior where nothing is to be gained (best_j = fixed_j but for rounding), that
would leave one action for all as the only policy. There the loss itself is bounded: unit_j is the smallest of the gains
of the other priors, so that nobody loses more utility there than those lose who have least to gain; without any other
prior, 1 unit of utility.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike

from policies.arrays import FloatArray, Frozen, IntArray, conditional, non_negative
from policies.mask import same_masks
from policies.optimal.bounds import Bound, InfeasibleError, Priors, bounds_on, checked_priors, priors_on
from policies.optimal.mixtures import KEPT, Column, Mixture, MixtureParts, Oracle, SomeRows, best_mixture
from policies.optimal.rows import BoundRows, ClassRows, Joint, LossRows, Side, cost_tables, gain_units, spread_units
from policies.problem import DecisionProblem, MaskClass, once_per_problem


@dataclass(frozen=True, eq=False)
class BoundedOptimum(Frozen):
    """The best within bounds; n records, k actions.

    Attributes
    ----------
    problem : DecisionProblem
        Whose policies these are.
    log_probabilities : array, (n, k)
        An epsilon-private policy within the bounds.
    proven : float
        No epsilon-private policy within the bounds has a higher value, up to float rounding (`optimal_certificate` with
        the multipliers for weights is a proof without). It is `value` but for rounding, by which it may be smaller;
        under one-feature, but for the solver's tolerances.
    multipliers : mapping of str to float
        By how much the value grows per unit of each bound, by the name of its outcome or action, >= 0; 0 where it does
        not bind.
    """

    problem: DecisionProblem
    log_probabilities: FloatArray
    proven: float
    multipliers: Mapping[str, float]

    @cached_property
    def value(self) -> float:
        """Of the policy."""
        return self.problem.value(np.exp(self.log_probabilities))

    @property
    def bound(self) -> float:
        """What is proven, or attained if that is more."""
        return max(self.value, self.proven)


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
        The largest expected value per patient of outcomes of the problem; "one for all" is the value of giving
        everybody the action that is best for all.
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
    return BoundedOptimum(problem, logs, programme.value(found.bound), programme.multipliers(found))


@dataclass(frozen=True, eq=False)
class RobustOptimum(Frozen):
    """The best in the worst case; n records, k actions, J priors.

    Attributes
    ----------
    problem : DecisionProblem
        Whose policies these are.
    priors : Priors
        (n,) each.
    log_probabilities : array, (n, k)
        An epsilon-private policy.
    proven : float
        No epsilon-private policy keeps more, up to float rounding.
    weights : array, (J,)
        Of the priors, with a sum of 1: under their mixture with these weights, no epsilon-private policy loses less.
    """

    problem: DecisionProblem
    priors: Priors
    log_probabilities: FloatArray
    proven: float
    weights: FloatArray

    @cached_property
    def kept(self) -> float:
        """t: the least share of the benefit that it keeps under any of the priors; see the head of the module."""
        under = [self.problem.with_prior(prior) for prior in self.priors]
        utilities, best_actions = self.problem.utilities, self.problem.best_actions
        best = np.array(self.priors) @ np.take_along_axis(utilities, best_actions[:, None], axis=1)[:, 0]
        gains = best - [each.best_fixed_value for each in under]
        lost = best - [each.value(np.exp(self.log_probabilities)) for each in under]
        roundings = np.full(len(under), 1e-13 * float(np.abs(utilities).max()))
        return 1 - float((lost / gain_units(gains, roundings)).max())

    @property
    def bound(self) -> float:
        """What is proven, or attained if that is more."""
        return max(self.kept, self.proven)


def robust_optimum(
    problem: DecisionProblem, epsilon: float, priors: Sequence[ArrayLike] | None = None
) -> RobustOptimum:
    """The best epsilon-private policy in the worst case over priors.

    Parameters
    ----------
    problem : DecisionProblem
        Its own prior is not used.
    epsilon : float
        >= 0; inf gives greedy.
    priors : sequence of array, (n,) each, optional
        At least one; those of the problem by default.

    Raises
    ------
    ValueError
        For a prior that is no distribution over the records.
    NotApplicableError
        If neither the problem has priors nor any are given; under one-feature, for more records than the whole
        programme takes, or for a list of records at epsilon = 0.

    Examples
    --------
    >>> from policies import AnyRecord
    >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord())
    >>> found = robust_optimum(problem, 1.0, [[0.8, 0.2], [0.2, 0.8]])  # one for all errs in a fifth, this in more
    >>> round(found.kept, 4), np.exp(found.log_probabilities).round(4).tolist()
    (-0.3447, [[0.2689, 0.7311], [0.7311, 0.2689]])
    """
    epsilon = non_negative(epsilon, "epsilon")
    checked = priors_on(problem, None if priors is None else checked_priors(priors))
    programme = programme_of(problem, epsilon, priors=checked)
    found = programme.solve()
    return RobustOptimum(problem, checked, programme.table(found.parts), 1 - found.bound, found.prices)


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


# Rounds up to six digits.
_UP = Context(prec=6, rounding=ROUND_CEILING)


class Programme:
    """The master programme: the rows summed over the sets of records that allow the same actions.

    The losses come first, then what is bounded. Outcomes are counted from the action that is best for all of a set.

    Parameters
    ----------
    problem : DecisionProblem
    epsilon : float
    classes : sequence of MaskClass
        The sets of records, and the actions that they may get; no more than the problem allows.
    bounds : sequence of Bound
        What is bounded, under the problem's prior; none in the worst case.
    priors : Priors, optional
        For the worst case over these.

    Attributes
    ----------
    scales : array, (n_rows,)
        What the rows are divided by.
    limits : array, (n_bounds,)
        Of what is bounded, in these units.
    oracle : Oracle
    constants : list of Column
        One action for all, as far as it is allowed.
    table : callable
        log p(a|x), (n_records, n_actions), of a mixture of columns of the oracle.
    """

    constants: list[Column]
    table: Callable[[MixtureParts], FloatArray]

    def __init__(
        self,
        problem: DecisionProblem,
        epsilon: float,
        classes: Sequence[MaskClass],
        bounds: Sequence[Bound] = (),
        priors: Priors | None = None,
    ) -> None:
        self.problem, self.epsilon, self._classes, self._asked, self._losses = problem, epsilon, classes, bounds, priors
        # The action that is best for all of each set.
        fixed = np.empty(problem.n_records, dtype=np.intp)
        for part in classes:
            fixed[part.rows] = part.columns[0 if part.problem is None else part.problem.best_fixed_action]
        self.bounds = list(bounds) if self._is_whole else [self._from_here(bound, fixed) for bound in bounds]
        self.n_losses = 1 if priors is None else len(priors)
        n_rows = self.n_losses + len(bounds)
        spreads, self._roundings = np.zeros(n_rows), np.zeros(n_rows)
        found: list[tuple[MaskClass, ClassRows, IntArray, FloatArray]] = []
        for part in classes:
            own, rows, shares = self._rows_of(part)
            if own is not None:
                spreads[rows] += shares * own.spreads
                self._roundings[rows] += shares * own.roundings
                found.append((part, own, rows, shares))
        self.scales = spread_units(spreads) if priors is None else gain_units(spreads, self._roundings)
        self.limits = np.array([bound.room for bound in self.bounds]) / self.scales[self.n_losses :]
        sides = [Side(part, own, rows, shares * own.scales / self.scales[rows]) for part, own, rows, shares in found]
        self.oracle: Oracle
        if self._is_whole:
            own_rows = sides[0].own
            self.oracle, self.constants, self.table = own_rows.oracle, own_rows.constants, own_rows.table
        else:
            joint = Joint(sides, n_rows, problem.n_actions, fixed)
            self.oracle, self.constants = joint, joint.constants()
            self.table = partial(joint.table, n_records=problem.n_records)

    @property
    def _is_whole(self) -> bool:
        """Whether there is one set, of all records with all actions."""
        return self._classes[0].problem is self.problem

    def _rows_of(self, part: MaskClass) -> tuple[ClassRows | None, IntArray, FloatArray]:
        """The rows of a set, if it has any; which of all rows these are, and its share of the patients in each."""
        if part.problem is None:
            return None, np.zeros(0, dtype=np.intp), np.zeros(0)
        if self._losses is not None:
            # The priors under which nobody of the set comes have no say in it.
            shares = np.array([_share(prior, part) for prior in self._losses])
            rows = np.flatnonzero(shares)
            priors = Priors(conditional(self._losses[row], part.rows) for row in rows)
            return LossRows(part.problem, self.epsilon, priors) if priors else None, rows, shares[rows]
        # The loss, outcomes, and shares of its own actions.
        places = [place for place, bound in enumerate(self._asked) if bound.action in (None, *part.columns)]
        actions = part.columns.tolist()
        renumbered = [
            bound if bound.action is None else replace(bound, action=actions.index(bound.action))
            for bound in (self._asked[place] for place in places)
        ]
        rows = np.array([0, *(place + 1 for place in places)])
        share = _share(self.problem.prior, part)
        return BoundRows(part.problem, self.epsilon, renumbered), rows, np.full(len(rows), share)

    def solve(self) -> Mixture:
        """The best mixture within the bounds; InfeasibleError if there is none."""
        n_losses = self.n_losses
        alike = np.r_[np.full(n_losses, 1 / n_losses), np.zeros(len(self.bounds))]
        first, least = self.oracle.best(alike)
        if n_losses == 1 and (first.expectations[1:] <= self.limits).all():
            # The optimum keeps the bounds: no multiplier is needed.
            return Mixture(((1.0, first),), float(first.expectations[0]), least, alike)
        margins = self._roundings[n_losses:] / self.scales[n_losses:]
        found = best_mixture(self.oracle, [*self.constants, first], self.limits, margins)
        if found is None:
            raise InfeasibleError(self.what_is_possible())
        return found

    def value(self, loss: float) -> float:
        """The value of a policy, from its first row."""
        utilities, best = self.problem.utilities, np.empty(self.problem.n_records)
        for part in self._classes:
            best[part.rows] = utilities[np.ix_(part.rows, part.columns)].max(axis=1)
        return float(self.problem.prior @ best) - float(self.scales[0]) * loss

    def multipliers(self, mixture: Mixture) -> dict[str, float]:
        """In units of utility per unit of what is bounded."""
        units = self.scales[0] / self.scales[1:]
        prices = dict(zip((b.name for b in self.bounds), (mixture.prices[1:] * units).tolist(), strict=True))
        never = [bound for bound in self.bounds if bound.action is not None and not self._allows(bound.action)]
        if never:
            # At this price one of the other actions is better for every record, so that it can stand in for this one in
            # any private policy.
            own = [0.0 if bound in never else prices[bound.name] for bound in self.bounds]
            terms = (
                (b.name if b.action is None else b.action, price) for b, price in zip(self.bounds, own, strict=True)
            )
            costs = cost_tables(self.problem, False).priced(((None, 1.0), *terms))
            for bound in never:
                worse = [(costs[part.columns] - costs[bound.action])[:, part.rows] for part in self._classes]
                prices[bound.name] = max(0.0, *(float(each.max(axis=1).min()) for each in worse))
        return prices

    def what_is_possible(self) -> str:
        """Of each bound, the least that an epsilon-private policy can do, by itself and with the others kept."""
        if not all(self._allows(bound.action) for bound in self.bounds if bound.action is not None):
            everything = self.problem.classes or (_all_of(self.problem),)
            return Programme(self.problem, self.epsilon, everything, self._asked).what_is_possible()
        which = "this bound" if len(self.bounds) == 1 else "all of these bounds"
        found = [f"{bound} (the least possible is {self._least(place)})" for place, bound in enumerate(self.bounds)]
        return f"no policy keeps {which} at epsilon={self.epsilon:g}: {', '.join(found)}."

    def _least(self, place: int) -> str:
        rows = np.array([place, *(other for other in range(len(self.bounds)) if other != place)]) + 1
        column, least = self.oracle.best(np.eye(len(self.scales))[rows[0]])
        alone = self._in_words(place, float(column.expectations[rows[0]]))
        if len(rows) == 1:
            return alone
        # As a loss it must not be negative.
        shifts = np.where(np.arange(len(rows)) == 0, min(least, float(column.expectations[rows[0]])), 0.0)
        oracle = SomeRows(self.oracle, rows, shifts, len(self.scales))
        columns = [oracle.of(known) for known in [*self.constants, column]]
        within = best_mixture(oracle, columns, self.limits[rows[1:] - 1])
        if within is None:
            return f"{alone}, and the others cannot be kept either"
        return f"{alone}, or {self._in_words(place, within.value + float(shifts[0]))} with the others kept"

    def _in_words(self, place: int, expectation: float) -> str:
        """A number that can be asked for: six digits, rounded up, and 0 where it is rounding."""
        bound, scale = self.bounds[place], float(self.scales[place + 1])
        found = bound.limit - bound.room + (expectation - KEPT) * scale
        return f"{float(_UP.create_decimal(found)):g}" if abs(found) > 2 * KEPT * scale else "0"

    def _allows(self, action: int) -> bool:
        """Whether anybody may get an action that somebody allows."""
        allowed = self.problem.admissible is None or self.problem.admissible[:, action].any()
        return not allowed or any((part.columns == action).any() for part in self._classes)

    def _from_here(self, bound: Bound, fixed: IntArray) -> Bound:
        """The room beyond what the rows are counted from."""
        if bound.action is not None:
            none_else = [part for part in self._classes if part.problem is None and part.columns[0] == bound.action]
            return replace(bound, room=bound.room - sum(_share(self.problem.prior, part) for part in none_else))
        outcome = self.problem.outcomes[bound.name]
        before = self.problem.of_best_fixed(outcome) - np.take_along_axis(outcome, fixed[:, None], axis=1)[:, 0]
        return replace(bound, room=bound.room + float(self.problem.prior @ before))


def _all_of(problem: DecisionProblem) -> MaskClass:
    """All records of a problem without a mask, as one set."""
    return MaskClass(np.arange(problem.n_records), np.arange(problem.n_actions), problem)


def _share(prior: FloatArray, part: MaskClass) -> float:
    """Of the patients; 1 exactly if it is all."""
    return 1.0 if len(part.rows) == len(prior) else float(prior[part.rows].sum())


def programme_of(
    problem: DecisionProblem, epsilon: float, bounds: Sequence[Bound] = (), priors: Priors | None = None
) -> Programme:
    """The master programme of a problem within bounds, or in the worst case over priors.

    An action of capacity 0 is not allowed, unless some records allow no other: a price that keeps it from each single
    patient would be larger than all numbers that matter.
    """
    never = {bound.action for bound in bounds if bound.action is not None and bound.limit == 0}
    left = _classes(problem, frozenset(never)) if never else None
    return Programme(problem, epsilon, left or problem.classes or (_all_of(problem),), bounds, priors)


@once_per_problem
def _classes(problem: DecisionProblem, never: frozenset[int]) -> tuple[MaskClass, ...] | None:
    """The classes of a problem without some of its actions; None if that leaves nothing to some records."""
    every = np.ones(problem.utilities.shape, dtype=np.bool_) if problem.admissible is None else problem.admissible
    mask = every & ~np.isin(np.arange(problem.n_actions), list(never))
    if not mask.any(axis=1).all():
        return None
    return tuple(MaskClass.of(problem, *found) for found in same_masks(mask, problem.adjacency))
