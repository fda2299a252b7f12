"""Adjacency over a list of records that need not be all of them: the rows of somebody's table.

The adjacencies of `policies.adjacency` reshape a table to the grid of all records. A list has gaps and may hold a
record twice, so its cliques differ in size; they are kept as one sorted order of the rows and the starts of its runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from policies.adjacency import AnyRecord, OneFeature, Partition, Sensitive
from policies.arrays import FloatArray, IntArray

# Keys of rows stay below this and so never overflow.
LARGEST_KEY = 1 << 62


@dataclass(frozen=True, eq=False)
class ListedPartition(Partition):
    """A split of listed rows into cliques of any sizes.

    To code that only knows grids (`shape`, `axes`) it is a single clique of all rows: the strictest one there is, so
    that such code errs on the safe side.

    Parameters
    ----------
    order : array, (n_rows,)
        The rows, clique after clique, rising within each.
    starts : array, (n_cliques,)
        Where each clique begins in `order`.
    """

    order: IntArray
    starts: IntArray

    # Shape and axes are the same for all: what is known of one of them must not be taken for another's.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    @property
    def whole(self) -> bool:
        """Whether all rows are in one clique."""
        return len(self.starts) == 1

    @property
    def sizes(self) -> IntArray:
        """The number of rows of each clique, (n_cliques,)."""
        return np.diff(self.starts, append=len(self.order))

    @property
    def n_pairs(self) -> int:
        """How many pairs of places the cliques of `lines` have, smaller cliques counted as the largest."""
        size = int(self.sizes.max())
        return len(self.starts) * size * (size - 1) // 2

    def document(self) -> dict[str, list[int]]:
        """The split for JSON: `cliques`, the clique of each row."""
        cliques = np.empty(len(self.order), dtype=np.intp)
        cliques[self.order] = np.repeat(np.arange(len(self.starts)), self.sizes)
        return {"cliques": cliques.tolist()}

    def extremes(self, column: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The smallest and the largest entry of each clique; `column` is (n_rows,), the results (n_cliques,)."""
        ordered = column[self.order]
        low: FloatArray = np.minimum.reduceat(ordered, self.starts)
        high: FloatArray = np.maximum.reduceat(ordered, self.starts)
        return low, high

    def widest(self, column: FloatArray) -> tuple[float, int]:
        """The largest difference within a clique, and the first clique that attains it; `column` is (n_rows,)."""
        return self._widest_clique(column)

    def members(self, clique: int) -> IntArray:
        """The rows of one clique, rising."""
        start = self.starts[clique]
        return self.order[start : start + self.sizes[clique]]

    def by_clique(self, column: NDArray[Any]) -> NDArray[Any]:
        """The column as (n_cliques, largest clique size); smaller cliques repeat their last row."""
        sizes = self.sizes
        place = self.starts[:, None] + np.minimum(np.arange(sizes.max()), sizes[:, None] - 1)
        return column[self.order[place]]

    def lines(self, column: NDArray[Any]) -> NDArray[Any]:
        """`by_clique` as (n_cliques, largest clique size, 1)."""
        return self.by_clique(column)[:, :, None]


@dataclass(frozen=True, eq=False)
class Listed:
    """Rows of a list that agree on every feature outside one of the hidden sets are neighbours.

    Two rows of the same record are neighbours under every hidden set. Records that are not listed are nobody's
    neighbours: what holds for the list need not hold for the whole domain.

    Parameters
    ----------
    codes : array, (n_rows, n_features)
        The level of each feature, as integers of any size.
    hidden : sequence of sequences of int
        Sets of features, by column of `codes`. Use `any_record`, `one_feature` and `sensitive` for the usual ones.
    name : str
        The name used in study files and tables.

    Raises
    ------
    ValueError
        For codes that are not a table with at least one row, or hidden features that are no columns of it.

    Examples
    --------
    >>> [len(partition.starts) for partition in Listed.one_feature([[0, 0], [0, 1], [1, 1]]).partitions(3)]
    [2, 2]
    """

    codes: IntArray
    hidden: tuple[tuple[int, ...], ...]
    name: str

    def __init__(self, codes: ArrayLike, hidden: Sequence[Sequence[int]], name: str) -> None:
        """Check and keep a copy."""
        table: IntArray = np.array(codes, dtype=np.intp)
        if table.ndim != 2 or not len(table):
            raise ValueError(f"codes must be (n_rows, n_features) with n_rows >= 1, got shape {table.shape}.")
        sets = tuple(tuple(sorted({int(feature) for feature in features})) for features in hidden)
        for features in sets:
            if not all(0 <= feature < table.shape[1] for feature in features):
                raise ValueError(f"hidden must name features in [0, {table.shape[1]}), got {features!r}.")
        table.flags.writeable = False
        object.__setattr__(self, "codes", table)
        object.__setattr__(self, "hidden", sets)
        object.__setattr__(self, "name", name)

    @classmethod
    def any_record(cls, codes: ArrayLike) -> Listed:
        """Any two rows are neighbours."""
        return cls(codes, (range(_width(codes)),), AnyRecord.name)

    @classmethod
    def one_feature(cls, codes: ArrayLike) -> Listed:
        """Rows that differ in at most one feature are neighbours."""
        return cls(codes, [(feature,) for feature in range(_width(codes))], OneFeature.name)

    @classmethod
    def sensitive(cls, codes: ArrayLike, features: Sequence[int]) -> Listed:
        """Rows that agree on every other feature are neighbours."""
        return cls(codes, (features,), Sensitive.name)

    def partitions(self, n_records: int) -> tuple[ListedPartition, ...]:
        """One partition per hidden set; ValueError if the table has another number of rows."""
        if n_records != len(self.codes):
            raise ValueError(f"the adjacency lists {len(self.codes)} records, the table has {n_records} rows.")
        return self._partitions

    @cached_property
    def has_neighbour(self) -> NDArray[np.bool_]:
        """Whether each row has another row as its neighbour, (n_rows,)."""
        found = np.zeros(len(self.codes), dtype=np.bool_)
        for partition in self._partitions:
            found[partition.order] |= np.repeat(partition.sizes > 1, partition.sizes)
        return found

    @cached_property
    def _partitions(self) -> tuple[ListedPartition, ...]:
        # Levels are numbered from 0 without gaps, so that keys of several features stay small.
        columns = [_numbered(column) for column in self.codes.T]
        return tuple(
            _partition([column for feature, column in enumerate(columns) if feature not in features], len(self.codes))
            for features in self.hidden
        )


def _width(codes: ArrayLike) -> int:
    shape = np.shape(codes)
    return shape[1] if len(shape) == 2 else 0


def _partition(public: list[IntArray], n_rows: int) -> ListedPartition:
    """Rows that agree on all public columns share a clique."""
    key, n_keys = np.zeros(n_rows, dtype=np.intp), 1
    for column in public:
        n_levels = int(column.max()) + 1
        if n_keys * n_levels > LARGEST_KEY:
            key = _numbered(key)
            n_keys = int(key.max()) + 1
        key = key * n_levels + column
        n_keys *= n_levels
    order: IntArray = np.argsort(key, kind="stable")
    starts: IntArray = np.flatnonzero(np.diff(key[order], prepend=-1))
    return ListedPartition((n_rows,), (0,), order, starts)


def _numbered(column: IntArray) -> IntArray:
    """The rank of each entry among the distinct ones."""
    ranks: IntArray = np.unique(column, return_inverse=True)[1]
    return ranks
