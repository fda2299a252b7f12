"""Bulk choices: what is drawn, exactly; the same from NumPy and compiled; what rounding costs."""

import math
import subprocess
import sys
import tracemalloc
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from chi_square import chi_square, draws_fit
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from policies import Sampler
from policies import sampler as kernel
from policies.sampler import N, whole_weights

MOST = (1 << 64) - 1
BOTH = pytest.mark.parametrize("compiled", [False, True], ids=["NumPy", "compiled"])


def word(key, place):
    """SplitMix64 in whole numbers of any size: word `place` of a key."""
    state = (key + (place + 1) * 0x9E3779B97F4A7C15) & MOST
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MOST
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & MOST
    return state ^ (state >> 31)


def key_of(wanted):
    """The key whose word 0 is the one that is wanted: each step of the mixing, undone."""

    def unshift(state, by):
        found = state
        while state := state >> by:
            found ^= state
        return found

    state = unshift(wanted, 31) * pow(0x94D049BB133111EB, -1, 1 << 64) & MOST
    state = unshift(state, 27) * pow(0xBF58476D1CE4E5B9, -1, 1 << 64) & MOST
    return (unshift(state, 30) - 0x9E3779B97F4A7C15) & MOST


class Planted:
    """A generator that gives a chosen key."""

    def __init__(self, key):
        self.key = key

    def integers(self, high, dtype):
        assert (high, dtype) == (1 << 64, np.uint64)
        return np.uint64(self.key)


def drawn_for(sampler, row, planted, compiled):
    """The action of a row for one word of 64 bits."""
    return int(sampler.draw([row], Planted(key_of(planted)), compiled=compiled)[0])


def exact_weights(row):
    """The weights in rational arithmetic, as the docstring defines them."""
    wanted = [Fraction(p) * 2**63 for p in row]
    weights = [max(round(x), 1) if x else 0 for x in wanted]
    weights[max(range(len(row)), key=lambda place: row[place])] += 2**63 - sum(weights)
    return weights


def by_definition(table, rows, key, first):
    """#{j : T_j <= w} for each row, in whole numbers."""
    sums = [np.cumsum(np.array(exact_weights(row), dtype=object))[:-1].tolist() for row in table.tolist()]
    return [sum(t <= word(key, first + i) >> 1 for t in sums[row]) for i, row in enumerate(rows.tolist())]


def random_table(m, k, seed=0):
    """Rows from nearly certain to nearly even, some of them without all actions."""
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(k), m) ** rng.choice([0.1, 1, 8], (m, 1))
    table[::3, rng.integers(k)] = 0
    table[0] = np.eye(k)[0]
    table[-1] = np.eye(k)[-1]
    return table / table.sum(axis=1, keepdims=True)


@st.composite
def tables(draw):
    """Up to 4 rows of up to 6 probabilities, from 0 and the smallest float on."""
    k = draw(st.integers(2, 6))
    part = st.one_of(st.just(0.0), st.floats(0, 1), st.floats(-700, 0).map(math.exp), st.just(2.0**-64))
    rows = draw(
        st.lists(st.lists(part, min_size=k, max_size=k).filter(lambda row: sum(row) > 1e-6), min_size=1, max_size=4)
    )
    table = np.array(rows)
    return table / table.sum(axis=1, keepdims=True)


def test_words_are_those_of_splitmix64():
    # The values that are printed for this seed wherever the generator is.
    printed = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]
    assert [word(1234567, place) for place in range(5)] == printed
    assert all(word(key_of(planted), 0) == planted for planted in (0, 1, 12345, MOST - 1, MOST))


@BOTH
@pytest.mark.parametrize("k", [2, 3, 4, 5, 6, 17, 300])
def test_draws_are_those_of_the_definition(k, compiled):
    table = random_table(40, k)
    repeated = table[np.random.default_rng(0).integers(40, size=100)]
    rows = np.random.default_rng(k).integers(40, size=400)
    for key, first in ((0, 0), (MOST, 2**64 + 7), (2**63 + 5, 2**64 - 100)):
        found = Sampler(table).draw(rows, Planted(key), first=first, compiled=compiled)
        assert found.tolist() == by_definition(table, rows, key, first)
        again = Sampler(repeated).draw(rows, Planted(key), first=first, compiled=compiled)
        assert again.tolist() == by_definition(repeated, rows, key, first)
        assert found.dtype == (np.uint8 if k <= 256 else np.uint16)


@pytest.mark.parametrize("k", [2, 4, 5, 6, 20])
def test_draws_do_not_depend_on_engine_threads_parts_or_the_type_of_rows(k, monkeypatch):
    monkeypatch.setattr("policies.sampler.LEAST_SHARE", 100)
    sampler, n = Sampler(random_table(1000, k)), 100_003
    rows = np.random.default_rng(3).integers(1000, size=n)
    whole = sampler.draw(rows, np.random.default_rng(5), threads=1, compiled=False)
    for compiled in (False, True):
        for threads in (1, 2, 3, 7):
            same = sampler.draw(rows, np.random.default_rng(5), threads=threads, compiled=compiled)
            np.testing.assert_array_equal(same, whole)
        for parts in (3, 16, 1000):
            edges = [n * part // parts for part in range(parts + 1)]
            pieces = [
                sampler.draw(rows[a:b], np.random.default_rng(5), first=a, compiled=compiled)
                for a, b in pairwise(edges)
            ]
            np.testing.assert_array_equal(np.concatenate(pieces), whole)
        for kind in (np.int16, np.uint32, np.uint64):
            same = sampler.draw(rows.astype(kind), np.random.default_rng(5), compiled=compiled)
            np.testing.assert_array_equal(same, whole)
    assert (sampler.draw(rows, np.random.default_rng(6), compiled=False) != whole).any()


@BOTH
def test_equal_rows_are_kept_once_and_draw_what_they_would_draw_apart(compiled):
    table, rows = random_table(70_000, 3), np.random.default_rng(1).integers(140_000, size=200_000)
    # 3 and 70,000 distinct rows: few and many have places of different types.
    for distinct, often in ((table[[0, 1, -1]], 50_000), (table, 2)):
        twice = np.tile(distinct, (often, 1))
        together, asked = Sampler(twice), rows % len(twice)
        assert len(together.thresholds) == len(np.unique(distinct, axis=0)) < together.n_rows == len(twice)
        apart = Sampler(distinct).draw(asked % len(distinct), np.random.default_rng(2), compiled=compiled)
        np.testing.assert_array_equal(together.draw(asked, np.random.default_rng(2), compiled=compiled), apart)


@BOTH
def test_every_threshold_divides_the_words_where_it_should(compiled):
    # Words on both sides of each threshold: also those whose 15 leading bits are the threshold's.
    table = np.concatenate([random_table(30, 4), [[2.0**-64, 0.5, 0, 0.5], [1e-300, 0, 1, 0], [0.25] * 4]])
    sampler = Sampler(table)
    for row, probabilities in enumerate(table.tolist()):
        sums = np.cumsum(np.array(exact_weights(probabilities), dtype=object))[:-1].tolist()
        for threshold in sums:
            for planted in (2 * threshold - 2, 2 * threshold - 1, 2 * threshold, 2 * threshold + 1):
                if 0 <= planted <= MOST:
                    expected = sum(t <= planted >> 1 for t in sums)
                    assert drawn_for(sampler, row, planted, compiled) == expected


IMPOSSIBLE = np.array(
    [[1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0], [0, 0.5, 0.5, 0], [0.5, 0, 0, 0.5], [0, 1 - 1e-12, 1e-12, 0]]
)


def impossible_drawn(sampler, table, compiled):
    """The actions of probability 0 that the first and last words, and those around 2^63, give."""
    planted = (0, 1, MOST - 1, MOST, 2**63 - 1, 2**63)
    pairs = [(row, drawn_for(sampler, row, word, compiled)) for row in range(len(table)) for word in planted]
    return [pair for pair in pairs if table[pair] == 0]


@BOTH
def test_an_action_of_probability_zero_is_never_drawn(compiled):
    for more in (0, 3):  # with and without the leading bits
        table = np.concatenate([IMPOSSIBLE, np.zeros((len(IMPOSSIBLE), more))], axis=1)
        assert impossible_drawn(Sampler(table), table, compiled) == []


def test_a_planted_threshold_that_fits_into_fewer_bits_is_caught():
    # As if the largest threshold were 2^63 - 1: the last word then passes it.
    sampler = Sampler(IMPOSSIBLE)
    np.minimum(sampler.thresholds, N - np.uint64(1), out=sampler.thresholds)
    assert impossible_drawn(sampler, IMPOSSIBLE, False) != []


@settings(max_examples=300, deadline=None)
@given(tables())
def test_weights_are_whole_keep_zeros_and_cost_no_more_than_is_said(table):
    weights, rounding = whole_weights(table)
    k, worst = table.shape[1], Fraction(math.expm1(rounding))
    for given_row, row in zip(table.tolist(), weights.tolist(), strict=True):
        assert row == exact_weights(given_row) and sum(row) == 2**63
        exact = [Fraction(p) * 2**63 for p in given_row]
        for n, x in zip(row, exact, strict=True):
            assert (n == 0) == (x == 0)
            # |log(n / x)| is log(1 + |n - x| / min(n, x)).
            assert abs(n - x) <= worst * min(n, x)
    # The formula of the docstring.
    least = Fraction(float(table[table > 0].min()))
    off = max(abs(1 - sum(map(Fraction, row))) for row in table.tolist())
    if least * 2**63 >= 1:
        x = max(Fraction(1, 2**64) / least, k * (off + Fraction(k - 1, 2**63)) / (1 - off))
        assert worst <= x / (1 - x) * (1 + Fraction(1, 2**40))
    # And between any two rows the ratio of probabilities grows by a factor of at most e^(2 r).
    for row, drawn in zip(table.tolist(), weights.tolist(), strict=True):
        for other, other_drawn in zip(table.tolist(), weights.tolist(), strict=True):
            for p, n, q, m in zip(row, drawn, other, other_drawn, strict=True):
                assert n * Fraction(q) <= (1 + worst) ** 2 * m * Fraction(p)


def test_a_planted_rounding_that_loses_rare_actions_is_caught():
    table = np.array([[1 - 2.0**-70, 2.0**-70], [0.5, 0.5]])
    weights, rounding = whole_weights(table)
    careless = np.rint(table * 2.0**63)
    assert careless[0, 1] == 0 and weights[0, 1] == 1
    assert rounding >= math.log(2.0**-63 / 2.0**-70)  # said, and finite


@pytest.mark.parametrize("k", [2, 4, 9])
def test_actions_are_drawn_by_their_probabilities(k):
    table = np.random.default_rng(k).dirichlet(np.full(k, 3.0), 20)
    rows = np.random.default_rng(1).integers(20, size=2_000_000)
    actions = Sampler(table).draw(rows, np.random.default_rng(2))
    statistic, degrees = chi_square(table, rows, actions)
    # One test in a million fails by chance, on either side: draws may not be too even, either.
    assert chi2.ppf(5e-7, degrees) <= statistic <= chi2.ppf(1 - 5e-7, degrees)
    shifted = table.copy()
    shifted[:, 0], shifted[:, 1] = table[:, 0] * 0.95, table[:, 1] + table[:, 0] * 0.05
    assert not draws_fit(shifted, rows, actions)  # off by 5 %


def test_neighbouring_words_are_not_related():
    # Pairs of successive choices, from four even actions: 16 cells; and the same patient under successive seeds.
    sampler, n = Sampler(np.full((1, 4), 0.25)), 1_000_000
    rows = np.zeros(n, dtype=np.intp)
    one, other = (sampler.draw(rows, Planted(key), compiled=False).astype(int) for key in (1, 2))
    for first, second in ((one[:-1:2], one[1::2]), (one, other)):
        counts = np.bincount(4 * first + second, minlength=16)
        expected = len(first) / 16
        assert ((counts - expected) ** 2 / expected).sum() <= chi2.ppf(1 - 1e-6, 15)


def test_memory_does_not_grow_with_the_choices_but_for_one_byte_each():
    sampler, n = Sampler(random_table(10, 4)), 4_000_000
    rows = np.zeros(n, dtype=np.intp)
    for compiled in (False, True):
        sampler.draw(rows[:1], np.random.default_rng(0), compiled=compiled)
        tracemalloc.start()
        sampler.draw(rows, np.random.default_rng(0), threads=2, compiled=compiled)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= n + 16_000_000  # a word for each choice alone would take 32 MB


@BOTH
def test_rows_that_are_not_there_are_refused_and_named(compiled):
    for table in (random_table(10, 4), np.full((10, 4), 0.25), random_table(10, 7)):
        for bad in (-1, 10, 2**40):
            rows = np.zeros(70_000, dtype=np.int64)
            rows[66_001] = bad
            with pytest.raises(ValueError, match=rf"rows must be in 0..9, got rows\[66001\]={bad}"):
                Sampler(table).draw(rows, np.random.default_rng(0), compiled=compiled)


@pytest.mark.parametrize(
    ("rows", "more", "error", "message"),
    [
        ([0.5], {}, TypeError, "rows must be .n,. whole numbers, got float64"),
        ([[0]], {}, TypeError, r"whole numbers, got int64 of shape \(1, 1\)"),
        ([0], {"first": -1}, ValueError, "first must be >= 0, got first=-1"),
        ([0], {"threads": 0}, ValueError, "threads must be >= 1, got threads=0"),
        ([0], {"first": 1.5}, TypeError, "first must be a whole number, got first=1.5"),
        ([0], {"threads": "two"}, TypeError, "threads must be a whole number, got threads='two'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(rows, more, error, message):
    with pytest.raises(error, match=message):
        Sampler([[0.5, 0.5]]).draw(rows, np.random.default_rng(0), **more)


@pytest.mark.parametrize("table", [[[0.5, 0.6]], [[1.5, -0.5]], [[math.nan, 1.0]], [0.5, 0.5], [[1.0]]])
def test_a_table_that_is_no_probabilities_is_refused(table):
    with pytest.raises(ValueError, match="probabilities"):
        Sampler(table)


def test_the_first_patient_may_be_counted_by_numpy():
    sampler, rows = Sampler([[0.5, 0.5]]), np.zeros(100, dtype=np.intp)
    wanted = sampler.draw(rows, np.random.default_rng(0), first=5)
    for kind in (np.int64, np.uint64, np.int8):
        np.testing.assert_array_equal(sampler.draw(rows, np.random.default_rng(0), first=kind(5)), wanted)


def test_the_loop_is_compiled_once_whatever_array_the_rows_are():
    sampler, rows = Sampler(random_table(50, 4)), np.random.default_rng(0).integers(50, size=2_000)
    wanted = sampler.draw(rows, np.random.default_rng(1), compiled=True)
    known = list(kernel.compiled_draws().signatures)
    frozen = rows.copy()
    frozen.flags.writeable = False
    for asked in (frozen, np.repeat(rows, 2)[::2], rows.astype(">i4")):
        np.testing.assert_array_equal(sampler.draw(asked, np.random.default_rng(1), compiled=True), wanted)
    assert kernel.compiled_draws().signatures == known


def test_nothing_is_drawn_for_nobody():
    for compiled in (False, True):
        assert Sampler([[0.5, 0.5]]).draw([], np.random.default_rng(0), compiled=compiled).shape == (0,)


def test_small_runs_import_no_compiler_and_without_numba_the_draws_are_the_same():
    script = (
        "import sys, numpy as np, policysim as ps\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'numba': raise ImportError('numba needs another NumPy')\n"
        "sampler = ps.Sampler([[0.25, 0.75], [0.5, 0.5]])\n"
        "rows = np.arange(1000) % 2\n"
        "print(sampler.draw(rows, np.random.default_rng(4)).sum(), 'numba' in sys.modules)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "import policies.sampler\n"
        "policies.sampler.WORTH_COMPILING = 1\n"
        "print(sampler.draw(rows, np.random.default_rng(4)).sum())\n"
        "try: sampler.draw(rows, np.random.default_rng(4), compiled=True)\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    rows = np.arange(1000) % 2
    total = Sampler([[0.25, 0.75], [0.5, 0.5]]).draw(rows, np.random.default_rng(4), compiled=True).sum()
    assert done.stdout.splitlines() == [f"{total} False", f"{total}", "numba needs another NumPy"]


@pytest.mark.parametrize("error", [RuntimeError("cannot cache function: no locator available"), OSError("disk full")])
def test_where_nothing_can_be_cached_it_is_compiled_all_the_same(error, monkeypatch):
    asked = []

    class Numba:
        @staticmethod
        def njit(*, nogil, cache=False):
            def decorate(function):
                def compiled(*given):
                    if cache:
                        raise error
                    return function(*given)

                asked.append((nogil, cache))
                return compiled

            return decorate

    monkeypatch.setattr(kernel, "import_module", lambda _: Numba)
    assert kernel.compiled_draws.__wrapped__()(*[np.zeros(0, np.uint64)] * 7) == 0
    assert asked == [(True, True), (True, False)]


def test_many_choices_are_compiled_and_few_are_not(monkeypatch):
    sampler = Sampler([[0.5, 0.5]])
    monkeypatch.setattr("policies.sampler.WORTH_COMPILING", 100)
    monkeypatch.setattr("policies.sampler.is_compiled", lambda: False)
    used, real = [], kernel.compiled_draws
    monkeypatch.setattr("policies.sampler.compiled_draws", lambda: used.append(1) or real())
    for size, compilations in ((99, 0), (100, 1)):
        sampler.draw(np.zeros(size, dtype=np.intp), np.random.default_rng(0))
        assert len(used) == compilations


def test_a_notebook_shows_what_rounding_costs():
    assert "privacy loss added by rounding" in Sampler([[0.3, 0.7]])._repr_html_()
