"""Reports made from a small study, and their text."""

import html
import re
from dataclasses import dataclass

import pandas as pd
from decisions import results_of
from policysim.decision.findings import Findings, find
from small_studies import write_small_study

import policysim as ps
from policysim.decision.decision_question import answer_of
from policysim.output.deliver import DEFAULT, FigureFiles, folder_files
from policysim.study.declared import ScenarioStudy

REFERENCES = ["greedy", "best-fixed", "uniform"]


@dataclass(frozen=True)
class Report:
    """A study, what came of it, and the files that were made."""

    study: ScenarioStudy
    problem: object
    table: pd.DataFrame
    findings: Findings
    files: dict

    @property
    def page(self):
        return self.files["report.html"].decode()


def make_report(folder, text, *, prices=False, formats=DEFAULT.formats):
    study = ps.load_study(write_small_study(folder, text))
    problem = ps.build_problem(study)
    found = results_of(study, problem, prices=prices)
    answer, findings = answer_of(study, found), find(found, study)
    files = folder_files(answer, "policysim compare study.toml", FigureFiles(formats))
    return Report(study, problem, found.tables["comparison"], findings, files)


def readable(markup):
    """The text of a piece of the page, with single spaces."""
    text = html.unescape(re.sub(r"<[^>]*>", "", str(markup)))
    return re.sub(r"\s+", " ", text).strip()
