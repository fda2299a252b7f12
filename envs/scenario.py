"""Scenario: who comes, what a treatment does to them, and what an outcome is worth; frozen parameters, no computation.

Scenario files (`envs/scenarios/*.toml`, or your own) hold one each; `envs.scenario_reader` reads and checks them. The
keys of a table are listed at the class that they fill; docs/study-file.md is made of these lists. A word in capitals
stands for a name that the file chooses, `[]` for a table that may be repeated; a default stands behind the colon. An
attribute that is called as a key holds what the file states there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from envs.records import Level, RecordSpace
from envs.toml_reader import FINITE, is_number, number_wanted, unknown

DEATH = "death"
# What is counted under a name of its own, which no event can have.
SYMPTOMS = "symptoms"
# The parts of a utility, and the least number that is allowed there.
LEAST = {"weights": 0.0, "costs": -FINITE}
# What a treatment states, by the keys of the file: probabilities for flags, ratios for events and death, its cost.
EFFECTS = ("clears", "side_effects")
HAZARD_RATIO, COST = "hazard_ratio", "cost"


# The sections whose numbers change how many of the untreated die, or of what (`ResponseModel.severity`).
UNTREATED = (DEATH, "natural_clearing", "rules")
# The source of assumed numbers.
ILLUSTRATIVE = "illustrative"


@dataclass(frozen=True)
class Rule:
    """One step in making the probabilities of records at admission.

    Keys
    ----
    source : "illustrative"
        where the numbers come from
    when.FEATURE : everybody
        the records that the rule changes: a level, or a list of levels, for each feature in it: `1`, `"v1"`, `["60-79",
        "80+"]`
    set.FLAG
        the new probability of a flag or of `death`, within [0, 1]
    add.FLAG
        a number ≥ −1 that is added to it
    multiply.FLAG
        a factor ≥ 0 of it
    shares.FEATURE
        new shares of a feature with levels, for the records that match: a probability for each level; they sum to 1
    per.feature : required with `per`
        a feature that has means, by `gamma`: the probabilities of `flags` are multiplied by its mean / `unit`
    per.unit : required with `per`
        > 0
    flags : required with `per`
        the flags, or `death`, that grow with the feature

    Attributes
    ----------
    when : mapping of feature to levels
        The records it applies to: their level is among the listed ones, for every listed feature.
    changes : mapping of target to (operation, number)
        Targets are flags or "death"; operations "set", "add" and "multiply".
    per : (feature, unit) or None
        The targets of `flags` are also multiplied by the feature's mean over `unit` (years of age over 100).
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

    Keys
    ----
    source : "illustrative"
        where the numbers come from
    when.FEATURE : everybody
        the records that the rule changes, as they are before the treatment (on each day): a level, or a list of levels,
        of any feature, symptoms too
    set
        new numbers, of `clears.FLAG`, `side_effects.FLAG`, `hazard_ratio.EVENT` and `cost`
    add
        numbers that are added to them
    multiply
        factors of them, ≥ 0: `{ clears.pneumonia = 0.6, cost = 2.0 }`

    Attributes
    ----------
    when : mapping of feature to levels
        See `Rule`.
    changes : mapping of target to (operation, number)
        Targets are "clears.FLAG", "side_effects.FLAG", "hazard_ratio.EVENT" (or death) and "cost"; operations "set",
        "add" and "multiply".
    """

    when: Mapping[str, tuple[Level, ...]] = field(default_factory=dict)
    changes: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    source: str = ""


@dataclass(frozen=True)
class Treatment:
    """What an action does, as the file states it; `envs.treatment_response` makes of it what each record gets.

    Keys
    ----
    title : the treatment's name
        in words
    source : the scenario's `source`
        where the treatment's own numbers come from
    cost : 0
        in units of utility
    clears.FLAG : nothing
        the probability, within [0, 1], that it clears a flag that is present (beside natural clearing)
    side_effects.FLAG : nothing
        the probability, within [0, 1], that a flag that is absent appears
    combines
        other treatments that this one contains, each under its own rules: probabilities act independently (with the
        ones here), ratios are multiplied, and a contraindication of a part holds for the whole. The cost is the `cost`
        here
    hazard_ratio.EVENT : 1
        a ratio from 10⁻⁶ to 10⁶ that multiplies the whole hazard of an event, or of `death`
    contraindicated[].FEATURE : nobody
        patients who must never get it: all who meet one of these conditions, `[{ pregnancy = 1 }, { age = "80+", asthma
        = 1 }]`. A condition has a level, or a list of levels, for each of its features, and a patient meets it with all
        of them. Every patient must have an allowed treatment
    rules[] : none
        change the numbers of this treatment for some patients; applied in order

    Attributes
    ----------
    combines : tuple of str
        Their effects act beside the ones stated here: probabilities by complements, ratios by products.
    contraindicated : tuple of conditions
        See `Rule.when`.
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
    """How outcomes and risk factors make the hazard of death after treatment.

    It is m R (baseline + the hazards of the flags that are left) for records in `acute`, and m R for the others; R is
    the product of the relative risks.

    Keys
    ----
    source : the scenario's `source`
        where the numbers come from
    acute.FEATURE : everybody
        the records for which remaining flags are dangerous: a level, or a list of levels, of each feature in it; the
        others have the baseline alone
    baseline : 1
        the hazard without any flag of these records, relative to the others', from 10⁻⁶ to 10⁶
    more_than_half : false
        `true` confirms that more than half of the untreated patients have the event, or die. Without it policysim
        refuses such a scenario: usually a number is in per cent by mistake
    hazard.FLAG : nothing
        the hazard that each remaining flag adds, from 0 to 10⁶
    relative_risk.FEATURE : none
        a factor of the whole hazard for each level, from 10⁻⁶ to 10⁶
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

    Keys
    ----
    title : the event's name
        in words
    source : the scenario's `source`
        where the numbers come from
    acute.FEATURE : everybody
        the records for which remaining flags are dangerous: a level, or a list of levels, of each feature in it; the
        others have the baseline alone
    baseline : 0
        the hazard without any flag, from 0 to 10⁶; 4 % is 0.04
    more_than_half : false
        `true` confirms that more than half of the untreated patients have the event, or die. Without it policysim
        refuses such a scenario: usually a number is in per cent by mistake
    hazard.FLAG : nothing
        the hazard that each remaining flag adds, from 0 to 10⁶
    relative_risk.FEATURE : none
        a factor of the whole hazard for each level, from 10⁻⁶ to 10⁶
    """

    title: str
    baseline: float
    hazard: Mapping[str, float] = field(default_factory=dict)
    relative_risk: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    acute: Mapping[str, tuple[Level, ...]] = field(default_factory=dict)
    source: str = ""


@dataclass(frozen=True)
class StatedRedraws:
    """Other versions of all numbers of a scenario, from a file beside it.

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

    Keys
    ----
    title : the file's name
        in words
    source : not said
        where the numbers come from that have no `source` of their own; `"illustrative"` if they are assumed. Pages
        count and name the assumed numbers
    redraws : none
        a CSV file beside this one with other versions of the numbers, such as refits to bootstrap samples of the
        patients. It has a column `draw`, a column for each number with its key as name
        (`treatments.a1.hazard_ratio.death`, `events.stroke.relative_risk.age.0`, `weights.stroke`), and 20 or more
        rows. The other numbers then stay. Without it, each number varies by itself, within its interval
    features.NAME : required
        a feature of the record, in this order. `{}` is a flag, absent (0) or present (1), with a probability that rules
        set; else a table with `levels`
    features.NAME.levels : required
        two or more distinct values: text or whole numbers
    features.NAME.words : the name and the level
        words for patients with each level: `["male", "female"]`
    features.NAME.shares : required without `gamma`
        the probability of each level, unless a rule sets another; they sum to 1
    features.NAME.gamma
        in place of `shares`: levels are bands of a gamma distribution
    features.NAME.gamma.shape : required
        > 0
    features.NAME.gamma.scale : required
        > 0; the mean is shape × scale
    features.NAME.gamma.cuts : required
        rising numbers, one fewer than levels
    rules[] : none
        change the probability at admission of flags and levels, and of `death` without treatment; applied in order
    natural_clearing.FLAG : required without `events`
        the probability, within [0, 1], that a flag clears without treatment; these flags, events and death are the
        outcomes. With a treatment, a flag stays with (1 − natural)(1 − clears)
    onset.FLAG : none
        over several days: each night an absent flag appears with this share of its probability at admission, within [0,
        1], given the record of that evening
    treatments.NAME : required, two or more
        the actions; the first is no treatment
    events.NAME : none
        outcomes beside death, with hazards of their own; an event needs another name than every feature
    death : the rules decide alone
        the hazard of death after treatment: m R (baseline + the hazards of the remaining flags) for records in `acute`,
        m R for the others; R is the product of the relative risks
    weights.OUTCOME : required of events, and of death if patients can die; else 0
        the cost of an outcome, in units of utility, ≥ 0

    Attributes
    ----------
    name : str
        The file's name without its ending.
    space : RecordSpace
        The records.
    shares : mapping of feature to one probability per level
        For the features that are no flags, where no rule says otherwise.
    means : mapping of feature to one number per level
        The mean of the quantity that was cut into levels (years, for age).
    source : str
        `ILLUSTRATIVE` if the numbers are assumed; empty if the file does not say.
    intervals : mapping of dotted key to (low, high)
        The 95 % intervals of those numbers that have one: "treatments.a1.rules.0.multiply.cost", "weights.death".
    redraws : StatedRedraws or None
        Versions of its numbers, in place of an interval for each.
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

    def counted_title(self, name: str) -> str:
        """What is counted of an outcome, in words: deaths, or the title of any other."""
        if name == DEATH:
            return "deaths"
        named = name in self.events or name not in self.space.names or self.space.feature(name).words
        return self.outcome_title(name) if named else f"cases of {self.outcome_title(name)}"

    def daily_title(self, name: str) -> str:
        """What is counted of an outcome over days, in words: deaths, events, or the days on which a flag is present."""
        if name not in self.space.names:
            return self.counted_title(name)
        title = self.outcome_title(name)
        # Words of a level are of any kind: "infected", "loss of taste".
        return f"days in the state “{title}”" if self.space.feature(name).words else f"days with {title}"

    def one_title(self, name: str) -> str:
        """One of an outcome, in words."""
        called = {DEATH: "a death", SYMPTOMS: "one symptom"}
        return called.get(name, f"one case of {self.outcome_title(name)}")

    @property
    def hazards(self) -> dict[str, DeathModel | EventModel]:
        """What happens at a rate, by name: death, and then each event."""
        return {DEATH: self.death, **self.events}

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


def with_utility(scenario: Scenario, values: Mapping[str, Any] | None) -> Scenario:
    """The same scenario with other weights and costs for those that are named.

    Parameters
    ----------
    scenario : Scenario
        Gives all others.
    values : mapping or None
        {"weights": {outcome: number >= 0}, "costs": {action: number}}, either or both.

    Raises
    ------
    ValueError
        For names that the scenario does not have, and for values that are no such numbers.
    """
    parts: dict[str, dict[str, float]] = {part: {} for part in LEAST}
    for part, numbers in _mapping("utility", {} if values is None else values).items():
        if part not in parts:
            raise ValueError(f"{unknown('part of utility', str(part), list(parts))}.")
        parts[part] = utility_numbers(part, numbers)
    require_known("outcome", parts["weights"], scenario.outcomes)
    require_known("action", parts["costs"], scenario.actions)
    treatments = {
        name: replace(treatment, cost=parts["costs"].get(name, treatment.cost))
        for name, treatment in scenario.treatments.items()
    }
    return replace(scenario, weights={**scenario.weights, **parts["weights"]}, treatments=treatments)


def utility_numbers(part: str, values: Any) -> dict[str, float]:
    """Weights or costs, checked; ValueError for what is no mapping, and for values that are no numbers of this kind."""
    numbers = {}
    for name, value in _mapping(part, values).items():
        if not is_number(value, LEAST[part], FINITE):
            wanted = f"{number_wanted(LEAST[part], FINITE)} within ±{FINITE:g}"
            raise ValueError(f"{part}[{name!r}] must be {wanted}, got {value!r}.")
        numbers[name] = float(value)
    return numbers


def require_known(kind: str, numbers: Mapping[str, float], names: Sequence[str]) -> None:
    """ValueError for a name that is not among these."""
    for name in numbers:
        if name not in names:
            raise ValueError(f"{unknown(kind, str(name), names)}.")


def _mapping(name: str, value: Any) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be a mapping, got {value!r}.")
    return value
