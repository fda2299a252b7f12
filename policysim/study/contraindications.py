"""Contraindications read public features only: by a hidden one, no treatment could be withheld from anybody."""

from __future__ import annotations

import math
from collections.abc import Sequence

from envs.scenario import Scenario
from policies.adjacency import Sensitive
from policies.mask import least_given

# How often the neighbours of those who must not get a treatment get it, in the example of a refusal.
OFTEN = 0.9


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
        f"contraindications read {names}, which {hidden} hidden: a treatment that is given to some patients and never "
        f"to others shows who is who, at an infinite ε. Either make {them} public, with [privacy] public = [{public}], "
        "or let the harm be an event with a weight: under ε, whoever is a neighbour of a patient who gets a treatment "
        f"with probability q gets it with probability at least e^-ε q ({math.exp(-epsilon):.3g} q at ε = {epsilon:g})"
        f"{certain}"
    )
