"""Patients in clusters, whose outcomes resemble each other: the villages of a trial, wards, several rows of one person.

Whole clusters are dealt among folds and counted by intervals. Where whole clusters got the same treatment, the clusters
were allocated and not the patients: then so few of them say so little that an interval means nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from policies.arrays import IntArray
from policies.levels import MISSING
from policysim.files.bad_rows import BadRows, DataError
from policysim.files.data_table import DataTable, coded
from policysim.logs.column_names import WORDS, says, words_of
from policysim.logs.toml_text import toml_string

# With fewer clusters of a treatment, intervals by clusters are too wide to say anything, or too narrow.
FEWEST_CLUSTERS = 8
# The chance below which it is no chance that each value of a column is wholly in one arm.
NO_CHANCE = 1e-6
# A column still decides the treatment if this share of its patients, or one of them, got another than the others with
# the same value.
MISPLACED = 0.01
# Distinct values of a column, by which it may be ids of patients.
FEWEST_IDS = 20
# The first rows, in which columns that decide are looked for: nearly all show in few rows that they do not.
FIRST_ROWS = 2_000, 200_000


def patients_of_clusters(clusters: IntArray, actions: IntArray, n_actions: int) -> IntArray:
    """How many patients of each cluster got each action, (n_clusters, n_actions).

    Parameters
    ----------
    clusters : array, (n_rows,)
        The number of each row's cluster, 0 or more; numbers that do not occur have no patients.
    actions : array, (n_rows,)
    n_actions : int
    """
    n_clusters = int(clusters.max(initial=-1)) + 1
    table = np.bincount(clusters * n_actions + actions, minlength=n_clusters * n_actions)
    return table.reshape(n_clusters, n_actions)


def folds_of_clusters(clusters: IntArray, actions: IntArray, n_folds: int, rng: np.random.Generator) -> IntArray:
    """The fold of each row, (n_rows,): whole clusters are dealt among the folds at random.

    Clusters with the same commonest action are dealt one after the other, so that each fold has its part of each
    action, also where all patients of a cluster got the same one.
    """
    names, places = np.unique(clusters, return_inverse=True)
    commonest = patients_of_clusters(places, actions, int(actions.max(initial=0)) + 1).argmax(axis=1)
    order = np.lexsort((rng.random(len(names)), commonest))
    fold_of_cluster = np.empty(len(names), dtype=np.intp)
    fold_of_cluster[order] = np.arange(len(names)) % n_folds
    return fold_of_cluster[places]


def whole_clusters(clusters: IntArray, actions: IntArray, n_actions: int) -> IntArray | None:
    """How many clusters each action has, (n_actions,), where whole clusters were allocated, else None.

    They were if most of those with two or more patients are wholly in one arm; the others count for their commonest.
    """
    table = patients_of_clusters(clusters, actions, n_actions)
    table = table[table.sum(axis=1) > 0]
    several = table[table.sum(axis=1) > 1]
    if not len(several) or 2 * np.count_nonzero((several > 0).sum(axis=1) == 1) <= len(several):
        return None
    return np.bincount(table.argmax(axis=1), minlength=n_actions)


def read_clusters(table: DataTable, column: str, bad: BadRows) -> IntArray:
    """The number of each row's cluster, (n_rows,); rows without one are bad. 7, 7.0 and "7" are the same cluster."""
    codes, keys = coded(table[column])
    missing = np.array([key == MISSING for key in keys], dtype=np.bool_)
    bad.add(table, missing[codes], column, lambda _: "is missing: each row needs its cluster")
    return codes


def require_clusters(place: str, column: str, clusters: IntArray, actions: IntArray, names: Sequence[str]) -> None:
    """DataError, one line, for a treatment with fewer than `FEWEST_CLUSTERS`; `place` is the log's name."""
    whole = whole_clusters(clusters, actions, len(names))
    having = (patients_of_clusters(clusters, actions, len(names)) > 0).sum(axis=0) if whole is None else whole
    few = [f"{name} has {count}" for name, count in zip(names, having, strict=True) if count < FEWEST_CLUSTERS]
    if not few:
        return
    if whole is None:
        why = f"; if patients were randomised within each {column}, leave the key out and make {column} a feature"
    else:
        why = f", as each {column} is wholly in one arm, so that clusters count and not patients"
    how = f"each treatment needs at least {FEWEST_CLUSTERS} clusters, {', '.join(few)}"
    raise DataError(f"{place}: cluster = {toml_string(column)}: {how}{why}")


class DecidingColumn(NamedTuple):
    """A column that decides the treatment: how many values repeat, and patients in another arm than most of theirs."""

    name: str
    values: int
    misplaced: int


def deciding_columns(
    table: DataTable, columns: Iterable[str], actions: IntArray, n_actions: int
) -> Iterator[DecidingColumn]:
    """The columns that decide the treatment.

    All patients with the same value are then in one arm, but for `MISPLACED` of all, which chance would do with a
    probability below `NO_CHANCE`. Columns with a single such value in some arm are none: they name the treatment, or
    something of it, such as a dose.

    Parameters
    ----------
    table : DataTable
    columns : iterable of str
        Those that are looked at.
    actions : array, (n_rows,)
        -1 in rows without a treatment.
    n_actions : int
    """
    sizes = np.bincount(actions[actions >= 0], minlength=n_actions)
    shares = sizes / max(1, int(sizes.sum()))
    for name in columns:
        counts: IntArray | None = None
        for most in FIRST_ROWS:
            counts = _repeated_values(table.part(0, most), name, actions[:most], n_actions)
            if counts is None or _misplaced(counts) > max(1.0, MISPLACED * counts.sum()):
                counts = None
                break
        if counts is None or np.count_nonzero(shares) < 2:
            continue
        patients, others = counts.sum(axis=1, keepdims=True), _misplaced(counts)
        of_arms = np.bincount(counts.argmax(axis=1), minlength=n_actions)[shares > 0] if len(counts) else np.zeros(1)
        # Logarithms are summed: of many rows the probability is 0. Each misplaced patient may be any one, in any arm.
        by_chance = np.log((shares**patients).sum(axis=1).clip(1e-300)).sum()
        by_chance += others * math.log(patients.sum() * n_actions / shares[shares > 0].min()) if others else 0.0
        if of_arms.min() > 1 and by_chance < math.log(NO_CHANCE):
            yield DecidingColumn(name, len(counts), others)


def repeated_ids(table: DataTable, columns: Iterable[str]) -> Iterator[str]:
    """Columns that are called as ids of patients are, and of which values repeat: not a few, such as those of codes."""
    for name in columns:
        if words_of(name) <= WORDS["id"] and says(name, "patient"):
            counts = table[name].value_counts()
            if FEWEST_IDS <= len(counts) < counts.sum():
                yield name


def _misplaced(counts: IntArray) -> int:
    """How many patients are in another arm than most with the same value."""
    return int((counts.sum(axis=1) - counts.max(axis=1, initial=0)).sum())


def _repeated_values(table: DataTable, name: str, actions: IntArray, n_actions: int) -> IntArray | None:
    """The patients of each arm with each value that repeats, (n_values, n_actions); None if it cannot be read."""
    try:
        codes, keys = coded(table[name])
    except DataError:  # of lists, for instance
        return None
    known = np.array([key != MISSING for key in keys], dtype=np.bool_)[codes] & (actions >= 0)
    counts = patients_of_clusters(codes[known], actions[known], n_actions)
    repeated: IntArray = counts[counts.sum(axis=1) > 1]
    return repeated
