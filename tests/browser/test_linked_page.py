"""The page of a decision follows its slider: what it shows is in its files, and its address says what is shown."""

import io
import math
import re
from dataclasses import dataclass

import pandas as pd
import pytest
from report_pages import make_report
from small_studies import STUDY

from policysim.question import formats

# At these, and at others than the study's own.
SHOWN = [(0.5, "randomized-response"), (4.0, "exponential"), (1.0, "optimal"), (4.0, "greedy"), (0.5, "best-fixed")]
# Of one scale.
SIZES = 5
MOST_CHARACTERS = 75


@dataclass(frozen=True)
class Made:
    """A page in a folder, and the tables that are beside it."""

    path: object
    comparison: pd.DataFrame
    examples: pd.DataFrame


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("linked")
    text = STUDY.replace('"exponential", "rand', '"exponential", "optimal", "rand')
    report = make_report(folder, text, prices=True, formats=("svg",))
    for name, content in report.files.items():
        if "/" not in name:
            (folder / name).write_bytes(content)
    tables = (pd.read_csv(io.BytesIO(report.files[name])) for name in ("comparison.csv", "examples.csv"))
    return Made(folder / "report.html", *tables)


@pytest.fixture
def page(open_page, made):
    with open_page(made.path, 1000) as visit:
        yield visit.page
        assert visit.errors == []
        assert all(asked.startswith(made.path.as_uri()) for asked in visit.requests)


@pytest.fixture(scope="module")
def opened(open_page, made):
    """The page for tests that look at it after a choice of their own: it is opened once."""
    with open_page(made.path, 1000) as visit:
        yield visit


@pytest.fixture
def chosen(opened, epsilon, policy):
    choose(opened.page, epsilon, policy)
    assert state(opened.page) == [f"{epsilon:g}", policy]
    yield opened.page
    assert opened.errors == []


def choose(page, epsilon, policy):
    page.evaluate(
        """([epsilon, policy]) => {
             const numbers = JSON.parse(document.getElementById("numbers").textContent);
             const slider = document.getElementById("epsilon"), choice = document.getElementById("policy");
             slider.value = numbers.epsilons.indexOf(epsilon);
             choice.value = policy;
             for (const control of [slider, choice]) control.dispatchEvent(new Event("input"));
             choice.dispatchEvent(new Event("change"));
           }""",
        [epsilon, policy],
    )


def shown(page, name):
    return page.locator(f'[data-show="{name}"]').first.inner_text()


def state(page):
    return page.evaluate(
        """() => [document.getElementById("epsilon-shown").textContent, document.getElementById("policy").value]"""
    )


def comes_to(page, *, shown=None, address=None):
    """Wait until the page shows this state or has this address: the browser reports a new address in its own time."""
    if shown is not None:
        page.wait_for_function(
            """([epsilon, policy]) => document.getElementById("epsilon-shown").textContent === epsilon
                 && document.getElementById("policy").value === policy""",
            arg=shown,
        )
    if address is not None:
        page.wait_for_function("address => location.hash === address", arg=address)
    return True


@pytest.mark.parametrize(("epsilon", "policy"), SHOWN)
def test_the_numbers_are_those_of_the_comparison(chosen, made, epsilon, policy):
    table = made.comparison
    rows = table[(table["epsilon"] == epsilon) & (table["policy"] == policy)].set_index(["group", "level"])
    row = rows.loc[("all", "all")]
    assert shown(chosen, "extra_deaths") == formats.events(row["extra_deaths"], 100_000, sign=True)
    places = chosen.evaluate("JSON.parse(document.getElementById('numbers').textContent).places")
    assert shown(chosen, "deaths") == formats.counted(row["expected_deaths"], 100_000, places)
    assert shown(chosen, "guess_rate") == formats.guess_rate(row["guess_rate"])
    assert shown(chosen, "benefit_kept") == formats.percent(row["benefit_kept"])
    assert shown(chosen, "loss") == formats.rounded(row["loss"])
    for place, loss in enumerate(rows.drop(("all", "all"))["loss"]):
        assert shown(chosen, f"g:{place}") == formats.rounded(loss)


@pytest.mark.parametrize(("epsilon", "policy"), SHOWN)
def test_the_patients_get_what_the_examples_say(chosen, made, epsilon, policy):
    rows = made.examples[(made.examples["epsilon"] == epsilon) & (made.examples["policy"] == policy)]
    for place, (_, given) in enumerate(rows.groupby("patient", sort=False)):
        for action, share in zip(given["action"], given["probability"], strict=True):
            bar = chosen.locator(f'[data-show="p:{place}:{action}"]')
            assert bar.inner_text() == formats.percent(share)
            assert float(bar.evaluate("bar => bar.style.getPropertyValue('--p')")) == pytest.approx(share, abs=0.005)


def test_the_chosen_policy_is_emphasised_wherever_it_is_drawn_or_listed(page):
    choose(page, 4.0, "exponential")
    drawn = page.evaluate("[...document.querySelectorAll('[data-policy].chosen')].map(each => each.dataset.policy)")
    listed = page.evaluate("[...document.querySelectorAll('tr.chosen')].map(row => row.dataset.row)")
    assert set(drawn) == set(listed) == {"exponential"}
    assert set(page.locator(".policy-shown").all_inner_texts()) == {"exponential"}


def test_a_link_shows_what_was_seen_and_back_undoes_one_visit_to_a_control(page):
    choose(page, 4.0, "exponential")
    assert comes_to(page, address="#epsilon=4&policy=exponential")
    said = shown(page, "extra_deaths")
    page.reload()
    assert state(page) == ["4", "exponential"]
    assert shown(page, "extra_deaths") == said
    page.focus("#epsilon")
    page.keyboard.press("ArrowLeft")
    assert comes_to(page, shown=["1", "exponential"])
    page.keyboard.press("ArrowLeft")
    assert comes_to(page, shown=["0.5", "exponential"])
    page.select_option("#policy", "optimal")
    assert comes_to(page, shown=["0.5", "optimal"], address="#epsilon=0.5&policy=optimal")
    page.go_back()
    assert comes_to(page, shown=["0.5", "exponential"])
    page.go_back()
    assert comes_to(page, shown=["4", "exponential"])
    page.go_forward()
    assert comes_to(page, shown=["0.5", "exponential"])


@pytest.mark.parametrize(
    "foreign",
    [
        "#epsilon=17&policy=exponential-mine",
        "#epsilon=NaN",
        "#policy=__proto__",
        "#policy=constructor",
        "#nothing",
        "#%",
    ],
)
def test_what_the_page_does_not_have_is_not_taken_from_an_address(page, made, foreign):
    page.goto("about:blank")
    page.goto(made.path.as_uri() + foreign)
    assert state(page) == ["1", "optimal"]


def test_a_link_of_the_contents_keeps_what_is_chosen(page):
    choose(page, 4.0, "exponential")
    page.locator(".contents summary").click()
    page.locator('.contents a[href="#groups"]').click()
    assert comes_to(page, address="#epsilon=4&policy=exponential&at=groups")
    page.reload()
    assert state(page) == ["4", "exponential"]
    page.wait_for_function("document.getElementById('groups').getBoundingClientRect().top < 300")


def test_arrow_keys_move_and_one_short_summary_is_said(page):
    region = page.locator("[aria-live=polite]")
    assert region.count() == 1
    assert not region.inner_text()
    page.focus("#epsilon")
    page.keyboard.press("ArrowRight")
    assert comes_to(page, shown=["4", "optimal"])
    page.wait_for_function("document.querySelector('[aria-live=polite]').textContent !== ''")
    said = region.inner_text()
    assert said.startswith("optimal at ε = 4: ")
    assert shown(page, "extra_deaths") in said
    assert len(said) < 250
    assert page.evaluate("getComputedStyle(document.getElementById('epsilon')).outlineStyle") == "solid"


def test_the_contents_stand_beside_a_wide_page_and_are_a_menu_on_a_narrow_one(open_page, made):
    for width, beside in ((1400, True), (400, False)):
        with open_page(made.path, width) as visit:
            link = visit.page.locator('.contents a[href="#groups"]')
            assert link.is_visible() == beside
            if beside:
                visit.page.evaluate("scrollTo(0, 3000)")
                visit.page.wait_for_function("document.querySelector('.contents').getBoundingClientRect().top === 0")


@pytest.mark.parametrize("size", ["16px", "24px", "32px"])
def test_large_type_breaks_nothing(open_page, made, size):
    with open_page(made.path, 400) as visit:
        # The page's policy takes no style but its own; what a script sets is none.
        visit.page.evaluate("size => { document.documentElement.style.fontSize = size; }", size)
        found = visit.layout()
        assert found["wide"] == []
        assert found["cut"] == []


def test_there_is_one_scale_of_text_and_no_line_is_too_long(open_page, made):
    with open_page(made.path, 1400) as visit:
        sizes = visit.page.evaluate(
            """() => [...new Set([...document.querySelectorAll("body *:not(svg *, script, style, option)")]
                 .filter(each => [...each.childNodes].some(node => node.nodeType === 3 && node.data.trim()))
                 .map(each => getComputedStyle(each).fontSize))]"""
        )
        assert len(sizes) <= SIZES, sizes
        longest = visit.page.evaluate(
            """() => Math.max(...[...document.querySelectorAll("main :is(p, li, dd, figcaption)")].flatMap(each => {
                 const range = document.createRange(), lines = [0];
                 const walker = document.createTreeWalker(each, NodeFilter.SHOW_TEXT);
                 let last = null;
                 while (walker.nextNode()) {
                   for (let place = 0; place < walker.currentNode.length; place += 1) {
                     range.setStart(walker.currentNode, place);
                     range.setEnd(walker.currentNode, place + 1);
                     const box = range.getBoundingClientRect();
                     // A line ends where the next one begins, or the next column.
                     if (last && (Math.abs(box.bottom - last.bottom) > 8 || box.left > last.right + 12)) lines.push(0);
                     lines[lines.length - 1] += 1;
                     last = box;
                   }
                 }
                 return lines;
               }))"""
        )
        assert longest <= MOST_CHARACTERS * 1.1


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_either_theme(open_page, made, theme):
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415 - absent where playwright is

    with open_page(made.path, 1000) as visit:
        visit.page.emulate_media(color_scheme=theme)
        background = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        light = sum(map(int, re.findall(r"\d+", background)[:3])) / 3 > 128
        assert light == (theme == "light")
        visit.page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")
        violations = Axe().run(visit.page).response["violations"]
        assert [(each["id"], [node["target"] for node in each["nodes"]]) for each in violations] == []


def test_on_paper_what_is_folded_stays_so_and_the_control_is_left_out(page):
    page.emulate_media(media="print")
    assert not page.locator("#control").is_visible()
    assert not any(details.is_visible() for details in page.locator("details").all())
    assert page.locator(".strip").is_visible()


def test_a_rate_that_rounds_up_is_written_as_the_page_writes_it(page):
    """The script's rounding, against that of Python, for the guess rates of every policy and epsilon."""
    for epsilon in (0.5, 1.0, 4.0):
        right = 1 / (1 + math.exp(-epsilon))
        choose(page, epsilon, "optimal")
        assert f"at most {formats.of_100(right)} of 100 times" in page.locator('[data-show="odds"]').inner_text()
