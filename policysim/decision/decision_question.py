"""What choosing privately costs: policies of a scenario compared over epsilon."""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Self

import pandas as pd

from policies.catalogue import CATALOGUE
from policies.optimal.optimum import Optimal
from policies.policy import Policy
from policies.problem import DecisionProblem
from policysim.decision import comparison_screen
from policysim.decision.beliefs import belief_sentence
from policysim.decision.brief import brief
from policysim.decision.comparison import compare_problem
from policysim.decision.events import EventTable, event_table
from policysim.decision.findings import Findings, find
from policysim.decision.frontier import frontier
from policysim.decision.headings import headings
from policysim.decision.headline import best_policy, headline
from policysim.decision.loss_by_outcome import loss_by_outcome
from policysim.decision.page_values import findings_table, losing, page_values
from policysim.decision.prices import price_list, sensitivity_by_outcome
from policysim.decision.summary import answer as sentences_about
from policysim.decision.summary import most_kept, rows_of
from policysim.question.answer import Answer, Drawing, Page
from policysim.question.formats import in_digits, unmarked, written
from policysim.question.protocol import ONLY_OVER_DAYS, ONLY_WHERE_COUNTED, SILENT, Progress, StudyQuestion
from policysim.question.screen_lines import left_out_lines
from policysim.study.basis import in_words
from policysim.study.declared import OPTIONS, ScenarioStudy, Study, nearest_epsilon, require_scenario
from policysim.study.example_patients import ExampleRows, example_patients, patient_losses
from policysim.study.slider import Shown, show
from policysim.study.stated_bounds import fault_of_bound
from policysim.study.study_problem import build_problem
from policysim.study.sweep import N_THREADS, applies, evaluated_on, usable_policies, with_references

# The frontier is drawn at the study's epsilon times these, or what is nearest to them, and to so much of the benefit.
FRONTIER_AT = (1, 2, 4, 8)
FRONTIER_TOLERANCE = 1e-2


@dataclass(frozen=True)
class DecisionQuestion(StudyQuestion):
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
    refuses: ClassVar[Mapping[str, str]] = {**ONLY_OVER_DAYS, **ONLY_WHERE_COUNTED}
    takes = (*OPTIONS, "at_most", "price_list")

    @classmethod
    def of(cls, study: Study, options: Mapping[str, Any]) -> Self:
        """ValueError also for a bound that is none."""
        chosen = require_scenario(study).with_options(options)
        at_most = options.get("at_most", {})
        for outcome, most in at_most.items():
            if fault := fault_of_bound(outcome, most, chosen.scenario):
                raise ValueError(f"at_most: {outcome}: {fault}")
        return cls(
            replace(chosen, at_most=at_most) if at_most else chosen,
            named="all" not in options.get("policies", ()),
            prices=options.get("price_list", False),
        )

    def answer(self, progress: Progress) -> Answer:
        """Evaluate, search, redraw and draw."""
        problem = build_problem(self.study)
        policies, left_out = usable_policies(self.study.first_policies, problem, named=self.named)
        study = replace(self.study, policies=policies)
        evaluated = [study.policy(name) for name in with_references(policies)]
        kept = ExampleRows(problem, example_patients(problem, study.space, study.illness))
        table = compare_problem(
            problem, policies=evaluated, epsilons=study.epsilons, by=study.by, advance=progress, examples=kept
        )
        findings = find(study, problem, table, progress)
        prices = price_list(study, problem, progress) if self.prices else None
        found = compared(study, problem, table, findings, prices=prices, progress=progress, kept=kept)
        return answer_of(study, found, left_out=left_out)


@dataclass(frozen=True, eq=False)
class Compared:
    """All that is computed of a study before a word of it is said.

    Attributes
    ----------
    problem : DecisionProblem
        Made from the study.
    table : DataFrame
        From `compare_problem`, with greedy, best-fixed and uniform.
    seen : DataFrame
        The same without shares that say little: what people look at.
    findings : Findings
        From `find`.
    prices : DataFrame or None
        From `price_list`.
    shown : Shown
        Example patients and the slider.
    drivers : DataFrame
        From `sensitivity_by_outcome`.
    losses : DataFrame
        From `patient_losses`.
    parts : DataFrame
        From `loss_by_outcome`, at the study's epsilon.
    frontier : DataFrame or None
        From `frontier`, at some of the study's epsilons; None where deaths are not counted, where shares of the benefit
        say little, and where the optimum cannot be computed.
    """

    problem: DecisionProblem
    table: pd.DataFrame
    seen: pd.DataFrame
    findings: Findings
    prices: pd.DataFrame | None
    shown: Shown
    drivers: pd.DataFrame
    losses: pd.DataFrame
    parts: pd.DataFrame
    frontier: pd.DataFrame | None


def compared(
    study: ScenarioStudy,
    problem: DecisionProblem,
    table: pd.DataFrame,
    findings: Findings,
    *,
    prices: pd.DataFrame | None = None,
    progress: Progress = SILENT,
    kept: ExampleRows | None = None,
) -> Compared:
    """What is computed of single patients and outcomes, beside the comparison, its findings and prices."""
    table = written(table)
    seen = in_words(table, study.space)
    seen = seen if findings.gain.has_shares else seen.assign(benefit_kept=math.nan)
    with ThreadPoolExecutor(N_THREADS) as pool:
        drivers = pool.submit(sensitivity_by_outcome, study, problem)
        losers = [study.policy(name) for name in losing(study.policies)]
        losses = pool.submit(patient_losses, problem, losers, study.epsilon)
        parts = pool.submit(loss_by_outcome, study, problem, _at_epsilon(study, problem))
        curve = _frontier(study, problem, findings, progress)
        shown = show(study, problem, seen, progress, kept, count=findings.count, deaths=findings.deaths)
    return Compared(
        problem=problem,
        table=table,
        seen=seen,
        findings=findings,
        prices=prices,
        shown=shown,
        drivers=written(drivers.result()),
        losses=written(losses.result()),
        parts=written(parts.result()),
        frontier=curve,
    )


def _at_epsilon(study: ScenarioStudy, problem: DecisionProblem) -> list[Policy]:
    made = [study.policy(name, study.epsilon) for name in losing(study.policies)]
    return [policy for policy in made if applies(policy, problem)]


def _frontier(
    study: ScenarioStudy, problem: DecisionProblem, findings: Findings, progress: Progress
) -> pd.DataFrame | None:
    """The frontier at some of the study's epsilons, on the problem of the distinct rows where there is one."""
    optimum = Optimal(study.epsilon)
    if not (findings.deaths and findings.gain.has_shares and applies(optimum, problem)):
        return None
    finite = tuple(epsilon for epsilon in study.epsilons if 0 < epsilon < math.inf)
    wanted = sorted({nearest_epsilon(study.epsilon * factor, finite) for factor in FRONTIER_AT}) if finite else ()
    if not wanted:
        return None
    on = evaluated_on(optimum, problem)
    return written(frontier(on, epsilons=wanted, tolerance=FRONTIER_TOLERANCE, progress=progress))


def answer_of(study: ScenarioStudy, found: Compared, *, left_out: tuple[str, ...] = ()) -> Answer:
    """What a comparison says, shows and keeps.

    Parameters
    ----------
    study : ScenarioStudy
        What was asked.
    found : Compared
        What was computed.
    left_out : tuple of str, optional
        Policies that could not be used, and why.
    """
    # matplotlib is the slowest import of all; everything before may still fail without it.
    from policysim.decision import decision_drawings as draw  # noqa: PLC0415

    problem, findings, prices = found.problem, found.findings, found.prices
    seen, slider = found.seen, found.shown.slider
    at_epsilon = seen[seen["epsilon"] == study.epsilon]
    titled_parts, titled_drivers = (draw.titled(each, study.scenario) for each in (found.parts, found.drivers))
    drawings: list[Drawing | None] = [
        *draw.epsilon_drawings(seen, found.shown.first, study.epsilon, findings.count),
        draw.frontier_drawing(found.frontier, seen, findings.count),
        draw.icons_drawing(at_epsilon, slider.policy),
        draw.parts_drawing(titled_parts, study.epsilon),
        draw.groups_drawing(at_epsilon, losing(study.policies)),
        draw.weights_drawing(titled_drivers),
        draw.patients_drawing(found.losses, study.epsilon),
        draw.card_drawing(seen, best_policy(findings, found.table), findings.one_for_all, study.epsilon),
    ]
    said, happened = sentences_about(findings, found.table), event_table(study, findings, seen)
    answer = [unmarked(part) for part in said]
    return Answer(
        screen=_screen(study, problem, findings, prices, answer=answer, happened=happened, left_out=left_out),
        document={
            "findings": {**asdict(findings), "belief": belief_sentence(findings.beliefs)},
            "comparison": found.table.to_dict(orient="records"),
            **({} if prices is None else {"prices": prices.to_dict(orient="records")}),
        },
        headline=headline(findings, found.table),
        sentences=said,
        tables={
            "comparison.csv": found.table,
            "examples.csv": found.shown.probabilities,
            "findings.csv": findings_table(findings, problem),
            "losses-by-outcome.csv": found.parts,
            **({} if found.frontier is None else {"frontier.csv": found.frontier}),
            "drivers.csv": found.drivers,
            "patient-losses.csv": found.losses,
            **({} if findings.beliefs is None else {"beliefs.csv": findings.beliefs.table()}),
            **({} if prices is None else {"prices.csv": prices}),
        },
        drawings=[drawing for drawing in drawings if drawing is not None],
        pages={
            "report.html": Page(
                "report.html",
                page_values(
                    study,
                    problem,
                    findings,
                    seen,
                    slider=slider,
                    brief=brief(study, findings, found.table, slider),
                    headings=headings(
                        findings,
                        slider,
                        most_kept=most_kept(rows_of(findings, found.table)),
                        parts=titled_parts,
                        drivers=titled_drivers,
                        prices=prices,
                    ),
                    prices=prices,
                    happened=happened,
                ),
            )
        },
        position=slider.position,
        depends=_depends(study, problem, priced=prices is not None),
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
    answer: list[str],
    happened: EventTable | None,
    left_out: tuple[str, ...],
) -> list[str]:
    lines = comparison_screen.comparison_screen(study, problem, findings, answer=answer, happened=happened)
    lines += left_out_lines(left_out)
    if prices is not None:
        lines += ["", *comparison_screen.price_lines(prices, findings.count, deaths=bool(findings.deaths)), ""]
    return lines


def _depends(study: ScenarioStudy, problem: DecisionProblem, *, priced: bool) -> dict[str, Any]:
    found = problem.sensitivity
    neighbours = [problem.records.describe(r) for r in (found.witness.record, found.witness.neighbour)]
    return {
        **study.identity,
        "question": {**study.choices, "price_list": priced},
        "records": problem.n_records,
        "actions": list(problem.actions),
        **study.stated,
        "sensitivity": {
            "value": float(in_digits(found.value)),
            "range": float(in_digits(found.range)),
            "neighbours": neighbours,
            "action": problem.actions[found.witness.action],
        },
    }
