"""The privacy profile and the trade-off of errors, against all neighbours and sets of actions, and dp_accounting."""

import math

import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_distribution import from_two_probability_mass_functions
from random_tables import all_tests, fitted, random_tables

import policysim as ps
from policies import AnyRecord

UNEVEN = [[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]]


def delta_by_hand(found, epsilon):
    one, other = all_tests(found)
    return (one - math.exp(epsilon) * other).max()


def check_profile(found):
    table = ps.privacy_profile(found)
    epsilons, deltas = table["epsilon"].to_numpy(), table["delta"].to_numpy()
    finite = np.isfinite(epsilons)
    assert epsilons[0] == 0 and epsilons[-1] == found.epsilon_spent and (np.diff(epsilons) > 0).all()
    assert deltas[-1] == 0 or found.epsilon_spent == math.inf
    assert [delta_by_hand(found, each) for each in epsilons[finite]] == pytest.approx(deltas[finite], abs=1e-12)
    # Between its corners delta is linear in e^epsilon.
    between = np.unique(np.linspace(0, epsilons[finite][-1], 7))
    lines = np.interp(np.exp(between), np.exp(epsilons[finite]), deltas[finite])
    assert [delta_by_hand(found, each) for each in between] == pytest.approx(lines, abs=1e-12)
    asked = ps.privacy_profile(found, epsilons=between)
    assert asked["delta"].to_numpy() == pytest.approx(lines, abs=1e-12)
    back = ps.privacy_profile(found, deltas=asked["delta"])
    again = [delta_by_hand(found, each) for each in back["epsilon"]]
    assert again == pytest.approx(back["delta"].to_numpy(), abs=1e-12)
    rate = ps.guess_rate(found.probabilities, found.problem.adjacency).rate
    assert rate == pytest.approx((1 + deltas[0]) / 2, abs=1e-12)


def check_trade_off(found):
    table = ps.trade_off(found)
    first, second = table["type_1_error"].to_numpy(), table["type_2_error"].to_numpy()
    assert first[[0, -1]].tolist() == [0, 1] and second[-1] == 0 and (np.diff(first) > 0).all()
    slopes = np.diff(second) / np.diff(first)
    assert (np.diff(slopes) > 0).all()
    # No test of two neighbours lies below the curve, and each of its corners is one.
    powers, alarms = all_tests(found)
    assert (np.interp(alarms, first, second) <= 1 - powers + 1e-12).all()
    for one, two in zip(first, second, strict=True):
        assert np.hypot(alarms - one, 1 - powers - two).min() <= 1e-12
    assert (first + second).min() == pytest.approx(1 - ps.privacy_profile(found)["delta"].iloc[0], abs=1e-12)
    if found.epsilon_spent < 5 and second[1] < 0.999:
        assert -slopes[0] == pytest.approx(math.exp(found.epsilon_spent), rel=1e-6)


def test_profile_and_trade_off_of_500_random_problems_are_those_of_all_their_tests():
    for found in random_tables():
        check_profile(found)
        check_trade_off(found)


def test_the_curve_of_the_worst_pair_would_be_too_high():
    """Two pairs whose curves cross: neither is the worst at every error, and the envelope lies below both."""
    table = np.array([[0.5, 0.5, 0.0], [0.499, 0.499, 0.002], [0.3, 0.7, 0.0]])
    curve = ps.trade_off(fitted(table, ps.AnyRecord()))
    pairs = [ps.trade_off(fitted(table[rows], ps.AnyRecord())) for rows in ([0, 1], [0, 2])]
    errors = np.linspace(0, 1, 1001)
    whole, *each = (np.interp(errors, one["type_1_error"], one["type_2_error"]) for one in (curve, *pairs))
    assert (each[0] - each[1]).min() < -1e-4 < 1e-4 < (each[0] - each[1]).max()
    assert (np.minimum(*each) - whole).max() > 1e-4


def neyman_pearson(p, q, errors):
    """The least type 2 error of a test of q against p at each type 1 error, by sorted ratios, as in riskcal."""
    order = np.argsort(-p / q)
    return 1 - np.interp(errors, np.append(0, q[order].cumsum()), np.append(0, p[order].cumsum()))


@pytest.mark.parametrize("seed", range(20))
def test_two_records_agree_with_dp_accounting_and_the_best_test_by_sorted_ratios(seed):
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.full(int(rng.integers(2, 7)), 3.0), size=2)
    found = fitted([p, q], ps.AnyRecord())
    logs = [dict(enumerate(np.log(each))) for each in (p, q)]
    theirs = from_two_probability_mass_functions(*logs, value_discretization_interval=1e-9, symmetric=False)
    epsilons = np.linspace(0, found.epsilon_spent, 9)
    ours = ps.privacy_profile(found, epsilons=epsilons)["delta"]
    assert ours.to_numpy() == pytest.approx(theirs.get_delta_for_epsilon(epsilons), abs=3e-9)
    for delta in (0.01, 0.1):
        (epsilon,) = ps.privacy_profile(found, deltas=delta)["epsilon"]
        assert epsilon == pytest.approx(theirs.get_epsilon_for_delta(delta), abs=1e-7)
    curve, errors = ps.trade_off(found), np.linspace(0, 1, 401)
    one, two = neyman_pearson(p, q, errors), neyman_pearson(q, p, errors)
    whole = np.interp(errors, curve["type_1_error"], curve["type_2_error"])
    assert (whole <= np.minimum(one, two) + 1e-12).all()
    # riskcal's advantage: the largest 1 - type 1 - type 2.
    tv = np.abs(p - q).sum() / 2
    assert 1 - curve.sum(axis=1).min() == pytest.approx(tv, abs=1e-12) == ours.iloc[0]


@pytest.mark.parametrize("k", [2, 3])
def test_response_has_one_corner_and_its_mirror_image_whatever_is_rounded(k):
    for epsilon in np.linspace(0.1, 4, 14):
        table = np.ones((k, k)) + np.eye(k) * np.expm1(epsilon)
        found = ps.trade_off(fitted(table / table.sum(axis=1, keepdims=True), AnyRecord()))
        error, power = np.array([1, np.exp(epsilon)]) / (k - 1 + np.exp(epsilon))
        corners = [[error, 1 - power]] if k == 2 else [[error, 1 - power], [1 - power, error]]
        np.testing.assert_allclose(found.to_numpy(), [[0, 1], *corners, [1, 0]], atol=1e-12)


def test_a_loss_that_is_infinite_says_from_which_delta_on_it_is_finite():
    found = fitted([[0.75, 0.25], [1.0, 0.0]], ps.AnyRecord())
    assert ps.privacy_profile(found).to_numpy().tolist() == [[0.0, 0.25], [math.inf, 0.25]]
    assert ps.privacy_profile(found, deltas=0.25)["epsilon"].tolist() == [0]
    message = (
        r"^no epsilon is finite at delta = 0\.01: a treatment rules a record out\. Give a delta of at least 0\.25\.$"
    )
    with pytest.raises(ValueError, match=message):
        ps.privacy_profile(found, deltas=[0.5, 0.01])
    assert ps.trade_off(found).round(12).to_numpy().tolist() == [[0, 0.75], [0.75, 0], [1, 0]]


def test_what_a_profile_says_may_be_asked_back_and_what_is_never_private_is_not_excused_as_rounding():
    uneven = [0.29081720988710574, 0.21864916099092385, 0.49053362912197057, 0.0]
    apart = fitted([uneven, [0, 0, 0, 1]], ps.AnyRecord())
    assert ps.privacy_profile(apart).to_numpy().tolist() == [[0, 1], [math.inf, 1]]
    assert ps.trade_off(apart).to_numpy().tolist() == [[0, 0], [1, 0]]
    assert ps.privacy_profile(apart, deltas=[1.0])["epsilon"].tolist() == [0]
    hundredth = fitted([[0.99, 0.01], [1.0, 0.0]], ps.AnyRecord())
    assert ps.privacy_profile(hundredth, deltas=0.01)["epsilon"].tolist() == [0]
    for delta in (0.0, 0.999e-13):
        with pytest.raises(ValueError, match=r"Give a delta of at least 1e-13\.$"):
            ps.privacy_profile(fitted([[1 - 1e-13, 1e-13], [1.0, 0.0]], ps.AnyRecord()), deltas=delta)


@pytest.mark.parametrize("scale", [1.0, 60.0, 200.0])
def test_errors_and_deltas_are_probabilities_and_no_error_rises_at_any_loss(scale):
    for seed in range(60):
        logs = np.random.default_rng(seed).normal(size=(3, 4)) * scale
        logs[0, 0] = -np.inf if seed % 3 == 0 else logs[0, 0]
        found = fitted(np.exp(logs - np.logaddexp.reduce(logs, axis=1)[:, None]), ps.AnyRecord())
        profile, curve = ps.privacy_profile(found), ps.trade_off(found)
        assert profile["delta"].between(0, 1).all() and curve.stack().between(0, 1).all()
        assert (np.diff(curve["type_1_error"]) > 0).all() and (np.diff(curve["type_2_error"]) <= 0).all()
        assert set(ps.privacy_profile(found, deltas=profile["delta"])["delta"]) == set(profile["delta"])


def test_what_hides_everything_is_a_coin_and_a_loss_beyond_all_floats_is_kept():
    same = fitted([UNEVEN[0]] * 2, ps.AnyRecord())
    assert ps.privacy_profile(same).to_numpy().tolist() == [[0, 0]]
    assert ps.trade_off(same).to_numpy().tolist() == [[0, 1], [1, 0]]
    far = fitted([[0.5, 0.5], [1.0, 1e-300]], ps.AnyRecord())
    assert ps.privacy_profile(far)["epsilon"].iloc[-1] == far.epsilon_spent == pytest.approx(math.log(0.5e300))


@pytest.mark.parametrize("ask", [ps.privacy_profile, ps.trade_off, ps.record_risk])
def test_one_record_one_action_and_no_fitted_policy_are_refused_in_one_line(ask):
    with pytest.raises(ValueError, match=rf"^{ask.__name__} needs a problem with at least two records, got 1: .*$"):
        ask(fitted([[0.5, 0.5]], ps.AnyRecord()))
    with pytest.raises(ValueError, match=r"^utilities must be \(n_records, k\) with k >= 2, got shape \(3, 1\)\.$"):
        ask(fitted(np.ones((3, 1)), ps.AnyRecord()))
    with pytest.raises(ValueError, match=rf"^{ask.__name__} takes a fitted policy, .* got list\.$"):
        ask(UNEVEN)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"deltas": [0.1, 2]}, "delta must be a number from 0 to 1, got 2"),
        ({"deltas": []}, "delta must be a number from 0 to 1, got an empty list"),
        ({"deltas": "a"}, "delta must be a number from 0 to 1, got 'a'"),
        ({"deltas": True}, "delta must be a number from 0 to 1, got True"),
        ({"epsilons": -1}, "epsilon must be a number >= 0, got -1"),
        ({"epsilons": 1, "deltas": 0.1}, "give epsilons or deltas, not both."),
    ],
)
def test_numbers_out_of_range_are_refused_by_name(asked, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        ps.privacy_profile(fitted(UNEVEN, ps.AnyRecord()), **asked)
