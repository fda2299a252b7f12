"""What the options of a decision give beside utility: outcomes that a model counts, and one belief of an observer."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd

from envs.scenario import DEATH
from policies.arrays import FloatArray
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.reference import BestFixed
from policysim.decision.beliefs import patients_of_belief
from policysim.question.formats import NEGLIGIBLE
from policysim.study.declared import ModelledStudy
from policysim.study.options_table import FOR_ALL
from policysim.study.sweep import N_THREADS, at, evaluated_on, rows_on

COSTS = "costs"


def modelled_outcomes(study: ModelledStudy, problem: DecisionProblem) -> dict[str, list[FloatArray]]:
    """What else a model counts: outcomes that weigh something, and costs; for each action, over its features."""
    model, counted = study.model, {DEATH, *problem.outcomes}
    weighed = [name for name, weight in study.weights.items() if weight and name not in counted]
    found = {name: [model.chance(name, action) for action in range(problem.n_actions)] for name in weighed}
    costs = model.costs(study.utility.costs)
    found |= {COSTS: costs} if any(np.any(cost) for cost in costs) else {}
    return {name: [np.broadcast_to(grid, study.space.shape).ravel() for grid in each] for name, each in found.items()}


def option_details(
    problem: DecisionProblem,
    columns: pd.DataFrame,
    policies: Mapping[str, Policy],
    outcomes: Mapping[str, list[FloatArray]],
    belief: pd.Series | None,
) -> pd.DataFrame:
    """policy, epsilon, expected_OUTCOME, low, high: what the options give, and one belief after they are seen.

    Parameters
    ----------
    columns : DataFrame
        From `choose_columns`: the policies, at which epsilons.
    policies : mapping of str to Policy
        Of these, by name; one treatment for all needs none.
    outcomes : mapping of str to list of array, (n_records,)
        Of each action.
    belief : Series or None
        A row of `hidden_beliefs`. Of those who agree in what is public it is the class in which it moves most.
    """
    jobs: list[tuple[str, Policy]] = []
    for name in dict.fromkeys([*columns["policy"], *columns["published"]]):
        if name.startswith(FOR_ALL):
            jobs.append((name, BestFixed(action=problem.actions.index(name.removeprefix(FOR_ALL)))))
        else:
            epsilons = columns.loc[(columns["policy"] == name) | (columns["published"] == name), "epsilon"].unique()
            jobs += [(name, policy) for policy in dict.fromkeys(at(policies[name], each) for each in epsilons)]
    believed = () if belief is None else patients_of_belief(problem, belief)
    # Outcomes times who they happen to, (outcomes, k m), and who is believed something of, (m,), on each problem.
    weights: dict[DecisionProblem, tuple[FloatArray, list[FloatArray]]] = {}
    for on in {evaluated_on(policy, problem) for _, policy in jobs}:
        row, size = rows_on(on, problem), on.n_records
        harms = [
            [np.bincount(row, problem.prior * each, size) for each in of_actions] for of_actions in outcomes.values()
        ]
        weights[on] = (
            np.array(harms).reshape(len(outcomes), on.n_actions * size),
            [np.bincount(row, each, size).astype(np.float64, copy=False) for each in believed],
        )

    def look(job: tuple[str, Policy]) -> dict[str, float]:
        on = evaluated_on(job[1], problem)
        table, (harms, patients) = job[1].probabilities(on), weights[on]
        means = (harms @ np.ravel(table.T)).tolist()
        expected = {f"expected_{name}": mean for name, mean in zip(outcomes, means, strict=True)}
        return {**expected, **(_after(table, *patients) if patients else {})}

    with ThreadPoolExecutor(N_THREADS) as pool:
        found = zip(jobs, pool.map(look, jobs), strict=True)
    rows = [
        {"policy": name, "epsilon": epsilon, **numbers}
        for (name, policy), numbers in found
        for epsilon in ([policy.epsilon] if policy.uses_epsilon else columns["epsilon"].unique())
    ]
    return pd.DataFrame(rows)


def _after(table: FloatArray, patients: FloatArray, leveled: FloatArray) -> dict[str, float]:
    """The least and the largest belief in a level after a treatment, of patients of whom some have it, (m,) each."""
    given = patients @ table
    told = given > NEGLIGIBLE * patients.sum()
    after = (leveled @ table)[told] / given[told]
    return {"low": float(after.min()), "high": float(after.max())}
