"""The report on one decision: of a scenario, of a table of one's own, or of a problem alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from policies.catalogue import CATALOGUE, DEFAULT_POLICIES
from policies.fitted import FittedPolicy
from policies.optimal.optimum import OptimalSafe
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.reference import OwnTable
from policysim.decision.evidence import Evidence, gather
from policysim.decision.find import DecisionDetails, find
from policysim.decision.page_data import page_data
from policysim.decision.words import screen_of
from policysim.errors import EXIT_CHECK
from policysim.numbers import digits_of, enough, in_digits
from policysim.progress import SILENT, Progress
from policysim.report.findings import Findings
from policysim.report.report import Report
from policysim.study.declared import CohortStudy, ModelledStudy, nearest_epsilon
from policysim.study.labels import Labels, labels_of
from policysim.study.study_problem import build_problem
from policysim.study.sweep import asked_for, usable_policies

# Digits of an epsilon that is printed.
MOST_DIGITS = 6


def report(
    of: ModelledStudy | DecisionProblem,
    *,
    policies: Sequence[str | Policy | FittedPolicy] | Mapping[str, ArrayLike] | None = None,
    epsilons: Sequence[float] | float | None = None,
    price_list: bool = False,
    progress: Progress = SILENT,
) -> Report:
    """Compare policies of one decision, and say what they cost, whom they harm and what they leak.

    Parameters
    ----------
    of : ModelledStudy or DecisionProblem
        What is decided.
    policies : sequence of str, Policy or FittedPolicy, or mapping of str to array, optional
        Those that get letters and columns of their own: names from the catalogue; for a problem also policies, whose
        epsilon is replaced, or tables of probabilities by their titles. By default those of the study, without columns.
    epsilons : sequence of float, optional
        Values >= 0; the study's by default. What is looked at closely is at the study's epsilon, or at 1, or at the
        nearest of these.
    price_list : bool, optional
        Whether to find out what hiding each single feature costs at best.
    progress : Progress, optional
        Reports each step.

    Raises
    ------
    ValueError
        For an unknown policy, one that cannot be used (`NotApplicableError`), or an epsilon that is no number >= 0.
    ClaimError, NoTableError, InadmissibleError
        If none of the policies is what it says of itself; one of several is left out, and the exit code is 4.
    """
    if isinstance(policies, Mapping):
        policies = [OwnTable.named(title, table) for title, table in policies.items()]
    if isinstance(of, DecisionProblem):
        return _of_problem(of, policies, epsilons, progress)
    return _of_study(of, policies, epsilons, prices=price_list, progress=progress)


def _of_problem(
    problem: DecisionProblem,
    policies: Sequence[str | Policy | FittedPolicy] | None,
    epsilons: Sequence[float] | float | None,
    progress: Progress,
) -> Report:
    """The report on a problem of one's own, of which nothing but the numbers is known."""
    templates, values = asked_for(DEFAULT_POLICIES if policies is None else policies, epsilons, ())
    values = printable(values)
    first = [replace(policy, epsilon=values[0]) if policy.uses_epsilon else policy for policy in templates]
    usable, _ = usable_policies(first, problem, named=policies is not None)
    kept = [policy for policy in templates if policy.name in usable]
    named = [policy.name for policy in kept] if policies is not None else []
    labels = Labels.of(problem)
    epsilon = nearest_epsilon(1.0, values)
    evidence = gather(problem, labels, kept, epsilon=epsilon, epsilons=values, named=named, progress=progress)
    return _reported(evidence)


def _of_study(
    study: ModelledStudy,
    policies: Sequence[str | Policy | FittedPolicy] | None,
    epsilons: Sequence[float] | float | None,
    *,
    prices: bool,
    progress: Progress,
) -> Report:
    """The report on a study; its manifest says what the numbers depend on."""
    if prices and isinstance(study, CohortStudy):
        study.cohort.require_hidden(study.space.names)
    for policy in policies or ():
        if not isinstance(policy, str):
            raise ValueError(f"policies of a study are names from the catalogue, got {policy!r}.")
    everything = policies is not None and "all" in policies
    wanted = None if epsilons is None else [epsilons] if isinstance(epsilons, int | float) else list(epsilons)
    chosen = study.with_choices(epsilons=wanted, policies=None if policies is None else list(map(str, policies)))
    values = printable(chosen.epsilons)
    chosen = replace(chosen, epsilons=values, epsilon=printable((chosen.epsilon,))[0])
    problem = build_problem(chosen)
    usable, left_out = usable_policies(chosen.first_policies, problem, named=not everything)
    named = [] if policies is None or everything else usable
    if not named and (chosen.at_most or chosen.capacity):
        # Where the study has limits, the best draw within them is an option, whatever A, B and C do.
        named = [name for name in usable if name == OptimalSafe.name]
    evidence = gather(
        problem,
        labels_of(chosen, problem),
        [chosen.policy(name) for name in usable],
        epsilon=chosen.epsilon,
        epsilons=values,
        named=named,
        study=chosen,
        prices=prices,
        progress=progress,
    )
    made = _reported(evidence, [f"left out: {reason}" for reason in left_out])
    return replace(
        made,
        name=study.name,
        identity=_identity(chosen, problem, prices=prices),
        data=study.data,
        packages=CATALOGUE.versions(usable),
        files=study.files,
        related=study.related,
    )


def printable(epsilons: Sequence[float]) -> tuple[float, ...]:
    """The same epsilons as they are printed whole: rounded up where they have too many digits; rising, each once."""
    return tuple(
        sorted(
            {
                enough(value, MOST_DIGITS) if 0 < value < math.inf and digits_of(value) > MOST_DIGITS else value
                for value in epsilons
            }
        )
    )


def _reported(evidence: Evidence, warnings: Sequence[str] = ()) -> Report:
    """Findings, words at each epsilon, tables and figures."""
    # matplotlib is the slowest import of all; everything before may still fail without it.
    from policysim.decision.drawings import drawings_of_decision  # noqa: PLC0415

    seen = "treatment" if evidence.study is None else evidence.study.seen
    found = find(evidence, [*warnings, *(f"left out: {fault}" for fault in evidence.broken)])
    findings: Findings = found[evidence.epsilon]
    details: DecisionDetails = findings.details
    return Report(
        findings=findings,
        screen=screen_of(findings, evidence.labels, seen=seen),
        screens={epsilon: screen_of(each, evidence.labels, seen=seen) for epsilon, each in found.items()},
        epsilon=evidence.epsilon,
        page_data=page_data(found, evidence.labels),
        more_tables=_more_tables(evidence, details),
        drawings=drawings_of_decision(evidence, findings),
        exit_code=EXIT_CHECK if evidence.broken else 0,
    )


def _more_tables(evidence: Evidence, details: DecisionDetails) -> dict[str, Any]:
    """What is written beside the findings."""
    tables = dict(evidence.tables)
    if "beliefs" in tables:
        # A class is known by what is public of it, if anything is.
        unsaid = [] if tables["beliefs"]["among"].any() else ["among", "share"]
        tables["beliefs"] = tables["beliefs"].drop(columns=["class", *unsaid])
    shown = {"table": details.table, "acceptability": details.acceptability}
    return {**tables, **{name: table for name, table in shown.items() if not table.empty}}


def _identity(study: ModelledStudy, problem: DecisionProblem, *, prices: bool) -> Mapping[str, Any]:
    """What the numbers depend on, for the manifest."""
    sensitivity = problem.sensitivity
    neighbours = (sensitivity.witness.record, sensitivity.witness.neighbour)
    return {
        **study.identity,
        "choices": {**study.choices, "epsilon": study.epsilon, "price_list": prices},
        **({"at_most": dict(study.at_most)} if study.at_most else {}),
        **({"capacity": dict(study.capacity)} if study.capacity else {}),
        **({"public": list(study.public)} if study.public else {}),
        "records": problem.n_records,
        "actions": list(problem.actions),
        "sensitivity": {
            "value": float(in_digits(sensitivity.value)),
            "range": float(in_digits(sensitivity.range)),
            "neighbours": [problem.records.describe(record) for record in neighbours],
            "action": problem.actions[sensitivity.witness.action],
        },
    }
