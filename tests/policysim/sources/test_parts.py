"""Digits, single runs and exact losses: what every study of a source is built on."""

import itertools
from decimal import ROUND_DOWN

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from policies.selection import select
from policysim.sources.documents import (
    ADD_OR_REMOVE,
    REPLACE_ONE,
    binomial_run,
    largest_loss,
    loss_at,
    neighbouring_tables,
)
from policysim.sources.engine import (
    AGREES,
    DIFFERS,
    INSIDE,
    OUTSIDE,
    PLAUSIBLE,
    WRONG,
    SingleRun,
    SourceRow,
    as_printed,
    printed_number,
    rounds_to,
)


@pytest.mark.parametrize(
    ("value", "printed", "agrees"),
    [
        (0.32706751, ".33", True),
        (0.32706751, ".32", False),
        (3.9988e-5, "4e-5", True),
        (4.6e-5, "4e-5", False),
        (45222.6, "45,222", False),
        (1.0, "text", False),
    ],
)
def test_a_figure_agrees_if_it_rounds_to_the_digits_printed(value, printed, agrees):
    assert rounds_to(value, printed) is agrees


@given(st.floats(1e-9, 1e6), st.integers(0, 12))
def test_what_python_itself_prints_always_agrees(value, digits):
    printed = f"{value:.{digits}f}"
    assert rounds_to(value, printed)
    assert float(as_printed(value, printed)) == float(printed)


def test_a_figure_that_is_cut_off_is_told_from_one_that_differs():
    assert rounds_to(0.327, ".32", ROUND_DOWN)
    assert not rounds_to(0.327, ".33", ROUND_DOWN)
    assert (as_printed(0.14696, ".15"), as_printed(3.99e-5, "4e-5")) == ("0.15", "4e-5")
    assert not rounds_to(0.327, ".31", ROUND_DOWN)
    assert printed_number("½") is None
    assert printed_number("nan") is None


def test_a_row_knows_its_verdict():
    def verdict(printed, ours):
        return SourceRow.of("", "", printed, ours).agreement

    assert verdict("0.33", 0.327) == AGREES
    assert verdict(".32", 0.327) == WRONG
    assert verdict(".31", 0.327) == DIFFERS
    assert verdict("5", SingleRun(4.2, (2, 5))) == INSIDE
    assert verdict("1,006", SingleRun(4.2, (2, 1005))) == OUTSIDE
    verdicts = [(True, AGREES), (False, WRONG), (None, PLAUSIBLE)]
    assert all(SourceRow.claim("", "", "words", "ours", holds=holds).agreement == word for holds, word in verdicts)
    assert SourceRow.of("", "", ".32", 0.327).why == "Its last digit is cut off, not rounded."


@pytest.mark.parametrize(("runs", "probability", "seen"), [(100, 0.5987, 51), (100, 0.982, 97), (200, 0.0046, 1)])
def test_the_chance_of_a_count_is_that_of_the_exact_two_sided_test(runs, probability, seen):
    found = binomial_run(seen, (runs, probability))
    assert found.chance == pytest.approx(binomtest(seen, runs, probability).pvalue, rel=1e-9)
    assert found.expected == pytest.approx(runs * probability)
    low, high = found.band
    # At most 2.5 % beyond each end, and more if the end were one count further in.
    assert binom.cdf(low - 1, runs, probability) < 0.025 <= binom.cdf(low, runs, probability)
    assert binom.sf(high, runs, probability) <= 0.025 < binom.sf(high - 1, runs, probability)


def test_reports_of_a_value_are_the_sum_of_two_binomial_counts():
    found = binomial_run(45, (40, 0.6), (60, 0.2))
    exact = np.convolve(binom.pmf(range(41), 40, 0.6), binom.pmf(range(61), 60, 0.2))
    assert found.expected == pytest.approx(40 * 0.6 + 60 * 0.2)
    assert found.chance == pytest.approx(exact[exact <= exact[45] * (1 + 1e-7)].sum(), rel=1e-9)


def tables(people, candidates):
    """All tables of so many people."""
    for cut in itertools.combinations(range(people + candidates - 1), candidates - 1):
        ends = (-1, *cut, people + candidates - 1)
        yield np.diff(ends) - 1


def test_neighbours_are_one_person_away():
    assert sorted(map(tuple, neighbouring_tables(np.array([1, 0, 2]), REPLACE_ONE))) == [
        (0, 0, 3),
        (0, 1, 2),
        (1, 1, 1),
        (2, 0, 1),
    ]
    assert sorted(map(tuple, neighbouring_tables(np.array([1, 0]), ADD_OR_REMOVE))) == [(0, 0), (1, 1), (2, 0)]


@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_OR_REMOVE])
@pytest.mark.parametrize(("people", "candidates"), [(7, 2), (6, 3), (4, 4)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_largest_loss_is_the_largest_over_all_tables(adjacency, people, candidates, epsilon):
    def choice(counts):
        return select(counts, epsilon=epsilon).probabilities

    worst = max(loss_at(table, choice, adjacency) for table in tables(people, candidates))
    assert largest_loss(people, candidates, choice, adjacency) == pytest.approx(worst, rel=1e-12)


@pytest.mark.parametrize("n", [30, 70])
def test_a_proportion_without_the_half_exceeds_its_epsilon(n):
    # Two proportions move against each other, so the range is twice the sensitivity 1/n.
    def proportion(counts, **more):
        return select(counts / n, epsilon=1.0, sensitivity=1 / n, **more).probabilities

    assert largest_loss(n, 2, proportion, REPLACE_ONE) <= 1 + 1e-12
    assert largest_loss(n, 2, lambda counts: proportion(counts, monotone=True), REPLACE_ONE) > 1.9
