"""A day and a night of treatment, simulated and averaged, against the definitions taken record by record."""

import itertools

import numpy as np
import pytest
from brute_force import SCENARIOS, ByHand, scenario
from simulated_days import simulated, tables

import envs
from envs.backup import FLAGS_AT_ONCE, Backup
from envs.cohort import PatientSampler
from envs.dynamics import GOLDEN, exp_of, middles, random_numbers
from envs.treatment_response import Course
from envs.ward import WORD

DAYS = 3
EDGE = 1e-9


@pytest.fixture(scope="module", params=SCENARIOS)
def by_hand(request, tmp_path_factory):
    return ByHand(scenario(request.param, tmp_path_factory.mktemp("scenarios")), DAYS)


@pytest.fixture(scope="module")
def matrices(by_hand):
    """P(next morning where the stay goes on | morning, action), dense."""
    return by_hand.matrices()


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    return ByHand(scenario("chain", tmp_path_factory.mktemp("chain")), DAYS)


def course_of(by_hand, days=DAYS):
    return Course(envs.ResponseModel(by_hand.scenario), days)


def continuation_error(course, matrices):
    values = np.random.default_rng(1).normal(size=matrices.shape[1])
    return np.abs(Backup(course).continuation(values) - np.einsum("axz,z->xa", matrices, values)).max()


def push_error(course, matrices):
    rng = np.random.default_rng(2)
    start = rng.dirichlet(np.ones(matrices.shape[1]))
    policy = rng.dirichlet(np.ones(len(matrices)), size=matrices.shape[1])
    wanted = np.einsum("x,xa,axz->z", start, policy, matrices)
    return np.abs(Backup(course).push(start, policy) - wanted).max()


# The exact expectations.


def test_continuation_is_the_mean_over_the_dense_matrix(by_hand, matrices):
    # Sums of at most 2^9 products of numbers near 1.
    assert continuation_error(course_of(by_hand), matrices) <= 1e-13


def test_push_goes_through_the_dense_matrix(by_hand, matrices):
    assert push_error(course_of(by_hand), matrices) <= 1e-13


def test_the_scenarios_cover_what_they_should(tmp_path):
    chain, fixed, nine = (scenario(name, tmp_path) for name in ("chain", "fixed-hazard", "nine"))
    assert course_of(ByHand(chain, DAYS)).night_order == [2, 1, 0]
    hazard = course_of(ByHand(fixed, DAYS)).response.hazard("death", 0)
    flags = [fixed.space.axis(flag) for flag in fixed.transient]
    assert all(table.shape[axis] == 1 for table in (hazard.level, hazard.slope) for axis in flags)
    assert len(nine.transient) > FLAGS_AT_ONCE


def test_an_onset_that_looks_at_flags_which_have_already_appeared_would_be_noticed(chain):
    course = course_of(chain)
    course.__dict__["night_order"] = course.night_order[::-1]
    assert continuation_error(course, chain.matrices()) > 1e-3
    assert push_error(course, chain.matrices()) > 1e-4


def test_a_hazard_that_is_not_spread_over_the_days_would_be_noticed(chain):
    course = course_of(chain)
    course.response = envs.ResponseModel(chain.scenario)
    assert continuation_error(course, chain.matrices()) > 1e-3
    assert push_error(course, chain.matrices()) > 1e-4
    assert joint_error(tables(course), chain) > 1e-3


def test_a_ratio_that_is_not_applied_on_each_day_would_be_noticed(tmp_path, monkeypatch):
    language = ByHand(scenario("language", tmp_path), DAYS)
    monkeypatch.setattr(Backup, "_hazard_of", property(lambda _: [0] * 4, lambda *_: None), raising=False)
    assert continuation_error(course_of(language), language.matrices()) > 1e-4
    assert push_error(course_of(language), language.matrices()) > 1e-5


def test_a_night_before_the_day_would_be_noticed(chain):
    nights = ByHand(chain.scenario, DAYS)
    actual = nights.matrices()
    day_only = ByHand(chain.scenario, DAYS)
    day_only.appears = lambda values, flag: values[flag]
    records = list(nights.records())
    first = np.zeros(actual.shape[1:])
    for record, values in enumerate(records):
        onward = nights.among(values)
        first[record, onward] = nights.night(values)[list(onward).index(record)]
    swapped = np.einsum("xy,ayz->axz", first, day_only.matrices())
    assert continuation_error(course_of(chain), swapped) > 1e-3


def test_a_stay_that_goes_on_after_full_recovery_would_be_noticed(chain, monkeypatch):
    # A place that takes nothing out: an empty slice.
    monkeypatch.setattr(Backup, "_recovered", (slice(0, 0),))
    assert continuation_error(course_of(chain), chain.matrices()) > 1e-3
    assert push_error(course_of(chain), chain.matrices()) > 1e-4


# The simulation, integrated exactly: each uniform number on both sides of everything that it is compared with.


def cells(limits):
    """Points just inside both ends of every interval between the limits in [0, 1), and their probabilities."""
    edges = np.unique(np.clip([0.0, *limits, 1.0], 0, 1))
    edges = edges[np.concatenate([[True], np.diff(edges) > 4 * EDGE])]
    width = np.diff(edges)
    return np.concatenate([edges[:-1] + EDGE, edges[1:] - EDGE]), np.concatenate([width, width]) / 2


def limits_of(by_hand, values, action):
    """What each number of a patient's day may be compared with, by the definitions."""
    rows = [{**values, **dict(zip(by_hand.flags, row, strict=True))} for row in by_hand.evenings.tolist()]
    limits = []
    for flag in by_hand.flags:
        absent = 1 - by_hand.present(values, action, flag)
        limits.append([absent, *{absent * (1 - by_hand.appears(row, flag)) for row in rows if not row[flag]}])
    events = [1 - by_hand.event(values, action, name) for name in by_hand.scenario.events]
    return [*limits, *events, 1 - by_hand.day(values, action)[1]]


def joint(t, by_hand, values, action):
    """The exact distribution of (outcomes, next morning's record) of a record under an action: {key: probability}."""
    grid = [cells(limits) for limits in limits_of(by_hand, values, by_hand.scenario.actions[action])]
    uniforms = np.array(list(itertools.product(*(points for points, _ in grid))))
    weight = np.prod(list(itertools.product(*(widths for _, widths in grid))), axis=1)
    record, n = by_hand.scenario.space.record(values), len(uniforms)
    outcomes, records = simulated(t, by_hand.scenario, np.full(n, record), np.full(n, action), uniforms)
    key = records * 2 ** outcomes.shape[1] + outcomes @ (2 ** np.arange(outcomes.shape[1]))
    keys, place = np.unique(key, return_inverse=True)
    return dict(zip(keys.tolist(), np.bincount(place, weight).tolist(), strict=True))


def joint_by_hand(by_hand, values, action):
    """The same from the definitions."""
    likely, dies = by_hand.day(values, by_hand.scenario.actions[action])
    night, onward = by_hand.night(values), by_hand.among(values)
    hazards = np.array(
        [*(by_hand.event(values, by_hand.scenario.actions[action], e) for e in by_hand.scenario.events), dies]
    )
    table = {}
    powers = 2 ** np.arange(len(by_hand.scenario.outcomes))
    came = list(itertools.product((0, 1), repeat=len(hazards)))
    for evening, happened, morning in itertools.product(range(len(likely)), came, range(len(likely))):
        each = np.where(happened, hazards[:, evening], 1 - hazards[:, evening])
        # There is no night after the end of a stay.
        goes_on = by_hand.evenings[evening].any() and not happened[-1]
        chance = likely[evening] * each.prod() * (night[evening, morning] if goes_on else morning == evening)
        outcome = np.array([*by_hand.evenings[evening], *happened]) @ powers
        key = int(onward[morning] * 2 * powers[-1] + outcome)
        table[key] = table.get(key, 0.0) + chance
    return table


def joint_error(t, by_hand):
    """The largest difference of probability over all records, actions, outcomes and next mornings."""
    worst = 0.0
    for values, action in itertools.product(by_hand.records(), range(len(by_hand.scenario.actions))):
        found, wanted = joint(t, by_hand, values, action), joint_by_hand(by_hand, values, action)
        assert sum(found.values()) == pytest.approx(1, abs=1e-9)
        keys = found.keys() | wanted.keys()
        worst = max(worst, *(abs(found.get(key, 0.0) - wanted.get(key, 0.0)) for key in keys))
    return worst


@pytest.mark.parametrize("name", ["chain", "fixed-hazard", "events"])
def test_a_simulated_day_and_night_have_exactly_the_distribution_of_the_definitions(name, tmp_path):
    by_hand = ByHand(scenario(name, tmp_path), DAYS)
    # Intervals narrower than 4e-9 are left out.
    assert joint_error(tables(course_of(by_hand)), by_hand) <= 1e-7


def test_a_night_in_which_nothing_appears_would_be_noticed(chain):
    t = tables(course_of(chain))
    assert joint_error(t._replace(least=np.ones(len(t.least))), chain) > 1e-3


def test_an_onset_that_looks_at_no_flag_of_the_evening_would_be_noticed(chain):
    t = tables(course_of(chain))
    blind = t.of_state.copy()
    blind[:, t.group[1 : 1 + len(t.least)]] = blind[:1, t.group[1 : 1 + len(t.least)]]
    assert joint_error(t._replace(of_state=blind), chain) > 1e-3


def test_a_patient_fares_alone_as_among_many(by_hand):
    t, rng, n = tables(course_of(by_hand)), np.random.default_rng(5), 4_000
    records, actions = rng.integers(0, by_hand.scenario.space.size, n), rng.integers(0, 2, n)
    uniforms = rng.random((n, len(by_hand.scenario.outcomes)))
    outcomes, mornings = simulated(t, by_hand.scenario, records, actions, uniforms)
    for start in (0, 17, n - 1):
        one = slice(start, start + 1)
        alone = simulated(t, by_hand.scenario, records[one], actions[one], uniforms[one])
        assert np.array_equal(alone[0], outcomes[one])
        assert np.array_equal(alone[1], mornings[one])


def test_an_onset_that_reads_every_fixed_feature_is_looked_up(covid, covid_response):
    course = Course(covid_response, DAYS)
    flag = covid.transient.index("fever")
    axis = covid.space.axis("fever")
    shape = [
        1 if covid.space.names[each] in covid.transient else length for each, length in enumerate(covid.space.shape)
    ]
    course.onset[flag] = np.random.default_rng(6).random(shape)
    rng, n = np.random.default_rng(7), 5_000
    codes = covid.space.codes(rng.integers(0, covid.space.size, n))
    codes[:, axis], codes[:, covid.space.axis("taste")] = 0, 1  # who keeps a flag stays for the night
    uniforms = np.full((n, len(covid.outcomes)), 0.4)
    uniforms[:, -1] = 0.0
    uniforms[:, covid.transient.index("taste")] = 1 - 1e-9
    _, records = simulated(tables(course), covid, covid.space.indices(codes), np.zeros(n, dtype=np.intp), uniforms)
    # Nothing makes a fever by day under no treatment; by night it appears where 0.4 >= 1 - onset.
    full = np.broadcast_to(course.onset[flag], covid.space.shape)
    assert np.array_equal(covid.space.codes(records)[:, axis] == 1, full[tuple(codes.T)] >= 0.6)


# Random numbers.


def test_random_numbers_are_those_of_splitmix64():
    # Of the seed 1234567, as published with Vigna's reference code; the first comes after one step.
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]
    begin = 1234567 + GOLDEN & (1 << 64) - 1
    assert random_numbers(begin, np.zeros(1, dtype=int), 5, 5)[:, 0].tolist() == known
    # Places have them in turn.
    assert random_numbers(begin, np.arange(2), 2, 2).T.ravel().tolist() == known[:4]
    assert random_numbers(begin, np.array([1]), 1, 2).tolist() == [[known[2]]]


def test_middles_are_uniform_and_independent_between_places_times_and_outcomes(chain, too_far):
    t, n = tables(course_of(chain)), 40_000
    first = middles(5, np.arange(n), t) / WORD
    later = middles(5 + GOLDEN * n * t.n_numbers & (1 << 64) - 1, np.arange(n), t) / WORD
    assert (first > 0).all() and (first < 1).all()
    for one, other in ((first[0], first[1]), (first[0], np.roll(first[0], 1)), (first[0], later[0])):
        counts = np.histogram2d(one, other, bins=20, range=[[0, 1], [0, 1]])[0]
        assert not too_far(counts, np.full(400, n / 400))
    assert too_far(np.histogram2d(first[0], first[0], bins=20, range=[[0, 1], [0, 1]])[0], np.full(400, n / 400))
    # The middles of equal intervals, so that 0 and 1 are met exactly.
    assert np.array_equal(first * 2**33 % 2, np.ones_like(first))


@pytest.mark.parametrize("days", [0, -1, 1.0, True, "2", None])
def test_a_course_takes_a_whole_number_of_days(chain, days):
    with pytest.raises(ValueError, match="horizon must be a whole number of days >= 1, got horizon="):
        course_of(chain, days)


# Patients drawn through the guide table.


@pytest.mark.parametrize("n_records", [1, 2, 3, 7, 100, 5_000])
def test_the_guide_table_finds_what_a_search_of_the_cumulative_sum_finds(n_records):
    rng = np.random.default_rng(n_records)
    prior = rng.dirichlet(np.full(n_records, 0.05)) * (rng.random(n_records) < 0.7)
    prior[rng.integers(n_records)] += 0.1
    cumulative = np.cumsum(prior)
    # Evenly, and on both sides of every boundary of records and of intervals.
    edges = np.concatenate([cumulative / cumulative[-1], np.arange(256) / 256])
    uniforms = np.concatenate([rng.random(10_000), edges, np.nextafter(edges, 0), np.nextafter(edges, 1)])
    uniforms = uniforms[uniforms < 1]
    wanted = np.searchsorted(cumulative, uniforms * cumulative[-1], side="right")
    wanted = np.minimum(wanted, np.flatnonzero(prior)[-1])
    assert np.array_equal(PatientSampler.of(prior).records(uniforms), wanted)


def test_the_exponential_of_a_hazard_is_that_of_numpy_to_its_last_bits():
    exponents = np.concatenate([-np.geomspace(1e-18, 63.9, 20_000), -np.arange(2_000) / 512, [0.0, -0.0]])
    wanted = np.exp(exponents)
    # A rounding of the table, one of the series, and one of their product.
    assert np.abs(exp_of(exponents) / wanted - 1).max() <= 4e-16
    assert exp_of(np.array([0.0, -1e3, -np.inf])).tolist() == [1.0, np.exp(-64), np.exp(-64)]
