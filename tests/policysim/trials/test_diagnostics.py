"""What is looked at before any policy: balance, calibration and propensities."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from small_trials import ARMS, SPACE, make_trial

from policysim.trials import splits
from policysim.trials.diagnostics import balance_of, imbalance_by_chance, propensities_of
from policysim.trials.trial_report import calibration, propensities


@pytest.fixture(scope="module")
def confounded():
    """A log in which the old get the drip more often, with the propensities that made it."""
    trial = make_trial(3000, 0.0, seed=1)
    rng = np.random.default_rng(2)
    old = SPACE.codes(trial.log.records)[:, 0]
    chances = np.where(old[:, None] == 1, [0.2, 0.2, 0.6], [0.4, 0.4, 0.2])
    actions = (rng.random(3000)[:, None] > chances.cumsum(axis=1)).sum(axis=1)
    data = replace(trial.log.data, actions=actions, propensities=chances[np.arange(3000), actions])
    return replace(trial.log, data=data)


def test_standardised_differences_are_those_of_the_formula_and_weighting_takes_them_away(confounded):
    balance = balance_of(confounded).set_index(["feature", "level"])
    data, old = confounded.data, SPACE.codes(confounded.records)[:, 0].astype(float)
    shares = [old[data.actions == arm].mean() for arm in range(3)]
    variances = [share * (1 - share) for share in shares]
    expected = max(
        abs(shares[a] - shares[b]) / np.sqrt((variances[a] + variances[b]) / 2) for a, b in ((0, 1), (0, 2), (1, 2))
    )
    assert balance.loc[("old", "1"), "before"] == pytest.approx(expected)
    assert expected > 0.5
    assert balance.loc[("old", "1"), "after"] < 0.1


def test_numbers_that_were_cut_are_compared_as_numbers(confounded):
    raw = pd.DataFrame({"ill": np.arange(3000.0)})
    balance = balance_of(replace(confounded, raw=raw)).set_index("feature")
    assert balance.loc["ill", "level"] == ""


def test_propensities_are_drawn_where_they_vary(confounded):
    found = propensities_of(confounded.data)
    drip = found[found["line"] == "drip"]
    old = SPACE.codes(confounded.records)[:, 0][confounded.data.actions == 2]
    assert dict(zip(drip["propensity"], drip["value"], strict=True)) == pytest.approx({0.2: 1 - old.mean(), 0.6: 1.0})
    assert propensities(found).at("page")
    assert propensities_of(make_trial(300, 0.0, seed=3).log.data).empty


@pytest.mark.parametrize(("error", "most"), [(0.0, 9), (0.4, 0)])
def test_calibration_sets_scores_beside_the_patients_who_had_no_part_in_them(error, most, monkeypatch):
    """By sorting, arm by arm; scores that are too high are seen to be."""
    trial = make_trial(900, 0.3, seed=4)
    split = next(splits.split_log(trial.log, trial.study))
    split = replace(split, scores=split.scores + error)
    monkeypatch.setattr(splits, "split_log", lambda *_: iter([split]))
    table = splits.calibration_of(trial.log, trial.study)
    actions, rewards = trial.log.data.actions, trial.log.data.rewards
    for arm, name in enumerate(ARMS):
        own = np.flatnonzero(actions == arm)
        scores = split.scores[own, arm]
        ranks = np.sort(scores)
        cuts = [ranks[(len(own) - 1) * part // 3] for part in (1, 2)]
        for third, row in enumerate(table[table["line"] == name].itertuples()):
            mine = np.sum([scores > cut for cut in cuts], axis=0) == third
            happened = int(rewards[own][mine].sum())
            interval = binomtest(happened, int(mine.sum())).proportion_ci(method="wilson")
            expected = (scores[mine].mean(), happened / mine.sum(), interval.low, interval.high, mine.sum())
            assert row[2:] == pytest.approx(expected)
    within = table["predicted"].between(table["low"], table["high"]).sum()
    assert len(table) == 9 and most - 2 <= within <= most
    assert calibration(table).at("page")


def test_products_of_two_features_show_what_each_alone_hides():
    rng = np.random.default_rng(7)
    trial = make_trial(3000, 0.0, seed=1)
    old, _, woman = SPACE.codes(trial.log.records).T
    actions = (rng.random(3000) < np.where(old == woman, 0.8, 0.2)).astype(int)
    log = replace(trial.log, data=replace(trial.log.data, actions=actions, propensities=np.full(3000, 0.5)))
    alone = balance_of(log)
    found = balance_of(log, products=True).set_index("feature")
    assert alone.set_index("feature").loc[["old", "woman"], "before"].max() < 0.3
    assert found.loc["old: 1 × woman: 1", "before"] > 1
    centred = (old - old.mean()) * (woman - woman.mean())
    one, other = (centred[actions == arm] for arm in (0, 1))
    expected = abs(one.mean() - other.mean()) / np.sqrt((one.var() + other.var()) / 2)
    assert found.loc["old: 1 × woman: 1", "before"] == pytest.approx(expected)


def test_chance_alone_makes_as_many_imbalances_as_random_allocation_does():
    rng = np.random.default_rng(5)
    trial = make_trial(600, 0.0, seed=1)
    counts = []
    for _ in range(100):
        data = replace(trial.log.data, actions=rng.integers(3, size=600))
        counts.append((balance_of(replace(trial.log, data=data))["before"] > 0.1).mean())
    # Four standard errors of the mean of the shares of 100 logs, and the normal approximation.
    error = 4 * np.std(counts) / np.sqrt(100) + 0.01
    assert imbalance_by_chance(trial.log.data) == pytest.approx(np.mean(counts), abs=error)
