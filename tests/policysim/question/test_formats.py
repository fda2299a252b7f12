"""Numbers in words show two digits and no more."""

import math
from fractions import Fraction

import numpy as np
import pytest

from policysim.question import formats
from policysim.question.formats import (
    percent,
    percent_1,
    percent_up,
    plain,
    population,
    rounded,
    rounded_down,
    rounded_up,
    sensitivity,
)
from policysim.question.words import odds, policy_odds


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (3905.2, "3,900"),
        (99.6, "100"),
        (0.0996, "0.10"),
        (0.155694, "0.16"),
        (1.0, "1.0"),
        (9.96, "10"),
        (-12.4, "−12"),
        (math.inf, "∞"),
        (math.nan, "–"),
        (0.000123, "0.00012"),
        (1e6, "1,000,000"),
    ],
)
def test_two_digits(value, text):
    assert rounded(value) == text


def test_a_sign_is_shown_on_request_but_not_on_zero():
    assert rounded(97.6, sign=True) == "+98"
    assert rounded(-0.5, sign=True) == "−0.50"
    assert rounded(0.0, sign=True) == "0"


def test_percentages_are_whole():
    assert percent(0.8) == "80\u00a0%"
    assert percent(-0.646) == "−65\u00a0%"
    assert percent(-0.001) == "0\u00a0%"
    assert percent(math.nan) == "–"


def test_deaths_are_counted_among_the_power_of_ten_that_shows_two_digits():
    assert population([0.0053, 0.003]) == 100_000
    assert population([0.00011, 0.0]) == 100_000
    assert population([0.000099]) == 1_000_000
    assert population([0.0, 0.0]) == 100_000
    assert population([-0.0000012]) == 10_000_000


@pytest.mark.parametrize(
    ("epsilon", "times"),
    [(0.01, "50.3"), (0.1, "52.5"), (0.5, "62.3"), (1, "73.2"), (2, "88.1"), (5, "99.4"), (0, "50")],
)
def test_the_odds_are_those_of_the_better_guess(epsilon, times):
    # e^eps / (1 + e^eps), printed to a tenth, and never below it.
    bound = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert 100 * bound <= float(times) < 100 * bound + 0.1
    assert f"at most {times} of 100 times; guessing blind, 50" in odds(epsilon, bound)


@pytest.mark.parametrize(
    ("policy", "guarantee", "says"),
    [
        ("greedy", math.inf, "greedy hides nothing: "),
        ("greedy", math.inf, "may tell two such patients apart every time."),
        ("uniform", 0.0, "uniform learns nothing about the patient: "),
        ("uniform", 0.0, "is right 50 of 100 times, as when guessing blind."),
    ],
)
def test_the_odds_of_a_policy_without_epsilon_are_its_own(policy, guarantee, says):
    sentence = policy_odds(policy, 1.0, guarantee, uses_epsilon=False)
    assert says in sentence
    assert "ε" not in sentence


def test_a_policy_that_spends_less_than_epsilon_is_not_said_to_spend_it():
    assert policy_odds("exponential", 1.0, 1.0, uses_epsilon=True) == odds(1.0, math.e / (1 + math.e))
    assert " 50 of 100" in policy_odds("exponential", 1.0, 0.0, uses_epsilon=True)


@pytest.mark.parametrize(
    ("epsilon", "text"), [(0.05, "0.05"), (1.0, "1"), (5000.0, "5,000"), (math.inf, "∞"), (math.nan, "–")]
)
def test_an_epsilon_is_written_in_one_way(epsilon, text):
    assert plain(epsilon) == text
    assert math.isnan(epsilon) or odds(epsilon, 0.5).startswith(f"At ε = {text}, ")


def test_the_bound_on_guesses_is_called_one_that_every_mechanism_obeys():
    sentence = odds(1.0, math.e / (1 + math.e))
    bound = "bound e^ε/(1 + e^ε), rounded up, of every mechanism with this ε; its own guess rate may be lower"
    assert bound in sentence
    assert "who must tell" not in sentence + policy_odds("greedy", 1.0, math.inf, uses_epsilon=False)


def test_a_sensitivity_agrees_with_its_parts_in_per_cent():
    # 98 % of Δ are 100: Δ is not 100 too.
    assert (sensitivity(102.468), sensitivity(100.42), percent(100.42 / 102.468)) == ("102", "100", "98\u00a0%")
    assert (sensitivity(0.5), sensitivity(60.46), sensitivity(0.0)) == ("0.500", "60.5", "0")


def test_nothing_has_no_sign():
    assert percent_1(-0.0001) == "0.0\u00a0%"
    assert percent_1(-0.001) == "−0.1\u00a0%"


@pytest.mark.parametrize(
    ("value", "down", "up"),
    [
        (1.9785, "1.9", "2.0"),
        (2.6648, "2.6", "2.7"),
        (2.0, "2.0", "2.0"),
        (0.0996, "0.099", "0.10"),
        (9.96, "9.9", "10"),
        (99.99, "99", "100"),
        (4583.0, "4,500", "4,600"),
        (-0.355, "−0.36", "−0.35"),
        (0.00001234, "1.2e−05", "1.3e−05"),
        (0.0000999, "9.9e−05", "0.00010"),
        (math.inf, "∞", "∞"),
        (0.0, "0", "0"),
        (math.nan, "–", "–"),
    ],
)
def test_a_bound_is_rounded_to_the_side_that_claims_less(value, down, up):
    assert (rounded_down(value), rounded_up(value)) == (down, up)


def test_no_digits_of_a_bound_ever_claim_more():
    rng = np.random.default_rng(0)
    for value in (rng.choice([-1, 1], 500) * 10 ** rng.uniform(-9, 9, 500)).tolist():
        for digits in (1, 2, 3, 6):
            low, high = (
                Fraction(shown(value, digits).replace(",", "").replace("−", "-"))
                for shown in (rounded_down, rounded_up)
            )
            assert low <= Fraction(value) <= high
            assert high - low <= abs(Fraction(value)) / 10 ** (digits - 1) * (1 + Fraction(1, 10**9))


def test_a_share_that_nothing_exceeds_is_rounded_up():
    assert [percent_up(share) for share in (0.301, 0.3, 1.0, -0.017, 0.0, 1e-15, math.nan)] == [
        "31\u00a0%", "30\u00a0%", "100\u00a0%", "−1\u00a0%", "0\u00a0%", "0\u00a0%", "–",
    ]  # fmt: skip


def test_a_bound_in_tenths_is_never_below_what_it_bounds():
    for share in (0.30287, 0.303, 0.30301, 1e-7, 0.99999):
        shown = float(formats.percent_1_up(share).removesuffix("\u00a0%"))
        assert 100 * share - 1e-9 <= shown < 100 * share + 0.1
    assert formats.percent_1_up(0.0) == "0\u00a0%"
    assert formats.percent_1_up(math.nan) == "–"
