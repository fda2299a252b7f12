"""Logs without any effect in which an arm looks better: a small sample of benchmarks/missing_and_confounded.py."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from confounded_logs import FOLLOWED, LOT, WORLDS, World, censored_in_one_arm, told_of_arms, written

from policysim.logs.load_log import load_log
from policysim.study.study_reader import load_study
from policysim.trials.arms import arms_of
from policysim.trials.diagnostics import balance_of, log_caveats

pytestmark = pytest.mark.usefixtures("few_trees")


def differences(name, logs, folder, patients=500):
    """Of some small logs the difference of the arms as told, and that of the means of what is known, in each."""
    world, found = replace(WORLDS[name], patients=patients), []
    for seed in range(logs):
        path = written(world, folder, np.random.default_rng([56, seed]))
        table = pd.read_csv(folder / "log.csv")
        known = table.groupby("arm")["cured"].mean() if "cured" in table else pd.Series([0.0, 0.0])
        found.append((told_of_arms(path)[0][0], known[1] - known[0]))
    return np.array(found)


@pytest.mark.parametrize("by", ["a feature", "an adjuster"])
def test_outcomes_missing_by_what_patients_are_make_no_difference(by, tmp_path):
    found = differences(f"outcomes missing in one arm by {by}", 6, tmp_path)
    error = found[:, 0].std(ddof=1) / np.sqrt(len(found))
    assert abs(found[:, 0].mean()) < 4 * error < 0.1
    # What is left out would have made one.
    apart = found[:, 1] - found[:, 0]
    assert abs(apart.mean()) > 4 * apart.std(ddof=1) / np.sqrt(len(apart))


@pytest.mark.parametrize("competing", [False, True], ids=["one event", "competing"])
def test_follow_up_that_ends_by_what_patients_are_makes_no_difference(competing, tmp_path):
    data = FOLLOWED.replace('"status"', '{ column = "status", event = 1, censored = 0, competing = 2 }')
    world = World(
        lambda n, rng: censored_in_one_arm(n, rng, competing=competing),
        500,
        f"{data if competing else FOLLOWED}\n{LOT}",
        "ill = { levels = [0, 1] }",
    )
    told, means = [], []
    for seed in range(12):
        difference, *arms = told_of_arms(written(world, tmp_path, np.random.default_rng([57, seed])))
        told.append(difference[0])
        means.append([mean for mean, *_ in arms])
    assert abs(np.mean(told)) < 4 * np.std(told, ddof=1) / np.sqrt(12) < 0.08
    # Each group's hazards are known: the event's, and the other's.
    event, other = np.array([0.4, 2.0]), np.array([0.2, 0.8]) * competing
    truth = 1 - (event / (event + other) * (1 - np.exp(-(event + other)))).mean()
    assert np.abs(np.mean(means, axis=0) - truth).max() < 4 * np.std(means, axis=0, ddof=1).max() / np.sqrt(12)


def test_a_confounder_that_is_left_out_is_named_and_adjusting_for_it_takes_the_difference_away(tmp_path):
    world = WORLDS["the last of 20 columns confounds"]
    left_out = written(world, tmp_path, np.random.default_rng(1), adjusted=False)
    (_, low, _), *_ = told_of_arms(left_out)
    assert low > 0
    study = load_study(left_out)
    said = [line for line in log_caveats(load_log(study.log), study.log).others if "is not adjusted for" in line]
    assert len(said) == 1 and said[0].startswith("c20 differs between arms, after weighting, too")
    assert 'adjust_for = ["c20"]' in said[0]
    adjusted = written(world, tmp_path, np.random.default_rng(1))
    (value, low, high), *_ = told_of_arms(adjusted)
    assert low < 0 < high and abs(value) < 0.1
    study = load_study(adjusted)
    log = load_log(study.log)
    assert not [line for line in log_caveats(log, study.log).others if "differs between arms" in line]
    balance = balance_of(log).set_index("feature")
    assert balance.loc["c20", "before"] > 1 > 5 * balance.loc["c20", "after"]


def test_in_a_randomised_trial_a_column_that_differs_is_named_but_no_outcome_and_no_id(tmp_path):
    rng = np.random.default_rng(4)
    arm = rng.integers(2, size=400)
    frame = pd.DataFrame({"arm": arm, "site": rng.integers(5, size=400) + 3 * arm, "weight": rng.normal(size=400)})
    frame = frame.assign(cured=rng.integers(2, size=400), ill=rng.integers(2, size=400), death_day28=arm)
    frame["patient"] = rng.permutation(400)
    world = World(lambda *_: frame, 400, f"outcome = {{ cured = 1.0 }}\n{LOT}", "ill = { levels = [0, 1] }")
    study = load_study(written(world, tmp_path, rng))
    said = [line for line in log_caveats(load_log(study.log), study.log).others if "differs between arms" in line]
    assert len(said) == 1 and said[0].startswith("site differs between arms (standardised difference")
    assert "no randomisation of patients" in said[0]


def mediated(folder, data):
    """A trial in which an arm moves a marker and its `ill`, which is the outcome turned round, with these lines."""
    rng = np.random.default_rng(5)
    arm = rng.integers(2, size=600)
    cured = (rng.random(600) < 0.35 + 0.27 * arm).astype(int)
    marker = (rng.normal(size=600) + 0.8 * arm).round(3)
    frame = pd.DataFrame(
        {"arm": arm, "cured": cured, "ill": 1 - cured, "marker": marker, "sex": rng.integers(2, size=600)}
    )
    world = World(lambda *_: frame, 600, f"outcome = {{ cured = 1.0 }}\n{LOT}\n{data}", "sex = { levels = [0, 1] }")
    return load_study(written(world, folder, rng))


def test_what_came_after_treatment_is_not_adjusted_for_in_silence(tmp_path):
    study = mediated(tmp_path, 'adjust_for = ["marker"]')
    (said,) = log_caveats(load_log(study.log), study.log).errors
    assert said.startswith('propensity = "equal" is doubtful: marker, which is adjusted for, differs between arms')
    assert said.endswith("leave it out of adjust_for.")
    with pytest.raises(ValueError, match="the column ill of adjust_for decides it"):
        load_log(mediated(tmp_path, 'adjust_for = ["ill"]').log)


@pytest.mark.parametrize("column", ["dose", "ward", "site"])
def test_a_column_that_decides_the_treatment_is_neither_adjusted_for_nor_proposed(column, tmp_path):
    """Doses of one arm alone, wards that have one arm, two sites of which each has one."""
    rng = np.random.default_rng(5)
    z = rng.normal(size=600)
    arm = (rng.random(600) < 1 / (1 + np.exp(-1.5 * z))).astype(int)
    cured = (rng.random(600) < 1 / (1 + np.exp(-1.5 * z))).astype(int)
    columns = {
        "dose": np.where(arm, rng.integers(5, 50, 600), 0),
        "ward": np.where(arm, rng.choice(["w1", "w2"], 600), rng.choice(["w3", "w4"], 600)),
        "site": np.where(arm, "north", "south"),
    }
    frame = pd.DataFrame({"arm": arm, "cured": cured, "z": z.round(3), "sex": rng.integers(2, size=600)})
    world = World(
        lambda *_: frame.assign(**{column: columns[column]}),
        600,
        'outcome = { cured = 1.0 }\npropensity = "estimate"',
        "sex = { levels = [0, 1] }",
        f'adjust_for = ["z", "{column}"]',
    )
    adjusted = load_study(written(world, tmp_path, rng)).log
    (said, *_) = log_caveats(load_log(adjusted), adjusted).errors
    assert said.startswith("no overlap, ") and f"{column} " in said.partition(": nobody got ")[0]
    left_out = load_study(written(replace(world, adjusted='adjust_for = ["z"]'), tmp_path, rng)).log
    doubts = log_caveats(load_log(left_out), left_out)
    said = " ".join([*doubts.errors, *doubts.others])
    told = {"dose": "and cannot be adjusted for: dose ", "ward": "ward is left out of the study", "site": ""}
    assert told[column] in said and f'"{column}"]' not in said


def test_all_outcomes_have_doubly_robust_means_whichever_comes_first(tmp_path):
    """Two horizons in either order, and an outcome of weight 0: the same means."""
    rng = np.random.default_rng(8)
    z, arm = rng.normal(size=500), rng.integers(2, size=500)
    treated = (rng.random(500) < 1 / (1 + np.exp(-1.5 * z))).astype(int)
    years = rng.exponential(np.exp(-z)).round(6)
    frame = pd.DataFrame({"arm": treated, "years": years, "status": 1, "z": z.round(4), "ill": arm})
    means = []
    for horizon in ("[1, 0.3]", "[0.3, 1]"):
        data = FOLLOWED.replace("horizon = 1", f"horizon = {horizon}") + '\npropensity = "estimate"\nadjust_for = ["z"]'
        study = load_study(written(World(lambda *_: frame, 500, data, "ill = { levels = [0, 1] }"), tmp_path, rng))
        means.append(arms_of(load_log(study.log), study.log).set_index(["outcome", "arm"])["mean"])
    assert means[0].sort_index().to_numpy() == pytest.approx(means[1].sort_index().to_numpy(), abs=0.01)
    weighted = frame.assign(free=years > 1).groupby("arm")["free"].mean()
    told = means[0].loc["free of status at years = 1"]
    assert abs(told["pill"] - told["wait"]) < 0.5 * abs(weighted[1] - weighted[0])


def followed(tmp_path, horizon, draw=censored_in_one_arm):
    """The study and the log of a trial with follow-up to some horizons."""
    data = FOLLOWED.replace("horizon = 1", f"horizon = {horizon}")
    world = World(draw, 400, f"{data}\n{LOT}", "ill = { levels = [0, 1] }")
    study = load_study(written(world, tmp_path, np.random.default_rng(6)))
    return study, load_log(study.log)


def test_several_horizons_show_the_arms_at_each_and_the_first_decides(tmp_path):
    study, log = followed(tmp_path, "[1, 0.5]")
    arms = arms_of(log, study.log)
    assert arms["outcome"].unique().tolist() == [f"free of status at years = {at}" for at in ("1", "0.5")]
    assert log.rewarded == "free of status at years = 1"
    for place, horizon in enumerate(("1", "0.5")):
        _, alone = followed(tmp_path, horizon)
        expected = arms_of(alone, study.log).drop(columns="outcome").to_numpy()[:, 1:].astype(float)
        found = arms.drop(columns="outcome").to_numpy()[2 * place : 2 * place + 2, 1:].astype(float)
        # Relative hazards are fitted up to the last of the horizons.
        assert np.abs(found - expected).max() < (1e-12 if horizon == "1" else 0.02)
    assert sorted(set(log.censored["horizon"])) == [0.5, 1]


def test_a_horizon_with_few_events_is_warned_of_and_one_with_none_is_refused(tmp_path):
    study, log = followed(tmp_path, "0.02")
    said = log_caveats(log, study.log).others
    assert any("have the event by years = 0.02" in line and "of wait" in line for line in said)
    with pytest.raises(ValueError, match=r"study.toml:7: data.horizon: nobody has the event by years = 1e-06: \d+"):
        followed(tmp_path, "0.000001")
