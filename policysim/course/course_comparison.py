"""The comparison of policies over epsilon, over all days of a process, as one tidy table."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from policies.arrays import FloatArray, IntArray
from policies.catalogue import make_policy
from policies.optimal.optimum import OPTIMAL_DAILY, Optimal, catalogue_name, daily_name
from policies.policy import Policy, one_hot_logs, two_values
from policies.reference import BestFixed, Greedy, Uniform
from policysim.course.class_schedules import best_constants
from policysim.course.course_evaluation import CourseResult, DailyTables, ProcessEvaluator
from policysim.course.private_planner import PrivatePlanner
from policysim.course.process import InfiniteLossWarning, Process
from policysim.course.step_problems import DailyDecisions, optimal_course
from policysim.question.protocol import SILENT, Progress
from policysim.study.gain import excess, ratio
from policysim.study.sweep import N_THREADS, asked_for, at, at_each

# Policies that do not look at Q-values, or whose continuation is the best one anyway.
PLAIN = (Greedy(), Uniform(), BestFixed())


@dataclass(frozen=True)
class CourseReferences:
    """What losses are measured against: the best policy, the uniform one, and the best constant action if any.

    Where states differ in what they allow, and that never changes, `fixed` is the best for all who allow the same.
    """

    best: CourseResult
    uniform: CourseResult
    fixed: CourseResult | None


def compare_process(
    process: Process,
    *,
    policies: Sequence[str | Policy] | None = None,
    epsilons: Sequence[float] | None = None,
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
        One row per policy, epsilon and group (everyone first, as group = level = "all").

        policy, epsilon, group, level : what the row is about; epsilon is that of one decision
        share : probability of the group
        horizon : the number of decisions; inf without a horizon
        continuation : "private" or "optimal", as above; "optimal" for greedy
        value : V, the expected return. Where rewards may go on for ever under the policy, -inf if these are all <= 0,
            inf if they are >= 0, NaN if they are mixed or if the end takes more than 1e12 steps
        loss : V(best) - V
        normalized_loss : loss / (V(best) - V(uniform)); NaN where there is nothing to gain, or uniform has no value
        benefit_kept : (V - V(fixed)) / (V(best) - V(fixed)), where fixed is the best constant action, the same on all
            days, and for all who allow the same if that never changes; NaN where there is nothing to gain, or no
            constant action is admissible everywhere and has a value
        expected_*, extra_* : each outcome of the process over the course, not discounted, and its excess over the best
        epsilon_spent : the largest exact privacy loss of one decision; infinite where states that allow different
            actions are told apart by them, unless the mask is public
        total_epsilon : the sum of the exact losses of all days, which the whole course never exceeds (basic
            composition, which holds for states that depend on earlier actions); without a horizon inf, or 0
        hides : "course": any two courses of states, within total_epsilon (Notes); "one state": the state of each
            decision within epsilon_spent, but no course within any epsilon; "nothing"

    Raises
    ------
    ValueError
        As `policysim.compare` and `plan` do.

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
    if not hasattr(process, "continuation"):
        raise ValueError(f"compare takes a DecisionProblem or a process, such as a TabularMDP, got {process!r}.")
    if continuation not in ("private", "optimal"):
        raise ValueError(f'continuation must be "private" or "optimal", got continuation={continuation!r}.')
    templates, values = asked_for_on(process, policies, epsilons, by)
    course = optimal_course(process)
    evaluator = ProcessEvaluator(process, course, by)
    progress = Progress.of(advance)
    private = continuation == "private" and process.horizon is not None
    jobs = dict.fromkeys(policy for template in templates for policy in at_each(template, values))
    progress.expect(len(jobs))
    planned = [policy for policy in jobs if private and policy not in PLAIN]
    references, results = evaluate_all(
        evaluator, course, [policy for policy in jobs if policy not in planned], progress.advance
    )
    if planned:
        planner = PrivatePlanner(evaluator)

        def run(policy: Policy) -> CourseResult:
            result = planner.plan([policy] * planner.horizon).result
            progress.advance()
            return result

        with ThreadPoolExecutor(N_THREADS) as pool:
            results |= dict(zip(planned, pool.map(run, planned), strict=True))
    frames = [
        course_rows(evaluator, template, epsilon, results[at(template, epsilon)], references).assign(
            continuation="private" if at(template, epsilon) in planned else "optimal"
        )
        for template in templates
        for epsilon in values
    ]
    _warn_if_all_infinite(results)
    return pd.concat(frames, ignore_index=True)


def asked_for_on(
    process: Process, policies: Sequence[str | Policy] | None, epsilons: Sequence[float] | None, by: Sequence[str]
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


def _warn_if_all_infinite(results: dict[Policy, CourseResult]) -> None:
    """InfiniteLossWarning if no policy keeps the finite epsilon that it was asked for."""
    private = [policy for policy in results if policy.uses_epsilon and policy.epsilon < np.inf]
    if private and all(max(results[policy].spent) == np.inf for policy in private):
        warnings.warn(InfiniteLossWarning.EXPLAINED, InfiniteLossWarning, stacklevel=4)


def evaluate_all(
    evaluator: ProcessEvaluator, course: DailyDecisions, policies: list[Policy], advance: Callable[[], object]
) -> tuple[CourseReferences, dict[Policy, CourseResult]]:
    """The references and each policy; `advance` is called once for each policy."""
    process = evaluator.process
    n_actions = len(process.actions)
    constants = _constants(evaluator)
    jobs: dict[Hashable, Callable[[], CourseResult]] = {
        Greedy(): lambda: evaluator.evaluate(partial(_one_hot, course.actions, n_actions)),
        Uniform(): lambda: evaluator.evaluate(lambda day: course.plain[day].tables(Uniform())),
        **constants,
    }
    jobs |= {policy: partial(evaluator.evaluate, _private(course, policy)) for policy in policies if policy not in jobs}

    def run(job: Hashable) -> CourseResult:
        result = jobs[job]()
        if job in policies:
            advance()
        return result

    with ThreadPoolExecutor(N_THREADS) as pool:
        results = dict(zip(jobs, pool.map(run, jobs), strict=True))
    with_value = [action for action in constants if np.isfinite(results[action].means[0, 0])]
    fixed = max(with_value, key=lambda action: float(results[action].means[0, 0]), default=None)
    references = CourseReferences(results[Greedy()], results[Uniform()], None if fixed is None else results[fixed])
    found = {policy: results[policy] for policy in policies}
    if references.fixed is not None and BestFixed() in found:
        found[BestFixed()] = references.fixed
    return references, found


def _one_hot(chosen: Sequence[IntArray], n_actions: int, day: int) -> tuple[FloatArray, FloatArray]:
    # Made anew each day: the tables of all days at once may not fit into memory.
    return one_hot_logs(chosen[day], n_actions), two_values(chosen[day], n_actions, 1.0, 0.0)


def _constants(evaluator: ProcessEvaluator) -> dict[Hashable, Callable[[], CourseResult]]:
    """Each action for all, if all allow it; or the best one for all who allow the same, if that never changes."""
    process, mask = evaluator.process, evaluator.process.admissible
    actions = [a for a in range(len(process.actions)) if mask is None or mask[:, a].all()]
    if process.horizon is None:
        every, k = np.zeros(len(process.initial), dtype=np.intp), len(process.actions)
        return {action: partial(evaluator.evaluate, partial(_one_hot, [every + action], k)) for action in actions}
    best = best_constants(process)
    schedules = [(action,) * process.horizon for action in actions] if best is None else [best]
    return {schedule: partial(evaluator.of_schedule, schedule) for schedule in schedules}


def _private(course: DailyDecisions, policy: Policy) -> DailyTables:
    return lambda day: course.decisions(policy)[day].tables(policy)


def course_rows(
    evaluator: ProcessEvaluator, template: Policy, epsilon: float, result: CourseResult, references: CourseReferences
) -> pd.DataFrame:
    """The rows of one policy at one epsilon, a group each."""
    value, best, uniform = (found.means[:, 0] for found in (result, references.best, references.uniform))
    nobody = np.full(len(best), np.nan)
    fixed = nobody if references.fixed is None else references.fixed.means[:, 0]
    horizon, groups = evaluator.process.horizon, evaluator.groups
    columns: dict[str, object] = {
        "policy": daily_name(template.name),
        "epsilon": epsilon,
        "group": [group.feature for group in groups],
        "level": [group.level for group in groups],
        "share": [group.share for group in groups],
        "horizon": np.inf if horizon is None else horizon,
        "value": value,
        "loss": (loss := excess(best, value, np.abs(best))),
        "normalized_loss": ratio(loss, best - uniform, np.abs(best)),
        "benefit_kept": ratio(excess(value, fixed, np.abs(best)), best - fixed, np.abs(best)),
    }
    for position, metric in enumerate(evaluator.metrics[1:], start=1):
        columns[metric] = result.means[:, position]
        mean, least = result.means[:, position], references.best.means[:, position]
        columns[metric.replace("expected_", "extra_", 1)] = excess(mean, least, np.maximum(abs(mean), abs(least)))
    most, total = max(result.spent), sum(result.spent)
    columns["epsilon_spent"] = most
    columns["total_epsilon"] = total = total if horizon is not None or total == 0 else math.inf
    columns["hides"] = "course" if total < math.inf else "one state" if most < math.inf else "nothing"
    return pd.DataFrame(columns)


def margin(
    process: Process,
    policy: str | Policy,
    *,
    max_loss: float | None = None,
    keep: float | None = None,
    max_extra_deaths: float | None = None,
) -> tuple[str, Callable[[float], float]]:
    """A policy's name, and how far it is above a demand at an epsilon; see `policysim.smallest_epsilon`."""
    limits = {"normalized_loss": max_loss, "benefit_kept": keep, "extra_deaths": max_extra_deaths}
    given = {column: limit for column, limit in limits.items() if limit is not None}
    if not given or not all(np.isfinite(limit) for limit in given.values()):
        raise ValueError("give max_loss, keep or max_extra_deaths, as a finite number.")
    if max_extra_deaths is not None and "deaths" not in getattr(process, "outcomes", {}):
        raise ValueError("max_extra_deaths needs a process whose outcomes have deaths, as build_course makes them.")
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
