"""The files that a study of a source leaves behind: page, table, figures and manifest."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import pandas as pd

from policysim.figure_files import DEFAULT, FigureFiles
from policysim.figures import to_svg
from policysim.report import inline, page_environment
from policysim.report.data_table import tidy
from policysim.sources.model import AGREES, DIFFERS, INSIDE, OUTSIDE, PLAUSIBLE, WRONG, Drawing, Findings, number
from policysim.sources.studies import SourceStudy
from policysim.words import rounded

LIBRARIES = ("policysim", "numpy", "scipy", "pandas", "matplotlib", "scikit-learn")
SENTENCE_END = re.compile(r"(?<=\.) (?=[A-Z(])")
# Of the answer, those that the manifest quotes.
MOST_SENTENCES = 2
# A mark goes with the word, so that a table can be looked through for what is not as expected.
MARKS = {AGREES: "✓", INSIDE: "✓", OUTSIDE: "!", PLAUSIBLE: "✓", WRONG: "✗", DIFFERS: "✗"}


def source_files(
    study: SourceStudy, findings: Findings, seed: int, wanted: FigureFiles = DEFAULT
) -> Mapping[str, bytes]:
    """Everything that `policysim compare` writes for such a study, by relative path."""
    vectors = {drawing.name: to_svg(drawing.draw(drawing.table)) for drawing in findings.drawings}
    manifest = {**build_manifest(study, seed), "answer": answer(findings)}
    return {
        "comparison.csv": _csv(rows_table(findings)),
        **{f"figures/{drawing.name}.csv": _csv(drawing.table) for drawing in findings.drawings},
        **{name: content for drawing in findings.drawings for name, content in _figure_files(drawing, wanted).items()},
        "report.html": source_page(study, findings, vectors, seed).encode(),
        "study.toml": study.text.encode(),
        "manifest.json": (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode(),
    }


def _figure_files(drawing: Drawing, wanted: FigureFiles) -> dict[str, bytes]:
    # These figures have one size each.
    return wanted.of(drawing.name, lambda _: drawing.draw(drawing.table), description=drawing.description)


def answer(findings: Findings) -> list[str]:
    """The first sentences of the lead."""
    return SENTENCE_END.split(" ".join(findings.lead))[:MOST_SENTENCES]


def rows_table(findings: Findings) -> pd.DataFrame:
    """Every figure of the source beside ours, a row each."""
    return pd.DataFrame(
        [
            {
                "figure": row.what,
                "where": row.where,
                "source": row.printed,
                "ours": row.ours,
                "low": None if row.band is None else row.band[0],
                "high": None if row.band is None else row.band[1],
                "chance": row.chance,
                "verdict": row.verdict,
                "reason": row.why,
            }
            for row in findings.rows
        ]
    )


def _csv(table: pd.DataFrame) -> bytes:
    # Twelve digits, also in the mixed column: more are rounding, and would differ from machine to machine.
    plain = table.map(lambda value: f"{value:.12g}" if isinstance(value, float) and value == value else value)  # noqa: PLR0124 - NaN stays empty
    return plain.to_csv(index=False, lineterminator="\n").encode()


def build_manifest(study: SourceStudy, seed: int) -> dict[str, Any]:
    """What the numbers depend on; nothing in it changes from run to run on one machine."""
    return {
        "study": {"name": study.name, "title": study.title, "sha256": study.digest},
        "analysis": study.analysis,
        "seed": seed,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}},
    }


def source_page(study: SourceStudy, findings: Findings, vectors: Mapping[str, str], seed: int) -> str:
    """The page: one file, nothing fetched from anywhere."""
    return (
        page_environment(_tied)
        .get_template("source.html")
        .render(
            study=study,
            findings=findings,
            seed=seed,
            summary=summary(findings),
            random=any(row.band is not None for row in findings.rows),
            marks=MARKS,
            number=number,
            rounded=rounded,
            data={drawing.name: tidy(drawing.table) for drawing in findings.drawings},
            svg={name: inline(vector, f"f{place}") for place, (name, vector) in enumerate(vectors.items())},
        )
    )


def _tied(value: object) -> object:
    """Text in which "ε = 1" is never broken into two lines; markup and numbers as they are."""
    return value.replace(" = ", "\u00a0=\u00a0") if type(value) is str else value


def summary(findings: Findings) -> str:
    """How many figures agree, in one sentence."""
    verdicts = [row.verdict for row in findings.rows]
    counts = {name: verdicts.count(name) for name in MARKS}
    parts = [
        f"{counts[AGREES]} agree to the digits printed",
        f"{counts[INSIDE]} of single runs lie in the 95 % band of such runs",
        f"{counts[OUTSIDE]} outside it",
        f"{counts[PLAUSIBLE]} plausible",
        f"{counts[WRONG]} wrong in the source",
        f"{counts[DIFFERS]} differ without a reason that we know",
    ]
    shown = [part for part, name in zip(parts, MARKS, strict=True) if counts[name]]
    claims = "one claim" if len(verdicts) == 1 else f"{len(verdicts)} figures and claims"
    return f"Of {claims} of the source: {'; '.join(shown)}."
