"""How losses vary between patients: exact quantiles of the loss at one epsilon."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from policies.arrays import FloatArray, blocks
from policies.optimal import Optimal
from policies.policy import Policy
from policies.problem import DecisionProblem
from policysim.comparison import applies
from policysim.sweep import asked_for, at

N_QUANTILES = 50


def patient_losses(problem: DecisionProblem, policies: Sequence[str | Policy], epsilon: float) -> pd.DataFrame:
    """Quantiles of the patients' losses L(x) = sum_a p(a|x) (max_b u(x, b) - u(x, a)) under the prior, exactly.

    They say how the loss varies between patients: there is no sampling error in them.

    Parameters
    ----------
    problem : DecisionProblem
        Utilities and prior.
    policies : sequence of str or Policy
        As for `compare`. The optimum is left out where it can only be bounded: no table of it is known there.
    epsilon : float
        >= 0.

    Returns
    -------
    DataFrame
        policy, quantile (1 %, 3 %, ..., 99 %) and loss, in units of utility: the least l with P(L <= l) >= quantile.

    Raises
    ------
    ValueError
        For an unknown policy, one that cannot be used on the problem, or an epsilon that is not a number >= 0.

    Examples
    --------
    >>> from policies import AnyRecord
    >>> problem = DecisionProblem([[0.0, 1.0], [3.0, 0.0]], [0.9, 0.1], AnyRecord())
    >>> table = patient_losses(problem, ["uniform"], 1.0)
    >>> table["loss"].value_counts().to_dict()
    {0.5: 45, 1.5: 5}
    """
    templates, (value,) = asked_for(policies, [epsilon], ())
    known = [policy for policy in templates if not isinstance(policy, Optimal) or applies(policy, problem)]
    levels = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES
    frames = [
        pd.DataFrame({"policy": policy.name, "quantile": levels, "loss": _quantiles(problem, policy, levels)})
        for policy in (at(template, value) for template in known)
    ]
    return pd.concat(frames, ignore_index=True)


def _quantiles(problem: DecisionProblem, policy: Policy, levels: FloatArray) -> FloatArray:
    losses = losses_of(problem, policy.probabilities(problem))
    order = losses.argsort()
    below = problem.prior[order].cumsum()
    # Both ends are known exactly; what is left is the rounding of a sum.
    places = np.searchsorted(below, levels * below[-1] * (1 - 1e-12))
    quantiles: FloatArray = losses[order[places]]
    return quantiles


def losses_of(problem: DecisionProblem, probabilities: FloatArray) -> FloatArray:
    """L(x) of each record, (n_records,)."""
    losses = np.empty(problem.n_records)
    for rows in blocks(problem.n_records):
        utilities = problem.utilities[rows]
        # Regrets are never negative, and exactly 0 for the best action: who loses nothing is seen to.
        regrets = utilities.max(axis=1, keepdims=True) - utilities
        losses[rows] = (probabilities[rows] * regrets).sum(axis=1)
    return losses
