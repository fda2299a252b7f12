"""Censored outcomes: Kaplan and Meier's estimator, Cox's model, and how a study's columns are read.

Hazards that depend on the patient, and competing events, are held against sums over patients that are written out.
"""

import json

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from small_logs import keyed

from policysim.logs.censoring import Hazards, Likelihood, pseudo_outcomes, relative_hazards

CENSORED, EVENT, COMPETING = 0, 1, 2

# 6-mercaptopurine in acute leukaemia (Freireich et al. 1963): weeks in remission; + is censored.
REMISSION = "6 6 6 6+ 7 9+ 10 10+ 11+ 13 16 17+ 19+ 20+ 22 23 25+ 32+ 32+ 34+ 35+"
WEEKS = np.array([float(each.strip("+")) for each in REMISSION.split()])
RELAPSED = np.array([not each.endswith("+") for each in REMISSION.split()])
# As published: Kaplan-Meier estimates and Greenwood's standard errors (Collett, Modelling survival data; R's survfit).
PUBLISHED = {
    6: (0.857, 0.0764),
    7: (0.807, 0.0869),
    10: (0.753, 0.0963),
    13: (0.690, 0.1068),
    16: (0.627, 0.1141),
    22: (0.538, 0.1282),
    23: (0.448, 0.1346),
}

patients, with_competing = (
    st.lists(st.tuples(st.integers(0, 9), states), min_size=1, max_size=25)
    for states in (st.booleans(), st.integers(0, 2))
)


def usable(rows, horizon):
    """Times and states of patients of whom the estimate at the horizon is known."""
    times = np.array([float(time) for time, _ in rows])
    states = np.array([state for _, state in rows])
    assume(times.max() >= horizon or (states[times == times.max()] != CENSORED).all())
    return times, states


@pytest.mark.parametrize(("week", "expected"), PUBLISHED.items())
def test_published_estimates_and_errors_come_out(week, expected):
    numbers, _ = pseudo_outcomes(WEEKS, RELAPSED, float(week))
    assert numbers.mean() == pytest.approx(expected[0], abs=5e-4)
    assert numbers.std() / np.sqrt(len(numbers)) == pytest.approx(expected[1], abs=6e-5)


@given(patients, st.integers(1, 9))
def test_the_mean_is_kaplan_and_meiers_and_that_of_weighting_alone(rows, horizon):
    times, happened = usable(rows, horizon)
    free = 1.0
    for time in sorted({t for t, e in rows if e and t <= horizon}):
        free *= 1 - sum(t == time and e for t, e in rows) / sum(t >= time for t, _ in rows)
    # Each patient whose state is known over the probability of not being censored before it: events come first.
    is_free, weights = [], []
    for own, event in rows:
        followed = 1.0
        for time in range(min(own, horizon)):
            left = sum(t >= time for t, _ in rows) - sum(t == time and e for t, e in rows)
            followed *= 1 - sum(t == time and not e for t, e in rows) / left if left else 1.0
        is_free.append(own > horizon or (own == horizon and not event))
        weights.append((event or own >= horizon) / followed)
    numbers, observed = pseudo_outcomes(times, happened, float(horizon))
    assert numbers.mean() == pytest.approx(free, abs=1e-12)
    assert observed.rewards.tolist() == is_free
    assert np.allclose(observed.weights, weights, rtol=0, atol=1e-12)
    assert np.mean(np.multiply(is_free, weights)) == pytest.approx(free, abs=1e-12)


@given(patients, st.integers(1, 9))
def test_the_numbers_are_the_infinitesimal_jackknife_and_their_variance_is_greenwoods(rows, horizon):
    times, happened = usable(rows, horizon)
    free, greenwood, influence = 1.0, 0.0, np.zeros(len(rows))
    for time in sorted({t for t, e in rows if e and t <= horizon}):
        here, left = (times == time) & happened, times >= time
        events, at_risk = here.sum(), left.sum()
        assume(events < at_risk)
        free *= 1 - events / at_risk
        greenwood += events / (at_risk * (at_risk - events))
        # The derivative of log S in a patient's weight.
        influence -= (here * at_risk - events * left) / (at_risk * (at_risk - events))
    numbers, _ = pseudo_outcomes(times, happened, float(horizon))
    assert np.allclose(numbers, free + len(rows) * free * influence, rtol=0, atol=1e-10)
    assert numbers.var() / len(rows) == pytest.approx(free**2 * greenwood, abs=1e-12)


def test_without_censoring_before_the_horizon_they_are_exactly_0_and_1():
    times, happened = np.array([1.0, 2.0, 2.0, 5.0, 9.0]), np.array([True, True, True, False, True])
    numbers, observed = pseudo_outcomes(times, happened, 4.0)
    assert numbers.tolist() == observed.rewards.tolist() == [0, 0, 0, 1, 1]
    assert observed.weights.tolist() == [1] * 5


@given(with_competing, st.integers(1, 9))
def test_with_competing_events_the_mean_is_that_of_aalen_and_johansen(rows, horizon):
    times, states = usable(rows, horizon)
    incidence, surviving = 0.0, 1.0
    for time in range(horizon + 1):
        at_risk = sum(own >= time for own, _ in rows)
        if at_risk:
            incidence += surviving * sum(row == (time, EVENT) for row in rows) / at_risk
            surviving *= 1 - sum(own == time and state != CENSORED for own, state in rows) / at_risk
    numbers, observed = pseudo_outcomes(times, states, float(horizon))
    assert numbers.mean() == pytest.approx(1 - incidence, abs=1e-12)
    assert (observed.weights * observed.rewards).mean() == pytest.approx(1 - incidence, abs=1e-12)
    # Who had a competing event by then is free for ever, and known to be.
    gone = (states == COMPETING) & (times <= horizon)
    assert (observed.rewards[gone] == 1).all() and (observed.weights[gone] > 0).all()


@given(with_competing, st.integers(1, 9), st.data())
def test_a_martingale_of_censoring_sums_to_0_at_each_time_whatever_the_relative_hazards(rows, horizon, data):
    times, states = usable(rows, horizon)
    relative = np.array([[data.draw(st.sampled_from([-0.1, 0.0, 0.1])) for _ in range(3)] for _ in rows])
    hazards = Hazards.of(times, states, np.ones(len(times)), relative)
    for time, arm in zip(hazards.times, hazards.hazards.T, strict=True):
        for cause in (CENSORED, EVENT, COMPETING):
            # At equal times events come first.
            at_risk = (times > time) | ((times == time) & ((states == CENSORED) | (cause != CENSORED)))
            expected = (np.exp(relative[:, cause]) * at_risk).sum() * arm[cause]
            assert ((times == time) & (states == cause)).sum() == pytest.approx(expected)


@given(with_competing, st.integers(1, 9))
def test_counted_patients_are_as_good_as_rows(rows, horizon):
    times, states = usable(rows, horizon)
    counts = np.arange(len(rows)) % 3 + 1
    alone = pseudo_outcomes(np.repeat(times, counts), np.repeat(states, counts), float(horizon))[0]
    assert np.repeat(pseudo_outcomes(times, states, float(horizon), counts)[0], counts) == pytest.approx(alone)


def two_kinds(rng, n, rates):
    """Patients of two kinds, who are censored at different rates; the event comes to one kind sooner, too."""
    kind = rng.integers(2, size=n)
    event, ends = rng.exponential(1 / np.array([0.4, 2.0])[kind]), rng.exponential(1 / np.array(rates)[kind])
    return kind, np.minimum(event, ends), (event <= ends).astype(int)


def partial_likelihood(times, happened, relative):
    """Cox's, ties as Breslow has them, patient by patient."""
    return sum(relative[row] - np.log(np.exp(relative[times >= times[row]]).sum()) for row in np.flatnonzero(happened))


def test_the_likelihood_is_coxs_and_its_fit_is_the_best():
    rng = np.random.default_rng(3)
    times, happened = rng.integers(1, 9, 60).astype(float), rng.random(60) < 0.6
    design = rng.normal(size=(60, 2))
    likelihood = Likelihood.of(times.astype(int), happened, np.ones(60))
    relative = design @ [0.3, -0.5]
    assert likelihood.at(relative)[0] == pytest.approx(partial_likelihood(times, happened, relative))
    slopes = likelihood.fit(design, 2.0, np.zeros(2))

    def penalised(at):
        return partial_likelihood(times, happened, design @ at) - at @ at

    for step in (1e-2, -1e-2):
        for axis in np.eye(2):
            assert penalised(slopes) > penalised(slopes + step * axis)


def test_a_slope_is_found_where_there_is_one_and_none_where_there_is_none():
    rng = np.random.default_rng(8)
    kind, times, states = two_kinds(rng, 600, (0.2, 2.0))
    ranks, parts = np.unique(times, return_inverse=True)[1], np.arange(600) % 5
    found = relative_hazards(kind[:, None].astype(float), ranks, states == CENSORED, parts)
    # log(2 / .2) apart.
    assert found[kind == 1].mean() - found[kind == 0].mean() == pytest.approx(np.log(10), abs=0.5)
    noise = rng.normal(size=(600, 1))
    unrelated = relative_hazards(noise, ranks, rng.random(600) < 0.5, parts)
    assert np.abs(unrelated).max() < 0.5
    few = relative_hazards(kind[:, None].astype(float), ranks, np.arange(600) < 9, parts)
    assert (few == 0).all()


def test_censoring_by_a_covariate_biases_kaplan_and_meier_and_not_what_is_made_of_relative_hazards():
    rng, errors = np.random.default_rng(5), []
    truth = np.exp([-0.4, -2.0]).mean()
    for _ in range(30):
        kind, times, states = two_kinds(rng, 400, (0.2, 2.5))
        ranks, parts = np.unique(times, return_inverse=True)[1], np.arange(400) % 5
        relative = np.zeros((400, 3))
        for cause in (CENSORED, EVENT):
            happened = (states == cause) & (times <= 1)
            relative[:, cause] = relative_hazards(kind[:, None].astype(float), ranks, happened, parts)
        errors.append([pseudo_outcomes(times, states, 1.0, None, each)[0].mean() - truth for each in (relative, None)])
    mean, spread = np.mean(errors, axis=0), np.std(errors, axis=0, ddof=1) / np.sqrt(len(errors))
    assert abs(mean[0]) < 4 * spread[0] < 0.03
    assert mean[1] > 8 * spread[1]


FOLLOWED = 'time = "days"\nevent = "ill"\nhorizon = 10'


@pytest.fixture
def followed(section):
    return section.replace("outcome = { success = 1.0 }", FOLLOWED)


@pytest.fixture
def times(small_trial):
    """Arm 0 (rows 0, 2, 5): an event at 4, censored at 6, seen at 12. Arm 1: censored at 3, events at 8 and 30."""
    return small_trial.assign(days=[4, 3, 6, 8, 30, 12], ill=[1, 0, 0, 1, 1, 0])


def test_each_arm_has_its_own_estimate(load, followed, times):
    log = load(followed, trial__csv=times)
    # 2/3 of arm 0; in arm 1 one of the two that are left after 3.
    means = [log.data.rewards[log.data.actions == arm].mean() for arm in (0, 1)]
    assert means == pytest.approx([2 / 3, 1 / 2])
    assert log.data.observed.weights.tolist() == pytest.approx([1, 0, 0, 1.5, 1.5, 2])
    assert log.data.observed.rewards.tolist() == [0, 0, 0, 0, 1, 1]
    assert log.censored[["patients", "censored", "followed"]].to_numpy().tolist() == [[3, 1, 1], [3, 1, 1]]
    assert log.missing == (0, 0)
    assert np.array_equal(log.outcomes["free of ill at days = 10"], log.data.rewards)


def test_bad_times_and_events_are_told_by_row(refused, followed, times):
    bad = times.assign(days=["4", "-3", "x", "8", "", "12"], ill=[1, 2, 0, "yes", 1, 0])
    said = refused(followed, trial__csv=bad)
    for row, words in (
        (2, "days: must be a time >= 0, got '-3'"),
        (2, "ill: must be 1 (the event happened) or 0 (censored), got '2'; if 2 is the event and 1 is censored, write"),
        (3, "days: must be a time >= 0, got 'x'"),
        (4, "ill: must be 1 (the event happened) or 0 (censored), got 'yes'"),
        (5, 'days: is missing: missing = "exclude" or "worst" takes such rows'),
    ):
        assert any(f"row {row}: {words}" in line for line in said), said
    assert len(said) == 5


DISEASE, OTHER = "Dead (disease)", "Dead, other"
STATUS = [DISEASE, "lost", OTHER, OTHER, "lost", DISEASE]


@pytest.mark.parametrize(
    ("status", "codes", "value", "said"),
    [
        (STATUS, (DISEASE, "lost"), OTHER, 'write competing = "Dead, other" beside event'),
        (STATUS, ("dead (disease)", "lost", OTHER), DISEASE, f'event = "{DISEASE}" in place of "dead (disease)"?'),
        (STATUS, (DISEASE, "Lost", OTHER), "lost", 'did you mean censored = "lost" in place of "Lost"?'),
        ([3, 1, 2, 2, 1, 1], (5, 1, 3), "2", "did you mean event = 2 in place of 5?"),
    ],
)
def test_an_event_that_is_none_of_the_codes_is_named_once_with_what_to_write(
    refused, followed, times, *, status, codes, value, said
):
    names = ("event", "censored", "competing")
    event = ", ".join(f"{name} = {json.dumps(code)}" for name, code in zip(names, codes, strict=False))
    text = followed.replace('event = "ill"', f'event = {{ column = "ill", {event} }}')
    (line,) = refused(text, trial__csv=times.assign(ill=status))
    first = list(map(str, status)).index(value)
    assert f": row {first + 1}: ill: must be " in line and f", got '{value}' (so are 2 rows); " in line
    assert line.endswith(said)


def test_rows_without_a_time_are_left_out_or_count_as_an_event_at_once(load, followed, times):
    gone = times.assign(days=[4, 3, 6, None, 30, 12])
    log = load(keyed(followed, 'missing = "exclude"'), trial__csv=gone)
    assert (log.n_read, log.data.n_rows, log.missing) == (6, 6, (0, 1))
    # In so small an arm nothing is modelled but its mean, by the rows outside of the row's part.
    assert log.data.rewards[log.data.actions == 1].mean() == pytest.approx(1.0, abs=0.1)
    assert log.data.observed.weights[log.data.actions == 1].tolist() == pytest.approx([0, 0, 3])
    worst = load(keyed(followed, 'missing = "worst"'), trial__csv=gone)
    assert (worst.data.n_rows, worst.missing) == (6, (0, 1))
    assert worst.data.rewards[worst.data.actions == 1].mean() == pytest.approx(2 / 3)


def test_a_horizon_beyond_all_follow_up_of_an_arm_is_refused_with_the_line(refused, followed, times):
    # Of arm 1 nobody is censored last: that nobody is free at 40 is known.
    (line,) = refused(followed.replace("= 10", "= 40"), trial__csv=times)
    assert "study.toml:8: data.horizon: nobody of the arm 0 is followed to days = 40, the longest to 12: " in line


CODED = 'event = { column = "ill", event = [2, "Dead"], censored = 1 }'


def test_codes_of_events_are_read_as_0_and_1_are(load, refused, followed, times):
    plain = load(followed, trial__csv=times)
    coded = times.assign(ill=times["ill"].map({0: "1.0", 1: "2"}))
    coded.loc[0, "ill"] = "Dead "
    text = followed.replace('event = "ill"', CODED)
    log = load(text, trial__csv=coded)
    assert np.array_equal(log.data.rewards, plain.data.rewards)
    assert list(log.outcomes) == ["free of ill = 2 or Dead at days = 10"]
    (line,) = refused(text, trial__csv=coded.replace("Dead ", "0"))
    must = "ill: must be 2 (the event happened), Dead (the event happened) or 1 (censored), got '0'"
    assert f"row 1: {must}" in line


def test_a_competing_event_leaves_a_patient_free_of_the_event(load, followed, times):
    competing = followed.replace('event = "ill"', CODED.replace("censored", "competing = 3, censored"))
    log = load(competing, trial__csv=times.assign(ill=[3, 1, 1, 2, 2, 1]))
    # Arm 0: free for ever at 4; of the two that are left one is censored at 6, the other seen at 12.
    assert log.data.rewards[log.data.actions == 0].mean() == pytest.approx(1.0)
    assert log.data.observed.rewards.tolist() == [1, 0, 0, 0, 1, 1]
    assert log.data.observed.weights.tolist() == pytest.approx([1, 0, 0, 1.5, 1.5, 2])
