"""What a problem knows about its records beyond their number: names for people, groups for tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from policies.arrays import IntArray


class Records(Protocol):
    """What a problem knows about its records beyond their number: names for people, groups for tables."""

    @property
    def names(self) -> tuple[str, ...]:
        """The features by which records can be grouped."""

    def describe(self, record: int) -> str:
        """One record in words."""

    def groups(self, feature: str) -> tuple[IntArray, tuple[str, ...]]:
        """The level of each record, (n_records,), and the labels of the levels; ValueError for an unknown feature."""


@dataclass(frozen=True)
class NumberedRecords:
    """Records without features: known by their row alone."""

    names: tuple[str, ...] = ()

    def describe(self, record: int) -> str:
        """Name the row."""
        return f"record {record}"

    def groups(self, feature: str) -> tuple[IntArray, tuple[str, ...]]:
        """There are none."""
        raise ValueError(f"unknown group {feature!r}: the problem has no features.")


@dataclass(frozen=True)
class SomeRecords:
    """Some of the records, under their own names and in their own groups."""

    records: Records
    rows: IntArray

    @property
    def names(self) -> tuple[str, ...]:
        """As of all records."""
        return self.records.names

    def describe(self, record: int) -> str:
        """As of all records."""
        return self.records.describe(int(self.rows[record]))

    def groups(self, feature: str) -> tuple[IntArray, tuple[str, ...]]:
        """As of all records."""
        codes, labels = self.records.groups(feature)
        return codes[self.rows], labels
