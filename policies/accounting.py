"""What several uses of private policies reveal together.

The exact loss of a policy, eta, the range of its log-ratio between neighbours, and its total variation: each bounds
how uses add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from policies.adjacency import Adjacency, largest_difference
from policies.arrays import FloatArray, non_negative
from policies.policy import Policy
from policies.privacy_loss import privacy_loss_of_logs
from policies.problem import DecisionProblem
from policies.randomized_response import RandomizedResponse


def compose(epsilons: Iterable[float]) -> float:
    """The privacy loss of several uses on the same record is at most the sum of their losses (basic composition).

    It also holds if each use is chosen after seeing what the earlier ones published. A policy that is used m times
    counts m times.

    Parameters
    ----------
    epsilons : iterable of float
        The loss of each use, >= 0, inf allowed.

    Raises
    ------
    ValueError
        For a loss that is not >= 0.

    References
    ----------
    Dwork & Roth (2014), The algorithmic foundations of differential privacy, theorem 3.16 and section 3.5.

    Examples
    --------
    >>> compose([1.0] * 50)
    50.0
    """
    return math.fsum(non_negative(epsilon, "epsilon") for epsilon in epsilons)


def log_ratio_range(log_probabilities: FloatArray, adjacency: Adjacency) -> float:
    """eta: max over neighbours x, x' of max_a d_a - min_a d_a, with d_a = log p(a|x) - log p(a|x').

    It is between the privacy loss and twice that: both rows sum to 1, so d changes its sign.

    Parameters
    ----------
    log_probabilities : array, (n_records, n_actions)
        log p(a|x); -inf where an action is never taken. An action that nobody in a clique gets is left out there.
    adjacency : Adjacency
        Which records are neighbours.

    Returns
    -------
    float
        inf if an action is possible for one of two neighbours only.

    Examples
    --------
    >>> from policies.adjacency import AnyRecord
    >>> round(log_ratio_range(np.log([[0.75, 0.25], [0.25, 0.75]]), AnyRecord()), 4)  # 2 log 3
    2.1972
    """
    columns = list(log_probabilities.T)
    if any(largest_difference(column, adjacency).value == np.inf for column in columns):
        return np.inf
    # Now each clique either gets an action throughout or not at all; 0 throughout adds nothing to the maximum.
    eta = 0.0
    for first, second in combinations(columns, 2):
        possible = (first > -np.inf) & (second > -np.inf)
        ratio = np.zeros_like(first)
        np.subtract(first, second, out=ratio, where=possible)
        eta = max(eta, largest_difference(ratio, adjacency).value)
    return eta


# Below it x - 1 - log x is the rounding of 1; eta^2 / 8 is above it by eta^4 / 576.
LEAST_RANGE = 0.01


def bounded_range_rho(eta: float) -> float:
    """The rho of zero-concentrated privacy of every policy whose log-ratio ranges over eta (`log_ratio_range`).

    It is x - 1 - log x with x = eta / (e^eta - 1), and no smaller one holds for all of them. It is at most eta^2 / 8,
    which stands for it below `LEAST_RANGE`. Then D_alpha(p(.|x) || p(.|x')) <= rho alpha for all alpha > 1, and rho
    adds up over uses, also if each use is chosen after seeing what the earlier ones published. Never put epsilon in the
    place of eta, which may be twice the privacy loss: only a policy with eta <= epsilon (the exponential mechanism with
    s = Gamma / epsilon) may claim that.

    Parameters
    ----------
    eta : float
        >= 0, inf allowed.

    References
    ----------
    Harrison & Manurangsi (2026), FORC, doi 10.4230/LIPIcs.FORC.2026.3: the tight rho of bounded range.
    Cesar & Rogers (2021), Bounding, concentrating, and truncating: bounded range implies (eta^2 / 8)-zCDP.
    Dong, Durfee & Rogers (2020), Optimal differential privacy composition for exponential mechanisms: bounded range.
    Bun & Steinke (2016), Concentrated differential privacy: zCDP and its composition.

    Examples
    --------
    >>> round(bounded_range_rho(2.0), 4), 2.0**2 / 8
    (0.4745, 0.5)
    """
    if eta < LEAST_RANGE:
        return eta**2 / 8
    if eta == math.inf:
        return math.inf
    x = eta * math.exp(-eta) / -math.expm1(-eta)
    return x - 1 - (math.log(eta) - eta - math.log(-math.expm1(-eta)))


class Use(NamedTuple):
    """What neighbours' rows of one use show of each other, and so how uses add up.

    Attributes
    ----------
    loss : float
        The largest log p(a|x) / p(a|x').
    eta : float
        The range of the log-ratio (`log_ratio_range`); twice the loss, or any number above it, if it is not known.
    variation : float
        The largest total variation between neighbours, or a number above it.
    """

    loss: float
    eta: float = math.inf
    variation: float = 1.0

    @property
    def pair(self) -> tuple[float, float]:
        """Loss e and total variation t of a pair of distributions that dominates the use.

        P gives probability t / (1 - e^-e) to a log-ratio of e, e^-e times that to -e, and the rest to 0. A use is
        dominated if no two neighbours have a larger hockey-stick divergence, the sum of max(p - c p', 0), at any c.
        For a pair of neighbours it is a convex function of c which is at most t at c = 1, and 0 at c = e^e: so it lies
        below the straight line between these, which is that of P. Below c = 1 the same is said by the pair in the
        other order. Where the use mixes rows (of states that an observer does not know) nothing changes, since the
        divergence is jointly convex; nor if the use is chosen after seeing what earlier ones published.

        t is at most tanh(e / 2), for which P is randomised response with two answers, and tanh(eta / 4), both attained
        by two answers: (e^a - 1)(1 - e^-b) / (e^a - e^-b), for log-ratios from -b to a, is largest for a = b.

        References
        ----------
        Kairouz, Oh & Viswanath (2015), The composition theorem for differential privacy, ICML: randomised response
        dominates every use with its loss.
        Ghazi & Issa (2024), Total variation meets differential privacy, IEEE JSAIT 5: loss and variation together.
        Zhu, Dong & Wang (2022), Optimal accounting of differential privacy via characteristic function, AISTATS,
        theorem 10: products of dominating pairs dominate adaptive composition.

        Examples
        --------
        >>> [round(part, 4) for part in Use(1.0).pair]
        [1.0, 0.4621]
        """
        return self.loss, min(self.variation, math.tanh(min(self.loss / 2, self.eta / 4)))

    @property
    def rho(self) -> float:
        """The smallest rho that is proved: of bounded range, or of the dominating pair."""
        return min(bounded_range_rho(self.eta), _pair_rho(*self.pair))


def response_variation(epsilon: float, n_actions: int) -> float:
    """The total variation of k-ary randomised response: (e^epsilon - 1) / (e^epsilon + k - 1).

    Then `Use.pair` is the two neighbours' own pair of distributions, and its rho is epsilon times the variation for
    k <= 6: Harrison & Manurangsi (2026), FORC, doi 10.4230/LIPIcs.FORC.2026.3. For larger k the supremum is at an
    order above 1.

    Examples
    --------
    >>> variation = response_variation(1.0, 4)
    >>> round(variation, 4), round(Use(1.0, 2.0, variation).rho, 3)
    (0.3005, 0.301)
    """
    return -math.expm1(-epsilon) / (1 + (n_actions - 1) * math.exp(-epsilon))


# What the last digits of a logarithm may add to a loss, as a share of it.
ROUNDED = 1e-9
# Orders between which the supremum is bounded.
N_ORDERS = 4096


@cache
def _pair_rho(loss: float, variation: float) -> float:
    """An upper bound of sup D_alpha / alpha over alpha > 1 for the pair of `Use.pair`, less than 1 % above it.

    D_alpha never falls as alpha rises, so that D_b / a bounds it from order a to b; it is at most the loss, so that
    orders above loss / D_1 need not be looked at.
    """
    if loss == 0 or variation == 0:
        return 0.0
    if loss == math.inf:
        return math.inf
    orders = np.geomspace(1.0, max(2.0, 1 / variation), N_ORDERS)
    plus = variation / -math.expm1(-loss)
    order_less_one = orders[1:] - 1
    # log(1 + plus (e^(t e) - 1) + minus (e^(-t e) - 1)), without an overflow.
    exponent = order_less_one * loss
    small = np.minimum(exponent, 500.0)
    logs = np.log1p(plus * np.expm1(small) + plus * math.exp(-loss) * np.expm1(-small)) + (exponent - small)
    return float((logs / order_less_one / orders[:-1]).max())


def table_use(policy: Policy, logs: FloatArray, adjacency: Adjacency) -> Use:
    """What a policy's table reveals, of records that all allow all of its actions.

    Parameters
    ----------
    policy : Policy
        Of k-ary randomised response the variation is known. A loss that is above the proved guarantee in the last
        digits is the rounding of a logarithm.
    logs : array, (n_records, n_actions)
        log p(a|x); -inf where an action is never taken.
    adjacency : Adjacency
        Which records are neighbours.
    """
    loss, variation = privacy_loss_of_logs(logs, adjacency).epsilon, 1.0
    if policy.guarantee < loss <= policy.guarantee * (1 + ROUNDED):
        loss = policy.guarantee
    if isinstance(policy, RandomizedResponse):
        variation = response_variation(policy.epsilon, logs.shape[1]) if loss > 0 else 0.0
    return Use(loss, log_ratio_range(logs, adjacency), variation)


def largest_use(uses: Sequence[Use]) -> Use:
    """What a use reveals of which one part of the records reveals this, another that: the largest of each number."""
    return Use(*map(max, zip(*uses, strict=True))) if uses else Use(0.0, 0.0, 0.0)


def policy_use(policy: Policy, problem: DecisionProblem) -> Use:
    """What a policy's own table on a problem reveals, where records may allow different actions.

    Raises
    ------
    NotApplicableError
        For a policy that cannot be used on the problem.

    Examples
    --------
    >>> from policies import AnyRecord, make_policy
    >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord())
    >>> [round(number, 3) for number in policy_use(make_policy("randomized-response", epsilon=1.0), problem)]
    [1.0, 2.0, 0.462]
    """
    logs = policy.tables(problem)[0]
    if problem.admissible is None:
        return table_use(policy, logs, problem.adjacency)
    parts = [(part, part.problem.adjacency) for part in problem.classes if part.problem is not None]
    return largest_use([table_use(policy, logs[np.ix_(part.rows, part.columns)], of) for part, of in parts])
