"""How strong confounding by something that nobody recorded would have to be to explain a difference of arms away."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from policysim.logs.log_frame import LoggedData
from policysim.question.formats import rounded
from policysim.study.checks import Z
from policysim.trials.estimators import moments, snips


@dataclass(frozen=True)
class EValue:
    """E-values of the ratio of two arms' mean outcomes.

    Attributes
    ----------
    better, other : str
        The arms.
    ratio : float
        Of their means, >= 1.
    value, at_limit : float
        For the ratio, and for the end of its 95 % interval that is nearer to 1 (1 where the interval holds 1).
    """

    better: str
    other: str
    ratio: float
    value: float
    at_limit: float


def e_value(ratio: float) -> float:
    """R + sqrt(R (R - 1)) of a risk ratio, below 1 of its inverse (VanderWeele & Ding 2017, Annals, table 2).

    Examples
    --------
    >>> round(e_value(3.9), 2), round(e_value(1 / 3.9), 2), e_value(1.0)
    (7.26, 7.26, 1.0)
    """
    above = max(ratio, 1 / ratio)
    return above + math.sqrt(above * (above - 1))


def confounding_needed(data: LoggedData, better: str) -> EValue | None:
    """E-values of an arm against the first, or the second best where it is the first.

    The interval is that of the logarithm of the ratio, by the delta method, with the arms' means and errors as
    `arm_means` has them. None where an outcome below 0 or an arm without rows or successes leaves no ratio.
    """
    found = {}
    for arm, name in enumerate(data.names):
        own = data.of(data.actions == arm)
        if own.n_patients > 1:
            found[name] = moments(snips(1 / own.propensities, own.rewards, own.counts), own.counts)
    others = [name for name in found if name != better]
    if better not in found or not others or data.known.rewards.min() < 0:
        return None
    other = others[0] if others[0] == data.names[0] else max(others, key=lambda name: found[name].mean)
    means = found[better].mean, found[other].mean
    if min(means) <= 0:
        return None
    log_ratio = math.log(means[0] / means[1])
    error = float(np.hypot(found[better].standard_error / means[0], found[other].standard_error / means[1]))
    limit = max(0.0, abs(log_ratio) - Z * error)
    return EValue(better, other, math.exp(log_ratio), e_value(math.exp(log_ratio)), e_value(math.exp(limit)))


def e_value_words(found: EValue) -> str:
    """What confounding would have to do, in a sentence."""
    limit = "" if found.at_limit > 1 else ", which holds no difference: no confounding at all is needed for that"
    return (
        f"E-value: whatever was not recorded would have to make both the treatment and the outcome "
        f"{rounded(found.value)} times as probable, beyond the declared features, to explain away that the mean "
        f"outcome under {found.better} is {rounded(found.ratio)} times that under {found.other}; "
        f"{rounded(found.at_limit)} times to move its interval to no difference{limit} (VanderWeele & Ding 2017)."
    )
