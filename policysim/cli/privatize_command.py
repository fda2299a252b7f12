"""`policysim privatize`: randomised response on columns of a file, or of the files of a folder."""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from policysim.cli.options import add_json, add_ledger, add_seed, as_usage, number, rows_file, rows_folder
from policysim.cli.parser import Commands

if TYPE_CHECKING:
    from policysim.release.privatize import Table
    from policysim.release.privatize_note import Note

NOT_WITH_ESTIMATE = ("column", "epsilon", "out", "levels", "separately", "true", "seed", "ledger", "again")


def add(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "privatize",
        help="randomise columns of a file so that no row reveals them; estimate from such a file",
        description="Write a copy of a CSV or Parquet file, or of a folder of them, in which k-ary randomised response "
        "replaces some columns, with a note of the mechanism beside it, and print the table that can be estimated from "
        "it. A second release of the same rows adds its ε: policysim-releases.json beside them, which is private, "
        "lists the releases, and the same content is released a second time only with --again (else exit code 4).",
    )
    parser.add_argument(
        "data", type=Path, metavar="DATA", help="a .csv or .parquet file with one row per person; or a folder of such"
    )
    parser.add_argument("--column", action="append", metavar="NAME", help="a column to replace; may be repeated")
    parser.add_argument(
        "--epsilon",
        type=number("a finite number > 0", lambda value: 0 < value < math.inf),
        metavar="1",
        help="the privacy loss of one row, all its columns together",
    )
    parser.add_argument(
        "--out", metavar="OUT", help="the private file, or the folder of many; its note is OUT.privacy.json"
    )
    parser.add_argument(
        "--levels", action="append", metavar="NAME=A,B", help="what a column may hold (public); may be repeated"
    )
    parser.add_argument(
        "--separately", action="store_true", help="each column by itself with an equal share of ε, not all jointly"
    )
    parser.add_argument(
        "--true", action="store_true", help="also print the true counts and the errors, which are not private"
    )
    add_ledger(parser, "release the same rows once more, or replace a release; the ε add up")
    parser.add_argument(
        "--estimate", action="store_true", help="DATA is a private file with its note: only print the estimated table"
    )
    add_seed(parser, "simulate, repeatably; such a file is not a release (default: a release)")
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    """Make a private file, or with --estimate, read one."""
    from policysim.files.output import print_json
    from policysim.files.terminal import say
    from policysim.release.privatize_screen import private_document, private_screen

    path, (note, tables) = _estimated(chosen) if chosen.estimate else _privatized(chosen)
    if chosen.json:
        print_json(private_document(path, note, tables, true=chosen.true))
    else:
        say(private_screen(path, note, tables, true=chosen.true) + "\n")
    return 0


def _estimated(chosen: argparse.Namespace) -> tuple[Path, tuple[Note, Sequence[Table]]]:
    from policysim.files.output import progress_bar
    from policysim.question.protocol import UsageError
    from policysim.release.privatize import read_private
    from policysim.release.privatize_source import open_source

    for name in NOT_WITH_ESTIMATE:
        given = getattr(chosen, name)
        if given is not None and given is not False:
            raise UsageError(f"--{name} does not go with --estimate: the note says what was done")
    with progress_bar(open_source(chosen.data).unit) as progress:
        return chosen.data, read_private(chosen.data, progress)


def _privatized(chosen: argparse.Namespace) -> tuple[Path, tuple[Note, Sequence[Table]]]:
    from policysim.files.output import progress_bar
    from policysim.files.terminal import complain
    from policysim.release.privatize import privatize_files
    from policysim.release.privatize_codes import levels_in
    from policysim.release.privatize_note import make_plan, note_path
    from policysim.release.privatize_source import open_source

    columns, declared, out = _checked(chosen)
    undeclared = [column for column in columns if column not in declared]
    with as_usage():
        # Before any row is read; with the least that columns whose levels are not yet known may hold.
        make_plan(
            {name: declared.get(name, ["0", "1"]) for name in columns}, chosen.epsilon, separately=chosen.separately
        )
    source = open_source(chosen.data)
    with progress_bar(source.unit) as progress:
        levels = declared | (levels_in(source, undeclared, progress) if undeclared else {})
        # What is wrong now is wrong with the data, not with the options: ValueError stays ValueError.
        plan = make_plan(
            {column: levels[column] for column in columns},
            chosen.epsilon,
            separately=chosen.separately,
            from_data=undeclared,
        )
        made = privatize_files(
            source, out, plan, seed=chosen.seed, ledger=chosen.ledger, again=chosen.again, progress=progress
        )
    if note_path(source.path).exists():
        complain(f"warning: {_randomised_before(source.path)}")
    return out, made


def _checked(chosen: argparse.Namespace) -> tuple[list[str], dict[str, list[str]], Path]:
    """The private columns, the levels of those that are declared, and --out; UsageError for what does not go together.

    --out is a file's name for a file, and a folder's for a folder.
    """
    from policysim.question.protocol import UsageError

    columns: list[str] = chosen.column or []
    if not columns:
        raise UsageError("privatize needs --column NAME, once for each column to hide")
    for column in columns:
        if columns.count(column) > 1:
            raise UsageError(f"--column {column} is given twice")
    declared = parse_levels(chosen.levels or [], columns)
    if chosen.epsilon is None:
        raise UsageError("privatize needs --epsilon: the privacy loss of one row, such as 1")
    if chosen.seed is not None and chosen.ledger is not None:
        raise UsageError("--ledger does not go with --seed: a simulation is no release, and is not counted")
    if chosen.out is None:
        raise UsageError("privatize needs --out FILE, or --out FOLDER for a folder")
    try:
        return columns, declared, (rows_folder if chosen.data.is_dir() else rows_file)(chosen.out)
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"--out {error}") from None


def _randomised_before(path: Path) -> str:
    """What is lost when a file that is private already is privatised again."""
    from policysim.files.bad_rows import DataError
    from policysim.release.privatize_note import note_path, read_note

    try:
        before = read_note(path).plan
    except DataError:
        what = "its columns may already have been randomised"
    else:
        what = f"{', '.join(before.levels)} had already been randomised at epsilon = {before.epsilon:g}"
    return (
        f"{path.name} has an earlier note, {note_path(path).name}, which is not carried over: {what}, "
        "and nothing here corrects for that or adds its epsilon"
    )


def parse_levels(texts: Sequence[str], columns: Sequence[str]) -> dict[str, list[str]]:
    """The levels of each column, from texts such as sex=0,1; a level with a comma stands within quotes.

    Examples
    --------
    >>> parse_levels(['ward=north,"south, by the sea"'], ["ward"])
    {'ward': ['north', 'south, by the sea']}
    """
    from policysim.question.protocol import UsageError

    levels: dict[str, list[str]] = {}
    for text in texts:
        # Of columns "a" and "a=b", the longer one is meant by "a=b=0,1".
        column = max((name for name in columns if text.startswith(f"{name}=")), key=len, default=None)
        if column is None:
            raise UsageError(f"--levels must be COLUMN=A,B of a column named with --column, got {text!r}")
        if column in levels:
            raise UsageError(f"--levels of {column} are given twice")
        try:
            rows = list(csv.reader([text.removeprefix(f"{column}=")], skipinitialspace=True, strict=True))
        except csv.Error as error:
            raise UsageError(f"--levels {text!r}: {error}") from None
        levels[column] = rows[0] if rows else []
    return levels
