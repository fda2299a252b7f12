"""Certificates used by hand: what is lost within bounds, and the problem as a file for `check_certificate`."""

import json
from fractions import Fraction

import numpy as np

from policies import DecisionProblem
from policies.optimal.bounded import bounded_optimum
from policies.optimal.bounds import bounds_on
from policies.optimal.certificate import optimal_certificate
from policies.proof import LOST


def least_lost(problem, epsilon, at_most=None, capacity=None):
    """What every epsilon-private policy within bounds loses at least: proven, with the multipliers for weights.

    A share is an outcome that is 1 for its action.
    """
    bounds = bounds_on(problem, at_most, capacity)
    multipliers = bounded_optimum(problem, epsilon, at_most=at_most, capacity=capacity).multipliers
    shares = {name: np.tile(np.array(problem.actions) == name, (problem.n_records, 1)) * 1.0 for name in capacity or ()}
    whole = DecisionProblem(
        problem.utilities,
        problem.prior,
        problem.adjacency,
        problem.actions,
        outcomes={**problem.outcomes, **shares},
        admissible=problem.admissible,
    )
    proof = optimal_certificate(whole, epsilon, {LOST: 1.0, **multipliers})
    assert proof.holds(whole)
    allowed = sum((Fraction(multipliers[bound.name]) * Fraction(bound.limit) for bound in bounds), Fraction(0))
    return float(Fraction(proof.bound) - allowed)


def problem_json(problem):
    """The tables of a problem, for `check_certificate`."""
    whole = {
        "actions": list(problem.actions),
        "utilities": problem.utilities.tolist(),
        "prior": problem.prior.tolist(),
        "outcomes": {name: table.tolist() for name, table in problem.outcomes.items()},
    }
    if problem.admissible is not None:
        whole["admissible"] = problem.admissible.tolist()
    return json.dumps(whole)
