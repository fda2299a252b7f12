"""The evaluated policy as a data frame whose columns are the actions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from numpy.typing import ArrayLike

from policysim.offpolicy.checks import several
from policysim.offpolicy.log_frame import ACTION


def policy_columns(
    log: pd.DataFrame, probabilities: pd.DataFrame, actions: Sequence[Any] | None
) -> tuple[ArrayLike, list[Any]]:
    """The probabilities as an array, and the actions in the order of its columns.

    A column is the action of that name, compared as text: a column "0" is the action 0. Rows are matched by position.

    Raises
    ------
    ValueError
        For columns that are not distinct, or not those that `actions` declares; and for an index that holds the log's
        labels in another order, as then the rows are not the log's.
    """
    columns = [str(name) for name in probabilities.columns]
    if len(set(columns)) < len(columns):
        raise ValueError(f"the columns of probabilities must be distinct actions, got {_listed(columns)}.")
    if actions is not None:
        wanted = list(map(str, several(actions) or ()))
        if sorted(wanted) != sorted(columns):
            raise ValueError(
                f"the columns of probabilities must be the actions {_listed(wanted)}, got {_listed(columns)}."
            )
        columns = wanted
    by_name = {str(name): name for name in probabilities.columns}
    if not probabilities.index.equals(log.index) and set(probabilities.index) == set(log.index):
        raise ValueError("probabilities must have its rows in the log's order: its index is the log's, reordered.")
    logged = {str(value): value for value in log[ACTION].unique()} if ACTION in log.columns else {}
    return probabilities[[by_name[name] for name in columns]].to_numpy(), [
        logged.get(name, by_name[name]) for name in columns
    ]


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names))
