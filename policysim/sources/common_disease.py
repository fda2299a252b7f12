"""The most common value, privately."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from envs.toml_reader import Table
from policies.arrays import FloatArray, IntArray
from policies.selection import select
from policysim.sources.largest_industry import Larger, read_larger
from policysim.sources.losses import largest_loss
from policysim.sources.reading import Claim, Quote, read_claims, read_counts, read_quotes

SENSITIVITY, REPEATED, ZERO = "sensitivity of a count", "repeated use", "ε = 0"


@dataclass(frozen=True)
class Constants:
    """What the study file holds.

    Attributes
    ----------
    counts : mapping
        People by candidate; the score is the count.
    sensitivity : float
        As the source declares it.
    probabilities, weights : tuple of Quote
        Its figures.
    larger : Larger
        What it tells of a larger table.
    claims : tuple of Claim
        What it says.
    """

    counts: Mapping[str, int]
    sensitivity: float
    probabilities: tuple[Quote, ...]
    weights: tuple[Quote, ...]
    larger: Larger
    claims: tuple[Claim, ...]

    @property
    def table(self) -> IntArray:
        """(k,) counts."""
        return np.array(list(self.counts.values()))

    @property
    def commonest(self) -> str:
        """The right answer."""
        return max(self.counts, key=lambda name: self.counts[name])


def read(table: Table) -> Constants:
    """The constants, mistakes noted in the table."""
    counts = read_counts(table, "counts")
    known = {"": list(counts)}
    return Constants(
        counts=counts,
        sensitivity=table.number("sensitivity", low=1e-9),
        probabilities=read_quotes(table, "probabilities", known),
        weights=read_quotes(table, "weights", known),
        larger=read_larger(table.table("larger")),
        claims=read_claims(table, (SENSITIVITY, REPEATED, ZERO)),
    )


def probabilities(
    counts: IntArray, epsilon: float, sensitivity: float, *, mechanism: str = "exponential", monotone: bool = False
) -> FloatArray:
    """Of each candidate, (k,), from counts (k,)."""
    return select(
        counts, epsilon=epsilon, sensitivity=sensitivity, mechanism=mechanism, monotone=monotone
    ).probabilities


def weights(counts: IntArray, epsilon: float, sensitivity: float) -> FloatArray:
    """exp(epsilon count / (2 sensitivity)), which the source prints before it divides by their sum."""
    result: FloatArray = np.exp(epsilon * counts / (2 * sensitivity))
    return result


def exact_loss(constants: Constants, epsilon: float, adjacency: str) -> float:
    """Over all tables of as many people and candidates."""
    return largest_loss(
        int(constants.table.sum()),
        len(constants.counts),
        lambda counts: probabilities(counts, epsilon, constants.sensitivity),
        adjacency,
    )
