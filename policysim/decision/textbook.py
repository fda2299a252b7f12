"""Why the exponential mechanism of the textbook does badly: its noise is sized for the pair of records farthest apart.

p(a|x) is proportional to exp(u(x, a) epsilon / (2 Delta)) (McSherry & Talwar 2007, theorem 6): it starts from equal
odds, and a difference of u between two treatments multiplies them by exp(u epsilon / (2 Delta)). Delta is a maximum
over all neighbours, also those who never come; for most patients treatments differ by far less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from policies.exponential import Exponential
from policies.problem import DecisionProblem
from policies.reference import Greedy
from policysim.decision.demands import value_curve
from policysim.study.gain import NO_BENEFIT, gain_of
from policysim.study.sweep import evaluated_on
from policysim.words import KEEP


@dataclass(frozen=True)
class Textbook:
    """What the exponential mechanism of the textbook is up against.

    Attributes
    ----------
    sensitivity : float
        Delta, in units of utility.
    median_difference : float
        For half of the patients the best and the worst treatment differ by no more, in units of utility.
    beats_from : float
        The least epsilon, of two digits, from which it is worth more than the option that it is compared with, beyond
        rounding; 0 where any above 0 will do, inf where none does, or nothing is worth more.
    keeps_from : float
        The same from which it keeps the share of what the best for each gains over that option; NaN where there is
        nothing to gain.
    """

    sensitivity: float
    median_difference: float
    beats_from: float
    keeps_from: float


def textbook(problem: DecisionProblem, value: float, comparison: pd.DataFrame, *, keep: float = KEEP) -> Textbook:
    """Why the exponential mechanism of the textbook does badly against an option of a given value.

    Parameters
    ----------
    problem : DecisionProblem
        What is to be decided.
    value : float
        The expected utility of the option per patient: of the same treatment for everyone.
    comparison : DataFrame
        Of `compare_problem`; what it knows of the mechanism is not computed again.
    keep : float, optional
        The share of what the best for each gains.
    """
    gain = gain_of(problem)
    possible = gain.best - value
    curve = value_curve(problem, Exponential(), comparison)
    beats, keeps = math.inf, math.nan
    if possible > gain.rounding:
        beats = curve.least_reaching(value + max(NO_BENEFIT * possible, gain.rounding))
        # No more than the best for each is wanted, whatever rounding makes of the sum.
        keeps = curve.least_reaching(min(value + keep * possible, gain.best - gain.rounding))
    return Textbook(problem.sensitivity.value, median_difference(problem), beats, keeps)


def median_difference(problem: DecisionProblem) -> float:
    """The least difference between best and worst treatment that is not exceeded for half of the patients."""
    each = evaluated_on(Greedy(), problem)
    stakes = each.utilities.max(axis=1) - each.utilities.min(axis=1)
    order = np.argsort(stakes)
    below = np.cumsum(each.prior[order])
    return float(stakes[order][np.searchsorted(below, below[-1] / 2)])
