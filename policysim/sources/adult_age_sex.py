"""k-ary response on two columns: how far one run is off, and which estimates are proportions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from envs.toml_reader import Table
from policies.local import METHODS, KAry, TwoCoin, error_bands, estimate, expected_errors
from policies.local.estimation import shares_of, variances
from policysim.figures.card import Curves, curve
from policysim.figures.described import EPSILON, Described, Lines, grid
from policysim.question.answer import Headline
from policysim.sources.chances import SingleRun, report_run
from policysim.sources.engine import OUTSIDE, Judgement, Row, Section, SourceFindings, claim_rows, figure_rows, number
from policysim.sources.printed import Claim, PrintedCounts, Quote, read_claims, read_counts, read_quotes
from policysim.sources.two_coins import COIN_SUBJECTS, coin_drawing, coin_judgements, read_coins

CLIP, CUT = "estimates clipped to [0, 1]", "ε of the cut of age"
ERRORS = ("L1", "L2")
ERRORS_NAME, ESTIMATORS, SAMPLED = "errors-vs-epsilon", "estimators-vs-epsilon", "standard-errors"
# The source's estimate: unbiased, then cut off at 0 and 1.
ITS_METHOD = "clipped"
METHOD_NAMES = {ITS_METHOD: "clipped (the source)", "maximum-likelihood": "maximum likelihood"}
EXPECTED, PRINTED = "expected, in closed form (unbiased)", "as the source ran it"
EPSILONS = grid(0.05, 8, 25)
# Where estimates leave [0, 1].
SMALL_EPSILONS = grid(0.005, 0.5, 25)
# Simulated runs behind a band, in the table and in a figure.
RUNS, FIGURE_RUNS = 100_000, 20_000


@dataclass(frozen=True)
class AdultAgeSex:
    """What the study file holds."""

    counts: PrintedCounts  # people by category
    coins: TwoCoin  # of the report behind the covid study
    people: tuple[Quote, ...]  # the source's figures
    errors: tuple[Quote, ...]
    reports: tuple[Quote, ...]
    claims: tuple[Claim, ...]  # what it says

    @classmethod
    def read(cls, table: Table) -> AdultAgeSex:
        """The constants, mistakes noted in the table."""
        counts = read_counts(table, "counts")
        reports, errors = (
            read_quotes(table, "reports", {"": list(counts.people)}),
            read_quotes(table, "errors", {"": ERRORS}),
        )
        for name, quotes in (("reports", reports), ("errors", errors)):
            for place, quote in enumerate(quotes):
                if not quote.epsilon > 0:
                    table.fail("must be > 0", name, place, "epsilon")
        for place, quote in enumerate(reports):
            if not all(text.isdecimal() for text in quote.printed.values()):
                table.fail("must be whole numbers", "reports", place, "printed")
            elif sum(map(int, quote.printed.values())) != counts.n:
                table.fail(f"must sum to {counts.n} people", "reports", place, "printed")
        return cls(
            counts=counts,
            coins=read_coins(table.table("coins")),
            people=read_quotes(table, "people", {"": ["people"]}, epsilon=False),
            errors=errors,
            reports=reports,
            claims=read_claims(table, (CLIP, CUT, *COIN_SUBJECTS)),
        )

    @property
    def rarest(self) -> str:
        """The category of the fewest people."""
        return min(self.counts.people, key=self.counts.people.__getitem__)

    def channel(self, epsilon: float) -> KAry:
        """k-ary response over the categories."""
        return KAry(len(self.counts.people), epsilon)

    def expected(self, epsilon: float, *, runs: int, seed: int) -> dict[str, SingleRun]:
        """The errors of one run, by name: expected in closed form; bands of runs estimated as the source does."""
        channel, rng = self.channel(epsilon), np.random.default_rng(seed)
        closed = expected_errors(self.counts.table, channel)
        bands = error_bands(self.counts.table, channel, method=ITS_METHOD, runs=runs, rng=rng)
        return {"L1": SingleRun(closed.l1, bands.l1), "L2": SingleRun(closed.l2, bands.l2)}

    def reported(self, quote: Quote) -> dict[str, SingleRun]:
        """How many reports of each category one run gives, exactly."""
        channel, people = self.channel(quote.epsilon), self.counts.people
        lie = float(channel.lie[0])
        return {
            name: report_run(people[name], channel.truth, self.counts.n - people[name], lie, int(text))
            for name, text in quote.printed.items()
        }

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

    def findings(self, seed: int) -> SourceFindings:
        """All that the page shows; the bands are simulated with the seed."""
        least = min((quote.epsilon for quote in self.errors), default=0.1)
        estimators = self.simulated(least, runs=RUNS, seed=seed)
        rows = (
            *figure_rows(self.people, lambda _: {"people": float(self.counts.n)}, "{name}, the sum of the counts"),
            *figure_rows(
                self.errors, lambda q: self.expected(q.epsilon, runs=RUNS, seed=seed), "{name} error, ε = {epsilon}"
            ),
            *figure_rows(self.reports, self.reported, "reports of “{name}”, ε = {epsilon}"),
            *claim_rows(self.claims, self._judgements(estimators, least) | coin_judgements(self.coins)),
        )
        channel = self.channel(1.0)
        given, population = (f"{100 * error:.3f} %" for error in self.standard_errors(5.0, self.rarest))
        return SourceFindings(
            lead=self._lead(rows, estimators, least),
            rows=rows,
            headline=self._headline(rows),
            card=self._card(),
            sections=(
                Section(
                    "Errors of single runs",
                    (
                        f"Each person reports one of {channel.n_values} categories: at ε = 1 the true one with "
                        f"probability {channel.truth:.4f}, each other one with {channel.lie[0]:.4f}. A single run can "
                        "be far better or worse than what is expected: the band spans a factor of about six.",
                    ),
                    drawing=self._errors_drawing(seed),
                ),
                *(self._estimates(quote) for quote in self.reports),
                Section("Estimates that are proportions", drawing=self._estimators_drawing(seed)),
                Section(
                    "Of these people, or of a population?",
                    (
                        "The formula for the variance is about the people who reported. If they stand for a "
                        f"population, f(1 − f)/n comes on top: at ε = 5 the standard error of “{self.rarest}” is "
                        f"{given} of these people and {population} of a population.",
                    ),
                    drawing=self._sampled_drawing(),
                ),
                Section("Two coins", drawing=coin_drawing(self.coins)),
            ),
            assumptions=(
                "Public: the categories, the cut of age, how many people there are, and ε. Each report is made before "
                "anybody else sees the values (the local model); neighbours are any two values of one person.",
                "Expected errors are in closed form, of the unbiased estimate: L1 is √(2/π) times the sum of the "
                "standard deviations, L2 the root of the mean square. The randomness is the mechanism's; the people "
                "are given.",
                f"Bands of errors: {RUNS:,} simulated runs ({FIGURE_RUNS:,} in the figures), estimated and clipped as "
                "the source does. Bands and chances of reports are exact.",
            ),
        )

    def _judgements(self, estimators: pd.DataFrame, least: float) -> dict[str, Judgement]:
        mean, low, high = estimators.loc[ITS_METHOD, ["sum", "low", "high"]]
        return {
            CLIP: Judgement(
                "a hack",
                True,
                "Clipped shares need not sum to 1.",
                f"At ε = {least:g} the clipped counts sum to {mean:,.0f} on average, in 95 % of runs to {low:,.0f} to "
                f"{high:,.0f}, not {self.counts.n:,}. Project them onto the proportions, or maximise the likelihood.",
                ESTIMATORS,
            ),
            CUT: Judgement(
                "∞, or 0 if the cut is public",
                False,
                "An exact median of private ages has no finite ε.",
                "Where one person's age decides it, its loss is infinite, whatever ε the reports have; and in the "
                "local model nobody has the ages to compute it from. Declare the cut public, or find it privately and "
                "charge that.",
            ),
        }

    def _lead(self, rows: tuple[Row, ...], estimators: pd.DataFrame, least: float) -> tuple[str, ...]:
        runs = [(row, row.run) for row in rows if row.run is not None]
        outside = "; ".join(
            f"{row.what}: {int(row.printed.replace(',', '')):,} (band {number(run.band[0])} to {number(run.band[1])})"
            for row, run in runs
            if row.verdict == OUTSIDE
        )
        inside = sum(row.verdict != OUTSIDE for row, _ in runs)
        l1 = expected_errors(self.counts.table, self.channel(1.0)).l1
        low, high = estimators.loc[ITS_METHOD, ["low", "high"]]
        errors = estimators["error"].map(number)
        return (
            f"The source's runs are what its mechanism gives: of {len(runs)} random figures {inside} lie where 95 % of "
            "such runs do" + (f". Just outside: {outside}." if outside else "."),
            f"At ε = 1 the estimated counts of {self.counts.n:,} people are off by {l1:,.0f} in all (expected L1, "
            f"{100 * l1 / self.counts.n:.1f} % of the people).",
            f"Clipped estimates are not proportions: at ε = {least:g} they sum to {low:,.0f} to {high:,.0f} people in "
            f"95 % of runs. Their mean L2 error is {errors[ITS_METHOD]} people, by projection {errors['projected']}, "
            f"by maximum likelihood {errors['maximum-likelihood']}.",
            "Two costs are not counted: the median that cuts age comes from the private data, and two fair coins cost "
            f"ε = ln 3 = {self.coins.epsilon:.4f} an answer, not 0.",
        )

    def _headline(self, rows: tuple[Row, ...]) -> Headline:
        runs = [row.verdict for row in rows if row.run is not None]
        off = self._off(1.0)
        return Headline(
            f"{len(runs) - runs.count(OUTSIDE)} of the source's {len(runs)} random figures lie within the 95\u00a0% "
            "band of single runs",
            f"{100 * off:.1f}\u00a0%",
            f"of {self.counts.n:,} people, by which the estimated counts are off in all at ε = 1 (expected L1)",
        )

    def _off(self, epsilon: float) -> float:
        """The expected L1 error, as a share of the people."""
        return float(expected_errors(self.counts.table, self.channel(epsilon)).l1 / self.counts.n)

    def _card(self) -> Curves:
        printed = [
            (quote.epsilon, float(quote.printed["L1"].replace(",", "")) / self.counts.n)
            for quote in self.errors
            if "L1" in quote.printed
        ]
        lines = {"expected": curve(self._off, EPSILONS), **({"the source's runs": printed} if printed else {})}
        return Curves(
            lines,
            x="ε (log scale)",
            y="error of the counts, as a share",
            log="xy",
            dots=frozenset({"the source's runs"}),
        )

    def _estimates(self, quote: Quote) -> Section:
        """The source's reports of one run, and what each estimator makes of them."""
        channel, n = self.channel(quote.epsilon), self.counts.n
        seen = np.array([int(quote.printed[name]) for name in self.counts.people])
        found = estimate(seen, channel)
        unbiased, errors, ends = n * found.shares, n * found.standard_errors, n * found.interval
        others = [n * estimate(seen, channel, method=method).shares for method in ("projected", "maximum-likelihood")]
        printed = next((dict(q.printed) for q in self.errors if q.epsilon == quote.epsilon), {})
        beside = " and ".join(f"{printed[name]} ({name})" for name in ERRORS if name in printed)
        off = unbiased - self.counts.table
        text = f"Their errors are {np.abs(off).sum():,.0f} (L1) and {np.linalg.norm(off):,.0f} (L2)" + (
            f"; the source's errors at this ε, {beside}, are those of another run." if beside else "."
        )
        if np.allclose(others, unbiased):
            text += " All estimates are proportions already, so the estimators agree."
        headings = ("category", "true", "reports", "estimate ± standard error", "95 % interval")
        cells = tuple(
            (
                name,
                f"{count:,}",
                f"{seen[i]:,}",
                f"{unbiased[i]:,.0f} ± {errors[i]:,.0f}",
                f"{ends[i, 0]:,.0f} to {ends[i, 1]:,.0f}",
                *(f"{other[i]:,.0f}" for other in others),
            )
            for i, (name, count) in enumerate(self.counts.people.items())
        )
        title = f"What its reports at ε = {quote.epsilon:g} say"
        return Section(title, (text,), (*headings, "projected", "maximum likelihood"), cells)

    def _errors_drawing(self, seed: int) -> Described:
        """Expected errors over epsilon with the band of single runs, and the runs of the source."""
        points = [(epsilon, EXPECTED, name, "") for epsilon in EPSILONS for name in ERRORS]
        points += [(quote.epsilon, PRINTED, *item) for quote in self.errors for item in quote.printed.items()]
        runs = {at: self.expected(at, runs=FIGURE_RUNS, seed=seed) for at, *_ in points}
        rows = []
        for epsilon, line, name, text in points:
            run = runs[epsilon][name]
            value, (low, high) = float(text.replace(",", "")) if text else run.expected, run.band
            rows.append({"error": name, "line": line, "epsilon": epsilon, "value": value, "low": low, "high": high})
        table = pd.DataFrame(rows)
        description = (
            "L1 and L2 error of the estimated counts, in people, against ε, both on log scales: expected errors, the "
            "band of 95 % of single runs, and the source's single runs; those outside the band are marked."
        )
        outside = table[(table["value"] < table["low"]) | (table["value"] > table["high"])]
        words = {error: outside.loc[outside["error"] == error, ["epsilon", "value"]] for error in ERRORS}
        band, y = "95 % of single runs (clipped, as there)", "people (log scale)"
        panel = partial(Lines, x_label=EPSILON, y_label=y, stars=(PRINTED,), log="xy", band=band, first=1)
        panels = tuple(
            panel(
                f"{error} error of one run",
                only={"error": error},
                notes=tuple((x, y, "just outside") for x, y in words[error].itertuples(index=False)),
            )
            for error in ERRORS
        )
        return Described(ERRORS_NAME, description, table, panels, height=4.6)

    def _estimators_drawing(self, seed: int) -> Described:
        """The estimators' errors relative to the unbiased one, and what the estimated counts sum to."""
        frames = []
        for epsilon in SMALL_EPSILONS:
            found = self.simulated(epsilon, runs=FIGURE_RUNS, seed=seed)
            relative = found["error"] / float(found["error"]["unbiased"])
            table = (found / self.counts.n).assign(line=found.index, epsilon=epsilon, error=relative)
            frames.append(table.replace({"line": METHOD_NAMES})[["line", "epsilon", "error", "sum", "low", "high"]])
        description = (
            "Left: mean L2 error of each estimator, as a share of the unbiased one's, against ε. Right: what the "
            "estimated shares sum to, the clipped ones with a band of 95 % of runs; all others sum to 1."
        )
        title, y = "Mean error, the unbiased one's being 1", "mean L2 error / that of unbiased"
        panels = (
            Lines(title, EPSILON, y, y="error", bands=False, limits=(0, 1.05)),
            Lines("What the estimates sum to", EPSILON, "sum of the estimated shares", y="sum"),
        )
        return Described(ESTIMATORS, description, pd.concat(frames, ignore_index=True), panels)

    def _sampled_drawing(self) -> Described:
        """Standard errors for these people and for a population, over epsilon."""
        names = ("of these people (the source's formula)", "of the population they are drawn from")
        rows = [
            {"line": name, "epsilon": epsilon, "value": error}
            for epsilon in EPSILONS
            for name, error in zip(names, self.standard_errors(epsilon, self.rarest), strict=True)
        ]
        description = (
            f"Standard error of the estimated share of “{self.rarest}”, against ε, both on log scales. The mechanism's "
            "part vanishes as ε grows; that of sampling does not."
        )
        panel = Lines("Standard error of one share", EPSILON, "standard error (log scale)", log="xy")
        return Described(SAMPLED, description, pd.DataFrame(rows), (panel,), height=3.8)
