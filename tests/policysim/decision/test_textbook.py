"""Why the textbook's mechanism does badly: the median by counting, epsilons in closed form."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import masked_problems, problems

import policysim as ps
from policysim.decision.comparison import compare_problem
from policysim.decision.textbook import median_difference, textbook
from policysim.numbers import enough

# Two records with opposite best actions and Delta = 1: each gets the right one with p = 1 / (1 + e^(-epsilon / 2)).
SYMMETRIC = ps.DecisionProblem([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5], ps.AnyRecord())


def of_textbook(problem, value, **options):
    return textbook(problem, value, compare_problem(problem, policies=["exponential"], epsilons=[1.0]), **options)


@pytest.mark.parametrize("value", [0.5, 0.6, 0.9])
@pytest.mark.parametrize("keep", [0.1, 0.8])
def test_epsilons_are_the_closed_form_rounded_up_to_two_digits(value, keep):
    found = of_textbook(SYMMETRIC, value, keep=keep)

    def epsilon(right):
        return enough(2 * math.log(right / (1 - right)), 2) if right > 0.5 else 0.0

    assert found.beats_from == epsilon(value)
    assert found.keeps_from == epsilon(value + keep * (1 - value))


def test_what_nothing_is_better_than_is_never_beaten():
    found = of_textbook(SYMMETRIC, 1.0)
    assert (found.beats_from, np.isnan(found.keeps_from)) == (math.inf, True)


@settings(max_examples=60, deadline=None)
@given(problem=st.one_of(problems(), masked_problems()))
def test_half_of_the_patients_have_no_more_at_stake(problem):
    found = median_difference(problem)
    mask = True if problem.admissible is None else problem.admissible
    rows = [
        np.ptp(row[allowed])
        for row, allowed in zip(problem.utilities, mask & np.ones(problem.utilities.shape, bool), strict=True)
    ]
    stakes = np.array(rows)
    assert problem.prior[stakes <= found + 1e-12 * abs(found)].sum() >= 0.5 - 1e-9
    assert problem.prior[stakes < found - 1e-12 * abs(found)].sum() < 0.5 + 1e-9
    assert np.isclose(stakes, found).any()


@settings(max_examples=25, deadline=None)
@given(problem=problems())
def test_the_epsilon_is_enough_and_the_next_smaller_is_not(problem):
    value = problem.best_fixed_value
    found = of_textbook(problem, value)
    best = float(problem.prior @ problem.utilities.max(axis=1))
    scale = 1e-9 * (best - value) + 1e-13 * np.abs(problem.utilities).max()
    for epsilon, needed in ((found.beats_from, value), (found.keeps_from, value + 0.8 * (best - value))):
        if 0 < epsilon < math.inf:
            worth = [
                problem.value(ps.make_policy("exponential", epsilon=at))
                for at in (epsilon, epsilon * (1 - 1e-9) * 0.89)
            ]
            assert worth[0] >= needed - scale
            assert worth[1] <= needed + scale
