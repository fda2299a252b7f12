"""The four documents: what each computes beside its source, and the facts that its words name.

Three are about private selection by the exponential mechanism (common-disease, marital-status, sock-groups), one about
k-ary response on two columns and what the coins of another report cost (adult-age-sex).
Before them stand exact probabilities: what a single run may show, and what a private choice from counts gives and
reveals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, reduce
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import brentq, minimize_scalar
from scipy.signal import fftconvolve
from scipy.stats import binom, binomtest

from envs.toml_reader import TomlTable
from policies.arrays import FloatArray, IntArray
from policies.local import METHODS, KAry, TwoCoin, error_bands, expected_errors
from policies.local.estimation import estimate, shares_of, variances
from policies.selection import select
from policysim.question.formats import of_100, percent_1, rounded, rounded_up
from policysim.question.words import guesses
from policysim.sources.engine import Document, Quote, SingleRun

NOTABLE = 0.01
# The claim that the study file has as numbers.
RIGHT = "right in {larger.runs:,} draws, {larger.people:,} people, ε = {larger.epsilon:g}"
# How many candidates the exact loss is given for.
NUMBERS = (2, 7, 100, 1000)
# How the source on k-ary response estimates: unbiased, then cut off at 0 and 1.
ITS_METHOD = "clipped"
# Simulated runs behind a band, in the table and in a figure.
RUNS, FIGURE_RUNS = 100_000, 20_000
CONFIDENCE = 0.95
# Probabilities that differ by less are equal but for rounding (the factor of scipy.stats.binomtest).
EQUAL = 1 + 1e-7
MOST_CANDIDATES = 500
REPLACE_ONE, ADD_OR_REMOVE = "replace-one", "add-or-remove-one"

# From counts (k,) to the probabilities of the candidates (k,).
Choice = Callable[[IntArray], FloatArray]


def binomial_run(seen: int, *parts: tuple[int, float]) -> SingleRun:
    """`seen` of independent draws: each part has so many, with one probability.

    The counts of two parts are convolved by FFT, whose error of about 1e-17 is far below the tails that count.

    Examples
    --------
    >>> found = binomial_run(40, (100, 0.5))
    >>> found.band, round(found.chance, 4)
    ((40.0, 60.0), 0.0569)
    """
    chances = reduce(fftconvolve, [binom.pmf(np.arange(n + 1), n, p) for n, p in parts]).clip(min=0)
    tail, below = (1 - CONFIDENCE) / 2, np.cumsum(chances)
    low, high = (float(np.searchsorted(below, level)) for level in (tail, 1 - tail))
    unlikely = chances <= chances[seen] * EQUAL
    return SingleRun(float(np.arange(len(chances)) @ chances), (low, high), min(1.0, float(chances[unlikely].sum())))


def neighbouring_tables(counts: IntArray, adjacency: str) -> list[IntArray]:
    """The tables that one person makes of this one: by another value, or by coming or going."""
    one = np.eye(len(counts), dtype=np.intp)
    taken, values = np.flatnonzero(counts), range(len(counts))
    if adjacency == REPLACE_ONE:
        return [counts - one[i] + one[j] for i in taken for j in values if j != i]
    return [*(counts + one[j] for j in values), *(counts - one[i] for i in taken)]


def loss_at(counts: IntArray, choice: Choice, adjacency: str) -> float:
    """max over the neighbours of one table, and over candidates, of |log p - log p'|."""
    here = np.log(choice(counts))
    return max(float(np.abs(np.log(choice(other)) - here).max()) for other in neighbouring_tables(counts, adjacency))


def largest_loss(people: int, candidates: int, choice: Choice, adjacency: str) -> float:
    """The exact privacy loss over all tables of this many people, for a choice that grows with exp(count / s).

    It is attained where everybody has one value: the person who leaves it for another one then changes that other
    candidate's weight while the sum of all weights moves as much as it can, the other way.
    """
    return loss_at(people * np.eye(candidates, dtype=np.intp)[0], choice, adjacency)


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
    where: str = ""  # where the source has this

    @property
    def others(self) -> int:
        """People outside the largest candidate."""
        return self.people - self.largest


def chance_range(larger: Larger, candidates: int, gap: int) -> tuple[float, float] | None:
    """The least and the largest probability of the right answer, over all tables; None if there is no such table.

    Of `candidates` in all (>= 3), whose runner-up has `gap` people fewer than the largest.
    """
    runner_up, rest = larger.largest - gap, larger.others - (larger.largest - gap)
    if not 0 <= rest <= (candidates - 2) * runner_up:
        return None
    whole, left = divmod(larger.others, runner_up)
    most = np.zeros(candidates - 1)
    most[:whole] = runner_up
    most[whole : whole + 1] = left
    equal, more = divmod(rest, candidates - 2)
    least = np.array([runner_up, *[equal + 1] * more, *[equal] * (candidates - 2 - more)])
    first, second = (
        1 / (1 + np.exp(-larger.epsilon / 2 * (larger.largest - counts)).sum()) for counts in (most, least)
    )
    return float(first), float(second)


def agreeing_gaps(larger: Larger, candidates: int) -> tuple[int, int] | None:
    """The least and the largest gap to the runner-up that agree with what was drawn; None if no table does.

    They do within the exact 95 % interval of the share that was drawn (Clopper & Pearson 1934).
    """
    interval = binomtest(larger.right, larger.runs).proportion_ci(CONFIDENCE)
    ranges = {gap: chance_range(larger, candidates, gap) for gap in range(larger.largest)}
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


class Candidates(Document):
    """Candidates whose scores are counts / divisor (proportions if 0), with the sensitivity that is declared there."""

    sensitivity: float
    divisor: float = 1

    def choice(self, epsilon: float, sensitivity: float = 0, *, corrected: bool = False, **how: Any) -> Choice:
        """The mechanism, with the declared sensitivity, the true one, or another."""
        assumed = 1 / self.divisor if corrected else sensitivity or self.sensitivity

        def probabilities(counts: IntArray) -> FloatArray:
            scores = counts / (self.divisor or counts.sum())
            return select(scores, epsilon=epsilon, sensitivity=assumed, **how).probabilities

        return probabilities

    def probabilities(self, epsilon: float, *, times: int = 1, **how: Any) -> FloatArray:
        """Of each candidate, (k,), if all counts are so many times as large."""
        return self.choice(epsilon, **how)(times * self.table)

    def reliability(self, epsilon: float, **how: Any) -> float:
        """Probability of the right candidate."""
        return float(self.probabilities(epsilon, **how)[self.table.argmax()])

    def loss(self, epsilon: float, adjacency: str, candidates: int = 0) -> float:
        """Of the source's mechanism, over all tables of as many people, and of as many candidates unless told."""
        return largest_loss(self.people, candidates or len(self.counts), self.choice(epsilon), adjacency)

    def ours(self, kind: str, quote: Quote) -> Mapping[str, float | SingleRun]:
        """All people; scores; weights before they are divided by their sum; probabilities; or draws by them."""
        counts = self.groups.get(quote.data, self.counts)
        if kind == "people":
            return {kind: float(self.people)}
        if kind == "scores":
            return dict(counts / counts.sum())
        if kind == "weights":
            return dict(np.exp(quote.epsilon * counts / (2 * self.sensitivity)))
        chosen = dict(zip(counts.index, self.choice(quote.epsilon)(counts.to_numpy()).tolist(), strict=True))
        if kind == "probabilities":
            return chosen
        return {name: binomial_run(int(seen), (quote.runs, chosen[name])) for name, seen in quote.printed.items()}


class CommonDisease(Candidates):
    """The most common disease, and a larger table of which the source tells little."""

    larger: Any

    def check(self, table: TomlTable) -> None:
        """The larger table holds others, and was not always or never right; that it was right is a claim."""
        self.larger = larger = Larger(**self.larger)
        if larger.others <= 0:
            table.fail(f"must be less than all {larger.people} people, got {larger.largest}", "larger", "largest")
        if not 0 < larger.right < larger.runs:
            wanted = f"must be more than 0 and less than the {larger.runs} runs"
            table.fail(f"{wanted}, got {larger.right}", "larger", "right")
        self.claims.insert(0, (RIGHT, str(larger.right), larger.where))

    def facts(self) -> dict[str, Any]:
        """The right answer, what repeated use costs, and which larger tables agree."""
        once, k, name = self.choice(1.0), len(self.counts), self.commonest
        used_once = loss_at(self.table, once, REPLACE_ONE)
        used_twice = loss_at(self.table, lambda counts: np.outer(once(counts), once(counts)).ravel(), REPLACE_ONE)
        fewest = fewest_candidates(self.larger)
        short = [quote for quote in self.quotes["probabilities"] if quote.epsilon > 0 and quote.where == "table"]
        return {
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


class MaritalStatus(Candidates):
    """Scores that are a thousandth of a count, with a sensitivity that is declared as 1."""

    epsilon: float

    def facts(self) -> dict[str, Any]:
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
        groups = zip(self.n, self.choices, strict=True)
        return [largest_loss(n, 2, private, REPLACE_ONE) for n, private in groups]

    @property
    def signed(self) -> str:
        """How much more often the rare candidate is reported for the smaller group, in words."""
        return rounded(self.rare[0] - self.rare[1], sign=True)


class SockGroups(Candidates):
    """The smaller group and the larger one; of two candidates, the rare one first. Scores are proportions."""

    divisor = 0
    split: Any

    def names(self, kind: str) -> Sequence[str]:
        """Each group has a share of ε; all else is of candidates."""
        return list(self.groups if kind == "shares" else pd.DataFrame(self.groups).index)

    def check(self, table: TomlTable) -> None:
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
        claimed = [(epsilon or self.split["epsilon"]) * (own / sum(n) if split else 1) for own in n]
        by = [{"declared": self.sensitivity, "true": 1 / own, "unknown": 0.5}[delta] for own in n]
        choices = [self.choice(given, moved) for given, moved in zip(claimed, by, strict=True)]
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

    def ours(self, kind: str, quote: Quote) -> Mapping[str, float | SingleRun]:
        """Shares of ε, or what is chosen."""
        if kind == "shares":
            return dict(zip(self.groups, self.outcomes["source"].claimed, strict=True))
        return super().ours(kind, quote)

    def facts(self) -> dict[str, Any]:
        """The groups, the calibrations, and what disparity is left."""
        outcomes, (small, large), rare = self.outcomes, self.groups, str(self.counts.idxmin())
        source, (largest, peak, until) = outcomes["source"], self.left
        rates = [float(group[rare] / group.sum()) for group in self.groups.values()]
        printed = {quote.data: float(quote.printed.get(rare, "nan")) for quote in self.quotes["probabilities"]}
        there = printed.get(small, np.nan) - printed.get(large, np.nan)
        return {
            **outcomes,
            "small": small,
            "large": large,
            "rare": rare,
            "largest": rounded_up(largest),
            "peak": peak,
            "until": rounded_up(until),
            "most": rounded_up(max(source.loss)),
            "rates": rates,
            "text": self.outcome(self.split["text_epsilon"], delta="declared", split=True).rare,
            "right_epsilon": source.claimed[0] / source.n[0] / self.sensitivity,
            "disparity": self.disparity,
            "apart": lambda size: 1 / size - rates[1],
            "stars": [{"epsilon": self.split["epsilon"], "value": there}],
            "holds": {
                "ε of the figures per group": self.split["epsilon"] == self.split["text_epsilon"],
                "sensitivity of a proportion": self.sensitivity * max(source.n) <= 1,
                "who is reported Violent too often": source.rare[0] > max(rates[0], source.rare[1])
                and rates[0] < rates[1],
                "why": self.disparity(delta="declared") > 0,
            },
        }


class AdultAgeSex(Document):
    """People by category, who report by k-ary response; and the coins of the report behind the covid study."""

    coins: Any

    def check(self, table: TomlTable) -> None:
        """Reports are one a person; coins tell the truth more often than not."""
        for place, quote in enumerate(self.quotes["reports"]):
            if sum(map(int, quote.printed.values())) != self.people:
                table.fail(f"must sum to {self.people} people", "reports", place, "printed")
        if self.coins["first"] + (1 - self.coins["first"]) * self.coins["second"] <= 0.5:
            table.fail("the truth must be told more than half of the time", "coins", "first")
        table.mistakes.raise_if_any()
        self.coins = TwoCoin.truth_or_opposite(**self.coins)

    def channel(self, epsilon: float) -> KAry:
        """k-ary response over the categories."""
        return KAry(len(self.counts), epsilon)

    def errors(self, epsilon: float, runs: int = FIGURE_RUNS) -> list[dict[str, Any]]:
        """Of one run, as rows: error, value (expected, in closed form), low, high (estimated as the source does)."""
        channel, rng = self.channel(epsilon), np.random.default_rng(self.seed)
        closed = expected_errors(self.table, channel)
        bands = error_bands(self.table, channel, method=ITS_METHOD, runs=runs, rng=rng)
        rows = (("L1", closed.l1, *bands.l1), ("L2", closed.l2, *bands.l2))
        return [dict(zip(("error", "value", "low", "high"), row, strict=True)) for row in rows]

    def simulated(self, epsilon: float, *, runs: int) -> pd.DataFrame:
        """Every estimator on the same simulated reports, by method, in people.

        Mean L2 error; and of what the estimated counts sum to, the mean ("sum") and where 95 % of runs lie (low, high).
        """
        channel, rng, rows = self.channel(epsilon), np.random.default_rng(self.seed), {}
        shares = channel.simulate_counts(self.table, runs=runs, rng=rng) / self.people
        for method in METHODS:
            counts = self.people * shares_of(shares, channel, method)
            low, high = np.quantile(counts.sum(axis=1), [0.025, 0.975])
            error = np.linalg.norm(counts - self.table, axis=1).mean()
            rows[method] = {"error": error, "sum": counts.sum(axis=1).mean(), "low": low, "high": high}
        return pd.DataFrame(rows).T

    def estimators(self, epsilon: float) -> pd.DataFrame:
        """As simulated, but sums as shares of the people, and errors as shares of the unbiased estimate's."""
        found = self.simulated(epsilon, runs=FIGURE_RUNS)
        return found.div(self.people).assign(error=found["error"] / found["error"]["unbiased"])

    def standard_errors(self, epsilon: float, category: str) -> tuple[float, float]:
        """Of a category's estimated share: for these people, and for a population that they are a sample of."""
        shares, n = self.counts / self.people, self.people
        place, share = self.counts.index.get_loc(category), shares[category]
        given = variances(shares.to_numpy(), self.channel(epsilon), n)[place]
        return float(given**0.5), float((given + share * (1 - share) / n) ** 0.5)

    def ours(self, kind: str, quote: Quote) -> Mapping[str, float | SingleRun]:
        """The people, the errors of a run, and how many reports of each category one run gives, exactly."""
        if kind == "people":
            return {kind: float(self.people)}
        if kind == "errors":
            found = self.errors(quote.epsilon, RUNS)
            return {row["error"]: SingleRun(row["value"], (row["low"], row["high"])) for row in found}
        p, q = self.channel(quote.epsilon).truth, self.channel(quote.epsilon).lie[0]
        return {
            name: binomial_run(int(seen), (self.counts[name], p), (self.people - self.counts[name], q))
            for name, seen in quote.printed.items()
        }

    def facts(self) -> dict[str, Any]:
        """The errors that are expected, what estimates sum to, and what the coins tell and cost."""
        least, channel = min(quote.epsilon for quote in self.quotes["errors"]), self.channel(1.0)
        found, rarest = self.simulated(least, runs=RUNS), str(self.counts.idxmin())
        seen = self.quotes["reports"][0]
        numbers = np.array([int(seen.printed[name]) for name in self.counts.index])
        off = self.people * estimate(numbers, self.channel(seen.epsilon)).shares - self.table
        l1 = expected_errors(self.table, channel).l1
        # All methods are of the same runs.
        estimators = cache(self.estimators)
        # The true rate is `slope` times the rate of positive responses minus `shift`.
        truth, gap = float(self.coins.matrix[1, 1]), float(self.coins.gap[1])
        slope, shift = 1 / gap, float(self.coins.lie[1]) / gap
        return {
            "channel": channel,
            "l1_at_one": l1,
            "off": percent_1(l1 / self.people),
            "least": least,
            "rarest": rarest,
            "runs": RUNS,
            "figure_runs": FIGURE_RUNS,
            "sums": found.loc[ITS_METHOD],
            "errors": found["error"],
            "standard_errors": [100 * error for error in self.standard_errors(5.0, rarest)],
            "reports_off": (np.abs(off).sum(), np.linalg.norm(off)),
            "truth": truth,
            "right_percent": f"{100 * truth:.0f}\u00a0%",
            "slope": slope,
            "shift": shift,
            "log": "ln 3 = " if np.isclose(self.coins.epsilon, np.log(3)) else "",
            "times": np.exp(self.coins.epsilon),
            "single_runs": self.errors,
            "estimator": lambda epsilon, method: [dict(estimators(epsilon).loc[method])],
            "stars": [
                {**row, "epsilon": quote.epsilon, "value": float(quote.printed[row["error"]].replace(",", ""))}
                for quote in self.quotes["errors"]
                for row in self.errors(quote.epsilon)
                if row["error"] in quote.printed
            ],
            "holds": {
                "two coins: probability of the truth": bool(np.isclose(truth, 0.75)),
                "two coins: true rate, p the rate of positive responses": bool(np.allclose([slope, shift], [2, 0.5])),
                "two coins: ε": self.coins.epsilon == 0,
            },
        }


DOCUMENTS: dict[str, type[Document]] = {
    "adult-age-sex": AdultAgeSex,
    "common-disease": CommonDisease,
    "marital-status": MaritalStatus,
    "sock-groups": SockGroups,
}
