"""What the words about a decision name: single numbers, as cells, and names, each a text by its key."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from policies.adjacency import OneFeature, Sensitive
from policies.problem import DecisionProblem
from policies.randomized_response import RandomizedResponse
from policysim.decision.behind_options import TIMES
from policysim.decision.redraws import SPREAD
from policysim.decision.results import Results
from policysim.decision.scenario_outcomes import without_effect
from policysim.numbers import NEGLIGIBLE
from policysim.study.cells import as_cells
from policysim.study.certainty import BETTER, EQUAL, NOT_BETTER, UNTOLD, lead_beyond, safest_option, verdict_on
from policysim.study.declared import ModelledStudy, ScenarioStudy
from policysim.study.labels import Labels, counted_illustrative, level_in_words, listed
from policysim.study.options_table import BELIEF, ONE, PRIVATE, TEXTBOOK, fitted_odds, nobody_pays
from policysim.words import ALL, KEEP, capital, in_a_row

# Whether it is certain that a private choice is better than one for all, by the verdict.
SURE_WORDS = {BETTER: "Yes", NOT_BETTER: "Yes, it is not", EQUAL: "Yes, they are equal", UNTOLD: "No"}
# Of whoever sees the treatment.
LEARNS = {
    "fully": "an observer learns nothing",
    "partly": "an observer learns a little",
    "no": "an observer may learn all",
}
# Patients whose description is longer are not named.
MOST_AMONG = 30
AMONG_ALIKE = " among some who are alike in what is public"


def decision_facts(
    tables: Mapping[str, pd.DataFrame], found: Results, study: ModelledStudy | None, count: int
) -> pd.DataFrame:
    """Single numbers that words need, as cells; what there is none of has no cell. Counted are so many patients."""
    asked, even = found.asked, found.tables["break-even"]
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
    illustrative, total = counted_illustrative(study)
    single: list[tuple[str, float, str]] = [
        ("draws", int(tables["certainty"]["draws"].max()), "plain"),
        ("lead weighs", asked.lead_weight, "plain"),
        # Beyond that weight one treatment for all is better.
        ("most the lead may weigh", even["weight"].iloc[0] if asked.lead_weight and len(even) else 0.0, "down 3"),
        ("illustrative", illustrative, "plain"),
        ("numbers", total if illustrative else 0, "plain"),
    ]
    if "beliefs" in tables:
        style = tables["options"].loc[tables["options"]["row"] == BELIEF, "format"].iloc[0]
        single.append(("before", float(tables["beliefs"]["before"].iloc[0]), style))
    if found.redraws is not None:
        single += [(f"drawn {way}", drawn, "plain") for way, drawn in found.redraws.drawn.items()]
        single.append(("spread", SPREAD, "plain"))
    rows += [(name, math.nan, number, style) for name, number, style in single if number]
    facts = pd.DataFrame(rows, columns=["row", "epsilon", "value", "format"])
    span = facts["value"].where(facts["row"] == "before")
    return as_cells(facts.assign(low=span, high=span))


def decision_names(
    tables: Mapping[str, pd.DataFrame],
    found: Results,
    study: ModelledStudy | None,
    belief: pd.Series | None,
    warnings: Sequence[str],
    *,
    named: bool,
) -> pd.DataFrame:
    """What words name, and what is said first; whether its policies were asked for by name, each to have a column."""
    problem, labels, columns = found.problem, found.labels, tables["columns"]
    stated = columns[columns["stated"]].set_index("option")
    chosen, one = str(stated.loc[PRIVATE, "policy"]), str(stated.loc[ONE, "title"])
    names = {
        "name": capital(labels.name.replace("-", " ").replace("_", " ")),
        "hidden": _hidden(problem, labels),
        "one": one,
        "sure": SURE_WORDS[verdict_on(chosen, tables["certainty"])],
        "untold": f"{_without_lead(problem, labels)}; with {one}, an observer learns nothing.",
        "lead": labels.lead_title,
        "one of lead": labels.one_of_lead,
        **{f"treatment {action}": title for action, title in labels.actions.items()},
        "method": f"Hidden: {labels.hidden}. From: {labels.hidden_from}. Assumed public: {labels.public}.",
        "idle": "" if study is None else " ".join(without_effect(study, problem)),
        "seen": found.asked.seen,
        **{f"warning {place}": text for place, text in enumerate(warnings)},
        **(_where_it_fails(study, found, chosen) if isinstance(study, ScenarioStudy) else {}),
    }
    if named:
        asked = [policy.name for policy in found.asked.policies]
        shown = set(stated["policy"].drop(TEXTBOOK, errors="ignore"))
        names |= {f"no column {name}": name for name in asked if name not in shown}
    if TEXTBOOK in stated.index:
        names["fitted odds"] = fitted_odds(problem)
    if labels.disclaimer:
        names["model"] = labels.disclaimer
    safest = safest_option(tables)
    if safest:
        title, learns = str(stated.loc[safest, "title"]), LEARNS[str(stated.loc[safest, "hides"])]
        names |= {
            "safest option": safest,
            "safest": capital(title, [f"{other} for all" for other in labels.actions.values()]),
            "fewest": _fewest(tables, safest, stated["title"], labels.lead_title),
            "safest hides": learns,
            "untold": f"As stated {title}, but that is not certain; {learns}.",
        }
    if belief is not None:
        among = f" among “{belief['among']}”" if len(belief["among"]) <= MOST_AMONG else AMONG_ALIKE
        among = among if belief["among"] else ""
        if isinstance(problem.adjacency, OneFeature):
            # What epsilon bounds there is what somebody learns who knows every other feature.
            among = " of somebody who knows only the prior, which ε does not bound,"
        names |= {"belief": level_in_words(problem.records, belief["feature"], belief["level"]), "among": among}
    names["paid"] = labels.lead_title or "utility lost"
    does = f"has more {labels.lead_title}" if labels.lead_title else "loses more utility"
    names["unpaid"] = nobody_pays(found.tables["comparison"], does)
    return pd.DataFrame(names.items(), columns=["key", "text"])


def _without_lead(problem: DecisionProblem, labels: Labels) -> str:
    """Why no option is the safest."""
    return "No outcome leads" if problem.lead is None else f"There are no {labels.outcomes[problem.lead]}"


def _fewest(tables: Mapping[str, pd.DataFrame], safest: str, titles: pd.Series, lead: str) -> str:
    """How much of the lead, by its title, the safest option has: what is as safe is called so."""
    beyond = lead_beyond(tables, safest)
    if (beyond < 0).any():
        return f"fewest {lead} of all that hide in the redraws, though not as stated"
    if (beyond == 0).all():
        return f"as many {lead} as with all else that hides"
    equal = [titles[option].removesuffix("*") for option in beyond.index[beyond == 0]]
    also = f", as many with {in_a_row(equal, 'and')}" if equal else ""
    return f"fewest {lead} of all that hide{also}"


def _where_it_fails(study: ScenarioStudy, found: Results, chosen: str) -> dict[str, str]:
    """How often more than assumed a condition makes the policy worse than one treatment for all, and which it is."""
    prevalence = found.tables["prevalence"]
    worse = (prevalence["policy"] == chosen) & (prevalence["benefit_kept"] < -NEGLIGIBLE)
    failing = prevalence.loc[worse & (prevalence["factor"] > 1), "factor"]
    if failing.empty:
        return {}
    acute, records = study.scenario.death.acute.items(), found.problem.records
    words = [level_in_words(records, name, str(level)) for name, levels in acute for level in levels]
    return {"prevalent": f"“{', '.join(words)}”", "times": TIMES[failing.min()]}


def _hidden(problem: DecisionProblem, labels: Labels) -> str:
    """What is hidden, in a few words."""
    if isinstance(problem.adjacency, OneFeature):
        return "each feature of the patient"
    if isinstance(problem.adjacency, Sensitive):
        return listed(labels.hidden_features)
    return "the patient's record"
