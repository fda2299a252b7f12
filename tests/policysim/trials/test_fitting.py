"""Scores and prior fitted to a log: over the declared domain, clipped, and blind to what they must not see."""

from dataclasses import replace

import numpy as np
import pytest
from small_trials import SPACE, make_trial

from policies.sensitivity import sensitivity
from policysim.study.declared import build_adjacency
from policysim.study.study_problem import fit_problem, indicators, smoothed_prior


@pytest.fixture(scope="module")
def trial():
    return make_trial(600, 0.2, seed=5)


def fitted(trial, rows=None, **choices):
    study = replace(trial.study, **choices)
    every = np.ones(trial.log.data.n_rows, dtype=bool) if rows is None else rows
    return fit_problem(trial.log, every, study, build_adjacency(study))


def test_leaving_rows_out_does_not_change_the_protected_domain(trial):
    few = np.zeros(trial.log.data.n_rows, dtype=bool)
    few[:40] = True
    for choices in ({}, {"adjacency": "one-feature"}, {"adjacency": "sensitive", "sensitive": ("ill",)}):
        one, other = fitted(trial, **choices), fitted(trial, few, **choices)
        assert one.adjacency == other.adjacency
        assert one.adjacency.partitions(SPACE.size) == other.adjacency.partitions(other.n_records)


def test_no_row_can_move_a_score_beyond_the_declared_range(trial):
    data = trial.log.data
    wild = data.rewards.copy()
    wild[data.actions == 1] = 1e9
    log = replace(trial.log, data=replace(data, rewards=wild))
    problem = fit_problem(log, np.ones(data.n_rows, dtype=bool), trial.study, build_adjacency(trial.study))
    assert problem.utilities.max() <= 1
    assert problem.utilities.min() >= 0
    # So the sensitivity of any log is at most the width of the declared range.
    assert sensitivity(problem.utilities, problem.adjacency).value <= 1


def test_indicators_are_one_for_each_level_but_the_first():
    records = np.arange(SPACE.size)
    frame = SPACE.decode(records)
    expected = [frame["old"] == 1, frame["ill"] == 1, frame["ill"] == 2, frame["woman"] == 1]
    assert np.array_equal(indicators(SPACE, records), np.column_stack(expected).astype(float))


def test_the_prior_is_the_smoothed_share_of_each_record():
    records = np.array([0, 0, 0, 7])
    counts = np.bincount(records, minlength=SPACE.size)
    # By hand: each feature's marginal with one more patient in each level, sqrt(4) = 2 imagined patients.
    frame = SPACE.decode(np.arange(SPACE.size))
    seen = frame.iloc[records]
    expected = np.array(
        [
            np.prod(
                [((seen[name] == row[name]).sum() + 1) / (4 + len(SPACE.feature(name).levels)) for name in SPACE.names]
            )
            for _, row in frame.iterrows()
        ]
    )
    assert smoothed_prior(SPACE, records) == pytest.approx((counts + 2 * expected) / 6)
