"""The private classifier: by the checks of scikit-learn, and by exact odds."""

import sys
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import validation_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks
from small_processes import loss_of

import policysim as ps
from policysim.errors import MissingExtraError
from policysim.sklearn import PrivateClassifier

X, Y = load_iris(return_X_y=True, as_frame=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
# Predictions are drawn: with a seed, each check passes or fails in every run.
CHECKED = [
    PrivateClassifier(LogisticRegression(), 1.0, random_state=0),
    PrivateClassifier(DecisionTreeClassifier(random_state=0), np.inf),
]
OF_DRAWS = {
    "check_classifiers_train": "asks for an accuracy above 0.83, and at epsilon 1 the best of three has 0.58 at most",
    "check_classifiers_one_label_sample_weights": "asks for one class alone, and each of two has its floor",
}


def expected_failures(classifier):
    return {} if classifier.epsilon == np.inf else OF_DRAWS


# A check that scikit-learn leaves out says so by a warning.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(CHECKED, expected_failed_checks=expected_failures)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
def test_predictions_are_drawn_by_exact_odds_that_no_row_moves_beyond_epsilon(epsilon):
    private = PrivateClassifier(LogisticRegression(max_iter=500), epsilon, random_state=0).fit(X, NAMES)
    odds = private.predict_proba(X)
    assert loss_of(odds) <= epsilon + 1e-12
    learnt = private.estimator_.predict_proba(X)
    weights = np.where(learnt == learnt.max(axis=1, keepdims=True), np.exp(epsilon), 1.0)
    assert odds == pytest.approx(weights / weights.sum(axis=1, keepdims=True), abs=1e-9)
    drawn = private.predict(X.iloc[np.zeros(20_000, dtype=int)])
    shares = (drawn[:, None] == private.classes_).mean(axis=0)
    # five standard errors
    assert (np.abs(shares - odds[0]) <= 5 * np.sqrt(odds[0] * (1 - odds[0]) / 20_000)).all()
    assert private.policy_.epsilon == epsilon


def test_draws_differ_unless_a_random_state_is_given():
    fit = PrivateClassifier(LogisticRegression(max_iter=500), 1.0).fit(X, NAMES)
    assert (fit.predict(X) != fit.predict(X)).any()
    fixed = clone(fit).set_params(random_state=3).fit(X, NAMES)
    assert (fixed.predict(X) == fixed.predict(X)).all()
    state = np.random.RandomState(3)
    shared = clone(fit).set_params(random_state=state).fit(X, NAMES)
    assert (shared.predict(X) != shared.predict(X)).any()


def test_a_validation_curve_is_the_epsilon_curve():
    model = make_pipeline(StandardScaler(), LogisticRegression())
    epsilons = [0.0, 1.0, 2.0, 50.0]
    private = PrivateClassifier(model, random_state=0)
    _, scores = validation_curve(private, X, NAMES, param_name="epsilon", param_range=epsilons, cv=5)
    mean = scores.mean(axis=1)
    accuracy = mean[-1]
    for epsilon, found in zip(epsilons[:3], mean, strict=False):
        best = np.exp(epsilon) / (np.exp(epsilon) + 2)
        expected = accuracy * best + (1 - accuracy) * (1 - best) / 2
        assert abs(found - expected) <= 5 * np.sqrt(0.25 / len(X))
    nested = private.set_params(estimator__logisticregression__C=0.1, epsilon=2.0)
    assert nested.estimator[-1].C == 0.1


def test_it_is_a_policy_for_a_problem():
    index = pd.Index(["young", "old"], name="age")
    problem = ps.DecisionProblem(
        pd.DataFrame({"wait": [1.0, 0.0], "treat": [0.0, 1.0]}, index), [0.5, 0.5], ps.AnyRecord()
    )

    class ByAge(LogisticRegression):
        def fit(self, frame, y):
            return super().fit(frame.assign(age=frame["age"] == "old"), y)

        def predict_proba(self, frame):
            return super().predict_proba(frame.assign(age=frame["age"] == "old"))

    patients = problem.decode([0, 1] * 20)
    private = PrivateClassifier(ByAge(), 1.0).fit(patients, np.where(patients["age"] == "old", "treat", "wait"))
    table = ps.compare(problem, policies=[private.policy_], epsilons=[0.5, 1.0])
    assert table["value"].tolist() == pytest.approx((1 / (1 + np.exp([-0.5, -1.0]))).tolist())


@pytest.mark.parametrize(
    ("private", "message"),
    [
        (PrivateClassifier(LogisticRegression(), -1.0), r"epsilon must be >= 0, got epsilon=-1.0"),
        (PrivateClassifier(SVC()), "model must give probabilities or scores, and SVC has no predict_proba"),
    ],
)
def test_bad_input_is_refused_by_fit(private, message):
    with pytest.raises(ValueError, match=message):
        private.fit(X.to_numpy() - X.to_numpy().mean(axis=0), Y)


def test_without_scikit_learn_it_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "policysim.sklearn")
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'policysim\[trials\]'"):
        import_module("policysim.sklearn")
