"""The covid study at full size, built once for all tests of this folder; few redraws, few trees, one split."""

from pathlib import Path

import pytest
from decisions import Decision

import policysim as ps
from policysim.logs import outcome_models, treatments
from policysim.trials import evidence, trial_columns


@pytest.fixture(scope="module", autouse=True)
def few_redraws():
    """Redraw 20 times: redrawing is most of the time of a decision, and few tests depend on how often."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("policysim.decision.redraws.REDRAWS", 20)
        yield


@pytest.fixture
def all_redraws(monkeypatch):
    """As many redraws as a user gets."""
    monkeypatch.setattr("policysim.decision.redraws.REDRAWS", 200)


@pytest.fixture(scope="session")
def ward():
    """The example of a ward, for all tests that only look at what is computed of it."""
    return Decision(Path(__file__).parents[2] / "examples" / "ward" / "study.toml")


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
