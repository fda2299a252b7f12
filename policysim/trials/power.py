"""What a log of this size can show at all: the least gain that is likely to be seen, and the one that would be needed.

Sampling error decides which gains are seen; the mechanism decides how large a gain must be to outweigh what it draws at
random.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from policysim.question.formats import percent, rounded
from policysim.question.words import in_a_row
from policysim.study.checks import Z

POWER = 0.8
# Standard errors that a gain must be above 0 to be seen, by a two-sided test at 5 %, with this power.
ERRORS = Z + NormalDist().inv_cdf(POWER)
POINTS = (0.01, 0.02)  # gains that patients are counted for, as parts of the range of the utility


@dataclass(frozen=True)
class Power:
    """What a log can show of choosing a treatment for each patient, without privacy.

    Attributes
    ----------
    standard_error : float
        Of what it gains over the best single treatment; NaN where the two are the same treatment for everybody.
    least_gain : float
        What is seen with 80 % power.
    patients : mapping of float to float
        For 1 and 2 % of the utility's range, how many patients such a log would need; inf if that is beyond counting.
    """

    standard_error: float
    least_gain: float
    patients: Mapping[float, float]


def power_of(standard_error: float, n: int, spread: float) -> Power:
    """From the standard error of a gain, on n patients, and the width of the utility's range.

    A mean with standard error s is found different from 0 at the two-sided level of 5 % with a probability of 80 % if
    it is 1.96 + 0.84 of them (the usual formula of sample sizes, of which the other tail is left out); s falls with
    1 / sqrt(n).

    Examples
    --------
    >>> found = power_of(0.0236, 2139, 1.0)
    >>> round(found.least_gain, 3), [round(n, -3) for n in found.patients.values()]
    (0.066, [94000.0, 23000.0])
    """
    if not standard_error > 0:
        return Power(math.nan, math.nan, {})
    least = ERRORS * standard_error
    return Power(standard_error, least, {part * spread: n * (least / (part * spread)) ** 2 for part in POINTS})


def power_words(power: Power, n: int) -> str:
    """What a log can show, in a sentence."""
    if math.isnan(power.standard_error):
        return (
            "Choosing for each patient by the fitted scores gives everybody the best single treatment: there is no "
            "difference to be seen."
        )
    needed = " and ".join(
        f"about {_patients(count)} patients for a gain of {gain:g}" for gain, count in power.patients.items()
    )
    return (
        f"Among {n:,} patients, a gain of {rounded(power.least_gain)} by choosing for each without privacy is seen "
        f"with {percent(POWER)} power (2.8 standard errors), a smaller one less often. To see a gain so often takes "
        f"{needed}."
    )


def break_even_gain(best: float, shares: float, of_greedy: float, follows: float) -> float:
    """The gain of choosing for each that a mechanism needs to beat one treatment for all.

    Parameters
    ----------
    best : float
        The mean outcome of the best single treatment.
    shares : float
        That of drawing treatments with the mechanism's shares, whoever the patient is.
    of_greedy : float
        The same for choosing for each without privacy.
    follows : float
        How much of what choosing for each adds to drawing by shares the mechanism adds, by the fitted scores: of k-ary
        response (e^eps - 1) / (e^eps + k - 1).

    Returns
    -------
    float
        inf for a mechanism that does not follow the patients.

    Notes
    -----
    With u(x, a) = m_a + s h(x, a), where m_a are the treatments' means and s says how much patients differ, a policy
    with shares q is worth sum q_a m_a + s c, and c is the mean of sum_a (p(a|x) - q_a) h(x, a): `follows` is the ratio
    of two such c, where s cancels. It beats the best treatment if s c > best - sum q_a m_a; choosing for each then
    gains s c_greedy - (best - of_greedy). The estimated means m_a are taken as they are.

    Examples
    --------
    Response at eps = 1 among four treatments of which one is 0.1 better than the mean of all:

    >>> follows = (math.e - 1) / (math.e + 3)
    >>> shares = follows * 0.5 + (1 - follows) * 0.4
    >>> round(break_even_gain(0.5, shares, 0.5, follows), 3)  # (1 - follows) / follows 0.1
    0.233
    """
    if not follows > 0:
        return math.inf
    return (best - shares) / follows - (best - of_greedy)


def break_even_words(epsilon: float, needed: Sequence[tuple[str, float]]) -> str:
    """The gains that mechanisms need, in a sentence; "" without any mechanism."""
    if not needed:
        return ""
    finite = [f"{rounded(max(gain, 0.0))} ({name})" for name, gain in needed if math.isfinite(gain)]
    never = [name for name, gain in needed if math.isinf(gain)]
    more = f" No gain is enough under {in_a_row(never, 'or')}, which does not follow the patients." if never else ""
    if not finite:
        return f"One treatment for all is not beaten at ε = {epsilon:g}.{more}"
    return (
        f"A private choice at ε = {epsilon:g} beats one treatment for all only if choosing for each patient without "
        f"privacy gains more than {in_a_row(finite, 'or')}. That much is lost on what is drawn at random.{more} "
        "These thresholds follow from the treatments' estimated mean outcomes, and from how closely each mechanism "
        "follows the fitted scores."
    )


def _patients(count: float) -> str:
    """A number of patients in two digits."""
    digits = 1 - math.floor(math.log10(count)) if count > 0 else 0
    return f"{round(count, digits):,.0f}"
