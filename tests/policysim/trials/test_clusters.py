"""Patients in clusters: whole clusters in folds, intervals by clusters, and what is refused or named."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted_clusters import clustered_trial
from scipy import stats

import policysim as ps
from policysim.files.data_table import DataTable
from policysim.logs.clusters import FEWEST_CLUSTERS, deciding_columns, folds_of_clusters, whole_clusters
from policysim.logs.load_log import load_log
from policysim.logs.log_frame import LoggedData
from policysim.study.study_reader import load_study
from policysim.trials import trial_columns, trial_report
from policysim.trials.arms import arm_means
from policysim.trials.contrasts import against_highest, difference_of_means
from policysim.trials.diagnostics import log_caveats
from policysim.trials.estimate_value import cross_fit
from policysim.trials.estimators import moments
from policysim.trials.evidence import heterogeneity
from policysim.trials.overlap import find_holes
from policysim.trials.splits import split_log

SIZES = st.lists(st.integers(1, 7), min_size=2, max_size=9)


@given(SIZES, st.integers(0, 2**31))
def test_the_error_is_the_jackknife_over_clusters(sizes, seed):
    clusters = np.repeat(np.arange(len(sizes)) + 3, sizes)
    numbers = np.random.default_rng(seed).normal(size=len(clusters))
    found = moments(numbers, clusters=clusters)
    without = [numbers[clusters != one].mean() for one in np.unique(clusters)]
    jackknife = (len(sizes) - 1) / len(sizes) * ((np.array(without) - numbers.mean()) ** 2).sum()
    assert found.mean == pytest.approx(numbers.mean())
    assert found.standard_error == pytest.approx(math.sqrt(jackknife), rel=1e-9)


@given(st.integers(2, 9), st.integers(1, 6), st.integers(0, 2**31))
def test_clusters_of_one_size_have_the_error_of_their_means(n_clusters, size, seed):
    numbers = np.random.default_rng(seed).normal(size=(n_clusters, size))
    found = moments(numbers.ravel(), clusters=np.repeat(np.arange(n_clusters), size))
    assert found.standard_error == pytest.approx(stats.sem(numbers.mean(axis=1)), rel=1e-9)
    assert found.freedom <= n_clusters - 1 + 1e-9
    assert found.reach >= stats.t.ppf(0.975, n_clusters - 1) * (1 - 1e-9)


@given(SIZES, st.integers(0, 2**31))
def test_the_degrees_of_freedom_are_satterthwaites_by_whole_matrices(sizes, seed):
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    numbers = np.random.default_rng(seed).normal(size=len(clusters))
    apart = numbers - numbers.mean()
    same = clusters[:, None] == clusters
    np.fill_diagonal(same, 0)
    squares = np.array([(apart[clusters == one] ** 2).sum() for one in range(len(sizes))])
    pairs = ((np.array(sizes) - 1) * squares).sum()
    alike = min(1, max(0, apart @ same @ apart / pairs)) if pairs else 0
    variances = squares * (1 + (np.array(sizes) - 1) * alike)
    shares = np.array(sizes) / len(clusters)
    centring = np.eye(len(sizes)) - shares[:, None]
    form = np.diag((1 - shares) ** -2.0) @ centring @ np.diag(variances) @ centring.T
    expected = max(1.0, np.trace(form) ** 2 / np.trace(form @ form))
    assert moments(numbers, clusters=clusters).freedom == pytest.approx(expected, rel=1e-6)


def test_equal_clusters_that_vary_alike_have_one_less_degrees_of_freedom_than_clusters():
    numbers = np.array([1.0, -1.0, -1.0, 1.0, 2.0, 0.0, 0.0, -2.0]) - [0, 0, 0, 0, 1, 1, -1, -1]
    assert moments(numbers, clusters=np.repeat(np.arange(4), 2)).freedom == pytest.approx(3)


@given(st.integers(10, 40), st.integers(2, 5), st.integers(0, 2**31))
def test_folds_hold_whole_clusters_and_a_part_of_each_arm(n_clusters, n_folds, seed):
    rng = np.random.default_rng(seed)
    arm_of_cluster = np.arange(n_clusters) % 2
    clusters = rng.integers(n_clusters, size=300)
    folds = folds_of_clusters(clusters, arm_of_cluster[clusters], n_folds, rng)
    pairs = np.unique(np.column_stack([clusters, folds]), axis=0)
    assert len(pairs) == len(np.unique(clusters))  # one fold for each
    for arm in (0, 1):
        sizes = np.bincount(pairs[arm_of_cluster[pairs[:, 0]] == arm, 1], minlength=n_folds)
        assert np.ptp(sizes) <= 1


def test_no_model_sees_the_clusters_that_it_predicts():
    study, log = clustered_trial(np.random.default_rng(1), 8, 0.1)
    for split in (next(split_log(log, study)), cross_fit(log.data, np.zeros((log.data.n_rows, 1)))):
        assert all(len(np.unique(split.folds[log.data.clusters == one])) == 1 for one in range(16))


def test_the_mean_of_an_arm_is_by_its_clusters():
    _, log = clustered_trial(np.random.default_rng(2), 10, 0.2, size=0)
    data = replace(log.data, rewards=log.data.rewards + np.linspace(0, 1e-3, log.data.n_rows))
    found = arm_means(data)
    for arm, row in enumerate(found.itertuples()):
        mine = pd.Series(data.rewards[data.actions == arm]).groupby(data.clusters[data.actions == arm]).mean()
        low, high = stats.ttest_1samp(mine, 0).confidence_interval(0.95)
        assert row.mean == pytest.approx(mine.mean())
        # Never narrower than Student's, and a little wider where the clusters' sums are skewed.
        assert low - 0.05 < row.low <= low + 1e-3 and high - 1e-3 <= row.high < high + 0.05


def test_between_arms_of_whole_clusters_few_claims_remain():
    # Trials without an effect: by patients about 32 of 100 claim one, by clusters about 5.
    claims = {True: 0, False: 0}
    for seed in range(60):
        _, log = clustered_trial(np.random.default_rng(seed), 15, 0.1)
        for by_cluster in claims:
            data = log.data if by_cluster else replace(log.data, clusters=None)
            _, low, high = difference_of_means(*arm_means(data)[["mean", "low", "high"]].to_numpy())
            claims[by_cluster] += low > 0 or high < 0
    # Binomial(60, 0.05): more than 9 has probability 0.001.
    assert claims[False] >= 10 and claims[True] <= 9


def test_arms_within_clusters_are_compared_as_pairs_whatever_clusters_have_in_common():
    rng = np.random.default_rng(3)
    clusters, actions = np.repeat(np.arange(12), 4), np.tile([0, 0, 1, 1], 12)
    rewards = 100.0 * clusters + rng.normal(size=48)
    data = LoggedData(actions, rewards, np.full(48, 0.5), ("none", "net"), clusters=clusters)
    found = against_highest(arm_means(data), data).iloc[0]
    means = rewards.reshape(12, 2, 2).mean(axis=2)
    paired = stats.sem(means[:, 0] - means[:, 1]) * stats.t.ppf(0.975, 11)
    assert found["value"] == pytest.approx(abs(np.diff(means.mean(axis=0))[0]))
    # Degrees of freedom are at most 11, and a little fewer where clusters vary differently.
    assert paired * (1 - 1e-9) <= found["high"] - found["value"] <= 1.15 * paired
    assert found["high"] - found["low"] < 10  # as independent means they would be hundreds apart


def test_heterogeneity_is_not_claimed_of_clusters_that_differ():
    signs = [
        heterogeneity(log, study)["signs"][0]
        for study, log in (clustered_trial(np.random.default_rng(seed), 8, 0.2) for seed in range(12))
    ]
    assert sum(signs) <= 3  # Binomial(12, 0.05): more has probability 0.0002


def test_what_clusters_share_is_no_sign_of_doubtful_allocation():
    rng = np.random.default_rng(4)
    for _ in range(3):
        study, log = clustered_trial(rng, 10, 0.1, shared=True)
        assert not log_caveats(log, study.log).errors
        by_patient = replace(log, data=replace(log.data, clusters=None))
        assert log_caveats(by_patient, study.log).errors  # what villages share is taken for bad luck of patients
    frame = log.covariates
    assert not find_holes(log.data, frame)


VILLAGES = """title = "Nets"
[data]
file = "trial.csv"
{keys}
treatment = "arm"
propensity = "equal"
outcome = {{ cured = 1.0 }}
[data.features]
age = {{ cuts = [40, 60] }}
"""


def write_trial(folder, keys, per_arm=15, size=12, *, mixed=False, name="village"):
    """A study and its trial, each village wholly in one arm."""
    rng = np.random.default_rng(0)
    village = np.repeat(np.arange(2 * per_arm), size)
    arm = rng.integers(2, size=len(village)) if mixed else village % 2
    frame = pd.DataFrame(
        {
            "patient": np.arange(len(village)),
            name: [f"V{number:02}" for number in village],
            "arm": np.array(["none", "net"])[arm],
            "age": rng.integers(20, 80, len(village)),
            "cured": rng.integers(2, size=len(village)),
        }
    )
    frame.to_csv(folder / "trial.csv", index=False)
    (folder / "study.toml").write_text(VILLAGES.format(keys=keys))
    return folder / "study.toml", frame


def reported(path, monkeypatch):
    monkeypatch.setattr(trial_columns, "REPEATS", 2)
    return trial_report.report(load_study(str(path)), policies=["optimal"], epsilons=[1.0])


def test_a_study_names_its_clusters_and_every_screen_says_so(tmp_path, screen, monkeypatch):
    path, _ = write_trial(tmp_path, 'cluster = "village"')
    report = reported(path, monkeypatch)
    assert "Intervals are by 30 clusters (village)" in report.printed.text()
    assert {"what": "clusters", "patients": 30} in report.document()["patients"]
    pd.DataFrame({"p_net": np.full(360, 0.5), "p_none": 0.5}).to_csv(tmp_path / "policy.csv", index=False)
    assert "Intervals are by 30 clusters" in screen("evaluate", path, "--table", tmp_path / "policy.csv")


def refused(run, path, *options):
    """The line with which compare refuses a study."""
    code, _, err = run("compare", path, *options)
    assert code in (2, 3) and err.count("\n") == 1
    return err


def test_few_clusters_are_refused_in_one_line(tmp_path, run):
    path, _ = write_trial(tmp_path, 'cluster = "village"', per_arm=7)
    said = refused(run, path)
    assert "each treatment needs at least 8 clusters, net has 7, none has 7" in said
    assert "village is wholly in one arm" in said
    # Within few clusters patients were randomised: these should be a feature.
    path, _ = write_trial(tmp_path, 'cluster = "village"', per_arm=3, mixed=True)
    assert "make village a feature" in refused(run, path)


def test_rows_without_a_cluster_and_counted_logs_of_clusters_are_refused(tmp_path, run):
    path, frame = write_trial(tmp_path, 'cluster = "village"')
    assert "intervals by cluster need its rows" in refused(run, path, "--workers", "1")
    frame.assign(village=frame["village"].mask(frame.index == 4)).to_csv(tmp_path / "trial.csv", index=False)
    assert "row 5: village: is missing: each row needs its cluster" in refused(run, path)


@pytest.mark.parametrize(("key", "value"), [("adjust_for", '["bmi"]'), ("cluster", '"bmi"')])
def test_a_column_that_is_not_there_is_refused_with_the_key_and_its_line(tmp_path, run, key, value):
    path, _ = write_trial(tmp_path, f"{key} = {value}")
    assert f"study.toml:4: data.{key}: " in refused(run, path)


def test_columns_of_lists_and_of_ids_decide_nothing():
    arms = np.repeat([0, 1], 40)
    table = DataTable("log", pd.DataFrame({"lists": [[1]] * 80, "id": range(80), "ward": np.arange(80) // 4}))
    assert list(deciding_columns(table, table.columns, arms, 2)) == [("ward", 20, 0)]


def log_of(path):
    study = load_study(str(path))
    log = load_log(study.log)
    return log, log_caveats(log, study.log).errors


def test_a_column_that_is_left_out_and_decides_treatment_is_named_with_its_key(tmp_path):
    log, (error,) = log_of(write_trial(tmp_path, "")[0])
    assert log.deciding == (("village", 30, 0),)
    assert 'cluster = "village"' in error
    assert log_of(write_trial(tmp_path, "", mixed=True)[0])[0].deciding == ()


def test_one_patient_in_the_wrong_arm_does_not_hide_that_a_column_decides_treatment(tmp_path):
    path, frame = write_trial(tmp_path, "")
    frame.loc[0, "arm"] = "none" if frame.loc[0, "arm"] == "net" else "net"
    frame.to_csv(tmp_path / "trial.csv", index=False)
    log, (error,) = log_of(path)
    assert log.deciding == (("village", 30, 1),)
    assert "but for 1 patient." in error and 'cluster = "village"' in error


def test_rows_of_one_person_that_the_study_does_not_name_are_told(tmp_path):
    path, frame = write_trial(tmp_path, "", mixed=True)
    frame.assign(patient_id=frame.index // 2).to_csv(tmp_path / "trial.csv", index=False)
    _, (error,) = log_of(path)
    assert "patient_id has the same value in several rows" in error and 'cluster = "patient_id"' in error
    # With other words or few values it is no id of patients; one that does not repeat is no cluster.
    others = frame.assign(patient_sex=frame.index % 2, patient=frame.index % 5, pid=frame.index)
    others.to_csv(tmp_path / "trial.csv", index=False)
    assert not log_of(path)[1]


@pytest.mark.parametrize("key", ['cluster = "village"', 'outcome_title = "cured"'])
def test_what_names_the_treatment_decides_nothing(tmp_path, key):
    path, frame = write_trial(tmp_path, key)
    frame.assign(label=frame["arm"].str.upper(), dose=np.where(frame["arm"] == "net", 1 + frame.index % 3, 0)).drop(
        columns="village" if "village" not in key else []
    ).to_csv(tmp_path / "trial.csv", index=False)
    assert load_log(load_study(str(path)).log).deciding == ()


def test_an_id_repeats_where_it_is_the_cluster_and_else_is_refused_with_that_key(tmp_path, run, monkeypatch):
    path, _ = write_trial(tmp_path, 'id = "person"', name="person")
    assert 'for several rows of a person write cluster = "person"' in run("compare", path)[2]
    path, frame = write_trial(tmp_path, 'id = "person"\ncluster = "village"', name="person")
    frame.assign(village=frame["person"]).to_csv(tmp_path / "trial.csv", index=False)
    assert "if no person is in two clusters (village), leave out the id" in run("compare", path)[2]
    path, _ = write_trial(tmp_path, 'id = "person"\ncluster = "person"', name="person")
    text = " ".join(reported(path, monkeypatch).printed.text().split())
    assert "A person with several rows is not hidden as a whole" in text


def evaluated(frame, **options):
    log = pd.DataFrame(
        {"action": frame["arm"], "reward": frame["cured"], "propensity": 0.5, "village": frame["village"]}
    )
    policy = pd.DataFrame({"net": np.ones(len(log)), "none": np.zeros(len(log))})
    return ps.evaluate_log(log, policy, estimator="ips", **options)


def test_evaluate_log_takes_the_clusters_by_name_or_one_for_each_row(tmp_path):
    _, frame = write_trial(tmp_path, "")
    by_name, by_row = evaluated(frame, clusters="village"), evaluated(frame, clusters=frame["village"].to_numpy())
    sums = (frame["arm"].eq("net") * frame["cured"] * 2).groupby(frame["village"]).mean()
    assert by_name.standard_error == by_row.standard_error == pytest.approx(stats.sem(sums))
    assert evaluated(frame).standard_error != pytest.approx(by_name.standard_error, rel=0.01)
    with pytest.raises(ValueError, match="clusters must be a column of the log"):
        evaluated(frame, clusters="town")
    with pytest.raises(ValueError, match="one for each of 360 rows, got 3"):
        evaluated(frame, clusters=[1, 2, 3])
    with pytest.raises(ValueError, match="each treatment needs at least 8"):
        evaluated(frame, clusters=frame["village"].str[:2].to_numpy())


def test_whole_clusters_are_counted_and_mixed_ones_are_none():
    clusters = np.repeat(np.arange(20), 3)
    assert whole_clusters(clusters, clusters % 2, 2).tolist() == [10, 10]
    assert whole_clusters(clusters, np.arange(60) % 2, 2) is None
    crossed = np.where(np.arange(60) == 7, 1 - clusters % 2, clusters % 2)  # one patient got the other
    assert whole_clusters(clusters, crossed, 2).tolist() == [10, 10]
    assert whole_clusters(np.arange(60), np.arange(60) % 2, 2) is None  # a patient each
    assert FEWEST_CLUSTERS == 8


def test_clusters_with_the_index_of_the_log_in_another_order_are_refused():
    n = 160
    log = pd.DataFrame({"action": [0, 1] * 80, "reward": np.arange(n) % 3, "propensity": 0.5})
    villages = pd.Series(np.arange(n) // 8)
    asked = {"estimator": "ips"}
    by_index = ps.evaluate_log(log, np.full((n, 2), 0.5), clusters=villages, **asked)
    by_row = ps.evaluate_log(log, np.full((n, 2), 0.5), clusters=villages.to_numpy(), **asked)
    assert by_index.standard_error == by_row.standard_error
    with pytest.raises(ValueError, match="clusters must have its rows in the log's order"):
        ps.evaluate_log(log, np.full((n, 2), 0.5), clusters=villages[::-1], **asked)
