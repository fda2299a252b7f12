"""What people see and keep of a study of a source: page, tables, figures and manifest; screen and JSON."""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from policysim.console import print_json
from policysim.figure_files import DEFAULT, FigureFiles, chosen_figures
from policysim.figures import to_svg
from policysim.options import UsageError
from policysim.output import check_writable, write_files
from policysim.report import inline, page_environment, to_csv
from policysim.report.data_table import tidy
from policysim.report.manifest import manifest_text
from policysim.reproduce.manifest import finished
from policysim.sources.engine import AGREES, DIFFERS, INSIDE, OUTSIDE, PLAUSIBLE, WRONG, Findings, number
from policysim.sources.source_study import SourceStudy, load_source_study
from policysim.text import wrap
from policysim.words import rounded

LIBRARIES = ("policysim", "numpy", "scipy", "pandas", "matplotlib", "scikit-learn")
# A mark goes with the word, so that a table can be looked through for what is not as expected.
MARKS = {AGREES: "✓", INSIDE: "✓", OUTSIDE: "!", PLAUSIBLE: "✓", WRONG: "✗", DIFFERS: "✗"}
# Options of compare that need a scenario, or days.
OF_SCENARIOS = ("epsilon", "policy", "by", "adjacency", "sensitive", "price_list", "figure_size", "horizon",
                "total_epsilon", "delta", "length_public")  # fmt: skip


def run_source_study(chosen: argparse.Namespace, path: Path) -> int:
    """`policysim compare` of such a study: compute, print and write."""
    study = load_source_study(path)
    given = [f"--{name.replace('_', '-')}" for name in OF_SCENARIOS if vars(chosen).get(name)]
    if given:
        raise UsageError(f"{given[0]} does not go with {study.name}: it is a study of a source document")
    seed = study.seed if chosen.seed is None else chosen.seed
    if seed < 0:
        raise UsageError(f"seed must be a whole number >= 0, got {seed}")
    wanted = chosen_figures(chosen)
    folder = Path(chosen.out) if chosen.out else Path("reports") / study.name
    check_writable(folder)
    findings = study.findings(seed)
    write_files(folder, finished(source_files(study, findings, seed, wanted), chosen))
    report = (folder / "report.html").as_posix()
    if chosen.json:
        figures, errata = findings.table.to_dict(orient="records"), [asdict(one) for one in findings.errata]
        found = {"lead": findings.lead, "figures": figures, "errata": errata}
        print_json({"manifest": build_manifest(study, seed), **found, "report": report})
    else:
        sys.stdout.write("\n".join([*source_screen(study, findings), f"Report: {report}"]) + "\n")
    return 0


def source_screen(study: SourceStudy, findings: Findings) -> list[str]:
    """The answer, and every figure of the source that is not as expected."""
    lines = [study.title, *wrap(study.source), ""]
    for sentence in findings.lead:
        lines += wrap(sentence)
    lines += ["", *wrap(findings.summary)]
    for row in findings.rows:
        if row.verdict in (WRONG, OUTSIDE):
            lines += wrap(f"{row.verdict}: {row.what}: {row.printed}; ours {row.shown}. {row.why}".rstrip())
    return lines


def build_manifest(study: SourceStudy, seed: int) -> dict[str, Any]:
    """What the numbers depend on; nothing in it changes from run to run on one machine."""
    return {
        "study": {"name": study.name, "title": study.title, "sha256": study.digest},
        "analysis": study.analysis,
        "seed": seed,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}},
    }


def source_files(
    study: SourceStudy, findings: Findings, seed: int, wanted: FigureFiles = DEFAULT
) -> Mapping[str, bytes]:
    """Everything that `policysim compare` writes for such a study, by relative path."""
    table = findings.table
    # A column of numbers and words is not written as numbers are.
    table["ours"] = table["ours"].map(lambda ours: f"{ours:.12g}" if isinstance(ours, float) else ours)
    files = {"comparison.csv": to_csv(table)}
    files |= {f"figures/{drawing.name}.csv": to_csv(drawing.table) for drawing in findings.drawings}
    for drawing in findings.drawings:
        files |= wanted.of(drawing.name, drawing.figure, description=drawing.description)
    files["report.html"] = source_page(study, findings, seed).encode()
    files["study.toml"] = study.text.encode()
    return {
        **files,
        "manifest.json": manifest_text({**build_manifest(study, seed), "answer": findings.answer}).encode(),
    }


def source_page(study: SourceStudy, findings: Findings, seed: int) -> str:
    """The page: one file, nothing fetched from anywhere."""
    vectors = {drawing.name: to_svg(drawing.figure()) for drawing in findings.drawings}
    return (
        page_environment(_tied)
        .get_template("source.html")
        .render(
            study=study,
            findings=findings,
            seed=seed,
            random=any(row.run is not None for row in findings.rows),
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
