"""What a log can show at all: whether patients differ, which gains are seen, and what it takes to explain one away.

Heterogeneity is tested before any policy. Sampling error decides which gains are seen; the mechanism decides how large
a gain must be to outweigh what it draws at random. Where nobody randomised, E-values say how strong confounding by
something that nobody recorded would have to be.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pandas as pd

from policysim.logs.load_log import Log
from policysim.logs.log_frame import LoggedData, summed
from policysim.logs.outcome_models import CHOSEN, CONSTANT, LINEAR, LOGISTIC, contrasts, fit_to_log
from policysim.study.checks import Z
from policysim.study.declared import LoggedStudy
from policysim.study.study_problem import indicators
from policysim.trials.estimators import moments, snips

FOLDS = 10
FIRST = 3  # folds that the first scores are fitted to
LEVEL = 0.05
LEAST_P = 0.001
FEWEST_IN_FOLD = 5
ASKED = "different effects in different patients"


def heterogeneity(log: Log, study: LoggedStudy) -> pd.DataFrame:
    """Test whether scores on the declared features tell for whom treatments do more.

    The rows are put into ten folds at random, by the study's seed. Each fold from the fourth on is predicted by scores
    fitted to the folds before it (the study's outcome model; where that may be the arms' means, a regression). Its
    statistic is the covariance of predicted and doubly robust differences between arms, the arms' means aside, over its
    standard error.

    Returns
    -------
    DataFrame, one row
        `what` is asked; `slope` of the best linear predictor: 1 where patients differ by as much as the scores say, 0
        where they do not, NaN where the scores say that nobody differs; `p`, the one-sided p-value of a slope of 0.

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
        products, sizes = contrasts(mine, model.predict(covariates[own]), np.zeros(mine.n_rows, dtype=np.intp))
        error = float(np.sqrt(products @ (products if mine.counts is None else products * mine.counts)))
        total = float(summed(products, mine.counts))
        found.append(total / error if error > 0 else 0.0)
        sums += total, float(summed(sizes, mine.counts))
    if not any(found):
        return pd.DataFrame({"what": [ASKED], "slope": [math.nan], "p": [1.0]})
    statistic = sum(found) / math.sqrt(len(found))
    p = 1 - NormalDist().cdf(statistic)
    return pd.DataFrame({"what": [ASKED], "slope": [float(sums[0] / sums[1])], "p": [p]})


POWER = 0.8
# Standard errors that a gain must be above 0 to be seen, by a two-sided test at 5 %, with this power.
ERRORS = Z + NormalDist().inv_cdf(POWER)
# Gains that patients are counted for, as parts of the range of the utility.
POINTS = {"a hundredth of the range": 0.01, "a fiftieth of the range": 0.02}


def power_of(standard_error: float, n: int, spread: float) -> pd.DataFrame:
    """What a log can show of choosing a treatment for each patient, without privacy.

    A mean with standard error s is found different from 0 at the two-sided level of 5 % with a probability of 80 % if
    it is 1.96 + 0.84 of them (the usual formula of sample sizes, of which the other tail is left out); s falls with
    1 / sqrt(n).

    Parameters
    ----------
    standard_error : float
        Of what it gains over the best single treatment, on n patients.
    n : int
        Patients of the log.
    spread : float
        The width of the utility's range.

    Returns
    -------
    DataFrame
        `what` it is, `gain`, and how many `patients` it takes to see it with 80 % power, with the `standard_error`:
        first the least gain that is seen in this log, then 1 and 2 % of the utility's range (inf patients: beyond
        counting). No rows where the two are the same treatment for everybody.

    Examples
    --------
    >>> found = power_of(0.0236, 2139, 1.0)
    >>> found["gain"].round(3).tolist(), found["patients"].round(-3).tolist()
    ([0.066, 0.01, 0.02], [2000.0, 94000.0, 23000.0])
    """
    if not standard_error > 0:
        return pd.DataFrame({"what": [], "gain": [], "patients": [], "standard_error": []})
    least = ERRORS * standard_error
    gains = [part * spread for part in POINTS.values()]
    patients = [n * (least / gain) ** 2 for gain in gains]
    columns = {"gain": [least, *gains], "patients": [float(n), *patients], "standard_error": standard_error}
    return pd.DataFrame({"what": ["the least that is seen here", *POINTS], **columns})


def break_even_gain(best: float, shares: float, of_greedy: float, follows: float) -> float:
    """The gain of choosing for each that a mechanism needs to beat one treatment for all.

    Parameters
    ----------
    best : float
        The mean outcome of the best single treatment.
    shares : float
        That of drawing treatments with the mechanism's shares, whoever the patient is.
    of_greedy : float
        The same for choosing for each without privacy.
    follows : float
        How much of what choosing for each adds to drawing by shares the mechanism adds, by the fitted scores: of k-ary
        response (e^eps - 1) / (e^eps + k - 1).

    Returns
    -------
    float
        inf for a mechanism that does not follow the patients.

    Notes
    -----
    With u(x, a) = m_a + s h(x, a), where m_a are the treatments' means and s says how much patients differ, a policy
    with shares q is worth sum q_a m_a + s c, and c is the mean of sum_a (p(a|x) - q_a) h(x, a): `follows` is the ratio
    of two such c, where s cancels. It beats the best treatment if s c > best - sum q_a m_a; choosing for each then
    gains s c_greedy - (best - of_greedy). The estimated means m_a are taken as they are.

    Examples
    --------
    Response at eps = 1 among four treatments of which one is 0.1 better than the mean of all:

    >>> follows = (math.e - 1) / (math.e + 3)
    >>> shares = follows * 0.5 + (1 - follows) * 0.4
    >>> round(break_even_gain(0.5, shares, 0.5, follows), 3)  # (1 - follows) / follows 0.1
    0.233
    """
    if not follows > 0:
        return math.inf
    return (best - shares) / follows - (best - of_greedy)


def e_value(ratio: float) -> float:
    """R + sqrt(R (R - 1)) of a risk ratio, below 1 of its inverse (VanderWeele & Ding 2017, Annals, table 2).

    Examples
    --------
    >>> round(e_value(3.9), 2), round(e_value(1 / 3.9), 2), e_value(1.0)
    (7.26, 7.26, 1.0)
    """
    above = max(ratio, 1 / ratio)
    return above + math.sqrt(above * (above - 1))


def confounding_needed(data: LoggedData, better: str) -> pd.DataFrame:
    """E-values of an arm against the first, or the second best where it is the first.

    The interval is that of the logarithm of the ratio, by the delta method, with the arms' means and errors as
    `arm_means` has them.

    Returns
    -------
    DataFrame
        One row: the arms `better` and `other`, the `ratio` of their means, and the E-values `value` of the ratio and
        `at_limit` of the end of its 95 % interval that is nearer to 1 (1 where the interval holds 1). No rows where an
        outcome below 0 or an arm without rows or successes leaves no ratio.
    """
    columns = ["better", "other", "ratio", "value", "at_limit"]
    found = {}
    for arm, name in enumerate(data.names):
        own = data.of(data.actions == arm)
        if own.n_patients > 1:
            found[name] = moments(snips(1 / own.propensities, own.rewards, own.counts), own.counts)
    others = [name for name in found if name != better]
    if better not in found or not others or data.known.rewards.min() < 0:
        return pd.DataFrame(columns=columns)
    other = others[0] if others[0] == data.names[0] else max(others, key=lambda name: found[name].mean)
    means = found[better].mean, found[other].mean
    if min(means) <= 0:
        return pd.DataFrame(columns=columns)
    log_ratio = math.log(means[0] / means[1])
    error = float(np.hypot(found[better].standard_error / means[0], found[other].standard_error / means[1]))
    limit = max(0.0, abs(log_ratio) - Z * error)
    ratio = math.exp(log_ratio)
    return pd.DataFrame([(better, other, ratio, e_value(ratio), e_value(math.exp(limit)))], columns=columns)
