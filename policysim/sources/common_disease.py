"""The most common value, privately."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from envs.toml_reader import Table
from policies.arrays import FloatArray
from policysim.figures.card import Curves, curve
from policysim.figures.described import EPSILON, Described, Lines, curve_drawing, grid
from policysim.question.answer import Headline
from policysim.question.words import guesses, rounded
from policysim.sources.chances import ADD_OR_REMOVE, REPLACE_ONE, choice, largest_loss, loss_at
from policysim.sources.engine import Judgement, Row, Section, SourceFindings, claim_rows, figure_rows
from policysim.sources.largest_industry import Larger
from policysim.sources.printed import Claim, PrintedCounts, Quote, read_claims, read_counts, read_quotes

SENSITIVITY, REPEATED, ZERO = "sensitivity of a count", "repeated use", "ε = 0"
PROBABILITIES, RELIABILITY = "probabilities-vs-epsilon", "reliability-vs-epsilon"
PRINTED = "as the source prints it"
EPSILONS = grid(0.01, 10, 61)


@dataclass(frozen=True)
class CommonDisease:
    """What the study file holds."""

    counts: PrintedCounts  # people by candidate; the score is the count
    sensitivity: float  # as the source declares it
    probabilities: tuple[Quote, ...]  # its figures
    weights: tuple[Quote, ...]
    larger: Larger  # what it tells of a larger table
    claims: tuple[Claim, ...]  # what it says

    @classmethod
    def read(cls, table: Table) -> CommonDisease:
        """The constants, mistakes noted in the table."""
        counts = read_counts(table, "counts")
        known = {"": list(counts.people)}
        return cls(
            counts=counts,
            sensitivity=table.number("sensitivity", low=1e-9),
            probabilities=read_quotes(table, "probabilities", known),
            weights=read_quotes(table, "weights", known),
            larger=Larger.read(table.table("larger")),
            claims=read_claims(table, (SENSITIVITY, REPEATED, ZERO)),
        )

    def chosen(
        self, epsilon: float, times: int = 1, mechanism: str = "exponential", monotone: bool = False
    ) -> FloatArray:
        """The probability of each candidate, (k,), if all counts are so many times as large."""
        return choice(epsilon, self.sensitivity, mechanism=mechanism, monotone=monotone)(times * self.counts.table)

    def findings(self, seed: int) -> SourceFindings:
        """All that the page shows; nothing is drawn at random."""
        all_candidates, right_one = self._drawings()
        return SourceFindings(
            lead=self._lead(),
            rows=tuple(self._rows()),
            headline=self._headline(),
            card=self._card(),
            sections=(
                Section("What is chosen", drawing=all_candidates),
                Section("How reliable the answer is", drawing=right_one),
                self.larger.section(),
                self._repeated(),
            ),
            assumptions=(
                "Public: the list of candidates and how many there are, and ε. A list taken from the private rows "
                "would tell that each candidate on it occurs.",
                "Neighbours differ in one person's value (replace-one), or in one person who is there or not "
                "(add-or-remove-one). Under the latter no count falls while another rises, so the scores are monotone.",
                "Probabilities are exact. Exact loss: over all tables of as many people and candidates.",
            ),
        )

    def _rows(self) -> list[Row]:
        def chosen(quote: Quote) -> dict[str, float]:
            return self.counts.named(self.chosen(quote.epsilon))

        def weights(quote: Quote) -> dict[str, float]:
            # What the source prints before it divides by the sum.
            return self.counts.named(np.exp(quote.epsilon * self.counts.table / (2 * self.sensitivity)))

        return [
            *figure_rows(self.probabilities, chosen, "P({name}), ε = {epsilon}"),
            *figure_rows(self.weights, weights, "weight of {name}, ε = {epsilon}"),
            self.larger.row(),
            *claim_rows(self.claims, self._judgements()),
        ]

    def _judgements(self) -> dict[str, Judgement]:
        once = choice(1.0, self.sensitivity)
        one = loss_at(self.counts.table, once, REPLACE_ONE)
        two = loss_at(self.counts.table, lambda counts: np.outer(once(counts), once(counts)).ravel(), REPLACE_ONE)
        return {
            SENSITIVITY: Judgement(
                "1", self.sensitivity == 1, "One person adds at most 1 to a count, or takes 1 away."
            ),
            REPEATED: Judgement(
                "adds up",
                bool(np.isclose(two, 2 * one)),
                f"Exact loss of this table against its neighbours at ε = 1: {one:.4f} once, {two:.4f} twice.",
            ),
            ZERO: Judgement("uniform", bool((self.chosen(0.0) == 1 / len(self.counts.people)).all())),
        }

    def _lead(self) -> tuple[str, ...]:
        name = self.counts.commonest
        tenth, one = (self.counts.named(self.chosen(epsilon))[name] for epsilon in (0.1, 1.0))
        return (
            f"Among {self.counts.n} people the right answer, {name}, comes with probability {tenth:.2f} at ε = 0.1 and "
            f"{one:.2f} at ε = 1. The source's probabilities agree with ours.",
            *self.larger.lead(),
        )

    def _headline(self) -> Headline:
        tenth, one = (f"{self._probability(self.counts.commonest)(epsilon):.2f}" for epsilon in (0.1, 1.0))
        return Headline(
            f"Among {self.counts.n} people the right answer comes with probability {tenth} at ε = 0.1, {one} at ε = 1",
            one,
            f"is the probability of the right answer, {self.counts.commonest}, at ε = 1",
        )

    def _card(self) -> Curves:
        name = self.counts.commonest
        return Curves(
            {
                "exponential": curve(self._probability(name), EPSILONS),
                "permute-and-flip": curve(self._probability(name, mechanism="permute-and-flip"), EPSILONS),
            },
            x="ε (log scale)",
            y="probability of the right answer",
            limits=(0.0, 1.03),
        )

    def _repeated(self) -> Section:
        epsilon, once = self.larger.epsilon, choice(1.0, self.sensitivity)
        replace, add = (
            largest_loss(self.counts.n, len(self.counts.people), once, adjacency)
            for adjacency in (REPLACE_ONE, ADD_OR_REMOVE)
        )
        return Section(
            "What it costs, once and repeatedly",
            (
                f"At ε = 1 the mechanism loses exactly {replace:.3f} if a person's value is replaced, and {add:.3f} if "
                "a person comes or goes: there half of ε would do.",
                f"Answers from the same people add up. Whoever sees answers at ε = {epsilon:g} each, and must guess "
                "which of two neighbouring tables, equally likely before, they came from, is right at most so many of "
                "100 times; guessing blind, 50. This is the bound e^ε/(1 + e^ε) that every mechanism with this ε in "
                "all obeys, not the rate of a certain one.",
            ),
            ("answers", "ε in all", "right guesses of 100, at most"),
            tuple((f"{uses:,}", f"{uses * epsilon:g}", _of_100(uses * epsilon)) for uses in (1, 10, 100, 1000)),
        )

    def _drawings(self) -> tuple[Described, Described]:
        """Over epsilon: the probability of each candidate, and of the right one by other mechanisms."""
        name, k = self.counts.commonest, len(self.counts.people)
        there = [quote for quote in self.probabilities if quote.epsilon > 0]
        short = [quote for quote in there if quote.where == "table" and name in quote.printed]
        lines = {
            "the source (exponential mechanism)": self._probability(name),
            "permute-and-flip": self._probability(name, mechanism="permute-and-flip"),
            "exponential, if people come and go (monotone)": self._probability(name, monotone=True),
            "the source, ten times as many people": self._probability(name, times=10),
        }
        title, y = "Reliability of the right choice", "P(right candidate)"
        return (
            curve_drawing(
                PROBABILITIES,
                "Probability of each candidate against ε, and the figures that the source prints.",
                {other: self._probability(other) for other in self.counts.people},
                EPSILONS,
                panel=Lines("Which candidate is chosen", EPSILON, "probability", stars=(PRINTED,), limits=(0, 1.02)),
                printed=[(quote.epsilon, float(text)) for quote in there for text in quote.printed.values()],
            ),
            curve_drawing(
                RELIABILITY,
                f"Probability that {name} is chosen, against ε, a line per mechanism, from {1 / k:g} (any of {k}) "
                "to 1.",
                lines,
                EPSILONS,
                panel=Lines(title, EPSILON, y, stars=(PRINTED,), limits=(0, 1.02)),
                printed=[(quote.epsilon, float(quote.printed[name])) for quote in short],
            ),
        )

    def _probability(self, name: str, **how: Any) -> Callable[[float], float]:
        return lambda epsilon: self.counts.named(self.chosen(epsilon, **how))[name]


def _of_100(epsilon: float) -> str:
    share = 100 * guesses(epsilon)
    return rounded(share) if share < 99 else "99.99 or more" if share > 99.99 else f"{share:.2f}"
