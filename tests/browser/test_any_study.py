"""Pages of studies that no committed report is about: long names, an infinite ε; on screens and on paper."""

import pytest
from drawings import draw_only
from small_studies import SCENARIO, STUDY, write_small_study

from policysim.cli.main import main

LONG = "a" * 60
# A4 (210 mm) less margins of 10 mm at 96 px an inch.
PAPER = 718


@pytest.fixture(scope="module")
def long_names(tmp_path_factory):
    """The page of a small study whose title, treatment and group are single long words; with an infinite ε."""
    folder = tmp_path_factory.mktemp("long")
    scenario = SCENARIO.replace("treatments.pill", f"treatments.{LONG}").replace('title = "pill"', f'title = "{LONG}b"')
    scenario = scenario.replace("smoker", f"smoker_{LONG}")
    study = STUDY.replace("A small study", 2 * LONG).replace('"infected"]', f'"smoker_{LONG}"]')
    path = write_small_study(folder, study.replace("[0.5, 1.0, 4.0]", "[0.5, 1.0, 5000.0, inf]"), scenario)
    with pytest.MonkeyPatch.context() as patch:
        draw_only(patch, "frontier", "loss-by-group")
        patch.setattr("policysim.decision.redraws.REDRAWS", 20)
        assert main(["compare", str(path), "--out", str(folder / "out"), "--format", "svg"]) == 0
    return folder / "out" / "report.html"


@pytest.mark.parametrize("any_width", [400, 1400])
def test_long_words_do_not_make_a_page_scroll_sideways(open_page, long_names, any_width):
    with open_page(long_names, any_width) as visit:
        visit.page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")
        layout = visit.layout()
    assert layout["wide"] + layout["cut"] == []


def test_on_paper_all_is_within_the_page(open_page, long_names):
    with open_page(long_names, PAPER) as visit:
        visit.page.emulate_media(media="print")
        layout = visit.layout()
    assert layout["wide"] + layout["cut"] + layout["scrolled"] == []
