"""What a source prints, as a study file quotes it: figures with their digits, counts of people, and claims in words."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from envs.toml_reader import TomlTable, shown, unknown


class Quote(NamedTuple):
    """Figures that a source prints together."""

    where: str  # where it has them
    printed: Mapping[str, str]  # by name, with the digits printed there
    data: str = ""  # what they were computed from: a group, or "" if there is only one table
    epsilon: float = float("nan")  # the privacy parameter there; NaN if the figures do not depend on it
    runs: int = 0  # draws that were counted; 0 for figures that are not random


def printed_number(text: str) -> Decimal | None:
    """A printed number with its digits, or None for something else: 0.327, .32, 8.9e-6, 45,222."""
    try:
        number = Decimal(text.replace(",", ""))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def as_printed(value: float, printed: str, rounding: str = ROUND_HALF_EVEN) -> str:
    """The value, rounded to the digits of the printed number: 0.15 for .15, 4e-5 for 4e-5."""
    digits = (printed_number(printed) or Decimal(0)).as_tuple().exponent
    rounded = Decimal(value).quantize(Decimal(1).scaleb(int(digits)), rounding)
    return f"{rounded:e}" if "e" in printed.lower() else f"{rounded:,f}" if "," in printed else f"{rounded:f}"


def rounds_to(value: float, printed: str, rounding: str = ROUND_HALF_EVEN) -> bool:
    """Whether the value, rounded to the digits of the printed number, is that number; with ROUND_DOWN, if cut off.

    Examples
    --------
    >>> rounds_to(0.09975049, "0.0998"), rounds_to(8.92e-6, "8.9e-6"), rounds_to(0.327, ".32")
    (True, True, False)
    """
    number = printed_number(printed)
    return number is not None and printed_number(as_printed(value, printed, rounding)) == number


def read_constants(table: TomlTable, declared: Mapping[str, Any]) -> dict[str, Any]:
    """The constants of a study file, by name, as the words of its document declare them; mistakes are noted.

    A declaration is "text", "counts", "groups" (counts by name), the limits of a number ("low", "high"), the least of a
    whole number ("least"), or a table of declarations.
    """
    found: dict[str, Any] = {}
    for name, what in declared.items():
        if what == "text":
            found[name] = table.text(name)
        elif what == "counts":
            found[name] = printed_counts(table, name)
        elif what == "groups":
            found[name] = {group: printed_counts(table.table(name), group) for group in table.table(name).values}
        elif "least" in what:
            found[name] = table.integer(name, low=what["least"])
        elif "low" in what:
            found[name] = table.number(name, **what)
        else:
            inner = table.table(name)
            found[name] = read_constants(inner, what)
            inner.close()
    return found


# Counts up to here are exact in floating point.
MOST_EXACT = 2**53


def printed_counts(table: TomlTable, name: str) -> pd.Series:
    """A table of whole numbers, at least two of them and not all 0: how many people have each value."""
    noted, inner = len(table.mistakes.found), table.table(name)
    counts = {key: inner.integer(key, 0, high=MOST_EXACT) for key in inner.values}
    if len(counts) < 2:
        table.fail(f"{name} must count at least 2 values, got {len(counts)}", *([name] if name in table else []))
    elif not any(counts.values()) and len(table.mistakes.found) == noted:
        table.fail("must count somebody, got only 0", name)
    return pd.Series(counts, dtype=np.intp)


def read_quotes(
    table: TomlTable, kind: str, names: Sequence[str], groups: Sequence[str], declared: Mapping[str, Any]
) -> list[Quote]:
    """The tables [[kind]]: `where`, `printed` by names, and the constants of a `Quote` that are declared."""
    quotes, constants = [], {"where": "text", **declared.get("constants", {})}
    for entry in table.tables(kind):
        printed = _read_printed(entry, names, whole="whole" in declared)
        quote = Quote(**read_constants(entry, constants), printed=printed)
        if "data" in constants and "data" in entry and quote.data not in groups:
            entry.fail(unknown("data", quote.data, groups), "data")
        if quote.runs and sum(map(int, printed.values())) > quote.runs:
            entry.fail(f"must not be more than the {quote.runs} runs", "printed")
        quotes.append(quote)
        entry.close()
    if not quotes:
        table.fail(f"{kind} is missing: it must be one or more tables of figures")
    return quotes


def _read_printed(entry: TomlTable, names: Sequence[str], *, whole: bool) -> dict[str, str]:
    if "printed" not in entry:
        entry.fail("printed is missing: it must be a table of figures")
    table = entry.table("printed")
    printed = {}
    for key in table.values:
        text = table.text(key)
        if key not in names:
            table.fail(unknown("name", key, names), key)
        elif whole and text and not text.isdecimal():
            table.fail(f"must be a whole number in quotes, got {shown(text)}", key)
        elif text and printed_number(text) is None:
            table.fail(f"must be a number in quotes, with the digits printed there, got {shown(text)}", key)
        elif text:
            printed[key] = text
    return printed


def read_claims(table: TomlTable, known: Collection[str]) -> list[tuple[str, str, str]]:
    """The tables [[claim]]: `about`, one of the known subjects, `says` and `where`."""
    claims = []
    for entry in table.tables("claim"):
        about, says, where = (entry.text(name) for name in ("about", "says", "where"))
        if about not in known and "about" in entry:
            entry.fail(unknown("subject", about, list(known)), "about")
        entry.close()
        claims.append((about, says, where))
    return claims
