"""A day of treatment: from a patient's record in the morning to the outcome of the day and the next morning's record.

The day is the one decision of `envs.response`, with the hazard of death spread evenly over the days: flags clear or
appear under the treatment, then death comes or not. In the night after it, a flag that is absent appears with
`Scenario.onset` times its probability at admission, given the record of that evening. The patient's stay ends with
death, with full recovery (no flag is left in the evening) or with the last day; nothing here knows which day it is.
"""

from __future__ import annotations

from functools import cached_property
from graphlib import TopologicalSorter
from typing import Any

import numpy as np

from envs.cohort import FloatArray, admission_probability
from envs.response import ResponseModel


class Course:
    """The numbers of one day and night, over the grid of records.

    Parameters
    ----------
    response : ResponseModel
        What one decision for the whole course does.
    horizon : int
        The number of days, >= 1.

    Attributes
    ----------
    response : ResponseModel
        What one day of treatment does: the hazard of death is that of the whole course over `horizon`.
    onset : list of array
        P(flag appears in a night | absent in the evening), for each transient flag, broadcasting over the grid.

    Raises
    ------
    ValueError
        For a horizon that is not a whole number >= 1.
    """

    def __init__(self, response: ResponseModel, horizon: int) -> None:
        self.horizon = _whole_days(horizon)
        self.scenario = response.scenario
        self.response = response.spread(self.horizon)
        self.onset = [
            self.scenario.onset.get(flag, 0.0) * admission_probability(self.scenario, flag)
            for flag in self.scenario.transient
        ]

    @cached_property
    def hazards(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The day's hazard of death is level + slope * (kappa . flags left): both over the grid, and kappa, (n,)."""
        death, space = self.scenario.death, self.scenario.space
        acute = self.response.acute
        severity = self.response.severity
        level: FloatArray = severity * np.where(acute, death.baseline, 1.0)
        slope: FloatArray = severity * np.where(acute, 1.0, 0.0)
        assert level.ndim == len(space.shape)
        return level, slope, np.array([death.hazard.get(flag, 0.0) for flag in self.scenario.transient])

    @cached_property
    def night_order(self) -> list[int]:
        """The transient flags, each after all those that its onset depends on (rules never go in a circle)."""
        flags = self.scenario.transient
        axes = {flag: self.scenario.space.axis(flag) for flag in flags}
        parents = {
            position: [other for other, name in enumerate(flags) if table.shape[axes[name]] > 1]
            for position, table in enumerate(self.onset)
        }
        return list(TopologicalSorter(parents).static_order())


def is_whole(value: object) -> bool:
    """Whether a value is a whole number; truth values are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _whole_days(horizon: Any) -> int:
    if not is_whole(horizon) or horizon < 1:
        raise ValueError(f"horizon must be a whole number of days >= 1, got horizon={horizon!r}.")
    return int(horizon)
