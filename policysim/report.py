"""The files that a comparison leaves behind: table, figures, page and manifest."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from policies.problem import DecisionProblem
from policysim import figures, words
from policysim.findings import KEEP, Findings
from policysim.screen import prevalence, price_lines, robust, why, worst_off
from policysim.study import ScenarioStudy

CAPTIONS = {
    "loss-vs-epsilon": ("Loss against ε", "Benefit kept and extra deaths against epsilon, a line per policy."),
    "spent-vs-claimed": (
        "What is spent against what is claimed",
        "Exact privacy loss against epsilon, a line per policy.",
    ),
}
LIBRARIES = ("policysim", "numpy", "scipy", "pandas", "gymnasium", "matplotlib")


def report_files(
    study: ScenarioStudy,
    problem: DecisionProblem,
    table: pd.DataFrame,
    findings: Findings,
    prices: pd.DataFrame | None = None,
) -> Mapping[str, bytes]:
    """Everything that `policysim compare` writes, by relative path."""
    drawn = _draw_all(table)
    vectors = {name: figures.to_svg(figure) for name, figure in drawn.items()}
    manifest = build_manifest(study, problem)
    page = report_page(study, problem, findings, vectors=vectors, manifest=manifest, prices=prices)
    tables = {"comparison.csv": table} if prices is None else {"comparison.csv": table, "prices.csv": prices}
    return {
        **{name: to_csv(frame) for name, frame in tables.items()},
        **{f"figures/{name}.svg": svg.encode() for name, svg in vectors.items()},
        **{f"figures/{name}.png": figures.to_png(figure) for name, figure in drawn.items()},
        "report.html": page.encode(),
        # The study that was run, so that the folder can be run again; not where it would lose its scenario.
        **({"study.toml": study.text.encode()} if study.portable else {}),
        "manifest.json": (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode(),
    }


def _draw_all(table: pd.DataFrame) -> dict[str, Figure]:
    """The figures of a comparison by file name; the second one needs a policy that spends something."""
    drawn = {"loss-vs-epsilon": figures.loss_vs_epsilon(table)}
    if not figures.spenders(table).empty:
        drawn["spent-vs-claimed"] = figures.spent_vs_claimed(table)
    return drawn


def inline(svg: str, prefix: str) -> Markup:
    """An SVG file as a part of a page: without XML header, its identifiers made distinct from those of others."""
    body = re.sub(r"^.*?(?=<svg)", "", svg, flags=re.DOTALL)
    return Markup(re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}-", body))


def to_csv(table: pd.DataFrame) -> bytes:
    """A table as a CSV file, the same bytes for the same table."""
    # Twelve digits: more are rounding, and would differ from machine to machine.
    return table.to_csv(index=False, float_format="%.12g", lineterminator="\n").encode()


def build_manifest(study: ScenarioStudy, problem: DecisionProblem) -> dict[str, Any]:
    """What the numbers depend on; nothing in it changes from run to run on one machine."""
    found = problem.sensitivity
    neighbours = [problem.records.describe(r) for r in (found.witness.record, found.witness.neighbour)]
    return {
        "study": {"name": study.name, "title": study.title, "sha256": study.digest},
        "scenario": study.scenario.name,
        "records": problem.n_records,
        "actions": list(problem.actions),
        "adjacency": study.adjacency,
        "sensitive": list(study.sensitive),
        "epsilon": study.epsilon,
        "epsilons": list(study.epsilons),
        "policies": list(study.policies),
        "by": list(study.by),
        "seed": study.seed,
        "sensitivity": {
            "value": found.value,
            "range": found.range,
            "monotone": found.monotone,
            "neighbours": neighbours,
            "action": problem.actions[found.witness.action],
        },
        "versions": {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}},
    }


def report_page(
    study: ScenarioStudy,
    problem: DecisionProblem,
    findings: Findings,
    *,
    vectors: Mapping[str, str],
    manifest: Mapping[str, Any],
    prices: pd.DataFrame | None,
) -> str:
    """The page that holds them: one file, nothing fetched from anywhere."""
    environment = Environment(
        loader=PackageLoader("policysim"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    found = problem.sensitivity
    method = {
        "Study": f"{study.name} (SHA-256 {manifest['study']['sha256']})",
        "Adjacency": words.hidden(study),
        "Sensitivity Δ": f"{words.rounded(found.value)}, between "
        + " and ".join(f"“{text}”" for text in manifest["sensitivity"]["neighbours"])
        + f" under {manifest['sensitivity']['action']}",
        "Range Γ": words.rounded(found.range),
        "ε of the curve": ", ".join(f"{epsilon:g}" for epsilon in study.epsilons),
    }
    return environment.get_template("report.html").render(
        study=study,
        problem=problem,
        findings=findings,
        disclaimer=words.DISCLAIMER,
        assumed_public=words.ASSUMED_PUBLIC,
        hidden=words.hidden(study),
        odds=words.odds(findings.epsilon, findings.right_guesses),
        worst_off=worst_off(findings),
        why=why(problem, findings),
        deaths_count=words.population(findings.deaths.values()),
        extra_count=words.population(row.extra_deaths for row in findings.rows),
        keep=KEEP,
        rounded=words.rounded,
        events=words.events,
        percent=words.percent,
        robust=robust(findings),
        prevalence=prevalence(findings),
        price_lines=[] if prices is None else price_lines(prices),
        figures=[(name, *CAPTIONS[name], inline(svg, f"f{i}")) for i, (name, svg) in enumerate(vectors.items())],
        method=method,
    )
