"""Scenario: who comes, what a treatment does to them, and what an outcome is worth; frozen parameters, no computation.

Scenario files (`envs/scenarios/*.toml`, or your own) hold one each; `envs.scenario_file` reads and checks them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from envs.records import Level, RecordSpace

DEATH = "death"


# A source of figures that have none.
ILLUSTRATIVE = "illustrative"


@dataclass(frozen=True)
class Rule:
    """One step in making the probabilities of flags at admission.

    Attributes
    ----------
    when : mapping of feature to levels
        The records it applies to: those whose level is among the listed ones, for every listed feature.
    changes : mapping of target to (operation, number)
        Targets are flags or "death"; operations "set", "add" and "multiply".
    per : (feature, unit) or None
        The targets of `flags` are also multiplied by the feature's mean over `unit` (years of age over 100).
    flags : tuple of str
        See `per`.
    source : str
        Where the figures are from, or "illustrative".
    """

    when: Mapping[str, tuple[Level, ...]] = field(default_factory=dict)
    changes: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    per: tuple[str, float] | None = None
    flags: tuple[str, ...] = ()
    source: str = ""

    @property
    def targets(self) -> tuple[str, ...]:
        """Everything that this rule changes."""
        return (*self.changes, *self.flags)

    @property
    def reads(self) -> tuple[str, ...]:
        """Every feature that this rule depends on."""
        return (*self.when, *([self.per[0]] if self.per else []))


@dataclass(frozen=True)
class Treatment:
    """What an action does.

    Attributes
    ----------
    title : str
        In words.
    cost : float
        In units of utility.
    clears : mapping of outcome to probability
        That a flag which is present is cleared by the treatment (beside natural clearing).
    side_effects : mapping of outcome to probability
        That a flag which is absent appears.
    combines : tuple of str
        The treatments that it consists of; their effects are among the ones above, by complements.
    contraindicated : tuple of conditions
        Who must not get it: the records that meet any of the conditions (see `Rule.when`).
    """

    title: str
    cost: float
    clears: Mapping[str, float] = field(default_factory=dict)
    side_effects: Mapping[str, float] = field(default_factory=dict)
    combines: tuple[str, ...] = ()
    contraindicated: tuple[Mapping[str, tuple[Level, ...]], ...] = ()


def complements(*effects: Mapping[str, float]) -> dict[str, float]:
    """Independent effects together: something happens unless each of them fails to do it."""
    fails: dict[str, float] = {}
    for effect in effects:
        for outcome, probability in effect.items():
            fails[outcome] = fails.get(outcome, 1.0) * (1 - probability)
    return {outcome: 1 - failed for outcome, failed in fails.items()}


@dataclass(frozen=True)
class DeathModel:
    """How outcomes and risk factors make the hazard of death.

    Attributes
    ----------
    acute : mapping of feature to levels
        The records for which outcomes are dangerous.
    baseline : float
        Their hazard without any outcome, relative to the others' (>= 0).
    hazard : mapping of outcome to float
        What each outcome adds to that (>= 0).
    relative_risk : mapping of feature to one factor per level
        Multiply the hazard of everyone (> 0).
    """

    acute: Mapping[str, tuple[Level, ...]]
    baseline: float
    hazard: Mapping[str, float]
    relative_risk: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class Scenario:
    """A cohort of patients and its treatments.

    Attributes
    ----------
    name : str
        The file's name without its ending.
    title : str
        In words.
    space : RecordSpace
        The records.
    shares : mapping of feature to one probability per level
        For the features that do not depend on others.
    means : mapping of feature to one number per level
        The mean of the quantity that was cut into levels (years, for age).
    rules : tuple of Rule
        Make the probabilities of the flags, and of death without treatment, in this order.
    natural_clearing : mapping of flag to probability
        That it clears without treatment; its keys are the outcomes beside death.
    onset : mapping of flag to share
        Over several days: an absent flag appears in a night with this share of its probability at admission, given
        the record as it is that evening; its keys are among the outcomes beside death.
    treatments : mapping of action to Treatment
        The first is "no treatment".
    death : DeathModel
        The hazard of death.
    weights : mapping of outcome to float
        What each outcome costs, in units of utility (>= 0).
    source : str
        Where the effects of the treatments are from, `ILLUSTRATIVE` if from nowhere; empty where nothing is said.
    """

    name: str
    title: str
    space: RecordSpace
    shares: Mapping[str, tuple[float, ...]]
    means: Mapping[str, tuple[float, ...]]
    rules: tuple[Rule, ...]
    natural_clearing: Mapping[str, float]
    onset: Mapping[str, float]
    treatments: Mapping[str, Treatment]
    death: DeathModel
    weights: Mapping[str, float]
    source: str = ""

    @property
    def flags(self) -> tuple[str, ...]:
        """The features whose probability the rules make."""
        return tuple(name for name in self.space.names if name not in self.shares)

    @property
    def transient(self) -> tuple[str, ...]:
        """The flags that treatment can change, in the order of the record."""
        return tuple(name for name in self.space.names if name in self.natural_clearing)

    @property
    def outcomes(self) -> tuple[str, ...]:
        """What is observed after treatment: the transient flags, then death."""
        return (*self.transient, DEATH)

    @property
    def actions(self) -> tuple[str, ...]:
        """The names of the actions."""
        return tuple(self.treatments)

    @property
    def contraindication_features(self) -> tuple[str, ...]:
        """The features that any contraindication reads, in the order of the record."""
        read = {name for each in self.treatments.values() for condition in each.contraindicated for name in condition}
        return tuple(name for name in self.space.names if name in read)
