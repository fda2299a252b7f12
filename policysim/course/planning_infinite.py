"""The best that can be done in a process without a horizon, by policy iteration with exact linear solves.

Without a discount, the value of a state is the largest expected total of rewards over all policies under which the
process either ends or comes to rest: stays for ever among states and actions whose rewards are 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from policies.arrays import FloatArray, IntArray
from policysim.course import chain as chain_solver
from policysim.course.chain import Chain, bracket, distance_to, enough, most_terms, solve_chain
from policysim.course.process import BoolArray, Matrix
from policysim.course.tabular import TabularMDP
from policysim.question.protocol import SILENT, Progress

# Steps with the same actions in a round of modified policy iteration, at most; fewer where they come so much closer.
SWEEPS, CLOSER = 200, 0.05
# An action is changed only if it gains more than this share of what its value is a sum of: what is solved has a
# residual of a few roundings, and equals must not be changed for each other (they may never end).
GAIN = 1e-13


class Solution(NamedTuple):
    """The best that can be done without a horizon.

    Attributes
    ----------
    q_values : array, (S, A)
        -inf at inadmissible actions.
    values : array, (S,)
    actions : array of int, (S,)
        A best policy.
    error : float
        No value is further than this from the best; of a direct solve, 0 but for rounding.
    """

    q_values: FloatArray
    values: FloatArray
    actions: IntArray
    error: float = 0.0


def solve_infinite(mdp: TabularMDP, progress: Progress = SILENT) -> Solution:
    """The best policy, its values and its Q-values.

    Up to `policysim.course.chain.DENSE` states, and without a discount, by policy iteration with exact solves. Beyond,
    by modified policy iteration, which never solves a system: to 1e-9, or to what rounding leaves of large values.

    Raises
    ------
    ValueError
        Undiscounted: if there is a state from which the process never ends or rests, whatever is done, or from which
        rewards can grow for ever. The state is named.

    Notes
    -----
    Puterman (1994), Markov decision processes, sections 6.4 and 7.2. A state where the process may rest has "stop" as
    one more action, of reward 0. Policy iteration starts from a policy that ends, and changes an action only for a
    strictly better one. If the process could then go on for ever, its rewards there would be positive on average,
    because each change gained: for the stationary distribution m, m r = m (r + P v - v) > 0. So either each policy
    ends, and the next one is better, or rewards grow for ever.

    The first policy: states that can be made to end almost surely are found by repeatedly dropping those that cannot
    reach an end while avoiding what was dropped; de Alfaro (1999), Computing minimum and maximum reachability times.

    Modified policy iteration: Puterman & Shin (1978), Modified policy iteration algorithms for discounted Markov
    decision problems, Management Science 24(11). The error is proved by one step of value iteration
    (`policysim.course.chain.bracket`), whatever came before.
    """
    allowed = np.ones(mdp.rewards.shape, dtype=np.bool_) if mdp.admissible is None else mdp.admissible
    if mdp.discount < 1 and mdp.n_states > chain_solver.DENSE:
        found = _modified(mdp, allowed, progress)
        if found is not None:
            return found
    if mdp.discount < 1:
        resting: BoolArray = np.zeros_like(allowed)
        first: IntArray = np.where(allowed, mdp.rewards, -np.inf).argmax(axis=1)
    else:
        resting = _resting(mdp, allowed)
        first = _ending_policy(mdp, allowed, _some(resting))
    q_values, values, actions, stopped = _improve(mdp, allowed, first, _some(resting))
    return Solution(q_values, values, np.where(stopped, resting.argmax(axis=1), actions))


def _modified(mdp: TabularMDP, allowed: BoolArray, progress: Progress) -> Solution | None:
    """Modified policy iteration; None if it takes too many steps.

    Each round takes a step of value iteration, which proves an error, and then up to `SWEEPS` steps with its best
    actions only. Should a round not come closer, only steps of value iteration follow, which always do.
    """
    rows, discount = np.arange(mdp.n_states), mdp.discount
    values, sweeps, errors, terms = np.zeros(mdp.n_states), SWEEPS, [np.inf], most_terms(mdp.stacked)
    # A shift stays the same in all states with the next step only if nothing ends.
    shifts = not mdp.ends.any()
    progress.expect(100)
    done = steps = 0
    while steps < chain_solver.MOST_SWEEPS:
        q_values = np.where(allowed, mdp.rewards + discount * mdp.continuation(values), -np.inf)
        best = q_values.max(axis=1)
        shift, error = bracket(values, best, discount, terms)
        target = enough(values, best, discount, terms)
        if error <= target:
            progress.advance(100 - done)
            values = best + shift
            q_values = np.where(allowed, mdp.rewards + discount * mdp.continuation(values), -np.inf)
            return Solution(q_values, values, q_values.argmax(axis=1), error)
        share = 0 if errors[-1] == np.inf else int(99 * np.log(errors[1] / error) / np.log(errors[1] / target))
        progress.advance(max(share - done, 0))
        done, steps = max(done, share), steps + 1
        if error >= errors[-1]:
            sweeps = 0
        errors.append(error)
        values = best
        if sweeps == 0:
            continue
        chosen = q_values.argmax(axis=1)
        moves, rewards = mdp.stacked[chosen * mdp.n_states + rows], mdp.rewards[rows, chosen]
        values = best + shift if shifts else best
        for _ in range(sweeps):
            after = rewards + discount * (moves @ values)
            of_policy = bracket(values, after, discount, terms)
            values, steps = after + of_policy.shift if shifts else after, steps + 1
            if of_policy.error <= CLOSER * error:
                break
    return None


def _improve(
    mdp: TabularMDP, allowed: BoolArray, actions: IntArray, stopped: BoolArray
) -> tuple[FloatArray, FloatArray, IntArray, BoolArray]:
    """Policy iteration from a policy that ends: Q-values, values, actions, and where the best action is to stop."""
    rows = np.arange(mdp.n_states)
    values = _evaluate(mdp, actions, stopped)
    while True:
        q_values = np.where(allowed, mdp.rewards + mdp.discount * mdp.continuation(values), -np.inf)
        current = np.where(stopped, 0.0, q_values[rows, actions])
        noise = GAIN * (np.abs(mdp.rewards) + mdp.discount * mdp.continuation(np.abs(values))).max(axis=1)
        best = q_values.max(axis=1)
        acts = best > current + noise
        if not acts.any():
            return q_values, values, actions, stopped
        # Values never fall, so nobody who acts for more than 0 will want to stop again.
        new_stopped = stopped & ~acts
        new_actions: IntArray = np.where(acts, q_values.argmax(axis=1), actions)
        if mdp.discount == 1:
            _refuse_growth(mdp, new_actions, new_stopped)
        new_values = _evaluate(mdp, new_actions, new_stopped)
        # State by state: next to a value of 1e15, the sum would not show that others gained.
        if not (new_values > values).any():
            return q_values, values, actions, stopped
        actions, stopped, values = new_actions, new_stopped, new_values


def _chain(mdp: TabularMDP, actions: IntArray, stopped: BoolArray) -> Chain:
    rows = np.arange(mdp.n_states)
    moves: Matrix = mdp.stacked[actions * mdp.n_states + rows]
    if stopped.any():
        moves.data[np.repeat(stopped, np.diff(moves.indptr))] = 0.0
        moves.eliminate_zeros()
    return Chain(
        moves,
        np.where(stopped, 0.0, mdp.rewards[rows, actions]),
        np.where(stopped, 1.0, mdp.ends[rows, actions]),
    )


def _evaluate(mdp: TabularMDP, actions: IntArray, stopped: BoolArray) -> FloatArray:
    return solve_chain(_chain(mdp, actions, stopped), np.arange(mdp.n_states), mdp.discount)


def _refuse_growth(mdp: TabularMDP, actions: IntArray, stopped: BoolArray) -> None:
    """ValueError if a policy that gained everywhere never ends from some state."""
    chain = _chain(mdp, actions, stopped)
    endless = np.isinf(distance_to(chain.moves, chain.ends > 0))
    if endless.any():
        state = int(np.where(endless, chain.rewards, -np.inf).argmax())
        raise ValueError(
            f"from state {state} the total reward grows for ever: give a discount < 1 or a horizon, or end the process."
        )


def _resting(mdp: TabularMDP, allowed: BoolArray) -> BoolArray:
    """Which actions, (S, A), earn 0 and end or stay among states where the same can be done for ever."""
    pairs: BoolArray = allowed & (mdp.rewards == 0)
    while True:
        kept = pairs & (mdp.continuation(np.where(_some(pairs), 0.0, 1.0)) == 0)
        if np.array_equal(kept, pairs):
            return pairs
        pairs = kept


def _ending_policy(mdp: TabularMDP, allowed: BoolArray, rests: BoolArray) -> IntArray:
    """An action for each state, (S,), by which the process ends or rests almost surely from everywhere."""
    inside = np.ones(mdp.n_states, dtype=np.bool_)
    while True:
        # Actions that lead out of what is left may never end.
        pairs = allowed & (mdp.continuation(np.where(inside, 0.0, 1.0)) == 0)
        may_end = rests | _some(pairs & (mdp.ends > 0))
        distances = distance_to(_any_of(mdp, pairs), may_end)
        reached = inside & np.isfinite(distances)
        if (reached == inside).all():
            break
        inside = reached
    if not inside.all():
        raise ValueError(
            f"from state {int(np.flatnonzero(~inside)[0])} the process never ends, nor rests at rewards of 0, whatever "
            "is done: give a discount < 1 or a horizon."
        )
    closer = _nearest(mdp, distances) < distances[:, None]
    policy: IntArray = (pairs & (closer | (mdp.ends > 0))).argmax(axis=1)
    return policy


def _any_of(mdp: TabularMDP, pairs: BoolArray) -> Matrix:
    """The moves, (S, S), that some of the given actions, (S, A), can make."""
    n, k = pairs.shape
    chosen = sparse.csr_array((pairs.T.ravel() * 1.0, (np.tile(np.arange(n), k), np.arange(n * k))), shape=(n, n * k))
    chosen.eliminate_zeros()
    return chosen @ mdp.stacked


def _nearest(mdp: TabularMDP, distances: FloatArray) -> FloatArray:
    """The smallest distance, of those in (S,), among the next states of each state and action, (S, A)."""
    starts = mdp.stacked.indptr
    # One more entry, so that rows without next states at the end have a place to start.
    smallest = np.minimum.reduceat(np.append(distances[mdp.stacked.indices], np.inf), starts[:-1])
    smallest[np.diff(starts) == 0] = np.inf
    return smallest.reshape(mdp.n_actions, mdp.n_states).T


def _some(pairs: BoolArray) -> BoolArray:
    """The states, (S,), with at least one of the given actions, (S, A)."""
    return np.asarray(pairs.any(axis=1))
