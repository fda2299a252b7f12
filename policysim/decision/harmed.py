"""Who is harmed by one option instead of another: groups, and groups within groups."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from policies.arrays import blocks
from policies.policy import Policy
from policies.problem import DecisionProblem
from policysim.study.sweep import Groups, evaluated_on, happening_lead, rows_on
from policysim.words import ALL


def harmed_groups(problem: DecisionProblem, option: Policy, than: Policy, by: Sequence[str] = ()) -> pd.DataFrame:
    """Who is harmed by `option` instead of `than`, exactly.

    Parameters
    ----------
    problem : DecisionProblem
        What is decided, for whom.
    option, than : Policy
        At their epsilons.
    by : sequence of str
        Features of the problem's records.

    Returns
    -------
    DataFrame
        group, level (a feature and one of its levels), within, within_level (another feature and level that the same
        patients have, too; "all" for all of the group), share (of all patients), value (how much more of the outcome
        that leads a patient there has; how much less utility where none leads): first each level of each feature, then
        each pair of levels of two features once, the feature that `by` has first as the group. Groups without patients
        are left out.
    """
    lead, more = happening_lead(problem), np.zeros(problem.n_records)
    for policy, sign in ((option, 1.0), (than, -1.0)):
        on = evaluated_on(policy, problem)
        table, probabilities = -on.utilities if lead is None else on.outcomes[lead], policy.probabilities(on)
        expected = [np.einsum("na,na->n", probabilities[rows], table[rows]) for rows in blocks(on.n_records)]
        more += sign * np.concatenate(expected)[rows_on(on, problem)]
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
