"""What a source prints, as a study file quotes it: figures with their digits, counts of people, and claims in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from envs.toml_reader import Table, shown, unknown


class Quote(NamedTuple):
    """Figures that a source prints together."""

    where: str  # where it has them
    data: str  # what they were computed from: a group, or "" if there is only one table
    epsilon: float  # the privacy parameter there; NaN if the figures do not depend on it
    runs: int  # draws that were counted; 0 for figures that are not random
    printed: Mapping[str, str]  # by name, with the digits printed there


def printed_number(text: str) -> Decimal | None:
    """A printed number with its digits, or None for something else: 0.327, .32, 8.9e-6, 45,222."""
    try:
        number = Decimal(text.replace(",", ""))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def rounds_to(value: float, printed: str, rounding: str = ROUND_HALF_EVEN) -> bool:
    """Whether the value, rounded to the digits of the printed number, is that number; with ROUND_DOWN, if cut off.

    Examples
    --------
    >>> rounds_to(0.09975049, "0.0998"), rounds_to(8.92e-6, "8.9e-6"), rounds_to(0.327, ".32")
    (True, True, False)
    """
    number = printed_number(printed)
    return number is not None and _at_digits(value, number, rounding) == number


def as_printed(value: float, printed: str) -> str:
    """The value, rounded to the digits of the printed number: 0.15 for .15, 4e-5 for 4e-5."""
    rounded = _at_digits(value, printed_number(printed) or Decimal(0), ROUND_HALF_EVEN)
    return f"{rounded:e}" if "e" in printed.lower() else f"{rounded:,f}" if "," in printed else f"{rounded:f}"


def _at_digits(value: float, number: Decimal, rounding: str) -> Decimal:
    return Decimal(value).quantize(Decimal(1).scaleb(int(number.as_tuple().exponent)), rounding)


def read_constants(table: Table, declared: Mapping[str, Any]) -> dict[str, Any]:
    """The constants of a study file, by name, as the words of its document declare them; mistakes are noted.

    A declaration is "text", "counts", "groups" (counts by name), the limits of a number ("low", "high"), the least of a
    whole number ("least"), or a table of declarations, whose constants are attributes.
    """
    found: dict[str, Any] = {}
    for name, what in declared.items():
        if what == "text":
            found[name] = table.text(name)
        elif what == "counts":
            found[name] = read_counts(table, name)
        elif what == "groups":
            found[name] = {group: read_counts(table.table(name), group) for group in table.table(name).values}
        elif "least" in what:
            found[name] = table.integer(name, low=what["least"])
        elif "low" in what:
            found[name] = table.number(name, **what)
        else:
            inner = table.table(name)
            found[name] = SimpleNamespace(**read_constants(inner, what))
            inner.close()
    return found


def read_counts(table: Table, name: str) -> pd.Series:
    """A table of whole numbers, at least two of them and not all 0: how many people have each value."""
    noted, inner = len(table.mistakes.found), table.table(name)
    counts = {key: inner.integer(key, 0) for key in inner.values}
    if len(counts) < 2:
        table.fail(f"{name} must count at least 2 values, got {len(counts)}", *([name] if name in table else []))
    elif not any(counts.values()) and len(table.mistakes.found) == noted:
        table.fail("must count somebody, got only 0", name)
    return pd.Series(counts, dtype=np.intp)


def read_quotes(table: Table, name: str, keys: Mapping[str, float], known: Mapping[str, Sequence[str]]) -> list[Quote]:
    """The tables [[name]]: `where`, `printed`, and what is declared of `data`, `epsilon` and `runs` (with their least).

    `known` has the names that may be printed, by data set; one entry with the key "" if there is only one data set.
    """
    quotes = []
    for entry in table.tables(name):
        data = entry.text("data") if "data" in keys else ""
        if data not in known and "data" in entry:
            entry.fail(unknown("data", data, list(known)), "data")
        epsilon = entry.number("epsilon", low=keys["epsilon"]) if "epsilon" in keys else float("nan")
        runs = entry.integer("runs", low=int(keys["runs"])) if "runs" in keys else 0
        printed = _read_printed(entry, known.get(data), whole="whole" in keys)
        if runs and sum(map(int, printed.values())) > runs:
            entry.fail(f"must not be more than the {runs} runs", "printed")
        quotes.append(Quote(entry.text("where"), data, epsilon, runs, printed))
        entry.close()
    if not quotes:
        table.fail(f"{name} is missing: it must be one or more tables of figures")
    return quotes


def _read_printed(entry: Table, names: Sequence[str] | None, *, whole: bool) -> dict[str, str]:
    if "printed" not in entry:
        entry.fail("printed is missing: it must be a table of figures")
    table = entry.table("printed")
    printed = {}
    for key in table.values:
        text = table.text(key)
        if names is not None and key not in names:
            table.fail(unknown("name", key, names), key)
        elif whole and text and not text.isdecimal():
            table.fail(f"must be a whole number in quotes, got {shown(text)}", key)
        elif text and printed_number(text) is None:
            table.fail(f"must be a number in quotes, with the digits printed there, got {shown(text)}", key)
        elif text:
            printed[key] = text
    return printed


def read_claims(table: Table, known: Iterable[str]) -> list[tuple[str, str, str]]:
    """The tables [[claim]]: `about`, one of the known subjects, `says` and `where`."""
    subjects, claims = list(known), []
    for entry in table.tables("claim"):
        claim = entry.text("about"), entry.text("says"), entry.text("where")
        if claim[0] not in subjects and "about" in entry:
            entry.fail(unknown("subject", claim[0], subjects), "about")
        entry.close()
        claims.append(claim)
    return claims
