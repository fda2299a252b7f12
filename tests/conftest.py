"""Random tests draw the same examples in every run, whichever worker runs them and whatever ran there before.

And reports without their drawings, for the tests of all folders.
"""

import gc
import os

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

# One thread for each worker, which has one core: read when numpy is imported, which is later.
for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# They need what only `make oracles` installs.
collect_ignore_glob = ["oracles/write_*.py"]
# What is printed is as wide as where there is no terminal.
os.environ["COLUMNS"] = "100"

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")
# Hypothesis also draws numbers that stand in the modules imported so far, which depend on the tests that ran before.
providers.is_local_module_file = lambda _: False
# All that is collected stays until the end: looking for garbage among it took a third of the time of collecting.
gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


@pytest.fixture
def draw_only(monkeypatch):
    """Draw the figures of these names only, see `drawings`."""

    def draw_only(*names):
        import drawings  # noqa: PLC0415 - matplotlib is slow to import

        drawings.draw_only(monkeypatch, *names)

    return draw_only


@pytest.fixture
def blank_drawings(draw_only):
    """Draw no figure."""
    draw_only()


@pytest.fixture
def few_redraws(monkeypatch):
    """Redraw 20 times, for what does not depend on how often: redrawing is most of the time of a decision."""
    monkeypatch.setattr("policysim.decision.redraws.REDRAWS", 20)
