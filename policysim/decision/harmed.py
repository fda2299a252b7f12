"""Who is harmed by one option instead of another: groups, groups within groups, and how many patients there are."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from policies.arrays import FloatArray, blocks
from policies.policy import Policy
from policies.problem import DecisionProblem
from policysim.study.sweep import Groups, evaluated_on, happening_lead, rows_on
from policysim.words import ALL

# A patient's expectation is the same where it differs by less, as a share of the largest number of the table.
SAME = 1e-9


@dataclass(frozen=True, eq=False)
class Harmed:
    """Who is harmed.

    Attributes
    ----------
    groups : DataFrame
        group, level (a feature and one of its levels), within, within_level (another feature and level that the same
        patients have, too; "all" for all of the group), share (of all patients), value (how much more of the outcome
        that leads a patient there has; how much less utility where none leads): first each level of each feature, then
        each pair of levels of two features once, the feature that `by` has first as the group. Groups without patients
        are left out.
    lead_share : float
        The share of all patients who have more of the outcome that leads; NaN where none leads.
    utility_share : float
        The share of all patients who have less utility.
    """

    groups: pd.DataFrame
    lead_share: float
    utility_share: float

    @property
    def hidden(self) -> pd.DataFrame:
        """The rows of subgroups that are harmed though neither of the two groups that they belong to is."""
        rows = self.groups
        whole = rows[rows["within"] == ALL].set_index(["group", "level"])["value"]
        pairs = rows[(rows["within"] != ALL) & (rows["value"] > 0)]
        outer = pairs[["group", "level"]].itertuples(index=False, name=None)
        inner = pairs[["within", "within_level"]].itertuples(index=False, name=None)
        return pairs[[whole[one] <= 0 and whole[other] <= 0 for one, other in zip(outer, inner, strict=True)]]


def harmed_groups(problem: DecisionProblem, option: Policy, than: Policy, by: Sequence[str] = ()) -> Harmed:
    """Who is harmed by `option` instead of `than`, exactly.

    Parameters
    ----------
    problem : DecisionProblem
        What is decided, for whom.
    option, than : Policy
        At their epsilons.
    by : sequence of str
        Features of the problem's records.
    """
    lead = happening_lead(problem)
    less, same = _more(problem, None, option, than)
    utility_share = min(1.0, float(problem.prior[less < -same].sum()))
    more, lead_share = -less, math.nan
    if lead is not None:
        more, same = _more(problem, lead, option, than)
        lead_share = min(1.0, float(problem.prior[more > same].sum()))
    return Harmed(_by_group(problem, more, by), lead_share, utility_share)


def _more(problem: DecisionProblem, outcome: str | None, option: Policy, than: Policy) -> tuple[FloatArray, float]:
    """How much more each record has of an outcome, or of utility, (n_records,), and what is no difference."""
    more, largest = np.zeros(problem.n_records), 0.0
    for policy, sign in ((option, 1.0), (than, -1.0)):
        on = evaluated_on(policy, problem)
        table, probabilities = on.utilities if outcome is None else on.outcomes[outcome], policy.probabilities(on)
        expected = [np.einsum("na,na->n", probabilities[rows], table[rows]) for rows in blocks(on.n_records)]
        more += sign * np.concatenate(expected)[rows_on(on, problem)]
        largest = max(largest, float(table.max()), -float(table.min()))
    return more, SAME * largest


def _by_group(problem: DecisionProblem, more: FloatArray, by: Sequence[str]) -> pd.DataFrame:
    """The mean of what each record has more, in each group and in each pair of groups of two features."""
    groups = Groups(by, problem.records.groups, problem.prior)
    n_cells = groups.membership.shape[1]
    patients, sums = (np.bincount(groups.cells, each, n_cells) for each in (problem.prior, problem.prior * more))
    rows = []
    # Everyone is the first.
    each = [(group, cells) for group, cells in zip(groups, groups.membership, strict=True)][1:]
    names = [(group.feature, group.level, ALL, ALL) for group, _ in each]
    chosen = [cells for _, cells in each]
    for (group, cells), (other, others) in itertools.combinations(each, 2):
        if group.feature != other.feature:
            names.append((group.feature, group.level, other.feature, other.level))
            chosen.append(cells * others)
    for name, cells in zip(names, chosen, strict=True):
        share = float(cells @ patients)
        if share > 0:
            rows.append((*name, share, float(cells @ sums) / share))
    return pd.DataFrame(rows, columns=["group", "level", "within", "within_level", "share", "value"])
