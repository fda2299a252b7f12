"""What a log can show at all: whether patients differ, which gains are seen, and what it takes to explain one away.

Heterogeneity is tested before any policy. Sampling error decides which gains are seen. Where nobody randomised,
E-values say how strong confounding by something that nobody recorded would have to be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri, stdtr

from policies.arrays import FloatArray, IntArray
from policysim.logs.load_log import Log
from policysim.logs.log_frame import LoggedData, summed
from policysim.logs.outcome_models import PENALTIES, contrasts
from policysim.study.declared import LoggedStudy
from policysim.study.study_problem import indicators
from policysim.trials.contrasts import means_and_deviations
from policysim.trials.estimators import Moments, combined, moments

FOLDS = 10
FIRST = 3  # folds that the first scores are fitted to
CLUSTERS_IN_FOLD = 4  # at least; folds are then fewer
LEVEL = 0.05
LEAST_P = 0.001
FEWEST_IN_FOLD = 5
ASKED = "different effects in different patients"
# Errors that the rank of a median hardly exceeds: one in 1,000.
CLEAR = 3.3
# After so many splits it is looked whether the median is clear of half the level.
LOOKS = (20, 50, 100, 200, 400, 700, 1000)


def heterogeneity(log: Log, study: LoggedStudy) -> pd.DataFrame:
    """Test whether scores on the declared features predict who gains more by a treatment, over many random splits.

    In each split the rows are put into ten folds at random. Each fold from the fourth on is predicted by scores fitted
    to the folds before it (ridge regression for each arm). Its statistic is the covariance of predicted and doubly
    robust differences between arms, the arms' means aside, over its standard error. Splits are added until the interval
    of the median p-value is on one side of .025, to 1,000 at most; the p-value is twice the median.

    Returns
    -------
    DataFrame, one row
        `what` is asked; `slope` of the best linear predictor, the median of the splits: 1 where patients differ by as
        much as the scores say, 0 where they do not, NaN where the scores say that nobody differs; `p`, one-sided;
        `p_low` and `p_high`, between which the p-values of 80 % of the splits lie; `splits`; and `signs`, 1 where the
        median is clear of .025 and below it, else 0: the data do not show different effects.

    Notes
    -----
    The covariance is that of the best linear predictor of the conditional effect (Chernozhukov, Demirer, Duflo &
    Fernandez-Val 2018, Generic machine learning inference on heterogeneous treatment effects, section 3), over all
    pairs of arms. With ordinary cross-fitting the statistics of the folds depend on each other, and their sum is not
    normal where nothing is there; when each fold is judged by earlier ones alone, they are a martingale, so that their
    sum over the root of their number is standard normal (Wager 2024, Sequential validation of treatment
    heterogeneity). One split is a draw of chance: twice the median of the p-values of any number of splits is a p-value
    whatever their dependence (Meinshausen, Meier & Buhlmann 2009, P-values for high-dimensional regression, theorem
    3.1 at 1/2; DiCiccio, DiCiccio & Romano 2020, Exact tests via multiple data splitting). The interval of the median
    is that of its rank (Conover 1999, section 3.2), at 99.9 % as it is looked at seven times. Clusters are dealt as a
    whole, among so few folds that each has four or more.
    """
    rng = np.random.default_rng(study.seed)
    found: list[tuple[float, float]] = []
    for splits in LOOKS:
        found += [_one_split(log, rng) for _ in range(splits - len(found))]
        chances = np.sort([p for _, p in found])
        reach = CLEAR * math.sqrt(splits) / 2
        low = chances[max(0, math.floor(splits / 2 - reach))]
        high = chances[min(splits - 1, math.ceil(splits / 2 + reach))]
        if not low <= LEVEL / 2 <= high:
            break
    slopes = [slope for slope, _ in found if not math.isnan(slope)]
    row = {
        "what": ASKED,
        "slope": float(np.median(slopes)) if slopes else math.nan,
        "p": min(1.0, 2 * float(np.median(chances))),
        "p_low": float(np.quantile(chances, 0.1)),
        "p_high": float(np.quantile(chances, 0.9)),
        "splits": splits,
        "signs": float(high < LEVEL / 2),
    }
    return pd.DataFrame([row])


def _one_split(log: Log, rng: np.random.Generator) -> tuple[float, float]:
    """The slope and the p-value of one split."""
    n_folds, first = FOLDS, FIRST
    if log.data.clusters is not None:
        n_folds = min(FOLDS, log.data.n_units // CLUSTERS_IN_FOLD)
        first = max(1, FIRST * n_folds // FOLDS)
    dealt, folds = log.dealt(n_folds, rng)
    data, covariates = dealt.data, indicators(log.space, dealt.records)
    found, sums = [], np.zeros(2)
    predicted = _predicted_from_before(data, covariates, folds, first)
    for fold in range(first, n_folds):
        own = folds == fold
        mine = data.of(own)
        if mine.n_patients < FEWEST_IN_FOLD:
            continue
        products, sizes = contrasts(mine, predicted[own], np.zeros(mine.n_rows, dtype=np.intp))
        found.append(_over_its_error(products, mine))
        sums += float(summed(products, mine.counts)), float(summed(sizes, mine.counts))
    if not any(found):
        return math.nan, 1.0
    return float(sums[0] / sums[1]), float(ndtr(-sum(found) / math.sqrt(len(found))))


def _over_its_error(products: FloatArray, data: LoggedData) -> float:
    """The sum of a fold's products over its error: about standard normal where nothing is there.

    Of clusters the error is that of the jackknife, as the products are those of differences from the fold's means; with
    G clusters the ratio is Student's with G - 1 degrees of freedom, and made the normal number of the same probability.
    """
    total = float(summed(products, data.counts))
    if data.clusters is None:
        error = float(np.sqrt(products @ (products if data.counts is None else products * data.counts)))
        return total / error if error > 0 else 0.0
    sizes = np.bincount(data.clusters)
    sums, sizes = np.bincount(data.clusters, products)[sizes > 0], sizes[sizes > 0]
    n = len(sizes)
    if n < 2 or not sums.any():
        return 0.0
    without = sums / (1 - sizes / sizes.sum())
    return float(ndtri(stdtr(n - 1, total / float(np.sqrt((1 - 1 / n) * (without @ without))))))


def _predicted_from_before(data: LoggedData, covariates: FloatArray, folds: IntArray, first: int) -> FloatArray:
    """q(x, a) of each row by ridge regressions on the folds before its own, (n_rows, k); 0 in the first folds.

    Sums of products of each fold are enough for them. The penalty is that of least generalised cross-validation error
    (Golub, Heath & Wahba 1979).
    """
    known, size = data.known, covariates.shape[1]
    weights = known.weights if data.counts is None else known.weights * data.counts
    rows = np.column_stack([np.ones(data.n_rows), covariates - covariates.mean(axis=0), known.rewards])
    predicted = np.zeros((data.n_rows, data.n_actions))
    for arm in range(data.n_actions):
        total = np.zeros((size + 2, size + 2))
        for fold in range(int(folds.max()) + 1):
            own = folds == fold
            if fold >= first and total[0, 0] > 0:
                predicted[own, arm] = rows[own, :-1] @ _ridge(total)
            mine = own & (data.actions == arm)
            total += (rows[mine].T * weights[mine]) @ rows[mine]
    return predicted


def _ridge(total: FloatArray) -> FloatArray:
    """Intercept and slopes from the sums of products of 1, the covariates and the reward."""
    n, means = total[0, 0], total[0, 1:] / total[0, 0]
    centred = total[1:, 1:] - n * np.outer(means, means)
    values, vectors = np.linalg.eigh(centred[:-1, :-1])
    values, turned = np.maximum(values, 0), vectors.T @ centred[:-1, -1]
    shrunk = turned[:, None] / (values[:, None] + np.array(PENALTIES))
    used = 1 + (values[:, None] / (values[:, None] + np.array(PENALTIES))).sum(axis=0)
    errors = centred[-1, -1] - 2 * turned @ shrunk + values @ shrunk**2
    best = np.where(used < n, errors / np.maximum(1 - used / n, 1e-9) ** 2, np.inf)
    slopes = vectors @ shrunk[:, len(best) - 1 - int(best[::-1].argmin())]
    return np.append(means[-1] - means[:-1] @ slopes, slopes)


POWER = 0.8
# Logs that are drawn, to see which gains a rule shows.
DRAWN = 1000
# Gains that patients are counted for, as parts of the range of the utility.
POINTS = {"a hundredth of the range": 0.01, "a fiftieth of the range": 0.02}


def shown_gain(estimates: Sequence[Moments]) -> float:
    """The true gain of a policy over one arm for all that `over_splits` calls better in 8 of 10 logs like this one.

    Parameters
    ----------
    estimates : sequence of Moments
        The difference of the policy from one arm for all, on each of some random splits of a log.

    Returns
    -------
    float
        In the unit of the differences; NaN for a policy that in most splits does not differ from one arm for all.

    Notes
    -----
    1,000 logs are drawn, and the rule is applied to each. The median over splits varies from log to log with about the
    variance of one split's estimate, median(s_r^2): in planted logs its error was 1.05 to 1.14 times as large where a
    policy gains, and .7 to 1 times without an effect (docs/notes/off-policy-coverage.md, Verdicts). So a part that is
    common to all splits is drawn from the normal distribution with that variance, and splits, each with its distance
    from the median, its error and its reach, are drawn with replacement from those of this log. What is planted moves
    all splits of a log alike: the gain that a drawn log needs is what its interval would have to be moved to end at 0,
    and 80 % of the logs need no more than the result. Where splits agree it is (1.96 + 0.84) standard errors, the usual
    formula of sample sizes.
    """
    needed = needed_gains(estimates)
    return float(np.quantile(needed, POWER)) if len(needed) else math.nan


def needed_gains(estimates: Sequence[Moments]) -> FloatArray:
    """The gain that each of the logs drawn by `shown_gain` needs to be called better, (1,000,) or (0,)."""
    values, errors, reaches = np.array([(each.mean, each.standard_error, each.reach) for each in estimates]).T
    if not np.median(errors) > 0:
        return np.empty(0)
    rng, n = np.random.default_rng(0), len(values)
    common = math.sqrt(float(np.median(errors**2)))
    drawn = rng.integers(n, size=(DRAWN, n))
    moved = values[drawn] - np.median(values) + common * rng.normal(size=(DRAWN, 1))
    needed: FloatArray = -combined(moved, errors[drawn], reaches[drawn])[1]
    return needed


def power_of(options: pd.DataFrame, n: int, spread: float | None) -> pd.DataFrame:
    """What a log can show of policies.

    Parameters
    ----------
    options : DataFrame
        `epsilon`, `option`, and `shown_gain`: the gain over one arm for all that is shown with a probability of 80 % on
        n patients (`shown_gain`).
    n : int
        Patients of the log.
    spread : float or None
        The width of the utility's range; None if it is a guess: patients are then counted for no part of it.

    Returns
    -------
    DataFrame
        `epsilon`, `option`, `what` gain it is, the `gain`, and how many `patients` it takes to show it with 80 % power,
        as errors fall with 1 / sqrt(n): first the least gain that is shown by this log, then 1 and 2 % of the utility's
        range (inf patients: beyond counting). No rows of an option that is the same treatment for everybody.

    Examples
    --------
    >>> power = power_of(pd.DataFrame({"epsilon": [1.0], "option": ["C"], "shown_gain": [0.066]}), 2139, 1.0)
    >>> power["gain"].tolist(), power["patients"].round(-3).tolist()
    ([0.066, 0.01, 0.02], [2000.0, 93000.0, 23000.0])
    """
    parts = {} if spread is None else {what: part * spread for what, part in POINTS.items()}
    columns = options[["epsilon", "option", "shown_gain"]]
    rows = [
        (epsilon, option, what, gain, n * (least / gain) ** 2)
        for epsilon, option, least in columns.itertuples(index=False, name=None)
        if least > 0
        for what, gain in {"the least that is shown here": least, **parts}.items()
    ]
    return pd.DataFrame(rows, columns=["epsilon", "option", "what", "gain", "patients"])


CONFOUNDING = ["better", "other", "of", "ratio", "value", "at_limit"]


def e_value(ratio: float) -> float:
    """R + sqrt(R (R - 1)) of a risk ratio, below 1 of its inverse (VanderWeele & Ding 2017, Annals, table 2).

    Examples
    --------
    >>> round(e_value(3.9), 2), round(e_value(1 / 3.9), 2), e_value(1.0)
    (7.26, 7.26, 1.0)
    """
    above = max(ratio, 1 / ratio)
    return above + math.sqrt(above * (above - 1))


def confounding_needed(data: LoggedData, better: str, predicted: FloatArray | None = None) -> pd.DataFrame:
    """E-values of an arm against the first, or the second best where it is the first.

    Of rewards of 0 and 1 there are two, for the ratio of successes and for that of failures: where nearly all succeed,
    the former is near 1 whatever an arm does. The interval is that of the logarithm of the ratio, by the delta method,
    from what each row adds to both means (`contrasts.means_and_deviations`). `predicted` is what the arms' means are
    doubly robust by, (n_rows, k).

    Returns
    -------
    DataFrame
        The arms `better` and `other`, `of` what ("successes", "failures" or "means"), the `ratio`, and the E-values
        `value` of the ratio and `at_limit` of the end of its 95 % interval that is nearer to 1 (1 where the interval
        holds 1). No row where an outcome below 0 or an arm without any leaves no ratio.
    """
    means, deviations = means_and_deviations(data, predicted)
    known = [arm for arm, n_patients in enumerate(data.by_action()) if n_patients > 1]
    one, others = data.names.index(better), [arm for arm in known if data.names[arm] != better]
    if one not in known or not others or data.known.rewards.min() < 0:
        return pd.DataFrame(columns=CONFOUNDING)
    other = others[0] if others[0] == 0 else max(others, key=lambda arm: float(means[arm]))
    kinds = {"successes": (means, 1), "failures": (1 - means, -1)} if data.is_binary else {"means": (means, 1)}
    rows = []
    for of, (levels, sign) in kinds.items():
        if levels[[one, other]].min() > 0:
            relative = sign * (deviations[:, one] / levels[one] - deviations[:, other] / levels[other])
            found = moments(relative, data.counts, clusters=data.clusters)
            log_ratio = math.log(levels[one] / levels[other])
            limit = max(0.0, abs(log_ratio) - found.student * found.standard_error)
            ratio = math.exp(log_ratio)
            rows.append((better, data.names[other], of, ratio, e_value(ratio), e_value(math.exp(limit))))
    return pd.DataFrame(rows, columns=CONFOUNDING)
