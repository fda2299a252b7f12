"""How probable each row's treatment was: known, the same for all, or estimated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from policies.arrays import ROUNDING, FloatArray, IntArray
from policysim.files.bad_rows import BadRows, DataError
from policysim.files.data_table import DataTable, numbers
from policysim.question.extras import optional

FOLDS = 5


def read_propensities(table: DataTable, column: str, bad: BadRows) -> FloatArray:
    """A column of probabilities, (n_rows,); those outside (0, 1] are bad rows."""
    values = numbers(table[column])
    outside = ~((values > 0) & (values <= 1))
    bad.add_values(table, outside, column, table[column].array, "must be a probability > 0 and <= 1")
    return values


def equal_propensities(n_rows: int, n_actions: int) -> FloatArray:
    """1/k for each row: what equal allocation to k declared treatments gives."""
    return np.full(n_rows, 1 / n_actions)


def observed_propensities(
    propensities: FloatArray, actions: IntArray, observed: NDArray[np.bool_], n_actions: int
) -> FloatArray:
    """The propensities of the rows that have an outcome, (n_observed,), where the others are left out.

    Each is multiplied by the share of its treatment's rows that have an outcome over that of all rows, and at most 1:
    of a treatment whose outcomes are often missing, each row that is left stands for more patients. With outcomes
    missing by chance within each treatment, E w r over the rows that are left is then what it was over all.

    Examples
    --------
    Half the rows of treatment 1 have no outcome, so that it is 1 of 3 of those that are left:

    >>> taken, seen = np.array([0, 0, 1, 1]), np.array([True, True, True, False])
    >>> observed_propensities(np.full(4, 0.5), taken, seen, 2).round(3).tolist()
    [0.667, 0.667, 0.333]
    """
    rows, seen = np.bincount(actions, minlength=n_actions), np.bincount(actions[observed], minlength=n_actions)
    shares: FloatArray = np.divide(seen, rows, out=np.ones(n_actions), where=rows > 0) / observed.mean()
    return np.minimum(propensities[observed] * shares[actions[observed]], 1)


def estimate_propensities(
    covariates: FloatArray, groups: IntArray, actions: IntArray, names: Sequence[str]
) -> FloatArray:
    """The probability of each row's treatment, by multinomial logistic regression, cross-fitted over five parts.

    Each row's probability comes from a model that was fitted without its part. Nothing is floored or clipped: a tiny
    propensity is a finding about the log.

    Parameters
    ----------
    covariates : array, (n_groups, n_covariates)
        Distinct patients.
    groups : array, (n_rows,)
        Which of them each row is.
    actions : array, (n_rows,)
        Positions in `names`.
    names : sequence of str
        For messages.

    Returns
    -------
    array, (n_rows,)

    Raises
    ------
    DataError
        If a treatment that occurs has a single patient: no model can be fitted without it.

    Notes
    -----
    Only differences between patients that the covariates show are accounted for: where treatment was chosen by
    something else that also matters for the outcome, all estimates from such propensities are confounded. Known
    propensities of a randomised trial have no such problem.

    References
    ----------
    Rosenbaum & Rubin (1983), The central role of the propensity score in observational studies for causal effects.
    Chernozhukov et al. (2018), Double/debiased machine learning for treatment and structural parameters.
    """
    folds = _folds(actions, names)
    centre, spread = covariates.mean(axis=0), covariates.std(axis=0)
    varies = spread > 10 * ROUNDING * np.abs(centre)  # not rounding of a constant column
    scaled: FloatArray = (covariates - centre) / np.where(varies, spread, 1)
    found = np.full(len(actions), np.nan)
    for fold in range(int(folds.max()) + 1):
        rest, part = folds != fold, np.flatnonzero(folds == fold)
        present, table = _fit_and_predict(scaled, groups[rest], actions[rest], np.unique(groups[part]))
        rows = np.searchsorted(np.unique(groups[part]), groups[part])
        found[part] = table[rows, np.searchsorted(present, actions[part])]
    return found


def _fit_and_predict(
    covariates: FloatArray, groups: IntArray, actions: IntArray, wanted: IntArray
) -> tuple[IntArray, FloatArray]:
    """The treatments that occur, and their probabilities for the wanted groups, (m, k'); equal rows count once."""
    with optional():
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - takes a second

    present = np.unique(actions)
    width = int(present.max()) + 1
    cells, counts = np.unique(groups * width + actions, return_counts=True)
    model = LogisticRegression(max_iter=10_000)
    model.fit(covariates[cells // width], cells % width, sample_weight=counts)
    return present, np.asarray(model.predict_proba(covariates[wanted]))


def _folds(actions: IntArray, names: Sequence[str]) -> IntArray:
    """The part of each row, the same in every run; each treatment is spread evenly over them, so that all have it."""
    sizes = np.bincount(actions, minlength=len(names))
    alone = [name for name, size in zip(names, sizes, strict=True) if size == 1]
    if alone:
        raise DataError(f'propensity = "estimate" needs at least two patients of each treatment, {alone[0]} has one')
    if np.count_nonzero(sizes) < 2:
        raise DataError('propensity = "estimate" needs at least two treatments that occur')
    folds = np.empty(len(actions), dtype=np.intp)
    rng = np.random.default_rng(0)
    for action in np.flatnonzero(sizes):
        folds[actions == action] = rng.permutation(int(sizes[action])) % FOLDS
    return folds
