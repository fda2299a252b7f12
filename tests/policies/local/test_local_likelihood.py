"""Maximum likelihood: closed form, EM, and what makes a maximum one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.local import (
    KAry,
    TwoCoin,
    Unary,
    count_reports,
    estimate,
    estimate_bits,
    estimation,
    expectation_maximization,
    privatize,
)


@st.composite
def channels(draw):
    if draw(st.booleans()):
        return TwoCoin(draw(st.floats(0.1, 0.9)), draw(st.floats(0.1, 0.9)))
    return KAry(draw(st.integers(2, 8)), draw(st.floats(0.05, 6)))


@given(channels(), st.data())
def test_the_closed_form_is_where_em_ends(channel, data):
    """Both maximise a concave function, strictly so for an invertible matrix; EM is within 5e-7 of the maximum."""
    counts = np.array(data.draw(st.lists(st.integers(1, 500), min_size=channel.n_values, max_size=channel.n_values)))
    table = channel.matrix.T
    closed = estimate(counts, channel, method="maximum-likelihood").shares
    reached = expectation_maximization(counts, table)
    best, found = (counts @ np.log(table @ shares) for shares in (closed, reached))
    rounding = 1e-13 * abs(best)
    assert best >= found - rounding
    assert found >= best - 1e-6
    # No direction leads up from the closed form: g_v <= n for all v.
    gradient = table.T @ (counts / (table @ closed))
    assert gradient.max() <= counts.sum() * (1 + 1e-9)


@given(channels(), st.data())
def test_maximum_likelihood_is_unbiased_where_that_is_a_proportion(channel, data):
    k = channel.n_values
    shares = np.array(data.draw(st.lists(st.floats(0.01, 1), min_size=k, max_size=k)))
    counts = np.round(1e6 * (shares / shares.sum()) @ channel.matrix)
    unbiased, likely = (estimate(counts, channel, method=m).shares for m in ("unbiased", "maximum-likelihood"))
    if (unbiased >= 0).all():
        assert likely == pytest.approx(unbiased, abs=1e-11 / channel.gap.min())
    else:
        assert (likely >= 0).all()
        assert likely.sum() == pytest.approx(1, abs=1e-12)


def test_the_likelihood_never_falls_on_the_way(monkeypatch):
    seen, leap = [], estimation._leap

    def watched(shares, *rest):
        seen.append(shares)
        return leap(shares, *rest)

    monkeypatch.setattr(estimation, "_leap", watched)
    rng = np.random.default_rng(1)
    for _ in range(20):
        table = rng.random((30, 6)) ** 3
        counts = rng.integers(1, 100, size=30)
        seen.clear()
        seen.append(expectation_maximization(counts, table))
        values = [counts @ np.log(table @ shares) for shares in seen]
        assert len(values) > 3
        assert (np.diff(values) >= -1e-12 * abs(values[0])).all()


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_no_proportions_make_whole_unary_reports_likelier(epsilon):
    rng = np.random.default_rng(2)
    channel = Unary(5, epsilon)
    reports = privatize(rng.choice(5, size=2000, p=[0.6, 0.3, 0.1, 0, 0]), channel, rng=rng)
    rows = channel.matrix[:, reports @ (1 << np.arange(5)[::-1])]  # p(report | value), from the enumerated channel
    found = estimate_bits(reports, channel).shares
    best = np.log(found @ rows).sum()
    assert found.sum() == pytest.approx(1, abs=1e-12)
    others = rng.dirichlet(np.full(5, 0.5), size=300)
    near = 0.99 * found + 0.01 * others
    assert max(np.log(shares @ rows).sum() for shares in [*others, *near]) <= best + 1e-6


def test_whole_unary_reports_say_more_than_the_counts_of_their_bits():
    """The mean square error of maximum likelihood is below the unbiased one's at a large epsilon, by far."""
    rng = np.random.default_rng(3)
    channel, values = Unary(4, 3.0), np.repeat(np.arange(4), [500, 300, 150, 50])
    true = np.array([0.5, 0.3, 0.15, 0.05])
    squares = []
    for _ in range(60):
        reports = privatize(values, channel, rng=rng)
        unbiased = estimate(count_reports(reports, channel), channel, n=1000).shares
        squares.append([((s - true) ** 2).sum() for s in (estimate_bits(reports, channel).shares, unbiased)])
    difference = np.diff(squares, axis=1)
    assert difference.mean() > 4 * difference.std() / np.sqrt(len(squares))


@pytest.mark.parametrize(
    ("counts", "table", "message"),
    [
        ([], np.ones((0, 2)), "at least one"),
        ([1, 0], np.ones((2, 2)), "> 0"),
        ([1, 2], np.ones((3, 2)), r"likelihood must be \(2, k\)"),
        ([1, 2], [[1, 2], [0, 0]], "report 1 is possible for no value"),
        ([1, 2], [[1, -2], [1, 1]], ">= 0"),
    ],
)
def test_em_refuses_what_is_no_likelihood(counts, table, message):
    with pytest.raises(ValueError, match=message):
        expectation_maximization(counts, table)
