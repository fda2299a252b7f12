"""A last row of totals, as spreadsheets write it: it is no patient."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from policysim.files.bad_rows import DataError
from policysim.files.data_table import DataTable, numbers
from policysim.logs.log_source import LogSource
from policysim.logs.log_tables import LogTables
from policysim.logs.toml_text import toml_value

# What spreadsheets write in front of a row of sums.
TOTALS = ("total", "totals", "grand total", "sum")
# In fewer rows, or where one patient has half of it, a number may be the sum of others by chance.
FEWEST_SUMMED, MOST_OF_SUM = 5, 0.5
TAKE_OUT = "take it out of the file"
# So many rows show of nearly all columns that the last is no sum.
FIRST_ROWS = 100
# Of a sum: what spreadsheets round.
ROUNDED = 1e-6


def refuse_totals(tables: LogTables, source: LogSource) -> None:
    """DataError for a last row of totals: one that says so, or whose outcome is the sum of those above it."""
    words = [name for name in (source.id, source.treatment, *source.joined, *source.features) if name]
    sums = [name for name in source.outcome if name not in source.outcome_checked and name not in source.codes]
    for table in tables.by_role.values():
        if len(table) <= FEWEST_SUMMED:
            continue
        last = _some(table, len(table) - 1, len(table))
        for name in [name for name in words if name in table.columns]:
            text = str(last[name].iloc[0]).strip()
            declared = [value for value, _ in source.treatments] if name == source.treatment else []
            if name in source.features:
                declared = [str(level) for level in source.features[name].levels]
            if text.casefold() in TOTALS and text not in declared:
                raise DataError(f"{_place(table)}: {name}: {text!r}: a row of totals is no patient: {TAKE_OUT}")
        for name in [name for name in sums if name in table.columns and _is_total(table, last, name)]:
            checked = toml_value([*source.outcome_checked, name])
            raise DataError(
                f"{_place(table)}: {name}: is the sum of the rows above: a row of totals is no patient: {TAKE_OUT}; if "
                f"it is a patient's, write outcome_checked = {checked} in [data]"
            )


def _is_total(table: DataTable, last: DataTable, column: str) -> bool:
    """Whether the last row is the sum of the others in a column, more than twice as large as each of them."""
    end = abs(float(numbers(last[column])[0]))
    for rows in (min(FIRST_ROWS, len(table) - 1), len(table) - 1):
        above = np.abs(np.nan_to_num(values := numbers(_some(table, 0, rows)[column])))
        if not above.max() < MOST_OF_SUM * end:
            return False  # as of nearly all columns, without a look at all rows
    return bool(abs(abs(np.nansum(values)) - end) <= ROUNDED * end)


def _some(table: DataTable, start: int, end: int) -> DataTable:
    return replace(table, rows=table.rows[start:end])


def _place(table: DataTable) -> str:
    """Where the last row is; only now is a large file read for its line."""
    return table.places([len(table) - 1])[0]
