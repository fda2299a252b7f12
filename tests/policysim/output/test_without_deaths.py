"""Where no record can die, nothing is said of deaths, on the page or on the screen; and other things left unsaid."""

import re

import pytest
from report_pages import readable
from small_studies import SCENARIO, STUDY, write_small_study

from policysim.cli.main import main

# Nothing is redrawn unless the whole record is hidden.
QUICK = STUDY.replace("any-record", "one-feature")
DEATHLESS = re.sub(r"\[death\].*?(?=\[weights\])", "", SCENARIO, flags=re.DOTALL).replace("death = 10\n", "")
DEATHLESS = re.sub(r", death = [\d.]+", "", DEATHLESS)


def compared(folder, study, scenario, capsys, *options):
    """Screen, text of the page without its drawings, and the page."""
    path = write_small_study(folder, study, scenario)
    assert main(["compare", str(path), "--out", str(folder / "out"), "--format", "svg", *options]) == 0
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    return capsys.readouterr().out, readable(re.sub(r"<svg.*?</svg>|<pre>.*?</pre>", "", page, flags=re.DOTALL)), page


@pytest.mark.usefixtures("blank_drawings")
def test_where_nobody_can_die_nothing_is_said_of_deaths(tmp_path, capsys):
    screen, text, page = compared(tmp_path, QUICK, DEATHLESS, capsys, "--price-list")
    body = text.partition('{"epsilons"')[0]
    assert "extra deaths" not in body
    assert "Deaths per" not in body
    assert 'data-show="extra_deaths"' not in page
    assert "in utility per patient" in body
    strip = page.partition('<dl class="strip">')[2].partition("</dl>")[0]
    assert re.findall(r'data-show="(\w+)"', strip) == ["guess_rate", "benefit_kept", "loss"]
    assert "death" not in screen.casefold()


@pytest.mark.usefixtures("blank_drawings")
def test_where_some_can_die_all_of_that_is_said(tmp_path, capsys):
    screen, text, page = compared(tmp_path, QUICK, SCENARIO, capsys, "--price-list")
    for words in ("extra deaths per 100,000", "Deaths per 100,000 patients: untreated", "deaths per 100,000 than"):
        assert words in text
    assert 'data-show="extra_deaths"' in page
    assert "Deaths per 100,000:" in screen
    assert "extra deaths per 100,000" in screen
    # A title that repeats the name is left out.
    assert "one for all (syrup) " in screen
    assert "· one for all (syrup) " in text
    assert "3 treatments: none (nothing), syrup, pill." in text


@pytest.mark.usefixtures("blank_drawings")
@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("epsilons = [0.5, 1.0, 4.0]", "epsilons = [0]", "No ε of this study is above 0 and finite"),
        (', "exponential", "randomized-response"]', "]", "No mechanism that spends ε was compared, so"),
    ],
)
def test_no_heading_stands_over_nothing(tmp_path, capsys, old, new, says):
    study = STUDY.replace(old, new)
    if new.endswith("[0]"):
        study = study.replace("epsilon = 1.0", "epsilon = 0")
    _, text, page = compared(tmp_path, study, SCENARIO, capsys)
    assert says in text
    assert not re.search(r"</hgroup>\s*<(h2|hgroup)", page)


@pytest.mark.usefixtures("blank_drawings")
def test_the_page_says_the_command_that_made_it(tmp_path, capsys):
    _, text, _ = compared(tmp_path, QUICK, SCENARIO, capsys, "--seed", "5")
    # The study and its scenario are kept beside the manifest.
    assert "Run it again in this folder: policysim reproduce manifest.json" in text
    assert "policysim compare study.toml --seed 5 --format svg made this page." in text
    assert "policysim compare study.toml --seed 5 --format svg --price-list adds it here" in text
    assert "make report" not in text


@pytest.mark.usefixtures("blank_drawings")
def test_without_losses_there_is_no_worst_group(tmp_path, capsys):
    study = QUICK.replace("epsilons = [0.5, 1.0, 4.0]", "epsilons = [1.0, inf]").replace(
        "epsilon = 1.0", "epsilon = inf", 1
    )
    screen, text, _ = compared(
        tmp_path, study.replace('"exponential", "randomized-response"', '"optimal"'), SCENARIO, capsys
    )
    assert "Worst off" not in screen
    assert "worst-off" not in text
