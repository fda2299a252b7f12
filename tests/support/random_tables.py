"""Small random problems with a table of action probabilities of each record, and plain loops over their neighbours."""

from functools import cache
from itertools import chain, combinations

import numpy as np
from random_problems import neighbour_pairs

from envs.records import record_space
from policies import AnyRecord, DecisionProblem, OneFeature, Sensitive
from policies.policy import Policy

SHAPE = (2, 3)


class Given(Policy):
    """A table as a policy."""

    name = "given"
    across_masks = True
    table: np.ndarray

    def __init__(self, table):
        super().__init__()
        vars(self)["table"] = np.asarray(table, dtype=float)

    def _log_probabilities(self, _problem):
        with np.errstate(divide="ignore"):
            return np.log(self.table)


def fitted(table, adjacency, prior=None, **more):
    """A table as a fitted policy; by default all records are equally likely."""
    prior = np.full(len(table), 1 / len(table)) if prior is None else prior
    return Given(table).fit(DecisionProblem(np.zeros(np.shape(table)), prior, adjacency, **more))


@cache
def random_tables():
    """500 of them: any-record, one-feature and sensitive in turn; zeros, ties, equal rows, records that never come."""
    return tuple(_random_table(seed) for seed in range(500))


def _random_table(seed):
    rng = np.random.default_rng([57, seed])
    adjacency = (AnyRecord(), OneFeature(SHAPE), Sensitive(SHAPE, (1,)))[seed % 3]
    table = rng.random((6, int(rng.integers(2, 5)))) ** rng.choice([1, 3, 20])
    if rng.random() < 0.3:
        table = np.round(table, 1) + 0.1
    if rng.random() < 0.3:
        table[rng.random(table.shape) < 0.2] = 0
    if rng.random() < 0.3:
        table[rng.integers(6)] = table[0]
    table[:, -1] += 0.1
    prior = rng.random(6) * (rng.random(6) < 0.8) + np.eye(6)[0] * 0.1
    records = record_space({"age": ["young", "old"], "gene": ["a", "b", "c"]})
    return fitted(table / table.sum(axis=1, keepdims=True), adjacency, prior / prior.sum(), records=records)


def all_tests(found):
    """P_x(S) and P_x'(S) for all neighbours and sets of actions of a fitted policy, (n,) each."""
    actions = range(found.problem.n_actions)
    sets = chain.from_iterable(combinations(actions, size) for size in range(len(actions) + 1))
    sums = np.stack([found.probabilities[:, list(each)].sum(axis=1) for each in sets])
    one, other = np.array(neighbour_pairs(found.problem.adjacency, found.problem.n_records)).T
    return sums[:, one].ravel(), sums[:, other].ravel()
