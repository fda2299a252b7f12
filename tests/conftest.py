"""Random tests draw the same examples in every run, whichever worker runs them and whatever ran there before."""

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from matplotlib.figure import Figure

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")
# Hypothesis also draws numbers that stand in the modules imported so far, which depend on the tests that ran before.
providers.is_local_module_file = lambda _: False


@pytest.fixture
def blank_drawings(monkeypatch):
    """Figures are blank, for tests of what is printed, written in tables or said: drawing takes nine tenths of them."""
    monkeypatch.setattr("policysim.question.answer.Drawing.at", lambda *_: Figure(figsize=(1, 1)))
