"""Other priors that a study's patients may come from: another prevalence, or one group alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from policies.arrays import FloatArray
from policysim.study.declared import PREVALENCE, ScenarioStudy, Study

# The true prevalence as a multiple of the assumed one.
FACTORS = {"⅓": 1 / 3, "½": 1 / 2, "1": 1.0, "2": 2.0, "3": 3.0}


def prevalent(study: ScenarioStudy) -> FloatArray:
    """1 for the records with the condition that makes outcomes dangerous, (n_records,); 1 for all if there is none."""
    space = study.scenario.space
    ill = np.ones(space.size)
    for name, levels in study.scenario.death.acute.items():
        codes, _ = space.groups(name)
        ill *= np.array([level in levels for level in space.feature(name).levels], dtype=np.float64)[codes]
    return ill


def at_prevalence(prior: FloatArray, ill: FloatArray, factor: float) -> tuple[FloatArray, float]:
    """The prior with the prevalence multiplied by a factor, at most 1, (n_records,), and that prevalence.

    Parameters
    ----------
    prior : array, (n_records,)
    ill : array, (n_records,)
        1 for the records with the condition; some, but not all, of the patients must have it.
    factor : float
    """
    assumed = float(prior @ ill)
    prevalence = min(factor * assumed, 1.0)
    other = prior * np.where(ill > 0, prevalence / assumed, (1 - prevalence) / (1 - assumed))
    return other / other.sum(), prevalence


@dataclass(frozen=True, eq=False, repr=False)
class OtherPriors(Mapping[str, FloatArray]):
    """The priors by name: of each factor of the prevalence, or of each level of a feature that some patient has.

    They are made when they are asked for, each time anew: not every comparison asks, and each is as long as the domain.

    Parameters
    ----------
    study : Study
        `robust` says which; None for none.
    prior : array, (n_records,)
        The assumed one.
    """

    study: Study
    prior: FloatArray

    def __getitem__(self, name: str) -> FloatArray:
        """Make it; KeyError for an unknown name."""
        place = self._names[name]
        if isinstance(place, float):
            assert isinstance(self.study, ScenarioStudy)
            return at_prevalence(self.prior, prevalent(self.study), place)[0]
        codes, _ = self.study.space.groups(self.study.robust or "")
        within: FloatArray = np.where(codes == place, self.prior, 0.0)
        return np.asarray(within / within.sum())

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self._names)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._names)

    @cached_property
    def _names(self) -> dict[str, float | int]:
        """Each with its factor or its level."""
        if self.study.robust is None:
            return {}
        if self.study.robust != PREVALENCE:
            codes, labels = self.study.space.groups(self.study.robust)
            shares = np.bincount(codes, self.prior, minlength=len(labels))
            return {f"{self.study.robust} {label}": level for level, label in enumerate(labels) if shares[level] > 0}
        if not isinstance(self.study, ScenarioStudy) or not 0 < float(self.prior @ prevalent(self.study)) < 1:
            return {}
        return {f"prevalence × {words}": factor for words, factor in FACTORS.items()}
