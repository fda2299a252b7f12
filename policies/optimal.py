"""The limit: the epsilon-private policy of highest value under the problem's prior and utilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.arrays import FloatArray
from policies.literature import GHOSH_2012, KAIROUZ_2016
from policies.optimal_classes import class_logs, hiding_partitions
from policies.optimal_full import require_fit, solve_full
from policies.policy import Look, Policy
from policies.problem import DecisionProblem
from policies.reference import BestFixed, Greedy


@dataclass(frozen=True)
class Optimal(Policy):
    """Maximise sum prior(x) p(a|x) u(x, a) such that p(a|x) <= e^epsilon p(a|x') for all neighbours x, x'.

    Exact for any-record and sensitive features at any number of records (`policies.optimal_ceilings`), and for
    one-feature up to `policies.optimal_full.MAX_ENTRIES`. epsilon = 0 gives each public class its best constant
    action, epsilon = inf is greedy.

    No epsilon-private policy has a higher value *under this prior*; it trusts the prior, and can do worse than others
    where patients come from another one.
    """

    name = "optimal"
    gloss = "the limit: none is worth more"
    words = "the ε-private mechanism of the highest expected utility under the prior, found by linear programming"
    formula = "max Σ prior(x) p(a|x) u(x, a), p(a|x) ≤ e^ε p(a|x′) for all neighbours"
    works = (GHOSH_2012, KAIROUZ_2016)
    look = Look("#000000", "p")

    def check(self, problem: DecisionProblem) -> None:
        """NotApplicableError for one-feature with too many records: `value_limit` still bounds its value."""
        if len(hiding_partitions(problem.adjacency, problem.n_records)) > 1:
            require_fit(problem)

    def log_probabilities(self, problem: DecisionProblem) -> FloatArray:
        """log p(a|x), (n_records, n_actions), column-major; the loss is at most epsilon up to rounding of the logs.

        Raises
        ------
        NotApplicableError
            For one-feature with too many records, or for more than 62 actions.
        """
        if np.isinf(self.epsilon):
            return Greedy().log_probabilities(problem)
        partitions = hiding_partitions(problem.adjacency, problem.n_records)
        if len(partitions) == 1:
            return class_logs(problem, partitions[0], self.epsilon)
        if self.epsilon == 0:
            # Every record can be reached from every other one, one feature at a time.
            return BestFixed().log_probabilities(problem)
        return solve_full(problem, self.epsilon).log_probabilities
