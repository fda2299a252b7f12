"""Small HTML tables, by which notebooks show the objects of this package."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from html import escape
from numbers import Integral, Real

# Longer text is cut: a cell is to be read.
LONGEST = 200
LEFT = ' style="text-align:left"'


def html_table(caption: str, rows: Iterable[Sequence[object]], header: Sequence[str] = ()) -> str:
    r"""A table with a caption; the first cell of each row names it. Everything is escaped.

    Parameters
    ----------
    caption : str
        What the table is about.
    rows : iterable of sequences
        Text, numbers (shown to six digits), yes or no.
    header : sequence of str, optional
        Names of the columns.

    Examples
    --------
    >>> print(html_table("A < B", [("p", 0.5)]).replace("><", ">\n<"))
    <table>
    <caption style="text-align:left">A &lt; B</caption>
    <tbody>
    <tr>
    <th scope="row" style="text-align:left">p</th>
    <td style="text-align:left">0.5</td>
    </tr>
    </tbody>
    </table>
    """
    # Facts are read along a row, so they stand to the left; the columns of a table with a header are as in any other.
    style = "" if header else LEFT
    names = "".join(f'<th scope="col">{cell(name)}</th>' for name in header)
    head = f"<thead><tr>{names}</tr></thead>" if names else ""
    body = ""
    for first, *others in rows:
        values = "".join(f"<td{style}>{cell(value)}</td>" for value in others)
        body += f'<tr><th scope="row"{style}>{cell(first)}</th>{values}</tr>'
    return f"<table><caption{LEFT}>{cell(caption)}</caption>{head}<tbody>{body}</tbody></table>"


def cell(value: object) -> str:
    """What one cell says, escaped: six digits of a number, ∞ where it is infinite, – where it is none."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return f"{int(value):,}"
    if not isinstance(value, Real):
        return escape(textwrap.shorten(str(value), LONGEST, placeholder=" …"))
    number = float(value)
    if math.isnan(number):
        return "–"
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    return f"{number:.6g}"
