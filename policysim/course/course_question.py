"""What choosing privately costs over days: policies within a total privacy budget for the whole stay.

The screen that `policysim compare --horizon` prints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from policies.catalogue import CATALOGUE
from policies.optimal.optimum import OPTIMAL_DAILY, Optimal, OptimalRobust, OptimalSafe, daily_name
from policysim.course.days import DaysQuestion, compare_days
from policysim.question.answer import Answer, Drawing, Page, SizeName, tidy, written
from policysim.question.protocol import Progress, Question, UsageError
from policysim.question.words import (
    ALL,
    ASSUMED_PUBLIC,
    cells,
    days,
    events,
    left_out_lines,
    percent,
    population,
    rounded,
    wrap,
)
from policysim.question.words import BEST_SCHEDULE as SCHEDULE
from policysim.study.basis import basis
from policysim.study.declared import ScenarioStudy
from policysim.study.study_problem import build_problem
from policysim.study.sweep import usable_policies

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEADINGS = (
    ("", "ε of", "", "benefit", "extra deaths", "ε spent"),
    ("Total ε = {total}", "a day", "composition", "kept", "per {count:,}", "in all"),
)
COLUMNS = (28, 9, 20, 10, 15, 10)
BEST_COLUMN = 30
PER_DAY = (
    f"{OPTIMAL_DAILY} is the best ε-private choice of each day between that day's Q-values, which count on the best "
    "choice for each on the days that follow. It is no limit for the course: another mechanism, compared here or not, "
    "may keep more."
)
SCHEDULE_WORDS = (
    "best-schedule gives everybody the same treatment on a day, which may change from day to day: it looks at nobody "
    "and costs no privacy. A mechanism earns its ε by what it keeps beyond that."
)
NEVER_FALLS = (
    "Each mechanism takes the largest daily ε that its total allows, or a smaller one that is worth more over the "
    "course. So it never keeps less at a larger total, and it may spend less than the total."
)


def days_screen(study: ScenarioStudy, question: DaysQuestion, table: pd.DataFrame) -> list[str]:
    """What a course of treatment costs under each budget, and the best of the policies compared at each horizon."""
    overall = table[(table["group"] == ALL) & (table["horizon"] == question.horizon)]
    lines = [
        f"{study.title} Over {days(question.horizon)}.",
        f"{basis(study).disclaimer} {study.scenario.space.size:,} possible records, "
        f"{len(study.scenario.actions)} treatments a day.",
        "",
        *wrap(privacy_words(study, question)),
    ]
    for total in question.totals:
        lines += ["", *total_table(overall[overall["total_epsilon"] == total], total)]
    lines += [
        "Benefit kept: 0 % = the same treatment for all on every day; 100 % = the best for each on each day.",
        *wrap(NEVER_FALLS),
        *wrap(SCHEDULE_WORDS),
        *wrap(per_day_words(study)),
        "",
        *best_table(question, table),
        "",
    ]
    return lines


def per_day_words(study: ScenarioStudy) -> str:
    """What optimal-daily is and is not, if it is compared."""
    return PER_DAY if Optimal.name in study.policies else ""


def privacy_words(study: ScenarioStudy, question: DaysQuestion) -> str:
    """What is hidden over the days, and how the days add up."""
    length = (
        "The length of a patient's stay is declared public."
        if question.length_public
        else f"Treatments are published through day {question.horizon}: a patient who has died or recovered is one "
        "more record that they hide."
    )
    return (
        f"Hidden: the whole record of a patient on all days, from {study.hidden_from}, within the total ε of the "
        f"course: {guarantee_words(question)} {length} Assumed public: {ASSUMED_PUBLIC}, and the policies' Q-values."
    )


def guarantee_words(question: DaysQuestion) -> str:
    """What a total ε (and δ) promises, and how the days add up to it."""
    plus = f", plus δ = {question.delta:g}" if question.delta > 0 else ""
    rho = ", or by that of their ρ (zero-concentrated composition)" if question.delta > 0 else ""
    return (
        f"any set of courses that may be published is at most e^ε times as probable under one record as under "
        f"another{plus}. The days add up by the sum of their ε or of their tables' exact losses{rho}, whichever allows "
        "more."
    )


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
                ],
                COLUMNS,
            )
        )
    return lines


def best_mechanisms(table: pd.DataFrame) -> pd.DataFrame:
    """The policy of the table that keeps most at each horizon, of those that stay within the total epsilon.

    Returns
    -------
    DataFrame
        horizon, total_epsilon, policy, benefit_kept; the first of equals.
    """
    private = table["total_spent"] <= table["total_epsilon"] * (1 + 1e-9)
    overall = table[(table["group"] == ALL) & private]
    ranked = overall.sort_values("value", ascending=False, kind="stable")
    best: pd.DataFrame = ranked.groupby(["horizon", "total_epsilon"], as_index=False).first()
    return best[["horizon", "total_epsilon", "policy", "benefit_kept"]]


def best_table(question: DaysQuestion, table: pd.DataFrame) -> list[str]:
    """The best of the policies compared at each horizon (rows) and total epsilon (columns)."""
    best = best_mechanisms(table)
    widths = (14, *(BEST_COLUMN for _ in question.totals))
    lines = [cells(["Best of these", *(f"total ε = {total:g}" for total in question.totals)], widths)]
    for horizon in question.horizons:
        rows = best[best["horizon"] == horizon]  # one for each total, rising as the question has them
        shown = [f"{name} {percent(kept)}" for name, kept in zip(rows["policy"], rows["benefit_kept"], strict=True)]
        lines.append(cells([days(horizon), *shown], widths))
    return lines


# What looks at the outcomes or at other priors of one decision, which over days are not counted.
OF_ONE_DECISION = (OptimalSafe.name, OptimalRobust.name)


@dataclass(frozen=True)
class CourseQuestion(Question):
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
    }
    unit: ClassVar[str] = "day"
    writes = True

    @property
    def name(self) -> str:
        """The study's, and how many days."""
        return f"{self.study.name}-{self.days.horizon}-days"

    def answer(self, progress: Progress) -> Answer:
        """Plan and evaluate at each horizon and total."""
        apart = tuple(name for name in self.study.policies if name in OF_ONE_DECISION)
        over_days = replace(self.study, policies=tuple(name for name in self.study.policies if name not in apart))
        if not over_days.policies:
            raise UsageError(f"{apart[0]} is for one decision, and does not go with --horizon")
        policies, left_out = usable_policies(over_days.first_policies, build_problem(over_days), named=self.named)
        left_out += tuple(f"{name}, which is for one decision" for name in apart)
        study = replace(over_days, policies=policies)
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
        screen=[*days_screen(study, question, table), *left_out_lines(left_out)],
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
        "disclaimer": basis(study).disclaimer,
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
        f"The policies compared are {compared}."
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
