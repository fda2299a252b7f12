"""The page of a report in a browser: what its controls show, in both themes, on a telephone and on paper."""

import re
from itertools import pairwise

import pytest

from policysim.numbers import change, plain, to_places

EPSILONS = [0.0, 0.5, 1.0, 4.0]  # those of the report


def answer_shown(visit):
    """The lines and the cells of the answer."""
    parts = ("dl.answer > dd", "table.options td")
    return [visit.page.locator(f"#answer {part}").all_text_contents() for part in parts]


def answer_of(screen):
    texts = [line.text + "".join(map("".join, line.rows)) for line in screen.lines]
    return [texts, [cell for grid in screen.tables for row in grid.rows for cell in row[1:]]]


def test_the_slider_shows_the_answer_at_each_epsilon_and_the_address_keeps_it(open_page, saved_report):
    report, page = saved_report
    with open_page(page, 1280) as visit:
        assert answer_shown(visit) == answer_of(report.screen)
        for key, place in (("Home", 0), ("ArrowRight", 1), ("ArrowRight", 2), ("ArrowRight", 3)):
            visit.press(key, place)
            assert answer_shown(visit) == answer_of(report.screens[EPSILONS[place]])
            assert visit.page.locator("#epsilon-shown").text_content() == plain(EPSILONS[place])
        assert visit.page.evaluate("location.hash") == "#epsilon=4"
        # What changed is said once.
        said = visit.page.locator("#said").inner_text()
        assert said.startswith(f"ε = 4: {report.screens[4.0].lines[0].text}")
        for end, value in (("#epsilon=0.5", "1"), ("#epsilon=7", "2"), ("#evidence", "2")):
            visit.page.goto(f"{page.as_uri()}{end}")
            visit.page.reload()
            assert visit.page.locator("#epsilon").input_value() == value
        assert visit.errors == []
        assert [url for url in visit.requests if not url.startswith("file:")] == []


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


def test_the_slider_of_the_weight_counts_the_versions_in_which_b_is_better(open_page, saved_report):
    report, page = saved_report
    details = report.findings.details
    unit = details.unit_weight if details.unit else 1.0
    with open_page(page, 1280) as visit:
        slider = visit.page.locator("#weight")
        stated = int(slider.input_value())
        for place in (0, 20, stated, int(slider.get_attribute("max"))):
            slider.fill(str(place))
            words = visit.page.locator("#weight-shown").inner_text()
            count = float(re.search(r"counts for ([\d.,]+)", words)[1].replace(",", ""))
            share = details.exchange.better_share(details.lead_weight if place == stated else count * unit)
            verdict = visit.page.locator("#weight-verdict").inner_text()
            assert f"in {share * details.versions:.0f} of {details.versions} versions" in verdict


def test_any_two_options_are_compared_as_printed(open_page, saved_report):
    report, page = saved_report
    with open_page(page, 1280) as visit:
        for epsilon, first, second in ((1.0, "A", "C"), (1.0, "C", "B"), (4.0, "B", "A"), (0.5, "B", "B")):
            visit.page.locator("#epsilon").fill(str(EPSILONS.index(epsilon)))
            for name, letter in (("option", first), ("than", second)):
                visit.page.locator(f"#{name}").select_option(index="ABC".index(letter))
            shown = visit.page.locator("#compared tbody tr:visible td").all_text_contents()
            rows, differences = [], {}
            for row in report.page_data["compare"]["tables"][EPSILONS.index(epsilon)]["rows"]:
                _, places, weight, kind, values = row
                if kind == "rest":
                    rest = (len(rows), places)
                    rows.append(["", "", ""])
                    continue
                one, other = (values["ABC".index(letter)] for letter in (first, second))
                differences[len(rows)] = (weight, round(one - other, places))
                rows.append([*(to_places(value, places) for value in (one, other)), change(one - other, places)])
            place, places = rest
            lost = differences.pop(max(differences))[1]
            rows[place][2] = change(
                round(lost - sum(weight * value for weight, value in differences.values()), places), 0
            )
            assert [shown[at : at + 3] for at in range(0, len(shown), 3)] == [
                row
                if at != place
                else [*row[:2], change(float(rows[place][2].replace("−", "-").replace(",", "")), places)]
                for at, row in enumerate(rows)
            ]


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
def test_on_a_telephone_nothing_is_cut_with_large_type_either(open_page, saved_report, size):
    _, page = saved_report
    with open_page(page, 400) as visit:
        # The page's policy takes no style but its own; what a script sets is none.
        visit.page.evaluate("size => { document.documentElement.style.fontSize = size; }", size)
        found = visit.layout()
        assert found["wide"] + found["cut"] == []


def test_on_paper_and_without_a_script_it_is_the_answer_at_the_stated_epsilon(open_page, saved_report):
    report, page = saved_report
    with open_page(page, 1000) as visit:
        visit.page.emulate_media(media="print")
        assert not visit.page.locator("#control, .tool").filter(visible=True).count()
        assert visit.sheets() <= 4
    with open_page(page, 1280, script=False) as visit:
        assert not visit.page.locator("#control, section.tool").filter(visible=True).count()
        assert answer_shown(visit) == answer_of(report.screen)
