"""A last row of totals, as spreadsheets write it: it is no patient."""

from __future__ import annotations

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
# Of a sum: what spreadsheets round.
ROUNDED = 1e-6


def refuse_totals(tables: LogTables, source: LogSource) -> None:
    """DataError for a last row of totals: one that says so, or whose outcome is the sum of those above it."""
    words = [name for name in (source.id, source.treatment, *source.joined, *source.features) if name]
    sums = [name for name in source.outcome if name not in source.outcome_checked and name not in source.codes]
    for table in tables.by_role.values():
        if len(table) <= FEWEST_SUMMED:
            continue
        last = table.places([len(table) - 1])[0]
        for name in [name for name in words if name in table.columns]:
            text = str(table[name].iloc[-1]).strip()
            declared = [value for value, _ in source.treatments] if name == source.treatment else []
            if name in source.features:
                declared = [str(level) for level in source.features[name].levels]
            if text.casefold() in TOTALS and text not in declared:
                raise DataError(f"{last}: {name}: {text!r}: a row of totals is no patient: take it out of the file")
        for name in [name for name in sums if name in table.columns]:
            if _is_total(table, name):
                checked = toml_value([*source.outcome_checked, name])
                raise DataError(
                    f"{last}: {name}: is the sum of the rows above: a row of totals is no patient: take it out of the "
                    f"file; if it is a patient's, write outcome_checked = {checked} in [data]"
                )


def _is_total(table: DataTable, column: str) -> bool:
    values = numbers(table[column])
    above, last = np.abs(np.nan_to_num(values[:-1])), abs(float(values[-1]))
    total = abs(float(np.nansum(values[:-1])))
    return bool(above.max() < MOST_OF_SUM * last and abs(total - last) <= ROUNDED * last)
