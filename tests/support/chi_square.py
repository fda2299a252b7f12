"""Pearson's chi-square of actions that were drawn, against their probabilities."""

import math

import numpy as np
from scipy.stats import chi2


def chi_square(table, rows, actions):
    """The statistic over all rows of a table, and its degrees of freedom; infinity if an impossible action was drawn.

    `rows` has every row of the table; their numbers of draws are fixed.
    """
    observed = np.zeros(table.shape)
    np.add.at(observed, (rows, actions), 1)
    expected = table * np.bincount(rows, minlength=len(table))[:, None]
    possible = expected > 0
    statistic = ((observed - expected)[possible] ** 2 / expected[possible]).sum()
    return math.inf if observed[~possible].any() else statistic, possible.sum() - len(table)


def draws_fit(table, rows, actions):
    """Whether actions may have been drawn by a table, at a level of one in a million; a row of one action is exact."""
    statistic, degrees = chi_square(table, rows, actions)
    return statistic <= (chi2.ppf(1 - 1e-6, degrees) if degrees else 0)
