"""What a log can show at all, and how large a gain must be for a mechanism: against simulation and by hand."""

import math

import numpy as np
import pytest

from policysim.trials.evidence import break_even_gain, power_of


def test_the_least_gain_is_seen_with_80_per_cent_power_and_with_so_many_patients():
    found = power_of(0.05, 400, 1.0)
    rng = np.random.default_rng(4)
    z = rng.normal(size=200_000)
    # Two-sided at 5 %: four standard errors of a share of 200,000 are 0.0036.
    assert (np.abs(found["gain"][0] / 0.05 + z) > 1.959964).mean() == pytest.approx(0.8, abs=0.0036)
    assert found["patients"][0] == 400
    for gain, patients in found[["gain", "patients"]].iloc[1:].itertuples(index=False):
        error = 0.05 * math.sqrt(400 / patients)
        assert (np.abs(gain / error + z) > 1.959964).mean() == pytest.approx(0.8, abs=0.0036)
    assert found["gain"].tolist()[1:] == [0.01, 0.02]
    assert len(power_of(0.05, 400, None)) == 1  # the range is a guess
    wider = power_of(0.05, 400, 10.0)
    assert (wider["gain"][1], wider["patients"][1]) == (0.1, pytest.approx(found["patients"][1] / 100))


def test_where_everybody_gets_the_best_arm_there_is_nothing_to_see():
    assert power_of(0.0, 400, 1.0).empty


def test_at_the_break_even_gain_a_policy_is_worth_the_best_arm():
    rng = np.random.default_rng(6)
    means = np.array([0.5, 0.6, 0.55])
    apart = rng.normal(size=(50, 3))
    apart -= apart.mean(axis=0)  # how patients differ, the treatments' means aside
    policy = np.exp(2 * apart) / np.exp(2 * apart).sum(axis=1, keepdims=True)
    greedy = np.eye(3)[(means + 0.2 * apart).argmax(axis=1)]

    def follows(table):
        return ((table - table.mean(axis=0)) * apart).sum(axis=1).mean()

    by_lot, of_greedy = (table.mean(axis=0) @ means for table in (policy, greedy))
    needed = break_even_gain(0.6, by_lot, of_greedy, follows(policy) / follows(greedy))
    # The size of the differences at which greedy gains so much.
    size = (needed + 0.6 - of_greedy) / follows(greedy)
    utility = means + size * apart
    assert (greedy * utility).sum(axis=1).mean() - 0.6 == pytest.approx(needed)
    assert (policy * utility).sum(axis=1).mean() == pytest.approx(0.6)


def test_a_mechanism_that_does_not_follow_the_patients_never_breaks_even():
    assert break_even_gain(0.6, 0.5, 0.6, 0.0) == math.inf
