"""Random problems, for Hypothesis and as a bank that is made once, and brute force over pairs of neighbours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product

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


@st.composite
def masks(draw, n_actions, adjacency, n_records):
    """Which actions each record allows: neighbours allow the same, and everybody allows one."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    allowed = rng.random((n_records, n_actions)) < draw(st.sampled_from([0.4, 0.7]))
    allowed[np.arange(n_records), rng.integers(n_actions, size=n_records)] = True
    firsts = [min(y for x, y in neighbour_pairs(adjacency, n_records) if x == record) for record in range(n_records)]
    if isinstance(adjacency, OneFeature):
        firsts = [0] * n_records  # step by step, everybody is reached from everybody
    return allowed[firsts]


@st.composite
def masked_problems(draw, max_actions=5):
    """A random decision problem with a mask that forbids something, as of `problems`."""
    plain = draw(problems(max_actions))
    mask = draw(masks(plain.n_actions, plain.adjacency, plain.n_records).filter(lambda found: not found.all()))
    return with_mask(plain, mask)


def with_mask(plain, mask):
    """A problem with another mask; whatever stands at what is forbidden is kept from none of its arrays."""
    return DecisionProblem(
        plain.utilities,
        plain.prior,
        plain.adjacency,
        plain.actions,
        outcomes=plain.outcomes,
        priors=plain.priors,
        records=plain.records,
        admissible=mask,
    )


# What looks at more than utilities and prior: at an outcome, at other priors.
LOOK_FURTHER = ("optimal-safe", "optimal-robust")


@st.composite
def problems(draw, max_actions=5):
    """A random decision problem with an outcome and other priors; some records have probability 0."""
    adjacency, n_records = draw(adjacencies())
    table = draw(tables(n_records, max_actions))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    prior = rng.random(n_records) * (rng.random(n_records) < 0.8)
    prior[0] += 0.1
    return with_all(table, prior / prior.sum(), adjacency, rng.integers(0, 4, size=table.shape) / 64)


def with_all(table, prior, adjacency, deaths=None):
    """A problem with all that a policy may ask for; by default nobody dies."""
    deaths = np.zeros(np.shape(table)) if deaths is None else deaths
    alike = np.full(len(prior), 1 / len(prior))
    return DecisionProblem(
        table, prior, adjacency, outcomes={"deaths": deaths}, priors={"as assumed": prior, "all alike": alike}
    )


EPSILONS = (0.1, 1.0, 5.0)
PUBLIC, HIDDEN = 0, 1


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


def bank(count=200):
    """Problems of 5 to 200 records and 2 to 8 actions: any-record, sensitive, one-feature and with a mask in turn.

    Their utilities are those of `tables`; all have deaths and other priors, and some records have probability 0.
    """
    return tuple(_bank_problem(seed) for seed in range(count))


def _bank_problem(seed):
    rng = np.random.default_rng([17, seed])
    kind = ("any-record", "sensitive", "one-feature", "masked")[seed % 4]
    # Many are small; under one-feature all are, as their optimum is the whole programme.
    hidden = round(math.exp(rng.uniform(math.log(5), math.log(200))))
    shape, n_actions = (int(rng.integers(1, 5)), max(2, hidden // 4)), int(rng.integers(2, 9))
    if kind == "any-record":
        adjacency, shape = AnyRecord(), (hidden,)
    elif kind == "one-feature":
        shape, n_actions = ((5,), (2, 3), (2, 2, 2), (3, 4))[int(rng.integers(4))], min(n_actions, 4)
        adjacency = OneFeature(shape)
    else:
        shape = max(shape[PUBLIC], 3), shape[HIDDEN]
        adjacency = Sensitive(shape, (HIDDEN,))
    n_records = math.prod(shape)
    table = random_table(rng, n_records, n_actions)
    prior = rng.random(n_records) * (rng.random(n_records) < 0.8)
    prior[0] += 0.1
    plain = with_all(table, prior / prior.sum(), adjacency, rng.integers(0, 4, size=table.shape) / 64)
    if kind == "masked":
        allowed = rng.random((shape[PUBLIC], n_actions)) < 0.6
        allowed[np.arange(len(allowed)), rng.integers(n_actions, size=len(allowed))] = True
        plain = with_mask(plain, np.repeat(allowed, shape[HIDDEN], axis=0))
    return BankProblem(plain, EPSILONS[seed % len(EPSILONS)])
