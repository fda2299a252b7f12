"""Tables as people have them: without a header, arrays, treatments in several columns, values that are missing."""

import numpy as np
import pandas as pd
import pytest
from small_logs import keyed
from small_trials import ASSIGNED

import policysim as ps
from policysim.cli.main import main

SECTION = """
[data]
file = "trial.csv"
treatment = "arm"
propensity = "equal"
outcome = { success = 1.0 }
[data.features]
age = { cuts = [30, 50] }
"""
NAMES = {"age": "2", "arm": "0", "success": "1"}
N = 60


@pytest.fixture
def trial():
    """Sixty patients of a trial in which two treatments are given or not."""
    rng = np.random.default_rng(0)
    one, other = np.arange(N) % 2, np.arange(N) // 2 % 2
    return pd.DataFrame(
        {"arm": one, "success": rng.integers(0, 2, N), "age": rng.integers(20, 80, N), "aspirin": one, "heparin": other}
    )


def without_names(text):
    """The section of a table without a header."""
    for name, place in NAMES.items():
        text = text.replace(f'"{name}"', f'"{place}"').replace(f"{name} =", f"{place} =")
    return text.replace("propensity", "header = false\npropensity")


@pytest.fixture
def bare(tmp_path):
    """Write a table without a header."""
    return lambda frame: frame.to_csv(tmp_path / "trial.csv", index=False, header=False)


def test_a_file_without_a_header_reads_as_with_one(load, bare, trial):
    log = load(SECTION, trial__csv=trial)
    bare(trial)
    other = load(without_names(SECTION))
    assert (log.n_read, other.n_read) == (N, N)
    for name in ("actions", "rewards", "propensities"):
        assert np.array_equal(getattr(log.data, name), getattr(other.data, name))
    assert np.array_equal(log.records, other.records)


def test_bad_rows_of_a_file_without_a_header_are_counted_from_its_first_line(refused, bare, trial, tmp_path):
    rows = trial.astype(object)
    rows.loc[[0, 4], "age"] = ["old", "older"]
    bare(rows)
    path = (tmp_path / "trial.csv").as_posix()
    said = [f"{path}:{row}: row {row}: 2: must be a finite number" for row in (1, 5)]
    assert refused(without_names(SECTION)) == said


def test_a_header_where_none_was_promised_is_one_line(refused, trial):
    (line,) = refused(without_names(SECTION), trial__csv=trial)
    said = "is a header (arm, success, age, aspirin, heparin) where header = false (--no-header) promised none"
    assert line.endswith(f"trial.csv:1: row 1: {said}")
    # As R writes it, with nothing above the numbers of the rows.
    (line,) = refused(without_names(SECTION), trial__csv=trial.reset_index(names=""))
    assert "row 1: is a header (, arm, success, age, aspirin, heparin) where" in line


def test_words_in_the_first_row_are_no_header_where_no_numbers_are_below(load, tmp_path):
    (tmp_path / "trial.csv").write_text("".join(f"{'ab'[i % 2]},{i % 3 // 2},{i + 20}\n" for i in range(40)))
    log = load(without_names(SECTION))
    assert (log.n_read, log.data.names) == (40, ("a", "b"))


def test_numbers_where_a_header_must_be_and_rows_of_another_length_are_told_so(refused, bare, trial, tmp_path):
    bare(trial)
    (line,) = refused(SECTION)
    assert "trial.csv:1: two columns are named '0': its first line has numbers, and is no head" in line
    (tmp_path / "trial.csv").write_text("0,1,30\n1,0,40\n0,1\n")
    (line,) = refused(without_names(SECTION))
    assert "trial.csv:3: row 3: must have 3 columns as the first row has, got 2" in line


def test_columns_make_the_treatment_together_and_so_does_a_column_of_0_and_1_for_each_arm(load, refused, trial):
    arms = np.arange(N) % 3
    one_hot = pd.DataFrame({f"a{arm}": (arms == arm) * 1 for arm in range(3)})
    declared = ["[data.treatments]", '"1, 0, 0" = "a0"', '"0, 1, 0" = "a1"', '"0, 0, 1" = "a2"']
    text = keyed(SECTION.replace('"arm"', '["a0", "a1", "a2"]'), *declared)
    log = load(text, trial__csv=pd.concat([trial, one_hot], axis=1))
    assert log.data.names == ("a0", "a1", "a2")
    assert np.array_equal(log.data.actions, arms)
    one_hot.loc[6, "a1"] = 1
    (line,) = refused(text, trial__csv=pd.concat([trial, one_hot], axis=1))
    assert "trial.csv:8: row 7: a0, a1, a2: must be one of the treatments" in line and "got '1, 1, 0'" in line


def test_rows_without_a_treatment_are_refused_or_left_out_and_counted(load, refused, trial):
    gaps = trial.astype(object)
    gaps.loc[[3, 9, 10], "arm"] = ["", "NA", None]
    first = refused(SECTION, trial__csv=gaps)[0]
    assert "trial.csv:5: row 4: arm: must be one of the treatments 0, 1, is missing" in first
    left_out = keyed(SECTION, 'missing = "exclude"')
    log = load(left_out, trial__csv=gaps)
    kept = np.setdiff1d(np.arange(N), [3, 9, 10])
    assert (log.n_read, log.n_untreated, log.missing) == (N, 3, (0, 0))
    assert np.array_equal(log.data.actions, trial["arm"].iloc[kept])
    assert np.array_equal(log.data.rewards, trial["success"].iloc[kept])
    assert set(log.data.propensities) == {0.5}
    # Rows without an outcome are used, and weigh nothing.
    gaps.loc[[0, 2], "success"] = None
    log = load(left_out, trial__csv=gaps)
    assert (log.n_untreated, log.missing, log.data.n_rows) == (3, (2, 0), N - 3)
    assert np.array_equal(np.flatnonzero(log.data.known.weights == 0), np.flatnonzero(np.isin(kept, [0, 2])))
    assert set(log.data.propensities) == {0.5}
    # A value that is none of the treatments is never left out.
    gaps.loc[3, "arm"] = "drip"
    declared = keyed(left_out, "[data.treatments]", '0 = "a"', '1 = "b"')
    assert "got 'drip'" in refused(declared, trial__csv=gaps)[0]


def test_missing_numbers_are_a_level_where_it_is_declared(load, refused, trial):
    gaps = trial.assign(age=trial["age"].where(np.arange(N) % 4 > 0))
    assert "age: must be a finite number, is missing" in refused(SECTION, trial__csv=gaps)[0]
    declared = SECTION.replace("[30, 50]", "[30, 50], missing = true")
    log = load(declared, trial__csv=gaps)
    assert log.space.shape == (4,)
    assert np.array_equal(log.records == 3, np.arange(N) % 4 == 0)
    assert np.array_equal(log.records[log.records < 3], np.digitize(trial["age"], [30, 50])[log.records < 3])
    words = gaps.astype(object).fillna("old")
    assert "age: must be a finite number or missing" in refused(declared, trial__csv=words)[0]


def test_arrays_and_frames_with_numbers_for_names_are_logs(trial):
    named = ps.read_log(trial, treatment="arm", outcome="success", propensity="equal")
    numbered = trial.set_axis(range(5), axis=1)
    for table in (trial.to_numpy(), numbered):
        log = ps.read_log(table, treatment=0, outcome=1, propensity="equal")
        assert log.columns.tolist() == ["action", "reward", "propensity", "2", "3", "4"]
        assert np.array_equal(log.to_numpy(), named.to_numpy())
    with pytest.raises(ValueError, match="table: unknown column '7'; known: 0, 1, 2, 3, 4"):
        ps.read_log(numbered, treatment=7, outcome=1, propensity="equal")
    with_ids = numbered.assign(id=range(N))
    assert ps.read_log(with_ids, id="id", treatment=0, outcome={1: 2.0}, propensity="equal").index[3] == 3
    with pytest.raises(ValueError, match="columns must be distinct, got 0, 0"):
        ps.read_log(pd.DataFrame([[1, 2]], columns=[0, "0"]), treatment=0, outcome=0)


def test_three_matrices_of_0_and_1_are_a_log(tmp_path):
    rng = np.random.default_rng(1)
    features, arms = rng.integers(0, 2, (N, 3)), np.arange(N) % 3
    actions, outcomes = (arms[:, None] == np.arange(3)) * 1, rng.integers(0, 2, N)
    three = {"features": features, "actions": actions, "outcomes": outcomes}
    log = ps.read_log(**three, treatments={"0": "a", "1": "b", "2": "c"}, outcome=0, propensity="equal")
    assert np.array_equal(log["action"].cat.codes, arms)
    assert log["action"].cat.categories.tolist() == ["a", "b", "c"]
    assert np.array_equal(log["reward"], outcomes)
    assert np.array_equal(log[["0", "1", "2"]], features)
    paths = {}
    for name, table in three.items():
        paths[name] = tmp_path / f"{name}.csv"
        np.savetxt(paths[name], table, fmt="%d", delimiter=",")
    with pytest.raises(ValueError, match="its first line has numbers"):
        ps.read_log(**paths, outcome=0, propensity="equal")
    read = ps.read_log(**paths, header=False, treatments={"0": "a", "1": "b", "2": "c"}, outcome=0, propensity="equal")
    pd.testing.assert_frame_equal(read, log)
    # Names that are places are no patients' ids: nothing needs to be declared.
    bare = ps.read_log(**paths, header=False, outcome=0, propensity="equal")
    assert bare["action"].cat.categories.tolist() == ["0", "1", "2"]


def test_columns_together_in_a_log_are_no_covariates(trial):
    log = ps.read_log(trial, treatment=["aspirin", "heparin"], outcome="success", propensity="equal")
    assert log["action"].cat.categories.tolist() == ["0, 0", "0, 1", "1, 0", "1, 1"]
    assert log.columns.tolist() == ["action", "reward", "propensity", "arm", "age"]
    with pytest.raises(ValueError, match="there is a column 'aspirin, heparin' already"):
        ps.read_log(trial.assign(**{"aspirin, heparin": 1}), treatment=["aspirin", "heparin"], propensity="equal")


@pytest.mark.usefixtures("blank_drawings", "few_trees", "one_split")
def test_the_command_line_takes_a_table_without_a_header(trial, tmp_path, capsys):
    path = tmp_path / "trial.csv"
    trial.to_csv(path, index=False, header=False)
    assert main(["init", str(path), "--no-header", "--treatment", "0"]) == 2
    words = capsys.readouterr().err.splitlines()[-1]
    assert f"policysim init {path} --no-header --treatment 0 --outcome '<1|2|3|4>' '<--" in words
    options = ("--treatment", "3,4", "--outcome", "1", "--features", "2", "--id", "none", *ASSIGNED[:3])
    assert main(["init", str(path), "--no-header", *options]) == 0
    assert 'treatment = ["3", "4"]' in path.with_suffix(".toml").read_text(encoding="utf-8")
    capsys.readouterr()
    assert main(["compare", str(path.with_suffix(".toml")), "--out", str(tmp_path / "out"), "--policy", "uniform"]) == 0
