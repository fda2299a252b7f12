"""The most common value, with a score that is a thousandth of a count and a sensitivity declared as 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from envs.toml_reader import Table
from policies.arrays import FloatArray, IntArray
from policies.selection import select
from policysim.sources.losses import largest_loss
from policysim.sources.reading import Claim, Quote, read_claims, read_counts, read_quotes

SENSITIVITY, COST, CANDIDATE = (
    "sensitivity of the score",
    "privacy cost whatever the number of candidates",
    "the output is a candidate",
)


@dataclass(frozen=True)
class Constants:
    """What the study file holds.

    Attributes
    ----------
    counts : mapping
        People by candidate.
    divisor : float
        The score is count / divisor.
    sensitivity, epsilon : float
        As the source declares them.
    draws, people : tuple of Quote
        Its figures.
    claims : tuple of Claim
        What it says.
    """

    counts: Mapping[str, int]
    divisor: float
    sensitivity: float
    epsilon: float
    draws: tuple[Quote, ...]
    people: tuple[Quote, ...]
    claims: tuple[Claim, ...]

    @property
    def table(self) -> IntArray:
        """(k,) counts."""
        return np.array(list(self.counts.values()))

    @property
    def true_sensitivity(self) -> float:
        """Of count / divisor: one person is one in a count, whoever the neighbours are."""
        return 1 / self.divisor

    @property
    def overstated(self) -> float:
        """How many times the declared sensitivity is too large."""
        return self.sensitivity * self.divisor


def read(table: Table) -> Constants:
    """The constants, mistakes noted in the table."""
    counts = read_counts(table, "counts")
    return Constants(
        counts=counts,
        divisor=table.number("divisor", low=1e-9),
        sensitivity=table.number("sensitivity", low=1e-9),
        epsilon=table.number("epsilon", low=1e-9),
        draws=read_quotes(table, "draws", {"": list(counts)}, runs=True),
        people=read_quotes(table, "people", {"": ["people"]}, epsilon=False),
        claims=read_claims(table, (SENSITIVITY, COST, CANDIDATE)),
    )


def probabilities(
    constants: Constants, counts: IntArray, epsilon: float, *, corrected: bool = False, monotone: bool = False
) -> FloatArray:
    """Of each candidate, (k,), with the declared sensitivity or the true one."""
    sensitivity = constants.true_sensitivity if corrected else constants.sensitivity
    return select(counts / constants.divisor, epsilon=epsilon, sensitivity=sensitivity, monotone=monotone).probabilities


def exact_loss(constants: Constants, adjacency: str, candidates: int | None = None) -> float:
    """Of the source's mechanism, over all tables of as many people, and of as many candidates unless told."""
    return largest_loss(
        int(constants.table.sum()),
        candidates or len(constants.counts),
        lambda counts: probabilities(constants, counts, constants.epsilon),
        adjacency,
    )


def with_empty(constants: Constants, candidates: int) -> IntArray:
    """The counts with candidates that nobody has added, `candidates` in all."""
    return np.pad(constants.table, (0, candidates - len(constants.counts)))
