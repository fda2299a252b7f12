"""The one rule by which page and answer name the best policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from policies.optimal import Optimal

# Values that agree to so many decimals are equal.
EQUAL = 9


def best_first(names: Iterable[str], values: Mapping[str, float]) -> list[str]:
    """Policies by value, best first; the optimum before what is as good but for rounding, others as they come.

    Examples
    --------
    >>> best_first(["exponential", "optimal", "greedy"], {"exponential": 1 + 1e-15, "optimal": 1.0, "greedy": 2.0})
    ['greedy', 'optimal', 'exponential']
    """
    return sorted(names, key=lambda name: (-round(values[name], EQUAL), name != Optimal.name))
