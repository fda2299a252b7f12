"""Values of columns as positions among their levels, and back; which rows hold something else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from envs.toml_reader import unknown
from policies.arrays import IntArray
from policysim.files.bad_rows import BadRows, DataError, got
from policysim.files.columns_file import ColumnsFile
from policysim.question.extras import optional
from policysim.question.protocol import SILENT, Progress
from policysim.release.privatize_source import Source

with optional():
    import pyarrow as pa
    import pyarrow.compute as pc

# A column with more different values than this is no category.
MOST_LEVELS = 1_000


class Codes:
    """Reads the private columns of a file.

    Parameters
    ----------
    file : ColumnsFile
    levels : mapping of str to sequence of str
        As text; compared in the type of the column, so that "1" fits an integer column.
    bad : BadRows
        Told of the rows that hold something else, of one file or more.

    Raises
    ------
    DataError
        If a column does not exist or cannot hold its levels.
    """

    def __init__(self, file: ColumnsFile, levels: Mapping[str, Sequence[str]], bad: BadRows) -> None:
        """Look the columns up."""
        self._file = file
        self._must = {column: f"must be one of {_few(texts)}" for column, texts in levels.items()}
        self._levels = {column: _level_array(file, column, texts) for column, texts in levels.items()}
        self._bad = bad
        self.n_rows = 0

    def read(self, batch: pa.RecordBatch) -> dict[str, IntArray] | None:
        """Positions of a batch's values; None once any row has held something else (they are counted all the same)."""
        codes = {}
        for name, levels in self._levels.items():
            column = _plain(batch.column(name))
            found: IntArray = pc.fill_null(pc.index_in(column, value_set=levels), -1).to_numpy().astype(np.intp)
            self._bad.add(self._file, found < 0, name, self._say(name, column), before=self.n_rows)
            codes[name] = found
        self.n_rows += batch.num_rows
        return None if self._bad.count else codes

    def field(self, field: pa.Field) -> pa.Field:
        """A private column as it is written: with room for all levels, and without what the file says about it."""
        kind = field.type
        if pa.types.is_dictionary(kind):
            kind = pa.dictionary(pa.int32(), kind.value_type, kind.ordered)
        return field.remove_metadata().with_type(kind)

    def values(self, column: str, codes: IntArray, kind: pa.DataType) -> pa.Array:
        """The values at these positions; a dictionary holds all levels, also those that do not occur."""
        if pa.types.is_dictionary(kind):
            return pa.DictionaryArray.from_arrays(pa.array(codes), self._levels[column]).cast(kind)
        return self._levels[column].take(pa.array(codes))

    def _say(self, name: str, column: pa.Array) -> Callable[[int], str]:
        return lambda row: f"{self._must[name]}, {got(column[row].as_py())}"


def levels_in(source: Source, columns: Sequence[str], progress: Progress = SILENT) -> dict[str, list[str]]:
    """The different values of some columns, in all files, sorted, as text; those that are missing are left out.

    They are read from the private rows: which values occur is then public without being covered by any epsilon.

    Raises
    ------
    DataError
        For a column that is not there, is of another type in another file, or is no category.
    """
    first = source.files[0]
    found = {column: pa.array([], _column_type(first, column)) for column in columns}
    for file, steps in source.in_turn(progress):
        for column in columns:
            kind, known = _column_type(file, column), found[column].type
            if kind != known:
                raise DataError(
                    f"{file.path.as_posix()}: {column}: is of type {kind}, in {first.path.name} of type {known}; "
                    "declare its levels"
                )
        for batch in file.batches(columns, steps):
            for column in columns:
                with _type_refused(file, column):
                    new = _plain(batch.column(column)).unique()
                    found[column] = pc.drop_null(pa.concat_arrays([found[column], new]).unique())
                if len(found[column]) > MOST_LEVELS:
                    raise DataError(
                        f"{file.path.as_posix()}: {column}: has more than {MOST_LEVELS:,} different values; "
                        "declare its levels, or make it coarser"
                    )
    result = {}
    for column, values in found.items():
        with _type_refused(first, column):
            # NaN and empty text are no levels.
            present = values.filter(pc.invert(pc.is_null(values, nan_is_null=True))).sort()
            result[column] = [text for text in present.cast(pa.string()).to_pylist() if text]
    return result


def _few(texts: Sequence[str]) -> str:
    """Levels in a message: all of a few, or the first and the last."""
    return ", ".join(texts if len(texts) <= 8 else [*texts[:4], "...", texts[-1]])


def _level_array(file: ColumnsFile, column: str, texts: Sequence[str]) -> pa.Array:
    """Levels in the type of the column."""
    kind = _column_type(file, column)
    with _type_refused(file, column, texts):
        levels = pa.array(texts, pa.string()).cast(kind)
        different = pc.index_in(levels, value_set=levels.unique()).to_pylist() == list(range(len(levels)))
    if not different or pc.any(pc.is_null(levels, nan_is_null=True)).as_py():
        raise DataError(
            f"{file.path.as_posix()}: {column}: its levels must differ and not be missing as {kind}, got {_few(texts)}"
        )
    return levels


@contextmanager
def _type_refused(file: ColumnsFile, column: str, texts: Sequence[str] = ()) -> Iterator[None]:
    """What pyarrow cannot do with a column is one line."""
    try:
        yield
    except pa.ArrowException:
        what = f"the levels {_few(texts)}" if texts else "categories"
        kind = _column_type(file, column)
        raise DataError(f"{file.path.as_posix()}: {column}: is of type {kind}, which cannot hold {what}") from None


def _column_type(file: ColumnsFile, column: str) -> pa.DataType:
    """The type of a column's values, whether or not they are stored as a dictionary."""
    names = file.schema.names
    if column not in names:
        raise DataError(f"{file.path.as_posix()}: {unknown('column', column, names)}")
    kind = file.schema.field(column).type
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
