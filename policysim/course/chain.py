"""What a process is worth if every state always acts by the same probabilities: a Markov chain, solved exactly."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.sparse import csgraph
from scipy.sparse.linalg import splu

from policies.arrays import FloatArray, IntArray
from policysim.course.process import BoolArray, Matrix
from policysim.course.tabular import TabularMDP

# Up to this many states a dense solver is faster.
DENSE = 1500
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
    visits[passing] = np.maximum(_System(chain, mdp.discount).solve(mdp.initial[passing], transposed=True), 0.0)
    return visits


def solve_chain(chain: Chain, states: IntArray, discount: float = 1.0) -> FloatArray:
    """v = rewards + discount * moves v, (m,), where `states` are the names of the chain's states for the message.

    EndlessError if the chain goes on for more than `LONGEST` steps from some state.
    """
    if not len(states):
        return np.zeros(0)
    system = _System(chain, discount)
    lengths = system.solve(np.ones(len(states)))
    # A system that is singular shows itself by lengths that are huge, negative or no numbers.
    long = np.flatnonzero(~((lengths >= 0) & (lengths <= LONGEST)))
    if long.size:
        raise EndlessError(f"from state {int(states[long[0]])} the process goes on for more than {LONGEST:.0e} steps.")
    values = system.solve(chain.rewards)
    # One step of refinement leaves a residual of a few roundings in each state, whatever the size of other values.
    return values + system.solve(chain.rewards - system.matrix @ values)


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
