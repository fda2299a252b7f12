"""The exponential mechanism on a small and a large group: what causes the disparity that the source finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import brentq, minimize_scalar

from envs.toml_reader import Table
from policies.arrays import FloatArray, IntArray
from policysim.figures.described import grid
from policysim.sources.chances import REPLACE_ONE, SingleRun, choice, draws_of, largest_loss
from policysim.sources.document import Document, curves
from policysim.sources.printed import PrintedCounts, Quote, read_counts, read_quotes

ALL = "all"
NOTABLE = 0.01
# Sensitivity of a proportion if a person may come or go and n >= 1 is not public: from 1 of 1 to 1 of 2.
UNKNOWN_SIZE = 0.5


class Outcome(NamedTuple):
    """What a calibration gives for the smaller and the larger group, in this order."""

    rare: tuple[float, ...]  # probability that the rare candidate is reported
    claimed: tuple[float, ...]  # epsilon given
    loss: tuple[float, ...]  # the exact one if one person's value is replaced
    disparity: float  # how much more often the rare candidate is reported for the smaller group


class SockGroups(Document):
    """The small group and the large one; of two candidates, the rare one first."""

    name = "sock-groups"

    def __init__(self, table: Table) -> None:
        """Read the constants."""
        super().__init__(table)
        inner = table.table("groups")
        groups = {name: read_counts(inner, name) for name in inner.values}
        candidates = list(next(iter(groups.values())).people) if groups else []
        if len(groups) != 2:
            table.fail(f"must be two groups, got {len(groups)}", *(["groups"] if "groups" in table else []))
        for name, counts in groups.items():
            if len(counts.people) != 2 or set(counts.people) != set(candidates):
                inner.fail(f"must count the same two candidates as the first group ({', '.join(candidates)})", name)
            elif not all(counts.people.values()):
                inner.fail("must count somebody for each candidate", name)
        split = table.table("split")
        self.epsilon, self.text_epsilon = split.number("epsilon", low=0), split.number("text_epsilon", low=0)
        split.close()
        known = dict.fromkeys((ALL, *groups), tuple(candidates))
        candidates.sort(key=lambda candidate: sum(counts.people.get(candidate, 0) for counts in groups.values()))
        self.groups = {
            name: PrintedCounts({one: groups[name].people.get(one, 0) for one in candidates})
            for name in sorted(groups, key=lambda name: groups[name].n)
        }
        self.sensitivity = table.number("sensitivity", low=1e-9)
        self.quotes = {
            "scores": read_quotes(table, "scores", known, epsilon=False),
            "probabilities": read_quotes(table, "probabilities", known),
            "draws": read_quotes(table, "draws", known, runs=True),
            "shares": read_quotes(table, "shares", {"": list(groups)}, epsilon=False),
        }

    def counts(self, data: str) -> PrintedCounts:
        """Of one group or of all."""
        if data != ALL:
            return self.groups[data]
        small, large = self.groups.values()
        return PrintedCounts({name: people + large.people[name] for name, people in small.people.items()})

    @property
    def tables(self) -> list[IntArray]:
        """(2,) counts of the smaller group and of the larger one."""
        return [group.table for group in self.groups.values()]

    @property
    def shares(self) -> dict[str, float]:
        """Of epsilon, by the size of each group."""
        return {name: self.epsilon * group.n / self.counts(ALL).n for name, group in self.groups.items()}

    @cached_property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The source's calibration; the whole epsilon for each; the true sensitivity; and both."""
        split, whole = list(self.shares.values()), [self.epsilon] * 2
        declared, true = [self.sensitivity] * 2, [1 / group.n for group in self.groups.values()]
        result = []
        for given, deltas in ((split, declared), (whole, declared), (split, true), (whole, true)):
            parts = list(zip(self.tables, given, deltas, strict=True))
            rare, loss = tuple(rarely(*part) for part in parts), tuple(exact_loss(*part) for part in parts)
            result.append(Outcome(rare, tuple(given), loss, rare[0] - rare[1]))
        return tuple(result)

    @cached_property
    def left(self) -> tuple[float, float, float]:
        """With both corrected: the largest disparity over epsilon, where it is, and from where on it is below 0.01."""
        disparity = self._disparity(rarely)
        # On the log scale the disparity rises to one peak and falls.
        found = minimize_scalar(lambda place: -disparity(10.0**place), bounds=(-4, 1), method="bounded")
        peak = float(10.0**found.x)
        if disparity(peak) <= NOTABLE:
            return disparity(peak), peak, 0.0
        return disparity(peak), peak, float(brentq(lambda epsilon: disparity(epsilon) - NOTABLE, peak, 1e4))

    def ours(self, kind: str, quote: Quote, seed: int) -> Mapping[str, float] | Mapping[str, SingleRun]:
        """Nothing is drawn at random."""
        if kind == "shares":
            return self.shares
        counts = self.counts(quote.data)
        if kind == "scores":
            return counts.named(proportions(counts.table))
        chosen = counts.named(probabilities(counts.table, quote.epsilon, self.sensitivity))
        return chosen if kind == "probabilities" else draws_of(quote, chosen)

    def holds(self) -> dict[str, bool | None]:
        """Of each claim."""
        source, whole, *_ = self.outcomes
        small, large = (float(proportions(table)[0]) for table in self.tables)
        return {
            "ε of the figures per group": self.epsilon == self.text_epsilon,
            "sensitivity of a proportion": self.sensitivity * max(group.n for group in self.groups.values()) <= 1,
            "who is reported Violent too often": source.rare[0] > max(small, source.rare[1]) and small < large,
            "why": whole.disparity > 0,
        }

    def facts(self, seed: int) -> dict[str, object]:
        """The groups, the calibrations, and what disparity is left."""
        (small, large), (source, whole, own, both) = self.groups, self.outcomes
        n, share = [group.n for group in self.groups.values()], self.text_epsilon / self.counts(ALL).n
        names = dict(zip(("largest", "peak", "until"), self.left, strict=True))
        return {
            "small": small,
            "large": large,
            "rare": next(iter(self.counts(ALL).people)),
            "n": n,
            **names,
            "source": source,
            "whole": whole,
            "own": own,
            "both": both,
            "most": max(source.loss),
            "rates": [float(proportions(table)[0]) for table in self.tables],
            "text": [rarely(table, float(share * table.sum()), self.sensitivity) for table in self.tables],
            "right_epsilon": source.claimed[0] / n[0] / self.sensitivity,
        }

    def drawn(self, seed: int) -> dict[str, pd.DataFrame]:
        """The disparity over epsilon, and over the size of the smaller group, one of whom has the rare value."""
        declared, people = partial(rarely, sensitivity=self.sensitivity), self.counts(ALL).n
        rare, other = next(iter(self.counts(ALL).people)), self.tables[1].sum()
        printed = {q.data: float(q.printed[rare]) for q in self.quotes["probabilities"] if rare in q.printed}
        there = [printed.get(name, np.nan) for name in self.groups]
        over_epsilon = {
            f"the source: Δ = {self.sensitivity:g}, ε split by size": self._disparity(
                lambda counts, epsilon: declared(counts, epsilon * float(counts.sum() / people))
            ),
            f"Δ = {self.sensitivity:g}, whole ε for each group": self._disparity(declared),
            "Δ = ½ (people may come and go), whole ε": self._disparity(partial(rarely, sensitivity=UNKNOWN_SIZE)),
            "Δ = 1/n (a value may change), whole ε": self._disparity(rarely),
        }

        def beside_large(reported: Callable[[IntArray], float]) -> Callable[[int], float]:
            return lambda n: reported(np.array([1, n - 1])) - reported(self.tables[1])

        def split(n: int) -> float:
            share = self.epsilon / (n + other)
            return beside_large(lambda counts: declared(counts, share * float(counts.sum())))(n)

        over_size: dict[str, Callable[[int], float]] = {
            f"the source: ε = {self.epsilon:g}, Δ = {self.sensitivity:g}, split": split
        }
        for epsilon in sorted({0.1, 1.0, self.epsilon}):
            over_size[f"ε = {epsilon:g}, Δ = 1/n, whole ε"] = beside_large(partial(rarely, epsilon=epsilon))
        over_size["difference of the rates themselves"] = beside_large(lambda counts: float(proportions(counts)[0]))
        sizes = [int(size) for size in dict.fromkeys(np.geomspace(3, 1000, 40).round())]
        return {
            "disparity-vs-epsilon": curves(over_epsilon, grid(0.01, 30, 61), [(self.epsilon, there[0] - there[1])]),
            "disparity-vs-group-size": curves(over_size, sizes, x="size"),
        }

    def _disparity(self, reported: Callable[[IntArray, float], float]) -> Callable[[float], float]:
        return lambda epsilon: reported(self.tables[0], epsilon) - reported(self.tables[1], epsilon)


def proportions(counts: IntArray) -> FloatArray:
    """The score of each candidate."""
    return np.asarray(counts / counts.sum(), dtype=np.float64)


def probabilities(counts: IntArray, epsilon: float, sensitivity: float) -> FloatArray:
    """Of each candidate, by the exponential mechanism on proportions; how many people there are is public."""
    return choice(epsilon, sensitivity, divisor=float(counts.sum()))(counts)


def rarely(counts: IntArray, epsilon: float, sensitivity: float | None = None) -> float:
    """Probability that the rare candidate is reported; with the sensitivity 1/n of replacing a value by default."""
    return float(probabilities(counts, epsilon, 1 / counts.sum() if sensitivity is None else sensitivity)[0])


def exact_loss(counts: IntArray, epsilon: float, sensitivity: float) -> float:
    """Over all tables of as many people, one of whom has another value."""
    n = int(counts.sum())
    return largest_loss(n, 2, choice(epsilon, sensitivity, divisor=n), REPLACE_ONE)
