"""What choosing privately costs over days, as a question: policies within a total budget for the whole stay.

Its answer, as tables: one schedule for all, ways to choose privately within a total, and each's best. Those of cells
(row, option, epsilon, value, low, high, format) are "options", "differences", "who" and "facts"; "columns" and "rows"
give their order, "certainty" the verdicts, and "names" what has words and no number. `epsilon` is the total of a
course.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd

from policies.catalogue import CATALOGUE
from policies.exponential import Exponential
from policies.optimal.optimum import OptimalRobust, OptimalSafe, catalogue_name, daily_name
from policies.reference import BestFixed, Greedy, Uniform
from policysim.course.course_limit import ROUNDED
from policysim.course.days import DAILY, EQUAL, ONCE, TREE, DaysQuestion, compare_days, ways
from policysim.course.process import NotEnoughMemoryError
from policysim.course.treatment_course import public_over_days
from policysim.errors import UsageError
from policysim.numbers import NEGLIGIBLE, achieved, days, digits_of, not_above, percent, plain, written
from policysim.progress import Progress
from policysim.question.answer import Answer, Drawing, SizeName
from policysim.question.protocol import ONLY_WHERE_COUNTED, StudyQuestion
from policysim.study.cells import as_cells
from policysim.study.certainty import as_stated, safest_option
from policysim.study.declared import OPTIONS, ScenarioStudy, Study, require_scenario
from policysim.study.labels import Labels, about_model, counted_illustrative, level_in_words, listed
from policysim.study.options_table import (
    BENEFIT,
    BETWEEN_FLOORS,
    BOUND,
    DRAWN_DAILY,
    EACH,
    EXPONENTIAL,
    LEAD,
    LOSS,
    ONE,
    PRIVATE,
    TEXTBOOK,
    exponential_options,
    nobody_pays,
    options,
    who_pays,
)
from policysim.study.study_problem import build_problem
from policysim.study.sweep import usable_policies
from policysim.words import ALL, BEST_SCHEDULE, PLAN_ONCE, PLAN_TREE, capital

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What looks at the outcomes or at other priors of one decision, which over days are not counted.
OF_ONE_DECISION = (OptimalSafe.name, OptimalRobust.name)
# The total epsilons by default.
TOTALS = (1.0, 2.0, 5.0, 10.0)
# Digits of a total that is printed.
MOST_DIGITS = 6
SPENT = "epsilon spent"
TITLES = {
    ONE: "best schedule for all",
    PRIVATE: "best private way*",
    DRAWN_DAILY: "best drawn daily*",
    EXPONENTIAL: "exponential, daily*",
    EACH: "each's best",
}
# What composes without the δ of the question.
WITHOUT_DELTA = ("exact-losses", "one-choice", "tree")
# Up to so many public features are named.
NAMED = 4


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
        asked = map(float, options.get("total_epsilons", TOTALS))
        # Each is printed whole: rounded down where it has too many digits.
        totals = {
            not_above(total, MOST_DIGITS) if 0 < total < math.inf and digits_of(total) > MOST_DIGITS else total
            for total in asked
        }
        days = DaysQuestion(
            horizon=options["horizon"],
            totals=tuple(sorted(totals)),
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
        # What the answer sets beside them, whatever was asked for.
        compared = tuple(dict.fromkeys((*policies, Exponential.name, Greedy.name)))
        try:
            tables = compare_days(replace(study, policies=compared), self.days, progress)
        except NotEnoughMemoryError as error:
            raise UsageError(f"--horizon {self.days.horizon}: {error}") from None
        return answer_over_days(study, self.days, {name: written(table) for name, table in tables.items()}, left_out)


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


def course_tables(
    study: ScenarioStudy, question: DaysQuestion, table: pd.DataFrame, *, left_out: Sequence[str] = ()
) -> dict[str, pd.DataFrame]:
    """Put the ways to treat over the longest horizon side by side, at every total.

    Parameters
    ----------
    study : ScenarioStudy
        From which the course was made.
    question : DaysQuestion
        Its horizon, totals and delta.
    table : DataFrame
        From `compare_days`, with `Greedy` and `Exponential` among its policies.
    left_out : sequence of str, optional
        What was not compared, and why.

    Returns
    -------
    dict of str to DataFrame
        options : cells of the rows of outcomes, the lead first, "loss", "right guesses", "epsilon spent" (on one day)
            and "benefit kept", of which the option "bound" is what no mechanism exceeds.
        columns : option, epsilon, policy, published (the same), title, hides and stated.
        rows, differences : as of `policysim.study.options_table.options`; against the best schedule for all.
        comparison : the rows of `table` at the horizon, by their totals, and the right guesses at most of each.
        certainty, facts, names, who : see the module.
    """
    comparison = table[table["horizon"] == question.horizon].assign(
        epsilon=lambda rows: rows["total_epsilon"],
        guess_rate=lambda rows: [
            right_guesses(spent, 0.0 if composition in WITHOUT_DELTA else question.delta)
            for spent, composition in zip(rows["total_spent"], rows["composition"], strict=True)
        ],
    )
    stated = question.stated(study.epsilon)
    columns = _columns(comparison, stated)
    counted = [name.removeprefix("expected_") for name in map(str, comparison) if name.startswith("expected_")]
    outcomes = {name: study.scenario.counted_title(name) for name in counted}
    lead = study.lead if study.lead in outcomes else None
    one = "" if lead is None else study.scenario.one_title(lead)
    labels = Labels(study.name, study.title, actions={}, outcomes=outcomes, lead=lead, one_of_lead=one)
    sure = as_stated(comparison, stated, lead, BEST_SCHEDULE)
    found = {"comparison": comparison, "columns": columns, "certainty": sure}
    cells, rows, found["differences"] = options(comparison, columns, labels, stated, certainty=found["certainty"])
    # Beside what none exceeds it is rounded down, as that is up.
    cells["format"] = cells["format"].mask(cells["row"] == BENEFIT, "reached")
    more = _spent(comparison, columns)
    if BENEFIT in set(rows["row"]):
        more = pd.concat([more, _bounds(comparison)], ignore_index=True)
    count = int(rows["patients"].iloc[0])
    described = {"row": SPENT, "title": "ε spent on one day", "section": SPENT, "patients": count, "moved": 0}
    found["options"] = pd.concat([cells, more], ignore_index=True)
    found["rows"] = pd.concat([rows, pd.DataFrame([described])], ignore_index=True)
    who = who_pays(comparison, columns, count, partial(level_in_words, study.space), lead)
    if not who.empty:
        found["who"] = who
    found["policies"] = _policies(comparison, cells, stated, lead)
    found["facts"] = _facts(study, question, stated, count, labels)
    found["names"] = _names(study, question, found, labels, left_out)
    return found


def right_guesses(epsilon: float, delta: float) -> float:
    """How often a guess between two equally likely neighbours is right at most, by what (ε, δ) bounds.

    The total variation between two courses is at most (e^ε - 1 + 2δ)/(e^ε + 1) (Kairouz, Oh & Viswanath 2015, The
    composition theorem for differential privacy), and the best guess is right (1 + that)/2 of the time.

    Examples
    --------
    >>> right_guesses(0.0, 0.0), right_guesses(0.0, 1.0), round(right_guesses(1.0, 0.0), 3)
    (0.5, 1.0, 0.731)
    """
    return (1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon))


def _columns(comparison: pd.DataFrame, stated: float) -> pd.DataFrame:
    """Which policy stands in which column at each total."""
    draws = ~comparison["policy"].isin([BestFixed.name, Uniform.name])
    found = ways(comparison[draws]).set_index(["total_epsilon", "way"])
    by_way = {way: found.xs(way, level="way") for way in (ONCE, TREE, DAILY)}
    private = by_way[ONCE]
    # Of equals the plainest: one choice, then a tree.
    for way in (by_way[TREE], by_way[DAILY]):
        better = (way["value"] - private["value"]) > EQUAL * private["value"].abs()
        private = pd.concat([private[~better], way[better]]).sort_index()
    exponential, *textbook = exponential_options(comparison["policy"])
    given = private[[]].assign(
        **{
            ONE: BEST_SCHEDULE,
            PRIVATE: private["policy"],
            DRAWN_DAILY: by_way[DAILY]["policy"],
            EXPONENTIAL: exponential[-1],
            EACH: Greedy.name,
            **{option: policy for option, _, policy in textbook},
        }
    )
    others = {EXPONENTIAL: (PRIVATE,), DRAWN_DAILY: (PRIVATE, EXPONENTIAL)}
    given = given.drop(
        columns=[each for each, of in others.items() if any(given[each].equals(given[as_]) for as_ in of)]
    )
    everyone = comparison[comparison["group"] == ALL]
    hides = everyone[["policy", "epsilon"]].assign(hides=list(map(_hides, everyone["hides"], everyone["total_spent"])))
    long = given.melt(ignore_index=False, var_name="option", value_name="policy").rename_axis("epsilon").reset_index()
    found = long.merge(hides, on=["policy", "epsilon"], how="left")
    titles = TITLES | {
        option: title.replace("*", ", daily*") for option, title, _ in (exponential, *textbook) if textbook
    }
    found = found.assign(
        published=found["policy"], title=found["option"].map(titles), stated=found["epsilon"] == stated
    )
    return found[["option", "epsilon", "policy", "published", "title", "hides", "stated"]]


def _hides(hides: str, spent: float) -> str:
    """How much of the whole course of records is hidden."""
    if hides == "course":
        return "fully" if spent < NEGLIGIBLE else "partly"
    return "no" if hides == "nothing" else f"{hides} only"


def _spent(comparison: pd.DataFrame, columns: pd.DataFrame) -> pd.DataFrame:
    """The largest exact loss of one day, of each option: cells."""
    everyone = comparison[comparison["group"] == ALL].set_index(["policy", "epsilon"])["epsilon_spent"]
    values = everyone.loc[list(zip(columns["policy"], columns["epsilon"], strict=True))].to_numpy()
    seen = values[columns["stated"] & np.isfinite(values) & (values > NEGLIGIBLE)]
    places = max(0, 1 - math.floor(math.log10(seen.min()))) if seen.size else 1
    return as_cells(columns.assign(row=SPENT, value=values, format=f"places {places}"))


def _bounds(comparison: pd.DataFrame) -> pd.DataFrame:
    """What no mechanism exceeds of the benefit, at each total: cells; none where that is not known."""
    known = comparison[(comparison["group"] == ALL) & comparison["most_kept"].notna()].drop_duplicates("epsilon")
    return as_cells(known[["epsilon"]].assign(row=BENEFIT, option=BOUND, value=known["most_kept"], format="most"))


def _policies(comparison: pd.DataFrame, cells: pd.DataFrame, stated: float, lead: str | None) -> pd.DataFrame:
    """Every policy at the stated total: cells, and titles of their rows."""
    style = cells.drop_duplicates("row").set_index("row")["format"]
    measures = {
        "kept": ("benefit_kept", "reached"),
        "lost": ("loss", style[LOSS]),
        LEAD: (f"expected_{lead}", style.get(lead)),
        "spent": ("total_spent", "rounded"),
        "daily": ("epsilon_spent", "rounded"),
        "guesses": ("guess_rate", "right"),
    }
    rows = comparison[(comparison["group"] == ALL) & (comparison["epsilon"] == stated)]
    parts = [
        rows[["policy", "epsilon"]].assign(option=option, value=rows[column], format=format_)
        for option, (column, format_) in measures.items()
        if column in rows and rows[column].notna().any()
    ]
    found = pd.concat(parts, ignore_index=True).rename(columns={"policy": "row"})
    return as_cells(found.assign(title=found["row"]), "title")


def _facts(study: ScenarioStudy, question: DaysQuestion, stated: float, count: int, labels: Labels) -> pd.DataFrame:
    """Single numbers that words need, as cells."""
    illustrative, total = counted_illustrative(study)
    rows = [
        ("epsilon", math.nan, stated, "plain"),
        ("horizon", math.nan, question.horizon, "plain"),
        ("patients", math.nan, count, "plain"),
        ("hundred", math.nan, 100, "plain"),
        *(("at", each, each, "plain") for each in question.totals),
    ]
    if labels.lead is not None and study.lead_weight:
        rows.append(("lead weighs", math.nan, study.lead_weight, "plain"))
    if question.delta > 0:
        rows.append(("delta", math.nan, question.delta, "plain"))
    if illustrative:
        rows += [("illustrative", math.nan, illustrative, "plain"), ("numbers", math.nan, total, "plain")]
    return as_cells(pd.DataFrame(rows, columns=["row", "epsilon", "value", "format"]))


def _names(
    study: ScenarioStudy,
    question: DaysQuestion,
    tables: Mapping[str, pd.DataFrame],
    labels: Labels,
    left_out: Sequence[str],
) -> pd.DataFrame:
    """What words name: each a text by its key."""
    public = public_over_days(study)
    agree = listed(public) if len(public) <= NAMED else "all that is public"
    stated = tables["columns"][tables["columns"]["stated"]].set_index("option")
    comparison, lead = tables["comparison"], labels.lead_title
    bound = comparison[comparison["epsilon"] == stated["epsilon"].iloc[0]].iloc[0]
    rounded = "; of two days by sums that are rounded up" * (bound["most_kept_proof"] == ROUNDED)
    names = {
        "name": capital(study.name.replace("-", " ").replace("_", " ")),
        "hidden": f"all but {agree}" if public else "the patient's records",
        "alike": f"any two courses of records that agree in {agree}" if public else "any two courses of records",
        "one": TITLES[ONE],
        "model": about_model(study),
        "days": "day" if question.horizon == 1 else "days",
        # Of how many days the bound at the stated total is, and how it and the others were proved.
        "bounded": "the first two days" if bound["most_kept_hides"] == "course" else "the first day",
        "proof": f"Proven in rational arithmetic{rounded}",
        "length": "how long a stay lasts is public"
        if question.length_public
        else "who has died or recovered is hidden",
        "lead": lead,
        "one of lead": labels.one_of_lead,
        "untold": f"Not to be told by {lead}" if lead else "No outcome of a day leads",
        "paid": lead or "units of utility lost",
        "unpaid": nobody_pays(comparison, f"has more {lead}" if lead else "loses more utility"),
    }
    if TEXTBOOK in stated.index:
        names["fitted odds"] = BETWEEN_FLOORS
    names |= {f"warning {place}": f"left out: {reason}" for place, reason in enumerate(left_out)}
    safest = safest_option(tables)
    if safest:
        names |= {
            "safest option": safest,
            "lead row": str(labels.lead),
            "safest": capital(str(stated.loc[safest, "title"]).removesuffix("*")),
            "safest hides": str(stated.loc[safest, "hides"]),
        }
    return pd.DataFrame(names.items(), columns=["key", "text"])


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
