"""CSV and Parquet written a batch of rows at a time: CSV in UTF-8, with commas and decimal points."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from policysim.errors import optional
from policysim.files.bad_rows import DataError
from policysim.files.many_files import CSV, PARQUET
from policysim.files.terminal import complain
from policysim.numbers import FORMULA, SIGNED_NUMBER

with optional():
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq


class Writer(Protocol):
    """Takes batches of one schema."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""


@contextmanager
def open_writer(path: Path, schema: pa.Schema, ending: str) -> Iterator[Writer]:
    """Write a file of this kind from its beginning; the caller says under which name, and that nothing is lost.

    In CSV, what a spreadsheet would run has an apostrophe before it (`numbers.FORMULA`); a warning says how many cells.
    """
    if ending == ".csv":
        with path.open("wb") as stream:
            writer = _CsvWriter(stream)
            writer.write(pa.record_batch([[name] for name in schema.names], names=list(map(str, range(len(schema))))))
            yield writer
        if writer.n_formulas:
            said = "cells begin as formulas of spreadsheets do, and have an apostrophe before them; .parquet needs none"
            complain(f"warning: {path.name}: {writer.n_formulas:,} {said}")
    else:
        with path.open("wb") as stream, pq.ParquetWriter(stream, schema) as parquet:
            yield parquet


def check_ending(path: Path) -> str:
    """.csv or .parquet, which can be written; DataError for anything else."""
    ending = path.suffix.lower()
    if ending not in (CSV, PARQUET):
        raise DataError(f"{path.as_posix()}: the name must end in .csv or .parquet")
    return ending


@dataclass
class _CsvWriter:
    """Joins cells to lines in bulk: pyarrow's own writer puts quotes around every text."""

    stream: Any
    n_formulas: int = 0
    SPECIAL: ClassVar = (b'"', b",", b"\n", b"\r")
    SIGNS: ClassVar = (b"=", b"+", b"-", b"@")

    def write(self, batch: pa.RecordBatch) -> None:
        rows = pc.binary_join_element_wise(*map(self._quoted, batch.columns), ",")
        whole = pa.ListArray.from_arrays(pa.array([0, len(rows)], pa.int32()), rows)
        self.stream.write(pc.binary_join(whole, "\n")[0].as_buffer())
        self.stream.write(b"\n")

    def _quoted(self, column: pa.Array) -> pa.Array:
        content = column.buffers()[2]
        text = b"" if content is None else content.to_pybytes()
        formulas = pc.match_substring_regex(column, FORMULA) if any(sign in text for sign in self.SIGNS) else None
        if formulas is not None and pc.any(formulas).as_py():
            formulas = pc.and_not(formulas, pc.match_substring_regex(column, SIGNED_NUMBER))
            self.n_formulas += formulas.true_count
            column = pc.if_else(formulas, pc.binary_join_element_wise("'", column, ""), column)
        if not any(sign in text for sign in self.SPECIAL):
            return column
        inside = pc.replace_substring(column, '"', '""')
        # Joined by quotes, nothing, the cell and nothing are the cell within quotes.
        return pc.if_else(
            pc.match_substring_regex(column, '[",\r\n]'), pc.binary_join_element_wise("", inside, "", '"'), column
        )
