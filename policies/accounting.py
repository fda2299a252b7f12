"""What several uses of private policies reveal together."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import combinations

import numpy as np

from policies.adjacency import Adjacency, largest_difference
from policies.arrays import FloatArray, non_negative


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


def concentrated_rho(log_probabilities: FloatArray, adjacency: Adjacency) -> float:
    """The rho of zero-concentrated privacy that a table of probabilities satisfies: eta^2 / 8, for every policy.

    eta is the range of the log-ratio (`log_ratio_range`). Then D_alpha(p(.|x) || p(.|x')) <= rho alpha for all
    alpha > 1, and rho adds up over uses, also if each use is chosen after seeing what the earlier ones published.
    Never put epsilon^2 / 8 in its place: eta may be twice the privacy loss. Only a policy with eta <= epsilon (the
    exponential mechanism with s = Gamma / epsilon) may claim that.

    Parameters
    ----------
    log_probabilities : array, (n_records, n_actions)
        log p(a|x); -inf where an action is never taken.
    adjacency : Adjacency
        Which records are neighbours.

    Returns
    -------
    float
        inf if an action is possible for one of two neighbours only.

    Notes
    -----
    By Hoeffding's lemma, for d = log p/p' within an interval of length eta, log E_p[e^(t d)] <= t E_p[d] +
    t^2 eta^2 / 8. At t = -1 the left side is log sum p' = 0, so E_p[d] <= eta^2 / 8; and with t = alpha - 1,
    D_alpha = log E_p[e^(t d)] / t <= E_p[d] + t eta^2 / 8 <= alpha eta^2 / 8.

    References
    ----------
    Dong, Durfee & Rogers (2020), Optimal differential privacy composition for exponential mechanisms: bounded range.
    Cesar & Rogers (2021), Bounding, concentrating, and truncating: bounded range implies (eta^2 / 8)-zCDP.
    Bun & Steinke (2016), Concentrated differential privacy: zCDP and its composition.

    Examples
    --------
    >>> from policies.adjacency import AnyRecord
    >>> round(concentrated_rho(np.log([[0.75, 0.25], [0.25, 0.75]]), AnyRecord()), 4)
    0.6035
    """
    return log_ratio_range(log_probabilities, adjacency) ** 2 / 8
