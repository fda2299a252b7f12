"""What choosing privately costs over days: policies within a total privacy budget for the whole stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from policies.catalogue import CATALOGUE
from policies.optimal.optimum import daily_name
from policysim.course.days import DaysQuestion, compare_days
from policysim.course.days_screen import (
    NEVER_FALLS,
    SCHEDULE_WORDS,
    best_mechanisms,
    days_screen,
    per_day_words,
    privacy_words,
)
from policysim.question.answer import Answer, Drawing, Page, SizeName, tidy, written
from policysim.question.progress import Progress
from policysim.question.words import ALL, DISCLAIMER, days, percent, population, wrap
from policysim.question.words import BEST_SCHEDULE as SCHEDULE
from policysim.study.declared import ScenarioStudy
from policysim.study.study_problem import build_problem
from policysim.study.sweep import usable_policies

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class CourseQuestion:
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
    }
    unit: ClassVar[str] = "day"
    writes: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The study's, and how many days."""
        return f"{self.study.name}-{self.days.horizon}-days"

    def answer(self, progress: Progress) -> Answer:
        """Plan and evaluate at each horizon and total."""
        policies, left_out = usable_policies(self.study.policies, build_problem(self.study), named=self.named)
        study = replace(self.study, policies=policies)
        table = compare_days(study, self.days, progress)
        return answer_over_days(study, self.days, table, left_out=left_out)


def answer_over_days(
    study: ScenarioStudy, question: DaysQuestion, table: pd.DataFrame, *, left_out: tuple[str, ...] = ()
) -> Answer:
    """What a comparison over days says, shows and keeps."""
    table = written(table)
    best = best_mechanisms(table)
    drawing = _drawing(question, table)
    return Answer(
        screen=[*days_screen(study, question, table), *(line for why in left_out for line in wrap(f"Left out: {why}"))],
        document={"best": best.to_dict(orient="records"), "comparison": table.to_dict(orient="records")},
        sentences=answer(question, table),
        tables={"comparison.csv": table},
        drawings=[drawing],
        pages={"report.html": Page("course.html", _page_values(study, question, table, best))},
        depends=_depends(study, question),
        packages=CATALOGUE.versions(study.policies),
        files=study.files,
        named={"Report": "report.html"},
    )


def _depends(study: ScenarioStudy, question: DaysQuestion) -> dict[str, Any]:
    return {
        **study.identity,
        "records": study.scenario.space.size,
        "actions": list(study.scenario.actions),
        "adjacency": study.adjacency,
        "horizon": question.horizon,
        "horizons": list(question.horizons),
        "total_epsilons": list(question.totals),
        "delta": question.delta,
        "length_public": question.length_public,
        "policies": [daily_name(name) for name in study.policies],
        "by": list(study.by),
    }


def _drawing(question: DaysQuestion, table: pd.DataFrame) -> Drawing:
    def draw(size: SizeName) -> Figure:
        # matplotlib is the slowest import of all; everything before may still fail without it.
        from policysim import figures  # noqa: PLC0415

        return figures.value_over_days(table, size=size)

    return Drawing(
        "course",
        f"Over {days(question.horizon)}",
        description(question),
        draw,
        tidy(table.loc[table["group"] == ALL, ["policy", "total_epsilon", "horizon", "benefit_kept"]]),
    )


def _page_values(
    study: ScenarioStudy, question: DaysQuestion, table: pd.DataFrame, best: pd.DataFrame
) -> dict[str, Any]:
    overall = table[(table["group"] == ALL) & (table["horizon"] == question.horizon)]
    return {
        "study": study,
        "title": over_days_title(study.title, question.horizon),
        "question": question,
        "disclaimer": DISCLAIMER,
        "privacy": privacy_words(study, question),
        "per_day": per_day_words(study),
        "never_falls": NEVER_FALLS,
        "schedule_words": SCHEDULE_WORDS,
        "totals": [(total, overall[overall["total_epsilon"] == total].to_dict("records")) for total in question.totals],
        "best": [(horizon, best[best["horizon"] == horizon].to_dict("records")) for horizon in question.horizons],
        "count": population(overall["extra_deaths"]),
    }


def answer(question: DaysQuestion, table: pd.DataFrame) -> list[str]:
    """Which of the policies compared keeps most over the whole course, and what it means that the schedule does."""
    best = best_mechanisms(table)
    rows = best[best["horizon"] == question.horizon].to_dict("records")
    most = ", ".join(
        f"of {row['total_epsilon']:g} {'is ' if row is rows[0] else ''}{row['policy']} ({percent(row['benefit_kept'])})"
        for row in rows
    )
    compared = ", ".join(dict.fromkeys(table["policy"]))
    sentence = (
        f"Over {days(question.horizon)}, what keeps most of the benefit within a total ε {most}. "
        f"Compared were {compared}."
    )
    return [sentence, SCHEDULE_WORDS] if any(row["policy"] == SCHEDULE for row in rows) else [sentence]


def over_days_title(title: str, horizon: int) -> str:
    """The study's question, and over how many days.

    Examples
    --------
    >>> over_days_title("What does it cost?", 14), over_days_title("Our ward", 1)
    ('What does it cost? Over 14 days', 'Our ward, over 1 day')
    """
    return (
        f"{title} Over {days(horizon)}" if title.rstrip()[-1:] in {"?", ".", "!"} else f"{title}, over {days(horizon)}"
    )


def description(question: DaysQuestion) -> str:
    """What the figure shows."""
    return (
        f"Benefit kept against the total ε over {days(question.horizon)}, and against the number of days at each total "
        "ε, a line for each policy."
    )
