"""What is measured of one policy on one split of a log, group by group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policies.arrays import FloatArray, IntArray
from policies.policy import Policy
from policies.reference import BestFixed, Greedy, Uniform
from policysim.evaluate import ALL
from policysim.logged.estimates import Estimate, mean, share
from policysim.logged.splits import HeldOut, Split
from policysim.logs.trial import Log

# Quantities with an interval, in the order of the table's columns.
QUANTITIES = ("value", "difference", "loss", "normalized_loss", "benefit_kept")
# What each percentage is a share of: it is refused where that may be nothing.
GAIN_OVER_FIXED, GAIN_OVER_UNIFORM = "gain over best-fixed", "gain over uniform"
SHARE_OF = {"normalized_loss": GAIN_OVER_UNIFORM, "benefit_kept": GAIN_OVER_FIXED}


@dataclass(frozen=True, eq=False)
class Group:
    """Some of a log's patients: those with a level of a feature, or everyone ("all", "all"); `rows` are theirs."""

    feature: str
    level: str
    rows: IntArray


def groups_of(log: Log, by: tuple[str, ...]) -> list[Group]:
    """Everyone, and the patients with each level of some features."""
    groups = [Group(ALL, ALL, np.arange(log.data.n_rows))]
    for feature in by:
        codes, labels = log.space.groups(feature)
        mine = codes[log.records]
        groups += [Group(feature, label, np.flatnonzero(mine == level)) for level, label in enumerate(labels)]
    return groups


@dataclass(frozen=True, eq=False)
class Measured:
    """One policy on one split: for each group its estimates by quantity, and means of what has no interval."""

    estimates: list[dict[str, Estimate]]
    means: list[dict[str, float]]
    epsilon_spent: float


class Measure:
    """Measures policies on one split.

    Parameters
    ----------
    split : Split
        A log, and the scores that were fitted without each part of it.
    groups : list of Group
        Whose patients are measured one by one.
    """

    def __init__(self, split: Split, groups: list[Group]) -> None:
        self._split, self._groups = split, groups
        for problem in split.problems:
            _ = problem.sensitivity, problem.best_actions  # computed once, before threads share them
        self._greedy, self._fixed, self._uniform = (
            split.evaluate(policy).contributions for policy in (Greedy(), BestFixed(), Uniform())
        )
        self._best: IntArray = split.scores.argmax(axis=1)
        # "Untreated" is the first action.
        self._worse: NDArray[np.bool_] = split.scores < split.scores[:, :1]

    def __call__(self, policy: Policy) -> Measured:
        """Make the policy outside of each fold and measure it there."""
        held_out = self._split.evaluate(policy)
        return Measured(
            [self._estimates(held_out.contributions, group.rows) for group in self._groups],
            [self._means(held_out, group.rows) for group in self._groups],
            held_out.epsilon_spent,
        )

    def _estimates(self, contributions: FloatArray, rows: IntArray) -> dict[str, Estimate]:
        mine, greedy = contributions[rows], self._greedy[rows]
        fixed, uniform = self._fixed[rows], self._uniform[rows]
        return {
            "value": mean(mine),
            "difference": mean(mine - fixed),
            "loss": mean(greedy - mine),
            "normalized_loss": share(greedy - mine, greedy - uniform),
            "benefit_kept": share(mine - fixed, greedy - fixed),
            GAIN_OVER_FIXED: mean(greedy - fixed),
            GAIN_OVER_UNIFORM: mean(greedy - uniform),
        }

    def _means(self, held_out: HeldOut, rows: IntArray) -> dict[str, float]:
        names = [f"p_{name}" for name in self._split.log.data.names]
        if not rows.size:
            return dict.fromkeys(["best_action_rate", "worse_than_untreated", *names, "ess"], np.nan)
        chosen, weights = held_out.probabilities[rows], held_out.weights[rows]
        return {
            "best_action_rate": float(np.take_along_axis(chosen, self._best[rows, None], axis=1).mean()),
            "worse_than_untreated": float((chosen * self._worse[rows]).sum(axis=1).mean()),
            **dict(zip(names, chosen.mean(axis=0).tolist(), strict=True)),
            "ess": float(weights.sum() ** 2 / (weights @ weights)) if weights.any() else 0.0,
        }
