"""The exact privacy loss of a private choice whose scores come from counts of people."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from policies.arrays import FloatArray, IntArray

REPLACE_ONE, ADD_OR_REMOVE = "replace-one", "add-or-remove-one"

# From counts (k,) to the probabilities of the candidates (k,).
Choice = Callable[[IntArray], FloatArray]


def neighbours(counts: IntArray, adjacency: str) -> Iterator[IntArray]:
    """The tables that one person makes of this one: by another value, or by coming or going."""
    one = np.eye(len(counts), dtype=np.intp)
    for i in range(len(counts)):
        if adjacency == ADD_OR_REMOVE:
            yield counts + one[i]
        if counts[i] == 0:
            continue
        if adjacency == ADD_OR_REMOVE:
            yield counts - one[i]
        else:
            yield from (counts - one[i] + one[j] for j in range(len(counts)) if j != i)


def loss_at(counts: IntArray, choice: Choice, adjacency: str) -> float:
    """max over the neighbours of one table, and over candidates, of |log p - log p'|."""
    here = np.log(choice(counts))
    return max(float(np.abs(np.log(choice(other)) - here).max()) for other in neighbours(counts, adjacency))


def largest_loss(people: int, candidates: int, choice: Choice, adjacency: str) -> float:
    """The exact privacy loss over all tables of this many people, for a choice that grows with exp(count / s).

    It is attained where everybody has one value: the person who leaves it for another one then changes that other
    candidate's weight while the sum of all weights moves as much as it can, the other way. Of the other candidates,
    all empty and so alike, one stands for all.
    """
    everybody, one = (people * np.eye(1, candidates, 0, dtype=np.intp)[0], np.eye(2, candidates, dtype=np.intp))
    if adjacency == REPLACE_ONE:
        others = [everybody - one[0] + one[1]]
    else:
        others = [everybody - one[0], everybody + one[0], everybody + one[1]]
    here = np.log(choice(everybody))
    return max(float(np.abs(np.log(choice(other)) - here).max()) for other in others)
