"""The patients that treatments are drawn for: an id, an event and a record each, read once, checked, and kept aside.

They are kept in a temporary database without a name, which the system forgets when the process ends, however it ends.
So memory stays flat, and rows are there in any order.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from envs.toml_reader import unknown
from policies.adjacency import AnyRecord, OneFeature, Sensitive
from policies.arrays import IntArray
from policies.levels import (
    MISSING,
    FeatureLevels,
    Levels,
    coded,
    codes_of_keys,
    level_key,
    level_wanted,
)
from policies.problem import DecisionProblem
from policies.records import RECORD, has_features
from policysim.files.bad_rows import BadRows, DataError, PlacedRows, got
from policysim.files.columns_file import open_columns
from policysim.files.many_files import stamp
from policysim.question.protocol import SILENT, Progress
from policysim.release.people import id_text

if TYPE_CHECKING:
    import pandas as pd

    from policysim.release.ledger import Ledger

# Rows that are in memory at a time.
BATCH = 1 << 14
TABLES = """
PRAGMA journal_mode = OFF;
CREATE TABLE patient (row INTEGER PRIMARY KEY, id TEXT, event TEXT, record INTEGER);
CREATE TABLE outcome (row INTEGER PRIMARY KEY, treatment TEXT, status TEXT);
BEGIN
"""


class Row(NamedTuple):
    """A patient's row while treatments are drawn: the digests of id and event, and the record's number."""

    row: int
    patient: bytes
    event: bytes
    record: int


class Outcome(NamedTuple):
    """What came of a row: the names of treatments; "" where none is given."""

    id: str
    event: str
    record: int
    treatment: str
    status: str


def hidden_features(problem: DecisionProblem) -> tuple[str, ...]:
    """The features in which neighbours differ; ValueError for neighbours that decide cannot count.

    Examples
    --------
    >>> from policies import AnyRecord
    >>> hidden_features(DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord()))
    ('record',)
    """
    names, adjacency = tuple(problem.records.names) or (RECORD,), problem.adjacency
    if adjacency.name == AnyRecord.name or isinstance(adjacency, OneFeature) or names == (RECORD,):
        return names
    if adjacency.name != Sensitive.name:
        raise ValueError(f"decide needs the adjacency any-record, one-feature or sensitive, got {adjacency!r}.")
    (partition,) = adjacency.partitions(problem.n_records)
    extremes = {name: partition.extremes(problem.records.groups(name)[0].astype(np.float64)) for name in names}
    return tuple(name for name, (low, high) in extremes.items() if (low < high).any())


@dataclass(frozen=True)
class Columns:
    """Which columns hold what, and which level stands for a value that is missing.

    Attributes
    ----------
    id, event : str
        The columns of patients' ids, and of what the treatment is for, such as an admission.
    features : sequence of FeatureLevels
        Those of a record, in order.
    hidden : tuple of str
        The features that must not show.
    missing : mapping of str to int
        The position of the level that stands for a missing value, by feature; of a hidden one also for an unknown one.
    """

    id: str
    event: str
    features: Sequence[FeatureLevels]
    hidden: tuple[str, ...]
    missing: Mapping[str, int]

    @classmethod
    def of(cls, problem: DecisionProblem, *, id: str, event: str, missing: Sequence[str] = ()) -> Columns:  # noqa: A002
        """Those of a problem; `missing` as in `decide`. ValueError for columns or levels that do not fit it."""
        numbers = (Levels(RECORD, range(problem.n_records)),)
        features = problem.records.features if has_features(problem.records) else numbers
        names = [feature.name for feature in features]
        taken = {*names, "treatment", "status"}
        for option, column, others in (("id", id, taken), ("event", event, {*taken, id})):
            if column in others:
                raise ValueError(f"{option} must be a column of its own, got {column!r}: rename it.")
        rules = {feature.name: int(codes_of_keys(feature, [MISSING])[0]) for feature in features}
        for text in missing:
            name = max((name for name in names if text.startswith(f"{name}=")), key=len, default=None)
            level = text if name is None else text.removeprefix(f"{name}=")
            codes = {
                feature.name: int(codes_of_keys(feature, [level_key(level)])[0])
                for feature in features
                if name in (None, feature.name)
            }
            known = {name: code for name, code in codes.items() if code >= 0}
            if not known:
                raise ValueError(
                    f"missing must be LEVEL or FEATURE=LEVEL, a level that {name or 'a feature'} has, got {text!r}."
                )
            rules |= known
        return cls(id, event, features, hidden_features(problem), rules)

    @property
    def names(self) -> list[str]:
        """All that are read."""
        return [self.id, self.event, *(feature.name for feature in self.features)]

    def codes(self, frame: Any, table: PlacedRows, bad: BadRows, before: int) -> IntArray:
        """The level of each cell, (m, n_features); `bad` is told of cells without one, but no value that is hidden."""
        codes = np.empty((len(frame), len(self.features)), dtype=np.intp)
        for axis, feature in enumerate(self.features):
            column, hidden = frame[feature.name], feature.name in self.hidden
            positions, keys = coded(column)
            codes[:, axis] = codes_of_keys(feature, keys)[positions]
            missing = np.array([key == MISSING for key in keys])[positions]
            replaced = missing | ((codes[:, axis] < 0) & hidden)
            codes[replaced, axis] = self.missing[feature.name]
            say = partial(self._wrong, feature, column)
            bad.add(table, codes[:, axis] < 0, feature.name, say, before=before)
        return codes

    def _wrong(self, feature: FeatureLevels, column: Any, row: int) -> str:
        """What is wrong with a cell, in words."""
        rule = f"; --missing {feature.name}=LEVEL says what a missing value stands for"
        if feature.name in self.hidden:
            return f"{level_wanted(feature)}{rule}"
        value = got(column.iloc[row])
        return f"{level_wanted(feature)}, {value}{rule if value == 'is missing' else ''}"


@dataclass(frozen=True)
class FrameRows:
    """The rows of a DataFrame as messages name them."""

    def places(self, rows: Sequence[int]) -> list[str]:
        """From 0, as pandas counts."""
        return [f"row {row}" for row in rows]


class Patients:
    """Patients that fit a problem; `outcomes` holds what came of each.

    Parameters
    ----------
    source : Path or DataFrame
        A .csv or .parquet file, which is read a batch at a time; or a table.
    problem : DecisionProblem
    columns : Columns

    Attributes
    ----------
    n_rows : int

    Raises
    ------
    DataError
        For a column that is missing, a file that cannot be read or changes meanwhile, or no rows; or with a line for
        each of the first 20 rows without an id or event, with the id and event of an earlier row, or with a record that
        the problem does not have. No line shows the value of a hidden feature.
    """

    def __init__(
        self,
        source: Path | pd.DataFrame,
        problem: DecisionProblem,
        columns: Columns,
        progress: Progress = SILENT,
    ) -> None:
        """Read and check them all."""
        self.n_rows = 0
        self._sql = sqlite3.connect("", isolation_level=None)
        with self._room():
            self._sql.executescript(TABLES)
        table, batches = _opened(source, columns.names, progress)
        bad = BadRows()
        for frame in batches:
            self._read(frame, problem, columns, table, bad)
        bad.raise_if_any()
        if not self.n_rows:
            raise DataError("there are no patients: the table has no rows")
        self._refuse_repetition(columns, table, bad)

    def _read(self, frame: Any, problem: DecisionProblem, columns: Columns, table: PlacedRows, bad: BadRows) -> None:
        """Check a batch, and keep it unless a row was bad."""
        ids, events = (list(map(id_text, frame[name].astype(object))) for name in (columns.id, columns.event))
        for name, values in ((columns.id, ids), (columns.event, events)):
            bad.add(table, np.array([not value for value in values]), name, lambda _: "is missing", before=self.n_rows)
        codes = columns.codes(frame, table, bad, self.n_rows)
        if not bad.count:
            records = problem.records.indices(codes) if has_features(problem.records) else codes[:, 0]
            none = "the study has no record with these levels"
            bad.add(table, records < 0, "", lambda _: none, before=self.n_rows)
            rows = range(self.n_rows, self.n_rows + len(frame))
            with self._room():
                patients = zip(rows, ids, events, records.tolist(), strict=True)
                self._sql.executemany("INSERT INTO patient VALUES (?, ?, ?, ?)", patients)
        self.n_rows += len(frame)

    def _refuse_repetition(self, columns: Columns, table: PlacedRows, bad: BadRows) -> None:
        repeated = np.zeros(self.n_rows, dtype=np.bool_)
        query = "SELECT row, row_number() OVER (PARTITION BY id, event ORDER BY row) AS place FROM patient"
        with self._room():
            for (row,) in self._sql.execute(f"SELECT row FROM ({query}) WHERE place > 1"):
                repeated[row] = True
        say = "an earlier row has the same patient and event: one decision is made for an event"
        bad.add(table, repeated, f"{columns.id}, {columns.event}", lambda _: say)
        bad.raise_if_any()

    def by_patient(self, ledger: Ledger) -> Iterator[list[Row]]:
        """The rows in batches: those of a patient together, in their order, as the ledger stores patients."""
        query = "SELECT row, digest('patient', id) AS known, digest('event', event), record FROM patient"
        yield from self._batches(ledger, f"{query} ORDER BY known, row", Row)

    def store(self, outcomes: Sequence[tuple[int, str, str]]) -> None:
        """Keep treatments and statuses of rows, by their numbers."""
        with self._room():
            self._sql.executemany("INSERT INTO outcome VALUES (?, ?, ?)", outcomes)

    def outcomes(self, ledger: Ledger, *, keep_order: bool) -> Iterator[list[Outcome]]:
        """What came of the rows in batches: in their order, or in that of keyed digests of ids and events."""
        order = "row" if keep_order else "digest('order', id), digest('order', event)"
        query = "SELECT id, event, record, treatment, status FROM patient JOIN outcome USING (row)"
        yield from self._batches(ledger, f"{query} ORDER BY {order}", Outcome)

    def statuses(self) -> dict[str, int]:
        """How many rows have each status."""
        with self._room():
            return dict(self._sql.execute("SELECT status, count(*) FROM outcome GROUP BY status ORDER BY status"))

    def _batches(self, ledger: Ledger, query: str, kind: Any) -> Iterator[list[Any]]:
        self._sql.create_function("digest", 2, ledger.digest, deterministic=True)
        with self._room():
            cursor = self._sql.execute(query)
        while True:
            with self._room():
                rows = cursor.fetchmany(BATCH)
            if not rows:
                return
            yield list(map(kind._make, rows))

    @contextmanager
    def _room(self) -> Iterator[None]:
        """A temporary folder that is full, as one line."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise DataError(f"the folder of temporary files (TMPDIR) cannot hold the patients: {error}") from None


def _opened(
    source: Path | pd.DataFrame, names: Sequence[str], progress: Progress
) -> tuple[PlacedRows, Iterator[pd.DataFrame]]:
    """What names the rows of a source, and some of its columns in batches; DataError for a column that is not there."""
    if isinstance(source, Path):
        mark, file = stamp(source), open_columns(source)
        _require_columns(f"{source.as_posix()}: ", file.schema.names, names)
        return file, _frames(file, names, mark, progress)
    columns = list(map(str, source.columns))
    _require_columns("patients: ", columns, names)
    frame = source.iloc[:, [columns.index(name) for name in names]].set_axis(list(names), axis="columns")
    return FrameRows(), (frame.iloc[start : start + BATCH] for start in range(0, len(frame), BATCH))


def _frames(file: Any, names: Sequence[str], mark: object, progress: Progress) -> Iterator[pd.DataFrame]:
    for batch in file.batches(list(names), progress):
        for start in range(0, batch.num_rows, BATCH):
            yield batch.slice(start, BATCH).to_pandas()
    if stamp(file.path) != mark:
        raise DataError(f"{file.path.as_posix()}: was changed while it was read")


def _require_columns(table: str, there: Sequence[str], wanted: Sequence[str]) -> None:
    for name in wanted:
        if name not in there:
            raise DataError(f"{table}{unknown('column', name, there)}")
        if there.count(name) > 1:
            raise DataError(f"{table}two columns are named {name!r}")
