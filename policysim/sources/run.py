"""`policysim compare` of a study of a source: options, screen, JSON and files."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from policysim.console import print_json
from policysim.figure_files import chosen_figures
from policysim.options import UsageError
from policysim.output import check_writable, write_files
from policysim.reproduce.manifest import finished
from policysim.sources.model import OUTSIDE, WRONG, Findings
from policysim.sources.page import build_manifest, rows_table, source_files, summary
from policysim.sources.studies import SourceStudy, load_source_study
from policysim.text import wrap

# Options of compare that need a scenario.
OF_SCENARIOS = ("epsilon", "policy", "by", "adjacency", "sensitive", "price_list", "figure_size")
OVER_DAYS = ("horizon", "total_epsilon", "delta", "length_public")


def run_source_study(chosen: argparse.Namespace, path: Path) -> int:
    """Compute, print and write."""
    study = load_source_study(path)
    given = [f"--{name.replace('_', '-')}" for name in (*OF_SCENARIOS, *OVER_DAYS) if vars(chosen).get(name)]
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
        print_json(
            {
                "manifest": build_manifest(study, seed),
                "lead": findings.lead,
                "figures": rows_table(findings).to_dict(orient="records"),
                "errata": [asdict(erratum) for erratum in findings.errata],
                "report": report,
            }
        )
    else:
        sys.stdout.write("\n".join([*source_screen(study, findings), f"Report: {report}"]) + "\n")
    return 0


def source_screen(study: SourceStudy, findings: Findings) -> list[str]:
    """The answer, and every figure of the source that is not as expected."""
    lines = [study.title, *wrap(study.source), ""]
    for sentence in findings.lead:
        lines += wrap(sentence)
    lines += ["", *wrap(summary(findings))]
    for row in findings.rows:
        if row.verdict in (WRONG, OUTSIDE):
            lines += wrap(f"{row.verdict}: {row.what}: {row.printed}; ours {row.shown}. {row.why}".rstrip())
    return lines
