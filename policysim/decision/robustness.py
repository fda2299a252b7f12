"""How far a ranking of policies depends on the illustrative treatment effects: they are redrawn many times.

What the optimum costs when the prior that it trusts is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from envs.cohort import sample_patients
from envs.scenario import Treatment
from envs.treatment_response import ResponseModel
from envs.utility import Utility
from policies.adjacency import AnyRecord
from policies.arrays import FloatArray, IntArray
from policies.distinct import reweighted
from policies.optimal.optimum import Optimal
from policies.problem import DecisionProblem
from policies.reference import Greedy
from policysim.question.protocol import SILENT, Progress
from policysim.study.declared import ScenarioStudy
from policysim.study.other_priors import FACTORS, at_prevalence, prevalent
from policysim.study.sweep import Gain, applies, evaluated_on

REDRAWS = 200
# Standard deviation of the logarithm by which the odds of each effect, and each cost, are multiplied.
SPREAD = 0.3
N_PATIENTS = 10_000
# Differences between values that only rounding makes: of their range, and of the largest of them.
TIE, ROUNDING = 1e-9, 1e-12
# Records of the whole domain that are kept for each extreme, so that sensitivities stay those of the domain.
N_EXTREME = 100


@dataclass(frozen=True)
class Robustness:
    """In how many of the redraws the policies came in the same order.

    Attributes
    ----------
    ranking : tuple of str
        By value at the study's epsilon, best first, with the effects as stated; ties as in `ranked`.
    holds, redraws : int
        It held in `holds` of `redraws`.
    first_holds : int
        The first of the ranking was the first in so many.
    n_patients : int
        Sampled patients on which each redraw was evaluated.
    spread : float
        Of the redraws, as a standard deviation on the log scale.
    """

    ranking: tuple[str, ...]
    holds: int
    redraws: int
    first_holds: int
    n_patients: int
    spread: float


def robustness(
    study: ScenarioStudy,
    problem: DecisionProblem,
    policies: tuple[str, ...],
    progress: Progress = SILENT,
) -> Robustness | None:
    """Redraw the effects, side effects and costs of all treatments, and rank the policies again.

    Hazards and population figures stay. Each redraw is evaluated on the same sampled patients; privacy is over them
    and the records with the most extreme utilities. Only under any-record: elsewhere the result is None, as a sample of
    records has no neighbours that differ in one feature.

    Parameters
    ----------
    study : ScenarioStudy
        Its seed and epsilon are used.
    problem : DecisionProblem
        Built from it.
    policies : tuple of str
        Names from the catalogue. The sample has neither outcomes nor other priors: policies that look at these are left
        out of the ranking.
    progress : Progress, optional
        Told of each redraw.
    """
    if not isinstance(problem.adjacency, AnyRecord):
        return None
    patients, effects = np.random.default_rng(study.seed).spawn(2)
    sample = _sample(problem, patients)
    response = ResponseModel(study.scenario)
    as_stated = sample.problem(response, study.utility)
    policies = tuple(name for name in policies if applies(study.policy(name, study.epsilon), as_stated))
    if not policies:
        return None
    progress.expect(REDRAWS)
    stated = _ranking(as_stated, study, policies)
    same = first = 0
    for _ in range(REDRAWS):
        treatments = redraw(study.scenario.treatments, effects)
        costs = {name: cost * np.exp(SPREAD * effects.normal()) for name, cost in study.utility.costs.items()}
        redrawn = sample.problem(response.with_treatments(treatments), replace(study.utility, costs=costs))
        ranking = _ranking(redrawn, study, policies)
        same += ranking == stated
        first += ranking[0] == stated[0]
        progress.advance()
    return Robustness(stated, same, REDRAWS, first, N_PATIENTS, SPREAD)


def redraw(treatments: Mapping[str, Treatment], rng: np.random.Generator) -> dict[str, Treatment]:
    """Treatments whose own effects have odds multiplied by exp(SPREAD * normal); combined ones follow their parts."""
    return {
        name: replace(
            treatment, clears=_redrawn(treatment.clears, rng), side_effects=_redrawn(treatment.side_effects, rng)
        )
        for name, treatment in treatments.items()
    }


def _redrawn(effects: Mapping[str, float], rng: np.random.Generator) -> dict[str, float]:
    factors = np.exp(SPREAD * rng.normal(size=len(effects)))
    # p -> odds p/(1-p) times the factor; 0 stays 0 and 1 stays 1.
    return {
        name: float(p * factor / (1 - p + p * factor))
        for (name, p), factor in zip(effects.items(), factors, strict=True)
    }


@dataclass(frozen=True)
class _Sample:
    """The records that redraws are evaluated on, (m,), what they allow, and the patients that each stands for, (m,)."""

    records: IntArray
    shares: FloatArray
    admissible: NDArray[np.bool_] | None

    def problem(self, response: ResponseModel, utility: Utility) -> DecisionProblem:
        """The decision problem of these records."""
        scenario = response.scenario
        outcomes = response.outcome_probabilities(self.records)
        at = scenario.space.lookup(self.records)
        costs = np.column_stack([at.of(cost) for cost in response.costs(utility.costs)])
        utilities = -(outcomes @ utility.weight_vector(scenario.outcomes)) - costs
        return DecisionProblem(utilities, self.shares, AnyRecord(), scenario.actions, admissible=self.admissible)


def _sample(problem: DecisionProblem, rng: np.random.Generator) -> _Sample:
    patients = sample_patients(problem.prior, N_PATIENTS, rng)
    records, where = np.unique(np.concatenate([_extremes(problem.utilities), patients]), return_inverse=True)
    shares = np.bincount(where[-N_PATIENTS:], minlength=len(records)) / N_PATIENTS
    return _Sample(records, shares, None if problem.admissible is None else problem.admissible[records])


def _ranking(problem: DecisionProblem, study: ScenarioStudy, policies: tuple[str, ...]) -> tuple[str, ...]:
    made = {name: study.policy(name, study.epsilon) for name in policies}
    return ranked({name: problem.value(policy.probabilities(problem)) for name, policy in made.items()})


def ranked(values: Mapping[str, float]) -> tuple[str, ...]:
    """Names by value, best first; of equal ones the optimum, which no private policy can exceed, then as given.

    Values are equal that differ by less than what rounding makes of one number: `TIE` of what lies between the best and
    the worst, or `ROUNDING` of the largest.

    Examples
    --------
    >>> ranked({"best-fixed": -1.0, "exponential": -2.0, "optimal": -1.0000000000000002})
    ('optimal', 'best-fixed', 'exponential')
    """
    names = list(values)
    found: FloatArray = np.asarray([values[name] for name in names])
    if not names:
        return ()
    negligible = max(TIE * np.ptp(found), ROUNDING * np.abs(found).max())
    order = np.argsort(-found, kind="stable")
    # The rank grows only where the next value is less by more than rounding.
    ranks = np.zeros(len(names), dtype=int)
    ranks[order[1:]] = np.cumsum(-np.diff(found[order]) > negligible)
    return tuple(sorted(names, key=lambda name: (ranks[names.index(name)], name != Optimal.name, names.index(name))))


def _extremes(utilities: FloatArray) -> NDArray[np.intp]:
    """Records with the largest and smallest utility of each action and difference of two actions."""
    k = utilities.shape[1]
    count = min(N_EXTREME, len(utilities) - 1)
    # One order at a time: each is as long as the table.
    kept = [_ends(utilities[:, a], count) for a in range(k)]
    kept += [_ends(utilities[:, a] - utilities[:, b], count) for a in range(k) for b in range(a)]
    return np.unique(np.concatenate(kept))


def _ends(column: FloatArray, count: int) -> NDArray[np.intp]:
    """Where the smallest and the largest count + 1 entries of a column are."""
    order = np.argpartition(column, (count, len(column) - 1 - count))
    return np.concatenate([order[: count + 1], order[-count - 1 :]])


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
        prevalence say little (`policysim.study.sweep.Gain`). Empty if the scenario names no condition.
    """
    ill = prevalent(study)
    if not 0 < float(problem.prior @ ill) < 1:
        return pd.DataFrame(columns=["policy", "epsilon", "factor", "prevalence", "value", "loss", "benefit_kept"])
    made = [study.policy(name, study.epsilon) for name in policies]
    problems = [evaluated_on(policy, problem) for policy in made]
    tables = [policy.probabilities(on) for policy, on in zip(made, problems, strict=True)]
    everybody = evaluated_on(Greedy(), problem)
    rows = []
    for factor in FACTORS.values():
        prior, prevalence = at_prevalence(problem.prior, ill, factor)
        gain = Gain.of(reweighted(everybody, problem, prior))
        for policy, on, table in zip(made, problems, tables, strict=True):
            value = reweighted(on, problem, prior).value(table)
            rows.append(
                {
                    "policy": policy.name,
                    "epsilon": study.epsilon,
                    "factor": factor,
                    "prevalence": prevalence,
                    "value": value,
                    "loss": gain.best - value,
                    "benefit_kept": gain.kept(value) if gain.has_shares else np.nan,
                }
            )
    return pd.DataFrame(rows)
