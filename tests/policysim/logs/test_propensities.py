"""Estimated propensities: against their definition, fitted another way."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from policysim.files.bad_rows import DataError
from policysim.logs.treatments import FOLDS, estimate_propensities


def logged(n=600, seed=1):
    """Three binary covariates; the chance of three treatments depends on them."""
    rng = np.random.default_rng(seed)
    patients = np.array(list(itertools.product([0.0, 1.0], repeat=3)))
    groups = rng.integers(0, len(patients), n)
    scores = patients[groups] @ np.array([[1, 0, -1], [0, 1, -0.5], [0.3, 0, 0]])
    actions = (scores + rng.gumbel(size=(n, 3))).argmax(axis=1)
    return patients, groups, actions


def penalised(x, actions, k, wanted):
    """Multinomial logistic regression with half the squared weights as penalty, by its definition."""
    m = x.shape[1]

    def loss(flat):
        w, b = flat[: m * k].reshape(m, k), flat[m * k :]
        scores = x @ w + b
        return (np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(x)), actions]).sum() + 0.5 * (w**2).sum()

    found = minimize(loss, np.zeros(m * k + k), method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-14}).x
    scores = wanted @ found[: m * k].reshape(m, k) + found[m * k :]
    table = np.exp(scores - scores.max(axis=1, keepdims=True))
    return table / table.sum(axis=1, keepdims=True)


def test_each_is_the_regression_without_some_fifth_of_the_rows():
    patients, groups, actions = logged()
    found = estimate_propensities(patients, groups, actions, ("a", "b", "c"))
    # Rows that are alike have one value for each of the five parts: which parts, is the function's own affair.
    for patient in range(len(patients)):
        for action in range(3):
            values = found[(groups == patient) & (actions == action)]
            assert len(np.unique(values.round(9))) <= FOLDS
    spread = patients.std(axis=0)
    scaled = (patients - patients.mean(axis=0)) / spread
    whole = penalised(scaled[groups], actions, 3, scaled)[groups, actions]
    # Leaving out a fifth changes a probability by about half its standard error, which is about sqrt(p q 4 / 600).
    assert np.abs(found - whole).max() < 4 * 0.5 * np.sqrt(0.25 * 4 / 600)
    assert np.abs(found - whole).max() > 1e-4  # or nothing was left out


def test_equal_rows_counted_once_give_what_the_rows_give():
    patients, groups, actions = logged()
    counted = estimate_propensities(patients, groups, actions, ("a", "b", "c"))
    # Standardised as over the eight patients, so that both have the same penalty.
    scaled = (patients - patients.mean(axis=0)) / patients.std(axis=0)
    # The parts: each treatment's rows dealt to five parts in the order of this generator.
    rng = np.random.default_rng(0)
    parts = np.empty(len(actions), dtype=int)
    for action in range(3):
        rows = actions == action
        parts[rows] = rng.permutation(rows.sum()) % FOLDS
    for part in range(FOLDS):
        table = penalised(scaled[groups[parts != part]], actions[parts != part], 3, scaled)
        assert counted[parts == part] == pytest.approx(table[groups, actions][parts == part], abs=1e-3)


def test_a_treatment_of_a_single_patient_cannot_be_estimated():
    patients, groups, actions = logged(60)
    actions[actions == 2] = 1
    actions[7] = 2
    with pytest.raises(DataError, match="at least two patients of each treatment, c has one"):
        estimate_propensities(patients, groups, actions, ("a", "b", "c"))
    actions[7] = 1
    found = estimate_propensities(patients, groups, actions, ("a", "b", "c"))
    assert np.all((found > 0) & (found <= 1))
    with pytest.raises(DataError, match="at least two treatments that occur"):
        estimate_propensities(patients, groups, np.zeros(60, dtype=int), ("a", "b"))


def test_nothing_is_floored():
    n = 4_000
    groups = np.repeat([0, 1], n // 2)
    actions = groups.copy()
    actions[0], actions[-1] = 1, 0
    actions[1], actions[-2] = 1, 0
    found = estimate_propensities(np.array([[0.0], [1.0]]), groups, actions, ("a", "b"))
    assert 0 < found[0] < 0.01
    assert 0 < found[-1] < 0.01


def test_a_study_estimates_from_its_declared_features(load, section):
    rng = np.random.default_rng(2)
    n = 5_000
    sex, age = rng.integers(0, 2, n), rng.integers(20, 70, n)
    chance = np.where((age >= 30) & (age < 50), 0.8, 0.4) - 0.2 * sex
    arm = (rng.random(n) < chance).astype(int)
    trial = pd.DataFrame({"arm": arm, "success": rng.integers(0, 2, n), "age": age, "sex": sex})
    trial.loc[:99, "success"] = np.nan
    text = section.replace('"equal"', '"estimate"\nmissing = "exclude"')
    log = load(text, trial__csv=trial.astype({"success": "Int8"}))
    assert log.n_read == n
    truth = np.where(arm == 1, chance, 1 - chance)[100:]
    # Additive on the log-odds and not in the chances, so up to 0.03 off, and standard errors below
    # sqrt(0.25 / 400) = 0.025 in each of six cells of more than 400 (a fifth of the ages, half of the sexes).
    assert np.abs(log.data.propensities - truth).max() < 0.03 + 4 * 0.025
    # Equal propensities are further off.
    assert np.abs(0.5 - truth).max() > 0.29
