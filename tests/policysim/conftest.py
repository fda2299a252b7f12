"""The covid study at full size, built once for all tests of this folder; models of few trees; one split."""

import pytest

import policysim as ps
from policysim.logs import outcome_models, treatments
from policysim.trials import evidence, trial_columns


@pytest.fixture(scope="session")
def covid():
    return ps.load_study("covid")


@pytest.fixture(scope="session")
def covid_problem(covid):
    return ps.build_problem(covid)


@pytest.fixture
def few_trees(monkeypatch):
    """Estimated propensities and stacked outcome models that hardly look at boosted trees, to be quick."""
    monkeypatch.setitem(treatments.CLASSIFYING_TREES, "max_iter", 2)
    monkeypatch.setitem(outcome_models.FEW_TREES, "max_iter", 2)


@pytest.fixture
def one_split(monkeypatch):
    """Logs that are split once, and 20 times to look for different effects, for what does not depend on how often."""
    monkeypatch.setattr(trial_columns, "REPEATS", 1)
    monkeypatch.setattr(evidence, "LOOKS", (20,))
