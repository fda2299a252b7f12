"""Tables of a model: losses by outcome, and what policies lose at another prevalence than the assumed one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from policies.distinct import reweighted
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.reference import Greedy
from policysim.study.declared import ModelledStudy
from policysim.study.gain import gain_of
from policysim.study.study_problem import FACTORS, at_prevalence, prevalent
from policysim.study.sweep import evaluated_on
from policysim.utility import COSTS

COSTS_TITLE = "costs of treatments"


def loss_by_outcome(rows: pd.DataFrame, weights: Mapping[str, float], policies: Sequence[str]) -> pd.DataFrame:
    """The utility that each policy loses against the best treatment for each, by what it is lost in.

    As u(x, a) = -sum_o weight_o E[o | x, a] - cost_a, the loss of a policy p against the best treatment for each, g, is
    the sum of weight_o (E_p[o] - E_g[o]) over the outcomes, and of E_p[cost] - E_g[cost].

    Parameters
    ----------
    rows : DataFrame
        Of everyone in a comparison at one epsilon: policy and expected_OUTCOME.
    weights : mapping of str to float
        What one of each outcome costs, in the order of the table.
    policies : sequence of str
        Whose losses are wanted.

    Returns
    -------
    DataFrame
        policy, outcome, weight, more, lost: a row for each outcome that has a weight, and one for the costs of
        treatments, policy by policy. `more` is how much likelier the outcome is than under the best for each (for the
        costs, NaN), `lost` what that costs in utility per patient; negative where the policy does better in it. The sum
        of `lost` over the rows of a policy is its loss.
    """
    weighed = {name: weight for name, weight in weights.items() if weight}
    expected = rows.set_index("policy")[[f"expected_{name}" for name in (*weighed, COSTS)]]
    if COSTS in weights:
        # An outcome of a table has that name, and its treatments cost nothing (`Cohort.problem`).
        expected = expected.set_axis([*weighed, COSTS_TITLE], axis=1).assign(**{COSTS_TITLE: 0.0})
    more = (expected - expected.loc[Greedy.name]).loc[list(policies)].to_numpy()
    frames = [
        pd.DataFrame(
            {
                "policy": policy,
                "outcome": [*weighed, COSTS_TITLE],
                "weight": [*weighed.values(), math.nan],
                "more": [*of_policy[:-1], math.nan],
                "lost": np.array([*weighed.values(), 1.0]) * of_policy,
            }
        )
        for policy, of_policy in zip(policies, more, strict=True)
    ]
    return pd.concat(frames, ignore_index=True)


def wrong_prior(study: ModelledStudy, problem: DecisionProblem, policies: Sequence[Policy]) -> pd.DataFrame:
    """Evaluate policies that were made for the assumed prevalence at others.

    Parameters
    ----------
    study : ModelledStudy
        Its scenario says what is prevalent: the condition that makes outcomes dangerous.
    problem : DecisionProblem
        Built from it, with the assumed prior.
    policies : sequence of Policy
        At their epsilons; those that do not use the prior stay private and unchanged whatever it is.

    Returns
    -------
    DataFrame
        policy, epsilon, factor, prevalence, value, loss, benefit_kept: greedy and the best single treatment, against
        which the last two are measured, know the true prevalence; benefit_kept is NaN where shares of the gain at that
        prevalence say little (`policysim.study.gain.Gain`). Empty if the scenario names no condition.
    """
    columns = ["policy", "epsilon", "factor", "prevalence", "value", "loss", "benefit_kept"]
    ill = prevalent(study)
    # Who is ill is asked of the records and not of a sum, which rounding may leave just below 1.
    possible = ill[problem.prior > 0]
    if possible.all() or not possible.any():
        return pd.DataFrame(columns=columns)
    problems = [evaluated_on(policy, problem) for policy in policies]
    tables = [policy.probabilities(on) for policy, on in zip(policies, problems, strict=True)]
    everybody = evaluated_on(Greedy(), problem)
    rows = []
    for factor in FACTORS.values():
        prior, prevalence = at_prevalence(problem.prior, ill, factor)
        gain = gain_of(reweighted(everybody, problem, prior))
        for policy, on, table in zip(policies, problems, tables, strict=True):
            value = reweighted(on, problem, prior).value(table)
            rows.append(
                {
                    "policy": policy.name,
                    "epsilon": policy.epsilon,
                    "factor": factor,
                    "prevalence": prevalence,
                    "value": value,
                    "loss": gain.best - value,
                    "benefit_kept": gain.kept(value) if gain.has_shares else np.nan,
                }
            )
    return pd.DataFrame(rows, columns=columns)
