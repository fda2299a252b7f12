"""The studies of source documents: the analyses by name, and a study file read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envs.toml_reader import Table, open_toml, unknown
from policysim.sources import (
    adult_age_sex,
    adult_age_sex_findings,
    common_disease,
    common_disease_findings,
    learning,
    learning_findings,
    marital_status,
    marital_status_findings,
    randomise_or_decide,
    randomise_or_decide_findings,
    sock_groups,
    sock_groups_findings,
)
from policysim.sources.model import Findings


@dataclass(frozen=True)
class Analysis:
    """How a study of a source is read and computed.

    Attributes
    ----------
    read : callable
        From the table of the study file to the analysis's own constants; mistakes are noted in the table.
    analyse : callable
        From the constants and the seed to what was found.
    """

    read: Callable[[Table], Any]
    analyse: Callable[[Any, int], Findings]


# Nothing is drawn at random but where an analysis takes the seed.
ANALYSES = {
    "adult-age-sex": Analysis(adult_age_sex.read, adult_age_sex_findings.analyse),
    "common-disease": Analysis(common_disease.read, lambda constants, _: common_disease_findings.analyse(constants)),
    "learning-on-private-columns": Analysis(learning.read, learning_findings.analyse),
    "marital-status": Analysis(marital_status.read, lambda constants, _: marital_status_findings.analyse(constants)),
    "randomise-or-decide": Analysis(
        randomise_or_decide.read, lambda constants, _: randomise_or_decide_findings.analyse(constants)
    ),
    "sock-groups": Analysis(sock_groups.read, lambda constants, _: sock_groups_findings.analyse(constants)),
}


@dataclass(frozen=True)
class SourceStudy:
    """A study of a source document, as its file says.

    Attributes
    ----------
    name, text : str
        The study's name and its file.
    title, source : str
        The question, and what the source is.
    analysis : str
        A name among `ANALYSES`.
    seed : int
        For what is drawn at random.
    constants : object
        The analysis's own.
    """

    name: str
    text: str
    title: str
    source: str
    analysis: str
    seed: int
    constants: Any

    @property
    def digest(self) -> str:
        """SHA-256 of the file."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def findings(self, seed: int | None = None) -> Findings:
        """What the study finds, with its own seed or another one."""
        return ANALYSES[self.analysis].analyse(self.constants, self.seed if seed is None else seed)


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
        if analysis not in ANALYSES:
            table.fail(unknown("analysis", analysis, list(ANALYSES)), "analysis")
            table.mistakes.raise_if_any()
        constants = ANALYSES[analysis].read(table)
        table.close()
        # Findings may only be computed from constants that are all there.
        table.mistakes.raise_if_any()
        name = path.parent.resolve().name if path.name == "study.toml" else path.stem
        return SourceStudy(name, table.mistakes.text, title, source, analysis, seed, constants)
