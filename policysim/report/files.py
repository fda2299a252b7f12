"""Everything that a comparison of policies on a scenario leaves behind."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from policies.problem import DecisionProblem
from policysim.drivers import sensitivity_by_outcome
from policysim.example_patients import example_patients, example_probabilities
from policysim.figure_files import DEFAULT, FigureFiles
from policysim.findings import Findings
from policysim.patient_losses import patient_losses
from policysim.report.answer import answer
from policysim.report.csv_file import to_csv
from policysim.report.drawings import epsilon_drawings, groups_drawing, patients_drawing, weights_drawing
from policysim.report.manifest import build_manifest, manifest_text
from policysim.report.page import report_page
from policysim.report.rows import findings_table, losing
from policysim.report.slider import choosable, first_policy, make_slider
from policysim.reproduce.manifest import STUDY
from policysim.study import ScenarioStudy


def report_files(
    study: ScenarioStudy,
    problem: DecisionProblem,
    table: pd.DataFrame,
    findings: Findings,
    prices: pd.DataFrame | None = None,
    *,
    wanted: FigureFiles = DEFAULT,
    command: Sequence[str] = ("compare", STUDY),
    advance: Callable[[], object] = lambda: None,
) -> Mapping[str, bytes]:
    """Everything that `policysim compare` writes, by relative path.

    Parameters
    ----------
    study : ScenarioStudy
        What was asked.
    problem : DecisionProblem
        Built from it.
    table : DataFrame
        From `compare`, with greedy, best-fixed and uniform.
    findings : Findings
        From `find`.
    prices : DataFrame, optional
        From `price_list`.
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
    losers = losing(study)
    drivers = sensitivity_by_outcome(study, problem)
    losses = patient_losses(problem, losers, study.epsilon)
    groups = groups_drawing(table[table["epsilon"] == study.epsilon], losers)
    drawings = {
        drawing.name: drawing
        for drawing in [
            *epsilon_drawings(table, probabilities[probabilities["policy"] == policy], study.epsilon),
            *([groups] if groups else []),
            weights_drawing(drivers),
            patients_drawing(losses, study.epsilon),
        ]
    }
    described = {example.label: problem.records.describe(example.record) for example in examples}
    slider = make_slider(table, probabilities, described, epsilon=study.epsilon, policy=policy)
    said = answer(findings, table)
    manifest = {**build_manifest(study, problem), "answer": [sentence.striptags() for sentence in said]}
    page = report_page(
        study,
        problem,
        findings,
        table,
        answer=said,
        slider=slider,
        drawings=drawings,
        manifest=manifest,
        prices=prices,
        command=shlex.join(["policysim", *command]),
        beside=study.portable or STUDY not in command,
    )
    tables = {
        "comparison.csv": table,
        "examples.csv": probabilities,
        "findings.csv": findings_table(findings, problem),
        "drivers.csv": drivers,
        "patient-losses.csv": losses,
        **({} if prices is None else {"prices.csv": prices}),
    }
    return {
        **{name: to_csv(frame) for name, frame in tables.items()},
        **{name: content for drawing in drawings.values() for name, content in drawing.files(wanted).items()},
        "report.html": page.encode(),
        # The study that was run, so that the folder can be run again; not where it would lose its scenario.
        **({STUDY: study.text.encode()} if study.portable else {}),
        "manifest.json": manifest_text(manifest).encode(),
    }
