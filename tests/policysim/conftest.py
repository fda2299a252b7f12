"""The covid study at full size, built once for all tests of this folder; propensities from few trees; one split."""

import pytest

import policysim as ps
from policysim.logs import treatments
from policysim.trials import trial_columns


@pytest.fixture(scope="session")
def covid():
    return ps.load_study("covid")


@pytest.fixture(scope="session")
def covid_problem(covid):
    return ps.build_problem(covid)


@pytest.fixture
def few_trees(monkeypatch):
    """Estimated propensities that hardly look at boosted trees, to be quick."""
    monkeypatch.setitem(treatments.CLASSIFYING_TREES, "max_iter", 2)


@pytest.fixture
def one_split(monkeypatch):
    """Logs that are split once, for what does not depend on how often."""
    monkeypatch.setattr(trial_columns, "REPEATS", 1)
