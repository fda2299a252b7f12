"""Random problems, for Hypothesis and as a bank that is made once, and brute force over pairs of neighbours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import permutations, product

import numpy as np
from hypothesis import strategies as st

from policies import AnyRecord, DecisionProblem, OneFeature, Sensitive, make_policy


def neighbour_pairs(adjacency, n_records):
    """All ordered pairs of neighbours, by the definition of each adjacency and nothing else."""
    if isinstance(adjacency, AnyRecord):
        return [(x, y) for x in range(n_records) for y in range(n_records)]
    records = list(product(*map(range, adjacency.shape)))
    assert len(records) == n_records
    pairs = []
    for i, x in enumerate(records):
        for j, y in enumerate(records):
            differing = [axis for axis, (a, b) in enumerate(zip(x, y, strict=True)) if a != b]
            one_feature = isinstance(adjacency, OneFeature)
            if len(differing) <= 1 if one_feature else set(differing) <= set(adjacency.axes):
                pairs.append((i, j))
    return pairs


def loss_by_pairs(table, pairs):
    """max over pairs of rows and over actions of log p(a|x)/p(a|x'), 0/0 counting as no loss."""
    worst = 0.0
    for x, y in pairs:
        for p, q in zip(table[x], table[y], strict=True):
            if p > 0:
                worst = max(worst, np.inf if q == 0 else np.log(p) - np.log(q))
    return worst


def wins_by_permutations(heads):
    """P(a) of permute-and-flip: in each order, a is taken if the coins before it show tails and its own shows heads."""
    wins = [0 * heads[0]] * len(heads)
    orders = list(permutations(range(len(heads))))
    for order in orders:
        reached = 1
        for position in order:
            wins[position] += reached * heads[position]
            reached *= 1 - heads[position]
    return [win / len(orders) for win in wins]


def small_adjacency(rng, kind):
    """An adjacency of a kind, and its number of records: at most 18."""
    if kind == "any-record":
        return AnyRecord(), int(rng.integers(1, 11))
    if kind == "one-feature":
        return OneFeature((2, 3)), 6
    shape = int(rng.integers(1, 7)), int(rng.integers(2, 4))
    return Sensitive(shape, (1,)), shape[0] * shape[1]


@st.composite
def adjacencies(draw):
    """An adjacency and its number of records."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    kind = draw(st.sampled_from(["any-record", "one-feature", "sensitive"]))
    if kind == "any-record":
        return AnyRecord(), math.prod(shape)
    if kind == "one-feature":
        return OneFeature(shape), math.prod(shape)
    axes = draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))
    return Sensitive(shape, tuple(axes)), math.prod(shape)


@st.composite
def tables(draw, n_records, max_actions=5):
    """Utility tables with ties, constant rows, a common shift, and units from 1e-12 to 1e6."""
    n_actions = draw(st.integers(2, max_actions))
    return random_table(np.random.default_rng(draw(st.integers(0, 2**32 - 1))), n_records, n_actions)


def random_table(rng, n_records, n_actions):
    """Such a table."""
    table = rng.normal(size=(n_records, n_actions))
    if rng.random() < 0.5:
        table = np.round(table)
    if rng.random() < 0.5:
        table[rng.random(n_records) < 0.4] = 1.0
    if rng.random() < 0.5:
        table = np.sort(table, axis=0)
    return table * rng.choice([1.0, 1e6, 1e-12]) + rng.choice([0.0, -1e6])


def problems(max_actions=5):
    """A problem of the bank without a mask, with a table that is not large."""
    return st.sampled_from([case for case in few_entries(max_actions) if case.admissible is None])


def masked_problems(max_actions=5):
    """One with a mask that forbids something."""
    cases = [case for case in few_entries(max_actions) if case.admissible is not None and not case.admissible.all()]
    return st.sampled_from(cases)


def few_entries(max_actions):
    """Problems of the bank with at most so many actions, and utilities that are few enough for plain loops."""
    problems = [case.problem for case in bank()]
    return [problem for problem in problems if problem.n_actions <= max_actions and problem.utilities.size <= 250]


def with_mask(plain, mask):
    """A problem with another mask; whatever stands at what is forbidden is kept from none of its arrays."""
    return DecisionProblem(
        plain.utilities,
        plain.prior,
        plain.adjacency,
        plain.actions,
        outcomes=plain.outcomes,
        lead=plain.lead,
        priors=plain.priors,
        records=plain.records,
        admissible=mask,
    )


# What looks at more than utilities and prior: at an outcome, at other priors.
LOOK_FURTHER = ("optimal-safe", "optimal-robust")


def with_all(table, prior, adjacency, deaths=None):
    """A problem with all that a policy may ask for; by default nobody dies."""
    deaths = np.zeros(np.shape(table)) if deaths is None else deaths
    alike = np.full(len(prior), 1 / len(prior))
    priors = {"as assumed": prior, "all alike": alike}
    return DecisionProblem(table, prior, adjacency, outcomes={"death": deaths}, priors=priors, lead="death")


EPSILONS = (0.1, 1.0, 5.0)


@dataclass(frozen=True)
class BankProblem:
    """A problem, an epsilon, and the optimum there, which is computed when it is first asked for."""

    problem: DecisionProblem
    epsilon: float

    @cached_property
    def optimum(self):
        """The probabilities of `optimal`, (n_records, n_actions)."""
        return make_policy("optimal", epsilon=self.epsilon).probabilities(self.problem)

    @property
    def is_small(self):
        """Whether a linear programme with a row for each pair of neighbours is solved at once."""
        return self.problem.utilities.size <= 100


@cache
def bank():
    """200 problems of 5 to 200 records and 2 to 8 actions: any-record, sensitive, one-feature and with a mask in turn.

    Their utilities are those of `tables`; all have deaths and other priors, and some records have probability 0.
    """
    return tuple(_bank_problem(seed) for seed in range(200))


def _bank_problem(seed):
    rng = np.random.default_rng([17, seed])
    kind = ("any-record", "sensitive", "one-feature", "masked")[seed % 4]
    # Many are small; under one-feature all are, as their optimum is the whole programme.
    n_hidden, n_actions = round(math.exp(rng.uniform(math.log(5), math.log(200)))), int(rng.integers(2, 9))
    n_classes = int(rng.integers(3, 5))
    if kind == "any-record":
        adjacency, shape = AnyRecord(), (n_hidden,)
    elif kind == "one-feature":
        shape, n_actions = ((5,), (2, 3), (2, 2, 2), (3, 4))[int(rng.integers(4))], min(n_actions, 4)
        adjacency = OneFeature(shape)
    else:
        # The first feature is public; one or two are hidden.
        shape = (n_classes, max(2, n_hidden // 4)) if seed % 8 < 4 else (n_classes, 2, max(2, n_hidden // 8))
        adjacency = Sensitive(shape, tuple(range(1, len(shape))))
        n_actions = min(n_actions, 5) if kind == "masked" else n_actions
    n_records = math.prod(shape)
    table = random_table(rng, n_records, n_actions)
    prior = rng.random(n_records) * (rng.random(n_records) < 0.8)
    prior[0] += 0.1
    plain = with_all(table, prior / prior.sum(), adjacency, rng.integers(0, 4, size=table.shape) / 64)
    if kind == "masked":
        allowed = rng.random((n_classes, n_actions)) < 0.6
        allowed[np.arange(n_classes), rng.integers(n_actions, size=n_classes)] = True
        plain = with_mask(plain, np.repeat(allowed, n_records // n_classes, axis=0))
    return BankProblem(plain, EPSILONS[seed % len(EPSILONS)])
