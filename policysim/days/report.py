"""The files that a comparison over days leaves behind: table, figure, page and manifest."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import pandas as pd

from policies.catalogue import CATALOGUE
from policysim import figures
from policysim.days.comparison import DaysQuestion
from policysim.days.screen import SCHEDULE_WORDS, best_mechanisms, per_day_words, privacy_words
from policysim.evaluate import ALL
from policysim.figure_files import FigureFiles
from policysim.processes.schedule import NAME as SCHEDULE
from policysim.report import LIBRARIES, inline, page_environment, to_csv
from policysim.report.data_table import tidy
from policysim.report.manifest import manifest_text
from policysim.reproduce.manifest import STUDY, scenario_digest
from policysim.study import ScenarioStudy
from policysim.words import DISCLAIMER, days, events, percent, population, rounded


def days_files(
    study: ScenarioStudy, question: DaysQuestion, table: pd.DataFrame, wanted: FigureFiles, command: Sequence[str]
) -> Mapping[str, bytes]:
    """Everything that `policysim compare --horizon` writes, by relative path."""
    described = {"title": f"Over {days(question.horizon)}", "description": description(question)}
    vector = figures.to_svg(figures.value_over_days(table), **described)
    manifest = {**build_days_manifest(study, question), "answer": answer(question, table)}
    return {
        "comparison.csv": to_csv(table),
        **wanted.of("course", lambda size: figures.value_over_days(table, size=size), **described),
        "report.html": days_page(study, question, table, vector=vector, manifest=manifest, command=command).encode(),
        **({"study.toml": study.text.encode()} if study.portable else {}),
        "manifest.json": manifest_text(manifest).encode(),
    }


def build_days_manifest(study: ScenarioStudy, question: DaysQuestion) -> dict[str, Any]:
    """What the numbers depend on."""
    return {
        "study": {"name": study.name, "title": study.title, "sha256": study.digest},
        "scenario": study.scenario.name,
        "scenario_sha256": scenario_digest(study),
        "records": study.scenario.space.size,
        "actions": list(study.scenario.actions),
        "adjacency": study.adjacency,
        "horizon": question.horizon,
        "horizons": list(question.horizons),
        "total_epsilons": list(question.totals),
        "delta": question.delta,
        "length_public": question.length_public,
        "policies": list(study.policies),
        "by": list(study.by),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in LIBRARIES},
            **CATALOGUE.versions(study.policies),
        },
    }


def answer(question: DaysQuestion, table: pd.DataFrame) -> list[str]:
    """Which mechanism keeps most over the whole course, in a sentence, and what it means that the schedule does."""
    best = best_mechanisms(table)
    rows = best[best["horizon"] == question.horizon].to_dict("records")
    most = ", ".join(
        f"of {row['total_epsilon']:g} {'is ' if row is rows[0] else ''}{row['policy']} ({percent(row['benefit_kept'])})"
        for row in rows
    )
    sentence = f"Over {days(question.horizon)}, what keeps most of the benefit within a total ε {most}."
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


def days_page(
    study: ScenarioStudy,
    question: DaysQuestion,
    table: pd.DataFrame,
    *,
    vector: str,
    manifest: Mapping[str, Any],
    command: Sequence[str],
) -> str:
    """The page that holds them: one file, nothing fetched from anywhere."""
    overall = table[(table["group"] == ALL) & (table["horizon"] == question.horizon)]
    best = best_mechanisms(table)
    return (
        page_environment()
        .get_template("course.html")
        .render(
            study=study,
            title=over_days_title(study.title, question.horizon),
            question=question,
            disclaimer=DISCLAIMER,
            privacy=privacy_words(study, question),
            per_day=per_day_words(study),
            days=days,
            schedule_words=SCHEDULE_WORDS,
            totals=[
                (total, overall[overall["total_epsilon"] == total].to_dict("records")) for total in question.totals
            ],
            best=[(horizon, best[best["horizon"] == horizon].to_dict("records")) for horizon in question.horizons],
            count=population(overall["extra_deaths"]),
            drawing=inline(vector, "course"),
            data=tidy(table.loc[table["group"] == ALL, ["policy", "total_epsilon", "horizon", "benefit_kept"]]),
            description=description(question),
            manifest=manifest,
            manifest_text=manifest_text(manifest),
            command=shlex.join(["policysim", *command]),
            built_in=STUDY not in command,
            rounded=rounded,
            percent=percent,
            events=events,
        )
    )
