"""A day and a night of treatment, simulated and averaged, against the definitions taken record by record."""

import itertools

import numpy as np
import pytest
from brute_force import SCENARIOS, ByHand, scenario

import envs
from envs.backup import FLAGS_AT_ONCE, Backup
from envs.cohort import PatientSampler
from envs.dynamics import Dynamics, FlagSum
from envs.treatment_response import Course, exp_of

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


def test_two_days_back_are_the_mean_over_every_path(by_hand, matrices):
    backup, rewards = Backup(course_of(by_hand)), by_hand.rewards()
    uniform = np.full(rewards.shape, 1 / rewards.shape[1])
    value = np.zeros(len(rewards))
    for _ in range(2):
        value = (uniform * (rewards + backup.continuation(value))).sum(axis=1)
    # Every path of a first action, a next record and a second action.
    first = rewards.mean(axis=1)
    second = (matrices.mean(axis=0) * first).sum(axis=1)
    assert np.abs(value - first - second).max() <= 1e-12


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
    assert joint_error(course, chain) > 1e-3


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


def joint(dynamics, by_hand, values, action):
    """The exact distribution of (outcomes, next morning's record) of a record under an action: {key: probability}."""
    grid = [cells(limits) for limits in limits_of(by_hand, values, by_hand.scenario.actions[action])]
    uniforms = np.array(list(itertools.product(*(points for points, _ in grid))))
    weight = np.prod(list(itertools.product(*(widths for _, widths in grid))), axis=1)
    space = by_hand.scenario.space
    codes = np.tile(space.codes([space.record(values)]).astype(np.int16), (len(uniforms), 1))
    moved = dynamics.transition(codes, np.full(len(uniforms), action), uniforms)
    key = space.indices(moved.codes) * 2 ** moved.outcomes.shape[1]
    key += moved.outcomes @ (2 ** np.arange(moved.outcomes.shape[1]))
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
        chance = likely[evening] * each.prod() * night[evening, morning]
        outcome = np.array([*by_hand.evenings[evening], *happened]) @ powers
        key = int(onward[morning] * 2 * powers[-1] + outcome)
        table[key] = table.get(key, 0.0) + chance
    return table


def joint_error(course, by_hand):
    """The largest difference of probability over all records, actions, outcomes and next mornings."""
    dynamics, worst = Dynamics(course), 0.0
    for values, action in itertools.product(by_hand.records(), range(len(by_hand.scenario.actions))):
        found, wanted = joint(dynamics, by_hand, values, action), joint_by_hand(by_hand, values, action)
        assert sum(found.values()) == pytest.approx(1, abs=1e-9)
        keys = found.keys() | wanted.keys()
        worst = max(worst, *(abs(found.get(key, 0.0) - wanted.get(key, 0.0)) for key in keys))
    return worst


@pytest.mark.parametrize("name", ["chain", "fixed-hazard", "events"])
def test_a_simulated_day_and_night_have_exactly_the_distribution_of_the_definitions(name, tmp_path):
    by_hand = ByHand(scenario(name, tmp_path), DAYS)
    # Intervals narrower than 4e-9 are left out.
    assert joint_error(course_of(by_hand), by_hand) <= 1e-7


def test_a_simulated_night_before_all_flags_are_looked_at_would_be_noticed(chain, monkeypatch):
    def one_after_the_other(self, record, absence, draws, outcomes):
        record[self.flag_axes] = outcomes[:-1]
        for flags, stays_away in self._nights[::-1]:
            record[self.flag_axes[flags]] = draws[flags] >= stays_away.at(record) * absence[flags]

    monkeypatch.setattr(Dynamics, "_night", one_after_the_other)
    assert joint_error(course_of(chain), chain) > 1e-3


def test_an_onset_drawn_from_the_whole_number_again_would_be_noticed(chain, monkeypatch):
    # As if u < onset decided the night, though the day has already used u.
    def again(self, record, absence, draws, outcomes):  # noqa: ARG001 - stands in for the other
        record[self.flag_axes] = outcomes[:-1]
        limits = [stays_away.at(record) for _, stays_away in self._nights]
        for (flags, _), limit in zip(self._nights, limits, strict=True):
            record[self.flag_axes[flags]] |= draws[flags] >= limit

    monkeypatch.setattr(Dynamics, "_night", again)
    assert joint_error(course_of(chain), chain) > 1e-3


def test_many_flags_and_many_patients_have_the_frequencies_of_the_dense_matrix(tmp_path):
    by_hand = ByHand(scenario("nine", tmp_path), DAYS)
    rng, n = np.random.default_rng(3), 200_000  # several times PATIENTS_AT_ONCE, and no multiple of it
    values = by_hand.scenario.space.record({"f1": 1, "f2": 1, "f5": 1, "f9": 1, "old": "yes"})
    dynamics = Dynamics(course_of(by_hand))
    codes = np.tile(by_hand.scenario.space.codes([values]).astype(np.int16), (n, 1))
    moved = dynamics.transition(codes, np.ones(n, dtype=np.intp), rng.random((n, dynamics.n_draws)))
    goes_on = moved.outcomes[:, :-1].any(axis=1) & ~moved.outcomes[:, -1]
    seen = np.bincount(by_hand.scenario.space.indices(moved.codes)[goes_on], minlength=by_hand.scenario.space.size)
    wanted = by_hand.matrices()[1, values]
    # Flags one by one, in standard errors: P(|z| > 5) is 6e-7 for each of the 10 checks.
    for flag in by_hand.flags:
        present = by_hand.scenario.space.groups(flag)[0] == 1
        chance = wanted[present].sum()
        assert abs(seen[present].sum() - n * chance) <= 5 * np.sqrt(n * chance * (1 - chance) + 1e-9)
    chance = wanted.sum()
    assert abs(seen.sum() - n * chance) <= 5 * np.sqrt(n * chance * (1 - chance))


# The pure function.


def test_transition_changes_none_of_what_it_is_given(chain):
    dynamics, rng = Dynamics(course_of(chain)), np.random.default_rng(4)
    codes = np.asfortranarray(chain.scenario.space.codes(rng.integers(0, 16, 50)).astype(np.int16))
    given = codes, rng.integers(0, 3, 50), rng.random((50, dynamics.n_draws))
    before = [array.copy() for array in given]
    one, two = dynamics.transition(*given), dynamics.transition(*given)
    assert all(np.array_equal(array, copy) for array, copy in zip(given, before, strict=True))
    assert np.array_equal(one.codes, two.codes)
    assert not np.shares_memory(one.codes, codes)


def test_a_patient_fares_alone_as_among_many(by_hand):
    dynamics, rng, n = Dynamics(course_of(by_hand)), np.random.default_rng(5), 40_000
    records = rng.integers(0, by_hand.scenario.space.size, n)
    codes = by_hand.scenario.space.codes(records).astype(np.int16)
    actions, uniforms = rng.integers(0, 2, n), rng.random((n, dynamics.n_draws))
    together = dynamics.transition(codes, actions, uniforms)
    for start in (0, 16_383, 16_384, n - 1):
        one = slice(start, start + 1)
        alone = dynamics.transition(codes[one], actions[one], uniforms[one])
        assert np.array_equal(alone.codes, together.codes[one])
        assert np.array_equal(alone.outcomes, together.outcomes[one])


def test_a_scenario_of_many_levels_is_looked_up_with_larger_integers(covid, covid_response):
    # The onset of a flag that reads every fixed feature: far more than 2^15 numbers.
    course = Course(covid_response, 2)
    flag = covid.transient.index("fever")
    axis = covid.space.axis("fever")
    shape = [1 if covid.space.names[a] in covid.transient else n for a, n in enumerate(covid.space.shape)]
    course.onset[flag] = np.random.default_rng(6).random(shape)
    dynamics, rng = Dynamics(course), np.random.default_rng(7)
    codes = covid.space.codes(rng.integers(0, covid.space.size, 5_000)).astype(np.int16)
    codes[:, axis] = 0
    moved = dynamics.transition(codes, np.zeros(5_000, dtype=np.intp), np.full((5_000, dynamics.n_draws), 0.4))
    # Nothing makes a fever by day under no treatment; by night it appears where 0.4 >= 1 - onset.
    full = np.broadcast_to(course.onset[flag], covid.space.shape)
    assert np.array_equal(moved.codes[:, axis] == 1, full[tuple(codes.T)] >= 0.6)


def test_sums_over_flags_are_plain_sums():
    rng = np.random.default_rng(8)
    weights = np.where(rng.random(30) < 0.2, 0.0, rng.normal(size=30))  # more than are looked up at once
    present = rng.random((200, 30)) < 0.5
    assert np.abs(FlagSum(weights).of(present) - present @ weights).max() <= 1e-13
    assert np.array_equal(FlagSum(np.zeros(30)).of(present), np.zeros(200))


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
    assert np.abs(exp_of(exponents.copy()) / wanted - 1).max() <= 4e-16
    assert exp_of(np.array([0.0, -1e3, -np.inf])).tolist() == [1.0, np.exp(-64), np.exp(-64)]
