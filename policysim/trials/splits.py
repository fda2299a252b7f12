"""Random splits of a log, and what a policy is worth on one: made from one part, and measured on the rest.

A policy is made for each fold from all other folds, and measured group by group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from policies.arrays import FloatArray, IntArray
from policies.optimal.optimum import OptimalSafe
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.reference import BestFixed, Greedy, Uniform
from policysim.files.bad_rows import DataError
from policysim.logs.load_log import Log
from policysim.logs.log_frame import LoggedData, averaged
from policysim.logs.outcome_models import robust_values
from policysim.progress import SILENT, Progress
from policysim.report.findings import OUTCOME
from policysim.study.checks import checked_tables, guess_rate_of
from policysim.study.declared import LoggedStudy, build_adjacency
from policysim.study.study_problem import fit_problem
from policysim.study.sweep import Groups, prepare
from policysim.trials.arms import arm_means
from policysim.trials.estimate_value import row_values
from policysim.trials.estimators import NOTHING, Moments, effective_size, minus, moments, one_more
from policysim.utility import COSTS

FOLDS = 5
FEWEST_PATIENTS = 10


@dataclass(frozen=True, eq=False)
class Split:
    """A log, split at random into folds.

    Attributes
    ----------
    log : Log
        All of it. Of a counted log, each row is divided among the folds.
    folds : array, (n_rows,)
        The fold of each row.
    problems : tuple of DecisionProblem
        Number j is fitted to the rows outside fold j.
    scores : array, (n_rows, n_actions)
        u(x, a) of each row, fitted without it: policies are made from them.
    values : array, (n_rows, n_actions)
        The doubly robust value of each arm to each row (Robins, Rotnitzky & Zhao 1994): what an outcome model that was
        fitted without the row predicts, and of the arm that was given the weighted residual, too; less what the arm
        costs. The model is that of the scores, or where there is `Log.predicted` that of it.
    """

    log: Log
    folds: IntArray
    problems: tuple[DecisionProblem, ...]
    scores: FloatArray
    values: FloatArray

    def evaluate(self, policy: Policy) -> tuple[FloatArray, float, float, float]:
        """Make the policy for each fold from all others: nobody is treated by a version that was made with them.

        p(a|x) of each patient, (n_rows, n_actions); of all versions the largest loss and guess rate (or NaN), and the
        mean of what each is worth by the scores that it was made from.
        """
        table = np.empty_like(self.scores)
        losses, rates, worth = [], [], []
        for fold, problem in enumerate(self.problems):
            rows = self.folds == fold
            _, mine, spent = checked_tables(policy, problem)
            table[rows] = mine[self.log.records[rows]]
            losses.append(spent)
            rates.append(guess_rate_of(mine, problem, spent))
            worth.append(problem.value(mine))
        return table, float(np.max(losses)), float(np.max(rates)), float(np.mean(worth))


def split_log(log: Log, study: LoggedStudy, progress: Progress = SILENT) -> Iterator[Split]:
    """Independent random splits into `FOLDS` folds without end, from the study's seed; progress counts the folds.

    Raises
    ------
    ValueError
        Names an arm with fewer than `FEWEST_PATIENTS` rows.
    """
    counts = log.data.by_action(log.data.known.weights > 0)
    few = [f"{name} has {n}" for name, n in zip(log.data.names, counts, strict=True) if n < FEWEST_PATIENTS]
    if few:  # what a model says of an arm that nobody got is a guess
        raise DataError(
            f"each treatment needs at least {FEWEST_PATIENTS} patients with an outcome, {', '.join(few)}: leave it out "
            "of [data.treatments] and of the log."
        )
    rng = np.random.default_rng(study.seed)
    adjacency = build_adjacency(study)
    while True:
        dealt, folds = log.dealt(FOLDS, rng)
        scores = np.empty((dealt.data.n_rows, log.data.n_actions))
        problems = []
        for fold in range(FOLDS):
            mine = folds == fold
            problem = fit_problem(dealt, ~mine, study, adjacency)
            scores[mine] = problem.utilities[dealt.records[mine]]
            problems.append(problem)
            progress.advance()
        # Costs are known: outcomes alone are predicted.
        outcomes = scores if log.data.costs is None else scores + log.data.costs
        values = robust_values(dealt.data, outcomes if dealt.predicted is None else dealt.predicted)
        values = log.data.less_costs(values)
        yield Split(dealt, folds, tuple(problems), scores, values)


def calibration_of(log: Log, study: LoggedStudy) -> pd.DataFrame:
    """What the scores predict beside what was seen, in thirds of each arm's patients by their scores.

    A score is that of the arm that the patient got, in the first split: fitted without the patient.

    Returns
    -------
    DataFrame
        `line` (arm), `predicted` (mean score, weighted by inverse propensities), `value` (mean outcome, see
        `arm_means`) with its 95 % interval `low`, `high`, and `patients`. Thirds of fewer than `FEWEST_PATIENTS` are
        left out; patients of equal scores are in the same third.
    """
    split = next(split_log(log, study))
    data = split.log.data
    # What arms cost is not predicted.
    scores = data.of_taken(split.scores if data.costs is None else split.scores + data.costs)
    rows = []
    for arm, name in enumerate(data.names):
        own = np.flatnonzero(data.actions == arm)
        of_arm = data.of(own)
        # The scores of the patients who stand there.
        places = (np.floor(np.multiply((1 / 3, 2 / 3), of_arm.n_patients - 1)) + 0.5) / of_arm.n_patients
        cuts = np.unique(np.quantile(scores[own], places, weights=of_arm.counts, method="inverted_cdf"))
        thirds = np.searchsorted(cuts, scores[own])
        for third in np.unique(thirds):
            members = own[thirds == third]
            patients = data.of(members)
            if patients.n_patients >= FEWEST_PATIENTS:
                predicted = float(np.average(scores[members], weights=patients.inverse_propensities))
                _, n, *seen = arm_means(patients, study.log.utility_range).iloc[arm]
                rows.append((name, predicted, *seen, n))
    return pd.DataFrame(rows, columns=["line", "predicted", "value", "low", "high", "patients"])


def ratio_of_means(
    part: FloatArray, whole: FloatArray, counts: IntArray | None = None, *, clusters: IntArray | None = None
) -> Moments:
    """mean(part) / mean(whole), with the delta method's error: of the mean of (part - ratio whole) / mean(whole)."""
    below = float(averaged(whole, counts)) if len(whole) else 0.0
    if below == 0:
        return NOTHING
    ratio = float(averaged(part, counts)) / below
    apart = moments(minus(part, ratio * whole), counts, clusters=clusters)
    return replace(apart, mean=ratio, standard_error=abs(apart.standard_error / below))


# Estimates that are no columns: what greedy gains over uniform, and over one arm for all.
GAIN_OVER_UNIFORM, GAIN = "gain over uniform", "gain"
# How the policy that keeps a study's limits differs from `SameWithinLimits`: one arm for all may be impossible there.
WITHIN = "difference_within"
# The two parts of a utility with costs, as columns: what is expected, and how it differs from one arm for all, within
# limits, and from greedy.
PARTS, OF_PARTS = (OUTCOME, COSTS), ("expected", "difference", WITHIN, "loss")


class Measured(NamedTuple):
    """One policy on one split, a mapping for each group: estimates by name, and means of what has no interval."""

    estimates: list[dict[str, Moments]]
    means: list[dict[str, float]]
    epsilon_spent: float
    guess_rate: float
    fitted_value: float


class _Group(NamedTuple):
    """Some patients: which rows, and what the log says of them."""

    rows: IntArray
    data: LoggedData

    def moments(self, contributions: FloatArray, beyond: FloatArray | None = None) -> Moments:
        """Those of what all rows contribute, (n_rows,), in this group; of a difference with `Measure._beyond`."""
        unseen = 0.0 if beyond is None or not len(self.rows) else one_more(beyond[self.rows], self.data)
        return moments(contributions[self.rows], self.data.counts, unseen, clusters=self.data.clusters)

    def value(self, contributions: FloatArray, weights: FloatArray | None) -> Moments:
        """The same of a value; of outcomes 0 and 1 that do not vary at all, with `weights` of rows, as if some did."""
        found = self.moments(contributions)
        return found if weights is None or found.standard_error else self.moments(contributions, weights)

    def ratio(self, part: FloatArray, whole: FloatArray) -> Moments:
        """The `ratio_of_means` of what all rows contribute, in this group."""
        return ratio_of_means(part[self.rows], whole[self.rows], self.data.counts, clusters=self.data.clusters)


class Measure:
    """Measures policies on one split, group by group.

    Attributes
    ----------
    chosen : array, (n_actions,)
        The share of patients for whom each arm is the one for all that was chosen on the other folds.
    """

    def __init__(self, split: Split, groups: Groups, limited: Sequence[str] = (), within: Policy | None = None) -> None:
        for problem in split.problems:
            prepare(problem)
        data, values = split.log.data, split.values
        self._split, self._limited = split, [data.names.index(name) for name in limited]
        self._greedy, uniform, self._one = (split.evaluate(each())[0] for each in (Greedy, Uniform, BestFixed))
        self._within = None if within is None else split.evaluate(within)[0]
        self.chosen = averaged(self._one, data.counts)
        self._value_of_greedy = row_values(self._greedy, values)
        self._over_uniform = minus(self._value_of_greedy, row_values(uniform, values))
        self._gain = minus(self._value_of_greedy, row_values(self._one, values))
        self._binary = data.is_binary
        beyond = self._beyond(self._greedy, self._one)
        self._groups = [_Group(rows, data.of(rows)) for rows in map(groups.rows, range(len(groups)))]
        # No policy changes these.
        self._gains = [
            {GAIN_OVER_UNIFORM: group.moments(self._over_uniform), GAIN: group.moments(self._gain, beyond)}
            for group in self._groups
        ]

    def __call__(self, policy: Policy) -> Measured:
        """Make the policy outside of each fold and measure it there."""
        table, *of_versions = self._split.evaluate(policy)
        data, values = self._split.log.data, row_values(table, self._split.values)
        # Rows without an outcome are made up for by the others, whose weights grow.
        weights = data.of_taken(table) / data.propensities * data.known.weights
        loss = minus(self._value_of_greedy, values)
        others = self._compared_with(policy)
        apart = {name: minus(values, row_values(other, self._split.values)) for name, other in others.items()}
        beyond = {name: self._beyond(table, other) for name, other in others.items()}
        parts = self._parts(table, others)
        estimates, means = [], []
        for group, gains in zip(self._groups, self._gains, strict=True):
            estimates.append(
                {
                    "value": group.value(values, weights if self._binary else None),
                    "loss": group.moments(loss),
                    "normalized_loss": group.ratio(loss, self._over_uniform),
                    "benefit_kept": group.ratio(apart["difference"], self._gain),
                }
                | {name: group.moments(apart[name], beyond[name]) for name in others}
                | gains
                | {name: group.moments(part) for name, part in parts.items()}
            )
            shares = averaged(table[group.rows], group.data.counts).tolist()
            chosen = {f"p_{name}": share for name, share in zip(data.names, shares, strict=True)}
            means.append(chosen | {"ess": effective_size(weights[group.rows], group.data.counts)})
        return Measured(estimates, means, *of_versions)

    def _compared_with(self, policy: Policy) -> dict[str, FloatArray]:
        """Tables that a policy's differences are from, by name."""
        others = {"difference": self._one}
        if self._within is not None and policy.name == OptimalSafe.name:
            others[WITHIN] = self._within
        return others

    def _parts(self, table: FloatArray, others: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        """What is estimated of a policy beside its value, a number for each row: use of limited arms, and `PARTS`.

        Costs are known exactly for each patient; what is estimated is their mean over other patients.
        """
        data, names = self._split.log.data, self._split.problems[0].actions
        parts = {f"p_{names[arm]}": table[:, arm] for arm in self._limited}
        if data.costs is None:
            return parts
        costs = np.broadcast_to(data.costs, table.shape)
        for name, values in zip(PARTS, (self._split.values + costs, costs), strict=True):
            mine = row_values(table, values)
            parts[f"expected_{name}"] = mine
            parts |= {f"{what}_{name}": minus(mine, row_values(other, values)) for what, other in others.items()}
            parts[f"loss_{name}"] = minus(row_values(self._greedy, values), mine)
        return parts

    def _beyond(self, table: FloatArray, other: FloatArray) -> FloatArray | None:
        """The weight of how far a policy gives a row's own arm more, or less, than another does, (n_rows,).

        None where outcomes are not 0 and 1: there it is not asked for.
        """
        data = self._split.log.data
        return data.of_taken(np.abs(table - other)) / data.propensities if self._binary else None
