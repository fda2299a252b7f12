"""A study planned on private cells: what they say of each class and arm, and what their noise costs future patients.

All of it is made from cells that were released (`policysim.release.private_cells`), so none of it costs any privacy
(post-processing; Dwork & Roth 2014, The algorithmic foundations of differential privacy, proposition 2.1). The true
cells are nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from policies.arrays import FloatArray, IntArray
from policies.discrete_laplace import standard_deviation
from policysim.files.bad_rows import BadRows, DataError
from policysim.files.data_table import numbers, read_table
from policysim.study.cohort_table import Cohort, CohortColumns, Draws, read_cohort
from policysim.utility import Utility

# The columns of cells behind the features and the treatment. Failures are what a model that is made from them counts.
SUCCESSES, FAILURES, EPSILON = COUNTED = ("successes", "failures", "epsilon")
PATIENTS = "patients"
# So many people are there at most; below such an epsilon there is nothing but noise.
MOST_PATIENTS, LEAST_EPSILON = 2**40, 1e-6
# The most by which a patient who is replaced changes all cells together: one falls by 1, another rises by 1.
SENSITIVITY = 2
# How often cells are drawn anew, for the versions of the model and for what noise costs.
N_DRAWS = 200


class CellModel(NamedTuple):
    """What cells say: how many patients there are in each, (n_classes, k), and the rate of failures, (n_classes, k)."""

    patients: FloatArray
    failures: FloatArray


@dataclass(frozen=True, eq=False)
class PastPatients:
    """The patients on whose cells a study is planned.

    Attributes
    ----------
    epsilon : float
        What hides each of them.
    model : CellModel
        What their cells say.
    noisy, exact : array, (n_draws, n_classes, k)
        The rates of failures that cells of patients drawn from this model say, with noise and without.
    """

    epsilon: float
    model: CellModel
    noisy: FloatArray
    exact: FloatArray

    def loss(self, utility: Utility, actions: Sequence[str]) -> float:
        """What the noise costs a future patient, in units of utility, >= 0: the best by noisy cells, not by exact ones.

        The mean over the draws, as if the model were right.
        """
        weight, costs = utility.weights[FAILURES], utility.cost_vector(actions)
        patients = self.model.patients.sum(axis=1)
        harm = (weight * self.model.failures + costs) * (patients / patients.sum())[:, None]
        chosen = [(weight * rates + costs).argmin(axis=2) for rates in (self.noisy, self.exact)]
        noisy, exact = (harm[np.arange(len(harm)), best].sum(axis=1).mean() for best in chosen)
        return max(0.0, float(noisy - exact))


def read_cells(path: Path, features: Sequence[str], treatment: str, *, seed: int) -> tuple[Cohort, PastPatients]:
    """Read private cells as a cohort, whose versions are what cells of other patients, drawn from them, would say.

    Parameters
    ----------
    path : Path
        A table that `policysim.release.private_cells` made.
    features, treatment : sequence of str, str
        What its other columns are called.
    seed : int
        Of the versions.

    Raises
    ------
    DataError
        As `read_cohort`, of which each class and arm must have a row; for counts that are no whole numbers, more than
        one epsilon, and noise that leaves no patients.
    """
    table, bad = read_table(path), BadRows()
    for name in COUNTED:
        if refusal := table.unknown_column(name):
            raise DataError(f"{refusal}; policysim privatize STUDY --as cells writes a table of cells")
    counts = np.column_stack([numbers(table[name]) for name in COUNTED])
    whole = (np.abs(counts) <= MOST_PATIENTS) & (counts == np.floor(counts))
    for name, right in ((SUCCESSES, whole[:, 0]), (FAILURES, whole[:, 1])):
        bad.add_values(table, ~right, name, table[name].array, f"must be a whole number within ±{MOST_PATIENTS:,}")
    epsilons, must = counts[:, 2], f"must be a finite number >= {LEAST_EPSILON:g}, the same in all rows"
    alike = (epsilons >= LEAST_EPSILON) & np.isfinite(epsilons) & (epsilons == epsilons[0])
    bad.add_values(table, ~alike, EPSILON, table[EPSILON].array, must)
    bad.raise_if_any()
    # Which rows there must be does not depend on the counts.
    ones = pd.Series(np.ones(len(table)))
    shape = table.with_columns({PATIENTS: ones, FAILURES: ones})
    cohort = read_cohort(shape, CohortColumns(features, treatment, PATIENTS, [FAILURES]), hidden=features)
    rows, epsilon = cohort.stated.rows[0], float(counts[0, 2])
    variance = standard_deviation(epsilon / SENSITIVITY) ** 2
    model = model_of_cells(counts[rows, :2], variance)
    if not model.patients.any():
        raise DataError(f"{path.as_posix()}: the noise leaves no patients: release fewer cells, or at a larger epsilon")
    sizes, rng = np.rint(model.patients).astype(np.int64), np.random.default_rng(seed)
    exact, noisy = [], []
    for _ in range(N_DRAWS):
        failures = rng.binomial(sizes, model.failures)
        cells = np.stack([sizes - failures, failures], axis=2)
        # Discrete Laplace noise is the difference of two geometric numbers.
        noise = np.subtract(*rng.geometric(-np.expm1(-epsilon / SENSITIVITY), (2, *cells.shape)).astype(np.float64))
        exact.append(model_of_cells(cells, 0.0))
        noisy.append(model_of_cells(cells + noise, variance))
    past = PastPatients(epsilon, model, *(np.stack([each.failures for each in drawn]) for drawn in (noisy, exact)))
    return replace(cohort, stated=_draws([model], rows), redraws=_draws(noisy, rows)), past


def model_of_cells(cells: FloatArray, variance: float) -> CellModel:
    """What cells say, (n_classes, k, 2): successes and failures, with independent noise of this variance on each.

    Notes
    -----
    A cell below 0 counts as 0, and those of an arm are scaled to the sum of the arm, in which noise cancels. Rates are
    shrunk in two steps (empirical Bayes; Morris 1983, JASA 78: 47-55): the effect of a class towards none, and then
    that of an arm in a class towards the arm's own; how far depends on how much more the rates differ than sampling and
    noise make them differ (DerSimonian & Laird 1986, Controlled Clinical Trials 7: 177-188).
    """
    kept, sums = np.maximum(cells, 0.0), np.maximum(cells.sum(axis=0), 0.0)
    sizes = kept.sum(axis=2)
    patients = sizes * sums.sum(axis=1) / np.maximum(sizes.sum(axis=0), 1.0)
    # The rule of succession, so that no rate is certain.
    arms = (sums[:, 1] + 1) / (sums.sum(axis=1) + 2)
    own = np.divide(kept[..., 1], sizes, out=np.broadcast_to(arms, sizes.shape).copy(), where=sizes > 0) - arms
    # 1 over the variance of a rate, by the delta method; 0 where nobody is.
    spread = sizes * arms * (1 - arms) + variance * (arms**2 + (1 - arms) ** 2)
    weights = np.divide(sizes**2, spread, out=np.zeros_like(sizes), where=sizes > 0)
    by_class = weights.sum(axis=1)
    means = np.divide((weights * own).sum(axis=1), by_class, out=np.zeros(len(own)), where=by_class > 0)
    n_classes, k = sizes.shape
    classes = _shrunk(means, by_class, n_classes - 1)[:, None]
    rates = arms + classes + _shrunk(own - classes, weights, (n_classes - 1) * (k - 1))
    return CellModel(patients, np.clip(rates, 0.0, 1.0))


def _shrunk(effects: FloatArray, weights: FloatArray, freedom: int) -> FloatArray:
    """Effects with inverse variances, shrunk towards 0; all to 0 unless they differ more than by chance."""
    total = weights.sum()
    excess = (weights * effects**2).sum() - freedom
    scale = total - (weights**2).sum() / total if total > 0 else 0.0
    between = max(0.0, excess / scale) if scale > 0 else 0.0
    shrunk: FloatArray = effects * (between * weights / (1 + between * weights))
    return shrunk


def _draws(models: Sequence[CellModel], rows: IntArray) -> Draws:
    """Models as a table has them."""
    patients = np.stack([model.patients.sum(axis=1) for model in models])
    # Where noise leaves nobody, nothing is known of the classes.
    patients[~patients.any(axis=1)] = 1.0
    shares = patients / patients.sum(axis=1, keepdims=True)
    failures = np.stack([model.failures for model in models])
    return Draws(np.broadcast_to(rows, failures.shape), shares, {FAILURES: failures})
