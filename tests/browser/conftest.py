"""Debian's Chromium without a window, and pages opened in it under watch."""

import os
import re
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

HERE = Path(__file__).parent
REPORTS = HERE.parents[1] / "reports"
PAGES = sorted(REPORTS.glob("*/report.html"))
# One of each kind, for what depends on how pages of a kind are made: of a decision, a trial and days.
KINDS = ("covid", "actg175", "covid-14-days")
WIDTHS = (400, 1400)
# Set by .ci/run: there a missing browser must not pass as a skip.
REQUIRED = "POLICYSIM_BROWSER_REQUIRED"
# The summary of all tests looks for these words: see tests/conftest.py.
MISSING = "no Chromium"
FLAGS = ["--disable-gpu", "--disable-quic", "--disable-sync"]
# In CSS pixels: body text; labels of a figure (6 pt, the least that journals print); and what two labels may share,
# which is less than the gap between two letters.
BODY_TEXT = 14
LABEL_TEXT = 8
OVERLAP = 1.5


@dataclass
class Visit:
    """A page that was opened, with everything that it complained about or asked for."""

    page: object
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def measure(self, name, **options):
        """What a script of measures/ finds on the page."""
        return self.page.evaluate((HERE / "measures" / f"{name}.js").read_text(encoding="utf-8"), options)

    def layout(self):
        """Faults of the page around its figures."""
        return self.measure("page_layout", smallest=BODY_TEXT)

    def labels(self, *, within="body", smallest=LABEL_TEXT):
        """Faults of the texts in the figures, or in those within a part of the page."""
        return self.measure("figure_text", overlap=OVERLAP, smallest=smallest, within=within)

    def resize(self, width):
        """Make the window so wide, and wait until the page is."""
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.wait_for_function("width => innerWidth === width", arg=width)

    def press(self, key, position):
        """Press a key in the slider, and wait until it stands at this place."""
        self.page.locator("#epsilon").press(key)
        self.page.wait_for_function("place => document.getElementById('epsilon').value === place", arg=str(position))

    def sheets(self):
        """How many sheets of A4 the page takes on paper."""
        return len(re.findall(rb"/Type\s*/Page[^s]", self.page.pdf(format="A4", prefer_css_page_size=True)))


def missing(what):
    (pytest.fail if os.environ.get(REQUIRED) else pytest.skip)(f"{MISSING}: {what}")


@pytest.fixture(scope="module")
def browser():
    """One browser for a file of tests and no longer: its event loop would run on under the tests of other folders."""
    path = shutil.which("chromium")
    if path is None:
        missing("apt-get install chromium")
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415 - the other tests run without it
    except ImportError:
        missing("pip install -e '.[test]'")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def open_page(browser):
    @contextmanager
    def open_page(path, width, *, script=True):
        """A page from a file, `width` CSS pixels wide, in a context of its own."""
        context = browser.new_context(viewport={"width": width, "height": 900}, java_script_enabled=script)
        context.set_default_timeout(30_000)
        visit = Visit(context.new_page())
        visit.page.on("console", lambda message: message.type == "error" and visit.errors.append(message.text))
        visit.page.on("pageerror", lambda error: visit.errors.append(str(error)))
        visit.page.on("request", lambda request: visit.requests.append(request.url))
        try:
            visit.page.goto(path.as_uri())
            yield visit
        finally:
            context.close()

    return open_page


def pytest_generate_tests(metafunc):
    """Tests that ask for a report get every committed one, or one of each kind.

    Those that ask for a width get both, if they name none.
    """
    own = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if "report" in metafunc.fixturenames:
        few = "of_each_kind" in metafunc.fixturenames
        pages = [page for page in PAGES if page.parent.name in KINDS] if few else PAGES
        metafunc.parametrize("report", pages, ids=lambda path: path.parent.name, scope="module")
    if "width" in metafunc.fixturenames and "width" not in own:
        metafunc.parametrize("width", WIDTHS, scope="module")


@pytest.fixture
def of_each_kind():
    """A test that uses this gets one report of each kind."""


@pytest.fixture(scope="module")
def unfolded(open_page, report):
    """A report with all that unfolds unfolded, opened once for all tests that only look at it."""
    with open_page(report, WIDTHS[0]) as visit:
        visit.page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")
        yield visit


@pytest.fixture(scope="module")
def visit(unfolded, width):
    """It at a width."""
    unfolded.resize(width)
    return unfolded


@pytest.fixture(scope="module")
def layout(visit):
    """What is wrong with the page around its figures, measured once."""
    return visit.layout()


@pytest.fixture(scope="module")
def labels(visit):
    """What is wrong with the texts in its figures, measured once."""
    return visit.labels()
