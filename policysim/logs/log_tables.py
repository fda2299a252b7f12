"""The tables of a log: one, or three that are joined, by the patients' ids where there are some, else row by row."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations

import numpy as np
import pandas as pd

from policies.arrays import BoolArray, IntArray
from policies.levels import MISSING, MISSING_WORDS, level_key, level_of
from policysim.files.bad_rows import BadRows, DataError
from policysim.files.data_table import DataTable, coded, numbers
from policysim.logs.column_names import is_id
from policysim.logs.log_source import ACTIONS, FEATURES, JOINT, OUTCOMES, TABLE
from policysim.logs.toml_text import toml_string


@dataclass(frozen=True, eq=False)
class LogTables:
    """The tables by role, and the column of ids that they share ("" for none).

    `cluster` is the column of clusters ("" for none); ids may repeat if they are it. None: nobody can say.
    """

    by_role: dict[str, DataTable]
    id: str
    cluster: str | None = None

    @property
    def features(self) -> DataTable:
        """The table of covariates, whose order of rows is the log's."""
        return self.by_role[FEATURES if self.are_three else TABLE]

    @property
    def actions(self) -> DataTable:
        """The table of treatments and propensities."""
        return self.by_role[ACTIONS if self.are_three else TABLE]

    @property
    def outcomes(self) -> DataTable:
        """The table of outcomes."""
        return self.by_role[OUTCOMES if self.are_three else TABLE]

    @property
    def are_three(self) -> bool:
        """Whether the tables are three."""
        return TABLE not in self.by_role

    def without_unknown(self, unknown: Mapping[str, Collection[str]]) -> tuple[LogTables, dict[str, BoolArray]]:
        """The same where values of columns that mean unknown are missing, and where they are, (n_rows,) for a column.

        A column that several tables have is changed in each; the rows are those of the last.
        """
        tables, where = dict(self.by_role), dict[str, BoolArray]()
        for role, table in self.by_role.items():
            changed: dict[str, pd.Series] = {}
            for column in unknown:
                keys = set(map(level_key, unknown[column])) - {MISSING}
                if column not in table.columns or not keys:
                    continue
                positions, occurring = coded(table[column])
                where[column] = np.array([key in keys for key in occurring], dtype=np.bool_)[positions]
                if where[column].any():
                    changed[column] = table[column].mask(where[column])
            tables[role] = table.with_columns(changed) if changed else table
        return replace(self, by_role=tables), where

    def with_joined(self, columns: Sequence[str]) -> LogTables:
        """The same with one more column of actions: the combination of several, named by them all.

        Its values are theirs with a comma between, missing where one of them is. Columns of 0 and 1 of which exactly
        one is 1 in each row are such columns, too. Of no columns nothing is made.

        Raises
        ------
        DataError
            For columns that are not there, or if there is one of that name already.
        """
        if not columns:
            return self
        table = self.actions
        self.require([(table, column) for column in columns])
        name = JOINT.join(columns)
        if name in table.columns:
            raise DataError(f"{table.name}: there is a column {name!r} already, beside those that make it: rename it")
        made = table.with_columns({name: joined_columns([table[column] for column in columns])})
        return replace(self, by_role={role: made if old is table else old for role, old in self.by_role.items()})

    def require(self, wanted: Sequence[tuple[DataTable, str]]) -> None:
        """DataError for each column that is not in its table; all tables need the ids."""
        wanted = [*wanted, *((table, self.id) for table in self.by_role.values() if self.id)]
        absent = [message for table, column in wanted if (message := table.unknown_column(column))]
        if absent:
            raise DataError("\n".join(absent))

    def refuse_shared(self, but: Sequence[str]) -> None:
        """DataError for a column of another table among the actions: it is more likely the patients' ids.

        Names that are only places say nothing.
        """
        for table in (self.features, self.outcomes) if self.actions.header else ():
            shared = [name for name in self.actions.columns if name in table.columns and name not in but]
            if shared:
                raise DataError(
                    f"{self.actions.name}: the column {shared[0]!r} is in {table.name}, too: name it as the id, or "
                    "declare the treatments"
                )

    def matched(self, bad: BadRows) -> tuple[IntArray, IntArray]:
        """The rows of actions and of outcomes that belong to each row of the features.

        Raises
        ------
        DataError
            If there are bad rows, whichever check found them; or, without ids, if tables differ in length.
        """
        ids = {table.name: ids_of(table[self.id]) for table in self.by_role.values()} if self.id else {}
        if self.are_three and not ids:
            self._refuse_other_order()
        elif self.are_three:
            _refuse_other_zeros(ids, self.id)
        for table in self.by_role.values() if ids else ():
            _check_ids(table, ids, self.id, bad, cluster=self.cluster)
        bad.raise_if_any()
        if not ids and len({len(table) for table in self.by_role.values()}) > 1:
            lengths = ", ".join(f"{table.name} {len(table):,}" for table in self.by_role.values())
            raise DataError(f"tables without an id are matched row by row, but differ in length: {lengths} rows")
        of_features = np.arange(len(self.features))
        if not (self.are_three and ids):
            return of_features, of_features
        wanted = ids[self.features.name]
        of_actions, of_outcomes = (ids[table.name].get_indexer(wanted) for table in (self.actions, self.outcomes))
        return np.asarray(of_actions, dtype=np.intp), np.asarray(of_outcomes, dtype=np.intp)

    def _refuse_other_order(self) -> None:
        """DataError for a column of ids that tables without an id share, and whose values differ by row.

        It is called as ids are, or each of its values stands once in both tables. Names that are only places say
        nothing.
        """
        for first, other in combinations([table for table in self.by_role.values() if table.header], 2):
            for name in [name for name in first.columns if name in other.columns and len(first) == len(other)]:
                ids, others = ids_of(first[name]), ids_of(other[name])
                are_same = ids.is_unique and len(ids.difference(others)) == 0
                if (is_id(name) or are_same) and not ids.equals(others):
                    raise DataError(
                        f"{other.name}: {name}: differs by row from that of {first.name}, and without an id rows are "
                        f"matched by their order: name the patients' ids, id = {toml_string(name)}"
                    )

    def place_of_action(self, row: int) -> str:
        """Where the treatment of a row of the features is, in words; the tables have no bad rows."""
        of_actions, _ = self.matched(BadRows())
        return self.actions.places([int(of_actions[row])])[0]


def joined_columns(columns: Sequence[pd.Series]) -> pd.Series:
    """The combination of several columns as one of text; missing where one of them is.

    Examples
    --------
    >>> joined_columns([pd.Series([1, 0, 1.0]), pd.Series(["high", "none", None])]).tolist()
    ['1, high', '0, none', None]
    """
    gaps = np.zeros(len(columns[0]), dtype=np.bool_)
    texts = []
    for column in columns:
        codes, keys = coded(column)
        texts.append(np.array([str(level_of(key)) for key in keys], dtype=object)[codes])
        gaps |= np.array([key == MISSING for key in keys], dtype=np.bool_)[codes]
    rows = [None if gap else JOINT.join(words) for gap, *words in zip(gaps, *texts, strict=True)]
    return pd.Series(rows, index=columns[0].index, dtype=object)


def ids_of(column: pd.Series) -> pd.Index:
    """Ids as text, the same for 7, 7.0, "7" and "7.0"; "007" is another. Missing ids are empty."""
    if column.dtype.kind in "iu":
        return pd.Index(column.astype(str))
    if column.dtype.kind == "f":
        values = numbers(column)
        whole = np.isfinite(values) & (values == np.floor(values)) & (np.abs(values) < 2**53)
        text = np.where(whole, np.where(whole, values, 0).astype(np.int64).astype(str), values.astype(str))
        return pd.Index(np.where(np.isnan(values), "", text))
    words = column.astype(str).str.strip().str.replace(r"^([+-]?[0-9]+)\.0*$", r"\1", regex=True)
    absent = column.isna() | words.str.lower().isin(MISSING_WORDS)
    return pd.Index(words.mask(absent, ""))


def _refuse_other_zeros(ids: Mapping[str, pd.Index], column: str) -> None:
    """DataError, without any id, if those of a table have no match in another but for zeros in front."""
    for (name, ids_of_table), (other_name, other_ids) in permutations(ids.items(), 2):
        alone = ids_of_table[(ids_of_table != "") & ~ids_of_table.isin(other_ids)]
        bare = alone.str.replace(r"^0+(?=.)", "", regex=True)
        if len(alone) and (bare != alone).all() and bare.isin(other_ids).all():
            raise DataError(
                f"{other_name}: {column}: lacks the zeros in front of {len(alone):,} ids of {name}: write both alike "
                "(spreadsheets drop such zeros unless the column is text)"
            )


def _check_ids(
    table: DataTable, ids_of_tables: Mapping[str, pd.Index], column: str, bad: BadRows, *, cluster: str | None
) -> None:
    """Ids that are missing, that stand in two rows of the table, or that another table lacks, are bad rows."""
    ids = ids_of_tables[table.name]
    absent = np.asarray(ids == "")
    bad.add(table, absent, column, lambda _: "is missing: each patient needs an id")
    again = np.asarray(ids.duplicated()) & ~absent & (column != cluster)
    remedy = f"; for several rows of a person write cluster = {toml_string(column)}"
    if cluster:
        remedy = f"; if no person is in two clusters ({cluster}), leave out the id: intervals are by clusters"
    if len(ids_of_tables) > 1 or cluster is None:  # tables are joined by ids
        remedy = ""

    def say_again(row: int) -> str:
        first = int(np.flatnonzero(np.asarray(ids == ids[row]))[0])
        text = f"{ids[row]!r} is there already: {table.places([first])[0]}"
        return text + remedy if row == again.argmax() else text

    bad.add(table, again, column, say_again)
    for name, other_ids in ids_of_tables.items():
        alone = ~np.asarray(ids.isin(other_ids)) & ~absent
        bad.add(table, alone, column, lambda row, name=name: f"{ids[row]!r} has no row in {name}")  # type: ignore[misc]
