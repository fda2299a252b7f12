"""Patient records as a finite product space: names and levels on one side, record indices on the other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import pandas as pd

Level: TypeAlias = str | int
IntArray: TypeAlias = NDArray[np.intp]
BINARY: tuple[Level, ...] = (0, 1)


@dataclass(frozen=True)
class Feature:
    """One feature of a record.

    Attributes
    ----------
    name : str
        The column name in data frames.
    levels : tuple of str or int
        Its possible values, in order.
    flag : bool
        Whether the levels 0 and 1 mean absent and present, so that words need only name what is present.
    words : tuple of str
        What a patient with each level is called, as "never smoked"; empty where the name and the level say it.
    cuts : tuple of float
        Where levels are bins of a number: the rising numbers at which all but the first bin begin. Else empty.
    unknown : tuple of str
        Values of its column that mean unknown: they count as missing.
    """

    name: str
    levels: tuple[Level, ...] = BINARY
    flag: bool = False
    words: tuple[str, ...] = ()
    cuts: tuple[float, ...] = ()
    unknown: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the levels."""
        if len(self.levels) < 2 or len(set(self.levels)) != len(self.levels):
            raise ValueError(f"feature {self.name!r} needs at least two distinct levels, got {list(self.levels)!r}.")

    def in_words(self, level: str) -> str:
        """What a patient is called who has a level, given as text.

        Examples
        --------
        >>> Feature("dose", ("low", "high")).in_words("low"), Feature("on_trial", flag=True).in_words("0")
        ('dose low', 'not on trial')
        >>> Feature("sex", (0, 1), words=("male", "female")).in_words("1")
        'female'
        """
        name = self.name.replace("_", " ")
        if self.words:
            return self.words[[str(each) for each in self.levels].index(level)]
        return {"0": f"not {name}", "1": name}[level] if self.flag else f"{name} {level}"

    def code(self, level: Level) -> int:
        """The position of a level; ValueError if there is no such level."""
        if level not in self.levels:
            raise ValueError(f"{self.name} must be one of {list(self.levels)!r}, got {level!r}.")
        return self.levels.index(level)


@dataclass(frozen=True)
class RecordSpace:
    """All records over some features, numbered in C order: the last feature varies fastest.

    Attributes
    ----------
    features : tuple of Feature
        In the order of the record.
    names : tuple of str
        Those of the features, in order.
    shape : tuple of int
        The number of levels of each feature.
    size : int
        The number of records.
    """

    features: tuple[Feature, ...]
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    shape: tuple[int, ...] = field(init=False, repr=False, compare=False)
    size: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the names, and keep what follows from the features."""
        names = tuple(feature.name for feature in self.features)
        if len(set(names)) != len(names) or not names:
            raise ValueError(f"features must have distinct names, got {list(names)!r}.")
        shape = tuple(len(feature.levels) for feature in self.features)
        for attribute, value in {"names": names, "shape": shape, "size": math.prod(shape)}.items():
            object.__setattr__(self, attribute, value)

    def axis(self, name: str) -> int:
        """The position of a feature; ValueError if there is no such feature."""
        if name not in self.names:
            raise ValueError(f"unknown feature {name!r}; known: {', '.join(self.names)}.")
        return self.names.index(name)

    def feature(self, name: str) -> Feature:
        """A feature by name; ValueError if there is no such feature."""
        return self.features[self.axis(name)]

    def along(self, name: str, values: ArrayLike) -> NDArray[np.float64]:
        """One value per level of a feature, shaped to broadcast over the grid of all records."""
        shape = [1] * len(self.shape)
        shape[self.axis(name)] = -1
        return np.asarray(values, dtype=np.float64).reshape(shape)

    def codes(self, records: ArrayLike) -> IntArray:
        """Level codes of record indices: (m,) -> (m, n_features)."""
        index = np.asarray(records, dtype=np.intp)
        if index.size and (index.min() < 0 or index.max() >= self.size):
            raise ValueError(f"record indices must be in [0, {self.size}), got {index.min()} to {index.max()}.")
        return np.column_stack(np.unravel_index(index, self.shape))

    def indices(self, codes: ArrayLike) -> IntArray:
        """Record indices of level codes: (m, n_features) -> (m,)."""
        columns = np.asarray(codes, dtype=np.intp)
        return np.asarray(np.ravel_multi_index(tuple(columns.T), self.shape), dtype=np.intp)

    def decode(self, records: ArrayLike) -> pd.DataFrame:
        """A data frame with one row per record index and one column per feature."""
        import pandas as pd  # noqa: PLC0415 - half a second that most uses of this module do not need

        codes = self.codes(records)
        columns = {}
        for axis, feature in enumerate(self.features):
            # Text and numbers together would all become text.
            mixed = len({type(level) for level in feature.levels}) > 1
            columns[feature.name] = np.asarray(feature.levels, dtype=object if mixed else None)[codes[:, axis]]
        return pd.DataFrame(columns)

    def record(self, values: Mapping[str, Any]) -> int:
        """The index of one record; features that are not named have their first level."""
        for name in values:
            self.axis(name)
        index = 0
        for feature in self.features:
            code = feature.code(values.get(feature.name, feature.levels[0]))
            index = index * len(feature.levels) + code
        return index

    def describe(self, record: int) -> str:
        """One record in words: the flags that are present, then the value of every other feature."""
        codes = self.codes([record])[0]
        pairs = list(zip(self.features, codes, strict=True))
        present = [feature.in_words("1") for feature, code in pairs if feature.flag and code == 1]
        valued = [feature.in_words(str(feature.levels[code])) for feature, code in pairs if not feature.flag]
        if not present and any(feature.flag for feature in self.features):
            present = ["nothing present"]
        return ", ".join([*present, *valued])

    def groups(self, feature: str) -> tuple[IntArray, tuple[str, ...]]:
        """The level of each record, (n_records,), and the labels of the levels."""
        axis = self.axis(feature)
        inner = math.prod(self.shape[axis + 1 :])
        outer = math.prod(self.shape[:axis])
        codes = np.tile(np.repeat(np.arange(self.shape[axis]), inner), outer)
        return codes, tuple(str(level) for level in self.features[axis].levels)


@dataclass(frozen=True, eq=False)
class Lookup:
    """Entries for some records of arrays that broadcast over the grid of records.

    Attributes
    ----------
    codes : array of int, (m, n_features)
        Level codes of the records (`RecordSpace.codes`).
    """

    codes: NDArray[np.signedinteger[Any]]
    _places: dict[tuple[int, ...], IntArray] = field(default_factory=dict, init=False)

    def of(self, grid: NDArray[Any]) -> NDArray[Any]:
        """The entry of each record, (m,)."""
        # Arrays that depend on the same features are looked up in the same places.
        if grid.shape not in self._places:
            axes = [axis for axis, length in enumerate(grid.shape) if length > 1]
            lengths, columns = [grid.shape[axis] for axis in axes], tuple(self.codes[:, axes].T)
            alone = np.zeros(len(self.codes), dtype=np.intp)
            self._places[grid.shape] = np.ravel_multi_index(columns, lengths) if axes else alone
        return grid.ravel()[self._places[grid.shape]]


def record_space(levels: Mapping[str, Sequence[Level]]) -> RecordSpace:
    """A record space from feature names and their levels, in order."""
    return RecordSpace(tuple(Feature(name, tuple(values)) for name, values in levels.items()))
