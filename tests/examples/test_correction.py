"""The correction for the channel and the scores, against closed forms and scikit-learn."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score

from examples.experiments.learning_on_private_columns import (
    AS_IF_TRUE,
    CONSTANT,
    EDGES,
    LEFT_OUT,
    TRUE,
    bins,
    on_reports,
    on_true_rows,
    scores,
)
from examples.experiments.private_columns import Corrected, Rows, fit_corrected, indicators
from policies.local import KAry


def exact_rows(epsilon, patients):
    """What infinitely many patients would look like, scaled to a number of them; reports, or true values if no epsilon.

    P(value | public) is a softmax and P(outcome | public, value) logistic, with the coefficients below.
    """
    public = np.array([[a, b] for a in (0.0, 1.0) for b in (0.0, 1.0)])
    share = softmax(SHARES[0] + public @ SHARES[1:], axis=1)
    design = indicators(np.arange(3), (3,))
    chance = expit(-2.0 + (public @ SLOPES)[:, None] + design @ EFFECTS)
    K = np.eye(3) if epsilon is None else KAry(3, epsilon).matrix
    joint = np.array([0.4, 0.3, 0.2, 0.1])[:, None, None] * share[:, :, None] * np.stack([1 - chance, chance], axis=2)
    weights = np.einsum("xvy,vr->xry", joint, K)  # (public, report, outcome)
    part, code, outcome = (axis.ravel() for axis in np.indices(weights.shape))
    return Rows(public[part], part, code, design, outcome, patients * weights.ravel())


SHARES = np.array([[0.0, -0.5, -1.0], [0.0, 0.8, 0.3], [0.0, -0.4, 0.9]])
SLOPES = np.array([0.7, -0.5])
EFFECTS = np.array([1.5, 3.0])


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_correction_finds_the_coefficients_that_made_the_data_and_trusting_reports_does_not(epsilon):
    # 1e9 patients, so that the penalty (of 1) does not count; the loose end is the search's gradient of 1e-6 at 0.5.
    rows = exact_rows(epsilon, 1e9)
    corrected = fit_corrected(rows, KAry(3, epsilon).matrix)
    assert corrected.private == pytest.approx(EFFECTS, abs=0.05)
    assert corrected.public == pytest.approx(SLOPES, abs=0.05)
    assert corrected.intercept == pytest.approx(-2.0, abs=0.05)
    posterior = corrected.posterior(np.array([[1.0, 1.0]]), np.array([2]))[0]
    true = softmax(SHARES.sum(axis=0)) * KAry(3, epsilon).matrix[:, 2]
    assert posterior == pytest.approx(true / true.sum(), abs=0.01)
    trusting = fit_corrected(rows, np.eye(3) * (1 - 3e-9) + 1e-9)
    assert trusting.private[1] < EFFECTS[1] - 0.2


def test_at_a_large_epsilon_the_correction_is_scikit_learns_fit_of_the_true_columns():
    rows = exact_rows(None, 5000)
    corrected = fit_corrected(rows, KAry(3, 30.0).matrix)
    plain = LogisticRegression(max_iter=5000, tol=1e-9).fit(rows.columns, rows.outcomes, sample_weight=rows.weights)
    assert np.concatenate([corrected.public, corrected.private]) == pytest.approx(plain.coef_[0], abs=2e-3)
    assert corrected.intercept == pytest.approx(plain.intercept_[0], abs=2e-3)


def test_a_patient_with_a_report_alone_gets_the_mean_over_what_it_leaves():
    model = Corrected(
        intercept=-1.0,
        public=np.array([0.5]),
        private=np.array([2.0]),
        shares=np.array([[0.3, 0.0], [0.0, 0.7]]),
        channel=KAry(2, 1.0).matrix,
        design=np.array([[0.0], [1.0]]),
    )
    prior = np.exp([0.3, 0.7]) / np.exp([0.3, 0.7]).sum()
    p = math.e / (1 + math.e)
    chances = [1 / (1 + math.exp(0.5)), 1 / (1 + math.exp(-1.5))]
    for report in (0, 1):
        weights = [prior[v] * (p if v == report else 1 - p) for v in (0, 1)]
        expected = sum(w * c for w, c in zip(weights, chances, strict=True)) / sum(weights)
        assert model.reported(np.array([[1.0]]), np.array([report])) == pytest.approx([expected])
        assert model.known(np.array([[1.0]]), np.array([report])) == pytest.approx([chances[report]])


def test_trusting_reports_is_scikit_learns_fit_of_what_they_say():
    rows = exact_rows(1.0, 5000)
    known, reported = on_reports(rows, KAry(3, 1.0))
    plain = LogisticRegression(max_iter=5000, tol=1e-9).fit(rows.columns, rows.outcomes, sample_weight=rows.weights)
    expected = plain.predict_proba(rows.columns)[:, 1]
    for classifiers in (known, reported):
        assert classifiers[AS_IF_TRUE](rows) == pytest.approx(expected, abs=1e-4)


def test_without_the_columns_the_codes_make_no_difference():
    rows = exact_rows(None, 5000)
    classifiers = on_true_rows(rows)
    by_part = pd.Series(classifiers[LEFT_OUT](rows)).groupby(rows.parts).nunique()
    assert (by_part == 1).all()
    assert set(classifiers[CONSTANT](rows)) == {rows.rate}
    assert pd.Series(classifiers[TRUE](rows)).groupby(rows.parts).nunique().eq(3).all()


# The scores


def test_scores_are_those_of_scikit_learn_over_single_patients():
    rng = np.random.default_rng(6)
    predicted, outcomes = rng.random(200), rng.integers(2, size=200)
    weights = rng.integers(1, 5, size=200)
    found = scores(predicted, outcomes, weights.astype(float))
    each_p, each_y = np.repeat(predicted, weights), np.repeat(outcomes, weights)
    assert found["auc"] == pytest.approx(roc_auc_score(each_y, each_p))
    assert found["brier"] == pytest.approx(brier_score_loss(each_y, each_p))
    assert found["accuracy"] == np.mean((each_p > 0.5) == each_y)
    error = 0.0
    for low, high in itertools.pairwise(EDGES):
        inside = (each_p >= low) & (each_p < high)
        error += abs(each_p[inside].sum() - each_y[inside].sum())
    assert found["calibration_error"] == pytest.approx(error / len(each_p))


def test_the_ends_of_the_probabilities_have_a_bin():
    found = bins(np.array([0.0, 1.0]), np.array([0, 1]), np.array([3.0, 2.0]))
    assert (found.patients[0], found.patients[-1], found.patients.sum()) == (3, 2, 5)
    assert found.calibration_error == 0
