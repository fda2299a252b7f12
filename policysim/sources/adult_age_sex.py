"""k-ary response on two columns: how far one run is off, which estimates are proportions; and what two coins cost."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from envs.toml_reader import Table
from policies.local import METHODS, KAry, TwoCoin, error_bands, expected_errors
from policies.local.estimation import estimate, shares_of, variances
from policysim.question.words import percent_1
from policysim.sources.chances import SingleRun, report_run
from policysim.sources.engine import Document
from policysim.sources.printed import Quote

# The source's estimate: unbiased, then cut off at 0 and 1.
ITS_METHOD = "clipped"
# Simulated runs behind a band, in the table and in a figure.
RUNS, FIGURE_RUNS = 100_000, 20_000


class AdultAgeSex(Document):
    """People by category, and the coins of the report behind the covid study."""

    name = "adult-age-sex"

    def check(self, table: Table) -> None:
        """Reports depend on ε and are one a person; coins tell the truth more often than not."""
        for kind in ("reports", "errors"):
            for place, quote in enumerate(self.quotes[kind]):
                if not quote.epsilon > 0:
                    table.fail("must be > 0", kind, place, "epsilon")
        for place, quote in enumerate(self.quotes["reports"]):
            if not all(text.isdecimal() for text in quote.printed.values()):
                table.fail("must be whole numbers", "reports", place, "printed")
            elif sum(map(int, quote.printed.values())) != self.counts.n:
                table.fail(f"must sum to {self.counts.n} people", "reports", place, "printed")
        if self.coins.first + (1 - self.coins.first) * self.coins.second <= 0.5:
            table.fail("the truth must be told more than half of the time", "coins", "first")
        table.mistakes.raise_if_any()
        self.coins = TwoCoin.truth_or_opposite(self.coins.first, self.coins.second)

    def channel(self, epsilon: float) -> KAry:
        """k-ary response over the categories."""
        return KAry(len(self.counts.people), epsilon)

    def expected(self, epsilon: float, *, runs: int, seed: int) -> dict[str, SingleRun]:
        """The errors of one run, by name: expected in closed form; bands of runs estimated as the source does."""
        channel, rng = self.channel(epsilon), np.random.default_rng(seed)
        closed = expected_errors(self.counts.table, channel)
        bands = error_bands(self.counts.table, channel, method=ITS_METHOD, runs=runs, rng=rng)
        return {"L1": SingleRun(closed.l1, bands.l1), "L2": SingleRun(closed.l2, bands.l2)}

    def l1(self, epsilon: float, *, seed: int) -> SingleRun:
        """The L1 error of one run, as figures have it."""
        return self.expected(epsilon, runs=FIGURE_RUNS, seed=seed)["L1"]

    def simulated(self, epsilon: float, *, runs: int, seed: int) -> pd.DataFrame:
        """Every estimator on the same simulated reports, by method: mean L2 error; and mean, low and high of the sum.

        In people; between low and high what the estimated counts sum to lies in 95 % of runs.
        """
        channel, found = self.channel(epsilon), {}
        seen = channel.simulate_counts(self.counts.table, runs=runs, rng=np.random.default_rng(seed))
        for method in METHODS:
            people = self.counts.n * shares_of(seen / self.counts.n, channel, method)
            sums, errors = people.sum(axis=1), np.linalg.norm(people - self.counts.table, axis=1)
            found[method] = [errors.mean(), sums.mean(), *np.quantile(sums, [0.025, 0.975])]
        return pd.DataFrame.from_dict(found, orient="index", columns=["error", "sum", "low", "high"])

    def standard_errors(self, epsilon: float, category: str) -> tuple[float, float]:
        """Of a category's estimated share: for these people, and for a population that they are a sample of."""
        shares, place = self.counts.table / self.counts.n, list(self.counts.people).index(category)
        given, share = float(variances(shares, self.channel(epsilon), self.counts.n)[place]), float(shares[place])
        return given**0.5, (given + share * (1 - share) / self.counts.n) ** 0.5

    def ours(self, kind: str, quote: Quote, seed: int) -> Mapping[str, float | SingleRun]:
        """The people, the errors of a run, and how many reports of each category one run gives, exactly."""
        if kind == "people":
            return {kind: float(self.counts.n)}
        if kind == "errors":
            return self.expected(quote.epsilon, runs=RUNS, seed=seed)
        channel, people = self.channel(quote.epsilon), self.counts.people
        lie = float(channel.lie[0])
        return {
            name: report_run(people[name], channel.truth, self.counts.n - people[name], lie, int(text))
            for name, text in quote.printed.items()
        }

    def facts(self, seed: int) -> dict[str, Any]:
        """The errors that are expected, what estimates sum to, and what the coins tell and cost."""
        least, channel = min(quote.epsilon for quote in self.quotes["errors"]), self.channel(1.0)
        found, people = self.simulated(least, runs=RUNS, seed=seed), self.counts.people
        rarest, seen = min(people, key=people.__getitem__), self.quotes["reports"][0]
        numbers = np.array([int(seen.printed[name]) for name in people])
        off = self.counts.n * estimate(numbers, self.channel(seen.epsilon)).shares - self.counts.table
        l1 = expected_errors(self.counts.table, channel).l1
        # The true rate is `slope` times the rate of positive responses minus `shift`.
        truth, gap = float(self.coins.matrix[1, 1]), float(self.coins.gap[1])
        slope, shift = 1 / gap, float(self.coins.lie[1]) / gap
        return {
            "categories": channel.n_values,
            "truth": channel.truth,
            "lie": channel.lie[0],
            "l1_at_one": l1,
            "off": percent_1(l1 / self.counts.n),
            "least": least,
            "rarest": rarest,
            "runs": RUNS,
            "figure_runs": FIGURE_RUNS,
            "sums": found.loc[ITS_METHOD],
            "errors": found["error"],
            "standard_errors": [100 * error for error in self.standard_errors(5.0, rarest)],
            "reports_off": (np.abs(off).sum(), np.linalg.norm(off)),
            "honest": truth,
            "slope": slope,
            "shift": shift,
            "log": "ln 3 = " if np.isclose(self.coins.epsilon, np.log(3)) else "",
            "times": np.exp(self.coins.epsilon),
            "l1": partial(self.l1, seed=seed),
            "stars": [(q.epsilon, float(q.printed["L1"])) for q in self.quotes["errors"] if "L1" in q.printed],
            "holds": {
                "two coins: probability of the truth": bool(np.isclose(truth, 0.75)),
                "two coins: true rate, p the rate of positive responses": bool(np.allclose([slope, shift], [2, 0.5])),
                "two coins: ε": self.coins.epsilon == 0,
            },
        }
