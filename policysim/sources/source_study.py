"""A study of a source document, read from its file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from envs.toml_reader import Table, open_toml, unknown
from policysim.sources.adult_age_sex import AdultAgeSex
from policysim.sources.common_disease import CommonDisease
from policysim.sources.engine import Findings
from policysim.sources.marital_status import MaritalStatus
from policysim.sources.sock_groups import SockGroups
from policysim.study.study_file import name_of_study


class Document(Protocol):
    """What a study file holds, and what follows from it."""

    def findings(self, seed: int) -> Findings:
        """All that a page shows; the seed is for what is drawn at random."""


DOCUMENTS: dict[str, Callable[[Table], Document]] = {
    "adult-age-sex": AdultAgeSex.read,
    "common-disease": CommonDisease.read,
    "marital-status": MaritalStatus.read,
    "sock-groups": SockGroups.read,
}


@dataclass(frozen=True)
class Subject:
    """What is asked about a source document, and the file that asks it."""

    name: str
    text: str  # the file: of a study, or a script
    title: str  # the question
    source: str  # what the source is
    analysis: str  # how it is answered: a name among `DOCUMENTS`, or of a script's report
    seed: int

    @property
    def digest(self) -> str:
        """SHA-256 of the file."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True)
class SourceStudy(Subject):
    """A study of a source document, as its file says."""

    document: Document

    def findings(self, seed: int | None = None) -> Findings:
        """What the study finds, with its own seed or another one."""
        return self.document.findings(self.seed if seed is None else seed)


def load_source_study(path: Path) -> SourceStudy:
    """Read a study of a source document.

    Raises
    ------
    InputFileError
        With one `file:line: key: message` line for each mistake.
    """
    with open_toml(path) as table:
        analysis = table.text("analysis")
        title, source, seed = table.text("title", path.stem), table.text("source"), table.integer("seed", 0)
        if analysis not in DOCUMENTS:
            table.fail(unknown("analysis", analysis, list(DOCUMENTS)), "analysis")
            table.mistakes.raise_if_any()
        document = DOCUMENTS[analysis](table)
        table.close()
        # Findings may only be computed from constants that are all there.
        table.mistakes.raise_if_any()
        return SourceStudy(name_of_study(path), table.mistakes.text, title, source, analysis, seed, document)
