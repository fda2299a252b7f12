"""What the optimum costs when the prior that it trusts is wrong."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from policies.arrays import FloatArray
from policies.catalogue import make_policy
from policies.problem import DecisionProblem
from policysim.study import ScenarioStudy
from policysim.sweep import Gain

# The true prevalence as a multiple of the assumed one.
FACTORS = {"⅓": 1 / 3, "½": 1 / 2, "1": 1.0, "2": 2.0, "3": 3.0}


def wrong_prior(study: ScenarioStudy, problem: DecisionProblem, policies: Sequence[str]) -> pd.DataFrame:
    """Evaluate policies that were made for the assumed prevalence at others.

    Parameters
    ----------
    study : ScenarioStudy
        Its scenario says what is prevalent: the condition that makes outcomes dangerous. Its epsilon is used.
    problem : DecisionProblem
        Built from it, with the assumed prior.
    policies : sequence of str
        Names from the catalogue; those that do not use the prior stay private and unchanged whatever it is.

    Returns
    -------
    DataFrame
        policy, epsilon, factor, prevalence, value, loss, benefit_kept: greedy and the best single treatment, against
        which the last two are measured, know the true prevalence; benefit_kept is NaN where shares of the gain at that
        prevalence say little (`policysim.sweep.Gain`). Empty if the scenario names no condition.
    """
    ill = _prevalent(study, problem)
    assumed = float(problem.prior @ ill)
    if not 0 < assumed < 1:
        return pd.DataFrame(columns=["policy", "epsilon", "factor", "prevalence", "value", "loss", "benefit_kept"])
    tables = {name: make_policy(name, epsilon=study.epsilon).probabilities(problem) for name in policies}
    rows = []
    for factor in FACTORS.values():
        prevalence = min(factor * assumed, 1.0)
        weights = np.where(ill > 0, prevalence / assumed, (1 - prevalence) / (1 - assumed))
        prior = problem.prior * weights
        true = problem.with_prior(prior / prior.sum())
        gain = Gain.of(true)
        for name, table in tables.items():
            value = true.value(table)
            rows.append(
                {
                    "policy": name,
                    "epsilon": study.epsilon,
                    "factor": factor,
                    "prevalence": prevalence,
                    "value": value,
                    "loss": gain.best - value,
                    "benefit_kept": gain.kept(value) if gain.has_shares else np.nan,
                }
            )
    return pd.DataFrame(rows)


def _prevalent(study: ScenarioStudy, problem: DecisionProblem) -> FloatArray:
    """1 for the records with the condition, (n_records,)."""
    ill = np.ones(problem.n_records)
    for name, levels in study.scenario.death.acute.items():
        codes, _ = study.scenario.space.groups(name)
        among = np.array([level in levels for level in study.scenario.space.feature(name).levels], dtype=np.float64)
        ill *= among[codes]
    return ill
