"""Small decision processes, and what they are worth by other means than the solvers'."""

from __future__ import annotations

from itertools import product

import numpy as np

from policies import AnyRecord, privacy_loss
from policies.masked import masked_problem
from policysim.course.tabular import TabularMDP


def random_arrays(rng, n_states=4, n_actions=3, *, ends=0.0, sparse=False):
    """Transitions (S, A, S), rewards (S, A), initial (S,) and ends (S, A), with generic entries."""
    moves = rng.random((n_states, n_actions, n_states))
    if sparse:
        moves *= rng.random(moves.shape) < 0.5
        moves[..., 0] += 0.01
    last = np.full((n_states, n_actions), ends)
    moves *= (1 - last)[..., None] / moves.sum(axis=2, keepdims=True)
    initial = rng.random(n_states)
    return moves, rng.normal(size=(n_states, n_actions)), initial / initial.sum(), last


def loopy_arrays(rng, n_states=4, n_actions=3):
    """A process full of ties, loops and dead ends: mostly sure moves, rewards among -1, 0, 1, some sure ends."""
    moves = np.zeros((n_states, n_actions, n_states))
    for state, action in product(range(n_states), range(n_actions)):
        following = rng.choice(n_states, size=rng.choice([1, 1, 1, 2]), replace=False)
        weights = rng.random(len(following))
        moves[state, action, following] = weights / weights.sum()
    last = (rng.random((n_states, n_actions)) < 0.2) * rng.choice([1.0, 0.5], size=(n_states, n_actions))
    moves *= (1 - last)[..., None]
    rewards = rng.choice([-1.0, 0.0, 0.0, 1.0], p=[0.45, 0.25, 0.25, 0.05], size=(n_states, n_actions))
    return moves, rewards, np.full(n_states, 1 / n_states), last


def all_policies(allowed):
    """Every deterministic policy, (n_policies, S), of the allowed actions, (S, A)."""
    return np.array(list(product(*(np.flatnonzero(row) for row in allowed))))


def totals_of_policies(moves, rewards, policies):
    """The total reward of each deterministic policy after 2^40 steps, (n_policies, S), and whether it has settled.

    By doubling: V(2n) = V(n) + P^n V(n). A total has settled if the total of |rewards| no longer grows: rewards that
    go on for ever and cancel on average do not settle.
    """
    rows = np.arange(moves.shape[0])
    power, total = moves[rows, policies], rewards[rows, policies]
    size = np.abs(total)
    for _ in range(40):
        total = total + np.einsum("pij,pj->pi", power, total)
        half, size = size, size + np.einsum("pij,pj->pi", power, size)
        power = power @ power
    return total, size - half < 1e-6


def expected_by_paths(moves, rewards, daily, state, *, discount=1.0, day=0):
    """The expected return from a state by following every path, `daily` being p(a|s), (H, S, A)."""
    if day == len(daily):
        return 0.0
    total = 0.0
    for action, chance in enumerate(daily[day][state]):
        later = sum(
            probability * expected_by_paths(moves, rewards, daily, following, discount=discount, day=day + 1)
            for following, probability in enumerate(moves[state, action])
            if probability > 0 and chance > 0
        )
        total += chance * (rewards[state, action] + discount * later) if chance > 0 else 0.0
    return total


def random_table(rng, n_states, n_actions, allowed=None):
    """A generic p(a|s), 0 where an action is not allowed."""
    table = rng.random((n_states, n_actions))
    if allowed is not None:
        table = table * allowed
    return table / table.sum(axis=1, keepdims=True)


def dense_value(moves, rewards, probabilities, discount=1.0):
    """V of a stationary policy that ends, by one dense solve, (S,)."""
    chain = np.einsum("sa,sat->st", probabilities, moves)
    return np.linalg.solve(np.eye(len(chain)) - discount * chain, (probabilities * rewards).sum(axis=1))


def toy_text_arrays(env):
    """Transitions of what goes on, (S, A, S), and rewards, (S, A), read from P with nothing but loops."""
    table = env.unwrapped.P
    moves, rewards = np.zeros((len(table), len(table[0]), len(table))), np.zeros((len(table), len(table[0])))
    for state, actions in table.items():
        for action, entries in actions.items():
            for probability, following, reward, terminated in entries:
                rewards[state, action] += probability * reward
                if not terminated:
                    moves[state, action, following] += probability
    return moves, rewards


class WithOutcomes:
    """A process with outcomes and groups of states, on top of a TabularMDP."""

    def __init__(self, mdp: TabularMDP, outcomes, groups=()):
        self._mdp, self.outcomes, self._groups = mdp, outcomes, dict(groups)
        self.records = self

    def __getattr__(self, name):
        return getattr(self._mdp, name)

    @property
    def names(self):
        return tuple(self._groups)

    def describe(self, record):
        return f"state {record}"

    def groups(self, feature):
        return self._groups[feature]


def moves_of(process):
    """P(next state | state, action), (S, A, S), of a TabularMDP."""
    n, k = process.rewards.shape
    return process.stacked.toarray().reshape(k, n, n).transpose(1, 0, 2)


def value_of_schedule(process, schedule):
    """What a schedule is worth to each state, by following it backwards through dense matrices, (n,)."""
    moves, values = moves_of(process), np.zeros(len(process.initial))
    for action in reversed(schedule):
        values = process.rewards[:, action] + process.discount * moves[:, action] @ values
    return values


def published(process, tables):
    """P(published actions of all days | first state), (n, k^H), by following every sequence through the states."""
    n, k = process.rewards.shape
    joint = []
    for sequence in product(range(k), repeat=len(tables)):
        chance = np.ones(n)  # P(the rest of the sequence | state), backwards
        for day in reversed(range(len(tables))):
            later = process.continuation(chance)[:, sequence[day]] if day + 1 < len(tables) else np.ones(n)
            chance = tables[day][:, sequence[day]] * later
        joint.append(chance)
    return np.column_stack(joint)


def replayed(process, course):
    """The tables of a private course, from its policies and priors and nothing else of it, and its value."""
    values, tables = np.zeros(len(process.initial)), []
    for policy, prior in reversed(list(zip(course.policies, course.priors, strict=True))):
        q_values = process.rewards + process.discount * process.continuation(values)
        tables.append(masked_problem(q_values, prior, process.admissible, classes=process.classes).tables(policy)[1])
        values = (tables[-1] * q_values).sum(axis=1)
    return tables[::-1], float(process.initial @ values)


def worst_divergence(joint, epsilon):
    """The largest hockey-stick divergence of any two rows: the delta that they need at this epsilon."""
    return max(np.maximum(row - np.exp(epsilon) * joint, 0).sum(axis=1).max() for row in joint)


def loss_of(table):
    """The exact loss of p(a|s) between any two states."""
    return privacy_loss(table, AnyRecord()).epsilon
