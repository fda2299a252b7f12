"""What a study bounds and forbids: what may be, what is wrong with it, all of it in words, and which policies break it.

Contraindications read public features only: by a hidden one, no treatment could be withheld from anybody.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from envs.scenario import SYMPTOMS, Scenario
from envs.toml_reader import FINITE, is_number, shown, unknown
from policies.adjacency import Sensitive
from policies.mask import least_given
from policies.optimal.bounds import ONE_FOR_ALL, Bound, bounds_on
from policies.problem import DecisionProblem
from policysim.utility import COSTS

# How often the neighbours of those who must not get a treatment get it, in the example of a refusal.
OFTEN = 0.9
# What exceeds a bound by no more than this, relative, is rounding.
ROUNDING = 1e-9


def counted_outcomes(scenario: Scenario) -> tuple[str, ...]:
    """What is counted for groups of patients, too, and in versions of the model.

    Death; symptoms, where any flag can clear beside those that make others dangerous; and each event.
    """
    death, *events = scenario.hazards
    return (death, *([SYMPTOMS] if symptoms_of(scenario) else []), *events)


def named_outcomes(scenario: Scenario) -> tuple[str, ...]:
    """All that is counted of a patient beside utility, as in `DecisionProblem.outcomes`; what treatments cost is last.

    What may lead or be bounded.
    """
    return tuple(dict.fromkeys((*counted_outcomes(scenario), *scenario.transient, COSTS)))


def symptoms_of(scenario: Scenario) -> tuple[str, ...]:
    """The flags that are counted as symptoms: what can clear, beside the infection."""
    return tuple(name for name in scenario.transient if name not in scenario.death.acute)


def fault_of_bound(name: str, value: object, known: Sequence[str]) -> str:
    """Why a bound on an outcome is none: an unknown name, or no number; empty if it is one."""
    if name not in known:
        return unknown("outcome", name, known)
    if value != ONE_FOR_ALL and not is_number(value, 0, FINITE):
        return f'must be a number >= 0 per patient, or "{ONE_FOR_ALL}", got {shown(value)}'
    return ""


def broken_bounds(
    problem: DecisionProblem,
    at_most: Mapping[str, float | str],
    capacity: Mapping[str, float],
    table: pd.DataFrame,
    titles: Mapping[str, str],
) -> dict[str, tuple[str, ...]]:
    """The bounds, in words, that each policy breaks; without those that break none.

    Parameters
    ----------
    problem : DecisionProblem
        With the outcomes that are bounded.
    at_most, capacity : mapping
        As a study states them, or empty.
    table : DataFrame
        The rows of everyone of a comparison at one epsilon: policy, expected_OUTCOME and p_ACTION.
    titles : mapping of str to str
        What outcomes are called.
    """
    bounds = bounds_on(problem, at_most, capacity)
    columns = [f"expected_{bound.name}" if bound.action is None else f"p_{bound.name}" for bound in bounds]
    found: dict[str, tuple[str, ...]] = {}
    for row in table.to_dict("records"):
        # NaN, which exceeds nothing, where a row is a bound of the limit and no policy.
        expected = [float(row.get(column, math.nan)) for column in columns]
        broken = [
            bound
            for bound, much in zip(bounds, expected, strict=True)
            if much - bound.limit > ROUNDING * max(abs(much), abs(bound.limit))
        ]
        if broken:
            found[str(row["policy"])] = tuple(_broken_in_words(bound, at_most, titles) for bound in broken)
    return found


def _broken_in_words(bound: Bound, at_most: Mapping[str, float | str], titles: Mapping[str, str]) -> str:
    if bound.action is not None:
        return f"gives {bound.name} to more than {100 * bound.limit:.6g} of 100 patients"
    if isinstance(at_most[bound.name], str):
        return f"more {titles[bound.name]} than under one treatment for all"
    return f"more than {bound.limit:.6g} {titles[bound.name]} per patient"


def hidden_contraindications(scenario: Scenario, adjacency: str, sensitive: Sequence[str]) -> tuple[str, ...]:
    """The features that contraindications read although they are hidden; every feature is, but under `sensitive`."""
    hidden = sensitive if adjacency == Sensitive.name else scenario.space.names
    return tuple(name for name in scenario.contraindication_features if name in hidden)


def why_refused(features: Sequence[str], epsilon: float) -> str:
    """Why contraindications by hidden features are refused, at which price they would be hidden, and the ways out.

    Neighbours x and x' have p(a|x') >= e^-epsilon p(a|x). So a treatment that x' must never get has probability 0 for
    every neighbour, and one that a neighbour gets with probability q cannot be kept from x'. If q is 1, all other
    treatments have probability 0 for x, and so for x'; between, `policies.mask.least_given` has how often x' gets it.

    Examples
    --------
    >>> why_refused(["pregnancy"], 1.0).partition(":")[0]
    'contraindications read pregnancy, which is hidden'
    >>> why_refused(["clots", "fever"], 1.0).partition(":")[0]
    'contraindications read clots, fever, which are hidden'
    """
    names, hidden, them = ", ".join(features), *(("is", "it") if len(features) == 1 else ("are", "them"))
    public = ", ".join(f'"{name}"' for name in features)
    wrongly = math.floor(1000 * least_given(OFTEN, epsilon)) / 10
    certain = (
        f", and certainly if q is 1; where q is {OFTEN:g}, at least {wrongly:g} of 100 patients who must not get it do"
        if epsilon < math.inf
        else ""
    )
    return (
        f"contraindications read {names}, which {hidden} hidden: an observer who sees a treatment that some patients "
        f"never get learns that the patient is none of them, at an infinite ε. Either make {them} public, with "
        f"[privacy] public = [{public}], or let the harm be an event with a weight: if a patient gets a treatment "
        f"with probability q, a neighbour gets it with probability at least e^-ε q ({math.exp(-epsilon):.3g} q at ε = "
        f"{epsilon:g}){certain}"
    )
