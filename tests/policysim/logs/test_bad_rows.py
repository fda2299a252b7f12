"""Every bad row is listed: where it is, what is there, and what is allowed."""

import numpy as np
import pandas as pd
import pytest

from policysim.files.bad_rows import DataError


def refused(load, text, **frames):
    with pytest.raises(DataError) as error:
        load(text, **frames)
    return str(error.value).splitlines()


@pytest.fixture
def known(section):
    """The section with ids and a column of propensities."""
    return section.replace('"equal"', '"p"\nid = "pid"')


@pytest.fixture
def trial(small_trial):
    return small_trial.assign(p=0.5).astype(object)


CASES = [
    ("p", 0, "p: must be a probability > 0 and <= 1, that of the treatment that the row got, got "),
    ("p", 1.5, "p: must be a probability > 0 and <= 1, that of the treatment that the row got, got "),
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
def test_a_planted_mistake_is_found_where_it_is(load, known, trial, tmp_path, *, column, value, said):
    # So that 0 and 1 are the treatments that are known.
    text = known.replace("[data.features]", '[data.treatments]\n0 = "a"\n1 = "b"\n[data.features]')
    trial.loc[3, column] = value
    lines = refused(load, text, trial__csv=trial)
    # Row 4 of the data is line 5 of the file.
    assert len(lines) == 1
    assert lines[0].startswith(f"{(tmp_path / 'trial.csv').as_posix()}:5: row 4: {said}"), lines


@pytest.mark.parametrize("value", [1.5, None, -1])
def test_rows_of_parquet_have_no_line(load, section, small_trial, tmp_path, value):
    trial = small_trial.assign(sex=small_trial.sex.astype(float))
    trial.loc[2, "sex"] = value
    lines = refused(load, section.replace(".csv", ".parquet"), trial__parquet=trial)
    got = "; a value that means unknown is named in [data]: unknown = { sex = [...] }"
    if value is None:
        got = ", is missing; a level NA takes missing values"
    assert lines == [f"{(tmp_path / 'trial.parquet').as_posix()}: row 3: sex: must be one of 0, 1{got}"]


def test_twenty_are_listed_then_counted(load, section, small_trial):
    trial = pd.concat([small_trial] * 60, ignore_index=True)
    trial["sex"] = np.where(np.arange(360) % 3 == 0, trial.sex, 9)
    trial.loc[100:192, "success"] = 3
    lines = refused(load, section, trial__csv=trial)
    assert len(lines) == 21
    # 240 of sex, and one for the 3 that is in 93 rows of success.
    assert lines[-1] == "... and 221 more"


def test_the_total_reward_is_checked_against_a_declared_range(load, section, small_trial):
    text = section.replace("{ success = 1.0 }", "{ success = 1.0, points = 2.0 }\nrange = [0, 100]")
    text = text.replace("age = { cuts = [30, 50] }\n", "")
    lines = refused(load, text, trial__csv=small_trial.rename(columns={"age": "points"}))
    assert len(lines) == 2
    assert "row 4: 1 success + 2 points: the reward must be within the declared range [0, 100], got 101" in lines[0]
    assert "row 5: " in lines[1]


def test_ids_without_a_match_are_told_for_both_tables(load, section, small_trial):
    text = section.replace('"trial.csv"', '{ features = "f.csv", actions = "a.csv", outcomes = "o.csv" }\nid = "pid"')
    f, a, o = (small_trial[["pid", *names]] for names in (["age", "sex"], ["arm"], ["success"]))
    lines = refused(load, text, f__csv=f, a__csv=a.replace({"pid": {13: 99}}), o__csv=o)
    assert len(lines) == 4
    for line, file, said in zip(
        lines,
        ["f.csv:4: row 3", "a.csv:4: row 3", "a.csv:4: row 3", "o.csv:4: row 3"],
        ["'13' has no row in", "'99' has no row in", "'99' has no row in", "'13' has no row in"],
        strict=True,
    ):
        assert file in line
        assert said in line


def test_one_hot_rows_must_be_0_and_1_and_sum_to_1(load, section, small_trial):
    text = section.replace('"trial.csv"', '{ features = "f.csv", actions = "a.csv", outcomes = "o.csv" }')
    text = text.replace('treatment = "arm"\n', "")
    hot = pd.DataFrame({"x": [1, 0, 1, 0, 0.5, 1], "y": [0, 0, 1, 1, 0.5, None]})
    lines = refused(load, text, f__csv=small_trial[["age", "sex"]], a__csv=hot, o__csv=small_trial[["success"]])
    assert [line.split("row ")[1] for line in lines] == [
        "2: x, y: must sum to 1, got a sum of 0",
        "3: x, y: must sum to 1, got a sum of 2",
        "5: x: must be 0 or 1, got '0.5'",
        "5: y: must be 0 or 1, got '0.5'",
        "6: y: must be 0 or 1, is missing",
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("arm,success,age,sex\n", "has no rows below its header"),
        ("arm,success,age,sex\n0,1,30\n", "trial.csv:2: row 1: must have 4 columns as the header has, got 3"),
        ("arm,arm\n0,1\n", "two columns are named 'arm'"),
        ("arm,success\n\x81\n", "trial.csv:2: is no text in UTF-8 or Windows-1252: state encoding = "),
    ],
)
def test_a_file_that_cannot_be_read_is_told_in_one_line(load, section, tmp_path, content, said):
    (tmp_path / "trial.csv").write_bytes(content.encode("latin-1"))
    lines = refused(load, section)
    assert len(lines) == 1
    assert said in lines[0]
    assert "trial.csv" in lines[0]


def test_a_row_that_has_nearly_all_weight_of_its_arm_is_refused(load, known, trial, tmp_path):
    trial = pd.concat([trial] * 5, ignore_index=True).assign(pid=range(30))
    trial.loc[3, "p"] = 1e-9
    rows = (trial["arm"] == trial.loc[3, "arm"]).sum()
    (line,) = refused(load, known, trial__csv=trial)
    assert line.startswith(f"{(tmp_path / 'trial.csv').as_posix()}:5: row 4: p: 1e-09: this row alone has ")
    assert f"of the weight of {trial.loc[3, 'arm']} (1 / probability, {rows} rows)" in line


def test_of_three_files_the_row_with_nearly_all_weight_is_that_of_the_treatment(load, known, trial, tmp_path):
    trial = pd.concat([trial] * 5, ignore_index=True).assign(pid=range(30))
    trial.loc[3, "p"] = 1e-9
    files = 'file = { features = "patients.csv", actions = "given.csv", outcomes = "came.csv" }'
    frames = {
        "patients__csv": trial[["pid", "age", "sex"]],
        "given__csv": trial[["pid", "arm", "p"]][::-1],
        "came__csv": trial[["pid", "success"]],
    }
    (line,) = refused(load, known.replace('file = "trial.csv"', files), **frames)
    assert line.startswith(f"{(tmp_path / 'given.csv').as_posix()}:28: row 27: p: 1e-09: this row alone has ")


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
def test_propensities_that_are_none_throughout_are_named_once_with_the_likely_cause(
    load, section, small_trial, cells, said
):
    trial = pd.concat([small_trial] * 8, ignore_index=True).assign(p=cells * 24)
    (line,) = refused(load, section.replace('"equal"', '"p"'), trial__csv=trial)
    assert line.endswith(
        f":2: row 1: p: must be a probability > 0 and <= 1, that of the treatment that the row got, {said}"
    )
