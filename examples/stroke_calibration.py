"""Does the scenario `stroke` foretell the patients that it was not fitted to?

`python examples/stroke_calibration.py` writes reports/stroke-calibration: events seen in the half of the trial that was
kept out, beside those that the scenario predicts, for each arm and risk group.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import pandas as pd
from experiment_report import Asked, run, table_section
from matplotlib.axes import Axes
from scipy.stats import chi2, poisson_binom
from stroke_fit import fit
from stroke_trial import (
    ARMS,
    FEATURES,
    OUTCOMES,
    FloatArray,
    fitted_half,
    given,
    indicators,
    levels_of,
    read_patients,
)

from envs.cohort import prior
from envs.scenario import Scenario
from envs.scenario_file import load_scenario
from envs.treatment_response import ResponseModel
from policysim.figures.described import Described
from policysim.question.protocol import Progress
from policysim.sources.chances import SingleRun
from policysim.sources.engine import Row, Section, SourceFindings

GROUPS = 5  # fifths of the untreated risk of the fitted half
TAIL = 0.025  # beyond each end of a 95 % band
FIGURE = "predicted-and-observed"
# Most are seen by chance where so many are looked for.
LEVEL = 0.05


@dataclass(frozen=True)
class Calibration:
    """The patients of the trial and the scenario that was made of half of them."""

    scenario: Scenario
    patients: pd.DataFrame
    fitted: FloatArray

    @cached_property
    def chances(self) -> FloatArray:
        """P(outcome | patient, treatment) by the scenario, (n, treatments, outcomes)."""
        return ResponseModel(self.scenario).outcome_probabilities(self.scenario.space.encode(self.patients))

    @cached_property
    def cells(self) -> pd.DataFrame:
        """The patients who were kept out, by outcome, arm and group of risk, the lowest first.

        Columns: outcome, arm, group, patients, observed, predicted, low, high. Between low and high, inclusive, the
        observed number of events lies with probability >= 95 % if the scenario is right: it is the sum of independent
        events that each have their own probability.
        """
        arms, place = self.patients["arm"].to_numpy(), list(ARMS)
        rows = []
        for position, outcome in enumerate(OUTCOMES):
            untreated = self.chances[:, 0, position]
            cuts = np.quantile(untreated[self.fitted], np.arange(1, GROUPS) / GROUPS)
            group = np.searchsorted(cuts, untreated, side="right")
            for arm in ARMS:
                for number in range(GROUPS):
                    here = ~self.fitted & (arms == arm) & (group == number)
                    chance = self.chances[here, place.index(arm), position]
                    low, high = poisson_binom(chance).ppf([TAIL, 1 - TAIL])
                    seen = int(self.patients.loc[here, outcome].sum())
                    rows.append((outcome, arm, number + 1, len(chance), seen, chance.sum(), low, high))
        names = ["outcome", "arm", "group", "patients", "observed", "predicted", "low", "high"]
        return pd.DataFrame(rows, columns=names)

    @property
    def inside(self) -> pd.Series:
        """Which cells are within their band."""
        return self.cells["observed"].between(self.cells["low"], self.cells["high"])

    def apart(self, features: int) -> pd.Series:
        """Total variation between the prior and all patients, for each set of so many features; the largest first."""
        space = self.scenario.space
        counted = np.bincount(space.encode(self.patients), minlength=space.size) / len(self.patients)
        difference = (prior(self.scenario) - counted).reshape(space.shape)
        found = {}
        for names in combinations(space.names, features):
            others = tuple(axis for axis, name in enumerate(space.names) if name not in names)
            found[", ".join(names)] = float(np.abs(difference.sum(axis=others)).sum() / 2)
        return pd.Series(found).sort_values(ascending=False)


def calibration(scenario: str = "stroke") -> Calibration:
    """Of a scenario file, on the patients beside this script."""
    patients = read_patients()
    return Calibration(load_scenario(scenario), patients, fitted_half(patients))


def departures(patients: pd.DataFrame, half: FloatArray) -> pd.DataFrame:
    """Whether the ratio of a treatment depends on a feature: a likelihood ratio test for each, in a half.

    Columns: outcome, drug, feature, p. In each test the ratio of one drug may differ between the levels of one feature.
    """
    treated, levels = given(patients)[half], indicators(patients)[half]
    design = np.column_stack([np.ones(len(levels)), treated, levels])
    precision = np.repeat([0.0, np.log(2) ** -2], [3, levels.shape[1]])
    rows = []
    for outcome in OUTCOMES:
        happened = patients.loc[half, outcome].to_numpy(dtype=np.float64)
        without = fit(design, happened, precision)
        for place, drug in enumerate(ARMS["a3"]):
            for feature in FEATURES:
                own = indicators(patients, [feature])[half][:, 1:] * treated[:, [place]]
                wide = np.column_stack([design, own])
                # A prior so wide that it only keeps levels without events from an infinite ratio.
                found = fit(wide, happened, np.append(precision, np.full(own.shape[1], 0.1)))
                gain = 2 * max(0.0, found.log_likelihood - without.log_likelihood)
                rows.append((outcome, drug, feature, float(chi2.sf(gain, len(levels_of(feature)) - 1))))
    return pd.DataFrame(rows, columns=["outcome", "drug", "feature", "p"])
