"""Exact draws: every treatment or value that is released is drawn here.

Each row of a policy becomes whole numbers that sum to 2^62, and a draw compares one random whole number with their
running sums: an action has exactly its weight of 2^62 chances. Rounding by itself would break epsilon. So each class of
records that are hidden among each other has a public box: a floor and a ceiling for each action, no ceiling above
e^epsilon times its floor. A row is clipped into the box and repaired in it until its sum is 2^62. It is then private
beside every other row in that box. Where neighbours make no classes (one-feature), all of them are compared. To move by
more than 1e-12 in total variation is more than rounding, and is refused. The lemmas are proved in docs/proofs.md.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from policies.adjacency import public_classes
from policies.arrays import FloatArray, Frozen, IntArray, Words, blocks
from policies.fitted import FittedPolicy
from policies.local.channel import codes
from policies.policy import ClaimError
from policies.problem import DecisionProblem
from policies.records import checked_numbers
from policysim.release.ledger import amount

BITS, HALF = np.uint64(62), np.uint64(31)
TOTAL = 1 << 62
# What may move, in total variation; and how much overlapping neighbours are mixed.
MOST_MOVED, MIXED = 1e-12, 2.0**-40

Epsilon: TypeAlias = Decimal | str | float
# Draws so many whole numbers, uniform on 0..2^62 - 1.
WordSource: TypeAlias = Callable[[int], Words]
Whole: TypeAlias = NDArray[np.int64]  # weights over 2^62, or bounds of them


def system_words(size: int) -> Words:
    """Random words of 62 bits from the operating system, (size,): for a release."""
    return np.frombuffer(secrets.token_bytes(8 * size), dtype=np.uint64) >> np.uint64(2)


def declared_epsilon(epsilon: Epsilon) -> Decimal:
    """What is declared: of a float its shortest decimal, or itself if that is less; ValueError unless it is >= 0."""
    return min(amount(epsilon), Decimal(epsilon)) if isinstance(epsilon, float) else amount(epsilon)


@dataclass(frozen=True)
class Ratio:
    """e^-epsilon from above, as `factor` / 2^(62 + `shift`), where `factor` is a whole number up to 2^62."""

    factor: int
    shift: int

    @classmethod
    def of(cls, epsilon: Decimal) -> Ratio:
        """Of a declared epsilon; 0 / 2^62 of infinity."""
        if epsilon.is_infinite():
            return cls(0, 0)
        with localcontext() as context:
            context.prec = 60
            # Decimal.exp rounds to the nearest, whatever the context says: one step up is an upper bound. And beyond
            # e^43 > 2^62 no epsilon asks for more than a weight of 1.
            above = min(Decimal(1), min(epsilon, Decimal(43)).copy_negate().exp().next_plus())
        top, bottom = above.as_integer_ratio()
        shift = (bottom // top).bit_length() - 1  # 2^shift <= 1 / above < 2^(shift + 1)
        return cls(-((-top << 62 + shift) // bottom), shift)

    def floors(self, ceilings: Whole) -> Whole:
        """The least floor of each ceiling in 0..2^62: ceil(ceiling factor / 2^(62 + shift)), exactly."""
        low_bits, factor, wide = np.uint64((1 << 31) - 1), np.uint64(self.factor), ceilings.astype(np.uint64)
        (f1, f0), (c1, c0) = ((number >> HALF, number & low_bits) for number in (factor, wide))
        # The product is high 2^62 + middle 2^31 + low, and nothing here exceeds 2^63.
        high, middle, low = c1 * f1, c1 * f0 + c0 * f1, c0 * f0
        low += (middle & low_bits) << HALF
        high += (middle >> HALF) + (low >> BITS)
        cut_off = (high & np.uint64((1 << self.shift) - 1)) | (low & np.uint64(TOTAL - 1))
        return ((high >> np.uint64(self.shift)) + (cut_off > 0)).astype(np.int64)


def whole_box(least: FloatArray, most: FloatArray, ratio: Ratio) -> tuple[Whole, Whole]:
    """Floors and ceilings, (k, N) each, from the least and largest p(a|x) in each of N classes, (k, N) each.

    Rows between them that sum to 2^62 are epsilon-private, and there is one: sum floors <= 2^62 <= sum ceilings.
    ClaimError where floors lie above the least probabilities by over 5e-13 in all: what is public decides.
    """
    ceilings: Whole = np.ceil(most * float(TOTAL)).astype(np.int64)
    largest, classes = most.argmax(axis=0), np.arange(most.shape[1])
    missing = np.where(most.sum(axis=0) < 1.5, TOTAL - ceilings.sum(axis=0), 0)  # larger sums might overflow
    ceilings[largest, classes] += np.maximum(missing, 0)
    floors = ratio.floors(ceilings)
    # Twice: no row of a class that passes is refused later, which would tell of a record.
    _require_small(2 * np.maximum(floors - least * float(TOTAL), 0).sum(axis=0))
    # Where floors then sum to 2^62 by one that is lowered, they are the weights of all: the only ones above them.
    floors[largest, classes] -= np.maximum(floors.sum(axis=0) - TOTAL, 0)
    return floors, ceilings


def rows_in_box(probabilities: FloatArray, floors: Whole, ceilings: Whole) -> Whole:
    """Weights in the box that sum to 2^62, near p(a|x), all (k, m); ClaimError for a row that moves by over 1e-12."""
    rounded = np.rint(np.fmin(np.fmax(probabilities, 0.0), 1.0) * float(TOTAL)).astype(np.int64)
    weights: Whole = np.clip(rounded, floors, ceilings)
    # One action after the other takes as much of what is missing, or too much, as its bounds allow (lemma 3).
    missing = TOTAL - weights.sum(axis=0)
    for action, (floor, ceiling) in enumerate(zip(floors, ceilings, strict=True)):
        step = np.clip(missing, floor - weights[action], ceiling - weights[action])
        weights[action] += step
        missing -= step
    _require_near(weights, probabilities)
    return weights


def chosen(weights: Whole, words: Words) -> IntArray:
    """The action of each row, (m,): the first whose running sum exceeds the word, of weights (k, m) and words (m,)."""
    actions, reached, word = np.zeros(len(words), np.intp), np.zeros(len(words), np.int64), words.view(np.int64)
    for weight in weights[:-1]:
        reached += weight
        actions += word >= reached
    return actions


@dataclass(frozen=True, eq=False)
class ExactPolicy(Frozen):
    """A table p(a|x), (n_records, k), to draw from for a release: its privacy loss is at most epsilon, exactly.

    Only rows that are asked for are made; under one-feature adjacency all at the first call. The methods raise
    ClaimError if a row would move by more than 1e-12 in total variation, and ValueError for what is no record number.
    """

    problem: DecisionProblem
    probabilities: FloatArray
    epsilon: Decimal

    def weights(self, records: ArrayLike) -> Words:
        """The weights of record numbers, (m, k) of uint64; rows sum to 2^62."""
        return self._rows(checked_numbers(records, self.problem.n_records)).T.astype(np.uint64)

    def draw(self, records: ArrayLike, words: WordSource = system_words) -> IntArray:
        """An action for each record number, (m,); words are the operating system's, but in tests."""
        numbers = checked_numbers(records, self.problem.n_records)
        actions = np.empty(len(numbers), np.intp)
        for rows in blocks(len(numbers)):
            actions[rows] = chosen(self._rows(numbers[rows]), words(len(numbers[rows])))
        return actions

    def _rows(self, records: IntArray) -> Whole:
        if self._checked is not None:
            return self._checked[:, records]
        probabilities = np.stack([column[records] for column in self.probabilities.T])
        if self.epsilon.is_infinite():
            possible = (probabilities > 0).astype(np.int64)
            return rows_in_box(probabilities, possible, possible * TOTAL)
        classes, class_of_row = np.unique(self._classes[records], return_inverse=True)
        least, most = self._extremes[:, :, classes]
        floors, ceilings = whole_box(least, most, Ratio.of(self.epsilon))
        return rows_in_box(probabilities, floors[:, class_of_row], ceilings[:, class_of_row])

    @cached_property
    def _classes(self) -> IntArray:
        return public_classes(self.problem.adjacency, self.problem.n_records)

    @cached_property
    def _extremes(self) -> FloatArray:
        """The least and the largest probability of each action in each class, (2, k, N)."""
        size = self.problem.n_actions, int(self._classes.max()) + 1
        least, most = np.ones(size), np.zeros(size)
        for low, high, column in zip(least, most, self.probabilities.T, strict=True):
            np.fmin.at(low, self._classes, column)
            np.fmax.at(high, self._classes, column)
        return np.stack([least, np.fmin(most, 1.0)])

    @cached_property
    def _checked(self) -> Whole | None:
        """All weights, (k, n_records), where cliques of neighbours overlap and no box holds them all (lemma 6)."""
        partitions = self.problem.adjacency.partitions(self.problem.n_records)
        if len(partitions) == 1 or self.epsilon.is_infinite():
            return None
        ratio, (least, most) = Ratio.of(self.epsilon), self._extremes
        with suppress(ClaimError):
            whole_box(least, most, ratio)
            return None
        public = ((most > 0) / (most > 0).sum(axis=0))[:, self._classes]
        weights: Whole = np.rint(((1 - MIXED) * self.probabilities.T + MIXED * public) * float(TOTAL)).astype(np.int64)
        weights[weights.argmax(axis=0), np.arange(weights.shape[1])] += TOTAL - weights.sum(axis=0)
        _require_near(weights, self.probabilities.T)
        for low, high in (partition.extremes(weight) for partition in partitions for weight in weights):
            if (low < ratio.floors(high)).any():
                gap = f"further apart than ε = {self.epsilon} allows, or too near to it for whole numbers over 2^62"
                raise ClaimError(f"two records that differ in one feature are {gap}: nothing is drawn")
        return weights


def exact_policy(fitted: FittedPolicy, epsilon: Epsilon) -> ExactPolicy:
    """The exact draws of a fitted policy at the epsilon that is charged; ValueError unless it is >= 0."""
    return ExactPolicy(fitted.problem, fitted.probabilities, declared_epsilon(epsilon))


def response_weights(n_values: int, epsilon: Decimal) -> tuple[int, int]:
    """The weights of the truth and of each other value; ValueError for an epsilon that is too small or infinite."""
    ratio = Ratio.of(epsilon)
    # The least with truth factor <= other 2^(62 + shift) and truth + (k - 1) other = 2^62 (lemma 7).
    other = -(-TOTAL * ratio.factor // ((TOTAL << ratio.shift) + (n_values - 1) * ratio.factor))
    truth = TOTAL - (n_values - 1) * other
    if not 0 < other < truth:
        raise ValueError(f"epsilon={epsilon} is infinite, or too small for exact draws with words of 62 bits.")
    return truth, other


def response_draw(values: ArrayLike, n_values: int, epsilon: Epsilon, words: WordSource = system_words) -> IntArray:
    """Reports of values 0..n_values - 1, (m,), by `policies.local.KAry`; ValueError names the rows of other values."""
    truths, (_, other) = codes(values, n_values), response_weights(n_values, declared_epsilon(epsilon))
    # Equal intervals of words, one for each other value; the rest is the truth.
    interval = (words(len(truths)) // np.uint64(other)).astype(np.intp)
    return np.where(interval < n_values - 1, interval + (interval >= truths), truths)


def _require_near(weights: Whole, probabilities: FloatArray) -> None:
    moved = np.abs(weights - probabilities * float(TOTAL)).sum(axis=0) / 2
    # Where p(a|x) sums to less than 1.5 and hardly moves, the sum of the weights does not overflow.
    _require_small(np.where((probabilities.sum(axis=0) < 1.5) & (weights.sum(axis=0) == TOTAL), moved, np.inf))


def _require_small(moved: FloatArray) -> None:
    if not (moved <= MOST_MOVED * TOTAL).all():
        raise ClaimError(
            "the policy reveals more than it claims, or its rows are no probabilities: to keep to ε they would have to "
            "move by more than rounding; nothing is drawn"
        )
