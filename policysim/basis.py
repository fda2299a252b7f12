"""What the numbers of a study rest on, in words: a model's scenario, or a log of patients."""

from __future__ import annotations

from dataclasses import dataclass

from policysim.study import LoggedStudy, ScenarioStudy, Study
from policysim.words import ASSUMED_PUBLIC, DISCLAIMER


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
    # Only such a study needs this module.
    from policysim.logged.screen import ASSUMED_PUBLIC as PUBLIC_OF_LOG  # noqa: PLC0415

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
