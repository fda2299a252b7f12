"""The table of columns of a comparison on a log."""

import pytest
from small_trials import make_trial

from policysim.question import formats
from policysim.study.sweep import Column
from policysim.trials import splits, trial_columns
from policysim.trials.trial_columns import COLUMNS, compare_log


@pytest.fixture
def trial(monkeypatch):
    monkeypatch.setattr(splits, "REPEATS", 1)
    return make_trial(200, 0.2, seed=7, policies=("greedy", "exponential"), by=("ill",))


def test_every_column_of_a_comparison_is_declared_once_with_a_format_that_is_there(trial):
    names = [column.name for column in COLUMNS]
    assert len(set(names)) == len(names)
    assert all(callable(getattr(formats, column.format)) for column in COLUMNS if column.format)
    own = [name for name in compare_log(trial.study, trial.log).columns[5:] if name not in names]
    assert all(name.startswith("p_") or name.endswith(("_low", "_high")) for name in own)


def test_a_new_column_is_one_function_and_one_line(trial, monkeypatch):
    def patients(found):
        return found.groups.sizes

    line = Column("patients", "patients", "", "plain", patients)
    monkeypatch.setattr(trial_columns, "COLUMNS", (*COLUMNS, line))
    table = compare_log(trial.study, trial.log)
    assert table["patients"].tolist() == pytest.approx((table["share"] * 200).tolist())
