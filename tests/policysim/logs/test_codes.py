"""Words and codes of a log: utilities of values, values that mean unknown, and refusals that name the key to write."""

import json

import numpy as np
import pandas as pd
import pytest
from parts_work import bits
from small_logs import keyed

from policysim.cli.main import main
from policysim.files.bad_rows import DataError
from policysim.logs.counted_log import count_log
from policysim.logs.load_log import load_log
from policysim.logs.log_source import outcome_formula
from policysim.logs.read_log import read_log
from policysim.study.study_reader import load_study

N = 120
STUDY = """
[data]
file = "trial.csv"
treatment = "arm"
propensity = "equal"
outcome = { cured = 1 }
[data.treatments]
A = "A"
B = "B"
[data.features]
age = { cuts = [40, 60] }
smoker = { levels = ["no", "yes"] }
"""
WORDS = STUDY.replace("cured = 1", "cured = { Yes = 1, No = 0 }")


@pytest.fixture
def trial():
    """120 patients: arms A and B in turn, ages from 20 to 79, 0 and 1."""
    rows = np.arange(N)
    return pd.DataFrame(
        {
            "arm": np.where(rows % 2, "B", "A"),
            "age": 20 + 7 * rows % 60,
            "smoker": np.where(rows % 5 < 2, "yes", "no"),
            "cured": (rows % 3 == 0).astype(int),
        }
    )


def test_words_have_the_utilities_of_the_study(load, read_section, trial):
    words = trial.assign(cured=trial["cured"].map({1: "Yes ", 0: "No"}))
    plain = load(STUDY, trial__csv=trial)
    log = load(WORDS, trial__csv=words)
    assert np.array_equal(log.data.rewards, plain.data.rewards) and log.data.is_binary
    harm = STUDY.replace("cured = 1", "cured = { Yes = -1, No = 0 }")
    log = load(harm, trial__csv=words)
    assert np.array_equal(log.data.rewards, -plain.data.rewards)
    # It is the column that is reported, and 1 is harm.
    assert np.array_equal(log.outcomes["cured"], plain.data.rewards)
    source = read_section(harm)
    assert source.utility_range == (-1.0, 0.0)
    assert outcome_formula(source) == "cured (Yes = -1, No = 0)"


def test_each_level_of_a_scale_has_its_utility(load, read_section, trial):
    mrs = np.arange(N) % 7
    utilities = [1, 0.97, 0.9, 0.8, 0.5, 0.1, -0.2]
    table = ", ".join(f"{level} = {utility}" for level, utility in enumerate(utilities))
    text = STUDY.replace("cured = 1", f"mrs = {{ {table} }}, cured = 0.5")
    log = load(text, trial__csv=trial.assign(mrs=mrs))
    assert log.data.rewards == pytest.approx(np.array(utilities)[mrs] + 0.5 * trial["cured"])
    assert read_section(text).utility_range == (-0.2, 1.5)


def test_a_value_that_is_not_listed_is_a_bad_row(refused, trial):
    words = trial.assign(cured=trial["cured"].map({1: "Yes", 0: "No"}))
    words.loc[3, "cured"] = "yes"
    (line,) = refused(WORDS, trial__csv=words)
    assert line.endswith("trial.csv:5: row 4: cured: must be one of Yes, No, got 'yes'")


def test_words_without_utilities_are_refused_in_one_line(refused, trial):
    (line,) = refused(STUDY, trial__csv=trial.assign(cured=trial["cured"].map({1: "Yes", 0: "No"})))
    assert line.endswith("give each its utility in [data], outcome = { cured = { No = ..., Yes = ... } }")
    some = trial.astype({"cured": object})
    some.loc[7, "cured"] = "?"
    (line,) = refused(STUDY, trial__csv=some)
    assert "trial.csv:9: row 8: cured: must be a finite number within ±1e+50, got '?'; a value that means unkn" in line


def test_a_third_value_beside_0_and_1_is_asked_about_in_one_line(load, refused, trial):
    odd = trial.copy()
    odd.loc[10:29, "cured"] = 9
    (line,) = refused(STUDY, trial__csv=odd)
    assert "trial.csv:12: row 11: cured: must be within [0, 1], or declare the range, got '9' (so are 20 rows)" in line
    assert "unknown = { cured = [9] }" in line and "outcome = { cured = { 0 = ..., 1 = ..., 9 = ... } }" in line
    # What it says to write is taken.
    log = load(keyed(STUDY, "unknown = { cured = [9] }", 'missing = "exclude"'), trial__csv=odd)
    assert (log.missing, log.unknown) == ((10, 10), {"cured": 20})
    known = log.outcomes["cured"][np.isfinite(log.outcomes["cured"])]
    assert known.tolist() == np.delete(trial["cured"].to_numpy(), np.s_[10:30]).tolist()
    coded = load(STUDY.replace("cured = 1", "cured = { 0 = 0, 1 = 1, 9 = 0.5 }"), trial__csv=odd)
    assert (coded.data.rewards == 0.5).sum() == 20
    assert load(keyed(STUDY, "range = [0, 9]"), trial__csv=odd).data.rewards.max() == 9


UNKNOWN = keyed(STUDY, 'unknown = [9, -9, 999.0, "?"]', 'missing = "exclude"')


def test_one_list_of_unknown_values_is_that_of_every_column(load, trial):
    text = UNKNOWN.replace("60] }", "60], missing = true }").replace('["no", "yes"]', '["no", "yes", "NA"]')
    odd = trial.astype({"cured": object, "age": object})
    odd.loc[0, "arm"], odd.loc[1, "age"], odd.loc[2, "smoker"], odd.loc[3, "cured"] = "?", "999", "?", "-9"
    log = load(text, trial__csv=odd)
    assert log.unknown == {"cured": 1, "age": 1, "smoker": 1, "arm": 1}
    assert (log.n_read, log.n_untreated, log.missing) == (N, 1, (0, 1))
    assert log.covariates.loc[0, "age"] is not None and np.isnan(log.raw.loc[0, "age"])
    assert log.space.decode(log.records)["smoker"].tolist()[1] == "NA"


def test_a_value_that_is_declared_is_never_unknown(load, trial):
    nines = trial.assign(smoker=np.where(trial["smoker"] == "yes", 9, 0))
    log = load(UNKNOWN.replace('["no", "yes"]', "[0, 9]"), trial__csv=nines)
    assert log.unknown["smoker"] == 0 and log.data.n_rows == N


def test_times_are_unknown_only_by_their_column(load, trial):
    times = 'time = "age"\nevent = { column = "cured", event = 1, censored = 0 }\nhorizon = 30'
    text = STUDY.replace("outcome = { cured = 1 }", times).replace("age = { cuts = [40, 60] }\n", "")
    every = keyed(text, "unknown = [27, 9]", 'missing = "exclude"')
    assert sum(load(every, trial__csv=trial).missing) == 0
    named = every.replace("[27, 9]", "{ age = [27] }")
    assert sum(load(named, trial__csv=trial).missing) == (trial["age"] == 27).sum() > 0


def test_missing_features_go_to_the_level_na_or_are_refused_with_what_to_write(load, refused, trial):
    gaps = trial.astype({"age": object})
    gaps.loc[4, "smoker"], gaps.loc[5, "age"] = "", ""
    smoker, age = refused(STUDY, trial__csv=gaps)
    assert smoker.endswith("row 5: smoker: must be one of no, yes, is missing; a level NA takes missing values")
    assert "row 6: age: must be a finite number, is missing; a level NA (missing = true beside the cuts" in age
    declared = STUDY.replace("60] }", "60], missing = true }").replace('"yes"]', '"yes", "NA"]')
    log = load(declared, trial__csv=gaps)
    assert log.space.decode(log.records).loc[[4, 5]].to_numpy().tolist() == [["40 to < 60", "NA"], ["NA", "yes"]]


def test_counted_logs_have_codes_and_unknown_values_as_rows_have(tmp_path, trial):
    frame = trial.assign(
        cured=trial["cured"].map({1: "Yes", 0: "No"}), smoker=np.where(np.arange(N) % 11, trial["smoker"], "?")
    )
    frame.loc[::8, "cured"] = "?"
    text = STUDY.replace("cured = 1", "cured = { Yes = -1, No = 0 }").replace('"yes"]', '"yes", "NA"]')
    text = keyed(text, 'unknown = ["?"]', 'missing = "worst"').replace('B = "B"', 'B = "B"\nb = "B"')
    frame.loc[1, "arm"] = "b"
    logs = []
    for n_parts in (1, 3):
        folder = tmp_path / str(n_parts)
        folder.mkdir()
        for part in range(n_parts):
            frame.iloc[part::n_parts].to_csv(folder / f"{part}.csv", index=False)
        study = tmp_path / f"{n_parts}.toml"
        study.write_text(text.replace("trial.csv", str(n_parts)), encoding="utf-8")
        logs.append(count_log(load_study(study).log))
    frame.to_csv(tmp_path / "trial.csv", index=False)
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    rows = load_log(load_study(tmp_path / "study.toml").log)
    assert bits(logs[0]) == bits(logs[1])
    for log in logs:
        assert log.unknown == rows.unknown == {"cured": 15, "age": 0, "smoker": 11, "arm": 0}
        assert log.missing == rows.missing and log.data.names == rows.data.names == ("A", "B")
        assert log.data.counts @ log.data.rewards == rows.data.rewards.sum() == -15 - (frame["cured"] == "Yes").sum()


def test_read_log_takes_the_same(trial):
    words = trial.assign(cured=trial["cured"].map({1: "Yes", 0: "No"}))
    words.loc[5, "cured"], words.loc[6, "age"] = "?", 999
    options = {"treatment": "arm", "propensity": "equal", "outcome": {"cured": {"Yes": 1, "No": 0}}}
    log = read_log(words, **options, unknown=["?", 999], missing="exclude")
    assert log.attrs["unknown"] == {"age": 1, "smoker": 0, "cured": 1, "arm": 0}
    np.testing.assert_array_equal(log["reward"], trial["cured"].where(trial.index != 5))
    assert np.flatnonzero(log["age"].isna()).tolist() == [6]
    named = read_log(words, **options, unknown={"cured": ["?"]}, missing="exclude")
    assert named["age"].max() == 999 and named["reward"].count() == N - 1
    harm = read_log(words.drop(index=5), **{**options, "outcome": {"cured": {"Yes": -1, "No": 0}}})
    assert set(harm["reward"]) == {-1, 0}
    with pytest.raises(DataError, match=r"row 5: cured: must be one of Yes, No, got '\?'"):
        read_log(words, **options)
    for unknown in ({"cure": [9]}, {"cured": 9}, 9):
        with pytest.raises((ValueError, TypeError), match="unknown must be a list of values, or a list for each"):
            read_log(words, **options, unknown=unknown)
    with pytest.raises(ValueError, match="'NA' is how a missing value is written"):
        read_log(words, **{**options, "outcome": {"cured": {"Yes": 1, "NA": 0}}})


@pytest.mark.parametrize(("one", "other"), [("B", "b "), ("drug a", "Drug  A")])
def test_arms_that_differ_in_case_or_spaces_are_refused_with_both_names(load, refused, trial, one, other):
    mixed = trial.assign(arm=trial["arm"].replace("B", one))
    mixed.loc[3, "arm"] = other
    undeclared = STUDY.replace('[data.treatments]\nA = "A"\nB = "B"\n', "")
    for text in (undeclared, STUDY.replace("B =", f'"{one}" =')):
        (line,) = refused(text, trial__csv=mixed)
        assert f'"{one}"' in line and f'"{other.strip()}"' in line and "treatments = {" in line
    both = STUDY.replace('B = "B"', f'"{one}" = "B"\n"{other.strip()}" = "B"')
    log = load(both, trial__csv=mixed)
    assert log.data.names == ("A", "B") and log.data.by_action().tolist() == [60, 60]
    assert log.data.propensities[0] == 0.5
    two = STUDY.replace('B = "B"', f'"{one}" = "B"\n"{other.strip()}" = "other"\nC = "other"')
    log = load(two, trial__csv=mixed.assign(arm=mixed["arm"].where(mixed.index > 5, "C")))
    assert log.data.names == ("A", "B", "other")


def test_a_row_of_totals_is_no_patient(load, refused, trial):
    ids = trial.assign(pid=np.arange(N).astype(str), cost=100.0 + np.arange(N) % 13)
    costs = keyed(STUDY.replace("cured = 1", "cost = -1"), "range = [-1e6, 0]")
    total = pd.DataFrame([{"arm": "A", "age": 40, "smoker": "no", "cured": 1, "pid": "120", "cost": ids["cost"].sum()}])
    summed = pd.concat([ids, total], ignore_index=True)
    (line,) = refused(costs, trial__csv=summed)
    assert "trial.csv:122: row 121: cost: is the sum of the rows above: a row of totals is no patient" in line
    assert load(keyed(costs, 'outcome_checked = ["cost"]'), trial__csv=summed).data.n_rows == N + 1
    assert load(costs, trial__csv=pd.concat([ids, total.assign(cost=500)])).data.n_rows == N + 1
    # By its id, at the end or in the middle, and of means, too.
    for place, word in ((N, "TOTAL"), (60, "Total"), (N, "mean ")):
        between = pd.concat([ids[:place], total.assign(pid=word, cost=1), ids[place:]], ignore_index=True)
        (line,) = refused(keyed(STUDY, 'id = "pid"'), trial__csv=between)
        assert f"trial.csv:{place + 2}: row {place + 1}: pid: {word.strip()!r}: a row of totals is no patient" in line
    # An arm of several rows may have such a name.
    means = STUDY.replace('B = "B"', 'mean = "mean"')
    assert load(means, trial__csv=trial.assign(arm=trial["arm"].replace("B", "mean"))).data.n_rows == N
    # One event of ten is no total.
    assert load(STUDY, trial__csv=trial.assign(cured=[0] * (N - 2) + [1, 1])).data.n_rows == N


def test_an_arm_of_one_patient_is_refused_with_its_row(trial, tmp_path, capsys):
    alone = trial.copy()
    alone.loc[6, "arm"] = "C"
    alone.to_csv(tmp_path / "trial.csv", index=False)
    study = tmp_path / "study.toml"
    study.write_text(STUDY.replace('B = "B"', 'B = "B"\nC = "third"'), encoding="utf-8")
    assert main(["compare", str(study), "--out", str(tmp_path / "out")]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "trial.csv:8: row 7: arm: third has this patient alone" in line and "treatments = { C = ... }" in line
    study.write_text(study.read_text().replace('"third"', '"B"'), encoding="utf-8")
    assert load_log(load_study(study).log).data.by_action().tolist() == [59, 61]


@pytest.mark.usefixtures("blank_drawings", "few_trees", "one_split")
def test_the_report_counts_what_is_unknown_and_has_the_utilities(trial, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = trial.assign(cured=trial["cured"].map({1: "Yes", 0: "No"}))
    words.loc[::12, "cured"] = "?"
    words.to_csv("trial.csv", index=False)
    text = UNKNOWN.replace("cured = 1", "cured = { Yes = -1, No = 0 }")
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    assert main(["compare", "study.toml", "--out", "out", "--policy", "uniform", "--json"]) == 0
    counted = {row["column"]: row["patients"] for row in json.loads(capsys.readouterr().out)["unknown"]}
    assert counted == {"cured": 10, "age": 0, "smoker": 0, "arm": 0}
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Values that mean unknown count as missing: cured 10." in page
    assert "Outcome: cured (Yes = -1, No = 0)." in page


def test_quality_of_life_and_costs_make_one_utility(load, refused, trial):
    rows = np.arange(N)
    both = trial.assign(qaly=0.5 + rows % 10 / 20, cost=3000.0 + 10 * rows)
    text = STUDY.replace("cured = 1", "qaly = 20000, cost = -1")
    (line,) = refused(text, trial__csv=both)
    assert "row 1: cost: must be within [0, 1], or declare the range, got '3000.0' (so are 120 rows)" in line
    assert line.endswith("; range = [LOWEST, HIGHEST] in [data] is that of the utility, 20000 × qaly + -1 × cost")
    log = load(keyed(text, "range = [-20000, 20000]"), trial__csv=both)
    assert log.data.rewards == pytest.approx(20000 * both["qaly"] - both["cost"])
