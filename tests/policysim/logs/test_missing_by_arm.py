"""Outcomes that are missing more often in one arm than in another: they must not bias anything, nor make an effect."""

import numpy as np
import pandas as pd
import pytest

import policysim as ps
from policysim.files.probability_table import read_probability_table
from policysim.logs.read_log import read_log
from policysim.trials.evaluate_log import evaluate_log, evaluate_on
from policysim.trials.outside_policy import table_policy

LOGS = 6
OPTIONS = {"treatment": "arm", "outcome": "success", "missing": "exclude"}


def trial(seed, n=900, shares=(1 / 3, 1 / 3, 1 / 3)):
    """Three arms by lot, worth 0.5 each; 30 % of the outcomes of the last one are missing, all of them of the ill."""
    rng = np.random.default_rng(seed)
    state, arm = rng.choice(["ill", "well"], n), rng.choice(3, n, p=shares)
    success = (rng.random(n) < np.where(state == "ill", 0.2, 0.8)).astype(float)
    success[(arm == 2) & (state == "ill") & (rng.random(n) < 0.6)] = np.nan
    return pd.DataFrame({"arm": arm, "success": success, "state": state, "chance": np.array(shares)[arm]})


# Three standard errors of a mean over six logs. Of the rows with an outcome alone the third arm has (.5 * .8 + .2 * .2)
# / .7 = .63 in place of .5, which is ten.
@pytest.mark.usefixtures("few_trees")
def test_no_estimator_is_biased_by_outcomes_that_patients_of_one_arm_lack():
    logs = [read_log(trial(seed, shares=(0.5, 0.3, 0.2)), propensity="chance", **OPTIONS) for seed in range(LOGS)]
    for estimator in ("dr", "ips"):
        found = [evaluate_log(log, np.tile([0, 0, 1.0], (len(log), 1)), estimator=estimator) for log in logs]
        error = np.mean([each.value for each in found]) - 0.5
        assert abs(error) <= 3 * np.sqrt(sum(each.standard_error**2 for each in found)) / LOGS


def test_rows_without_an_outcome_stay_with_the_propensities_that_they_had():
    table = trial(1).assign(arm=lambda rows: rows["arm"].where(rows.index != 7))
    log = read_log(table, propensity="chance", **OPTIONS)
    left = table.drop(index=7)
    assert log.index.equals(left.index) and log["propensity"].equals(left["chance"].rename("propensity"))
    np.testing.assert_array_equal(log["reward"], left["success"])
    assert log.attrs["missing"] == {"0": 0, "1": 0, "2": int(left["success"].isna().sum())}


def test_nobody_else_may_leave_a_reward_out():
    log, policy = read_log(trial(1), propensity="equal", **OPTIONS), np.tile([0, 0, 1.0], (900, 1))
    gap = int(np.flatnonzero(log["reward"].isna())[0])
    log.attrs.clear()
    said = f'row {gap}: reward: .* is missing; read_log\\(missing="exclude"\\) makes up for missing ones'
    with pytest.raises(ValueError, match=said):
        evaluate_log(log, policy)
    whole = read_log(trial(1).fillna({"success": 1}), propensity="equal", **OPTIONS)
    whole.loc[3, "reward"] = np.nan
    with pytest.raises(ValueError, match="row 3: reward: "):
        evaluate_log(whole, policy)


STUDY = """[data]
file = "trial.csv"
treatment = "arm"
propensity = "estimate"
outcome = { success = 1.0 }
missing = "exclude"
adjust_for = ["age"]
[data.features]
state = { levels = ["ill", "well"] }
"""


@pytest.mark.usefixtures("few_trees")
def test_a_frame_and_a_study_of_its_file_have_the_same_estimates(tmp_path):
    """The same columns of 0 and 1 for words whose levels are declared as they occur, and numbers as they are."""
    table = trial(2, n=240).drop(columns="chance").sort_values("state", kind="stable")
    table["age"] = np.random.default_rng(3).normal(50, 10, len(table)).round(1)
    table.to_csv(tmp_path / "trial.csv", index=False)
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "policy.csv").write_text("state,p_0,p_1,p_2\nill,0.1,0.2,0.7\nwell,0.5,0.3,0.2\n")
    study, policy = ps.load_study(tmp_path / "study.toml"), read_probability_table(tmp_path / "policy.csv")
    log = read_log(table[["state", "age", "arm", "success"]], propensity="estimate", **OPTIONS)
    chances = np.where((log["state"] == "ill").to_numpy()[:, None], [0.1, 0.2, 0.7], [0.5, 0.3, 0.2])
    of_file = evaluate_on(study, table_policy(policy, None), estimator="dr").estimate
    of_frame = evaluate_log(log, chances)
    assert of_frame.value == pytest.approx(of_file.value, rel=1e-12)
    assert of_frame.standard_error == pytest.approx(of_file.standard_error, rel=1e-12)


@pytest.mark.usefixtures("few_trees")
def test_outcomes_of_simulated_logs_do_not_predict_the_treatment():
    table, options = trial(4, n=300), {**OPTIONS, "propensity": "estimate"}
    found = read_log(table.assign(outcome_ill=table["arm"], patient=range(300)), **options)
    assert found["propensity"].tolist() == read_log(table, **options)["propensity"].tolist()
    assert {"outcome_ill", "patient"} <= set(found.columns)


@pytest.mark.usefixtures("few_trees")
@pytest.mark.parametrize("within", [False, True])
def test_a_cluster_may_have_lost_all_its_outcomes_and_no_other_any(within):
    frame = trial(4).assign(village=np.arange(900) // 30)
    frame["arm"] = frame["arm"] % 2 if within else frame["village"] % 2
    frame["success"] = (np.arange(900) % 3 > 0).astype(float)
    frame.loc[frame["village"] == 0, "success"] = np.nan
    log = read_log(frame.drop(columns="chance"), propensity="equal", **OPTIONS)
    found = evaluate_log(log, np.tile([1.0, 0.0], (900, 1)), clusters="village", covariates=["state"])
    assert found.value == pytest.approx(2 / 3, abs=0.06) and 0 < found.standard_error < 0.1
