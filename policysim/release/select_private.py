"""What `policysim select` computes: a private choice for each group of people, what it costs, and how good it is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from envs.toml_reader import unknown
from policies.arrays import FloatArray, IntArray
from policies.exponential import Exponential
from policies.noisy_max import PermuteAndFlip
from policies.selection import EXPONENTIAL_MONOTONE, MECHANISMS, Selection, select
from policysim.files.bad_rows import DataError
from policysim.release.counts_file import Counts
from policysim.release.ledger import ADD_OR_REMOVE, ADJACENCIES, REPLACE

# Rounding that a privacy loss may show above what is claimed.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Terms:
    """How to choose.

    Parameters
    ----------
    epsilon : float
        The privacy parameter, >= 0 and finite.
    mechanism : str
        One of `policies.selection.MECHANISMS`.
    adjacency : str
        "replace-one": one person's value changes, and the number of people (of each group) is public.
        "add-or-remove-one": one person is there or not.
    sensitivity : float or None
        What is declared, in the unit of the score; None for the true one.
    proportions : bool
        The score is the share of people and not their number.
    split_by_share : bool
        Each group gets epsilon times its share of all people, and not the whole epsilon.

    Raises
    ------
    ValueError
        For an unknown name, or terms that exclude each other.
    """

    epsilon: float
    mechanism: str = PermuteAndFlip.name
    adjacency: str = REPLACE
    sensitivity: float | None = None
    proportions: bool = False
    split_by_share: bool = False

    def __post_init__(self) -> None:
        """Check names and what goes together."""
        if self.mechanism not in MECHANISMS:
            raise ValueError(unknown("mechanism", self.mechanism, MECHANISMS))
        if self.adjacency not in ADJACENCIES:
            raise ValueError(unknown("adjacency", self.adjacency, ADJACENCIES))
        if self.mechanism == EXPONENTIAL_MONOTONE and not self.rising:
            raise ValueError(
                f"{self.mechanism} needs scores that only rise when a person is added: "
                f"counts under {ADD_OR_REMOVE}; use {Exponential.name}"
            )
        if self.split_by_share and self.adjacency != REPLACE:
            raise ValueError(f"the shares of groups must be public, which they are under {REPLACE} only")

    @property
    def rising(self) -> bool:
        """Whether scores are monotone: a person who is added raises one count, and lowers all other proportions."""
        return self.adjacency == ADD_OR_REMOVE and not self.proportions

    @property
    def monotone(self) -> bool:
        """Whether the mechanism makes use of that; the exponential mechanism as published does not."""
        return self.rising and self.mechanism != Exponential.name


@dataclass(frozen=True)
class ScoreSensitivity:
    """By how much one person moves a score (`value`), and a difference of two scores (`range`), at most."""

    value: float
    range: float


def true_sensitivity(adjacency: str, proportions: bool, n_people: int, n_candidates: int) -> ScoreSensitivity:
    """The sensitivity of counts or proportions, over all data sets.

    Notes
    -----
    With c_j people for candidate j, and n in all:

    - A count under replace-one: one falls by 1 and another rises by 1, so value 1, range 2. Under add-or-remove-one
      a single one rises or falls, so value 1, range 1.
    - A proportion under replace-one: n does not change, so the above over n.
    - A proportion under add-or-remove-one: a new person for b takes b from c_b / n to (c_b + 1) / (n + 1), a rise of
      (n - c_b) / (n (n + 1)), and each other j falls by c_j / (n (n + 1)). Both are at most 1 / (n + 1), and their sum
      at most 2 / (n + 1), where c_b = 0 and c_j = n. As n >= 1 is unknown: value 1/2, range 1, at n = 1.

    A single candidate reveals nothing: range 0.

    Examples
    --------
    >>> true_sensitivity("replace-one", True, 100, 2)
    ScoreSensitivity(value=0.01, range=0.02)
    >>> true_sensitivity("add-or-remove-one", True, 100, 2)
    ScoreSensitivity(value=0.5, range=1.0)
    """
    value, spread = (1.0, 2.0) if adjacency == REPLACE else (1.0, 1.0)
    if proportions:
        value, spread = (1 / n_people, 2 / n_people) if adjacency == REPLACE else (0.5, 1.0)
    return ScoreSensitivity(value, spread if n_candidates > 1 else 0.0)


@dataclass(frozen=True, eq=False)
class GroupChoice:
    """The choice for one group.

    Attributes
    ----------
    group : str
        Its name; "" where there is but one.
    counts : array, (k,)
        People per candidate. Private, as everything computed from it.
    proportions : bool
        Whether scores are shown as shares.
    sensitivity : float
        The one in use, in the unit of the score.
    true : ScoreSensitivity
        The true one.
    selection : Selection
        The mechanism. It runs on counts, which are whole, in either case: a share is a count in another unit.
    """

    group: str
    counts: IntArray
    proportions: bool
    sensitivity: float
    true: ScoreSensitivity
    selection: Selection

    @property
    def epsilon(self) -> float:
        """What is claimed for this group."""
        return self.selection.epsilon

    @property
    def loss(self) -> float:
        """range / s with the true range: no two neighbouring data sets differ by more.

        For counts this is the exact loss over data sets of all sizes: large ones come as close as one likes.
        """
        calibrated = (1 if self.selection.monotone else 2) * self.sensitivity
        return self.true.range * self.epsilon / calibrated

    @property
    def holds(self) -> bool:
        """Whether the loss is within epsilon."""
        return self.loss <= self.epsilon * (1 + TOLERANCE)

    @property
    def scores(self) -> FloatArray:
        """Counts or shares, (k,)."""
        counts = self.counts.astype(np.float64)
        return counts / counts.sum() if self.proportions else counts

    @cached_property
    def ranks(self) -> IntArray:
        """The rank of each candidate by its true score, (k,): 1 is the best, equal ones share the better rank."""
        ordered = np.sort(-self.counts)
        ranks: IntArray = 1 + np.searchsorted(ordered, -self.counts)
        return ranks


def choices_by_group(counts: Counts, terms: Terms) -> list[GroupChoice]:
    """The choice for each group; DataError for shares of nobody, or for nobody where their number is public."""
    total = sum(map(sum, counts.people.values()))
    found = []
    for group, people in counts.people.items():
        n = sum(people)
        # Under add-or-remove-one, that nobody is there is not to be told either.
        if n == 0 and (terms.proportions or (total == 0 and terms.adjacency == REPLACE)):
            raise DataError(f"{counts.source}: {group + ' has no people' if group else 'counts no people'}")
        true = true_sensitivity(terms.adjacency, terms.proportions, n, len(people))
        declared = true.value if terms.sensitivity is None else terms.sensitivity
        # 1/n times n is 1, also where floating point disagrees.
        unit = 1.0 if terms.sensitivity is None and terms.adjacency == REPLACE else declared * n
        selection = select(
            people,
            epsilon=terms.epsilon * (n / total) if terms.split_by_share else terms.epsilon,
            sensitivity=unit if terms.proportions else declared,
            mechanism=terms.mechanism,
            monotone=terms.monotone,
            candidates=counts.candidates,
        )
        found.append(GroupChoice(group, np.array(people, dtype=np.intp), terms.proportions, declared, true, selection))
    return found
