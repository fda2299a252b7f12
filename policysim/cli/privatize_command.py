"""`policysim privatize`: columns of a file, or of a folder of files, as randomised values or as a noisy table.

Also the private cells of a log, on which a study can be planned.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from policysim.cli.options import (
    Commands,
    add_format,
    add_json,
    add_release,
    add_show_values,
    as_usage,
    check_release,
    chosen_format,
    chosen_ledger,
    chosen_people,
    names,
    number,
    study_levels,
)

if TYPE_CHECKING:
    from policies.levels import FeatureLevels
    from policysim.release.privatize import Table

TABLE, CELLS = "table", "cells"
OF_VALUES, OF_TABLE = ("separately", "true"), ("by", "adjacency", "no-negative")
FORMAT = ("separator", "decimal", "encoding", "no-header")
NOT_OF_CELLS = ("levels", "study", "uncounted", "simulate", "id", "rows-per-person", "estimate", "json", *FORMAT)
SHARED = ("column", "epsilon", "out", "levels", "study", "ledger", "uncounted", "simulate", "id", "rows-per-person")


def add(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "privatize",
        help="randomise columns of a file, or count them with noise, so that no row reveals them",
        description="Write a copy of a CSV or Parquet file, or of a folder of them, in which k-ary randomised response "
        "replaces some columns, and print the table estimated from it; or with --as table, write only how many rows "
        "have each combination of levels, with noise. A note of the mechanism stands beside it. With --as cells, write "
        "the successes and failures for each class and arm of a log, with noise: a study can be planned on them. The "
        "ledger adds up the ε of all releases about the same people, and refuses a release beyond its budget (exit "
        "code 4).",
    )
    parser.add_argument(
        "data",
        type=Path,
        metavar="DATA",
        help="a file with one row per person (.csv, .tsv, .txt, .dat, .parquet), or a folder of such; with --as cells, "
        "a study of a log",
    )
    parser.add_argument(
        "--column",
        action="append",
        metavar="NAME",
        help="a column to hide; may be repeated; with --as cells, a feature that makes classes (default: all)",
    )
    parser.add_argument(
        "--as",
        dest="form",
        choices=("values", TABLE, CELLS),
        help="values: a copy of the rows (default); table: counts with noise; cells: those of a study's log",
    )
    parser.add_argument(
        "--epsilon",
        type=number("a finite number > 0", lambda value: 0 < value < math.inf),
        metavar="1",
        help="the ε of one person, for all columns together; with --as table, of the whole table",
    )
    parser.add_argument(
        "--out", metavar="OUT", help="the private file, the folder of many, or the table; its note is OUT.privacy.json"
    )
    parser.add_argument(
        "--levels",
        action="append",
        metavar="NAME=A,B",
        help="the possible values of a column (public); may be repeated",
    )
    parser.add_argument(
        "--study",
        metavar="STUDY",
        help="take levels, cuts and treatments that --levels does not declare from a study",
    )
    parser.add_argument(
        "--by", type=names, action="extend", metavar="NAME", help="with --as table: count within groups, one or one,two"
    )
    parser.add_argument(
        "--adjacency",
        choices=("replace-one", "add-or-remove-one"),
        help="with --as table: replace-one (default; the number of rows is public), or add-or-remove-one (it is "
        "hidden)",
    )
    parser.add_argument(
        "--no-negative", action="store_true", help="with --as table: publish 0 in place of a negative count"
    )
    parser.add_argument(
        "--separately", action="store_true", help="each column by itself with an equal share of ε, not all jointly"
    )
    parser.add_argument(
        "--true", action="store_true", help="also print the true counts and the errors, which are not private"
    )
    add_release(parser)
    parser.add_argument(
        "--estimate", action="store_true", help="DATA is a private file with its note: only print the estimated table"
    )
    add_format(parser, "DATA")
    add_show_values(parser)
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    """Make a private file, or with --estimate, read one."""
    from policysim.files.terminal import complain, print_json, progress_bar, say
    from policysim.release.delivery import note_path
    from policysim.release.noisy_table import table_screen
    from policysim.release.privatize import private_document, private_screen, read_private
    from policysim.release.privatize_source import open_source

    if chosen.form == CELLS:
        return _cells(chosen)
    _refuse(chosen, ("show-values",), "data other than a log: only with --as cells")
    if chosen.estimate:
        _refuse(chosen, ("as", *SHARED, *OF_VALUES, *OF_TABLE), "--estimate: the note says what was done")
        with progress_bar(open_source(chosen.data, chosen_format(chosen)).unit) as progress:
            note, tables = read_private(chosen.data, progress, chosen_format(chosen))
        document, screen = private_document(chosen.data, note, tables), private_screen
    elif chosen.form == TABLE:
        _refuse(chosen, OF_VALUES, "--as table")
        document, screen = _counted(chosen), table_screen
    else:
        _refuse(chosen, OF_TABLE, "a copy of the rows, only with --as table")
        document, screen = private_document(*_privatized(chosen), true=chosen.true), private_screen
    beside = note_path(chosen.data)
    if not chosen.estimate and beside.exists():
        complain(
            f"warning: {beside.name} stands beside {chosen.data.name}: its columns may already have been randomised, "
            "and nothing here corrects for that or adds its epsilon"
        )
    if chosen.json:
        print_json(document)
    else:
        say(screen(document))
    return 0


def _refuse(chosen: argparse.Namespace, options: Sequence[str], why: str) -> None:
    """UsageError for an option that was given and does not go with what is done."""
    from policysim.errors import UsageError

    for name in options:
        given = getattr(chosen, "form" if name == "as" else name.replace("-", "_"))
        if given is not None and given is not False:
            raise UsageError(f"--{name} does not go with {why}")


def _asked(chosen: argparse.Namespace) -> dict[str, FeatureLevels]:
    """The declared levels of columns and groups; UsageError for what is missing or contradicts itself."""
    from policies.levels import Levels
    from policysim.errors import UsageError

    columns: list[str] = chosen.column or []
    if not columns:
        raise UsageError("privatize needs --column NAME, once for each column to hide")
    for column in columns:
        if columns.count(column) > 1:
            raise UsageError(f"--column {column} is given twice")
    every = [*columns, *(chosen.by or [])]
    listed = parse_levels(chosen.levels or [], every)
    of_study = study_levels(chosen.study) if chosen.study else {}
    declared = {column: of_study[column] for column in every if column in of_study}
    declared |= {column: Levels(column, levels) for column, levels in listed.items()}
    if chosen.epsilon is None:
        raise UsageError("privatize needs --epsilon: the privacy loss of one person, such as 1")
    check_release(chosen)
    return declared


def _as_texts(
    declared: Mapping[str, FeatureLevels],
) -> tuple[dict[str, list[str]], dict[str, Sequence[float]], dict[str, Sequence[str]]]:
    """The levels of each column as text, where bins begin, and which values mean unknown."""
    levels = {column: list(map(str, feature.levels)) for column, feature in declared.items()}
    cuts = {column: feature.cuts for column, feature in declared.items() if feature.cuts}
    return levels, cuts, {column: feature.unknown for column, feature in declared.items() if feature.unknown}


def _counted(chosen: argparse.Namespace) -> dict[str, Any]:
    """Make a noisy table: what is published of it."""
    from policysim.errors import UsageError
    from policysim.files.terminal import progress_bar
    from policysim.release.ledger import REPLACE
    from policysim.release.noisy_table import TablePlan, release_table
    from policysim.release.privatize_source import open_source

    declared, by = _asked(chosen), chosen.by or []
    levels, cuts, unknown = _as_texts(declared)
    for column in [*chosen.column, *by]:
        if column not in levels:
            raise UsageError(
                f"a table needs the levels of {column}, which are public, declared: --levels {column}=A,B, or --study"
            )
    if chosen.out is None:
        raise UsageError("privatize needs --out FILE.csv for a table")
    with as_usage():
        plan = TablePlan(
            {column: levels[column] for column in chosen.column},
            chosen.epsilon,
            {column: levels[column] for column in by},
            adjacency=chosen.adjacency or REPLACE,
            no_negative=chosen.no_negative,
            cuts=cuts,
            unknown=unknown,
            rows_each=chosen.rows_per_person or 1,
        )
    source = open_source(chosen.data, chosen_format(chosen))
    ledger = chosen_ledger(chosen)
    people = chosen_people(chosen, ledger, source.unchanged(()), plan.levels)
    with progress_bar(source.unit) as progress:
        return release_table(
            source, Path(chosen.out), plan, seed=chosen.simulate, ledger=ledger, people=people, progress=progress
        )


def _cells(chosen: argparse.Namespace) -> int:
    """Write the private cells of a study's log."""
    from policysim.errors import UsageError
    from policysim.files.terminal import complain, say
    from policysim.files.whole_files import write_files
    from policysim.numbers import enough
    from policysim.release.delivery import check_new, spent_words
    from policysim.release.ledger import REPLACE
    from policysim.release.noisy_table import neighbours
    from policysim.release.private_cells import release_cells
    from policysim.study.declared import LoggedStudy
    from policysim.study.study_reader import load_study
    from policysim.words import wrapped

    _refuse(chosen, (*OF_VALUES, *OF_TABLE, *NOT_OF_CELLS), "--as cells")
    out = Path(chosen.out or "")
    if chosen.ledger is None or chosen.epsilon is None or out.suffix.lower() != ".csv":
        raise UsageError("--as cells needs --epsilon, --ledger LEDGER and --out FILE.csv")
    check_new(out)
    study = load_study(chosen.data)
    if isinstance(study, LoggedStudy):
        study = replace(study, log=replace(study.log, show_values=chosen.show_values))
    cells, facts = release_cells(study, chosen.epsilon, chosen.ledger, chosen.column)
    write_files(out.parent, {out.name: cells.to_csv(index=False).encode()}, study.data.files)
    complain(f"{chosen.ledger.as_posix()}: {spent_words(facts)}")
    text = (
        f"{out.as_posix()}: noisy successes and failures, {len(cells):,} rows; a study plans on it by [cohort] cells. "
        f"ε = {enough(chosen.epsilon, 6):g} in all, between files in which {neighbours(REPLACE, 1)}."
    )
    say("\n".join([*wrapped(text), ""]))
    return 0


def _privatized(chosen: argparse.Namespace) -> tuple[Path, dict[str, Any], list[Table]]:
    """Make the private file, or folder: its path, its note and its tables."""
    from policysim.errors import UsageError
    from policysim.files.terminal import progress_bar
    from policysim.release.privatize import privatize_files
    from policysim.release.privatize_note import Randomization
    from policysim.release.privatize_source import levels_in, open_source

    (levels, cuts, unknown), columns = _as_texts(_asked(chosen)), chosen.column
    if chosen.out is None:
        raise UsageError("privatize needs --out FILE, or --out FOLDER for a folder")
    out = Path(chosen.out)
    undeclared = [column for column in columns if column not in levels]
    plan = partial(
        Randomization,
        epsilon_of_person=chosen.epsilon,
        rows_each=chosen.rows_per_person or 1,
        separately=chosen.separately,
        from_data=tuple(undeclared),
        cuts=cuts,
        unknown=unknown,
    )
    with as_usage():
        # Before any row is read; with the least that columns whose levels are not yet known may hold.
        plan({column: tuple(levels.get(column, ("0", "1"))) for column in columns})
    source = open_source(chosen.data, chosen_format(chosen))
    ledger = chosen_ledger(chosen)
    people = chosen_people(chosen, ledger, source.unchanged(()), columns)
    with progress_bar(source.unit) as progress:
        levels |= levels_in(source, undeclared, progress) if undeclared else {}
        # What is wrong now is wrong with the data, not with the options: ValueError stays ValueError.
        randomization = plan({column: tuple(levels[column]) for column in columns})
        note, tables = privatize_files(
            source,
            Path(chosen.out),
            randomization,
            seed=chosen.simulate,
            ledger=ledger,
            people=people,
            progress=progress,
        )
    return out, note, tables


def parse_levels(texts: Sequence[str], columns: Sequence[str]) -> dict[str, list[str]]:
    """The levels of each column, from texts such as sex=0,1; a level with a comma stands within quotes.

    Examples
    --------
    >>> parse_levels(['ward=north,"south, by the sea"'], ["ward"])
    {'ward': ['north', 'south, by the sea']}
    """
    from policysim.errors import UsageError

    levels: dict[str, list[str]] = {}
    for text in texts:
        # Of columns "a" and "a=b", the longer one is meant by "a=b=0,1".
        column = max((name for name in columns if text.startswith(f"{name}=")), key=len, default=None)
        if column is None:
            raise UsageError(f"--levels must be COLUMN=A,B of a column named with --column or --by, got {text!r}")
        if column in levels:
            raise UsageError(f"--levels of {column} are given twice")
        try:
            cells = csv.reader([text.removeprefix(f"{column}=")], skipinitialspace=True, strict=True)
            levels[column] = next(cells, [])
        except csv.Error as error:
            raise UsageError(f"--levels {text!r}: {error}") from None
    return levels
