"""The exponential mechanism on a small and a large group: what causes the disparity that the source finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from envs.toml_reader import Table
from policies.arrays import FloatArray, IntArray
from policysim.figures.card import Curves, curve
from policysim.figures.described import EPSILON, Described, Lines, curve_drawing, grid
from policysim.question.answer import Headline
from policysim.question.words import rounded
from policysim.sources.chances import REPLACE_ONE, choice, draws_of, largest_loss
from policysim.sources.engine import Judgement, Row, Section, SourceFindings, claim_rows, figure_rows
from policysim.sources.printed import Claim, PrintedCounts, Quote, read_claims, read_counts, read_quotes

ALL = "all"
EPSILON_TEXT, SENSITIVITY = "ε of the figures per group", "sensitivity of a proportion"
DISJOINT = "ε for each of two disjoint groups"
COEFFICIENT, WHO, WHY = "coefficient of monotone scores", "who is reported Violent too often", "why"
NOTABLE = 0.01
# Sensitivity of a proportion if a person may come or go and n >= 1 is not public: from 1 of 1 to 1 of 2.
UNKNOWN_SIZE = 0.5
DISPARITY, SIZE = "disparity-vs-epsilon", "disparity-vs-group-size"
PRINTED = "as the source prints it"


@dataclass(frozen=True)
class Outcome:
    """What a calibration gives for the smaller and the larger group, in this order."""

    name: str
    rare: tuple[float, ...]  # probability that the rare candidate is reported
    claimed: tuple[float, ...]  # epsilon given
    loss: tuple[float, ...]  # the exact one if one person's value is replaced

    @property
    def disparity(self) -> float:
        """How much more often the rare candidate is reported for the smaller group."""
        return self.rare[0] - self.rare[1]


@dataclass(frozen=True)
class SockGroups:
    """What the study file holds."""

    groups: Mapping[str, PrintedCounts]  # the small one and the large one; of two candidates, the rare one first
    sensitivity: float  # as the source declares it
    epsilon: float  # what it shares out among the groups
    text_epsilon: float  # what its text says that it was
    scores: tuple[Quote, ...]  # its figures
    shares: tuple[Quote, ...]
    probabilities: tuple[Quote, ...]
    draws: tuple[Quote, ...]
    claims: tuple[Claim, ...]  # what it says

    @classmethod
    def read(cls, table: Table) -> SockGroups:
        """The constants, mistakes noted in the table."""
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
        epsilon, text_epsilon = split.number("epsilon", low=0), split.number("text_epsilon", low=0)
        split.close()
        known = dict.fromkeys((ALL, *groups), tuple(candidates))
        candidates.sort(key=lambda candidate: sum(counts.people.get(candidate, 0) for counts in groups.values()))
        ordered = sorted(groups, key=lambda name: groups[name].n)
        return cls(
            groups={
                name: PrintedCounts({one: groups[name].people.get(one, 0) for one in candidates}) for name in ordered
            },
            sensitivity=table.number("sensitivity", low=1e-9),
            epsilon=epsilon,
            text_epsilon=text_epsilon,
            scores=read_quotes(table, "scores", known, epsilon=False),
            shares=read_quotes(table, "shares", {"": list(groups)}, epsilon=False),
            probabilities=read_quotes(table, "probabilities", known),
            draws=read_quotes(table, "draws", known, runs=True),
            claims=read_claims(table, (EPSILON_TEXT, SENSITIVITY, DISJOINT, COEFFICIENT, WHO, WHY)),
        )

    def counts(self, data: str) -> PrintedCounts:
        """Of one group or of all."""
        if data != ALL:
            return self.groups[data]
        small, large = self.groups.values()
        return PrintedCounts({name: people + large.people[name] for name, people in small.people.items()})

    @property
    def candidates(self) -> tuple[str, ...]:
        """The rare one and the common one."""
        return tuple(self.counts(ALL).people)

    @property
    def tables(self) -> list[IntArray]:
        """(2,) counts of the smaller group and of the larger one."""
        return [group.table for group in self.groups.values()]

    def split(self, data: str) -> float:
        """The group's share of epsilon, by its size."""
        return self.epsilon * self.groups[data].n / self.counts(ALL).n

    @cached_property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The source's calibration, each of its two parts corrected, and both."""
        split = [self.split(name) for name in self.groups]
        whole = [self.epsilon] * 2
        declared, true = [self.sensitivity] * 2, [1 / group.n for group in self.groups.values()]
        result = []
        for name, given, deltas in (
            (f"the source: Δ = {self.sensitivity:g}, ε split by size", split, declared),
            (f"Δ = {self.sensitivity:g}, whole ε for each group", whole, declared),
            ("Δ = 1/n, ε split by size", split, true),
            ("both corrected: Δ = 1/n, whole ε", whole, true),
        ):
            parts = list(zip(self.tables, given, deltas, strict=True))
            rare = tuple(rarely(*part) for part in parts)
            result.append(Outcome(name, rare, tuple(given), tuple(exact_loss(*part) for part in parts)))
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

    def findings(self, seed: int) -> SourceFindings:
        """All that the page shows; nothing is drawn at random."""
        return SourceFindings(
            lead=self._lead(),
            rows=tuple(self._rows()),
            headline=self._headline(),
            card=self._card(),
            sections=(
                self._calibrations(),
                Section("What disparity is left, over ε", drawing=self._over_epsilon()),
                Section("What the size of a group does", drawing=self._over_size()),
            ),
            assumptions=(
                "Public: the two candidates, sock colours, group sizes and ε. Neighbours differ in one person's value.",
                "If sock colour is private too, one person counts in both groups: each answer must then be calibrated "
                "for a person who comes or goes (Δ = ½, as n is not public), and the two together cost 2ε. A split by "
                "group size is then itself computed from private data.",
                "P(candidate) from the exponential mechanism, exactly; exact loss over all tables of the group's size.",
                "The mechanism reports the commonest value. P(Violent) is how often it errs, no estimate of the rate.",
            ),
        )

    def _rows(self) -> list[Row]:
        def chosen(quote: Quote) -> dict[str, float]:
            counts = self.counts(quote.data)
            return counts.named(probabilities(counts.table, quote.epsilon, self.sensitivity))

        def scores(quote: Quote) -> dict[str, float]:
            counts = self.counts(quote.data)
            return counts.named(proportions(counts.table))

        shares = {name: self.split(name) for name in self.groups}
        return [
            *figure_rows(self.scores, scores, "score of {name}, {data}"),
            *figure_rows(self.probabilities, chosen, "P({name}), {data}, ε = {epsilon}"),
            *figure_rows(self.draws, lambda q: draws_of(q, chosen(q)), "{name} in {runs} draws, {data}, ε = {epsilon}"),
            *figure_rows(self.shares, lambda _: shares, "ε of {name}"),
            *claim_rows(self.claims, self._judgements()),
        ]

    def _judgements(self) -> dict[str, Judgement]:
        (small, large), n = self.groups, [group.n for group in self.groups.values()]
        source, whole, *_ = self.outcomes
        rates = [float(proportions(table)[0]) for table in self.tables]
        share = self.text_epsilon / self.counts(ALL).n
        said = [rarely(table, float(share * table.sum()), self.sensitivity) for table in self.tables]
        return {
            EPSILON_TEXT: Judgement(
                f"ε = {self.epsilon:g}",
                self.epsilon == self.text_epsilon,
                f"The figures come from {self.epsilon:g} shared out.",
                f"At ε = {self.text_epsilon:g} they would be {said[0]:.3f} for {small} and {said[1]:.3f} for {large}.",
                DISPARITY,
            ),
            SENSITIVITY: Judgement(
                f"1/{n[0]} and 1/{n[1]}",
                self.sensitivity * max(n) <= 1,
                "One person of n moves a proportion by 1/n.",
                "It is ½ if people may come and go and n is not public. The source's is the right mechanism at ε = "
                f"{source.claimed[0] / n[0] / self.sensitivity:g} for each group; the table below has its exact loss.",
                SIZE,
            ),
            DISJOINT: Judgement(
                f"the whole ε for each: {self.epsilon:g}",
                False,
                "A split is safe but not needed: each person is in one group only, if sock colour is public.",
            ),
            COEFFICIENT: Judgement(
                "1 instead of ½", True, "These scores are not monotone: as one proportion rises the other falls."
            ),
            WHO: Judgement(
                f"{small}: {source.rare[0]:.3f}, rate {rates[0]:.3f}; {large}: {source.rare[1]:.3f}",
                source.rare[0] > max(rates[0], source.rare[1]) and rates[0] < rates[1],
                "True of its computation.",
            ),
            WHY: Judgement(
                "the split of ε, and a Δ that is too large",
                whole.disparity > 0,
                f"With the whole ε for each group, {small} gets {whole.rare[0]:.4f} and {large} {whole.rare[1]:.4f}.",
                f"{small} was given ε = {source.claimed[0]:g} and {large} {source.claimed[1]:g}; each disjoint group "
                "may use all of it (parallel composition), as long as sock colour and group sizes are public.",
                DISPARITY,
            ),
        }

    def _lead(self) -> tuple[str, ...]:
        (small, large), n, rare = self.groups, [group.n for group in self.groups.values()], self.candidates[0]
        source, whole, _, right = self.outcomes
        largest, peak, notable_until = self.left
        return (
            f"The source finds that the small group is reported {rare} too often: {small} {source.rare[0]:.3f}, "
            f"{large} {source.rare[1]:.3f} at ε = {self.epsilon:g}. Its figures are right; its explanation is wrong.",
            f"The split of ε by group size does it, not the mechanism: give both groups the whole ε, as disjoint "
            f"groups may have, and {small} gets {whole.rare[0]:.4f}, {large} {whole.rare[1]:.4f}.",
            f"The noise is also {n[0]} and {n[1]} times too large: one person moves a proportion of n people by 1/n, "
            f"not by {self.sensitivity:g}. Of the ε = {self.epsilon:g} that the source claims to spend, each person "
            f"loses at most {rounded(max(source.loss))}.",
            f"With both corrected the disparity is at most {largest:.2f}, at ε = {rounded(peak)}, and below "
            f"{NOTABLE:g} from ε = {rounded(notable_until)} on; at ε = {self.epsilon:g} it is "
            + ("less than one in 10¹²." if abs(right.disparity) < 1e-12 else f"{rounded(right.disparity)}."),
        )

    def _headline(self) -> Headline:
        (small, large), rare = self.groups, self.candidates[0]
        source, whole, _, _ = self.outcomes
        return Headline(
            "It is the split of ε by group size that wrongs the smaller group, not the mechanism",
            rounded(source.disparity, sign=True),
            f"in P({rare}), {small} minus {large}, at ε = {self.epsilon:g} as the source splits it; "
            f"{rounded(whole.disparity, sign=True)} with the whole ε for each group",
        )

    def _card(self) -> Curves:
        declared, people, xs = partial(rarely, sensitivity=self.sensitivity), self.counts(ALL).n, grid(0.01, 30, 41)
        split = self._disparity(lambda counts, epsilon: declared(counts, epsilon * float(counts.sum() / people)))
        return Curves(
            {"ε split by size": curve(split, xs), "whole ε for each": curve(self._disparity(declared), xs)},
            x="ε (log scale)",
            y=f"P({self.candidates[0]}), {' minus '.join(self.groups)}",
        )

    def _calibrations(self) -> Section:
        rare, common = self.candidates
        return Section(
            f"What each correction does at ε = {self.epsilon:g}",
            (
                f"P({rare}) should be near 0 for both: most people of both groups are {common}. Exact loss: of a "
                "person whose value is replaced, over all tables of the group's size.",
            ),
            (
                "calibration",
                *(f"P({rare}), {name}" for name in self.groups),
                "difference",
                *(f"ε claimed, {name}" for name in self.groups),
                *(f"exact loss, {name}" for name in self.groups),
            ),
            tuple(
                (
                    one.name,
                    *map(rounded, one.rare),
                    rounded(one.disparity, sign=True),
                    *(f"{value:g}" for value in one.claimed),
                    *map(rounded, one.loss),
                )
                for one in self.outcomes
            ),
        )

    def _over_epsilon(self) -> Described:
        """Disparity between the groups over epsilon, a line per calibration."""
        (name, other), rare, people = self.groups, self.candidates[0], self.counts(ALL).n
        declared = partial(rarely, sensitivity=self.sensitivity)
        printed = {quote.data: float(quote.printed[rare]) for quote in self.probabilities if rare in quote.printed}
        there = printed.get(name, np.nan) - printed.get(other, np.nan)
        _, peak, notable_until = self.left
        return curve_drawing(
            DISPARITY,
            f"P({rare}) for {name} minus that for {other}, against ε, a line per calibration. "
            "The source's is above zero. With the whole ε for each group it is below zero; with Δ = 1/n, too, it is "
            f"largest at ε = {rounded(peak)} and less than {NOTABLE:g} from {rounded(notable_until)} on.",
            {
                f"the source: Δ = {self.sensitivity:g}, ε split by size": self._disparity(
                    lambda counts, epsilon: declared(counts, epsilon * float(counts.sum() / people))
                ),
                f"Δ = {self.sensitivity:g}, whole ε for each group": self._disparity(declared),
                "Δ = ½ (people may come and go), whole ε": self._disparity(partial(rarely, sensitivity=UNKNOWN_SIZE)),
                "Δ = 1/n (a value may change), whole ε": self._disparity(rarely),
            },
            grid(0.01, 30, 61),
            panel=Lines(
                "Disparity between the groups", EPSILON, f"P({rare}), {name} − {other}", stars=(PRINTED,), zero=True
            ),
            printed=[(self.epsilon, there)],
        )

    def _disparity(self, reported: Callable[[IntArray, float], float]) -> Callable[[float], float]:
        return lambda epsilon: reported(self.tables[0], epsilon) - reported(self.tables[1], epsilon)

    def _over_size(self) -> Described:
        """Disparity over the size of the small group, one of whom has the rare value; the large group as it is."""
        (small, large), rare = self.groups, self.candidates[0]
        people, other = (group.n for group in self.groups.values())

        def disparity(reported: Callable[[IntArray], float]) -> Callable[[int], float]:
            return lambda n: reported(np.array([1, n - 1])) - reported(self.tables[1])

        def split(n: int) -> float:
            share = self.epsilon / (n + other)
            return disparity(lambda counts: rarely(counts, share * float(counts.sum()), self.sensitivity))(n)

        lines: dict[str, Callable[[int], float]] = {}
        lines[f"the source: ε = {self.epsilon:g}, Δ = {self.sensitivity:g}, split"] = split
        for epsilon in sorted({0.1, 1.0, self.epsilon}):
            lines[f"ε = {epsilon:g}, Δ = 1/n, whole ε"] = disparity(partial(rarely, epsilon=epsilon))
        lines["difference of the rates themselves"] = disparity(lambda counts: float(proportions(counts)[0]))
        title, x = "Disparity over the size of one group", "n, people in the group that varies (log scale)"
        return curve_drawing(
            SIZE,
            f"P({rare}) for a group of n people, one of them {rare}, minus that for the {other} people of {large}, "
            f"against n. {small} has n = {people}. With the source's calibration the smaller of the two groups is hit, "
            "whichever it is; with the right one a disparity is left only where ε times n is small.",
            lines,
            [int(size) for size in dict.fromkeys(np.geomspace(3, 1000, 40).round())],
            panel=Lines(title, x, f"P({rare}), group of n − {large}", x="size", zero=True),
        )


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
