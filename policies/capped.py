"""The exponential mechanism on capped regrets: the few decisions with huge stakes no longer set the scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.arrays import FloatArray, IntArray, blocks, non_negative
from policies.distinct import distinct_rows
from policies.exponential import ExponentialFamily
from policies.literature import DURFEE_ROGERS_2019, MCSHERRY_TALWAR_2007
from policies.policy import Look
from policies.problem import DecisionProblem, once_per_problem
from policies.scores import score_range

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
    gloss = "large regrets are cut off"
    words = "the exponential mechanism on regrets that are cut off at a public cap, its scale set by their range"
    formula = "exp(−min(regret, cap)/s), s = (range of the capped regrets)/ε"
    works = (MCSHERRY_TALWAR_2007, DURFEE_ROGERS_2019)
    look = Look("#C08A10", "v")
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

    def loss_bound(self, problem: DecisionProblem) -> float:
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
    if len(allowed) == 1:
        return 0.0
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
