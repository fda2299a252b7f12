"""Pages of studies that no committed report is about: long names, an infinite ε; on screens and on paper."""

import pytest
from small_studies import SCENARIO, STUDY, write_small_study

from policysim.cli.main import main
from policysim.question.words import policy_odds

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
    assert main(["compare", str(path), "--out", str(folder / "out"), "--format", "svg"]) == 0
    return folder / "out" / "report.html"


@pytest.mark.parametrize("any_width", [400, 1400])
def test_long_words_do_not_make_a_page_scroll_sideways(open_page, long_names, any_width):
    with open_page(long_names, any_width) as visit:
        visit.page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")
        layout = visit.layout()
    assert layout["wide"] + layout["cut"] == []


@pytest.mark.parametrize("any_width", [1000, 1400])
def test_with_long_words_the_first_screen_runs_on_and_nothing_lies_on_another(open_page, long_names, any_width):
    with open_page(long_names, any_width) as visit:
        parts, overlapping = visit.first_screen()
        texts = visit.labels(within="#frontier", smallest=11)
    assert list(parts) == ["title", "sentences", "control", "numbers", "figure"]
    assert overlapping == []
    assert texts["overlapping"] + texts["outside"] + texts["small"] == []


def test_on_paper_all_is_within_the_page(open_page, long_names):
    with open_page(long_names, PAPER) as visit:
        visit.page.emulate_media(media="print")
        layout = visit.layout()
    assert layout["wide"] + layout["cut"] + layout["scrolled"] == []


def test_the_odds_are_those_of_the_policy_that_is_chosen(open_page, long_names):
    with open_page(long_names, 1400) as visit:
        for policy, loss, right in (("greedy", float("inf"), 1), ("uniform", 0, 0.5), ("best-fixed", 0, 0.5)):
            visit.page.locator("#policy").select_option(policy)
            for key, position in (("Home", 0), ("End", 3)):
                visit.press(key, position)
                (shown,) = visit.measure("numbers")["places"]["odds"]
                assert shown == {"value": right, "text": policy_odds(policy, 1.0, loss, uses_epsilon=False)}
        visit.page.locator("#policy").select_option("exponential")
        found = visit.measure("numbers")
        assert found["places"]["odds"][0]["text"].startswith("At ε = ∞, ")
        assert found["shown"] == "∞"
        assert found["said"] == "ε = ∞"
        visit.press("ArrowLeft", 2)
        assert visit.measure("numbers")["said"] == "ε = 5,000"
        assert visit.errors == []
