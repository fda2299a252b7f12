"""Exact draws: epsilon in whole numbers, by definition and without the code's own boxes; a planted fault per lemma."""

import math
from collections import defaultdict
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest
from chi_square import draws_fit
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import adjacencies, masked_problems, tables, with_all

import policysim as ps
from policies import CATALOGUE, AnyRecord, DecisionProblem, OneFeature, Sensitive, make_policy
from policies.local import KAry
from policies.policy import ClaimError
from policysim.release import exact
from policysim.release.exact import (
    TOTAL,
    ExactPolicy,
    Ratio,
    chosen,
    declared_epsilon,
    exact_policy,
    response_draw,
    response_weights,
    system_words,
    whole_box,
)

EPSILONS = ("0", "1e-6", "0.1", "1", "20", "700", "inf")


@cache
def exp_below(epsilon):
    """A fraction below e^epsilon by a share of 2^-290 at most, by its series; e^50 for more, as 2^62 < e^50."""
    x, total = min(Fraction(epsilon), Fraction(50)), 1 << 300
    term = total
    for i in range(1, 400):
        term = term * x.numerator // (x.denominator * i)
        total += term
    return Fraction(total, 1 << 300)


def cliques(adjacency, n_records):
    """The records that are neighbours of each other, by the definition of each adjacency and nothing else."""
    if isinstance(adjacency, AnyRecord):
        return [list(range(n_records))]
    groups = defaultdict(list)
    for number, record in enumerate(product(*map(range, adjacency.shape))):
        axes = range(len(record))
        hidden = [(axis,) for axis in axes] if isinstance(adjacency, OneFeature) else [adjacency.axes]
        for some in hidden:
            groups[some, tuple(record[axis] for axis in axes if axis not in some)].append(number)
    return list(groups.values())


def fault(weights, adjacency, epsilon):
    """What is wrong with weights, (n, k), as an epsilon-private policy over 2^62; None if nothing is."""
    rows = weights.tolist()
    if any(sum(row) != TOTAL for row in rows):
        return "sum"
    ratio = math.inf if epsilon == "inf" else exp_below(epsilon)
    for clique, column in product(cliques(adjacency, len(rows)), zip(*rows, strict=True)):
        entries = [column[record] for record in clique]
        if ratio != math.inf and max(entries) * ratio.denominator > min(entries) * ratio.numerator:
            return "loss"
    return None


def moved(weights, probabilities):
    """The total variation between each row and what it was made of, at most; a float's rounding is 1e-16."""
    return np.abs(weights - probabilities * float(TOTAL)).sum(axis=1).max() / (2 * TOTAL)


def assert_private(problem, name, epsilon):
    fitted = make_policy(name, epsilon=float(epsilon)).fit(problem)
    declared = epsilon if fitted.policy.guarantee <= float(epsilon) else "inf"
    everybody = np.arange(problem.n_records)
    policy = exact_policy(fitted, declared)
    try:
        weights = policy.weights(everybody)
    except ClaimError:
        # Overlapping neighbours at an epsilon that 2^-40 of mixing, and 53 bits of a float, cannot show.
        assert isinstance(problem.adjacency, OneFeature)
        assert 0 < float(epsilon) < 1e-4
        return
    assert fault(weights, problem.adjacency, declared) is None
    assert moved(weights, fitted.probabilities) <= 1e-12
    if problem.admissible is not None:
        assert not weights[~problem.admissible].any()
    if declared == "inf":
        assert ((weights > 0) == (fitted.probabilities > 0)).all()
    # Rows are made one by one as they are made together.
    assert (policy.weights(everybody[::-2]) == weights[::-2]).all()


@st.composite
def random_problem(draw):
    adjacency, n_records = draw(adjacencies())
    table = draw(tables(n_records))
    return with_all(table, np.full(n_records, 1 / n_records), adjacency)


@settings(max_examples=300)
@given(problem=random_problem() | masked_problems(), epsilon=st.sampled_from(EPSILONS))
def test_every_row_of_every_mechanism_is_private_in_whole_numbers(problem, epsilon):
    for name in CATALOGUE:
        assert_private(problem, name, epsilon)


def extremes_are_private(least, most, epsilon):
    ratio = exp_below(epsilon)
    pairs = zip(least.tolist(), most.tolist(), strict=True)
    return all(high * ratio.denominator <= low * ratio.numerator for low, high in pairs)


def test_all_records_of_covid_are_private_in_whole_numbers():
    covid = ps.build_problem(ps.load_study("covid"))
    fitted = make_policy("exponential-fitted", epsilon=1).fit(covid)
    assert covid.n_records == 1_310_720
    weights = exact_policy(fitted, 1).weights(np.arange(covid.n_records))
    assert (weights.sum(axis=1) == TOTAL).all()
    assert extremes_are_private(weights.min(axis=0), weights.max(axis=0), 1)
    assert moved(weights, fitted.probabilities) <= 1e-12


# Lemma 1: the ratio and the box.


@pytest.mark.parametrize("epsilon", ["0", "1e-30", "1e-6", "0.1", "0.7", "1", "1.25", "20", "42.9"])
def test_a_ratio_is_just_above_its_exponential(epsilon):
    ratio = Ratio.of(Decimal(epsilon))
    value = Fraction(ratio.factor, TOTAL << ratio.shift)
    below = 1 / (exp_below(epsilon) * (1 + Fraction(1, 1 << 280)))
    assert below <= value <= min(1, below * (1 + Fraction(1, 1 << 60)))
    assert ratio.factor <= TOTAL


@given(ceiling=st.integers(0, TOTAL) | st.sampled_from([0, 1, 2, TOTAL - 1, TOTAL]), epsilon=st.sampled_from(EPSILONS))
def test_a_floor_is_the_least_whole_number_that_its_ceiling_allows(ceiling, epsilon):
    ratio = Ratio.of(Decimal(epsilon))
    expected = -(-ceiling * ratio.factor // (TOTAL << ratio.shift))
    floor = int(ratio.floors(np.array([ceiling]))[0])
    assert floor == expected
    # No weight is 0 unless its floor is, and no floor is unless nobody gets the action.
    assert (floor == 0) == (ceiling == 0 or epsilon == "inf")


def two_rows(epsilon, share=0.3):
    """Two rows whose loss is epsilon, in both actions or in the first."""
    low = share / math.exp(epsilon)
    return np.array([[share, 1 - share], [low, 1 - low]])


def problem_of(probabilities, adjacency=None):
    return DecisionProblem(
        np.zeros(probabilities.shape), np.full(len(probabilities), 1 / len(probabilities)), adjacency or AnyRecord()
    )


def policy_of(probabilities, epsilon, adjacency=None):
    return ExactPolicy(problem_of(probabilities, adjacency), probabilities, Decimal(epsilon))


@pytest.mark.parametrize("epsilon", ["1e-6", "0.1", "1", "20", "42"])
def test_a_weight_that_is_one_outside_of_its_box_breaks_epsilon(epsilon):
    for share in np.linspace(0.05, 0.45, 50):
        rows = two_rows(float(epsilon), share)
        floors, ceilings = whole_box(rows.min(axis=0)[:, None], rows.max(axis=0)[:, None], Ratio.of(Decimal(epsilon)))
        assert extremes_are_private(floors[:, 0], ceilings[:, 0], epsilon)
        # A ratio of 61 bits may cost two chances of 2^62 more than e^epsilon asks for.
        assert (Ratio.of(Decimal(epsilon)).floors(ceilings) == floors).all()
        for action in range(2):
            assert not extremes_are_private(floors[action] - 3, ceilings[action], epsilon)


def test_rounding_without_a_box_breaks_epsilon():
    broken = 0
    for share in np.linspace(0.05, 0.45, 100):
        rows = np.rint(two_rows(1.0, share) * TOTAL).astype(np.int64)
        rows[:, 1] = TOTAL - rows[:, 0]
        broken += fault(rows, AnyRecord(), "1") == "loss"
        assert fault(policy_of(two_rows(1.0, share), "1").weights([0, 1]), AnyRecord(), "1") is None
    assert broken > 10


def test_a_ratio_that_is_rounded_to_the_nearest_would_be_noticed(monkeypatch):
    right = Ratio.of(Decimal(1))
    monkeypatch.setattr(Ratio, "of", lambda _: Ratio(right.factor - 8, right.shift))
    shares = np.linspace(0.05, 0.45, 100)
    faults = [fault(policy_of(two_rows(1.0, share), "1").weights([0, 1]), AnyRecord(), "1") for share in shares]
    assert "loss" in faults


# Lemma 2: there is a box.


def test_a_box_without_room_for_a_sum_would_be_noticed(monkeypatch):
    def raw(_, most, ratio):
        ceilings = np.ceil(most * TOTAL).astype(np.int64)
        return ratio.floors(ceilings), ceilings

    monkeypatch.setattr(exact, "whole_box", raw)
    with pytest.raises(ClaimError):
        policy_of(np.full((2, 3), 1 / 3), "0").weights([0, 1])  # three thirds, rounded up, are more than 2^62
    with pytest.raises(ClaimError):
        policy_of(np.array([[0.1, 0.2, 0.7 - 1e-15]] * 2), "0").weights([0, 1])  # and these are less


# Lemma 3: the repair.


def test_a_repair_that_leaves_the_box_would_be_noticed(monkeypatch):
    def first_takes_all(probabilities, floors, ceilings):
        weights = np.clip(np.rint(probabilities * TOTAL).astype(np.int64), floors, ceilings)
        weights[0] += TOTAL - weights.sum(axis=0)
        return weights

    # The row of whom the first action is as likely as it may be sums to a little less than 1, as those of floats do.
    tables_of_rows = [two_rows(1.0, share) * [[1 - 1e-13], [1]] for share in np.linspace(0.05, 0.45, 10)]
    assert all(fault(policy_of(rows, "1").weights([0, 1]), AnyRecord(), "1") is None for rows in tables_of_rows)
    monkeypatch.setattr(exact, "rows_in_box", first_takes_all)
    assert all(fault(policy_of(rows, "1").weights([0, 1]), AnyRecord(), "1") == "loss" for rows in tables_of_rows)


# Lemma 4: what moves.


def test_a_table_that_loses_more_than_rounding_is_refused():
    rows = two_rows(1.0)  # the second has a first action of .11, which has to rise by .11 of what epsilon is less
    assert policy_of(rows, Decimal(1) - Decimal("4e-12")).weights([0, 1]).shape == (2, 2)
    with pytest.raises(ClaimError):
        policy_of(rows, Decimal(1) - Decimal("6e-12")).weights([0])
    with pytest.raises(ClaimError, match="to keep to ε they would have to move by more than rounding"):
        policy_of(rows, Decimal(1) - Decimal("1e-10")).weights([0, 1])
    with pytest.raises(ClaimError):
        policy_of(np.eye(2), "20").weights([0])
    assert policy_of(np.eye(2), "700").weights([0]).tolist() == [[TOTAL - 1, 1]]


def test_a_table_that_moves_without_being_refused_would_be_noticed(monkeypatch):
    monkeypatch.setattr(exact, "MOST_MOVED", 1.0)
    rows = two_rows(2.0)
    weights = policy_of(rows, "1").weights([0, 1])
    assert fault(weights, AnyRecord(), "1") is None  # privacy does not rest on it
    assert moved(weights, rows) > 0.01


def test_whether_a_record_is_refused_depends_on_its_public_class_alone():
    """Else a refusal would tell which of the records it was."""
    rows = np.concatenate([[[0.5, 0.5]] * 3, two_rows(1.0), [[0.4, 0.6]]])
    policy = policy_of(rows, "0.9", Sensitive((2, 3), (1,)))
    assert policy.weights([0, 1, 2]).tolist() == [[TOTAL // 2] * 2] * 3
    for record in (3, 4, 5):  # the last is near neither of the others
        with pytest.raises(ClaimError):
            policy.draw([record])


def test_rows_that_are_no_probabilities_are_refused():
    # Five ones are 1 again, in 64 bits of 2^62 each.
    for row in ([0.5, 0.5 + 3e-12], [0.5, 0.4], [math.nan, 1.0], [-0.1, 1.1], [3e18, 1.0], [0.0, 0.0], [1.0] * 5):
        for epsilon in ("0", "1", "inf"):
            with pytest.raises(ClaimError, match="no probabilities"):
                policy_of(np.array([row, row]), epsilon).weights([0])


# Lemma 5: the draw.


def first_misdrawn(choose, cuts):
    """The first word at an end of an action's part for which another action is chosen; None if there is none."""
    bounds = [0, *sorted(cuts), TOTAL]
    weights = np.diff(bounds)[:, None]
    for action, (start, end) in enumerate(pairwise(bounds)):
        words = np.array([start, (start + end) // 2, end - 1] if start < end else [], dtype=np.uint64)
        wrong = words[choose(np.repeat(weights, len(words), axis=1), words) != action]
        if wrong.size:
            return int(wrong[0])
    return None


@settings(max_examples=50)
@given(cuts=st.lists(st.integers(0, TOTAL), min_size=1, max_size=5))
def test_an_action_is_chosen_by_exactly_its_weight_of_words(cuts):
    assert first_misdrawn(chosen, cuts) is None


def test_a_draw_that_is_off_by_one_word_would_be_noticed():
    def one_late(weights, words):
        return (words.view(np.int64) > np.cumsum(weights, axis=0)[:-1]).sum(axis=0)

    def by_floats(weights, words):
        return (words / TOTAL >= np.cumsum(weights / TOTAL, axis=0)[:-1]).sum(axis=0)

    assert first_misdrawn(one_late, [5, TOTAL // 2]) == 5
    assert first_misdrawn(by_floats, [5, TOTAL // 2]) == TOTAL // 2 - 1


def test_a_weight_of_one_is_reached_by_one_word():
    policy = policy_of(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), "700")
    assert policy.weights([0]).tolist() == [[1, TOTAL - 2, 1]]
    words = np.array([0, 1, TOTAL - 2, TOTAL - 1], dtype=np.uint64)
    assert policy.draw([0] * 4, lambda size: words[:size]).tolist() == [0, 1, 1, 2]


def test_a_million_draws_follow_the_weights():
    rng, rows = np.random.default_rng(5), np.repeat(np.arange(10), 100_000)
    policy = policy_of(rng.dirichlet(np.ones(4), 10), "inf")
    actions = policy.draw(rows, lambda size: rng.integers(TOTAL, size=size, dtype=np.uint64))
    weights = policy.weights(np.arange(10)) / TOTAL
    assert draws_fit(weights, rows, actions)
    assert not draws_fit(weights * 0.99 + 0.01 / 4, rows, actions)


def test_the_operating_systems_words_have_62_bits_and_differ():
    """By chance one run in 10^9 fails."""
    words = system_words(100_000)
    assert int(words.max()) < TOTAL
    ones = (words[:, None] >> np.arange(62, dtype=np.uint64) & 1).mean(axis=0)
    assert np.abs(ones - 0.5).max() < 6.5 * 0.5 / math.sqrt(100_000)
    policy = policy_of(np.full((1, 4), 0.25), "1")
    first, second = policy.draw([0] * 1000), policy.draw([0] * 1000)
    assert (first != second).any()
    assert np.bincount(first, minlength=4).min() > 100


# Lemma 6: neighbours that overlap.


def furthest_apart(table, adjacency):
    """The largest and the smallest entry of the action and the neighbours between whom the ratio is largest."""
    pairs = []
    for clique, column in product(cliques(adjacency, len(table)), table.T.tolist()):
        entries = [column[record] for record in clique]
        pairs.append((max(entries), min(entries)))
    return max(pairs, key=lambda pair: Fraction(*map(Fraction, pair)))


@pytest.fixture
def overlapping():
    """A table, its adjacency, its whole numbers, and of these the two furthest apart among neighbours."""
    rng, adjacency = np.random.default_rng(6), OneFeature((2, 3))
    odds = np.exp(rng.uniform(-1, 1, (2, 1, 3)) + rng.uniform(-1, 1, (3, 3))).reshape(6, 3)
    table = odds / odds.sum(axis=1, keepdims=True)
    loss = math.log(np.divide(*furthest_apart(table, adjacency)))
    assert loss + 0.2 < np.log(table.max(axis=0) / table.min(axis=0)).max()  # so there is no box
    weights = policy_of(table, str(loss + 1e-6), adjacency).weights(np.arange(6))
    assert moved(weights, table) <= 1e-12
    return table, adjacency, *map(Decimal, furthest_apart(weights, adjacency))


def test_overlapping_neighbours_are_compared_to_the_last_chance(overlapping):
    table, adjacency, most, least = overlapping
    precise = Context(prec=50)
    enough, too_little = (str(precise.ln(precise.divide(most, least + off))) for off in (-3, Decimal("0.5")))
    weights = policy_of(table, enough, adjacency).weights(np.arange(6))
    assert fault(weights, adjacency, enough) is None
    assert fault(weights, adjacency, too_little) == "loss"
    with pytest.raises(ClaimError, match="differ in one feature"):
        policy_of(table, too_little, adjacency).weights([0])


def test_overlapping_neighbours_without_a_comparison_would_be_noticed(overlapping, monkeypatch):
    table, adjacency, most, least = overlapping
    too_little = str((most / least).ln() - Decimal("1e-9"))
    monkeypatch.setattr(exact, "ClaimError", Warning)  # so that no box holds
    monkeypatch.setattr(Ratio, "floors", lambda _, ceilings: np.zeros_like(ceilings))
    passed = policy_of(table, too_little, adjacency).weights(np.arange(6))
    assert fault(passed, adjacency, too_little) == "loss"


# Randomised response (lemma 7).


@given(n_values=st.integers(2, 10_000), epsilon=st.floats(1e-6, 700))
def test_randomised_response_keeps_to_epsilon_and_to_its_probabilities(n_values, epsilon):
    truth, other = response_weights(n_values, declared_epsilon(epsilon))
    assert truth + (n_values - 1) * other == TOTAL
    ratio = exp_below(min(Fraction(epsilon), Fraction(repr(epsilon))))
    assert truth <= ratio * other
    channel = KAry(n_values, epsilon)
    assert abs(truth / TOTAL - channel.truth) <= 1e-12
    assert abs(other / TOTAL - channel.lie[0]) <= 1e-12
    # One chance less for each lie breaks it.
    assert truth + n_values - 1 > ratio * (other - 1)


def test_each_report_has_its_weight_of_words():
    _, other = response_weights(4, Decimal(1))
    ends = np.array([0, other - 1, other, 2 * other - 1, 2 * other, 3 * other - 1, 3 * other, TOTAL - 1], np.uint64)
    for value, lies in enumerate(([1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2])):
        reports = response_draw([value] * 8, 4, "1", lambda size: ends[:size])
        assert reports.tolist() == [*np.repeat(lies, 2), value, value]


def test_a_million_reports_follow_the_channel_also_with_ten_thousand_values():
    rng = np.random.default_rng(7)
    values = np.repeat(np.arange(4), 250_000)
    reports = response_draw(values, 4, 1.0, lambda size: rng.integers(TOTAL, size=size, dtype=np.uint64))
    assert draws_fit(KAry(4, 1.0).matrix, values, reports)
    assert not draws_fit(KAry(4, 1.1).matrix, values, reports)
    many = np.full(100_000, 7_654)
    kept = (response_draw(many, 10_000, 9.0) == many).mean()
    assert kept == pytest.approx(KAry(10_000, 9.0).truth, abs=6.5 * 0.5 / math.sqrt(100_000))


@pytest.mark.parametrize("epsilon", [0, "1e-20", "inf"])
def test_randomised_response_refuses_what_whole_numbers_cannot_do(epsilon):
    with pytest.raises(ValueError, match="infinite, or too small"):
        response_draw([0, 1], 4, epsilon)


# What is declared.


def test_epsilon_is_the_decimal_that_is_declared():
    assert declared_epsilon(0.1) == declared_epsilon("0.1") == Decimal("0.1") < Decimal.from_float(0.1)
    assert declared_epsilon(0.3) == Decimal.from_float(0.3) < Decimal("0.3")
    assert declared_epsilon(np.float64(0.1)) == Decimal("0.1")
    assert declared_epsilon(Decimal("0.3")) == Decimal("0.3")
    assert declared_epsilon(math.inf) == declared_epsilon("inf") == Decimal("Infinity")
    assert declared_epsilon(2) == 2


def test_no_records_draw_nothing_and_what_is_no_record_number_is_refused():
    policy = policy_of(np.full((2, 2), 0.5), "1")
    assert policy.draw([]).shape == (0,)
    assert policy.weights([]).shape == (0, 2)
    for records in ([-1], [2], [0.5], [[0]]):
        with pytest.raises(ValueError, match="indices must be"):
            policy.draw(records)
