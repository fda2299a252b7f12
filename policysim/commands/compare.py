"""`policysim compare`: which kind of comparison a study asks for."""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path

from policysim.commands import compare_days, compare_scenario
from policysim.options import chosen_study
from policysim.study import LoggedStudy, require_scenario
from policysim.study_file import study_path


def run(chosen: argparse.Namespace) -> int:
    """`policysim compare`: of a study of a source document, of a log, over days, or of a scenario."""
    path = study_path(chosen.study)
    if _is_source_study(path):
        # Only such a study needs these modules.
        from policysim.sources.source_report import run_source_study  # noqa: PLC0415

        return run_source_study(chosen, path)
    if chosen.horizon is not None:
        return compare_days.run(chosen)
    compare_days.refuse_without_horizon(chosen)
    study = chosen_study(chosen)
    if isinstance(study, LoggedStudy):
        from policysim.commands import compare_logged  # noqa: PLC0415

        return compare_logged.run(chosen, study)
    return compare_scenario.run(chosen, require_scenario(study))


def _is_source_study(path: Path) -> bool:
    """Whether a file is a study of a source document; False for a file that cannot be read."""
    try:
        return "analysis" in tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return False
