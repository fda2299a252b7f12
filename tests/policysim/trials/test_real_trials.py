"""ACTG 175 and the International Stroke Trial: the figures of their publications come out of the studies' files."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import policysim as ps
from policysim.logs import outcome_models, treatments
from policysim.logs.load_log import load_log
from policysim.trials.arms import arms_of

REPORTS = Path(__file__).parents[3] / "reports"
ACTG_175 = REPORTS / "actg175"
# The data's own description: patients, and the mean of each outcome, by arm: neither, aspirin, heparin, both.
PATIENTS = [4860, 4858, 4855, 4862]
SIX_MONTHS = {"dead_or_dependent_6m": [0.6346, 0.6225, 0.6353, 0.6224]}
TWO_WEEKS = {"death_14d": [0.0932, 0.0930, 0.0939, 0.0864], "haemorrhagic_stroke_14d": [0.0031, 0.0054, 0.0122, 0.0125]}


def read(name):
    """A study, its log, and its file as pandas reads it."""
    study = ps.load_study(REPORTS / name / "study.toml")
    return study, load_log(study.log), pd.read_csv(REPORTS / name / "ist.csv", keep_default_na=False, na_values=[""])


@pytest.fixture(scope="module")
def six_months():
    with pytest.MonkeyPatch.context() as patch:
        # To be quick: 150 of 19,435 outcomes are missing.
        patch.setattr(treatments, "MOST_FITTED", 1000)
        patch.setattr(outcome_models, "MOST_PRODUCTS", 0)
        return read("ist")


@pytest.fixture(scope="module")
def two_weeks():
    return read("ist-14-days")


def means(found, outcome):
    mine = found[found["outcome"] == outcome]
    assert mine["arm"].tolist() == ["neither", "aspirin", "heparin", "aspirin + heparin"]
    return mine["mean"].round(4).tolist()


def test_the_arms_at_six_months_are_those_of_the_trial(six_months):
    study, log, frame = six_months
    arms = arms_of(log, study.log)
    for outcome, expected in SIX_MONTHS.items():
        assert frame.groupby("arm")[outcome].mean().round(4).tolist() == expected
        # Of 150 patients nobody knows it: a model says what they weigh.
        assert means(arms, outcome) == pytest.approx(expected, abs=0.001)
    mine = arms[arms["outcome"] == "independent_6m"]
    assert (mine["rows"].tolist(), mine["missing"].sum()) == (PATIENTS, 150)
    assert (log.n_read, sum(log.missing)) == (19_435, 150)
    # The publication: aspirin against none of it, 62.2 % against 63.5 %.
    with_aspirin = frame["arm"].isin(["a1", "a3"])
    bad = [frame.loc[rows, "dead_or_dependent_6m"].mean() for rows in (with_aspirin, ~with_aspirin)]
    assert [round(100 * share, 1) for share in bad] == [62.2, 63.5]


def test_the_arms_at_14_days_are_those_of_the_trial(two_weeks):
    study, log, _ = two_weeks
    arms = arms_of(log, study.log)
    for outcome, expected in TWO_WEEKS.items():
        assert means(arms, outcome) == expected
    assert arms[arms["outcome"] == "free_14d"]["rows"].tolist() == PATIENTS


def test_the_utilities_are_what_the_files_say(six_months, two_weeks):
    _, log, frame = six_months
    known = frame["dead_or_dependent_6m"].notna()
    assert np.array_equal(log.data.known.rewards[known], 1 - frame["dead_or_dependent_6m"][known])
    assert np.array_equal(log.data.known.weights > 0, known)
    assert np.array_equal(frame["independent_6m"][known], 1 - frame["dead_or_dependent_6m"][known])
    _, log, frame = two_weeks
    assert np.array_equal(log.data.rewards, ((frame["death_14d"] == 0) & (frame["any_stroke_14d"] == 0)) * 1)
    assert np.array_equal(frame["death_or_stroke_14d"], 1 - frame["free_14d"])


def test_no_feature_was_known_only_after_treatment(six_months, two_weeks):
    before = {"age", "sex", "hours_since_onset", "consciousness", "systolic_bp", "atrial_fibrillation"}
    for study, log, frame in (six_months, two_weeks):
        assert set(study.log.features) == before | {"infarct_visible", "stroke_type"}
        assert log.space.size == 4 * 2 * 4 * 3 * 4 * 3 * 2 * 5
        assert frame["atrial_fibrillation"].eq("NA").sum() + frame["atrial_fibrillation"].isna().sum() == 984
        assert study.log.treatments[0] == ("a0", "neither")


@pytest.fixture(scope="module")
def actg_175():
    return ps.load_study(ACTG_175 / "study.toml")


@pytest.fixture(scope="module")
def actg_175_log(actg_175):
    return load_log(actg_175.log)


def test_the_arms_of_actg_175_are_those_of_the_trial(actg_175, actg_175_log):
    study, log = actg_175, actg_175_log
    arms = arms_of(log, study.log)
    # Hammer et al. 1996, and the data's own description: 532, 522, 524, 561 patients.
    mine = arms[arms["outcome"] == "cd4_higher"]
    assert mine["rows"].tolist() == [532, 522, 524, 561]
    assert mine["mean"].round(3).tolist() == [0.436, 0.653, 0.555, 0.556]
    frame = pd.read_csv(ACTG_175 / "actg175.csv")
    assert frame.groupby("arm")["event"].mean().round(3).tolist() == [0.340, 0.197, 0.208, 0.228]
    assert np.array_equal(frame["cd4_higher"] == 1, frame["cd4_week20"] > frame["cd4_baseline"])


def test_being_free_of_the_event_is_nearly_kaplan_and_meiers_estimate_in_each_arm(actg_175, actg_175_log):
    study, log = actg_175, actg_175_log
    frame = pd.read_csv(ACTG_175 / "actg175.csv")
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


def test_only_the_state_at_the_horizon_counts_and_the_other_outcome_is_shown(actg_175, actg_175_log):
    study, log = actg_175, actg_175_log
    assert np.array_equal(log.data.rewards, log.outcomes["free of event at days = 730"])
    assert set(log.outcomes) == {"free of event at days = 730", "cd4_higher"}
    assert study.log.utility_range == (0.0, 1.0)


def test_every_declared_record_is_protected(actg_175):
    problem = ps.build_problem(actg_175)
    assert problem.n_records == 4 * 4 * 2**7
    assert problem.sensitivity.value <= 1
