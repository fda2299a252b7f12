"""What no private mechanism exceeds over the days of a process, whatever it does on which day."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np

from envs.treatment_response import is_whole
from policies.arrays import FloatArray, non_negative
from policies.optimal.certificate import optimal_certificate
from policies.policy import NotApplicableError
from policies.problem import DecisionProblem
from policies.proof import float_below, floor_of
from policysim.course.course_proof import CourseProof, proven
from policysim.course.course_tree import RestValues, inner_nodes, priced_tree
from policysim.course.planning import DailyDecisions, optimal_course
from policysim.course.process import Process, one_start, q_table, require_process
from policysim.course.schedules import Schedules, sketch_of
from policysim.course.tree_search import climb, even_weights, lowest_cuts

BOUNDS_NOTHING = (
    "course_limit bounds nothing here: all who are hidden among each other begin in one state, so that to hide the "
    "first state asks for nothing. It is the value of the best plan."
)

# How a limit was proved.
RATIONALS, ROUNDED = "rationals", "directed rounding"
# Limits are proved in rationals up to so many states.
MOST_EXACT = 10_000
# Cutting planes end within this share of what there is to gain, or after so many cuts; of more states after fewer.
GAP, CUTS, LARGE_GAP, LARGE_CUTS = 1e-7, 200, 1e-3, 30
# Pieces of a node: fewer where the tables of all nodes would have more numbers.
LEAST_PIECES, MOST_PIECES, MOST_NUMBERS = 3, 512, 50_000_000
# Below the first the bound is that of the first, above the second that of the best plan.
LEAST_EPSILON, MOST_EPSILON = 1e-6, 40.0

# What a sum of floats may be too large by, and more.
_LOWERED = 1 - Fraction(1, 2**50)


def course_limit(
    process: Process, epsilon: float, *, delta: float = 0.0, days: int = 1, hides: str = "first state"
) -> float:
    """A value that no (epsilon, delta)-private mechanism for the whole course of a process exceeds.

    A mechanism may choose day by day or all at once, remember everything, and depend on every day's state. It hides at
    least the first state: for any two of them, x and x', and any set S of published courses, P(S|x) <= e^epsilon
    P(S|x') + delta, where P averages over the states that follow; in a process with public classes, for any two of one
    class. Then so does the first action alone, which is a part of what is published. And whatever follows is worth at
    most the Q-value of the first state and action under the best continuation. So the value is at most that of the best
    (epsilon, delta)-private draw between these Q-values, given the initial distribution.

    Who hides the whole course of states, as `plan_once`, `plan_tree` and the rows of `compare` with hides = "course"
    do, hides the first one. So the limit holds for them, too, but may be far above what any of them can be worth. With
    hides="course" the limit is theirs, and it falls with more days: over all days it is the best that can be done.

    Parameters
    ----------
    process : Process
        A `TabularMDP`, or the course of a treatment.
    epsilon : float
        >= 0; with inf the limit is the value of the best plan.
    delta : float, optional
        In [0, 1); 0 where the course is hidden.
    days : int, optional
        Where the course is hidden, of so many first days what is published is private; nothing has to be hidden after
        them. A day more multiplies the work by the number of actions, or more.
    hides : "first state" or "course", optional
        What every mechanism hides at least: first states among each other, or any two courses of states.

    Returns
    -------
    float
        Rounded up, in units of the rewards.

    Raises
    ------
    ValueError
        For an argument out of range, something else than a process, or one without a best plan (`plan`).

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

    Where the course is hidden, the limit is a mean of cutting planes of the largest value, which is concave in the
    weights of what is published on the first days (`policysim.course.course_tree`). They are proved in rational
    arithmetic (`policysim.course.course_proof`), or, of more than `MOST_EXACT` states, by sums that are rounded up by
    more than all their roundings can amount to. There are at most `LARGE_CUTS` of these; any number of them bounds.

    Examples
    --------
    Two states that never change, each helped by another action on three days: of the first day's 1 a private draw
    gets e / (1 + e) at most.

    >>> from policysim.course.tabular import TabularMDP
    >>> mdp = TabularMDP([[[1, 0], [1, 0]], [[0, 1], [0, 1]]], [[1, 0], [0, 1]], [0.5, 0.5], horizon=3, axes="SAS")
    >>> round(course_limit(mdp, epsilon=1.0), 3), round(course_limit(mdp, epsilon=1.0, delta=0.01), 3)
    (2.731, 2.734)
    >>> [round(course_limit(mdp, epsilon=1.0, days=days, hides="course"), 3) for days in (1, 2, 3)]
    [2.731, 2.462, 2.193]
    """
    require_process(process, "course_limit takes")
    epsilon, delta = non_negative(epsilon, "epsilon"), non_negative(delta, "delta")
    if delta >= 1:
        raise ValueError(f"delta must be < 1, got delta={delta!r}.")
    if hides == "first state":
        if one_start(process.initial, process.classes):
            warnings.warn(BOUNDS_NOTHING, UserWarning, stacklevel=2)
        if days != 1:
            raise ValueError(f'days must be 1 where hides="first state", got days={days!r}.')
        return first_day_limit(optimal_course(process), process.initial, epsilon, delta)
    if hides != "course":
        raise ValueError(f'hides must be "first state" or "course", got hides={hides!r}.')
    if delta > 0:
        raise ValueError(f'delta must be 0 where hides="course", got delta={delta!r}.')
    if process.horizon is None or not is_whole(days) or not 1 <= days <= process.horizon:
        raise ValueError(f"days must be a whole number from 1 to the horizon {process.horizon}, got days={days!r}.")
    return limit_of_first_days(process, epsilon, int(days)).value


@dataclass(frozen=True)
class ProvenLimit:
    """A limit, how it was proved ("rationals" or "directed rounding"), and what all hide at least whom it bounds."""

    value: float
    proof: str
    hides: str = "course"


def limit_of_first_days(process: Process, epsilon: float, days: int) -> ProvenLimit:
    """The limit of what hides the course of states, from what is published on the first days (`course_limit`)."""
    parts = process.by_class()
    if len(parts) == 1 and process.classes is not None and np.ptp(process.classes) > 0:
        # States that change their class are hidden among fewer than all: the first day bounds that.
        return ProvenLimit(first_day_limit(optimal_course(process), process.initial, epsilon), "rationals")
    limits = [
        (Fraction(math.fsum(process.initial[states])), _class_limit(part, epsilon, days)) for states, part in parts
    ]
    # A conditional distribution has a rounding of its own in each entry, and its sum another.
    total = sum((share * Fraction(limit.value) for share, limit in limits), Fraction(0))
    slack = sum((share * Fraction(abs(limit.value)) for share, limit in limits), Fraction(0)) * Fraction(1, 2**49)
    exact = len(parts) == 1
    proofs = {limit.proof for _, limit in limits}
    return ProvenLimit(-float_below(-total - (0 if exact else slack)), RATIONALS if proofs == {RATIONALS} else ROUNDED)


def _class_limit(process: Process, epsilon: float, days: int) -> ProvenLimit:
    """The limit of the states of one public class."""
    family, small = Schedules(process, (1,) * days), len(process.initial) <= MOST_EXACT
    best = float(process.initial @ upper_values(process)[0]) + _rounding(process)
    if not family.open or epsilon > MOST_EPSILON:
        # No mechanism, or none that loses more than rounding.
        return ProvenLimit(best, ROUNDED)
    # What bounds a larger epsilon bounds this one.
    epsilon = max(epsilon, LEAST_EPSILON)
    q, pool = math.exp(-epsilon), list(product(family.open, repeat=days))
    starts = [even_weights(len(pool), q)]
    gap, most = (GAP, CUTS) if small else (LARGE_GAP, LARGE_CUTS)
    for searched in (sketch_of(process), process):
        values = upper_values(searched)
        everyday = Schedules(searched, (1,) * (process.horizon or 0))
        stakes = float(searched.initial @ values[0]) - max(map(everyday.constant_value, everyday.open))
        nodes = len(values[0]) * len(everyday.open) ** (days - 1)
        pieces = min(max(MOST_NUMBERS // nodes, LEAST_PIECES), MOST_PIECES)
        worth = RestValues(replace(family, process=searched), values[days])
        price = partial(priced_tree, worth, q=q, most=pieces)
        top = climb(price, pool, starts, q=q, gap=gap * stakes, most=most)
        starts = [weights for weights, share in zip(top.tried, top.shares, strict=True) if share > 0]
    if small:
        trees = [price(dict(zip(pool, weights, strict=True))).root for weights in starts]
        # The prices of each prefix of a tree, but of whole courses.
        prices = [{node.prefix: node.slopes for node in inner_nodes(tree)} for tree in trees]
        cuts = list(zip(top.shares[top.shares > 0], prices, strict=True))
        limit = proven(process, CourseProof(epsilon, family.open, days, values, cuts))
        return ProvenLimit(best if limit is None else min(best, -float_below(-limit)), RATIONALS)
    table = top.cuts + _rounding(process)
    _, _, shares = lowest_cuts(table, q)
    mean = shares @ table
    most_gained = float(mean[1:].max())
    return ProvenLimit(min(best, float(mean[0]) + max(most_gained, most_gained / q)) + _rounding(process), ROUNDED)


def upper_values(process: Process) -> list[FloatArray]:
    """What the best plan earns from each day on, or a little more, (n,) each; 0 after the last day."""
    values = [np.zeros(len(process.initial))]
    for _ in range(process.horizon or 0):
        q_values = q_table(process, values[-1])
        values.append(q_values.max(axis=1) + _rounding(process) / (8 * (process.horizon or 1)))
    return values[::-1]


def _rounding(process: Process) -> float:
    """More than the roundings of a cut: each of its sums has a term for each state, day and action at most."""
    n, k = process.rewards.shape
    days = process.horizon or 1
    return float(2.0**-49 * (n + 64) * (k + days) * days * np.abs(process.rewards).max())


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
    return -float_below(lost - best)


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
