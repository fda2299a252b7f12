"""The page of a study of a scenario: one file, nothing fetched from anywhere."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from policies.catalogue import CATALOGUE
from policies.optimal import Optimal
from policies.problem import DecisionProblem
from policies.sensitivity import Witness
from policysim import words
from policysim.evaluate import ACHIEVABLE, ALL, UNBEATABLE
from policysim.findings import KEEP, Findings, worst_group
from policysim.report.rows import group_losses, losing
from policysim.report.slider import Slider
from policysim.study import ScenarioStudy

# What rows are that are no policies.
BOUNDS = {ACHIEVABLE: "a value that some policy reaches", UNBEATABLE: "a value that none exceeds"}


def page_values(
    study: ScenarioStudy,
    problem: DecisionProblem,
    findings: Findings,
    table: pd.DataFrame,
    *,
    slider: Slider,
    prices: pd.DataFrame | None,
) -> dict[str, Any]:
    """What the page of a comparison shows beside what all pages have.

    Parameters
    ----------
    study, problem, findings, table
        As in `answer_of`.
    slider : Slider
        What follows epsilon.
    prices : DataFrame or None
        The price list, if it was asked for.
    """
    at_epsilon = table[table["epsilon"] == study.epsilon]
    overall = {str(row["policy"]): row for row in at_epsilon[at_epsilon["group"] == ALL].to_dict("records")}
    return {
        "study": study,
        "problem": problem,
        "findings": findings,
        "slider": slider,
        "overall": overall,
        "worst": worst_group(at_epsilon, {slider.policy}),
        "groups": group_losses(at_epsilon, losing(study)),
        "losing": losing(study),
        "deaths_count": words.population(findings.deaths.values()),
        "extra_count": words.population(row.extra_deaths for row in findings.rows),
        "witness": witness_rows(problem, problem.sensitivity.witness),
        "limit": limit_kind(overall),
        "bounds": (overall.get(ACHIEVABLE), overall.get(UNBEATABLE)),
        "unbeatable": UNBEATABLE,
        "keep": KEEP,
        "prices": [] if prices is None else prices.to_dict("records"),
        "price_count": 100_000 if prices is None else words.population(prices["extra_deaths"]),
        "method": _method(study),
        "infinity": math.inf,
        "catalogue": CATALOGUE,
        "glosses": {**{name: CATALOGUE[name].gloss for name in overall if name not in BOUNDS}, **BOUNDS},
    }


def witness_rows(problem: DecisionProblem, witness: Witness) -> list[tuple[str, list[float]]]:
    """The two neighbours that show a sensitivity, in words, with the utility of each action."""
    return [
        (problem.records.describe(record), problem.utilities[record].tolist())
        for record in (witness.record, witness.neighbour)
    ]


def limit_kind(overall: Mapping[str, Any]) -> str:
    """What is known of the limit: "exact", "bounded", or "unknown" where it was not asked for."""
    if Optimal.name in overall:
        return "exact"
    return "bounded" if UNBEATABLE in overall else "unknown"


def mechanism_words(name: str) -> str:
    """A policy in words, with its formula and the works that it is from."""
    kind = CATALOGUE[name]
    parts = [f"Treatments are chosen by {kind.words}", *([kind.formula] if kind.formula else [])]
    return " ".join([f"{': '.join(parts)}.", *(work.full for work in kind.works)])


def _method(study: ScenarioStudy) -> dict[str, str]:
    return {
        "Study": f"{study.name} (SHA-256 {study.digest}), scenario {study.scenario.name}, seed {study.seed}.",
        "Hidden": f"{words.hidden(study)}. From: {study.hidden_from}. Assumed public: {words.ASSUMED_PUBLIC}.",
        "Value": "The expected utility of a policy over all records, each with its probability. Loss: what it is less "
        "than that of the best treatment for each. Benefit kept: (value − that of one treatment for all) / (that of "
        "the best for each − that of one treatment for all).",
        **{name: mechanism_words(name) for name in study.policies},
        "ε of the curve": ", ".join(words.plain(epsilon) for epsilon in study.epsilons),
    }
