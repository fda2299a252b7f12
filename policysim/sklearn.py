"""A private classifier for scikit-learn: any classifier, whose predictions hide the row that they are about."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from policies.arrays import FloatArray
from policies.private_model import PrivateModel, privatize_policy
from policies.sampler import draw_actions
from policysim.errors import optional

with optional():
    from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
    from sklearn.utils import check_random_state, column_or_1d, get_tags
    from sklearn.utils.validation import check_is_fitted


class PrivateClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]  # no types
    """A classifier that draws its predictions: who sees one learns little of the row that it is about.

    For k classes the estimator's favourite is drawn with e^epsilon / (e^epsilon + k - 1); equally likely ones share.
    Between any two rows, each prediction differs in probability by a factor of at most e^epsilon
    (`policies.private_model.PrivateModel`). **The rows that the estimator is fitted to are not protected**: predictions
    may reveal them, and so may `estimator_`.

    Parameters
    ----------
    estimator : classifier
        With `predict_proba`. It is cloned and fitted by `fit`.
    epsilon : float, optional
        The privacy parameter of one prediction, >= 0.
    random_state : int, RandomState instance or None, optional
        What `predict` draws by. Pseudo-random: for simulation. A fixed number draws the same for the same rows each
        time; a treatment of a real patient is drawn by `policysim decide`.

    Attributes
    ----------
    estimator_ : classifier
        That was fitted.
    classes_ : array, (k,)
    n_features_in_, feature_names_in_
        As of `estimator_`, where it has them.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["wait", "wait", "treat", "treat"]
    >>> private = PrivateClassifier(LogisticRegression(), epsilon=1, random_state=0).fit(X, y)
    >>> private.classes_.tolist(), private.predict_proba([[0.5], [9.0]]).round(3).tolist()
    (['treat', 'wait'], [[0.269, 0.731], [0.731, 0.269]])
    >>> private.predict([[0.5]] * 4).tolist()
    ['wait', 'wait', 'treat', 'wait']
    """

    def __init__(
        self,
        estimator: Any,
        epsilon: float = 1.0,
        *,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.epsilon = epsilon
        self.random_state = random_state

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:  # noqa: N803 - as scikit-learn calls it
        """Fit a clone of the estimator.

        Raises
        ------
        ValueError
            For parameters out of range, and as of the estimator.
        """
        target = y if y is None else column_or_1d(y, warn=True)
        self.estimator_ = clone(self.estimator).fit(X, target, **fit_params)
        self.classes_: NDArray[Any] = self.estimator_.classes_
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        _ = self.policy_
        return self

    @property
    def policy_(self) -> PrivateModel:
        """The fitted estimator as a policy, for `compare`, `report` and `evaluate`; it has the epsilon of now."""
        check_is_fitted(self, "estimator_")
        return privatize_policy(self.estimator_, self.epsilon)

    def predict_proba(self, X: Any) -> FloatArray:  # noqa: N803
        """The exact probabilities by which `predict` draws, (m, k), in the order of `classes_`."""
        return self.policy_.predict_proba(X)

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Draw a class for each row, (m,)."""
        probabilities = self.predict_proba(X)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31, size=4))
        return self.classes_[draw_actions(probabilities, rng)]

    def __sklearn_tags__(self) -> Any:
        """Input as the estimator takes it; predictions are drawn."""
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        tags.non_deterministic = True
        return tags
