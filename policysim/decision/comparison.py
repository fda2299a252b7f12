"""The comparison of policies over epsilon, as one tidy table: exact, overall and per group; and its columns."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from scipy import sparse

from policies.arrays import FloatArray, blocks
from policies.catalogue import DEFAULT_POLICIES, is_built_in, make_policy
from policies.fitted import FittedPolicy
from policies.optimal.optimum import Optimal
from policies.optimal.value_limit import achievable_value
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.reference import BestFixed, Greedy, Uniform
from policysim.progress import SILENT, Progress
from policysim.study.checks import BROKEN, checked_tables, guess_rate_of
from policysim.study.example_patients import ExampleRows
from policysim.study.gain import Proof, excess, prove_loss, ratio
from policysim.study.sweep import (
    REFERENCES,
    ColumnValue,
    Group,
    Groups,
    applies,
    asked_for,
    at,
    evaluate_each,
    evaluated_on,
    prepare,
    rows_on,
    tabulate,
    usable_policies,
)
from policysim.words import ACHIEVABLE, FOR_ALL, UNBEATABLE

# What `compare_problem` takes.
Asked: TypeAlias = Sequence[str | Policy | FittedPolicy] | None
Epsilons: TypeAlias = Sequence[float] | float | None
Advance: TypeAlias = Callable[[], object] | Progress
Rows: TypeAlias = ExampleRows | None


def compare_problem(
    problem: DecisionProblem,
    *,
    policies: Asked = None,
    epsilons: Epsilons = None,
    by: Sequence[str] = (),
    advance: Advance = SILENT,
    examples: Rows = None,
) -> pd.DataFrame:
    """Evaluate policies exactly at several epsilons, overall and per group.

    Parameters
    ----------
    problem : DecisionProblem
        What is to be decided.
    policies : sequence of str, Policy or FittedPolicy, optional
        Names from the catalogue, or policies whose epsilon is replaced, also those of fitted ones; best-fixed,
        exponential, exponential-fitted, randomized-response, the optimum and, where an outcome leads, optimal-safe by
        default.
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
        The columns are explained by `policysim.compare`.

    Raises
    ------
    ValueError
        For an unknown policy or group, a policy that cannot be used on the problem (`NotApplicableError`), or an
        epsilon that is not a number >= 0.
    ClaimError, NoTableError, InadmissibleError
        If no policy is what it says of itself. One of several is left out with a warning.
    """
    table, broken = compared(problem, policies, epsilons, by=by, advance=advance, examples=examples)
    for fault in broken.values():
        warnings.warn(f"left out: {fault}", stacklevel=3)
    return table


def compared(
    problem: DecisionProblem,
    policies: Asked,
    epsilons: Epsilons,
    *,
    by: Sequence[str],
    advance: Advance,
    examples: Rows,
) -> tuple[pd.DataFrame, dict[Policy, Exception]]:
    """`compare_problem`, and what is wrong with the policies that are left out: they are not what they say."""
    progress = Progress.of(advance)
    if policies is None:
        policies, _ = usable_policies([make_policy(name) for name in DEFAULT_POLICIES], problem, named=False)
    templates, values = asked_for(policies, epsilons, by)
    bounded = [template for template in templates if isinstance(template, Optimal) and not applies(template, problem)]
    usable = [template for template in templates if template not in bounded]
    for on in {evaluated_on(template, problem) for template in usable}:
        prepare(on)
    evaluator = Evaluator(problem, by, examples)
    found = evaluate_each((at(each, epsilon) for each in usable for epsilon in values), evaluator.attempt, progress)
    means = {policy: result for policy, result in found.items() if isinstance(result, Evaluated)}
    # Of each policy the fault at the smallest epsilon that has one.
    broken = {
        template: fault
        for template in usable
        for epsilon in reversed(values)
        if isinstance(fault := found[at(template, epsilon)], Exception)
    }
    if len(broken) == len(templates):
        raise next(iter(broken.values()))
    limits = _limits(problem, values, progress) if bounded else []

    evaluations: list[Evaluated] = []
    for template in (each for each in templates if each not in broken):
        # A policy that ignores epsilon is evaluated once, and stands at each.
        evaluations += (
            limits
            if template in bounded
            else [means[at(template, epsilon)]._replace(epsilon=epsilon) for epsilon in values]
        )
    # The columns are named already.
    return tabulate(evaluations, {"": attrgetter("columns")}), broken


class Evaluator:
    """Evaluates policies on one problem, for everyone and for the levels of some features.

    Parameters
    ----------
    problem : DecisionProblem
        Utilities, prior and outcomes.
    by : sequence of str, optional
        Features whose levels are evaluated one by one, beside everyone.
    examples : ExampleRows, optional
        Keeps what each policy gives the example patients.
    """

    def __init__(self, problem: DecisionProblem, by: Sequence[str] = (), examples: ExampleRows | None = None) -> None:
        self.problem, self.groups, self._examples = problem, Groups(by, problem.records.groups, problem.prior), examples
        # The mean of a group without patients is NaN.
        self._patients = np.where(self.groups.sizes > 0, self.groups.sizes, math.nan)
        self._kinds, self._n_kinds = problem.best_actions, problem.n_actions
        self._weights: dict[DecisionProblem, list[sparse.csc_array]] = {}
        means = {}
        for policy in REFERENCES:
            on = evaluated_on(policy, problem)
            means[policy.name] = self.means(policy.probabilities(on), on)
        self._greedy, self._fixed, self._uniform = (means[name] for name in (Greedy.name, BestFixed.name, Uniform.name))
        # The mean of a record's largest |utility| is the scale of the rounding of values.
        largest = np.maximum(problem.utilities.max(axis=1), -problem.utilities.min(axis=1))
        self._magnitudes = self.groups.totals(problem.prior * largest) / self._patients

    def evaluate(self, policy: Policy) -> Evaluated:
        """A policy at its epsilon: its means, its exact privacy loss, and of the optimum what is proven."""
        on = evaluated_on(policy, self.problem)
        _, probabilities, spent = checked_tables(policy, on)
        if self._examples:
            self._examples.known[policy] = probabilities[rows_on(on, self.problem)[self._examples.records]]
        proof = prove_loss(self.problem, policy.epsilon) if isinstance(policy, Optimal) else Proof()
        columns = self.columns(self.means(probabilities, on), proof) | {
            "epsilon_spent": spent,
            # What is spent beyond the guarantee is rounding.
            "guess_rate": guess_rate_of(probabilities, on, min(spent, policy.claimed)),
            "guarantee": policy.claimed,
            "loss_bound": policy.loss_bound(on),
        }
        return Evaluated(self._name_of(policy), policy.epsilon, self.groups, columns)

    def attempt(self, policy: Policy) -> Evaluated | Exception:
        """`evaluate`; of a policy that is not built in and not what it says, what is wrong with it."""
        try:
            return self.evaluate(policy)
        except BROKEN as error:
            if is_built_in(policy):
                raise
            return error

    def columns(self, means: Means, proof: Proof) -> dict[str, ColumnValue]:
        """The columns of a comparison, by name; what a policy reveals and claims is not known here."""
        greedy, fixed, magnitudes = self._greedy.value, self._fixed.value, self._magnitudes
        loss = excess(greedy, means.value, magnitudes)
        outcomes, of_fixed = means.outcomes, self._fixed.outcomes
        # What is proven of the optimum is about everyone, who are the first group.
        of_others = [math.nan] * (len(self.groups) - 1)
        return {
            "value": means.value,
            "loss": loss,
            "normalized_loss": ratio(loss, greedy - self._uniform.value, magnitudes),
            "benefit_kept": ratio(excess(means.value, fixed, magnitudes), greedy - fixed, magnitudes),
            # Records of a kind have the same best action.
            "best_action_rate": np.einsum("gaa->g", means.chosen),
            **dict(zip((f"p_{name}" for name in self.problem.actions), means.chosen.sum(axis=1).T, strict=True)),
            **{f"expected_{name}": mean for name, mean in outcomes.items()},
            # Beyond the same treatment in each group.
            **{
                f"extra_{name}": excess(mean, of_fixed[name], np.maximum(abs(mean), abs(of_fixed[name])))
                for name, mean in outcomes.items()
            },
            **dict.fromkeys(("epsilon_spent", "guess_rate", "guarantee", "loss_bound"), math.nan),
            "least_loss": [proof.least_loss, *of_others],
            "most_kept": [proof.most_kept, *of_others],
        }

    def limits(self, epsilon: float) -> list[Evaluated]:
        """Bounds of the limit at an epsilon, of everyone: a value that is reached, and one that none exceeds.

        Where there is no proof there is no second one.
        """
        proof, best = prove_loss(self.problem, epsilon), self._greedy.value
        unknown = Means(
            best - proof.least_loss,
            np.full(self._greedy.chosen.shape, math.nan),
            dict.fromkeys(self.problem.outcomes, np.full(len(best), math.nan)),
        )
        reached = replace(unknown, value=np.array([achievable_value(self.problem, epsilon)]))
        found = [Evaluated(ACHIEVABLE, epsilon, self.groups, self.columns(reached, proof))]
        if not math.isnan(proof.least_loss):
            # As it was proven, and not as it was subtracted.
            least = np.array([proof.least_loss])
            columns = self.columns(unknown, proof) | {
                "loss": least,
                "normalized_loss": ratio(least, best - self._uniform.value, self._magnitudes),
                "benefit_kept": np.array([proof.most_kept]),
            }
            found.append(Evaluated(UNBEATABLE, epsilon, self.groups, columns))
        return found

    def _name_of(self, policy: Policy) -> str:
        """Its name; of a policy that gives everyone one action that was named, the name of the action, too."""
        if isinstance(policy, BestFixed) and policy.action is not None:
            return f"{FOR_ALL}{self.problem.actions[policy.action]}"
        return policy.name

    def means(self, probabilities: FloatArray, on: DecisionProblem) -> Means:
        """What a table gives in each group.

        Parameters
        ----------
        probabilities : array, (n_records, n_actions)
            p(a|x).
        on : DecisionProblem
            What the table is of: this problem, or that of its distinct rows (`policies.distinct.once_each`).
        """
        whole = on.outcomes.whole
        tables, n_cells = (on.utilities, *(on.outcomes[name] for name in whole)), self.groups.membership.shape[1]
        if on not in self._weights:
            # The patients of each record (of distinct rows: with each row), in blocks: a row for each cell and kind.
            row = rows_on(on, self.problem)
            places = self.groups.cells * self._n_kinds + self._kinds
            patients = sparse.coo_array((self.problem.prior, (places, row)), (n_cells * self._n_kinds, on.n_records))
            self._weights[on] = [patients.tocsc()[:, rows] for rows in blocks(on.n_records)]
        totals = np.zeros((n_cells * self._n_kinds, len(tables) + on.n_actions))
        for rows, weights in zip(blocks(on.n_records), self._weights[on], strict=True):
            given = probabilities[rows]
            expected = [np.einsum("na,na->n", given, table[rows]) for table in tables]
            totals += weights @ np.column_stack([*expected, given])
        by_cell = totals.reshape(n_cells, self._n_kinds, -1)
        expectations = self.groups.membership @ by_cell[..., : len(tables)].sum(axis=1) / self._patients[:, None]
        chosen = np.tensordot(self.groups.membership, by_cell[..., len(tables) :], axes=1)
        value, *means = expectations.T
        outcomes = dict(zip(whole, means, strict=True))
        # Single symptoms and costs are there for everyone, the first group: for all groups they would take too long.
        for name, mean in on.outcomes.repeated_means(on.prior[:, None] * probabilities).items():
            outcomes[name] = np.full(len(self.groups), math.nan)
            outcomes[name][0] = mean
        return Means(value, chosen / self._patients[:, None, None], outcomes)


def _limits(problem: DecisionProblem, epsilons: Sequence[float], progress: Progress) -> list[Evaluated]:
    """Bounds of the limit at each epsilon."""
    bounds = Evaluator(problem).limits
    # The first by itself: it finds out what is the same for all of them.
    found = evaluate_each(epsilons[:1], bounds, progress) | evaluate_each(epsilons[1:], bounds, progress)
    return [bound for epsilon in epsilons for bound in found[epsilon]]


@dataclass(frozen=True, eq=False)
class Means:
    """What a table of action probabilities gives, per patient of each group, under the prior.

    NaN for a group of probability 0.

    Attributes
    ----------
    value : array, (n_groups,)
        Expected utility.
    chosen : array, (n_groups, n_kinds, n_actions)
        The probability that a patient is of a kind and gets an action. Records are of one kind that have the same best
        action: there are as many kinds as actions.
    outcomes : mapping of str to array, (n_groups,)
        The expectation of each outcome.
    """

    value: FloatArray
    chosen: FloatArray
    outcomes: Mapping[str, FloatArray]


class Evaluated(NamedTuple):
    """One policy at one epsilon, or a bound of the limit there: its columns, by name, of the groups, everyone first."""

    policy: str
    epsilon: float
    groups: Sequence[Group]
    columns: Mapping[str, ColumnValue]
