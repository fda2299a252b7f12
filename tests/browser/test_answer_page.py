"""The page of an answer in a browser: its slider shows the column of the ε that is chosen, and fetches nothing."""

import json
import re
from itertools import pairwise

import pytest
from policysim.study.cells import Cells

from policysim.numbers import plain

EPSILONS = [0.0, 0.5, 1.0, 4.0]  # those of the report


def shown(visit, row, option):
    """The text of a cell, and its key's ε."""
    cells = visit.page.evaluate(
        "[...document.querySelectorAll('.options [data-cell]')].map(e => [e.dataset.cell, e.textContent])"
    )
    found = [(key.split("/")[3], text) for key, text in cells if key.startswith(f"options/{row}/{option}/")]
    assert len(found) == 1
    return found[0]


def test_the_slider_shows_the_column_of_each_epsilon(open_page, saved_report):
    report, page = saved_report
    cell = Cells(report.tables)
    with open_page(page, 1280) as visit:
        for key, place in (("Home", 0), ("ArrowRight", 1), ("ArrowRight", 2), ("ArrowRight", 3)):
            visit.press(key, place)
            epsilon = EPSILONS[place]
            for row in ("death", "loss", "right guesses"):
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


def test_the_mouse_sets_epsilon_too(open_page, saved_report):
    report, page = saved_report
    cell = Cells(report.tables)
    with open_page(page, 1280) as visit:
        box = visit.page.locator("#epsilon").bounding_box()
        for place, epsilon in ((0, 0.0), (3, 4.0)):
            visit.page.mouse.click(box["x"] + (0.02 + 0.32 * place) * box["width"], box["y"] + box["height"] / 2)
            visit.page.wait_for_function(f"() => document.getElementById('epsilon').value === '{place}'")
            assert shown(visit, "loss", "private choice")[1] == cell("options", "loss", "private choice", epsilon)


def test_markers_stand_at_epsilon_on_the_axis_of_the_figure(open_page, saved_report):
    _, page = saved_report
    with open_page(page, 1400) as visit:
        stands, ticks = [], []
        # A log axis has no place for 0.
        for place, epsilon in enumerate(EPSILONS[1:], start=1):
            visit.page.locator("#epsilon").fill(str(place))
            found = visit.measure("markers")
            assert found["unmarked"] == []
            for marker in found["markers"]:
                assert marker["height"] > 10
                assert marker["frame"] is not None
                # The tick with this label is an independent witness of where ε is, to half a pixel.
                there = [tick["x"] for tick in marker["ticks"] if tick["value"] == epsilon]
                assert there == pytest.approx([marker["x"]] * len(there), abs=0.5)
                ticks += there
            stands.append([marker["x"] for marker in found["markers"]])
    assert stands[0]
    assert ticks
    assert all(all(left < right for left, right in zip(*pair, strict=True)) for pair in pairwise(stands))


def test_arrow_keys_move_and_what_changed_is_said_once(open_page, saved_report):
    _, page = saved_report
    with open_page(page, 1280) as visit:
        region = visit.page.locator("[aria-live=polite]")
        assert region.count() == 1
        assert not region.inner_text()
        visit.page.focus("#epsilon")
        visit.page.keyboard.press("ArrowRight")
        visit.page.wait_for_function("document.querySelector('[aria-live=polite]').textContent !== ''")
        assert region.inner_text().startswith("ε = 4: at ε = 1: ")
        # What is of the stated ε says so, as the line does.
        line = visit.page.locator("dl.answer dd").last.inner_text()
        assert region.inner_text().endswith(f" at ε = 1: {line}")
        assert len(region.inner_text()) < 500


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_either_theme(open_page, saved_report, theme):
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415 - absent where playwright is

    _, page = saved_report
    with open_page(page, 1000) as visit:
        visit.page.emulate_media(color_scheme=theme)
        background = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        light = sum(map(int, re.findall(r"\d+", background)[:3])) / 3 > 128
        assert light == (theme == "light")
        visit.page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")
        violations = Axe().run(visit.page).response["violations"]
        assert [(each["id"], [node["target"] for node in each["nodes"]]) for each in violations] == []


@pytest.mark.parametrize("size", ["16px", "32px"])
def test_large_type_breaks_nothing(open_page, saved_report, size):
    _, page = saved_report
    with open_page(page, 400) as visit:
        # The page's policy takes no style but its own; what a script sets is none.
        visit.page.evaluate("size => { document.documentElement.style.fontSize = size; }", size)
        found = visit.layout()
        assert found["wide"] + found["cut"] == []


def test_on_paper_the_control_is_left_out(open_page, saved_report):
    _, page = saved_report
    with open_page(page, 1000) as visit:
        visit.page.emulate_media(media="print")
        assert not visit.page.locator("#control").is_visible()
        assert visit.page.locator("table.options").first.is_visible()
        assert visit.sheets() <= 4


def test_an_address_keeps_the_epsilon(open_page, saved_report):
    _, page = saved_report
    with open_page(page, 1280) as visit:
        for hash_, value in (("#epsilon=0.5", "1"), ("#epsilon=7", "2"), ("#evidence", "2")):
            visit.page.goto(f"{page.as_uri()}{hash_}")
            visit.page.reload()
            assert visit.page.locator("#epsilon").input_value() == value


def test_without_a_script_it_is_the_page_of_the_stated_epsilon(open_page, saved_report):
    _, page = saved_report
    with open_page(page, 1280, script=False) as visit:
        assert visit.page.locator("#control").is_hidden()
        moving = json.loads(re.search(r'id="moving">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)[1])
        assert visit.page.locator("#epsilon-shown").text_content() == moving["labels"][moving["position"]]
