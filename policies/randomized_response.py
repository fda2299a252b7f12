"""Randomised response: on the decision, or on the features of the record before it.

On the decision: the best action most of the time, any other one otherwise. On the record: each feature is randomised on
its own, and then the decision is as good as the randomised record allows. That channel is k-ary response along the axes
of a product space. Along an axis with m levels and a share e of epsilon, K = (p - q) I + q 1 1^T with
q = 1 / (e^e + m - 1) and p = e^e q. K is symmetric, so the law of reports given a record and the weights of records
given a report are the same product.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.adjacency import AnyRecord
from policies.arrays import FloatArray, logs_of
from policies.policy import NotApplicableError, Policy, one_hot_logs, two_values
from policies.problem import DecisionProblem


@dataclass(frozen=True)
class RandomizedResponse(Policy):
    """k-ary randomised response on the greedy action; it uses the order of the utilities and not the prior.

    The best action has probability e^epsilon / (e^epsilon + k - 1), each other one 1 / (e^epsilon + k - 1)
    (Kairouz, Oh & Viswanath 2016, Extremal mechanisms for local differential privacy, equation 17).
    """

    name = "randomized-response"
    uses_prior = False
    row_wise = True  # reads which action of the row is best

    def _log_probabilities(self, problem: DecisionProblem) -> FloatArray:
        """Two values: log of the probability to tell the truth, and of each lie."""
        return self._tables(problem)[0]

    def _tables(self, problem: DecisionProblem) -> tuple[FloatArray, FloatArray]:
        """Two values in each table."""
        k = problem.n_actions
        truth = -float(np.log1p((k - 1) * np.exp(-self.epsilon)))
        logs = two_values(problem.best_actions, k, truth, truth - self.epsilon)
        return logs, two_values(problem.best_actions, k, np.exp(truth), np.exp(truth - self.epsilon))


@dataclass(frozen=True)
class RandomizedFeatures(Policy):
    """Report each private feature through k-ary response, then take the Bayes decision on the reported record.

    A feature with m levels is kept with probability e^e / (e^e + m - 1), where e is its share of epsilon, and else
    replaced by one of the others (Kairouz, Oh & Viswanath 2016, Extremal mechanisms for local differential privacy).
    The reported record y gets d(y), the action with the largest sum over x of prior(x) K(y|x) u(x, a), so
    p(a|x) = sum over y with d(y) = a of K(y|x): the decision works on what is already private and adds no loss.

    Neighbours may differ in several features at once, and their losses add up. So under any-record and sensitive,
    epsilon is split equally over the private features; under one-feature each has the whole. Public features are
    reported as they are. Under any-record the features are those of `problem.records.shape`, if it has one, and else
    the record is a single feature. epsilon = 0 gives the best constant action (for each public part of the record),
    inf the best action.
    """

    name = "randomized-features"

    def _log_probabilities(self, problem: DecisionProblem) -> FloatArray:
        """log p(a|x), -inf where no report leads to an action."""
        return self._tables(problem)[0]

    def _tables(self, problem: DecisionProblem) -> tuple[FloatArray, FloatArray]:
        """log p(a|x) and p(a|x): whichever is the sum over reports, and the other from it."""
        table, are_logs = self._sums(problem)
        if are_logs:
            return table, np.exp(table)
        return logs_of(table), table

    def _probabilities(self, problem: DecisionProblem) -> FloatArray:
        """p(a|x), without its logarithms: on all records, a table more takes room and time."""
        table, are_logs = self._sums(problem)
        return np.exp(table, out=table) if are_logs else table

    def _sums(self, problem: DecisionProblem) -> tuple[FloatArray, bool]:
        """The sums over reports, (n_records, n_actions), and whether they are of logarithms."""
        if self.epsilon == np.inf:
            return one_hot_logs(problem.best_actions, problem.n_actions), True
        channel = channel_for(problem, self.epsilon)
        decisions = bayes_decisions(problem, channel)
        # The log-probability of the least likely report that is possible.
        log_lies = channel.logs[0]
        log_least = log_lies[np.isfinite(log_lies)].sum()
        if self.epsilon == 0 or log_least < LOG_SAFE:
            logs = one_hot_logs(decisions, problem.n_actions)
            for column in logs.T if self.epsilon else ():
                column[:] = channel.apply_to_logs(column)
            return logs, True
        chances = np.zeros((problem.n_records, problem.n_actions), order="F")
        for action, column in enumerate(chances.T):
            leads = decisions == action
            if leads.all():
                column[:] = 1.0
            elif leads.any():
                # Rounding may leave a sum of probabilities a little above 1.
                np.minimum(channel.apply(leads.astype(np.float64)), 1.0, out=column)
        return chances, False


def channel_for(problem: DecisionProblem, epsilon: float) -> FeatureChannel:
    """The channel whose exact loss between neighbours is at most `epsilon`; NotApplicableError without features."""
    partitions = problem.adjacency.partitions(problem.n_records)
    shape, hidden = partitions[0].shape, [partition.axes for partition in partitions]
    if isinstance(problem.adjacency, AnyRecord):
        shape = tuple(getattr(problem.records, "shape", (problem.n_records,)))
        if math.prod(shape) != problem.n_records:
            raise NotApplicableError(
                f"{problem.n_records:,} records are not all combinations of their features, and it randomises each"
            )
        hidden = [tuple(range(len(shape)))]
    elif any(partition.shape != shape for partition in partitions):
        raise ValueError(
            f"randomized-features needs an adjacency over one product space, got {problem.adjacency.name!r}."
        )
    shares = []
    for axis in range(len(shape)):
        # No set of features that neighbours may differ in spends more than epsilon. A feature with a single level
        # reveals nothing and needs no share.
        together = [sum(shape[other] > 1 for other in axes) for axes in hidden if axis in axes]
        shares.append(epsilon / max(*together, 1) if together else np.inf)
    return FeatureChannel(shape, tuple(shares))


def bayes_decisions(problem: DecisionProblem, channel: FeatureChannel) -> NDArray[Any]:
    """d(y): the action of highest expected utility for each reported record, integers (n_records,); first of equals."""
    silent = max((share for share in channel.shares if share < np.inf), default=np.inf) == 0
    best = problem.utilities.max(axis=1)
    # A byte a record: these arrays are as long as the domain.
    decisions = np.zeros(problem.n_records, dtype=np.min_scalar_type(problem.n_actions))
    highest, reported = np.full(problem.n_records, -np.inf), np.zeros(problem.n_records, dtype=np.bool_)
    for action, column in enumerate(problem.utilities.T):
        # Regrets instead of utilities: sums of terms of one sign, whatever constant a record's utilities carry.
        weighted = column - best
        weighted *= problem.prior
        scores = _public_sums(weighted, channel) if silent else channel.apply(weighted)
        np.copyto(decisions, action, where=scores > highest)
        np.maximum(highest, scores, out=highest)
        reported |= scores != 0
    if silent:
        return decisions
    # A report with no prior mass behind it gets its own best action. That is no more than another rule for reports.
    np.copyto(decisions, problem.best_actions, where=~reported, casting="unsafe")
    return decisions


def _public_sums(column: FloatArray, channel: FeatureChannel) -> FloatArray:
    """The sum over all records with the same public part: what a channel that says nothing leaves, without rounding.

    Only so is the decision the same for all of them, and the policy the constant that epsilon = 0 asks for.
    """
    hidden = tuple(axis for axis, share in enumerate(channel.shares) if share < np.inf)
    sums = column.reshape(channel.shape).sum(axis=hidden, keepdims=True)
    return np.broadcast_to(sums, channel.shape).ravel()


# Neighbouring axes are multiplied into one matrix of at most this size: fewer passes over memory, few extra products
# (of 16 to 256, this was fastest).
LARGEST_MATRIX = 32

# Where even the least likely report has this log-probability, no sum of products can underflow.
LOG_SAFE = -600.0


@dataclass(frozen=True)
class FeatureChannel:
    """Independent k-ary responses on the features of a record.

    Parameters
    ----------
    shape : tuple of int
        Levels of each feature; records are numbered in C order over this shape.
    shares : tuple of float
        The share of epsilon of each feature, >= 0; inf for one that is reported as it is.
    """

    shape: tuple[int, ...]
    shares: tuple[float, ...]

    @cached_property
    def logs(self) -> tuple[FloatArray, FloatArray]:
        """log q and log(p - q), per feature: of each wrong level, and of staying; -inf and 0 where nothing is changed.

        As p - q = 1 - m q, a record stays with p - q, or else is drawn anew.
        """
        levels, shares = np.array(self.shape), np.array(self.shares)
        unchanged = np.isinf(shares) | (levels == 1)
        finite = np.where(unchanged, 0.0, shares)
        log_odds = np.log1p((levels - 1) * np.exp(-finite))  # log(1 + (m - 1) e^-e), which is -log p
        log_stays = logs_of(-np.expm1(-finite)) - log_odds
        return np.where(unchanged, -np.inf, -finite - log_odds), np.where(unchanged, 0.0, log_stays)

    def apply(self, column: FloatArray) -> FloatArray:
        """sum over y of K(y|x) column[y] for every x; (n_records,) to (n_records,). All terms have column's signs."""
        for levels, matrix, stay, lie in self._groups:
            # Contract the first group of axes and move it to the end: after all groups the order is as it was.
            grid = column.reshape(levels, -1)
            rotated = (stay * grid + lie * grid.sum(axis=0)).T if matrix is None else grid.T @ matrix
            column = np.ascontiguousarray(rotated).reshape(-1)
        return column

    def apply_to_logs(self, column: FloatArray) -> FloatArray:
        """The same for logarithms of terms >= 0: slower, and safe where `apply` would underflow."""
        for levels, log_lie, log_stay in zip(self.shape, *self.logs, strict=True):
            grid = column.reshape(levels, -1)
            if log_lie > -np.inf:
                grid = np.logaddexp(grid + log_stay, np.logaddexp.reduce(grid, axis=0) + log_lie)
            column = np.ascontiguousarray(grid.T).reshape(-1)
        return column

    @cached_property
    def _groups(self) -> list[tuple[int, FloatArray | None, float, float]]:
        """(levels, matrix, stay, lie) for runs of axes; a long axis has no matrix, only its p - q and q."""
        groups: list[tuple[int, FloatArray | None, float, float]] = []
        run = np.ones((1, 1))
        log_lies, log_stays = self.logs
        for levels, stay, lie in zip(self.shape, np.exp(log_stays), np.exp(log_lies), strict=True):
            if len(run) > 1 and len(run) * levels > LARGEST_MATRIX:
                groups.append((len(run), run, 1.0, 0.0))
                run = np.ones((1, 1))
            if levels > LARGEST_MATRIX:
                groups.append((levels, None, float(stay), float(lie)))
            else:
                run = np.kron(run, stay * np.eye(levels) + lie)
        return [*groups, (len(run), run, 1.0, 0.0)]
