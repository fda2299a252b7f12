"""The exponential mechanism: calibrated by sensitivity, by range or by what it really loses, and on capped regrets."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from policies.adjacency import Adjacency, Difference, largest_difference
from policies.arrays import FloatArray, IntArray, blocks, non_negative
from policies.distinct import distinct_rows
from policies.policy import LOG_SMALLEST, Policy, drop_unreachable, one_hot_logs
from policies.problem import DecisionProblem, once_per_problem
from policies.sensitivity import score_range


@dataclass(frozen=True)
class ExponentialFamily(Policy):
    """p(a|x) proportional to mu(a) exp(u(x, a) / s); subclasses say which scale s spends epsilon.

    epsilon = 0 gives mu (uniform by default), epsilon = inf the best action that mu allows.

    Parameters
    ----------
    epsilon : float
        The privacy parameter, >= 0.
    base_measure : sequence of float, optional
        mu, one weight >= 0 per action, not all 0; public, chosen without looking at any record.
    """

    base_measure: Sequence[float] | None = None

    def __post_init__(self) -> None:
        """Check epsilon and the base measure."""
        super().__post_init__()
        if self.base_measure is not None:
            weights = tuple(float(weight) for weight in self.base_measure)
            if not all(0 <= weight < np.inf for weight in weights) or sum(weights) <= 0:
                raise ValueError(f"base_measure must be finite weights >= 0, not all 0, got {weights!r}.")
            object.__setattr__(self, "base_measure", weights)

    @abstractmethod
    def scale(self, problem: DecisionProblem) -> float:
        """The scale s that spends epsilon, in units of utility."""

    def _log_probabilities(self, problem: DecisionProblem) -> FloatArray:
        return self._tables(problem)[0]

    def _tables(self, problem: DecisionProblem) -> tuple[FloatArray, FloatArray]:
        """Both from one pass of exponentials, of differences within a row alone: stable for any utilities."""
        log_base = self._log_base(problem.n_actions)
        if self.epsilon == 0:
            logs = np.empty((problem.n_records, problem.n_actions), order="F")
            logs[:] = log_base - np.logaddexp.reduce(log_base)
            return logs, np.exp(logs)
        scores, scale = self.scores(problem), self.scale(problem)
        if scale == 0:
            allowed = np.where(np.isfinite(log_base), scores, -np.inf)
            logs = one_hot_logs(allowed.argmax(axis=1), problem.n_actions)
            return logs, np.exp(logs)
        return softmax(scores, scale, log_base, problem.adjacency)

    def scores(self, problem: DecisionProblem) -> FloatArray:
        """What is exponentiated, (n_records, n_actions): the utilities."""
        return problem.utilities

    def among(self, actions: IntArray, n_actions: int) -> ExponentialFamily:
        """Of its base measure only the weights of these actions count."""
        if self.base_measure is None:
            return self
        log_base = self._log_base(n_actions)
        weights = [self.base_measure[action] for action in actions]
        if not np.isfinite(log_base[actions]).any():
            raise ValueError(f"base_measure must allow an action wherever records do, got none of {actions.tolist()}.")
        return replace(self, base_measure=weights)

    def _loss_bound(self, problem: DecisionProblem) -> float:
        """s log k, for a uniform base measure (McSherry & Talwar 2007, theorem 8; the log k form in expectation).

        By the Gibbs variational principle, p(.|x) maximises E[u] + s H(p), so max u - E[u] <= s H(p) <= s log k.
        """
        if self.base_measure is not None:
            return np.nan
        return np.inf if self.epsilon == 0 else self.scale(problem) * float(np.log(problem.n_actions))

    def _log_base(self, n_actions: int) -> FloatArray:
        if self.base_measure is None:
            return np.zeros(n_actions)
        if len(self.base_measure) != n_actions:
            raise ValueError(f"base_measure must have {n_actions} weights, got {len(self.base_measure)}.")
        with np.errstate(divide="ignore"):
            log_base: FloatArray = np.log(np.asarray(self.base_measure))
        return log_base


@dataclass(frozen=True)
class Exponential(ExponentialFamily):
    """The exponential mechanism as published: s = 2 Delta / epsilon (McSherry & Talwar 2007, theorem 6)."""

    name = "exponential"
    uses_prior = False
    row_wise = True  # reads the row and Delta

    def scale(self, problem: DecisionProblem) -> float:
        """2 Delta / epsilon."""
        return 2 * problem.sensitivity.value / self.epsilon


@dataclass(frozen=True)
class ExponentialBoundedRange(ExponentialFamily):
    """The exponential mechanism calibrated by range: s = Gamma / epsilon (Durfee & Rogers 2019, section 4).

    Between neighbours, log p(a|x) - log p(a|x') = d_a/s - (log Z - log Z'), and log Z - log Z' lies between min d/s
    and max d/s; so the loss is at most Gamma / s. As Gamma <= 2 Delta, it never does worse than `Exponential`.
    """

    name = "exponential-bounded-range"
    uses_prior = False
    row_wise = True  # reads the row and Gamma

    def scale(self, problem: DecisionProblem) -> float:
        """Gamma / epsilon."""
        return problem.sensitivity.range / self.epsilon


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


# exponential-tight tries t = (1 - j / STEPS) 2 epsilon / Gamma for whole j: what it returns does not depend on how
# it searched. One step changes the loss by less than 1e-6 of epsilon.
STEPS = 1 << 26
# What the rounding of logarithms may make of a loss: more than a step where epsilon is below 1e-8.
LOG_ROUNDING = 2.0**-50


@dataclass(frozen=True)
class ExponentialTight(ExponentialFamily):
    """The exponential mechanism with the smallest scale whose exact privacy loss is at most epsilon.

    1/s is the largest t in [epsilon / Gamma, 2 epsilon / Gamma] with a loss of at most epsilon, to 1e-6 relative in
    the loss. The largest t is also the best one: within each row, expected utility never falls with t. No t outside
    the interval can be it: the log-ratios of two neighbours spread over t Gamma, so one of them is at least half.
    """

    name = "exponential-tight"
    uses_prior = False
    row_wise = True  # reads the row and its scale, which depends on Gamma and on maxima over neighbours

    def scale(self, problem: DecisionProblem) -> float:
        """1/t; found once for each problem, epsilon and base measure."""
        log_base = self._log_base(problem.n_actions)
        return 0.0 if self.epsilon == np.inf else _tight_scale(problem, self.epsilon, tuple(log_base.tolist()))


class Pairs:
    """Neighbours that attained the loss of some table: a lower bound for the loss of any other.

    Parameters
    ----------
    problem : DecisionProblem
        Of the records; not kept.
    found : dict
        (record, neighbour, action) to the largest t at which the table had this as its worst pair.
    """

    def __init__(self, problem: DecisionProblem, found: dict[tuple[int, int, int], float]) -> None:
        self._set(problem, found)

    def add(self, problem: DecisionProblem, worst: list[Difference], t: float) -> None:
        """Remember the pair of each action; other threads go on with what they have."""
        known = dict(self._known[0])
        for action, pair in enumerate(worst):
            if pair.value > 0:
                key = (pair.record, pair.neighbour, action)
                known[key] = max(t, known.get(key, 0.0))
        self._set(problem, known)

    def _set(self, problem: DecisionProblem, found: dict[tuple[int, int, int], float]) -> None:
        records, neighbours, actions = np.array(list(found)).T
        utilities = problem.utilities[np.concatenate([records, neighbours])].T
        # (n_actions, 2 n_pairs): the records and after them their neighbours, for many t.
        regrets = np.ascontiguousarray(utilities - utilities.max(axis=0))
        self._known = found, regrets, np.tile(actions, 2), np.array(list(found.values()))

    def infeasible_below(self, t: float, epsilon: float, log_base: FloatArray) -> float:
        """How far below t, and at t, some pair loses more than epsilon throughout; 0 if none does at t.

        log p is concave in t, and log mu at t = 0. So down to 0 the log p of one record is at least its chord from 0 to
        t, that of the other at most its tangent at t, and the loss of the pair at least its value at t less the
        difference of the two slopes times the way.

        An action that is out of reach for all adds nothing. Where that is so, it stays so at any larger t, because
        log p is concave in t. So a pair counts if one of the two is within reach, or if it was found at t or above.
        """
        _, regrets, actions, found_at = self._known
        each = np.arange(len(actions))
        logs = regrets * t + log_base[:, None]
        logs -= np.logaddexp.reduce(logs, axis=0)
        chosen = logs[actions, each]
        chords = (chosen - (log_base - np.logaddexp.reduce(log_base))[actions]) / t
        slopes = regrets[actions, each] - (np.exp(logs) * regrets).sum(axis=0)
        (first, second), chords, slopes = (both.reshape(2, -1) for both in (chosen, chords, slopes))
        falls = np.where(first > second, chords[0] - slopes[1], chords[1] - slopes[0])
        over = np.abs(first - second) - epsilon
        over[(np.maximum(first, second) < LOG_SMALLEST) & (t > found_at)] = 0.0
        # The loss falls to 0 in the end: only the rounding of an epsilon near 1e-16 finds no slope.
        ways = np.divide(over, falls, out=np.full_like(over, t), where=falls > 0)
        return float(np.max(np.minimum(ways, t / 2), where=over > 0, initial=0.0))


@once_per_problem
def _known_pairs(problem: DecisionProblem, log_weights: tuple[float, ...]) -> Pairs:
    """The pairs that are known for this problem; at first those that attain Gamma, which no t was asked about."""
    witness = problem.sensitivity.range_witness
    allowed = [action for action, weight in enumerate(log_weights) if weight > -np.inf]
    return Pairs(problem, {(witness.record, witness.neighbour, action): 0.0 for action in allowed})


@once_per_problem
def _tight_scale(problem: DecisionProblem, epsilon: float, log_weights: tuple[float, ...]) -> float:
    """The scale of `ExponentialTight`: 1 / (the largest t of the grid with an exact loss of at most epsilon).

    The search runs down from the top and skips only what cannot be feasible. Most steps look at a few pairs of records,
    whose loss is a lower bound; where that one is feasible the whole table is looked at, and either accepted or asked
    for its worst pairs.
    """
    log_base = np.array(log_weights)
    allowed = np.isfinite(log_base)
    if allowed.all():
        gamma = problem.sensitivity.range
    else:
        gamma = score_range(problem.utilities[:, allowed], problem.adjacency)
    if gamma == 0:
        return 0.0
    pairs, top, j = _known_pairs(problem, log_weights), 2 * epsilon / gamma, 0
    if top < np.finfo(float).tiny:  # so little that its inverse, and perhaps itself, is no float any more
        return math.inf
    while True:
        t = top * (1 - j / STEPS)
        way = pairs.infeasible_below(t, epsilon, log_base)
        if way == 0:
            logs, _ = softmax(problem.utilities, 1 / t, log_base, problem.adjacency)
            worst = [largest_difference(column, problem.adjacency) for column in logs.T]
            if max(pair.value for pair in worst) <= epsilon:
                return 1 / t
            pairs.add(problem, worst, t)
            way = pairs.infeasible_below(t, epsilon - LOG_ROUNDING, log_base)
        j += max(1, math.ceil(way / top * STEPS))


# Candidate caps: each costs a pass over the table, once per problem; over six powers of ten the step is a factor 1.8.
N_CAPS = 24

# Of more distinct rows, regrets are grouped by their size in steps of 2^(1/8) down to 2^-40 of the largest one.
MOST_ROWS = 1 << 14
STEPS_PER_OCTAVE, OCTAVES = 8, 40

# This share of the prior's positive regrets may lie below the smallest candidate cap.
SHARE_BELOW = 0.001

# One entry per action: log mu, or the numbers of the actions that mu allows.
LogBase = tuple[float, ...]
Actions = tuple[int, ...]


@dataclass(frozen=True)
class ExponentialCapped(ExponentialFamily):
    """The exponential mechanism on the score -min(regret, cap), with s = (range of that score) / epsilon.

    The regret of an action is what the record loses by it against its best action. A cap far below the largest
    regret shrinks the range, and with it the noise of all decisions, at the price of telling large regrets apart no
    longer. The mechanism is `ExponentialBoundedRange` on another score; its loss is at most epsilon whatever the cap,
    provided that the cap is public.

    Parameters
    ----------
    epsilon : float
        The privacy parameter, >= 0.
    base_measure : sequence of float, optional
        As in `ExponentialFamily`; regrets are against the best action that it allows.
    cap : float, optional
        In units of utility, > 0. By default the cap of highest expected value at this epsilon among a grid, found
        from the prior and the utilities alone, which are public.

    Raises
    ------
    ValueError
        For a cap that is not > 0.
    """

    cap: float | None = None
    name = "exponential-capped"
    row_wise = True  # reads the row and the cap: of that, its range over neighbours and sums with the prior

    def __post_init__(self) -> None:
        """Check epsilon, the base measure and the cap."""
        super().__post_init__()
        if self.cap is not None and non_negative(self.cap, "cap") == 0:
            raise ValueError(f"cap must be > 0, got cap={self.cap!r}.")

    def cap_for(self, problem: DecisionProblem) -> float:
        """The cap in use, in units of utility; inf where nothing needs to be capped."""
        if self.cap is not None:
            return float(self.cap)
        return np.inf if self.epsilon in (0, np.inf) else best_cap(problem, self.epsilon, self._key(problem))

    def scale(self, problem: DecisionProblem) -> float:
        """(range of the capped score) / epsilon."""
        return capped_range(problem, self.cap_for(problem), allowed_actions(self._key(problem))) / self.epsilon

    def scores(self, problem: DecisionProblem) -> FloatArray:
        """-min(regret, cap), (n_records, n_actions)."""
        return capped_scores(problem, self.cap_for(problem), allowed_actions(self._key(problem)))

    def _loss_bound(self, problem: DecisionProblem) -> float:
        """NaN: s log k bounds the capped regret, not the regret."""
        return np.nan

    def _key(self, problem: DecisionProblem) -> LogBase:
        return tuple(self._log_base(problem.n_actions).tolist())


def allowed_actions(log_base: LogBase) -> Actions:
    """The actions of positive weight."""
    return tuple(action for action, weight in enumerate(log_base) if weight > -np.inf)


def capped_scores(problem: DecisionProblem, cap: float, allowed: Actions) -> FloatArray:
    """-min(regret(x, a), cap), (n_records, n_actions), with regret against the best of the allowed actions.

    Actions that are not allowed score -inf.
    """
    scores = np.full_like(problem.utilities, -np.inf, order="F")
    columns = list(allowed)
    for rows in blocks(problem.n_records):
        part = problem.utilities[rows][:, columns]
        part -= part.max(axis=1)[:, None]
        scores[rows, columns] = np.maximum(part, -cap, out=part)
    return scores


@once_per_problem
def capped_range(problem: DecisionProblem, cap: float, allowed: Actions) -> float:
    """The range Gamma of the capped score over the allowed actions, under the problem's adjacency."""
    return score_range(capped_scores(problem, cap, allowed)[:, list(allowed)], problem.adjacency)


@once_per_problem
def best_cap(problem: DecisionProblem, epsilon: float, log_base: LogBase) -> float:
    """The cap with the highest expected value at `epsilon`, of a grid that is the same for all epsilons.

    So a larger epsilon never has a lower value. inf where nobody regrets anything.
    """
    allowed = allowed_actions(log_base)
    mass, regrets = _regret_groups(problem, allowed)
    caps = _candidate_caps(mass, regrets)
    if not caps:
        return np.inf
    base = np.exp(np.array(log_base)[list(allowed)])
    ranges = _ranges(problem, tuple(caps), allowed)
    values = [_value(mass, regrets, cap, gamma / epsilon, base) for cap, gamma in zip(caps, ranges, strict=True)]
    return caps[int(np.argmax(values))]


@once_per_problem
def _ranges(problem: DecisionProblem, caps: tuple[float, ...], allowed: Actions) -> list[float]:
    """`capped_range` of several caps, from regrets that are computed once."""
    scores = capped_scores(problem, np.inf, allowed)[:, list(allowed)]
    return [score_range(np.maximum(scores, -cap), problem.adjacency) for cap in caps]


@once_per_problem
def _regret_groups(problem: DecisionProblem, allowed: Actions) -> tuple[FloatArray, FloatArray]:
    """Prior mass > 0, (m,), and mean regrets, (m, len(allowed)), of groups of records with similar regrets.

    Up to MOST_ROWS distinct rows, each is a group. Groups only serve to choose a cap, and every choice is private.
    """
    regrets, prior = -capped_scores(problem, np.inf, allowed)[:, list(allowed)], problem.prior
    found = distinct_rows(problem)
    if found is not None:
        regrets, prior = regrets[found.first], found.summed(prior)
    if len(prior) <= MOST_ROWS:
        return prior[prior > 0], regrets[prior > 0]
    largest = float(regrets.max()) or 1.0
    levels = 1 + STEPS_PER_OCTAVE * OCTAVES
    group: IntArray = np.zeros(len(prior), dtype=np.intp)
    for column in regrets.T:
        with np.errstate(divide="ignore"):
            octave = np.log2(column / largest)
        level = np.maximum(np.floor(STEPS_PER_OCTAVE * (octave + OCTAVES)), -1).astype(np.intp) + 1
        # Numbered anew after each column, so that the keys stay small for any number of actions.
        group = np.unique(group * (levels + 1) + level, return_inverse=True)[1]
    weighted = (prior, *(prior * column for column in regrets.T))
    sums: FloatArray = np.stack([np.bincount(group, weights=weights) for weights in weighted])
    mass, totals = sums[0], sums[1:].T
    present = mass > 0
    return mass[present], totals[present] / mass[present, None]


def _candidate_caps(mass: FloatArray, regrets: FloatArray) -> list[float]:
    """Log-spaced caps from (nearly) the smallest positive regret to the largest; none if there is none."""
    positive = regrets > 0
    sizes = regrets[positive]
    if not sizes.size:
        return []
    order = np.argsort(sizes)
    below = np.cumsum(np.broadcast_to(mass[:, None], regrets.shape)[positive][order])
    smallest = sizes[order][np.searchsorted(below, SHARE_BELOW * below[-1])]
    caps: list[float] = np.unique(np.geomspace(smallest, sizes.max(), N_CAPS)).tolist()
    return caps


def _value(mass: FloatArray, regrets: FloatArray, cap: float, scale: float, base: FloatArray) -> float:
    """Minus the expected regret of the mechanism with this cap and scale."""
    if scale == 0:
        return -float(mass @ regrets.min(axis=1))
    with np.errstate(over="ignore"):
        weights = base * np.exp(-np.minimum(regrets, cap) / scale)
    return -float(mass @ ((weights * regrets).sum(axis=1) / weights.sum(axis=1)))
