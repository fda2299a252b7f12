"""949 of 1,000 right: which tables of 37,080 people with a largest count of 682 allow that?

The source gives no more than these figures. With the largest count L and the others c_j, the mechanism is right with
probability 1 / (1 + sum_j exp(-epsilon (L - c_j) / 2)). Given how many candidates there are (m, public) and the count
of the runner-up, the sum is convex in the other counts: it is largest where as many as possible of them equal the
runner-up, and least where one does and the rest are equal. So the probabilities that are possible are known exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from envs.toml_reader import Table
from policies.arrays import FloatArray
from policysim.figures.described import Described, Lines
from policysim.sources.chances import CONFIDENCE
from policysim.sources.engine import Judgement, Row, Section
from policysim.sources.printed import read_whole

MOST_CANDIDATES = 500
# The figure goes this many candidates beyond the fewest possible, all others being empty from some number on.
MORE_CANDIDATES = 80
NAME = "larger-table"


@dataclass(frozen=True)
class Larger:
    """What the source tells of the larger table."""

    people: int  # all
    largest: int  # those of the largest candidate
    epsilon: float
    runs: int  # draws
    right: int  # those of the largest candidate
    where: str  # where the source has it

    @classmethod
    def read(cls, table: Table) -> Larger:
        """The constants, mistakes noted in the table."""
        larger = cls(
            people=read_whole(table, "people", least=1),
            largest=read_whole(table, "largest", least=1),
            epsilon=table.number("epsilon", low=1e-9),
            runs=read_whole(table, "runs", least=1),
            right=read_whole(table, "right"),
            where=table.text("where"),
        )
        if larger.largest >= larger.people:
            table.fail(f"must be less than all {larger.people} people, got {larger.largest}", "largest")
        if not 0 < larger.right < larger.runs:
            table.fail(f"must be more than 0 and less than the {larger.runs} runs, got {larger.right}", "right")
        table.close()
        return larger

    @property
    def others(self) -> int:
        """People outside the largest candidate."""
        return self.people - self.largest

    @property
    def interval(self) -> tuple[float, float]:
        """Probabilities that agree with the draws: the exact 95 % interval (Clopper & Pearson 1934)."""
        found = binomtest(self.right, self.runs).proportion_ci(CONFIDENCE)
        return float(found.low), float(found.high)

    @property
    def plausible(self) -> tuple[int, tuple[int, int]]:
        """The fewest candidates of any table that agrees with the draws; with twice as many, the gaps that do."""
        fewest = fewest_candidates(self)
        return fewest, agreeing_gaps(self, 2 * fewest) or (0, 0)

    def row(self) -> Row:
        """The figure, and which tables it agrees with."""
        fewest, (low, high) = self.plausible
        reason = f"With {2 * fewest} candidates, if the runner-up has {low} to {high} people fewer."
        ours = Judgement(f"plausible with {fewest} candidates or more", None, reason)
        what = f"right in {self.runs:,} draws, {self.people:,} people, ε = {self.epsilon:g}"
        return Row(what, self.where, str(self.right), ours)

    def lead(self) -> tuple[str, ...]:
        """What the draws tell, and what they cost."""
        fewest, (low, high) = self.plausible
        return (
            f"Its {self.right} of {self.runs:,} right answers for {self.people:,} people are plausible, and tell "
            f"something of a table that it does not print: there were {fewest} candidates or more, and with "
            f"{2 * fewest} of them the runner-up had {low} to {high} people fewer than the {self.largest} of the "
            "largest industry.",
            f"Those {self.runs:,} draws of one table, published, would cost ε = {self.runs * self.epsilon:g} and not "
            f"{self.epsilon:g}: uses add up.",
        )

    def section(self) -> Section:
        """Which tables agree with the draws."""
        (low, high), fewest, gap = self.interval, fewest_candidates(self), gap_of_one(self)
        least, most = possible(self, 2 * fewest, round(gap)) or (np.nan, np.nan)
        text = (
            f"The source gives {self.people:,} people, a largest industry of {self.largest} and {self.right} right "
            f"answers of {self.runs:,} at ε = {self.epsilon:g}: a probability between {low:.3f} and {high:.3f} "
            "(95\u00a0%). "
            "Whether the mechanism gives that depends on the other counts, which it does not give. "
            f"The other {self.others:,} people must fit into the other industries, none larger than the runner-up.",
            f"One runner-up with {gap:.0f} people fewer, and all others far behind, gives {self.right} of "
            f"{self.runs:,}. With {2 * fewest} candidates and that runner-up the probability can be anything from "
            f"{least:.2f} (as many runners-up as there can be) to {most:.2f}. So this is a check of plausibility, not "
            "of equality.",
        )
        return Section("The larger table", text, drawing=self._drawing(fewest, gap))

    def _drawing(self, fewest: int, one: float) -> Described:
        """Number of candidates and gap to the runner-up."""
        numbers = range(fewest, fewest + MORE_CANDIDATES + 1)
        found = {candidates: agreeing_gaps(self, candidates) for candidates in numbers}
        table = pd.DataFrame(
            {"candidates": candidates, "low": gaps[0], "high": gaps[1], "one": one}
            for candidates, gaps in found.items()
            if gaps is not None
        )
        last = table.iloc[-1]
        settled = table.loc[(table["low"] == last["low"]) & (table["high"] == last["high"]), "candidates"].min()
        description = (
            f"Gap between the largest industry and the runner-up, against the number of candidates: shaded where some "
            f"table of {self.people:,} people agrees with {self.right:,} right of {self.runs:,} draws (at 95 %). "
            f"Below {fewest} candidates none does; from {settled} on, gaps of {last['low']:.0f} to "
            f"{last['high']:.0f} people do."
        )
        lines = {
            "high": "upper edge: the most runners-up",
            "one": "one runner-up alone, all others far behind",
            "low": "lower edge: one runner-up, the rest equal",
        }
        title, band = "Which tables agree with what was drawn", "agrees with the draws"
        x, y = "candidates in all (a public number)", "gap to the runner-up, people"
        limits = (0, 1.2 * float(table["high"].max()))
        panel = Lines(title, x, y, "candidates", columns=lines, log="", limits=limits, band=band, first=1)
        return Described(NAME, description, table, (panel,))


def possible(larger: Larger, candidates: int, gap: int) -> tuple[float, float] | None:
    """The least and the largest probability of the right answer, over all tables; None if there is no such table.

    Of `candidates` in all (>= 3), whose runner-up has `gap` people fewer than the largest.
    """
    runner_up, rest = larger.largest - gap, larger.others - (larger.largest - gap)
    if not 0 <= rest <= (candidates - 2) * runner_up:
        return None
    whole, left = divmod(larger.others, runner_up)
    empty = candidates - 1 - whole - 1
    most = [(whole, runner_up), (1, left), (empty, 0)] if empty >= 0 else [(whole, runner_up)]
    equal, more = divmod(rest, candidates - 2)
    least = [(1, runner_up), (more, equal + 1), (candidates - 2 - more, equal)]
    return _right(larger, most), _right(larger, least)


@cache
def agreeing_gaps(larger: Larger, candidates: int) -> tuple[int, int] | None:
    """The least and the largest gap to the runner-up that agree with what was drawn; None if no table does."""
    low, high = larger.interval
    gaps = []
    for gap in range(larger.largest):
        found = possible(larger, candidates, gap)
        if found is not None and found[1] >= low and found[0] <= high:
            gaps.append(gap)
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


def gap_of_one(larger: Larger) -> float:
    """The gap at which one runner-up alone, all others far behind, gives the share that was drawn."""
    share = larger.right / larger.runs
    return float(-2 / larger.epsilon * np.log((1 - share) / share))


def _right(larger: Larger, counts: list[tuple[int, int]]) -> float:
    """Probability of the largest candidate beside others: (how many, their count)."""
    table: FloatArray = np.array(counts, dtype=np.float64)
    return float(1 / (1 + table[:, 0] @ np.exp(-larger.epsilon / 2 * (larger.largest - table[:, 1]))))
