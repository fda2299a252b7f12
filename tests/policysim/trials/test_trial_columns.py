"""The table of columns of a comparison on a log."""

import pytest
from small_trials import make_trial

from policysim.trials import trial_columns
from policysim.trials.trial_columns import COLUMNS, compare_log


@pytest.fixture
def trial(monkeypatch):
    monkeypatch.setattr(trial_columns, "REPEATS", 1)
    return make_trial(200, 0.2, seed=7, policies=("greedy", "exponential"), by=("ill",))


def test_every_column_of_a_comparison_is_declared(trial):
    own = [name for name in compare_log(trial.study, trial.log).columns[5:] if name not in COLUMNS]
    assert all(name.startswith("p_") or name.endswith(("_low", "_high")) for name in own)


def test_a_new_column_is_one_function_and_one_line(trial, monkeypatch):
    def patients(found):
        return found.groups.sizes

    monkeypatch.setattr(trial_columns, "COLUMNS", COLUMNS | {"patients": patients})
    table = compare_log(trial.study, trial.log)
    assert table["patients"].tolist() == pytest.approx((table["share"] * 200).tolist())
