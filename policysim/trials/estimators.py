"""What each row adds to an off-policy estimate: the estimate is the mean of its rows' contributions.

Importance weights say how much more often the evaluated policy would have done what was done. The standard error is
that of a mean, the contributions' standard deviation over sqrt(n). For SNIPS, whose rows are not independent of the
normalisation, the contributions are its linearisation, so that this is the delta method. An `OffPolicyEstimate` is a
value with what it takes to judge it; what may be wrong with one is said in words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from policies.arrays import ROUNDING, FloatArray, IntArray
from policies.html_table import html_table
from policysim.logs.log_frame import LoggedData, averaged, summed
from policysim.numbers import plain, rounded
from policysim.study.checks import UPPER, Z


@dataclass(frozen=True)
class Moments:
    """A mean of n numbers, its standard error, and their skewness and excess kurtosis (0 where nothing varies).

    Where patients are in clusters, skewness and kurtosis are those of the clusters' sums, and `freedom` the degrees of
    freedom of the standard error (`clustered_moments`); else these are without end.
    Mean and standard error are NaN where there is no such number: no patients, or a share of what may be nothing.
    """

    n: int
    mean: float
    standard_error: float
    skewness: float = 0.0
    kurtosis: float = 0.0
    freedom: float = math.inf

    @property
    def student(self) -> float:
        """The 97.5 % quantile of Student's t by the clusters' degrees of freedom; 1.96 of independent patients."""
        return Z if math.isinf(self.freedom) else float(stdtrit(self.freedom, UPPER))

    @property
    def quantile(self) -> float:
        """How many standard errors the 95 % interval reaches to either side: 1.96, and more where numbers are skewed.

        The Cornish-Fisher quantile of |t| for the mean of skewed numbers, z (1 + [(z^4 + 2 z^2 - 3) g^2 / 18 -
        (z^2 - 3) k / 12 + (z^2 + 1) / 4] / n), with g the skewness and k the excess kurtosis (Hall 1988, Theoretical
        comparison of bootstrap confidence intervals, table 1; Owen 2025). Without g and k it is Student's, to 1 / n.
        Never less than z: a few numbers say little about a kurtosis. Nor, of clusters, than `student`.
        """
        skewed = (Z**4 + 2 * Z**2 - 3) / 18 * self.skewness**2
        units = min(float(self.n), self.freedom + 1)
        wider = max(0.0, skewed - (Z**2 - 3) / 12 * self.kurtosis + (Z**2 + 1) / 4) / units
        return max(self.student, Z * (1 + wider))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the mean, `quantile` standard errors to either side."""
        reach = self.quantile * self.standard_error
        return self.mean - reach, self.mean + reach

    @property
    def reach(self) -> float:
        """The `quantile` by Student's t, and further where numbers are skewed; NaN for fewer than two numbers.

        Of a rare outcome, intervals by Student's t cover less than 90 % (benchmarks/offpolicy.py --coverage).
        """
        return max(float(stdtrit(min(self.n - 1, self.freedom), UPPER)), self.quantile) if self.n > 1 else np.nan


NOTHING = Moments(0, np.nan, np.nan)


def ips(weights: FloatArray, rewards: FloatArray) -> FloatArray:
    """w r (Horvitz & Thompson 1952, equation 9; for policies Dudik, Langford & Li 2011, section 2)."""
    return weights * rewards


def snips(weights: FloatArray, rewards: FloatArray, counts: IntArray | None = None) -> FloatArray:
    """v + w (r - v) / mean(w), with v = sum w r / sum w (Hajek 1971; Swaminathan & Joachims 2015, equation 8).

    Their mean is v, as sum w (r - v) = 0. Their variance over n is sum w^2 (r - v)^2 / (sum w)^2, the delta method's
    (Owen 2013, Monte Carlo theory, methods and examples, equation 9.9), but for n - 1 in place of n.
    """
    own = weights if counts is None else weights * counts
    value = float(own @ rewards) / float(own.sum())
    linearised: FloatArray = value + weights * (rewards - value) / averaged(weights, counts)
    return linearised


def doubly_robust(
    weights: FloatArray, rewards: FloatArray, direct: FloatArray, predicted_of_taken: FloatArray
) -> FloatArray:
    """sum_a p(a|x) q(x, a) + w (r - q(x, a_logged)), q fitted without the row.

    The augmented inverse propensity estimate (Robins, Rotnitzky & Zhao 1994; Dudik, Langford & Li 2011, equation 2)
    with cross-fitting (Chernozhukov et al. 2018, definition 3.2; variance as in their theorem 3.2).
    """
    return direct + weights * (rewards - predicted_of_taken)


def moments(
    contributions: FloatArray,
    counts: IntArray | None = None,
    unseen: float = 0.0,
    *,
    clusters: IntArray | None = None,
) -> Moments:
    """The moments of contributions, (n_rows,), each of so many patients; the standard error has n - 1.

    `unseen` is added to the variance of the mean. With `clusters`, the number of each row's, (n_rows,), they are
    `clustered_moments`.
    """
    if clusters is not None:
        return clustered_moments(contributions, clusters, unseen)
    n = len(contributions) if counts is None else int(counts.sum())
    if not n:
        return NOTHING
    mean = float(averaged(contributions, counts))
    if n == 1:
        return Moments(1, mean, np.nan)
    centred = contributions - mean
    unit = _unit(centred)
    centred /= unit
    squares = centred * centred
    variance = float(averaged(squares, counts))
    # Rounding of equal contributions is no variation.
    if math.sqrt(variance) <= ROUNDING * abs(mean) / unit:
        return Moments(n, mean, math.sqrt(unseen))
    own = squares if counts is None else squares * counts
    skewness = float(own @ centred) / n / variance**1.5
    kurtosis = float(own @ squares) / n / variance**2 - 3
    return Moments(n, mean, math.hypot(unit * math.sqrt(variance / (n - 1)), math.sqrt(unseen)), skewness, kurtosis)


def clustered_moments(contributions: FloatArray, clusters: IntArray, unseen: float = 0.0) -> Moments:
    """The moments of the mean of contributions, (n_rows,), by clusters, each with its number, (n_rows,).

    With G clusters of n_g rows, of n in all, and S_g the sum of what a cluster's rows are above the mean, the mean
    without cluster g is lower by S_g / (n - n_g). The variance is that of the jackknife, (G - 1) / G times the sum of
    the squares of these (Bell & McCaffrey 2002, Bias reduction in standard errors for linear regression with
    multi-stage samples; MacKinnon, Nielsen & Webb 2023, Cluster-robust inference, equation 16). For clusters of one
    size it is the usual one, with G - 1, and CR2; of unequal ones, CR2 is too small where clusters are few.

    `unseen` is added to the variance.

    Notes
    -----
    The degrees of freedom are Satterthwaite's, 2 E[V]^2 / Var[V] (Bell & McCaffrey 2002; Pustejovsky & Tipton 2018,
    Small-sample methods for cluster-robust variance estimation, equation 11), under a working model in which clusters
    are independent, with the variance of cluster g that of its own rows, Q_g (1 + (n_g - 1) rho): Q_g is the sum of
    squares of its rows, and rho the correlation of two rows of a cluster, from the data (Imbens & Kolesar 2016, Robust
    standard errors in small samples, equation 11). Arms with few clusters then
    have a part of their own. Clusters of one size whose rows vary alike have G - 1.
    """
    n, sizes = len(contributions), np.bincount(clusters)
    there = sizes > 0
    if not n:
        return NOTHING
    mean = float(contributions.mean())
    if there.sum() < 2:
        return Moments(n, mean, np.nan, freedom=0.0)
    centred = contributions - mean
    unit = _unit(centred)
    centred /= unit
    if np.abs(centred).max() <= ROUNDING * abs(mean) / unit or not centred.any():
        return Moments(n, mean, math.sqrt(unseen), freedom=float(there.sum() - 1))
    sums, squares = (np.bincount(clusters, each)[there] for each in (centred, centred * centred))
    shares = sizes[there] / n
    without = sums / n / (1 - shares)
    variance = float(without @ without) * (1 - 1 / len(sums))
    spread = float(np.sqrt(np.mean(sums * sums)))
    skewness, kurtosis = (float(np.mean((sums / spread) ** power)) if spread else 0.0 for power in (3, 4))
    pairs = float(((sizes[there] - 1) * squares).sum())
    alike = min(1.0, max(0.0, float((sums * sums - squares).sum()) / pairs)) if pairs else 0.0
    freedom = _satterthwaite(shares, squares * (1 + (sizes[there] - 1) * alike))
    return Moments(n, mean, math.hypot(unit * math.sqrt(variance), math.sqrt(unseen)), skewness, kurtosis - 3, freedom)


def _satterthwaite(shares: FloatArray, variances: FloatArray) -> float:
    """2 E[V]^2 / Var[V] of V = sum of e_g^2 / (1 - p_g)^2, with e = s - p sum(s), s independent normal: at least 1.

    `shares` are p, (G,), and `variances` those of s. With W the weights and C the covariance of e, it is
    tr(W C)^2 / tr(W C W C). As C is diagonal but for a sum of two products, no G x G array is needed.
    """
    weights, total = (1 - shares) ** -2, variances.sum()
    # C = diag(variances) + left right', both (G, 2).
    left = np.column_stack([shares, variances])
    right = np.column_stack([total * shares - variances, -shares])
    own = weights * (variances + (left * right).sum(axis=1))
    across = (right.T * weights) @ left
    crossed = 2 * float((weights**2 * variances) @ (left * right).sum(axis=1)) + float(np.trace(across @ across))
    return max(1.0, float(own.sum()) ** 2 / (float((weights * variances) @ (weights * variances)) + crossed))


def _unit(numbers: FloatArray) -> float:
    """A power of two like the largest number, which has a fourth power when it is divided by this; no digit changes."""
    largest = float(np.abs(numbers).max())
    return math.ldexp(1.0, math.frexp(largest)[1] - 1) if 0 < largest < math.inf else 1.0


def one_more(weights: FloatArray, data: LoggedData) -> float:
    """What one more success and one more failure of each arm add to the variance of a difference, of 0 and 1.

    Of a rare outcome an arm may have none, and then no variance (Agresti & Caffo 2000, Simple and effective confidence
    intervals for proportions and differences of proportions). `weights` are what a row's outcome counts in the
    difference, (n_rows,).
    """
    sums = np.bincount(data.actions, weights * (1 if data.counts is None else data.counts), data.n_actions)
    sizes = data.by_action()
    means = np.divide(sums, sizes, out=np.zeros(len(sums)), where=sizes > 0)
    return float((means**2).sum() / data.n_patients**2)


def minus(one: FloatArray, other: FloatArray) -> FloatArray:
    """One - other, (m,), exactly 0 where they are equal but for rounding."""
    apart = one - other
    apart[np.abs(apart) <= ROUNDING * (np.abs(one) + np.abs(other))] = 0.0
    return apart


class OverSplits(NamedTuple):
    """A value with the ends of its 95 % interval, and its standard error, as independent random splits together say."""

    value: float
    low: float
    high: float
    standard_error: float


def over_splits(estimates: Sequence[Moments]) -> OverSplits:
    """What independent random splits of the same patients say together.

    The median v of the values v_r of R splits, with the variance median(s_r^2) + (pi / 2) W / R: what another log would
    change, and the error of a median of R values whose mean squared distance from it is W. Chernozhukov et al. 2018
    (Double/debiased machine learning, definition 3.3) add the whole of W, as for a single split: median(s_r^2 +
    (v_r - v)^2). But a median varies no more than one split, so that their intervals cover more than 95 %, and find
    fewer gains (docs/notes/off-policy-coverage.md, Verdicts).

    What is exactly 0 in all splits, as of a policy that is one arm for all, is 0; in most of them, it is 0 with the
    mean of s_r^2 + (v_r - v)^2 for its variance, as the others say that it need not be.
    """
    found = np.array([(each.mean, each.standard_error, each.reach) for each in estimates])
    if np.isnan(found[:, 0]).any():
        return OverSplits(*(np.nan,) * 4)
    if not found[:, :2].any():
        return OverSplits(0.0, 0.0, 0.0, 0.0)
    return OverSplits(*(float(each) for each in combined(*found.T)))


def combined(values: FloatArray, errors: FloatArray, reaches: FloatArray) -> FloatArray:
    """`over_splits` of arrays (..., n_splits) that are not all 0: (4, ...)."""
    centre = np.median(values, axis=-1)
    apart = minus(values, np.broadcast_to(centre[..., None], values.shape))
    within, between = np.median(errors**2, axis=-1), (apart**2).mean(axis=-1)
    of_median = within + math.pi / 2 * between / values.shape[-1]
    error = np.sqrt(np.where(within > 0, of_median, (errors**2).mean(axis=-1) + between))
    reach = np.median(reaches, axis=-1) * error
    return np.stack([centre, centre - reach, centre + reach, error])


def importance_weights(log: LoggedData, probabilities: FloatArray, clip: float | None = None) -> FloatArray:
    """p(a|x) of the logged action under the evaluated policy, (n_rows, k), over its propensity: of each row, (n_rows,).

    Parameters
    ----------
    clip : float, optional
        The most that a weight may be (Ionides 2008, Truncated importance sampling): less variance, but a bias.

    Raises
    ------
    ValueError
        For a clip that is not > 0 and finite.
    """
    weights: FloatArray = log.of_taken(probabilities) / log.propensities
    if clip is None:
        return weights
    if isinstance(clip, bool) or not isinstance(clip, Real) or not 0 < float(clip) < np.inf:
        raise ValueError(f"clip must be > 0 and finite, got clip={clip!r}.")
    return np.minimum(weights, clip)


def effective_size(weights: FloatArray, counts: IntArray | None = None) -> float:
    """The effective sample size (sum w)^2 / sum w^2 (Kish 1965); 0 if all weights are 0."""
    weights = weights / _unit(weights)
    square = float(weights @ (weights if counts is None else weights * counts))
    return float(summed(weights, counts)) ** 2 / square if square > 0 else 0.0


# What the interval of the direct method leaves out, whatever the log.
MODEL_BIAS = (
    "the interval of the direct method covers chance and the fit, not the error of the outcome model itself: where the "
    "model is wrong it may miss the value, however many rows there are. The doubly robust estimate has no such error "
    "where the propensities are right."
)
# Below it intervals of the doubly robust and the weighted estimates may cover less than 93 %.
SMALLEST_ESS = 200
# Skewness^2 / n beyond which intervals covered less than 93 % in simulations, although they are made wider for skewness
# (docs/notes/off-policy-coverage.md): that of the population is not in a sample that lacks its rare rows.
MOST_SKEWNESS = 0.1
# Standard deviations beyond which a share of the evaluated policy is called missing: 1 false alarm in 2,000 for each
# action, were sums of its weights normal.
SURPRISE = 3.5


def overlap_caveats(log: LoggedData, shares: FloatArray, weights: FloatArray) -> list[str]:
    """Actions that the evaluated policy takes and the log does not, or not where the policy does.

    If every action that the policy takes had a chance in the log, the mean of w 1{a logged} would be the mean of p(a|x)
    for each action a, with a variance of at most (mean of p) (largest w) / n. A smaller mean is what lacks support; a
    larger one says that propensities are too small. `shares` are the means of p, (k,); weights those before clipping.
    """
    reached, spread = weight_sums(log, shares, weights)
    taken = log.by_action()
    said = []
    for action, (name, share) in enumerate(zip(log.names, shares, strict=True)):
        missing = share - reached[action]
        surprising = abs(missing) > SURPRISE * spread[action]
        if share > 0 and not taken[action]:
            said.append(
                f"no overlap: the log never takes {name}, on which the evaluated policy puts {share:.1%} of its "
                "probability; the log says nothing about that part."
            )
        elif surprising and missing > 0:
            said.append(
                f"overlap fails for {name}: about {missing:.1%} of the evaluated policy's probability is on patients "
                f"to whom the log seems never to give {name} (or propensities are too large)."
            )
        elif surprising:
            said.append(
                f"propensities of {name} seem too small: its weights sum to {reached[action] / share:.2f} times what "
                "they should."
            )
    return said


def weight_sums(log: LoggedData, shares: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The weights of each action's rows over the number of patients, and a bound of their standard deviation, (k,).

    The bound is that of `overlap_caveats`; of clusters w is the sum over a cluster's rows.
    """
    own = weights if log.counts is None else weights * log.counts
    reached: FloatArray = np.bincount(log.actions, weights=own, minlength=log.n_actions) / log.n_patients
    # A product with 0 and 1 is three times as fast as picking an action's rows.
    of_actions = (weights * (log.actions == action) for action in range(log.n_actions))
    largest = np.array(
        [(each if log.clusters is None else np.bincount(log.clusters, each)).max() for each in of_actions]
    )
    return reached, np.sqrt(shares * largest / log.n_patients)


def weight_caveats(ess: float, n_patients: int, clip: float | None, clipped_share: float) -> list[str]:
    """Too few effective rows; clipping."""
    said = []
    if ess < SMALLEST_ESS:
        said.append(
            f"effective sample size {ess:,.0f} of {n_patients:,} rows: below {SMALLEST_ESS} the 95 % interval may "
            "cover less than it says."
        )
    if clipped_share > 0:
        said.append(
            f"clip={clip:g} cuts off {clipped_share:.1%} of the weight: the estimate is biased, and the interval does "
            "not allow for that."
        )
    return said


# An interval that holds so much of what is possible says next to nothing.
NEARLY_EVERYTHING = 0.9
# At most so many digits tell an impossible value from the limit.
MOST_DIGITS = 9


def range_caveats(what: str, value: float, interval: Sequence[float], limits: tuple[float, float]) -> list[str]:
    """A value that is impossible, and an interval that holds nearly all values that are possible.

    `what` has the value, as the subject of a sentence.
    """
    low, high = limits
    possible = f"{plain(low)} to {plain(high)}"
    if not low - ROUNDING * abs(low) <= value <= high + ROUNDING * abs(high):
        limit = low if value < low else high
        # With as many digits as tell it from the limit.
        digits = next(
            (digits for digits in range(2, 9) if rounded(value, digits=digits) != rounded(limit, digits=digits)), 9
        )
        return [
            f"{what} is {rounded(value, digits=digits)}, which is impossible ({possible} are possible): a few patients "
            "who hardly had a chance of their treatment decide it. Check their propensities."
        ]
    if interval[1] - interval[0] >= NEARLY_EVERYTHING * (high - low) > 0:
        return [
            f"{what} may be nearly anything: its 95 % interval is {rounded(interval[0])} to {rounded(interval[1])}, "
            f"and {possible} are possible."
        ]
    return []


def spread_caveats(found: Moments) -> list[str]:
    """Contributions too skewed for an interval of this kind, or that do not vary at all."""
    if found.standard_error == 0:
        return ["nothing varies from row to row: the standard error of 0 is no sign of certainty."]
    units = found.n if math.isinf(found.freedom) else found.freedom + 1
    if found.skewness**2 <= MOST_SKEWNESS * units:
        return []
    unit = "rows" if math.isinf(found.freedom) else "effective clusters"
    return [
        f"a few {unit} decide (skewness {found.skewness:.1f} in {units:,.0f} {unit}), as with rare and large losses: "
        "the 95 % interval may cover less than it says."
    ]


@dataclass(frozen=True)
class OffPolicyEstimate:
    """The value of a policy, estimated from a log.

    Attributes
    ----------
    value : float
        The expected reward per patient, in the reward's unit.
    standard_error : float
        Of the value, in the same unit.
    interval : tuple of float
        Lower and upper end of the 95 % interval: value -+ q standard errors, q = 1.96 or more if the rows are skewed
        (`estimators.Moments.quantile`), or for "dm" that of Student's t with K - 1 degrees of freedom.
    ess : float
        Effective sample size (sum w)^2 / sum w^2 of the importance weights.
    largest_weight : float
        Before clipping.
    clipped_share : float
        The share of the total weight that clipping cut off; 0 without a clip.
    warnings : tuple of str
        What may be wrong with it, a sentence each: missing overlap first.
    estimator : str
        "ips", "snips", "dm" or "dr".
    n_rows : int
        Rows of the log.
    """

    value: float
    standard_error: float
    interval: tuple[float, float]
    ess: float
    largest_weight: float
    clipped_share: float
    warnings: tuple[str, ...]
    estimator: str
    n_rows: int

    def _repr_html_(self) -> str:
        """What a notebook shows: the value with its interval, what it rests on, and what may be wrong with it."""
        rows: list[tuple[str, object]] = [
            ("value per patient", self.value),
            ("standard error", self.standard_error),
            ("95 % interval", f"{self.interval[0]:.6g} to {self.interval[1]:.6g}"),
            ("rows", self.n_rows),
            ("effective sample size", self.ess),
            ("largest weight", self.largest_weight),
            ("clipped share of the weight", self.clipped_share),
            *(("warning", warning) for warning in self.warnings),
        ]
        return html_table(f"value estimated from a log ({self.estimator})", rows)
