"""What the numbers of a study rest on, in words: a model's scenario, or a log of patients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from envs.records import RecordSpace
from envs.scenario import ILLUSTRATIVE
from policysim.question.words import ASSUMED_PUBLIC, NO_ADVICE
from policysim.study.declared import LoggedStudy, Study, require_scenario


@dataclass(frozen=True)
class Basis:
    """Sentences about one kind of study.

    Attributes
    ----------
    disclaimer : str
        What every reader must know first.
    effects : str
        What the treatments' effects are called.
    utilities : str
        Where the utilities come from, for a paper.
    public : str
        What is assumed to be public.
    untreated : str
        What the first action is.
    not_guaranteed : tuple of str
        What does not hold because of the kind of study.
    """

    disclaimer: str
    effects: str
    utilities: str
    public: str
    untreated: str
    not_guaranteed: tuple[str, ...]


def basis(study: Study) -> Basis:
    """The sentences about a study."""
    if isinstance(study, LoggedStudy):
        return _of_log(study)
    scenario = require_scenario(study).scenario
    model, effects = {
        ILLUSTRATIVE: ("a model with illustrative effects", "are illustrative"),
        "": ("a model", "are those of the scenario, which names no source"),
    }.get(scenario.source, (f"a model with effects from {scenario.source}", f"are those of {scenario.source}"))
    return Basis(
        disclaimer=f"A{model[1:]}, {NO_ADVICE}.",
        effects="illustrative effects" if scenario.source == ILLUSTRATIVE else "effects of the treatments",
        utilities=f"Utilities are expectations under the scenario “{scenario.name}”, {model}",
        public=ASSUMED_PUBLIC,
        untreated="no treatment",
        not_guaranteed=(f"Effects of treatments {effects}: another scenario has another price, at the same ε.",),
    )


def _of_log(study: LoggedStudy) -> Basis:
    model = study.log.outcome_model
    return Basis(
        effects="fitted scores",
        disclaimer="Prices are under scores fitted to a log: estimates, not medical advice.",
        utilities=f"Utilities are scores fitted to a log (a {model} outcome model), the prior is that of its patients",
        public=PUBLIC_OF_LOG,
        untreated="the first treatment of the study",
        not_guaranteed=(
            "Patients of the log, to which scores and prior were fitted, are not protected: ε hides those treated now.",
            "Prices are under scores fitted to a log; policysim compare sets estimates with intervals beside them.",
        ),
    )


def in_words(table: pd.DataFrame, space: RecordSpace) -> pd.DataFrame:
    """A comparison as people read it: groups that the scenario has words for are called so, and have no level."""
    called = {
        (feature.name, str(level)): words
        for feature in space.features
        for level, words in zip(feature.levels, feature.words, strict=False)
    }
    pairs = list(zip(table["group"], table["level"], strict=True))
    return table.assign(
        group=[called.get(pair, pair[0]) for pair in pairs], level=["" if pair in called else pair[1] for pair in pairs]
    )


def hidden(study: Study) -> str:
    """What is hidden, in words."""
    if study.adjacency == "any-record":
        return "the whole record: any two records look alike"
    if study.adjacency == "one-feature":
        return "each single feature: records that differ in only one look alike"
    if study.public:
        return f"everything but what is public (public: {listed(study.public)}): records that agree there look alike"
    return f"{listed(study.sensitive)}: records that differ only there look alike; everything else is public"


def listed(features: Sequence[str]) -> str:
    """Features in words, after commas.

    Examples
    --------
    >>> listed(["age", "covid_positive"])
    'age, covid positive'
    """
    return ", ".join(name.replace("_", " ") for name in features)


PUBLIC_OF_LOG = "the declared features and levels, the fitted scores, the shares of records and the choice of ε"
