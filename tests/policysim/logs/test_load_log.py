"""load_log: what a study's log becomes."""

import re

import numpy as np
import pandas as pd
import pytest
from small_logs import keyed


def test_a_csv_file_becomes_arrays(load, section, small_trial):
    log = load(section, trial__csv=small_trial)
    assert log.data.names == ("0", "1")
    assert log.data.actions.tolist() == [0, 1, 0, 1, 1, 0]
    assert log.data.rewards.tolist() == [1, 0, 1, 1, 0, 0]
    assert log.data.propensities.tolist() == [0.5] * 6
    # Bins of age 0, 1, 1, 2, 2, 0; two sexes, which vary fastest.
    assert log.records.tolist() == [0, 3, 2, 5, 4, 1]
    assert log.space.shape == (3, 2)
    assert (log.missing, log.n_read) == ((0, 0), 6)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.astype({"sex": float, "arm": float, "success": bool}),
        lambda d: d.astype({"sex": bool, "arm": str, "age": float}),
        lambda d: d.astype({"sex": "category", "arm": "category", "success": "Int8", "age": "Float32"}),
        lambda d: d.astype(str),
        lambda d: d.assign(sex=d.sex.map({0: "FALSE", 1: "TRUE"}), success=d.success.map({0: "false", 1: "true"})),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_types_and_endings_do_not_matter(load, section, small_trial, change, ending):
    text = section.replace("trial.csv", f"trial.{ending}")
    plain = load(text, **{f"trial__{ending}": small_trial})
    other = load(text, **{f"trial__{ending}": change(small_trial)})
    assert np.array_equal(plain.records, other.records)
    for name in ("actions", "rewards", "propensities"):
        assert np.array_equal(getattr(plain.data, name), getattr(other.data, name))
    assert other.data.names == plain.data.names


def test_the_domain_is_declared_and_not_what_occurs(load, section, small_trial):
    log = load(section, trial__csv=small_trial[small_trial.sex == 0])
    assert log.space.size == 6
    assert log.records.tolist() == [0, 2, 4]


def test_declared_treatments_keep_their_order_and_names_whether_they_occur_or_not(load, section, small_trial):
    declared = keyed(section, "[data.treatments]", '2 = "never"', '"1.0" = "new"', '0 = "old"')
    log = load(declared, trial__csv=small_trial)
    assert log.data.names == ("never", "new", "old")
    assert log.data.actions.tolist() == [2, 1, 2, 1, 1, 2]
    assert log.data.propensities.tolist() == [1 / 3] * 6
    assert log.missing == (0, 0, 0)


def test_undeclared_treatments_are_sorted_as_numbers_then_as_text(load, section, small_trial):
    log = load(section, trial__csv=small_trial.assign(arm=["10", "9", "b", "a", "9", "10"]))
    assert log.data.names == ("9", "10", "a", "b")


@pytest.fixture
def gappy(small_trial):
    return small_trial.assign(success=[1, None, 1, None, None, 0], toxic=[0, 1, None, 0, 1, 0])


@pytest.fixture
def toxic(section):
    """A study of two outcomes."""
    return section.replace("{ success = 1.0 }", "{ success = 1.0, toxic = -3.0 }")


def test_missing_outcomes_are_refused_unless_something_else_is_declared(refused, toxic, gappy):
    where = [line.split(": ")[1:3] for line in refused(toxic, trial__csv=gappy)]
    assert where == [["row 2", "success"], ["row 3", "toxic"], ["row 4", "success"], ["row 5", "success"]]


def test_rows_without_an_outcome_are_counted_by_arm_and_made_up_for(load, toxic, gappy):
    log = load(keyed(toxic, 'missing = "exclude"'), trial__csv=gappy)
    # Of arm 0 two of three are known: q + (reward - q) / (2/3), q the mean of the known ones of other parts.
    assert log.data.rewards[log.data.actions == 0].tolist() == pytest.approx([0 + 1.5, 0, 1 - 1.5])
    assert log.data.known.weights.tolist() == pytest.approx([1.5, 0, 0, 0, 0, 1.5])
    assert log.data.known.rewards[[0, 5]].tolist() == [1, 0]
    assert log.records.tolist() == [0, 3, 2, 5, 4, 1]
    assert (log.missing, log.n_read) == ((1, 3), 6)


def test_the_worst_is_the_low_end_of_the_range(load, toxic, gappy):
    log = load(keyed(toxic, 'missing = "worst"'), trial__csv=gappy)
    assert log.data.rewards.tolist() == [1, -3, -3, -3, -3, 0]
    assert (log.missing, log.n_read) == ((1, 3), 6)
    wider = load(keyed(toxic, 'missing = "worst"', "range = [-9, 2]"), trial__csv=gappy)
    assert wider.data.rewards.tolist() == [1, -9, -9, -9, -9, 0]


def test_rows_without_a_feature_are_left_out_and_counted(load, section, small_trial):
    gaps = small_trial.astype({"age": object, "sex": object})
    gaps.loc[1, "age"], gaps.loc[3, "sex"] = None, None
    log = load(keyed(section, 'missing = "exclude"'), trial__csv=gaps)
    assert (log.n_read, log.n_untreated) == (6, 2)
    assert log.records.tolist() == [0, 2, 4, 1]


def test_with_too_few_outcomes_nothing_can_be_said(refused, section, small_trial):
    lines = refused(keyed(section, 'missing = "exclude"'), trial__csv=small_trial.assign(success=[1, *[None] * 5]))
    assert "at least 2 rows with an outcome, got 1" in lines[0]


def three(section, ids=True, treatment=True):
    text = section.replace('"trial.csv"', '{ features = "f.csv", actions = "a.parquet", outcomes = "o.csv" }')
    text = text.replace('treatment = "arm"\n', 'treatment = "arm"\n' if treatment else "")
    return keyed(text, 'id = "pid"') if ids else text


def parts(trial):
    return trial[["pid", "age", "sex"]], trial[["pid", "arm"]], trial[["pid", "success"]]


@pytest.mark.parametrize("kind", [int, float, str])
def test_three_tables_are_joined_by_id_whatever_their_order(load, section, small_trial, kind):
    one = load(section, trial__csv=small_trial)
    f, a, o = parts(small_trial)
    mixed = a.iloc[[3, 1, 0, 5, 4, 2]].astype({"pid": kind})
    log = load(three(section), f__csv=f, a__parquet=mixed, o__csv=o.iloc[::-1])
    assert np.array_equal(log.records, one.records)
    assert np.array_equal(log.data.actions, one.data.actions)
    assert np.array_equal(log.data.rewards, one.data.rewards)


def test_three_tables_without_ids_go_row_by_row(load, refused, section, small_trial):
    (f, a, o), text = parts(small_trial), three(section, ids=False)
    assert load(text, f__csv=f, a__parquet=a, o__csv=o).data.actions.tolist() == small_trial.arm.tolist()
    (line,) = refused(text, f__csv=f, a__parquet=a[:5], o__csv=o)
    assert re.search(r"differ in length: .*f.csv 6, .*a.parquet 5, .*o.csv 6 rows", line)


def test_a_table_of_actions_may_have_a_column_for_each(load, section, small_trial):
    (f, a, o), text = parts(small_trial), three(section, treatment=False)
    hot = pd.DataFrame({"pid": a.pid, "old": 1 - a.arm, "new": a.arm.astype(float)})
    log = load(text, f__csv=f, a__parquet=hot, o__csv=o)
    assert log.data.names == ("old", "new")
    assert log.data.actions.tolist() == a.arm.tolist()
    chances = [0.25, 0.5, 0.5, 0.5, 0.5, 1]
    declared = keyed(text.replace('"equal"', '"p"'), "[data.treatments]", 'new = "N"', 'old = "O"')
    log = load(declared, f__csv=f, a__parquet=hot.assign(p=chances), o__csv=o)
    assert log.data.names == ("N", "O")
    assert log.data.actions.tolist() == (1 - a.arm).tolist()
    assert log.data.propensities.tolist() == chances


def test_columns_that_are_not_there_are_all_named(refused, section, small_trial):
    text = section.replace('"arm"', '"arms"').replace("success", "succes")
    assert "unknown column 'gender'" in refused(text.replace("sex =", "gender ="), trial__csv=small_trial)[0]
    said = "\n".join(refused(text, trial__csv=small_trial))
    assert "'arms'; did you mean 'arm'?" in said and "'succes'; did you mean 'success'?" in said


def test_a_single_treatment_or_far_too_many_are_refused(refused, section, small_trial):
    (line,) = refused(section, trial__csv=small_trial.assign(arm=1))
    assert "at least two treatments, only '1' occurs" in line
    many = pd.concat([small_trial] * 20, ignore_index=True)
    assert "arm: has 120 distinct values" in refused(section, trial__csv=many.assign(arm=np.arange(120)))[0]
