"""What every comparison over epsilon shares: which policies at which epsilon, beside which references, what is gained.

The gain is that of choosing for each patient over one treatment for all; a proof says what no private policy keeps.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import NamedTuple

import numpy as np

from policies.arrays import ROUNDING, FloatArray, rounded_sum
from policies.catalogue import CATALOGUE, WITHOUT_DEATHS, make_policy
from policies.distinct import once_each
from policies.optimal.bounds import InfeasibleError
from policies.optimal.certificate import optimal_certificate
from policies.optimal.optimum import Optimal, OptimalSafe
from policies.policy import NotApplicableError, Policy
from policies.problem import DecisionProblem, once_per_problem
from policies.proof import rounded_down
from policies.reference import BestFixed, Greedy, Uniform
from policysim.question.formats import rounded
from policysim.study.declared import EPSILONS, checked_epsilons

# numpy releases the interpreter's lock in its loops, and each job needs about 0.1 GB at 1.3 million records.
N_THREADS = min(4, os.cpu_count() or 1)
# What policies are measured against.
REFERENCES = (Greedy(), BestFixed(), Uniform())
# Shares of a gain are said where it is at least so much of what the best for each gains over choosing by lot.
LEAST_SHARE = 0.1
# What exceeds one treatment for all by no more than this share of the gain is as good: rounding, not benefit.
NO_BENEFIT = 1e-9
# Half the distance from 1 to the next float.
HALF_ULP = Fraction(1, 2**53)


def asked_for(
    policies: Sequence[str | Policy] | None, epsilons: Sequence[float] | None, by: Sequence[str]
) -> tuple[list[Policy], tuple[float, ...]]:
    """The policies, each once, and the epsilons, rising; ValueError for something else than lists, or an empty one."""
    if isinstance(policies, str) or isinstance(by, str):
        raise ValueError(f"policies and by must be lists, got policies={policies!r} and by={by!r}.")
    asked = WITHOUT_DEATHS if policies is None else list(policies)
    if not asked:
        raise ValueError("policies must not be empty.")
    templates = list(dict.fromkeys(make_policy(item) if isinstance(item, str) else item for item in asked))
    return templates, checked_epsilons(EPSILONS if epsilons is None else epsilons)


def at(template: Policy, epsilon: float) -> Policy:
    """The policy at an epsilon, or itself if it takes none."""
    return replace(template, epsilon=epsilon) if template.uses_epsilon else template


def at_each(template: Policy, epsilons: Sequence[float]) -> list[Policy]:
    """The policies to evaluate: one that ignores epsilon only once."""
    return list(dict.fromkeys(at(template, epsilon) for epsilon in epsilons))


def usable_policies(
    policies: Sequence[Policy], problem: DecisionProblem, *, named: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the policies that can be used on a problem, and why others cannot.

    Parameters
    ----------
    policies : sequence of Policy
        At the smallest epsilon that matters: bounds that can be kept there can be kept at all larger ones.
    problem : DecisionProblem
        What is to be decided.
    named : bool
        Whether each was asked for by name.

    Raises
    ------
    NotApplicableError
        For a policy that cannot be used and was asked for by name. The optimum never is: what cannot be computed of
        the limit is bounded instead. Nor is the safe one beside others, where there is no bound to keep; where nobody
        can die it is the optimum, and is left out without a word.
    """
    kept, left_out = [], []
    alone = len(policies) == 1
    for policy in policies:
        if isinstance(policy, OptimalSafe) and not (alone or _can_die(problem)):
            continue
        try:
            policy.check(evaluated_on(policy, problem))
        except NotApplicableError as error:
            if policy.name != Optimal.name:
                beside = isinstance(policy, OptimalSafe) and not isinstance(error, InfeasibleError) and not alone
                if named and not beside:
                    raise
                left_out.append(f"{policy.name}, as {error}")
                continue
        kept.append(policy.name)
    return tuple(kept), tuple(left_out)


def _can_die(problem: DecisionProblem) -> bool:
    return "deaths" in problem.outcomes and bool(problem.outcomes["deaths"].any())


def with_references(names: Sequence[str]) -> tuple[str, ...]:
    """The names with those of `REFERENCES` before them: what others are measured against is in every table."""
    return tuple(dict.fromkeys([*(policy.name for policy in REFERENCES), *names]))


def evaluated_on(policy: Policy, problem: DecisionProblem) -> DecisionProblem:
    """The problem of the distinct rows where a policy is the same on it (`policies.distinct`), else the problem itself.

    What is not built in is evaluated on every record: what it declares of itself is not trusted.
    """
    return once_each(policy, problem) if type(policy) in CATALOGUE.built_in.values() else problem


def prepare(problem: DecisionProblem) -> None:
    """Compute what most policies look at once, before threads share the problem."""
    for each in (problem, *(part.problem for part in problem.classes)):
        if each is not None:
            _ = each.sensitivity, each.best_actions


def applies(policy: Policy, problem: DecisionProblem) -> bool:
    """Whether a policy can be used on a problem."""
    try:
        policy.check(evaluated_on(policy, problem))
    except NotApplicableError:
        return False
    return True


@dataclass(frozen=True)
class Gain:
    """What choosing the best for each patient gains over one treatment for all: the whole of "benefit kept".

    A share of it is a number as long as the gain is more than the rounding of sums, and is worth printing where the
    gain is at least `LEAST_SHARE` of what the best for each gains over choosing by lot. Below that, one treatment for
    all is nearly as good as the best for each, and shares of the rest are large for any mechanism: choosing by lot
    itself keeps 1 - 1 / share of the gain, -900 % at the least share, and without bound below it.

    Attributes
    ----------
    best, fixed, by_lot : float
        The expected utility of the best treatment for each, of the best single treatment for all, of choosing by lot.
    rounding : float
        What the rounding of sums may make of equal values, in units of utility.
    """

    best: float
    fixed: float
    by_lot: float
    rounding: float

    @classmethod
    def of(cls, problem: DecisionProblem) -> Gain:
        """The gain in a problem, under its prior."""
        return cls(
            best=float(problem.prior @ problem.utilities.max(axis=1)),
            fixed=problem.best_fixed_value,
            by_lot=_by_lot(problem),
            rounding=ROUNDING * float(problem.prior @ reduce(np.maximum, map(np.abs, problem.utilities.T))),
        )

    @property
    def exists(self) -> bool:
        """Whether it is more than rounding."""
        return self.best - self.fixed > self.rounding

    @property
    def has_shares(self) -> bool:
        """Whether shares of it are worth printing: the one rule for every percentage of benefit kept."""
        return self.exists and self.best - self.fixed >= LEAST_SHARE * (self.best - self.by_lot)

    @property
    def beaten_from(self) -> float:
        """The least value that is more than one treatment for all, beyond rounding; inf where nothing can be."""
        if not self.exists:
            return np.inf
        return self.fixed + max(NO_BENEFIT * (self.best - self.fixed), self.rounding)

    def kept(self, value: float) -> float:
        """The share that a policy of this value keeps; NaN where there is nothing to gain."""
        return (value - self.fixed) / (self.best - self.fixed) if self.exists else np.nan


def _by_lot(problem: DecisionProblem) -> float:
    """The value of each allowed action with the same probability."""
    if problem.admissible is None:
        return float(problem.fixed_values.mean())
    total = np.where(problem.admissible, problem.utilities, 0.0).sum(axis=1)
    return float(problem.prior @ (total / problem.admissible.sum(axis=1)))


def ratio(part: FloatArray, whole: FloatArray, scale: FloatArray) -> FloatArray:
    """Part / whole; NaN where the whole is 0 (or the rounding of a difference of values), or not finite."""
    ratios = np.full_like(part, np.nan)
    return np.divide(part, whole, out=ratios, where=(whole > ROUNDING * scale) & np.isfinite(whole))


def excess(one: FloatArray, other: FloatArray, scale: FloatArray) -> FloatArray:
    """One − other, arrays of means; 0 where that is no more than the rounding of such sums, at their scale."""
    difference: FloatArray = one - other
    return np.where((np.abs(difference) <= ROUNDING * scale) & np.isfinite(scale), 0.0, difference)


def benefit(gain: Gain) -> str:
    """What shares of the benefit mean, or why there are none."""
    if gain.has_shares:
        return "Benefit kept: 0 % = one treatment for all, which costs no privacy; 100 % = the best for each."
    if not gain.exists:
        return "Benefit kept: –. One treatment for all is as good as the best for each: there is nothing to gain."
    return (
        f"Benefit kept: –. One treatment for all loses only {rounded(gain.best - gain.fixed)} in utility per patient "
        f"against the best for each (choosing by lot: {rounded(gain.best - gain.by_lot)}): too little to give shares "
        "of it."
    )


@once_per_problem
def weighted_regrets(problem: DecisionProblem) -> tuple[FloatArray, ...]:
    """prior(x) (max u(x, .) - u(x, a)) for each action, (n_records,) each: what is lost if everybody gets it."""
    return tuple(_lost_by_each(problem))


def _lost_by_each(problem: DecisionProblem) -> Iterator[FloatArray]:
    best = problem.utilities.max(axis=1)
    yield from (problem.prior * (best - column) for column in problem.utilities.T)


@once_per_problem
def _fixed_losses(problem: DecisionProblem) -> tuple[Fraction, ...]:
    """What each action loses if everybody gets it, to three roundings: terms >= 0, and their sum is rounded once."""
    return tuple(Fraction(rounded_sum(lost)) for lost in _lost_by_each(problem))


@once_per_problem
def best_fixed_loss(problem: DecisionProblem) -> Fraction:
    """What one action for all (who allow the same) loses at least, to three roundings."""
    if problem.admissible is None:
        return min(_fixed_losses(problem))
    lost = list(_lost_by_each(problem))
    sets = [[Fraction(rounded_sum(lost[action][part.rows])) for action in part.columns] for part in problem.classes]
    return sum(map(min, sets), Fraction(0))


@once_per_problem
def by_lot_loss(problem: DecisionProblem) -> Fraction:
    """What choosing among the allowed actions by lot loses, to a few roundings."""
    if problem.admissible is None:
        return sum(_fixed_losses(problem), Fraction(0)) / problem.n_actions
    allowed = problem.admissible.sum(axis=1)
    columns = zip(_lost_by_each(problem), problem.admissible.T, strict=True)
    return sum((Fraction(rounded_sum(np.where(allows, lost / allowed, 0.0))) for lost, allows in columns), Fraction(0))


class Proof(NamedTuple):
    """What every epsilon-private policy loses at least, by a proof that was checked; NaN where there is none.

    Attributes
    ----------
    least_loss : float
        Against the best action for each record, under the problem's prior, in units of utility; rounded down.
    most_kept : float
        The share of the benefit that this leaves to a policy, rounded up; NaN where there is no benefit to keep.
    """

    least_loss: float = math.nan
    most_kept: float = math.nan


def prove_loss(problem: DecisionProblem, epsilon: float) -> Proof:
    """The bound of `optimal_certificate`, after rational arithmetic has accepted it (`Certificate.holds`).

    The benefit is summed from differences of utilities record by record, each term with two roundings, so that no
    offset of the utilities takes its digits.

    Examples
    --------
    >>> from policies import AnyRecord
    >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord())
    >>> [round(number, 6) for number in prove_loss(problem, 1.0)]  # 1 / (1 + e), of 1 / 2
    [0.268941, 0.462117]
    """
    try:
        certificate = optimal_certificate(problem, epsilon)
    except NotApplicableError:
        return Proof()
    if not certificate.holds(problem):
        return Proof()
    # That nobody loses less than 0 needs no proof.
    least = max(0.0, certificate.bound)
    gained = _gain_rounded_up(problem)
    return Proof(least, -rounded_down(Fraction(least) / gained - 1)) if gained else Proof(least)


@once_per_problem
def _gain_rounded_up(problem: DecisionProblem) -> Fraction:
    """What the best action for each record gains over the best for all, rounded up; 0 if it is rounding alone."""
    return best_fixed_loss(problem) * (1 + 8 * HALF_ULP) if Gain.of(problem).exists else Fraction(0)
