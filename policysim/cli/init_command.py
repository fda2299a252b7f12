"""`policysim init`: from a data file to a study file."""

from __future__ import annotations

import argparse
import math
import os
from argparse import ArgumentTypeError
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from policysim.cli.options import add_json, names
from policysim.cli.parser import Commands

if TYPE_CHECKING:
    from policysim.logs.guess_features import Features
    from policysim.logs.guess_roles import Roles


def study_file(text: str) -> Path:
    """A file that compare can run."""
    if Path(text).suffix != ".toml":
        raise ArgumentTypeError(f"must end in .toml, got {text!r}")
    return Path(text)


def horizon(text: str) -> float:
    """A finite number > 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise ArgumentTypeError(f"must be a number > 0, got {text!r}")
    return value


def add(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "init",
        help="write a study.toml for a file of treated patients, with # CHECK on every guess",
        description="Look at a CSV or Parquet file with one row per treated patient, and write a commented study.toml "
        "that compare can run. Treatment, outcome, time, event and id are named by options, or by columns whose names "
        "leave no doubt; else init prints the command to type. Features are the remaining columns.",
    )
    parser.add_argument(
        "data",
        type=Path,
        nargs="+",
        metavar="DATA",
        help="a .csv or .parquet file with one row per patient; or three: features, actions and outcomes",
    )
    parser.add_argument(
        "--out", type=study_file, metavar="FILE", help="the study file to write (default: beside DATA, ending in .toml)"
    )
    parser.add_argument(
        "--treatment",
        type=names,
        action="extend",
        metavar="COLUMN",
        help="the treatment; or one,two: columns that make it together, as in a factorial trial, or one for each arm",
    )
    parser.add_argument("--outcome", metavar="COLUMN", help="the outcome: numbers, such as 0 and 1")
    parser.add_argument("--time", metavar="COLUMN", help="with --event: the time to it, or to the end of follow-up")
    parser.add_argument(
        "--event", metavar="COLUMN", help="with --time: 1 for the event, 0 where follow-up ended before"
    )
    parser.add_argument(
        "--horizon", type=horizon, metavar="TIME", help="with --time: the outcome is to be free of the event at it"
    )
    parser.add_argument("--id", metavar="COLUMN", help="the patients' ids; none: each row is a patient all the same")
    parser.add_argument(
        "--features",
        type=names,
        action="extend",
        metavar="COLUMNS",
        help="what was known before treatment: these columns and no others",
    )
    parser.add_argument(
        "--no-header", action="store_true", help="the first line is a patient; columns are named 0, 1, 2 and so on"
    )
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    """Write a study file from a trial's data, with a comment on every guess."""
    from policysim.files.bad_rows import DataError
    from policysim.files.terminal import say
    from policysim.files.whole_folders import print_json, progress_bar, write_files
    from policysim.logs.guess_columns import read_columns
    from policysim.logs.guess_features import guess_features
    from policysim.logs.guess_roles import NONE, Named, guess_roles
    from policysim.logs.study_text import study_text
    from policysim.question.protocol import UsageError

    if len(chosen.data) not in (1, 3):
        raise UsageError(f"init needs one file, or three: features, actions and outcomes; got {len(chosen.data)}")
    first, header = chosen.data[0], not chosen.no_header
    name = ", ".join(path.as_posix() for path in chosen.data)
    out = chosen.out or first.with_suffix(".toml")
    if out.exists():
        raise UsageError(f"{out.as_posix()} exists already: remove it, or choose another with --out FILE.toml")
    with progress_bar("column") as progress:
        ids = "" if chosen.id in (None, NONE) else chosen.id
        columns = read_columns(chosen.data, ids, header=header, progress=progress)
    options = [*(["--no-header"] if chosen.no_header else []), *(["--out", str(chosen.out)] if chosen.out else [])]
    named = Named(
        words=("policysim", "init", *map(str, chosen.data), *options),
        treatment=tuple(chosen.treatment or ()),
        outcome=chosen.outcome or "",
        time=chosen.time or "",
        event=chosen.event or "",
        horizon=chosen.horizon or 0.0,
        id=chosen.id or "",
        features=tuple(chosen.features or ()),
    )
    roles = guess_roles(columns, name, named)
    features = guess_features(roles, name, named)
    if not features.chosen:
        raise DataError(f"{name}: no column is left that can be a feature: it needs 2 or more values before treatment")
    files = [_relative(path, out) for path in chosen.data]
    text = study_text(files, first.stem, out.as_posix(), roles, features, header=header)
    write_files(out.parent, {out.name: text.encode()})
    if chosen.json:
        print_json(_document(out, roles, features))
    else:
        say("\n".join(_screen(out, text, roles, features)) + "\n")
    return 0


def _relative(data: Path, out: Path) -> str:
    """The data's path from the folder of the study."""
    try:
        return Path(os.path.relpath(data.resolve(), out.parent.resolve())).as_posix()
    except ValueError:  # another drive
        return data.resolve().as_posix()


def _screen(out: Path, text: str, roles: Roles, features: Features) -> Sequence[str]:
    from policysim.files.whole_folders import toml_text
    from policysim.logs.study_text import arms

    treatment, name = roles.treatment, toml_text(roles.outcome.name)
    outcome = f"Outcome {name}, {'less' if roles.harmful else 'more'} is better."
    if roles.time:
        outcome = f"Outcome: free of {name} at {toml_text(roles.time.name)} = {roles.horizon:g}."
    missing = f"; {treatment.n_missing:,} rows without are left out" if treatment.n_missing else ""
    return [
        f"{treatment.n_rows:,} rows, each a patient{f' (id {toml_text(roles.id.name)})' if roles.id else ''}.",
        f"Treatment {toml_text(treatment.name)}: {arms(roles)}{missing}.",
        outcome,
        f"{len(features.chosen)} features, {features.n_records:,} records: "
        f"{', '.join(toml_text(candidate.binning.name) for candidate in features.chosen)}.",
        f"{text.count('# CHECK')} guesses are marked CHECK in {out.as_posix()}: read them.",
        f"Type next: policysim compare {out.as_posix()}",
    ]


def _document(out: Path, roles: Roles, features: Features) -> dict[str, Any]:
    from policysim.logs.study_text import treatment_names

    return {
        "study": out.as_posix(),
        "rows": roles.treatment.n_rows,
        "id": roles.id.name if roles.id else None,
        "treatment": [part.name for part in roles.joined] or roles.treatment.name,
        "treatments": dict(treatment_names(roles)),
        "missing_treatments": roles.treatment.n_missing,
        "outcome": {} if roles.time else {roles.outcome.name: -1.0 if roles.harmful else 1.0},
        "time": roles.time.name if roles.time else None,
        "event": roles.outcome.name if roles.time else None,
        "horizon": roles.horizon if roles.time else None,
        "missing_outcomes": roles.outcome.n_missing,
        "features": [candidate.binning.name for candidate in features.chosen],
        "further_features": [candidate.binning.name for candidate in features.further],
        "records": features.n_records,
        "left_out": dict(features.left_out),
    }
