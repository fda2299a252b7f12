"""The page of an answer in a browser: its slider shows the column of the ε that is chosen, and fetches nothing."""

import json
import re

import pytest
from drawings import draw_only
from small_studies import write_small_study

import policysim as ps
from policysim.question.formats import plain
from policysim.study.cells import Cells

EPSILONS = [0.0, 0.5, 1.0, 4.0]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A report and its page; all drawings but the first are blank."""
    folder = tmp_path_factory.mktemp("answer")
    with pytest.MonkeyPatch.context() as patch:
        draw_only(patch, "frontier")
        report = ps.report(write_small_study(folder), epsilons=EPSILONS)
        return report, report.save(folder / "report")


def shown(visit, row, option):
    """The text of a cell, and its key's ε."""
    cells = visit.page.evaluate(
        "[...document.querySelectorAll('.options [data-cell]')].map(e => [e.dataset.cell, e.textContent])"
    )
    found = [(key.split("/")[3], text) for key, text in cells if key.startswith(f"options/{row}/{option}/")]
    assert len(found) == 1
    return found[0]


def test_the_slider_shows_the_column_of_each_epsilon(open_page, saved):
    report, page = saved
    cell = Cells(report.tables)
    with open_page(page, 1280) as visit:
        for key, place in (("Home", 0), ("ArrowRight", 1), ("ArrowRight", 2), ("ArrowRight", 3)):
            visit.press(key, place)
            epsilon = EPSILONS[place]
            for row in ("deaths", "loss", "right guesses"):
                text = str(cell("options", row, "private choice", epsilon))
                assert shown(visit, row, "private choice") == (plain(epsilon), text)
            assert visit.page.locator("#epsilon-shown").text_content() == plain(epsilon)
            # What was redrawn at the stated ε stands, and says so at every other.
            assert shown(visit, "better", "private choice")[0] == "1"
            stays = visit.page.evaluate(
                "[...document.querySelectorAll('.stays')].map(e => getComputedStyle(e).visibility === 'visible')"
            )
            assert set(stays) == {epsilon != 1.0}
        assert visit.page.evaluate("location.hash") == "#epsilon=4"
        marker = visit.page.locator("[data-marker]").first
        assert marker.get_attribute("x1") == marker.get_attribute("data-x").split(" ")[3]
        assert visit.errors == []
        assert [url for url in visit.requests if not url.startswith("file:")] == []


def test_an_address_keeps_the_epsilon(open_page, saved):
    _, page = saved
    with open_page(page, 1280) as visit:
        for hash_, value in (("#epsilon=0.5", "1"), ("#epsilon=7", "2"), ("#evidence", "2")):
            visit.page.goto(f"{page.as_uri()}{hash_}")
            visit.page.reload()
            assert visit.page.locator("#epsilon").input_value() == value


@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_is_no_wider_than_its_window(open_page, saved, width):
    _, page = saved
    with open_page(page, width) as visit:
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_a_script_it_is_the_page_of_the_stated_epsilon(open_page, saved):
    _, page = saved
    with open_page(page, 1280, script=False) as visit:
        assert visit.page.locator("#control").is_hidden()
        moving = json.loads(re.search(r'id="moving">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)[1])
        assert visit.page.locator("#epsilon-shown").text_content() == moving["labels"][moving["position"]]
