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
from policies.exponential import Exponential
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.randomized_response import RandomizedResponse
from policies.reference import BestFixed
from policysim.decision.behind_options import tables_behind_options
from policysim.decision.beliefs import patients_of_belief, strongest_belief
from policysim.decision.decision_facts import decision_facts, decision_names
from policysim.decision.results import Results
from policysim.numbers import NEGLIGIBLE
from policysim.study.certainty import as_stated, best_for_all, certainty
from policysim.study.declared import ModelledStudy, ScenarioStudy
from policysim.study.gain import gain_of
from policysim.study.labels import level_in_words
from policysim.study.options_table import FOR_ALL, choose_columns, options, who_pays
from policysim.study.sweep import REFERENCES, at_each, evaluate_each, evaluated_on, rows_on
from policysim.utility import COSTS


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
        weights=None if study is None else {COSTS: 1.0, **study.weights},
    )
    count = int(tables["rows"]["patients"].iloc[0])
    name_of = partial(level_in_words, problem.records)
    who = who_pays(tables["comparison"], tables["columns"], count, name_of, labels.lead)
    if not who.empty:
        tables["who"] = who
    tables["facts"] = decision_facts(tables, found, study, count)
    tables["names"] = decision_names(tables, found, study, belief, warnings, named=named)
    return {**tables, **tables_behind_options(found, tables, count)}


def _judged(
    found: Results, study: ModelledStudy | None, belief: pd.Series | None, *, named: bool
) -> dict[str, pd.DataFrame]:
    """What was compared, with all that is counted of each option; which is which; how sure each is; and one belief."""
    problem, epsilon = found.problem, found.asked.epsilon
    comparison = pd.concat([found.tables["comparison"], found.tables["one-for-all"]], ignore_index=True)
    ranked = tuple(policy.name for policy in found.asked.policies)
    columns = choose_columns(comparison, found.labels, epsilon, policies=ranked, named=ranked if named else ())
    unseen = () if study is None else _without_row(study, problem, found.labels.lead)
    kinds = ("expected", "extra")
    comparison = comparison.drop(columns=[f"{kind}_{name}" for kind in kinds for name in unseen], errors="ignore")
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
        always = (*REFERENCES, Exponential(epsilon), RandomizedResponse(epsilon))
        policies = {policy.name: policy for policy in (*always, *found.asked.policies)}
        spans = belief_spans(problem, columns, policies, belief)
        tables["beliefs"] = spans.assign(before=float(belief["before"]))
    return tables


def _without_row(study: ModelledStudy, problem: DecisionProblem, lead: str | None) -> list[str]:
    """The outcomes that get no row: without a weight, or a sum of others that have one."""
    weights = {COSTS: 1.0, **study.weights}
    single = problem.outcomes.repeated
    summed = isinstance(study, ScenarioStudy) and any(
        weights.get(name) and problem.outcomes[name].any() for name in single
    )
    idle = [name for name in single if not weights.get(name)]
    return [name for name in (*idle, *([SYMPTOMS] if summed else [])) if name != lead]


def belief_spans(
    problem: DecisionProblem, columns: pd.DataFrame, policies: Mapping[str, Policy], belief: pd.Series
) -> pd.DataFrame:
    """policy, epsilon, low, high: the ends of one belief after the treatment of each option is seen.

    Parameters
    ----------
    columns : DataFrame
        From `choose_columns`: the policies, at which epsilons.
    policies : mapping of str to Policy
        Of these, by name; one treatment for all needs none.
    belief : Series
        A row of `hidden_beliefs`. Of those who agree in what is public it is the class in which it moves most.
    """
    jobs: list[tuple[str, Policy]] = []
    for name in dict.fromkeys([*columns["policy"], *columns["published"]]):
        if name.startswith(FOR_ALL):
            jobs.append((name, BestFixed(action=problem.actions.index(name.removeprefix(FOR_ALL)))))
        else:
            epsilons = columns.loc[(columns["policy"] == name) | (columns["published"] == name), "epsilon"].unique()
            jobs += [(name, policy) for policy in at_each(policies[name], epsilons)]
    believed = patients_of_belief(problem, belief)

    def span(job: tuple[str, Policy]) -> dict[str, float]:
        """The belief in the level after each treatment that is given to some of these patients."""
        on = evaluated_on(job[1], problem)
        row, table = rows_on(on, problem), job[1].probabilities(on)
        everyone, leveled = (np.bincount(row, patients, on.n_records) for patients in believed)
        given = everyone @ table
        happens = given > NEGLIGIBLE * everyone.sum()
        after = (leveled @ table)[happens] / given[happens]
        return {"low": float(after.min()), "high": float(after.max())}

    rows = [
        {"policy": name, "epsilon": epsilon, **ends}
        for (name, policy), ends in evaluate_each(jobs, span).items()
        for epsilon in ([policy.epsilon] if policy.uses_epsilon else columns["epsilon"].unique())
    ]
    return pd.DataFrame(rows)
