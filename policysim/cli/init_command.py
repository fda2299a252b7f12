"""`policysim init`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from policysim.files.bad_rows import DataError
from policysim.files.data_table import read_table
from policysim.files.output import print_json, toml_text, write_files
from policysim.logs.guess_columns import summarise
from policysim.logs.guess_features import Features, guess_features
from policysim.logs.guess_roles import Roles, guess_roles
from policysim.logs.study_text import study_text, treatment_names
from policysim.question.protocol import UsageError


def run(chosen: argparse.Namespace) -> int:
    """`policysim init`: write a study file from a trial's data, with a comment on every guess."""
    data = Path(chosen.data)
    out = _checked_out(data, chosen.out)
    table = read_table(data)
    columns = [summarise(table[name], str(name)) for name in table.frame.columns]
    roles = guess_roles(columns, table.name)
    features = guess_features(roles.rest)
    if not features.chosen:
        raise DataError(
            f"{table.name}: no column is left that can be a feature: it needs 2 or more values before treatment"
        )
    text = study_text(_relative(data, out), data.stem, out.as_posix(), roles, features)
    write_files(out.parent, {out.name: text.encode()})
    if chosen.json:
        print_json(_document(out, roles, features))
    else:
        sys.stdout.write("\n".join(_screen(out, text, roles, features)) + "\n")
    return 0


def _checked_out(data: Path, out: str | None) -> Path:
    """Where to write: next to the data by default; never over a file that is there."""
    path = data.with_suffix(".toml") if out is None else Path(out)
    if path.suffix != ".toml":
        raise UsageError(f"--out must end in .toml, got {out!r}")
    if path.exists():
        raise UsageError(f"{path.as_posix()} exists already: remove it, or choose another with --out FILE.toml")
    return path


def _relative(data: Path, out: Path) -> str:
    """The data's path from the folder of the study."""
    try:
        return Path(os.path.relpath(data.resolve(), out.parent.resolve())).as_posix()
    except ValueError:  # another drive
        return data.resolve().as_posix()


def _screen(out: Path, text: str, roles: Roles, features: Features) -> Sequence[str]:
    return [
        f"Treatment {toml_text(roles.treatment.name)} ({roles.treatment.n_distinct} arms), "
        f"propensity {toml_text(roles.propensity)}.",
        _outcome_words(out, roles),
        f"{len(features.chosen)} features, {features.n_records:,} records: "
        f"{', '.join(toml_text(candidate.binning.name) for candidate in features.chosen)}.",
        f"{text.count('# CHECK')} guesses are marked CHECK in {out.as_posix()}: read them.",
        f"Type next: policysim compare {out.as_posix()}",
    ]


def _outcome_words(out: Path, roles: Roles) -> str:
    if roles.outcome is None:
        return f"Outcome: no column is named like one; fill it in in {out.as_posix()} before you compare."
    return f"Outcome {toml_text(roles.outcome.name)}, {'less' if roles.harmful else 'more'} is better."


def _document(out: Path, roles: Roles, features: Features) -> dict[str, Any]:
    return {
        "study": out.as_posix(),
        "id": roles.id.name if roles.id else None,
        "treatment": roles.treatment.name,
        "treatments": dict(treatment_names(roles.treatment)),
        "propensity": roles.propensity,
        "outcome": {roles.outcome.name: -1.0 if roles.harmful else 1.0} if roles.outcome else {},
        "outcome_candidates": [column.name for column in roles.candidates],
        "missing_outcomes": roles.outcome.n_missing if roles.outcome else None,
        "features": [candidate.binning.name for candidate in features.chosen],
        "further_features": [candidate.binning.name for candidate in features.further],
        "records": features.n_records,
        "left_out": {column.name: reason for column, reason in roles.later} | features.unusable,
    }
