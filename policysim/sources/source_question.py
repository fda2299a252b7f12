"""A study of a source document, read from its file: what it says, figure by figure, beside what is right."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import ClassVar, Protocol

from envs.toml_reader import Table, open_toml, unknown
from policysim.figures import described
from policysim.figures.card import card
from policysim.question.answer import Answer, Drawing, Page, tidy
from policysim.question.protocol import Progress, Question
from policysim.question.screen_lines import wrap
from policysim.question.words import in_digits
from policysim.sources.adult_age_sex import AdultAgeSex
from policysim.sources.common_disease import CommonDisease
from policysim.sources.engine import AGREES, DIFFERS, INSIDE, OUTSIDE, PLAUSIBLE, WRONG, SourceFindings, number
from policysim.sources.marital_status import MaritalStatus
from policysim.sources.sock_groups import SockGroups
from policysim.study.study_reader import STUDY, name_of_study


class Document(Protocol):
    """What a study file holds, and what follows from it."""

    def findings(self, seed: int) -> SourceFindings:
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

    def findings(self) -> SourceFindings:
        """What the study finds."""
        return self.document.findings(self.seed)


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


# A mark goes with the word, so that a table can be looked through for what is not as expected.
MARKS = {AGREES: "✓", INSIDE: "✓", OUTSIDE: "!", PLAUSIBLE: "✓", WRONG: "✗", DIFFERS: "✗"}
REASON = "does not go with {study}: it is a study of a source document"


@dataclass(frozen=True)
class SourceQuestion(Question):
    """Set every figure of a source beside ours.

    Attributes
    ----------
    study : SourceStudy
        Of a source document.
    """

    study: SourceStudy
    refuses: ClassVar[Mapping[str, str]] = dict.fromkeys(
        (
            *("epsilon", "policy", "by", "adjacency", "sensitive", "price_list", "figure_size", "at_most"),
            *("horizon", "total_epsilon", "delta", "length_public", "learn_epsilon"),
            *("workers", "cluster", "resume"),
        ),
        REASON,
    )
    unit: ClassVar[str] = "step"
    writes = True

    @classmethod
    def of(cls, path: Path, seed: int | None) -> SourceQuestion:
        """The question of a study file, with another seed if one is given."""
        study = load_source_study(path)
        return cls(study if seed is None else replace(study, seed=seed))

    @property
    def name(self) -> str:
        """The study's."""
        return self.study.name

    def answer(self, progress: Progress) -> Answer:
        """Compute every figure."""
        return answer_about_source(self.study, self.study.findings())


def answer_about_source(study: Subject, findings: SourceFindings, script: str = "") -> Answer:
    """What a study of a source, or the script that is its file, says, shows and keeps.

    A study's file is kept beside its report; a script is where it can be run.
    """
    table = findings.table
    # A column of numbers and words is not written as numbers are.
    table["ours"] = table["ours"].map(lambda ours: in_digits(ours) if isinstance(ours, float) else ours)
    values = {
        "study": study,
        "findings": findings,
        "made_by": script or f"Study {study.name}",
        "random": any(row.run is not None for row in findings.rows),
        "marks": MARKS,
        "number": number,
    }
    return Answer(
        screen=source_screen(study, findings),
        document={
            "lead": findings.lead,
            "figures": findings.table.to_dict(orient="records"),
            "errata": [asdict(erratum) for erratum in findings.errata],
        },
        headline=findings.headline,
        sentences=findings.answer,
        tables={"comparison.csv": table, **{f"figures/{each.name}.csv": each.table for each in findings.drawings}},
        drawings=[
            *(_drawing(section.title, section.drawing) for section in findings.sections if section.drawing),
            card(findings.card),
        ],
        pages={"report.html": Page("source.html", values)},
        depends={
            "study": {"name": study.name, "title": study.title, "sha256": study.digest},
            "analysis": study.analysis,
            "seed": study.seed,
        },
        files={} if script else {STUDY: study.text.encode()},
        named={"Report": "report.html"},
    )


def _drawing(title: str, source: described.Described) -> Drawing:
    shown = source.table if source.shown is None else source.shown
    return Drawing(source.name, title, source.description, source.figure, tidy(shown))


def source_screen(study: Subject, findings: SourceFindings) -> list[str]:
    """The answer, and every figure of the source that is not as expected."""
    lines = [study.title, *wrap(study.source), ""]
    for sentence in findings.lead:
        lines += wrap(sentence)
    lines += ["", *wrap(findings.summary)]
    for row in findings.rows:
        if row.verdict in (WRONG, OUTSIDE):
            lines += wrap(f"{row.verdict}: {row.what}: {row.printed}; ours {row.shown}. {row.why}".rstrip())
    return lines
