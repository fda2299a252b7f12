"""Whether policies keep what they claim: the exact privacy loss beside the claimed one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from policies.adjacency import AnyRecord, Sensitive
from policysim.audit import Finding, audit, audit_document, audit_table, exceeds, table_adjacency
from policysim.audit_screen import audit_screen, table_heading
from policysim.console import EXIT_CHECK
from policysim.probability_table import read_probability_table
from policysim.problem import build_problem
from policysim.question.answer import Answer
from policysim.question.progress import Progress
from policysim.question.question import UsageError
from policysim.study import Study
from policysim.words import hidden


@dataclass(frozen=True)
class AuditQuestion:
    """Audit the policies of a study.

    Attributes
    ----------
    study : Study
        Policies, epsilons and adjacency.
    """

    study: Study
    refuses: ClassVar[Mapping[str, str]] = {"actions": "only goes with --table"}
    unit: ClassVar[str] = "run"
    writes: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The study's."""
        return self.study.name

    def answer(self, progress: Progress) -> Answer:
        """Exactly, over all pairs of neighbours."""
        study, problem = self.study, build_problem(self.study)
        heading = [
            study.title,
            f"Hidden: {hidden(study)}. {problem.n_records:,} records, {problem.n_actions} actions; exact, over all "
            "pairs.",
        ]
        about = {"study": study.name, "adjacency": study.adjacency, "sensitive": list(study.sensitive)}
        return _answer(audit(problem, study.policies, study.epsilons, progress), heading, about)


@dataclass(frozen=True)
class TableAuditQuestion:
    """Audit probabilities that were made elsewhere.

    Attributes
    ----------
    path : Path
        A CSV file with a row for each record.
    actions : tuple of str or None
        Its action columns; None for those that are named p_<action>.
    adjacency : str or None
        A name; None for any-record, or sensitive if there are hidden features.
    sensitive : tuple of str
        Hidden features.
    claimed : float or None
        The loss that is claimed.
    """

    path: Path
    actions: tuple[str, ...] | None
    adjacency: str | None
    sensitive: tuple[str, ...]
    claimed: float | None
    refuses: ClassVar[Mapping[str, str]] = {"policy": "does not go with --table: the table is the policy"}
    unit: ClassVar[str] = "run"
    writes: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The table's."""
        return self.path.stem

    def answer(self, progress: Progress) -> Answer:
        """Read the table, and compare its rows."""
        table = read_probability_table(self.path, None if self.actions is None else list(self.actions))
        name = self.adjacency or (Sensitive.name if self.sensitive else AnyRecord.name)
        try:
            adjacency = table_adjacency(table, name, list(self.sensitive))
        except ValueError as error:
            raise UsageError(str(error)) from None
        about = {"table": str(self.path), "adjacency": name, "sensitive": list(self.sensitive)}
        return _answer(audit_table(table, adjacency, self.claimed), table_heading(table, adjacency), about)


def _answer(findings: Sequence[Finding], heading: Sequence[str], about: Mapping[str, object]) -> Answer:
    return Answer(
        screen=audit_screen(list(findings), list(heading)),
        document={**about, **audit_document(list(findings))},
        exit_code=EXIT_CHECK if exceeds(list(findings)) else 0,
    )
