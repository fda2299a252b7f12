"""The tables of a log: one, or three that are joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from policies.arrays import IntArray
from policysim.logs.bad_rows import BadRows, LogError
from policysim.logs.joining import check_ids, matching_rows
from policysim.logs.reading import LogTable
from policysim.logs.source import ACTIONS, FEATURES, OUTCOMES, TABLE


@dataclass(frozen=True, eq=False)
class LogTables:
    """The tables by role, and the column of ids that they share ("" for none)."""

    by_role: dict[str, LogTable]
    id: str

    @property
    def features(self) -> LogTable:
        """The table of covariates, whose order of rows is the log's."""
        return self._of(FEATURES)

    @property
    def actions(self) -> LogTable:
        """The table of treatments and propensities."""
        return self._of(ACTIONS)

    @property
    def outcomes(self) -> LogTable:
        """The table of outcomes."""
        return self._of(OUTCOMES)

    @property
    def are_three(self) -> bool:
        """Whether the tables are three."""
        return TABLE not in self.by_role

    def require(self, wanted: Sequence[tuple[LogTable, str]]) -> None:
        """LogError for each column that is not in its table; all tables need the ids."""
        wanted = [*wanted, *((table, self.id) for table in self.by_role.values() if self.id)]
        absent = [message for table, column in wanted if (message := table.unknown_column(column))]
        if absent:
            raise LogError("\n".join(absent))

    def matched(self, bad: BadRows) -> tuple[IntArray, IntArray]:
        """The rows of actions and of outcomes that belong to each row of the features.

        Raises
        ------
        LogError
            If there are bad rows, whichever check found them.
        """
        ids = check_ids(self.by_role, self.id, bad) if self.id else {}
        bad.raise_if_any()
        rows = matching_rows(self.by_role, ids)
        return (rows[ACTIONS], rows[OUTCOMES]) if self.are_three else (rows[TABLE], rows[TABLE])

    def _of(self, role: str) -> LogTable:
        return self.by_role[role if self.are_three else TABLE]
