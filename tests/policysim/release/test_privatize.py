"""`policysim privatize` as a user meets it: what it prints, writes and refuses."""

import json
from pathlib import Path

import numpy as np
import pytest
from private_files import COLUMNS, DECLARED, people, read_rows, run, write_people


@pytest.fixture
def data(tmp_path):
    return write_people(tmp_path / "data.csv")


@pytest.fixture
def out(data):
    return data.with_name(f"private{data.suffix}")


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_the_columns_are_replaced_and_everything_else_is_as_it_was(capsys, tmp_path, ending):
    data, out = write_people(tmp_path / f"data{ending}"), tmp_path / f"private{ending}"
    code, printed, err = run(capsys, data, *COLUMNS, "--epsilon", 1, *DECLARED, "--out", out)
    assert (code, err) == (0, "")
    header, rows = read_rows(out)
    assert header == ["person", "age_band", "sex", "note"]
    assert [[row[0], row[3]] for row in rows] == [[row[0], row[3]] for row in people(60)]
    assert {row[1] for row in rows} <= {"young", "old"}
    assert {row[2] for row in rows} <= {"0", "1"}
    # All 60 rows told the truth: (e / (e + 3))^60 = 4e-20.
    assert [row[1:3] for row in rows] != [row[1:3] for row in people(60)]
    words = " ".join(printed.split())
    assert "60 rows, each privatised at ε = 1: age_band and sex by k-ary response over 4 values (ε = 1)." in words
    assert "! NOT privatised, unchanged: person, note." in words
    assert "SIMULATION" not in printed
    assert "NOT PRIVATE" not in printed
    warning = "do not sort by a hidden column."
    assert f"Rows keep their order, which is public: {warning}" in words
    guarantee = json.loads(Path(f"{out}.privacy.json").read_text())["guarantee"]
    assert "the number of rows and their order." in guarantee
    assert f"The rows keep their order: {warning}" in guarantee
    # A folder's name may be as long as it likes.
    assert max(len(line) for line in printed.splitlines() if str(out.parent) not in line) <= 100


def test_the_screen_shows_the_reports_and_what_they_mean(capsys, data, out):
    _, printed, _ = run(capsys, data, *COLUMNS, "--epsilon", 1, *DECLARED, "--out", out, "--json")
    document = json.loads(printed)
    _, rows = read_rows(out)
    (table,) = document["estimates"]
    assert [row["levels"] for row in table["rows"]] == [["young", "0"], ["young", "1"], ["old", "0"], ["old", "1"]]
    p, q = (np.e / (np.e + 3), 1 / (np.e + 3))
    for row in table["rows"]:
        reports = sum(cells[1:3] == row["levels"] for cells in rows)
        assert row["reports"] == reports
        assert row["estimate"] == pytest.approx((reports - 60 * q) / (p - q))
        assert 0 <= row["interval"][0] < row["interval"][1] <= 60
    assert sum(row["estimate"] for row in table["rows"]) == pytest.approx(60)
    assert "not_private" not in document


def test_3000_codes_have_intervals_within_the_rows_and_counts_that_add_up_beside_unbiased_ones(capsys, data, out):
    """Most codes are nobody's: unbiased counts are below 0, and those cut off at 0 sum to far more than all rows."""
    codes = [f"I{number:04}" for number in range(3000)]
    data.write_text("\n".join(["icd", *np.random.default_rng(1).choice(codes[:50], 500)]) + "\n")
    levels = f"icd={','.join(codes)}"
    _, printed, _ = run(capsys, data, "--column", "icd", "--levels", levels, "--epsilon", 2, "--out", out, "--json")
    rows = json.loads(printed)["estimates"][0]["rows"]
    reports, unbiased, consistent = (
        np.array([row[name] for row in rows]) for name in ("reports", "estimate", "consistent_estimate")
    )
    assert all(0 <= row["interval"][0] <= row["interval"][1] <= 500 for row in rows)
    assert unbiased.sum() == pytest.approx(500) and unbiased.min() < 0
    assert unbiased.clip(0).sum() > 5000
    assert consistent.sum() == pytest.approx(500) and consistent.min() >= 0

    def log_likelihood(counts):
        lie = 1 / (np.exp(2) + 2999)
        return reports @ np.log(lie + (np.exp(2) - 1) * lie * counts / 500)

    # No other counts make the reports likelier: not a step towards the truth, nor towards any single code.
    for other in (np.eye(3000) * 500)[::100]:
        assert log_likelihood(consistent) >= log_likelihood(0.99 * consistent + 0.01 * other)
    screen = run(capsys, "--estimate", out)[1]
    assert "unbiased   consistent" in screen and max(map(len, screen.splitlines()[1:-1])) <= 100


def test_a_file_that_is_private_already_is_warned_about_whatever_its_note(capsys, data, out):
    run(capsys, data, *COLUMNS, "--epsilon", 2, *DECLARED, "--out", out)
    Path(f"{out}.privacy.json").write_text("{")
    again = out.with_name(f"again{out.suffix}")
    code, _, err = run(capsys, out, "--column", "sex", "--levels", "sex=0,1", "--epsilon", 1, "--out", again)
    assert code == 0
    assert err == (
        f"policysim: warning: {out.name}.privacy.json stands beside {out.name}: its columns may already have been "
        "randomised, and nothing here corrects for that or adds its epsilon\n"
    )


def test_separately_splits_epsilon_and_gives_a_table_for_each_column(capsys, data, out):
    _, printed, _ = run(capsys, data, *COLUMNS, "--epsilon", 1, *DECLARED, "--out", out, "--separately", "--json")
    document = json.loads(printed)
    channels = document["note"]["channels"]
    assert [(channel["columns"], channel["epsilon"]) for channel in channels] == [(["age_band"], 0.5), (["sex"], 0.5)]
    assert [table["columns"] for table in document["estimates"]] == [["age_band"], ["sex"]]
    code, again, _ = run(capsys, "--estimate", out, "--json")
    assert (code, json.loads(again)) == (0, document)


def test_true_counts_and_errors_are_shown_and_marked(capsys, data, out):
    options = (*COLUMNS, "--epsilon", 1, *DECLARED, "--out", out.with_name("out.simulated.csv"), "--true")
    _, printed, _ = run(capsys, data, *options, "--simulate", 1)
    before, after = printed.split("NOT PRIVATE: ")
    assert [line for line in before.splitlines() if line.endswith(" error")] == []
    heading, *lines = (line.split() for line in after.splitlines()[1:-1])
    assert heading == ["true", "estimate", "error"]
    _, printed, _ = run(capsys, data, *options, "--simulate", 1, "--json")
    document = json.loads(printed)
    (table,) = document["not_private"]["tables"]
    values = [row[1:3] for row in people(60)]
    assert table["true"] == [values.count(row["levels"]) for row in document["estimates"][0]["rows"]]
    for line, row, true in zip(lines, document["estimates"][0]["rows"], table["true"], strict=True):
        shown = [int(cell.replace("−", "-")) for cell in line[-3:]]
        assert shown == [true, round(row["estimate"]), round(row["estimate"] - true)]


def test_levels_can_be_taken_from_the_rows_but_not_without_a_warning(capsys, data, out):
    code, printed, _ = run(capsys, data, *COLUMNS, "--epsilon", 1, "--levels", "sex=1,0", "--out", out)
    assert code == 0
    assert "The levels of age_band were taken from the private rows" in printed
    note = json.loads(Path(f"{out}.privacy.json").read_text())
    assert note["columns"] == [
        {"name": "age_band", "levels": ["old", "young"], "levels_from": "data"},
        {"name": "sex", "levels": ["1", "0"], "levels_from": "declared"},
    ]
    _, again, _ = run(capsys, "--estimate", out)
    assert "The levels of age_band were taken from the private rows" in again


def test_a_seed_makes_a_simulation_that_is_marked_and_repeatable(capsys, tmp_path):
    data, written = write_people(tmp_path / "data.parquet"), []
    for name in ("one", "two"):
        out = tmp_path / f"{name}.simulated.parquet"
        _, printed, _ = run(capsys, data, *COLUMNS, "--epsilon", 1, *DECLARED, "--out", out, "--simulate", 5)
        assert "SIMULATION, not a release" in printed
        assert "simulation, not a release" in Path(f"{out}.privacy.json").read_text()
        _, again, _ = run(capsys, "--estimate", out)
        assert "SIMULATION, not a release" in again
        written.append(out.read_bytes())
    assert written[0] == written[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "privatize needs --column NAME"),
        ("--column sex", "privatize needs --epsilon"),
        ("--column sex --epsilon 0 --out o.csv", "--epsilon must be a finite number > 0, got '0'"),
        ("--column sex --levels age=1,2", "--levels must be COLUMN=A,B of a column named with --column"),
        ("--column sex --levels sex=1,0 --levels sex=1,0", "--levels of sex are given twice"),
        ("--column sex --levels sex=0,1,0 --epsilon 1 --out o.csv", "sex: its levels must differ, got '0' and '0'."),
        (
            "--column sex --epsilon 1e-30 --out o.csv",
            "epsilon=1E-30 is infinite, or too small for exact draws with words of 62 bits.",
        ),
        ("--estimate --simulate 0", "--simulate does not go with --estimate"),
        ("--column sex --epsilon 1 --out o.csv --simulate 1 --ledger l.sqlite", "--ledger does not go with --simulate"),
        (
            "--column sex --epsilon 1 --out o.csv --seed 1",
            "--seed does not go with a release, which cannot be drawn again",
        ),
        ("--column sex --epsilon 1 --out o.csv --simulate 1", "o.csv: must end in .simulated.csv"),
        ("--column sex --epsilon 1 --out o.simulated.csv", "o.simulated.csv: is a release's, and must not end in"),
        (
            "--column sex --epsilon 1 --out o.csv --uncounted --rows-per-person 2",
            "--rows-per-person goes with --id COLUMN",
        ),
    ],
)
def test_a_bad_option_is_one_line_and_exit_two(capsys, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    data = write_people(tmp_path / "data.csv")
    code, printed, err = run(capsys, data, *options.split())
    assert (code, printed) == (2, "")
    assert err.startswith(f"policysim: {message}")
    assert len(err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == [data]


def test_many_values_are_cut_short_on_the_screen_only(capsys, tmp_path):
    data, levels = tmp_path / "data.csv", [f"level-{i}" for i in range(50)]
    data.write_text("\n".join(["code", *levels]) + "\n")
    options = ("--column", "code", "--levels", f"code={','.join(levels)}", "--epsilon", 1)
    options = (*options, "--out", tmp_path / "o.simulated.csv")
    _, printed, _ = run(capsys, data, *options, "--simulate", 1)
    assert "... and 10 more; --json lists all" in printed
    assert "level-39" in printed
    assert "level-40" not in printed
    assert "…" not in printed
    _, printed, _ = run(capsys, data, *options, "--json", "--simulate", 1)
    assert len(json.loads(printed)["estimates"][0]["rows"]) == 50
