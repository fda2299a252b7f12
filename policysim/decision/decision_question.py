"""What choosing privately costs: policies of a scenario compared over epsilon."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import pandas as pd

from policies.catalogue import CATALOGUE
from policies.problem import DecisionProblem
from policysim.decision import comparison_screen
from policysim.decision.comparison import compare_problem
from policysim.decision.findings import Findings, find
from policysim.decision.page_values import findings_table, losing, page_values
from policysim.decision.prices import price_list, sensitivity_by_outcome
from policysim.decision.summary import answer as sentences_about
from policysim.question.answer import Answer, Drawing, Page
from policysim.question.protocol import ONLY_OVER_DAYS, Progress
from policysim.question.words import wrap
from policysim.study.declared import ScenarioStudy
from policysim.study.example_patients import example_patients, example_probabilities, patient_losses
from policysim.study.slider import choosable, first_policy, make_slider
from policysim.study.study_problem import build_problem
from policysim.study.sweep import REFERENCES, usable_policies


@dataclass(frozen=True)
class DecisionQuestion:
    """Compare policies of a scenario over epsilon.

    Attributes
    ----------
    study : ScenarioStudy
        Scenario, adjacency, policies, epsilons and groups.
    named : bool
        Whether each policy was asked for by name: one that cannot be used is then refused, and not left out.
    prices : bool
        Whether to find out what hiding each single feature costs at best.
    """

    study: ScenarioStudy
    named: bool = True
    prices: bool = False
    refuses: ClassVar[Mapping[str, str]] = ONLY_OVER_DAYS
    unit: ClassVar[str] = "run"
    writes: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The study's."""
        return self.study.name

    def answer(self, progress: Progress) -> Answer:
        """Evaluate, search, redraw and draw."""
        problem = build_problem(self.study)
        policies, left_out = usable_policies(self.study.policies, problem, named=self.named)
        study = replace(self.study, policies=policies)
        # What others are measured against is in every table and figure.
        evaluated = tuple(dict.fromkeys([*(policy.name for policy in REFERENCES), *policies]))
        table = compare_problem(problem, policies=evaluated, epsilons=study.epsilons, by=study.by, advance=progress)
        findings = find(study, problem, table, progress)
        prices = price_list(study, problem, progress) if self.prices else None
        return answer_of(study, problem, table, findings, prices, left_out=left_out, progress=progress)


def answer_of(
    study: ScenarioStudy,
    problem: DecisionProblem,
    table: pd.DataFrame,
    findings: Findings,
    prices: pd.DataFrame | None = None,
    *,
    left_out: tuple[str, ...] = (),
    progress: Progress,
) -> Answer:
    """What a comparison says, shows and keeps.

    Parameters
    ----------
    study, problem
        What was asked.
    table : DataFrame
        From `compare`, with greedy, best-fixed and uniform.
    findings : Findings
        From `find`.
    prices : DataFrame, optional
        From `price_list`.
    left_out : tuple of str, optional
        Policies that could not be used, and why.
    progress : Progress
        Told of the example patients.
    """
    # matplotlib is the slowest import of all; everything before may still fail without it.
    from policysim.decision.decision_drawings import epsilon_drawings, groups_drawing, patients_drawing, weights_drawing  # noqa: PLC0415

    # All numbers are in comparison.csv; what people look at shows no shares that say little.
    numbers, table = table, table if findings.gain.has_shares else table.assign(benefit_kept=math.nan)
    examples = example_patients(study, problem)
    probabilities = example_probabilities(problem, examples, choosable(table), study.epsilons, progress)
    policy = first_policy(table, study.epsilon)
    losers = losing(study)
    drivers = sensitivity_by_outcome(study, problem)
    losses = patient_losses(problem, losers, study.epsilon)
    described = {example.label: problem.records.describe(example.record) for example in examples}
    slider = make_slider(table, probabilities, described, epsilon=study.epsilon, policy=policy)
    drawings: list[Drawing | None] = [
        *epsilon_drawings(table, probabilities[probabilities["policy"] == policy], study.epsilon),
        groups_drawing(table[table["epsilon"] == study.epsilon], losers),
        weights_drawing(drivers),
        patients_drawing(losses, study.epsilon),
    ]
    said = sentences_about(findings, numbers)
    return Answer(
        screen=_screen(study, problem, findings, prices, answer=said[0].striptags(), left_out=left_out),
        document={
            "findings": asdict(findings),
            "comparison": numbers.to_dict(orient="records"),
            **({} if prices is None else {"prices": prices.to_dict(orient="records")}),
        },
        sentences=said,
        tables={
            "comparison.csv": numbers,
            "examples.csv": probabilities,
            "findings.csv": findings_table(findings, problem),
            "drivers.csv": drivers,
            "patient-losses.csv": losses,
            **({} if prices is None else {"prices.csv": prices}),
        },
        drawings=[drawing for drawing in drawings if drawing is not None],
        pages={
            "report.html": Page(
                "report.html", page_values(study, problem, findings, table, slider=slider, prices=prices)
            )
        },
        position=slider.position,
        depends=_depends(study, problem),
        packages=CATALOGUE.versions(study.policies),
        files=study.files,
        named={"Report": "report.html"},
    )


def _screen(
    study: ScenarioStudy,
    problem: DecisionProblem,
    findings: Findings,
    prices: pd.DataFrame | None,
    *,
    answer: str,
    left_out: tuple[str, ...],
) -> list[str]:
    lines = comparison_screen.comparison_screen(study, problem, findings, answer=answer)
    for reason in left_out:
        lines += wrap(f"Left out: {reason}")
    if prices is not None:
        lines += ["", *comparison_screen.price_lines(prices, deaths=bool(findings.deaths)), ""]
    return lines


def _depends(study: ScenarioStudy, problem: DecisionProblem) -> dict[str, Any]:
    found = problem.sensitivity
    neighbours = [problem.records.describe(r) for r in (found.witness.record, found.witness.neighbour)]
    return {
        **study.identity,
        "records": problem.n_records,
        "actions": list(problem.actions),
        **study.choices,
        "sensitivity": {
            "value": found.value,
            "range": found.range,
            "monotone": found.monotone,
            "neighbours": neighbours,
            "action": problem.actions[found.witness.action],
        },
    }
