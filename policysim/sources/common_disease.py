"""The most common value, privately; and a larger table of which the source tells little (`largest_industry`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from envs.toml_reader import Table
from policies.arrays import FloatArray
from policysim.figures.described import grid
from policysim.question.words import guesses, of_100
from policysim.sources.chances import ADD_OR_REMOVE, REPLACE_ONE, SingleRun, choice, largest_loss, loss_at
from policysim.sources.document import Document, curves
from policysim.sources.largest_industry import gaps_by_candidates, read_larger
from policysim.sources.printed import Claim, Quote, read_counts, read_quotes

RIGHT = "right in {larger.runs:,} draws, {larger.people:,} people, ε = {larger.epsilon:g}"


class CommonDisease(Document):
    """People by candidate, whose score is the count."""

    name = "common-disease"

    def __init__(self, table: Table) -> None:
        """Read the constants."""
        super().__init__(table)
        self.counts = read_counts(table, "counts")
        known = {"": list(self.counts.people)}
        self.sensitivity = table.number("sensitivity", low=1e-9)
        self.quotes = {kind: read_quotes(table, kind, known) for kind in ("probabilities", "weights")}
        self.larger, where = read_larger(table.table("larger"))
        self.claims = (Claim(RIGHT, str(self.larger.right), where), *self.claims)

    def chosen(
        self, epsilon: float, times: int = 1, mechanism: str = "exponential", monotone: bool = False
    ) -> FloatArray:
        """The probability of each candidate, (k,), if all counts are so many times as large."""
        return choice(epsilon, self.sensitivity, mechanism=mechanism, monotone=monotone)(times * self.counts.table)

    def ours(self, kind: str, quote: Quote, seed: int) -> Mapping[str, float] | Mapping[str, SingleRun]:
        """Probabilities, or the weights before they are divided by their sum."""
        weights = np.exp(quote.epsilon * self.counts.table / (2 * self.sensitivity))
        return self.counts.named(self.chosen(quote.epsilon) if kind == "probabilities" else weights)

    def holds(self) -> dict[str, bool | None]:
        """Of each claim."""
        one, two = self._repeated()
        return {
            RIGHT: None,
            "sensitivity of a count": self.sensitivity == 1,
            "repeated use": bool(np.isclose(two, 2 * one)),
            "ε = 0": bool((self.chosen(0.0) == 1 / len(self.counts.people)).all()),
        }

    def facts(self, seed: int) -> dict[str, object]:
        """The right answer, what repeated use costs, and which larger tables agree."""
        name, once = self.counts.commonest, choice(1.0, self.sensitivity)
        of_all = self.counts.n, len(self.counts.people)
        return {
            "k": of_all[1],
            "any": 1 / of_all[1],
            "tenth": self._probability(name)(0.1),
            "one": self._probability(name)(1.0),
            **dict(zip(("used_once", "used_twice"), self._repeated(), strict=True)),
            "replace": largest_loss(*of_all, once, REPLACE_ONE),
            "add": largest_loss(*of_all, once, ADD_OR_REMOVE),
            "ten_uses": of_100(guesses(10 * self.larger.epsilon)),
            "cost": self.larger.runs * self.larger.epsilon,
        }

    def drawn(self, seed: int) -> dict[str, pd.DataFrame]:
        """Over epsilon: the probability of each candidate, and of the right one by other mechanisms; larger tables."""
        name, xs = self.counts.commonest, grid(0.01, 10, 61)
        there = [quote for quote in self.quotes["probabilities"] if quote.epsilon > 0]
        short = [quote for quote in there if quote.where == "table" and name in quote.printed]
        mechanisms = {
            "the source (exponential mechanism)": self._probability(name),
            "permute-and-flip": self._probability(name, mechanism="permute-and-flip"),
            "exponential, if people come and go (monotone)": self._probability(name, monotone=True),
            "the source, ten times as many people": self._probability(name, times=10),
        }
        each = {other: self._probability(other) for other in self.counts.people}
        printed = [(quote.epsilon, float(text)) for quote in there for text in quote.printed.values()]
        return {
            "probabilities-vs-epsilon": curves(each, xs, printed),
            "reliability-vs-epsilon": curves(mechanisms, xs, [(q.epsilon, float(q.printed[name])) for q in short]),
            "larger-table": gaps_by_candidates(self.larger),
        }

    def _repeated(self) -> tuple[float, float]:
        """The exact loss of this table against its neighbours at epsilon 1: of one use, and of two."""
        once = choice(1.0, self.sensitivity)
        twice = loss_at(self.counts.table, lambda counts: np.outer(once(counts), once(counts)).ravel(), REPLACE_ONE)
        return loss_at(self.counts.table, once, REPLACE_ONE), twice

    def _probability(self, name: str, **how: Any) -> Callable[[float], float]:
        return lambda epsilon: self.counts.named(self.chosen(epsilon, **how))[name]
