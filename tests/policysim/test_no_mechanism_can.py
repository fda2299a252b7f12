"""What is said to be possible or impossible, judged in rational numbers where the two meet."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from check_certificate import proven_bound
from exact_optimum import fixed_loss, least_loss
from small_studies import write_small_study

import policysim as ps
import policysim.choose
import policysim.search
from policies.adjacency import OneFeature, Sensitive
from policies.arrays import ROUNDING
from policies.optimal_certificate import Certificate
from policysim.choose import Verdict, Wish, choose
from policysim.cli import main
from policysim.limit import Limit
from policysim.search import make_demand

# Limits on guessing. As a float, each is a rational number, and so is the e^epsilon that it allows, g / (1 - g).
GUESSES = (0.55, 0.625, 0.75, 0.9)
# How far from the exact boundary the demand is; 0 stands for the float next to it.
BESIDE = (0.0, 1e-9, -1e-9)


def random_problem(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(2, 6)), int(rng.integers(2, 4))
    utilities = rng.integers(-8, 9, size=(n, k)) / 8 if seed % 2 else rng.normal(size=(n, k))
    utilities = utilities + float(rng.choice([0.0, 0.0, 1e6, 1e9, 1e12]))
    prior = rng.integers(1, 9, size=n).astype(float)
    return ps.DecisionProblem(utilities, prior / prior.sum(), ps.AnyRecord())


def boundary(problem, guess):
    """The exact shares of the benefit: what every mechanism loses at least, and one treatment for all."""
    table, prior = problem.utilities.tolist(), problem.prior.tolist()
    # The floats of a prior need not sum to 1; nothing here asks for it.
    return least_loss(table, prior, Fraction(guess) / (1 - Fraction(guess))), fixed_loss(table, prior)


@pytest.mark.parametrize("part", range(4))
def test_at_the_exact_boundary_nothing_false_is_said(part, monkeypatch):
    # The verdict is on what is allowed; how exactly the least epsilon is searched for does not matter to it.
    for module in (policysim.search, policysim.choose):
        monkeypatch.setattr(module, "TOLERANCE", 0.5)
    said = dict.fromkeys(Verdict, 0)
    for seed in range(75 * part, 75 * part + 75):
        problem, guess = random_problem(seed), GUESSES[part]
        least, fixed = boundary(problem, guess)
        if fixed == 0:
            continue
        keep = float(1 - least / fixed) + BESIDE[seed % 3]
        choices = choose(problem, Wish(keep=keep, max_guess=guess), ["optimal"])
        allowed = (1 - Fraction(keep)) * fixed
        said[choices.verdict] += 1
        # No false "cannot"; no false "can", but for the rounding of sums that a demand leaves room for.
        assert choices.verdict is not Verdict.CANNOT or least > allowed, seed
        assert choices.verdict is not Verdict.CAN or least <= allowed * (1 + Fraction(10 * ROUNDING)), seed
        if abs(BESIDE[seed % 3]) > 0 and 0 < keep < 1:
            # A billionth beside it there is an answer.
            assert choices.verdict in (Verdict.CAN, Verdict.CANNOT), seed
        if choices.certificate is not None:
            assert proven_bound(json.dumps(choices.certificate)) <= least
    assert said[Verdict.CAN] > 20
    assert said[Verdict.CANNOT] > 10
