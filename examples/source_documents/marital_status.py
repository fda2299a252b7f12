"""What does a score in thousands spend of ε?

A tutorial on the exponential mechanism chooses the most common marital status of 32,561 people. Its score is a count
divided by 1,000, and it declares a sensitivity of 1. This lesson computes what such a choice really spends.

`python examples/source_documents/marital_status.py` writes reports/marital-status.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

import policysim as ps
from examples.reporting import (
    REPORTS,
    Figures,
    Row,
    binomial_run,
    compare_claim,
    compare_number,
    compare_run,
    comparison_in_markdown,
    draw_lines,
    new_figure,
    write_report,
)
from policysim.figures import set_epsilon_axis

# 1. The data, and what the tutorial declares and prints.
COUNTS = {
    "Married-civ-spouse": 14976,
    "Never-married": 10683,
    "Divorced": 4443,
    "Separated": 1025,
    "Widowed": 993,
    "Married-spouse-absent": 418,
    "Married-AF-spouse": 23,
}
TABLE = np.array(list(COUNTS.values()))
PEOPLE, BEST = int(TABLE.sum()), int(TABLE.argmax())
DIVISOR, DECLARED, EPSILON = 1000, 1.0, 1.0
TRUE = 1 / DIVISOR  # one person is one in a count
RUNS, DRAWS = 200, {"Married-civ-spouse": 176, "Never-married": 23, "Divorced": 1}


# 2. The computation.
def probabilities(
    epsilon: float, sensitivity: float, counts: np.ndarray = TABLE, *, monotone: bool = False
) -> np.ndarray:
    """P(each status) by the exponential mechanism; monotone: people come and go, and no value is replaced."""
    chosen = ps.select(counts / DIVISOR, epsilon=epsilon, sensitivity=sensitivity, monotone=monotone)
    return chosen.probabilities


def losses(candidates: int) -> tuple[float, float]:
    """The exact privacy loss over all tables of as many people: if a value is replaced, and if a person comes or goes.

    It is largest where everybody has the same status; which of the other statuses the one person has does not matter.
    """
    one = np.eye(candidates, dtype=int)
    everybody = PEOPLE * one[0]
    before = probabilities(EPSILON, DECLARED, everybody)

    def loss(after: np.ndarray) -> float:
        return float(np.abs(np.log(probabilities(EPSILON, DECLARED, after)) - np.log(before)).max())

    comes_or_goes = [everybody + one[0], everybody + one[1], everybody - one[0]]
    return loss(everybody - one[0] + one[1]), max(map(loss, comes_or_goes))


# 3. The table: each figure of the tutorial beside ours.
def compare() -> list[Row]:
    """All figures and claims."""
    chosen = dict(zip(COUNTS, probabilities(EPSILON, DECLARED), strict=True))
    rows = []
    for name, seen in DRAWS.items():
        run = binomial_run(seen, (RUNS, chosen[name]))
        rows.append(compare_run(f"{name} in {RUNS} draws, ε = {EPSILON:g}", "one run of 200 draws", str(seen), run))
    replaced, came = losses(len(COUNTS))
    with_few, with_many = losses(2)[0], losses(1000)[0]
    return [
        *rows,
        compare_number("people, the sum of the counts", "table", "32,561", PEOPLE),
        compare_claim(
            "sensitivity of the score",
            "code",
            f"{DECLARED:g}",
            f"{TRUE:g}",
            holds=DECLARED <= TRUE,
            why=f"One person is one in a count, {TRUE:g} in the score. The declared one is safe, and "
            f"{DECLARED / TRUE:,.0f} times too large: a draw spends {replaced:.4g} under replace-one and {came:.4g} "
            f"under add-or-remove-one, not ε = {EPSILON:g}. If a person's value is replaced, one score rises and "
            "another falls; if a person comes or goes, one score alone moves, which costs half.",
        ),
        compare_claim(
            "privacy cost whatever the number of candidates",
            "text",
            f"ε = {EPSILON:g}",
            f"at most {EPSILON:g}",
            holds=max(with_few, with_many) <= EPSILON,
            why=f"Exactly {with_few:.4g} with 2 candidates and {with_many:.4g} with 1,000.",
        ),
        compare_claim(
            "the output is a candidate",
            "text",
            "always",
            "always",
            holds=bool(np.isclose(sum(chosen.values()), 1)),
            why="So a value that is not on the list cannot be the answer.",
        ),
    ]


# 4. The figure.
def reliability() -> pd.DataFrame:
    """P(right status) over ε, by sensitivity, and as the tutorial drew it."""
    rows = []
    for line, sensitivity, monotone in (
        (f"the source: Δ = {DECLARED:g}", DECLARED, False),
        (f"Δ = {TRUE:g}", TRUE, False),
        (f"Δ = {TRUE:g}, people come and go (monotone)", TRUE, True),
    ):
        for epsilon in np.geomspace(1e-4, 10, 61):
            three_digits = float(f"{epsilon:.3g}")
            rows.append((line, three_digits, probabilities(three_digits, sensitivity, monotone=monotone)[BEST]))
    rows.append(("as the source drew", EPSILON, max(DRAWS.values()) / RUNS))
    return pd.DataFrame(rows, columns=["line", "epsilon", "value"])


def draw() -> Figures:
    """The figure with its numbers."""
    table = reliability()
    figure, (axes,) = new_figure("Reliability of the right choice")
    draw_lines(axes, table, "epsilon", stars="as the source drew")
    set_epsilon_axis(axes, table["epsilon"])
    axes.set(ylabel="P(right candidate)", ylim=(0, 1.02))
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return {"reliability-vs-epsilon": (figure, table)}


# 5. The report.
def readme(rows: list[Row]) -> str:
    """The findings in words, beside their numbers."""
    replaced, came = losses(len(COUNTS))
    right = probabilities(EPSILON, DECLARED)[BEST]
    wrong = max(1 - probabilities(EPSILON, TRUE)[BEST], 1e-12)
    return f"""# What does a score in thousands spend of ε?

- The source's run is what its mechanism gives: {list(COUNTS)[BEST]} is right, and chosen with probability {right:.3f}
  at ε = {EPSILON:g}.
- But the mechanism hardly spends its ε: the sensitivity of count/{DIVISOR} is {TRUE:g}, not {DECLARED:g}. It loses
  {replaced:.4g} if a person's value is replaced and {came:.4g} if a person comes or goes.
- With the true sensitivity, ε = {EPSILON:g} is wrong with probability {wrong:.0g} at most, and
  ε = {EPSILON * TRUE / DECLARED:g} gives what the source has.

## Each figure of the source beside ours

{comparison_in_markdown(rows)}

For a single run, “ours” is what to expect, and where 95 % of runs lie.

## What the right sensitivity gives

![P(right candidate) over ε. With the true sensitivity the same reliability takes ε divided by
{DECLARED / TRUE:,.0f}, and half of that if people come and go.](figures/reliability-vs-epsilon.svg)

## What is assumed

Public are the list of candidates and ε. A value that is not on the list is never the answer; a list that is taken from
the private rows would reveal that each value on it occurs. Losses are exact, over all tables of as many people.
`python examples/source_documents/marital_status.py` writes this report.
"""


def main(folder: Path = REPORTS / "marital-status") -> None:
    """Write the report."""
    rows = compare()
    write_report(folder, readme(rows), rows, draw())


if __name__ == "__main__":
    main()
