"""What utility costs in harm: the ε-private policies that no other one beats in both, at several ε.

One scalar hides a trade. The policies that maximise utility − penalty × outcome, for a penalty from 0 upwards, are the
corners of the frontier: no ε-private policy has more utility without more of the outcome. Between two corners lie their
mixtures, which are ε-private too, so the frontier is a concave curve from the optimum to the policy of least harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from envs.toml_reader import unknown
from policies.arrays import ROUNDING
from policies.optimal.bounded import penalised_point
from policies.problem import DecisionProblem
from policysim.progress import SILENT, Progress
from policysim.study.gain import excess, gain_of
from policysim.study.sweep import checked_epsilons

# The corners are dense enough once the curve between two of them is known to this share of the benefit.
TOLERANCE = 1e-3
# The penalty at the end, in units of the range of the utility over that of the outcome: hardly any utility counts.
LAST = 1e4
# Corners whose utilities and outcomes differ by less, as a share, are one.
SAME = 1e-12


class Corner(NamedTuple):
    """A policy of the frontier by its expected utility and outcome, and the penalty at which it is the optimum."""

    penalty: float
    value: float
    outcome: float


def frontier(
    problem: DecisionProblem,
    epsilons: Sequence[float] | float,
    outcome: str | None = None,
    *,
    tolerance: float = TOLERANCE,
    progress: Progress = SILENT,
) -> pd.DataFrame:
    """The frontier of benefit and a named outcome over all ε-private policies, at each epsilon.

    Each row is the optimum for the utility u(x, a) − penalty · outcome(x, a): a supported point of the two objectives
    (Aneja & Nair 1979, Bicriteria transportation problem, Management Science 25:73). Mixtures of the policies of two
    rows next to each other are ε-private and lie on the line between them.

    Parameters
    ----------
    problem : DecisionProblem
        What is to be decided.
    epsilons : sequence of float
        Values >= 0.
    outcome : str, optional
        What the utility is traded against, one of the outcomes; less of it is better. By default the one that leads.
    tolerance : float, optional
        How far the true frontier may lie above the lines between the rows, as a share of the benefit.
    progress : Progress, optional
        Reports each epsilon.

    Returns
    -------
    DataFrame
        A row per corner; at each epsilon from the optimum (penalty 0) to the least of the outcome.

        - `epsilon`
        - `penalty`: how much utility one unit of the outcome costs beyond what the utility charges for it already
        - `value`: expected utility per patient
        - `benefit_kept`: of the problem, 0 for one treatment for all and 1 for the best for each; NaN where there is
          nothing to gain
        - `expected_OUTCOME`: per patient
        - `extra_OUTCOME`: that, minus what the best treatment for all by utility costs

    Raises
    ------
    ValueError
        For an unknown outcome, or none where none leads, or an epsilon that is not a number >= 0.
    NotApplicableError
        Under one-feature, where the optimum cannot be computed.

    Examples
    --------
    >>> from policies import AnyRecord
    >>> harm = {"harm": [[0.0, 0.2], [0.0, 0.0]]}
    >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord(), outcomes=harm)
    >>> frontier(problem, epsilons=[1.0], outcome="harm")[["benefit_kept", "expected_harm"]].round(4).values.tolist()
    [[0.4621, 0.0731], [0.0, 0.0]]
    """
    outcome = problem.lead if outcome is None else outcome
    if outcome is None:
        raise ValueError("frontier needs an outcome: the problem has no leading outcome.")
    if outcome not in problem.outcomes:
        raise ValueError(unknown("outcome", outcome, tuple(problem.outcomes)))
    values = checked_epsilons(epsilons)
    gain = gain_of(problem)
    fixed = np.asarray(problem.prior @ problem.of_best_fixed(problem.outcomes[outcome]))
    progress.expect(len(values))
    step = tolerance * max(gain.best - gain.fixed, gain.rounding)
    rows: list[dict[str, float]] = []
    for epsilon in values:
        for corner in _corners(problem, epsilon, outcome, step):
            # What differs from one treatment for all by rounding alone keeps nothing.
            same = abs(corner.value - gain.fixed) <= gain.rounding
            rows.append(
                {
                    "epsilon": epsilon,
                    "penalty": corner.penalty,
                    "value": corner.value,
                    "benefit_kept": gain.kept(gain.fixed if same else corner.value),
                    f"expected_{outcome}": corner.outcome,
                    f"extra_{outcome}": float(excess(np.asarray(corner.outcome), fixed, abs(fixed))),
                }
            )
        progress.advance()
    return pd.DataFrame(rows)


def _corners(problem: DecisionProblem, epsilon: float, outcome: str, tolerance: float) -> list[Corner]:
    """Corners by rising penalty; the frontier is nowhere more than `tolerance` above the lines between them."""
    span = float(np.ptp(problem.outcomes[outcome]))
    unit = float(np.ptp(problem.utilities)) / span if span > 0 else 0.0

    def at(penalty: float) -> Corner:
        return Corner(penalty, *penalised_point(problem, epsilon, outcome, penalty))

    def between(left: Corner, right: Corner) -> list[Corner]:
        """The corners between two, by the method of Aneja & Nair: solve for the slope of the line between them."""
        less = left.outcome - right.outcome
        if less <= ROUNDING * abs(left.outcome):
            return []
        slope = (left.value - right.value) / less
        # Corners between the two lie below the lines of their penalties, which meet so far above the line of the two.
        room = (slope - left.penalty) * (right.penalty - slope) / (right.penalty - left.penalty) * less
        if max(0.0, room) <= tolerance:
            return []
        found = at(slope)
        above = (found.value - left.value) - slope * (found.outcome - left.outcome)
        if above <= tolerance:
            # As all policies lie below the line of this slope through it, none is further above the line of the two.
            return [found] if above > ROUNDING * abs(left.value) else []
        return [*between(left, found), found, *between(found, right)]

    first = at(0.0)
    if unit == 0:
        return [first]
    last = at(LAST * unit)
    corners = [first]
    for corner in [*between(first, last), last]:
        # A corner is the optimum for a range of penalties: the least of those that were tried stands for it.
        if corners[-1].outcome - corner.outcome > SAME * abs(corner.outcome):
            corners.append(corner)
    return corners
