"""What the numbers of a study rest on, in words: a model's scenario, or a log of patients."""

from __future__ import annotations

from dataclasses import dataclass

from policysim.question.words import ASSUMED_PUBLIC, DISCLAIMER
from policysim.study.declared import LoggedStudy, ScenarioStudy, Study


@dataclass(frozen=True)
class Basis:
    """Sentences about one kind of study.

    Attributes
    ----------
    disclaimer : str
        What every reader must know first.
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
    utilities: str
    public: str
    untreated: str
    not_guaranteed: tuple[str, ...]


def basis(study: Study) -> Basis:
    """The sentences about a study."""
    if isinstance(study, LoggedStudy):
        return _of_log(study)
    scenario = study.scenario.name if isinstance(study, ScenarioStudy) else study.name
    return Basis(
        disclaimer=DISCLAIMER,
        utilities=f"Utilities are expectations under the scenario “{scenario}”, a model with illustrative effects",
        public=ASSUMED_PUBLIC,
        untreated="no treatment",
        not_guaranteed=("Effects of treatments are illustrative: another scenario has another price, at the same ε.",),
    )


def _of_log(study: LoggedStudy) -> Basis:
    model = study.log.outcome_model
    return Basis(
        disclaimer="Prices are under scores fitted to a log: estimates, not medical advice.",
        utilities=f"Utilities are scores fitted to a log (a {model} outcome model), the prior is that of its patients",
        public=PUBLIC_OF_LOG,
        untreated="the first treatment of the study",
        not_guaranteed=(
            "Patients of the log, to which scores and prior were fitted, are not protected: ε hides those treated now.",
            "Prices are under scores fitted to a log; policysim compare sets estimates with intervals beside them.",
        ),
    )


def hidden(study: Study) -> str:
    """What is hidden, in words."""
    if study.adjacency == "any-record":
        return "the whole record: any two records look alike"
    if study.adjacency == "one-feature":
        return "each single feature: records that differ in one look alike"
    names = ", ".join(name.replace("_", " ") for name in study.sensitive)
    return f"{names}: records that differ only there look alike; everything else is public"


PUBLIC_OF_LOG = "the declared features and levels, the fitted scores, the shares of records and the choice of ε"
