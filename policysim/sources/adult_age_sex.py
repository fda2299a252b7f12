"""k-ary response on two columns: how far one run is off, which estimates are proportions; and what two coins cost."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import pandas as pd

from envs.toml_reader import Table
from policies.local import METHODS, KAry, TwoCoin, error_bands, expected_errors
from policies.local.estimation import estimate, shares_of, variances
from policysim.figures.described import grid
from policysim.sources.chances import SingleRun, report_run
from policysim.sources.document import Document
from policysim.sources.printed import Quote, read_counts, read_quotes

ERRORS = ("L1", "L2")
# The source's estimate: unbiased, then cut off at 0 and 1.
ITS_METHOD = "clipped"
METHOD_NAMES = {ITS_METHOD: "clipped (the source)", "maximum-likelihood": "maximum likelihood"}
EPSILONS = grid(0.05, 8, 25)
# Where estimates leave [0, 1].
SMALL_EPSILONS = grid(0.005, 0.5, 25)
# Simulated runs behind a band, in the table and in a figure.
RUNS, FIGURE_RUNS = 100_000, 20_000


class AdultAgeSex(Document):
    """People by category, and the coins of the report behind the covid study."""

    name = "adult-age-sex"

    def __init__(self, table: Table) -> None:
        """Read the constants."""
        super().__init__(table)
        self.counts = read_counts(table, "counts")
        self.coins = _read_coins(table.table("coins"))
        self.quotes = {
            "people": read_quotes(table, "people", {"": ["people"]}, epsilon=False),
            "errors": read_quotes(table, "errors", {"": ERRORS}),
            "reports": read_quotes(table, "reports", {"": list(self.counts.people)}),
        }
        for name in ("reports", "errors"):
            for place, quote in enumerate(self.quotes[name]):
                if not quote.epsilon > 0:
                    table.fail("must be > 0", name, place, "epsilon")
        for place, quote in enumerate(self.quotes["reports"]):
            if not all(text.isdecimal() for text in quote.printed.values()):
                table.fail("must be whole numbers", "reports", place, "printed")
            elif sum(map(int, quote.printed.values())) != self.counts.n:
                table.fail(f"must sum to {self.counts.n} people", "reports", place, "printed")

    def channel(self, epsilon: float) -> KAry:
        """k-ary response over the categories."""
        return KAry(len(self.counts.people), epsilon)

    def expected(self, epsilon: float, *, runs: int, seed: int) -> dict[str, SingleRun]:
        """The errors of one run, by name: expected in closed form; bands of runs estimated as the source does."""
        channel, rng = self.channel(epsilon), np.random.default_rng(seed)
        closed = expected_errors(self.counts.table, channel)
        bands = error_bands(self.counts.table, channel, method=ITS_METHOD, runs=runs, rng=rng)
        return {"L1": SingleRun(closed.l1, bands.l1), "L2": SingleRun(closed.l2, bands.l2)}

    def simulated(self, epsilon: float, *, runs: int, seed: int) -> pd.DataFrame:
        """Every estimator on the same simulated reports, by method, in people.

        Mean L2 error; mean, 2.5 % and 97.5 % quantile (sum, low, high) of what the estimated counts sum to.
        """
        channel, found = self.channel(epsilon), {}
        seen = channel.simulate_counts(self.counts.table, runs=runs, rng=np.random.default_rng(seed))
        for method in sorted(METHODS, key=lambda method: method != ITS_METHOD):
            people = self.counts.n * shares_of(seen / self.counts.n, channel, method)
            sums, errors = people.sum(axis=1), np.linalg.norm(people - self.counts.table, axis=1)
            found[method] = [errors.mean(), sums.mean(), *np.quantile(sums, [0.025, 0.975])]
        return pd.DataFrame.from_dict(found, orient="index", columns=["error", "sum", "low", "high"])

    def standard_errors(self, epsilon: float, category: str) -> tuple[float, float]:
        """Of a category's estimated share: for these people, and for a population that they are a sample of."""
        shares, place = self.counts.table / self.counts.n, list(self.counts.people).index(category)
        given, share = float(variances(shares, self.channel(epsilon), self.counts.n)[place]), float(shares[place])
        return given**0.5, (given + share * (1 - share) / self.counts.n) ** 0.5

    def ours(self, kind: str, quote: Quote, seed: int) -> Mapping[str, float] | Mapping[str, SingleRun]:
        """The people, the errors of a run, and how many reports of each category one run gives, exactly."""
        if kind == "people":
            return {"people": float(self.counts.n)}
        if kind == "errors":
            return self.expected(quote.epsilon, runs=RUNS, seed=seed)
        channel, people = self.channel(quote.epsilon), self.counts.people
        lie = float(channel.lie[0])
        return {
            name: report_run(people[name], channel.truth, self.counts.n - people[name], lie, int(text))
            for name, text in quote.printed.items()
        }

    def holds(self) -> dict[str, bool | None]:
        """Of each claim."""
        truth, slope, shift = self._coins
        return {
            "two coins: probability of the truth": bool(np.isclose(truth, 0.75)),
            "two coins: true rate, p the rate of positive responses": bool(np.isclose([slope, shift], [2, 0.5]).all()),
            "two coins: ε": self.coins.epsilon == 0,
        }

    def facts(self, seed: int) -> dict[str, object]:
        """The errors that are expected, what estimates sum to, and what the coins tell and cost."""
        least = min(quote.epsilon for quote in self.quotes["errors"])
        found, channel, n = self.simulated(least, runs=RUNS, seed=seed), self.channel(1.0), self.counts.n
        l1, rarest = expected_errors(self.counts.table, channel).l1, self._rarest
        seen = np.array([int(text) for text in self.quotes["reports"][0].printed.values()])
        off = n * estimate(seen, self.channel(self.quotes["reports"][0].epsilon)).shares - self.counts.table
        truth, slope, shift = self._coins
        log = "ln 3 = " if np.isclose(self.coins.epsilon, np.log(3)) else ""
        return {
            "categories": channel.n_values,
            "truth": channel.truth,
            "lie": channel.lie[0],
            "l1": l1,
            "off": l1 / n,
            "least": least,
            "rarest": rarest,
            "runs": RUNS,
            "figure_runs": FIGURE_RUNS,
            **dict(zip(("mean", "low", "high"), found.loc[ITS_METHOD, ["sum", "low", "high"]], strict=True)),
            "errors": found["error"],
            "standard_errors": self.standard_errors(5.0, rarest),
            "reports_off": (np.abs(off).sum(), np.linalg.norm(off)),
            "coins": {"truth": truth, "slope": slope, "shift": shift, "epsilon": self.coins.epsilon, "log": log},
            "times": np.exp(self.coins.epsilon),
        }

    def drawn(self, seed: int) -> dict[str, pd.DataFrame]:
        """Errors of single runs, of the estimators, of a population's sample, and the loss of coins."""
        names = ("of these people (the source's formula)", "of the population they are drawn from")
        sampled = [
            {"line": name, "epsilon": epsilon, "value": error}
            for epsilon in EPSILONS
            for name, error in zip(names, self.standard_errors(epsilon, self._rarest), strict=True)
        ]
        return {
            "errors-vs-epsilon": self._errors(seed),
            "estimators-vs-epsilon": self._estimators(seed),
            "standard-errors": pd.DataFrame(sampled),
            "two-coins": self._loss_of_coins(),
        }

    @property
    def _rarest(self) -> str:
        return min(self.counts.people, key=self.counts.people.__getitem__)

    @cached_property
    def _coins(self) -> tuple[float, float, float]:
        """The probability of the truth; the true rate is the first of the others times p minus the second."""
        gap, lie = float(self.coins.gap[1]), float(self.coins.lie[1])
        return float(self.coins.matrix[1, 1]), 1 / gap, lie / gap

    def _errors(self, seed: int) -> pd.DataFrame:
        """Expected errors over epsilon with the band of single runs, and the runs of the source."""
        points = [(epsilon, "expected, in closed form (unbiased)", name, "") for epsilon in EPSILONS for name in ERRORS]
        printed = [(quote.epsilon, item) for quote in self.quotes["errors"] for item in quote.printed.items()]
        points += [(epsilon, "as the source ran it", *item) for epsilon, item in printed]
        runs = {at: self.expected(at, runs=FIGURE_RUNS, seed=seed) for at, *_ in points}
        rows = []
        for epsilon, line, name, text in points:
            run = runs[epsilon][name]
            rows.append((name, line, epsilon, float(text.replace(",", "")) if text else run.expected, *run.band))
        return pd.DataFrame(rows, columns=["error", "line", "epsilon", "value", "low", "high"])

    def _estimators(self, seed: int) -> pd.DataFrame:
        """The estimators' errors relative to the unbiased one, and what the estimated counts sum to."""
        frames = []
        for epsilon in SMALL_EPSILONS:
            found = self.simulated(epsilon, runs=FIGURE_RUNS, seed=seed)
            relative = found["error"] / float(found["error"]["unbiased"])
            table = (found / self.counts.n).assign(line=found.index, epsilon=epsilon, error=relative)
            frames.append(table.replace({"line": METHOD_NAMES})[["line", "epsilon", "error", "sum", "low", "high"]])
        return pd.concat(frames, ignore_index=True)

    def _loss_of_coins(self) -> pd.DataFrame:
        """The loss over the probability of the truth."""
        truth = self._coins[0]
        # At 1 the loss is infinite.
        rows = [("exact loss", t, TwoCoin(2 * t - 1, 0.5).epsilon) for t in np.linspace(0.5, 0.98, 49).tolist()]
        rows += [("these coins", truth, self.coins.epsilon), ("as the source says", truth, 0.0)]
        return pd.DataFrame(rows, columns=["line", "truth", "value"])


def _read_coins(table: Table) -> TwoCoin:
    """The two biases, mistakes noted in the table."""
    first, second = (table.number(name, low=0.01, high=0.99) for name in ("first", "second"))
    table.close()
    if first + (1 - first) * second <= 0.5:
        table.fail("the truth must be told more than half of the time", "first")
        return TwoCoin()
    return TwoCoin.truth_or_opposite(first, second)
