"""The largest daily epsilon that a budget affords, judged by what the days' own tables spend."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from policies.accounting import Use, loss_and_range, response_variation
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.randomized_response import RandomizedResponse
from policysim.course.composition import SAFE

# The search ends when this share of the budget is spent, or when the best epsilon found is this share of one that
# overspends. It also ends after MAX_TRIES: only a spending that jumps takes so many.
ENOUGH = 0.99
MAX_TRIES = 10
GROWTH = 16.0


def spend(policy: Policy, problems: Sequence[DecisionProblem], epsilons: Sequence[float]) -> tuple[Use, ...]:
    """What a policy reveals on each day by the day's own table, if it has epsilons[d] on day d.

    Parameters
    ----------
    policy : Policy
        Its epsilon is replaced.
    problems : sequence of DecisionProblem
        One a day; each is read once.
    epsilons : sequence of float
        One a day.
    """
    uses = []
    for problem, epsilon in zip(problems, epsilons, strict=True):
        loss, eta = loss_and_range(replace(policy, epsilon=epsilon), problem)
        # The policy's guarantee is proved; a loss that is above it in the last digits is the rounding of a logarithm.
        loss = epsilon if epsilon < loss <= epsilon / SAFE else loss
        response = isinstance(policy, RandomizedResponse)
        uses.append(Use(loss, eta, response_variation(epsilon, problem.n_actions) if response else 1.0))
    return tuple(uses)


def most_affordable(share: Callable[[float], float], start: float, beaten: float) -> float:
    """The largest epsilon found with share(epsilon) <= 1; 0 if none above `beaten` is.

    Each try scales the last one to where the share would be 1 if it were proportional to epsilon, and keeps a bracket.
    What is returned was tried itself: that the share rises with epsilon is only used to choose what to try. Where it
    jumps or falls, the result is affordable but may not be the largest.

    Parameters
    ----------
    share : callable
        From a daily epsilon to the share of the budget that it spends.
    start : float
        What to try first.
    beaten : float
        An epsilon that is affordable anyway.
    """
    epsilon, best, best_share, worst = start, 0.0, 0.0, math.inf
    for attempt in range(MAX_TRIES):
        found = share(epsilon)
        if attempt == 0 and found == 0 and share(math.inf) <= 1:
            return math.inf
        if found <= 1:
            best, best_share = epsilon, found
        else:
            worst = epsilon
        if epsilon == 0 or best_share >= ENOUGH or best >= ENOUGH * worst or worst <= beaten:
            break
        epsilon = _next_try(epsilon, found, best, worst)
    return best


def _next_try(epsilon: float, found: float, best: float, worst: float) -> float:
    scaled = epsilon / found * SAFE if found > 0 else math.inf
    if best < scaled < worst:
        return scaled
    if worst == math.inf:
        return best * GROWTH
    return math.sqrt(best * worst) if best > 0 else worst / GROWTH
