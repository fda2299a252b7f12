"""Which epsilon, which mechanism: the least epsilon of each policy that meets what is asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from policies.arrays import ROUNDING, FloatArray
from policies.catalogue import make_policy
from policies.policy import Policy
from policies.privacy_loss import guess_rate_within
from policies.problem import DecisionProblem
from policies.reference import BestFixed
from policysim.decision.demands import (
    SCAN_TO,
    SCANNED,
    TOLERANCE,
    Curve,
    Demand,
    UnreachableError,
    demand_curve,
    expected_loss,
    fewest_digits,
    make_demand,
)
from policysim.decision.limit import Limit
from policysim.numbers import next_below, steady
from policysim.progress import SILENT, Progress
from policysim.report.findings import rows_of
from policysim.study.checks import checked_tables, guess_rate_of
from policysim.study.gain import gain_of
from policysim.study.sweep import evaluate_each, evaluated_on, happening_lead, prepare
from policysim.words import FOR_ALL, guesses


class Verdict(StrEnum):
    """What was found out about a wish.

    CAN: a mechanism that was compared does it. CANNOT: a checked proof says that none does. MAY: none that was compared
    does it, but the limit leaves room. NONE: no mechanism was found, and no proof that there is none.
    """

    CAN = "can"
    CANNOT = "cannot"
    MAY = "may"
    NONE = "none"


@dataclass(frozen=True)
class Wish:
    """What is asked for.

    Attributes
    ----------
    keep, max_loss : float or None
        Shares, as in `smallest_epsilon`.
    max_extra_lead : float or None
        The most of the leading outcome, per patient, beyond the best treatment for everyone.
    at_most : mapping of str to float or "one for all"
        The most of an outcome per patient, on average, as in `smallest_epsilon`.
    max_guess : float or None
        The most often, in [1/2, 1], that the better guess between two equally likely neighbours may be right, whatever
        the mechanism: a limit on epsilon.
    max_guess_rate : float or None
        The same under the mechanism that is chosen, at its epsilon (`policies.guess_rate`): for one decision only.
    """

    keep: float | None = None
    max_loss: float | None = None
    max_extra_lead: float | None = None
    max_guess: float | None = None
    max_guess_rate: float | None = None
    at_most: Mapping[str, float | str] = field(default_factory=dict)

    @property
    def max_epsilon(self) -> float:
        """The epsilon at which the better guess is right `max_guess` of the time: e^eps / (1 + e^eps)."""
        if self.max_guess is None or self.max_guess >= 1:
            return math.inf
        return math.log(self.max_guess / (1 - self.max_guess))

    @property
    def scanned(self) -> bool:
        """Whether what is limited may rise and fall with epsilon, so that a grid of epsilons is looked at."""
        return bool(self.at_most) or self.max_extra_lead is not None or self.max_guess_rate is not None

    @property
    def most_guessed(self) -> float:
        """`max_guess_rate`, and what the rounding of sums may add to it; 1 if it is not limited."""
        return 1.0 if self.max_guess_rate is None else self.max_guess_rate * (1 + ROUNDING)

    @property
    def epsilon_to_refute(self) -> float:
        """An epsilon that is at least the true `max_epsilon`, whatever the rounding of the logarithm."""
        return self.max_epsilon * (1 + 2.0**-50) + 2.0**-50

    def demand(self, problem: DecisionProblem) -> Demand:
        """The demand on value and outcomes."""
        return make_demand(
            problem,
            keep=self.keep,
            max_loss=self.max_loss,
            max_extra_lead=self.max_extra_lead,
            at_most=self.at_most,
        )


@dataclass(frozen=True)
class Choices:
    """The answer to a wish.

    Attributes
    ----------
    wish : Wish
        What was asked for.
    needs : DataFrame
        A row for each policy at the least epsilon that meets the demand, rounded up as `fewest_digits` does, which
        needs least first: policy, actions (the treatment of everyone, if one), epsilon (inf, and the rest NaN,
        where none was found), allowed (whether the wished limits on guessing allow it), value and loss (in utility),
        benefit_kept, epsilon_spent (the exact privacy loss), right_guesses (a bound under any mechanism with this
        epsilon), guess_rate (of the policy; NaN where it takes too long to compute), and `expected_OUTCOME`.
    for_all : DataFrame
        The same at epsilon 0 of the best treatment for all by utility (best-fixed), and then of each one ("for all: "
        and its name): `allowed` says whether it meets the demand.
    mechanisms : mapping of str to Policy
        The policies of `needs` at their epsilons, where one was found.
    limit : float
        No mechanism meets the demand at this epsilon or a smaller one; inf if none does at any, 0 if nothing is known.
    limit_proven : bool
        Whether that is proven: by a certificate that rational arithmetic has accepted. If not, it is only computed.
    certificate : dict or None
        Where no mechanism can: the proof, from the dual of the linear programme, accepted likewise.
    lead : str or None
        The outcome that leads; None where there is none, or it never happens.
    least_possible : mapping of str to float
        Where no mechanism can: what each limited outcome is at least, as far as that is proven likewise.
    raised : str
        The policy that has a larger epsilon in `needs`, the least at which it is also better than the best treatment
        for all (`policysim.decision.better_choice`); "" for none.
    """

    wish: Wish
    needs: pd.DataFrame
    for_all: pd.DataFrame
    mechanisms: Mapping[str, Policy]
    limit: float
    limit_proven: bool
    certificate: dict[str, Any] | None
    lead: str | None = None
    least_possible: Mapping[str, float] = field(default_factory=dict)
    raised: str = ""

    @property
    def verdict(self) -> Verdict:
        """Whether some mechanism can do what is asked for: nothing is said to be impossible without a proof."""
        if self.least is not None:
            return Verdict.CAN
        if self.certificate is not None:
            return Verdict.CANNOT
        return Verdict.MAY if self.limit < self.wish.max_epsilon else Verdict.NONE

    @property
    def least(self) -> dict[str, Any] | None:
        """The row of what needs the least epsilon, if any is allowed: the best treatment for all that is enough, first.

        Of equals, the best one is there twice, and comes first.
        """
        enough = sorted(rows_of(self.for_all[self.for_all["allowed"]]), key=lambda row: -float(row["value"]))
        return next(iter([*enough, *rows_of(self.needs[self.needs["allowed"]])]), None)

    def attains(self, epsilon: float) -> bool:
        """Whether no mechanism meets the demand at the next smaller number of as many digits as an epsilon."""
        return self.limit_proven and 0 < epsilon < math.inf and next_below(epsilon) <= self.limit


def choose(
    problem: DecisionProblem, wish: Wish, policies: Sequence[str | Policy], progress: Progress = SILENT
) -> Choices:
    """Find what each policy needs.

    Parameters
    ----------
    problem : DecisionProblem
        What is to be decided; with the outcomes that the wish limits.
    wish : Wish
        What is asked for.
    policies : sequence of str or Policy
        Names from the catalogue, or policies whose epsilon is replaced. "optimal" is searched as the optimum within the
        bounds on outcomes, and "optimal-safe" as that within these and its own.
    progress : Progress, optional
        Reports each policy and of the limit.

    Raises
    ------
    ValueError
        For a demand that is no number, or none, and for an unknown outcome.
    NotApplicableError
        A ValueError, if the wish limits `guess_rate` and that takes too long to compute.
    ClaimError
        For a policy of another package whose exact privacy loss, at the epsilon that was found, exceeds its claim.
    """
    demand = wish.demand(problem)
    templates = [make_policy(policy) if isinstance(policy, str) else policy for policy in policies]
    for on in {evaluated_on(template, problem) for template in templates}:
        prepare(on)

    progress.expect(1)
    limit = Limit(problem, demand)
    least = limit.last_impossible(near=wish.max_epsilon)
    proven = least == 0 or limit.certificate(least) is not None
    progress.advance()
    needed = evaluate_each(templates, lambda template: _least(problem, demand, template, wish, least), progress)
    # Of those that need the same, the most useful; what differs by rounding alone stays in the order asked for.
    rows = sorted((needed[template] for template in templates), key=lambda row: (row["epsilon"], -steady(row["value"])))
    below = next_below(rows[0]["epsilon"]) if rows and 0 < rows[0]["epsilon"] < math.inf else 0.0
    # The search for the limit ends a little below it: the next smaller number may lie between the two.
    if proven and least < below < least * (1 + 3 * TOLERANCE) and limit.certificate(below) is not None:
        least = below
    for_all = pd.DataFrame([_for_all(problem, demand, place) for place in (None, *range(problem.n_actions))])
    needs = pd.DataFrame(rows, columns=for_all.columns).astype({"allowed": bool})
    found = bool(for_all["allowed"].any() or needs["allowed"].any())
    may = found or least < wish.max_epsilon * (1 - TOLERANCE)
    proof = None if may else limit.certificate(wish.epsilon_to_refute)
    return Choices(
        wish=wish,
        needs=needs,
        for_all=for_all,
        mechanisms={
            template.name: replace(demand.within(template, problem), epsilon=row["epsilon"])
            for template, row in needed.items()
            if row["epsilon"] < math.inf
        },
        limit=least,
        limit_proven=proven,
        certificate=proof,
        lead=happening_lead(problem),
        least_possible=limit.least_possible(wish.epsilon_to_refute) if proof else {},
    )


def _for_all(problem: DecisionProblem, demand: Demand, action: int | None) -> dict[str, Any]:
    """One treatment for all who allow it, the best for None: `allowed` says whether it meets the demand."""
    table = BestFixed(action=action).probabilities(problem)
    shares = problem.prior @ table
    given = [problem.actions[place] for place in np.argsort(-shares, kind="stable") if shares[place] > 0]
    return {
        **row_of(problem, BestFixed.name if action is None else f"{FOR_ALL}{problem.actions[action]}", table, 0.0, 0.0),
        "actions": tuple(given),
        "allowed": demand.margin(problem, table) >= 0,
    }


def _least(problem: DecisionProblem, demand: Demand, policy: Policy, wish: Wish, limit: float) -> dict[str, Any]:
    """What a policy needs, keeps and costs at the least epsilon that meets the demand."""
    template, max_epsilon = demand.within(policy, problem), wish.max_epsilon
    on, name = evaluated_on(template, problem), template.name
    nowhere = {"policy": name, "actions": (), "epsilon": math.inf, "allowed": False, "value": math.nan}
    curve = demand_curve(problem, demand, template)
    try:
        least = _just_above(limit, curve) if template != policy else math.nan
        if math.isnan(least):
            least = curve.first_reaching(0.0, near=max_epsilon)
        if least > max_epsilon and curve(max_epsilon) >= 0:
            # The search ends a little above the least epsilon, and what is allowed may lie between the two.
            least = max_epsilon
    except UnreachableError:
        return nowhere
    if wish.max_guess_rate is not None:
        least, curve = _harder_to_guess(on, curve, template, least, wish)
    most = max_epsilon if least <= max_epsilon else math.inf
    epsilon = fewest_digits(least, lambda decimal: decimal <= most and curve(decimal) >= 0)
    logs, table, spent = checked_tables(replace(template, epsilon=epsilon), on)
    if demand.loss == 0:
        worse = on.utilities < on.utilities.max(axis=1, keepdims=True)
        if (worse & (logs > -np.inf) & (on.prior[:, None] > 0)).any():
            # What is lost is too small for a float, and is not nothing.
            return nowhere
    row = row_of(on, name, table, epsilon, spent)
    return {**row, "allowed": epsilon <= max_epsilon and not row["guess_rate"] > wish.most_guessed}


def _harder_to_guess(
    problem: DecisionProblem, demanded: Curve, template: Policy, epsilon: float, wish: Wish
) -> tuple[float, Curve]:
    """The least epsilon found, from the one that meets the demand on, with a guess rate that is allowed; else that one.

    With it the curve of what holds there. The guess rate may fall as epsilon rises, so a grid of epsilons is looked at,
    in ratios of `SCANNED`.
    """

    def margin(at: float) -> float:
        if demanded(at) < 0:
            return demanded(at)
        table = replace(template, epsilon=at).probabilities(problem)
        return min(demanded(at), wish.most_guessed - guess_rate_within(table, problem.adjacency, at).rate)

    curve = Curve("the guess rate", margin)
    last = min(SCAN_TO, wish.max_epsilon)
    steps = math.ceil(math.log(last / epsilon) / math.log(SCANNED)) if 0 < epsilon < last else 0
    grid = [min(epsilon * SCANNED**step, last) for step in range(1, steps + 1)]
    if curve(epsilon) >= 0:
        return epsilon, curve
    return (curve.first_reaching(0.0), curve) if any(curve(at) >= 0 for at in grid) else (epsilon, demanded)


def _just_above(limit: float, curve: Curve) -> float:
    """The least epsilon of the best within the bounds, at the limit of all policies; NaN where it is not there."""
    if limit == math.inf:
        raise UnreachableError("no private policy meets the demand.")
    epsilon = limit * (1 + TOLERANCE)
    return epsilon if limit > 0 and curve(epsilon) >= 0 else math.nan


def row_of(problem: DecisionProblem, name: str, table: FloatArray, epsilon: float, spent: float) -> dict[str, Any]:
    """What a table of probabilities, which needs that epsilon, keeps and costs."""
    gain, value = gain_of(problem), problem.value(table)
    return {
        "policy": name,
        "actions": (),
        "epsilon": epsilon,
        "allowed": True,
        "value": value,
        "loss": expected_loss(problem, table),
        "benefit_kept": gain.kept(value),
        "epsilon_spent": spent,
        "right_guesses": guesses(epsilon),
        "guess_rate": guess_rate_of(table, problem, epsilon),
        **{f"expected_{outcome}": mean for outcome, mean in problem.expectations(table).items()},
    }
