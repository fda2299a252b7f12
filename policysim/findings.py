"""What a comparison found at one epsilon: the numbers behind the printed screen, the report and --json."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pandas as pd

from policies.catalogue import make_policy
from policies.optimal import Optimal
from policies.problem import DecisionProblem
from policysim.comparison import N_THREADS, applies
from policysim.evaluate import ALL
from policysim.search import Curve, UnreachableError, make_demand
from policysim.study import Study

# The benefit kept that the printed table asks for.
KEEP = 0.8


@dataclass(frozen=True)
class Row:
    """One policy at the study's epsilon; rates are per patient.

    `better_from` is the least epsilon at which it is at least as good as the best single treatment for all, and
    `keeps_from` the least at which it keeps `KEEP` of the benefit; NaN for policies that do not depend on epsilon,
    inf where no epsilon reaches it.
    """

    policy: str
    benefit_kept: float
    extra_deaths: float
    worse_than_untreated: float
    epsilon_spent: float
    better_from: float
    keeps_from: float


@dataclass(frozen=True)
class WorstGroup:
    """The group that loses most per patient under one policy."""

    policy: str
    group: str
    level: str
    share: float
    loss: float
    overall_loss: float
    extra_deaths: float


@dataclass(frozen=True)
class Findings:
    """What a study found at its epsilon.

    Attributes
    ----------
    epsilon : float
        The one that it is about.
    deaths : mapping of str to float
        Expected deaths per patient: best for each, one for all, untreated.
    one_for_all : str
        The best single action.
    rows : list of Row
        The policies, in the order of the study.
    right_guesses : float
        e^eps / (1 + e^eps): how often the better guess between two equally likely neighbours can be right at most.
    worst : WorstGroup or None
        Under the best of the private policies at this epsilon, the limit apart; None if the study names no groups.
    typical_stake : float
        Median over patients of the difference in utility between their best and worst action.
    """

    epsilon: float
    deaths: dict[str, float]
    one_for_all: str
    rows: list[Row]
    right_guesses: float
    worst: WorstGroup | None
    typical_stake: float


def number_of_searches(study: Study) -> int:
    """How often `find` will call `advance`."""
    return len(_private(study))


def find(
    study: Study, problem: DecisionProblem, table: pd.DataFrame, advance: Callable[[], object] = lambda: None
) -> Findings:
    """Sum up a comparison.

    Parameters
    ----------
    study : Study
        What was asked.
    problem : DecisionProblem
        Built from it.
    table : DataFrame
        From `compare`, with the study's policies, epsilons and groups.
    advance : callable, optional
        Called after the search for the epsilons of each policy.
    """
    overall = table[table["group"] == ALL]
    at_epsilon = table[table["epsilon"] == study.epsilon]
    searches = _search_all(study, problem, overall, advance)
    rows = [
        Row(
            policy=str(row["policy"]),
            benefit_kept=float(row["benefit_kept"]),
            extra_deaths=float(row["extra_deaths"]),
            worse_than_untreated=float(row["worse_than_untreated"]),
            epsilon_spent=float(row["epsilon_spent"]),
            better_from=searches.get(str(row["policy"]), {}).get(0.0, math.nan),
            keeps_from=searches.get(str(row["policy"]), {}).get(KEEP, math.nan),
        )
        for _, row in overall[overall["epsilon"] == study.epsilon].iterrows()
    ]
    return Findings(
        epsilon=study.epsilon,
        deaths=_deaths(problem),
        one_for_all=problem.actions[problem.best_fixed_action],
        rows=rows,
        right_guesses=1 / (1 + math.exp(-study.epsilon)),
        worst=_worst_group(at_epsilon, set(_private(study)) - {Optimal.name}),
        typical_stake=weighted_median(problem.utilities.max(axis=1) - problem.utilities.min(axis=1), problem.prior),
    )


def weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    """The smallest value at which the weights of all values up to it reach half."""
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(cumulative, cumulative[-1] / 2)])


def _private(study: Study) -> list[str]:
    return [name for name in study.policies if make_policy(name).uses_epsilon]


def _search_all(
    study: Study, problem: DecisionProblem, overall: pd.DataFrame, advance: Callable[[], object]
) -> dict[str, dict[float, float]]:
    """The least epsilon at which each private policy keeps a share of the benefit, by policy and share."""
    needed = {keep: make_demand(problem, keep=keep).value for keep in (0.0, KEEP)}

    def search(name: str) -> dict[float, float]:
        rows = overall[overall["policy"] == name]
        known = dict(zip(rows["epsilon"], rows["value"], strict=True))
        curve = Curve(make_policy(name), lambda policy: problem.value(policy.probabilities(problem)), known)
        found = {keep: _reach(curve, value) for keep, value in needed.items()}
        advance()
        return found

    names = [name for name in _private(study) if applies(make_policy(name), problem)]
    with ThreadPoolExecutor(N_THREADS) as pool:
        return dict(zip(names, pool.map(search, names), strict=True))


def _reach(curve: Curve, needed: float) -> float:
    try:
        return curve.first_reaching(needed)
    except UnreachableError:
        return math.inf


def _deaths(problem: DecisionProblem) -> dict[str, float]:
    deaths = problem.outcomes["deaths"]
    best = np.take_along_axis(deaths, problem.best_actions[:, None], axis=1)[:, 0]
    choices = {"best for each": best, "one for all": deaths[:, problem.best_fixed_action], "untreated": deaths[:, 0]}
    return {name: float(problem.prior @ chosen) for name, chosen in choices.items()}


def _worst_group(at_epsilon: pd.DataFrame, private: set[str]) -> WorstGroup | None:
    candidates = at_epsilon[at_epsilon["policy"].isin(private)]
    groups = candidates[(candidates["group"] != ALL) & (candidates["share"] > 0)]
    if groups.empty:
        return None
    overall = candidates[candidates["group"] == ALL]
    best = overall.iloc[int(overall["value"].argmax())]
    mine = groups[groups["policy"] == best["policy"]]
    worst = mine.iloc[int(mine["loss"].argmax())]
    return WorstGroup(
        policy=str(best["policy"]),
        group=str(worst["group"]),
        level=str(worst["level"]),
        share=float(worst["share"]),
        loss=float(worst["loss"]),
        overall_loss=float(best["loss"]),
        extra_deaths=float(worst["extra_deaths"]),
    )
