"""The page that a report saves: every number is a cell of its tables, and the slider swaps what Python wrote."""

import html
import json
import re
from hashlib import sha256

import pandas as pd
import pytest

import policysim as ps
from policies import AnyRecord, DecisionProblem
from policysim.errors import OutputError
from policysim.numbers import plain, six_digits, table_text

CELL = re.compile(r'<data data-cell="([^"]+)" value="([^"]*)">([^<]*)</data>')
UNSEEN = re.compile(r"<(style|script|svg|data)\b.*?</\1>|<[^>]*>", re.DOTALL)
# How redraws are made is one text, of Python's.
HOW_DRAWN = r"\d+ numbers of the treatments \(.*?\)\."
OWN = DecisionProblem([[0.0, 1.0, 0.4], [1.0, 0.0, 0.4]], [0.5, 0.5], AnyRecord())


@pytest.fixture(scope="module")
def saved(saved_report):
    """The folder of the report."""
    assert saved_report[1].name == "report.html"
    return saved_report[1].parent


@pytest.fixture(scope="module")
def page(saved):
    return (saved / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def moving(page):
    return json.loads(re.search(r'id="moving">(.*?)</script>', page, re.DOTALL)[1])


@pytest.fixture(scope="module")
def written(saved):
    """What each key of the written tables is printed as: its value, or both ends of what it spans, and its text."""
    found = {}
    for path in saved.glob("*.csv"):
        table = pd.read_csv(path, keep_default_na=False, na_values=[""], dtype={"row": str, "format": str})
        if not {"row", "option", "format"} <= set(table):
            continue
        for each in table.to_dict("records"):
            epsilon = "" if pd.isna(each["epsilon"]) else plain(each["epsilon"])
            option = "" if pd.isna(each["option"]) else each["option"]
            key = "/".join((path.stem.replace("-", " "), each["row"], option, epsilon, "value"))
            numbers = [each[name] for name in ("value", "low", "high")]
            span = each["format"].startswith("span")
            value = " ".join(map(six_digits, numbers[1:])) if span else six_digits(numbers[0])
            found[key] = value, table_text(each["format"], *numbers)
    return found


def test_every_number_of_the_page_is_a_cell_of_its_tables(page, written):
    cells = CELL.findall(page)
    assert len(cells) > 60
    for key, value, text in cells:
        assert (value, html.unescape(text)) == written[html.unescape(key)]


def test_no_digit_stands_outside_cells_and_names(page):
    # A title cannot mark its cells: it is the finding, which is made of them.
    title = re.search(r"<title>(.*?)</title>", page)[0]
    finding = re.search(r'<meta name="description" content="(.*?)\.">', page)[1]
    assert title == f"<title>Small: {finding}</title>"
    page = page.replace(title, "")
    for names in (r"python [\d.]+(, [a-z-]+ [\w.+]+)+", "Two symptoms", r"age = \d+", r"age \w+", HOW_DRAWN):
        page = re.sub(names, "", page)
    assert [text for text in html.unescape(UNSEEN.sub("\0", page)).split("\0") if re.search(r"\d", text)] == []


def test_the_slider_swaps_the_strings_of_each_column(page, moving, written):
    places = re.findall(r"<(\w+)\b[^>]* data-at>(.*?)</\1>", page, re.DOTALL)
    assert moving["labels"] == ["0", "0.5", "1", "4"]
    assert [each.count("<data") for each in moving["shown"]] == [1] * 4
    seen = set()
    for place, texts in moving["slots"]:
        # What stands on the page is what the slider puts there at the stated ε.
        assert texts[moving["position"]] == places[place][1]
        for label, text in zip(moving["labels"], texts, strict=True):
            for key, value, shown in CELL.findall(text):
                assert (value, html.unescape(shown)) == written[html.unescape(key)]
                table, row, option, epsilon, _ = key.split("/")
                assert epsilon == label or not epsilon
                seen.add((table, row, option))
    assert {("options", "death", "private choice"), ("options", "loss", "exponential mechanism")} <= seen


def test_what_stays_at_the_stated_epsilon_says_so(page, moving):
    moved = {place for place, _ in moving["slots"]}
    lines = re.findall(r"<dt>(.*?)</dt><dd data-at>", page)
    assert [line.split(" ")[0] for line in lines if 'class="stays"' in line] == ["Safest", "Certain?"]
    assert not moved & {0, 5}
    # Of the rows, too: redraws are made at one epsilon.
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>', page)
    stay = [row for row in rows if 'class="stays"' in row]
    assert stay == [row for row in rows if row.startswith("Best for all / beats it")]


def test_its_links_lead_to_files_of_the_folder(page, saved):
    links = re.findall(r'href="([^"#]+)"', page)
    assert "options.csv" in links
    assert all((saved / link).exists() for link in links)
    assert (saved / "figures" / "frontier.svg").exists()


@pytest.mark.usefixtures("blank_drawings")
def test_a_manifest_has_the_digests_of_any_problem(saved, tmp_path):
    folder = ps.report(OWN, epsilons=[0.5, 1.0]).save(tmp_path / "own").parent
    for each in (saved, folder):
        results = json.loads((each / "manifest.json").read_text())["results"]
        assert {"report.html", "options.csv"} <= set(results)
        for name, digest in results.items():
            assert sha256((each / name).read_bytes()).hexdigest() == digest


@pytest.mark.usefixtures("blank_drawings")
def test_a_folder_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    report = ps.report(OWN, epsilons=[1.0])
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError):
        report.save(tmp_path / "file")
    monkeypatch.setattr("policysim.output.deliver.answer_page", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        report.save(tmp_path / "new")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


@pytest.mark.usefixtures("blank_drawings")
def test_a_notebook_shows_the_lines_and_the_tables():
    shown = ps.report(OWN, epsilons=[0.5, 1.0])._repr_html_()
    assert shown.count("<dt>") == 6
    assert 'class="options"' in shown
    assert "<script" not in shown
    assert "://" not in shown
