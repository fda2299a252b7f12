"""A report made from a small study, and its page."""

import pytest
from drawings import draw_only
from small_studies import write_small_study

import policysim as ps


def save_report(folder):
    """A report, and the path of its page: drawings but the first are blank, and few versions of the model."""
    with pytest.MonkeyPatch.context() as patch:
        draw_only(patch, "frontier")
        patch.setattr("policysim.decision.redraws.REDRAWS", 20)
        report = ps.report(write_small_study(folder), epsilons=[0.0, 0.5, 1.0, 4.0])
        return report, report.save(folder / "report")
