"""Whose rows they are: how many rows of a person count, so that epsilon hides all of them, and who is charged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np

from policies.arrays import BoolArray, IntArray, Words
from policysim.files.bad_rows import BadRows, DataError, PlacedRows
from policysim.question.extras import optional
from policysim.release.ledger import id_text

with optional():
    import pyarrow as pa
    import pyarrow.compute as pc
    from pandas.util import hash_array

DIGEST_BYTES = 16


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
    _rows: dict[bytes, int] = field(default_factory=dict)
    _seen: dict[str, list[Words]] = field(default_factory=dict)
    _n_rows: Counter[str] = field(default_factory=Counter)
    _repeated: set[str] = field(default_factory=set)

    @property
    def columns(self) -> list[str]:
        """What must be read of a file beside what is released."""
        return [self.id] if self.id else [*self.suspects]

    @property
    def digests(self) -> Collection[bytes]:
        """Of everybody who was named."""
        return self._rows.keys()

    def keep(
        self, table: PlacedRows, bad: BadRows, columns: Mapping[str, pa.Array], *, before: int = 0
    ) -> BoolArray | None:
        """Which rows of a part of a table count, (n,); None for all of them. Rows without an id are bad."""
        for name in self.suspects:
            if name not in self._repeated:
                self._look(name, columns[name])
        if not self.id:
            return None
        codes, texts = _encoded(columns[self.id])
        bad.add(table, codes < 0, self.id, lambda _: "is missing", before=before)
        ranks = self._ranks(codes, texts)
        return None if self.rows_each is None else ranks < self.rows_each

    def _ranks(self, codes: IntArray, texts: list[str]) -> IntArray:
        """How many rows of the same id stand before each row, (n,)."""
        order = np.argsort(codes, kind="stable")
        values, starts, counts = np.unique(codes[order], return_index=True, return_counts=True)
        seen = np.zeros(len(values), dtype=np.intp)
        for place, (value, count) in enumerate(zip(values.tolist(), counts.tolist(), strict=True)):
            if value >= 0:
                digest = self.digest(texts[value])
                seen[place] = self._rows.get(digest, 0)
                self._rows[digest] = int(seen[place]) + count
                if seen[place] + count > 1:
                    self._repeated.add(self.id)
        ranks = np.empty(len(codes), dtype=np.intp)
        ranks[order] = np.arange(len(codes)) - np.repeat(starts - seen, counts)
        return ranks

    def _look(self, name: str, column: pa.Array) -> None:
        """Remember the values of a suspect, 8 bytes of each, until one repeats."""
        texts = column.drop_null().cast(pa.large_string())
        texts = texts.filter(pc.not_equal(texts, ""))
        values = texts.unique()
        if 1 < len(values) < len(texts):
            self._repeated.add(name)
            self._seen.pop(name, None)
        elif len(values):
            self._n_rows[name] += len(texts)
            self._seen.setdefault(name, []).append(hash_array(values.to_numpy(zero_copy_only=False)))

    def check(self, name: str) -> None:
        """DataError if an id repeats, and nobody said how many rows of a person count."""
        for column, parts in self._seen.items():
            ordered = np.sort(np.concatenate(parts))  # np.unique would take ten times as long
            n_values = 1 + np.count_nonzero(ordered[1:] != ordered[:-1])
            if 1 < n_values < self._n_rows[column]:  # what has one value in all rows names nobody
                self._repeated.add(column)
        again = [column for column in self.columns if column in self._repeated]
        if len(again) < len(self.suspects):  # beside the patients' own a site's may repeat
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
