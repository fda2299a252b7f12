"""Which policies of a comparison break the bounds that a study states, and how tables mark them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from policies.optimal.bounds import Bound, bounds_on
from policies.problem import DecisionProblem
from policysim.study.declared import ScenarioStudy
from policysim.study.sweep import evaluated_on

# What exceeds a bound by no more than this, relative, is rounding.
ROUNDING = 1e-9
MARKS = "*†‡§"


def broken_bounds(
    study: ScenarioStudy, problem: DecisionProblem, rows: Iterable[Mapping[Any, Any]]
) -> dict[str, tuple[str, ...]]:
    """The bounds, in words, that each policy breaks; without those that break none.

    Parameters
    ----------
    study : ScenarioStudy
        It states bounds and capacities, or none; its epsilon is what is looked at.
    problem : DecisionProblem
        Built from it.
    rows : iterable of mapping
        Of a comparison at that epsilon: policy, and expected_OUTCOME.
    """
    bounds = bounds_on(problem, study.at_most, study.capacity)
    found = {}
    for row in rows:
        name = str(row["policy"])
        shares = _shares(study, problem, name) if study.capacity and name in study.policies else {}
        expected = {bound: _expected(bound, row, shares) for bound in bounds}
        broken = tuple(_words(study, bound) for bound, much in expected.items() if _exceeds(much, bound.limit))
        if broken:
            found[name] = broken
    return found


def _shares(study: ScenarioStudy, problem: DecisionProblem, name: str) -> dict[str, float]:
    """How many patients get each action."""
    policy = study.policy(name, study.epsilon)
    on = evaluated_on(policy, problem)
    return dict(zip(problem.actions, (on.prior @ policy.probabilities(on)).tolist(), strict=True))


def _expected(bound: Bound, row: Mapping[Any, Any], shares: Mapping[str, float]) -> float:
    """What is bounded; NaN, which is not more than any bound, where a row is no policy."""
    if bound.action is not None:
        return shares.get(bound.name, float("nan"))
    return float(row.get(f"expected_{bound.name}", float("nan")))


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
