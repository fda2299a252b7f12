"""The real trial: the figures of its publication come out of the study's file."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import policysim as ps
from policysim.logs.load_log import load_log
from policysim.trials.trial_findings import arms_of

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
    for outcome, expected in {
        "event": (0.340, 0.197, 0.208, 0.228),
        "cd4_higher": (0.436, 0.653, 0.555, 0.556),
    }.items():
        mine = arms[arms["outcome"] == outcome]
        assert mine["rows"].tolist() == [532, 522, 524, 561]
        assert mine["mean"].round(3).tolist() == list(expected)


def test_success_is_a_higher_count_and_no_event():
    frame = pd.read_csv(FOLDER / "actg175.csv")
    higher = frame["cd4_week20"] > frame["cd4_baseline"]
    assert np.array_equal(frame["cd4_higher"] == 1, higher)
    assert np.array_equal(frame["success"] == 1, higher & (frame["event"] == 0))


def test_only_success_counts_and_the_other_outcomes_are_shown(study, log):
    frame = pd.read_csv(FOLDER / "actg175.csv")
    assert np.array_equal(log.data.rewards, frame["success"])
    assert set(log.outcomes) == {"success", "event", "cd4_higher"}
    assert study.log.utility_range == (0.0, 1.0)


def test_every_declared_record_is_protected(study):
    problem = ps.build_problem(study)
    assert problem.n_records == 4 * 4 * 2**7
    assert problem.sensitivity.value <= 1
