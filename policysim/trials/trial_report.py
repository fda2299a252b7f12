"""What choosing privately costs the patients of a log: policies made from one part and evaluated on the other.

A comparison (`trial_columns`), what it shows (`trial_findings`), its words (`trial_words`), and its figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from importlib.metadata import version

import pandas as pd

from policies.catalogue import CATALOGUE
from policies.exponential import Exponential
from policies.optimal.optimum import SameWithinLimits
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.reference import Greedy, Uniform
from policysim import figures
from policysim import numbers as formats
from policysim.figures.curves import MOST_CURVES, choices_seen, lines_seen
from policysim.figures.looks import difference_axis
from policysim.figures.patients import line_by_arm
from policysim.logs.counted_log import is_counted, open_log, require_countable_model
from policysim.numbers import written
from policysim.progress import SILENT, Progress
from policysim.report.contents import Drawing
from policysim.report.report import Report
from policysim.study.declared import LoggedStudy
from policysim.study.study_problem import problem_of_log
from policysim.study.sweep import applies, usable_policies, with_references
from policysim.trials.arms import refuse_single_patients
from policysim.trials.trial_columns import compare_log, judged_on_splits
from policysim.trials.trial_findings import find
from policysim.trials.trial_tables import CALIBRATION
from policysim.trials.trial_words import trial_screen
from policysim.words import ALL

# The names of all figures, of which a log has those that apply.
FIGURES = ("frontier", "forest", "calibration", "propensities", "action-probabilities")


def report(
    study: LoggedStudy,
    *,
    policies: Sequence[str] | None = None,
    epsilons: Sequence[float] | None = None,
    counted: bool = False,
    executor: Executor | None = None,
    progress: Progress = SILENT,
) -> Report:
    """Compare policies on the patients of a log.

    Parameters
    ----------
    study : LoggedStudy
        The log, its arms, outcome and features, policies, epsilons and groups.
    policies : sequence of str, optional
        Policies that are asked for by name, in place of the study's: one that cannot be used is refused, and each has a
        letter, as far as there are letters. "all" are those of the catalogue that can be used.
    epsilons : sequence of float, optional
        In place of the study's.
    counted : bool, optional
        Whether the log is counted and not read, also if it is in one file.
    executor : concurrent.futures.Executor, optional
        Counts the files of a log; by default this thread does.
    progress : Progress, optional
        Told of each fit and each policy in each split.
    """
    every = policies is not None and "all" in policies
    study = study.with_choices(policies=policies, epsilons=epsilons)
    counted = is_counted(study.log, counted=counted)
    if counted:
        require_countable_model(study.log.outcome_model)
    log = open_log(study.log, executor, progress, counted=counted)
    refuse_single_patients(study.log, log)
    problem = problem_of_log(study, log)
    study, left_out = _usable(study, problem, named=not every)
    names = with_references(study.policies)
    compared = compare_log(replace(study, policies=tuple(dict.fromkeys([*names, Exponential.name]))), log, progress)
    findings = find(study, log, problem, compared, left_out, named=study.policies if policies and not every else ())
    shown = compared["policy"].isin([*names, SameWithinLimits.name])
    comparison = written(compared[shown].reset_index(drop=True))
    tables = findings.details.tables
    screens = {epsilon: trial_screen(study, findings, epsilon) for epsilon in study.epsilons}
    return Report(
        findings=findings,
        screen=screens[study.epsilon],
        screens=screens,
        more_tables={"comparison": comparison, **{name: table for name, table in tables.items() if not table.empty}},
        name=study.name,
        epsilon=study.epsilon,
        drawings=drawings(study, comparison, tables),
        identity={
            **study.identity,
            "choices": {**study.choices, "counted": counted},
            "records": problem.n_records,
            "actions": list(problem.actions),
            # What the file alone decides.
            "epsilon": study.epsilon,
            **({"public": list(study.public)} if study.public else {}),
            **({"at_most": dict(study.at_most)} if study.at_most else {}),
            **({"capacity": dict(study.capacity)} if study.capacity else {}),
        },
        data=study.data,
        packages={"scikit-learn": version("scikit-learn"), **CATALOGUE.versions(study.policies)},
        related=study.related,
    )


def _usable(study: LoggedStudy, problem: DecisionProblem, *, named: bool) -> tuple[LoggedStudy, tuple[str, ...]]:
    """The study with those of its policies that can be used, and why others cannot; see `usable_policies`."""
    usable, left_out = usable_policies(study.first_policies, problem, named=named)
    bounded = [name for name in usable if not applies(study.policy(name), problem)]
    left_out += tuple(f"{name}: only bounds of it could be computed" for name in bounded)
    return replace(study, policies=tuple(name for name in usable if name not in bounded)), left_out


def judged_on_held_out(study: LoggedStudy, policies: Sequence[Policy], progress: Progress = SILENT) -> pd.DataFrame:
    """Read the log of a study, and judge policies on it: `judged_on_splits`."""
    if is_counted(study.log):
        require_countable_model(study.log.outcome_model)
    return judged_on_splits(study, open_log(study.log, progress=progress), policies, progress)


def drawings(study: LoggedStudy, comparison: pd.DataFrame, tables: Mapping[str, pd.DataFrame]) -> list[Drawing]:
    """The figures that there are, from a comparison and the tables of its findings."""
    comparison = comparison[comparison["policy"] != SameWithinLimits.name]
    policies = comparison[~comparison["policy"].isin([Greedy.name, Uniform.name])]
    made = [
        gain(comparison, study.epsilon),
        groups(policies[policies["epsilon"] == study.epsilon], study.epsilon),
        calibration(tables["calibration"]),
        propensities(tables["propensities"]),
        example_choices(tables["examples"]),
    ]
    return [drawing for drawing in made if drawing]


def gain(table: pd.DataFrame, epsilon: float) -> Drawing | None:
    """What each policy gains over A at each epsilon; those drawn are chosen at the study's."""
    drawn = figures.over_epsilon(table)
    if drawn.empty:
        return None
    # Percentages are refused on many logs, and differences never: the same figure for all of them.
    plain = drawn.assign(benefit_kept=float("nan"))
    # The line of the arm for all is one of the panel's.
    names = figures.telling(drawn, epsilon=epsilon, most=MOST_CURVES - 1)
    seen = lines_seen(drawn, "difference", partial(formats.rounded, sign=True), epsilon=epsilon, names=names)
    return Drawing(
        "frontier",
        lambda size: figures.frontier(plain, epsilon=epsilon, size=size),
        title="What each policy gains over A, against ε",
        caption=f"The {difference_axis(list(table)).partition(',')[0]} under each policy minus that under A, the arm "
        "that did best in the other folds (the line at zero). Shaded: the 95 % interval. No patient had a part in "
        "making the policy. On top: how often an observer tells two patients apart, of 100. Dashed red: the ε chosen "
        "above.",
        alternative=f"{seen}.",
        file="comparison.csv",
        epsilons=tuple(map(float, sorted(table["epsilon"].unique()))),
    )


def groups(rows: pd.DataFrame, epsilon: float) -> Drawing | None:
    """Against A, group by group; None without groups."""
    rows = rows[rows["difference"].notna()]
    if rows.empty or (rows["group"] == ALL).all():
        return None
    shown = rows[rows["policy"].isin(figures.telling(rows))]
    ends = ["policy", "difference", "difference_low", "difference_high"]
    seen = [
        f"{policy} {formats.supported_digits(*each, sign=True)} ({formats.interval(*each[1:], sign=True)})"
        for policy, *each in shown.loc[shown["group"] == ALL, ends].itertuples(index=False)
    ]
    clear = (shown["difference_low"] > 0) | (shown["difference_high"] < 0)
    return Drawing(
        "forest",
        lambda size: figures.forest(rows, size=size),
        title=f"Group by group, at ε = {formats.plain(epsilon)}",
        caption="The same difference in each group of patients. Bars are 95 % intervals, each by itself. The estimate "
        "of a small group says little.",
        alternative=f"Of everyone: {'; '.join(seen)}. Of {len(shown)} intervals {int(clear.sum())} exclude 0.",
        file="comparison.csv",
    )


def calibration(table: pd.DataFrame) -> Drawing:
    """What was seen against what the scores predict."""
    title = "What was seen against what the scores predict"
    axis_titles = ("mean score of a third of an arm's patients", "their mean outcome")
    return Drawing(
        "calibration",
        lambda size: line_by_arm(table, "predicted", title=title, axis_titles=axis_titles, size=size),
        title=title,
        caption="A dot is a third of an arm's patients, by scores that were fitted without them. Bars are 95 % "
        "intervals. On the grey line scores are right.",
        alternative=f"{len(table)} thirds, whose numbers are in the table “{CALIBRATION}”.",
        file="calibration.csv",
    )


def propensities(table: pd.DataFrame) -> Drawing | None:
    """How probable the treatments were that patients got; None where that does not vary within the arms."""
    if table.empty:
        return None
    title = "How probable the treatments were that patients got"
    axis_titles = ("probability of the treatment", "share of the arm's patients with at most this")
    return Drawing(
        "propensities",
        lambda size: line_by_arm(table, "propensity", title=title, axis_titles=axis_titles, size=size),
        title=title,
        caption="Curves that start near zero belong to arms in which few patients stand for many others.",
        file="propensities.csv",
    )


def example_choices(examples: pd.DataFrame) -> Drawing:
    """What example patients get by the best private draw."""
    mine = examples.assign(policy="best private draw")
    return Drawing(
        "action-probabilities",
        lambda size: figures.action_probabilities(mine, size=size),
        title="What example patients get, against ε",
        caption="The probability of each treatment under B, the best private draw, made from the whole log.",
        alternative=choices_seen(mine, 1.0),
        file="examples.csv",
        epsilons=tuple(map(float, sorted(mine["epsilon"].unique()))),
    )
