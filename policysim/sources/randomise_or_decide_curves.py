"""Randomise the record and then decide, or randomise the decision: exact curves per set of hidden features."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pandas as pd
from scipy.optimize import brentq

from policies.calibration import ExponentialTight
from policies.capped import ExponentialCapped
from policies.catalogue import make_policy
from policies.exponential import Exponential
from policies.optimal import Optimal
from policies.problem import DecisionProblem
from policies.randomized_features import RandomizedFeatures
from policies.response import RandomizedResponse
from policysim.comparison import compare
from policysim.problem import build_problem
from policysim.search import UnreachableError, smallest_epsilon
from policysim.sources.randomise_or_decide import Constants, Hidden
from policysim.sweep import N_THREADS, at_each

# The source's choice on the decision; as the sensitivity of raw utilities has it, and calibrated exactly.
SOURCE = (Exponential.name, ExponentialTight.name)
RECORD, RESPONSE, LIMIT = RandomizedFeatures.name, RandomizedResponse.name, Optimal.name
# What else can be done to a decision.
OTHERS = (ExponentialCapped.name, RESPONSE)
POLICIES = (RECORD, *SOURCE, *OTHERS, LIMIT)
# Less is no reason to choose: a tenth of a percent of the benefit.
NOTABLE = 1e-3
# Relative accuracy of the epsilon where one way overtakes the other.
ACCURACY = 0.01


@dataclass(frozen=True)
class Overtaking:
    """From where on the decision is the better place for the noise.

    Attributes
    ----------
    epsilon : float
        inf if that is nowhere on the curve.
    policy : str
        What overtakes, "" if nothing does.
    """

    epsilon: float
    policy: str


@dataclass(frozen=True)
class Crossing:
    """Where the curves of one hidden set cross.

    Attributes
    ----------
    hidden : Hidden
        The set.
    overtaking : Overtaking
        Where noise on the decision becomes better than the randomised record.
    coins : float
        epsilon of two coins for each hidden feature.
    same : float
        The epsilon at which response on the decision keeps as much as these coins; inf if none does.
    """

    hidden: Hidden
    overtaking: Overtaking
    coins: float
    same: float


def number_of_steps(constants: Constants) -> int:
    """How often `curves` and `crossings` will call `advance`."""
    return sum(
        sum(len(at_each(make_policy(name), _grid(constants, hidden))) for name in POLICIES) + 1
        for hidden in constants.hidden
    )


def _grid(constants: Constants, hidden: Hidden) -> list[float]:
    return sorted({*constants.epsilons, constants.two_coins(hidden)})


def curves(
    constants: Constants, problems: Sequence[DecisionProblem], advance: Callable[[], object] = lambda: None
) -> pd.DataFrame:
    """Benefit kept and exact privacy loss of each policy, for each hidden set and epsilon, that of two coins included.

    Parameters
    ----------
    constants : Constants
        Sets and epsilons.
    problems : sequence of DecisionProblem
        One for each set.
    advance : callable, optional
        Called after each policy and epsilon.

    Returns
    -------
    DataFrame
        hidden, policy, epsilon, benefit_kept (see `compare`), epsilon_spent (of the published treatment).
    """
    frames = []
    for hidden, problem in zip(constants.hidden, problems, strict=True):
        table = compare(problem, policies=POLICIES, epsilons=_grid(constants, hidden), advance=advance)
        frames.append(table[["policy", "epsilon", "benefit_kept", "epsilon_spent"]].assign(hidden=hidden.name))
    columns = ["hidden", "policy", "epsilon", "benefit_kept", "epsilon_spent"]
    return pd.concat(frames, ignore_index=True)[columns]


def problems_of(constants: Constants) -> list[DecisionProblem]:
    """The decision problem of each hidden set; they share their tables."""
    whole = build_problem(constants.study)
    return [hidden.problem(whole, constants.study) for hidden in constants.hidden]


def kept(table: pd.DataFrame, hidden: str, policy: str, epsilon: float, column: str = "benefit_kept") -> float:
    """Benefit kept, or another column, at a point of the curves."""
    chosen = (table["hidden"] == hidden) & (table["policy"] == policy) & (table["epsilon"] == epsilon)
    return float(table.loc[chosen, column].item())


def spent(table: pd.DataFrame, hidden: str, policy: str, epsilon: float) -> float:
    """Exact privacy loss of the published treatment at a point of the curves."""
    return kept(table, hidden, policy, epsilon, "epsilon_spent")


def times_ahead(table: pd.DataFrame) -> tuple[int, int]:
    """At how many points of the curves the randomised record keeps no less than either mechanism of the source."""
    wide = table.pivot(index=["hidden", "epsilon"], columns="policy", values="benefit_kept")
    ahead = wide[RECORD] >= wide[list(SOURCE)].max(axis=1)
    return int(ahead.sum()), len(ahead)


def crossings(
    constants: Constants,
    problems: Sequence[DecisionProblem],
    table: pd.DataFrame,
    advance: Callable[[], object] = lambda: None,
) -> list[Crossing]:
    """Where curves cross, for each hidden set; `advance` is called once for each."""

    def find(hidden: Hidden, problem: DecisionProblem) -> Crossing:
        coins = constants.two_coins(hidden)
        crossing = Crossing(
            hidden,
            overtaking(problem, table[table["hidden"] == hidden.name]),
            coins,
            same_benefit(problem, kept(table, hidden.name, RECORD, coins)),
        )
        advance()
        return crossing

    with ThreadPoolExecutor(N_THREADS) as pool:
        return list(pool.map(find, constants.hidden, problems))


def overtaking(problem: DecisionProblem, rows: pd.DataFrame) -> Overtaking:
    """The first epsilon at which one of `OTHERS` keeps notably more than the randomised record, to two digits.

    Parameters
    ----------
    problem : DecisionProblem
        One hidden set.
    rows : DataFrame
        Its curves.
    """
    wide = rows.pivot(index="epsilon", columns="policy", values="benefit_kept")
    lead = wide[list(OTHERS)].max(axis=1) - wide[RECORD] - NOTABLE
    ahead = lead.index[lead > 0]
    if not len(ahead):
        return Overtaking(math.inf, "")
    first = float(ahead[0])
    policy = str(wide.loc[first, list(OTHERS)].astype(float).idxmax())
    before = lead.index[lead.index < first]
    if not len(before):
        return Overtaking(first, policy)
    low, high = math.log(before[-1]), math.log(first)
    ends = {low: float(lead[before[-1]]), high: float(lead[first])}

    def measure(log_epsilon: float) -> float:
        return ends[log_epsilon] if log_epsilon in ends else _lead(problem, math.exp(log_epsilon)) - NOTABLE

    return Overtaking(math.exp(brentq(measure, low, high, xtol=ACCURACY / 2)), policy)


def _lead(problem: DecisionProblem, epsilon: float) -> float:
    """By how much of the benefit the better of `OTHERS` is ahead of the randomised record."""
    others, record = (
        max(problem.value(make_policy(name, epsilon=epsilon).probabilities(problem)) for name in names)
        for names in (OTHERS, (RECORD,))
    )
    benefit = float(problem.prior @ problem.utilities.max(axis=1) - problem.fixed_values.max())
    return (others - record) / benefit


def same_benefit(problem: DecisionProblem, keep: float) -> float:
    """The epsilon at which response on the decision keeps as much; inf if none does."""
    try:
        return smallest_epsilon(problem, RESPONSE, keep=keep)
    except UnreachableError:
        return math.inf
