"""The answer to one decision, as tables: of a scenario, or of a problem of one's own. What is printed is looked up there.

The tables of cells (row, option, epsilon, value, low, high, format) are "options", "differences", "who", "best for all"
and "facts"; "columns" and "rows" give their order, "certainty" the verdicts, and "names" what has words and no number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from envs.scenario import DEATH, ILLUSTRATIVE, SYMPTOMS
from envs.treatment_response import ResponseModel
from policies.adjacency import OneFeature, Sensitive, public_classes
from policies.arrays import FloatArray
from policies.distinct import distinct_rows
from policies.exponential import Exponential
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.randomized_response import RandomizedResponse
from policies.reference import BestFixed, Greedy
from policysim.decision.beliefs import Beliefs, hidden_beliefs
from policysim.decision.comparison import compare_problem
from policysim.decision.results import Asked
from policysim.decision.robustness import redrawn
from policysim.question.formats import NEGLIGIBLE, digits_of, enough
from policysim.question.protocol import SILENT, Progress
from policysim.question.words import ALL
from policysim.study.basis import listed, numbers_by_part
from policysim.study.cells import COLUMNS
from policysim.study.certainty import best_for_all, certainty, safest_option
from policysim.study.declared import ScenarioStudy
from policysim.study.labels import Labels, level_in_words
from policysim.study.options_table import DEATHS, FOR_ALL, LOSS, ONE, PRIVATE, choose_columns, options
from policysim.study.sweep import REFERENCES, at, evaluated_on

COSTS = "costs"
# Digits of an epsilon that is printed.
MOST_DIGITS = 6
# A belief that moves by less is not said.
LEAST_CHANGE = 1e-3


def answer_tables(
    problem: DecisionProblem,
    labels: Labels,
    asked: Asked,
    *,
    study: ScenarioStudy | None = None,
    redraws: bool = True,
    named: bool = False,
    progress: Progress = SILENT,
) -> dict[str, pd.DataFrame]:
    """Compare, redraw, rank, and look at an observer and at groups.

    Parameters
    ----------
    problem : DecisionProblem
        What is decided.
    labels : Labels
        What its parts are called.
    asked : Asked
        Policies, epsilons and groups. Every epsilon is first rounded up to six digits, as it is printed.
    study : ScenarioStudy, optional
        From which the problem was made: its single outcomes, costs and redraws are then looked at, too.
    redraws : bool, optional
        Whether to redraw the uncertain numbers of a study.
    named : bool, optional
        Whether the policies were asked for by name, and get columns of their own.
    progress : Progress, optional
        Told of each evaluation and redraw.
    """
    asked = _printable(asked)
    epsilon = asked.epsilon
    added = (*REFERENCES, Exponential(epsilon), RandomizedResponse(epsilon))
    policies = {policy.name: policy for policy in (*added, *asked.policies)}
    comparison = compare_problem(
        problem, policies=list(policies.values()), epsilons=asked.epsilons, by=asked.by, advance=progress
    )
    # Where the optimum is only bounded, its bounds have no numbers of their own.
    comparison = pd.concat([comparison, _for_all(problem, comparison)], ignore_index=True)
    names = tuple(policy.name for policy in asked.policies)
    columns = choose_columns(comparison, labels, epsilon, policies=names, named=names if named else ())

    if study is not None:
        comparison, labels = _with_outcomes(study, problem, comparison, columns, policies, labels)
    stated = comparison[(comparison["group"] == ALL) & (comparison["epsilon"] == epsilon)]
    tables: dict[str, pd.DataFrame] = {"comparison": comparison, "columns": columns}
    if study is not None and redraws:
        drawn = redrawn(study, problem, [at(each, epsilon) for each in policies.values()], progress).options
        tables["certainty"] = certainty(drawn, BestFixed.name)
        tables["best for all"] = best_for_all(drawn)
    else:
        alone = stated[stated["value"].notna()].rename(columns={"policy": "option"}).assign(draw=0)
        tables["certainty"] = certainty(alone, BestFixed.name, stated=True)
    belief = _strongest(problem, labels, columns, policies)
    if belief is not None:
        tables["beliefs"] = _beliefs(problem, belief, columns, policies)
    tables["options"], tables["rows"], tables["differences"] = options(
        comparison,
        columns,
        labels,
        epsilon,
        certainty=tables["certainty"],
        beliefs=tables.get("beliefs"),
        weights=None if study is None else _weights(study),
    )
    count = int(tables["rows"]["patients"].iloc[0])
    who = _who_pays(comparison, columns, count)
    if who is not None:
        tables["who"] = who.drop(columns=["group", "level"])
    tables["facts"] = _facts(tables, asked, study, count)
    tables["names"] = _names(tables, problem, labels, belief, who)
    return tables


def _printable(asked: Asked) -> Asked:
    """The same at epsilons that are printed whole: rounded up where they have too many digits."""

    def shown(epsilon: float) -> float:
        whole = not 0 < epsilon < math.inf or digits_of(epsilon) <= MOST_DIGITS
        return epsilon if whole else enough(epsilon, MOST_DIGITS)

    epsilons = sorted({shown(each) for each in (asked.epsilon, *asked.epsilons)})
    return replace(asked, epsilon=shown(asked.epsilon), epsilons=tuple(epsilons))


def _for_all(problem: DecisionProblem, comparison: pd.DataFrame) -> pd.DataFrame:
    """Each treatment for all as rows of the comparison: it learns nothing, and reveals nothing."""
    best = float(problem.prior @ problem.utilities.max(axis=1))
    expected = {f"expected_{name}": problem.for_all(table) for name, table in problem.outcomes.items()}
    rows = [
        {
            "policy": f"{FOR_ALL}{action}",
            "epsilon": epsilon,
            "group": ALL,
            "level": ALL,
            "share": 1.0,
            "value": value,
            "loss": best - value,
            "epsilon_spent": 0.0,
            "guarantee": 0.0,
            "guess_rate": 0.5,
            **{name: means[place] for name, means in expected.items()},
        }
        for place, (action, value) in enumerate(zip(problem.actions, problem.fixed_values.tolist(), strict=True))
        for epsilon in comparison["epsilon"].unique()
    ]
    return pd.DataFrame(rows)


def _weights(study: ScenarioStudy) -> dict[str, float]:
    """What one of each outcome costs in utility."""
    return {**study.utility.weights, DEATHS: study.utility.weights.get(DEATH, 0.0), COSTS: 1.0}


def _tables(
    problem: DecisionProblem, names: pd.Series, epsilons: pd.Series, policies: Mapping[str, Policy]
) -> Iterator[tuple[str, float, DecisionProblem, FloatArray]]:
    """Each policy at each epsilon that is asked for: the problem that it is computed on, and its probabilities there."""
    for name, epsilon in dict.fromkeys(zip(names, epsilons, strict=True)):
        if name.startswith(FOR_ALL):
            policy: Policy = BestFixed(action=problem.actions.index(name.removeprefix(FOR_ALL)))
        else:
            policy = at(policies[name], epsilon)
        on = evaluated_on(policy, problem)
        yield name, epsilon, on, policy.probabilities(on)


def _summed(problem: DecisionProblem, on: DecisionProblem, values: FloatArray) -> FloatArray:
    """Numbers of the records, (n,), summed over those that have one row in another problem, (m,)."""
    found = None if on is problem else distinct_rows(problem)
    return values if found is None else np.bincount(found.row, values, on.n_records)


def _with_outcomes(
    study: ScenarioStudy,
    problem: DecisionProblem,
    comparison: pd.DataFrame,
    columns: pd.DataFrame,
    policies: Mapping[str, Policy],
    labels: Labels,
) -> tuple[pd.DataFrame, Labels]:
    """The comparison and labels with each outcome of the scenario that weighs something, and costs, of the options."""
    response, scenario = ResponseModel(study.scenario), study.scenario
    outcomes = [name for name in scenario.outcomes if name != DEATH and name not in problem.outcomes]
    weighed = [name for name in outcomes if study.utility.weights.get(name)]
    grids = {name: [response.chance(name, action) for action in range(problem.n_actions)] for name in weighed}
    costs = response.costs(study.utility.costs)
    grids |= {COSTS: costs} if any(np.any(cost) for cost in costs) else {}
    mass: dict[tuple[DecisionProblem, str], FloatArray] = {}

    def mean(name: str, on: DecisionProblem, table: FloatArray) -> float:
        if (on, name) not in mass:
            every = [np.broadcast_to(grid, scenario.space.shape).ravel() for grid in grids[name]]
            mass[on, name] = np.stack([_summed(problem, on, problem.prior * each) for each in every], axis=1)
        return float(np.einsum("na,na->", mass[on, name], table))

    rows = [
        {"policy": policy, "epsilon": epsilon, **{f"expected_{name}": mean(name, on, table) for name in grids}}
        for policy, epsilon, on, table in _tables(problem, columns["policy"], columns["epsilon"], policies)
    ]
    # What is the sum of others is none of its own beside them.
    kept = comparison.drop(columns=[f"{kind}_{SYMPTOMS}" for kind in ("expected", "extra")], errors="ignore")
    everyone = kept[kept["group"] == ALL].merge(pd.DataFrame(rows), on=["policy", "epsilon"], how="left")
    titles = {name: scenario.outcome_title(name) for name in weighed} | {COSTS: "units of cost (utility)"}
    joined = pd.concat([everyone, kept[kept["group"] != ALL]], ignore_index=True)
    return joined, replace(labels, outcomes={**labels.outcomes, **titles})


def _strongest(
    problem: DecisionProblem, labels: Labels, columns: pd.DataFrame, policies: Mapping[str, Policy]
) -> pd.Series | None:
    """What a private choice gives away most, a row of `hidden_beliefs`; None where it says nothing of a feature."""
    chosen = columns[columns["stated"] & (columns["option"] == PRIVATE)].iloc[0]
    found = hidden_beliefs(problem, at(policies[chosen["policy"]], chosen["epsilon"]), labels.hidden_features)
    if found.empty:
        return None
    strongest = Beliefs.of(found, problem).strongest
    if strongest.change < LEAST_CHANGE:
        return None
    return found[(found["feature"] == strongest.feature) & (found["level"] == strongest.level)].iloc[0]


def _beliefs(
    problem: DecisionProblem, belief: pd.Series, columns: pd.DataFrame, policies: Mapping[str, Policy]
) -> pd.DataFrame:
    """That belief after the treatments of each option that whoever sees a treatment sees, at every epsilon.

    It is that of the same patients: of those who agree in what is public, the class in which it moves most.
    """
    codes, levels = problem.records.groups(belief["feature"])
    classes = public_classes(problem.adjacency, problem.n_records)
    has_level = codes == levels.index(belief["level"])
    shares = np.bincount(classes, problem.prior)
    before = np.bincount(classes, problem.prior * has_level) / np.where(shares > 0, shares, math.nan)
    near = np.abs(before - belief["before"]) + np.abs(shares - belief["share"])
    mine = problem.prior * (classes == np.nanargmin(near))
    rows = []
    for policy, epsilon, on, table in _tables(problem, columns["published"], columns["epsilon"], policies):
        given = _summed(problem, on, mine) @ table
        told = given > NEGLIGIBLE * belief["share"]
        after = (_summed(problem, on, mine * has_level) @ table)[told] / given[told]
        rows.append((policy, epsilon, belief["before"], after.min(), after.max()))
    return pd.DataFrame(rows, columns=["policy", "epsilon", "before", "low", "high"])


def _who_pays(comparison: pd.DataFrame, columns: pd.DataFrame, count: int) -> pd.DataFrame | None:
    """The group to which a private choice costs most beyond one treatment for all: cells, and its name in each row.

    In deaths, or in utility where they are not counted; None without groups, or if none pays.
    """
    expected = f"expected_{DEATHS}"
    measure, sign = (expected, 1.0) if expected in comparison else ("value", -1.0)
    groups = comparison[(comparison["group"] == ALL) | comparison["share"].between(0, 1, inclusive="neither")]
    wide = sign * groups.pivot(index=["epsilon", "group", "level"], columns="policy", values=measure)
    shares = groups.drop_duplicates(["group", "level"]).set_index(["group", "level"])["share"]
    private = columns[columns["option"] == PRIVATE].set_index("epsilon")["policy"]
    extra = pd.concat(
        {each: wide.loc[each, policy] - wide.loc[each, BestFixed.name] for each, policy in private.items()}
    )
    epsilon = float(columns.loc[columns["stated"], "epsilon"].iloc[0])
    now = extra[epsilon].drop((ALL, ALL)).dropna()
    if now.empty or now.max() * count < 0.5:
        return None
    group, level = now.idxmax()
    share = float(shares[group, level])
    rows: list[tuple[str, str, float, float, str]] = [("share", "", math.nan, share, "percent")]
    for each in private.index:
        mine, everyone = float(extra[each, group, level]), float(extra[each, ALL, ALL])
        others = (everyone - share * mine) / (1 - share)
        others = 0.0 if abs(others) <= NEGLIGIBLE else others
        rows += [("group", PRIVATE, each, mine, f"change {count} 0"), ("others", PRIVATE, each, others, f"change {count} 0")]
    found = pd.DataFrame(rows, columns=["row", "option", "epsilon", "value", "format"])
    return found.assign(low=math.nan, high=math.nan, group=group, level=level)[[*COLUMNS, "group", "level"]]


def _facts(
    tables: Mapping[str, pd.DataFrame], asked: Asked, study: ScenarioStudy | None, count: int
) -> pd.DataFrame:
    """Single numbers that words need, as cells."""
    rows: list[tuple[str, float, float, str]] = [
        ("epsilon", math.nan, asked.epsilon, "plain"),
        ("patients", math.nan, count, "plain"),
        ("hundred", math.nan, 100, "plain"),
        ("two", math.nan, 2, "plain"),
        *(("at", epsilon, epsilon, "plain") for epsilon in asked.epsilons),
    ]
    copies = tables["comparison"].query("policy == @RandomizedResponse.name and group == @ALL")
    rows += [("copy true", each, rate, "percent") for each, rate in zip(copies["epsilon"], copies["best_action_rate"])]
    draws = int(tables["certainty"]["draws"].max())
    if draws:
        rows.append(("draws", math.nan, draws, "plain"))
    if asked.death_weight:
        rows.append(("a death weighs", math.nan, asked.death_weight, "plain"))
    if study is not None:
        parts = numbers_by_part(study.scenario).values()
        illustrative = sum(number for number, source in parts if source == ILLUSTRATIVE)
        total = sum(number for number, _ in parts)
        if illustrative:
            rows += [("illustrative", math.nan, illustrative, "plain"), ("numbers", math.nan, total, "plain")]
    if "beliefs" in tables:
        before = float(tables["beliefs"]["before"].iloc[0])
        rows.append(("before", math.nan, before, "span"))
    found = pd.DataFrame(rows, columns=["row", "epsilon", "value", "format"])
    spans = found["format"] == "span"
    style = tables["options"].query("row == 'belief'")["format"]
    return found.assign(
        option="",
        low=found["value"].where(spans),
        high=found["value"].where(spans),
        format=found["format"].mask(spans, style.iloc[0] if len(style) else "span 0"),
    )[list(COLUMNS)]


def _names(
    tables: Mapping[str, pd.DataFrame],
    problem: DecisionProblem,
    labels: Labels,
    belief: pd.Series | None,
    who: pd.DataFrame | None,
) -> pd.DataFrame:
    """What words name: each a text by its key."""
    columns, found = tables["columns"], tables["certainty"]
    stated = columns[columns["stated"]].set_index("option")
    chosen = found[(found["measure"] == "value") & (found["policy"] == stated.loc[PRIVATE, "policy"])]
    names = {
        "name": _capital(labels.name.replace("-", " ").replace("_", " ")),
        "hidden": _hidden(problem, labels),
        "one": stated.loc[ONE, "title"],
        "verdict": _capital(str(chosen["verdict"].iloc[0])),
        **{f"treatment {action}": title for action, title in labels.actions.items()},
    }
    if labels.disclaimer:
        names["model"] = labels.disclaimer
    safest = safest_option(tables)
    if safest:
        names |= {
            "safest option": safest,
            "safest": _capital(stated.loc[safest, "title"]),
            "safest hides": stated.loc[safest, "hides"],
        }
    if belief is not None:
        among = f" among “{belief['among']}”" if belief["among"] else ""
        names |= {"belief": level_in_words(problem.records, belief["feature"], belief["level"]), "among": among}
    if who is not None:
        group, level = who[["group", "level"]].iloc[0]
        paid = "deaths" if DEATHS in set(tables["rows"]["row"]) else LOSS
        names |= {"who": level_in_words(problem.records, group, level), "paid": paid}
    return pd.DataFrame(names.items(), columns=["key", "text"])


def _hidden(problem: DecisionProblem, labels: Labels) -> str:
    """What is hidden, in a few words."""
    if isinstance(problem.adjacency, OneFeature):
        return "each feature of the patient"
    if isinstance(problem.adjacency, Sensitive):
        return listed(labels.hidden_features)
    return "the patient's record"


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
