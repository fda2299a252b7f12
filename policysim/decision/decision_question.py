"""What choosing privately costs: policies compared over epsilon, of a scenario or of a problem of one's own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, Self

import pandas as pd

from policies.catalogue import CATALOGUE, DEFAULT_POLICIES
from policies.policy import Policy
from policies.problem import DecisionProblem
from policysim.decision import comparison_screen
from policysim.decision.beliefs import belief_sentence
from policysim.decision.brief import brief
from policysim.decision.decision_answer import answer_tables, printable
from policysim.decision.findings import Findings, find
from policysim.decision.headings import headings
from policysim.decision.headline import headline
from policysim.decision.page_values import findings_table, page_values
from policysim.decision.results import Asked, Results, results
from policysim.decision.scenario_outcomes import EventTable, event_table, titled
from policysim.decision.summary import answer as sentences_about
from policysim.decision.summary import most_kept, rows_of
from policysim.question.answer import Answer, Drawing, Page
from policysim.question.formats import in_digits, unmarked, written
from policysim.question.protocol import ONLY_OVER_DAYS, ONLY_WHERE_COUNTED, SILENT, Progress, StudyQuestion
from policysim.question.screen_lines import left_out_lines
from policysim.study.basis import in_words
from policysim.study.declared import OPTIONS, ScenarioStudy, Study, nearest_epsilon, require_scenario
from policysim.study.labels import Labels, labels_of
from policysim.study.slider import show
from policysim.study.stated_bounds import fault_of_bound
from policysim.study.study_problem import build_problem
from policysim.study.sweep import asked_for, usable_policies

# The tables that have files, in their order, and whether they are drawn.
FILES = {
    "comparison": True,
    "examples": True,
    "findings": False,
    "losses-by-outcome": True,
    "frontier": True,
    "drivers": True,
    "patient-losses": True,
    "beliefs": False,
    "prices": False,
}


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
    options : bool
        Whether to rank what was compared as options (`answer_tables`), for `ps.report`.
    """

    study: ScenarioStudy
    named: bool = True
    prices: bool = False
    options: bool = False
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
        asked = Asked.of(study, prices=self.prices)
        if self.options:
            asked = printable(asked)
            study = replace(study, epsilon=asked.epsilon, epsilons=asked.epsilons)
        found = results(problem, labels_of(study, problem), asked, study=study, progress=progress)
        options = answer_tables(found, study=study, progress=progress) if self.options else {}
        return answer_of(study, found, left_out=left_out, options=options)


def answer_of_problem(
    problem: DecisionProblem,
    *,
    epsilons: Sequence[float] | None = None,
    policies: Sequence[str | Policy] | None = None,
    progress: Progress = SILENT,
) -> Answer:
    """What a comparison on a problem of one's own finds: its tables and drawings.

    The epsilon that is looked at is 1, or the one that is nearest to it.
    """
    templates, values = asked_for(DEFAULT_POLICIES if policies is None else policies, epsilons, ())
    first = [replace(each, epsilon=values[0]) if each.uses_epsilon else each for each in templates]
    usable, _ = usable_policies(first, problem, named=policies is not None)
    kept = tuple(each for each in templates if each.name in usable)
    asked = printable(Asked(kept, nearest_epsilon(1.0, values), values))
    found = results(problem, Labels.of(problem), asked, progress=progress)
    findings = find(found)
    tables, options = files_of(found, findings), answer_tables(found, progress=progress)
    return Answer(
        screen=(),
        document={},
        tables=tables,
        drawings=_drawings(found, options),
        options=options,
    )


def files_of(found: Results, findings: Findings) -> dict[str, pd.DataFrame]:
    """The tables of an answer, with the numbers that their files have."""
    tables = {**found.tables, "findings": findings_table(findings, found.problem)}
    if "beliefs" in tables and not tables["beliefs"]["among"].any():
        tables["beliefs"] = tables["beliefs"].drop(columns=["among", "share"])
    # What is drawn, or put in order, has the numbers of its file.
    return {name: written(tables[name]) if drawn else tables[name] for name, drawn in FILES.items() if name in tables}


def seen_of(found: Results, findings: Findings) -> pd.DataFrame:
    """The comparison as people look at it: groups in words, and without shares that say little."""
    seen = in_words(written(found.tables["comparison"]), found.problem.records)
    return seen if findings.gain.has_shares else seen.assign(benefit_kept=math.nan)


def _drawings(found: Results, options: Mapping[str, pd.DataFrame]) -> list[Drawing]:
    # matplotlib is the slowest import of all; everything before may still fail without it.
    from policysim.decision.decision_drawings import drawings  # noqa: PLC0415

    return drawings(found, options)


def answer_of(
    study: ScenarioStudy,
    found: Results,
    *,
    left_out: tuple[str, ...] = (),
    options: Mapping[str, pd.DataFrame] = MappingProxyType({}),
) -> Answer:
    """What a comparison of a study says, shows and keeps.

    Parameters
    ----------
    study : ScenarioStudy
        What was asked.
    found : Results
        What was computed.
    left_out : tuple of str, optional
        Policies that could not be used, and why.
    options : mapping of str to DataFrame, optional
        From `answer_tables`.
    """
    problem, findings = found.problem, find(found, study)
    tables, seen = files_of(found, findings), seen_of(found, findings)
    table, prices = tables["comparison"], tables.get("prices")
    slider = show(
        study, problem, seen, probabilities=tables["examples"], count=findings.count, deaths=findings.deaths
    ).slider
    said = sentences_about(findings, table)
    happened = event_table(
        study.scenario, seen[seen["epsilon"] == study.epsilon], [row.policy for row in findings.rows]
    )
    answer = [unmarked(part) for part in said]
    page = page_values(
        study,
        problem,
        findings,
        seen,
        slider=slider,
        brief=brief(study, findings, table, slider),
        headings=headings(
            findings,
            slider,
            most_kept=most_kept(rows_of(findings, table)),
            parts=titled(tables["losses-by-outcome"], found.labels.outcomes),
            drivers=titled(tables["drivers"], found.labels.outcomes),
            prices=prices,
        ),
        prices=prices,
        happened=happened,
    )
    return Answer(
        screen=_screen(study, problem, findings, prices, answer=answer, happened=happened, left_out=left_out),
        document={
            "findings": {**asdict(findings), "belief": belief_sentence(findings.beliefs)},
            "comparison": table.to_dict(orient="records"),
            **({} if prices is None else {"prices": prices.to_dict(orient="records")}),
        },
        headline=headline(findings, table),
        sentences=said,
        tables=tables,
        drawings=_drawings(found, options or answer_tables(found, study=study)),
        options=options,
        pages={"report.html": Page("report.html", page)},
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
