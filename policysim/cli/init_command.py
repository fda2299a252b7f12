"""`policysim init`: from a data file to a study file."""

from __future__ import annotations

import argparse
import math
import os
import tomllib
from dataclasses import fields
from pathlib import Path

from policysim.cli.options import Commands, add_format, add_json, chosen_format, names, number

COLUMNS = {
    "outcome": "the outcome: numbers, such as 0 and 1",
    "time": "with --event: the time to the event, or to the end of follow-up",
    "event": "with --time: 1 for the event, 0 if follow-up ended before",
    "id": "the patients' ids; none: each row is a patient anyway",
}
LISTS = {
    "treatment": "the treatment; or one,two: columns that form it together, or one for each arm",
    "features": "the columns from before treatment: these and no others",
}


def add(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "init",
        help="write a study.toml for a file of treated patients, with # CHECK on every guess",
        description="Look at a CSV or Parquet file with one row per treated patient, and write a commented study.toml "
        "that compare can run. Treatment, outcome, time, event and id come from options, or from columns with clear "
        "names; else init prints the command to type. Features are the remaining columns.",
    )
    parser.add_argument(
        "data", type=Path, metavar="DATA", help="a file with one row per patient (.csv, .tsv, .txt, .dat, .parquet)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="the study file to write, .toml (default: beside DATA)"
    )
    for option, said in COLUMNS.items():
        parser.add_argument(f"--{option}", default="", metavar="COLUMN", help=said)
    for option, said in LISTS.items():
        parser.add_argument(f"--{option}", type=names, action="extend", default=[], metavar="COLUMN", help=said)
    time = number("a number > 0", lambda value: 0 < value < math.inf)
    parser.add_argument(
        "--horizon", type=time, default=0.0, help="with --time: success is to be free of the event at this time"
    )
    add_format(parser, "DATA")
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    """Write a study file from a trial's data, with a comment on every guess."""
    from policysim.errors import UsageError
    from policysim.files.bad_rows import DataError
    from policysim.files.many_files import csv_name
    from policysim.files.terminal import print_json, say
    from policysim.files.whole_files import write_files
    from policysim.logs.column_summary import read_columns
    from policysim.logs.guess_roles import InitAsked, Named, guess_features, guess_roles
    from policysim.logs.study_text import study_text

    data, stated = chosen.data, chosen_format(chosen)
    if not data.name:
        raise UsageError(f"init needs a file of patients, got {str(data)!r}")
    out = chosen.out or data.with_name(csv_name(data)).with_suffix(".toml")
    if out.suffix != ".toml":
        raise UsageError(f"--out must end in .toml, got {str(out)!r}")
    if out.exists():
        raise UsageError(f"{out.as_posix()} exists already: remove it, or choose another with --out FILE.toml")
    options = [*stated.options, *(["--out", str(chosen.out)] if chosen.out else [])]
    columns = read_columns(data, stated)
    named = Named(**{option.name: getattr(chosen, option.name) for option in fields(Named)})
    named = named.as_written([column.name for column in columns])
    asked = InitAsked(data.as_posix(), named, ["policysim", "init", str(data), *options])
    roles = guess_roles(columns, asked)
    features = guess_features(roles, asked)
    if not features.chosen:
        raise DataError(f"{data.as_posix()}: no column is left that can be a feature, known before treatment")
    text, screen = study_text(_relative(data, out), data.stem, out.as_posix(), roles, features, stated=stated)
    write_files(out.parent, {out.name: text.encode()}, [data])
    if chosen.json:
        found = {"rows": roles.treatment.n_rows, "records": features.n_records, "left_out": dict(features.left_out)}
        print_json({"study": out.as_posix(), **found, **tomllib.loads(text)["data"]})
    else:
        say(screen)
    return 0


def _relative(data: Path, out: Path) -> str:
    """The data's path from the folder of the study."""
    try:
        return Path(os.path.relpath(data.resolve(), out.parent.resolve())).as_posix()
    except ValueError:  # another drive
        return data.resolve().as_posix()
