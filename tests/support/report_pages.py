"""Reports made from a small study, and their text."""

import html
import re
from dataclasses import dataclass

import pytest
from drawings import draw_only
from policysim.decision.decision_question import DecisionQuestion
from policysim.output.deliver import DEFAULT, FigureFiles, folder_files
from policysim.question.answer import Answer
from small_studies import SCENARIO, write_small_study

import policysim as ps
from policysim.progress import SILENT
from policysim.study.declared import ScenarioStudy


@dataclass(frozen=True)
class Report:
    """A study, its answer, and the files that were made."""

    study: ScenarioStudy
    answer: Answer
    files: dict

    @property
    def page(self):
        return self.files["report.html"].decode()

    @property
    def table(self):
        return self.answer.tables["comparison"]


def make_report(folder, text, *, prices=False, formats=DEFAULT.formats, scenario=SCENARIO):
    study = ps.load_study(write_small_study(folder, text, scenario))
    answer = DecisionQuestion(study, prices=prices).answer(SILENT)
    return Report(study, answer, folder_files(answer, "policysim compare study.toml", FigureFiles(formats)))


def save_report(folder):
    """A report, and the path of its page: drawings but the first are blank, and few redraws."""
    with pytest.MonkeyPatch.context() as patch:
        draw_only(patch, "frontier")
        patch.setattr("policysim.decision.redraws.REDRAWS", 20)
        report = ps.report(write_small_study(folder), epsilons=[0.0, 0.5, 1.0, 4.0])
        return report, report.save(folder / "report")


def readable(markup):
    """The text of a piece of the page, with single spaces."""
    text = html.unescape(re.sub(r"<[^>]*>", "", str(markup)))
    return re.sub(r"\s+", " ", text).strip()
