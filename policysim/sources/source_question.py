"""A study of a source document, read from its file: what it says, figure by figure, beside what is right."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from envs.toml_reader import open_toml, unknown
from policysim.figures.card import card
from policysim.question.answer import Answer, Drawing, Page, tidy
from policysim.question.formats import in_digits
from policysim.question.protocol import Progress, StudyQuestion
from policysim.question.screen_lines import wrap
from policysim.sources.adult_age_sex import AdultAgeSex
from policysim.sources.engine import UNEXPECTED, Document, SourceFindings, number
from policysim.sources.selections import CommonDisease, MaritalStatus, SockGroups
from policysim.study.study_reader import FOLDER, STUDY, name_of_study

DOCUMENTS: dict[str, type[Document]] = {
    kind.name: kind for kind in (AdultAgeSex, CommonDisease, MaritalStatus, SockGroups)
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

    @property
    def identity(self) -> dict[str, Any]:
        """What tells it from others, for a manifest."""
        return {"study": {"name": self.name, "title": self.title, "sha256": self.digest}}


@dataclass(frozen=True)
class SourceStudy(Subject):
    """A study of a source document, as its file says."""

    document: Document

    def findings(self) -> SourceFindings:
        """What the study finds; words only of a built-in file, which they were written about."""
        told = self.text == (FOLDER / f"{self.analysis}.toml").read_text(encoding="utf-8")
        return self.document.findings(self.seed, told=told)


def load_source_study(path: Path, called: str = "") -> SourceStudy:
    """Read a study of a source document; it is `called` as its file or folder, unless that is given.

    Raises
    ------
    InputFileError
        With one `file:line: key: message` line for each mistake.
    """
    with open_toml(path) as table:
        analysis = table.text("analysis")
        name = called or name_of_study(path)
        title, source, seed = table.text("title", name), table.text("source"), table.integer("seed", 0)
        if analysis not in DOCUMENTS:
            table.fail(unknown("analysis", analysis, list(DOCUMENTS)), "analysis")
            table.mistakes.raise_if_any()
        document = DOCUMENTS[analysis](table)
        table.close()
        # What constants say together may only be checked where they are all there.
        table.mistakes.raise_if_any()
        document.check(table)
        table.mistakes.raise_if_any()
        return SourceStudy(name, table.mistakes.text, title, source, analysis, seed, document)


@dataclass(frozen=True)
class SourceQuestion(StudyQuestion):
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
            *("horizon", "total_epsilon", "delta", "length_public", "workers", "cluster", "resume"),
        ),
        "does not go with {study}: it is a study of a source document",
    )
    unit: ClassVar[str] = "step"
    takes = ("seed",)

    @classmethod
    def of(cls, study: SourceStudy, options: Mapping[str, Any]) -> Self:
        """With another seed, if one is given."""
        return cls(replace(study, seed=options.get("seed", study.seed)))

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
        "number": number,
    }
    figures = [(section.title, section.drawing) for section in findings.sections if section.drawing]
    drawings = [
        Drawing(each.name, title, each.description, each.figure, tidy(each.table if each.shown is None else each.shown))
        for title, each in figures
    ]
    return Answer(
        screen=source_screen(study, findings),
        document={"lead": findings.lead, "figures": findings.table.to_dict(orient="records")},
        headline=findings.headline,
        sentences=findings.answer,
        tables={"comparison": table, **{f"figures/{each.name}": each.table for _, each in figures}},
        drawings=[*drawings, card(findings.card)],
        pages={"report.html": Page("source.html", values)},
        depends={**study.identity, "question": {"seed": study.seed}, "analysis": study.analysis},
        files={} if script else {STUDY: study.text.encode()},
        named={"Report": "report.html"},
    )


def source_screen(study: Subject, findings: SourceFindings) -> list[str]:
    """The answer, how many figures agree, and those that are not as expected."""
    lines = [study.title, *wrap(study.source), ""]
    for sentence in (*findings.lead, findings.summary):
        lines += wrap(sentence)
    for row in findings.rows:
        if row.agreement in UNEXPECTED:
            lines += wrap(f"{row.marked}: {row.what}: {row.printed}; ours {row.shown}", "", "  ")
    return lines
