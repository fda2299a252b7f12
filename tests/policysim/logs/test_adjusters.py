"""Columns that are adjusted for and not hidden: how they are read, what is refused, and where they are used."""

import numpy as np
import pandas as pd
import pytest
from small_logs import keyed

from policysim.errors import UsageError
from policysim.files.bad_rows import BadRows, DataError
from policysim.files.data_table import read_table
from policysim.logs.adjusters import Covariates, read_adjusters
from policysim.logs.counted_log import require_countable


def adjusters(**columns):
    """They of a data frame."""
    frame = pd.DataFrame(columns)
    bad = BadRows()
    found = read_adjusters(read_table(frame), list(columns), bad)
    bad.raise_if_any()
    return found


def test_numbers_stay_as_they_are_and_a_missing_one_is_the_mean_with_a_mark():
    found = adjusters(age=[20.5, None, 40.5], bmi=["1", "2", "3"])
    assert list(found.columns) == [("age", ""), ("age", "missing"), ("bmi", "")]
    assert found.to_numpy().tolist() == [[20.5, 0, 1], [30.5, 1, 2], [40.5, 0, 3]]


def test_words_are_levels_and_rare_ones_are_one():
    words = ["north"] * 12 + ["south"] * 15 + [None] * 11 + ["east", "west"]
    found = adjusters(region=words)
    assert list(found.columns) == [
        ("region", "north"),
        ("region", "south"),
        ("region", "missing"),
        ("region", "others"),
    ]
    assert found.sum().tolist() == [12, 15, 11, 2] and (found.sum(axis=1) == 1).all()
    # Of two levels one says all.
    assert list(adjusters(sex=["f"] * 20 + ["m"] * 20).columns) == [("sex", "m")]


def test_what_is_neither_numbers_nor_levels_is_refused_by_row_or_by_column():
    with pytest.raises(DataError, match="row 2: weight: must be a number, as most of its column are, got '75 kg'"):
        adjusters(weight=["70", "71", "75 kg"])
    with pytest.raises(DataError, match="name: has 30 different values in 30 rows, which are names or ids"):
        adjusters(name=[f"p{place}" for place in range(30)])
    with pytest.raises(DataError, match="empty: has no value"):
        adjusters(empty=[None, None])


@pytest.fixture
def with_bmi(section, small_trial):
    """A study that adjusts for a column, and its table."""
    return keyed(section, 'adjust_for = ["bmi"]'), small_trial.assign(bmi=[21, 22, 23, 24, 25, 26])


def test_columns_are_adjusted_for_and_not_hidden(load, refused, with_bmi):
    text, table = with_bmi
    log = load(text, trial__csv=table)
    assert log.adjusters["bmi", ""].tolist() == [21, 22, 23, 24, 25, 26]
    assert log.space.names == ("age", "sex") and log.predicted.shape == (6, 2)
    assert "unknown column 'bmi'" in refused(text, trial__csv=table.drop(columns="bmi"))[0]


def test_a_counted_log_says_why_it_takes_none(read_section, with_bmi, tmp_path):
    text, table = with_bmi
    table.to_csv(tmp_path / "trial.csv", index=False)
    with pytest.raises(UsageError, match=r"adjust_for: .* declare them as features"):
        require_countable(read_section(keyed(text, 'treatments = { 0 = "a", 1 = "b" }')))


def test_models_see_numbers_before_they_were_cut_levels_and_adjusters(load, with_bmi):
    text, table = with_bmi
    log = load(text, trial__csv=table)
    rows = Covariates.of_log(log.space, log.records, log.raw, log.adjusters).rows
    # Three bins and two levels, two numbers, and whether the adjuster is above its median.
    assert rows.shape == (6, 3 + 2 + 2 + 1)
    assert rows[:, 7].tolist() == [0, 0, 0, 1, 1, 1]
    assert rows[:, 5].tolist() == table["age"].tolist() and rows[:, 6].tolist() == table["bmi"].tolist()


@pytest.mark.usefixtures("few_trees")
def test_propensities_follow_a_number_within_its_bins(load, section):
    rng = np.random.default_rng(2)
    x = rng.normal(size=800)
    true = 1 / (1 + np.exp(-1.5 * x))
    arm = (rng.random(800) < true).astype(int)
    table = pd.DataFrame({"arm": arm, "success": rng.integers(2, size=800), "x": x})
    log = load(section[: section.index("age =")].replace("equal", "estimate") + "x = { cuts = [0] }", trial__csv=table)
    of_one = np.where(arm == 1, log.data.propensities, 1 - log.data.propensities)
    for inside in (x < 0, x >= 0):
        assert np.corrcoef(of_one[inside], true[inside])[0, 1] > 0.9
        assert of_one[inside].mean() == pytest.approx(true[inside].mean(), abs=0.05)
