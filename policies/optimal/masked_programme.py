"""The master programme of the best within bounds where records do not allow every action."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from policies.arrays import FloatArray, IntArray
from policies.mask import same_masks
from policies.optimal.bounded_programme import BoundedProgramme
from policies.optimal.bounds import Bound
from policies.optimal.joint import Joint, Side
from policies.optimal.mixtures import Column, Mixture
from policies.optimal.oracles import Parts
from policies.optimal.penalties import Means, Term, cost_tables
from policies.problem import DecisionProblem, MaskClass, once_per_problem


def programme_of(problem: DecisionProblem, epsilon: float, bounds: tuple[Bound, ...]) -> BoundedProgramme:
    """The master programme of a problem.

    An action of capacity 0 is not allowed, unless some records allow no other: a price that keeps it from each single
    patient would be larger than all numbers that matter.
    """
    never = {bound.action for bound in bounds if bound.action is not None and bound.limit == 0}
    if never or problem.admissible is not None:
        left = _classes(problem, frozenset(never))
        if left is not None:
            return MaskedProgramme(problem, epsilon, bounds, left)
        if problem.admissible is not None:
            return MaskedProgramme(problem, epsilon, bounds, problem.classes)
    return BoundedProgramme(problem, epsilon, bounds)


@once_per_problem
def _classes(problem: DecisionProblem, never: frozenset[int]) -> tuple[MaskClass, ...] | None:
    """The classes of a problem without some of its actions; None if that leaves nothing to some records."""
    if not never:
        return problem.classes
    every = np.ones(problem.utilities.shape, dtype=np.bool_) if problem.admissible is None else problem.admissible
    mask = every & ~np.isin(np.arange(problem.n_actions), list(never))
    if not mask.any(axis=1).all():
        return None
    return tuple(MaskClass.of(problem, *found) for found in same_masks(mask, problem.adjacency))


class MaskedProgramme(BoundedProgramme):
    """The rows summed over the sets of records that allow the same actions, each of which has a programme of its own.

    Outcomes are counted from the action that is best for all of a set.
    """

    def __init__(
        self, problem: DecisionProblem, epsilon: float, bounds: tuple[Bound, ...], classes: tuple[MaskClass, ...]
    ) -> None:
        self.problem, self.epsilon, self._asked, self._classes = problem, epsilon, bounds, classes
        fixed = _best_fixed(problem, classes)
        self.bounds = tuple(self._from_here(bound, fixed) for bound in bounds)
        parts = [part for part in classes if part.problem is not None]
        rows = [_rows(bounds, part) for part in parts]
        own = [BoundedProgramme(*_part(part, bounds, epsilon)) for part in parts]
        shares = [_share(problem, part) for part in parts]
        self._measure(_summed(len(bounds) + 1, rows, shares, own))
        sides = [
            Side(part, each.oracle, places, share * each.scales / self.scales[places], each.constants, each.table)
            for part, each, places, share in zip(parts, own, rows, shares, strict=True)
        ]
        self._joint = Joint(sides, len(bounds) + 1, problem.n_actions, fixed)
        self.oracle = self._joint

    @cached_property
    def constants(self) -> list[Column]:
        """One action for all, as far as it is allowed."""
        return self._joint.constants()

    def table(self, parts: Parts) -> FloatArray:
        """log p(a|x) of a mixture of columns of the oracle, (n_records, n_actions)."""
        return self._joint.table(parts, self.problem.n_records)

    def value(self, loss: float) -> float:
        """The value of a policy, from its first row."""
        utilities, best = self.problem.utilities, np.empty(self.problem.n_records)
        for part in self._classes:
            best[part.rows] = utilities[np.ix_(part.rows, part.columns)].max(axis=1)
        return float(self.problem.prior @ best) - float(self.scales[0]) * loss

    def multipliers(self, mixture: Mixture) -> dict[str, float]:
        """In units of utility per unit of what is bounded."""
        prices = super().multipliers(mixture)
        never = [bound for bound in self.bounds if bound.action is not None and not self._allows(bound.action)]
        if never:
            # What is left out costs so much that one of the others is better for every record: whoever gets it, even
            # privately, may get that instead.
            terms = tuple((_term(bound), 0.0 if bound in never else prices[bound.name]) for bound in self.bounds)
            costs = cost_tables(self.problem, False).priced(((None, 1.0), *terms))
            for bound in never:
                worse = [(costs[part.columns] - costs[bound.action])[:, part.rows] for part in self._classes]
                prices[bound.name] = max(0.0, *(float(each.max(axis=1).min()) for each in worse))
        return prices

    def what_is_possible(self) -> str:
        """Of each bound, the least that an epsilon-private policy can do, by itself and with the others kept."""
        if all(self._allows(bound.action) for bound in self.bounds if bound.action is not None):
            return super().what_is_possible()
        if self.problem.admissible is None:
            return BoundedProgramme(self.problem, self.epsilon, self._asked).what_is_possible()
        return MaskedProgramme(self.problem, self.epsilon, self._asked, self.problem.classes).what_is_possible()

    def _allows(self, action: int) -> bool:
        """Whether anybody may get an action that somebody allows."""
        allowed = self.problem.admissible is None or self.problem.admissible[:, action].any()
        return not allowed or any((part.columns == action).any() for part in self._classes)

    def _from_here(self, bound: Bound, fixed: IntArray) -> Bound:
        """The room beyond what the rows are counted from."""
        if bound.action is not None:
            none_else = [part for part in self._classes if part.problem is None and part.columns[0] == bound.action]
            return replace(bound, room=bound.room - sum(_share(self.problem, part) for part in none_else))
        outcome = self.problem.outcomes[bound.name]
        before = self.problem.of_best_fixed(outcome) - np.take_along_axis(outcome, fixed[:, None], axis=1)[:, 0]
        return replace(bound, room=bound.room + float(self.problem.prior @ before))


def _best_fixed(problem: DecisionProblem, classes: tuple[MaskClass, ...]) -> IntArray:
    """The action that is best for all of each class, (n_records,)."""
    actions = np.empty(problem.n_records, dtype=np.intp)
    for part in classes:
        actions[part.rows] = part.columns[0 if part.problem is None else part.problem.best_fixed_action]
    return actions


def _share(problem: DecisionProblem, part: MaskClass) -> float:
    """Of the patients; 1 exactly if it is all."""
    return 1.0 if len(part.rows) == problem.n_records else float(problem.prior[part.rows].sum())


def _term(bound: Bound) -> Term:
    return bound.name if bound.action is None else bound.action


def _rows(bounds: tuple[Bound, ...], part: MaskClass) -> IntArray:
    """The rows of the master programme that a part has: the first, outcomes, and shares of its own actions."""
    known = [place for place, bound in enumerate(bounds, start=1) if bound.action in (None, *part.columns)]
    return np.array([0, *known])


def _part(
    part: MaskClass, bounds: tuple[Bound, ...], epsilon: float
) -> tuple[DecisionProblem, float, tuple[Bound, ...]]:
    """What the programme of a part is made of."""
    assert part.problem is not None
    actions = part.columns.tolist()
    own = [bounds[row - 1] for row in _rows(bounds, part)[1:]]
    renumbered = (b if b.action is None else replace(b, action=actions.index(b.action)) for b in own)
    return part.problem, epsilon, tuple(renumbered)


def _summed(
    n_rows: int, rows: Sequence[IntArray], shares: Sequence[float], own: Sequence[BoundedProgramme]
) -> list[Means]:
    """What each row ranges over, from the parts."""
    spreads, roundings = np.zeros((2, n_rows))
    for places, share, each in zip(rows, shares, own, strict=True):
        spreads[places] += [share * mean.spread for mean in each.means]
        roundings[places] += [share * mean.rounding for mean in each.means]
    return [Means(np.zeros(0), *found) for found in zip(spreads.tolist(), roundings.tolist(), strict=True)]
