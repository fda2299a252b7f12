"""What no private mechanism exceeds over the days of a process, whatever it does on which day."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import numpy as np

from policies.arrays import FloatArray, non_negative
from policies.optimal.certificate import optimal_certificate
from policies.policy import NotApplicableError
from policies.problem import DecisionProblem
from policies.proof import floor_of, rounded_down
from policysim.course.planning import DailyDecisions, optimal_course
from policysim.course.process import Process, one_start

BOUNDS_NOTHING = (
    "course_limit bounds nothing here: all who are hidden among each other begin in one state, so that to hide the "
    "first state asks for nothing. It is the value of the best plan."
)

# What a sum of floats may be too large by, and more.
_LOWERED = 1 - Fraction(1, 2**50)


def course_limit(process: Process, *, epsilon: float, delta: float = 0.0) -> float:
    """A value that no (epsilon, delta)-private mechanism for the whole course of a process exceeds.

    A mechanism may choose day by day or all at once, remember everything, and depend on every day's state. It hides at
    least the first state: for any two of them, x and x', and any set S of published courses, P(S|x) <= e^epsilon
    P(S|x') + delta, where P averages over the states that follow; in a process with public classes, for any two of one
    class. Then so does the first action alone, which is a part of what is published. And whatever follows is worth at
    most the Q-value of the first state and action under the best continuation. So the value is at most that of the best
    (epsilon, delta)-private choice between these Q-values, given the initial distribution.

    Who hides the whole course of states, as `plan_once` and the rows of `compare` with hides = "course" do, hides the
    first one. So the limit holds for them, too, but may be far above what any of them can be worth.

    Parameters
    ----------
    process : Process
        A `TabularMDP`, or the course of a treatment.
    epsilon : float
        >= 0; with inf the limit is the value of the best plan.
    delta : float, optional
        In [0, 1).

    Returns
    -------
    float
        Rounded up, in units of the rewards.

    Raises
    ------
    ValueError
        For an epsilon or a delta out of range, something else than a process, or one without a best plan (`plan`).

    Warns
    -----
    UserWarning
        If all who are hidden among each other begin in one state, as in FrozenLake: then nothing is bounded.

    Notes
    -----
    What the choice loses at least is proved in rational arithmetic (`policies.proof`), on the Q-values as they are;
    where there is no proof (more than `MAX_ENTRIES` groups times actions), the limit is the value of the best plan. For
    delta > 0, the ceilings M_a = max p(a|.) satisfy p(a|x) >= q (M_a - delta), and so the proof's sum of
    beta (q M - p) is at most q delta sum(beta), which is taken from what is lost.

    Examples
    --------
    Two states that never change, each helped by another action on three days: of the first day's 1 a private choice
    gets e / (1 + e) at most.

    >>> from policysim.course.tabular import TabularMDP
    >>> mdp = TabularMDP([[[1, 0], [1, 0]], [[0, 1], [0, 1]]], [[1, 0], [0, 1]], [0.5, 0.5], horizon=3)
    >>> round(course_limit(mdp, epsilon=1.0), 3), round(course_limit(mdp, epsilon=1.0, delta=0.01), 3)
    (2.731, 2.734)
    """
    if not hasattr(process, "continuation"):
        raise ValueError(f"course_limit takes a process, such as a TabularMDP, got {process!r}.")
    epsilon, delta = non_negative(epsilon, "epsilon"), non_negative(delta, "delta")
    if delta >= 1:
        raise ValueError(f"delta must be < 1, got delta={delta!r}.")
    if one_start(process.initial, process.classes):
        warnings.warn(BOUNDS_NOTHING, UserWarning, stacklevel=2)
    return first_day_limit(optimal_course(process), process.initial, epsilon, delta)


def first_day_limit(course: DailyDecisions, initial: FloatArray, epsilon: float, delta: float = 0.0) -> float:
    """The limit, from the decisions of a process under its best plan (`optimal_course`)."""
    first = course.plain[0]
    if first.whole is not None:
        lost = _least_loss(first.whole, epsilon, delta)
    else:
        # What hides the states of a public class from each other hides those of them that allow the same actions.
        lost = sum(
            (
                Fraction(math.fsum(initial[part.rows])) * _least_loss(part.problem, epsilon, delta) * _LOWERED
                for part in first.classes
                if part.problem is not None
            ),
            Fraction(0),
        )
    # The best plan's value, at least: each product has one rounding, and so has the sum.
    products = initial * course.values
    best = Fraction(math.fsum(products)) + Fraction(math.fsum(np.abs(products))) * Fraction(1, 2**51)
    # The smallest float that is not smaller.
    return -rounded_down(lost - best)


def _least_loss(problem: DecisionProblem, epsilon: float, delta: float) -> Fraction:
    """What every (epsilon, delta)-private choice loses at least against the best action for each record."""
    try:
        proof = optimal_certificate(problem, epsilon)
    except NotApplicableError:
        return Fraction(0)
    if not proof.holds(problem):
        return Fraction(0)
    undercut = floor_of(epsilon) * Fraction(delta) * Fraction(math.fsum(proof.beta.ravel())) / _LOWERED
    return max(Fraction(0), Fraction(proof.bound) - undercut)
