"""The real trial: the figures of its publication come out of the study's file."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import policysim as ps
from policysim.logs.load_log import load_log
from policysim.trials.arms import arms_of

FOLDER = Path(__file__).parents[3] / "reports" / "actg175"


@pytest.fixture(scope="module")
def study():
    return ps.load_study(FOLDER / "study.toml")


@pytest.fixture(scope="module")
def log(study):
    return load_log(study.log)


def test_the_arms_are_those_of_the_trial(study, log):
    arms = arms_of(log, study.log)
    # Hammer et al. 1996, and the data's own description: 532, 522, 524, 561 patients.
    mine = arms[arms["outcome"] == "cd4_higher"]
    assert mine["rows"].tolist() == [532, 522, 524, 561]
    assert mine["mean"].round(3).tolist() == [0.436, 0.653, 0.555, 0.556]
    frame = pd.read_csv(FOLDER / "actg175.csv")
    assert frame.groupby("arm")["event"].mean().round(3).tolist() == [0.340, 0.197, 0.208, 0.228]
    assert np.array_equal(frame["cd4_higher"] == 1, frame["cd4_week20"] > frame["cd4_baseline"])


def test_being_free_of_the_event_is_nearly_kaplan_and_meiers_estimate_in_each_arm(study, log):
    frame = pd.read_csv(FOLDER / "actg175.csv")
    arms = arms_of(log, study.log)
    own = arms[arms["outcome"] == "free of event at days = 730"]
    for (_, mine), found in zip(frame.groupby("arm"), own["mean"], strict=True):
        free = 1.0
        for day in sorted(set(mine.loc[(mine["event"] == 1) & (mine["days"] <= 730), "days"])):
            free *= 1 - ((mine["days"] == day) & (mine["event"] == 1)).sum() / (mine["days"] >= day).sum()
        # Hazards of censoring depend on patients: a tenth of a standard error.
        assert found == pytest.approx(free, abs=2e-3)
    # Without a look at time, or leaving out who is censored, it would be another number.
    assert abs(own["mean"] - (1 - frame.groupby("arm")["event"].mean().to_numpy())).min() > 0.05
    assert log.censored[["patients", "censored"]].to_numpy().tolist() == [[532, 58], [522, 44], [524, 46], [561, 50]]


def test_only_the_state_at_the_horizon_counts_and_the_other_outcome_is_shown(study, log):
    assert np.array_equal(log.data.rewards, log.outcomes["free of event at days = 730"])
    assert set(log.outcomes) == {"free of event at days = 730", "cd4_higher"}
    assert study.log.utility_range == (0.0, 1.0)


def test_every_declared_record_is_protected(study):
    problem = ps.build_problem(study)
    assert problem.n_records == 4 * 4 * 2**7
    assert problem.sensitivity.value <= 1
