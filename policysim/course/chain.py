"""What a process is worth if every state always acts by the same probabilities: a Markov chain, solved exactly."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse
from scipy.sparse import csgraph
from scipy.sparse.linalg import splu

from policies.arrays import FloatArray, IntArray
from policysim.course.process import BoolArray, Matrix
from policysim.course.tabular import TabularMDP

# Up to this many states a dense solver is faster.
DENSE = 1500
# Beyond it, and with a discount, systems are solved by iteration: a direct solver fills in what the chain leaves out.
# An iteration that takes more steps than this is left to the direct solver.
MOST_SWEEPS = 50_000
# Iterations end at this proved distance from the solution, or at what rounding leaves.
ENOUGH = 1e-10
# A chain that goes on for more steps than this cannot be told from one that never ends: 1 - 1e-16 is 1.
LONGEST = 1e12


class EndlessError(ValueError):
    """A policy under which a process goes on (nearly) for ever, so that it has no value; str() names a state."""


@dataclass(frozen=True)
class Chain:
    """A process under p(a|s).

    Attributes
    ----------
    moves : sparse array, (S, S)
        The probability of the next state.
    rewards : array, (S,)
        The expected reward of a step.
    ends : array, (S,)
        The probability that the process ends with a step.
    """

    moves: Matrix
    rewards: FloatArray
    ends: FloatArray


def chain_of(mdp: TabularMDP, probabilities: FloatArray) -> Chain:
    """The chain of p(a|s), (S, A)."""
    n, k = probabilities.shape
    columns = (np.tile(np.arange(n), k), np.arange(n * k))
    moves = sparse.csr_array((probabilities.T.ravel(), columns), shape=(n, n * k)) @ mdp.stacked
    moves.eliminate_zeros()
    return Chain(moves, (probabilities * mdp.rewards).sum(axis=1), (probabilities * mdp.ends).sum(axis=1))


def chain_values(mdp: TabularMDP, probabilities: FloatArray) -> FloatArray:
    """The expected return from each state under p(a|s), (S, A), over an infinite horizon, (S,).

    Undiscounted, states from which the process can come to a set of states that it never leaves, with rewards other
    than 0, have -inf if all these rewards are <= 0, inf if all are >= 0, and NaN otherwise.

    Raises
    ------
    EndlessError
        If the process ends, but takes more than `LONGEST` steps from some state, which is named.
    """
    chain = chain_of(mdp, probabilities)
    everywhere = np.arange(mdp.n_states)
    if mdp.discount < 1:
        return solve_chain(chain, everywhere, mdp.discount)
    settled = in_closed_class(chain)
    falls, grows = (_reaching_earning(chain, settled, sign) for sign in (-1, 1))
    values = np.select([falls & grows, falls, grows], [np.nan, -np.inf, np.inf], 0.0)
    rest = everywhere[~(settled | falls | grows)]
    values[rest] = solve_chain(restricted(chain, rest), rest)
    return values


def chain_visits(mdp: TabularMDP, probabilities: FloatArray) -> FloatArray:
    """The (discounted) expected number of decisions in each state, (S,), before the process settles or ends."""
    chain = chain_of(mdp, probabilities)
    passing: IntArray = np.arange(mdp.n_states)
    if mdp.discount == 1:
        passing = passing[~in_closed_class(chain)]
        chain = restricted(chain, passing)
    visits = np.zeros(mdp.n_states)
    if mdp.discount < 1 and mdp.n_states > DENSE:
        found = _iterated_visits(chain.moves, mdp.initial, mdp.discount)
        if found is not None:
            return found
    visits[passing] = np.maximum(_System(chain, mdp.discount).solve(mdp.initial[passing], transposed=True), 0.0)
    return visits


def solve_chain(chain: Chain, states: IntArray, discount: float = 1.0) -> FloatArray:
    """v = rewards + discount * moves v, (m,), where `states` are the names of the chain's states for the message.

    EndlessError if the chain goes on for more than `LONGEST` steps from some state.
    """
    if not len(states):
        return np.zeros(0)
    if discount < 1 and len(states) > DENSE:
        found = _iterated(chain, discount)
        if found is not None:
            return found
    system = _System(chain, discount)
    lengths = system.solve(np.ones(len(states)))
    # A system that is singular shows itself by lengths that are huge, negative or no numbers.
    long = np.flatnonzero(~((lengths >= 0) & (lengths <= LONGEST)))
    if long.size:
        raise EndlessError(f"from state {int(states[long[0]])} the process goes on for more than {LONGEST:.0e} steps.")
    values = system.solve(chain.rewards)
    # One step of refinement leaves a residual of a few roundings in each state, whatever the size of other values.
    return values + system.solve(chain.rewards - system.matrix @ values)


class Bracket(NamedTuple):
    """What one step tells about the solution of v = r + discount P v, of a policy or of the best one.

    Attributes
    ----------
    shift : float
        What to add to the step's result to be in the middle of where the solution may lie, the same for all states.
    error : float
        How far from it the solution may then be in any state.
    """

    shift: float
    error: float


def bracket(before: FloatArray, after: FloatArray, discount: float, terms: int) -> Bracket:
    """Where the solution lies, from one step of the iteration, v -> r + discount P v or its largest over actions.

    If the step adds at least `low` and at most `high` to each state, each further one adds at least discount^i
    min(low, 0) and at most discount^i max(high, 0), as the rows of P sum to at most 1 (to less where steps end the
    process). Added up, the solution is between `after` + discount / (1 - discount) times either. Where all rows sum to
    1, min(low, 0) and max(high, 0) may be low and high themselves: MacQueen's bounds. `terms` is the largest number of
    next states: so many products are added, each of which is rounded.

    References
    ----------
    Puterman (1994), Markov decision processes, theorem 6.6.3 and section 6.6.3.
    """
    gained = after - before
    low, high = min(float(gained.min()), 0.0), max(float(gained.max()), 0.0)
    factor = discount / (1 - discount)
    return Bracket(factor * (low + high) / 2, factor * (high - low) / 2 + _rounding(before, after, discount, terms))


def _rounding(before: FloatArray, after: FloatArray, discount: float, terms: int) -> float:
    """What rounding in each step leaves of a solution at most."""
    size = 2 * float(np.abs(before).max()) + float(np.abs(after).max())
    return (terms + 3) * float(np.finfo(float).eps) * size / (1 - discount)


def _iterated(chain: Chain, discount: float) -> FloatArray | None:
    """V = rewards + discount * moves v to `ENOUGH`, or to rounding; None if that takes too many steps."""
    values, terms = chain.rewards, most_terms(chain.moves)
    # A shift stays the same in all states with the next step only if nothing ends.
    shifts = not chain.ends.any()
    for _ in range(MOST_SWEEPS):
        after = chain.rewards + discount * (chain.moves @ values)
        found = bracket(values, after, discount, terms)
        if found.error <= enough(values, after, discount, terms):
            return np.asarray(after + found.shift)
        values = after + found.shift if shifts else after
    return None


def enough(before: FloatArray, after: FloatArray, discount: float, terms: int) -> float:
    """The error at which an iteration ends: `ENOUGH`, or twice what rounding leaves at most."""
    return max(ENOUGH, 2 * _rounding(before, after, discount, terms))


def most_terms(moves: Matrix) -> int:
    """The largest number of next states."""
    return int(np.diff(moves.indptr).max(initial=0))


def _iterated_visits(moves: Matrix, initial: FloatArray, discount: float) -> FloatArray | None:
    """The discounted visits, to `ENOUGH` in their sum; None if that takes too many steps."""
    backwards, mass, visits = sparse.csr_array(moves.T), initial, initial.copy()
    for _ in range(MOST_SWEEPS):
        mass = discount * (backwards @ mass)
        visits += mass
        if mass.sum() * discount / (1 - discount) <= ENOUGH:
            return visits
    return None


def restricted(chain: Chain, states: IntArray) -> Chain:
    """The chain on some of its states; what leads out of them ends it, at no further reward."""
    rows = chain.moves[states]
    outside = np.ones(chain.moves.shape[0])
    outside[states] = 0.0
    return Chain(rows[:, states], chain.rewards[states], chain.ends[states] + rows @ outside)


def in_closed_class(chain: Chain) -> BoolArray:
    """Whether each state belongs to a set of states that is never left and never ends, (S,)."""
    n_components, component = csgraph.connected_components(chain.moves, directed=True, connection="strong")
    closed = np.ones(n_components, dtype=np.bool_)
    closed[component[chain.ends > 0]] = False
    source, target = (component[nodes] for nodes in chain.moves.tocoo().coords)
    closed[source[source != target]] = False
    settled: BoolArray = closed[component]
    return settled


def distance_to(moves: Matrix, targets: BoolArray) -> FloatArray:
    """The least number of moves, (S, S), from each state to a target, (S,); inf where none can be reached."""
    n = len(targets)
    reached = np.flatnonzero(targets)
    row, column = moves.tocoo().coords
    # Searched backwards, from an extra node n behind the targets.
    edges = (np.concatenate([column, np.full(len(reached), n)]), np.concatenate([row, reached]))
    graph: Matrix = sparse.csr_array((np.ones(len(edges[0])), edges), shape=(n + 1, n + 1))
    distances: FloatArray = csgraph.dijkstra(graph, indices=n, unweighted=True)  # type: ignore[call-overload]  # the stubs lack it
    return distances[:n] - 1


def _reaching_earning(chain: Chain, settled: BoolArray, sign: int) -> BoolArray:
    """The states from which rewards of one sign can come for ever."""
    return np.isfinite(distance_to(chain.moves, settled & (sign * chain.rewards > 0)))


class _System:
    """(1 - discount * moves) x = b, factorised."""

    def __init__(self, chain: Chain, discount: float) -> None:
        n = len(chain.rewards)
        moves = chain.moves.tocoo()
        row, column = moves.coords
        off = row != column
        # What leaves a state is added up: 1 - (what stays) would round a rare exit away.
        leaves = np.bincount(row[off], weights=moves.data[off], minlength=n) + chain.ends
        entries = np.concatenate([-discount * moves.data[off], (1 - discount) + discount * leaves])
        diagonal = np.arange(n)
        places = (np.concatenate([row[off], diagonal]), np.concatenate([column[off], diagonal]))
        self.matrix: Matrix = sparse.csr_array((entries, places), shape=(n, n))
        self._dense = n <= DENSE
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", linalg.LinAlgWarning)  # whoever needs to know looks at the result
            self._factors: Any = linalg.lu_factor(self.matrix.toarray()) if self._dense else splu(self.matrix.tocsc())

    def solve(self, right: FloatArray, *, transposed: bool = False) -> FloatArray:
        """X, or x of the transposed system."""
        with np.errstate(all="ignore"):
            if self._dense:
                return np.asarray(linalg.lu_solve(self._factors, right, trans=1 if transposed else 0))
            return np.asarray(self._factors.solve(right, trans="T" if transposed else "N"))
