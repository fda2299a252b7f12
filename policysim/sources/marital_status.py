"""The most common value, with a score that is a thousandth of a count and a sensitivity declared as 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pandas as pd

from envs.toml_reader import Table
from policies.arrays import FloatArray
from policysim.figures.described import grid
from policysim.sources.chances import (
    ADD_OR_REMOVE,
    REPLACE_ONE,
    Choice,
    SingleRun,
    binomial_run,
    choice,
    draws_of,
    largest_loss,
)
from policysim.sources.document import Document, curves
from policysim.sources.printed import Quote, read_counts, read_quotes

# How many candidates the exact loss is given for.
NUMBERS = (2, 7, 100, 1000)


class MaritalStatus(Document):
    """People by candidate, whose score is count / divisor."""

    name = "marital-status"

    def __init__(self, table: Table) -> None:
        """Read the constants."""
        super().__init__(table)
        self.counts = read_counts(table, "counts")
        self.divisor = table.number("divisor", low=1e-9)
        self.sensitivity = table.number("sensitivity", low=1e-9)
        self.epsilon = table.number("epsilon", low=1e-9)
        self.quotes = {
            "draws": read_quotes(table, "draws", {"": list(self.counts.people)}, runs=True),
            "people": read_quotes(table, "people", {"": ["people"]}, epsilon=False),
        }

    @property
    def overstated(self) -> float:
        """How many times the declared sensitivity is too large: one person is one in a count."""
        return self.sensitivity * self.divisor

    def choice(self, epsilon: float, *, corrected: bool = False, monotone: bool = False) -> Choice:
        """The mechanism, with the declared sensitivity or the true one."""
        sensitivity = 1 / self.divisor if corrected else self.sensitivity
        return choice(epsilon, sensitivity, divisor=self.divisor, monotone=monotone)

    def probabilities(self, epsilon: float, **how: bool) -> FloatArray:
        """Of each candidate, (k,)."""
        return self.choice(epsilon, **how)(self.counts.table)

    def reliability(self, epsilon: float, **how: bool) -> float:
        """Probability of the right candidate."""
        return self.counts.named(self.probabilities(epsilon, **how))[self.counts.commonest]

    def loss(self, adjacency: str, candidates: int | None = None) -> float:
        """Of the source's mechanism, over all tables of as many people, and of as many candidates unless told."""
        k = candidates or len(self.counts.people)
        return largest_loss(self.counts.n, k, self.choice(self.epsilon), adjacency)

    def ours(self, kind: str, quote: Quote, seed: int) -> Mapping[str, float] | Mapping[str, SingleRun]:
        """Nothing is drawn at random."""
        if kind == "people":
            return {"people": float(self.counts.n)}
        return draws_of(quote, self.counts.named(self.probabilities(quote.epsilon)))

    def holds(self) -> dict[str, bool | None]:
        """Of each claim."""
        return {
            "sensitivity of the score": self.overstated <= 1,
            "privacy cost whatever the number of candidates": max(self._losses()) <= self.epsilon,
        }

    def facts(self, seed: int) -> dict[str, object]:
        """What is declared, what is true, and what is spent."""
        return {
            "true": 1 / self.divisor,
            "overstated": self.overstated,
            "enough": self.epsilon / self.overstated,
            "replace": self.loss(REPLACE_ONE),
            "add": self.loss(ADD_OR_REMOVE),
            "losses": self._losses(),
            "numbers": NUMBERS,
            "runs": self.quotes["draws"][0].runs,
            "right": self.reliability(self.epsilon),
            "wrong_if_corrected": 1 - self.reliability(self.epsilon, corrected=True),
        }

    def drawn(self, seed: int) -> dict[str, pd.DataFrame]:
        """One run of draws; the right candidate over epsilon, and over the number of candidates."""
        name, true = self.counts.commonest, f"Δ = {1 / self.divisor:g}"
        over_epsilon: dict[str, Callable[[float], float]] = {
            f"the source: Δ = {self.sensitivity:g}": self.reliability,
            true: partial(self.reliability, corrected=True),
            f"{true}, people come and go (monotone)": partial(self.reliability, corrected=True, monotone=True),
        }
        printed = [(q.epsilon, int(q.printed[name]) / q.runs) for q in self.quotes["draws"] if name in q.printed]
        own, once = len(self.counts.people), self.epsilon / self.overstated

        def right_of(mechanism: Choice) -> Callable[[int], float]:
            right = self.counts.table.argmax()
            return lambda number: float(mechanism(np.pad(self.counts.table, (0, number - own)))[right])

        at = f"the source: Δ = {self.sensitivity:g}, ε = {self.epsilon:g}"
        over_candidates = {at: right_of(self.choice(self.epsilon))}
        for epsilon in (2 * once, 10 * once):
            over_candidates[f"{true}, ε = {epsilon:g}"] = right_of(self.choice(epsilon, corrected=True))
        candidates = [own, *map(int, grid(10, 10_000, 25))]
        return {
            "one-run": self._one_run(),
            "reliability-vs-epsilon": curves(over_epsilon, grid(1e-4, 10, 61), printed, star="as the source drew"),
            "reliability-vs-candidates": curves(over_candidates, candidates, x="candidates"),
        }

    def _one_run(self) -> pd.DataFrame:
        """How often each candidate was drawn, beside what to expect."""
        quote, rows = self.quotes["draws"][0], []
        for name, p in self.counts.named(self.probabilities(quote.epsilon)).items():
            run = binomial_run(quote.runs, p, int(quote.printed.get(name, 0)))
            seen = float(quote.printed.get(name, "nan"))
            rows.append((name, run.expected, *run.band, seen))
        return pd.DataFrame(rows, columns=["candidate", "expected", "low", "high", "seen"])

    def _losses(self) -> list[float]:
        return [self.loss(REPLACE_ONE, number) for number in NUMBERS]
