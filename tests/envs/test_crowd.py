"""Patients as counts, against the distributions and moments that the definitions give record by record."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from brute_force import CHAIN, SCENARIOS, ByHand, scenario

import envs
from envs import crowd_days
from envs.crowd import Crowd, CrowdCells, Tally
from envs.crowd_days import CountedDays
from envs.treatment_response import Course

DAYS = 3
# Whoever has one of two conditions is as ill as whoever has the other one.
ALIKE = CHAIN.replace(
    "fever = {}\n",
    'asthma = { levels = ["no", "yes"], shares = [0.7, 0.3] }\nfever = {}\n'
    'gout = { levels = ["no", "yes"], shares = [0.5, 0.5] }\n',
    1,
).replace("old = [1, 3]\n", "old = [1, 3]\nasthma = [1, 2]\ngout = [1, 2]\n")


@pytest.fixture(scope="module", params=[*SCENARIOS, "alike"])
def by_hand(request, tmp_path_factory):
    return small_one(request.param, tmp_path_factory)


def small_one(name, tmp_path_factory):
    folder = tmp_path_factory.mktemp("scenarios")
    if name in SCENARIOS:
        return ByHand(scenario(name, folder), DAYS)
    (folder / "alike.toml").write_text(ALIKE, encoding="utf-8")
    return ByHand(envs.load_scenario(folder / "alike.toml"), DAYS)


@pytest.fixture(scope="module")
def alike(tmp_path_factory):
    return small_one("alike", tmp_path_factory)


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    return ByHand(scenario("chain", tmp_path_factory.mktemp("chain")), DAYS)


def days_of(by_hand):
    course = Course(envs.ResponseModel(by_hand.scenario), by_hand.days)
    return CountedDays(course, envs.default_utility(by_hand.scenario), policies_of(by_hand))


@cache
def policies_of(by_hand, seed=1):
    """A distribution over the treatments that a record may get, another one on each day; the last one is then rare.

    The same for records that differ in which of two conditions they have, where these are alike.
    """
    rng, actions = np.random.default_rng(seed), by_hand.scenario.actions
    allowed = np.array([[by_hand.allowed(values, action) for action in actions] for values in by_hand.records()])
    tables = [rng.dirichlet(np.ones(len(actions)), size=len(allowed)) * allowed for _ in range(by_hand.days)]
    tables[-1][:, -1] *= 0.01
    same = [by_hand.scenario.space.record(sorted_conditions(values)) for values in by_hand.records()]
    return [(table / table.sum(axis=1, keepdims=True))[same] for table in tables]


def sorted_conditions(values):
    """The record, or the one like it that has gout rather than asthma."""
    swaps = values.get("asthma") == "yes" and values.get("gout") == "no"
    return {**values, "asthma": "no", "gout": "yes"} if swaps else values


def treated(by_hand, patients, rng, days=DAYS, ward=None):
    """A crowd that is admitted and treated for some days; those left on the next morning, and what was counted."""
    ward, tally = ward or days_of(by_hand), Tally.of(by_hand.scenario)
    crowd = ward.cells.crowd(Crowd.admitted(by_hand.scenario, patients, rng))
    for day, table in enumerate(policies_of(by_hand)[:days], 1):
        crowd = ward.day(enumerate(crowd.shared(ward.cells.table(table), rng)), tally, rng, last=day == by_hand.days)
        assert tally.ended + crowd.size == patients  # nobody is lost, and nobody comes twice
        assert (crowd.counts >= 0).all()
    return crowd, tally


# Where patients are.


def test_as_many_have_each_record_as_the_prior_says(by_hand, too_far):
    rng, wanted = np.random.default_rng(2), envs.prior(by_hand.scenario)
    seen = Crowd.admitted(by_hand.scenario, 10**6, rng)
    assert seen.size == 10**6
    assert not too_far(seen.counts, 10**6 * wanted)
    assert too_far(seen.counts, 10**6 * np.roll(wanted, 1))


def mornings(by_hand, days):
    """P(cell on the morning after some days) under the policies of the tests, and P(no longer treated), by hand."""
    matrices, mass = by_hand.matrices(), envs.prior(by_hand.scenario)
    for table in policies_of(by_hand)[:days]:
        mass = np.einsum("x,xa,axz->z", mass, table, matrices)
    return np.append(days_of(by_hand).cells.counts(mass), 1 - mass.sum())


def two_days_are_wrong(by_hand, too_far, patients=10**6):
    crowd, tally = treated(by_hand, patients, np.random.default_rng(3), days=2)
    return too_far(np.append(crowd.counts, tally.ended), patients * mornings(by_hand, 2))


def test_after_two_days_and_nights_patients_are_where_the_dense_matrices_take_them(by_hand, too_far):
    """The counts are multinomial: one chi-square over all records and those who have left."""
    assert not two_days_are_wrong(by_hand, too_far)


def test_each_record_and_treatment_goes_its_own_way(chain, too_far):
    matrices, rng, n = chain.matrices(), np.random.default_rng(4), 200_000
    for record, action in itertools.product(range(chain.scenario.space.size), range(len(matrices))):
        days, tally = days_of(chain), Tally.of(chain.scenario)
        crowd = Crowd.empty(chain.scenario.space.shape)
        crowd.counts[record] = n
        left = days.day([(action, days.cells.crowd(crowd))], tally, rng, last=False)
        wanted = days.cells.counts(matrices[action, record])
        assert not too_far(np.append(left.counts, tally.ended), n * np.append(wanted, 1 - wanted.sum()))


def test_a_night_that_looks_at_what_has_just_appeared_would_be_noticed(chain, too_far, monkeypatch):
    monkeypatch.setattr(Course, "night_order", [0, 1, 2])
    assert two_days_are_wrong(chain, too_far)


def test_a_flag_that_is_forgotten_before_the_hazard_reads_it_would_be_noticed(chain, too_far, monkeypatch):
    monkeypatch.setattr(crowd_days, "flags_read", lambda *_: [])
    assert two_days_are_wrong(chain, too_far)


def test_a_treatment_that_is_contraindicated_is_not_given(tmp_path):
    events = ByHand(scenario("events", tmp_path), DAYS)
    space, days = events.scenario.space, days_of(events)
    crowd, tally, rng = Crowd.empty(space.shape), Tally.of(events.scenario), np.random.default_rng(5)
    crowd.counts[space.record({"clots": 1, "old": "no"})] = 10
    assert days.day([(1, days.cells.crowd(crowd))], tally, rng, last=True).size == 0 and tally.ended == 10
    crowd.counts[space.record({"clots": 1, "old": "yes"})] = 1
    with pytest.raises(ValueError, match=r"pill is contraindicated for \[clots, old yes\], and is given to them"):
        days.day([(1, days.cells.crowd(crowd))], tally, rng, last=True)


# Who is counted together.


def told_apart(by_hand):
    """All that the definitions say of a record and its policy, for every state of its flags, by its fixed part."""
    found, tables = {}, np.hstack(policies_of(by_hand))
    for record, values in enumerate(by_hand.records()):
        part = by_hand.among(values)[0]
        numbers = [tables[record], *([] if part in found else by_hand.night(values))]
        for name in by_hand.scenario.actions:
            events = [by_hand.event(values, name, event) for event in by_hand.scenario.events]
            own = by_hand.own(values, name, "cost"), by_hand.allowed(values, name)
            numbers += [*by_hand.day(values, name), *events, np.array(own)]
        found.setdefault(part, []).append(np.concatenate(numbers))
    return found


def test_fixed_parts_are_alike_exactly_if_the_definitions_say_the_same_of_them(by_hand):
    cells, numbers = days_of(by_hand).cells, list(told_apart(by_hand).values())
    for one, other in itertools.combinations(range(len(numbers)), 2):
        pairs = zip(numbers[one], numbers[other], strict=True)
        same = all(np.allclose(*pair, rtol=1e-12, atol=0) for pair in pairs)
        assert (cells.of_fixed[one] == cells.of_fixed[other]) == same
    assert len(cells.first) == len(numbers) * (0.75 if "gout" in by_hand.scenario.space.names else 1)


def test_what_stands_for_a_cell_is_what_stands_for_each_of_its_records(alike):
    cells, space, rng = days_of(alike).cells, alike.scenario.space, np.random.default_rng(13)
    assert (cells.records[cell_of(cells)] <= np.arange(space.size)).all()  # each stands for itself and for later ones
    for shape in itertools.product(*((1, length) for length in space.shape)):
        values = rng.random(shape)
        everywhere = np.broadcast_to(values, space.shape).ravel()
        over = np.broadcast_to(cells.grid(values), cells.shape).ravel()
        assert (over == everywhere[cells.records]).all()
        assert cells.alike(everywhere[:, None]) == (over[cell_of(cells)] == everywhere).all()
    table = rng.random((space.size + 1, 3))  # with a last row, of those no longer treated
    assert (cells.table(table) == table[cells.records]).all()
    counts = rng.integers(100, size=space.size)
    assert (cells.counts(counts) == np.bincount(cell_of(cells), counts)).all()


def cell_of(cells):
    """The cell of each record, (n_records,), level by level."""
    found = []
    for codes in itertools.product(*map(range, cells.space.shape)):
        fixed = [(code, cells.space.shape[axis]) for axis, code in enumerate(codes) if axis not in cells.flags]
        part = 0
        for code, length in fixed:
            part = part * length + code
        found.append(np.ravel_multi_index([codes[axis] for axis in cells.flags] + [cells.of_fixed[part]], cells.shape))
    return np.array(found)


def test_a_table_that_tells_records_apart_keeps_them_apart(alike):
    space, one = alike.scenario.space, np.zeros((alike.scenario.space.size, 2))
    assert len(CrowdCells.of(space, [0], [], [one]).first) == 1
    one[5] += 1
    assert len(CrowdCells.of(space, [0], [], [one]).first) == space.size // 2


def test_so_many_numbers_that_they_would_not_fit_into_an_integer_are_told_apart():
    rng, space = np.random.default_rng(14), envs.record_space({"flag": (0, 1), "one": range(7), "two": range(5)})
    grids = [rng.integers(2, size=(2, 7, 5)) + 0.5 * (rng.random((1, 7, 1)) < 0.5) for _ in range(60)]
    grids = [np.where(np.arange(5) == 3, grid[:, :, :1], grid) for grid in grids]  # the fourth like the first
    assert len(CrowdCells.of(space, [0], grids).first) == 7 * 4


def test_counting_together_who_is_not_alike_would_be_noticed(alike, too_far, monkeypatch):
    """The planted mistake: hazards are not read."""
    of = CrowdCells.of
    monkeypatch.setattr(CrowdCells, "of", lambda space, flags, *_: of(space, flags, []))
    monkeypatch.setattr(CrowdCells, "table", lambda self, table: table[self.records])
    assert two_days_are_wrong(alike, too_far)


# What they have got.


def moments(by_hand):
    """E[return^k], k = 0 to 4, (5, n_records), over all days under the policies of the tests, by hand.

    Every evening, event and death.

    Backwards: (r + R)^k = sum over j of (k choose j) r^(k - j) R^j, with r and R independent given the evening (Sobel
    1982, The variance of discounted Markov decision processes, for k = 2).
    """
    scenario, weights = by_hand.scenario, by_hand.scenario.weights
    harm = by_hand.evenings @ np.array([weights.get(flag, 0.0) for flag in by_hand.flags])
    came = list(itertools.product((0, 1), repeat=len(scenario.events)))
    later = np.zeros((5, scenario.space.size))
    for day, table in reversed(list(enumerate(policies_of(by_hand), 1))):
        found = np.zeros((5, scenario.space.size))
        for record, values in enumerate(by_hand.records()):
            # What follows an evening on which nobody has died, (5, 2^n); the first is that of full recovery.
            onward = later[:, by_hand.among(values)] @ by_hand.night(values).T
            follows = np.where(np.arange(5)[:, None] == 0, 1.0, 0.0 if day == by_hand.days else onward)
            follows[1:, 0] = 0.0 if by_hand.flags else follows[1:, 0]
            over = np.zeros_like(follows)
            over[0] = 1.0
            for action, name in enumerate(scenario.actions):
                likely, dies = by_hand.day(values, name)
                events = [by_hand.event(values, name, event) for event in scenario.events]
                for happened in came:
                    each = np.array([p if h else 1 - p for p, h in zip(events, happened, strict=True)]).reshape(
                        -1, len(likely)
                    )
                    paid = by_hand.own(values, name, "cost") + harm
                    paid = paid + sum(weights.get(e, 0.0) * h for e, h in zip(scenario.events, happened, strict=True))
                    for chance, reward, after in (
                        (dies, -paid - weights["death"], over),
                        (1 - dies, -paid, follows),
                    ):
                        probability = table[record, action] * likely * each.prod(axis=0) * chance
                        for k in range(5):
                            terms = [math.comb(k, j) * reward ** (k - j) * after[j] for j in range(k + 1)]
                            found[k, record] += probability @ np.sum(terms, axis=0)
        later = found
    return later


def central(raw):
    """Mean, variance and fourth central moment, from raw moments."""
    mean = raw[1]
    fourth = raw[4] - 4 * mean * raw[3] + 6 * mean**2 * raw[2] - 3 * mean**4
    return mean, raw[2] - mean**2, fourth


RUNS, PATIENTS = 160, 2_000


@pytest.fixture(scope="module", params=["chain", "events", "fixed-hazard", "hazards-alone"])
def small(request, tmp_path_factory):
    by_hand = ByHand(scenario(request.param, tmp_path_factory.mktemp("small")), DAYS)
    return by_hand, central(moments(by_hand) @ envs.prior(by_hand.scenario))


def tallies(by_hand, runs=RUNS):
    ward = days_of(by_hand)
    return [treated(by_hand, PATIENTS, np.random.default_rng([7, run]), ward=ward)[1] for run in range(runs)]


def error_of_the_variance(variance, fourth, runs=RUNS):
    """Standard error of the mean of sample variances: Var(s^2) = (mu_4 - (n - 3) / (n - 1) sigma^4) / n."""
    return math.sqrt((fourth - variance**2 * (PATIENTS - 3) / (PATIENTS - 1)) / PATIENTS / runs)


def test_means_vary_and_variances_are_as_those_of_single_patients(small):
    """Five standard errors each, from the exact moments: once in 1.7 million, and the seeds are fixed."""
    by_hand, (mean, variance, fourth) = small
    found = tallies(by_hand)
    apart = np.array([tally.mean - mean for tally in found])
    assert abs(apart.mean()) <= 5 * math.sqrt(variance / PATIENTS / RUNS)
    # The mean's own variance is that of a sum over days of single patients: what links the days is there.
    squares = apart**2 / (variance / PATIENTS)
    excess = fourth / variance**2 - 3
    assert abs(squares.mean() - 1) <= 5 * math.sqrt((2 + excess / PATIENTS) / RUNS)
    estimates = np.array([tally.variance for tally in found])
    bound = error_of_the_variance(variance, fourth)
    assert abs(estimates.mean() - variance) <= 5 * bound
    # Rao and Blackwell: no more than the sample variance varies, and five standard errors of that.
    assert estimates.std(ddof=1) <= bound * math.sqrt(RUNS) * (1 + 5 / math.sqrt(2 * RUNS) * math.sqrt(1 + excess / 2))


def test_returns_that_do_not_go_with_who_leaves_would_be_noticed(chain, monkeypatch):
    """The planted mistake: those who leave a cell forget what they had got."""
    leave = Crowd.leave

    def forgetful(self, where, chance, rng):
        cells, left = leave(self, where, chance, rng)
        left.returns[...] = 0
        return cells, left

    mean, variance, _ = central(moments(chain) @ envs.prior(chain.scenario))
    monkeypatch.setattr(Crowd, "leave", forgetful)
    found = tallies(chain, runs=60)
    assert abs(np.mean([tally.mean for tally in found]) - mean) > 5 * math.sqrt(variance / PATIENTS / 60)


# Little enough for every outcome of two patients over two days: nobody has a cough but from a night.
TINY = """\
title = "Two days"
[features]
fever = {}
cough = {}

[[rules]]
set = { fever = 0.5, cough = 0.4, death = 0.2 }
[natural_clearing]
fever = 0.3
cough = 0.6
[onset]
cough = 0.75
[treatments.none]
[treatments.pill]
cost = 0.7
clears = { fever = 0.4 }
contraindicated = [{ cough = 1 }]
[death]
baseline = 0.5
hazard = { fever = 1.0, cough = 0.5 }
[weights]
fever = 1.0
cough = 0.6
death = 2.0
"""


class Script:
    """A generator whose numbers are told beforehand: of each, which of the possible ones, and the first after those.

    It keeps how likely all of them together were, and how many were possible of each.
    """

    def __init__(self, places):
        self.places, self.possible, self.probability = list(places), [], 1.0

    def binomial(self, n, p):
        pairs = zip(*(each.ravel() for each in np.broadcast_arrays(n, p)), strict=True)
        return np.array([self.number(int(n), float(p)) for n, p in pairs], dtype=np.int64)

    def number(self, n, p):
        chances = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
        possible, at = [k for k in range(n + 1) if chances[k] > 0], len(self.possible)
        if at == len(self.places):
            self.places.append(0)
        self.possible.append(len(possible))
        self.probability *= chances[possible[self.places[at]]]
        return possible[self.places[at]]


def every_outcome(run):
    """All that can come of a function of a generator, each with its probability."""
    places = []
    while True:
        script = Script(places)
        found = run(script)
        yield script.probability, found
        places = script.places
        while places and places[-1] == script.possible[len(places) - 1] - 1:
            places.pop()
        if not places:
            return
        places[-1] += 1


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    path = tmp_path_factory.mktemp("tiny") / "tiny.toml"
    path.write_text(TINY, encoding="utf-8")
    return ByHand(envs.load_scenario(path), 2)


def two_patients(by_hand):
    """Mean and variance of the mean return of two with fever, by the counts; E[standard error^2]; and how many ways."""
    ward, record = days_of(by_hand), by_hand.scenario.space.record({"fever": 1})

    def run(rng):
        tally, crowd = Tally.of(by_hand.scenario), Crowd.empty(by_hand.scenario.space.shape)
        crowd.counts[record] = 2
        crowd = ward.cells.crowd(crowd)
        for day, table in enumerate(policies_of(by_hand), 1):
            parts = crowd.shared(ward.cells.table(table), rng)
            crowd = ward.day(enumerate(parts), tally, rng, last=day == by_hand.days)
        return tally.mean, tally.variance / tally.ended

    chances, found = zip(*every_outcome(run), strict=True)
    (means, squares), chances = np.array(found).T, np.array(chances)
    assert chances.sum() == pytest.approx(1, rel=1e-12)
    mean = chances @ means
    return mean, chances @ (means - mean) ** 2, chances @ squares, len(means)


def test_over_every_outcome_the_standard_error_is_honest(tiny):
    """No chance is left: E[standard error^2] is the variance of the mean return, and both are those of single patients.

    Over two days and a night, with patients who meet after they were treated differently.
    """
    mean, variance, reported, ways = two_patients(tiny)
    wanted, own, _ = central(moments(tiny)[:, tiny.scenario.space.record({"fever": 1})])
    assert mean == pytest.approx(wanted, rel=1e-12)
    assert variance == pytest.approx(own / 2, rel=1e-12)
    assert reported == pytest.approx(variance, rel=1e-12)
    assert ways > 500  # so many that chance would not do


def no_difference_of_means(monkeypatch):
    """Where patients meet, how far apart their means are is forgotten."""

    def enter(self, where, others, enter=Crowd.enter):
        counts = self.counts[where].copy()
        theirs = np.array(others.returns[1:]), np.array(self.returns[1:, where])
        enter(self, where, others)
        if len(self.returns):
            self.returns[1, where] = (counts * theirs[1][0] + others.counts * theirs[0][0]) / self.counts[where]

    monkeypatch.setattr(Crowd, "enter", enter)


def no_mean_square(monkeypatch):
    """All of a cell are taken to have got what they have got on average."""

    def end(self, crowd):
        self.ended += crowd.size
        self.returns += [crowd.counts @ crowd.returns[0], crowd.counts @ crowd.returns[0] ** 2]

    monkeypatch.setattr(Tally, "end", end)


def no_covariance_of_days(monkeypatch):
    """Each day's return is squared alone."""

    def day(self, treated, tally, rng, *, last, day=CountedDays.day):
        evening = day(self, treated, tally, rng, last=last)
        if not last:
            mean, square = evening.returns if len(evening.returns) else np.zeros((2, evening.counts.size))
            tally.returns += [evening.counts @ mean, evening.counts @ (square + mean**2)]
            evening.returns[...] = 0
        return evening

    monkeypatch.setattr(CountedDays, "day", day)


def no_lost_degree(monkeypatch):
    """The mean is taken to be known: n instead of n - 1."""
    variance = Tally.variance.fget
    monkeypatch.setattr(Tally, "variance", property(lambda self: variance(self) * (self.ended - 1) / self.ended))


def only_what_is_counted(monkeypatch):
    """Outcomes are taken to be independent: each adds its weight squared times the variance of its count."""

    def variance(self):
        shares = self.happened.sum(axis=0) / self.ended
        return float(np.array([1.0, 0.6, 2.0]) ** 2 @ (shares * np.maximum(1 - shares, 0)))

    monkeypatch.setattr(Tally, "variance", property(variance))


MISTAKES = [no_difference_of_means, no_mean_square, no_covariance_of_days, no_lost_degree, only_what_is_counted]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_standard_error_that_is_not_honest_would_be_noticed(tiny, mistake, monkeypatch):
    """Planted mistakes that leave the mean as it is."""
    mistake(monkeypatch)
    mean, variance, reported, _ = two_patients(tiny)
    wanted, own, _ = central(moments(tiny)[:, tiny.scenario.space.record({"fever": 1})])
    assert mean == pytest.approx(wanted, rel=1e-12)
    assert variance == pytest.approx(own / 2, rel=1e-12)
    assert abs(reported / variance - 1) > 0.001  # and to 1e-12 if there is no mistake


def test_where_patients_meet_their_returns_are_those_of_all_of_them():
    """Cells know what a list of everybody's returns says, also where nobody was before."""
    rng = np.random.default_rng(12)
    lists = [[rng.normal(place, 3, size=n) for place, n in enumerate(sizes)] for sizes in ((5, 1, 0, 70), (2, 8, 3, 1))]

    def crowd(returns):
        counts = np.array([len(each) for each in returns])
        rows = np.array([[each.mean(), each.var()] if len(each) else [7.0, 7.0] for each in returns]).T
        return Crowd(counts.shape, counts, rows)

    met = crowd(lists[0])
    met.enter(np.arange(4), crowd(lists[1]))
    everybody = crowd([np.concatenate(each) for each in zip(*lists, strict=True)])
    assert (met.counts == everybody.counts).all()
    assert met.returns == pytest.approx(everybody.returns, rel=1e-12)


def test_the_mean_is_what_the_counts_say(small):
    """Weights times outcomes, and costs times treatments: to the rounding of sums, in every run."""
    by_hand, _ = small
    scenario = by_hand.scenario
    if scenario.costs_by_record:
        return
    _, tally = treated(by_hand, 10**9, np.random.default_rng(8))
    weights = [scenario.weights.get(name, 0.0) for name in scenario.outcomes]
    costs = [scenario.treatments[name].cost for name in scenario.actions]
    paid = tally.happened.sum(axis=0) @ weights + tally.given @ costs
    assert tally.mean == pytest.approx(-paid / 10**9, rel=1e-12)


def test_each_treatment_has_the_outcomes_that_it_makes(by_hand):
    """On the first day, each of the counts is binomial: five standard errors."""
    n, scenario = 10**6, by_hand.scenario
    _, tally = treated(by_hand, n, np.random.default_rng(9), days=1)
    mass = envs.prior(scenario)[:, None] * policies_of(by_hand)[0]

    def check(seen, chance):
        assert abs(seen - n * chance) <= 5 * math.sqrt(n * chance * (1 - chance)) + 1e-9

    wanted = np.zeros((len(scenario.actions), len(scenario.outcomes)))
    for (record, values), (action, name) in itertools.product(
        enumerate(by_hand.records()), enumerate(scenario.actions)
    ):
        likely, dies = by_hand.day(values, name)
        of_evening = [*by_hand.evenings.T, *(by_hand.event(values, name, event) for event in scenario.events), dies]
        wanted[action] += mass[record, action] * np.array([likely @ chance for chance in of_evening])
    for action in range(len(wanted)):
        check(tally.given[action], mass[:, action].sum())
        for seen, chance in zip(tally.happened[action], wanted[action], strict=True):
            check(seen, chance)


# However many there are.


class Counting:
    """A generator that counts the numbers that are asked for."""

    def __init__(self, seed):
        self.rng, self.asked = np.random.default_rng(seed), 0

    def binomial(self, n, p):
        self.asked += np.broadcast(n, p).size
        return self.rng.binomial(n, p)


@pytest.mark.parametrize("patients", [2, 10**6, 10**12])
def test_a_trillion_patients_take_no_more_random_numbers_than_there_are_cells(by_hand, patients):
    rng = Counting(10)
    _, tally = treated(by_hand, patients, rng)
    scenario = by_hand.scenario
    assert tally.ended == patients and tally.given.sum() >= patients
    # Who comes, less than two a record; on a day, for each record and treatment, who gets it and each outcome, at most
    # four times, as two flags are read in the morning; and the night, twice each flag.
    cells, outcomes = scenario.space.size, len(scenario.outcomes)
    assert rng.asked <= cells * (2 + DAYS * (len(scenario.actions) * (1 + 4 * outcomes) + 2 * outcomes))


def test_a_seed_gives_the_same_counts_and_another_one_others(chain):
    one, two, other = (treated(chain, 10**6, np.random.default_rng(seed))[1] for seed in (1, 1, 2))
    assert (one.happened == two.happened).all() and (one.returns == two.returns).all()
    assert (one.happened != other.happened).any()


def test_the_only_treatment_that_is_left_is_given_to_all():
    """Shares are of what is left of a distribution: nobody is left over by the rounding of sums."""
    chances = np.array([[0.1, 0.2, 0.7, 0.0], [0.0, 1.0, 0.0, 0.0], [0.3, 0.3, 0.3, 0.1 - 1e-16]])
    crowd = Crowd.empty((3,))
    crowd.counts[:] = 10**12
    found = [part.counts for part in crowd.shared(chances, np.random.default_rng(11))]
    assert np.sum(found, axis=0).tolist() == [10**12] * 3
    assert (np.array(found).T[chances == 0] == 0).all() and crowd.size == 0
