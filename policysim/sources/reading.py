"""What the files of these studies share: counts of people, quoted figures and claims in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from envs.toml_reader import Table, shown, unknown
from policysim.sources.digits import printed_number

NUMBER = "a number in quotes, with the digits printed there"


@dataclass(frozen=True)
class Quote:
    """Figures that a source prints together.

    Attributes
    ----------
    where : str
        Where it has them.
    data : str
        What they were computed from: a group, or "" if there is only one table.
    epsilon : float
        The privacy parameter there; NaN if the figures do not depend on it.
    runs : int
        Draws that were counted; 0 for figures that are not random.
    printed : mapping of str to str
        By name, with the digits printed there.
    """

    where: str
    data: str
    epsilon: float
    runs: int
    printed: Mapping[str, str]


@dataclass(frozen=True)
class Claim:
    """Something that a source says in words.

    Attributes
    ----------
    about : str
        What it is about, one of the names that the analysis knows.
    says, where : str
        The claim, and where the source has it.
    """

    about: str
    says: str
    where: str


def read_counts(table: Table, name: str, least: int = 2) -> dict[str, int]:
    """A table of whole numbers, at least `least` of them and not all 0."""
    inner = table.table(name)
    counts = {key: inner.integer(key, 0) for key in inner.values}
    if name not in table:
        table.fail(f"{name} is missing: it must be a table of counts")
    elif len(counts) < least:
        table.fail(f"must count at least {least} values, got {len(counts)}", name)
    elif not any(counts.values()) and all(type(value) is int and value >= 0 for value in inner.values.values()):
        table.fail("must count somebody, got only 0", name)
    return counts


def read_quotes(
    table: Table,
    name: str,
    known: Mapping[str, Sequence[str]],
    *,
    epsilon: bool = True,
    runs: bool = False,
) -> tuple[Quote, ...]:
    """The tables [[name]]: `where`, `printed`, and, where asked for, `data`, `epsilon` and `runs`.

    Parameters
    ----------
    table : Table
        The file.
    name : str
        The key of the array of tables.
    known : mapping
        The names that may be printed, by data set; one entry with the key "" if there is only one data set.
    epsilon, runs : bool
        Whether the figures depend on epsilon, and whether they count draws.
    """
    return tuple(_read_quote(entry, known, epsilon, runs) for entry in table.tables(name))


def _read_quote(entry: Table, known: Mapping[str, Sequence[str]], epsilon: bool, runs: bool) -> Quote:
    data = "" if list(known) == [""] else entry.text("data")
    if data not in known and "data" in entry:
        entry.fail(unknown("data", data, list(known)), "data")
    quote = Quote(
        where=entry.text("where"),
        data=data,
        epsilon=entry.number("epsilon", low=0) if epsilon else float("nan"),
        runs=read_whole(entry, "runs", least=1) if runs else 0,
        printed=_read_printed(entry, known.get(data), whole=runs),
    )
    if runs and sum(int(seen) for seen in quote.printed.values()) > quote.runs:
        entry.fail(f"must not be more than the {quote.runs} runs", "printed")
    entry.close()
    return quote


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
            table.fail(f"must be {NUMBER}, got {shown(text)}", key)
        elif text:
            printed[key] = text
    return printed


def read_whole(table: Table, name: str, *, least: int = 0) -> int:
    """A whole number that must be there."""
    value = table.integer(name, least)
    if name not in table:
        table.fail(f"{name} is missing: it must be a whole number >= {least}")
    elif value < least:
        table.fail(f"must be a whole number >= {least}, got {value}", name)
    return max(value, least)


def read_claims(table: Table, known: Iterable[str]) -> tuple[Claim, ...]:
    """The tables [[claim]]: `about`, one of the known subjects, `says` and `where`."""
    subjects, claims = list(known), []
    for entry in table.tables("claim"):
        claim = Claim(entry.text("about"), entry.text("says"), entry.text("where"))
        if claim.about not in subjects and "about" in entry:
            entry.fail(unknown("subject", claim.about, subjects), "about")
        entry.close()
        claims.append(claim)
    return tuple(claims)
