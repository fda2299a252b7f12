"""The comparison of policies over epsilon, as one tidy table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from policies.arrays import FloatArray
from policies.catalogue import DEFAULT_POLICIES, make_policy
from policies.optimal.optimum import Optimal
from policies.optimal.value_limit import achievable_value
from policies.policy import Policy
from policies.privacy_loss import privacy_loss_of_logs
from policies.problem import DecisionProblem
from policysim.decision.evaluate import Evaluator
from policysim.question.protocol import SILENT, Progress
from policysim.question.words import ACHIEVABLE, ALL, UNBEATABLE
from policysim.study.checks import checked_tables, guess_rate_of
from policysim.study.example_patients import ExampleRows
from policysim.study.gain import Proof, excess, prove_loss, ratio
from policysim.study.sweep import (
    N_THREADS,
    REFERENCES,
    applies,
    asked_for,
    at,
    at_each,
    evaluated_on,
    prepare,
    usable_policies,
)


@dataclass(frozen=True)
class Result:
    """One policy, evaluated: its means, (n_groups, n_metrics), what it reveals, and what proves it optimal."""

    means: FloatArray
    epsilon_spent: float
    guess_rate: float
    proof: Proof


@dataclass(frozen=True)
class References:
    """The means, (n_groups, n_metrics), of the policies that losses are measured against; `Evaluator.magnitudes`."""

    greedy: FloatArray
    best_fixed: FloatArray
    uniform: FloatArray
    magnitudes: FloatArray


def compare_problem(
    problem: DecisionProblem,
    *,
    policies: Sequence[str | Policy] | None = None,
    epsilons: Sequence[float] | None = None,
    by: Sequence[str] = (),
    advance: Callable[[], object] | Progress = SILENT,
    examples: ExampleRows | None = None,
) -> pd.DataFrame:
    """Evaluate policies exactly at several epsilons, overall and per group.

    Parameters
    ----------
    problem : DecisionProblem
        What is to be decided.
    policies : sequence of str or Policy, optional
        Names from the catalogue, or policies whose epsilon is replaced; one-for-all, exponential,
        exponential-tight, randomized-response, the optimum and, where deaths are counted, optimal-safe by default.
        Where the optimum can only be bounded, "optimal" becomes two policies: "optimal-achievable", a value that some
        policy reaches, and "optimal-unbeatable", one that is proven to be exceeded by none (at each epsilon where
        there is a proof); the other columns of these rows are empty.
    epsilons : sequence of float, optional
        Values >= 0; 24 from 0.05 to 20 by default. Policies that do not depend on epsilon repeat at each.
    by : sequence of str, optional
        Features of the problem's records whose levels are evaluated one by one.
    advance : callable or Progress, optional
        Called after each policy and epsilon that is evaluated.
    examples : ExampleRows, optional
        Keeps what each policy gives the example patients.

    Returns
    -------
    DataFrame
        One row per policy, epsilon and group (everyone first, as group = level = "all"). Means are per patient of the
        group, under the prior; V is the expected utility.

        - `policy`, `epsilon`, `group`, `level`: what the row is about
        - `share`: probability of the group
        - `value`: V
        - `loss`: V(greedy) - V
        - `normalized_loss`: loss / (V(greedy) - V(uniform)); may exceed 1; NaN where greedy gains nothing
        - `benefit_kept`: (V - V(best-fixed)) / (V(greedy) - V(best-fixed)); may be negative; NaN where that difference
          is 0 but for the rounding of sums. Where it is small beside what choosing by lot loses, this is a number
          still, but pages and screens do not print it (`policysim.study.gain.Gain`)
        - `best_action_rate`: probability of the best action
        - `worse_than_untreated`, `better_than_untreated`: probability of an action that is worse, or better, than the
          first, which is no treatment, where that is allowed
        - `p_*`: of each action, 0 where it is not allowed (`DecisionProblem.admissible`): greedy, best-fixed
          and uniform choose among what is allowed, and best-fixed has one action for all who allow the same
        - `expected_*`, `extra_*`: each outcome of the problem, and its excess over greedy
        - `epsilon_spent`: exact privacy loss under the problem's adjacency, the same for all groups
        - `guess_rate`: how often the best guess between two equally likely neighbours is right at most, under this
          policy (`policies.guess_rate`), the same for all groups; at most e^epsilon_spent / (1 + e^epsilon_spent), but
          no promise in its place: it says nothing of several treatments. NaN where it takes too long to compute
        - `guarantee`: the privacy loss that the policy claims not to exceed
        - `loss_bound`: upper bound on the loss from theory (McSherry & Talwar 2007), NaN where there is none
        - `least_loss`: no epsilon-private policy loses less, in units of utility; only in the rows of the optimum (or
          its bounds) of everyone, and only where a certificate says so that rational arithmetic has accepted
          (`policies.proof`), rounded down; else NaN. Under one-feature it can be far below the optimum
        - `most_kept`: no epsilon-private policy keeps more of the benefit: `least_loss` as a share, rounded up

    Raises
    ------
    ValueError
        For an unknown policy or group, a policy that cannot be used on the problem (`NotApplicableError`), or an
        epsilon that is not a number >= 0.
    """
    progress = Progress.of(advance)
    if policies is None:
        policies, _ = usable_policies([make_policy(name) for name in DEFAULT_POLICIES], problem, named=False)
    templates, values = asked_for(policies, epsilons, by)
    bounded = [template for template in templates if isinstance(template, Optimal) and not applies(template, problem)]
    evaluator = Evaluator(problem, by)
    greedy, best_fixed, uniform = (_means(evaluator, policy) for policy in REFERENCES)
    references = References(greedy, best_fixed, uniform, evaluator.magnitudes())
    jobs = [policy for template in templates if template not in bounded for policy in at_each(template, values)]
    progress.expect(len(jobs) + (len(values) if bounded else 0))
    results = _run_all(evaluator, jobs, progress, examples)
    intervals = _all_intervals(problem, values, references, progress) if bounded else {}
    frames: list[pd.DataFrame] = []
    for template in templates:
        if template in bounded:
            frames += [intervals[epsilon] for epsilon in values]
        else:
            every = [(at(template, epsilon), epsilon) for epsilon in values]
            rows = [_rows(evaluator, policy, epsilon, results[policy], references) for policy, epsilon in every]
            frames.append(_below_each_other(rows, len(evaluator.groups)))
    return pd.concat(frames, ignore_index=True)


def _all_intervals(
    problem: DecisionProblem, epsilons: Sequence[float], references: References, progress: Progress
) -> dict[float, pd.DataFrame]:
    """The limit at each epsilon, where only bounds of it can be computed."""

    def rows(epsilon: float) -> pd.DataFrame:
        found = _interval_rows(problem, epsilon, references)
        progress.advance()
        return found

    # The first by itself: it finds out what is the same for all of them.
    known = {epsilon: rows(epsilon) for epsilon in epsilons[:1]}
    with ThreadPoolExecutor(N_THREADS) as pool:
        return {**known, **dict(zip(epsilons[1:], pool.map(rows, epsilons[1:]), strict=True))}


def _interval_rows(problem: DecisionProblem, epsilon: float, references: References) -> pd.DataFrame:
    """The limit where only bounds of it can be computed: a value that is reached, and one that provably none exceeds.

    Without a proof there is no second row.
    """
    proof = prove_loss(problem, epsilon)
    greedy, fixed, uniform = (means[0, 0] for means in (references.greedy, references.best_fixed, references.uniform))
    value = np.array([achievable_value(problem, epsilon), greedy - proof.least_loss])
    size = references.magnitudes[:1]
    rows = pd.DataFrame(
        {
            "policy": [ACHIEVABLE, UNBEATABLE],
            "epsilon": epsilon,
            "group": ALL,
            "level": ALL,
            "share": 1.0,
            "value": value,
            "loss": [greedy - value[0], proof.least_loss],
            "normalized_loss": ratio(greedy - value, np.full(2, greedy - uniform), size),
            "benefit_kept": [*ratio(value[:1] - fixed, np.array([greedy - fixed]), size), proof.most_kept],
            **proof._asdict(),
        }
    )
    return rows[:1] if math.isnan(proof.least_loss) else rows


def _means(evaluator: Evaluator, policy: Policy) -> FloatArray:
    on = evaluated_on(policy, evaluator.problem)
    return evaluator.means(policy.probabilities(on), on)


def _run_all(
    evaluator: Evaluator, policies: list[Policy], progress: Progress, examples: ExampleRows | None
) -> dict[Policy, Result]:
    """Means and exact privacy loss of each policy, and of the optimum what is proven."""
    problem = evaluator.problem
    for on in {evaluated_on(policy, problem) for policy in policies}:
        prepare(on)

    def run(policy: Policy) -> Result:
        on = evaluated_on(policy, problem)
        logs, probabilities = checked_tables(policy, on)
        spent = privacy_loss_of_logs(logs, on.adjacency).epsilon
        # What is spent beyond the guarantee is rounding.
        guessed = guess_rate_of(probabilities, on, min(spent, policy.guarantee))
        means = evaluator.means(probabilities, on)
        if examples:
            examples.keep(policy, probabilities)
        proof = prove_loss(problem, policy.epsilon) if isinstance(policy, Optimal) else Proof()
        progress.advance()
        return Result(means, spent, guessed, proof)

    with ThreadPoolExecutor(N_THREADS) as pool:
        return dict(zip(policies, pool.map(run, policies), strict=True))


def _below_each_other(parts: Sequence[Mapping[str, Any]], n_rows: int) -> pd.DataFrame:
    """The columns of each part, lists of `n_rows` or one value for all of them, as one table: faster than `concat`."""

    def cells(column: Any) -> list[Any]:
        return [column] * n_rows if np.ndim(column) == 0 else list(column)

    return pd.DataFrame({name: [cell for part in parts for cell in cells(part[name])] for name in parts[0]})


def _rows(
    evaluator: Evaluator, policy: Policy, epsilon: float, result: Result, references: References
) -> dict[str, Any]:
    """The columns of one policy at one epsilon, a group each; what is proven is about everyone, who are the first."""
    means = result.means
    groups = evaluator.groups
    value, greedy = means[:, 0], references.greedy[:, 0]
    fixed, uniform = references.best_fixed[:, 0], references.uniform[:, 0]
    columns: dict[str, Any] = {
        "policy": policy.name,
        "epsilon": epsilon,
        "group": [group.feature for group in groups],
        "level": [group.level for group in groups],
        "share": [group.share for group in groups],
        "value": value,
        "loss": (loss := excess(greedy, value, references.magnitudes)),
        "normalized_loss": ratio(loss, greedy - uniform, references.magnitudes),
        "benefit_kept": ratio(excess(value, fixed, references.magnitudes), greedy - fixed, references.magnitudes),
    }
    for position, metric in enumerate(evaluator.metrics[1:], start=1):
        columns[metric] = means[:, position]
        if metric.startswith("expected_"):
            mean, least = means[:, position], references.greedy[:, position]
            columns[metric.replace("expected_", "extra_", 1)] = excess(mean, least, np.maximum(abs(mean), abs(least)))
    columns["epsilon_spent"] = result.epsilon_spent
    columns["guess_rate"] = result.guess_rate
    columns["guarantee"] = policy.guarantee
    columns["loss_bound"] = policy.loss_bound(evaluated_on(policy, evaluator.problem))
    for name, proven in zip(Proof._fields, result.proof, strict=True):
        columns[name] = [proven, *[math.nan] * (len(groups) - 1)]
    return columns
