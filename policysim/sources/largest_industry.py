"""949 of 1,000 right: which tables of 37,080 people with a largest count of 682 allow that?

The source gives no more than these figures. With the largest count L and the others c_j, the mechanism is right with
probability 1 / (1 + sum_j exp(-epsilon (L - c_j) / 2)). Given how many candidates there are (m, public) and the count
of the runner-up, the sum is convex in the other counts: it is largest where as many as possible of them equal the
runner-up, and least where one does and the rest are equal. So the probabilities that are possible are known exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from envs.toml_reader import Table
from policies.arrays import FloatArray
from policysim.sources.chances import CONFIDENCE
from policysim.sources.printed import read_whole

MOST_CANDIDATES = 500
# The figure goes this many candidates beyond the fewest possible, all others being empty from some number on.
MORE_CANDIDATES = 80


@dataclass(frozen=True)
class Larger:
    """What the source tells of the larger table."""

    people: int  # all
    largest: int  # those of the largest candidate
    epsilon: float
    runs: int  # draws
    right: int  # those of the largest candidate

    @property
    def others(self) -> int:
        """People outside the largest candidate."""
        return self.people - self.largest

    @property
    def interval(self) -> tuple[float, float]:
        """Probabilities that agree with the draws: the exact 95 % interval (Clopper & Pearson 1934)."""
        found = binomtest(self.right, self.runs).proportion_ci(CONFIDENCE)
        return float(found.low), float(found.high)

    @cached_property
    def fewest(self) -> int:
        """The fewest candidates of any table that agrees with the draws."""
        return fewest_candidates(self)

    @property
    def twice(self) -> int:
        """Twice as many."""
        return 2 * self.fewest

    @property
    def gaps(self) -> tuple[int, int]:
        """The gaps to the runner-up that agree with the draws where there are twice as many candidates."""
        return agreeing_gaps(self, self.twice) or (0, 0)

    @property
    def one(self) -> float:
        """The gap at which one runner-up alone, all others far behind, gives the share that was drawn."""
        share = self.right / self.runs
        return float(-2 / self.epsilon * np.log((1 - share) / share))

    @property
    def range(self) -> tuple[float, float]:
        """The probabilities that are possible with twice as many candidates and this gap."""
        return possible(self, self.twice, round(self.one)) or (np.nan, np.nan)


def read_larger(table: Table) -> tuple[Larger, str]:
    """The constants, mistakes noted in the table, and where the source has them."""
    larger = Larger(
        people=read_whole(table, "people", least=1),
        largest=read_whole(table, "largest", least=1),
        epsilon=table.number("epsilon", low=1e-9),
        runs=read_whole(table, "runs", least=1),
        right=read_whole(table, "right"),
    )
    where = table.text("where")
    if larger.largest >= larger.people:
        table.fail(f"must be less than all {larger.people} people, got {larger.largest}", "largest")
    if not 0 < larger.right < larger.runs:
        table.fail(f"must be more than 0 and less than the {larger.runs} runs, got {larger.right}", "right")
    table.close()
    return larger, where


def gaps_by_candidates(larger: Larger) -> pd.DataFrame:
    """The gaps that agree with the draws (low, high) by the number of candidates, and that of one runner-up alone."""
    numbers = range(larger.fewest, larger.fewest + MORE_CANDIDATES + 1)
    found = {candidates: agreeing_gaps(larger, candidates) for candidates in numbers}
    return pd.DataFrame(
        {"candidates": candidates, "low": gaps[0], "high": gaps[1], "one": larger.one}
        for candidates, gaps in found.items()
        if gaps is not None
    )


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


def _right(larger: Larger, counts: list[tuple[int, int]]) -> float:
    """Probability of the largest candidate beside others: (how many, their count)."""
    table: FloatArray = np.array(counts, dtype=np.float64)
    return float(1 / (1 + table[:, 0] @ np.exp(-larger.epsilon / 2 * (larger.largest - table[:, 1]))))
