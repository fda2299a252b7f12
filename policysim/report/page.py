"""The page of a study of a scenario: one file, nothing fetched from anywhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from markupsafe import Markup

from policies.catalogue import CATALOGUE
from policies.optimal import Optimal
from policies.problem import DecisionProblem
from policies.sensitivity import Witness
from policysim import words
from policysim.evaluate import ACHIEVABLE, ALL, UNBEATABLE
from policysim.findings import KEEP, Findings, worst_group
from policysim.report.drawings import Drawing
from policysim.report.environment import page_environment
from policysim.report.manifest import manifest_text
from policysim.report.rows import group_losses, losing
from policysim.report.slider import Slider
from policysim.study import ScenarioStudy

# What rows are that are no policies.
BOUNDS = {ACHIEVABLE: "a value that some policy reaches", UNBEATABLE: "a value that none exceeds"}


def report_page(
    study: ScenarioStudy,
    problem: DecisionProblem,
    findings: Findings,
    table: pd.DataFrame,
    *,
    answer: Sequence[Markup],
    slider: Slider,
    drawings: Mapping[str, Drawing],
    manifest: Mapping[str, Any],
    prices: pd.DataFrame | None,
    command: str,
    beside: bool,
) -> str:
    """Render it.

    Parameters
    ----------
    study, problem, findings, table
        As in `report_files`.
    answer : sequence of Markup
        The sentences that it begins with.
    slider : Slider
        What follows epsilon.
    drawings : mapping of name to Drawing
        Its figures.
    manifest : mapping
        What the numbers depend on.
    prices : DataFrame or None
        The price list, if it was asked for.
    command : str
        What makes the page.
    beside : bool
        Whether it can be run where the manifest is.
    """
    at_epsilon = table[table["epsilon"] == study.epsilon]
    overall = {str(row["policy"]): row for row in at_epsilon[at_epsilon["group"] == ALL].to_dict("records")}
    return (
        page_environment()
        .get_template("report.html")
        .render(
            study=study,
            problem=problem,
            findings=findings,
            answer=answer,
            slider=slider,
            figures={name: (drawing, drawing.markup(slider.position)) for name, drawing in drawings.items()},
            overall=overall,
            worst=worst_group(at_epsilon, {slider.policy}),
            groups=group_losses(at_epsilon, losing(study)),
            losing=losing(study),
            deaths_count=words.population(findings.deaths.values()),
            extra_count=words.population(row.extra_deaths for row in findings.rows),
            witness=witness_rows(problem, problem.sensitivity.witness),
            limit=limit_kind(overall),
            bounds=(overall.get(ACHIEVABLE), overall.get(UNBEATABLE)),
            keep=KEEP,
            prices=[] if prices is None else prices.to_dict("records"),
            price_count=100_000 if prices is None else words.population(prices["extra_deaths"]),
            method=_method(study, manifest),
            manifest=manifest_text(manifest),
            command=command,
            beside=beside,
            words=words,
            infinity=math.inf,
            catalogue=CATALOGUE,
            glosses={**{name: CATALOGUE[name].gloss for name in overall if name not in BOUNDS}, **BOUNDS},
        )
    )


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


def _method(study: ScenarioStudy, manifest: Mapping[str, Any]) -> dict[str, str]:
    return {
        "Study": f"{study.name} (SHA-256 {manifest['study']['sha256']}), scenario {manifest['scenario']}, "
        f"seed {study.seed}.",
        "Hidden": f"{words.hidden(study)}. From: {study.hidden_from}. Assumed public: {words.ASSUMED_PUBLIC}.",
        "Value": "The expected utility of a policy over all records, each with its probability. Loss: what it is less "
        "than that of the best treatment for each. Benefit kept: (value − that of one treatment for all) / (that of "
        "the best for each − that of one treatment for all).",
        **{name: mechanism_words(name) for name in study.policies},
        "ε of the curve": ", ".join(words.plain(epsilon) for epsilon in study.epsilons),
        "Versions": ", ".join(f"{name} {number}" for name, number in manifest["versions"].items()),
    }
