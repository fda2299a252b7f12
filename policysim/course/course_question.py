"""What choosing privately costs over days, as a question: policies within a total budget for the whole stay."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pandas as pd

from policies.catalogue import CATALOGUE
from policies.exponential import Exponential
from policies.optimal.optimum import OptimalRobust, OptimalSafe, catalogue_name, daily_name
from policies.reference import Greedy
from policysim.course.course_answer import course_tables
from policysim.course.days import COURSES, DaysQuestion, compare_days, ways
from policysim.course.process import NotEnoughMemoryError
from policysim.course.treatment_course import public_over_days
from policysim.question.answer import Answer, Drawing, SizeName
from policysim.question.formats import achieved, days, digits_of, not_above, percent, plain, written
from policysim.question.protocol import ONLY_WHERE_COUNTED, Progress, StudyQuestion, UsageError
from policysim.question.words import ALL, PLAN_ONCE, PLAN_TREE
from policysim.study.declared import OPTIONS, ScenarioStudy, Study, require_scenario
from policysim.study.labels import level_in_words
from policysim.study.study_problem import build_problem
from policysim.study.sweep import usable_policies

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What looks at the outcomes or at other priors of one decision, which over days are not counted.
OF_ONE_DECISION = (OptimalSafe.name, OptimalRobust.name)
# The total epsilons by default.
TOTALS = (1.0, 2.0, 5.0, 10.0)
# Digits of a total that is printed.
MOST_DIGITS = 6
# What was searched for, in a report; a larger file is none of ours.
COURSES_FILE, MOST_BYTES = "courses.csv", 1_000_000


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
    known : DataFrame, optional
        The courses that a report of the same question has, which need not be searched for again.
    """

    study: ScenarioStudy
    days: DaysQuestion
    named: bool = True
    known: pd.DataFrame | None = None
    refuses: ClassVar[Mapping[str, str]] = {
        "epsilon": "does not go with --horizon; give --total-epsilon, the budget of all days",
        "price_list": "does not go with --horizon",
        "at_most": "does not go with --horizon",
        **ONLY_WHERE_COUNTED,
    }
    unit: ClassVar[str] = "day"
    kind = "course"
    takes = (*(name for name in OPTIONS if name != "epsilons"), "horizon", "total_epsilons", "delta", "length_public")

    @property
    def name(self) -> str:
        """The study's, and how many days."""
        return f"{self.study.name}-{self.days.horizon}-days"

    @classmethod
    def of(cls, study: Study, options: Mapping[str, Any]) -> Self:
        """ValueError also for a study of a log, and for what cannot be hidden over days."""
        policies = options.get("policies", ())
        # Over days the policy "optimal" is called "optimal-daily"; a study's own list is shared with one decision. What
        # spends its epsilon on the whole course is compared in any case.
        daily = [catalogue_name(name) for name in policies if name not in (PLAN_ONCE, PLAN_TREE)]
        named = {"policies": daily or [Exponential.name]} if policies else {}
        chosen = require_scenario(study).with_options({**options, **named})
        public_over_days(chosen)
        days = DaysQuestion(
            horizon=options["horizon"],
            totals=tuple(sorted({_printable(float(total)) for total in options.get("total_epsilons", TOTALS)})),
            delta=float(options.get("delta", 0)),
            length_public=options.get("length_public", False),
        )
        return cls(chosen, days, named="all" not in policies)

    def with_work_of(self, folder: Path) -> Self:
        """With the courses of the report in a folder: what they are worth, and what they reveal, is computed anew."""
        path = folder / COURSES_FILE
        try:
            known = pd.read_csv(path, dtype=COURSES) if path.stat().st_size <= MOST_BYTES else None
        except (OSError, ValueError):  # none, or somebody else's
            known = None
        return replace(self, known=known)

    def answer(self, progress: Progress) -> Answer:
        """Plan and evaluate at each horizon and total."""
        apart = tuple(name for name in self.study.policies if name in OF_ONE_DECISION)
        over_days = replace(self.study, policies=tuple(name for name in self.study.policies if name not in apart))
        if not over_days.policies:
            raise UsageError(f"{apart[0]} is for one decision, and does not go with --horizon")
        policies, left_out = usable_policies(over_days.first_policies, build_problem(over_days), named=self.named)
        left_out += tuple(f"{name}, which is for one decision" for name in apart)
        study = replace(over_days, policies=policies)
        # What the answer sets beside them, whatever was asked for.
        compared = tuple(dict.fromkeys((*policies, Exponential.name, Greedy.name)))
        try:
            tables = compare_days(replace(study, policies=compared), self.days, progress, known=self.known)
        except NotEnoughMemoryError as error:
            raise UsageError(f"--horizon {self.days.horizon}: {error}") from None
        return answer_over_days(study, self.days, {name: written(table) for name, table in tables.items()}, left_out)


def _printable(total: float) -> float:
    """A total that is printed whole: rounded down where it has too many digits."""
    return not_above(total, MOST_DIGITS) if 0 < total < math.inf and digits_of(total) > MOST_DIGITS else total


def answer_over_days(
    study: ScenarioStudy, question: DaysQuestion, tables: Mapping[str, pd.DataFrame], left_out: tuple[str, ...] = ()
) -> Answer:
    """What a comparison over days found, from the numbers that its files have."""
    table = tables["comparison"]
    found = written(ways(table))
    return Answer(
        options=course_tables(study, question, table, left_out=left_out),
        kind=CourseQuestion.kind,
        tables={**tables, "ways": found},
        drawings=[*_drawing(question, table), *_published(study, tables["published"]), _map(found)],
        depends={
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
        },
        packages=CATALOGUE.versions(study.policies),
        files=study.files,
        related=study.related,
        named={"Report": "report.html"},
    )


def _drawing(question: DaysQuestion, table: pd.DataFrame) -> list[Drawing]:
    """Benefit against the total; empty where no total can be drawn."""
    # What is best without privacy would be a level at the top.
    drawn = table[(table["policy"] != Greedy.name) & (table["horizon"] == question.horizon) & (table["group"] == ALL)]
    if not any(0 < total < math.inf for total in question.totals):
        return []
    told = []
    for name, of in drawn.sort_values("total_epsilon").groupby("policy", sort=False):
        pairs = zip(of["total_epsilon"], of["benefit_kept"], strict=True)
        told.append(f"{name} {', '.join(f'{percent(kept)} at {plain(total)}' for total, kept in pairs)}")
    return [
        Drawing(
            "course",
            partial(_figure, "value_over_days", drawn),
            epsilons=question.totals,
            seen=f"Benefit kept over {days(question.horizon)} at each total ε: {'; '.join(told)}.",
        )
    ]


def _published(study: ScenarioStudy, table: pd.DataFrame) -> list[Drawing]:
    """What plan-tree gives on each day; empty where that is not known."""
    if table.empty:
        return []
    treatments = study.scenario.treatments
    titles = {
        f"p_{name}": f"p_{treatments[name].title if name in treatments else name}" for name in study.scenario.actions
    }
    # Levels in words name their feature.
    some = table["group"] != ALL
    pairs = zip(table.loc[some, "group"], table.loc[some, "level"], strict=True)
    shown = table.rename(columns=titles)
    shown.loc[some, "level"] = [level_in_words(study.space, group, str(level)) for group, level in pairs]
    shown.loc[some, "group"] = ""
    everyone = table[table["group"] == ALL].set_index("day")[list(titles)]
    told = [
        f"day {day}: " + ", ".join(f"{title.removeprefix('p_')} {percent(row[name])}" for name, title in titles.items())
        for day, row in everyone.iterrows()
    ]
    draw = partial(_figure, "published_over_days", shown)
    return [Drawing("published", draw, seen=f"Of everyone: {'; '.join(told)}.")]


def _map(found: pd.DataFrame) -> Drawing:
    """The best way at each horizon and total."""
    told = [
        f"{days(int(row['horizon']))} at total ε = {plain(row['total_epsilon'])}: {row['policy']} "
        f"{achieved(row['benefit_kept'], row['most_kept'])}"
        for row in found[found["best"]].to_dict("records")
    ]
    return Drawing("ways", partial(_figure, "ways_over_days", found), seen=f"{'; '.join(told)}.")


def _figure(name: str, table: pd.DataFrame, size: SizeName) -> Figure:
    """A figure of `policysim.figures`, of a table."""
    # matplotlib is the slowest import of all; everything before may still fail without it.
    from policysim import figures  # noqa: PLC0415

    drawn: Figure = getattr(figures, name)(table, size=size)
    return drawn
