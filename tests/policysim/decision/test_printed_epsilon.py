"""An epsilon that is printed meets what was asked for, in the fewest digits, and everything beside it is at that."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from check_certificate import proven_bound
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_problems import problems

import policysim as ps
from policies.privacy_loss import guess_rate
from policysim.decision.choose import Wish, choose, rows_of
from policysim.decision.choose_findings import find
from policysim.decision.choose_words import screen_of
from policysim.decision.demands import LOWEST, STEP, fewest_digits
from policysim.decision.limit import Limit
from policysim.numbers import decimal, digits_of, next_below
from policysim.study.gain import gain_of
from policysim.study.labels import Labels
from policysim.words import KEEP, guesses

POLICIES = ["optimal", "randomized-response", "exponential"]


def decimals(digits, low, high):
    """All numbers of at most so many significant digits from low to high, in order."""
    places = range(math.floor(math.log10(low)) - digits + 1, math.floor(math.log10(high)) - digits + 2)
    grid = {
        float(f"{whole}e{place}")
        for place in places
        for whole in range(max(10 ** (digits - 1), math.floor(low / 10.0**place)), 10**digits)
        if whole <= math.ceil(high / 10.0**place)
    }
    return sorted(number for number in grid if low <= number <= high)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None)
def test_it_has_the_fewest_digits_and_is_the_least_of_so_many(seed):
    rng = np.random.default_rng(seed)
    least = float(10 ** rng.uniform(-4, 4))
    # What holds is an interval, and the search ends a little above its lower end.
    most = least * (1 + float(10 ** rng.uniform(-4.5, 1)))
    end = min(least * (1 + 1e-4 * float(rng.random())), most)
    found = fewest_digits(end, lambda epsilon: least <= epsilon <= most)
    assert least <= found <= most
    assert float(decimal(found)) == found
    # As far as the search tells: beyond four digits, there may be fewer or a smaller number below the end.
    for digits in range(2, 5):
        if shorter := decimals(digits, least, most):
            assert found == shorter[0]
            assert next_below(found) < least
            break
    else:
        assert digits_of(found) > 4


def test_where_no_decimal_holds_it_is_the_number_itself():
    least = math.log(9)
    found = fewest_digits(least, lambda epsilon: epsilon == least)
    assert found == least == float(decimal(found))
    assert fewest_digits(0.0, lambda epsilon: epsilon >= 0) == 0.0


@pytest.mark.parametrize("number", [3.0, 3.2, 0.1, 9.9, 10.0, 180.0, 12000.0, 3.22, 7e-6, 2.0**-20, 1e22])
def test_the_text_is_exactly_the_number_and_the_next_is_one_unit_below(number):
    text = decimal(number)
    assert float(text) == number
    assert len(re.sub(r"e.*|\.", "", text).lstrip("0")) >= 2
    below = next_below(number)
    assert below < number
    assert digits_of(below) <= digits_of(number)
    if digits_of(number) < 8:
        assert decimals(digits_of(number), below, number) == [below, number]


@st.composite
def problems_with_wishes(draw):
    """A problem and a wish, whose limits on guesses leave little room above the least epsilon, or none."""
    problem = draw(problems(3))
    assume(gain_of(problem).exists)
    keep = draw(st.sampled_from([0.3, 0.8, 0.95]))
    wish = Wish(keep=keep, **draw(st.sampled_from([{}, {"at_most": {"death": "one for all"}}])))
    room = 1 + draw(st.sampled_from([1e-6, 1e-3, 0.02, 0.5]))
    what = draw(st.sampled_from(["", "max_guess", "max_guess_rate"]))
    try:
        least = ps.smallest_epsilon(problem, "optimal", keep=keep, at_most=wish.at_most)
    except ValueError:
        return problem, wish
    if not 0 < least * room < 20:
        return problem, wish
    table = ps.make_policy("optimal", epsilon=least * room).probabilities(problem)
    most = {"max_guess": guesses(least * room), "max_guess_rate": guess_rate(table, problem.adjacency).rate}
    return problem, replace(wish, **{what: most[what]}) if what else wish


# An example takes half a second.
@given(problems_with_wishes())
@settings(max_examples=5, deadline=None)
def test_what_is_printed_meets_all_that_was_asked_for_and_less_does_not(example):
    problem, wish = example
    demand = wish.demand(problem)
    choices = choose(problem, wish, POLICIES)

    def table_at(row, epsilon):
        return demand.within(ps.make_policy(row["policy"], epsilon=epsilon), problem).probabilities(problem)

    def holds(row, epsilon):
        try:
            table = table_at(row, epsilon)
        except ValueError:  # no policy keeps the bounds
            return False
        within = epsilon <= wish.max_epsilon and guess_rate(table, problem.adjacency).rate <= wish.most_guessed
        return demand.margin(problem, table) >= 0 and (within or not row["allowed"])

    for row in rows_of(choices.needs):
        epsilon = float(decimal(row["epsilon"]).replace("∞", "inf"))
        assert epsilon == row["epsilon"]
        if epsilon in (0, math.inf):
            continue
        assert holds(row, epsilon)
        table = table_at(row, epsilon)
        assert row["value"] == pytest.approx(problem.value(table), rel=1e-12)
        assert row["guess_rate"] == pytest.approx(guess_rate(table, problem.adjacency).rate, rel=1e-12)
        assert row["right_guesses"] == guesses(epsilon)
        if digits_of(epsilon) <= 4:
            # Every ε above the least that is searched may do.
            assert epsilon <= STEP * LOWEST or not holds(row, next_below(epsilon))
        for digits in range(2, min(digits_of(epsilon), 6)):
            shorter = math.ceil(epsilon / 10 ** (scale := math.floor(math.log10(epsilon)) - digits + 1)) * 10.0**scale
            assert not holds(row, float(f"{shorter:.{digits}g}"))
        if choices.attains(epsilon):
            proof = Limit(problem, demand).certificate(min(next_below(epsilon), choices.limit))
            assert proven_bound(json.dumps(proof)) > proof["allowed"]
            assert next_below(epsilon) <= proof["epsilon"]


def printed(problem, choices):
    """The findings about some choices, and the lines of the screen by their labels."""
    findings = find(problem, choices, Labels.of(problem))
    screen = screen_of(findings, Labels.of(problem))
    return findings.details, {line.label: line.text for line in screen.lines}, screen


def test_a_limit_and_the_mechanism_that_attains_it_are_one_number(ward):
    problem = ward.problem
    choices = choose(problem, Wish(keep=0.8, max_guess=0.962), POLICIES)
    epsilon = choices.least["epsilon"]
    # Three digits: 3.3 lets guess more often than is allowed.
    assert guesses(epsilon) <= 0.962 < guesses(3.3)
    assert digits_of(epsilon) == 3
    details, lines, screen = printed(problem, choices)
    assert details.next_impossible and details.next_epsilon == next_below(epsilon)
    assert f"Choose B at ε = {epsilon}:" in screen.advice
    assert f"ε = {next_below(epsilon)} is not enough, for B or for any other mechanism" in lines["A smaller ε"]
    optimal = ps.make_policy("optimal", epsilon=round(epsilon - 0.01, 2))
    demand = Wish(keep=0.8).demand(problem)
    assert demand.margin(problem, optimal.probabilities(problem)) < 0
    assert Limit(problem, demand).certificate(optimal.epsilon) is not None
    # What nothing that was compared attains has a number of its own, below which nothing does it.
    alone = choose(problem, Wish(keep=0.8), ["exponential"])
    details, lines, _ = printed(problem, alone)
    assert not details.next_impossible
    assert "At ε = 3.2 or less no mechanism does: that is proved." in lines["A smaller ε"]
    assert Limit(problem, demand).certificate(3.2) is not None


@pytest.mark.parametrize("guess", [0.7, 0.89, 0.8999])
def test_what_is_needed_is_said_in_digits_that_tell_it_from_what_is_allowed(guess):
    problem = ps.DecisionProblem(np.eye(2), [0.5, 0.5], ps.AnyRecord())
    _, lines, _ = printed(problem, choose(problem, Wish(keep=0.8, max_guess=guess), ["optimal"]))
    least, most = map(float, re.findall(r"ε = ([\d.]*\d)", lines["Not possible"]))
    assert most <= math.log(guess / (1 - guess)) < least <= math.log(9)


def test_more_digits_are_printed_before_a_guess_rate_is_given_up(ward):
    problem = ward.problem
    response = ps.make_policy("randomized-response", epsilon=3.3)
    rounded_to_two = guess_rate(response.probabilities(problem), problem.adjacency).rate
    (row,) = rows_of(choose(problem, Wish(keep=0.8, max_guess_rate=0.946), ["randomized-response"]).needs)
    assert row["allowed"]
    assert row["guess_rate"] <= 0.946 < rounded_to_two
    assert digits_of(row["epsilon"]) == 3


def test_a_comparison_names_epsilons_that_keep_and_beat_as_printed(ward):
    problem = ward.problem
    demand = Wish(keep=KEEP).demand(problem)
    found = ward.report.tables["search"].set_index("policy")
    assert set(found.index[np.isfinite(found["keeps_from"])]) == {*POLICIES, "exponential-fitted"}
    for name, (better, keeps) in found[["better_from", "keeps_from"]].iterrows():
        for epsilon, least in ((keeps, demand.value), (better, problem.best_fixed_value + 1e-12)):
            values = [
                problem.value(ps.make_policy(name, epsilon=at).probabilities(problem))
                for at in (next_below(epsilon), float(decimal(epsilon)))
            ]
            assert values[0] < least <= values[1], (name, epsilon)
