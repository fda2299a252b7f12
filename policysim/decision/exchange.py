"""Whether one option is better than another, and how that depends on what one of the leading outcome weighs.

Utility is linear in that weight. In a version of the model the difference between two options is rest - w lead, where
rest is their difference in utility without the outcome that leads, and lead their difference in that outcome. So each
version has one weight at which the better of the two changes, or none. The share of the versions in which an option is
better, against the weight, is the cost-effectiveness acceptability curve of health economics; it may rise, fall or do
both, and need not begin at 0 or end at 1 (Fenwick, O'Brien & Briggs 2004, Cost-effectiveness acceptability curves:
facts, fallacies and frequently asked questions).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from policies.arrays import FloatArray
from policysim.report.findings import verdict_of_versions
from policysim.words import ALL

# Values that differ by less, of the range in a version or of the largest number there, are equal but for rounding.
TIE, ROUNDING = 1e-9, 1e-12
# Weights at which the better option changes are the same if they agree in so many digits.
DIGITS = 12
# The curve is drawn up to so many times the largest weight that matters, at so many steps.
BEYOND, STEPS = 1.5, 100


@dataclass(frozen=True, eq=False)
class Exchange:
    """Two options in the versions of a model; one version if there are only the stated numbers.

    Attributes
    ----------
    stated : float
        What one of the outcome that leads weighs in the study; NaN where none leads.
    rest : array, (n_versions,)
        By how much more utility the option has without the outcome that leads.
    lead : array, (n_versions,)
        How much more of the outcome that leads it has; 0 where none leads, and where the difference is rounding.
    rounding : array, (n_versions,)
        What rounding makes of equal utilities.
    """

    stated: float
    rest: FloatArray
    lead: FloatArray
    rounding: FloatArray

    @property
    def versions(self) -> int:
        """How many there are."""
        return len(self.rest)

    def better_share(self, weight: float) -> float:
        """In which share of the versions the option is better, where one of the outcome that leads weighs so much."""
        return float(np.mean(self._signs(weight) > 0))

    @property
    def better(self) -> int:
        """The number of versions in which the option is better at the stated weight."""
        return int(np.sum(self._signs(self._weight) > 0))

    def verdict_at(self, weight: float) -> str:
        """The verdict on the option where one of the outcome that leads weighs so much."""
        signs = self._signs(weight)
        return verdict_of_versions(float(np.mean(signs > 0)), float(np.mean(signs == 0)))

    @cached_property
    def thresholds(self) -> FloatArray:
        """The weights above 0 at which the better option changes in some version, rising, each once."""
        moves = self.lead != 0
        changes = self.rest[moves] / self.lead[moves]
        return np.unique([float(f"{weight:.{DIGITS}g}") for weight in changes if 0 < weight < math.inf])

    @cached_property
    def zones(self) -> pd.DataFrame:
        """The verdict for every weight from 0: low, high and verdict, of zones that follow each other without a gap.

        The first begins at 0, the last ends at inf. Neighbours have different verdicts. At the weight between two zones
        itself the options are as good as each other in some version.
        """
        ends = [0.0, *self.thresholds, math.inf]
        rows: list[tuple[float, float, str]] = []
        for low, high in itertools.pairwise(ends):
            verdict = self.verdict_at((low + high) / 2 if high < math.inf else 2 * low + 1)
            if rows and rows[-1][2] == verdict:
                rows[-1] = (rows[-1][0], high, verdict)
            else:
                rows.append((low, high, verdict))
        return pd.DataFrame(rows, columns=["low", "high", "verdict"])

    @property
    def acceptability(self) -> pd.DataFrame:
        """The acceptability curve: weight, better and worse (shares of the versions), by rising weight.

        The weights are an even grid from 0, beyond the stated one and the last one at which a verdict changes, and
        these themselves.
        """
        marks = [end for end in (self._weight, *self.zones["low"]) if math.isfinite(end)]
        top = BEYOND * max(marks) or 1.0
        weights = np.unique([*np.linspace(0.0, top, STEPS + 1), *marks])
        signs = [self._signs(float(weight)) for weight in weights]
        shares = {"better": [np.mean(each > 0) for each in signs], "worse": [np.mean(each < 0) for each in signs]}
        return pd.DataFrame({"weight": weights, **shares})

    @property
    def _weight(self) -> float:
        """The stated weight; 0 where no outcome leads, as then nothing depends on it."""
        return 0.0 if math.isnan(self.stated) else self.stated

    def _signs(self, weight: float) -> NDArray[np.int8]:
        """In each version 1 where the option is better, -1 where it is worse, 0 where it is as good."""
        difference = self.rest - weight * self.lead
        signs: NDArray[np.int8] = np.where(np.abs(difference) <= self.rounding, 0, np.sign(difference)).astype(np.int8)
        return signs


def exchange(versions: pd.DataFrame, option: str, than: str, *, lead: str | None, weight: float) -> Exchange:
    """Compare two options in the versions of a model.

    Parameters
    ----------
    versions : DataFrame
        draw, option, value and `expected_LEAD` (`redraws.Redrawn.options`, or `as_one_version`). Where it has a column
        `lead_weight`, a version's utilities are made with that weight of the outcome that leads, else with the stated
        one.
    option, than : str
        Two options of them.
    lead : str or None
        The outcome that leads; None for none.
    weight : float
        What one of it weighs, as stated; 0 where its weight is none of its own, as of a sum of outcomes: the exchange
        is then about what it weighs besides.

    Examples
    --------
    >>> stated = [(0, "A", -10.0, 0.1), (0, "B", -7.0, 0.13)]
    >>> versions = pd.DataFrame(stated, columns=["draw", "option", "value", "expected_death"])
    >>> found = exchange(versions, "B", "A", lead="death", weight=50.0)
    >>> found.better, found.zones["verdict"].tolist(), round(found.zones["high"][0])
    (1, ['better', 'worse'], 150)
    """
    utility, rounding = differences(versions, option, than, "value")
    if lead is None:
        return Exchange(math.nan, utility, np.zeros(len(utility)), rounding)
    more, _ = differences(versions, option, than, f"expected_{lead}")
    weights = _wide(versions, "lead_weight")[option].to_numpy() if "lead_weight" in versions else weight
    return Exchange(weight, _without(utility + weights * more, rounding), more, rounding)


def as_one_version(comparison: pd.DataFrame, epsilon: float) -> pd.DataFrame:
    """The stated numbers of a comparison at one epsilon as the only version of the model: nothing else is known."""
    stated = comparison[(comparison["group"] == ALL) & (comparison["epsilon"] == epsilon)]
    return stated[stated["value"].notna()].rename(columns={"policy": "option"}).assign(draw=0)


def perfect_information(
    versions: pd.DataFrame, options: Sequence[str], weight: float = math.nan
) -> tuple[float, float]:
    """The expected value of perfect information: what it would gain to know which version of the model is true.

    The mean over the versions of the best option's value, minus the value of the option with the best mean: what the
    choice among these options loses at most because the numbers are uncertain.

    Parameters
    ----------
    versions : DataFrame
        As in `exchange`.
    options : sequence of str
        Those among which is chosen.
    weight : float, optional
        What one of the outcome that leads weighs, as stated.

    Returns
    -------
    tuple of float
        Per patient in units of utility, and in units of the outcome that leads: NaN without a weight above 0.

    Examples
    --------
    >>> rows = [(0, "A", 1.0), (0, "B", 2.0), (1, "A", 1.0), (1, "B", -2.0)]
    >>> perfect_information(pd.DataFrame(rows, columns=["draw", "option", "value"]), ["A", "B"], 100.0)
    (0.5, 0.005)
    """
    values = _wide(versions, "value")[list(options)].to_numpy()
    # Of differences, so that no constant of all utilities takes their digits.
    best = values.mean(axis=0).argmax()
    gained = float((values.max(axis=1) - values[:, best]).mean())
    return gained, gained / weight if weight > 0 else math.nan


def differences(versions: pd.DataFrame, option: str, than: str, column: str) -> tuple[FloatArray, FloatArray]:
    """The differences of two options in each version of a model, 0 where they are rounding; and what rounding makes."""
    wide = _wide(versions, column)
    numbers = wide.to_numpy(dtype=np.float64)
    rounding: FloatArray = np.maximum(TIE * np.ptp(numbers, axis=1), ROUNDING * np.abs(numbers).max(axis=1))
    return _without((wide[option] - wide[than]).to_numpy(dtype=np.float64), rounding), rounding


def _wide(versions: pd.DataFrame, column: str) -> pd.DataFrame:
    """A row for each version, a column for each option."""
    return versions.pivot(index="draw", columns="option", values=column)


def _without(difference: FloatArray, rounding: FloatArray) -> FloatArray:
    """The difference, 0 where it is rounding."""
    return np.where(np.abs(difference) <= rounding, 0.0, difference)
