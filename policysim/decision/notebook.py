"""A comparison of policies that notebooks show as a figure with its table; otherwise it is a DataFrame."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pandas as pd

# What the figure needs. A table that lost one of them is a plain DataFrame.
NEEDED = frozenset({"policy", "epsilon", "group", "benefit_kept"})
DESCRIPTION = "What each policy keeps, and what it costs, against epsilon; the numbers are in the table below."


class Comparison(pd.DataFrame):
    """A DataFrame of policies over epsilon, which notebooks show below its figure of loss against epsilon.

    What is computed from one (rows, groups, copies) is a Comparison as long as it has the columns that the figure
    needs, and a plain DataFrame otherwise.

    Examples
    --------
    >>> table = Comparison({"policy": ["uniform"], "epsilon": [1.0], "group": ["all"], "benefit_kept": [-0.5]})
    >>> type(table[table["epsilon"] > 0]).__name__, type(table[["policy"]]).__name__
    ('Comparison', 'DataFrame')
    """

    @property
    def _constructor(self) -> Callable[..., pd.DataFrame]:
        return _comparison_or_frame

    def _repr_html_(self) -> str | None:
        """The figure above what pandas shows; the table alone where there is nothing to draw."""
        table: str | None = super()._repr_html_()  # type: ignore[misc]  # not in the stubs
        return table if table is None else _figure(self) + table


def _comparison_or_frame(*args: Any, **options: Any) -> pd.DataFrame:
    frame = pd.DataFrame(*args, **options)
    return Comparison(frame) if frame.columns.is_unique and NEEDED.issubset(frame.columns) else frame


def _figure(table: pd.DataFrame) -> str:
    """The figure as a part of a page, or nothing."""
    # matplotlib is slow to import, and only needed here.
    from policysim import figures  # noqa: PLC0415
    from policysim.figures import embed  # noqa: PLC0415

    try:
        drawn = figures.to_svg(figures.loss_vs_epsilon(pd.DataFrame(table)))
    except Exception:  # whatever people did to their table, a notebook still shows it
        return ""
    # Several outputs share one page: what is drawn alike has the same identifiers, and nothing else has.
    prefix = f"c{hashlib.sha256(drawn.encode()).hexdigest()[:8]}"
    picture = embed.inline(drawn, prefix)
    return f'<figure role="img" aria-label="{DESCRIPTION}" style="background:#fff">{picture}</figure>'
