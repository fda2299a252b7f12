"""How far off are counts from randomised response?

A notebook on randomised response takes the age (cut at the median) and the sex of 45,222 people of the Adult data set:
each person reports one of four categories, and reports are often a lie. From the reports it estimates how many people
are in each category. This lesson computes how far off such estimates are, and what better ones there are.

`python examples/source_documents/adult_age_sex.py` writes reports/adult-age-sex, in a minute.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd

from examples.reporting import (
    REPORTS,
    Figures,
    Row,
    Run,
    binomial_run,
    compare_claim,
    compare_number,
    compare_run,
    comparison_in_markdown,
    draw_lines,
    new_figure,
    write_report,
)
from policies.local import METHODS, KAry, TwoCoin, error_bands, estimate, expected_errors
from policies.local.estimation import shares_of, variances
from policysim.figures import set_epsilon_axis

# 1. The data: category = 2 · old + sex; and what the notebook prints.
COUNTS = {"young, sex 0": 8196, "young, sex 1": 14831, "old, sex 0": 6499, "old, sex 1": 15696}
TABLE = np.array(list(COUNTS.values()))
PEOPLE = int(TABLE.sum())
ERRORS = {  # of one run each, by ε: L1 and L2
    0.1: ("22066", "11180"),
    0.3: ("4524", "2720"),
    0.5: ("2061", "1230"),
    1: ("353", "230"),
    2: ("605", "312"),
    5: ("78", "49"),
}
REPORTS_AT_ONE = {"young, sex 0": 10389, "young, sex 1": 12224, "old, sex 0": 9786, "old, sex 1": 12823}
CLIPPED = "clipped"  # how the notebook estimates: unbiased, then cut off at 0 and 1
# The report behind the covid study: heads, the truth; tails, a second coin decides.
COINS = TwoCoin.truth_or_opposite(first=0.5, second=0.5)
SEED, RUNS, FIGURE_RUNS = 1, 100_000, 20_000


# 2. The computation. A channel is k-ary response: the truth with probability p, each other category with q.
def channel(epsilon: float) -> KAry:
    """Reports over the four categories."""
    return KAry(len(COUNTS), epsilon)


def errors(epsilon: float, runs: int) -> dict[str, Run]:
    """The expected L1 and L2 error in closed form, and the band of 95 % of simulated runs, in people."""
    closed, rng = expected_errors(TABLE, channel(epsilon)), np.random.default_rng(SEED)
    bands = error_bands(TABLE, channel(epsilon), method=CLIPPED, runs=runs, rng=rng)
    return {"L1": Run(closed.l1, *bands.l1), "L2": Run(closed.l2, *bands.l2)}


def estimators(epsilon: float, runs: int) -> pd.DataFrame:
    """Each way to estimate, on the same simulated reports, in people.

    Columns: error (mean L2), sum (what the estimated counts sum to, on average), low, high (in 95 % of runs).
    """
    reports = channel(epsilon).simulate_counts(TABLE, runs=runs, rng=np.random.default_rng(SEED))
    rows = {}
    for method in METHODS:
        counts = PEOPLE * shares_of(reports / PEOPLE, channel(epsilon), method)
        low, high = np.quantile(counts.sum(axis=1), [0.025, 0.975])
        error = np.linalg.norm(counts - TABLE, axis=1).mean()
        rows[method] = {"error": error, "sum": counts.sum(axis=1).mean(), "low": low, "high": high}
    return pd.DataFrame(rows).T


def standard_errors(epsilon: float, category: str) -> tuple[float, float]:
    """The standard error of a category's estimated share: of these people, and of a population that they stand for."""
    shares, place = TABLE / PEOPLE, list(COUNTS).index(category)
    of_these = variances(shares, channel(epsilon), PEOPLE)[place]
    of_sample = shares[place] * (1 - shares[place]) / PEOPLE
    return math.sqrt(of_these), math.sqrt(of_these + of_sample)


def errors_of_reports() -> tuple[float, float]:
    """L1 and L2 error of the estimate from the reports that the notebook prints at ε = 1."""
    seen = np.array(list(REPORTS_AT_ONE.values()))
    off = PEOPLE * estimate(seen, channel(1.0)).shares - TABLE
    return float(np.abs(off).sum()), float(np.linalg.norm(off))


# 3. The table: each figure of the notebook beside ours.
def compare() -> list[Row]:
    """All figures and claims."""
    rows = [compare_number("people, the sum of the counts", "data", "45,222", PEOPLE)]
    for epsilon, printed in ERRORS.items():
        for digits, (name, run) in zip(printed, errors(epsilon, RUNS).items(), strict=True):
            rows.append(compare_run(f"{name} error, ε = {epsilon:g}", "one run", digits, run))
    p, q = channel(1).truth, channel(1).lie[0]
    for name, seen in REPORTS_AT_ONE.items():
        run = binomial_run(seen, (COUNTS[name], p), (PEOPLE - COUNTS[name], q))
        rows.append(compare_run(f"reports of “{name}”, ε = 1", "private columns", str(seen), run))
    return [*rows, *compare_claims()]


def compare_claims() -> list[Row]:
    """What the notebook says, what the report behind the covid study says of two coins, and what is right."""
    sums = estimators(0.1, RUNS).loc[CLIPPED]
    # The true rate is `slope` times the rate of positive responses minus `shift`.
    truth, gap = float(COINS.matrix[1, 1]), float(COINS.gap[1])
    slope, shift = 1 / gap, float(COINS.lie[1]) / gap
    report = "report behind the covid study"
    return [
        compare_claim(
            "estimates clipped to [0, 1]",
            "comment",
            "a hack",
            "a hack",
            holds=not np.isclose(sums["sum"], PEOPLE),
            why=f"Clipped shares need not sum to 1. At ε = 0.1 the clipped counts sum to {sums['sum']:,.0f} on "
            f"average, in 95 % of runs to {sums['low']:,.0f} to {sums['high']:,.0f}, not {PEOPLE:,}. Project them onto "
            "the proportions, or maximise the likelihood.",
        ),
        compare_claim(
            "ε of the cut of age",
            "data: the median, not charged",
            "0",
            "∞, or 0 if the cut is public",
            holds=False,
            why="An exact median of private ages has no finite ε. Where one person's age decides it, its loss is "
            "infinite, whatever ε the reports have; and in the local model nobody has the ages to compute it from. "
            "Declare the cut public, or find it privately and charge that.",
        ),
        compare_claim(
            "two coins: probability of the truth", report, "3/4", f"{truth:g}", holds=math.isclose(truth, 3 / 4)
        ),
        compare_claim(
            "two coins: true rate, p the rate of positive responses",
            report,
            "2p − ½",
            f"{slope:g}p − {shift:g}",
            holds=math.isclose(slope, 2) and math.isclose(shift, 1 / 2),
        ),
        compare_claim(
            "two coins: ε",
            f"{report}: “0-differential privacy”",
            "0",
            f"ln {math.exp(COINS.epsilon):g} = {COINS.epsilon:.4f}",
            holds=COINS.epsilon == 0,
            why=f"A report is {math.exp(COINS.epsilon):g} times likelier for one answer. The truth is told with "
            f"probability {truth:g}: a guess between yes and no that was even is right {100 * truth:.0f}\u00a0% of the "
            "time after a report “yes”. ε = 0 would need a fair coin in place of the truth, and its reports say "
            "nothing about anybody.",
        ),
    ]


# 4. The figures.
def over_epsilon() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Errors of single runs over ε, with those of the notebook; and each way to estimate."""
    rows = []
    for epsilon in np.geomspace(0.05, 8, 25):
        three_digits = float(f"{epsilon:.3g}")
        for name, run in errors(three_digits, FIGURE_RUNS).items():
            line = "expected, in closed form (unbiased)"
            rows.append((line, three_digits, name, run.expected, run.low, run.high))
    for epsilon, printed in ERRORS.items():
        for digits, (name, run) in zip(printed, errors(epsilon, FIGURE_RUNS).items(), strict=True):
            rows.append(("as the source ran it", float(epsilon), name, float(digits), run.low, run.high))
    single_runs = pd.DataFrame(rows, columns=["line", "epsilon", "error", "value", "low", "high"])
    epsilons = [float(f"{epsilon:.3g}") for epsilon in np.geomspace(0.005, 0.5, 25)]
    tables = {epsilon: estimators(epsilon, FIGURE_RUNS) for epsilon in epsilons}
    rows = []
    for line, method in (
        ("clipped (the source)", CLIPPED),
        ("unbiased", "unbiased"),
        ("projected", "projected"),
        ("maximum likelihood", "maximum-likelihood"),
    ):
        for epsilon, table in tables.items():
            shares = table.loc[method] / PEOPLE
            error = table.loc[method, "error"] / table.loc["unbiased", "error"]
            rows.append((line, epsilon, error, shares["sum"], shares["low"], shares["high"]))
    return single_runs, pd.DataFrame(rows, columns=["line", "epsilon", "error", "sum", "low", "high"])


def draw() -> Figures:
    """Both figures with their numbers."""
    single_runs, ways = over_epsilon()
    runs, panels = new_figure("L1 error of one run", "L2 error of one run")
    for axes, name in zip(panels, ("L1", "L2"), strict=True):
        draw_lines(axes, single_runs[single_runs["error"] == name], "epsilon", stars="as the source ran it")
        set_epsilon_axis(axes, single_runs["epsilon"])
        axes.set(yscale="log", ylabel="people")
        axes.yaxis.set_major_formatter("{x:,g}")
    runs.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    estimates, panels = new_figure("Mean error, the unbiased one's being 1", "What the estimates sum to")
    draw_lines(panels[0], ways, "epsilon", "error")
    draw_lines(panels[1], ways.rename(columns={"sum": "value"}), "epsilon")
    panels[0].set(ylim=(0, 1.05), ylabel="mean L2 error / that of unbiased")
    panels[1].set(ylabel="sum of the estimated shares")
    for axes in panels:
        set_epsilon_axis(axes, ways["epsilon"])
    estimates.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    return {"errors-vs-epsilon": (runs, single_runs), "estimators-vs-epsilon": (estimates, ways)}


# 5. The report.
def readme(rows: list[Row]) -> str:
    """The findings in words, beside their numbers."""
    random = [row for row in rows if row["low"] is not None]
    inside = sum(row["agreement"] == "in the band" for row in random)
    expected = expected_errors(TABLE, channel(1.0)).l1
    off, ways = errors_of_reports(), estimators(0.1, RUNS)
    rarest = min(COUNTS, key=COUNTS.get)
    of_these, of_population = standard_errors(5.0, rarest)
    return f"""# How far off are counts from randomised response?

- The source's runs are what its mechanism gives: of {len(random)} random figures {inside} lie where 95 % of such runs
  do.
- At ε = 1 the estimated counts of {PEOPLE:,} people are off by {expected:,.0f} in all (expected L1,
  {100 * expected / PEOPLE:.1f} % of the people). The reports that it prints at ε = 1 are off by {off[0]:,.0f} (L1) and
  {off[1]:,.0f} (L2): they are of another run than its errors.
- Clipped estimates are not proportions: at ε = 0.1 they sum to {ways.low[CLIPPED]:,.0f} to {ways.high[CLIPPED]:,.0f}
  people in 95 % of runs. Their mean L2 error is {ways.error[CLIPPED]:,.0f} people, by projection
  {ways.error["projected"]:,.0f}, by maximum likelihood {ways.error["maximum-likelihood"]:,.0f}.
- Two costs are not counted: the median that cuts age comes from the private data, and two fair coins cost
  ε = ln {math.exp(COINS.epsilon):g} = {COINS.epsilon:.4f} an answer, not 0.
- The formula for the variance is about the people who reported. If they stand for a population, f(1 − f)/n comes on
  top: at ε = 5 the standard error of “{rarest}” is {100 * of_these:.3f} % of these people and
  {100 * of_population:.3f} % of a population.

## Each figure of the source beside ours

{comparison_in_markdown(rows)}

For a single run, “ours” is what to expect, and where 95 % of runs lie. Of twenty such figures one lies outside by
chance.

## Errors of single runs

![L1 and L2 error of the estimated counts, in people, over ε: expected, the band of 95 % of single runs (clipped, as the
source does), and the source's single runs.](figures/errors-vs-epsilon.svg)

## Estimates that are proportions

![Left: mean L2 error of each way to estimate, as a share of the unbiased one's, over ε. Right: what the estimated
shares sum to.](figures/estimators-vs-epsilon.svg)

## What is assumed

Public are the categories, the cut of age, how many people there are, and ε. Each report is made before anybody else
sees the values (the local model); neighbours are any two values of one person. At ε = 1 a person reports the true
category with probability {channel(1).truth:.4f}, each other one with {channel(1).lie[0]:.4f}. Expected errors are in
closed form, of the unbiased estimate; the people are given. Bands of errors come from {RUNS:,} simulated runs
({FIGURE_RUNS:,} in the figures). `python examples/source_documents/adult_age_sex.py` writes this report.
"""


def main(folder: Path = REPORTS / "adult-age-sex") -> None:
    """Write the report."""
    rows = compare()
    write_report(folder, readme(rows), rows, draw())


if __name__ == "__main__":
    main()
