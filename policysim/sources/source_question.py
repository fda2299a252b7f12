"""A study of a source document, read from its file: what it says, figure by figure, beside what is right."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from envs.toml_reader import open_toml, unknown
from policysim.question.answer import Answer, Drawing, Page, tidy
from policysim.question.formats import in_digits
from policysim.question.protocol import Progress, StudyQuestion
from policysim.sources.documents import DOCUMENTS
from policysim.sources.engine import UNEXPECTED, Document, SourceFindings, Subject, people
from policysim.study.study_reader import STUDY, name_of_study


def load_source_study(path: Path, called: str = "") -> Document:
    """Read a study of a source document; it is `called` as its file or folder, unless that is given.

    Raises
    ------
    InputFileError
        With one `file:line: key: message` line for each mistake.
    """
    with open_toml(path) as table:
        analysis = table.text("analysis")
        if analysis not in DOCUMENTS:
            table.fail(unknown("analysis", analysis, list(DOCUMENTS)), "analysis")
        table.mistakes.raise_if_any()
        return DOCUMENTS[analysis](table, called or name_of_study(path), analysis)


@dataclass(frozen=True)
class SourceQuestion(StudyQuestion):
    """Set every figure of a source beside ours.

    Attributes
    ----------
    study : Document
        Of a source document.
    """

    study: Document
    refuses: ClassVar[Mapping[str, str]] = dict.fromkeys(
        (
            *("epsilon", "policy", "by", "adjacency", "sensitive", "price_list", "figure_size", "at_most"),
            *("horizon", "total_epsilon", "delta", "length_public", "workers", "cluster"),
        ),
        "does not go with {study}: it is a study of a source document",
    )
    unit: ClassVar[str] = "step"
    takes = ("seed",)

    @classmethod
    def of(cls, study: Document, options: Mapping[str, Any]) -> Self:
        """With another seed, if one is given."""
        study = copy(study)
        study.seed = options.get("seed", study.seed)
        return cls(study)

    def answer(self, progress: Progress) -> Answer:
        """Compute every figure."""
        return answer_about_source(self.study, self.study.findings())


def answer_about_source(study: Subject, findings: SourceFindings, script: str = "") -> Answer:
    """What a study of a source, or the script that is its file, says, shows and keeps.

    A study's file is kept beside its report; a script is where it can be run.
    """
    table = findings.table
    figures = table.to_dict(orient="records")
    # A column of numbers and words is not written as numbers are.
    table["ours"] = table["ours"].map(lambda ours: in_digits(ours) if isinstance(ours, float) else ours)
    values = {
        "study": study,
        "findings": findings,
        "made_by": script or f"Study {study.name}",
        "random": any(row.low is not None for row in findings.rows),
        "number": people,
    }
    shown = [(section.title, section.drawing) for section in findings.sections if section.drawing]
    drawings = [
        Drawing(each.name, each.figure, title, each.description, tidy(each.table if each.shown is None else each.shown))
        for title, each in shown
    ]
    return Answer(
        screen=Page(
            "source-screen.txt", {**values, "unexpected": [row for row in findings.rows if row.agreement in UNEXPECTED]}
        ),
        document={"lead": findings.lead, "figures": figures},
        headline=findings.headline,
        # The manifest quotes the first two sentences.
        sentences=re.split(r"(?<=\.) (?=[A-Z(])", " ".join(findings.lead))[:2],
        tables={"comparison": table, **{f"figures/{each.name}": each.table for _, each in shown}},
        drawings=drawings,
        pages={"report.html": Page("source.html", values)},
        depends={**study.identity, "question": {"seed": study.seed}, "analysis": study.analysis},
        files={} if script else {STUDY: study.text.encode()},
        named={"Report": "report.html"},
    )
