"""Estimates from counts are those from the rows that were counted."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from parts_work import ARMS, log_rows, write_parts
from scipy.stats import chisquare
from sklearn.linear_model import RidgeCV
from small_trials import make_trial

from policysim.logs.log_frame import LoggedData
from policysim.logs.outcome_models import PENALTIES, fit_to_log
from policysim.study.study_problem import smoothed_prior
from policysim.trials.arms import arm_means, difference_from_one_arm
from policysim.trials.diagnostics import balance_of, imbalance_by_chance, log_caveats, propensities_of
from policysim.trials.estimate_value import cross_fit, estimate_value
from policysim.trials.estimators import moments
from policysim.trials.evidence import confounding_needed
from policysim.trials.overlap import find_holes
from policysim.trials.splits import ratio_of_means
from policysim.trials.trial_columns import compare_log

TIGHT = 1e-10


@pytest.fixture(scope="module")
def trial():
    return make_trial(900, 0.3, seed=5)


@pytest.fixture(scope="module")
def counts(trial):
    """The same log, with equal rows counted, and which of these each row is."""
    data = trial.log.data
    rows = np.column_stack([trial.log.records, data.actions, data.rewards])
    kinds, place, number = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    actions, rewards = kinds[:, 1].astype(np.intp), kinds[:, 2]
    own = LoggedData(actions, rewards, np.full(len(kinds), 1 / 3), data.names, counts=number)
    log = replace(trial.log, data=own, records=kinds[:, 0].astype(np.intp), outcomes={"success": rewards})
    return log, place.ravel()


def same(one, other):
    """Within rounding, whatever a frame holds."""
    pd.testing.assert_frame_equal(one, other, rtol=TIGHT, atol=TIGHT)


@pytest.mark.parametrize("estimator", ["ips", "snips", "dm", "dr"])
def test_each_estimator_finds_the_same_in_counts_as_in_rows(trial, counts, estimator):
    log, place = counts
    rng = np.random.default_rng(0)
    policy = rng.dirichlet(np.ones(3), size=log.space.size)
    # Rows in folds, and the same folds of the counts.
    folds = rng.integers(4, size=trial.log.data.n_rows)
    cells, number = np.unique(place * 4 + folds, return_counts=True)
    dealt = replace(log.data.of(cells // 4), counts=number)
    found = []
    for data, records, own in ((trial.log.data, trial.log.records, folds), (dealt, log.records[cells // 4], cells % 4)):
        fit = cross_fit(data, log.space.codes(records).astype(float), folds=4, dealt=own)
        asked = {"estimator": estimator, "fitted": fit}
        found += [estimate_value(data, policy[records], clip=2.0, **asked)]
        found += [difference_from_one_arm(data, policy[records], **asked)]
    rows, from_rows, counted, from_counts = found
    for name in ("value", "standard_error", "interval", "ess", "largest_weight", "clipped_share", "n_rows"):
        assert getattr(counted, name) == pytest.approx(getattr(rows, name), rel=TIGHT)
    assert counted.warnings == rows.warnings
    # Other splits, which differ in who shares a fold with whom.
    width = from_rows.interval[1] - from_rows.interval[0]
    assert (from_counts.value, *from_counts.interval) == pytest.approx(
        (from_rows.value, *from_rows.interval), abs=0.5 * width
    )


def test_what_is_shown_before_any_model_is_the_same(trial, counts):
    log, _ = counts
    same(arm_means(log.data), arm_means(trial.log.data))
    same(balance_of(log), balance_of(trial.log))
    same(propensities_of(log.data), propensities_of(trial.log.data))
    assert imbalance_by_chance(log.data) == pytest.approx(imbalance_by_chance(trial.log.data), abs=1e-12)
    assert log_caveats(log, trial.study.log) == log_caveats(trial.log, trial.study.log)
    same(confounding_needed(log.data, "pill"), confounding_needed(trial.log.data, "pill"))


def test_moments_shares_and_quantiles_are_those_of_repeated_numbers():
    rng = np.random.default_rng(1)
    numbers, others, counts = rng.exponential(size=50), rng.normal(3, 1, size=50), rng.integers(0, 9, size=50)
    rows, other_rows = np.repeat(numbers, counts), np.repeat(others, counts)
    for one, other in (
        (moments(numbers, counts), moments(rows)),
        (ratio_of_means(numbers, others, counts), ratio_of_means(rows, other_rows)),
    ):
        assert [float(number) for number in vars(one).values()] == pytest.approx(
            [float(number) for number in vars(other).values()], rel=1e-9
        )


@pytest.mark.parametrize("model", ["linear", "logistic", "constant"])
def test_models_fitted_to_counts_are_those_of_the_rows(counts, trial, model):
    log, place = counts
    codes = log.space.codes(log.records).astype(float)
    one, other = fit_to_log(model, codes, log.data), fit_to_log(model, codes[place], trial.log.data)
    assert one.predict(codes) == pytest.approx(other.predict(codes), abs=1e-5 if model == "logistic" else 1e-10)


def test_to_leave_out_a_row_is_not_to_leave_out_all_that_equal_it():
    """The penalty of ridge regression: scikit-learn's, of rows."""
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 2, size=(4000, 2)).astype(float)
    rewards = (rng.random(4000) < 0.2 + 0.5 * rows[:, 0]).astype(float)
    kinds, counts = np.unique(np.column_stack([rows, rewards]), axis=0, return_counts=True)
    data = LoggedData(np.zeros(8, dtype=int), kinds[:, 2], np.ones(8), ("all",), counts=counts)
    model = fit_to_log("linear", kinds[:, :2], data)
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    right = RidgeCV(PENALTIES).fit(scaled, rewards).predict(scaled)
    assert model.predict(rows)[:, 0] == pytest.approx(right, abs=1e-10)


def test_the_prior_of_counts_is_that_of_the_rows(counts, trial):
    log, _ = counts
    assert smoothed_prior(log.space, log.records, log.data.counts) == pytest.approx(
        smoothed_prior(log.space, trial.log.records), rel=1e-12
    )


def test_each_patient_falls_into_a_fold_by_chance(counts):
    log, _ = counts
    data, rows, folds = log.data.dealt(5, np.random.default_rng(0))
    assert np.bincount(rows, weights=data.counts).tolist() == log.data.counts.tolist()
    assert (data.counts > 0).all()
    # A billion patients too, of whom nobody is there as a row.
    many = replace(log.data, counts=np.full(log.data.n_rows, 10**9))
    dealt, _, parts = many.dealt(5, np.random.default_rng(0))
    assert dealt.n_patients == 10**9 * log.data.n_rows
    found = np.bincount(folds, weights=data.counts)
    assert chisquare(found).pvalue > 1e-4
    assert chisquare(np.bincount(parts, weights=dealt.counts)).pvalue > 1e-4


def test_a_hole_is_found_in_counts_and_named_with_its_patients():
    rng = np.random.default_rng(0)
    ward, arm = rng.integers(4, size=40_000), rng.integers(2, size=40_000)
    arm[ward == 3] = 0
    kinds, counts = np.unique(np.column_stack([ward, arm]), axis=0, return_counts=True)
    data = LoggedData(kinds[:, 1], np.zeros(7), np.full(7, 0.5), ("wait", "pill"), counts=counts)
    (hole,) = find_holes(data, pd.DataFrame({"ward": kinds[:, 0]}))
    assert (hole.where, hole.given) == ("ward = 3", 0)
    assert hole.patients == pytest.approx(2500, abs=60)  # of every fourth patient, a quarter


def test_a_comparison_on_counts_is_within_its_intervals_of_that_on_rows(counts, trial):
    """They differ in who shares a fold with whom, and so by less than the errors that such a split makes."""
    study = replace(trial.study, policies=("greedy", "best-fixed", "uniform"), epsilons=(1.0,), by=("old",))
    rows, counted = (compare_log(study, log).set_index(["policy", "group", "level"]) for log in (trial.log, counts[0]))
    assert counted["share"].tolist() == pytest.approx(rows["share"].tolist())
    errors = (rows["value_high"] - rows["value_low"]) / 4
    assert ((counted["value"] - rows["value"]).abs() < 0.5 * errors).all()
    # One treatment for all depends on the split where arms are nearly equal.
    wide = ((counted["value_high"] - counted["value_low"]) / (4 * errors)).drop("best-fixed", level="policy")
    assert wide.between(0.9, 1.1).all()


@pytest.fixture
def policy(tmp_path):
    frame = pd.DataFrame({"old": [0, 1], "p_wait": [0.2, 0.3], "p_pill": [0.7, 0.1], "p_drip": [0.1, 0.6]})
    frame.to_csv(tmp_path / "policy.csv", index=False)
    return str(tmp_path / "policy.csv")


@pytest.mark.parametrize("estimator", ["ips", "dr"])
def test_evaluate_prints_the_same_for_any_files(tmp_path, policy, document, estimator):
    printed = []
    for n_parts, options in ((1, ["--workers", "1"]), (5, []), (3, ["--workers", "2"])):
        study = write_parts(tmp_path / f"{n_parts}", log_rows(), n_parts)
        printed.append(document("evaluate", study, "--table", policy, "--estimator", estimator, *options))
        printed[-1].pop("log")
    assert printed[0] == printed[1] == printed[2]
    assert printed[0]["rows_read"] == 1200


def test_evaluate_counts_a_folder_of_logs_by_what_the_policy_knows(tmp_path, policy, run, document, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = log_rows().dropna().rename(columns={"arm": "action", "chance": "propensity", "cured": "reward"})
    write_parts(tmp_path / "many", frame, 4)
    frame.to_csv("all.csv", index=False)
    asked = ("--table", policy, "--estimator", "snips")
    found = [document("evaluate", log, *asked) for log in ("many/parts", "many/parts/*.csv", "all.csv")]
    values = [(each["estimate"]["value"], each["estimate"]["standard_error"]) for each in found]
    assert values[0] == values[1] == pytest.approx(values[2], rel=1e-12)
    assert [arm["arm"] for arm in found[0]["arms"]] == ["wait", "pill", "drip"]
    assert sorted(ARMS) == sorted(arm["arm"] for arm in found[2]["arms"])
    order = pd.DataFrame(np.full((len(frame), 3), 1 / 3), columns=[f"p_{arm}" for arm in ARMS])
    order.to_csv("order.csv", index=False)
    code, _, err = run("evaluate", "many/parts", "--table", "order.csv")
    assert code == 3 and "order.csv: has only columns p_<action>, for the rows of a log in its order" in err
    code, _, err = run("evaluate", "many/parts", "--table", policy, "--model", "chosen")
    assert code == 2 and "model = 'chosen' is not possible: a log is counted where it is in many files" in err
