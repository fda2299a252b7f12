"""What choosing privately costs over days: policies within a total privacy budget for the whole stay.

The screen that `policysim compare --horizon` prints.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pandas as pd

from policies.catalogue import CATALOGUE
from policies.optimal.optimum import OptimalRobust, OptimalSafe, catalogue_name, daily_name
from policysim.course.course_brief import brief, headings
from policysim.course.course_findings import (
    answer,
    best_mechanisms,
    description,
    headline,
    limit_words,
    never_falls_words,
    once_words,
    one_for_all_words,
    over_days_title,
    per_day_words,
    privacy_words,
    schedule_words,
    telling_total,
    ways,
)
from policysim.course.days import DaysQuestion, compare_days
from policysim.course.process import NotEnoughMemoryError
from policysim.course.public_classes import public_over_days
from policysim.question.answer import Answer, Drawing, Headline, Page, SizeName, tidy
from policysim.question.formats import achieved, days, events, percent, plain, population, rounded, written
from policysim.question.protocol import ONLY_WHERE_COUNTED, Progress, StudyQuestion, UsageError
from policysim.question.screen_lines import cells, left_out_lines, wrap
from policysim.question.words import ALL, NO_MECHANISM
from policysim.study.basis import OUTSIDE_LINE, basis
from policysim.study.declared import OPTIONS, ScenarioStudy, Study, require_scenario
from policysim.study.study_problem import build_problem
from policysim.study.sweep import usable_policies

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEADINGS = (
    ("", "largest", "", "benefit", "extra deaths", "ε spent", ""),
    ("Total ε = {total}", "daily ε", "composition", "kept", "per {count:,}", "in all", "hides"),
)
COLUMNS = (28, 9, 20, 10, 15, 10, 8)
MAP_COLUMN = 16
RANGE = f"Read 64–71 % as: the mechanism named keeps 64 % of the benefit, and {NO_MECHANISM} keeps more than 71 %."


def days_screen(study: ScenarioStudy, question: DaysQuestion, table: pd.DataFrame) -> list[str]:
    """What a course of treatment costs under each budget, and the best of the policies compared at each horizon."""
    overall = table[(table["group"] == ALL) & (table["horizon"] == question.horizon)]
    lines = [
        f"{study.title} Over {days(question.horizon)}.",
        f"{basis(study).disclaimer} {study.scenario.space.size:,} possible records, "
        f"{len(study.scenario.actions)} treatments a day.",
        "",
        *wrap(privacy_words(study, question)),
        OUTSIDE_LINE,
    ]
    for total in question.totals:
        lines += ["", *total_table(overall[overall["total_epsilon"] == total], total)]
    lines += [
        *wrap(one_for_all_words(study)),
        *wrap(never_falls_words(study)),
        *wrap(schedule_words(study)),
        *wrap(once_words(study)),
        *wrap(limit_words(study)),
        *wrap(per_day_words(study)),
        "",
        *best_table(question, ways(table)),
        "",
    ]
    return lines


def total_table(rows: pd.DataFrame, total: float) -> list[str]:
    """A row per policy at one total epsilon."""
    count = population(rows["extra_deaths"])
    lines = [cells([cell.format(total=f"{total:g}", count=count) for cell in row], COLUMNS) for row in HEADINGS]
    for _, row in rows.iterrows():
        lines.append(
            cells(
                [
                    str(row["policy"]),
                    rounded(row["epsilon"]),
                    str(row["composition"]),
                    percent(row["benefit_kept"]),
                    events(row["extra_deaths"], count, sign=True),
                    rounded(row["total_spent"]),
                    str(row["hides"]),
                ],
                COLUMNS,
            )
        )
    return lines


def best_table(question: DaysQuestion, found: pd.DataFrame) -> list[str]:
    """The best of the mechanisms compared at each horizon (rows) and total epsilon (columns), and what none exceeds."""
    best = found[found["best"]]
    widths = (12, *(max(MAP_COLUMN, *(len(name) + 2 for name in best["policy"])) for _ in question.totals))
    lines = [cells(["Best of all", *(f"total ε = {total:g}" for total in question.totals)], widths)]
    for horizon in question.horizons:
        rows = best[best["horizon"] == horizon]  # one for each total, rising as the question has them
        lines.append(cells([days(horizon), *rows["policy"]], widths))
        kept = zip(rows["benefit_kept"], rows["most_kept"], strict=True)
        lines.append(cells(["", *(achieved(*pair) for pair in kept)], widths))
    return [*lines, *wrap(RANGE)]


# What looks at the outcomes or at other priors of one decision, which over days are not counted.
OF_ONE_DECISION = (OptimalSafe.name, OptimalRobust.name)
# The total epsilons by default.
TOTALS = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True)
class CourseQuestion(StudyQuestion):
    """Compare policies over the days of a course.

    Attributes
    ----------
    study : ScenarioStudy
        Scenario, policies and groups.
    days : DaysQuestion
        Horizons and budgets.
    named : bool
        Whether each policy was asked for by name: one that cannot be used is then refused, and not left out.
    """

    study: ScenarioStudy
    days: DaysQuestion
    named: bool = True
    refuses: ClassVar[Mapping[str, str]] = {
        "epsilon": "does not go with --horizon; give --total-epsilon, the budget of all days",
        "price_list": "does not go with --horizon",
        "at_most": "does not go with --horizon",
        **ONLY_WHERE_COUNTED,
    }
    unit: ClassVar[str] = "day"
    takes = (*(name for name in OPTIONS if name != "epsilons"), "horizon", "total_epsilons", "delta", "length_public")

    @property
    def name(self) -> str:
        """The study's, and how many days."""
        return f"{self.study.name}-{self.days.horizon}-days"

    @classmethod
    def of(cls, study: Study, options: Mapping[str, Any]) -> Self:
        """ValueError also for a study of a log, and for what cannot be hidden over days."""
        policies = options.get("policies", ())
        # Over days the policy "optimal" is called "optimal-daily"; a study's own list is shared with one decision.
        named = {"policies": [catalogue_name(name) for name in policies]} if policies else {}
        chosen = require_scenario(study).with_options({**options, **named})
        public_over_days(chosen)
        days = DaysQuestion(
            horizon=options["horizon"],
            totals=tuple(sorted(set(map(float, options.get("total_epsilons", TOTALS))))),
            delta=float(options.get("delta", 0)),
            length_public=options.get("length_public", False),
        )
        return cls(chosen, days, named="all" not in policies)

    def answer(self, progress: Progress) -> Answer:
        """Plan and evaluate at each horizon and total."""
        apart = tuple(name for name in self.study.policies if name in OF_ONE_DECISION)
        over_days = replace(self.study, policies=tuple(name for name in self.study.policies if name not in apart))
        if not over_days.policies:
            raise UsageError(f"{apart[0]} is for one decision, and does not go with --horizon")
        policies, left_out = usable_policies(over_days.first_policies, build_problem(over_days), named=self.named)
        left_out += tuple(f"{name}, which is for one decision" for name in apart)
        study = replace(over_days, policies=policies)
        try:
            table = compare_days(study, self.days, progress)
        except NotEnoughMemoryError as error:
            raise UsageError(f"--horizon {self.days.horizon}: {error}") from None
        return answer_over_days(study, self.days, table, left_out=left_out)


def answer_over_days(
    study: ScenarioStudy, question: DaysQuestion, table: pd.DataFrame, *, left_out: tuple[str, ...] = ()
) -> Answer:
    """What a comparison over days says, shows and keeps."""
    table = written(table)
    found = written(ways(table))
    best, said = best_mechanisms(table), headline(question, table)
    return Answer(
        screen=[*days_screen(study, question, table), *left_out_lines(left_out)],
        document={"best": best.to_dict(orient="records"), "comparison": table.to_dict(orient="records")},
        headline=said,
        sentences=answer(study, question, table),
        tables={"comparison": table, "ways": found},
        drawings=[_drawing(question, table), _map(found), *_card(question, best)],
        pages={"report.html": Page("course.html", _page_values(study, question, table, found, said))},
        depends=_depends(study, question),
        packages=CATALOGUE.versions(study.policies),
        files=study.files,
        named={"Report": "report.html"},
    )


def _depends(study: ScenarioStudy, question: DaysQuestion) -> dict[str, Any]:
    return {
        **study.identity,
        "question": {
            "adjacency": study.adjacency,
            "sensitive": list(study.sensitive),
            "policies": [daily_name(name) for name in study.policies],
            "by": list(study.by),
            "horizon": question.horizon,
            "total_epsilons": list(question.totals),
            "delta": question.delta,
            "length_public": question.length_public,
        },
        "records": study.scenario.space.size,
        "actions": list(study.scenario.actions),
        **({"public": list(study.public)} if study.public else {}),
        "horizons": list(question.horizons),
    }


def _drawing(question: DaysQuestion, table: pd.DataFrame) -> Drawing:
    def draw(size: SizeName) -> Figure:
        # matplotlib is the slowest import of all; everything before may still fail without it.
        from policysim import figures  # noqa: PLC0415

        return figures.value_over_days(table, size=size)

    proven = table[table["most_kept"].notna() & table["total_epsilon"].between(0, math.inf, inclusive="neither")]
    return Drawing(
        "course",
        f"Over {days(question.horizon)}",
        description(question, shaded=proven["total_epsilon"].nunique() > 1),
        draw,
        tidy(table.loc[table["group"] == ALL, ["policy", "total_epsilon", "horizon", "benefit_kept", "most_kept"]]),
        seen=_course_seen(question, table),
    )


def _card(question: DaysQuestion, best: pd.DataFrame) -> list[Drawing]:
    """What can be kept within each total, and what no mechanism exceeds; empty where there is but one total."""
    from policysim.figures.card import Curves, card  # noqa: PLC0415

    rows = best[(best["horizon"] == question.horizon) & best["benefit_kept"].notna() & (best["total_epsilon"] > 0)]
    kept, most = (
        list(zip(rows["total_epsilon"], rows[column], strict=True)) for column in ("benefit_kept", "most_kept")
    )
    if len(rows) < 2:
        return []
    proven = {"upper bound": most} if rows["most_kept"].notna().all() else {}
    low = min(0.0, float(rows["benefit_kept"].min()))
    return [
        card(
            Curves(
                {"best of all": kept, **proven},
                x="total ε (log scale)",
                y=f"benefit kept over {days(question.horizon)}",
                share=True,
                limits=(low, 1.03),
            )
        )
    ]


def _course_seen(question: DaysQuestion, table: pd.DataFrame) -> str:
    rows = table[(table["group"] == ALL) & (table["horizon"] == question.horizon)]
    told = []
    for name, of in rows.sort_values("total_epsilon").groupby("policy", sort=False):
        pairs = zip(of["total_epsilon"], of["benefit_kept"], strict=True)
        told.append(f"{name} {', '.join(f'{percent(kept)} at {plain(total)}' for total, kept in pairs)}")
    return f"Benefit kept over {days(question.horizon)} at each total ε: {'; '.join(told)}."


def _map(found: pd.DataFrame) -> Drawing:
    def draw(size: SizeName) -> Figure:
        from policysim import figures  # noqa: PLC0415

        return figures.ways_over_days(found, size=size)

    return Drawing(
        "ways",
        "Which way, at which horizon and total",
        "The way to spend a total ε that keeps most of the benefit, at each number of days and each total: the "
        f"mechanism, what it keeps, and after the dash what {NO_MECHANISM} exceeds. A larger total "
        "allows what a smaller one does.",
        draw,
        tidy(found.drop(columns="value")),
        seen="; ".join(
            f"{days(int(row['horizon']))} at total ε = {plain(row['total_epsilon'])}: {row['policy']} "
            f"{achieved(row['benefit_kept'], row['most_kept'])}"
            for row in found[found["best"].astype(bool)].to_dict("records")
        )
        + ".",
    )


def _page_values(
    study: ScenarioStudy, question: DaysQuestion, table: pd.DataFrame, found: pd.DataFrame, said: Headline
) -> dict[str, Any]:
    overall = table[(table["group"] == ALL) & (table["horizon"] == question.horizon)]
    return {
        "study": study,
        "brief": brief(question, table),
        "headings": headings(question, table, found, said),
        "shown_total": telling_total(question, best_mechanisms(table))["total_epsilon"],
        "title": over_days_title(study.title, question.horizon),
        "question": question,
        "disclaimer": basis(study).disclaimer,
        "privacy": privacy_words(study, question),
        "per_day": per_day_words(study),
        "never_falls": never_falls_words(study),
        "schedule_words": schedule_words(study),
        "once_words": once_words(study),
        "one_for_all": one_for_all_words(study),
        "limit_words": limit_words(study),
        "range": RANGE,
        "achieved": achieved,
        "totals": [(total, overall[overall["total_epsilon"] == total].to_dict("records")) for total in question.totals],
        "ways": [
            (horizon, way, rows.to_dict("records"))
            for (horizon, way), rows in found.groupby(["horizon", "way"], sort=False)
        ],
        "count": population(overall["extra_deaths"]),
    }
