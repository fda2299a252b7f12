"""What a budget affords: the largest epsilon found within it, and which days buy what."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from policies.arrays import FloatArray, IntArray

# Sums of so many numbers may exceed what a formula says by their last digits.
SAFE = 1 - 1e-9
# The search ends when this share of the budget is spent, or when the best epsilon found is this share of one that
# overspends. It also ends after MAX_TRIES: only a spending that jumps takes so many.
ENOUGH = 0.99
MAX_TRIES = 10
GROWTH = 16.0


def most_affordable(share: Callable[[float], float], start: float, beaten: float, tries: int = MAX_TRIES) -> float:
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
    tries : int, optional
        How many at most.
    """
    epsilon, best, best_share, worst = start, 0.0, 0.0, math.inf
    for attempt in range(tries):
        found = share(epsilon)
        if attempt == 0 and found == 0 and share(math.inf) <= 1:
            return math.inf
        if found <= 1:
            best, best_share = epsilon, found
        else:
            worst = epsilon
        if epsilon == 0 or best_share >= ENOUGH or best >= ENOUGH * worst or worst <= beaten:
            break
        scaled = epsilon / found * SAFE if found > 0 else math.inf
        if best < scaled < worst:
            epsilon = scaled
        elif worst == math.inf:
            epsilon = best * GROWTH
        else:
            epsilon = math.sqrt(best * worst) if best > 0 else worst / GROWTH
    return best


def buy_most(gains: FloatArray, costs: FloatArray, budget: float) -> IntArray:
    """Which level each day buys so that all gain much within a budget, (H,); -1 for none.

    Of each day's levels those count that no mixture of others beats (the upper concave hull over the costs). Steps from
    one to the next are bought in the order of their gain per cost as long as they fit; or the one level that gains most
    alone, if that is more. So the gain is at least half of the largest possible (the greedy rule of the knapsack).

    Parameters
    ----------
    gains, costs : array, (H, n_levels)
        What each level gains on each day, and what it costs, >= 0.
    budget : float
        What all days may cost together.

    Examples
    --------
    >>> buy_most(np.array([[1.0, 3.0], [1.0, 1.5]]), np.array([[1.0, 2.0], [1.0, 2.0]]), 3.0).tolist()
    [1, 0]
    """
    steps = []
    for day, (gain, cost) in enumerate(zip(gains, costs, strict=True)):
        before, at = (0.0, 0.0), 0
        while True:
            rising = [(g - before[1], c - before[0], i) for i, (g, c) in enumerate(zip(gain, cost, strict=True))]
            rising = [step for step in rising if step[0] > 0 and step[1] >= 0 and cost[step[2]] <= budget]
            if not rising:
                break
            g, c, level = max(rising, key=lambda step: (step[0] / step[1] if step[1] > 0 else math.inf, step[0]))
            # Steps of a day come in their order, since their gain per cost falls.
            steps.append((-g / c if c > 0 else -math.inf, day, at, level, c))
            before, at = (float(cost[level]), float(gain[level])), at + 1
    bought, left, closed = np.full(len(gains), -1), budget, set()
    for _, day, _, level, cost_of_step in sorted(steps):
        if day in closed or cost_of_step > left:
            closed.add(day)
            continue
        bought[day], left = level, left - cost_of_step
    together = sum(float(gains[day, level]) for day, level in enumerate(bought) if level >= 0)
    alone = np.where(costs <= budget, gains, 0.0)
    if alone.size and alone.max() > together:
        best = divmod(int(alone.argmax()), alone.shape[1])
        bought = np.full(len(gains), -1)
        bought[best[0]] = best[1]
    return bought
