"""The patients that treatments are drawn for: an id, an event and a record each, read once, checked, and kept aside.

They are kept in a temporary database without a name, which the system forgets when the process ends, however it ends.
So memory stays flat, and rows are there in any order.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from envs import toml_reader
from policies.adjacency import AnyRecord, OneFeature, Sensitive
from policies.arrays import IntArray
from policies.levels import (
    MISSING,
    FeatureLevels,
    Levels,
    absent_keys,
    coded,
    codes_of_keys,
    level_key,
    level_wanted,
)
from policies.problem import DecisionProblem
from policies.records import RECORD, has_features
from policysim.files.bad_rows import BadRows, DataError, PlacedRows, got
from policysim.files.columns_file import check_distinct, open_columns
from policysim.files.csv_format import RECOGNISED, CsvFormat
from policysim.progress import SILENT, Progress
from policysim.release.ledger import id_text

if TYPE_CHECKING:
    import pandas as pd

    from policysim.release.ledger import Ledger

# Rows that are in memory at a time.
BATCH = 1 << 14
# Patients and visits are digests of ids and events; rows come out in the order of `place`, a digest of both.
TABLES = """
PRAGMA journal_mode = OFF;
CREATE TABLE asked (row INTEGER PRIMARY KEY, id TEXT, event TEXT, record INTEGER, patient BLOB, visit BLOB, place BLOB);
CREATE TABLE outcome (row INTEGER PRIMARY KEY, treatment TEXT, published TEXT, status TEXT);
BEGIN
"""


class Row(NamedTuple):
    """A patient's row while treatments are drawn: the digests of id and event, and the record's number."""

    row: int
    patient: bytes
    event: bytes
    record: int


class Outcome(NamedTuple):
    """What came of a row: the treatments that are given and published, by name; "" where none is."""

    id: str
    event: str
    treatment: str
    published: str
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
    def of(
        cls,
        problem: DecisionProblem,
        *,
        id: str,  # noqa: A002
        event: str,
        missing: Sequence[str] = (),
    ) -> Columns:
        """Those of a problem; `missing` as in `decide`. ValueError for columns or levels that do not fit it."""
        numbers = (Levels(RECORD, range(problem.n_records)),)
        features = problem.records.features if has_features(problem.records) else numbers
        names = [feature.name for feature in features]
        taken = {*names, "treatment", "status"}
        for option, column, others in (("id", id, taken), ("event", event, {*taken, id})):
            if column in others:
                raise ValueError(f"{option} must be a column of its own, got {column!r}: rename it.")
        rules = {feature.name: int(codes_of_keys(feature, [MISSING])[0]) for feature in features}
        ruled: dict[str, str] = {}
        for text in missing:
            known = {}
            for feature in features:
                key = level_key(text.removeprefix(f"{feature.name}="))
                known[feature.name] = int(codes_of_keys(feature, [key])[0])
            if max(known.values()) < 0:
                raise ValueError(f"missing must be LEVEL or FEATURE=LEVEL, of a level that there is, got {text!r}.")
            for name in (name for name, code in known.items() if code >= 0):
                if ruled.setdefault(name, text) != text:
                    raise ValueError(f"missing has two levels for {name}: {ruled[name]} and {text}.")
                rules[name] = known[name]
        return cls(id, event, features, hidden_features(problem), rules)

    @property
    def names(self) -> list[str]:
        """All that are read."""
        return [self.id, self.event, *(feature.name for feature in self.features)]

    def codes(self, frame: Any, table: PlacedRows, bad: BadRows, before: int, replaced: Counter[str]) -> IntArray:
        """The level of each cell, (m, n_features); `bad` lists cells without one, but no hidden value.

        `replaced` counts the cells of each feature for which a level stands that they do not hold.
        """
        codes = np.empty((len(frame), len(self.features)), dtype=np.intp)
        for axis, feature in enumerate(self.features):
            column, hidden = frame[feature.name], feature.name in self.hidden
            positions, keys = coded(column)
            codes[:, axis] = codes_of_keys(feature, keys)[positions]
            absent = absent_keys(feature)
            missing = np.array([key in absent for key in keys])[positions]
            without = missing | ((codes[:, axis] < 0) & hidden)
            codes[without, axis] = self.missing[feature.name]
            replaced[feature.name] += int(np.count_nonzero(without))
            say = partial(self._wrong, feature, column)
            bad.add(table, codes[:, axis] < 0, feature.name, say, before=before)
        return codes

    def _wrong(self, feature: FeatureLevels, column: Any, row: int) -> str:
        """What is wrong with a cell, in words."""
        rule = f"; --missing {feature.name}=LEVEL says what a value stands for that is missing or mistyped"
        if feature.name in self.hidden:
            return f"{level_wanted(feature)}{rule}"
        value = column.iloc[row]
        return f"{level_wanted(feature)}, {got(value)}{rule if level_key(value) in absent_keys(feature) else ''}"


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
        A file (`policysim.files.many_files.READABLE`), which is read a batch at a time; or a table.
    problem : DecisionProblem
    columns : Columns
    ledger : Ledger
        By whose digests patients are known.
    stated : CsvFormat, optional
        How a text file is written, where its beginning leaves that open.

    Attributes
    ----------
    n_rows : int
    replaced : Counter of str
        How many values of each feature were missing or unknown, so that a level stands for them: private.

    Raises
    ------
    DataError
        For a column that is missing, a file that cannot be read, or no rows; or with a line for each of the first 20
        rows without an id or event, with the id and event of an earlier row, or with a record that the problem does not
        have. No line shows the value of a hidden feature.
    """

    def __init__(
        self,
        source: Path | pd.DataFrame,
        problem: DecisionProblem,
        columns: Columns,
        ledger: Ledger,
        progress: Progress = SILENT,
        *,
        stated: CsvFormat = RECOGNISED,
    ) -> None:
        """Read and check them all."""
        self.n_rows, self.replaced = 0, Counter[str]()
        self._problem, self._columns, self._ledger = problem, columns, ledger
        self._sql = sqlite3.connect("", isolation_level=None)
        self._sql.executescript(TABLES)
        self._table, batches = _opened(source, columns.names, progress, stated)
        bad = BadRows()
        for frame in batches:
            self._read(frame, bad)
        bad.raise_if_any()
        if not self.n_rows:
            raise DataError("there are no patients: the table has no rows")
        with _room():
            query = "SELECT row FROM asked WHERE row NOT IN (SELECT min(row) FROM asked GROUP BY id, event)"
            repeated = [row for (row,) in self._sql.execute(query)]
        self.refuse(
            repeated,
            lambda _: "an earlier row has the same patient and event: remove one, or give it an event of its own",
        )

    def refuse(self, rows: Collection[int], say: Callable[[int], str]) -> None:
        """DataError if there are rows whose patient and event cannot be decided; `say` puts a row's reason in words."""
        bad, refused = BadRows(), np.zeros(self.n_rows, dtype=np.bool_)
        refused[list(rows)] = True
        bad.add(self._table, refused, f"{self._columns.id}, {self._columns.event}", say)
        bad.raise_if_any()

    def _read(self, frame: Any, bad: BadRows) -> None:
        """Check a batch, and keep it unless a row was bad."""
        before, columns, records, table = self.n_rows, self._columns, self._problem.records, self._table
        self.n_rows += len(frame)
        ids, events = (list(map(id_text, frame[name].astype(object))) for name in (columns.id, columns.event))
        for name, values in ((columns.id, ids), (columns.event, events)):
            bad.add(table, np.array([not value for value in values]), name, lambda _: "is missing", before=before)
        codes = columns.codes(frame, table, bad, before, self.replaced)
        if bad.count:
            return
        numbers = records.indices(codes) if has_features(records) else codes[:, 0]
        none = "the study has no record with these levels"
        bad.add(table, numbers < 0, "", lambda _: none, before=before)
        digest = self._ledger.digest
        rows = [
            (row, id, event, number, digest("patient", id), digest("event", event), digest("order", f"{id}\0{event}"))
            for row, id, event, number in zip(count(before), ids, events, numbers.tolist(), strict=False)  # noqa: A001
        ]
        with _room():
            self._sql.executemany("INSERT INTO asked VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def by_patient(self) -> Iterator[list[Row]]:
        """The rows in batches: those of a patient together, in their order, as the ledger stores patients."""
        yield from self._batches("SELECT row, patient, visit, record FROM asked ORDER BY patient, row", Row)

    def store(self, outcomes: Sequence[tuple[int, str, str, str]]) -> None:
        """Keep what came of rows, by their numbers: the last three of `Outcome`."""
        with _room():
            self._sql.executemany("INSERT INTO outcome VALUES (?, ?, ?, ?)", outcomes)

    def outcomes(self, *, keep_order: bool) -> Iterator[list[Outcome]]:
        """What came of the rows in batches: in their order, or in that of keyed digests of ids and events."""
        query = "SELECT id, event, treatment, published, status FROM asked JOIN outcome USING (row) ORDER BY "
        yield from self._batches(query + ("row" if keep_order else "place"), Outcome)

    def statuses(self) -> dict[str, int]:
        """How many rows have each status."""
        return dict(self._sql.execute("SELECT status, count(*) FROM outcome GROUP BY status ORDER BY status"))

    def _batches(self, query: str, kind: Any) -> Iterator[list[Any]]:
        with _room():
            cursor = self._sql.execute(query)
            while rows := cursor.fetchmany(BATCH):
                yield list(map(kind._make, rows))


@contextmanager
def _room() -> Iterator[None]:
    """A temporary folder that is full, as one line."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise DataError(f"the folder of temporary files (TMPDIR) cannot hold the patients: {error}") from None


def _opened(
    source: Path | pd.DataFrame, names: Sequence[str], progress: Progress, stated: CsvFormat
) -> tuple[PlacedRows, Iterator[pd.DataFrame]]:
    """What names the rows of a source, and some of its columns in batches; DataError for a column that is not there."""
    if isinstance(source, Path):
        title, file = source.as_posix(), open_columns(source, stated)
        written = file.schema.names
    else:
        title, written = "patients", list(map(str, source.columns))
    # Without margins, which some tools write behind commas.
    columns = [name.strip() for name in written]
    check_distinct(title, columns)
    for name in names:
        if name not in columns:
            raise DataError(f"{title}: {toml_reader.unknown('column', name, columns)}")
    if isinstance(source, Path):
        asked = [written[columns.index(name)] for name in names]
        return file, (
            batch.slice(start, BATCH).to_pandas().set_axis(names, axis="columns")
            for batch in file.batches(asked, progress)
            for start in range(0, batch.num_rows, BATCH)
        )
    frame = source.set_axis(columns, axis="columns")[list(names)]
    return FrameRows(), (frame.iloc[start : start + BATCH] for start in range(0, len(frame), BATCH))
