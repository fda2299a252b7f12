"""Every bad row is listed: where it is, what is there, and what is allowed."""

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def known(section):
    """The section with ids and a column of propensities."""
    return section.replace('"equal"', '"p"\nid = "pid"')


@pytest.fixture
def trial(small_trial):
    return small_trial.assign(p=0.5).astype(object)


NO_PROBABILITY = "must be a probability > 0 and <= 1, that of the treatment that the row got, "
CASES = [
    ("p", 0, f"p: {NO_PROBABILITY}got "),
    ("p", 1.5, f"p: {NO_PROBABILITY}got "),
    ("arm", "x", "arm: must be one of the treatments 0, 1, got 'x'"),
    ("arm", None, "arm: must be one of the treatments 0, 1, is missing"),
    ("success", "yes", "success: must be a finite number within ±1e+50, got 'yes'"),
    ("success", None, 'success: is missing: missing = "exclude" or "worst" takes such rows'),
    ("success", 1.5, "success: must be within [0, 1], or declare the range, got "),
    ("age", "old", "age: must be a finite number"),
    ("sex", 2, "sex: must be one of 0, 1"),
    ("pid", None, "pid: is missing: each patient needs an id"),
    ("pid", 11, "pid: '11' is there already: "),
]


@pytest.mark.parametrize(("column", "value", "said"), CASES)
def test_a_planted_mistake_is_found_where_it_is(refused, known, trial, tmp_path, *, column, value, said):
    # So that 0 and 1 are the treatments that are known.
    text = known.replace("[data.features]", '[data.treatments]\n0 = "a"\n1 = "b"\n[data.features]')
    trial.loc[3, column] = value
    lines = refused(text, trial__csv=trial)
    # Row 4 of the data is line 5 of the file.
    assert len(lines) == 1
    assert lines[0].startswith(f"{(tmp_path / 'trial.csv').as_posix()}:5: row 4: {said}"), lines


def test_twenty_are_listed_then_counted(refused, section, small_trial):
    trial = pd.concat([small_trial] * 60, ignore_index=True)
    trial["sex"] = np.where(np.arange(360) % 3 == 0, trial.sex, 9)
    trial.loc[100:192, "success"] = 3
    lines = refused(section, trial__csv=trial)
    assert len(lines) == 21
    # 240 of sex, and one for the 3 that is in 93 rows of success.
    assert lines[-1] == "... and 221 more"


def test_the_total_reward_is_checked_against_a_declared_range(refused, section, small_trial):
    text = section.replace("{ success = 1.0 }", "{ success = 1.0, points = 2.0 }\nrange = [0, 100]")
    text = text.replace("age = { cuts = [30, 50] }\n", "")
    lines = refused(text, trial__csv=small_trial.rename(columns={"age": "points"}))
    assert len(lines) == 2
    assert "row 4: 1 success + 2 points: the reward must be within the declared range [0, 100], got 101" in lines[0]
    assert "row 5: " in lines[1]


def test_ids_without_a_match_are_told_for_both_tables(refused, section, small_trial):
    text = section.replace('"trial.csv"', '{ features = "f.csv", actions = "a.csv", outcomes = "o.csv" }\nid = "pid"')
    f, a, o = (small_trial[["pid", *names]] for names in (["age", "sex"], ["arm"], ["success"]))
    lines = refused(text, f__csv=f, a__csv=a.replace({"pid": {13: 99}}), o__csv=o)
    for line, file, patient in zip(lines, "faao", (13, 99, 99, 13), strict=True):
        assert f"{file}.csv:4: row 3" in line and f"'{patient}' has no row in" in line


def test_one_hot_rows_must_be_0_and_1_and_sum_to_1(refused, section, small_trial):
    text = section.replace('"trial.csv"', '{ features = "f.csv", actions = "a.csv", outcomes = "o.csv" }')
    text = text.replace('treatment = "arm"\n', "")
    hot = pd.DataFrame({"x": [1, 0, 1, 0, 0.5, 1], "y": [0, 0, 1, 1, 0.5, None]})
    lines = refused(text, f__csv=small_trial[["age", "sex"]], a__csv=hot, o__csv=small_trial[["success"]])
    assert [line.split("row ")[1] for line in lines] == [
        "2: x, y: must sum to 1, got a sum of 0",
        "3: x, y: must sum to 1, got a sum of 2",
        "5: x: must be 0 or 1, got '0.5'",
        "5: y: must be 0 or 1, got '0.5'",
        "6: y: must be 0 or 1, is missing",
    ]


def test_rows_of_parquet_have_no_line(refused, section, small_trial, tmp_path):
    trial = small_trial.assign(sex=[0, 1.5, None, -1, 0, 1])
    lines = refused(section.replace(".csv", ".parquet"), trial__parquet=trial)
    place, other = (tmp_path / "trial.parquet").as_posix(), "; a value that means unknown is named in [data]: unknown ="
    for row, line in zip((2, 3, 4), lines, strict=True):
        said = ", is missing; a level NA takes missing values" if row == 3 else f"{other} {{ sex = [...] }}"
        assert line == f"{place}: row {row}: sex: must be one of 0, 1{said}"


def test_a_row_that_has_nearly_all_weight_of_its_arm_is_refused(refused, known, trial, tmp_path):
    trial = pd.concat([trial] * 5, ignore_index=True).assign(pid=range(30))
    trial.loc[3, "p"] = 1e-9
    rows = (trial["arm"] == trial.loc[3, "arm"]).sum()
    (line,) = refused(known, trial__csv=trial)
    assert line.startswith(f"{(tmp_path / 'trial.csv').as_posix()}:5: row 4: p: 1e-09: this row alone has ")
    assert f"of the weight of {trial.loc[3, 'arm']} (1 / probability, {rows} rows)" in line
    # Of three files the row is that of the treatment.
    files = 'file = { features = "f.csv", actions = "a.csv", outcomes = "o.csv" }'
    f, a, o = (trial[["pid", *names]] for names in (["age", "sex"], ["arm", "p"], ["success"]))
    (line,) = refused(known.replace('file = "trial.csv"', files), f__csv=f, a__csv=a[::-1], o__csv=o)
    assert line.startswith(f"{(tmp_path / 'a.csv').as_posix()}:28: row 27: p: 1e-09: this row alone has ")


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([20, 80], "got '20' (so are 48 rows); it looks like per cent: divide by 100"),
        ([5, 1.25], "got '5.0' (so are 48 rows); it looks like a weight 1/p: give p"),
        ([101, 400], "got '101' (so are 48 rows); it looks like a weight 1/p: give p"),
        (["20%", "80 %"], "got '20%' (so are 48 rows); it is in per cent: divide by 100, and leave out the sign"),
        (["low", "high"], "got 'low' (so are 48 rows)"),
        ([0, -1], "got '0' (so are 48 rows)"),
    ],
)
def test_propensities_that_are_none_are_named_once_with_the_likely_cause(refused, section, small_trial, cells, said):
    trial = pd.concat([small_trial] * 8, ignore_index=True).assign(p=cells * 24)
    (line,) = refused(section.replace('"equal"', '"p"'), trial__csv=trial)
    assert line.endswith(f":2: row 1: p: {NO_PROBABILITY}{said}")
