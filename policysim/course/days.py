"""Treatment over days against the total privacy budget: which mechanism, at which total epsilon and horizon."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from policies.arrays import ROUNDING
from policies.catalogue import CATALOGUE, make_policy
from policies.optimal.optimum import Optimal
from policies.privacy_loss import privacy_loss_of_logs
from policies.reference import BestFixed
from policysim.course.class_schedules import ClassSchedules
from policysim.course.course_comparison import CourseReferences, course_rows, evaluate_all
from policysim.course.course_evaluation import CourseResult, ProcessEvaluator
from policysim.course.course_limit import first_day_limit
from policysim.course.course_totals import rows_at_totals
from policysim.course.once import SCHEDULES
from policysim.course.private_planner import PrivatePlanner
from policysim.course.schedules import Schedule
from policysim.course.step_problems import optimal_course
from policysim.course.treatment_course import TreatmentCourse, build_course
from policysim.question.protocol import SILENT, Progress
from policysim.question.words import ALL, PLAN_ONCE
from policysim.question.words import BEST_SCHEDULE as SCHEDULE
from policysim.study.declared import ScenarioStudy
from policysim.study.sweep import N_THREADS

# How many horizons are compared: one day, the whole course, and between them in equal ratios.
N_HORIZONS = 4
# What a share of the gain may be too small by, and more.
SLACK = 1e-12


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
        composition : what proves the total (`policysim.course.composition.composed`); "one-choice" for plan-once, of
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
    process, totals = _course(study, horizon, length_public=question.length_public), question.totals
    course = optimal_course(process)
    evaluator = ProcessEvaluator(process, course, study.by)
    templates = [make_policy(name) for name in study.policies]
    plain = [template for template in templates if not template.uses_epsilon]
    family = ClassSchedules.of(process, held=1)
    with ThreadPoolExecutor(N_THREADS) as pool:
        searched = pool.submit(family.best)
        proved = [pool.submit(first_day_limit, course, process.initial, total, question.delta) for total in totals]
    first, limits = searched.result(), {total: limit.result() for total, limit in zip(totals, proved, strict=True)}
    references, results = evaluate_all(evaluator, course, plain, lambda: None)
    # The Q-values of all days under the best policy, which nothing looks at any more.
    del course
    planner = PrivatePlanner(evaluator, family.by_day(first))
    progress.advance(horizon)

    def advance() -> None:
        progress.advance(horizon)

    daily = partial(
        rows_at_totals, planner, totals=totals, delta=question.delta, references=references, advance=advance
    )
    schedule = course_rows(evaluator, BestFixed(), 0.0, evaluator.of_schedule(family.by_day(first)), references).assign(
        policy=SCHEDULE, total_spent=0.0, composition="exact-losses", continuation="private"
    )
    with ThreadPoolExecutor(N_THREADS) as pool:
        # What looks at a prior takes longest, and so begins first.
        in_order = sorted(templates, key=lambda job: not job.uses_prior)
        begun = {job: pool.submit(daily, job, results.get(job)) for job in in_order}
        once = pool.submit(_once_rows, evaluator, family, first, totals=totals, references=references, advance=advance)
        jobs = [once, *(begun[template] for template in templates)]
    frames = [*(schedule.assign(total_epsilon=total) for total in totals), *(job.result() for job in jobs)]
    table = pd.concat(frames, ignore_index=True)
    return _with_limits(table, limits, references)


def _course(study: ScenarioStudy, horizon: int, *, length_public: bool) -> TreatmentCourse:
    """The course, of merged records if that is the same for all policies that are compared (`policies.distinct`)."""
    course = build_course(study, horizon, length_public=length_public)
    policies = [make_policy(name) for name in study.policies]
    same = all(type(policy) in CATALOGUE.built_in.values() and policy.row_wise for policy in policies)
    return course.merged() if same else course


def _with_limits(table: pd.DataFrame, limits: Mapping[float, float], references: CourseReferences) -> pd.DataFrame:
    """The table with what no mechanism exceeds at each total, for everyone: `unbeatable` and `most_kept`."""
    unbeatable = table["total_epsilon"].map(limits).where(table["group"] == ALL)
    best = float(references.best.means[0, 0])
    fixed = math.nan if references.fixed is None else float(references.fixed.means[0, 0])
    gain = best - fixed if best - fixed > ROUNDING * abs(best) else math.nan
    # Rounded up by more than what a difference and a quotient lose; and nothing keeps more than the best for each.
    most = np.minimum((unbeatable - fixed) / gain + SLACK, 1.0)
    return table.assign(unbeatable=unbeatable, most_kept=most, most_kept_hides="first state")


def _once_rows(
    evaluator: ProcessEvaluator,
    family: ClassSchedules,
    first: Sequence[Schedule],
    *,
    totals: tuple[float, ...],
    references: CourseReferences,
    advance: Callable[[], object],
) -> pd.DataFrame:
    """One private choice of a schedule at each total: the optimum among the same public schedules at all of them."""
    problem = family.problem(family.found(first, SCHEDULES, totals))
    frames: list[pd.DataFrame] = []
    best: CourseResult | None = None
    for total in totals:
        logs, chances = make_policy(Optimal.name, epsilon=total).tables(problem)
        tables = [problem.utilities, *problem.outcomes.values()]
        means = [evaluator.means(np.einsum("nm,nm->n", chances, table)) for table in tables]
        found = CourseResult(np.stack(means, axis=1), (privacy_loss_of_logs(logs, problem.adjacency).epsilon,))
        # What a smaller total allows, this one does: the value falls by no rounding either.
        best = found if best is None or found.means[0, 0] >= best.means[0, 0] else best
        rows = course_rows(evaluator, BestFixed(), total, best, references)
        spent = min(total, *best.spent)  # above the total by the rounding of a logarithm
        frames.append(
            rows.assign(
                policy=PLAN_ONCE,
                total_epsilon=total,
                total_spent=spent,
                composition="one-choice",
                continuation="private",
            )
        )
        advance()
    return pd.concat(frames, ignore_index=True)
