"""Whose rows they are: how many rows of a person count, so that epsilon hides all of them, and who is charged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from policies.arrays import BoolArray, Words
from policysim.errors import optional
from policysim.files.bad_rows import BadRows, DataError, PlacedRows
from policysim.release.ledger import id_text

with optional():
    import pandas as pd
    import pyarrow as pa
    from pandas.util import hash_array


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
        Of an id, bytes by which a person is known again, and charged.
    """

    id: str = ""
    rows_each: int | None = None
    suspects: Mapping[str, bool] = field(default_factory=dict)
    digest: Callable[[str], bytes] = str.encode
    _rows: Counter[bytes] = field(default_factory=Counter, init=False)
    _hashes: dict[str, list[Words]] = field(default_factory=dict, init=False)

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
            texts = columns[name].drop_null().cast(pa.large_string()).to_numpy(zero_copy_only=False)
            self._hashes.setdefault(name, []).append(hash_array(texts[texts != ""]))
        if not self.id:
            return None
        ids = pd.Series(list(map(id_text, columns[self.id].to_pylist())), dtype=object)
        bad.add(table, (ids == "").to_numpy(), self.id, lambda _: "is missing", before=before)
        ids = ids[ids != ""]
        earlier = {}
        for text, count in ids.value_counts().items():
            digest = self.digest(str(text))
            earlier[text] = self._rows[digest]
            self._rows[digest] += count
        if self.rows_each is None:
            return None
        ranks = ids.groupby(ids).cumcount() + ids.map(earlier)
        kept: BoolArray = (ranks < self.rows_each).reindex(range(len(columns[self.id])), fill_value=False).to_numpy()
        return kept

    def check(self, name: str) -> None:
        """DataError if an id repeats, and nobody said how many rows of a person count."""
        again = list(filter(self._repeats, self.columns))
        if len(again) < len(self.suspects):  # beside the patients' own a site's may repeat
            again = [column for column in again if self.suspects[column]]
        if again and self.rows_each is None:
            none = "" if self.id else "; or --id none, if each row is a person all the same"
            raise DataError(
                f"{name}: {again[0]} repeats, so that epsilon would hide one row of a person and not the others: type "
                f"--id {again[0]} --rows-per-person N, by which the first N rows of each count{none}"
            )

    def _repeats(self, column: str) -> bool:
        """Whether a value of a column stands in several rows; a suspect with one value in all rows names nobody."""
        if self.id:
            return self._rows.total() > len(self._rows)
        hashes = np.concatenate(self._hashes.get(column, [np.array([], dtype=np.uint64)]))
        return 1 < len(pd.unique(hashes)) < len(hashes)
