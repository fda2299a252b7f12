"""The answer to one decision, as tables: of a scenario, or of one's own problem. What is printed is looked up there.

The tables of cells (row, option, epsilon, value, low, high, format) are "options", "differences", "who", "best-for-all"
and "facts"; "columns" and "rows" give their order, "certainty" the verdicts, and "names" what has words and no number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from envs.scenario import SYMPTOMS
from policies.arrays import FloatArray
from policies.exponential import Exponential
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.randomized_response import RandomizedResponse
from policies.reference import BestFixed
from policysim.decision.behind_options import tables_behind_options
from policysim.decision.beliefs import patients_of_belief, strongest_belief
from policysim.decision.decision_facts import decision_facts, decision_names
from policysim.decision.results import Results
from policysim.question.formats import NEGLIGIBLE
from policysim.question.words import ALL
from policysim.study.certainty import as_stated, best_for_all, certainty
from policysim.study.declared import ModelledStudy, ScenarioStudy
from policysim.study.gain import gain_of
from policysim.study.labels import level_in_words
from policysim.study.options_table import FOR_ALL, choose_columns, options, who_pays
from policysim.study.sweep import REFERENCES, at_each, evaluate_each, evaluated_on, rows_on


def answer_tables(
    found: Results, *, study: ModelledStudy | None = None, named: bool = False, warnings: Sequence[str] = ()
) -> dict[str, pd.DataFrame]:
    """Rank what was compared, judge it by its redraws, and look at an observer and at groups.

    Parameters
    ----------
    found : Results
        At epsilons that are printed whole (`printable`).
    study : ModelledStudy, optional
        From which the problem was made: its single outcomes, costs and redraws are then looked at, too.
    named : bool, optional
        Whether the policies were asked for by name, and get columns of their own.
    warnings : sequence of str, optional
        What is said first.
    """
    found = _with_lead_that_happens(found)
    problem, labels = found.problem, found.labels
    belief = strongest_belief(found.tables.get("beliefs"))
    tables = _judged(found, study, belief, named=named)
    best_in = math.nan
    if "best-for-all" in tables:
        # In how many redraws the treatment that is best for all, as stated, is so.
        best = problem.actions[int(np.argmax(problem.fixed_values))]
        best_in = float(tables["best-for-all"].set_index("row")["value"][best])
    tables["options"], tables["rows"], tables["differences"] = options(
        tables["comparison"],
        tables["columns"],
        replace(labels, outcomes={**labels.outcomes, COSTS: "units of cost"}),
        found.asked.epsilon,
        certainty=tables["certainty"],
        best_for_all=best_in,
        beliefs=tables.get("beliefs"),
        # What one of each outcome costs in utility.
        weights=None if study is None else {**study.weights, COSTS: 1.0},
    )
    count = int(tables["rows"]["patients"].iloc[0])
    name_of = partial(level_in_words, problem.records)
    who = who_pays(tables["comparison"], tables["columns"], count, name_of, labels.lead)
    if not who.empty:
        tables["who"] = who
    tables["facts"] = decision_facts(tables, found, study, count)
    tables["names"] = decision_names(tables, found, study, belief, warnings, named=named)
    return {**tables, **tables_behind_options(found, tables, count)}


def _with_lead_that_happens(found: Results) -> Results:
    """The same, without the outcome that leads where it never happens."""
    lead = found.problem.lead
    if lead == found.labels.lead:
        return found
    columns = [f"{kind}_{lead}" for kind in ("expected", "extra")]
    comparison = found.tables["comparison"].drop(columns=columns, errors="ignore")
    redraws = found.redraws and replace(found.redraws, options=found.redraws.options.drop(columns=columns[:1]))
    return replace(found, tables={**found.tables, "comparison": comparison}, redraws=redraws)


def _judged(
    found: Results, study: ModelledStudy | None, belief: pd.Series | None, *, named: bool
) -> dict[str, pd.DataFrame]:
    """What was compared, with all that is counted of each option; which is which; how sure each is; and one belief."""
    problem, epsilon = found.problem, found.asked.epsilon
    comparison = pd.concat([found.tables["comparison"], _for_all(problem, found.tables["comparison"])])
    ranked = tuple(policy.name for policy in found.asked.policies)
    columns = choose_columns(comparison, found.labels, epsilon, policies=ranked, named=ranked if named else ())
    always = (*REFERENCES, Exponential(epsilon), RandomizedResponse(epsilon))
    policies = {policy.name: policy for policy in (*always, *found.asked.policies)}
    grids = {} if study is None else modelled_outcomes(study, problem)
    details = option_details(problem, columns, policies, grids, belief)
    # What is the sum of others is none of its own beside them.
    summed = isinstance(study, ScenarioStudy) and bool(grids)
    sums = [f"{kind}_{SYMPTOMS}" for kind in ("expected", "extra") if summed and found.labels.lead != SYMPTOMS]
    comparison = comparison.drop(columns=sums, errors="ignore").merge(
        details[["policy", "epsilon", *(f"expected_{name}" for name in grids)]].assign(group=ALL),
        on=["policy", "epsilon", "group"],
        how="left",
    )
    if not gain_of(problem).has_shares:
        # Of next to nothing, shares say nothing.
        comparison = comparison.assign(benefit_kept=math.nan)
    tables: dict[str, pd.DataFrame] = {"comparison": comparison, "columns": columns}
    if found.redraws is not None:
        tables["certainty"] = certainty(found.redraws.options, BestFixed.name, found.labels.lead)
        tables["best-for-all"] = best_for_all(found.redraws.options)
    else:
        tables["certainty"] = as_stated(comparison, epsilon, found.labels.lead)
    if belief is not None:
        tables["beliefs"] = details[["policy", "epsilon", "low", "high"]].assign(before=float(belief["before"]))
    return tables


def _for_all(problem: DecisionProblem, comparison: pd.DataFrame) -> pd.DataFrame:
    """Each treatment for all as rows of the comparison: it learns nothing, and reveals nothing."""
    gain = gain_of(problem)
    expected = {f"expected_{name}": problem.for_all(table) for name, table in problem.outcomes.items()}
    expected = {name: means for name, means in expected.items() if name in comparison}
    rows = [
        {
            "policy": f"{FOR_ALL}{action}",
            "epsilon": epsilon,
            "group": ALL,
            "level": ALL,
            "share": 1.0,
            "value": value,
            "loss": gain.best - value,
            "benefit_kept": gain.kept(value),
            "epsilon_spent": 0.0,
            "guarantee": 0.0,
            "guess_rate": 0.5,
            **{name: means[place] for name, means in expected.items()},
        }
        for place, (action, value) in enumerate(zip(problem.actions, problem.fixed_values.tolist(), strict=True))
        for epsilon in comparison["epsilon"].unique()
    ]
    return pd.DataFrame(rows)


COSTS = "costs"


def modelled_outcomes(study: ModelledStudy, problem: DecisionProblem) -> dict[str, list[FloatArray]]:
    """What else a model counts: outcomes that weigh something, and costs; for each action, over its features."""
    model = study.model
    weighed = [name for name, weight in study.weights.items() if weight and name not in problem.outcomes]
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
            jobs += [(name, policy) for policy in at_each(policies[name], epsilons)]
    believed = () if belief is None else patients_of_belief(problem, belief)
    # Outcomes times who they happen to, (outcomes, k m), and who is believed something of, (m,), on each problem.
    weights: dict[DecisionProblem, tuple[FloatArray, list[FloatArray]]] = {}
    for on in {evaluated_on(policy, problem) for _, policy in jobs}:
        row, size = rows_on(on, problem), on.n_records
        harms = [[np.bincount(row, problem.prior * each, size) for each in of] for of in outcomes.values()]
        weights[on] = (
            np.array(harms).reshape(len(outcomes), on.n_actions * size),
            [np.bincount(row, each, size).astype(np.float64, copy=False) for each in believed],
        )

    def look(job: tuple[str, Policy]) -> dict[str, float]:
        on = evaluated_on(job[1], problem)
        table, (harms, patients) = job[1].probabilities(on), weights[on]
        means = (harms @ np.ravel(table.T)).tolist()
        numbers = {f"expected_{name}": mean for name, mean in zip(outcomes, means, strict=True)}
        if patients:
            # The belief in the level after each treatment that is given to some of these patients.
            everyone, leveled = patients
            given = everyone @ table
            told = given > NEGLIGIBLE * everyone.sum()
            after = (leveled @ table)[told] / given[told]
            numbers |= {"low": float(after.min()), "high": float(after.max())}
        return numbers

    rows = [
        {"policy": name, "epsilon": epsilon, **numbers}
        for (name, policy), numbers in evaluate_each(jobs, look).items()
        for epsilon in ([policy.epsilon] if policy.uses_epsilon else columns["epsilon"].unique())
    ]
    return pd.DataFrame(rows)
