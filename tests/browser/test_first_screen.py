"""The first screen of a decision: title, sentences, control, numbers and figure, whole and in this order."""

from pathlib import Path

import pytest
from report_pages import make_report
from small_studies import STUDY

REPORTS = Path(__file__).parents[2] / "reports"
# CSS pixels: screens of these widths are as high as this, and figures have letters as large as this.
SCREENS, HEIGHT, LEGIBLE = (1000, 1400), 900, 11


@pytest.fixture(scope="module", params=["covid", "stroke", "small"])
def path(request, tmp_path_factory):
    """Each committed decision, and one that no report is about."""
    if request.param != "small":
        return REPORTS / request.param / "report.html"
    folder = tmp_path_factory.mktemp("small")
    made = make_report(folder, STUDY.replace('"exponential", "rand', '"exponential", "optimal", "rand'))
    (folder / "report.html").write_text(made.page, encoding="utf-8")
    return folder / "report.html"


@pytest.mark.parametrize("screen", SCREENS)
def test_all_of_it_is_on_the_screen_in_order_and_legible(open_page, path, screen):
    with open_page(path, screen) as visit:
        parts, overlapping = visit.first_screen()
        texts = visit.labels(within="#frontier", smallest=LEGIBLE)
    assert list(parts) == ["title", "sentences", "control", "numbers", "figure"]
    assert overlapping == []
    assert parts["figure"][1] <= HEIGHT
    assert texts["texts"] > 0
    assert texts["overlapping"] + texts["outside"] + texts["small"] == []


def test_on_paper_it_is_a_page_of_its_own(open_page, path):
    with open_page(path, 1000) as visit:
        assert visit.sheets() > 1
        rest = "#evidence, #evidence ~ *, .appendix"
        visit.page.evaluate("rest => document.querySelectorAll(rest).forEach(part => part.remove())", rest)
        assert visit.sheets() == 1
