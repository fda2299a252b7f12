"""What is printed of the built-in studies, of an example and of a problem of one's own: kept, short, and all cells."""

import html
import math
import re

import pytest
import snapshots
from policysim.output.answer_page import moving
from policysim.output.deliver import what_it_says
from policysim.output.screen import page_part, slots
from policysim.study.cells import COLUMNS, Cells
from policysim.study.certainty import VERDICTS, recommended
from snapshots import SCREENS, answer_of, printed, texts

from policysim.numbers import plain, table_text

DECISIONS = [name for name in SCREENS if name != "actg175"]
CELL = re.compile(r'<data data-cell="([^"]+)" value="[^"]*">([^<]*)</data>')
MAKE = "the screen changed: if it should, run `make snapshots` and read the change"


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_is_the_one_that_is_kept(name):
    for file, text in texts(name).items():
        assert text == (snapshots.FOLDER / file).read_text(encoding="utf-8"), MAKE


def test_every_snapshot_is_of_a_screen():
    kept = {path.name for path in snapshots.FOLDER.iterdir()}
    assert kept == {file for name in SCREENS for file in texts(name)}


def test_snapshots_are_not_written_where_changes_are_checked(monkeypatch, capsys):
    """Otherwise every change would pass: it would be compared with itself."""
    monkeypatch.setenv(snapshots.CHECKED, "1")
    assert snapshots.main() == 2
    assert "not written where changes are checked" in capsys.readouterr().err
    assert f"export {snapshots.CHECKED}=1" in (snapshots.ROOT / ".ci" / "run").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_is_at_most_28_lines_of_100_columns(name):
    lines = [line for line in printed(name).splitlines() if not line.startswith("Beware: ")]
    # Two of them are of the textbook's exponential mechanism, where it stands beside the fitted one.
    assert len(lines) <= 28
    assert max(map(len, lines)) <= 100


def cells_of(tables):
    """What each key of the tables is printed as, looked up without `Cells`."""
    found = {}
    for name, table in tables.items():
        if set(COLUMNS) <= set(table):
            for row, option, epsilon, value, low, high, style in table[list(COLUMNS)].to_numpy().tolist():
                for column, number in (("value", value), ("low", low), ("high", high)):
                    key = "/".join((name, row, option, "" if math.isnan(epsilon) else plain(epsilon), column))
                    assert key not in found
                    found[key] = table_text(style, number, low, high)
    return found


@pytest.mark.parametrize("name", SCREENS)
def test_every_number_of_page_and_screen_is_the_cell_that_it_says(name):
    tables, kind = answer_of(name).options, answer_of(name).kind
    known, found = cells_of(tables), slots(tables, kind)
    part = page_part(found, kind)
    cells = [(html.unescape(key), html.unescape(text)) for key, text in CELL.findall(part)]
    assert len(set(cells)) > 30
    assert [(key, text) for key, text in cells if known[key] != text] == []
    # Besides there are only names.
    names = " ".join([*tables["names"]["text"], *map(str, titles(tables))])
    bare = html.unescape(re.sub(r"<[^>]*>", " ", CELL.sub("", part)))
    assert [digits for digits in re.findall(r"\d+", bare) if digits not in names] == []
    # The screen is the page's text: the same cells, and those of the tables behind them.
    shown = {text for _, text in cells} | {text for key, text in known.items() if key.split("/")[0] in tables}
    allowed = set(re.findall(r"[\d.,]*\d", " ".join([*shown, names, *(each for each in titles(tables))])))
    assert set(re.findall(r"[\d.,]*\d", printed(name, full=True))) <= allowed
    for line in found["findings"]:
        assert html.unescape(re.sub(r"<[^>]*>", "", line.text.html)) == line.text


def titles(tables):
    """The names of rows, and of columns."""
    for table in tables.values():
        if "title" in table:
            yield from table["title"]


@pytest.mark.parametrize("name", SCREENS)
def test_the_slider_has_the_formatted_column_of_each_epsilon(name):
    tables, kind = answer_of(name).options, answer_of(name).kind
    known, found = cells_of(tables), moving(tables, kind, Cells(tables))
    stated = slots(tables, kind)["epsilon"]
    assert found["labels"][found["position"]] == plain(stated)
    columns = set()
    for _, parts in found["slots"]:
        for label, part in zip(found["labels"], parts, strict=True):
            for key, text in CELL.findall(part):
                assert known[html.unescape(key)] == html.unescape(text)
                table, row, option, epsilon, _ = html.unescape(key).split("/")
                # A stale ε would be another column's.
                assert epsilon in {label, ""}
                columns.add((table, row, option, epsilon))
    row = "difference" if name == "actg175" else "loss"
    for label in found["labels"]:
        assert ("options", row, "private choice", label) in columns


@pytest.mark.parametrize("name", DECISIONS)
def test_title_manifest_and_verdict_recommend_the_same(name):
    answer = answer_of(name)
    tables, kind = answer.options, answer.kind
    option = recommended(VERDICTS[kind](tables))
    policy = tables["columns"].query("stated and option == 'private choice'")["policy"].iloc[0]
    said = tables["certainty"].set_index(["measure", "policy"])["verdict"]["value", policy]
    assert (option == "private choice") == (said == "better")
    finding = str(slots(tables, kind)["finding"])
    assert ("a treatment chosen privately loses less" in finding) == (option == "private choice")
    manifest = what_it_says(answer)
    assert len(manifest["answer"]) == 6


def test_stroke_cannot_be_told_and_warfarin_is_better():
    words = {name: VERDICTS["decision"](answer_of(name).options) for name in ("stroke", "warfarin", "ward")}
    assert recommended(words["stroke"]) == recommended(words["ward"]) == "one for all"
    assert recommended(words["warfarin"]) == "private choice"
    assert not words["stroke"]["each's best better"]
    assert words["warfarin"]["each's best better"] and words["ward"]["each's best better"]
    stroke = answer_of("stroke").options
    assert set(stroke["best-for-all"]["value"]) == {103.0, 69.0, 28.0, 0.0}
    # Shares of the benefit may be said of the others, and no table says one of stroke.
    assert "benefit kept" in set(answer_of("warfarin").options["rows"]["row"])
    assert "benefit kept" not in set(stroke["rows"]["row"])
    assert not {"kept", "keeps"} & set(stroke["policies"]["option"])
    assert "prevalences" not in stroke
