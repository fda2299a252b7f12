"""The files that a comparison over days leaves behind: table, figure, page and manifest."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from policysim import figures
from policysim.days.comparison import DaysQuestion
from policysim.days.figure import course_figure
from policysim.days.screen import SCHEDULE_WORDS, best_mechanisms, per_day_words, privacy_words
from policysim.evaluate import ALL
from policysim.report import LIBRARIES, inline, to_csv
from policysim.study import ScenarioStudy
from policysim.words import DISCLAIMER, days, events, percent, population, rounded


def days_files(study: ScenarioStudy, question: DaysQuestion, table: pd.DataFrame) -> Mapping[str, bytes]:
    """Everything that `policysim compare --horizon` writes, by relative path."""
    figure = course_figure(table, question.horizon)
    vector = figures.to_svg(figure)
    manifest = build_days_manifest(study, question)
    return {
        "comparison.csv": to_csv(table),
        "figures/course.svg": vector.encode(),
        "figures/course.png": figures.to_png(figure),
        "report.html": days_page(study, question, table, vector, manifest).encode(),
        **({"study.toml": study.text.encode()} if study.portable else {}),
        "manifest.json": (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode(),
    }


def build_days_manifest(study: ScenarioStudy, question: DaysQuestion) -> dict[str, Any]:
    """What the numbers depend on."""
    return {
        "study": {"name": study.name, "title": study.title, "sha256": study.digest},
        "scenario": study.scenario.name,
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
        "versions": {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}},
    }


def days_page(
    study: ScenarioStudy, question: DaysQuestion, table: pd.DataFrame, vector: str, manifest: Mapping[str, Any]
) -> str:
    """The page that holds them: one file, nothing fetched from anywhere."""
    environment = Environment(
        loader=PackageLoader("policysim"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    overall = table[(table["group"] == ALL) & (table["horizon"] == question.horizon)]
    best = best_mechanisms(table)
    return environment.get_template("course.html").render(
        study=study,
        question=question,
        disclaimer=DISCLAIMER,
        privacy=privacy_words(study, question),
        per_day=per_day_words(study),
        days=days,
        schedule_words=SCHEDULE_WORDS,
        totals=[(total, overall[overall["total_epsilon"] == total].to_dict("records")) for total in question.totals],
        best=[(horizon, best[best["horizon"] == horizon].to_dict("records")) for horizon in question.horizons],
        count=population(overall["extra_deaths"]),
        drawing=inline(vector, "course"),
        manifest=manifest,
        rounded=rounded,
        percent=percent,
        events=events,
    )
