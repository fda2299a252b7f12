"""What is measured of one policy on one split of a log, group by group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policies.arrays import FloatArray, IntArray
from policies.policy import Policy
from policies.reference import Greedy, Uniform
from policysim.evaluate import ALL
from policysim.logged.estimates import Estimate, mean, minus, share
from policysim.logged.splits import HeldOut, Split
from policysim.logs.trial import Log


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
    """One policy on one split, group by group: estimates by name, and means of what has no interval."""

    estimates: list[dict[str, Estimate]]
    means: list[dict[str, float]]
    epsilon_spent: float


def difference_to(arm: int) -> str:
    """The name of the estimate of a policy's value minus that of an arm."""
    return f"difference to {arm}"


def gain_over(arm: int) -> str:
    """The name of the estimate of what greedy gains over an arm."""
    return f"gain over {arm}"


def kept_over(arm: int) -> str:
    """The name of the estimate of a policy's share of that gain."""
    return f"benefit kept over {arm}"


GAIN_OVER_UNIFORM = "gain over uniform"


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
        self._greedy, self._uniform = (split.evaluate(policy).contributions for policy in (Greedy(), Uniform()))
        self._arms = [split.arm(arm) for arm in range(split.log.data.n_actions)]
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
        mine, greedy, uniform = contributions[rows], self._greedy[rows], self._uniform[rows]
        loss, whole = minus(greedy, mine), minus(greedy, uniform)
        found = {
            "value": mean(mine),
            "loss": mean(loss),
            "normalized_loss": share(loss, whole),
            GAIN_OVER_UNIFORM: mean(whole),
        }
        for arm, contributed in enumerate(self._arms):
            apart, gain = minus(mine, contributed[rows]), minus(greedy, contributed[rows])
            found |= {difference_to(arm): mean(apart), gain_over(arm): mean(gain), kept_over(arm): share(apart, gain)}
        return found

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
