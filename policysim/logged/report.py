"""The files that a comparison on a log leaves behind: tables, figures, page and manifest."""

from __future__ import annotations

import hashlib
import math
import platform
import shlex
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import pandas as pd

from policies.catalogue import CATALOGUE
from policies.problem import DecisionProblem
from policies.reference import Greedy, Uniform
from policysim import words
from policysim.evaluate import ALL
from policysim.example_patients import example_patients, example_probabilities
from policysim.figure_files import DEFAULT, FigureFiles
from policysim.logged.drawings import choices_drawing, gain_drawing, group_name, groups_drawing, spending_drawing
from policysim.logged.findings import LoggedFindings
from policysim.logged.screen import (
    ASSUMED_PUBLIC,
    LABELS,
    PRIVATE,
    how_estimated,
    percentages,
    rows_words,
)
from policysim.report.csv_file import to_csv
from policysim.report.environment import page_environment
from policysim.report.manifest import manifest_text
from policysim.report.page import mechanism_words, witness_rows
from policysim.report.slider import choosable, first_policy, make_slider
from policysim.reproduce.manifest import STUDY
from policysim.study import LoggedStudy

LIBRARIES = ("policysim", "numpy", "scipy", "pandas", "scikit-learn", "matplotlib")


def logged_files(
    study: LoggedStudy,
    problem: DecisionProblem,
    table: pd.DataFrame,
    findings: LoggedFindings,
    *,
    wanted: FigureFiles = DEFAULT,
    command: Sequence[str] = ("compare", STUDY),
    advance: Callable[[], object] = lambda: None,
) -> Mapping[str, bytes]:
    """Everything that `policysim compare` writes for a study of a log, by relative path.

    Parameters
    ----------
    study : LoggedStudy
        What was asked.
    problem : DecisionProblem
        Fitted to the whole log: what example patients would get.
    table : DataFrame
        From `compare_log`, with greedy, best-fixed and uniform.
    findings : LoggedFindings
        From `find`.
    wanted : FigureFiles, optional
        The figure files; SVG and PNG for a page by default.
    command : sequence of str, optional
        From `study_command`: what makes the page, after "policysim".
    advance : callable, optional
        Called after each policy and epsilon of the example patients, `number_of_examples` times in all.
    """
    examples = example_patients(study, problem)
    probabilities = example_probabilities(problem, examples, choosable(table), study.epsilons, advance)
    policy = first_policy(table, study.epsilon)
    at_epsilon = table[(table["epsilon"] == study.epsilon) & ~table["policy"].isin([Greedy.name, Uniform.name])]
    found = [
        gain_drawing(table, study.epsilon),
        choices_drawing(probabilities, policy),
        spending_drawing(table, study.epsilon),
        groups_drawing(at_epsilon),
    ]
    drawings = {drawing.name: drawing for drawing in found if drawing is not None}
    described = {example.label: problem.records.describe(example.record) for example in examples}
    slider = make_slider(table, probabilities, described, epsilon=study.epsilon, policy=policy)
    manifest = {**build_logged_manifest(study, problem), "answer": findings.answer}
    page = (
        page_environment()
        .get_template("logged.html")
        .render(
            study=study,
            problem=problem,
            findings=findings,
            slider=slider,
            figures={name: (drawing, drawing.markup(slider.position)) for name, drawing in drawings.items()},
            groups=_group_rows(at_epsilon),
            group_policies=list(dict.fromkeys(at_epsilon["policy"])),
            rows_words=rows_words(study, findings),
            how_estimated=how_estimated(),
            percentages=percentages(findings),
            private=PRIVATE,
            command=shlex.join(["policysim", *command]),
            witness=witness_rows(problem, problem.sensitivity.witness),
            labels=LABELS,
            method=_method(study, manifest),
            manifest=manifest_text(manifest),
            words=words,
        )
    )
    tables = {
        "comparison.csv": table,
        "arms.csv": pd.DataFrame(findings.arms),
        "examples.csv": probabilities,
        "findings.csv": findings_table(findings, problem),
    }
    return {
        **{name: to_csv(frame) for name, frame in tables.items()},
        **{name: content for drawing in drawings.values() for name, content in drawing.files(wanted).items()},
        "report.html": page.encode(),
        "manifest.json": manifest_text(manifest).encode(),
    }


def findings_table(findings: LoggedFindings, problem: DecisionProblem) -> pd.DataFrame:
    """What the page says beyond the comparison and the arms: quantity, subject ("" for none) and value."""
    found = problem.sensitivity
    gain = zip(("estimate", "low", "high"), findings.gain, strict=True)
    rows: list[tuple[str, str, float]] = [
        ("epsilon", "", findings.epsilon),
        ("right_guesses", "", findings.right_guesses),
        ("patients", "read", findings.n_read),
        ("patients", "without an outcome", findings.n_missing),
        ("patients", "used", findings.n_used),
        *(("gain of greedy over the best single arm", end, value) for end, value in gain),
        *(("epsilon_estimated_better", row.policy, row.better_from) for row in findings.rows),
        *(("epsilon_surely_better", row.policy, row.surely_from) for row in findings.rows),
        ("sensitivity", "", found.value),
        ("range", "", found.range),
        *(
            ("score_at_sensitivity", f"{name}, record {place} of 2", float(problem.utilities[record, action]))
            for place, record in enumerate((found.witness.record, found.witness.neighbour), start=1)
            for action, name in enumerate(problem.actions)
        ),
    ]
    return pd.DataFrame([row for row in rows if not math.isnan(row[2])], columns=["quantity", "subject", "value"])


def build_logged_manifest(study: LoggedStudy, problem: DecisionProblem) -> dict[str, Any]:
    """What the numbers depend on; nothing in it changes from run to run on one machine."""
    return {
        "study": {"name": study.name, "title": study.title, "sha256": study.digest},
        "data": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in study.log.files.values()},
        "records": problem.n_records,
        "actions": list(problem.actions),
        "adjacency": study.adjacency,
        "sensitive": list(study.sensitive),
        "epsilon": study.epsilon,
        "epsilons": list(study.epsilons),
        "policies": list(study.policies),
        "by": list(study.by),
        "seed": study.seed,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in LIBRARIES},
            **CATALOGUE.versions(study.policies),
        },
    }


def _group_rows(at_epsilon: pd.DataFrame) -> list[dict[str, Any]]:
    """For each group: its name, share, and under each policy the difference to the best single treatment."""
    if (at_epsilon["group"] == ALL).all():
        return []
    rows = []
    for (group, level), mine in at_epsilon.groupby(["group", "level"], sort=False):
        differences = {str(row["policy"]): row for _, row in mine.iterrows()}
        rows.append(
            {
                "name": group_name(str(group), str(level)),
                "share": float(mine["share"].iloc[0]),
                "differences": differences,
            }
        )
    return rows


def _method(study: LoggedStudy, manifest: Mapping[str, Any]) -> dict[str, str]:
    source = study.log
    outcome = " + ".join(f"{weight:g} × {name}" for name, weight in source.outcome.items() if weight)
    return {
        "Study": f"{study.name} (SHA-256 {manifest['study']['sha256']}), seed {study.seed}.",
        "Data": "; ".join(f"{name} (SHA-256 {digest})" for name, digest in manifest["data"].items()) + ".",
        "Outcome": f"{outcome}, within [{source.utility_range[0]:g}, {source.utility_range[1]:g}]; propensities: "
        f"{source.propensity}.",
        "Scores": f"The {source.outcome_model} outcome model of each arm on the declared features, clipped to the "
        "outcome's range. Domain and sensitivity are those of the declared levels, never of the rows that are there.",
        "Prior": "The share of each record among the patients, with √n imagined ones spread as independent features "
        "would have them.",
        "Hidden": f"{words.hidden(study)}. From: {study.hidden_from}. Assumed public: {ASSUMED_PUBLIC}.",
        "Value": "Doubly robust and cross-fitted: each patient counts under the version of policy and scores "
        "that was made without that patient. Five folds, ten random splits; the mean over splits, with a variance "
        "that covers how much depends on the split (Chernozhukov et al. 2018, definition 3.3). Intervals are 95 %, "
        "each by itself: among many, some miss.",
        **{name: mechanism_words(name) for name in study.policies},
        "ε of the curve": ", ".join(words.plain(epsilon) for epsilon in study.epsilons),
        "Versions": ", ".join(f"{name} {number}" for name, number in manifest["versions"].items()),
    }
