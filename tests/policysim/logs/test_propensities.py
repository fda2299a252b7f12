"""Estimated propensities: against the truth, and blind to what they must not see."""

import itertools

import numpy as np
import pandas as pd
import pytest

from policysim.files.bad_rows import DataError
from policysim.logs.adjusters import Covariates
from policysim.logs.log_frame import LoggedData
from policysim.logs.treatments import FOLDS, estimate_propensities


def logged(n=600, seed=1):
    """Three binary covariates; the chance of three treatments depends on them."""
    rng = np.random.default_rng(seed)
    patients = np.array(list(itertools.product([0.0, 1.0], repeat=3)))
    groups = rng.integers(0, len(patients), n)
    scores = patients[groups] @ np.array([[1, 0, -1], [0, 1, -0.5], [0.3, 0, 0]])
    actions = (scores + rng.gumbel(size=(n, 3))).argmax(axis=1)
    return patients, groups, actions


def estimated(patients, groups, actions, counts=None, parts=None):
    """The probability of each row's treatment, of three."""
    nothing = np.zeros(len(actions))
    data = LoggedData(actions, nothing, nothing, ("a", "b", "c"), counts=counts)
    return estimate_propensities(Covariates(patients, groups), data, parts)


@pytest.mark.usefixtures("few_trees")
def test_each_is_a_model_without_some_fifth_of_the_rows():
    patients, groups, actions = logged()
    found = estimated(patients, groups, actions)
    # Rows that are alike have one value for each of the five parts: which parts, is the function's own affair.
    for patient in range(len(patients)):
        for action in range(3):
            values = found[(groups == patient) & (actions == action)]
            assert len(np.unique(values.round(9))) <= FOLDS
    # What a row got has no part in its own value: another treatment of one row changes no value of its part.
    other = actions.copy()
    other[0] = (actions[0] + 1) % 3
    changed = estimated(patients, groups, other)
    assert (np.abs(changed - found) > 1e-9).any()


def test_probabilities_are_near_those_that_made_the_treatments():
    patients, groups, actions = logged(4000)
    odds = np.exp(patients @ np.array([[1, 0, -1], [0, 1, -0.5], [0.3, 0, 0]]))
    truth = (odds / odds.sum(axis=1, keepdims=True))[groups, actions]
    found = estimated(patients, groups, actions)
    # 500 patients of each kind, of whom four fifths: four standard errors of a share are 0.1.
    assert np.abs(found - truth).max() < 0.1
    assert np.abs(found - truth).mean() < 0.025


def test_treatment_by_two_features_together_is_followed():
    """By each feature alone the chances are a half; a model of main effects sees nothing."""
    rng = np.random.default_rng(4)
    patients = np.array(list(itertools.product([0.0, 1.0], repeat=2)))
    groups = rng.integers(0, 4, 2000)
    chance = np.where(patients[groups, 0] == patients[groups, 1], 0.8, 0.2)
    actions = (rng.random(2000) < chance).astype(int)
    found = estimated(patients, groups, actions)
    assert np.abs(found - np.where(actions == 1, chance, 1 - chance)).mean() < 0.04


def test_rows_that_were_counted_weigh_as_many():
    patients, groups, actions = logged()
    kinds, counts = np.unique(np.column_stack([groups, actions]), axis=0, return_counts=True)
    parts = np.arange(len(kinds)) % 2  # any: all kinds of the other part fit the model of this one
    counted = estimated(patients, *kinds.T, counts=counts, parts=parts)
    places = np.repeat(np.arange(len(kinds)), counts)
    many = estimated(patients, *kinds[places].T, parts=parts[places])
    # They are stacked by other parts of the rows, and so a little different.
    assert counted[places] == pytest.approx(many, abs=0.05)


@pytest.mark.usefixtures("few_trees")
def test_a_treatment_of_a_single_patient_cannot_be_estimated():
    patients, groups, actions = logged(60)
    actions[actions == 2] = 1
    actions[7] = 2
    with pytest.raises(DataError, match="at least two patients of each treatment, c has one"):
        estimated(patients, groups, actions)
    actions[7] = 1
    found = estimated(patients, groups, actions)
    assert np.all((found > 0) & (found <= 1))
    with pytest.raises(DataError, match="at least two treatments that occur"):
        estimated(patients, groups, np.zeros(60, dtype=int))


@pytest.mark.usefixtures("few_trees")
def test_a_study_estimates_from_its_declared_features(load, section):
    rng = np.random.default_rng(2)
    n = 3_000
    sex, age = rng.integers(0, 2, n), rng.integers(20, 70, n)
    chance = np.where((age >= 30) & (age < 50), 0.8, 0.4) - 0.2 * sex
    arm = (rng.random(n) < chance).astype(int)
    trial = pd.DataFrame({"arm": arm, "success": rng.integers(0, 2, n), "age": age, "sex": sex})
    trial.loc[:99, "success"] = np.nan
    text = section.replace('"equal"', '"estimate"\nmissing = "exclude"')
    log = load(text, trial__csv=trial.astype({"success": "Int8"}))
    assert log.n_read == n
    # Rows without an outcome were treated, too.
    truth = np.where(arm == 1, chance, 1 - chance)
    # Additive on the log-odds and not in the chances, so up to 0.03 off, and standard errors below
    # sqrt(0.25 / 240) = 0.032 in each of six cells of more than 240 (a fifth of the ages, half of the sexes).
    assert np.abs(log.data.propensities - truth).max() < 0.03 + 4 * 0.032
    # Equal propensities are further off.
    assert np.abs(0.5 - truth).max() > 0.29
