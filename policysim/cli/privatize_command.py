"""`policysim privatize`."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from policysim.files.bad_rows import DataError
from policysim.files.columns_file import ColumnsFile, check_ending, open_columns
from policysim.files.output import print_json, progress_bar
from policysim.question.protocol import UsageError
from policysim.release.privatize import PrivateTable, check_ledger, check_out, privatize_file, read_private
from policysim.release.privatize_codes import levels_in
from policysim.release.privatize_ledger import Ledger, open_ledger
from policysim.release.privatize_note import Note, Plan, make_plan, note_path, read_note
from policysim.release.privatize_screen import private_document, private_screen

NOT_WITH_ESTIMATE = ("column", "epsilon", "out", "levels", "separately", "true", "seed", "ledger", "again")


def run(chosen: argparse.Namespace) -> int:
    """`policysim privatize`: make a private file, or with --estimate, read one."""
    path, (note, tables) = _estimated(chosen) if chosen.estimate else _privatized(chosen)
    if chosen.json:
        print_json(private_document(path, note, tables))
    else:
        sys.stdout.write(private_screen(path, note, tables) + "\n")
    return 0


def _estimated(chosen: argparse.Namespace) -> tuple[Path, tuple[Note, Sequence[PrivateTable]]]:
    for name in NOT_WITH_ESTIMATE:
        given = getattr(chosen, name)
        if given is not None and given is not False:
            raise UsageError(f"--{name} does not go with --estimate: the note says what was done")
    path = Path(chosen.data)
    file = open_columns(path)
    with progress_bar(file.unit) as bar:
        bar.expect(file.size)
        return path, read_private(path, bar.advance)


def _privatized(chosen: argparse.Namespace) -> tuple[Path, tuple[Note, Sequence[PrivateTable]]]:
    columns = _chosen_columns(chosen.column)
    declared = parse_levels(chosen.levels or [], columns)
    epsilon = _parse_epsilon(chosen.epsilon)
    if chosen.seed is not None and chosen.seed < 0:
        raise UsageError(f"--seed must be >= 0, got {chosen.seed}")
    if chosen.seed is not None and chosen.ledger is not None:
        raise UsageError("--ledger does not go with --seed: a simulation is no release, and is not counted")
    out = _parse_out(chosen.out)
    _check_options(columns, declared, epsilon, separately=chosen.separately)
    file = open_columns(Path(chosen.data))
    check_out(file.path, out, again=chosen.again)
    ledger = None if chosen.seed is not None else _ledger(chosen, file, out, tuple(columns), epsilon)
    rng = None if chosen.seed is None else np.random.default_rng(chosen.seed)
    passes = 1 + (len(declared) < len(columns))
    with progress_bar(file.unit) as bar:
        bar.expect(file.size * passes)
        tell = bar.advance
        plan = _plan(file, columns, declared, epsilon, separately=chosen.separately, advance=tell)
        made = privatize_file(
            file, out, plan, rng=rng, keep_true=chosen.true, ledger=ledger, again=chosen.again, advance=tell
        )
    if ledger:
        sys.stderr.write(f"policysim: {_counted(ledger, file.path)}\n")
    if note_path(file.path).exists():
        sys.stderr.write(f"policysim: warning: {_randomised_before(file.path)}\n")
    return out, made


def _ledger(
    chosen: argparse.Namespace, file: ColumnsFile, out: Path, columns: tuple[str, ...], epsilon: float
) -> Ledger:
    """Where the release is counted; what was released before is refused now, before the rows are read."""
    ledger = open_ledger(file.path, None if chosen.ledger is None else Path(chosen.ledger))
    check_ledger(ledger, file, out, columns, epsilon, again=chosen.again)
    return ledger


def _counted(ledger: Ledger, data: Path) -> str:
    """What a second release would cost, and where this one is listed."""
    changed = "" if ledger.same or not ledger.releases else _changed(ledger, data)
    return (
        f"a second release of the same columns adds its epsilon to this one's; {ledger.path.as_posix()} lists the "
        f"releases and is private: keep it with the data, and publish neither{changed}"
    )


def _changed(ledger: Ledger, data: Path) -> str:
    return (
        f". {ledger.path.name} lists {len(ledger.releases)} of other content: where {data.name} shares rows with it, "
        "their epsilon adds up too, which is not counted here"
    )


def _randomised_before(path: Path) -> str:
    """What is lost when a file that is private already is privatised again."""
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


def _plan(
    file: ColumnsFile,
    columns: Sequence[str],
    declared: dict[str, list[str]],
    epsilon: float,
    *,
    separately: bool,
    advance: Callable[[int], object],
) -> Plan:
    undeclared = [column for column in columns if column not in declared]
    found = levels_in(file, undeclared, advance) if undeclared else {}
    levels = {column: declared[column] if column in declared else found[column] for column in columns}
    # What is wrong now is wrong with the data, not with the options: ValueError stays ValueError.
    return make_plan(levels, epsilon, separately=separately, from_data=undeclared)


def _check_options(columns: Sequence[str], declared: dict[str, list[str]], epsilon: float, *, separately: bool) -> None:
    """What can be wrong with the options is said before any row is read; UsageError."""
    try:
        # The least that columns whose levels are not yet known may hold.
        make_plan({name: declared.get(name, ["0", "1"]) for name in columns}, epsilon, separately=separately)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _chosen_columns(columns: list[str] | None) -> list[str]:
    if not columns:
        raise UsageError("privatize needs --column NAME, once for each column to hide")
    for column in columns:
        if columns.count(column) > 1:
            raise UsageError(f"--column {column} is given twice")
    return columns


def _parse_out(text: str | None) -> Path:
    if not text:
        raise UsageError("privatize needs --out FILE")
    out = Path(text)
    try:
        check_ending(out)
    except DataError as error:
        raise UsageError(f"--out {error}") from None
    return out


def _parse_epsilon(text: str | None) -> float:
    if text is None:
        raise UsageError("privatize needs --epsilon: the privacy loss of one row, such as 1")
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"--epsilon must be one number > 0, got {text!r}") from None


def parse_levels(texts: Sequence[str], columns: Sequence[str]) -> dict[str, list[str]]:
    """The levels of each column, from texts such as sex=0,1; a level with a comma stands within quotes.

    Examples
    --------
    >>> parse_levels(['ward=north,"south, by the sea"'], ["ward"])
    {'ward': ['north', 'south, by the sea']}
    """
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
