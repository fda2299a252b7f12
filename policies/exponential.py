"""The exponential mechanism: as published, and fitted between public floors and ceilings (`policies.boxes`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from policies.adjacency import Adjacency, Partition
from policies.arrays import FloatArray, IntArray, blocks, logs_of
from policies.boxes import (
    LARGEST_EPSILON,
    SHARPNESS,
    Boxes,
    by_regret,
    checked_floors,
    log_rows,
    published_boxes,
    regrets_of,
)
from policies.optimal.ceilings import best_ceilings, members_of, require_few
from policies.optimal.classes import agreed_actions, by_order, hiding_partitions, solve_classes
from policies.policy import Policy, drop_unreachable, one_hot_logs
from policies.privacy_loss import privacy_loss_of_logs
from policies.problem import DecisionProblem, once_per_problem
from policies.reference import BestFixed, Greedy
from policies.sensitivity import noise_scale

Calibration = Literal["sensitivity", "range", "fitted"]


# A box that gains less than this share of what one action for all loses is worth no loss of privacy.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Exponential(Policy):
    """The exponential mechanism as published: p(a|x) proportional to mu(a) exp(u(x, a) / s), s = 2 Delta / epsilon.

    McSherry & Talwar (2007), theorem 6. epsilon = 0 gives mu (uniform by default), epsilon = inf the best action that
    mu allows. The calibration "fitted" makes another mechanism of it, see `ExponentialFitted`.

    Parameters
    ----------
    epsilon : float
        The privacy parameter, >= 0.
    base_measure : sequence of float, optional
        mu, one weight >= 0 per action, not all 0; public, chosen without looking at any record. Not with "fitted".
    calibration : {"sensitivity", "range", "fitted"}, optional
        s = 2 Delta / epsilon; or s = Gamma / epsilon, which is never larger: between neighbours,
        log p(a|x) - log p(a|x') = d_a/s - (log Z - log Z'), and log Z - log Z' lies between min d/s and max d/s, so
        that the loss is at most Gamma / s (Durfee & Rogers 2019, section 4).
    floors : sequence of float, optional
        With "fitted": w_a >= 0, one for each action, e^-epsilon <= sum w <= 1; public. By default those of the optimum.
    sharpness : float, optional
        With "fitted": s > 0, per unit of utility; inf pours in the order of preference. By default
        `policies.boxes.SHARPNESS` epsilon / (mean regret).

    Raises
    ------
    ValueError
        For an epsilon that is not >= 0, an unknown calibration, or parameters that are out of range or do not go with
        the calibration.
    """

    base_measure: Sequence[float] | None = None
    calibration: Calibration = "sensitivity"
    floors: Sequence[float] | None = None
    sharpness: float | None = None
    name = "exponential"
    uses_prior = False
    row_wise = True  # reads the row, and Delta or Gamma; fitted, sums of the prior over each order of actions

    def __post_init__(self) -> None:
        """Check all parameters, and that they go with the calibration."""
        super().__post_init__()
        if self.calibration not in get_args(Calibration):
            known = ", ".join(map(repr, get_args(Calibration)))
            raise ValueError(f"calibration must be one of {known}, got calibration={self.calibration!r}.")
        if self.calibration == "fitted":
            object.__setattr__(self, "name", "exponential-fitted")
            object.__setattr__(self, "uses_prior", True)
        needed = {"base_measure": self.calibration != "fitted"}
        needed |= dict.fromkeys(("floors", "sharpness"), self.calibration == "fitted")
        for parameter, goes in needed.items():
            if getattr(self, parameter) is not None and not goes:
                raise ValueError(f"{parameter} does not go with calibration={self.calibration!r}.")
        if self.base_measure is not None:
            weights = tuple(float(weight) for weight in self.base_measure)
            if not all(0 <= weight < np.inf for weight in weights) or sum(weights) <= 0:
                raise ValueError(f"base_measure must be finite weights >= 0, not all 0, got {weights!r}.")
            object.__setattr__(self, "base_measure", weights)
        if self.floors is not None:
            object.__setattr__(self, "floors", tuple(checked_floors(self.floors, self.epsilon).tolist()))
        if self.sharpness is not None and not self.sharpness > 0:
            raise ValueError(f"sharpness must be > 0, got sharpness={self.sharpness!r}.")

    def scale(self, problem: DecisionProblem) -> float:
        """s, in units of utility: 2 Delta / epsilon, or Gamma / epsilon; ValueError where it is fitted, without one."""
        if self.calibration == "fitted":
            raise ValueError("a fitted exponential mechanism has no scale: see policies.boxes.")
        found = problem.sensitivity
        return noise_scale(2 * found.value if self.calibration == "sensitivity" else found.range, self.epsilon)

    def among(self, actions: IntArray, n_actions: int) -> Exponential:
        """Of its base measure and floors only those of these actions count; the floors still have the same sum."""
        parameter = "base_measure" if self.floors is None else "floors"
        weights = getattr(self, parameter)
        if weights is None:
            return self
        self._require_length(parameter, n_actions)
        chosen = [weights[action] for action in actions]
        if not any(chosen):
            raise ValueError(f"{parameter} must allow an action wherever records do, got none of {actions.tolist()}.")
        if self.floors is None:
            return replace(self, base_measure=chosen)
        return replace(self, floors=np.array(chosen) * (sum(weights) / sum(chosen)))

    def _require_length(self, parameter: str, n_actions: int) -> None:
        """ValueError for a parameter that has no number for each action."""
        length = len(getattr(self, parameter))
        if length != n_actions:
            raise ValueError(f"{parameter} must have {n_actions} numbers, one for each action, got {length}.")

    def _check(self, problem: DecisionProblem) -> None:
        """NotApplicableError, if it is fitted, for more actions than the optimum takes."""
        if self.calibration == "fitted":
            require_few(problem.n_actions, self.name)

    def _log_probabilities(self, problem: DecisionProblem) -> FloatArray:
        return self._tables(problem)[0]

    def _tables(self, problem: DecisionProblem) -> tuple[FloatArray, FloatArray]:
        """Both from one pass of exponentials, of differences within a row alone: stable for any utilities."""
        if self.calibration == "fitted":
            logs = self._fitted_logs(problem)
            return logs, np.exp(logs)
        log_base = self._log_base(problem.n_actions)
        if self.epsilon == 0:
            logs = np.empty((problem.n_records, problem.n_actions), order="F")
            logs[:] = log_base - np.logaddexp.reduce(log_base)
            return logs, np.exp(logs)
        scale = self.scale(problem)
        if scale == 0:
            allowed = np.where(np.isfinite(log_base), problem.utilities, -np.inf)
            logs = one_hot_logs(allowed.argmax(axis=1), problem.n_actions)
            return logs, np.exp(logs)
        return softmax(problem.utilities, scale, log_base, problem.adjacency)

    def _fitted_logs(self, problem: DecisionProblem) -> FloatArray:
        """log p(a|x), class by class; nobody is worse off than with the best single action for the class."""
        self._check(problem)
        if np.isinf(self.epsilon):
            return Greedy().log_probabilities(problem)
        partitions = hiding_partitions(problem.adjacency, problem.n_records)
        if len(partitions) > 1:
            return (
                overlapping_logs(problem, self.epsilon) if self.epsilon > 0 else BestFixed().log_probabilities(problem)
            )
        logs = np.empty((problem.n_records, problem.n_actions), order="F")
        for records, rows, _ in self.boxes(problem):
            for column, row in zip(logs.T, rows, strict=True):
                column[records] = row
        return logs

    def boxes(self, problem: DecisionProblem) -> Iterator[tuple[IntArray, FloatArray, Boxes]]:
        """With "fitted": the classes of a problem with their boxes, some at a time.

        Only for a finite epsilon, a problem without a mask, and any-record or sensitive.

        Yields
        ------
        records : array of int, (N, size)
            The members of N classes.
        logs : array, (k, N, size)
            log p(a|x) of the members.
        boxes : Boxes
            The floors and the sharpness of each class.
        """
        (partition,) = hiding_partitions(problem.adjacency, problem.n_records)
        for members, ceilings in classes_of(problem, partition, self.epsilon):
            yield members.records, *self._class_tables(members, ceilings)

    def _class_tables(self, members: Members, ceilings: FloatArray) -> tuple[FloatArray, Boxes]:
        """log p(a|x) of N classes, (k, N, size), and their boxes.

        Where the best single action is worth no less, its box holds nothing else.
        """
        regrets, weights = members.regrets, members.weights
        lost_by_one = np.einsum("kns,ns->kn", regrets, weights)
        best = lost_by_one.argmin(axis=0)
        constant = np.where(np.arange(len(regrets))[:, None] == best, 0.0, -np.inf)
        if self.epsilon == 0:
            logs = np.broadcast_to(constant[:, :, None], regrets.shape)
            return logs, Boxes(0.0, constant, np.full(len(best), np.inf))
        boxes = self._boxes(members, ceilings)
        logs = log_rows(regrets, boxes, members.order)
        lost = np.einsum("kns,kns,ns->n", np.exp(logs), regrets, weights)
        worth_it = lost < lost_by_one.min(axis=0) * (1 - ROUNDING)
        boxes = replace(boxes, log_floors=np.where(worth_it, boxes.log_floors, constant))
        return np.where(worth_it[:, None], logs, constant[:, :, None]), boxes

    def _boxes(self, members: Members, ceilings: FloatArray) -> Boxes:
        """The boxes of N classes: floors are those of the optimum, unless they are given."""
        epsilon, n_classes = min(self.epsilon, LARGEST_EPSILON), len(ceilings)
        with np.errstate(divide="ignore"):
            log_floors = np.log(ceilings.T) - epsilon
            sharpness = SHARPNESS * epsilon / members.mean_regrets
        if self.floors is not None:
            self._require_length("floors", len(log_floors))
            log_floors = np.repeat(logs_of(np.array(self.floors))[:, None], n_classes, axis=1)
        if self.sharpness is not None:
            sharpness = np.full(n_classes, self.sharpness)
        return published_boxes(log_floors, sharpness, epsilon)

    def _loss_bound(self, problem: DecisionProblem) -> float:
        """s log k, for a uniform base measure (McSherry & Talwar 2007, theorem 8; the log k form in expectation).

        By the Gibbs variational principle, p(.|x) maximises E[u] + s H(p), so max u - E[u] <= s H(p) <= s log k.
        """
        if self.base_measure is not None or self.calibration == "fitted":
            return np.nan
        return np.inf if self.epsilon == 0 else self.scale(problem) * float(np.log(problem.n_actions))

    def _log_base(self, n_actions: int) -> FloatArray:
        if self.base_measure is None:
            return np.zeros(n_actions)
        self._require_length("base_measure", n_actions)
        return logs_of(np.array(self.base_measure))


@dataclass(frozen=True)
class ExponentialFitted(Exponential):
    """The exponential mechanism between public floors and ceilings: nearly the best that any private policy can do.

    Any row with w_a <= p(a|x) <= e^epsilon w_a is epsilon-private, whatever computed it: see `policies.boxes`. The
    floors are the ceilings of the optimum over e^epsilon, one set for each public class. It is never worse than the
    best single action for each class. Where a record has several kinds of neighbours (one-feature), there is no such
    box: there it is p(a|x) proportional to exp(theta_a - min(s r(x, a), d)), with a loss that was computed exactly.
    """

    calibration: Calibration = "fitted"
    name = "exponential-fitted"
    uses_prior = True
    row_wise = True


@dataclass(frozen=True, eq=False)
class Members:
    """N classes of records that are hidden among each other.

    Attributes
    ----------
    records : array of int, (N, size)
        The members of each class; a smaller class repeats its last one.
    regrets : array, (k, N, size)
        max_b u(x, b) - u(x, a).
    order : array of int, (k, N, size)
        The actions by rising regret.
    weights : array, (N, size)
        The prior within each class; 0 for repetitions, and equal weights for a class that never comes.
    mean_regrets : array, (N,)
        Over the actions and the members.
    """

    records: IntArray
    regrets: FloatArray
    order: IntArray
    weights: FloatArray
    mean_regrets: FloatArray

    @classmethod
    def of(cls, problem: DecisionProblem, records: IntArray) -> Members:
        """Of these records of a problem."""
        weights = problem.prior[records]
        weights = np.where(weights.max(axis=1, keepdims=True) > 0, weights, 1.0)
        weights[:, 1:][records[:, 1:] == records[:, :-1]] = 0.0
        weights /= weights.sum(axis=1, keepdims=True)
        regrets = regrets_of(np.stack([column[records] for column in problem.utilities.T]))
        mean_regrets = np.einsum("kns,ns->n", regrets, weights) / len(regrets)
        return cls(records, regrets, by_regret(regrets), weights, mean_regrets)


@once_per_problem
def everyone(problem: DecisionProblem) -> Members:
    """All records as one class: the same at every epsilon."""
    return Members.of(problem, np.arange(problem.n_records)[None])


def classes_of(problem: DecisionProblem, partition: Partition, epsilon: float) -> Iterator[tuple[Members, FloatArray]]:
    """The cliques of a partition, some at a time, and their best ceilings, (N, k), for a finite epsilon."""
    if partition.whole:
        groups = by_order(problem)
        solution = best_ceilings(members_of(groups.sets, problem.n_actions), groups.set_weights, epsilon)
        yield everyone(problem), solution.ceilings
        return
    agreed, cliques = agreed_actions(problem, partition), partition.by_clique(np.arange(problem.n_records))
    settled = agreed >= 0
    if settled.any():
        yield Members.of(problem, cliques[settled]), np.eye(problem.n_actions)[agreed[settled]]
    for solved in solve_classes(problem, partition, epsilon):
        yield Members.of(problem, solved.records), solved.solution.ceilings


# Under one-feature: floors are taken from the optimum for any two records at these multiples of epsilon, and the
# sharpness is halved so often.
MULTIPLES, HALVINGS = (1, 2, 4, 8, 16), 10


def overlapping_logs(problem: DecisionProblem, epsilon: float) -> FloatArray:
    """log p(a|x), (n_records, k), where the cliques of neighbours overlap: the best candidate whose exact loss fits.

    p(a|x) is proportional to exp(theta_a - min(s r(x, a), d)), with theta the logarithms of the ceilings that are best
    for any two records at d, a multiple of epsilon. The loss is not monotone in s, so that it is computed of each
    candidate, the most valuable first. The last candidate is the box at epsilon itself, which hides any two records.
    """
    epsilon = min(epsilon, LARGEST_EPSILON)
    whole = Partition((problem.n_records,), (0,))
    box = Exponential(epsilon, calibration="fitted")
    ((members, ceilings),) = classes_of(problem, whole, epsilon)
    last = box._class_tables(members, ceilings)[0][:, 0, :].T
    mean_regret = float(members.mean_regrets[0])
    if mean_regret == 0:
        return np.asfortranarray(last)
    regrets, prior = members.regrets[:, 0, :], problem.prior
    candidates = []
    most = len(problem.adjacency.partitions(problem.n_records))
    for cap in (epsilon * times for times in MULTIPLES if times <= most):
        ((_, ceilings),) = classes_of(problem, whole, cap)
        theta = logs_of(ceilings[0])
        for halving in range(HALVINGS):
            sharpness = 2.0**-halving * SHARPNESS * cap / mean_regret
            lost = float(np.einsum("kn,kn,n->", np.exp(capped_logs(regrets, theta, sharpness, cap)), regrets, prior))
            candidates.append((lost, theta, sharpness, cap))
    least = float(np.einsum("nk,kn,n->", np.exp(last), regrets, prior))
    for lost, theta, sharpness, cap in sorted(candidates, key=lambda candidate: candidate[0]):
        if lost >= least:
            break
        logs = capped_logs(regrets, theta, sharpness, cap).T
        if privacy_loss_of_logs(logs, problem.adjacency).epsilon <= epsilon:
            return np.asfortranarray(logs)
    return np.asfortranarray(last)


def capped_logs(regrets: FloatArray, theta: FloatArray, sharpness: float, cap: float) -> FloatArray:
    """log p proportional to theta - min(s r, cap), (k, n), from regrets (k, n) and theta (k,)."""
    with np.errstate(over="ignore"):
        weights = theta[:, None] - np.minimum(sharpness * regrets, cap)
    logs: FloatArray = weights - np.logaddexp.reduce(weights, axis=0)
    return logs


def softmax(
    scores: FloatArray, scale: float, log_base: FloatArray, adjacency: Adjacency
) -> tuple[FloatArray, FloatArray]:
    """Normalise exp(score / s + log mu) over each row, for scale > 0.

    Parameters
    ----------
    scores : array, (n_records, k)
    scale : float
        s > 0, in the units of the scores.
    log_base : array, (k,)
        log mu; -inf forbids an action.
    adjacency : Adjacency
        For `drop_unreachable`.

    Returns
    -------
    logs, probabilities : arrays, (n_records, k), column-major
    """
    logs, probabilities = np.empty_like(scores, order="F"), np.empty_like(scores, order="F")
    allowed = np.isfinite(log_base)
    for rows in blocks(len(scores)):
        log, weight = logs[rows], probabilities[rows]
        # The largest score is subtracted before the division: it may be 1e6 where the differences are 1.
        np.subtract(scores[rows], scores[rows].max(axis=1)[:, None], out=log)
        log /= scale
        log += log_base
        if not allowed.all():
            log -= log.max(axis=1)[:, None]
        np.exp(log, out=weight)
        total = weight.sum(axis=1)
        weight /= total[:, None]
        log -= np.log(total)[:, None]
    drop_unreachable(logs, adjacency)
    return logs, probabilities
