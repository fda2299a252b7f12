"""The report of `policysim choose`: which ε, and which mechanism, meet some demands; or a proof that none can."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import pandas as pd

from policies.catalogue import CATALOGUE
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.reference import BestFixed, Greedy
from policysim.decision.better_choice import raised_to_better
from policysim.decision.choose import Choices, Wish, choose
from policysim.decision.choose_findings import DOUBTED, find
from policysim.decision.choose_words import screen_of
from policysim.decision.redraws import redrawn
from policysim.errors import EXIT_CHECK, UsageError
from policysim.files.terminal import json_text
from policysim.progress import SILENT, Progress
from policysim.report.contents import PAGE
from policysim.report.report import Report
from policysim.report.screen import Screen
from policysim.study.declared import LoggedStudy, ModelledStudy, Study
from policysim.study.labels import labels_of
from policysim.study.stated_bounds import fault_of_bound
from policysim.study.study_problem import build_problem
from policysim.study.sweep import applies, usable_policies

# Verdicts on policies of a log, from patients held out: policy, value, low, high, verdict.
Judge = Callable[[LoggedStudy, Sequence[Policy], Progress], pd.DataFrame]
CERTIFICATE = "certificate.json"


def report(
    study: Study,
    wish: Wish,
    *,
    policies: Sequence[str] | None = None,
    judge: Judge | None = None,
    compared: Callable[[Study], Report] | None = None,
    progress: Progress = SILENT,
) -> Report:
    """Find the least epsilon of each mechanism that meets the demands, and choose.

    Parameters
    ----------
    study : Study
        Of a scenario, a cohort or a log.
    wish : Wish
        The demands.
    policies : sequence of str, optional
        The mechanisms to search; the study's by default.
    judge : callable, optional
        Judges policies of a log on patients held out. Without it no mechanism of a log is shown to be better.
    compared : callable, optional
        Makes the report of a study that `compare` makes; it is then returned at the epsilon that was chosen, with the
        choice before it.
    progress : Progress, optional
        Informed of each policy.

    Raises
    ------
    UsageError
        For a policy that has no epsilon.
    ValueError
        For a bound on an outcome that there is not, or one that is no number.
    """
    for outcome, most in wish.at_most.items():
        if fault := fault_of_bound(outcome, most, study.outcomes):
            raise ValueError(f"at_most: {outcome}: {fault}")
    for name in policies or ():
        if name in CATALOGUE and not CATALOGUE[name].uses_epsilon:
            raise UsageError(f"{name} has no ε to choose")
    study = study.with_choices(policies=policies)
    problem = build_problem(study)
    listed = [study.policy(name) for name in study.policies]
    usable, _ = usable_policies(listed, problem, named=policies is not None and "all" not in policies)
    searched = [policy for policy in listed if policy.name in usable and policy.uses_epsilon]
    choices = choose(problem, wish, [policy for policy in searched if applies(policy, problem)], progress)
    held_out = None
    if isinstance(study, LoggedStudy) and judge is not None:
        held_out = judge(study, to_judge(choices), progress)
    choice = report_of_choices(study, problem, choices, held_out=held_out, progress=progress)
    choice = replace(choice, identity=study.identity, data=study.data)
    return choice if compared is None else _with_comparison(choice, study, compared)


def to_judge(choices: Choices) -> list[Policy]:
    """The policies of a log whose value is judged on patients held out: the best for each, and the least mechanism.

    The mechanism is not picked by the estimates that judge it: of several, the one that looks best would look better
    than it is.
    """
    least = choices.least
    private = [] if least is None or least["policy"] not in choices.mechanisms else [least["policy"]]
    return [Greedy(), *(choices.mechanisms[name] for name in private)]


def report_of_choices(
    study: Study,
    problem: DecisionProblem,
    choices: Choices,
    *,
    held_out: pd.DataFrame | None = None,
    progress: Progress = SILENT,
) -> Report:
    """The report without a comparison; of a log, `held_out` has the verdicts on patients held out."""
    versions = None
    if isinstance(study, LoggedStudy) and held_out is None:
        held_out = pd.DataFrame(columns=["policy", "value", "low", "high", "verdict"])
    if isinstance(study, ModelledStudy):
        judged = [BestFixed(), Greedy(), *choices.mechanisms.values()]
        versions = redrawn(study, problem, judged, progress)
        if versions is not None:
            choices, versions = raised_to_better(study, problem, choices, versions, progress)
    labels = labels_of(study, problem)
    findings = find(problem, choices, labels, versions=versions, held_out=held_out, study=study)
    proof = choices.certificate
    # Where data are doubted nothing is chosen, as of a comparison that draws no conclusion.
    done = bool(findings.details.chosen) or findings.details.choice == DOUBTED
    return Report(
        findings=findings,
        screen=screen_of(findings, labels),
        name=study.name,
        packages=CATALOGUE.versions(choices.needs["policy"]),
        files={} if proof is None else {CERTIFICATE: json_text(proof).encode()},
        named={"Report": PAGE, **({} if proof is None else {"Certificate file": CERTIFICATE})},
        exit_code=0 if done else EXIT_CHECK,
    )


def _with_comparison(choice: Report, study: Study, compared: Callable[[Study], Report]) -> Report:
    """The report of `compare` at the epsilon that was chosen, or at the study's, and the choice before it."""
    options, details = choice.findings.options, choice.findings.details
    chosen = options.loc[options["option"] == details.chosen, "epsilon"]
    for epsilon in chosen[(chosen > 0) & (chosen < math.inf)][:1]:
        study = replace(study, epsilon=epsilon, epsilons=tuple(sorted({*study.epsilons, epsilon})))
    after = compared(study)
    warnings = tuple(dict.fromkeys([*choice.findings.warnings, *after.findings.warnings]))
    return replace(
        after,
        before=choice.screen,
        screen=_without_warnings(after.screen, choice.screen.warnings),
        screens={at: _without_warnings(screen, choice.screen.warnings) for at, screen in after.screens.items()},
        findings=replace(after.findings, details=details, warnings=warnings),
        more_tables={**after.more_tables, **{f"choice-{name}": table for name, table in choice.tables.items()}},
        packages={**after.packages, **choice.packages},
        files={**after.files, **choice.files},
        named={**after.named, **choice.named},
        exit_code=choice.exit_code,
    )


def _without_warnings(screen: Screen, said: Collection[str]) -> Screen:
    """A screen without the warnings that stand above it already."""
    return replace(screen, warnings=tuple(warning for warning in screen.warnings if warning not in said))
