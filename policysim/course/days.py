"""Treatment over days against the total privacy budget: which mechanism, at which total epsilon and horizon."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from policies.arrays import FloatArray
from policies.catalogue import CATALOGUE, make_policy
from policies.optimal.optimum import Optimal, daily_name
from policies.policy import NotApplicableError, Policy
from policies.privacy_loss import privacy_loss_of_logs
from policysim.course import occupancy
from policysim.course.course_comparison import on_best_values, or_fault, references_of, told, within_totals
from policysim.course.course_evaluation import (
    COLUMNS_OF_LIMITS,
    CourseEvaluation,
    CourseResult,
    ProcessEvaluator,
)
from policysim.course.course_limit import MOST_EXACT, RATIONALS, ProvenLimit, first_day_limit, limit_of_first_days
from policysim.course.once import SCHEDULES
from policysim.course.plan_tree import TreePlan, best_tree
from policysim.course.planning import DailyDecisions, optimal_course
from policysim.course.private_planner import PrivatePlanner
from policysim.course.schedules import SEARCHED, ClassSchedules, DayAction
from policysim.course.treatment_course import build_course
from policysim.progress import SILENT, Progress
from policysim.study.checks import BROKEN
from policysim.study.declared import ScenarioStudy
from policysim.study.sweep import N_THREADS, evaluate_each, tabulate
from policysim.words import ALL, PLAN_ONCE, PLAN_TREE
from policysim.words import BEST_SCHEDULE as SCHEDULE

# The ways to spend a total: nothing, on one choice of all days, within a tree of courses, or day by day.
ONCE, TREE, DAILY = PLAN_ONCE, PLAN_TREE, "day by day"
# Of values that differ by no more than this share of the largest, the plainest way counts as the best.
EQUAL = 1e-9
# The work that bounds what hides the course, beside that which is named by a policy or a total.
LIMIT = "limit"
# Between the treatments of a course.
THEN = " > "
COURSES = {"horizon": int, "total_epsilon": float, "class": int, "course": str, "least": float, "parts": float}
# Why a policy is left out, and the table that says so.
LEFT_OUT_FOR, LEFT_OUT = (*BROKEN, NotApplicableError), ["policy", "reason"]
# How many horizons are compared: one day, the whole course, and between them in equal ratios.
N_HORIZONS = 4


def horizons_of(horizon: int) -> tuple[int, ...]:
    """The horizons that are compared, rising: one day, the whole course, and between them in equal ratios.

    Examples
    --------
    >>> horizons_of(14), horizons_of(1)
    ((1, 2, 6, 14), (1,))
    """
    steps = [round(horizon ** (i / (N_HORIZONS - 1))) for i in range(N_HORIZONS)]
    return tuple(sorted({*steps, horizon}))


def stated_total(totals: Sequence[float], epsilon: float) -> float:
    """The total at which an answer is stated: the nearest to a study's epsilon, the smaller of two."""
    return min(totals, key=lambda total: abs(total - epsilon))


def compare_days(
    study: ScenarioStudy,
    *,
    horizon: int,
    totals: Sequence[float],
    delta: float = 0.0,
    length_public: bool = False,
    progress: Progress = SILENT,
) -> dict[str, pd.DataFrame]:
    """Evaluate the study's policies exactly over the whole course, at each horizon and total epsilon.

    Parameters
    ----------
    study : ScenarioStudy
        Its scenario, utility, policies and groups.
    horizon : int
        Days; shorter courses are compared, too (`horizons_of`).
    totals : sequence of float
        Total epsilons of a patient's course, rising.
    delta : float, optional
        Of (epsilon, delta)-privacy (`PrivacyBudget`): by how much the probability of any set of published courses
        may be above e^epsilon times that under another course of records. With 0 only basic composition is used.
    length_public : bool, optional
        Whether when a patient's stay ends is declared public.
    progress : Progress, optional
        Told of the days that were evaluated.

    Returns
    -------
    dict of str to DataFrame
        comparison : one row per horizon, policy, total epsilon and group, with the columns of
            `policysim.course.course_comparison.compare_process`. Beside the study's policies, of which the optimum of
            each day is called "optimal-daily", there are "best-schedule", one schedule for all, "plan-once", the
            optimum among public schedules (`policysim.course.once`), and "plan-tree"
            (`policysim.course.plan_tree`); their epsilon is that of the whole course. About privacy:

            horizon : days
            total_epsilon : the budget of the course, with this delta
            epsilon : the largest that one day has; of plan-once and plan-tree that of the course
            composition : what proves the total (`policysim.course.composition.composed`); "one-choice" for plan-once
                and "tree" for plan-tree, of which nothing adds up
            epsilon_spent : the largest exact privacy loss of one day; of plan-once and plan-tree that of the course
            total_spent : what the course spends at most at this delta; of a policy that takes no epsilon the sum of
                its losses, which may be above the total (greedy: inf)
            hides : "course": any two courses of a patient's records are hidden among each other, within total_spent
                and delta; "nothing", where total_spent is inf
            unbeatable : for everyone, the value that no mechanism within the total exceeds (`course_limit`), rounded up
            most_kept : the share of the benefit that this is, rounded up
            most_kept_hides : what the mechanisms hide at least that these two bound, "course" or "first state". Who
                hides the course hides the first state, too
            most_kept_proof : how it was proved, in "rationals" or with "directed rounding"
        courses : what plan-tree may publish, a row for each course: horizon, total_epsilon, class (the number of the
            public class), course, least (the probability that it has at least, whatever the records are; at most
            e^epsilon times as much) and parts (the same in whole numbers; none of one choice).
        published : what plan-tree gives on each day at the stated total: group (a feature of the first record), level
            and share, day, and the share of each treatment.
        schedule : what best-schedule gives over the longest horizon: class (the number of the public class), day,
            treatment.
        left_out : policies that cannot be used here or reveal more than they claim, and the error as the reason.
        spent : what each policy that draws anew each day spends over the longest horizon: total_epsilon, policy, day,
            epsilon_spent (the exact privacy loss of the day) and composition.

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
    horizons = horizons_of(horizon)
    progress.expect(sum(horizons) * (1 + (2 + len(study.policies)) * len(totals)))
    at_horizon = partial(_at_horizon, study, totals=totals, delta=delta, length_public=length_public, progress=progress)
    # The longest first: if memory cannot hold it, this is found out before any work.
    parts = [at_horizon(days, longest=days == horizon) for days in reversed(horizons)][::-1]
    joined = {name: pd.concat([part[name] for part in parts], ignore_index=True) for name in ("comparison", "courses")}
    left_out = pd.concat([part["left_out"] for part in parts[::-1]]).drop_duplicates("policy")
    kept = ~joined["comparison"]["policy"].isin(left_out["policy"])
    return parts[-1] | joined | {"comparison": joined["comparison"][kept], "left_out": left_out}


class _Stay:
    """One horizon: the process, who evaluates on it, and what all mechanisms start from."""

    def __init__(
        self,
        study: ScenarioStudy,
        horizon: int,
        templates: Sequence[Policy],
        *,
        totals: Sequence[float],
        delta: float,
        length_public: bool,
    ) -> None:
        process = build_course(study, horizon, length_public=length_public)
        # Of merged records if that is the same for all policies that are compared (`policies.distinct`).
        if all(type(template) in CATALOGUE.built_in.values() and template.row_wise for template in templates):
            process = process.merged()
        course = optimal_course(process)
        self.evaluator = evaluator = ProcessEvaluator(process, course, study.by)
        self.process, self.totals, self.delta = process, totals, delta
        # Schedules that change every day; and those of a tree, which holds its actions where there are many days.
        self.family, self.reacting = family, reacting = ClassSchedules.of(process, held=1), ClassSchedules.of(process)
        same = reacting.families[0].held == family.families[0].held
        with ThreadPoolExecutor(N_THREADS) as pool:
            searched = pool.submit(family.best)
            held = None if same else pool.submit(lambda: reacting.found(reacting.best(), SCHEDULES))
            proved = [pool.submit(_first_day_limit, course, process.initial, total, delta) for total in totals]
        first = searched.result()
        self.references = references_of(evaluator, course)
        # The policies that take no epsilon.
        on_best = partial(on_best_values, evaluator=evaluator, course=course, references=self.references)
        self.plain = {each: or_fault(on_best, *LEFT_OUT_FOR)(each) for each in templates if not each.uses_epsilon}
        # The Q-values of all days under the best policy, which nothing looks at any more.
        del course, on_best
        self.by_day = family.by_day(first)
        self.planner = PrivatePlanner(evaluator, self.by_day)
        # Of each class, the public schedules: those that change every day, and those that a tree starts from.
        self.schedules = family.found(first, SCHEDULES)
        self.starts = self.schedules if held is None else held.result()
        # What no mechanism exceeds within each total.
        self.limits = {
            total: ProvenLimit(limit.result(), RATIONALS, "first state")
            for total, limit in zip(totals, proved, strict=True)
        }

    def daily(self, template: Policy, progress: Progress) -> list[CourseEvaluation]:
        """A policy that draws anew each day, within each total; why it is left out, if that was found."""
        result = self.plain.get(template)
        if isinstance(result, LEFT_OUT_FOR):
            raise result
        within = within_totals(
            template, result, self.planner, totals=self.totals, delta=self.delta, references=self.references
        )
        return told(within, progress, len(self.by_day))

    def tree(self, total: float, progress: Progress) -> tuple[TreePlan, CourseResult]:
        """The best tree within a total, and what it is worth."""
        limit = self.limits[total].value
        plan = best_tree(self.reacting, self.starts, epsilon=total, courses=SCHEDULES, limit=limit)
        counted = [plan.counted(), *map(plan.counted, self.process.outcomes)]
        progress.advance(len(self.by_day))
        result = self.evaluator.result(counted, [(plan.epsilon_spent,)])
        return plan, self.evaluator.with_everyone(result, lambda: occupancy.of_tree(plan))


def _at_horizon(
    study: ScenarioStudy,
    horizon: int,
    *,
    longest: bool,
    totals: Sequence[float],
    delta: float,
    length_public: bool,
    progress: Progress,
) -> dict[str, pd.DataFrame]:
    templates, stated = [make_policy(name) for name in study.policies], stated_total(totals, study.epsilon)
    stay = _Stay(study, horizon, templates, totals=totals, delta=delta, length_public=length_public)
    references = stay.references
    progress.advance(horizon)
    # What takes longest begins first: the limit, the trees of large totals, and then what looks at a prior.
    work: dict[Hashable, Callable[[], Any]] = {}
    proofs: dict[float, float] = {}
    if longest and horizon > 1 and delta == 0:
        proofs = _proofs_over_days(totals, len(stay.process.initial), study.epsilon)
    for epsilon in set(proofs.values()):
        work[LIMIT, epsilon] = partial(limit_of_first_days, stay.process, epsilon, 2)
    work |= {total: partial(stay.tree, total, progress) for total in reversed(totals)}
    slowest_first = sorted(templates, key=lambda template: not template.uses_prior)
    daily = or_fault(partial(stay.daily, progress=progress), *LEFT_OUT_FOR)
    work |= {template: partial(daily, template) for template in slowest_first}
    work[ONCE] = lambda: told(_once(stay), progress, horizon)
    done: dict[Hashable, Any] = evaluate_each(work, lambda name: work[name](), SILENT)
    for total, epsilon in proofs.items():
        stay.limits[total] = min(stay.limits[total], done[LIMIT, epsilon], key=lambda limit: limit.value)
    broken = {template: done[template] for template in templates if isinstance(done[template], LEFT_OUT_FOR)}
    templates = [template for template in templates if template not in broken]
    plans: dict[float, TreePlan] = {total: done[total][0] for total in totals}
    for_all = partial(CourseEvaluation, SCHEDULE, 0.0, stay.evaluator.of_schedule(stay.by_day), references, "private")
    in_order = [for_all(total, 0.0, "exact-losses") for total in totals]
    in_order += [*done[ONCE], *_trees([done[total][1] for total in totals], done[ONCE])]
    in_order += chain.from_iterable(done[template] for template in templates)
    bounded = (replace(each, limit=stay.limits[each.total]) for each in in_order if each.total is not None)
    tables = {
        "comparison": tabulate(bounded, COLUMNS_OF_LIMITS),
        "courses": pd.concat([courses_of(plans[total], horizon, total) for total in totals], ignore_index=True),
        "left_out": pd.DataFrame([(daily_name(each.name), why) for each, why in broken.items()], columns=LEFT_OUT),
    }
    if not longest:
        return tables
    # Where stays end by themselves, it is not known who is still there on a day.
    published = pd.DataFrame() if length_public else published_by_day(plans[stated], stay.evaluator, study.space.names)
    drawn_daily = list(chain.from_iterable(done[template] for template in templates if template.uses_epsilon))
    schedule = schedule_of(stay.by_day, stay.process.actions)
    return {**tables, "published": published, "schedule": schedule, "spent": spent_by_day(drawn_daily)}


def _first_day_limit(course: DailyDecisions, initial: FloatArray, total: float, delta: float) -> float:
    """The limit by the first day at a total; with a delta, a proof at a larger total may say more, and bounds it, too.

    The larger ones are always the same, so that the limit depends on no other total that is asked for.
    """
    larger = [epsilon for epsilon in SEARCHED if epsilon > total] if delta else []
    return min(first_day_limit(course, initial, epsilon, delta) for epsilon in (total, *larger))


def _proofs_over_days(totals: Sequence[float], n_states: int, epsilon: float) -> dict[float, float]:
    """For each total that has one, the epsilon of the proof over two days that bounds it; it depends on no other total.

    Each has its own where that takes seconds. Of many states there is one, at the study's epsilon, which bounds all
    smaller totals as well: what keeps within a smaller total keeps within a larger one.
    """
    if n_states <= MOST_EXACT:
        return {total: total for total in totals if total < math.inf}
    return {total: epsilon for total in totals if total <= epsilon < math.inf}


def schedule_of(by_day: Sequence[DayAction], actions: Sequence[str]) -> pd.DataFrame:
    """What everybody gets on each day, in each public class: the table "schedule" of `compare_days`."""
    rows = [
        (kind, day, actions[int(action)])
        for day, given in enumerate(by_day, start=1)
        for kind, action in enumerate(given if isinstance(given, tuple) else (given,))
    ]
    return pd.DataFrame(rows, columns=["class", "day", "treatment"]).sort_values(["class", "day"], ignore_index=True)


def spent_by_day(evaluations: Sequence[CourseEvaluation]) -> pd.DataFrame:
    """What policies that draw anew each day spend on each: the table "spent" of `compare_days`."""
    rows = [
        (each.total, each.policy, day, spent, each.composition)
        for each in evaluations
        for day, spent in enumerate(each.result.spent, start=1)
    ]
    return pd.DataFrame(rows, columns=["total_epsilon", "policy", "day", "epsilon_spent", "composition"])


def _once(stay: _Stay) -> Iterator[CourseEvaluation]:
    """One private choice of a schedule at each total: the optimum among the same public schedules at all of them."""
    problem, best = stay.family.problem(stay.schedules), None
    for total in stay.totals:
        logs, chances = make_policy(Optimal.name, epsilon=total).tables(problem)
        counted = [np.einsum("nm,nm->n", chances, table) for table in (problem.utilities, *problem.outcomes.values())]
        result = stay.evaluator.result(counted, [(privacy_loss_of_logs(logs, problem.adjacency).epsilon,)])
        given = partial(occupancy.of_schedules, stay.process, stay.family.expanded(stay.schedules), chances)
        found = stay.evaluator.with_everyone(result, given)
        # What a smaller total allows, this one does: the value falls by no rounding either.
        best = found if best is None or found.value[0] >= best.value[0] else best
        spent = min(total, *best.spent)  # above the total by the rounding of a logarithm
        yield CourseEvaluation(ONCE, total, best, stay.references, "private", total, spent, "one-choice")


def _trees(reacting: Sequence[CourseResult], once: Sequence[CourseEvaluation]) -> Iterator[CourseEvaluation]:
    """What reacts within a tree of courses, at each total; or what it could be, one choice or a smaller total's."""
    best = once[0].result
    for found, choice in zip(reacting, once, strict=True):
        best = max(found, choice.result, best, key=lambda result: float(result.value[0]))
        total = choice.epsilon
        yield CourseEvaluation(TREE, total, best, choice.references, "private", total, min(total, *best.spent), "tree")


def courses_of(plan: TreePlan, horizon: int, total: float) -> pd.DataFrame:
    """The courses that may be published: the table "courses" of `policysim.course.days.compare_days`."""
    actions = plan.family.process.actions
    rows = [
        (
            horizon,
            total,
            kind,
            THEN.join(actions[action] for action in course),
            least,
            math.nan if tree.first is not None else weight,
        )
        for kind, tree in enumerate(plan.trees)
        for (course, weight, _, _), least in zip(tree.leaves, tree.least, strict=True)
    ]
    return pd.DataFrame(rows, columns=list(COURSES)).astype(COURSES)


def published_by_day(plan: TreePlan, evaluator: ProcessEvaluator, features: Sequence[str]) -> pd.DataFrame:
    """What is given on each day, to everyone and by features of the first record: the table "published"."""
    actions, chances = plan.family.process.actions, []
    for states, own, tree in zip(plan.family.states, plan.family.families, plan.trees, strict=True):
        for course, chance in tree.chances(own).items():
            everybody = np.zeros(len(plan.classes))
            everybody[states] = chance
            chances.append((own.expanded([course])[0].tolist(), everybody))
    rows = []
    for place, groups in enumerate(evaluator.grouped([name] if name else []) for name in ("", *features)):
        shares = np.zeros((plan.horizon, len(actions), len(groups)))
        for course, chance in chances:
            shares[np.arange(plan.horizon), course] += evaluator.means(chance, groups)
        # Everyone is told of once.
        for member, group in list(enumerate(groups))[min(place, 1) :]:
            rows += [
                (group.feature, group.level, group.share, day, *of_day[:, member])
                for day, of_day in enumerate(shares, start=1)
            ]
    return pd.DataFrame(rows, columns=["group", "level", "share", "day", *(f"p_{name}" for name in actions)])


def ways(table: pd.DataFrame) -> pd.DataFrame:
    """The best of each way to spend a total, at each horizon and total, and which way is best.

    The ways are one schedule for all (best-schedule), one private choice of a schedule (plan-once), what reacts within
    a tree of courses (plan-tree), and the best of the policies that choose day by day, of those that stay within the
    total. What a smaller total allows, a larger one does: so no way keeps less at a larger total.

    Parameters
    ----------
    table : DataFrame
        "comparison" of `compare_days`.

    Returns
    -------
    DataFrame
        horizon, total_epsilon, way, policy, hides, value, benefit_kept, best, most_kept: `best` is true for the way
        that keeps most, the plainest of equals; `most_kept` is what no mechanism exceeds.
    """
    within = table["total_spent"] <= table["total_epsilon"] * (1 + EQUAL)
    overall = table[(table["group"] == ALL) & within]
    # In the order of the ways, the plainest first.
    way = overall["policy"].where(overall["policy"].isin([SCHEDULE, ONCE, TREE]), DAILY)
    overall = overall.assign(way=pd.Categorical(way, [SCHEDULE, ONCE, TREE, DAILY]))
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
