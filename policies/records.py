"""Records: what a problem knows about its records beyond their number; rows of a table as records, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from policies.arrays import Frozen, IntArray
from policies.levels import MISSING, FeatureLevels, LevelKey, Levels, coded, level_codes, level_key, level_wanted

# The column of record numbers, where records have no features.
RECORD = "record"
# Bad rows that a message lists, and how much of a value it shows.
ROWS_SHOWN, VALUE_SHOWN = 20, 60


class Records(Protocol):
    """What a problem knows about its records beyond their number: names for people, groups for tables."""

    @property
    def names(self) -> tuple[str, ...]:
        """The features by which records can be grouped."""

    def describe(self, record: int) -> str:
        """One record in words."""

    def groups(self, feature: str) -> tuple[IntArray, tuple[str, ...]]:
        """The level of each record, (n_records,), and the labels of the levels; ValueError for an unknown feature."""


@runtime_checkable
class FeatureRecords(Protocol):
    """Records that the levels of their features tell apart: a row of a table with these columns is one."""

    @property
    def features(self) -> Sequence[FeatureLevels]:
        """The features, in the order of a record."""

    def indices(self, codes: ArrayLike) -> IntArray:
        """Record numbers of level codes: (m, n_features) -> (m,); -1 where no record has these levels."""

    def decode(self, records: ArrayLike) -> Any:
        """A DataFrame with a row for each record number, (m,), and a column for each feature."""


@dataclass(frozen=True)
class NumberedRecords:
    """Records without features: known by their row alone."""

    names: tuple[str, ...] = ()

    def describe(self, record: int) -> str:
        """Name the row."""
        return f"record {record}"

    def groups(self, feature: str) -> tuple[IntArray, tuple[str, ...]]:
        """There are none."""
        raise ValueError(f"unknown group {feature!r}: the problem has no features.")


@dataclass(frozen=True, eq=False)
class IndexedRecords:
    """Records as the index of a DataFrame names them; its named levels are features.

    Attributes
    ----------
    names : tuple of str
        Those of the levels of the index; () unless each has one.
    index : pandas.Index
        A row for each record.
    labels : tuple of tuple of str
        The index as text.
    features : tuple of Levels
        The named levels of the index; () without names. Values come in the order of their first rows.
    codes : array of int, (n_records, n_features)
        The level of each record.

    Raises
    ------
    ValueError
        For rows that repeat: with equal labels, or where there are names with equal levels (`policies.levels`).
    """

    names: tuple[str, ...]
    index: Any
    labels: tuple[tuple[str, ...], ...] = field(init=False)
    features: tuple[Levels, ...] = field(init=False)
    codes: IntArray = field(init=False)

    def __post_init__(self) -> None:
        """Number the levels."""
        rows = [row if isinstance(row, tuple) else (row,) for row in self.index]
        keys = [tuple(map(level_key if self.names else str, row)) for row in rows]
        if len(set(keys)) < len(keys):
            twice = next(rows[place] for place, key in enumerate(keys) if key in keys[:place])
            raise ValueError(
                f"utilities must have an index without repetition, got {', '.join(map(str, twice))} twice."
            )
        features, codes = [], np.empty((len(rows), len(self.names)), dtype=np.intp)
        for axis, name in enumerate(self.names):
            levels: dict[LevelKey, Any] = {}
            for row, key in zip(rows, keys, strict=True):
                levels.setdefault(key[axis], row[axis])
            features.append(Levels(name, tuple(levels.values())))
            codes[:, axis] = level_codes(features[-1], self.index.get_level_values(axis).to_series())
        labels = tuple(tuple(map(str, row)) for row in rows)
        vars(self).update(labels=labels, features=tuple(features), codes=codes)

    def describe(self, record: int) -> str:
        """The label of the row, with the names of its levels."""
        names = self.names or ("",) * len(self.labels[record])
        return ", ".join(f"{name} {label}".strip() for name, label in zip(names, self.labels[record], strict=True))

    def groups(self, feature: str) -> tuple[IntArray, tuple[str, ...]]:
        """The levels in the order of their first rows."""
        if feature not in self.names:
            known = f"it has {', '.join(self.names)}" if self.names else "the index of its table has no names"
            raise ValueError(f"unknown group {feature!r}: {known}.")
        axis = self.names.index(feature)
        return self.codes[:, axis], tuple(map(str, self.features[axis].levels))

    def indices(self, codes: ArrayLike) -> IntArray:
        """The rows with these level codes: (m, n_features) -> (m,); -1 where there is none."""
        wanted = zip(*np.asarray(codes, dtype=np.intp).T.tolist(), strict=True)
        return np.array([self._rows.get(levels, -1) for levels in wanted], dtype=np.intp)

    @cached_property
    def _rows(self) -> dict[tuple[int, ...], int]:
        """The row of each combination of levels that there is."""
        return {tuple(levels): row for row, levels in enumerate(self.codes.tolist())}

    def decode(self, records: ArrayLike) -> Any:
        """A DataFrame with the levels of the index as columns."""
        return self.index.take(np.asarray(records, dtype=np.intp)).to_frame(index=False)


def records_of(index: Any) -> IndexedRecords | NumberedRecords:
    """The records of an index of pandas; numbers where that is all it has."""
    names = tuple("" if name is None else str(name) for name in index.names)
    if names == ("",) and list(index) == list(range(len(index))):
        return NumberedRecords()
    return IndexedRecords(names if all(names) else (), index)


@dataclass(frozen=True)
class SomeRecords(Frozen):
    """Some of the records, under their own names and in their own groups."""

    records: Records
    rows: IntArray

    @property
    def names(self) -> tuple[str, ...]:
        """As of all records."""
        return self.records.names

    def describe(self, record: int) -> str:
        """As of all records."""
        return self.records.describe(int(self.rows[record]))

    def groups(self, feature: str) -> tuple[IntArray, tuple[str, ...]]:
        """As of all records."""
        codes, labels = self.records.groups(feature)
        return codes[self.rows], labels


def has_features(records: Records) -> TypeGuard[FeatureRecords]:
    """Whether the levels of features identify records."""
    return isinstance(records, FeatureRecords) and len(records.features) > 0


def encode(records: FeatureRecords, frame: Any) -> IntArray:
    """The record number of each row of a DataFrame, (m,): see `policies.problem.DecisionProblem.encode`."""
    features = records.features
    columns = _columns(frame, [feature.name for feature in features])
    codes = np.column_stack([level_codes(feature, column) for feature, column in zip(features, columns, strict=True)])

    def say_level(row: int, axis: int) -> str:
        feature, value = features[axis], columns[axis].iloc[row]
        near = get_close_matches(str(value), list(map(str, feature.levels)), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"{feature.name}: {level_wanted(feature)}, {_got(value)}{hint}"

    def say_record(row: int) -> str:
        levels = [f"{feature.name} {column.iloc[row]}" for feature, column in zip(features, columns, strict=True)]
        return f"the problem has no record with {', '.join(levels)}"

    _refuse(frame.index, np.argwhere(codes < 0), say_level)
    numbers = records.indices(codes)
    _refuse(frame.index, np.argwhere(numbers < 0), say_record)
    return numbers


def record_numbers(frame: Any, n_records: int) -> IntArray:
    """The column `record` of a DataFrame, (m,): what `encode` reads of records without features."""
    (column,) = _columns(frame, [RECORD])
    positions, keys = coded(column)
    valid = [isinstance(key, float) and key.is_integer() and 0 <= key < n_records for key in keys]
    numbers = np.array([key if good else -1 for key, good in zip(keys, valid, strict=True)], dtype=np.intp)[positions]
    must = f"must be a whole number from 0 to {n_records - 1}"
    _refuse(frame.index, np.argwhere(numbers < 0), lambda row: f"{RECORD}: {must}, {_got(column.iloc[row])}")
    return numbers


def observed_records(records: FeatureRecords, observations: ArrayLike, n_levels: IntArray) -> IntArray:
    """The record number of each observation of an environment, (m,).

    Parameters
    ----------
    records : FeatureRecords
        Those of a problem.
    observations : array of int, (m, n_features)
        The position of the level of each feature; a further column, as of the day, is ignored.
    n_levels : array of int, (n_features,)
        The number of levels of each feature.

    Raises
    ------
    ValueError
        For another shape or type; or a line for each of the first 20 rows that are no record.
    """
    codes = np.asarray(observations)
    width = len(n_levels)
    if codes.ndim != 2 or codes.shape[1] not in (width, width + 1) or codes.dtype.kind not in "iub":
        raise ValueError(
            f"observations must be whole numbers, (m, {width}): the position of the level of each feature "
            f"({', '.join(feature.name for feature in records.features)}), got {codes.dtype} of shape {codes.shape}."
        )
    codes = codes[:, :width].astype(np.intp)

    def say_record(row: int) -> str:
        return f"the problem has no record with the levels {', '.join(map(str, codes[row]))}"

    _refuse(range(len(codes)), np.argwhere(((codes < 0) | (codes >= n_levels)).any(axis=1)), say_record)
    numbers = records.indices(codes)
    _refuse(range(len(codes)), np.argwhere(numbers < 0), say_record)
    return numbers


def checked_numbers(numbers: ArrayLike, n_records: int) -> IntArray:
    """Record numbers, (m,); ValueError for what is none."""
    rows = np.asarray(numbers)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise ValueError(f"indices must be whole numbers, (m,), got {rows.dtype} of shape {rows.shape}.")
    outside = np.flatnonzero((rows < 0) | (rows >= n_records))
    if outside.size:
        first = int(outside[0])
        raise ValueError(f"indices must be from 0 to {n_records - 1}, got indices[{first}]={rows[first]}.")
    return rows.astype(np.intp)


def _columns(frame: Any, names: Sequence[str]) -> list[Any]:
    """Some columns of a DataFrame; ValueError names those that it lacks, or has twice."""
    if not hasattr(frame, "columns") or not hasattr(frame, "iloc"):
        raise ValueError(f"frame must be a pandas DataFrame, got {type(frame).__name__}.")
    columns = list(map(str, frame.columns))
    for count, wrong in ((0, "no column"), (2, "two columns")):
        bad = [name for name in names if min(columns.count(name), 2) == count]
        if bad:
            raise ValueError(f"frame has {wrong} {', '.join(bad)}: it needs one for each of {', '.join(names)}.")
    return [frame.iloc[:, columns.index(name)] for name in names]


def _refuse(index: Any, bad: IntArray, say: Callable[..., str]) -> None:
    """ValueError with a line for each of the first bad rows, or cells, (n_bad, 1 or 2); `say` puts one in words.

    `index` has the label of each row.
    """
    if not len(bad):
        return
    lines = []
    for row, *axis in bad[:ROWS_SHOWN].tolist():
        label = str(index[row])
        lines.append(f"row {row}{'' if label == str(row) else f' ({label})'}: {say(row, *axis)}")
    if len(bad) > ROWS_SHOWN:
        lines.append(f"... and {len(bad) - ROWS_SHOWN:,} more")
    raise ValueError("\n".join(lines))


def _got(value: Any) -> str:
    """A cell as messages show it."""
    plain = value.item() if isinstance(value, np.generic) else value
    return "is missing" if level_key(plain) == MISSING else f"got {repr(plain)[:VALUE_SHOWN]}"
