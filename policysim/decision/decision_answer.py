"""The answer to one decision, as tables: of a scenario, or of one's own problem. What is printed is looked up there.

The tables of cells (row, option, epsilon, value, low, high, format) are "options", "differences", "who", "best-for-all"
and "facts"; "columns" and "rows" give their order, "certainty" the verdicts, and "names" what has words and no number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from envs.scenario import DEATH, SYMPTOMS
from policies.adjacency import OneFeature, Sensitive, public_classes
from policies.arrays import FloatArray
from policies.distinct import distinct_rows
from policies.exponential import Exponential
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.randomized_response import RandomizedResponse
from policies.reference import BestFixed
from policysim.decision.behind_options import (
    TIMES,
    method_table,
    observer_table,
    policies_table,
    prevalences_table,
    prices_table,
    redrawn_table,
    ways_table,
    where_it_fails,
)
from policysim.decision.beliefs import Beliefs
from policysim.decision.redraws import SPREAD
from policysim.decision.results import Asked, Results
from policysim.decision.scenario_outcomes import without_effect
from policysim.question.formats import NEGLIGIBLE, digits_of, enough
from policysim.question.words import ALL, KEEP, capital
from policysim.study.basis import counted_illustrative, listed
from policysim.study.cells import COLUMNS
from policysim.study.certainty import (
    BETTER,
    EQUAL,
    NOT_BETTER,
    UNTOLD,
    as_stated,
    best_for_all,
    certainty,
    safest_option,
)
from policysim.study.declared import ModelledStudy, ScenarioStudy
from policysim.study.gain import Gain
from policysim.study.labels import Labels, level_in_words
from policysim.study.options_table import DEATHS, FOR_ALL, LOSS, ONE, PRIVATE, choose_columns, options, who_pays
from policysim.study.sweep import N_THREADS, REFERENCES, at, evaluated_on

COSTS = "costs"
# Whether it is certain that a private choice is better than one for all, by the verdict.
SURE_WORDS = {BETTER: "Yes", NOT_BETTER: "Yes, it is not", EQUAL: "Yes, they are equal", UNTOLD: "No"}
# Of whoever sees the treatment.
LEARNS = {
    "fully": "an observer learns nothing",
    "partly": "an observer learns a little",
    "no": "an observer may learn all",
}
# Digits of an epsilon that is printed.
MOST_DIGITS = 6
# Patients whose description is longer are not named.
MOST_AMONG = 30
# A belief that moves by less is not said.
LEAST_CHANGE = 1e-3


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
    found = _with_deaths_that_happen(found)
    problem = found.problem
    tables = _judged(found, study, named=named)
    tables["options"], tables["rows"], tables["differences"] = options(
        tables["comparison"],
        tables["columns"],
        replace(found.labels, outcomes={**found.labels.outcomes, COSTS: "units of cost"}),
        found.asked.epsilon,
        certainty=tables["certainty"],
        best_for_all=_best_in(tables, problem),
        beliefs=tables.get("beliefs"),
        weights=None if study is None else _weights(study),
    )
    count = int(tables["rows"]["patients"].iloc[0])
    who = who_pays(tables["comparison"], tables["columns"], count, partial(level_in_words, problem.records))
    if not who.empty:
        tables["who"] = who
    columns = tables["columns"]
    chosen = str(columns.loc[columns["stated"] & (columns["option"] == PRIVATE), "policy"].iloc[0])
    factor, weight = where_it_fails(found, chosen)
    tables["facts"] = _facts(tables, found, study, count, weight)
    names = {f"warning {place}": text for place, text in enumerate(warnings)}
    if study is not None:
        names["idle"] = " ".join(without_effect(study, problem))
        if isinstance(study, ScenarioStudy) and factor in TIMES:
            acute = study.scenario.death.acute.items()
            words = [level_in_words(problem.records, name, str(level)) for name, levels in acute for level in levels]
            names |= {"prevalent": f"“{', '.join(words)}”", "times": TIMES[factor]}
    tables["names"] = _names(tables, found, _strongest(found), names)
    return {**tables, **_evidence(found, tables, count)}


def _best_in(tables: Mapping[str, pd.DataFrame], problem: DecisionProblem) -> float:
    """In how many redraws the treatment that is best for all, as stated, is so; NaN where nothing was redrawn."""
    if "best-for-all" not in tables:
        return math.nan
    counts = tables["best-for-all"].set_index("row")["value"]
    return float(counts[problem.actions[int(np.argmax(problem.fixed_values))]])


def _judged(found: Results, study: ModelledStudy | None, *, named: bool) -> dict[str, pd.DataFrame]:
    """What was compared, with all that is counted of each option; which is which; how sure each is; and one belief."""
    problem, epsilon = found.problem, found.asked.epsilon
    comparison = pd.concat([found.tables["comparison"], _for_all(problem, found.tables["comparison"])])
    ranked = tuple(policy.name for policy in found.asked.policies)
    columns = choose_columns(comparison, found.labels, epsilon, policies=ranked, named=ranked if named else ())
    always = (*REFERENCES, Exponential(epsilon), RandomizedResponse(epsilon))
    policies = {policy.name: policy for policy in (*always, *found.asked.policies)}
    belief, grids = _strongest(found), {} if study is None else _outcomes(study, problem)
    details = _details(problem, columns, policies, grids, belief)
    # What is the sum of others is none of its own beside them.
    summed = isinstance(study, ScenarioStudy) and bool(grids)
    sums = [f"{kind}_{SYMPTOMS}" for kind in ("expected", "extra") if summed]
    comparison = comparison.drop(columns=sums, errors="ignore").merge(
        details[["policy", "epsilon", *(f"expected_{name}" for name in grids)]].assign(group=ALL),
        on=["policy", "epsilon", "group"],
        how="left",
    )
    if not Gain.of(problem).has_shares:
        # Of next to nothing, shares say nothing.
        comparison = comparison.assign(benefit_kept=math.nan)
    tables: dict[str, pd.DataFrame] = {"comparison": comparison, "columns": columns}
    if found.redraws is not None:
        tables["certainty"] = certainty(found.redraws.options, BestFixed.name)
        tables["best-for-all"] = best_for_all(found.redraws.options)
    else:
        tables["certainty"] = as_stated(comparison, epsilon)
    if belief is not None:
        tables["beliefs"] = details[["policy", "epsilon", "low", "high"]].assign(before=float(belief["before"]))
    return tables


def _with_deaths_that_happen(found: Results) -> Results:
    """The same, without deaths where nobody can die."""
    if found.problem.outcomes.get(DEATHS, np.ones(1)).any():
        return found
    columns = [f"{kind}_{DEATHS}" for kind in ("expected", "extra")]
    comparison = found.tables["comparison"].drop(columns=columns, errors="ignore")
    redraws = found.redraws and replace(found.redraws, options=found.redraws.options.drop(columns=columns[:1]))
    return replace(found, tables={**found.tables, "comparison": comparison}, redraws=redraws)


def _evidence(found: Results, tables: Mapping[str, pd.DataFrame], count: int) -> dict[str, pd.DataFrame]:
    """The tables behind the options; those that say something."""
    epsilon = found.asked.epsilon
    shares = bool(tables["rows"]["section"].eq("benefit").any())
    places = int(tables["options"].loc[tables["options"]["row"] == LOSS, "format"].iloc[0].split()[1])
    made = {
        "policies": policies_table(found, count, places, shares=shares),
        "method": method_table(found),
        "ways": ways_table(found.tables["publishing"], epsilon, count, shares=shares),
    }
    if "price-list" in found.tables:
        made["prices"] = prices_table(found.tables["price-list"], found, count, places, shares=shares)
    if "beliefs" in found.tables:
        made["observer"] = observer_table(found.tables["beliefs"], found.problem, epsilon)
    if found.redraws is not None:
        made["redrawn"] = redrawn_table(tables["certainty"], tables["best-for-all"], found.labels, epsilon)
    if shares and "prevalence" in found.tables:
        made["prevalences"] = prevalences_table(found.tables["prevalence"], epsilon)
    return {name: table for name, table in made.items() if not table.empty}


def printable(asked: Asked) -> Asked:
    """The same at epsilons that are printed whole: rounded up where they have too many digits."""

    def shown(epsilon: float) -> float:
        whole = not 0 < epsilon < math.inf or digits_of(epsilon) <= MOST_DIGITS
        return epsilon if whole else enough(epsilon, MOST_DIGITS)

    epsilons = sorted({shown(each) for each in (asked.epsilon, *asked.epsilons)})
    return replace(asked, epsilon=shown(asked.epsilon), epsilons=tuple(epsilons))


def _for_all(problem: DecisionProblem, comparison: pd.DataFrame) -> pd.DataFrame:
    """Each treatment for all as rows of the comparison: it learns nothing, and reveals nothing."""
    gain = Gain.of(problem)
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


def _weights(study: ModelledStudy) -> dict[str, float]:
    """What one of each outcome costs in utility."""
    return {**study.weights, DEATHS: study.death_weight, COSTS: 1.0}


def _outcomes(study: ModelledStudy, problem: DecisionProblem) -> dict[str, list[FloatArray]]:
    """What else a model counts: outcomes that weigh something, and costs; for each action, over its features."""
    model, counted = study.model, {DEATH, *problem.outcomes}
    weighed = [name for name, weight in study.weights.items() if weight and name not in counted]
    found = {name: [model.chance(name, action) for action in range(problem.n_actions)] for name in weighed}
    costs = model.costs(study.utility.costs)
    found |= {COSTS: costs} if any(np.any(cost) for cost in costs) else {}
    return {name: [np.broadcast_to(grid, study.space.shape).ravel() for grid in each] for name, each in found.items()}


def _strongest(found: Results) -> pd.Series | None:
    """What a private choice gives away most, a row of `hidden_beliefs`; None where it says nothing of a feature."""
    beliefs = found.tables.get("beliefs")
    if beliefs is None or beliefs.empty:
        return None
    strongest = Beliefs.of(beliefs, found.problem).strongest
    if strongest.change < LEAST_CHANGE:
        return None
    return beliefs[(beliefs["feature"] == strongest.feature) & (beliefs["level"] == strongest.level)].iloc[0]


def _details(
    problem: DecisionProblem,
    columns: pd.DataFrame,
    policies: Mapping[str, Policy],
    outcomes: Mapping[str, list[FloatArray]],
    belief: pd.Series | None,
) -> pd.DataFrame:
    """policy, epsilon, expected_OUTCOME, low, high: what the options give, and one belief after they are seen.

    Parameters
    ----------
    outcomes : mapping of str to list of array, (n_records,)
        Of each action.
    belief : Series or None
        A row of `hidden_beliefs`. Of those who agree in what is public it is the class in which it moves most.
    """
    names = dict.fromkeys([*columns["policy"], *columns["published"]])
    jobs: list[tuple[str, Policy]] = []
    for name in names:
        at_epsilons = columns.loc[(columns["policy"] == name) | (columns["published"] == name), "epsilon"].unique()
        if name.startswith(FOR_ALL):
            jobs.append((name, BestFixed(action=problem.actions.index(name.removeprefix(FOR_ALL)))))
        else:
            jobs += [(name, policy) for policy in dict.fromkeys(at(policies[name], each) for each in at_epsilons)]
    patients, leveled = (None, None) if belief is None else _of_belief(problem, belief)
    weights: dict[DecisionProblem, _Weights] = {}
    for on in {evaluated_on(policy, problem) for _, policy in jobs}:
        summed = [[_summed(problem, on, problem.prior * each) for each in listed] for listed in outcomes.values()]
        weights[on] = _Weights(
            list(outcomes),
            np.array(summed).reshape(len(summed), on.n_actions * on.n_records),
            None if patients is None else _summed(problem, on, patients),
            None if leveled is None else _summed(problem, on, leveled),
        )

    def look(job: tuple[str, Policy]) -> dict[str, float]:
        on = evaluated_on(job[1], problem)
        return weights[on].of(job[1].probabilities(on))

    with ThreadPoolExecutor(N_THREADS) as pool:
        found = dict(zip(jobs, pool.map(look, jobs), strict=True))
    rows = [
        {"policy": name, "epsilon": epsilon, **numbers}
        for (name, policy), numbers in found.items()
        for epsilon in ([policy.epsilon] if policy.uses_epsilon else columns["epsilon"].unique())
    ]
    return pd.DataFrame(rows)


class _Weights(NamedTuple):
    """Outcomes times who they happen to, (o, k m); and who are in a class, and who there have a level, (m,)."""

    names: list[str]
    outcomes: FloatArray
    patients: FloatArray | None
    leveled: FloatArray | None

    def of(self, table: FloatArray) -> dict[str, float]:
        """What a table of probabilities, (m, k), gives, and the least and the largest belief after a treatment."""
        means = self.outcomes @ np.ravel(table.T)
        found = {f"expected_{name}": mean for name, mean in zip(self.names, means.tolist(), strict=True)}
        if self.patients is not None and self.leveled is not None:
            given = self.patients @ table
            told = given > NEGLIGIBLE * self.patients.sum()
            after = (self.leveled @ table)[told] / given[told]
            found |= {"low": float(after.min()), "high": float(after.max())}
        return found


def _summed(problem: DecisionProblem, on: DecisionProblem, values: FloatArray) -> FloatArray:
    """Numbers of the records, (n,), summed over those that have one row in another problem, (m,)."""
    found = None if on is problem else distinct_rows(problem)
    return values if found is None else np.bincount(found.row, values, on.n_records).astype(np.float64, copy=False)


def _of_belief(problem: DecisionProblem, belief: pd.Series) -> tuple[FloatArray, FloatArray]:
    """The prior of the class of patients that a belief is about, and of those among them who have the level, (n,)."""
    codes, levels = problem.records.groups(belief["feature"])
    classes = public_classes(problem.adjacency, problem.n_records)
    leveled = problem.prior * (codes == levels.index(belief["level"]))
    shares = np.bincount(classes, problem.prior)
    before = np.bincount(classes, leveled) / np.where(shares > 0, shares, math.nan)
    mine = classes == np.nanargmin(np.abs(before - belief["before"]) + np.abs(shares - belief["share"]))
    return problem.prior * mine, leveled * mine


def _facts(
    tables: Mapping[str, pd.DataFrame], found: Results, study: ModelledStudy | None, count: int, weight: float
) -> pd.DataFrame:
    """Single numbers that words need, as cells; `weight` is the most that a death may weigh, NaN for any."""
    asked = found.asked
    rows: list[tuple[str, float, float, str]] = [
        ("epsilon", math.nan, asked.epsilon, "plain"),
        ("patients", math.nan, count, "plain"),
        ("hundred", math.nan, 100, "plain"),
        ("most kept", math.nan, KEEP, "percent"),
        ("published", math.nan, asked.published_patients, "counted 1 0"),
        *(("at", epsilon, epsilon, "plain") for epsilon in asked.epsilons),
    ]
    compared = tables["comparison"]
    copies = compared[compared["policy"].eq(RandomizedResponse.name) & compared["group"].eq(ALL)]
    rows += [
        ("copy true", each, rate, "percent")
        for each, rate in zip(copies["epsilon"], copies["best_action_rate"], strict=True)
    ]
    draws = int(tables["certainty"]["draws"].max())
    if draws:
        rows.append(("draws", math.nan, draws, "plain"))
    if asked.death_weight:
        rows.append(("a death weighs", math.nan, asked.death_weight, "plain"))
    if asked.death_weight and not math.isnan(weight):
        rows.append(("most a death may weigh", math.nan, weight, "down 3"))
    if study is not None:
        illustrative, total = counted_illustrative(study)
        if illustrative:
            rows += [("illustrative", math.nan, illustrative, "plain"), ("numbers", math.nan, total, "plain")]
    if "beliefs" in tables:
        before = float(tables["beliefs"]["before"].iloc[0])
        rows.append(("before", math.nan, before, "span"))
    if found.redraws is not None:
        numbers = {**{f"drawn {way}": count for way, count in found.redraws.drawn.items()}, "spread": SPREAD}
        rows += [(name, math.nan, number, "plain") for name, number in numbers.items() if number]
    facts = pd.DataFrame(rows, columns=["row", "epsilon", "value", "format"])
    spans = facts["format"] == "span"
    style = tables["options"].query("row == 'belief'")["format"]
    return facts.assign(
        option="",
        low=facts["value"].where(spans),
        high=facts["value"].where(spans),
        format=facts["format"].mask(spans, style.iloc[0] if len(style) else "span 0"),
    )[list(COLUMNS)]


def _names(
    tables: Mapping[str, pd.DataFrame], found: Results, belief: pd.Series | None, known: Mapping[str, str]
) -> pd.DataFrame:
    """What words name: each a text by its key."""
    problem, labels, columns, judged = found.problem, found.labels, tables["columns"], tables["certainty"]
    stated = columns[columns["stated"]].set_index("option")
    names_of = {option: str(title) for option, title in stated["title"].items()}
    chosen = judged[(judged["measure"] == "value") & (judged["policy"] == stated.loc[PRIVATE, "policy"])]
    verdict = str(chosen["verdict"].iloc[0])
    names = {
        "name": capital(labels.name.replace("-", " ").replace("_", " ")),
        "hidden": _hidden(problem, labels),
        "one": stated.loc[ONE, "title"],
        "sure": SURE_WORDS[verdict],
        "untold": f"Deaths are not counted; with {names_of[ONE]}, an observer learns nothing.",
        **{f"treatment {action}": title for action, title in labels.actions.items()},
        "method": f"Hidden: {labels.hidden}. From: {labels.hidden_from}. Assumed public: {labels.public}.",
        "idle": "",
        "seen": found.asked.seen,
        **known,
    }
    if labels.disclaimer:
        names["model"] = labels.disclaimer
    safest = safest_option(tables)
    if safest:
        names |= {
            "safest option": safest,
            "safest": capital(str(stated.loc[safest, "title"])),
            "safest hides": (learns := LEARNS[str(stated.loc[safest, "hides"])]),
            "untold": f"As stated {names_of[safest]}, but that is not certain; {learns}.",
        }
    if belief is not None:
        among = f" among “{belief['among']}”" if 0 < len(belief["among"]) <= MOST_AMONG else ""
        if isinstance(problem.adjacency, OneFeature):
            # What epsilon bounds there is what somebody learns who knows every other feature.
            among = " of somebody who knows only the prior, which ε does not bound,"
        names |= {"belief": level_in_words(problem.records, belief["feature"], belief["level"]), "among": among}
    if "who" in tables:
        names["paid"] = "deaths" if DEATHS in set(tables["rows"]["row"]) else "utility lost"
    return pd.DataFrame(names.items(), columns=["key", "text"])


def _hidden(problem: DecisionProblem, labels: Labels) -> str:
    """What is hidden, in a few words."""
    if isinstance(problem.adjacency, OneFeature):
        return "each feature of the patient"
    if isinstance(problem.adjacency, Sensitive):
        return listed(labels.hidden_features)
    return "the patient's record"
