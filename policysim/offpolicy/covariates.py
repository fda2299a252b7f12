"""Covariates of a data frame as numbers: categories become one column of 0 and 1 for each level."""

from __future__ import annotations

import numpy as np
import pandas as pd

from policies.arrays import FloatArray
from policysim.offpolicy.checks import refuse_rows

# More distinct words than this are names or identifiers, which no outcome model can use.
MOST_LEVELS = 100


def covariate_matrix(frame: pd.DataFrame) -> FloatArray:
    """Finite numbers for outcome models, (n_rows, n_columns); one column of zeros if the frame has none.

    Numbers stay as they are, bool becomes 0 and 1, and text and categories a column for each level that occurs.

    Raises
    ------
    ValueError
        Names the rows in which a value is missing or infinite, or the column that is neither numbers nor categories,
        or that has more than 100 distinct words.
    """
    blocks = [_block(frame.iloc[:, position], str(name)) for position, name in enumerate(frame.columns)]
    return np.column_stack(blocks) if blocks else np.zeros((len(frame), 1))


def _block(column: pd.Series, name: str) -> FloatArray:
    refuse_rows(column.isna().to_numpy(), np.asarray(column.array), f"covariate {name!r} must not be missing")
    if is_real(column):
        numbers: FloatArray = column.to_numpy(dtype=np.float64)
        refuse_rows(~np.isfinite(numbers), numbers, f"covariate {name!r} must be finite")
        return numbers[:, None]
    if not isinstance(column.dtype, pd.CategoricalDtype | pd.StringDtype) and column.dtype != object:
        raise ValueError(
            f"covariate {name!r} is {column.dtype}: make it numbers or leave it out with covariates=[...]."
        )
    codes, levels = pd.factorize(column)
    if len(levels) > MOST_LEVELS:
        raise ValueError(
            f"covariate {name!r} has {len(levels):,} distinct values that are no numbers, at most {MOST_LEVELS} are "
            "allowed: leave it out with covariates=[...]."
        )
    indicators: FloatArray = (codes[:, None] == np.arange(len(levels))).astype(np.float64)
    return indicators


def is_real(column: pd.Series) -> bool:
    """Whether a column holds numbers, or bool as 0 and 1."""
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_complex_dtype(column)
