"""Is there anything to individualise? A test, before any policy, of whether treatments do more for some patients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from policies.arrays import FloatArray
from policysim.logs.learners import contrasts, fit_to_log
from policysim.logs.load_log import Log
from policysim.logs.log_frame import LoggedData, summed
from policysim.logs.outcome_models import CHOSEN, CONSTANT, LINEAR, LOGISTIC
from policysim.study.declared import LoggedStudy
from policysim.study.study_problem import indicators

FOLDS = 10
FIRST = 3  # folds that the first scores are fitted to
LEVEL = 0.05
LEAST_P = 0.001
ASKED = "Is there anything to individualise?"
FEWEST_IN_FOLD = 5


@dataclass(frozen=True)
class Heterogeneity:
    """Whether predicted differences between treatments, patient by patient, are found again in other patients.

    Attributes
    ----------
    slope : float
        Of the best linear predictor: 1 where patients differ by as much as the scores say, 0 where they do not; NaN
        where the scores say that nobody differs.
    chance : float
        The one-sided p-value of a slope of 0.
    """

    slope: float
    chance: float


def heterogeneity(log: Log, study: LoggedStudy) -> Heterogeneity:
    """Test whether scores on the declared features tell for whom treatments do more.

    The rows are put into ten folds at random, by the study's seed. Each fold from the fourth on is predicted by scores
    fitted to the folds before it (the study's outcome model; where that may be the arms' means, a regression). Its
    statistic is the covariance of predicted and doubly robust differences between arms, the arms' means aside, over its
    standard error.

    Notes
    -----
    The covariance is that of the best linear predictor of the conditional effect (Chernozhukov, Demirer, Duflo &
    Fernandez-Val 2018, Generic machine learning inference on heterogeneous treatment effects, section 3), over all
    pairs of arms. With ordinary cross-fitting the statistics of the folds depend on each other, and their sum is not
    normal where nothing is there; when each fold is judged by earlier ones alone, they are a martingale, so that their
    sum over the root of their number is standard normal (Wager 2024, Sequential validation of treatment
    heterogeneity).
    """
    dealt, folds = log.dealt(FOLDS, np.random.default_rng(study.seed))
    data, name = dealt.data, study.log.outcome_model
    if name in (CHOSEN, CONSTANT):
        name = LOGISTIC if data.is_binary else LINEAR
    covariates = indicators(log.space, dealt.records)
    found, sums = [], np.zeros(2)
    for fold in range(FIRST, FOLDS):
        rest, own = folds < fold, folds == fold
        mine = data.of(own)
        if mine.n_patients < FEWEST_IN_FOLD:
            continue
        model = fit_to_log(name, covariates[rest], data.of(rest), seed=study.seed)
        products, sizes = _products(mine, model.predict(covariates[own]))
        error = float(np.sqrt(products @ (products if mine.counts is None else products * mine.counts)))
        total = float(summed(products, mine.counts))
        found.append(total / error if error > 0 else 0.0)
        sums += total, float(summed(sizes, mine.counts))
    if not any(found):
        return Heterogeneity(math.nan, 1.0)
    statistic = sum(found) / math.sqrt(len(found))
    return Heterogeneity(float(sums[0] / sums[1]), 1 - NormalDist().cdf(statistic))


def _products(data: LoggedData, predicted: FloatArray) -> tuple[FloatArray, FloatArray]:
    return contrasts(data, predicted, np.zeros(data.n_rows, dtype=np.intp))


def heterogeneity_words(found: Heterogeneity, not_covered: str = "", provided: str = "") -> str:
    """The finding in a sentence, and what else may be behind it (`LogCaveats.not_covered`, `.provided`)."""
    if not_covered:
        return f"{ASKED} This log cannot tell: {not_covered}."
    if math.isnan(found.slope):
        return f"{ASKED} The scores predict the same differences between treatments for all."
    test = f"p = {found.chance:.2g}" if found.chance >= LEAST_P else f"p < {LEAST_P:g}"
    how = f"{test}, one-sided test of the best linear predictor on patients that the scores were not fitted to"
    if found.chance < LEVEL:
        return (
            f"{ASKED} Yes: where the scores say that a treatment does more for a patient, "
            f"it does ({how}; slope {found.slope:.2g}, where 1 is as much as they say)"
            f"{', ' + provided if provided else ''}."
        )
    return (
        f"{ASKED} These data do not show it: that treatments do more for some patients, as "
        f"the scores say, cannot be told from chance ({how})."
    )
