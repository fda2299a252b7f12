"""econml, and a plain AIPW, in an environment of their own: `benchmarks/contrasts.py` starts this file there."""

import numpy as np
from causaldata import nhefs
from econml.dr import LinearDRLearner
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LinearRegression, LogisticRegression

FOLDS = 5


class Known(ClassifierMixin, BaseEstimator):
    """The propensities of a randomised trial, which are known: the same for all arms."""

    def fit(self, _, treatment):
        """Nothing is learned but which arms there are."""
        self.classes_ = np.unique(treatment)
        return self

    def predict_proba(self, rows):
        """1 / k for each arm."""
        return np.full((len(rows), len(self.classes_)), 1 / len(self.classes_))

    def predict(self, rows):
        """Econml asks for an arm, to say how well it does; nothing depends on it."""
        return np.full(len(rows), self.classes_[0])


def learner(x, arms, y, seed, known):
    """Contrasts of each arm with the first and their standard errors, by econml: one split into five folds."""
    found = LinearDRLearner(
        model_propensity=Known() if known else LogisticRegression(max_iter=1000),
        model_regression=LinearRegression(),
        cv=FOLDS,
        random_state=seed,
    )
    found.fit(y, arms, X=None, W=x)
    said = [found.effect_inference(X=None, T0=0, T1=int(arm)) for arm in np.unique(arms)[1:]]
    return [[float(each.point_estimate[0]), float(each.stderr[0])] for each in said]


def aipw(x, arms, y, seed, known):
    """The same by twenty lines of numpy: a linear regression of each arm, and a logistic one of who got which."""
    names, n = np.unique(arms), len(y)
    fold = np.random.default_rng(seed).permutation(n) % FOLDS
    means, chances = np.empty((n, len(names))), np.full((n, len(names)), 1 / len(names))
    for each in range(FOLDS):
        here, rest = fold == each, fold != each
        for place, arm in enumerate(names):
            rows = rest & (arms == arm)
            means[here, place] = LinearRegression().fit(x[rows], y[rows]).predict(x[here])
        if not known:
            chances[here] = LogisticRegression(max_iter=1000).fit(x[rest], arms[rest]).predict_proba(x[here])
    got = arms[:, None] == names
    scores = means + got * (y[:, None] - means) / chances
    apart = scores[:, 1:] - scores[:, :1]
    errors = apart.std(axis=0, ddof=1) / n**0.5
    return [[float(mean), float(error)] for mean, error in zip(apart.mean(axis=0), errors, strict=True)]


WAYS = {"econml": learner, "AIPW": aipw}


def work(path, seed=0, known=True, way=""):
    """Contrasts of a log's arms; without a way, write NHEFS (Hernan & Robins, What if) to the path."""
    if not way:
        nhefs.load_pandas().data.to_csv(path, index=False)
        return path
    log = np.load(path)
    return WAYS[way](log["x"], log["arms"], log["y"], seed, known)
