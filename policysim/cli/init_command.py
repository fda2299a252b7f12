"""`policysim init`: from a data file to a study file."""

from __future__ import annotations

import argparse
import os
import sys
import tomllib
from pathlib import Path

from policysim.cli.options import Commands, add_format, add_json, chosen_format, names

OPTIONS = {
    "treatment": ("COLUMN", "the treatment; or one,two: columns that form it together"),
    "outcome": ("COLUMN", "the outcome: numbers; or NAME=WEIGHT,...; or COLUMN:WORD=NUMBER,..."),
    "time": ("COLUMN", "in place of an outcome: the time to an event or to the end of follow-up"),
    "event": ("COLUMN", "1 for the event, 0 if follow-up ended before; or COLUMN:event=2,censored=1,..."),
    "horizon": ("TIME", "with --time: success is to be free of the event at this time"),
    "id": ("COLUMN", "the patients' ids; none: each row is another patient"),
    "cluster": (
        "COLUMN",
        "patients who were treated together, such as villages; the id, if a patient has several rows",
    ),
    "assigned": ("HOW", "randomised, randomised:2,1 (a ratio), by-doctors, or a column of propensities"),
    "features": ("COLUMNS", "the columns from before treatment, with commas between; all: all that are left"),
    "adjust-for": (
        "COLUMNS",
        "further columns from before treatment: adjusted for as they are, and no part of the record",
    ),
    "unknown": ("COLUMN=VALUE", "values that stand for unknown, with commas between; none"),
    "missing": ("WHAT", "exclude: leave out rows without a value of a feature; level: a level NA"),
}
LISTS = ("treatment", "features", "adjust-for", "unknown", "missing")


def add(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "init",
        help="write a study.toml for a file of treated patients",
        description="Look at a CSV or Parquet file with one row per treated patient, and write a commented study.toml "
        "that compare can run. What no option says is asked on a terminal; elsewhere init prints the columns, the "
        "questions and the command to type.",
    )
    parser.add_argument(
        "data", type=Path, metavar="DATA", help="a file with one row per patient (.csv, .tsv, .txt, .dat, .parquet)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="the study file to write, .toml (default: beside DATA)"
    )
    for option, (metavar, said) in OPTIONS.items():
        action = "append" if option in LISTS else "store"
        parser.add_argument(f"--{option}", action=action, metavar=metavar, help=said)
    ways = parser.add_mutually_exclusive_group()
    for way, said in (("higher", "more of the outcome is better, or a later event"), ("lower", "less of it is better")):
        name = f"{way}-is-better"
        ways.add_argument(f"--{name}", action="store_const", dest="direction", const=name, help=said)
    add_format(parser, "DATA")
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    """Write a study file from a trial's data, by answers of the user."""
    from policysim.errors import UsageError
    from policysim.files.many_files import csv_name
    from policysim.files.terminal import print_json, say
    from policysim.files.whole_files import write_files
    from policysim.logs.column_summary import columns_table, read_columns
    from policysim.logs.init_questions import InitForm
    from policysim.logs.study_text import QUESTIONS, checked, study_text

    data, stated = chosen.data, chosen_format(chosen)
    if not data.name:
        raise UsageError(f"init needs a file of patients, got {str(data)!r}")
    out = chosen.out or data.with_name(csv_name(data)).with_suffix(".toml")
    if out.suffix != ".toml":
        raise UsageError(f"--out must end in .toml, got {str(out)!r}")
    if out.exists():
        raise UsageError(f"{out.as_posix()} exists already: remove it, or choose another with --out FILE.toml")
    columns = read_columns(data, stated)
    options = [*stated.options, *(["--out", str(chosen.out)] if chosen.out else [])]
    given = [(option, getattr(chosen, option.replace("-", "_"))) for option in QUESTIONS]
    form = InitForm(
        source=data.as_posix(),
        columns={column.name: column for column in columns},
        questions=QUESTIONS,
        answers={option: ",".join(text) if isinstance(text, list) else text for option, text in given if text},
        command=["policysim", "init", str(data), *options],
        split=names,
        prompt=_prompt if sys.stdin.isatty() and sys.stdout.isatty() and not chosen.json else None,
        show=(lambda: None) if chosen.json else (lambda: say(columns_table(columns))),
    )
    form.fill()
    checked(study_text(data.resolve().as_posix(), data.stem, out.as_posix(), form, stated=stated)[0], out)
    text, screen = study_text(_relative(data, out), data.stem, out.as_posix(), form, stated=stated)
    write_files(out.parent, {out.name: text.encode()}, [data])
    if chosen.json:
        found = {"rows": form.treatment.n_rows, "records": form.n_records}
        print_json({"study": out.as_posix(), **found, **tomllib.loads(text)["data"]})
    else:
        say(screen)
    return 0


def _prompt(text: str) -> str:
    """What is typed on the terminal."""
    from policysim.errors import UsageError
    from policysim.files.terminal import say

    say(text)
    line = sys.stdin.readline()
    if not line:
        raise UsageError("no answer: nothing was written")
    return line.strip()


def _relative(data: Path, out: Path) -> str:
    """The data's path from the folder of the study."""
    try:
        return Path(os.path.relpath(data.resolve(), out.parent.resolve())).as_posix()
    except ValueError:  # another drive
        return data.resolve().as_posix()
