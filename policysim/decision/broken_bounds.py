"""Which policies of a comparison break the bounds that a study states, and how tables mark them."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from policies.optimal.bounds import Bound, bounds_on
from policies.problem import DecisionProblem
from policysim.study.declared import ScenarioStudy

# What exceeds a bound by no more than this, relative, is rounding.
ROUNDING = 1e-9
MARKS = "*†‡§"


def broken_bounds(study: ScenarioStudy, problem: DecisionProblem, table: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """The bounds, in words, that each policy breaks; without those that break none.

    Parameters
    ----------
    study : ScenarioStudy
        It states bounds and capacities, or none; its epsilon is what is looked at.
    problem : DecisionProblem
        Built from it.
    table : DataFrame
        The rows of everyone of a comparison at that epsilon: policy, expected_OUTCOME and p_ACTION.
    """
    bounds = bounds_on(problem, study.at_most, study.capacity)
    columns = [f"expected_{bound.name}" if bound.action is None else f"p_{bound.name}" for bound in bounds]
    found = {}
    for row in table.to_dict("records"):
        # NaN, which exceeds nothing, where a row is a bound of the limit and no policy.
        expected = [float(row.get(column, math.nan)) for column in columns]
        broken = [bound for bound, much in zip(bounds, expected, strict=True) if _exceeds(much, bound.limit)]
        if broken:
            found[str(row["policy"])] = tuple(_words(study, bound) for bound in broken)
    return found


def _exceeds(much: float, limit: float) -> bool:
    return much - limit > ROUNDING * max(abs(much), abs(limit))


def _words(study: ScenarioStudy, bound: Bound) -> str:
    if bound.action is not None:
        return f"gives {bound.name} to more than {100 * bound.limit:.6g} of 100 patients"
    if isinstance(study.at_most[bound.name], str):
        return f"more {bound.name} than under one treatment for all"
    return f"more than {bound.limit:.6g} {bound.name} per patient"


def marks(broken: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """A mark for each bound that is broken, in the order of the rows.

    Examples
    --------
    >>> marks({"optimal": ("more deaths", "too many places"), "exponential": ("too many places",)})
    {'more deaths': '*', 'too many places': '†'}
    """
    words = dict.fromkeys(text for texts in broken.values() for text in texts)
    return {text: MARKS[place % len(MARKS)] * (1 + place // len(MARKS)) for place, text in enumerate(words)}


def marked(policy: str, broken: Mapping[str, tuple[str, ...]]) -> str:
    """The marks of a policy, after a space; empty if it breaks no bound."""
    found = "".join(marks(broken)[text] for text in broken.get(policy, ()))
    return f" {found}" if found else ""


def legend(broken: Mapping[str, tuple[str, ...]]) -> str:
    """What the marks mean; empty where there are none."""
    return "; ".join(f"{mark} {text}" for text, mark in marks(broken).items())
