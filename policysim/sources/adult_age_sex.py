"""k-ary response on two columns: how far one run is off, which estimates are proportions; and what two coins cost."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from envs.toml_reader import Table
from policies.local import METHODS, KAry, TwoCoin, error_bands, expected_errors
from policies.local.estimation import estimate, shares_of, variances
from policysim.question.formats import percent_1
from policysim.sources.chances import SingleRun, binomial_run
from policysim.sources.engine import Document
from policysim.sources.printed import Quote

# The source's estimate: unbiased, then cut off at 0 and 1.
ITS_METHOD = "clipped"
# Simulated runs behind a band, in the table and in a figure.
RUNS, FIGURE_RUNS = 100_000, 20_000


class AdultAgeSex(Document):
    """People by category, and the coins of the report behind the covid study."""

    name = "adult-age-sex"
    coins: Any

    def check(self, table: Table) -> None:
        """Reports are one a person; coins tell the truth more often than not."""
        for place, quote in enumerate(self.quotes["reports"]):
            if not all(text.isdecimal() for text in quote.printed.values()):
                table.fail("must be whole numbers", "reports", place, "printed")
            elif sum(map(int, quote.printed.values())) != self.table.sum():
                table.fail(f"must sum to {self.counts.sum()} people", "reports", place, "printed")
        if self.coins.first + (1 - self.coins.first) * self.coins.second <= 0.5:
            table.fail("the truth must be told more than half of the time", "coins", "first")
        table.mistakes.raise_if_any()
        self.coins = TwoCoin.truth_or_opposite(self.coins.first, self.coins.second)

    def channel(self, epsilon: float) -> KAry:
        """k-ary response over the categories."""
        return KAry(len(self.counts), epsilon)

    def expected(self, epsilon: float, *, runs: int, seed: int) -> dict[str, SingleRun]:
        """The errors of one run, by name: expected in closed form; bands of runs estimated as the source does."""
        channel, rng = self.channel(epsilon), np.random.default_rng(seed)
        closed = expected_errors(self.table, channel)
        bands = error_bands(self.table, channel, method=ITS_METHOD, runs=runs, rng=rng)
        return {"L1": SingleRun(closed.l1, bands.l1), "L2": SingleRun(closed.l2, bands.l2)}

    def simulated(self, epsilon: float, *, runs: int, seed: int) -> pd.DataFrame:
        """Every estimator on the same simulated reports, by method, in people.

        Mean L2 error; and of what the estimated counts sum to, the mean ("sum") and where 95 % of runs lie (low, high).
        """
        channel, rng, rows = self.channel(epsilon), np.random.default_rng(seed), {}
        shares = channel.simulate_counts(self.table, runs=runs, rng=rng) / self.table.sum()
        for method in METHODS:
            people = self.table.sum() * shares_of(shares, channel, method)
            low, high = np.quantile(people.sum(axis=1), [0.025, 0.975])
            error = np.linalg.norm(people - self.table, axis=1).mean()
            rows[method] = {"error": error, "sum": people.sum(axis=1).mean(), "low": low, "high": high}
        return pd.DataFrame(rows).T

    def errors(self, epsilon: float, seed: int) -> list[dict[str, Any]]:
        """Those of one run in a figure, as rows: error, value (expected), low, high."""
        runs = self.expected(epsilon, runs=FIGURE_RUNS, seed=seed)
        return [
            {"error": name, "value": run.expected, "low": run.band[0], "high": run.band[1]}
            for name, run in runs.items()
        ]

    def estimators(self, epsilon: float, seed: int) -> pd.DataFrame:
        """As simulated, but sums as shares of the people, and errors as shares of the unbiased estimate's."""
        found = self.simulated(epsilon, runs=FIGURE_RUNS, seed=seed)
        return found.div(self.table.sum()).assign(error=found["error"] / found["error"]["unbiased"])

    def standard_errors(self, epsilon: float, category: str) -> tuple[float, float]:
        """Of a category's estimated share: for these people, and for a population that they are a sample of."""
        shares, n = self.counts / self.counts.sum(), int(self.counts.sum())
        place, share = self.counts.index.get_loc(category), shares[category]
        given = variances(shares.to_numpy(), self.channel(epsilon), n)[place]
        return float(given**0.5), float((given + share * (1 - share) / n) ** 0.5)

    def ours(self, kind: str, quote: Quote, seed: int) -> Mapping[str, float | SingleRun]:
        """The people, the errors of a run, and how many reports of each category one run gives, exactly."""
        if kind == "people":
            return {kind: float(self.counts.sum())}
        if kind == "errors":
            return self.expected(quote.epsilon, runs=RUNS, seed=seed)
        n, p, q = int(self.counts.sum()), self.channel(quote.epsilon).truth, self.channel(quote.epsilon).lie[0]
        return {
            name: binomial_run(int(seen), (self.counts[name], p), (n - self.counts[name], q))
            for name, seen in quote.printed.items()
        }

    def facts(self, seed: int) -> dict[str, Any]:
        """The errors that are expected, what estimates sum to, and what the coins tell and cost."""
        least, channel = min(quote.epsilon for quote in self.quotes["errors"]), self.channel(1.0)
        found, n = self.simulated(least, runs=RUNS, seed=seed), self.counts.sum()
        rarest, seen = str(self.counts.idxmin()), self.quotes["reports"][0]
        numbers = np.array([int(seen.printed[name]) for name in self.counts.index])
        off = n * estimate(numbers, self.channel(seen.epsilon)).shares - self.table
        l1 = expected_errors(self.table, channel).l1
        # All methods are of the same runs.
        estimators = cache(lambda epsilon: self.estimators(epsilon, seed))
        # The true rate is `slope` times the rate of positive responses minus `shift`.
        truth, gap = float(self.coins.matrix[1, 1]), float(self.coins.gap[1])
        slope, shift = 1 / gap, float(self.coins.lie[1]) / gap
        return {
            "people": n,
            "categories": channel.n_values,
            "truth": channel.truth,
            "lie": channel.lie[0],
            "l1_at_one": l1,
            "off": percent_1(l1 / n),
            "least": least,
            "rarest": rarest,
            "runs": RUNS,
            "figure_runs": FIGURE_RUNS,
            "sums": found.loc[ITS_METHOD],
            "errors": found["error"],
            "standard_errors": [100 * error for error in self.standard_errors(5.0, rarest)],
            "reports_off": (np.abs(off).sum(), np.linalg.norm(off)),
            "honest": truth,
            "right_percent": f"{100 * truth:.0f}\u00a0%",
            "slope": slope,
            "shift": shift,
            "log": "ln 3 = " if np.isclose(self.coins.epsilon, np.log(3)) else "",
            "times": np.exp(self.coins.epsilon),
            "single_runs": lambda epsilon: self.errors(epsilon, seed),
            "estimator": lambda epsilon, method: [dict(estimators(epsilon).loc[method])],
            "stars": [
                {**row, "epsilon": quote.epsilon, "value": float(quote.printed[row["error"]].replace(",", ""))}
                for quote in self.quotes["errors"]
                for row in self.errors(quote.epsilon, seed)
                if row["error"] in quote.printed
            ],
            "holds": {
                "two coins: probability of the truth": bool(np.isclose(truth, 0.75)),
                "two coins: true rate, p the rate of positive responses": bool(np.allclose([slope, shift], [2, 0.5])),
                "two coins: ε": self.coins.epsilon == 0,
            },
        }
