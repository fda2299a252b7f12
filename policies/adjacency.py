"""Adjacency: which two records must be hard to tell apart.

An adjacency is a list of *partitions* of the records into cliques: two records are neighbours if some partition
puts them into the same clique. Any-record has one clique; sensitive features have one clique per public part of
the record; one-feature has one partition per feature. Everything that this package asks of neighbours is then a
maximum and a minimum within cliques, so no function ever loops over pairs of records.

Over all records a table is reshaped to their grid. The rows of somebody's own table (`Listed`) have gaps and may hold a
record twice, so their cliques differ in size; they are kept as one sorted order of the rows and the starts of its runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from policies.arrays import BLOCK, FloatArray, Frozen, IntArray, blocks, read_only

Number = TypeVar("Number", np.float64, np.int64)


@dataclass(frozen=True)
class Partition:
    """A split of the records into cliques of equal size: records that agree outside `axes` share a clique."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]

    @property
    def whole(self) -> bool:
        """Whether all records are in one clique: they differ in nothing else."""
        return all(axis in self.axes or levels == 1 for axis, levels in enumerate(self.shape))

    @property
    def n_pairs(self) -> int:
        """How many pairs of places the cliques of `lines` have."""
        size = math.prod(self.shape[axis] for axis in self.axes)
        return math.prod(self.shape) * (size - 1) // 2

    def document(self) -> dict[str, list[int]]:
        """The split for JSON: `shape` and `axes`."""
        return {"shape": list(self.shape), "axes": list(self.axes)}

    def extremes(self, column: NDArray[Number]) -> tuple[NDArray[Number], NDArray[Number]]:
        """The smallest and the largest entry of each clique; `column` is (n_records,), the results (n_cliques,)."""
        grid = column.reshape(self.shape)
        return grid.min(axis=self.axes).ravel(), grid.max(axis=self.axes).ravel()

    def widest(self, column: FloatArray) -> tuple[float, int]:
        """The largest difference within a clique, and the first clique that attains it; `column` is (n_records,).

        -inf against -inf counts as no difference.
        """
        if len(self.axes) != 1:
            return self._widest_clique(column)
        # Lines along one axis, in blocks that stay in a processor's cache.
        grid = self.lines(column)
        inner = grid.shape[2]
        widest, clique = -1.0, 0
        step = max(1, BLOCK // inner)
        for start in range(0, len(grid), step):
            for places in blocks(inner):
                low, *others = grid[start : start + step, :, places].transpose(1, 0, 2)
                high = low
                for level in others:
                    low, high = np.minimum(low, level), np.maximum(high, level)
                spread = _spread(low, high)
                place = int(spread.argmax())
                found = float(spread.ravel()[place])
                if found > widest:
                    line, within = divmod(place, spread.shape[1])
                    widest, clique = found, (start + line) * inner + places.start + within
        return widest, clique

    def _widest_clique(self, column: FloatArray) -> tuple[float, int]:
        spread = _spread(*self.extremes(column))
        clique = int(spread.argmax())
        return float(spread[clique]), clique

    def members(self, clique: int) -> IntArray:
        """The record indices of one clique, in the order of the records."""
        public = [axis for axis in range(len(self.shape)) if axis not in self.axes]
        place = np.unravel_index(clique, tuple(self.shape[axis] for axis in public))
        index: list[slice | int] = [slice(None)] * len(self.shape)
        for axis, level in zip(public, place, strict=True):
            index[axis] = int(level)
        records = np.arange(math.prod(self.shape)).reshape(self.shape)
        return records[tuple(index)].ravel()

    def by_clique(self, column: NDArray[Any]) -> NDArray[Any]:
        """The column as (n_cliques, clique_size)."""
        last = tuple(range(len(self.shape) - len(self.axes), len(self.shape)))
        grid = np.moveaxis(column.reshape(self.shape), self.axes, last)
        return grid.reshape(-1, math.prod(self.shape[axis] for axis in self.axes))

    def lines(self, column: NDArray[Any]) -> NDArray[Any]:
        """The column as (outer, clique_size, inner): [i, :, j] is clique i * inner + j. A view along one axis."""
        if len(self.axes) > 1:
            return self.by_clique(column)[:, :, None]
        (axis,) = self.axes
        return column.reshape(-1, self.shape[axis], math.prod(self.shape[axis + 1 :]))


class Adjacency(Protocol):
    """What the rest of the package needs to know about neighbours."""

    @property
    def name(self) -> str:
        """The name used in study files and tables."""

    def partitions(self, n_records: int) -> tuple[Partition, ...]:
        """The partitions of `n_records` records; ValueError if the adjacency is for another number of records."""


def require_adjacency(adjacency: object) -> Adjacency:
    """The same adjacency; ValueError for something else, such as its name or its class."""
    if isinstance(adjacency, type) or not hasattr(adjacency, "partitions"):
        raise ValueError(
            f"adjacency must be AnyRecord(), OneFeature(shape) or Sensitive(shape, axes), got {adjacency!r}."
        )
    return adjacency  # type: ignore[return-value]  # a protocol, just checked


@dataclass(frozen=True)
class AnyRecord:
    """Any two records are neighbours (the local model): the action hides the whole record."""

    name: ClassVar[str] = "any-record"

    def partitions(self, n_records: int) -> tuple[Partition, ...]:
        """One clique of all records."""
        return (Partition((n_records,), (0,)),)


@dataclass(frozen=True)
class OneFeature:
    """Records that differ in exactly one feature are neighbours.

    Parameters
    ----------
    shape : tuple of int
        Levels of each feature; records are numbered in C order over this shape.
    """

    shape: tuple[int, ...]
    name: ClassVar[str] = "one-feature"

    def __post_init__(self) -> None:
        """Check the shape."""
        object.__setattr__(self, "shape", _checked_shape(self.shape))

    def partitions(self, n_records: int) -> tuple[Partition, ...]:
        """One partition per feature: the cliques are the lines along its axis."""
        _check_size(self.shape, n_records)
        return tuple(Partition(self.shape, (axis,)) for axis in range(len(self.shape)))


@dataclass(frozen=True)
class Sensitive:
    """Records that agree on every other feature are neighbours: only the features on `axes` are hidden.

    Parameters
    ----------
    shape : tuple of int
        Levels of each feature; records are numbered in C order over this shape.
    axes : tuple of int
        The hidden features; the others are public.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    name: ClassVar[str] = "sensitive"

    def __post_init__(self) -> None:
        """Check shape and axes."""
        object.__setattr__(self, "shape", _checked_shape(self.shape))
        axes = tuple(sorted(int(axis) for axis in self.axes))
        if not axes or len(set(axes)) != len(axes) or axes[0] < 0 or axes[-1] >= len(self.shape):
            raise ValueError(
                f"axes must be distinct axes of a shape with {len(self.shape)} features, got axes={tuple(self.axes)!r}."
            )
        object.__setattr__(self, "axes", axes)

    def partitions(self, n_records: int) -> tuple[Partition, ...]:
        """One clique per public part of the record."""
        _check_size(self.shape, n_records)
        return (Partition(self.shape, self.axes),)


@dataclass(frozen=True)
class Difference:
    """The largest difference of one column over neighbours, with the two records that attain it."""

    value: float
    record: int
    neighbour: int


def largest_difference(column: FloatArray, adjacency: Adjacency) -> Difference:
    """max over neighbours (x, x') of column[x] - column[x'].

    Parameters
    ----------
    column : array, (n_records,)
        May hold -inf (the logarithm of a probability of 0): -inf against -inf counts as no difference.
    adjacency : Adjacency
        Which records are neighbours.

    Returns
    -------
    Difference
        `record` attains the larger entry. A record stands beside itself where no neighbours differ.
    """
    best = Difference(0.0, 0, 0)
    for partition in adjacency.partitions(len(column)):
        if partition.whole:
            # The usual case, and twice as fast as the general one below.
            record, neighbour = int(column.argmax()), int(column.argmin())
            value = float(column[record] - column[neighbour]) if column[record] > -np.inf else 0.0
            best = Difference(value, record, neighbour) if value > best.value else best
            continue
        spread, clique = partition.widest(column)
        if spread > best.value:
            members = partition.members(clique)
            entries = column[members]
            best = Difference(spread, int(members[entries.argmax()]), int(members[entries.argmin()]))
    return best


def public_classes(adjacency: Adjacency, n_records: int) -> IntArray:
    """The records that are hidden among each other, as numbers of their classes from 0, (n_records,).

    Two records are of one class if a chain of neighbours leads from one to the other: an observer who knows all that
    is public of a patient knows the class, and no more. Under any-record and one-feature there is one class; under
    sensitive, records that agree in all public features are one.

    Examples
    --------
    >>> public_classes(Sensitive((2, 3), (1,)), 6).tolist(), public_classes(OneFeature((2, 3)), 6).tolist()
    ([0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0])
    """
    if isinstance(adjacency, AnyRecord | OneFeature):
        return np.zeros(n_records, dtype=np.intp)
    first, before = np.arange(n_records), np.full(n_records, -1)
    while not np.array_equal(first, before):
        before = first.copy()
        for partition in adjacency.partitions(n_records):
            cliques = partition.by_clique(np.arange(n_records))
            first[cliques] = first[cliques].min(axis=1, keepdims=True)
    return _numbered(first)


def _spread(low: FloatArray, high: FloatArray) -> FloatArray:
    """High - low, of the same shape; 0 where both are -inf."""
    with np.errstate(invalid="ignore"):
        spread: FloatArray = high - low
    if np.isnan(spread.max(initial=0.0)):
        spread[high == -np.inf] = 0.0
    return spread


def _checked_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    checked = tuple(int(levels) for levels in shape)
    if not checked or min(checked) < 1:
        raise ValueError(f"shape must list a positive number of levels per feature, got shape={shape!r}.")
    return checked


def _check_size(shape: tuple[int, ...], n_records: int) -> None:
    if math.prod(shape) != n_records:
        raise ValueError(
            f"the adjacency is over {math.prod(shape)} records (shape {shape}), the table has {n_records} rows."
        )


# Keys of rows stay below this and so never overflow.
LARGEST_KEY = 1 << 62


@dataclass(frozen=True, eq=False)
class ListedPartition(Frozen, Partition):
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

    def extremes(self, column: NDArray[Number]) -> tuple[NDArray[Number], NDArray[Number]]:
        """The smallest and the largest entry of each clique; `column` is (n_rows,), the results (n_cliques,)."""
        ordered = column[self.order]
        low: NDArray[Number] = np.minimum.reduceat(ordered, self.starts)
        high: NDArray[Number] = np.maximum.reduceat(ordered, self.starts)
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
class Listed(Frozen):
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
        vars(self).update(codes=read_only(table), hidden=sets, name=name)

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
        return read_only(found)

    @cached_property
    def _partitions(self) -> tuple[ListedPartition, ...]:
        # Levels are numbered from 0 without gaps, so that keys of several features stay small.
        columns, n_rows = [_numbered(column) for column in self.codes.T], len(self.codes)
        partitions = []
        for features in self.hidden:
            # Rows that agree on all public columns share a clique.
            key, n_keys = np.zeros(n_rows, dtype=np.intp), 1
            for column in (column for feature, column in enumerate(columns) if feature not in features):
                n_levels = int(column.max()) + 1
                if n_keys * n_levels > LARGEST_KEY:
                    key = _numbered(key)
                    n_keys = int(key.max()) + 1
                key = key * n_levels + column
                n_keys *= n_levels
            order: IntArray = np.argsort(key, kind="stable")
            starts: IntArray = np.flatnonzero(np.diff(key[order], prepend=-1))
            partitions.append(ListedPartition((n_rows,), (0,), read_only(order), read_only(starts)))
        return tuple(partitions)


def _width(codes: ArrayLike) -> int:
    shape = np.shape(codes)
    return shape[1] if len(shape) == 2 else 0


def _numbered(column: IntArray) -> IntArray:
    """The rank of each entry among the distinct ones."""
    ranks: IntArray = np.unique(column, return_inverse=True)[1]
    return ranks
