"""A log that is counted and not kept: how many patients there are of each kind, summed over the parts of the log.

Patients are of one kind if they have the same record, treatment, propensity and outcomes, or about the same outcomes
where these have very many values (`kinds`). What is estimated from a log depends on its rows through these counts, and
the sums of such outcomes, alone, apart from which patients share a fold, which is drawn.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.util import hash_array

from envs.toml_reader import one_line
from policies.arrays import BoolArray, FloatArray, Words
from policysim.errors import UsageError, optional
from policysim.files.bad_rows import BadRows, DataError, PlacedRows, first_line, raise_bad_parts
from policysim.files.columns_file import ColumnsFile, open_columns
from policysim.files.data_table import DataTable
from policysim.files.many_files import stamp
from policysim.logs.kinds import Counted, DistinctRows, Kinds, each_once, stand_ins, values_of
from policysim.logs.load_log import Log, LoggedDecisions, load_log, log_of, read_decisions
from policysim.logs.log_frame import LoggedData, rows_of
from policysim.logs.log_source import (
    CONSTANT,
    LINEAR,
    LOGISTIC,
    TABLE,
    LogColumns,
    LogSource,
)
from policysim.logs.log_tables import LogTables, ids_of
from policysim.logs.outcomes import (
    FEWEST_ROWS,
    FIRST_ROWS,
    check_outcomes,
    goes_with_one,
    refuse_constant,
    refuse_total,
)
from policysim.progress import SILENT, Progress

with optional():
    import pyarrow as pa

# Of fewer patients a fold that is drawn patient by patient may be empty.
FEWEST_PATIENTS = 100
# Outcome models that are fitted to counts as to rows.
COUNTED_MODELS = (LINEAR, LOGISTIC, CONSTANT)
# So many files are counted before the next begin.
MOST_WAITING = 100
CONNECT_SECONDS = 5
# The hash of a missing id.
NO_ID = hash_array(np.array([""], dtype=object))[0]
MODEL = (
    "a log is counted where it is in many files, or with --workers or --cluster, and trees are grown on rows: use "
    f"{', '.join(COUNTED_MODELS[:-1])} or {COUNTED_MODELS[-1]}"
)


def is_counted(source: LogSource, *, counted: bool = False) -> bool:
    """Whether a study's log is counted: where that is asked for, or where it is in many files."""
    return counted or len(source.parts) > 1


def require_countable(source: LogSource) -> None:
    """UsageError for a study of a log that cannot be counted: what it needs rows for."""
    wrong = {
        "three files are joined by id or by row: join them first": TABLE not in source.files,
        "cluster: intervals by cluster need its rows: leave the key out, or read one file": bool(source.cluster),
        "[data.treatments] must declare the treatments: which occur is not known before all is counted": (
            not source.treatments
        ),
        "adjust_for: with columns as they are nearly every patient is of a kind alone: declare them as features": bool(
            source.adjust_for
        ),
    }
    for reason, applies in wrong.items():
        if applies:
            raise UsageError(f"this log cannot be counted (--workers, --cluster, or many files): {reason}")


def require_countable_model(model: str) -> None:
    """UsageError for an outcome model that needs rows."""
    if model not in COUNTED_MODELS:
        raise UsageError(f"model = {model!r} is not possible: {MODEL}")


def open_log(
    source: LogSource, executor: Executor | None = None, progress: Progress = SILENT, *, counted: bool = False
) -> Log:
    """The log of a study: its rows, or as `count_log` has it where `is_counted`."""
    return count_log(source, executor, progress) if is_counted(source, counted=counted) else load_log(source)


def count_log(source: LogSource, executor: Executor | None = None, progress: Progress = SILENT) -> Log:
    """The log of a study, its patients counted.

    Parameters
    ----------
    source : LogSource
    executor : concurrent.futures.Executor, optional
        Counts files in its threads, processes, or a cluster; by default this thread does. The log is the same.
    progress : Progress, optional
        Reports the files counted.

    Raises
    ------
    DataError
        As `load_log`, with the first twenty bad rows of all parts; for more kinds of patients than `MOST_KINDS`, or
        fewer than 100 patients.
    UsageError
        For what cannot be counted.
    """
    require_countable(source)
    # Sent with each file, which does not need the names of all.
    decisions, unknown = count_parts(replace(source, parts=()), source.parts, executor, progress)
    _check_outcomes(source, decisions)
    refuse_constant(source, decisions.data.rewards)
    return replace(log_of(source, decisions), unknown=unknown)


def count_parts(
    columns: LogColumns, parts: Sequence[Path], executor: Executor | None = None, progress: Progress = SILENT
) -> tuple[LoggedDecisions, dict[str, int]]:
    """What was decided for each kind of patient, in an order that depends on the kinds alone.

    Behind them is how many patients have a value that means unknown, for each column that has any.
    """
    total, bad, ids = Kinds(tuple(columns.outcome), columns.later), [], list[Words]()
    unknown = dict.fromkeys(columns.unknown, 0)
    for counted, of_part, ids_of_part, bad_rows in _counted_parts(columns, parts, executor, progress):
        unknown = {column: count + of_part[column] for column, count in unknown.items()}
        ids.append(ids_of_part)
        bad += [bad_rows] if bad_rows[0] else []
        if not bad:
            total.add(counted)
    raise_bad_parts(bad)
    _refuse_repeated(columns.id, parts, ids)
    kinds, counts, sums = total.arrays()
    if counts.sum() < FEWEST_PATIENTS:
        raise DataError(
            f"{_title(parts)}: a log of fewer than {FEWEST_PATIENTS} rows is not counted, got {counts.sum()}: read it "
            "as one file, without --workers and --cluster"
        )
    places = values_of(len(columns.outcome))
    values = kinds.view(np.float64)[:, places]
    if len(sums):
        rows, values, counts = stand_ins(kinds[:, places], counts, sums)
        kinds = kinds[rows]
    numbers = kinds.view(np.float64)
    data = LoggedData(
        kinds[:, 1].astype(np.intp), values[:, 0].copy(), numbers[:, 2].copy(), columns.arms, counts=counts
    )
    decisions = LoggedDecisions(
        data=data,
        records=kinds[:, 0].astype(np.intp),
        missing=kinds[:, 4].astype(np.bool_),
        outcomes=pd.DataFrame(values[:, 1:], columns=list(columns.outcome)),
        followed=pd.DataFrame({"time": numbers[:, -2], "state": kinds[:, -1]}) if columns.later else None,
    )
    return decisions, unknown


def _title(parts: Sequence[Path]) -> str:
    """The files of a log, for messages."""
    return parts[0].as_posix() + (f" and {len(parts) - 1:,} more files" if len(parts) > 1 else "")


def _refuse_repeated(column: str, parts: Sequence[Path], ids: Sequence[Words]) -> None:
    """DataError for the first file with an id that stands in it twice, or in a file before it."""
    hashes = np.concatenate(ids)
    part_of_row = np.repeat(np.arange(len(parts)), list(map(len, ids)))
    again = pd.Series(hashes).duplicated().to_numpy()
    if not again.any():
        return
    part = part_of_row[again.argmax()]
    rows = again & (part_of_row == part)
    before = parts[part_of_row[np.isin(hashes, hashes[rows]).argmax()]].as_posix()
    where = f"stand there already, or in {before}" if before != parts[part].as_posix() else "stand there already"
    raise DataError(
        f"{parts[part].as_posix()}: {column}: ids of {np.count_nonzero(rows):,} rows {where}: a patient must have one "
        "row in all files; if each row is a patient, leave out the id"
    )


# The kinds of patients of one file and how many there are of each; for columns, how many patients have a value that
# means unknown; a hash of each row's id; how many bad rows, and the first in words.
PartCounts: TypeAlias = tuple[Counted, dict[str, int], Words, tuple[int, list[str]]]


def _counted_parts(
    columns: LogColumns, parts: Sequence[Path], executor: Executor | None, progress: Progress
) -> Iterator[PartCounts]:
    """What `count_part` returns of each file, in the order of the files, whatever is done first."""
    count = functools.partial(count_part, columns)
    progress.expect(len(parts))
    # Not all at once: counts that wait to be added would fill the memory.
    for start in range(0, len(parts), MOST_WAITING):
        batch = parts[start : start + MOST_WAITING]
        # Workers of a cluster may run in another folder.
        results = executor.map(count, [part.absolute() for part in batch]) if executor else map(count, batch)
        for part in batch:
            try:
                result = next(results)
            except Exception as error:
                error.add_note(part.as_posix())
                raise
            progress.advance()
            yield result


@contextmanager
def cluster_executor(address: str) -> Iterator[Executor]:
    """The executor of a Dask cluster that is running, whose scheduler is trusted: it can run code here.

    Raises
    ------
    UsageError
        If there is no cluster, or one without workers, or whose workers have not this version of the package.
    DataError
        For a file whose workers die again and again; Dask counts it elsewhere a few times before.
    """
    with optional():
        import distributed as package  # noqa: PLC0415 - takes a second

    distributed: Any = package  # not all of it has types
    try:
        asyncio.run(asyncio.wait_for(_greet_scheduler(distributed, address), CONNECT_SECONDS))
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TypeError, ValueError, RuntimeError) as error:
        raise UsageError(f"--cluster {address}: no Dask scheduler answers there: {first_line(error)}") from None
    with client:
        own, versions = version("policysim"), client.run(version, "policysim", on_error="return")
        if set(versions.values()) != {own}:
            others = ", ".join(sorted(map(str, versions.values()))) or "none"
            raise UsageError(f"--cluster {address}: each worker must have policysim {own}, its workers have {others}")
        try:
            # Not pure: the same file may hold something else since another run.
            yield client.get_executor(pure=False)
        except distributed.KilledWorker as error:
            raise DataError(f"{error.__notes__[0]}: the workers that counted it died: {first_line(error)}") from None


async def _greet_scheduler(distributed: Any, address: str) -> None:
    """Return when a scheduler answers; `Client` would wait for ever where somebody else listens."""
    connection = await distributed.comm.connect(address, **distributed.Security().get_connection_args("client"))
    await connection.close()


def count_part(columns: LogColumns, part: Path) -> PartCounts:
    """Count one file; memory does not grow with it, but by 8 bytes a row for ids. DataError if it changes meanwhile."""
    stamp_before, bad, ids = stamp(part), BadRows(), [np.zeros(0, dtype=np.uint64)]
    total, unknown = Kinds(tuple(columns.outcome), columns.later), dict.fromkeys(columns.unknown, 0)
    file = open_columns(part, columns.form)
    for distinct, counts in _distinct(columns, file, ids):
        tables, where = _log_of(columns, distinct)
        unknown = {column: count + int(counts[where[column]].sum()) for column, count in unknown.items()}
        kinds = _kinds(columns, tables, BadRows())
        if kinds is None:
            bad = _bad_rows(columns, file)
            break
        total.add(Counted.of(kinds, counts))
    if not bad.count and (np.concatenate(ids) == NO_ID).any():
        bad = _bad_rows(columns, file)
    if stamp(part) != stamp_before:
        raise DataError(f"{part.as_posix()}: was changed while it was read")
    return total.counted(), unknown, np.concatenate(ids), bad.told()


def _log_of(columns: LogColumns, table: DataTable) -> tuple[LogTables, dict[str, BoolArray]]:
    """A table without the values that mean unknown, and where these were; of distinct rows there are no ids."""
    id_column = columns.id if columns.id in table.columns else ""
    return LogTables({TABLE: table}, id_column).without_unknown(columns.unknown)


def _distinct(
    columns: LogColumns, file: ColumnsFile, ids: list[Words]
) -> Iterator[tuple[DataTable, NDArray[np.int64]]]:
    """The distinct rows of a file, and how many there are of each; some of several batches may be equal.

    Hashes of the patients' ids, which are no part of these rows, are added to `ids`.
    """
    few, name = DistinctRows(), file.path.as_posix()
    for patients in _patients(columns, file):
        if columns.id:
            texts: Any = ids_of(patients[columns.id]).to_numpy(dtype=object)
            ids.append(hash_array(texts, categorize=False))
        without_ids: Any = patients.rows
        without_ids = without_ids.select(columns.columns)
        if not few.add(without_ids):
            rows, counts = each_once(without_ids)
            yield DataTable(name, rows), counts
    for rows, counts in few.found():
        yield DataTable(name, rows), counts


def _bad_rows(columns: LogColumns, file: ColumnsFile) -> BadRows:
    """The bad rows of a file that has some, which is read again: where each is, but not what it holds."""
    bad = BadRows()
    for patients in _patients(columns, file):
        _kinds(columns, _log_of(columns, patients)[0], bad)
        bad.tables = [_without_rows(table) for table in bad.tables]
    return bad


def _without_rows(table: PlacedRows) -> PlacedRows:
    """The same table, which can still say where a row was."""
    return replace(table, rows=pd.DataFrame()) if isinstance(table, DataTable) else table


def _patients(columns: LogColumns, file: ColumnsFile) -> Iterator[DataTable]:
    """The columns that are read, some rows at a time; DataError behind the last if that is a row of totals."""
    first = last = None
    for part in _batches(columns, file):
        end = len(part) - 1
        first, last = first or part.part(0, min(end, FIRST_ROWS)), part.part(end, end + 1)
        yield part
    if first and last and isinstance(columns, LogSource):
        refuse_total(columns, first, last, lambda: _batches(columns, file))


def _batches(columns: LogColumns, file: ColumnsFile) -> Iterator[DataTable]:
    """The columns that are read, some rows at a time."""
    name_in_file = {one_line(name): name for name in file.schema.names}
    names = list(dict.fromkeys(filter(None, [*columns.columns, columns.id])))
    for name in names:
        if name not in name_in_file:
            raise DataError(
                f"{file.path.as_posix()}: has no column {name!r}, which each file of the log needs; it has "
                f"{', '.join(name_in_file)}"
            )
    before = 0
    for batch in file.batches([name_in_file[name] for name in names]):
        rows = pa.Table.from_batches([batch]).rename_columns(names)
        yield DataTable(file.path.as_posix(), rows, file, file.header, before)
        before += len(rows)


def _kinds(columns: LogColumns, tables: LogTables, bad: BadRows) -> NDArray[np.int64] | None:
    """The kind of each row, (n_rows, 5 + n_outcomes): whole numbers, and the bits of numbers; None if a row is bad."""
    try:
        decisions = read_decisions(tables.with_joined(columns.joined), columns, bad)
    except DataError:
        if bad.count:
            return None  # told of all parts together
        raise
    data = decisions.data
    keys = [decisions.records.clip(0), data.actions, _bits(data.propensities), _bits(data.rewards), decisions.missing]
    keys += [_bits(column.to_numpy()) for _, column in decisions.outcomes.items()]
    if decisions.followed is not None:
        keys += [_bits(decisions.followed["time"].to_numpy()), decisions.followed["state"].to_numpy()]
    return np.column_stack(keys).astype(np.int64)


def _bits(numbers: FloatArray) -> NDArray[np.int64]:
    """The bits of numbers, one pattern for each number: + 0 makes −0 0, and there are many NaN."""
    return np.where(np.isnan(numbers), np.nan, numbers + 0.0).view(np.int64)


def _check_outcomes(source: LogSource, decisions: LoggedDecisions) -> None:
    """As for a log of rows: of each kind as many rows as the checks can tell apart."""
    counts = 1 if decisions.data.counts is None else decisions.data.counts
    rows = np.repeat(np.arange(decisions.data.n_rows), np.minimum(FEWEST_ROWS, counts))
    columns = dict[str, Any](rows_of(decisions.outcomes, rows))
    for (name, feature), codes in zip(source.features.items(), source.space.codes(decisions.records).T, strict=True):
        # Of others nothing needs to be known, and kinds may be many.
        if any(goes_with_one(codes, pd.factorize(values)[0]) for _, values in decisions.outcomes.items()):
            columns[name] = np.array(feature.levels, dtype=object)[codes[rows]]
    first = map(one_line, open_columns(source.parts[0], source.form).schema.names)
    others = [name for name in first if name not in {*source.features, *columns}]
    frame = pd.DataFrame(columns | dict.fromkeys(others, np.nan), index=range(len(rows)))
    check_outcomes(source, LogTables({TABLE: DataTable(_title(source.parts), frame)}, ""))
