"""The page of a study of a scenario: one file, nothing fetched from anywhere.

Tables of the page: who bears the loss, what is wrong where the prevalence is, and all findings as one table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from envs.scenario import Scenario
from policies.catalogue import CATALOGUE, mechanism_words
from policies.optimal.optimum import Optimal, OptimalSafe
from policies.problem import DecisionProblem
from policies.reference import BestFixed
from policysim.decision.beliefs import belief_sentence
from policysim.decision.findings import Findings
from policysim.decision.headings import Headings
from policysim.decision.over_epsilon import flat_sentence, keep_sentences, rise_sentence
from policysim.decision.redraws import BENEFIT, KEPT, Range, Redraws, Robustness, how_drawn
from policysim.decision.results import worst_group
from policysim.decision.scenario_outcomes import EventTable
from policysim.question import formats, words
from policysim.question.first_screen import Brief
from policysim.question.words import ACHIEVABLE, ALL, KEEP, TIGHT, UNBEATABLE, attains
from policysim.study.basis import basis, hidden
from policysim.study.declared import ScenarioStudy
from policysim.study.example_patients import witness_rows
from policysim.study.slider import Slider
from policysim.study.stated_bounds import legend, marked
from policysim.study.sweep import with_references

# What rows are that are no policies.
BOUNDS = {
    ACHIEVABLE: "a value that some policy reaches",
    UNBEATABLE: "a value that no mechanism that gives what it publishes exceeds, proven",
}
THE_LIMIT = "the limit: no mechanism that gives what it publishes is worth more, proven"


def page_values(
    study: ScenarioStudy,
    problem: DecisionProblem,
    findings: Findings,
    seen: pd.DataFrame,
    *,
    slider: Slider,
    brief: Brief,
    headings: Headings,
    prices: pd.DataFrame | None,
    happened: EventTable | None = None,
) -> dict[str, Any]:
    """What the page of a comparison shows beside what all pages have.

    Parameters
    ----------
    study, problem, findings
        As in `answer_of`.
    seen : DataFrame
        The comparison, without shares that say little.
    slider : Slider
        What follows epsilon.
    brief : Brief
        The first screen.
    headings : Headings
        What the sections found.
    prices : DataFrame or None
        The price list, if it was asked for.
    happened : EventTable or None
        The events beside death, of a scenario that has some.
    """
    at_epsilon = seen[seen["epsilon"] == study.epsilon]
    overall = {str(row["policy"]): row for row in at_epsilon[at_epsilon["group"] == ALL].to_dict("records")}
    limit = "bounded" if ACHIEVABLE in overall else "unknown"
    if Optimal.name in overall:
        found = overall[Optimal.name]
        # Where there is no benefit to keep shares of, it is the loss that is proven.
        tight = attains(found["benefit_kept"], found["most_kept"]) or found["loss"] <= found["least_loss"] * (1 + TIGHT)
        limit = "exact" if tight else "found"
    searched = [epsilon for row in findings.rows for epsilon in (row.better_from, row.keeps_from)]
    signs = {
        "“–”: does not depend on ε": any(math.isnan(epsilon) for epsilon in searched),
        "“∞”: no ε is enough": math.inf in searched,
    }
    unending = "; ".join(text for text, occurs in signs.items() if occurs)
    glosses = {name: CATALOGUE[name].gloss for name in overall if name not in BOUNDS}
    if OptimalSafe.name in glosses and study.policy_words(OptimalSafe.name) != OptimalSafe.words:
        glosses[OptimalSafe.name] = "the best within the bounds of the study"
    return {
        "study": study,
        "basis": basis(study),
        "problem": problem,
        "findings": findings,
        "slider": slider,
        "overall": overall,
        "marks": {name: marked(name, findings.broken) for name in overall},
        "legend": legend(findings.broken),
        "unending": f"{unending}." if unending else "",
        "worst": next(iter(worst_group(at_epsilon, {slider.policy}).to_dict("records")), None),
        "brief": brief,
        "headings": headings,
        "count": findings.count,
        "witness": witness_rows(problem, problem.sensitivity.witness),
        "limit": limit,
        "proof": overall.get(Optimal.name, overall.get(ACHIEVABLE)),
        "unbeatable": UNBEATABLE,
        "keep": KEEP,
        "happened": happened,
        "belief": belief_sentence(findings.beliefs),
        "redrawn": "" if findings.robustness is None else how_drawn(findings.robustness),
        "left_as_stated": Redraws(study).n_left,
        "ranges": None
        if findings.robustness is None
        else redraw_ranges(findings.robustness, study.scenario, findings.count, overall),
        "enough": keep_sentences(findings, at_epsilon),
        "flat": flat_sentence(seen, findings),
        "rise": rise_sentence(seen, findings, problem.actions),
        "prices": [] if prices is None else prices.to_dict("records"),
        # What the price list says of features without effect is not said twice.
        "said_in_prices": []
        if prices is None or prices["used"].all()
        else [words.unused(prices.loc[~prices["used"].astype(bool), "hides"])],
        "method": _method(study),
        "catalogue": CATALOGUE,
        "glosses": {**glosses, **BOUNDS, **({Optimal.name: THE_LIMIT} if limit == "exact" else {})},
    }


def _method(study: ScenarioStudy) -> dict[str, str]:
    mechanisms = {}
    for name in with_references(study.policies):
        kind, own = CATALOGUE[name], study.policy_words(name)
        if not kind.uses_epsilon and kind.gloss:
            mechanisms[name] = f"{kind.gloss[0].upper()}{kind.gloss[1:]}."
        else:
            # Within bounds of the study's own, its formula is another.
            mechanisms[name] = mechanism_words(name) if own == kind.words else mechanism_words(name, own)
    return {
        "Study": f"{study.name} (SHA-256 {study.digest[:12]}…; the whole is in manifest.json), scenario "
        f"{study.scenario.name}, seed {study.seed}.",
        "Hidden": f"{hidden(study)}. From: {study.hidden_from}. Assumed public: {words.ASSUMED_PUBLIC}.",
        "Value": "The expected utility of a policy over all records, each with its probability. Loss: how far it is "
        "below that of the best treatment for each. Benefit kept: (value − that of one treatment for all) / (that of "
        "the best for each − that of one treatment for all).",
        **mechanisms,
        "ε of the curve": ", ".join(formats.plain(epsilon) for epsilon in study.epsilons),
    }


@dataclass(frozen=True)
class RangeTable:
    """Where benefit and harms lie in the redraws, as text: a column for each of them, a row for each policy.

    A cell has the number with the model as stated, and the range of 90 % of the redraws.
    """

    headings: tuple[str, ...]
    rows: list[tuple[str, list[tuple[str, str]]]]


def redraw_ranges(
    found: Robustness | None, scenario: Scenario, count: int, stated: Mapping[str, Mapping[Hashable, Any]]
) -> RangeTable | None:
    """The ranges of a `Robustness`, each after the number with the model as stated, events among `count` patients.

    `stated` has the row of the comparison of each policy. None where nothing is at stake in the redraws.
    """
    if found is None:
        return None
    fixed = float(stated[BestFixed.name]["value"])
    by_outcome: dict[str, dict[str, Range]] = {}
    for each in found.ranges:
        by_outcome.setdefault(each.outcome, {})[each.policy] = each
    headings: list[str] = []
    columns: list[dict[str, tuple[str, str]]] = []
    for outcome, ranges in by_outcome.items():
        ends = [end for each in ranges.values() for end in (each.low, each.high)]
        said: Callable[[float], str] = partial(formats.events, count=count, sign=True)
        if outcome == KEPT:
            title, said = "benefit kept", formats.percent
        elif outcome == BENEFIT:
            title, said = "utility per patient beyond one for all", formats.rounded
        elif any(ends):
            event = "deaths" if outcome == "extra_deaths" else scenario.outcome_title(outcome.removeprefix("extra_"))
            title = f"extra {event} per {count:,}"
        else:
            continue
        now = {
            name: float(stated[name]["value"]) - fixed if outcome == BENEFIT else float(stated[name][outcome])
            for name in found.ranking
        }
        headings.append(title)
        columns.append(
            {name: (said(now[name]), f"{said(each.low)} to {said(each.high)}") for name, each in ranges.items()}
        )
    rows = [(name, [column[name] for column in columns]) for name in found.ranking]
    return RangeTable(tuple(headings), rows) if columns else None


def findings_table(findings: Findings, problem: DecisionProblem) -> pd.DataFrame:
    """What the page says beyond the comparison: quantity, subject ("" for none) and value; no row for NaN."""
    found = problem.sensitivity
    rows: list[tuple[str, str, float]] = [
        ("epsilon", "", findings.epsilon),
        ("right_guesses", "", findings.right_guesses),
        *(("deaths", name, rate) for name, rate in findings.deaths.items()),
        *(("epsilon_to_beat_one_for_all", row.policy, row.better_from) for row in findings.rows),
        *(("epsilon_to_keep", row.policy, row.keeps_from) for row in findings.rows),
        ("extra_deaths_of_the_safest_for_all", findings.safest.action, findings.safest.extra_deaths),
        ("benefit_kept_of_the_safest_for_all", findings.safest.action, findings.safest.benefit_kept),
        ("typical_stake", "", findings.typical_stake),
        ("sensitivity", "", found.value),
        ("range", "", found.range),
        *(
            ("utility_at_sensitivity", f"{name}, record {place} of 2", problem.utilities[record, action])
            for place, record in enumerate((found.witness.record, found.witness.neighbour), start=1)
            for action, name in enumerate(problem.actions)
            if problem.admissible is None or problem.admissible[record, action]
        ),
        *(
            ("benefit_kept_at_prevalence", f"{name} × {factor}", kept)
            for name, shares in findings.prevalence.items()
            for factor, kept in shares.items()
        ),
    ]
    if findings.break_even is not None:
        even = findings.break_even
        rows += [("weight_of_a_death_at_break_even", even.policy, even.weight), ("weight_of_a_death", "", even.assumed)]
    if findings.robustness is not None:
        redrawn = findings.robustness
        rows += [
            ("redraws", "", redrawn.redraws),
            ("redraws_with_this_ranking", " > ".join(redrawn.ranking), redrawn.holds),
            ("redraws_with_this_first", redrawn.ranking[0], redrawn.first_holds),
            *(
                (f"{name}_of_redraws", f"{each.policy} {each.outcome}", end)
                for each in redrawn.ranges
                for name, end in (("low", each.low), ("high", each.high))
            ),
        ]
    kept = [(name, subject, float(value)) for name, subject, value in rows if not math.isnan(value)]
    return pd.DataFrame(kept, columns=["quantity", "subject", "value"])
