"""Reports made from a small study, and their pages."""

import json
import re
from dataclasses import dataclass

import pytest
from drawings import draw_only
from small_studies import SCENARIO, write_small_study

import policysim as ps
from policysim.decision.report import report as report_of
from policysim.report.folder import DEFAULT, FigureFiles, folder_files
from policysim.report.report import Report
from policysim.study.declared import ScenarioStudy


@dataclass(frozen=True)
class Made:
    """A study, its report, and the files that were made."""

    study: ScenarioStudy
    report: Report
    files: dict

    @property
    def page(self):
        return self.files["report.html"].decode()

    @property
    def moving(self):
        """What the page hands to its script."""
        return json.loads(re.search(r'id="moving">(.*?)</script>', self.page, re.DOTALL)[1])

    @property
    def table(self):
        return self.report.tables["comparison"]


def make_report(folder, text, *, prices=False, formats=DEFAULT.formats, scenario=SCENARIO):
    study = ps.load_study(write_small_study(folder, text, scenario))
    report = report_of(study, price_list=prices)
    return Made(study, report, folder_files(report, FigureFiles(formats)))


def save_report(folder):
    """A report, and the path of its page: drawings but the first are blank, and few versions of the model."""
    with pytest.MonkeyPatch.context() as patch:
        draw_only(patch, "frontier")
        patch.setattr("policysim.decision.redraws.REDRAWS", 20)
        report = report_of(ps.load_study(write_small_study(folder)), epsilons=[0.0, 0.5, 1.0, 4.0])
        return report, report.save(folder / "report")
