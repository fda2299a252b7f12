"""Which disease is the most common, answered privately?

A tutorial on the exponential mechanism chooses the most common of four diseases among 65 people, and then the largest
industry among 37,080 people. This lesson sets each of its figures beside ours, and asks what its 949 right answers of
1,000 say about the table that it does not print.

`python examples/source_documents/common_disease.py` writes reports/common-disease.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import binomtest

import policysim as ps
from examples.reporting import (
    REPORTS,
    Figures,
    Row,
    compare_claim,
    compare_number,
    comparison_in_markdown,
    draw_lines,
    new_figure,
    write_report,
)
from policysim.figures import set_epsilon_axis

# 1. The data, and what the tutorial prints of it.
COUNTS = {"Diabetes": 24, "Hepatitis": 8, "Influenza": 28, "HIV": 5}
TABLE = np.array(list(COUNTS.values()))
PEOPLE, BEST = int(TABLE.sum()), int(TABLE.argmax())
PROBABILITIES = (
    (0, "table", (".25", ".25", ".25", ".25")),
    (0.1, "table", (".32", ".15", ".40", ".13")),
    (1, "table", (".12", "4e-5", ".88", "8.9e-6")),
    (0.1, "in full", ("0.32706751", "0.14696091", "0.39948116", "0.12649042")),
)
WEIGHTS = ("3.320116922736548", "1.4918246976412703", "4.055199966844675", "1.2840254166877414")
WEIGHTS_EPSILON = 0.1


class Larger(NamedTuple):
    """All that the tutorial says of its larger table."""

    people: int = 37080
    largest: int = 682  # people in the largest industry
    epsilon: float = 0.1
    runs: int = 1000
    right: int = 949  # draws that were the largest industry


# 2. The computation: first of the small table, then of the larger one.
def probabilities(epsilon: float, counts: np.ndarray = TABLE) -> np.ndarray:
    """P(each candidate): the score is a count, which one person moves by at most 1."""
    return ps.select(counts, epsilon=epsilon, sensitivity=1.0).probabilities


def neighbours(counts: np.ndarray) -> list[np.ndarray]:
    """The tables in which one person has another value."""
    one = np.eye(len(counts), dtype=int)
    taken, values = np.flatnonzero(counts), range(len(counts))
    return [counts - one[i] + one[j] for i in taken for j in values if j != i]


def loss_of_table(epsilon: float, uses: int) -> float:
    """The exact privacy loss of this table against its neighbours, if the mechanism is used once or more."""

    def answers(counts: np.ndarray) -> np.ndarray:
        chances = np.ones(1)
        for _ in range(uses):
            chances = np.outer(chances, probabilities(epsilon, counts)).ravel()
        return chances

    return max(float(np.abs(np.log(answers(other) / answers(TABLE))).max()) for other in neighbours(TABLE))


def largest_losses(epsilon: float) -> tuple[float, float]:
    """The exact loss over all tables of as many people: if a value is replaced, and if a person comes or goes.

    It is largest where everybody has the same value.
    """
    everybody, one = PEOPLE * np.eye(len(TABLE), dtype=int)[0], np.eye(len(TABLE), dtype=int)
    before = probabilities(epsilon, everybody)

    def loss(after: np.ndarray) -> float:
        return float(np.abs(np.log(probabilities(epsilon, after) / before)).max())

    comes_or_goes = [everybody + one[0], everybody + one[1], everybody - one[0]]
    return loss(everybody - one[0] + one[1]), max(map(loss, comes_or_goes))


def chance_range(larger: Larger, candidates: int, gap: int) -> tuple[float, float] | None:
    """The least and the largest P(right) over all tables of so many candidates (>= 3); None if there is no such table.

    The runner-up has `gap` people fewer than the largest. With the largest count L and the others c, P(right) is 1 /
    (1 + Σ exp(−ε (L − c) / 2)). The sum is convex in the other counts: it is largest where as many as possible equal
    the runner-up, and least where one does and the rest are equal.
    """
    others = larger.people - larger.largest
    runner_up = larger.largest - gap
    rest = others - runner_up
    if not 0 <= rest <= (candidates - 2) * runner_up:
        return None
    full, left = divmod(others, runner_up)
    uneven = np.zeros(candidates - 1)
    uneven[:full] = runner_up
    uneven[full : full + 1] = left
    equal, more = divmod(rest, candidates - 2)
    even = np.array([runner_up, *[equal + 1] * more, *[equal] * (candidates - 2 - more)])
    least, most = (1 / (1 + np.exp(-larger.epsilon / 2 * (larger.largest - counts)).sum()) for counts in (uneven, even))
    return float(least), float(most)


def agreeing_gaps(larger: Larger, candidates: int) -> tuple[int, int] | None:
    """The least and the largest gap that agree with what was drawn, by the exact 95 % interval; None if none does."""
    interval = binomtest(larger.right, larger.runs).proportion_ci(0.95)
    ranges = {gap: chance_range(larger, candidates, gap) for gap in range(larger.largest)}
    gaps = [gap for gap, ends in ranges.items() if ends and ends[1] >= interval.low and ends[0] <= interval.high]
    return (gaps[0], gaps[-1]) if gaps else None


def fewest_candidates(larger: Larger) -> int:
    """With fewer candidates, no table agrees with what was drawn: the others would be too close."""
    return next(candidates for candidates in range(3, larger.people) if agreeing_gaps(larger, candidates))


# 3. The table: each figure of the tutorial beside ours.
def compare() -> list[Row]:
    """All figures and claims."""
    rows = []
    for epsilon, where, printed in PROBABILITIES:
        for name, digits, ours in zip(COUNTS, printed, probabilities(epsilon), strict=True):
            rows.append(compare_number(f"P({name}), ε = {epsilon:g}", where, digits, ours))
    for name, digits, ours in zip(COUNTS, WEIGHTS, np.exp(WEIGHTS_EPSILON * TABLE / 2), strict=True):
        rows.append(compare_number(f"weight of {name}, ε = {WEIGHTS_EPSILON:g}", "in full", digits, ours))
    larger, fewest = Larger(), fewest_candidates(Larger())
    gaps = agreeing_gaps(larger, 2 * fewest)
    once, twice = loss_of_table(1.0, uses=1), loss_of_table(1.0, uses=2)
    most = max(int(np.abs(other - TABLE).max()) for other in neighbours(TABLE))
    return [
        *rows,
        compare_claim(
            f"right in {larger.runs:,} draws, {larger.people:,} people, ε = {larger.epsilon:g}",
            "the larger table",
            str(larger.right),
            f"plausible with {fewest} candidates or more",
            holds=None,
            why=f"With {2 * fewest} candidates, if the runner-up has {gaps[0]} to {gaps[1]} people fewer.",
        ),
        compare_claim(
            "sensitivity of a count",
            "text",
            "1",
            f"{most}",
            holds=most == 1,
            why="One person adds at most 1 to a count, or takes 1 away.",
        ),
        compare_claim(
            "repeated use",
            "text",
            "adds up the privacy loss",
            "adds up",
            holds=bool(np.isclose(twice, 2 * once)),
            why=f"Exact loss of this table against its neighbours at ε = 1: {once:.4f} once, {twice:.4f} twice.",
        ),
        compare_claim(
            "ε = 0",
            "text",
            "uniform",
            "uniform",
            holds=bool((probabilities(0) == 1 / len(COUNTS)).all()),
        ),
    ]


# 4. The figure.
def reliability() -> pd.DataFrame:
    """P(right candidate) over ε, by mechanism, and as the tutorial prints it."""
    rows = []
    for line, options in (
        ("the source (exponential mechanism)", {}),
        ("permute-and-flip", {"mechanism": "permute-and-flip"}),
        ("exponential, if people come and go (monotone)", {"monotone": True}),
        ("the source, ten times as many people", {"times": 10}),
    ):
        times = options.pop("times", 1)
        for epsilon in np.geomspace(0.01, 10, 61):
            three_digits = float(f"{epsilon:.3g}")
            chosen = ps.select(times * TABLE, epsilon=three_digits, sensitivity=1.0, **options)
            rows.append((line, three_digits, chosen.probabilities[BEST]))
    printed = [(epsilon, digits[BEST]) for epsilon, where, digits in PROBABILITIES if where == "table" and epsilon > 0]
    rows += [("as the source prints it", float(epsilon), float(digits)) for epsilon, digits in printed]
    return pd.DataFrame(rows, columns=["line", "epsilon", "value"])


def draw() -> Figures:
    """The figure with its numbers."""
    table = reliability()
    figure, (axes,) = new_figure("Reliability of the right choice")
    draw_lines(axes, table, "epsilon", stars="as the source prints it")
    set_epsilon_axis(axes, table["epsilon"])
    axes.set(ylabel="P(right candidate)", ylim=(0, 1.02))
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return {"reliability-vs-epsilon": (figure, table)}


# 5. The report.
def readme(rows: list[Row]) -> str:
    """The findings in words, beside their numbers."""
    larger, fewest = Larger(), fewest_candidates(Larger())
    gaps = agreeing_gaps(larger, 2 * fewest)
    names = list(COUNTS)
    right = 100 / (1 + np.exp(-10 * larger.epsilon))
    replaced, came = largest_losses(1.0)
    return f"""# Which disease is the most common, answered privately?

- Among {PEOPLE} people the right answer, {names[BEST]}, comes with probability {probabilities(0.1)[BEST]:.2f} at
  ε = 0.1 and {probabilities(1)[BEST]:.2f} at ε = 1. The source's probabilities agree with ours, but for one digit.
- Its {larger.right} of {larger.runs:,} right answers for {larger.people:,} people are plausible, and say something
  about a table that it does not print: there were {fewest} candidates or more, and with {2 * fewest} of them the
  runner-up had {gaps[0]} to {gaps[1]} people fewer than the {larger.largest} of the largest industry.
- Those {larger.runs:,} draws of one table, published, would cost ε = {larger.runs * larger.epsilon:g} and not
  {larger.epsilon:g}: uses add up. After ten answers at ε = {larger.epsilon:g} each, a guess between two neighbouring
  tables is right at most {np.ceil(10 * right) / 10:g} of 100 times; a coin toss, 50.

## Each figure of the source beside ours

{comparison_in_markdown(rows)}

## How reliable the answer is

![P(right candidate) over ε, a line for each mechanism, from {1 / len(COUNTS):g} (any of {len(COUNTS)}) to
1.](figures/reliability-vs-epsilon.svg)

## What is assumed

Public are the list of candidates and ε. A list that is taken from the private rows would reveal that each candidate
occurs. At ε = 1 the mechanism loses exactly {replaced:.3f} if a person's value is replaced, and {came:.3f} if a person
comes or goes: then half of ε would do, as no count falls while another one rises (monotone scores). Losses are exact,
over all tables of as many people. `python examples/source_documents/common_disease.py` writes this report.
"""


def main(folder: Path = REPORTS / "common-disease") -> None:
    """Write the report."""
    rows = compare()
    write_report(folder, readme(rows), rows, draw())


if __name__ == "__main__":
    main()
