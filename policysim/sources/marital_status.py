"""The most common value, with a score that is a thousandth of a count and a sensitivity declared as 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from envs.toml_reader import Table
from policies.arrays import FloatArray
from policysim.figures.card import Curves, curve
from policysim.figures.described import EPSILON, Described, Intervals, Lines, curve_drawing, grid
from policysim.question.answer import Headline
from policysim.question.words import rounded
from policysim.sources.chances import ADD_OR_REMOVE, REPLACE_ONE, Choice, binomial_run, choice, draws_of, largest_loss
from policysim.sources.engine import Judgement, Row, Section, SourceFindings, claim_rows, figure_rows
from policysim.sources.printed import Claim, PrintedCounts, Quote, read_claims, read_counts, read_quotes

SENSITIVITY = "sensitivity of the score"
COST = "privacy cost whatever the number of candidates"
CANDIDATE = "the output is a candidate"
DRAWS, RELIABILITY, CANDIDATES = "one-run", "reliability-vs-epsilon", "reliability-vs-candidates"
PRINTED, RIGHT = "as the source drew", "P(right candidate)"
# How many candidates the exact loss is given for.
NUMBERS = (2, 7, 100, 1000)


@dataclass(frozen=True)
class MaritalStatus:
    """What the study file holds."""

    counts: PrintedCounts  # people by candidate
    divisor: float  # the score is count / divisor
    sensitivity: float  # as the source declares it
    epsilon: float
    draws: tuple[Quote, ...]  # its figures
    people: tuple[Quote, ...]
    claims: tuple[Claim, ...]  # what it says

    @classmethod
    def read(cls, table: Table) -> MaritalStatus:
        """The constants, mistakes noted in the table."""
        counts = read_counts(table, "counts")
        return cls(
            counts=counts,
            divisor=table.number("divisor", low=1e-9),
            sensitivity=table.number("sensitivity", low=1e-9),
            epsilon=table.number("epsilon", low=1e-9),
            draws=read_quotes(table, "draws", {"": list(counts.people)}, runs=True),
            people=read_quotes(table, "people", {"": ["people"]}, epsilon=False),
            claims=read_claims(table, (SENSITIVITY, COST, CANDIDATE)),
        )

    @property
    def true_sensitivity(self) -> float:
        """Of count / divisor: one person is one in a count, whoever the neighbours are."""
        return 1 / self.divisor

    @property
    def overstated(self) -> float:
        """How many times the declared sensitivity is too large."""
        return self.sensitivity * self.divisor

    def choice(self, epsilon: float, *, corrected: bool = False, monotone: bool = False) -> Choice:
        """The mechanism, with the declared sensitivity or the true one."""
        sensitivity = self.true_sensitivity if corrected else self.sensitivity
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

    def findings(self, seed: int) -> SourceFindings:
        """All that the page shows; nothing is drawn at random."""
        return SourceFindings(
            lead=self._lead(),
            rows=tuple(self._rows()),
            headline=self._headline(),
            card=self._card(),
            sections=(
                self._probabilities_section(),
                Section("The run of the source", drawing=self._one_run()),
                Section("What the right sensitivity gives", drawing=self._over_epsilon()),
                self._losses_section(),
                Section("What more candidates cost", drawing=self._over_candidates()),
            ),
            assumptions=(
                "Public: the list of candidates and ε. A value that is not on the list is never the answer; a list "
                "taken from the private rows would tell that each value on it occurs.",
                "Neighbours differ in one person's value (replace-one), or in one person who is there or not "
                "(add-or-remove-one).",
                "Probabilities are exact. Exact loss: over all tables of as many people.",
            ),
        )

    def _rows(self) -> list[Row]:
        def chosen(quote: Quote) -> dict[str, float]:
            return self.counts.named(self.probabilities(quote.epsilon))

        people = {"people": float(self.counts.n)}
        return [
            *figure_rows(self.draws, lambda q: draws_of(q, chosen(q)), "{name} in {runs} draws, ε = {epsilon}"),
            *figure_rows(self.people, lambda _: people, "{name}, the sum of the counts"),
            *claim_rows(self.claims, self._judgements()),
        ]

    def _judgements(self) -> dict[str, Judgement]:
        losses = [self.loss(REPLACE_ONE, number) for number in NUMBERS]
        replace, add, true = self.loss(REPLACE_ONE), self.loss(ADD_OR_REMOVE), f"{self.true_sensitivity:g}"
        return {
            SENSITIVITY: Judgement(
                true,
                self.overstated <= 1,
                f"One person is one in a count, {true} in the score.",
                f"The declared one is safe, and {self.overstated:,.0f} times too large: a draw spends {replace:.4g} "
                f"under replace-one and {add:.4g} under add-or-remove-one, not ε = {self.epsilon:g}. If a person's "
                "value is replaced, one score rises and another falls; if a person comes or goes, one score alone "
                "moves, which costs half."
                if self.overstated > 1
                else "",
                RELIABILITY,
            ),
            COST: Judgement(
                f"at most {self.epsilon:g}",
                max(losses) <= self.epsilon,
                f"Exactly {losses[0]:.4g} with {NUMBERS[0]} candidates and {losses[-1]:.4g} with {NUMBERS[-1]:,}.",
            ),
            CANDIDATE: Judgement("always", True, "So a value that is not on the list cannot be the answer."),
        }

    def _lead(self) -> tuple[str, ...]:
        name, at = self.counts.commonest, f"ε = {self.epsilon:g}"
        return (
            f"The source's run is what its mechanism gives: {name} is right, and chosen with probability "
            f"{self.reliability(self.epsilon):.3f} at {at}.",
            f"But the mechanism hardly spends its ε: the sensitivity of count/{self.divisor:g} is "
            f"{self.true_sensitivity:g}, not {self.sensitivity:g}. It loses {self.loss(REPLACE_ONE):.4g} if a person's "
            f"value is replaced and {self.loss(ADD_OR_REMOVE):.4g} if a person comes or goes.",
            f"With the true sensitivity, {at} gives {name} with probability "
            f"{_almost(1 - self.reliability(self.epsilon, corrected=True))}, and ε = "
            f"{self.epsilon / self.overstated:g} gives what the source has.",
        )

    def _headline(self) -> Headline:
        spent = f"{self.loss(REPLACE_ONE):.4g}"
        return Headline(
            f"A sensitivity declared {self.overstated:,.0f} times too large spends {spent} of ε = {self.epsilon:g}"
            if self.overstated > 1
            else f"The score spends {spent} of ε = {self.epsilon:g}",
            spent,
            f"is the exact privacy loss where ε = {self.epsilon:g} is claimed",
        )

    def _card(self) -> Curves:
        xs = grid(1e-4, 10, 61)
        return Curves(
            {
                f"Δ = {self.true_sensitivity:g}, the true one": curve(partial(self.reliability, corrected=True), xs),
                f"Δ = {self.sensitivity:g}, the source": curve(self.reliability, xs),
            },
            x="ε (log scale)",
            y="probability of the right answer",
            limits=(0.0, 1.03),
        )

    def _probabilities_section(self) -> Section:
        exact, better = self.probabilities(self.epsilon), self.probabilities(self.epsilon, corrected=True)
        declared, true = f"Δ = {self.sensitivity:g}, the source", f"Δ = {self.true_sensitivity:g}"
        return Section(
            f"Probabilities at ε = {self.epsilon:g}",
            headings=("candidate", "people", "score", declared, true),
            cells=tuple(
                (name, f"{count:,}", f"{count / self.divisor:g}", f"{exact[place]:.6f}", rounded(float(better[place])))
                for place, (name, count) in enumerate(self.counts.people.items())
            ),
        )

    def _losses_section(self) -> Section:
        return Section(
            "What the number of candidates costs in privacy",
            (f"Nothing: the exact loss of the source's mechanism at ε = {self.epsilon:g}, by how many there are.",),
            ("candidates", REPLACE_ONE, ADD_OR_REMOVE),
            tuple(
                (f"{number:,}", *(f"{self.loss(kind, number):.7f}" for kind in (REPLACE_ONE, ADD_OR_REMOVE)))
                for number in NUMBERS
            ),
        )

    def _one_run(self) -> Described:
        """How often each candidate was drawn, beside what to expect."""
        quote = self.draws[0]
        exact = self.counts.named(self.probabilities(quote.epsilon))
        runs = {name: binomial_run(quote.runs, p, int(quote.printed.get(name, 0))) for name, p in exact.items()}
        table = pd.DataFrame(
            {
                "candidate": name,
                "expected": run.expected,
                "low": run.band[0],
                "high": run.band[1],
                "seen": float(quote.printed.get(name, "nan")),
            }
            for name, run in runs.items()
        )
        description = (
            f"Of {quote.runs} draws: how many are expected for each candidate, where 95 % of such runs lie, and what "
            "the source drew."
        )
        panel = Intervals(f"One run of {quote.runs:,} draws", "draws (log scale above 1)", "candidate", PRINTED)
        return Described(DRAWS, description, table, (panel,), height=3.6)

    def _over_epsilon(self) -> Described:
        """How often the right candidate is chosen, over epsilon."""
        true, name = f"Δ = {self.true_sensitivity:g}", self.counts.commonest
        return curve_drawing(
            RELIABILITY,
            f"Probability that {name} is chosen, against ε. With the true sensitivity the same reliability takes ε "
            f"divided by {self.overstated:,.0f}, and half of that if people come and go.",
            {
                f"the source: Δ = {self.sensitivity:g}": self.reliability,
                true: partial(self.reliability, corrected=True),
                f"{true}, people come and go (monotone)": partial(self.reliability, corrected=True, monotone=True),
            },
            grid(1e-4, 10, 61),
            panel=Lines("Reliability of the right choice", EPSILON, RIGHT, stars=(PRINTED,), limits=(0, 1.02)),
            printed=[
                (quote.epsilon, int(quote.printed[name]) / quote.runs) for quote in self.draws if name in quote.printed
            ],
        )

    def _over_candidates(self) -> Described:
        """What candidates that nobody has cost in reliability, at the same epsilon."""
        own, once = len(self.counts.people), self.epsilon / self.overstated

        def right_of(mechanism: Choice) -> Callable[[int], float]:
            right = self.counts.table.argmax()
            return lambda number: float(mechanism(np.pad(self.counts.table, (0, number - own)))[right])

        lines = {f"the source: Δ = {self.sensitivity:g}, ε = {self.epsilon:g}": right_of(self.choice(self.epsilon))}
        for epsilon in (2 * once, 10 * once):
            words = f"Δ = {self.true_sensitivity:g}, ε = {epsilon:g}"
            lines[words] = right_of(self.choice(epsilon, corrected=True))
        title = "More candidates cost reliability, not privacy"
        return curve_drawing(
            CANDIDATES,
            "Probability of the right candidate, against how many candidates there are, all others being values that "
            "nobody has. The privacy loss is the same for any number of candidates; the reliability is not.",
            lines,
            [own, *map(int, grid(10, 10_000, 25))],
            panel=Lines(title, "candidates (log scale)", RIGHT, x="candidates", limits=(0, 1.02)),
        )


def _almost(wrong: float) -> str:
    if wrong > 1e-3:
        return f"{1 - wrong:.3f}"
    return "1 (wrong less than once in 10¹²)" if wrong < 1e-12 else f"1 − {wrong:.0e}"
