"""Does the exponential mechanism wrong the smaller group?

A notebook has 100 people: 30 wear blue socks, 70 red ones; 1 of the blue and 9 of the red are violent. It asks which
behaviour is the commonest, privately, and finds that the smaller group is reported violent too often. This lesson sets
each of its figures beside ours, and then corrects one thing after the other.

`python examples/source_documents/sock_groups.py` writes reports/sock-groups.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import brentq, minimize_scalar

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
    in_markdown,
    new_figure,
    write_report,
)
from policysim.figures import set_epsilon_axis

# 1. The data: how many people show each behaviour, and what the notebook declares.
CANDIDATES = ("Violent", "NonViolent")
BLUE, RED = (1, 29), (9, 61)
GROUPS = {"all": (10, 90), "Blue": BLUE, "Red": RED}
DECLARED = 1.0  # the sensitivity of a proportion, as the notebook has it
EPSILON, EPSILON_IN_TEXT = 10, 1

# What the notebook prints: of whom, where, and the digits.
SCORES = (
    ("all", "whole data", ("0.1", "0.9")),
    ("Red", "per group", ("0.128571", "0.871429")),
    ("Blue", "per group", ("0.033333", "0.966667")),
    ("Red", "its finding", ("0.129",)),
    ("Blue", "its finding", ("0.033",)),
)
PROBABILITIES = (
    ("all", 5.5, "first implementation", ("0.09975049", "0.90024951")),
    ("all", 5.5, "second implementation (log-sum-exp)", ("0.09975049", "0.90024951")),
    ("Red", 7, "per group", ("0.06913842", "0.93086158")),
    ("Blue", 3, "per group", ("0.19781611", "0.80218389")),
)
RUNS = 100
DRAWS = (
    (1, "first implementation", {"NonViolent": 51, "Violent": 49}),
    (1, "second implementation", {"NonViolent": 62, "Violent": 38}),
    (10, "first implementation", {"NonViolent": 97, "Violent": 3}),
    (10, "second implementation", {"NonViolent": 98, "Violent": 2}),
)


# 2. The computation.
def probabilities(counts: tuple[int, int], epsilon: float, sensitivity: float) -> np.ndarray:
    """P(each candidate) by the exponential mechanism, whose scores are proportions."""
    scores = np.array(counts) / sum(counts)
    return ps.select(scores, epsilon=epsilon, sensitivity=sensitivity).probabilities


def exact_loss(people: int, epsilon: float, sensitivity: float) -> float:
    """The exact privacy loss over all groups of this size, if the value of one person is replaced.

    The loss is largest where everybody shows the same behaviour, and one person then another one.
    """
    before = probabilities((people, 0), epsilon, sensitivity)
    after = probabilities((people - 1, 1), epsilon, sensitivity)
    return float(np.abs(np.log(before / after)).max())


def calibration(
    epsilon: float, sensitivity: float | None, *, split: bool, blue: tuple[int, int] = BLUE
) -> pd.DataFrame:
    """For Blue and for Red: people, ε, sensitivity, and P(Violent).

    Without a sensitivity each group has the true one, 1/n: one of n people moves a proportion by 1/n. If ε is split,
    each group has a share of it by its size.
    """
    table = pd.DataFrame({"counts": [blue, RED]}, index=["Blue", "Red"])
    table["people"] = table["counts"].map(sum)
    table["epsilon"] = epsilon * (table["people"] / table["people"].sum() if split else 1.0)
    table["sensitivity"] = sensitivity or 1 / table["people"]
    rare = [probabilities(row.counts, row.epsilon, row.sensitivity)[0] for row in table.itertuples()]
    return table.assign(violent=rare)


def disparity(epsilon: float, sensitivity: float | None, *, split: bool, blue: tuple[int, int] = BLUE) -> float:
    """How much more often Blue is reported Violent than Red."""
    small, large = calibration(epsilon, sensitivity, split=split, blue=blue)["violent"]
    return float(small - large)


def corrected_disparity(log_epsilon: float) -> float:
    """The disparity that is left with the true sensitivity and the whole ε for each group."""
    return disparity(10**log_epsilon, None, split=False)


def largest_corrected_disparity() -> tuple[float, float, float]:
    """The largest disparity that is left over all ε; where it is; and the ε from which on it is below 0.01."""
    # Over log ε the disparity rises to one peak and falls.
    peak = minimize_scalar(lambda log_epsilon: -corrected_disparity(log_epsilon), bounds=(-4, 1), method="bounded").x
    below = brentq(lambda log_epsilon: corrected_disparity(log_epsilon) - 0.01, peak, 4)
    return corrected_disparity(peak), float(10**peak), float(10**below)


# 3. The table: each figure of the notebook beside ours.
def compare() -> list[Row]:
    """All figures and claims."""
    rows = []
    for group, where, printed in SCORES:
        scores = np.array(GROUPS[group]) / sum(GROUPS[group])
        for name, digits, ours in zip(CANDIDATES, printed, scores, strict=False):
            rows.append(compare_number(f"score of {name}, {group}", where, digits, ours))
    for group, epsilon, where, printed in PROBABILITIES:
        chosen = probabilities(GROUPS[group], epsilon, DECLARED)
        for name, digits, ours in zip(CANDIDATES, printed, chosen, strict=True):
            rows.append(compare_number(f"P({name}), {group}, ε = {epsilon:g}", where, digits, ours))
    for epsilon, where, draws in DRAWS:
        chosen = dict(zip(CANDIDATES, probabilities(GROUPS["all"], epsilon, DECLARED), strict=True))
        for name, seen in draws.items():
            run = binomial_run(seen, (RUNS, chosen[name]))
            rows.append(compare_run(f"{name} in {RUNS} draws, all, ε = {epsilon:g}", where, str(seen), run))
    shares = calibration(EPSILON, DECLARED, split=True)["epsilon"]
    rows.append(compare_number("ε of Red", "per group", "7", shares["Red"]))
    rows.append(compare_number("ε of Blue", "per group", "3", shares["Blue"]))
    return [*rows, *compare_claims()]


def compare_claims() -> list[Row]:
    """What the notebook says, and what is right."""
    source = calibration(EPSILON, DECLARED, split=True)
    in_text = calibration(EPSILON_IN_TEXT, DECLARED, split=True)["violent"]
    whole = calibration(EPSILON, DECLARED, split=False)["violent"]
    blue, red = source.loc["Blue"], source.loc["Red"]
    rate = BLUE[0] / blue.people
    losses = [exact_loss(group.people, EPSILON, 1 / group.people) for group in (blue, red)]
    any_scores, monotone = (ps.select([0, 1], epsilon=1, monotone=declared) for declared in (False, True))
    return [
        compare_claim(
            "ε of the figures per group",
            "text",
            f"ε = {EPSILON_IN_TEXT}",
            f"ε = {EPSILON}",
            holds=EPSILON == EPSILON_IN_TEXT,
            why=f"The figures come from {EPSILON} shared out. At ε = {EPSILON_IN_TEXT} they would be "
            f"{in_text['Blue']:.3f} for Blue and {in_text['Red']:.3f} for Red.",
        ),
        compare_claim(
            "sensitivity of a proportion",
            "both implementations",
            f"{DECLARED:g}",
            f"1/{blue.people} and 1/{red.people}",
            holds=DECLARED * red.people <= 1,
            why="One person of n moves a proportion by 1/n. It is ½ if people may come and go and n is not public. The "
            f"source's is the right mechanism at ε = {blue.epsilon / blue.people / DECLARED:g} for each group; the "
            "table has its exact loss.",
        ),
        compare_claim(
            "ε for each of two disjoint groups",
            "per group",
            "the group's share of ε",
            f"the whole ε for each: {EPSILON}",
            holds=max(losses) > EPSILON,
            why="A split is safe but not needed: each person is in one group only, if sock colour is public.",
        ),
        compare_claim(
            "coefficient of monotone scores",
            "second implementation",
            "1 instead of ½",
            "1 instead of ½",
            holds=any_scores.scale == 2 * monotone.scale,
            why="These scores are not monotone: as one proportion rises the other falls.",
        ),
        compare_claim(
            "who is reported Violent too often",
            "its finding",
            "the smaller group: more often than its rate, and than the other group",
            f"Blue: {blue.violent:.3f}, rate {rate:.3f}; Red: {red.violent:.3f}",
            holds=rate < RED[0] / red.people and blue.violent > max(rate, red.violent),
            why="True of its computation.",
        ),
        compare_claim(
            "why",
            "its finding",
            "the mechanism overvalues the rare value in the small group",
            "the split of ε, and a Δ that is too large",
            holds=whole["Blue"] > whole["Red"],
            why=f"With the whole ε for each group, Blue gets {whole['Blue']:.4f} and Red {whole['Red']:.4f}. Blue was "
            f"given ε = {blue.epsilon:g} and Red {red.epsilon:g}; each disjoint group may use all of it (parallel "
            "composition), as long as sock colour and group sizes are public.",
        ),
    ]


def corrections() -> pd.DataFrame:
    """P(Violent) and the exact loss under four calibrations."""
    rows = []
    for title, sensitivity, split in (
        ("the source: Δ = 1, ε split by size", DECLARED, True),
        ("Δ = 1, whole ε for each group", DECLARED, False),
        ("Δ = 1/n, ε split by size", None, True),
        ("both corrected: Δ = 1/n, whole ε", None, False),
    ):
        blue, red = calibration(EPSILON, sensitivity, split=split).itertuples()
        losses = [exact_loss(group.people, group.epsilon, group.sensitivity) for group in (blue, red)]
        rows.append((title, blue.violent, red.violent, blue.epsilon, red.epsilon, *losses))
    columns = ["P(Violent), Blue", "P(Violent), Red", "ε claimed, Blue", "ε claimed, Red"]
    return pd.DataFrame(rows, columns=["calibration", *columns, "exact loss, Blue", "exact loss, Red"])


# 4. The figures.
def over_epsilon() -> pd.DataFrame:
    """The disparity over ε under four calibrations, and as the notebook prints it."""
    rows = []
    for line, sensitivity, split in (
        ("the source: Δ = 1, ε split by size", DECLARED, True),
        ("Δ = 1, whole ε for each group", DECLARED, False),
        ("Δ = ½ (people may come and go), whole ε", 0.5, False),
        ("Δ = 1/n (a value may change), whole ε", None, False),
    ):
        for epsilon in np.geomspace(0.01, 30, 61):
            three_digits = float(f"{epsilon:.3g}")
            rows.append((line, three_digits, disparity(three_digits, sensitivity, split=split)))
    printed = {group: float(digits[0]) for group, *_, digits in PROBABILITIES}
    rows.append(("as the source prints it", float(EPSILON), printed["Blue"] - printed["Red"]))
    return pd.DataFrame(rows, columns=["line", "epsilon", "value"])


def over_group_size() -> pd.DataFrame:
    """The disparity over the size of the blue group, one of whom is violent."""
    rows = []
    sizes = dict.fromkeys(int(size) for size in np.geomspace(3, 1000, 40).round())
    for line, epsilon, sensitivity, split in (
        ("the source: ε = 10, Δ = 1, split", EPSILON, DECLARED, True),
        ("ε = 0.1, Δ = 1/n, whole ε", 0.1, None, False),
        ("ε = 1, Δ = 1/n, whole ε", 1.0, None, False),
        ("ε = 10, Δ = 1/n, whole ε", EPSILON, None, False),
    ):
        rows += [(line, n, disparity(epsilon, sensitivity, split=split, blue=(1, n - 1))) for n in sizes]
    rows += [("difference of the rates themselves", n, 1 / n - RED[0] / sum(RED)) for n in sizes]
    return pd.DataFrame(rows, columns=["line", "size", "value"])


def draw() -> Figures:
    """Both figures with their numbers."""
    by_epsilon, by_size = over_epsilon(), over_group_size()
    figure, (axes,) = new_figure("Disparity between the groups")
    axes.axhline(0, color="#555555", linewidth=1)
    draw_lines(axes, by_epsilon, "epsilon", stars="as the source prints it")
    set_epsilon_axis(axes, by_epsilon["epsilon"])
    axes.set_ylabel("P(Violent), Blue − Red")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    sizes, (axes,) = new_figure("Disparity over the size of one group")
    axes.axhline(0, color="#555555", linewidth=1)
    draw_lines(axes, by_size, "size")
    axes.set(xscale="log", xlabel="n, people in the group that varies", ylabel="P(Violent), group of n − Red")
    axes.xaxis.set_major_formatter("{x:g}")
    sizes.legend(loc="outside lower center", ncols=2, frameon=False)
    return {"disparity-vs-epsilon": (figure, by_epsilon), "disparity-vs-group-size": (sizes, by_size)}


# 5. The report.
def readme(rows: list[Row]) -> str:
    """The findings in words, beside their numbers."""
    source = calibration(EPSILON, DECLARED, split=True)
    whole = calibration(EPSILON, DECLARED, split=False)["violent"]
    losses = [exact_loss(group.people, group.epsilon, DECLARED) for group in source.itertuples()]
    largest, peak, below = largest_corrected_disparity()
    table = corrections()
    texts = table.astype(str).assign(**{name: table[name].map("{:.2g}".format) for name in table.columns[1:]})
    return f"""# Does the exponential mechanism wrong the smaller group?

No: the split of ε by group size does.

- The source finds that the smaller group is reported Violent too often: Blue {source.violent["Blue"]:.3f}, Red
  {source.violent["Red"]:.3f} at ε = {EPSILON}. Its figures are right; its explanation is wrong.
- Give both groups the whole ε, as disjoint groups may have, and Blue gets {whole["Blue"]:.4f}, Red {whole["Red"]:.4f}.
- The noise is also {source.people["Blue"]} and {source.people["Red"]} times too large: one person moves a proportion of
  n people by 1/n, not by {DECLARED:g}. Of the ε = {EPSILON} that the source claims to spend, each person loses at most
  {max(losses):.2g}.
- With both corrected the disparity is at most {largest:.2g}, at ε = {peak:.2g}, and below 0.01 from
  ε = {math.ceil(100 * below) / 100:g} on.

## Each figure of the source beside ours

{comparison_in_markdown(rows)}

For a single run, “ours” is what to expect, and where 95 % of runs lie.

## What each correction does at ε = {EPSILON}

{in_markdown(texts)}

P(Violent) should be near 0 for both: most people of both groups are not violent. The mechanism reports the commonest
value: P(Violent) is how often it errs, no estimate of the rate.

## What disparity is left

![P(Violent) for Blue minus that for Red, over ε. The source's is above zero, the corrected ones near zero from
ε = {below:.2g} on.](figures/disparity-vs-epsilon.svg)

![The same over the size of the blue group. The source's calibration hits the smaller of the two groups, whichever it
is.](figures/disparity-vs-group-size.svg)

## What is assumed

Public are the two candidates, sock colours, group sizes and ε. Neighbours differ in the value of one person. If sock
colour is private too, one person counts in both groups: each answer needs Δ = ½, and the two together cost 2ε. Losses
are exact, over all groups of the same size. `python examples/source_documents/sock_groups.py` writes this report.
"""


def main(folder: Path = REPORTS / "sock-groups") -> None:
    """Write the report."""
    rows = compare()
    write_report(folder, readme(rows), rows, draw())


if __name__ == "__main__":
    main()
