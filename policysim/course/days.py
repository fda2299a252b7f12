"""Treatment over days against the total privacy budget: which mechanism, at which total epsilon and horizon."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pandas as pd

from policies.catalogue import CATALOGUE, make_policy
from policies.optimal.optimum import Optimal
from policies.policy import Policy
from policies.privacy_loss import privacy_loss_of_logs
from policysim.course.course_columns import COLUMNS_OF_LIMITS, CourseEvaluation, References
from policysim.course.course_comparison import on_best_values, references_of, within_totals
from policysim.course.course_evaluation import CourseResult, ProcessEvaluator
from policysim.course.course_limit import first_day_limit
from policysim.course.once import SCHEDULES
from policysim.course.planning import optimal_course
from policysim.course.private_planner import PrivatePlanner
from policysim.course.schedules import ClassSchedules, Schedule
from policysim.course.treatment_course import build_course
from policysim.question.protocol import SILENT, Progress
from policysim.question.words import ALL, PLAN_ONCE
from policysim.question.words import BEST_SCHEDULE as SCHEDULE
from policysim.study.declared import ScenarioStudy
from policysim.study.sweep import N_THREADS, evaluate_each, tabulate

# The ways to spend a total: nothing, on one choice of all days, or day by day.
ONCE, DAILY = PLAN_ONCE, "day by day"
# Of values that differ by no more than this share of the largest, the plainest way counts as the best.
EQUAL = 1e-9
# How many horizons are compared: one day, the whole course, and between them in equal ratios.
N_HORIZONS = 4


@dataclass(frozen=True)
class DaysQuestion:
    """What is asked about treatment over days.

    Attributes
    ----------
    horizon : int
        Days.
    totals : tuple of float
        Total epsilons of a patient's course, rising.
    delta : float
        Of (epsilon, delta)-privacy (`PrivacyBudget`): by how much the probability of any set of published courses
        may be above e^epsilon times that under another course of records. With 0 only basic composition is used.
    length_public : bool
        Whether when a patient's stay ends is declared public.
    """

    horizon: int
    totals: tuple[float, ...]
    delta: float
    length_public: bool

    @property
    def horizons(self) -> tuple[int, ...]:
        """The horizons that are compared, rising; the last one is `horizon`."""
        steps = [round(self.horizon ** (i / (N_HORIZONS - 1))) for i in range(N_HORIZONS)]
        return tuple(sorted({*steps, self.horizon}))


def compare_days(study: ScenarioStudy, question: DaysQuestion, progress: Progress = SILENT) -> pd.DataFrame:
    """Evaluate the study's policies exactly over the whole course, at each horizon and total epsilon.

    Parameters
    ----------
    study : ScenarioStudy
        Its scenario, utility, policies and groups.
    question : DaysQuestion
        Horizons and budgets.
    progress : Progress, optional
        Told of the days that were evaluated.

    Returns
    -------
    DataFrame
        One row per horizon, policy, total epsilon and group, with the columns of
        `policysim.course.course_comparison.compare_process`. Beside the study's policies, of which the optimum of each
        day is called "optimal-daily", there are "best-schedule", one schedule for all, and "plan-once", the optimum
        among public schedules (`policysim.course.once`), whose epsilon is that of its one choice. About privacy:

        horizon : days
        total_epsilon : the budget of the course, with the question's delta
        epsilon : the largest that one day has; of plan-once that of its choice
        composition : what proves the total (`policysim.course.budget.composed`); "one-choice" for plan-once, of
            which nothing adds up
        epsilon_spent : the largest exact privacy loss of one day
        total_spent : what the course spends at most at this delta; of a policy that takes no epsilon the sum of its
            losses, which may be above the total (greedy: inf)
        hides : "course": any two courses of a patient's records are hidden among each other, within total_spent and
            delta; "nothing", where total_spent is inf
        unbeatable : for everyone, the value that no mechanism within the total exceeds (`course_limit`), rounded up
        most_kept : the share of the benefit that this is, rounded up
        most_kept_hides : "first state": what the mechanisms hide at least that these two bound. Who hides the course
            hides that, too

    Raises
    ------
    ValueError
        For a horizon or adjacency that `build_course` refuses.

    Notes
    -----
    Each policy spends a total on the days on which it buys most, under its own continuation, and starts from
    best-schedule (`policysim.course.private_planner.PrivatePlanner.within`). So none that takes an epsilon is worth
    less than that, and the value for everyone never falls as the total rises.
    """
    progress.expect(sum(question.horizons) * (1 + (1 + len(study.policies)) * len(question.totals)))
    frames = [_at_horizon(study, question, horizon, progress) for horizon in question.horizons]
    return pd.concat(frames, ignore_index=True)


def _at_horizon(study: ScenarioStudy, question: DaysQuestion, horizon: int, progress: Progress) -> pd.DataFrame:
    totals, templates = question.totals, [make_policy(name) for name in study.policies]
    process = build_course(study, horizon, length_public=question.length_public)
    # Of merged records if that is the same for all policies that are compared (`policies.distinct`).
    if all(type(template) in CATALOGUE.built_in.values() and template.row_wise for template in templates):
        process = process.merged()
    course = optimal_course(process)
    evaluator = ProcessEvaluator(process, course, study.by)
    family = ClassSchedules.of(process, held=1)
    with ThreadPoolExecutor(N_THREADS) as pool:
        searched = pool.submit(family.best)
        proved = [pool.submit(first_day_limit, course, process.initial, total, question.delta) for total in totals]
    first = searched.result()
    limits: dict[float | None, float] = {}
    limits |= {total: limit.result() for total, limit in zip(totals, proved, strict=True)}
    references = references_of(evaluator, course)
    plain = {
        template: on_best_values(template, evaluator, course, references)
        for template in templates
        if not template.uses_epsilon
    }
    # The Q-values of all days under the best policy, which nothing looks at any more.
    del course
    schedule = family.by_day(first)
    planner = PrivatePlanner(evaluator, schedule)
    progress.advance(horizon)

    def evaluate(job: Policy | str) -> list[CourseEvaluation]:
        if isinstance(job, str):
            evaluations = _once(evaluator, family, first, totals, references)
        else:
            evaluations = within_totals(
                job, plain.get(job), planner, totals=totals, delta=question.delta, references=references
            )
        found = []
        for each in evaluations:
            found.append(each)
            progress.advance(horizon)
        return found

    # What looks at a prior takes longest, and so begins first.
    jobs: list[Policy | str] = [*sorted(templates, key=lambda job: not job.uses_prior), PLAN_ONCE]
    found = evaluate_each(jobs, evaluate, SILENT)
    result = evaluator.of_schedule(schedule)
    for_all = CourseEvaluation(SCHEDULE, 0.0, result, references, "private", None, 0.0, "exact-losses")
    in_order = [replace(for_all, total=total) for total in totals]
    in_order += [*found[PLAN_ONCE], *chain.from_iterable(found[template] for template in templates)]
    return tabulate((replace(each, limit=limits[each.total]) for each in in_order), COLUMNS_OF_LIMITS)


def _once(
    evaluator: ProcessEvaluator,
    family: ClassSchedules,
    first: Sequence[Schedule],
    totals: tuple[float, ...],
    references: References,
) -> Iterator[CourseEvaluation]:
    """One private choice of a schedule at each total: the optimum among the same public schedules at all of them."""
    problem = family.problem(family.found(first, SCHEDULES, totals))
    best: CourseResult | None = None
    for total in totals:
        logs, chances = make_policy(Optimal.name, epsilon=total).tables(problem)
        counted = [np.einsum("nm,nm->n", chances, table) for table in (problem.utilities, *problem.outcomes.values())]
        found = evaluator.result(counted, [privacy_loss_of_logs(logs, problem.adjacency).epsilon])
        # What a smaller total allows, this one does: the value falls by no rounding either.
        best = found if best is None or found.value[0] >= best.value[0] else best
        spent = min(total, *best.spent)  # above the total by the rounding of a logarithm
        yield CourseEvaluation(PLAN_ONCE, total, best, references, "private", total, spent, "one-choice")


def ways(table: pd.DataFrame) -> pd.DataFrame:
    """The best of each way to spend a total, at each horizon and total, and which way is best.

    The ways are one schedule for all (best-schedule), one private choice of a schedule (plan-once), and the best of
    the policies that choose day by day, of those that stay within the total. What a smaller total allows, a larger one
    does: so no way keeps less at a larger total.

    Parameters
    ----------
    table : DataFrame
        From `compare_days`.

    Returns
    -------
    DataFrame
        horizon, total_epsilon, way, policy, hides, value, benefit_kept, best, most_kept: `best` is true for the way
        that keeps most, the plainest of equals; `most_kept` is what no mechanism exceeds, even if it hides no more than
        the first state.
    """
    within = table["total_spent"] <= table["total_epsilon"] * (1 + EQUAL)
    overall = table[(table["group"] == ALL) & within]
    # In the order of the ways, the plainest first.
    way = overall["policy"].where(overall["policy"].isin([SCHEDULE, ONCE]), DAILY)
    overall = overall.assign(way=pd.Categorical(way, [SCHEDULE, ONCE, DAILY]))
    field, totals = ["horizon", "total_epsilon"], overall["total_epsilon"].unique()
    allowed = [overall[overall["total_epsilon"] <= total].assign(total_epsilon=total) for total in totals]
    ranked = pd.concat(allowed).sort_values("value", ascending=False, kind="stable")
    found = ranked.drop_duplicates([*field, "way"]).sort_values([*field, "way"])
    most = found.groupby(field)["value"].transform("max")
    near = found["value"] >= most - EQUAL * most.abs()
    found["best"] = near & near.groupby([found[name] for name in field]).cumsum().eq(1)
    proved = overall.drop_duplicates(field)[[*field, "most_kept"]]
    columns = [*field, "way", "policy", "hides", "value", "benefit_kept", "best"]
    best_of_each: pd.DataFrame = found[columns].astype({"way": str}).merge(proved, on=field)
    return best_of_each
