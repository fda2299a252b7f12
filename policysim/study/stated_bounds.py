"""The bounds that a study states: what may be bounded, what is wrong with a bound, and all of them in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from envs.scenario import DEATHS, SYMPTOMS, Scenario
from envs.toml_reader import FINITE, is_number, shown, unknown
from policies.optimal.bounds import ONE_FOR_ALL
from policies.optimal.optimum import OptimalSafe

# What capacities sum to may fall short of serving everybody by rounding.
SHARE_ROUNDING = 1e-12


def counted_outcomes(scenario: Scenario) -> tuple[str, ...]:
    """What is counted beside utility in the problem of a scenario, per patient, and can be bounded.

    Deaths; symptoms, where any flag can clear beside those that make others dangerous; and each event.
    """
    return (DEATHS, *([SYMPTOMS] if symptoms_of(scenario) else []), *scenario.events)


def symptoms_of(scenario: Scenario) -> tuple[str, ...]:
    """The flags that are counted as symptoms: what can clear, beside the infection."""
    return tuple(name for name in scenario.transient if name not in scenario.death.acute)


def fault_of_bound(name: str, value: object, scenario: Scenario) -> str:
    """Why a bound on an outcome is none: an unknown name, or no number; empty if it is one."""
    known = counted_outcomes(scenario)
    if name not in known:
        return unknown("outcome", name, known)
    if value != ONE_FOR_ALL and not is_number(value, 0, FINITE):
        return f'must be a number >= 0 per patient, or "{ONE_FOR_ALL}", got {shown(value)}'
    return ""


def fault_of_capacity(capacity: Mapping[str, float], actions: Sequence[str]) -> str:
    """Why capacities cannot serve everybody; empty if they can."""
    places = math.fsum(capacity.values())
    if set(capacity) < set(actions) or places >= 1 - SHARE_ROUNDING:
        return ""
    return f"cannot serve everybody: every treatment is limited, and the shares sum to {places:g}, which is below 1"


def bounds_in_words(at_most: Mapping[str, float | str], capacity: Mapping[str, float]) -> str:
    """What `optimal-safe` keeps; empty where nothing is stated, so that its own bound holds.

    Examples
    --------
    >>> bounds_in_words({"deaths": 0.003}, {"a3": 0.2})
    'deaths at most 0.003 per patient; a3 for at most 20 of 100 patients'
    """
    if not at_most and not capacity:
        return ""
    said = []
    for name, most in (at_most or OptimalSafe().at_most or {}).items():
        what = name.replace("_", " ")
        as_for_all = f"no more {what} than under one treatment for all"
        said.append(as_for_all if isinstance(most, str) else f"{what} at most {most:.6g} per patient")
    said += [f"{name} for at most {100 * share:.6g} of 100 patients" for name, share in capacity.items()]
    return "; ".join(said)
