"""Columns that are adjusted for and that no policy sees: numbers as they are, words as levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from envs.records import RecordSpace
from policies.arrays import BoolArray, FloatArray, IntArray
from policies.levels import MISSING, level_of, sorted_keys
from policysim.files.bad_rows import BadRows, DataError
from policysim.files.data_table import DataTable, coded, missing, numbers
from policysim.logs.column_names import is_id, sounding_later
from policysim.logs.log_frame import covariate_matrix, is_real

# Levels of fewer rows than this are one, and the name of it; and of the mark of a missing number.
FEWEST_OF_LEVEL = 10
OTHERS, NO_NUMBER = "others", "missing"
# The first of two levels, in words.
ANOTHER = "another"
# Of a log's rows, so many are looked at for columns that differ between arms; of more, every so many-th.
LOOKED_AT = 10_000
# So many columns are looked at.
MOST_COLUMNS = 1_000


def read_adjusters(table: DataTable, names: Sequence[str], bad: BadRows) -> pd.DataFrame:
    """Some columns as numbers, a column for each number and each level, (feature, level), "" for a number itself.

    A missing number is the mean of the others, and marked by a column of 0 and 1. Of words each is a level, but for
    those of fewer than ten rows, which are one level together; missing ones are a level, too.

    Raises
    ------
    DataError
        For a column without a value, or whose words are so many that they are names or ids. Bad rows have a value that
        is no number, in a column of which most are, or that is infinite.
    """
    columns: dict[str, pd.DataFrame] = {}
    for name in names:
        column = table[name]
        values = numbers(column)
        absent = missing(column, np.isnan(values))
        words = np.isnan(values) & ~absent
        if absent.all():
            raise DataError(f"{table.name}: {name}: has no value: leave it out of adjust_for")
        if 2 * words.sum() < len(values) - absent.sum():
            must = "must be a number, as most of its column are"
            bad.add_values(table, words | np.isinf(values), name, column.array, must)
            columns[name] = _of_numbers(values, absent)
        else:
            columns[name] = _of_words(table, name)
    return pd.concat(columns, axis=1)


def _of_numbers(values: FloatArray, absent: BoolArray) -> pd.DataFrame:
    finite = np.isfinite(values)
    columns = pd.DataFrame({"": np.where(finite, values, values[finite].mean() if finite.any() else 0.0)})
    return columns.assign(**{NO_NUMBER: absent.astype(np.float64)}) if absent.any() else columns


def _of_words(table: DataTable, name: str) -> pd.DataFrame:
    positions, keys = coded(table[name])
    if len(keys) > max(len(table) / 2, FEWEST_OF_LEVEL):
        raise DataError(
            f"{table.name}: {name}: has {len(keys):,} different values in {len(table):,} rows, which are names or ids "
            "and no levels: leave it out of adjust_for"
        )
    often = [key for key, count in zip(keys, np.bincount(positions), strict=True) if count >= FEWEST_OF_LEVEL]
    labels = {key: str(level_of(key)) for key in sorted_keys(set(often) - {MISSING})}
    labels |= {MISSING: NO_NUMBER} if MISSING in often else {}
    label_of_key = np.array([labels.get(key, OTHERS) for key in keys], dtype=object)
    columns = pd.get_dummies(label_of_key[positions], dtype=np.float64)
    columns = columns[[label for label in dict.fromkeys([*labels.values(), OTHERS]) if label in columns]]
    # The first of two says all.
    return columns.iloc[:, 1:] if columns.shape[1] == 2 else columns


def as_read(columns: pd.DataFrame) -> pd.DataFrame:
    """Columns of `read_adjusters` as they were: a number is NaN, and a word "another", where it is not told."""
    values, places = columns.to_numpy(dtype=np.float64), dict[str, dict[str, int]]()
    for place, column in enumerate(columns.columns):
        places.setdefault(column[0], {})[column[1]] = place
    found: dict[str, pd.Series] = {}
    for name, own in places.items():
        if "" in own:
            missing = values[:, own[NO_NUMBER]] > 0 if NO_NUMBER in own else False
            found[name] = pd.Series(np.where(missing, np.nan, values[:, own[""]]))
        else:
            indicators = np.column_stack([1 - values[:, list(own.values())].sum(axis=1), values[:, list(own.values())]])
            found[name] = pd.Series(np.array([ANOTHER, *own])[indicators.argmax(axis=1)])
    return pd.DataFrame(found, index=range(len(columns)))


def with_means(columns: FloatArray) -> FloatArray:
    """Columns with the mean of each in place of what is missing, (n_rows, n_columns); 0 where nothing is known."""
    known = np.isfinite(columns)
    means = np.where(known, columns, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    filled: FloatArray = np.where(known, columns, means)
    return filled


@dataclass(frozen=True, eq=False)
class Covariates:
    """What models adjust for.

    Attributes
    ----------
    patients : array, (n_distinct, n_covariates)
        Distinct patients.
    groups : array of int, (n_rows,)
        Which of them each row is.
    """

    patients: FloatArray
    groups: IntArray

    @property
    def rows(self) -> FloatArray:
        """Of each row, (n_rows, n_covariates)."""
        return self.patients[self.groups]

    def of(self, rows: IntArray | BoolArray) -> Covariates:
        """The same of some rows."""
        return Covariates(self.patients, self.groups[rows])

    @classmethod
    def none(cls, n_rows: int) -> Covariates:
        """No column, so that all rows are of one patient."""
        return cls(np.zeros((1, 0)), np.zeros(n_rows, dtype=np.intp))

    @classmethod
    def of_log(
        cls, space: RecordSpace, records: IntArray, raw: pd.DataFrame | None, adjusters: pd.DataFrame | None
    ) -> Covariates:
        """A column of 0 and 1 for each level of each feature, the numbers of those that were cut, and the adjusters.

        With the levels of its bins beside a number, or for an adjuster with whether it is above its median, products of
        the two follow a broken line.
        """
        occurring, groups = np.unique(records, return_inverse=True)
        levels = zip(space.codes(occurring).T, space.shape, strict=True)
        patients = np.hstack([codes[:, None] == np.arange(size) for codes, size in levels]).astype(np.float64)
        cut, uncut = (
            np.zeros((len(records), 0)) if frame is None else frame.to_numpy(dtype=np.float64)
            for frame in (raw, adjusters)
        )
        return cls(patients, groups)._with_numbers(with_means(cut), uncut)  # a bin of its own says where one is missing

    @classmethod
    def of_frame(cls, frame: pd.DataFrame) -> Covariates:
        """The same of columns of which nothing is declared: of words each is a level, and numbers are adjusters.

        DataError as `log_frame.covariate_matrix`.
        """
        real = np.array([is_real(frame.iloc[:, place]) for place in range(frame.shape[1])], dtype=np.bool_)
        words, uncut = (
            covariate_matrix(columns) if columns.shape[1] else np.zeros((len(frame), 0))
            for columns in (frame.loc[:, ~real], frame.loc[:, real])
        )
        patients, groups = np.unique(words, axis=0, return_inverse=True)
        return cls(patients, groups)._with_numbers(np.zeros((len(frame), 0)), uncut)

    def _with_numbers(self, cut: FloatArray, uncut: FloatArray) -> Covariates:
        """The same with numbers of the rows: those of features that were cut, and those of adjusters."""
        if not cut.shape[1] + uncut.shape[1]:
            return self
        above = (uncut > np.median(uncut, axis=0))[:, [len(np.unique(column)) > 2 for column in uncut.T]]
        return Covariates(np.hstack([self.rows, cut, uncut, above]), np.arange(len(uncut)))


def undeclared(table: DataTable, columns: Sequence[str], rows: IntArray) -> pd.DataFrame:
    """Columns beside the features that nothing is said of, as `read_adjusters` has them, of some of the `rows`.

    Left out are ids, outcomes and what is named like one, later measurements, and words that are names; also columns
    that are different in each row. The index of the frame says which of the rows they are.
    """
    later = set(sounding_later(table.columns))
    names = [name for name in columns if name not in later][:MOST_COLUMNS]
    looked_at = np.arange(0, len(rows), -(-len(rows) // LOOKED_AT))
    frame = table.frame_of(names).iloc[rows[looked_at]].reset_index(drop=True)
    some = DataTable(table.name, frame)
    adjusters = []
    for name in names:
        try:
            distinct = len(coded(some[name])[1])
            if not (distinct == len(frame) or (is_id(name) and 2 * distinct > len(frame))):
                adjusters.append(read_adjusters(some, [name], BadRows()))
        except ValueError:  # no values, names or lists
            continue
    return pd.concat(adjusters, axis=1).set_axis(looked_at, axis=0) if adjusters else pd.DataFrame(index=looked_at)
