"""What no private policy can do, and the proof: the loss that none avoids, and whether any can meet a demand.

A policy that meets a demand comes to at most sum of weight times limit in every weighted sum of the utility lost and of
outcomes. By linear duality the converse holds for all private policies together: if none meets the demand, some weights
show it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from policies.adjacency import Adjacency, AnyRecord, Sensitive
from policies.arrays import FloatArray
from policies.optimal.bounded import bounded_optimum
from policies.optimal.bounds import InfeasibleError
from policies.optimal.certificate import document, optimal_certificate
from policies.optimal.classes import hiding_partitions
from policies.optimal.optimum import Optimal
from policies.optimal.value_limit import value_limit
from policies.policy import NotApplicableError
from policies.problem import DecisionProblem
from policies.proof import LOST, MAX_ENTRIES, Certificate, float_below
from policysim.decision.demands import HIGHEST, Curve, Demand, UnreachableError
from policysim.study.sweep import evaluated_on


class Limit:
    """The limit of all private policies under one demand.

    Parameters
    ----------
    problem : DecisionProblem
        With the outcomes that the demand limits.
    demand : Demand
        What must be reached.
    """

    def __init__(self, problem: DecisionProblem, demand: Demand) -> None:
        self._problem = problem
        self._most = {**({LOST: demand.loss} if demand.loss < math.inf else {}), **demand.kept}
        self._parts: dict[tuple[str, tuple[str, ...], Adjacency], DecisionProblem] = {}
        self._mixed: dict[tuple[tuple[str, float], ...], DecisionProblem] = {}

    def last_impossible(self, near: float = 1.0) -> float:
        """An epsilon at which no private policy meets the demand, and so none at less; the largest, to 1e-4.

        0 if every epsilon may do, inf if none does. The search begins at `near`.
        """
        if len(self._most) > 1 and self._margin(HIGHEST) < 0:
            return math.inf  # sooner than by steps: such a margin takes several programmes
        try:
            return Curve("the limit", self._margin).between(0.0, near=near)[0]
        except UnreachableError:
            return math.inf

    def _margin(self, epsilon: float) -> float:
        """By how much a private policy may do better than is demanded; negative if none can. It rises with epsilon."""
        ways = self._ways(epsilon)
        if len(self._most) == 1 or len(ways) > 1:
            return self._spare(self.tightest(epsilon), epsilon)
        return self._hardest(*ways[0])[1]

    def tightest(self, epsilon: float) -> dict[str, float]:
        """The weights, > 0, of what is limited that are hardest to satisfy at an epsilon."""
        if len(self._most) == 1:
            return dict.fromkeys(self._most, 1.0)
        found = [self._hardest(*way)[0] for way in self._ways(epsilon)]
        return found[0] if len(found) == 1 else min(found, key=lambda weights: self._spare(weights, epsilon))

    def _spare(self, weights: Mapping[str, float], epsilon: float) -> float:
        """By how much a private policy may come to less than is allowed in a weighted sum; negative if none does."""
        try:
            proof = optimal_certificate(self._problem, epsilon, weights)
        except NotApplicableError:
            return float(self._allowed(weights)) + value_limit(self._mixture(weights), epsilon).unbeatable
        return float(self._allowed(weights) - Fraction(proof.bound))

    def _allowed(self, weights: Mapping[str, float]) -> Fraction:
        """What a policy that meets the demand comes to at most in a weighted sum."""
        return sum((Fraction(weight) * Fraction(self._most[name]) for name, weight in weights.items()), Fraction(0))

    def _mixture(self, weights: Mapping[str, float]) -> DecisionProblem:
        """The problem whose utilities are minus the weighted sum."""
        key = tuple(weights.items())
        if key not in self._mixed:
            costs = sum(weight * self._quantity(self._problem, name) for name, weight in key)
            self._mixed[key] = self._problem.with_utilities(-costs)
        return self._mixed[key]

    def _ways(self, epsilon: float) -> list[tuple[Adjacency, float]]:
        """Adjacencies with one clique for each record, under which the epsilon-private policies are all private.

        The adjacency itself, or those of `optimal_certificate` for one-feature, whose proof any weights may serve.
        """
        problem = self._problem
        partitions = hiding_partitions(problem.adjacency, problem.n_records)
        if len(partitions) == 1:
            return [(problem.adjacency, epsilon)]
        ways: list[tuple[Adjacency, float]] = [(AnyRecord(), epsilon * len(partitions))]
        if problem.utilities.size <= MAX_ENTRIES:
            ways += [(Sensitive(part.shape, part.axes), epsilon) for part in partitions]
        return ways

    def _hardest(self, adjacency: Adjacency, epsilon: float) -> tuple[dict[str, float], float]:
        """The hardest weights, and by how much a policy may do better than is demanded.

        The first limit is undercut as far as the others can be kept; where they cannot be kept together, it is left out
        and the second takes its place, and so on: the multipliers prove how far that goes.
        """
        first, *others = self._most
        while True:
            try:
                multipliers, least = self._least(first, tuple(others), adjacency, epsilon)
            except InfeasibleError:
                first, *others = others
            else:
                weights = {name: weight for name, weight in {first: 1.0, **multipliers}.items() if weight > 0}
                return weights, self._most[first] - least

    def _least(
        self, name: str, others: tuple[str, ...], adjacency: Adjacency, epsilon: float
    ) -> tuple[Mapping[str, float], float]:
        """The multipliers of other limits, and what a private policy that keeps them costs at least of one quantity.

        Raises
        ------
        InfeasibleError
            If none keeps them.
        """
        whole = self._problem if adjacency is self._problem.adjacency else self._problem.with_adjacency(adjacency)
        key = (name, others, adjacency)
        if key not in self._parts:
            # Each distinct row once: what is looked for here is proved on the whole problem later.
            on = evaluated_on(Optimal(), whole)
            self._parts[key] = DecisionProblem(
                -self._quantity(on, name),
                on.prior,
                on.adjacency,
                on.actions,
                outcomes={other: self._quantity(on, other) for other in others},
                admissible=on.admissible,
            )
        found = bounded_optimum(self._parts[key], epsilon, at_most={other: self._most[other] for other in others})
        return found.multipliers, -found.bound

    @staticmethod
    def _quantity(problem: DecisionProblem, name: str) -> FloatArray:
        """What is limited, of each record and action, (n_records, n_actions)."""
        if name != LOST:
            return problem.outcomes[name]
        lost: FloatArray = problem.utilities.max(axis=1)[:, None] - problem.utilities
        return lost

    def certificate(self, epsilon: float) -> dict[str, Any] | None:
        """The proof that no epsilon-private policy meets the demand; None where there is none.

        It is given only after rational arithmetic has accepted it: `Certificate.holds`, and a bound above what is
        allowed.
        """
        weights = self.tightest(epsilon)
        proof, allowed = self._accepted(weights, epsilon), -float_below(-self._allowed(weights))
        if proof is None or not proof.bound > allowed:
            return None
        return {
            "statement": "under every epsilon-private policy the objective is at least `bound`: more than `allowed`",
            "allowed": allowed,
            "demanded": dict(self._most),
            **document(proof, self._problem),
        }

    def least_possible(self, epsilon: float) -> dict[str, float]:
        """What each limited outcome is at least under every policy, per patient, rounded down; NaN without a proof."""
        proofs = {name: self._accepted({name: 1.0}, epsilon) for name in self._most if name != LOST}
        return {name: math.nan if proof is None else proof.bound for name, proof in proofs.items()}

    def _accepted(self, weights: Mapping[str, float], epsilon: float) -> Certificate | None:
        """The certificate of a weighted sum, if rational arithmetic accepts it."""
        try:
            proof = optimal_certificate(self._problem, epsilon, weights)
        except NotApplicableError:
            return None
        return proof if proof.holds(self._problem) else None
