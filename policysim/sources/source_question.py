"""A study of a source document, read from its file: what it says, figure by figure, beside what is right."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, Self

from envs.toml_reader import open_toml, unknown
from policysim.figures import described
from policysim.figures.card import card
from policysim.question.answer import Answer, Drawing, Page, tidy
from policysim.question.protocol import Progress, StudyQuestion
from policysim.question.screen_lines import wrap
from policysim.question.words import in_digits
from policysim.sources.adult_age_sex import AdultAgeSex
from policysim.sources.common_disease import CommonDisease
from policysim.sources.document import Document
from policysim.sources.engine import UNEXPECTED, Row, SourceFindings, number
from policysim.sources.marital_status import MaritalStatus
from policysim.sources.sock_groups import SockGroups
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
        # Findings may only be computed from constants that are all there.
        table.mistakes.raise_if_any()
        return SourceStudy(name, table.mistakes.text, title, source, analysis, seed, document)


REASON = "does not go with {study}: it is a study of a source document"


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
            *("horizon", "total_epsilon", "delta", "length_public"),
            *("workers", "cluster", "resume"),
        ),
        REASON,
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
    return Answer(
        screen=source_screen(study, findings),
        document={"lead": findings.lead, "figures": findings.table.to_dict(orient="records")},
        headline=findings.headline,
        sentences=findings.answer,
        tables={"comparison.csv": table, **{f"figures/{each.name}.csv": each.table for each in findings.drawings}},
        drawings=[
            *(_drawing(section.title, section.drawing) for section in findings.sections if section.drawing),
            card(findings.card),
        ],
        pages={"report.html": Page("source.html", values)},
        depends={
            **study.identity,
            "question": {"seed": study.seed},
            "analysis": study.analysis,
        },
        files={} if script else {STUDY: study.text.encode()},
        named={"Report": "report.html"},
    )


def _drawing(title: str, source: described.Described) -> Drawing:
    shown = source.table if source.shown is None else source.shown
    return Drawing(source.name, title, source.description, source.figure, tidy(shown))


# Columns of the table on the screen, and its most lines: a longer one only has what is not as expected.
WIDTHS, MOST_LINES = (37, 22, 22, 19), 26
# So much is kept of the end of what is too long for its column: the ε of a figure.
TAIL = 8


def source_screen(study: Subject, findings: SourceFindings) -> list[str]:
    """The answer, and the figures of the source beside ours: those that are printed together on one line."""
    lines = [study.title, *wrap(study.source), ""]
    for sentence in findings.lead:
        lines += wrap(sentence)
    table = _table(findings.rows)
    if len(table) > MOST_LINES:
        table = _table([row for row in findings.rows if row.agreement in UNEXPECTED])
    return [*lines, "", *table, *wrap(findings.summary)]


def _table(rows: Sequence[Row]) -> list[str]:
    lines = [_line("figure or claim", "source", "ours", "")]
    for _, group in groupby(rows, key=lambda row: (row.together or row.what, row.where)):
        found = list(group)
        source, ours = (" ".join(words) for words in ([row.printed for row in found], [row.shown for row in found]))
        if len({row.marked for row in found}) == 1 and max(map(len, (source, ours))) < WIDTHS[1]:
            lines.append(_line(found[0].together or found[0].what, source, ours, found[0].marked))
        else:
            lines += [_line(row.what, row.printed, row.shown, row.marked) for row in found]
    return lines if rows else []


def _line(*words: str) -> str:
    """A line of the table; of what is longer than its column, the beginning and the end."""
    cells = []
    for word, width in zip(words, WIDTHS, strict=True):
        cut = word if len(word) < width else f"{word[: width - TAIL - 2].rstrip()}…{word[-TAIL:]}"
        cells.append(cut.ljust(width))
    return "".join(cells).rstrip()
