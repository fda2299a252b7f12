"""k-ary response on two columns: how far one run is off, and which estimates are proportions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from envs.toml_reader import Table
from policies.arrays import FloatArray, IntArray
from policies.local import METHODS, ErrorBands, KAry, TwoCoin, error_bands
from policies.local.estimation import shares_of, variances
from policysim.sources.reading import Claim, Quote, read_claims, read_counts, read_quotes
from policysim.sources.single_runs import SingleRun, report_run
from policysim.sources.two_coins import LOSS, RATE, TRUTH, read_coins

CLIP, CUT = "estimates clipped to [0, 1]", "ε of the cut of age"
SUBJECTS = (CLIP, CUT, TRUTH, RATE, LOSS)
ERRORS = ("L1", "L2")
# The source's estimate: unbiased, then cut off at 0 and 1.
ITS_METHOD = "clipped"


@dataclass(frozen=True)
class Constants:
    """What the study file holds.

    Attributes
    ----------
    counts : mapping
        People by category.
    coins : TwoCoin
        Those of the report behind the covid study.
    people, errors, reports : tuple of Quote
        The source's figures.
    claims : tuple of Claim
        What it says.
    """

    counts: Mapping[str, int]
    coins: TwoCoin
    people: tuple[Quote, ...]
    errors: tuple[Quote, ...]
    reports: tuple[Quote, ...]
    claims: tuple[Claim, ...]

    @property
    def table(self) -> IntArray:
        """(k,) counts."""
        return np.array(list(self.counts.values()))

    def channel(self, epsilon: float) -> KAry:
        """k-ary response over the categories."""
        return KAry(len(self.counts), epsilon)


def read(table: Table) -> Constants:
    """The constants, mistakes noted in the table."""
    counts = read_counts(table, "counts")
    reports = read_quotes(table, "reports", {"": list(counts)}, runs=False)
    errors = read_quotes(table, "errors", {"": ERRORS})
    for name, quotes in (("reports", reports), ("errors", errors)):
        for place, quote in enumerate(quotes):
            if not quote.epsilon > 0:
                table.fail("must be > 0", name, place, "epsilon")
    for place, quote in enumerate(reports):
        if not all(text.isdecimal() for text in quote.printed.values()):
            table.fail("must be whole numbers", "reports", place, "printed")
        elif sum(map(int, quote.printed.values())) != sum(counts.values()):
            table.fail(f"must sum to {sum(counts.values())} people", "reports", place, "printed")
    return Constants(
        counts=counts,
        coins=read_coins(table.table("coins")),
        people=read_quotes(table, "people", {"": ["people"]}, epsilon=False),
        errors=errors,
        reports=reports,
        claims=read_claims(table, SUBJECTS),
    )


def bands(constants: Constants, epsilon: float, *, runs: int, seed: int) -> ErrorBands:
    """Where 95 % of single runs lie, estimated as the source does."""
    rng = np.random.default_rng(seed)
    return error_bands(constants.table, constants.channel(epsilon), method=ITS_METHOD, runs=runs, rng=rng)


def expected_reports(constants: Constants, epsilon: float, category: str, seen: int) -> SingleRun:
    """How many reports of a category one run gives, exactly."""
    channel, own = constants.channel(epsilon), constants.counts[category]
    others = int(constants.table.sum()) - own
    return report_run(own, channel.truth, others, float(channel.lie[0]), seen)


@dataclass(frozen=True)
class Simulated:
    """What an estimator does in many runs.

    Attributes
    ----------
    method : str
        One of `policies.local.METHODS`.
    error : float
        Mean L2 error, in people.
    total : tuple of float
        Mean, 2.5 % and 97.5 % quantile of the sum of the estimated counts, in people.
    """

    method: str
    error: float
    total: tuple[float, float, float]


def simulated(constants: Constants, epsilon: float, *, runs: int, seed: int) -> list[Simulated]:
    """Every estimator, on the same simulated reports."""
    true, channel = constants.table, constants.channel(epsilon)
    n = int(true.sum())
    seen = channel.simulate_counts(true, runs=runs, rng=np.random.default_rng(seed))
    result = []
    for method in METHODS:
        people: FloatArray = n * shares_of(seen / n, channel, method)
        sums = people.sum(axis=1)
        low, high = np.quantile(sums, [0.025, 0.975])
        error = float(np.linalg.norm(people - true, axis=1).mean())
        result.append(Simulated(method, error, (float(sums.mean()), float(low), float(high))))
    return result


def standard_errors(constants: Constants, epsilon: float, category: str) -> tuple[float, float]:
    """Of a category's estimated share: for these people, and for a population that they are a sample of."""
    n = int(constants.table.sum())
    shares = constants.table / n
    place = list(constants.counts).index(category)
    given = float(variances(shares, constants.channel(epsilon), n)[place])
    share = float(shares[place])
    return given**0.5, (given + share * (1 - share) / n) ** 0.5
