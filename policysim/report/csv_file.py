"""Tables as CSV files."""

from __future__ import annotations

import pandas as pd


def to_csv(table: pd.DataFrame) -> bytes:
    """A table as a CSV file, the same bytes for the same table."""
    # Twelve digits: more are rounding, and would differ from machine to machine.
    return table.to_csv(index=False, float_format="%.12g", lineterminator="\n").encode()
