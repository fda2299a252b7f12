"""Treatment over days as a report: the comparison within totals of ε, its findings, words, tables and figures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from policies.catalogue import CATALOGUE
from policies.exponential import ExponentialFitted
from policies.optimal.optimum import OptimalRobust, OptimalSafe, catalogue_name, daily_name
from policies.policy import NotApplicableError
from policies.reference import Greedy
from policysim import figures
from policysim.course.days import ONCE, TREE, compare_days, horizons_of
from policysim.course.days_findings import DaysDetails, find
from policysim.course.days_words import words_of_days
from policysim.course.process import NotEnoughMemoryError
from policysim.course.treatment_course import public_over_days
from policysim.errors import EXIT_CHECK, UsageError
from policysim.numbers import achieved, days, digits_of, not_above, percent, plain, written
from policysim.progress import SILENT, Progress
from policysim.report.contents import Drawing
from policysim.report.findings import Findings, rows_of
from policysim.report.report import Report
from policysim.study.checks import BROKEN
from policysim.study.declared import ScenarioStudy, require_scenario
from policysim.study.labels import level_in_words
from policysim.study.study_problem import build_problem
from policysim.study.sweep import checked_epsilons, usable_policies
from policysim.words import ALL

# What looks at the outcomes or at other priors of one decision, which over days are not counted.
OF_ONE_DECISION = (OptimalSafe.name, OptimalRobust.name)
# The names of all figures, of which a study has those that apply.
FIGURES = ("course", "published", "ways")
# The total epsilons by default.
TOTALS = (1.0, 2.0, 5.0, 10.0)
# Digits of a total that is printed.
MOST_DIGITS = 6


def report(
    study: ScenarioStudy,
    *,
    horizon: int,
    total_epsilons: Sequence[float] | float | None = None,
    delta: float = 0.0,
    length_public: bool = False,
    policies: Sequence[str] | None = None,
    progress: Progress = SILENT,
) -> Report:
    """Compare ways to treat over days within totals of epsilon.

    Parameters
    ----------
    study : ScenarioStudy
        Its scenario, utility, policies, groups and what is public.
    horizon : int
        Days.
    total_epsilons : sequence of float, optional
        What all days may reveal together; 1, 2, 5 and 10 by default.
    delta : float, optional
        Of (epsilon, delta)-privacy.
    length_public : bool, optional
        Whether when a stay ends is public.
    policies : sequence of str, optional
        Policies that get letters and columns of their own; by default the study's, without columns.
    progress : Progress, optional
        Counts days that were evaluated.

    Raises
    ------
    ValueError
        For a study of a log, what cannot be hidden over days, and unknown policies.
    UsageError
        For policies of one decision alone, and more days than memory holds.
    ClaimError
        If all policies that were named reveal more than they claim; others are left out and named, and the exit
        code is 4.
    """
    study = require_scenario(study)
    public_over_days(study)
    named = [] if policies is None or "all" in policies else [daily_name(name) for name in policies]
    study, compared, left_out = _usable(study, policies)
    totals = tuple(
        sorted({_printable(total) for total in checked_epsilons(TOTALS if total_epsilons is None else total_epsilons)})
    )
    try:
        tables = compare_days(
            replace(study, policies=compared),
            horizon=horizon,
            totals=totals,
            delta=delta,
            length_public=length_public,
            progress=progress,
        )
    except NotEnoughMemoryError as error:
        raise UsageError(f"--horizon {horizon}: {error}") from None
    broken = tables.pop("left_out")
    if named and set(named) <= set(broken["policy"]):
        raise broken["reason"].iloc[0]
    named = [name for name in named if name not in set(broken["policy"])]
    left_out += tuple(map(_left_out, broken["policy"], broken["reason"]))
    findings = find(study, tables, delta=delta, length_public=length_public, named=named, left_out=left_out)
    made = report_of(study, tables, findings)
    return replace(made, exit_code=EXIT_CHECK) if any(isinstance(why, BROKEN) for why in broken["reason"]) else made


def _usable(
    study: ScenarioStudy, policies: Sequence[str] | None
) -> tuple[ScenarioStudy, tuple[str, ...], tuple[str, ...]]:
    """The study with the policies that can be used, all policies that are compared, and why others are not."""
    asked_by_name = policies is not None and "all" not in policies
    if policies is not None:
        # plan-once and plan-tree are compared in any case; the optimum has another name over days.
        daily = [catalogue_name(name) for name in policies if name not in (ONCE, TREE)]
        study = study.with_choices(policies=daily or [ExponentialFitted.name])
    apart = [name for name in study.policies if name in OF_ONE_DECISION]
    over_days = replace(study, policies=tuple(name for name in study.policies if name not in apart))
    if not over_days.policies:
        raise UsageError(f"{apart[0]} is for one decision, and does not go with --horizon")
    usable, left_out = usable_policies(over_days.first_policies, build_problem(over_days), named=asked_by_name)
    compared = tuple(dict.fromkeys((*usable, ExponentialFitted.name, Greedy.name)))
    # A study's own list is shared with one decision.
    left_out += tuple(f"{name}, which is for one decision" for name in apart if policies is not None)
    return replace(over_days, policies=usable), compared, left_out


def _left_out(name: str, reason: Exception) -> str:
    """Why a policy is not compared, in words."""
    return f"{name}, as {reason}" if isinstance(reason, NotApplicableError) else str(reason)


def _printable(total: float) -> float:
    """A total that is printed whole: rounded down where it has too many digits."""
    return not_above(total, MOST_DIGITS) if 0 < total < math.inf and digits_of(total) > MOST_DIGITS else total


def report_of(study: ScenarioStudy, tables: Mapping[str, pd.DataFrame], findings: Findings) -> Report:
    """The words, tables and figures of a comparison over days."""
    details: DaysDetails = findings.details
    totals = sorted(details.odds)
    screens = {total: words_of_days(findings, study, total) for total in totals}
    comparison = written(tables["comparison"])
    more = {
        "comparison": comparison,
        "ways": details.ways,
        "courses": details.courses,
        "published": details.published,
        "schedule": details.schedule,
        "spent": details.spent,
    }
    return Report(
        findings=findings,
        screen=screens[details.total_epsilon],
        screens=screens,
        epsilon=details.total_epsilon,
        name=f"{study.name}-{details.horizon}-days",
        more_tables={name: table for name, table in more.items() if not table.empty},
        drawings=list(_drawings(study, comparison, findings)),
        identity={
            **study.identity,
            "question": {
                "adjacency": study.adjacency,
                "sensitive": list(study.sensitive),
                "policies": [daily_name(name) for name in study.policies],
                "by": list(study.by),
                "horizon": details.horizon,
                "total_epsilons": totals,
                "delta": details.delta,
                "length_public": details.length_public,
            },
            "records": study.scenario.space.size,
            "actions": list(study.scenario.actions),
            **({"public": list(study.public)} if study.public else {}),
            "horizons": list(horizons_of(details.horizon)),
        },
        packages=CATALOGUE.versions(study.policies),
        files=study.files,
        related=study.related,
    )


def _drawings(study: ScenarioStudy, comparison: pd.DataFrame, findings: Findings) -> Iterator[Drawing]:
    """The figures: benefit against the total, what is published on each day, the best way at each horizon and total."""
    details: DaysDetails = findings.details
    totals = tuple(sorted(details.odds))
    # What is best without privacy would be a level at the top.
    drawn = comparison[
        (comparison["policy"] != Greedy.name)
        & (comparison["horizon"] == details.horizon)
        & (comparison["group"] == ALL)
    ]
    if any(0 < total < math.inf for total in totals):
        seen = []
        for name, rows in drawn.sort_values("total_epsilon").groupby("policy", sort=False):
            pairs = zip(rows["total_epsilon"], rows["benefit_kept"], strict=True)
            seen.append(f"{name} {', '.join(f'{percent(kept)} at {plain(total)}' for total, kept in pairs)}")
        yield Drawing(
            "course",
            lambda size: figures.value_over_days(drawn, size=size),
            title="Benefit kept against total ε",
            caption=f"Over all {days(details.horizon)}, a line for each mechanism: 0 % is the best single treatment on "
            "all days, 100 % the best for each patient on each day. Dashed red: the total chosen above. Shaded, where "
            "it is proven: what no mechanism reaches in which the published treatment is the one given.",
            alternative=f"Benefit kept over {days(details.horizon)} at each total ε: {'; '.join(seen)}.",
            file="comparison.csv",
            epsilons=totals,
        )
    if not details.published.empty:
        yield _published(study, details)
    seen = [
        f"{days(int(row['horizon']))} at total ε = {plain(row['total_epsilon'])}: {row['policy']} "
        f"{achieved(row['benefit_kept'], row['most_kept'])}"
        for row in rows_of(details.ways[details.ways["best"]])
    ]
    yield Drawing(
        "ways",
        lambda size: figures.ways_over_days(written(details.ways), size=size),
        title="Which way, for how many days and at which total ε",
        caption="In each field the way that keeps most of the benefit, how much it keeps, and after the dash the most "
        "that any mechanism can keep.",
        alternative=f"{'; '.join(seen)}.",
        file="ways.csv",
    )


def _published(study: ScenarioStudy, details: DaysDetails) -> Drawing:
    """What plan-tree gives on each day."""
    table = details.published
    titles = {f"p_{name}": treatment.title for name, treatment in study.scenario.treatments.items()}
    shown = table.rename(columns={column: f"p_{title}" for column, title in titles.items()})
    # Levels in words name their feature.
    some = table["group"] != ALL
    pairs = zip(table.loc[some, "group"], table.loc[some, "level"], strict=True)
    shown.loc[some, "level"] = [level_in_words(study.space, group, str(level)) for group, level in pairs]
    shown.loc[some, "group"] = ""
    seen = [
        f"day {row['day']}: " + ", ".join(f"{title} {percent(row[column])}" for column, title in titles.items())
        for row in rows_of(table[~some])
    ]
    return Drawing(
        "published",
        lambda size: figures.published_over_days(shown, size=size),
        title="What is published on each day",
        caption=f"plan-tree at a total ε = {plain(details.total_epsilon)}: the share of patients who get each "
        "treatment on each day. Everyone, and the groups by their first records that differ most.",
        alternative=f"Of everyone: {'; '.join(seen)}.",
        file="published.csv",
    )
