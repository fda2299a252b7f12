"""What the numbers of a study rest on, in words: a model's scenario, a table of one's own, or a log of patients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from envs.records import RecordSpace
from envs.scenario import DEATH, EFFECTS, HAZARD_RATIO, ILLUSTRATIVE, DeathModel, EventModel, Scenario
from policies.problem import Records
from policysim.question.words import ASSUMED_PUBLIC, NO_ADVICE, in_a_row
from policysim.study.declared import CohortStudy, LoggedStudy, ScenarioStudy, Study, require_scenario

# What ε does not cover, wherever a guarantee is stated; and where a screen says that this is said.
OUTSIDE = (
    "ε holds for what is chosen and published once: one treatment of one patient, or one course of days. Further "
    "treatments of the same person, or of related persons, add to it; over days, treatment itself changes the states "
    "that are to be hidden.",
    "An observer who sees outcomes, or a treatment given in place of the one drawn, may learn more than ε allows.",
    "Patients whose data the model or its scores were fitted to are not protected: ε hides those who are treated now.",
)


@dataclass(frozen=True)
class Basis:
    """Sentences about one kind of study.

    Attributes
    ----------
    disclaimer : str
        What every reader must know first.
    illustrative : str
        Which numbers are illustrative, and how many; empty where none is.
    utilities : str
        Where the utilities come from, for a paper.
    public : str
        What is assumed to be public.
    not_guaranteed : tuple of str
        What does not hold because of the kind of study.
    """

    disclaimer: str
    illustrative: str
    utilities: str
    public: str
    not_guaranteed: tuple[str, ...]


def basis(study: Study) -> Basis:
    """The sentences about a study."""
    if isinstance(study, LoggedStudy):
        return _of_log(study)
    if isinstance(study, CohortStudy):
        return _of_cohort(study)
    scenario = require_scenario(study).scenario
    model, effects = {
        ILLUSTRATIVE: ("a model with illustrative effects", "are illustrative"),
        "": ("a model", "are those of the scenario, which names no source"),
    }.get(scenario.source, (f"a model with effects from {scenario.source}", f"are those of {scenario.source}"))
    return Basis(
        disclaimer=f"A{model[1:]}, {NO_ADVICE}.",
        illustrative=illustrative_words(scenario),
        utilities=f"Utilities are expectations under the scenario “{scenario.name}”, {model}",
        public=ASSUMED_PUBLIC,
        not_guaranteed=(f"Effects of treatments {effects}: another scenario has another price, at the same ε.",),
    )


def numbers_by_part(scenario: Scenario) -> dict[str, tuple[int, str]]:
    """How many medical numbers each part of a scenario states, and their source, by the part in words.

    Shares of features and weights are not among them: who comes is a population's, and a weight is a choice.
    """
    found: dict[str, tuple[int, str]] = {}
    for number, rule in enumerate(scenario.rules, start=1):
        found[f"rule {number} of the patients"] = len(rule.targets), rule.source
    for name, treatment in scenario.treatments.items():
        count = sum(len(getattr(treatment, part)) for part in (*EFFECTS, HAZARD_RATIO)) + bool(treatment.cost)
        found[f"treatment {name}"] = count, treatment.source or scenario.source
        for number, of_treatment in enumerate(treatment.rules, start=1):
            found[f"rule {number} of treatment {name}"] = len(of_treatment.changes), of_treatment.source
    found["natural clearing"] = len(scenario.natural_clearing), scenario.source
    found["onset"] = len(scenario.onset), scenario.source
    for name, event in scenario.events.items():
        found[scenario.outcome_title(name)] = _of_hazard(event), event.source or scenario.source
    # The baseline of death is a reference, and only counts beside other numbers.
    death = _of_hazard(scenario.death)
    found[DEATH] = death if death > 1 else 0, scenario.death.source or scenario.source
    return {part: (count, source) for part, (count, source) in found.items() if count}


def _of_hazard(model: DeathModel | EventModel) -> int:
    return 1 + len(model.hazard) + sum(map(len, model.relative_risk.values()))


def counted_illustrative(study: Study | None) -> tuple[int, int]:
    """How many of a scenario's medical numbers are illustrative, and how many there are; 0 of what is no scenario."""
    parts = numbers_by_part(study.scenario).values() if isinstance(study, ScenarioStudy) else ()
    return sum(number for number, source in parts if source == ILLUSTRATIVE), sum(number for number, _ in parts)


def illustrative_words(scenario: Scenario) -> str:
    """Which of a scenario's numbers are illustrative, and how many; empty where each has a source, or none is said."""
    parts = numbers_by_part(scenario)
    found = {part: count for part, (count, source) in parts.items() if source == ILLUSTRATIVE}
    if not found:
        return ""
    count, total = sum(found.values()), sum(count for count, _ in parts.values())
    if count == total:
        return f"All {total:,} medical numbers of the scenario are illustrative."
    named = in_a_row(list(found), "and")
    return f"Of the scenario's {total:,} medical numbers {count:,} are illustrative: {named}."


def _of_cohort(study: CohortStudy) -> Basis:
    made_of = study.source or "a table of one's own, which names no source"
    return Basis(
        disclaimer=f"A model of {made_of}; {NO_ADVICE}.",
        illustrative="",
        utilities=f"Utilities are expectations that a table of {study.space.size:,} kinds of patients states "
        f"({', '.join(path.name for path in study.paths)}; {made_of})",
        public=ASSUMED_PUBLIC,
        not_guaranteed=("Expected outcomes are those of the table: another model has another price, at the same ε.",),
    )


def _of_log(study: LoggedStudy) -> Basis:
    model = study.log.outcome_model
    return Basis(
        illustrative="",
        disclaimer="Prices are under scores fitted to a log: estimates, not medical advice.",
        utilities=f"Utilities are scores fitted to a log (a {model} outcome model), the prior is that of its patients",
        public=PUBLIC_OF_LOG,
        not_guaranteed=(
            "Prices are under scores fitted to a log; policysim compare sets estimates with intervals beside them.",
        ),
    )


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
    """What is hidden, in words."""
    alike = "are hard to tell apart"
    if study.adjacency == "any-record":
        return "the whole record: any two hard to tell apart"
    if study.adjacency == "one-feature":
        return f"each single feature: records that differ in only one {alike}"
    if study.public:
        return f"everything but what is public (public: {listed(study.public)}): records that agree there {alike}"
    return f"{listed(study.sensitive)}: records that differ only there {alike}; everything else is public"


def listed(features: Sequence[str]) -> str:
    """Features in words, after commas.

    Examples
    --------
    >>> listed(["age", "covid_positive"])
    'age, covid positive'
    """
    return ", ".join(name.replace("_", " ") for name in features)


PUBLIC_OF_LOG = "the declared features and levels, the fitted scores, the shares of records and the choice of ε"
