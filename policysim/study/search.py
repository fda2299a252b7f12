"""The search over epsilon: where a curve reaches what is needed, and the shortest number that still does."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from scipy.optimize import brentq

from policysim.question.formats import DIGITS, enough, not_above

# Relative accuracy of the epsilon that is found, and the range that is searched: calibration by sensitivity can need
# thousands where the utilities have a long tail.
TOLERANCE = 1e-4
LOWEST, HIGHEST = 1e-6, 1e9
STEP = 4.0
# Where outcomes are limited, every epsilon from here to there, in such ratios, is looked at first.
SCAN_FROM, SCAN_TO, SCANNED = 0.01, 200.0, 1.15
# A decimal of so many digits, and any of fewer, is the only one of its length that is the same float.
EXACT_DIGITS = 15


class UnreachableError(ValueError):
    """No epsilon makes the policy good enough."""


def fewest_digits(epsilon: float, holds: Callable[[float], bool]) -> float:
    """An epsilon that was found, rounded up to the fewest digits, two or more, at which what is asked for holds.

    Parameters
    ----------
    epsilon : float
        The least that was found, to `TOLERANCE`, which is four digits: a little less may hold, too.
    holds : callable
        From an epsilon to whether everything that is asked for holds there.

    Returns
    -------
    float
        What `policysim.question.words.decimal` prints exactly; `epsilon` itself where no decimal near it holds.
    """
    for digits in range(DIGITS, EXACT_DIGITS + 1):
        for decimal in sorted({enough(epsilon * (1 - TOLERANCE), digits), enough(epsilon, digits)}):
            if holds(decimal):
                return decimal
    return epsilon


class Curve:
    """Something that rises with epsilon; no epsilon is evaluated twice.

    Parameters
    ----------
    name : str
        What it is of, for messages.
    measure : callable
        From an epsilon to the number that should be large.
    known : mapping of float to float, optional
        The measure at some epsilons, from an earlier evaluation.
    """

    def __init__(
        self, name: str, measure: Callable[[float], float], known: Mapping[float, float] | None = None
    ) -> None:
        self._name = name
        self._measure = measure
        self._known = dict(known or {})

    def __call__(self, epsilon: float) -> float:
        """The measure at an epsilon."""
        if epsilon not in self._known:
            self._known[epsilon] = self._measure(epsilon)
        return self._known[epsilon]

    def first_reaching(self, needed: float, *, near: float = 1.0) -> float:
        """The least epsilon, to 1e-4 relative and never below it, with a measure >= needed.

        UnreachableError if there is none.
        """
        return self.between(needed, near=near)[1]

    def least_reaching(self, needed: float) -> float:
        """The least decimal of two digits with a measure >= needed, of a measure that rises.

        0 where every epsilon above 0 will do; inf where none does, and NaN where what is needed is. Where the measure
        falls again a decimal may have more digits (`fewest_digits`).
        """
        if not math.isfinite(needed):
            return needed
        try:
            low, high = self._bracket(needed, 1.0)
        except UnreachableError:
            return math.inf
        # The search ends here where every epsilon above 0 will do.
        if high <= STEP * LOWEST:
            return 0.0
        high = fewest_digits(high, lambda decimal: self(decimal) >= needed)
        while True:
            middle = math.sqrt(low * high)
            between = [at for at in (enough(middle, DIGITS), not_above(middle, DIGITS)) if low < at < high]
            if not between:
                return high
            low, high = (low, between[0]) if self(between[0]) >= needed else (between[0], high)

    def scan(self) -> None:
        """Evaluate a grid of epsilons: a measure that may fall as epsilon rises is not to be searched by steps alone.

        What lies between two neighbours of the grid, a ratio of `SCANNED` apart, may be missed.
        """
        for step in range(1 + round(math.log(SCAN_TO / SCAN_FROM) / math.log(SCANNED))):
            self(SCAN_FROM * SCANNED**step)

    def between(self, needed: float, *, near: float = 1.0) -> tuple[float, float]:
        """Two epsilons at most 1e-4 apart, relative: the first does not reach what is needed, the second does.

        (0, 0) if every epsilon does. UnreachableError if none does. Where no epsilon is known, the search begins at
        `near`, if it is positive and finite. A measure that wavers by more than its slope may leave them further apart.
        """
        low, high = self._bracket(needed, near)
        if low < LOWEST:
            return low, high
        # exp(log(low)) may differ from low in the last digit, where a measure that is flat may have crossed already.
        first, last = math.log(low), math.log(high)
        ends = {first: low, last: high}
        root = brentq(lambda log: self(ends.get(log, math.exp(log))) - needed, first, last, xtol=TOLERANCE / 4)
        # The root is known to within TOLERANCE / 4: step to the sides. A measure that wavers leaves the bracket.
        for side in (-TOLERANCE / 2, 0.0, TOLERANCE / 2):
            epsilon = math.exp(root + side)
            if self(epsilon) >= needed:
                high = min(high, epsilon)
                break
            low = max(low, epsilon)
        return low, high

    def _bracket(self, needed: float, near: float) -> tuple[float, float]:
        """Two of the epsilons that are known, or of steps from `near`, between which the demand begins to be met."""
        if self(0.0) >= needed:
            return 0.0, 0.0
        finite = [epsilon for epsilon in self._known if 0 < epsilon < math.inf]
        high = min((epsilon for epsilon in finite if self(epsilon) >= needed), default=math.nan)
        low = max((epsilon for epsilon in finite if not epsilon >= high and self(epsilon) < needed), default=math.nan)
        if math.isnan(high):
            high = (near if 0 < near < HIGHEST else 1.0) if math.isnan(low) else low * STEP
            while self(high) < needed:
                if high > HIGHEST:
                    raise UnreachableError(f"{self._name} does not reach the demand at any epsilon up to {HIGHEST:g}.")
                low, high = high, high * STEP
        if math.isnan(low):
            low = high / STEP
            while self(low) >= needed and low >= LOWEST:
                low, high = low / STEP, low
        return (low if self(low) < needed else 0.0), high
