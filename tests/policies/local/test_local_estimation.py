"""Estimates from reports: exact moments by the channel matrix, and coverage by repetition."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from policies.local import KAry, TwoCoin, Unary, error_bands, estimate, estimate_bits, expected_errors
from policies.local.estimation import METHODS, exact_interval, shares_of, standard_errors, variances

CASES = [
    (TwoCoin(), [300, 700]),
    (TwoCoin(0.3, 0.8), [950, 50]),
    (KAry(4, 1.0), [500, 300, 150, 50]),
    (KAry(6, 3.0), [900, 60, 30, 10, 0, 0]),
    (Unary(4, 1.0), [500, 300, 150, 50]),
    (Unary(5, 2.0, optimized=False), [900, 60, 30, 10, 0]),
]
ADULT = [8196, 14831, 6499, 15696]  # the source's counts: young/0, young/1, old/0, old/1


def exact_moments(channel, counts):
    """Mean and covariance of the counts of reports: each person's report is one multinomial draw from their row."""
    k = channel.n_values
    bits = isinstance(channel, Unary)
    support = np.array(list(itertools.product((0, 1), repeat=k))) if bits else np.eye(k)
    mean, covariance = np.zeros(k), np.zeros((k, k))
    for n, row in zip(counts, channel.matrix, strict=True):
        centre = row @ support
        mean += n * centre
        covariance += n * (support.T @ (row[:, None] * support) - np.outer(centre, centre))
    return mean, covariance


@pytest.mark.parametrize(("channel", "counts"), CASES, ids=repr)
def test_the_estimate_is_unbiased_and_its_variance_is_the_channels(channel, counts):
    n, shares = sum(counts), np.array(counts) / sum(counts)
    mean, covariance = exact_moments(channel, counts)
    assert shares_of(mean / n, channel, "unbiased") == pytest.approx(shares, abs=1e-12)
    expected = np.diag(covariance) / (n * channel.gap) ** 2
    assert variances(shares, channel, n) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(("channel", "counts"), CASES, ids=repr)
def test_simulated_counts_have_the_channels_moments(channel, counts):
    """Within 4.5 standard errors of mean and covariance over 20,000 runs: some hundred comparisons, fixed seed."""
    runs = 20_000
    drawn = channel.simulate_counts(np.array(counts), runs=runs, rng=np.random.default_rng(1))
    mean, covariance = exact_moments(channel, counts)
    variance = np.diag(covariance)
    assert (np.abs(drawn.mean(axis=0) - mean) <= 4.5 * np.sqrt(variance / runs)).all()
    # Var of a sample covariance of near-normal counts: (c_ij^2 + c_ii c_jj) / runs.
    error = np.sqrt((covariance**2 + np.outer(variance, variance)) / runs)
    assert (np.abs(np.cov(drawn.T) - covariance) <= 4.5 * error).all()


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("channel", [TwoCoin(), TwoCoin(0.3, 0.8), KAry(4, 0.5), KAry(4, 4.0), Unary(4, 1.0)], ids=repr)
def test_intervals_cover_95_percent_and_of_a_sample_hardly_more(channel, sampled):
    """The standard error of a coverage of 95 % over 40,000 repetitions is 0.11 %.

    That leaves the room to counts being whole numbers, which moves the true coverage by some tenths.
    """
    rng, n, runs = np.random.default_rng(4), 5000, 40_000
    shares = np.array([0.7, 0.3]) if channel.n_values == 2 else np.array([0.5, 0.3, 0.18, 0.02])
    if sampled:  # the marginal law of a count; the values themselves are drawn too
        drawn = rng.binomial(n, channel.lie + channel.gap * shares, size=(runs, channel.n_values))
    else:
        drawn = channel.simulate_counts((n * shares).round().astype(int), runs=runs, rng=rng)
    interval = exact_interval(drawn, channel, n, 0.95, sampled=sampled)
    covered = ((interval[..., 0] <= shares) & (shares <= interval[..., 1])).mean(axis=0)
    assert (covered >= 0.9455).all()
    # Of a rare value few reports refuse no share from above.
    assert not sampled or (covered <= np.where(shares > 0.1, 0.96, 0.98)).all()
    # The squared standard error is unbiased for the variance, too.
    errors = standard_errors(drawn, channel, n, sampled=sampled)
    deviation = shares_of(drawn / n, channel, "unbiased").std(axis=0)
    assert np.sqrt((errors**2).mean(axis=0)) == pytest.approx(deviation, rel=0.02)  # 0.35 % is one standard error


def laws_of_counts(n, lie, own):
    """P(so many reports | so many people have the value), (n + 1, n + 1): their binomial, and that of all others."""
    laws = np.zeros((n + 1, n + 1))
    for people in range(n + 1):
        own_people, others = np.arange(people + 1), np.arange(n + 1 - people)
        laws[people] = np.convolve(binom.pmf(own_people, people, own), binom.pmf(others, n - people, lie))
    return laws


def two_tests(laws):
    """The fewest and the most people whom neither of two tests at 2.5 % refuses, (n + 1, 2); the most may be -1."""
    at_least, at_most = laws[:, ::-1].cumsum(axis=1)[:, ::-1], laws.cumsum(axis=1)
    return np.transpose([(at_least <= 0.025).sum(axis=0), (at_most > 0.025).sum(axis=0) - 1])


def intervals(channel, n):
    """In people, for each count of the first value, (n + 1, 2)."""
    first = SimpleNamespace(lie=channel.lie[:1], gap=channel.gap[:1])
    return np.rint(n * exact_interval(np.arange(n + 1)[:, None], first, n, 0.95, sampled=False)[:, 0])


@pytest.mark.parametrize(
    "channel", [KAry(3000, 2.0), KAry(40, 1.0), KAry(40, 5.0), TwoCoin(0.3, 0.8), KAry(3, 800.0)], ids=repr
)
def test_intervals_of_given_people_are_exact_and_cover_95_percent(channel):
    """By the whole law of a count for 0 to n people; beyond what is expected of 0 and of n, as there."""
    n, lie, own = 500, channel.lie[0], channel.lie[0] + channel.gap[0]
    found, laws = intervals(channel, n), laws_of_counts(n, lie, own)
    fewest, most = two_tests(laws).T
    fewest, most = np.minimum(fewest, fewest[int(np.ceil(n * own))]), np.maximum(most, most[int(n * lie)])
    assert found.tolist() == np.transpose([fewest, most]).tolist()
    people = np.arange(n + 1)[:, None]
    assert (laws * ((found[:, 0] <= people) & (people <= found[:, 1]))).sum(axis=1).min() >= 0.95


def wilson(count, n, lie, gap):
    """The ends of the score interval in people: where (c - n q - d m)^2 is z^2 times the variance with m people."""
    slope = (lie + gap) * (1 - lie - gap) - lie * (1 - lie)
    z, off = 1.959964, count - n * lie
    return np.roots([gap**2, -2 * gap * off - z**2 * slope, off**2 - z**2 * n * lie * (1 - lie)])


@pytest.mark.parametrize("channel", [TwoCoin(), KAry(4, 1.0), KAry(5, 1.0), KAry(2, 0.1)], ids=repr)
@pytest.mark.parametrize("n", [25, 60])
def test_few_reports_of_a_value_do_not_say_that_nobody_has_it(channel, n):
    """The tests alone refuse everybody and nobody at some counts, and Wilson's interval ends below 0."""
    lie, gap = channel.lie[0], channel.gap[0]
    found, laws = intervals(channel, n), laws_of_counts(n, lie, lie + gap)
    assert (found[:, 0] < found[:, 1]).all()
    tested, expected = two_tests(laws), int(n * lie)
    assert tested[0, 1] == -1 and max(wilson(0, n, lie, gap)) < 0
    assert (found[:expected] == found[expected]).all() and (found[expected] == tested[expected]).all()
    # It is never narrower, so that it covers no less.
    assert (found[:, 0] <= tested[:, 0]).all() and (tested[:, 1] <= found[:, 1]).all()
    people = np.arange(n + 1)[:, None]
    covered, before = (
        (laws * ((ends[:, 0] <= people) & (people <= ends[:, 1]))).sum(axis=1) for ends in (found, tested)
    )
    assert covered.min() >= 0.95 and (covered >= before - 1e-12).all()


def test_where_the_normal_approximation_is_good_the_interval_is_as_wide_as_it_says():
    found = estimate([2500, 4000, 1500, 2000], KAry(4, 4.0))
    assert np.diff(found.interval)[:, 0] == pytest.approx(2 * 1.96 * found.standard_errors, rel=0.1)


def test_the_interval_of_a_population_is_that_of_the_reports_by_clopper_and_pearson():
    channel, n = KAry(4, 0.7), 8000
    found = estimate([2300, 2000, 1900, 1800], channel, confidence=0.9, sampled=True)
    for count, interval in zip([2300, 2000, 1900, 1800], found.interval, strict=True):
        ends = np.array(binomtest(count, n).proportion_ci(0.9, method="exact"))
        assert interval == pytest.approx((ends - channel.lie[0]) / channel.gap[0], rel=1e-9)
    # So it is for given people where there are too many to sum over.
    many, population = (estimate([4 * 10**9, 5 * 10**9], TwoCoin(), sampled=sampled) for sampled in (False, True))
    assert (many.interval == population.interval).all()


def test_a_population_adds_the_variance_of_its_sample():
    counts, channel = [3000, 2500, 2500, 2000], KAry(4, 1.0)
    people, population = (estimate(counts, channel, sampled=sampled) for sampled in (False, True))
    f = people.shares
    assert population.standard_errors**2 == pytest.approx(people.standard_errors**2 + f * (1 - f) / 10_000, rel=1e-12)


def test_all_methods_have_the_same_interval_within_0_and_1():
    counts, channel = [10, 300, 350, 340], KAry(4, 0.5)
    interval = estimate(counts, channel).interval
    assert interval[0, 0] == 0 and (interval[1:, 0] > 0).all()
    for method in METHODS:
        found = estimate(counts, channel, method=method)
        assert (found.interval == interval).all()
        assert (found.shares >= 0).all() == (method != "unbiased")
    assert estimate(counts, channel, method="clipped").shares.sum() > 1.05
    assert estimate(counts, channel, method="projected").shares.sum() == pytest.approx(1)


@pytest.mark.parametrize(("channel", "counts"), CASES, ids=repr)
def test_expected_errors_are_those_of_many_runs(channel, counts):
    """L2 in mean square within 4.5 standard errors of 100,000 runs; L1 too, with 0.5 % for the normal approximation."""
    true, runs = np.array(counts), 100_000
    drawn = channel.simulate_counts(true, runs=runs, rng=np.random.default_rng(7))
    errors = true.sum() * shares_of(drawn / true.sum(), channel, "unbiased") - true
    squares, absolutes = (errors**2).sum(axis=1), np.abs(errors).sum(axis=1)
    expected = expected_errors(counts, channel)
    assert abs(squares.mean() - expected.l2**2) <= 4.5 * squares.std() / np.sqrt(runs)
    assert abs(absolutes.mean() - expected.l1) <= 4.5 * absolutes.std() / np.sqrt(runs) + 0.005 * expected.l1


def test_a_band_holds_95_percent_of_runs():
    """Two samples of 20,000: the difference has a standard error of 0.22 %."""
    channel = KAry(4, 0.1)
    bands = error_bands(ADULT, channel, rng=np.random.default_rng(8))
    drawn = channel.simulate_counts(np.array(ADULT), runs=20_000, rng=np.random.default_rng(9))
    errors = sum(ADULT) * shares_of(drawn / sum(ADULT), channel, "unbiased") - ADULT
    for distances, (low, high) in ((np.abs(errors).sum(axis=1), bands.l1), (np.linalg.norm(errors, axis=1), bands.l2)):
        inside = (low <= distances) & (distances <= high)
        assert inside.mean() == pytest.approx(0.95, abs=0.01)
        assert (distances < low).mean() == pytest.approx(0.025, abs=0.007)


def test_the_band_of_the_clipped_estimate_at_a_tenth_is_the_one_that_is_known():
    """The known band, 3369 to 21850, was simulated as well.

    By the density of L1 at its ends the standard errors of the quantiles are 65 and 170 for 10,000 runs: four of them.
    """
    low, high = error_bands(ADULT, KAry(4, 0.1), method="clipped", runs=200_000, rng=np.random.default_rng(10)).l1
    assert low == pytest.approx(3369, abs=4 * 65)
    assert high == pytest.approx(21850, abs=4 * 170)


def test_bands_do_not_build_all_runs_of_many_categories_at_once(monkeypatch):
    monkeypatch.setattr("policies.local.estimation.CELLS", 1000)
    bands = error_bands([10] * 300, KAry(300, 2.0), runs=50, rng=np.random.default_rng(0))
    assert 0 < bands.l2[0] < bands.l2[1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: estimate([1, 2], KAry(3, 1.0)), r"shape \(3,\), got \(2,\)"),
        (lambda: estimate([1, 2, -3], KAry(3, 1.0)), r"whole numbers >= 0, got counts\[2\]=-3"),
        (lambda: estimate([1, 2.5, 3], KAry(3, 1.0)), r"got counts\[1\]=2.5"),
        (lambda: estimate([1, np.nan, 3], KAry(3, 1.0)), r"got counts\[1\]=nan"),
        (lambda: estimate(["a", "b"], TwoCoin()), "got an array of"),
        (lambda: estimate([0, 0], TwoCoin()), "at least one report, got none"),
        (lambda: estimate([1, 2], TwoCoin(), n=4), "sum to n, got a sum of 3 and n=4"),
        (lambda: estimate([1, 2], Unary(2, 1.0)), "n, the number of reports, is needed for a unary channel"),
        (lambda: estimate([1, 5], Unary(2, 1.0), n=4), r"got counts\[1\]=5 and n=4"),
        (lambda: estimate([1, 2], Unary(2, 1.0), n=4, method="maximum-likelihood"), "use estimate_bits"),
        (lambda: estimate([1, 2], TwoCoin(), method="best"), "method must be one of unbiased, .* got method='best'"),
        (lambda: estimate([1, 2], TwoCoin(), confidence=95), "confidence must be > 0 and < 1, got confidence=95"),
        (lambda: estimate([1, 2], TwoCoin(0.0)), "say nothing about the values"),
        (lambda: estimate_bits(np.zeros((0, 3), int), Unary(3, 1.0)), "at least one report"),
        (lambda: expected_errors([0, 0], TwoCoin()), "at least one person"),
        (lambda: expected_errors([1, 2], TwoCoin(0.0)), "say nothing about the values"),
        (lambda: error_bands([1, 2], TwoCoin(), runs=0, rng=np.random.default_rng(0)), "runs must be .* >= 1"),
    ],
)
def test_what_cannot_be_estimated_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
