"""One treatment for all beside private choices: what each costs, which is safest, and what a death must weigh."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd

from policies.arrays import ROUNDING
from policies.problem import DecisionProblem
from policies.reference import BestFixed
from policysim.question.formats import NEGLIGIBLE
from policysim.question.words import ALL
from policysim.study.gain import Gain


def each_for_all(problem: DecisionProblem) -> pd.DataFrame:
    """Each treatment for all, the best one first.

    Returns
    -------
    DataFrame
        action, value, benefit_kept (NaN where shares of the benefit say little), and of each outcome
        `expected_OUTCOME` and `extra_OUTCOME`, beyond the best treatment for each. Where records differ in what they
        allow, the first row has the best treatments for those who allow the same.
    """
    gain, best = Gain.of(problem), problem.best_actions[:, None]
    values = np.array([problem.best_fixed_value, *problem.fixed_values])
    table = pd.DataFrame(
        {
            "action": [problem.best_fixed_name, *map(problem.name_for_all, range(problem.n_actions))],
            "value": values,
            "benefit_kept": [gain.kept(float(value)) if gain.has_shares else np.nan for value in values],
        }
    )
    for name, outcome in problem.outcomes.items():
        expected = np.array([problem.prior @ problem.of_best_fixed(outcome), *problem.for_all(outcome)])
        least = float(problem.prior @ np.take_along_axis(outcome, best, axis=1)[:, 0])
        table[f"expected_{name}"], table[f"extra_{name}"] = expected, expected - least
    return table


def deaths_of_references(problem: DecisionProblem) -> dict[str, float]:
    """Deaths per patient: best for each, one for all, untreated (where everybody may be); empty where nobody dies."""
    deaths = problem.outcomes.get("deaths")
    if deaths is None or not deaths.any():
        return {}
    best = np.take_along_axis(deaths, problem.best_actions[:, None], axis=1)[:, 0]
    choices = {"best for each": best, "one for all": problem.of_best_fixed(deaths)}
    if problem.admissible is None or problem.admissible[:, 0].all():
        choices["untreated"] = deaths[:, 0]
    return {name: float(problem.prior @ chosen) for name, chosen in choices.items()}


def safest_for_all(for_all: pd.DataFrame) -> pd.DataFrame:
    """Of `each_for_all` the row with the fewest deaths; of those that cost no more but for rounding, the best.

    Empty where nobody can die.
    """
    if "expected_deaths" not in for_all or not for_all["expected_deaths"].any():
        return for_all[:0]
    deaths = for_all["expected_deaths"].to_numpy()
    place = 0 if deaths[0] <= deaths[1:].min() * (1 + ROUNDING) else 1 + int(deaths[1:].argmin())
    return for_all.iloc[[place]]


def break_even(at_epsilon: pd.DataFrame, private: Collection[str], gain: Gain, assumed: float) -> pd.DataFrame:
    """Where the value of the best private policy, and of one treatment for all, are the same as a death weighs more.

    Parameters
    ----------
    at_epsilon : DataFrame
        The rows of everyone of a comparison at one epsilon, with best-fixed.
    private : collection of str
        The policies that spend epsilon.
    gain : Gain
        Of the problem.
    assumed : float
        The weight that a death has.

    Returns
    -------
    DataFrame
        policy, weight, assumed: one row; none where no private policy is worth more than one treatment for all, or none
        that is costs more deaths.
    """
    rows = at_epsilon[at_epsilon["policy"].isin(list(private)) & (at_epsilon["value"] >= gain.beaten_from)]
    fixed = at_epsilon[at_epsilon["policy"] == BestFixed.name]
    found = pd.DataFrame(columns=["policy", "weight", "assumed"])
    if rows.empty or fixed.empty or "extra_deaths" not in fixed or fixed["extra_deaths"].isna().all():
        return found
    best = rows.iloc[int(rows["value"].argmax())]
    deaths = float(best["extra_deaths"] - fixed["extra_deaths"].iloc[0])
    if deaths > NEGLIGIBLE:
        weight = assumed + float(best["value"] - fixed["value"].iloc[0]) / deaths
        found.loc[0] = [best["policy"], weight, assumed]
    return found


def worst_group(at_epsilon: pd.DataFrame, among: Collection[str]) -> pd.DataFrame:
    """The group that loses most under the best of some policies.

    Parameters
    ----------
    at_epsilon : DataFrame
        Rows of a comparison at one epsilon.
    among : collection of str
        Names of policies.

    Returns
    -------
    DataFrame
        The row of the group, and overall_loss, that of everyone; empty without groups, policies, or losses.
    """
    candidates = at_epsilon[at_epsilon["policy"].isin(list(among))]
    groups = candidates[(candidates["group"] != ALL) & (candidates["share"] > 0)]
    if groups.empty:
        return groups
    overall = candidates[candidates["group"] == ALL]
    best = overall.iloc[int(overall["value"].argmax())]
    mine = groups[groups["policy"] == best["policy"]]
    worst: pd.DataFrame = mine.iloc[[int(mine["loss"].argmax())]].assign(overall_loss=best["loss"])
    return worst[worst["loss"] > NEGLIGIBLE]
