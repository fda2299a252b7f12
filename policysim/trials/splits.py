"""Repeated splits: policies are made from one part of a log, and evaluated on patients that had no part in that.

Means of held-out contributions with their errors, what repeated splits say together, and what is measured of one policy
on one split, group by group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from policies.arrays import ROUNDING, FloatArray, IntArray
from policies.policy import Policy
from policies.privacy_loss import privacy_loss_of_logs
from policies.problem import DecisionProblem
from policies.reference import Greedy, Uniform
from policysim.files.bad_rows import DataError
from policysim.logs.load_log import Log
from policysim.logs.log_frame import averaged
from policysim.question.protocol import SILENT, Progress
from policysim.study.checks import guess_rate_of
from policysim.study.declared import LoggedStudy, build_adjacency
from policysim.study.study_problem import fit_problem
from policysim.study.sweep import Groups, prepare
from policysim.trials.estimate_value import row_values
from policysim.trials.estimators import NOTHING, ImportanceWeights, Moments, doubly_robust, moments

REPEATS = 10
FOLDS = 5
FEWEST_PATIENTS = 10


@dataclass(frozen=True, eq=False)
class HeldOut:
    """A policy on the patients of a log, each treated by the version of it that was made without that patient.

    Attributes
    ----------
    contributions : array, (n_rows,)
        The doubly robust value of the policy is their mean.
    probabilities : array, (n_rows, n_actions)
        p(a|x) of each patient.
    weights : array, (n_rows,)
        Importance weights.
    epsilon_spent : float
        The exact privacy loss of the versions, the largest, over all declared records.
    guess_rate : float
        How often the best guess between two neighbours is right, likewise; NaN where that takes too long.
    """

    contributions: FloatArray
    probabilities: FloatArray
    weights: FloatArray
    epsilon_spent: float
    guess_rate: float


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
        u(x, a) of each row, fitted without it.
    """

    log: Log
    folds: IntArray
    problems: tuple[DecisionProblem, ...]
    scores: FloatArray

    def evaluate(self, policy: Policy) -> HeldOut:
        """Make the policy for each fold from all others, and see what it is worth there."""
        probabilities = np.empty_like(self.scores)
        losses, rates = [], []
        for fold, problem in enumerate(self.problems):
            rows = self.folds == fold
            logs, table = policy.tables(problem)
            probabilities[rows] = table[self.log.records[rows]]
            losses.append(privacy_loss_of_logs(logs, problem.adjacency).epsilon)
            rates.append(guess_rate_of(table, problem, losses[-1]))
        weights = self.log.data.of_taken(probabilities) / self.log.data.propensities
        worst, guessed = float(np.max(losses)), float(np.max(rates))
        return HeldOut(self._contributions(probabilities, weights), probabilities, weights, worst, guessed)

    def arm(self, arm: int) -> FloatArray:
        """The contributions of giving everyone the same arm, (n_rows,)."""
        probabilities = np.zeros_like(self.scores)
        probabilities[:, arm] = 1.0
        return self._contributions(probabilities, (self.log.data.actions == arm) / self.log.data.propensities)

    def _contributions(self, probabilities: FloatArray, weights: FloatArray) -> FloatArray:
        data = self.log.data
        direct = row_values(probabilities, self.scores)
        return doubly_robust(weights, data.rewards, direct, data.of_taken(self.scores))


def split_log(log: Log, study: LoggedStudy, progress: Progress = SILENT) -> Iterator[Split]:
    """`REPEATS` independent random splits into `FOLDS` folds, from the study's seed.

    Raises
    ------
    ValueError
        Names an arm with fewer than `FEWEST_PATIENTS` rows.
    """
    counts = log.data.by_action()
    few = [f"{name} has {n}" for name, n in zip(log.data.names, counts, strict=True) if n < FEWEST_PATIENTS]
    if few:  # what a model says of an arm that nobody got is a guess
        raise DataError(
            f"each treatment needs at least {FEWEST_PATIENTS} patients with an outcome, {', '.join(few)}: leave it out "
            "of [data.treatments] and of the log."
        )
    progress.expect(REPEATS * FOLDS)
    rng = np.random.default_rng(study.seed)
    adjacency = build_adjacency(study)
    for _ in range(REPEATS):
        dealt, folds = log.dealt(FOLDS, rng)
        scores = np.empty((dealt.data.n_rows, log.data.n_actions))
        problems = []
        for fold in range(FOLDS):
            mine = folds == fold
            problem = fit_problem(dealt, ~mine, study, adjacency)
            scores[mine] = problem.utilities[dealt.records[mine]]
            problems.append(problem)
            progress.advance()
        yield Split(dealt, folds, tuple(problems), scores)


def minus(one: FloatArray, other: FloatArray) -> FloatArray:
    """One - other, (m,), exactly 0 where they are equal but for rounding."""
    apart = one - other
    apart[np.abs(apart) <= ROUNDING * (np.abs(one) + np.abs(other))] = 0.0
    return apart


def share(part: FloatArray, whole: FloatArray, counts: IntArray | None = None) -> Moments:
    """mean(part) / mean(whole), with the delta method's error: of the mean of (part - ratio whole) / mean(whole)."""
    below = float(averaged(whole, counts)) if len(whole) else 0.0
    if below == 0:
        return NOTHING
    ratio = float(averaged(part, counts)) / below
    apart = moments(minus(part, ratio * whole), counts)
    return Moments(apart.n, ratio, abs(apart.standard_error / below), apart.skewness, apart.kurtosis)


def over_repeats(estimates: Sequence[Moments]) -> Moments:
    """What independent random splits of the same patients say together.

    The mean, with the variance mean(s_r^2 + (v_r - mean)^2), so that it also covers how much depends on the split
    (Chernozhukov et al. 2018, Double/debiased machine learning, definition 3.3). Means and not medians, so
    that the difference of two values is the value of their difference. Skewness and kurtosis are means, too.
    """
    values = np.array([estimate.mean for estimate in estimates])
    errors = np.array([estimate.standard_error for estimate in estimates])
    if np.isnan(values).any():
        return NOTHING
    centre = float(values.mean())
    # The mean of equal numbers is off by rounding.
    apart = minus(values, np.full_like(values, centre))
    return Moments(
        estimates[0].n,
        centre,
        float(np.sqrt(np.mean(errors**2 + apart**2))),
        float(np.mean([estimate.skewness for estimate in estimates])),
        float(np.mean([estimate.kurtosis for estimate in estimates])),
    )


# The names of estimates: of the policy and of greedy, and against each arm: the difference of the policy to it, what
# greedy gains over it, and the policy's share of that gain.
EstimateName: TypeAlias = str | tuple[str, int]
GAIN_OVER_UNIFORM, DIFFERENCE, GAIN, KEPT = "gain over uniform", "difference", "gain", "benefit kept"
# Of a policy and of greedy: what treatments drawn with its shares are worth, and what following the patients adds to
# that by the fitted scores.
BY_LOT, FOLLOWS, GREEDY_BY_LOT, GREEDY_FOLLOWS = "by lot", "follows", "greedy by lot", "greedy follows"


@dataclass(frozen=True, eq=False)
class Measured:
    """One policy on one split, a mapping for each group: estimates by name, and means of what has no interval."""

    estimates: list[dict[EstimateName, Moments]]
    means: list[dict[str, float]]
    epsilon_spent: float
    guess_rate: float


class Measure:
    """Measures policies on one split.

    Parameters
    ----------
    split : Split
        A log, and the scores that were fitted without each part of it.
    groups : Groups
        Whose patients are measured one by one.
    """

    def __init__(self, split: Split, groups: Groups) -> None:
        for problem in split.problems:
            prepare(problem)
        greedy = split.evaluate(Greedy())
        self._split, self._counts = split, split.log.data.counts
        self._groups = [groups.rows(place) for place in range(len(groups))]
        self._greedy, self._greedy_table = greedy.contributions, greedy.probabilities
        self._uniform = split.evaluate(Uniform()).contributions
        self._arms = [split.arm(arm) for arm in range(split.log.data.n_actions)]

    def __call__(self, policy: Policy) -> Measured:
        """Make the policy outside of each fold and measure it there."""
        held_out = self._split.evaluate(policy)
        return Measured(
            [self._estimates(held_out.contributions, rows) for rows in self._groups],
            [self._means(held_out, rows) for rows in self._groups],
            held_out.epsilon_spent,
            held_out.guess_rate,
        )

    def _estimates(self, contributions: FloatArray, rows: IntArray) -> dict[EstimateName, Moments]:
        each = None if self._counts is None else self._counts[rows]
        mine, greedy = contributions[rows], self._greedy[rows]
        loss, whole = minus(greedy, mine), minus(greedy, self._uniform[rows])
        found: dict[EstimateName, Moments] = {
            "value": moments(mine, each),
            "loss": moments(loss, each),
            "normalized_loss": share(loss, whole, each),
            GAIN_OVER_UNIFORM: moments(whole, each),
        }
        for arm, contributed in enumerate(self._arms):
            apart, gain = minus(mine, contributed[rows]), minus(greedy, contributed[rows])
            found |= {
                (DIFFERENCE, arm): moments(apart, each),
                (GAIN, arm): moments(gain, each),
                (KEPT, arm): share(apart, gain, each),
            }
        return found

    def _means(self, held_out: HeldOut, rows: IntArray) -> dict[str, float]:
        names = [f"p_{name}" for name in self._split.log.data.names]
        parts = (BY_LOT, FOLLOWS, GREEDY_BY_LOT, GREEDY_FOLLOWS)
        if not rows.size:
            rates = ["best_action_rate", "worse_than_untreated", "better_than_untreated"]
            return dict.fromkeys([*rates, *names, "ess", *parts], np.nan)
        chosen, weights, scores = held_out.probabilities[rows], held_out.weights[rows], self._split.scores[rows]
        each = None if self._counts is None else self._counts[rows]
        best = np.take_along_axis(chosen, scores.argmax(axis=1)[:, None], axis=1)[:, 0]
        untreated = scores[:, :1]  # the first action
        return {
            "best_action_rate": float(averaged(best, each)),
            "worse_than_untreated": float(averaged((chosen * (scores < untreated)).sum(axis=1), each)),
            "better_than_untreated": float(averaged((chosen * (scores > untreated)).sum(axis=1), each)),
            **dict(zip(names, averaged(chosen, each).tolist(), strict=True)),
            "ess": ImportanceWeights(weights, weights, each).ess,
            **dict(zip(parts, (*self._parts(chosen, rows), *self._parts(self._greedy_table[rows], rows)), strict=True)),
        }

    def _parts(self, chosen: FloatArray, rows: IntArray) -> tuple[float, float]:
        """What is worth drawing treatments with the same shares, and what following the patients adds by the scores."""
        each = None if self._counts is None else self._counts[rows]
        shares = averaged(chosen, each)
        arms = [float(averaged(contributed[rows], each)) for contributed in self._arms]
        follows = ((chosen - shares) * self._split.scores[rows]).sum(axis=1)
        return float(shares @ arms), float(averaged(follows, each))
