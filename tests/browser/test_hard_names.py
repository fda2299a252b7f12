"""Pages whose names are markup, a script, one long word, Chinese and Arabic; with 40 groups, 12 treatments, no deaths
and one ε: each stays whole."""

import pytest
from drawings import draw_only
from hard_names import ARABIC, CHINESE, LONG, MARKUP, write_hard_study, write_hard_trial
from page_policy import breaks

from policysim.cli.main import main
from policysim.decision import redraws
from policysim.trials import evidence, trial_columns

# A4 (210 mm) less margins of 10 mm at 96 px an inch.
PAPER = 718
UNFOLD = "document.querySelectorAll('details').forEach(details => { details.open = true; })"
PAGES = ("decision", "trial", "course", "choice")
PRINTED = {"decision": 10, "trial": 10, "course": 8, "choice": 11}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A page of each kind, by name."""
    folder = tmp_path_factory.mktemp("hard")
    study, trial = (str(write(folder)) for write in (write_hard_study, write_hard_trial))
    reports = folder / "reports"
    svg = ["--format", "svg"]
    days = ["--horizon", "2", "--total-epsilon", "1"]
    choice = ["--keep", "20%", "--policy", "all"]
    with pytest.MonkeyPatch.context() as patch:
        # What figures of hard names look like is told in tests/policysim/figures/test_journal.py.
        draw_only(patch, "frontier", "loss-by-group")
        patch.setattr(trial_columns, "REPEATS", 1)
        patch.setattr(evidence, "LOOKS", (20,))
        patch.setattr(redraws, "REDRAWS", 20)
        assert main(["compare", study, "--out", str(reports / "decision"), *svg]) == 0
        assert main(["compare", trial, "--out", str(reports / "trial"), *svg]) == 0
        assert main(["compare", study, *days, "--out", str(reports / "course"), *svg]) == 0
        assert main(["choose", study, *choice, "--out", str(reports / "choice")]) == 0
    return reports


@pytest.fixture(scope="module", params=PAGES)
def page(request, folder):
    return request.param, folder / request.param / "report.html"


@pytest.fixture(scope="module", params=[400, 1400])
def opened(request, open_page, page):
    with open_page(page[1], request.param) as visit:
        visit.page.evaluate(UNFOLD)
        yield page[0], visit


def test_no_script_runs_and_nothing_is_asked_for(opened, page):
    _, visit = opened
    assert visit.page.title() != "ran"
    assert visit.page.locator("img").count() == 0
    assert visit.errors == []
    assert visit.requests == [page[1].as_uri()]


def test_a_page_says_what_it_may_do_and_does_nothing_else(page):
    assert breaks(page[1].read_text(encoding="utf-8")) == []


# What somebody may put into a page's text, if a name was ever not escaped: none of it may run, show or ask.
PLANTED = {
    "a script": '<script>document.title = "ran"</script>',
    "a handler": "<details open ontoggle=\"document.title = 'ran'\">x</details>",
    "an image and its handler": '<img src="data:image/png,x" onerror="document.title = \'ran\'">',
    "a style": "<style>body { display: none !important }</style>",
    "the style of an element": '<p id="planted" style="position: fixed">x</p>',
    "a frame": "<iframe srcdoc=\"<script>parent.document.title = 'ran'</script>\"></iframe>",
    "a base": '<base href="https://example.invalid/">',
}


# What such a thing would have done.
HARM = """() => [document.title === "ran", getComputedStyle(document.body).display === "none",
  document.baseURI.startsWith("https:"), Boolean(document.querySelector("#planted[style]"))
  && getComputedStyle(document.querySelector("#planted")).position === "fixed"]"""


def planted(path, folder, *, kinds=tuple(PLANTED), policy="http-equiv"):
    text = path.read_text(encoding="utf-8").replace("<body>", "<body>" + "".join(PLANTED[kind] for kind in kinds), 1)
    made = folder / "report.html"
    made.write_text(text.replace("http-equiv", policy), encoding="utf-8")
    return made


def test_what_is_planted_in_a_page_is_not_run(open_page, page, tmp_path):
    with open_page(planted(page[1], tmp_path), 1000) as visit:
        assert not any(visit.page.evaluate(HARM))
        assert sum("Content Security Policy" in error for error in visit.errors) >= len(PLANTED) - 1


@pytest.mark.parametrize("kind", PLANTED)
def test_without_the_policy_each_plant_would_do_harm(open_page, folder, tmp_path, kind):
    path = planted(folder / "choice" / "report.html", tmp_path, kinds=[kind], policy="data-not")
    with open_page(path, 1000) as visit:
        visit.page.wait_for_function(f"() => ({HARM})().some(Boolean)")


def test_a_page_does_not_scroll_sideways_and_cuts_no_text(opened):
    layout = opened[1].layout()
    assert layout["wide"] + layout["cut"] + layout["small"] == []


def test_on_paper_all_is_within_the_page(open_page, page):
    with open_page(page[1], PAPER) as visit:
        visit.page.evaluate(UNFOLD)
        visit.page.emulate_media(media="print")
        layout = visit.layout()
    assert layout["wide"] + layout["cut"] + layout["scrolled"] == []


def test_every_name_can_be_read(opened):
    name, visit = opened
    # What is broken into lines is one text still.
    text = visit.page.evaluate(
        "document.body.innerText + [...document.querySelectorAll('svg text')].map(t => t.textContent)"
    )
    # A page of days names no treatment.
    names = (CHINESE,) if name == "course" else (MARKUP, LONG, CHINESE, ARABIC)
    for words in names:
        assert " ".join(words.split()) in " ".join(text.split())


# In the light theme axe looks at the committed reports.
@pytest.mark.parametrize("opened", [400], indirect=True, scope="module")
def test_axe_finds_nothing_serious_in_the_dark_theme(opened):
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415 - absent where playwright is

    _, visit = opened
    visit.page.emulate_media(color_scheme="dark")
    try:
        violations = Axe().run(visit.page).response["violations"]
    finally:
        visit.page.emulate_media(color_scheme="light")
    found = [
        f"{violation['id']}: {node['target']}"
        for violation in violations
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]
    assert found == []


def test_a_page_is_short_on_paper(open_page, page):
    name, path = page
    with open_page(path, 1000) as visit:
        assert 1 <= visit.sheets() <= PRINTED[name]
