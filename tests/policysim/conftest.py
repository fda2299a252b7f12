"""The covid study at full size, built once for all tests of this folder; and reports without their drawings."""

import pytest
from matplotlib.figure import Figure

import policysim as ps


@pytest.fixture(scope="session")
def covid():
    return ps.load_study("covid")


@pytest.fixture(scope="session")
def covid_problem(covid):
    return ps.build_problem(covid)


@pytest.fixture
def blank_drawings(monkeypatch):
    """Figures are blank, for tests of what is printed, written in tables or said: drawing takes nine tenths of them."""
    monkeypatch.setattr("policysim.question.answer.Drawing.at", lambda *_: Figure(figsize=(1, 1)))
