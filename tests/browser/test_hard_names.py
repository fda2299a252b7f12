"""Pages whose names are markup, a script, one long word, Chinese and Arabic; with 40 groups, 12 treatments, no deaths
and one ε: each stays whole."""

import pytest
from drawings import draw_only
from hard_names import ARABIC, CHINESE, LONG, MARKUP, write_hard_study, write_hard_trial
from page_policy import breaks

from policysim.cli.main import main
from policysim.decision import redraws
from policysim.trials import evidence, trial_columns

UNFOLD = "document.querySelectorAll('details').forEach(details => { details.open = true; })"
PAGES = ("decision", "trial", "course", "choice")


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
        assert main(["choose", study, *choice, "--out", str(reports / "choice")]) in (0, 4)
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


def test_the_policy_of_a_page_keeps_what_is_planted_from_running(open_page, page, tmp_path):
    text = page[1].read_text(encoding="utf-8").replace("<body>", "<body>" + "".join(PLANTED.values()), 1)
    path = tmp_path / "report.html"
    path.write_text(text, encoding="utf-8")
    with open_page(path, 1000) as visit:
        assert not any(visit.page.evaluate(HARM))
        assert sum("Content Security Policy" in error for error in visit.errors) >= len(PLANTED) - 1
    path.write_text(text.replace("http-equiv", "data-not"), encoding="utf-8")
    with open_page(path, 1000) as visit:
        visit.page.wait_for_function(f"() => ({HARM})().some(Boolean)")


def test_a_page_does_not_scroll_sideways_and_cuts_no_text(opened):
    layout = opened[1].layout()
    assert layout["wide"] + layout["cut"] + layout["small"] == []


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
