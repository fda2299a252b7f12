"""Processes without a horizon: what acting by the same probabilities is worth, and the best that can be done.

Acting by the same probabilities makes a Markov chain, which is solved exactly. The best policy is found by policy
iteration with such solves. Without a discount, the value of a state is the largest expected total of rewards over all
policies under which the process either ends or comes to rest: stays for ever among states and actions whose rewards
are 0.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.sparse import csgraph
from scipy.sparse.linalg import splu

from policies.arrays import BoolArray, FloatArray, Frozen, IntArray, read_only
from policies.policy import two_values
from policysim.course.process import Matrix, q_table
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
# Steps with the same actions in a round of modified policy iteration, at most; fewer where they come so much closer.
SWEEPS, CLOSER = 200, 0.05
# An action is changed only if it gains more than this share of what its value is a sum of: what is solved has a
# residual of a few roundings, and equals must not be changed for each other (they may never end).
GAIN = 1e-13


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
    # From where rewards of one sign can come for ever.
    falls, grows = (np.isfinite(distance_to(chain.moves, settled & (sign * chain.rewards > 0))) for sign in (-1, 1))
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
        # To `ENOUGH` in their sum, unless that takes too many steps.
        backwards, mass, counted = sparse.csr_array(chain.moves.T), mdp.initial, mdp.initial.copy()
        for _ in range(MOST_SWEEPS):
            mass = mdp.discount * (backwards @ mass)
            counted += mass
            if mass.sum() * mdp.discount / (1 - mdp.discount) <= ENOUGH:
                return counted
    visits[passing] = np.maximum(_factorised(chain, mdp.discount)[1](mdp.initial[passing], transposed=True), 0.0)
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
    matrix, solve = _factorised(chain, discount)
    lengths = solve(np.ones(len(states)))
    # A system that is singular shows itself by lengths that are huge, negative or no numbers.
    long = np.flatnonzero(~((lengths >= 0) & (lengths <= LONGEST)))
    if long.size:
        raise EndlessError(f"from state {int(states[long[0]])} the process goes on for more than {LONGEST:.0e} steps.")
    values = solve(chain.rewards)
    # One step of refinement leaves a residual of a few roundings in each state, whatever the size of other values.
    return values + solve(chain.rewards - matrix @ values)


def bracket(before: FloatArray, after: FloatArray, discount: float, terms: int) -> tuple[float, float, float]:
    """Where the solution lies, from one step of the iteration, v -> r + discount P v or its largest over actions.

    What to add to the step's result to be in the middle of where the solution may lie, the same for all states; how far
    from it the solution may then be in any state; and at which such error an iteration ends: `ENOUGH`, or twice what
    rounding leaves at most.

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
    # What rounding in each step leaves of a solution at most.
    size = 2 * float(np.abs(before).max()) + float(np.abs(after).max())
    rounding = (terms + 3) * float(np.finfo(float).eps) * size / (1 - discount)
    return factor * (low + high) / 2, factor * (high - low) / 2 + rounding, max(ENOUGH, 2 * rounding)


def _iterated(chain: Chain, discount: float) -> FloatArray | None:
    """V = rewards + discount * moves v to `ENOUGH`, or to rounding; None if that takes too many steps."""
    values, terms = chain.rewards, int(np.diff(chain.moves.indptr).max(initial=0))
    # A shift stays the same in all states with the next step only if nothing ends.
    shifts = not chain.ends.any()
    for _ in range(MOST_SWEEPS):
        after = chain.rewards + discount * (chain.moves @ values)
        shift, error, target = bracket(values, after, discount, terms)
        if error <= target:
            return np.asarray(after + shift)
        values = after + shift if shifts else after
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


def _factorised(chain: Chain, discount: float) -> tuple[Matrix, Callable[..., FloatArray]]:
    """The matrix 1 - discount * moves; and what solves it, or its transpose, for a right side, (S,)."""
    n = len(chain.rewards)
    moves = chain.moves.tocoo()
    row, column = moves.coords
    off = row != column
    # What leaves a state is added up: 1 - (what stays) would round a rare exit away.
    leaves = np.bincount(row[off], weights=moves.data[off], minlength=n) + chain.ends
    entries = np.concatenate([-discount * moves.data[off], (1 - discount) + discount * leaves])
    diagonal = np.arange(n)
    places = (np.concatenate([row[off], diagonal]), np.concatenate([column[off], diagonal]))
    matrix: Matrix = sparse.csr_array((entries, places), shape=(n, n))
    dense = n <= DENSE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", linalg.LinAlgWarning)  # whoever needs to know looks at the result
        factors: Any = linalg.lu_factor(matrix.toarray()) if dense else splu(matrix.tocsc())

    def solve(right: FloatArray, *, transposed: bool = False) -> FloatArray:
        with np.errstate(all="ignore"):
            if dense:
                return np.asarray(linalg.lu_solve(factors, right, trans=1 if transposed else 0))
            return np.asarray(factors.solve(right, trans="T" if transposed else "N"))

    return matrix, solve


@dataclass(frozen=True, eq=False)
class Plan(Frozen):
    """What each state and action is worth.

    Attributes
    ----------
    q_values : array, (H, n, k), or (n, k) for an infinite horizon
        The expected return of an action if what follows is optimal (or as the private policy does it); -inf for
        inadmissible actions.
    values : array, (H, n) or (n,)
        The expected return from each state.
    initial : array, (n,)
        The distribution of the first state.
    error : float
        No value is further than this from the best, by proof; 0 where values are exact but for the rounding of sums.
    """

    q_values: FloatArray
    values: FloatArray
    initial: FloatArray
    error: float = 0.0
    _actions: IntArray | None = None

    def __post_init__(self) -> None:
        """The best actions are computed of these arrays once."""
        read_only(self.q_values)
        read_only(self.values)

    @property
    def value(self) -> float:
        """The expected return from the initial distribution."""
        return float(self.initial @ (self.values if self.values.ndim == 1 else self.values[0]))

    @cached_property
    def actions(self) -> IntArray:
        """A best action in each state, (H, n) or (n,).

        Without a horizon, the largest Q-value is not enough: of actions that are equally good, some may put off the
        end for ever. These do not.
        """
        best: IntArray = self.q_values.argmax(axis=-1) if self._actions is None else self._actions
        return read_only(best)


def solve_infinite(mdp: TabularMDP) -> Plan:
    """The best policy, its values and its Q-values.

    Up to `DENSE` states, and without a discount, by policy iteration with exact solves. Beyond,
    by modified policy iteration, which never solves a system: to 1e-9, or to what rounding leaves of large values.

    Raises
    ------
    ValueError
        Undiscounted: if there is a state from which the process never ends or rests, whatever is done, or from which
        rewards can grow for ever. The state is named.

    Notes
    -----
    Puterman (1994), Markov decision processes, sections 6.4 and 7.2. Without a discount there is one more action,
    "stop", of reward 0, where the process may rest. Policy iteration starts from a policy that ends, and changes an
    action only for a strictly better one. If the process could then go on for ever, its rewards there would be positive
    on average, because each change gained: for the stationary distribution m, m r = m (r + P v - v) > 0. So either each
    policy ends, and the next one is better, or rewards grow for ever.

    The first policy: states that can be made to end almost surely are found by repeatedly dropping those that cannot
    reach an end while avoiding what was dropped; de Alfaro (1999), Computing minimum and maximum reachability times.

    Modified policy iteration: Puterman & Shin (1978), Modified policy iteration algorithms for discounted Markov
    decision problems, Management Science 24(11). The error is proved by one step of value iteration
    (`bracket`), whatever came before.
    """
    allowed = np.ones(mdp.rewards.shape, dtype=np.bool_) if mdp.admissible is None else mdp.admissible
    if mdp.discount < 1:
        iterated = _modified(mdp) if mdp.n_states > DENSE else None
        return iterated or _improve(mdp, np.where(allowed, mdp.rewards, -np.inf).argmax(axis=1))
    resting = _resting(mdp, allowed)
    rests: BoolArray = np.asarray(resting.any(axis=1))
    first = _ending_policy(mdp, allowed, rests)
    stop = mdp.n_actions
    best = _improve(_with_stop(mdp, allowed, rests), np.where(rests, stop, first))
    actions = np.where(best.actions == stop, resting.argmax(axis=1), best.actions)
    return replace(best, q_values=best.q_values[:, :stop], _actions=actions)


def _modified(mdp: TabularMDP) -> Plan | None:
    """Modified policy iteration; None if it takes too many steps.

    Each round takes a step of value iteration, which proves an error, and then up to `SWEEPS` steps with its best
    actions only. Should a round not come closer, only steps of value iteration follow, which always do.
    """
    rows, discount = np.arange(mdp.n_states), mdp.discount
    values, sweeps, last_error = np.zeros(mdp.n_states), SWEEPS, np.inf
    terms = int(np.diff(mdp.stacked.indptr).max(initial=0))
    # A shift stays the same in all states with the next step only if nothing ends.
    shifts = not mdp.ends.any()
    steps = 0
    while steps < MOST_SWEEPS:
        q_values = q_table(mdp, values)
        best = q_values.max(axis=1)
        shift, error, target = bracket(values, best, discount, terms)
        steps += 1
        if error <= target:
            values = best + shift
            q_values = q_table(mdp, values)
            return Plan(q_values, values, mdp.initial, error)
        if error >= last_error:
            sweeps = 0
        last_error, values = error, best
        if sweeps == 0:
            continue
        chosen = q_values.argmax(axis=1)
        moves, rewards = mdp.stacked[chosen * mdp.n_states + rows], mdp.rewards[rows, chosen]
        values = best + shift if shifts else best
        for _ in range(sweeps):
            after = rewards + discount * (moves @ values)
            shift, remaining, _ = bracket(values, after, discount, terms)
            values, steps = after + shift if shifts else after, steps + 1
            if remaining <= CLOSER * error:
                break
    return None


def _with_stop(mdp: TabularMDP, allowed: BoolArray, rests: BoolArray) -> TabularMDP:
    """The process with one more action that ends it at a reward of 0, in states where it may rest."""
    nowhere = sparse.csr_array((mdp.n_states, mdp.n_states))
    return TabularMDP(
        [*(mdp.stacked[action * mdp.n_states :][: mdp.n_states] for action in range(mdp.n_actions)), nowhere],
        np.column_stack([mdp.rewards, np.zeros(mdp.n_states)]),
        mdp.initial,
        admissible=np.column_stack([allowed, rests]),
        ends=np.column_stack([mdp.ends, np.ones(mdp.n_states)]),
    )


def _improve(mdp: TabularMDP, actions: IntArray) -> Plan:
    """Policy iteration from actions by which the process ends, or is discounted."""
    rows = np.arange(mdp.n_states)
    values = solve_chain(chain_of(mdp, two_values(actions, mdp.n_actions, 1.0, 0.0)), rows, mdp.discount)
    while True:
        q_values = q_table(mdp, values)
        plan = Plan(q_values, values, mdp.initial, _actions=actions)
        noise = GAIN * (np.abs(mdp.rewards) + mdp.discount * mdp.continuation(np.abs(values))).max(axis=1)
        better = q_values.max(axis=1) > q_values[rows, actions] + noise
        if not better.any():
            return plan
        actions = np.where(better, q_values.argmax(axis=1), actions)
        chain = chain_of(mdp, two_values(actions, mdp.n_actions, 1.0, 0.0))
        # A policy that gained everywhere and never ends from some state grows for ever there.
        endless = np.isinf(distance_to(chain.moves, chain.ends > 0)) if mdp.discount == 1 else np.zeros(0)
        if endless.any():
            state = int(np.where(endless, chain.rewards, -np.inf).argmax())
            raise ValueError(
                f"from state {state} the total reward grows for ever: give a discount < 1 or a horizon, or end the "
                "process."
            )
        before, values = values, solve_chain(chain, rows, mdp.discount)
        # State by state: next to a value of 1e15, the sum would not show that others gained.
        if not (values > before).any():
            return plan


def _resting(mdp: TabularMDP, allowed: BoolArray) -> BoolArray:
    """Which actions, (S, A), earn 0 and end or stay among states where the same can be done for ever."""
    pairs: BoolArray = allowed & (mdp.rewards == 0)
    while True:
        kept = pairs & (mdp.continuation(np.where(pairs.any(axis=1), 0.0, 1.0)) == 0)
        if np.array_equal(kept, pairs):
            return pairs
        pairs = kept


def _ending_policy(mdp: TabularMDP, allowed: BoolArray, rests: BoolArray) -> IntArray:
    """An action for each state, (S,), by which the process ends or rests almost surely from everywhere."""
    n, k = allowed.shape
    inside = np.ones(n, dtype=np.bool_)
    while True:
        # Actions that lead out of what is left may never end.
        pairs = allowed & (mdp.continuation(np.where(inside, 0.0, 1.0)) == 0)
        may_end = rests | (pairs & (mdp.ends > 0)).any(axis=1)
        # The moves that some of these actions can make.
        some = sparse.csr_array((pairs.T.ravel() * 1.0, (np.tile(np.arange(n), k), np.arange(n * k))), (n, n * k))
        some.eliminate_zeros()
        distances = distance_to(some @ mdp.stacked, may_end)
        reached = inside & np.isfinite(distances)
        if (reached == inside).all():
            break
        inside = reached
    if not inside.all():
        raise ValueError(
            f"from state {int(np.flatnonzero(~inside)[0])} the process never ends, nor rests at rewards of 0, under "
            "any policy: give a discount < 1 or a horizon."
        )
    # The smallest distance among the next states of each state and action, (S, A). One more entry, so that rows
    # without next states at the end have a place to start.
    starts = mdp.stacked.indptr
    nearest = np.minimum.reduceat(np.append(distances[mdp.stacked.indices], np.inf), starts[:-1])
    nearest[np.diff(starts) == 0] = np.inf
    closer = distances[:, None] > nearest.reshape(k, n).T
    policy: IntArray = (pairs & (closer | (mdp.ends > 0))).argmax(axis=1)
    return policy
