"""Whose rows they are: how many rows of a person count, so that epsilon hides all of them, and who is charged."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np

from policies.arrays import BoolArray, IntArray
from policies.levels import MISSING_WORDS
from policysim.files.bad_rows import BadRows, DataError, PlacedRows
from policysim.question.extras import optional

with optional():
    import pyarrow as pa
    import pyarrow.compute as pc

DIGEST_BYTES = 16


def id_text(value: object) -> str:
    """An id as the text by which a person is known again: without margins, a whole number without a point.

    "" for what is missing, also by a word such as NA.

    Examples
    --------
    >>> [id_text(value) for value in (7.0, " 007", None, "n/a")]
    ['7', '007', '', '']
    """
    if value is None:
        return ""
    if isinstance(value, float | np.floating) and value.is_integer():
        value = int(value)
    text = str(value).strip()
    if text.lower() in MISSING_WORDS or text == "NaT":
        return ""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def short_digest(text: str) -> bytes:
    """By what an id is known again within one run."""
    return blake2b(text.encode(errors="surrogatepass"), digest_size=DIGEST_BYTES).digest()


@dataclass
class People:
    """Counts the rows of each person while files are read; of each the first ones are kept.

    Parameters
    ----------
    id : str
        The column that names people; "" where each row is a person.
    rows_each : int or None
        How many rows of a person are kept, in the order of the file; by which rows does not depend on what they hold.
        None refuses an id that repeats.
    suspects : mapping of str to bool
        Where no id is named: columns whose names are those of ids, which must not repeat; whether of patients' own.
    digest : callable
        Of an id, (16 bytes): all that is kept of it.
    """

    id: str = ""
    rows_each: int | None = None
    suspects: Mapping[str, bool] = field(default_factory=dict)
    digest: Callable[[str], bytes] = short_digest
    _rows: dict[str, dict[bytes, int]] = field(default_factory=dict)
    _repeated: set[str] = field(default_factory=set)

    @property
    def columns(self) -> list[str]:
        """What must be read of a file beside what is released."""
        return [self.id] if self.id else [*self.suspects]

    @property
    def most(self) -> int:
        """How many rows a person has at most among those that are kept."""
        return self.rows_each or 1

    @property
    def digests(self) -> Collection[bytes]:
        """Of everybody who was named."""
        return self._rows.get(self.id, {}).keys() if self.id else ()

    def keep(
        self, table: PlacedRows, bad: BadRows, columns: Mapping[str, pa.Array], *, before: int = 0
    ) -> BoolArray | None:
        """Which rows of a part of a table count, (n,); None for all of them. Rows without an id are bad."""
        kept = None
        for name in self.columns:
            rows = self._rows.setdefault(name, {})
            if name in self._repeated and not rows:
                continue
            codes, texts = _encoded(columns[name])
            ranks = self._ranks(rows, codes, texts)
            if ranks.max(initial=0) > 0:
                self._repeated.add(name)
            if self.id:
                bad.add(table, codes < 0, name, lambda _: "is missing", before=before)
                kept = ranks < self.most
            elif name in self._repeated and len(rows) > 1:
                rows.clear()  # they may be many, and are not needed any more
        return kept

    def _ranks(self, rows: dict[bytes, int], codes: IntArray, texts: list[str]) -> IntArray:
        """How many rows of the same id stand before each row, (n,); 0 for rows without one."""
        order = np.argsort(codes, kind="stable")
        values, starts, counts = np.unique(codes[order], return_index=True, return_counts=True)
        seen = np.zeros(len(values), dtype=np.intp)
        for place, (value, count) in enumerate(zip(values.tolist(), counts.tolist(), strict=True)):
            if value >= 0:
                digest = self.digest(texts[value])
                seen[place] = rows.get(digest, 0)
                rows[digest] = int(seen[place]) + count
        ranks = np.empty(len(codes), dtype=np.intp)
        ranks[order] = np.arange(len(codes)) - np.repeat(starts - seen, counts)
        return np.where(codes < 0, 0, ranks)

    def check(self, name: str) -> None:
        """DataError if an id repeats, and nobody said how many rows of a person count."""
        # What has one value in all rows names nobody.
        again = [column for column in self.columns if column in self._repeated and (self.id or not self._rows[column])]
        if not self.id and len(again) < len(self.suspects):  # beside the patients' own a site's may repeat
            again = [column for column in again if self.suspects[column]]
        if again and self.rows_each is None:
            none = "" if self.id else "; or --id none, if each row is a person all the same"
            raise DataError(
                f"{name}: {again[0]} repeats, so that epsilon would hide one row of a person and not the others: type "
                f"--id {again[0]} --rows-per-person N, by which the first N rows of each count{none}"
            )


def _encoded(column: pa.Array) -> tuple[IntArray, list[str]]:
    """The place of each row's value among texts, (n,): -1 where it is missing."""
    values = column.dictionary_encode()
    texts = list(map(id_text, values.dictionary.to_pylist()))
    empty = np.array([not text for text in texts] + [True])
    codes = pc.fill_null(values.indices, len(texts)).to_numpy(zero_copy_only=False).astype(np.intp)
    return np.where(empty[codes], -1, codes), texts
