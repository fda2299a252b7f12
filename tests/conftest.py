"""What all tests share: settings of libraries, a line about skipped tests of pages, and reports without drawings."""

import gc
import os

import pytest
from hypothesis import settings

# One thread for each worker, which has one core: read when numpy is imported, which is later.
for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# How the reason begins of a test that is skipped because there is no browser; see tests/browser/conftest.py.
NO_BROWSER = "no Chromium"

# They need what only `make oracles` installs.
collect_ignore_glob = ["oracles/write_*.py"]
# What is printed is as wide as where there is no terminal.
os.environ["COLUMNS"] = "100"

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")
# All that is collected stays until the end: looking for garbage among it took a third of the time of collecting.
gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter):
    """One line for all tests of pages that were skipped, whether or not pytest is asked for reasons.

    Here, not beside those tests: with `-n auto` the process that writes the summary loads only this file.
    """
    skipped = [str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", [])]
    reasons = [reason.removeprefix("Skipped: ") for reason in skipped if NO_BROWSER in reason]
    if reasons:
        terminalreporter.write_line(f"{len(reasons)} tests of pages skipped, {reasons[0]}")


@pytest.fixture(scope="session")
def random_problems():
    """The bank of 200 random problems: see `bank` in tests/support/random_problems.py."""
    from random_problems import bank  # noqa: PLC0415 - slow to import

    return bank()


@pytest.fixture(scope="session")
def saved_report(tmp_path_factory):
    """The report of a small study at four ε, and its page, for all tests that only look at them."""
    from report_pages import save_report  # noqa: PLC0415 - slow to import

    return save_report(tmp_path_factory.mktemp("saved"))


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
