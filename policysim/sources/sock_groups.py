"""The exponential mechanism on a small and a large group: what causes the disparity that the source finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from envs.toml_reader import Table
from policies.arrays import FloatArray, IntArray
from policies.selection import select
from policysim.sources.losses import REPLACE_ONE, largest_loss
from policysim.sources.reading import Claim, Quote, read_claims, read_counts, read_quotes

ALL = "all"
EPSILON_TEXT, SENSITIVITY, DISJOINT = (
    "ε of the figures per group",
    "sensitivity of a proportion",
    "ε for each of two disjoint groups",
)
COEFFICIENT, WHO, WHY = "coefficient of monotone scores", "who is reported Violent too often", "why"
SUBJECTS = (EPSILON_TEXT, SENSITIVITY, DISJOINT, COEFFICIENT, WHO, WHY)
NOTABLE = 0.01


@dataclass(frozen=True)
class Constants:
    """What the study file holds.

    Attributes
    ----------
    groups : mapping
        Two groups, each with its people by candidate, in the same two candidates.
    sensitivity : float
        As the source declares it.
    epsilon, text_epsilon : float
        What it shares out among the groups, and what its text says.
    scores, shares, probabilities, draws : tuple of Quote
        Its figures.
    claims : tuple of Claim
        What it says.
    """

    groups: Mapping[str, Mapping[str, int]]
    sensitivity: float
    epsilon: float
    text_epsilon: float
    scores: tuple[Quote, ...]
    shares: tuple[Quote, ...]
    probabilities: tuple[Quote, ...]
    draws: tuple[Quote, ...]
    claims: tuple[Claim, ...]

    @property
    def candidates(self) -> tuple[str, ...]:
        """Rarest first."""
        both = [sum(group[name] for group in self.groups.values()) for name in next(iter(self.groups.values()))]
        names = list(next(iter(self.groups.values())))
        return tuple(names[place] for place in np.argsort(both, kind="stable"))

    @property
    def by_size(self) -> tuple[str, str]:
        """The smaller group and the larger one."""
        small, large = sorted(self.groups, key=lambda name: sum(self.groups[name].values()))
        return small, large

    def counts(self, data: str) -> IntArray:
        """(2,), rarest candidate first; of one group or of all."""
        names = list(self.groups) if data == ALL else [data]
        return np.array([sum(self.groups[name][candidate] for name in names) for candidate in self.candidates])

    def split(self, data: str) -> float:
        """The group's share of epsilon, by its size."""
        return self.epsilon * float(self.counts(data).sum() / self.counts(ALL).sum())


def read(table: Table) -> Constants:
    """The constants, mistakes noted in the table."""
    inner = table.table("groups")
    groups = {name: read_counts(inner, name) for name in inner.values}
    candidates = list(next(iter(groups.values()), {}))
    if len(groups) != 2:
        table.fail(f"must be two groups, got {len(groups)}", *(["groups"] if "groups" in table else []))
    for name, counts in groups.items():
        if len(counts) != 2 or set(counts) != set(candidates):
            inner.fail(f"must count the same two candidates as the first group ({', '.join(candidates)})", name)
        elif not all(counts.values()):
            inner.fail("must count somebody for each candidate", name)
    split = table.table("split")
    epsilon, text_epsilon = split.number("epsilon", low=0), split.number("text_epsilon", low=0)
    split.close()
    known = dict.fromkeys((ALL, *groups), candidates)
    return Constants(
        groups=groups,
        sensitivity=table.number("sensitivity", low=1e-9),
        epsilon=epsilon,
        text_epsilon=text_epsilon,
        scores=read_quotes(table, "scores", known, epsilon=False),
        shares=read_quotes(table, "shares", {"": list(groups)}, epsilon=False),
        probabilities=read_quotes(table, "probabilities", known),
        draws=read_quotes(table, "draws", known, runs=True),
        claims=read_claims(table, SUBJECTS),
    )


def proportions(counts: IntArray) -> FloatArray:
    """The score of each candidate."""
    return np.asarray(counts / counts.sum(), dtype=np.float64)


def probabilities(counts: IntArray, epsilon: float, sensitivity: float) -> FloatArray:
    """Of each candidate, by the exponential mechanism on proportions."""
    return select(proportions(counts), epsilon=epsilon, sensitivity=sensitivity).probabilities


def rarely(counts: IntArray, epsilon: float, sensitivity: float | None = None) -> float:
    """Probability that the rare candidate is reported; with the sensitivity 1/n of replacing a value by default."""
    return float(probabilities(counts, epsilon, 1 / counts.sum() if sensitivity is None else sensitivity)[0])


def exact_loss(counts: IntArray, epsilon: float, sensitivity: float) -> float:
    """Over all tables of as many people, one of whom has another value; n is public."""
    choice = partial(probabilities, epsilon=epsilon, sensitivity=sensitivity)
    return largest_loss(int(counts.sum()), len(counts), choice, REPLACE_ONE)


@dataclass(frozen=True)
class Outcome:
    """What a calibration gives for the smaller and the larger group, in this order.

    Attributes
    ----------
    name : str
        The calibration.
    rare : tuple of float
        Probability that the rare candidate is reported.
    claimed, loss : tuple of float
        epsilon given, and the exact loss if one person's value is replaced.
    """

    name: str
    rare: tuple[float, ...]
    claimed: tuple[float, ...]
    loss: tuple[float, ...]

    @property
    def disparity(self) -> float:
        """How much more often the rare candidate is reported for the smaller group."""
        return self.rare[0] - self.rare[1]


def outcomes(constants: Constants) -> list[Outcome]:
    """The source's calibration, each of its two parts corrected, and both."""
    result = []
    for name, true_sensitivity, whole in (
        ("the source: Δ = {declared:g}, ε split by size", False, False),
        ("Δ = {declared:g}, whole ε for each group", False, True),
        ("Δ = 1/n, ε split by size", True, False),
        ("both corrected: Δ = 1/n, whole ε", True, True),
    ):
        tables = [constants.counts(group) for group in constants.by_size]
        given = tuple(constants.epsilon if whole else constants.split(group) for group in constants.by_size)
        deltas = [1 / float(counts.sum()) if true_sensitivity else constants.sensitivity for counts in tables]
        parts = list(zip(tables, given, deltas, strict=True))
        result.append(
            Outcome(
                name.format(declared=constants.sensitivity),
                tuple(rarely(*part) for part in parts),
                given,
                tuple(exact_loss(*part) for part in parts),
            )
        )
    return result


def left_disparity(constants: Constants) -> tuple[float, float, float]:
    """With both corrected: the largest disparity over epsilon, where it is, and from where on it is below 0.01."""
    small, large = (constants.counts(name) for name in constants.by_size)

    def disparity(epsilon: float) -> float:
        return rarely(small, epsilon) - rarely(large, epsilon)

    # On the log scale the disparity rises to one peak and falls.
    found = minimize_scalar(lambda place: -disparity(10.0**place), bounds=(-4, 1), method="bounded")
    peak = float(10.0**found.x)
    if disparity(peak) <= NOTABLE:
        return disparity(peak), peak, 0.0
    return disparity(peak), peak, float(brentq(lambda epsilon: disparity(epsilon) - NOTABLE, peak, 1e4))
