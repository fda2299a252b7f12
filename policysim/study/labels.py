"""What people call a problem and its parts, and what the numbers of a study rest on, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from envs.records import RecordSpace
from envs.scenario import EFFECTS, HAZARD_RATIO, ILLUSTRATIVE, DeathModel, Scenario
from policies.adjacency import OneFeature, Sensitive
from policies.problem import DecisionProblem
from policies.records import Records
from policysim.study.declared import CohortStudy, LoggedStudy, ScenarioStudy, Study, require_scenario
from policysim.study.sweep import happening_lead
from policysim.utility import COSTS
from policysim.words import level_name


@dataclass(frozen=True)
class Labels:
    """Names, titles and sources of one problem.

    Attributes
    ----------
    name : str
        Of its folder among the reports.
    title : str
        The question, in words.
    disclaimer : str
        What kind of model or data this is; empty where nobody has said anything.
    hidden, hidden_from : str
        What is hidden, and from whom, in words.
    hidden_features : tuple of str
        The features of which an observer may learn.
    actions : mapping of str to str
        The title of each action; its name where it has none.
    outcomes : mapping of str to str
        The title of each outcome of the problem.
    illness : tuple of str
        The flags that make a patient ill.
    lead : str or None
        The outcome of the problem that leads; None where there is none, or it never happens.
    one_of_lead : str
        What one of it is called; empty where there is none.
    """

    name: str
    title: str
    actions: Mapping[str, str]
    outcomes: Mapping[str, str]
    disclaimer: str = ""
    hidden: str = "the patient's whole record"
    hidden_from: str = "anyone who sees the treatment"
    hidden_features: tuple[str, ...] = ()
    illness: tuple[str, ...] = ()
    lead: str | None = None
    one_of_lead: str = ""

    @property
    def lead_title(self) -> str:
        """The title of the outcome that leads; empty where there is none."""
        return "" if self.lead is None else self.outcomes[self.lead]

    def for_all(self, actions: Sequence[str]) -> str:
        """What everybody gets; where contraindications differ, all that somebody gets."""
        titles = " or ".join(self.actions[name] for name in actions)
        return titles if len(actions) == 1 else f"{titles}, as allowed,"

    @classmethod
    def of(cls, problem: DecisionProblem, name: str = "problem", title: str = "A problem of one's own") -> Labels:
        """Those of a problem about which nothing else is known: the names that it has."""
        hidden = problem.records.names
        if isinstance(problem.adjacency, Sensitive):
            levels = tuple(len(problem.records.groups(feature)[1]) for feature in hidden)
            # Those of a table may be other features than the axes of its records.
            hidden = tuple(hidden[axis] for axis in problem.adjacency.axes) if levels == problem.adjacency.shape else ()
        outcomes = {outcome: outcome.replace("_", " ") for outcome in problem.outcomes}
        lead = happening_lead(problem)
        return cls(
            name,
            title,
            actions={action: action for action in problem.actions},
            outcomes=outcomes,
            hidden=_secret(problem.adjacency.name, hidden),
            hidden_features=hidden,
            lead=lead,
            one_of_lead="" if lead is None else one_of(outcomes[lead]),
        )


def one_of(title: str) -> str:
    """One of what a title counts: the singular of a plural that ends in s, else a unit.

    Examples
    --------
    >>> one_of("asthma attacks"), one_of("days in hospital")
    ('one asthma attack', 'one unit of days in hospital')
    """
    return f"one {title[:-1]}" if title.endswith("s") and not title.endswith("ss") else f"one unit of {title}"


def labels_of(study: Study, problem: DecisionProblem) -> Labels:
    """Those of a study, whose problem was made from it."""
    plain = Labels.of(problem)
    actions, outcomes, one = dict(plain.actions), dict(plain.outcomes), plain.one_of_lead
    if isinstance(study, ScenarioStudy):
        scenario = study.scenario
        actions |= {name: treatment.title for name, treatment in scenario.treatments.items() if name in actions}
        outcomes = {name: scenario.counted_title(name) for name in (*outcomes, *scenario.outcomes)}
        one = "" if plain.lead is None else scenario.one_title(plain.lead)
    if plain.lead == COSTS:
        outcomes[COSTS], one = "units of cost", "one unit of cost"
    return Labels(
        study.name,
        study.title,
        actions=actions,
        outcomes=outcomes,
        disclaimer=about_model(study),
        hidden=hidden(study),
        hidden_from=study.hidden_from,
        hidden_features=tuple(study.sensitive or study.space.names),
        illness=study.illness,
        lead=plain.lead,
        one_of_lead=one,
    )


def level_in_words(records: Records, feature: str, level: str) -> str:
    """What a patient is called who has a level of a feature."""
    return records.feature(feature).in_words(level) if isinstance(records, RecordSpace) else level_name(feature, level)


def about_model(study: Study) -> str:
    """What kind of model or data the numbers of a study come from: what every reader must know first."""
    if isinstance(study, LoggedStudy):
        return "Estimates from a log of patients, not medical advice."
    if isinstance(study, CohortStudy):
        return f"A model of {study.source or 'a table that names no source'}; not medical advice."
    source = require_scenario(study).scenario.source
    if source not in (ILLUSTRATIVE, ""):
        return f"A model with effects from {source}, not medical advice."
    assumed, total = counted_illustrative(study)
    if not assumed:
        return "A model, not medical advice."
    return f"A model, not medical advice: {assumed} of its {total} numbers are assumed."


def medical_numbers(scenario: Scenario) -> list[tuple[int, str]]:
    """How many medical numbers each rule, treatment and hazard of a scenario states, and their source.

    Shares of features and weights are not among them: who comes is a population's, and a weight is a choice.
    """
    found = [(len(rule.targets), rule.source) for rule in scenario.rules]
    for treatment in scenario.treatments.values():
        count = sum(len(getattr(treatment, part)) for part in (*EFFECTS, HAZARD_RATIO)) + bool(treatment.cost)
        found.append((count, treatment.source or scenario.source))
        found += [(len(rule.changes), rule.source) for rule in treatment.rules]
    found.append((len(scenario.natural_clearing) + len(scenario.onset), scenario.source))
    for model in scenario.hazards.values():
        count = 1 + len(model.hazard) + sum(map(len, model.relative_risk.values()))
        # The baseline of death is a reference, and only counts beside other numbers.
        count = 0 if isinstance(model, DeathModel) and count == 1 else count
        found.append((count, model.source or scenario.source))
    return found


def counted_illustrative(study: Study | None) -> tuple[int, int]:
    """How many of a scenario's medical numbers are illustrative, and how many there are; 0 of what is no scenario."""
    parts = medical_numbers(study.scenario) if isinstance(study, ScenarioStudy) else []
    return sum(number for number, source in parts if source == ILLUSTRATIVE), sum(number for number, _ in parts)


def in_words(table: pd.DataFrame, records: Records) -> pd.DataFrame:
    """A comparison as people read it: groups that the scenario has words for are called so, and have no level."""
    called = {
        (feature.name, str(level)): words
        for feature in (records.features if isinstance(records, RecordSpace) else ())
        for level, words in zip(feature.levels, feature.words, strict=False)
    }
    pairs = list(zip(table["group"], table["level"], strict=True))
    return table.assign(
        group=[called.get(pair, pair[0]) for pair in pairs], level=["" if pair in called else pair[1] for pair in pairs]
    )


def hidden(study: Study) -> str:
    """The secret, in words."""
    if study.public:
        return f"everything about the patient but {listed(study.public)}"
    return _secret(study.adjacency, study.sensitive)


def _secret(adjacency: str, sensitive: Sequence[str]) -> str:
    """What stays hidden under an adjacency of this name."""
    if adjacency == Sensitive.name:
        return f"{listed(sensitive) or 'the sensitive features'}; all else about the patient is public"
    if adjacency == OneFeature.name:
        return "each single feature of the patient, from an observer who knows all others"
    return "the patient's whole record"


def listed(features: Sequence[str]) -> str:
    """Features in words, after commas.

    Examples
    --------
    >>> listed(["age", "covid_positive"])
    'age, covid positive'
    """
    return ", ".join(name.replace("_", " ") for name in features)
