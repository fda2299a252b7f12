"""Hazards that depend on the patient, and competing events: against sums over patients that are written out."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from policysim.logs.censoring import Hazards, pseudo_outcomes
from policysim.logs.hazards import Likelihood, relative_hazards

CENSORED, EVENT, COMPETING = 0, 1, 2
patients = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), min_size=1, max_size=25)


def usable(rows, horizon):
    """Times and states of patients of whom the estimate at the horizon is known."""
    times = np.array([float(time) for time, _ in rows])
    states = np.array([state for _, state in rows])
    assume(times.max() >= horizon or (states[times == times.max()] != CENSORED).all())
    return times, states


@given(patients, st.integers(1, 9))
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


@given(patients, st.integers(1, 9), st.data())
def test_a_martingale_of_censoring_sums_to_0_at_each_time_whatever_the_relative_hazards(rows, horizon, data):
    times, states = usable(rows, horizon)
    relative = np.array([[data.draw(st.sampled_from([-0.1, 0.0, 0.1])) for _ in range(3)] for _ in rows])
    hazards = Hazards.of(times, states, None, relative)
    for time, arm in zip(hazards.times, hazards.hazards.T, strict=True):
        for cause in (CENSORED, EVENT, COMPETING):
            # At equal times events come first.
            at_risk = (times > time) | ((times == time) & ((states == CENSORED) | (cause != CENSORED)))
            expected = (np.exp(relative[:, cause]) * at_risk).sum() * arm[cause]
            assert ((times == time) & (states == cause)).sum() == pytest.approx(expected)


@given(patients, st.integers(1, 9))
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
    assert likelihood.of_slopes(relative) == pytest.approx(partial_likelihood(times, happened, relative))
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
