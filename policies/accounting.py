"""What several uses of private policies reveal together.

The exact loss of a policy's table, eta, the range of its log-ratio between neighbours, and its privacy profile: each
bounds how uses add up. All are taken from the table, whatever the policy's class is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from policies.adjacency import Adjacency, AnyRecord, Sensitive, largest_difference, public_classes
from policies.arrays import FloatArray, non_negative
from policies.mask import listed_among
from policies.policy import NotApplicableError, Policy
from policies.privacy_loss import privacy_loss_of_logs
from policies.privacy_profile import Profile, largest_profile, profile
from policies.problem import DecisionProblem
from policies.sensitivity import largest_range


def compose(epsilons: Iterable[float]) -> float:
    """The privacy loss of several uses on the same record is at most the sum of their losses (basic composition).

    It also holds if each use is chosen after seeing what the earlier ones published. A policy that is used m times
    counts m times.

    Parameters
    ----------
    epsilons : iterable of float
        The loss of each use, >= 0, inf allowed. A sum that is too large for a float is inf.

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
    try:
        return math.fsum(non_negative(epsilon, "epsilon") for epsilon in epsilons)
    except OverflowError:
        return math.inf


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
    # Now each clique either gets an action throughout or not at all.
    possible = log_probabilities > -np.inf
    if possible.all():
        return largest_range(log_probabilities, adjacency)[0]
    return largest_range(np.where(possible, log_probabilities, 0.0), adjacency, possible)[0]


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

    Where the use mixes rows (of states that an observer does not know) nothing changes, since divergences are jointly
    convex; nor if the use is chosen after seeing what earlier ones published, as long as these numbers are not.

    Attributes
    ----------
    loss : float
        The largest log p(a|x) / p(a|x').
    eta : float
        The range of the log-ratio (`log_ratio_range`), or a number above it.
    profile : Profile
        The privacy profile, or one above it.
    """

    loss: float
    eta: float
    profile: Profile

    @property
    def rho(self) -> float:
        """That of zero-concentrated privacy (`bounded_range_rho`)."""
        return bounded_range_rho(self.eta)


def bounded_use(loss: float, eta: float = math.inf) -> Use:
    """The use that dominates every one with these two numbers.

    A profile is a convex function of c = e^epsilon. It is 0 at c = e^loss and at most the total variation t at c = 1,
    so it lies below the straight line between. t is at most tanh(loss / 2), for which this is randomised response with
    two answers, and tanh(eta / 4); two answers attain both: (e^a - 1)(1 - e^-b) / (e^a - e^-b), for log-ratios from -b
    to a, is largest for a = b.

    Parameters
    ----------
    loss, eta : float
        >= 0, inf allowed.

    References
    ----------
    Kairouz, Oh & Viswanath (2015), The composition theorem for differential privacy, ICML: randomised response
    dominates every use with its loss.
    Ghazi & Issa (2024), Total variation meets differential privacy, IEEE JSAIT 5: loss and variation together.

    Examples
    --------
    >>> round(float(bounded_use(1.0).profile.delta_at(0.0)), 4)
    0.4621
    """
    variation = math.tanh(min(loss / 2, eta / 4))
    if variation == 0:
        return Use(0.0, 0.0, Profile(np.zeros(1), np.zeros(1)))
    power = variation / -math.expm1(-loss)
    return Use(loss, min(eta, 2 * loss), Profile(np.array([0.0, power * math.exp(-loss)]), np.array([0.0, power])))


# What the last digits of a logarithm may add to a loss, as a share of it.
ROUNDED = 1e-9


def table_use(policy: Policy, logs: FloatArray, adjacency: Adjacency) -> Use:
    """What a policy's table reveals, of records that all allow all of its actions.

    Parameters
    ----------
    policy : Policy
        A loss that is above its guarantee in the last digits is the rounding of a logarithm.
    logs : array, (n_records, n_actions)
        log p(a|x); -inf where an action is never taken.
    adjacency : Adjacency
        Which records are neighbours.
    """
    loss, eta = privacy_loss_of_logs(logs, adjacency).epsilon, log_ratio_range(logs, adjacency)
    if policy.claimed < loss <= policy.claimed * (1 + ROUNDED):
        loss = policy.claimed
    try:
        return Use(loss, eta, profile(logs, adjacency))
    except NotApplicableError:
        return bounded_use(loss, eta)


def largest_use(uses: Sequence[Use]) -> Use:
    """What a use reveals of which one part of the records reveals this, another that: the largest of each number."""
    losses, etas, profiles = zip(bounded_use(0.0), *uses, strict=True)
    return Use(max(losses), max(etas), largest_profile(profiles))


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
    >>> loss, eta, profile = policy_use(make_policy("randomized-response", epsilon=1.0), problem)
    >>> round(loss, 3), round(eta, 3), profile.delta_at([0.0, 0.5, 1.0]).round(3).tolist()
    (1.0, 2.0, [0.462, 0.288, 0.0])
    """
    logs = policy.tables(problem)[0]
    if problem.admissible is None:
        return table_use(policy, logs, problem.adjacency)
    parts = [(part, part.problem.adjacency) for part in problem.classes if part.problem is not None]
    return largest_use([table_use(policy, logs[np.ix_(part.rows, part.columns)], of) for part, of in parts])


# Of more public classes than this, the largest use of all counts for each: one after the other they would take minutes.
MOST_CLASSES = 256


def policy_uses(policy: Policy, problem: DecisionProblem) -> tuple[Use, ...]:
    """`policy_use` within each public class (`public_classes`), in their order; of all, if there are too many.

    Examples
    --------
    One class of two records has something to choose, the other one has not:

    >>> from policies import Sensitive, make_policy
    >>> utilities = [[0.0, 1.0], [1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    >>> problem = DecisionProblem(utilities, [0.25] * 4, Sensitive((2, 2), (1,)))
    >>> [round(use.loss, 3) for use in policy_uses(make_policy("randomized-response", epsilon=1.0), problem)]
    [1.0, 0.0]
    """
    classes, adjacency = public_classes(problem.adjacency, problem.n_records), problem.adjacency
    if not 0 < classes.max() < MOST_CLASSES:
        return (policy_use(policy, problem),)
    logs, uses = policy.tables(problem)[0], []
    order = np.argsort(classes, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(classes[order])) + 1):
        # Neighbours, and so all of a class, allow the same.
        table = logs[rows] if problem.admissible is None else logs[np.ix_(rows, problem.admissible[rows[0]])]
        among = AnyRecord() if isinstance(adjacency, Sensitive) else listed_among(rows, adjacency, problem.n_records)
        uses.append(table_use(policy, table, among))
    return tuple(uses)


Spent = TypeVar("Spent")


def of_each_class(days: Sequence[Sequence[Spent]]) -> list[tuple[Spent, ...]]:
    """What days spend within each public class, from what each day spends in each; a single entry is that of all."""
    n_classes = max(map(len, days), default=1)
    return list(zip(*(day if len(day) == n_classes else (*day,) * n_classes for day in days), strict=True))
