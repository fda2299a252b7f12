"""The comparison of policies over all days of a process, as one tidy table: over epsilon, or within totals of it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from policies.arrays import FloatArray, IntArray
from policies.catalogue import make_policy
from policies.fitted import FittedPolicy
from policies.optimal.optimum import OPTIMAL_DAILY, Optimal, catalogue_name, daily_name
from policies.policy import ClaimError, Policy, one_hot_logs, two_values
from policies.reference import BestFixed, Greedy, Uniform
from policysim.course.affordable import SAFE
from policysim.course.budget import PrivacyBudget
from policysim.course.composition import composed_in_classes
from policysim.course.course_evaluation import (
    COLUMNS,
    COLUMNS_OF_TOTALS,
    CourseEvaluation,
    CourseReferences,
    CourseResult,
    ProcessEvaluator,
)
from policysim.course.planning import DailyDecisions, optimal_course
from policysim.course.private_planner import PrivatePlanner
from policysim.course.process import InfiniteLossWarning, Process, require_process
from policysim.course.schedules import best_constants
from policysim.progress import SILENT, Progress
from policysim.study.checks import BROKEN, claim_fault
from policysim.study.sweep import N_THREADS, asked_for, at, at_each, evaluate_each, tabulate

# Policies that do not look at Q-values, or whose continuation is the best one anyway.
PLAIN = (Greedy(), Uniform(), BestFixed())


def compare_process(
    process: Process,
    *,
    policies: Sequence[str | Policy | FittedPolicy] | None = None,
    epsilons: Sequence[float] | float | None = None,
    by: Sequence[str] = (),
    continuation: str = "private",
    advance: Callable[[], object] | Progress = SILENT,
) -> pd.DataFrame:
    """Evaluate policies exactly over the whole course of a process, at several epsilons.

    On each day the policy decides by that day's Q-values, over all states as records (any-record), or over those of
    each public class of the process (`Process.classes`): no other adjacency composes over days. greedy is the best
    policy; uniform is so over admissible actions; best-fixed takes the constant action that is worth most over the
    course (where none is admissible everywhere and has a value, it decides day by day like the others).

    Parameters
    ----------
    process : Process
        A `TabularMDP`, or treatment over days.
    policies, epsilons, by, advance
        As for `policysim.compare`; epsilon is that of one decision, `by` groups the first states. The optimum, by
        either name, is "optimal-daily" here, and needs a horizon: without one it is left out of the default.
    continuation : {"private", "optimal"}, optional
        What the Q-values expect of the days that follow: what the policy itself will do, or the best action for each,
        which a private policy does not take. Without a horizon they always expect the best: Q-values under a private
        policy would have to be found together with it. Policies that need a prior get, with "private", the
        distribution of the state under the best policy, the best schedule or their own choices, whichever is worth
        most (`policysim.course.private_planner.PrivatePlanner`); with "optimal", that under the best policy.

    Returns
    -------
    DataFrame
        The columns are explained by `policysim.compare`.

    Raises
    ------
    ValueError
        As `policysim.compare` and `plan` do.
    ClaimError
        If all policies reveal more than they claim; one of several is left out with a warning.

    Warns
    -----
    InfiniteLossWarning
        If every policy that was to be private at a finite epsilon has an infinite loss.

    Notes
    -----
    Where day t publishes a_t with probability p_t(a_t|s_t), a course of states s publishes a = (a_1, ..., a_H) with
    q(a|s) = prod_t p_t(a_t|s_t): each factor looks back only. For any two courses s, s' of the same length, which agree
    in what is public on every day, log q(a|s) - log q(a|s') is a sum of H differences, of which each is at most the
    exact loss of its day; and some pair of courses attains the sum of the losses. This is `hides` = "course". What an
    observer infers is more: treatment itself changes states, so beliefs over days are to be compared with the prior
    given the treatments.

    Once a process ends it takes no more actions, which shows: when it ends is taken as public. A process in which an
    absorbing state takes the place of the end hides it for as long as there are decisions.

    "optimal-daily" is the best epsilon-private policy of each day's decision between these Q-values. It is not the
    best for the course, neither the best of the policies compared nor a limit: another mechanism, or other epsilons on
    other days, may be worth more. Without a horizon it is refused: the Q-values would be those of another continuation
    and the prior that of another policy, so that it can be worth less than any other, and less at a larger epsilon.
    Without a horizon and a discount, Q-values do not tell an action that puts off the end at no cost from one that
    leads to it, so neither do policies other than greedy; a discount below 1 tells them apart.
    """
    require_process(process, "compare takes a DecisionProblem or")
    if continuation not in ("private", "optimal"):
        raise ValueError(f'continuation must be "private" or "optimal", got continuation={continuation!r}.')
    templates, values = asked_for_on(process, policies, epsilons, by)
    course = optimal_course(process)
    evaluator = ProcessEvaluator(process, course, by)
    references = references_of(evaluator, course)
    jobs = [policy for template in templates for policy in at_each(template, values)]
    private = continuation == "private" and process.horizon is not None
    planner = PrivatePlanner(evaluator) if private and not set(jobs) <= set(PLAIN) else None

    def evaluate(policy: Policy) -> CourseEvaluation:
        if planner is None or policy in PLAIN:
            result, expecting = on_best_values(policy, evaluator, course, references), "optimal"
        else:
            result, expecting = planner.result_of(planner.plan([policy] * planner.horizon)), "private"
        return CourseEvaluation(daily_name(policy.name), policy.epsilon, result, references, expecting)

    found = evaluate_each(jobs, or_fault(evaluate, *BROKEN), Progress.of(advance))
    templates = sound(templates, {each: [found[policy] for policy in at_each(each, values)] for each in templates})
    evaluations = {policy: each for policy, each in found.items() if isinstance(each, CourseEvaluation)}
    finite = [policy for policy in evaluations if policy.uses_epsilon and policy.epsilon < np.inf]
    if finite and all(max(evaluations[policy].result.spent) == np.inf for policy in finite):
        warnings.warn(InfiniteLossWarning.EXPLAINED, InfiniteLossWarning, stacklevel=3)
    rows = ((epsilon, evaluations[at(template, epsilon)]) for template in templates for epsilon in values)
    return tabulate((replace(each, epsilon=epsilon) for epsilon, each in rows), COLUMNS)


def compare_totals(
    process: Process,
    *,
    total_epsilons: Sequence[float] | float,
    delta: float = 0.0,
    policies: Sequence[str | Policy | FittedPolicy] | None = None,
    by: Sequence[str] = (),
    advance: Callable[[], object] | Progress = SILENT,
) -> pd.DataFrame:
    """Evaluate policies exactly over the whole course of a process, within totals of epsilon.

    Each policy spends a total on the days on which it buys most, under its own continuation
    (`policysim.course.private_planner.PrivatePlanner.within`). On days that have nothing of it everybody gets the
    same action (of the states that allow the same), which may change by the day and costs no privacy. A larger total is
    never worth less.

    Parameters
    ----------
    process : Process
        With a horizon: a `TabularMDP`, or treatment over days.
    total_epsilons : sequence of float
        What all decisions on one patient may reveal together, >= 0.
    delta : float, optional
        Of (epsilon, delta)-privacy, in [0, 1) (`PrivacyBudget`): by how much the probability of any set of published
        courses may be above e^epsilon times that under another course of states. It is not the probability that more
        than epsilon is lost.
    policies, by, advance
        As for `policysim.compare`; `advance` is called after each policy and total.

    Returns
    -------
    DataFrame
        One row per policy, total and group, with the columns of
        `compare_process`, where

        epsilon : the largest that one day has
        total_epsilon, delta : as asked for

        and

        total_spent : what the course spends at most at this delta; of a policy that takes no epsilon the sum of its
            losses, which may be above the total (greedy: inf)
        composition : what proves it (`policysim.course.composition.composed`)
        hides : "course" is the guarantee of `compare_process` within total_spent and delta: for any set S of published
            courses, q(S|s) <= e^total_spent q(S|s') + delta

    Raises
    ------
    ValueError
        For a process without a horizon, or whose states allow different actions; a total that is not >= 0, a
        delta out of range; and as `policysim.compare` does.
    """
    require_process(process, "compare takes a DecisionProblem or")
    delta = PrivacyBudget(0.0, delta).delta
    if process.horizon is None:
        raise ValueError(
            "total_epsilons need a horizon: without one every loss adds up to infinity. Give the process a horizon, or "
            "ask about epsilons of one decision."
        )
    templates, totals = asked_for_on(process, policies, total_epsilons, by)
    course = optimal_course(process)
    if course.plain[0].told_apart:
        raise ValueError(f"total_epsilons cannot be kept: {InfiniteLossWarning.EXPLAINED}")
    evaluator = ProcessEvaluator(process, course, by)
    references = references_of(evaluator, course)
    planner = PrivatePlanner(evaluator)
    progress = Progress.of(advance)
    progress.expect(len(templates) * len(totals))

    def evaluate(template: Policy) -> list[CourseEvaluation]:
        result = None if template.uses_epsilon else on_best_values(template, evaluator, course, references)
        within = within_totals(template, result, planner, totals=totals, delta=delta, references=references)
        return told(within, progress)

    found = evaluate_each(templates, or_fault(evaluate, *BROKEN), SILENT)
    kept = sound(templates, {template: [each] for template, each in found.items()})
    return tabulate(chain.from_iterable(found[template] for template in kept), COLUMNS_OF_TOTALS).assign(delta=delta)


def asked_for_on(
    process: Process,
    policies: Sequence[str | Policy | FittedPolicy] | None,
    epsilons: Sequence[float] | float | None,
    by: Sequence[str],
) -> tuple[list[Policy], tuple[float, ...]]:
    """`asked_for`, where the optimum has two names; ValueError for it without a horizon (by default it is left out)."""
    if policies is not None and not isinstance(policies, str):
        policies = [catalogue_name(item) if isinstance(item, str) else item for item in policies]
    templates, values = asked_for(policies, epsilons, by)
    if process.horizon is None and policies is None:
        templates = [template for template in templates if not isinstance(template, Optimal)]
    elif process.horizon is None and any(isinstance(template, Optimal) for template in templates):
        raise ValueError(
            f"{OPTIMAL_DAILY} needs a horizon: without one, the best choice between Q-values may be worth less than "
            "any other policy. Give the process a horizon, or ask for other policies."
        )
    return templates, values


def or_fault(evaluate: Callable[[Policy], Any], *faults: type[Exception]) -> Callable[[Policy], Any]:
    """The same function, which returns why a policy is left out: it claims too little, or cannot be used here."""

    def attempt(policy: Policy) -> Any:
        try:
            return evaluate(policy)
        except faults as error:
            return error

    return attempt


def sound(templates: Sequence[Policy], found: Mapping[Policy, Sequence[Any]]) -> list[Policy]:
    """The policies that are what they say; a warning names the others, and if none is left their error is raised."""
    faults = {each: [result for result in found[each] if isinstance(result, BROKEN)] for each in templates}
    kept = [each for each in templates if not faults[each]]
    if not kept:
        raise faults[templates[0]][0]
    for first, *_ in filter(None, faults.values()):
        warnings.warn(f"left out: {first}", stacklevel=4)
    return kept


def references_of(evaluator: ProcessEvaluator, course: DailyDecisions) -> CourseReferences:
    """What policies on a process are measured against, side by side."""
    process, n_actions = evaluator.process, len(evaluator.process.actions)

    def everybody_gets(chosen: Sequence[IntArray], day: int) -> tuple[FloatArray, FloatArray]:
        # Made anew each day: the tables of all days at once may not fit into memory.
        return one_hot_logs(chosen[day], n_actions), two_values(chosen[day], n_actions, 1.0, 0.0)

    jobs: list[Callable[[], CourseResult]] = [
        lambda: evaluator.evaluate(partial(everybody_gets, course.actions)),
        lambda: evaluator.evaluate(lambda day: course.plain[day].tables(Uniform())),
    ]
    # Each action for all, if all allow it; or the best one for all who allow the same, if that never changes.
    actions = [a for a in range(n_actions) if process.admissible is None or process.admissible[:, a].all()]
    if process.horizon is None:
        alike = [np.full(len(process.initial), action) for action in actions]
        jobs += [partial(evaluator.evaluate, partial(everybody_gets, [chosen])) for chosen in alike]
    else:
        best = best_constants(process)
        schedules = [(action,) * process.horizon for action in actions] if best is None else [best]
        jobs += [partial(evaluator.of_schedule, schedule) for schedule in schedules]
    with ThreadPoolExecutor(N_THREADS) as pool:
        greedy, uniform, *constants = pool.map(lambda job: job(), jobs)
    with_value = [constant for constant in constants if np.isfinite(constant.value[0])]
    fixed = max(with_value, key=lambda constant: float(constant.value[0]), default=None)
    horizon = math.inf if process.horizon is None else process.horizon
    return CourseReferences(horizon, evaluator.groups, greedy, uniform, fixed)


def on_best_values(
    policy: Policy, evaluator: ProcessEvaluator, course: DailyDecisions, references: CourseReferences
) -> CourseResult:
    """A policy that decides by Q-values under the best continuation on each day; ClaimError if it reveals too much."""
    known: dict[Policy, CourseResult | None] = {
        Greedy(): references.best,
        Uniform(): references.uniform,
        BestFixed(): references.fixed,
    }
    if result := known.get(policy):
        return result
    result = evaluator.evaluate(lambda day: course.decisions(policy)[day].tables(policy))
    if not course.plain[0].told_apart and (fault := claim_fault(policy, max(result.spent))):
        raise ClaimError(fault)
    return result


def within_totals(
    template: Policy,
    result: CourseResult | None,
    planner: PrivatePlanner,
    *,
    totals: Sequence[float],
    delta: float,
    references: CourseReferences,
) -> Iterator[CourseEvaluation]:
    """A policy within each total, rising; `result` of one that takes no epsilon, which is worth the same at each."""
    name = daily_name(template.name)
    if result is not None:
        spent = result.spent_in_all
        for total in totals:
            guaranteed = template.claimed
            yield CourseEvaluation(name, guaranteed, result, references, "optimal", total, spent, "exact-losses")
        return
    for total, course in zip(totals, planner.within(template, totals, delta), strict=True):
        composition, spent, _ = composed_in_classes(course.uses, delta)
        # Above the total only by the rounding of a sum.
        assert spent * SAFE <= total
        largest = max((policy.epsilon for policy in course.policies if policy.uses_epsilon), default=0.0)
        most = min(spent, total)
        result = planner.result_of(course)
        yield CourseEvaluation(name, largest, result, references, "private", total, most, composition)


def told(evaluations: Iterable[CourseEvaluation], progress: Progress, steps: int = 1) -> list[CourseEvaluation]:
    """The evaluations; progress advances by so many steps after each."""
    found = []
    for each in evaluations:
        found.append(each)
        progress.advance(steps)
    return found


def margin(
    process: Process,
    policy: str | Policy,
    *,
    max_loss: float | None = None,
    keep: float | None = None,
    max_extra_lead: float | None = None,
) -> tuple[str, Callable[[float], float]]:
    """A policy's name, and how far it is above a demand at an epsilon; see `policysim.smallest_epsilon`."""
    lead = getattr(process, "lead", None)
    limits = {"normalized_loss": max_loss, "benefit_kept": keep, f"extra_{lead}": max_extra_lead}
    given = {column: limit for column, limit in limits.items() if limit is not None}
    if not given or not all(np.isfinite(limit) for limit in given.values()):
        raise ValueError("give max_loss, keep or max_extra_lead, as a finite number.")
    if max_extra_lead is not None and lead is None:
        raise ValueError("max_extra_lead needs a process with an outcome that leads, as build_course makes it.")
    template = make_policy(catalogue_name(policy)) if isinstance(policy, str) else policy

    def above(epsilon: float) -> float:
        row = compare_process(process, policies=[template], epsilons=[epsilon]).iloc[0]
        parts = [float(row[column]) - limit for column, limit in given.items()]
        # What has no number, such as a share where there is nothing to gain, meets no demand.
        return (
            min(part if column == "benefit_kept" else -part for column, part in zip(given, parts, strict=True))
            if np.isfinite(parts).all()
            else -np.inf
        )

    return daily_name(template.name), above
