"""What lifelines and econml find, as files that tests read: `make oracles` runs this in an environment of its own."""

import numpy as np
from econml.dr import LinearDRLearner
from fixture_file import write
from lifelines import KaplanMeierFitter
from sklearn.linear_model import LinearRegression, LogisticRegression


def kaplan_meier():
    """Being free of an event at some horizons, with ties between events and censoring, and 95 % log-log intervals."""
    rng = np.random.default_rng(19)
    times, ends = rng.exponential(10, 200).round(), rng.exponential(12, 200).round()
    until, happened = np.minimum(times, ends), times <= ends
    horizons = [2.0, 6.0, 11.0]
    fitted = KaplanMeierFitter().fit(until, happened)
    intervals = fitted.confidence_interval_survival_function_
    ends = [intervals[intervals.index <= horizon].iloc[-1].tolist() for horizon in horizons]
    given = {"times": until.tolist(), "happened": happened.tolist(), "horizons": horizons}
    found = {"free": fitted.predict(horizons).tolist(), "intervals": ends}
    write("lifelines", ["lifelines", "pandas", "numpy"], given, found)


def doubly_robust():
    """The cross-fitted doubly robust effects of two arms against the first, with standard errors."""
    rng = np.random.default_rng(7)
    n = 300
    covariates = rng.normal(size=(n, 2)).round(3)
    odds = np.exp(np.column_stack([np.zeros(n), covariates[:, 0], -covariates[:, 1]]))
    chances = (odds / odds.sum(axis=1, keepdims=True)).cumsum(axis=1)
    arms = (rng.random(n)[:, None] > chances).sum(axis=1)
    outcomes = (covariates @ [1.0, 0.5] + 0.5 * arms + rng.normal(size=n)).round(3)
    folds = rng.permutation(n) % 3
    splits = [(np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)) for fold in range(3)]
    learner = LinearDRLearner(
        model_propensity=LogisticRegression(),
        model_regression=LinearRegression(),
        min_propensity=1e-9,
        cv=splits,
        random_state=0,
    )
    learner.fit(outcomes, arms, W=covariates)
    found = {
        "effects": [float(learner.intercept_(T=arm)) for arm in (1, 2)],
        "errors": [float(learner.intercept__inference(T=arm).stderr) for arm in (1, 2)],
    }
    given = {
        "covariates": covariates.tolist(),
        "arms": arms.tolist(),
        "outcomes": outcomes.tolist(),
        "folds": folds.tolist(),
    }
    write("econml", ["econml", "scikit-learn", "numpy"], given, found)


if __name__ == "__main__":
    kaplan_meier()
    doubly_robust()
