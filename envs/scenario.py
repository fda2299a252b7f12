"""Scenario: who comes, what a treatment does to them, and what an outcome is worth; frozen parameters, no computation.

Scenario files (`envs/scenarios/*.toml`, or your own) hold one each; `envs.scenario_reader` reads and checks them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from envs.records import Level, RecordSpace

DEATH = "death"
# What is counted under names of their own, which no event can have.
DEATHS, SYMPTOMS = "deaths", "symptoms"
# What a treatment states, by the keys of the file: probabilities for flags, ratios for events and death, its cost.
EFFECTS = ("clears", "side_effects")
HAZARD_RATIO, COST = "hazard_ratio", "cost"


# A source of figures that have none.
ILLUSTRATIVE = "illustrative"


@dataclass(frozen=True)
class Rule:
    """One step in making the probabilities of records at admission.

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
    shares : mapping of feature to one probability per level
        New shares of features that are no flags.
    """

    when: Mapping[str, tuple[Level, ...]] = field(default_factory=dict)
    changes: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    per: tuple[str, float] | None = None
    flags: tuple[str, ...] = ()
    source: str = ""
    shares: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def targets(self) -> tuple[str, ...]:
        """Everything that this rule changes."""
        return (*self.changes, *self.flags, *self.shares)


@dataclass(frozen=True)
class TreatmentRule:
    """What a treatment does otherwise to some patients.

    Attributes
    ----------
    when : mapping of feature to levels
        The records it applies to, as they are before the treatment; see `Rule`.
    changes : mapping of target to (operation, number)
        Targets are "clears.FLAG", "side_effects.FLAG", "hazard_ratio.EVENT" (or death) and "cost"; operations "set",
        "add" and "multiply".
    source : str
        Where the figures are from, or "illustrative".
    """

    when: Mapping[str, tuple[Level, ...]] = field(default_factory=dict)
    changes: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    source: str = ""


@dataclass(frozen=True)
class Treatment:
    """What an action does, as the file states it; `envs.treatment_response` makes of it what each record gets.

    Attributes
    ----------
    title : str
        In words.
    cost : float
        In units of utility; of a combination, of all of it.
    clears : mapping of flag to probability
        That a flag which is present is cleared by the treatment (beside natural clearing).
    side_effects : mapping of flag to probability
        That a flag which is absent appears.
    combines : tuple of str
        The treatments that it consists of. Their effects, each under its own rules, act beside the ones stated here:
        probabilities by complements, ratios by products. Whoever may not get a part may not get the combination.
    hazard_ratio : mapping of event (or death) to ratio
        Multiplies the whole hazard of it.
    contraindicated : tuple of conditions
        Who must not get it: the records that meet any of the conditions (see `Rule.when`).
    rules : tuple of TreatmentRule
        Change the numbers stated here, in this order, for the records that they apply to.
    source : str
        Where the numbers stated here are from; the scenario's source if empty.
    """

    title: str
    cost: float
    clears: Mapping[str, float] = field(default_factory=dict)
    side_effects: Mapping[str, float] = field(default_factory=dict)
    combines: tuple[str, ...] = ()
    hazard_ratio: Mapping[str, float] = field(default_factory=dict)
    contraindicated: tuple[Mapping[str, tuple[Level, ...]], ...] = ()
    rules: tuple[TreatmentRule, ...] = ()
    source: str = ""


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
    source : str
        Where these numbers are from; the scenario's source if empty.
    """

    acute: Mapping[str, tuple[Level, ...]]
    baseline: float
    hazard: Mapping[str, float]
    relative_risk: Mapping[str, tuple[float, ...]]
    source: str = ""


@dataclass(frozen=True)
class EventModel:
    """How outcomes and risk factors make the hazard of an event, which does not end a stay.

    P(event) = 1 - E exp(-R (baseline + sum of the hazards of the flags left)) for the acute, 1 - exp(-R baseline) for
    the others; R is the product of the relative risks and of the treatment's hazard ratio. Nothing is normalised.

    Attributes
    ----------
    title : str
        In words.
    baseline : float
        The hazard without any outcome, of everyone (>= 0).
    hazard : mapping of flag to float
        What each flag that is left adds to that for the acute (>= 0).
    relative_risk : mapping of feature to one factor per level
        Multiply the hazard of everyone (> 0).
    acute : mapping of feature to levels
        The records for which flags that are left are dangerous; everybody if empty.
    source : str
        Where these numbers are from; the scenario's source if empty.
    """

    title: str
    baseline: float
    hazard: Mapping[str, float] = field(default_factory=dict)
    relative_risk: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    acute: Mapping[str, tuple[Level, ...]] = field(default_factory=dict)
    source: str = ""


@dataclass(frozen=True)
class StatedRedraws:
    """What else the numbers of a scenario could be, all at once, as a file beside it has them.

    Attributes
    ----------
    file : str
        Its name, as the scenario has it.
    text : str
        The file as it was read.
    numbers : mapping of dotted key to one number per draw
        See `numbers_of`; what it does not name stays.
    """

    file: str
    text: str
    numbers: Mapping[str, tuple[float, ...]]


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
        For the features that are no flags, where no rule says otherwise.
    means : mapping of feature to one number per level
        The mean of the quantity that was cut into levels (years, for age).
    rules : tuple of Rule
        Make the probabilities of the flags, of levels, and of death without treatment, in this order.
    natural_clearing : mapping of flag to probability
        That it clears without treatment; its keys are the outcomes beside events and death.
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
        Where the numbers are from that have no source of their own, `ILLUSTRATIVE` if from nowhere; empty where nothing
        is said.
    events : mapping of str to EventModel
        What may happen beside death, by its hazard.
    intervals : mapping of dotted key to (low, high)
        The 95 % intervals of those numbers that have one: "treatments.a1.rules.0.multiply.cost", "weights.death".
    redraws : StatedRedraws or None
        What else its numbers could be together, in place of what intervals say of each alone.
    actions : tuple of str
        The names of the treatments.
    transient : tuple of str
        The flags that treatment can change, in the order of the record.
    outcomes : tuple of str
        What is observed after treatment: the transient flags, the events, then death.
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
    events: Mapping[str, EventModel] = field(default_factory=dict)
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    redraws: StatedRedraws | None = None
    actions: tuple[str, ...] = field(init=False, repr=False, compare=False)
    transient: tuple[str, ...] = field(init=False, repr=False, compare=False)
    outcomes: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Keep the names that are asked for most."""
        transient = tuple(name for name in self.space.names if name in self.natural_clearing)
        object.__setattr__(self, "actions", tuple(self.treatments))
        object.__setattr__(self, "transient", transient)
        object.__setattr__(self, "outcomes", (*transient, *self.events, DEATH))

    def outcome_title(self, name: str) -> str:
        """An outcome in words: the title of an event, what a flag is called that is present, or the name."""
        if name in self.events:
            return self.events[name].title
        return self.space.feature(name).in_words("1") if name in self.space.names else name.replace("_", " ")

    @property
    def contraindication_features(self) -> tuple[str, ...]:
        """The features that any contraindication reads, in the order of the record."""
        read = {name for each in self.treatments.values() for condition in each.contraindicated for name in condition}
        return tuple(name for name in self.space.names if name in read)

    @property
    def costs_by_record(self) -> bool:
        """Whether rules make the cost of a treatment depend on the record."""
        return any(COST in rule.changes for each in self.treatments.values() for rule in each.rules)


def numbers_of(scenario: Scenario) -> dict[str, float]:
    """Every number that may be uncertain, by its dotted key: all but the shares of features and what makes flags."""
    numbers = {
        f"rules.{place}.{operation}.{DEATH}": value
        for place, rule in enumerate(scenario.rules)
        for target, (operation, value) in rule.changes.items()
        if target == DEATH
    }
    numbers |= {f"natural_clearing.{flag}": value for flag, value in scenario.natural_clearing.items()}
    for name, treatment in scenario.treatments.items():
        key = f"treatments.{name}"
        numbers[f"{key}.{COST}"] = treatment.cost
        for part in (*EFFECTS, HAZARD_RATIO):
            numbers |= {f"{key}.{part}.{target}": value for target, value in getattr(treatment, part).items()}
        for place, each in enumerate(treatment.rules):
            changes = each.changes.items()
            numbers |= {f"{key}.rules.{place}.{step}.{target}": value for target, (step, value) in changes}
    hazards: dict[str, EventModel | DeathModel] = {f"events.{name}": event for name, event in scenario.events.items()}
    for key, model in {**hazards, DEATH: scenario.death}.items():
        numbers[f"{key}.baseline"] = model.baseline
        numbers |= {f"{key}.hazard.{flag}": value for flag, value in model.hazard.items()}
        for feature, factors in model.relative_risk.items():
            numbers |= {f"{key}.relative_risk.{feature}.{level}": factor for level, factor in enumerate(factors)}
    return numbers | {f"weights.{outcome}": weight for outcome, weight in scenario.weights.items()}


def with_numbers(part: Any, numbers: Mapping[str, float]) -> Any:
    """The same scenario with other numbers at some of the keys of `numbers_of`; or a part of it, at keys within it.

    Names may have dots of their own.
    """
    if "" in numbers:
        return numbers[""]
    within: dict[str, dict[str, float]] = defaultdict(dict)
    for key, number in numbers.items():
        name = key.partition(".")[0]
        if isinstance(part, Mapping):
            name = max((each for each in part if f"{key}.".startswith(f"{each}.")), key=len)
        within[name][key[len(name) + 1 :]] = number
    if isinstance(part, Rule | TreatmentRule):
        changes = {target: (step, number) for step, own in within.items() for target, number in own.items()}
        return replace(part, changes={**part.changes, **changes})
    if isinstance(part, tuple):
        return tuple(
            with_numbers(each, within[str(place)]) if str(place) in within else each for place, each in enumerate(part)
        )
    values = part if isinstance(part, Mapping) else vars(part)
    changed = {name: with_numbers(values[name], own) for name, own in within.items()}
    return {**part, **changed} if isinstance(part, Mapping) else replace(part, **changed)
