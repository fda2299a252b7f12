"""The three sources on private selection: one candidate chosen from counts, by the exponential mechanism."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import binomtest

from envs.toml_reader import Table
from policies.arrays import FloatArray
from policysim.question.formats import of_100, rounded, rounded_up
from policysim.question.words import guesses
from policysim.sources.chances import (
    ADD_OR_REMOVE,
    CONFIDENCE,
    REPLACE_ONE,
    Choice,
    binomial_run,
    choice,
    largest_loss,
    loss_at,
)
from policysim.sources.engine import Document
from policysim.sources.printed import Quote

ALL = "all"
NOTABLE = 0.01
# The claim that the study file has as numbers.
RIGHT = "right in {larger.runs:,} draws, {larger.people:,} people, ε = {larger.epsilon:g}"
MOST_CANDIDATES = 500
# How many candidates the exact loss is given for.
NUMBERS = (2, 7, 100, 1000)


class Selection(Document):
    """Candidates whose scores are counts / divisor, with the sensitivity that the source declares."""

    sensitivity: float
    divisor: float = 1

    def choice(self, epsilon: float, *, corrected: bool = False, **how: Any) -> Choice:
        """The mechanism, with the declared sensitivity or the true one."""
        return choice(epsilon, 1 / self.divisor if corrected else self.sensitivity, divisor=self.divisor, **how)

    def probabilities(self, epsilon: float, *, times: int = 1, **how: Any) -> FloatArray:
        """Of each candidate, (k,), if all counts are so many times as large."""
        return self.choice(epsilon, **how)(times * self.table)

    def reliability(self, epsilon: float, **how: Any) -> float:
        """Probability of the right candidate."""
        return float(self.probabilities(epsilon, **how)[self.table.argmax()])

    def loss(self, epsilon: float, adjacency: str, candidates: int = 0) -> float:
        """Of the source's mechanism, over all tables of as many people, and of as many candidates unless told."""
        return largest_loss(int(self.table.sum()), candidates or len(self.counts), self.choice(epsilon), adjacency)

    def ours(self, kind: str, quote: Quote, seed: int) -> Mapping[str, Any]:
        """Probabilities; the weights before they are divided by their sum; draws; or all people."""
        if kind == "people":
            return {kind: float(self.table.sum())}
        if kind == "weights":
            return dict(np.exp(quote.epsilon * self.counts / (2 * self.sensitivity)))
        return probabilities_or_draws(quote, self.counts, self.choice(quote.epsilon))


def probabilities_or_draws(quote: Quote, counts: pd.Series, private: Choice) -> Mapping[str, Any]:
    """What a choice gives, by name; what to expect of draws where they were counted."""
    chosen = dict(zip(counts.index, private(counts.to_numpy()).tolist(), strict=True))
    if not quote.runs:
        return chosen
    return {name: binomial_run(int(seen), (quote.runs, chosen[name])) for name, seen in quote.printed.items()}


class CommonDisease(Selection):
    """The most common disease, and a larger table of which the source tells little."""

    name = "common-disease"
    larger: Any

    def check(self, table: Table) -> None:
        """The larger table holds others, and was not always or never right."""
        self.claims.insert(0, (RIGHT, str(self.larger.right), vars(self.larger).pop("where")))
        self.larger = larger = Larger(**vars(self.larger))
        if larger.others <= 0:
            table.fail(f"must be less than all {larger.people} people, got {larger.largest}", "larger", "largest")
        if not 0 < larger.right < larger.runs:
            wanted = f"must be more than 0 and less than the {larger.runs} runs"
            table.fail(f"{wanted}, got {larger.right}", "larger", "right")

    def facts(self, seed: int) -> dict[str, Any]:
        """The right answer, what repeated use costs, and which larger tables agree."""
        once, k, name = self.choice(1.0), len(self.counts), self.commonest
        used_once = loss_at(self.table, once, REPLACE_ONE)
        used_twice = loss_at(self.table, lambda counts: np.outer(once(counts), once(counts)).ravel(), REPLACE_ONE)
        fewest = fewest_candidates(self.larger)
        short = [quote for quote in self.quotes["probabilities"] if quote.epsilon > 0 and quote.where == "table"]
        return {
            "people": self.table.sum(),
            "k": k,
            "any": 1 / k,
            "tenth": self.reliability(0.1),
            "one": self.reliability(1.0),
            "used_once": used_once,
            "used_twice": used_twice,
            "replace": self.loss(1.0, REPLACE_ONE),
            "add": self.loss(1.0, ADD_OR_REMOVE),
            "ten_uses": of_100(guesses(10 * self.larger.epsilon)),
            "cost": self.larger.runs * self.larger.epsilon,
            "fewest": fewest,
            "twice": 2 * fewest,
            "gaps": agreeing_gaps(self.larger, 2 * fewest),
            "reliability": self.reliability,
            "stars": [{"epsilon": q.epsilon, "value": float(q.printed[name])} for q in short if name in q.printed],
            "holds": {
                RIGHT: None,
                "sensitivity of a count": self.sensitivity == 1,
                "repeated use": bool(np.isclose(used_twice, 2 * used_once)),
                "ε = 0": bool((self.probabilities(0.0) == 1 / k).all()),
            },
        }


class MaritalStatus(Selection):
    """Scores that are a thousandth of a count, with a sensitivity that is declared as 1."""

    name = "marital-status"
    epsilon: float

    def facts(self, seed: int) -> dict[str, Any]:
        """What is declared, what is true, and what is spent; one person is one in a count."""
        overstated, name = self.sensitivity * self.divisor, self.commonest
        losses = [self.loss(self.epsilon, REPLACE_ONE, number) for number in NUMBERS]
        draws = [quote for quote in self.quotes["draws"] if name in quote.printed]
        return {
            "true": 1 / self.divisor,
            "overstated": overstated,
            "enough": self.epsilon / overstated,
            "replace": self.loss(self.epsilon, REPLACE_ONE),
            "add": self.loss(self.epsilon, ADD_OR_REMOVE),
            "losses": losses,
            "numbers": NUMBERS,
            "right": self.reliability(self.epsilon),
            "wrong_if_corrected": 1 - self.reliability(self.epsilon, corrected=True),
            "reliability": self.reliability,
            "stars": [{"epsilon": q.epsilon, "value": int(q.printed[name]) / q.runs} for q in draws],
            "holds": {
                "sensitivity of the score": overstated <= 1,
                "privacy cost whatever the number of candidates": max(losses) <= self.epsilon,
            },
        }


class Outcome(NamedTuple):
    """What a calibration gives for the smaller and the larger group, in this order."""

    n: list[int]  # people
    claimed: list[float]  # epsilon given
    choices: list[Choice]
    rare: list[float]  # probability that the rare candidate is reported

    @property
    def loss(self) -> list[float]:
        """The exact one if one person's value is replaced, over all tables of the group's size."""
        return [largest_loss(n, 2, private, REPLACE_ONE) for n, private in zip(self.n, self.choices, strict=True)]

    @property
    def signed(self) -> str:
        """How much more often the rare candidate is reported for the smaller group, in words."""
        return rounded(self.rare[0] - self.rare[1], sign=True)


class SockGroups(Document):
    """The smaller group and the larger one; of two candidates, the rare one first. Scores are proportions."""

    name = "sock-groups"
    sensitivity: float
    groups: dict[str, pd.Series]

    def names(self, kind: str) -> Mapping[str, Sequence[str]]:
        """Each group has a share of ε; all else is of candidates."""
        candidates = [name for group in self.groups.values() for name in group.index]
        return {"": list(self.groups)} if kind == "shares" else dict.fromkeys((ALL, *self.groups), candidates)

    def check(self, table: Table) -> None:
        """Two groups of the same two candidates, put in order."""
        everybody = pd.DataFrame(self.groups)
        if len(self.groups) != 2:
            table.fail(f"must be two groups, got {len(self.groups)}", *(["groups"] if "groups" in table else []))
        elif len(everybody) != 2 or everybody.isna().any(axis=None):
            table.fail("must count the same two candidates as the first group", "groups", str(everybody.columns[1]))
        for name, group in self.groups.items():
            if not group.all():
                table.fail("must count somebody for each candidate", "groups", name)
        table.mistakes.raise_if_any()
        everybody = everybody.loc[everybody.sum(axis=1).sort_values().index, everybody.sum().sort_values().index]
        self.counts, self.groups = everybody.sum(axis=1), {str(name): group for name, group in everybody.items()}

    def outcome(self, epsilon: float = 0, size: int = 0, *, delta: str = "true", split: bool = False) -> Outcome:
        """Of a calibration, by default at the source's ε.

        With a size the smaller group has as many people, of whom one has the rare value. The sensitivity is the
        "declared" one, or the "true" one, 1/n, of replacing a value; if a person may come or go and n >= 1 is not
        public, it is "unknown": from 1 of 1 to 1 of 2.
        """
        small, large = (group.to_numpy() for group in self.groups.values())
        tables = [np.array([1, size - 1]) if size else small, large]
        n = [int(counts.sum()) for counts in tables]
        claimed = [(epsilon or self.split.epsilon) * (own / sum(n) if split else 1) for own in n]
        by = [{"declared": self.sensitivity, "true": 1 / own, "unknown": 0.5}[delta] for own in n]
        choices = [choice(*parts, divisor=own) for *parts, own in zip(claimed, by, n, strict=True)]
        rare = [float(private(counts)[0]) for private, counts in zip(choices, tables, strict=True)]
        return Outcome(n, claimed, choices, rare)

    def disparity(self, epsilon: float = 0, size: int = 0, **how: Any) -> float:
        """How much more often the rare candidate is reported for the smaller group, with an `outcome`'s arguments."""
        small, large = self.outcome(epsilon, size, **how).rare
        return small - large

    @property
    def outcomes(self) -> dict[str, Outcome]:
        """The source's calibration; the whole epsilon for each; the true sensitivity; and both."""
        return {
            "source": self.outcome(delta="declared", split=True),
            "whole": self.outcome(delta="declared"),
            "own": self.outcome(split=True),
            "both": self.outcome(),
        }

    @cached_property
    def left(self) -> tuple[float, float, float]:
        """With both corrected: the largest disparity over epsilon, where it is, and from where on it is below 0.01."""
        # On the log scale the disparity rises to one peak and falls.
        peak = float(10 ** minimize_scalar(lambda at: -self.disparity(10.0**at), bounds=(-4, 1), method="bounded").x)
        largest = self.disparity(peak)
        if largest <= NOTABLE:
            return largest, peak, 0.0
        return largest, peak, float(brentq(lambda epsilon: self.disparity(epsilon) - NOTABLE, peak, 1e4))

    def ours(self, kind: str, quote: Quote, seed: int) -> Mapping[str, Any]:
        """Shares of ε, scores, probabilities or draws."""
        if kind == "shares":
            return dict(zip(self.groups, self.outcomes["source"].claimed, strict=True))
        counts = self.groups.get(quote.data, self.counts)
        if kind == "scores":
            return dict(counts / counts.sum())
        private = choice(quote.epsilon, self.sensitivity, divisor=float(counts.sum()))
        return probabilities_or_draws(quote, counts, private)

    def facts(self, seed: int) -> dict[str, Any]:
        """The groups, the calibrations, and what disparity is left."""
        source, (small, large), rare = self.outcomes["source"], self.groups, str(self.counts.idxmin())
        rates = [float(group[rare] / group.sum()) for group in self.groups.values()]
        printed = {quote.data: float(quote.printed.get(rare, "nan")) for quote in self.quotes["probabilities"]}
        there = printed.get(small, np.nan) - printed.get(large, np.nan)
        return {
            "small": small,
            "large": large,
            "largest": rounded_up(self.left[0]),
            "peak": self.left[1],
            "until": rounded_up(self.left[2]),
            **self.outcomes,
            "rare": rare,
            "n": source.n,
            "most": rounded_up(max(source.loss)),
            "rates": rates,
            "text": self.outcome(self.split.text_epsilon, delta="declared", split=True).rare,
            "right_epsilon": source.claimed[0] / source.n[0] / self.sensitivity,
            "disparity": self.disparity,
            "apart": lambda size: 1 / size - rates[1],
            "stars": [{"epsilon": self.split.epsilon, "value": there}],
            "holds": {
                "ε of the figures per group": self.split.epsilon == self.split.text_epsilon,
                "sensitivity of a proportion": self.sensitivity * max(source.n) <= 1,
                "who is reported Violent too often": source.rare[0] > max(rates[0], source.rare[1])
                and rates[0] < rates[1],
                "why": self.disparity(delta="declared") > 0,
            },
        }


class Larger(NamedTuple):
    """All that a source tells of a table.

    With the largest count L and the others c_j, the mechanism is right with probability
    1 / (1 + sum_j exp(-epsilon (L - c_j) / 2)). Given how many candidates there are (m, public) and the count of the
    runner-up, the sum is convex in the other counts: it is largest where as many as possible of them equal the
    runner-up, and least where one does and the rest are equal. So the probabilities that are possible are exact.
    """

    people: int  # all
    largest: int  # those of the largest candidate
    epsilon: float
    runs: int  # draws
    right: int  # those of the largest candidate

    @property
    def others(self) -> int:
        """People outside the largest candidate."""
        return self.people - self.largest


def possible(larger: Larger, candidates: int, gap: int) -> tuple[float, float] | None:
    """The least and the largest probability of the right answer, over all tables; None if there is no such table.

    Of `candidates` in all (>= 3), whose runner-up has `gap` people fewer than the largest.
    """
    runner_up, rest = larger.largest - gap, larger.others - (larger.largest - gap)
    if not 0 <= rest <= (candidates - 2) * runner_up:
        return None
    whole, left = divmod(larger.others, runner_up)
    empty = candidates - 1 - whole - 1
    most = [(whole, runner_up), (1, left), (empty, 0)] if empty >= 0 else [(whole, runner_up)]
    equal, more = divmod(rest, candidates - 2)
    least = [(1, runner_up), (more, equal + 1), (candidates - 2 - more, equal)]
    numbers = (np.array(counts, dtype=np.float64).T for counts in (most, least))
    first, second = (1 / (1 + n @ np.exp(-larger.epsilon / 2 * (larger.largest - count))) for n, count in numbers)
    return float(first), float(second)


def agreeing_gaps(larger: Larger, candidates: int) -> tuple[int, int] | None:
    """The least and the largest gap to the runner-up that agree with what was drawn; None if no table does.

    They do within the exact 95 % interval of the share that was drawn (Clopper & Pearson 1934).
    """
    interval = binomtest(larger.right, larger.runs).proportion_ci(CONFIDENCE)
    ranges = {gap: possible(larger, candidates, gap) for gap in range(larger.largest)}
    gaps = [
        gap for gap, range_ in ranges.items() if range_ and range_[1] >= interval.low and range_[0] <= interval.high
    ]
    return (gaps[0], gaps[-1]) if gaps else None


def fewest_candidates(larger: Larger) -> int:
    """With fewer of them, no table agrees with what was drawn: the others would be too close.

    ValueError if no table of up to 500 candidates does.
    """
    for candidates in range(3, MOST_CANDIDATES + 1):
        if agreeing_gaps(larger, candidates) is not None:
            return candidates
    raise ValueError(
        f"no table of up to {MOST_CANDIDATES} candidates agrees with {larger.right} right of {larger.runs} draws"
    )
