"""Small random studies of one decision, made in memory, with all that is computed of them and said."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product

import numpy as np
import pandas as pd

import policysim as ps
from envs import record_space
from policies.arrays import FloatArray
from policysim.decision.evidence import Evidence, gather
from policysim.decision.find import find
from policysim.decision.words import screen_of
from policysim.files.data_table import read_table
from policysim.study.cohort_table import Cohort, Draws
from policysim.study.declared import CohortStudy
from policysim.study.labels import Labels, labels_of
from policysim.study.study_problem import build_problem
from policysim.study.sweep import applies
from policysim.utility import Utility

FEATURES = {"age": ("young", "old"), "gene": ("a", "b", "c"), "ill": (0, 1)}
ACTIONS = ("wait", "pill", "drip", "both")
OUTCOMES = ("death", "pain", "nausea")
EPSILONS = (0.0, 0.01, 0.3, 1.0, 3.0, 20.0, math.inf)
VERSIONS = 21


@dataclass(frozen=True)
class Case:
    """A random study, or a bare problem, and what is made of it."""

    seed: int
    study: CohortStudy | None
    problem: ps.DecisionProblem
    epsilon: float
    named: tuple[str, ...]

    @cached_property
    def labels(self) -> Labels:
        return Labels.of(self.problem) if self.study is None else labels_of(self.study, self.problem)

    @cached_property
    def evidence(self) -> Evidence:
        epsilons = tuple(sorted({self.epsilon, *((2.0,) if self.seed % 5 == 0 else ())}))
        policies = [ps.make_policy(name, epsilon=self.epsilon) for name in self.named]
        return gather(
            self.problem,
            self.labels,
            [policy for policy in policies if applies(policy, self.problem)],
            epsilon=self.epsilon,
            epsilons=epsilons,
            named=self.named,
            study=self.study,
        )

    @cached_property
    def found(self):
        """The findings and the screen at each epsilon."""
        seen = "treatment" if self.study is None else self.study.seen
        return {
            epsilon: (findings, screen_of(findings, self.labels, seen=seen))
            for epsilon, findings in find(self.evidence).items()
        }


@cache
def case(seed: int) -> Case:
    """The study of a number: leads or not, ties, nobody dies, equal options, masks, hidden parts, versions or none."""
    rng = np.random.default_rng(seed)
    names = list(FEATURES)[: rng.integers(1, 4)]
    space = record_space({name: FEATURES[name] if name != "ill" else ("no", "yes") for name in names})
    actions = ACTIONS[: rng.integers(2, 5)]
    outcomes = OUTCOMES[: rng.integers(0, 4)]
    hidden = tuple(names) if rng.random() < 0.4 else tuple(names[-1:])
    adjacency = "one-feature" if rng.random() < 0.2 and len(names) > 1 else "any-record"
    adjacency = adjacency if hidden == tuple(names) else "sensitive"
    shape = (space.size, len(actions))
    stated = {name: _rates(rng, shape, name) for name in outcomes}
    weights = {name: float(rng.choice([0.0, 0.2, 1.0, 100.0 if name == "death" else 3.0])) for name in outcomes}
    costs = {
        name: float(cost) for name, cost in zip(actions, rng.choice([0.0, 0.01, 0.1, 1.0], len(actions)), strict=True)
    }
    lead = "death" if outcomes and rng.random() < 0.8 else None
    prior = rng.dirichlet(np.ones(space.size))
    if rng.random() < 0.2:
        prior[rng.integers(space.size)] = 0.0
        prior /= prior.sum()
    allowed = _allowed(rng, space, names, hidden, len(actions)) if adjacency == "sensitive" and len(names) > 1 else None
    rows = np.zeros((1, *shape), dtype=int)
    made = Draws(rows, prior[None], {name: table[None] for name, table in stated.items()})
    versions = _versions(rng, made) if rng.random() < 0.6 else None
    # A frame of a cohort is read for its places only.
    cohort = Cohort(read_table(pd.DataFrame({"row": [0]})), space, actions, made, allowed, versions)
    epsilon = float(rng.choice(EPSILONS))
    named = tuple(
        map(
            str,
            rng.choice(
                ["best-fixed", "randomized-response", "optimal", "greedy", "permute-and-flip"], 2, replace=False
            ),
        )
    )
    named = named if rng.random() < 0.3 else ()
    study = CohortStudy(
        name=f"random-{seed}",
        text="",
        files={},
        title=f"Random study {seed}",
        hidden_from="anyone who sees the treatment",
        seen=str(rng.choice(["treatment", "treatment", "publication"])),
        published_patients=10_000,
        adjacency=adjacency,
        sensitive=hidden if adjacency == "sensitive" else (),
        public=(),
        epsilon=epsilon,
        epsilons=(epsilon,),
        policies=named,
        by=tuple(names) if rng.random() < 0.8 else (),
        robust=None,
        seed=0,
        related={},
        utility=Utility(weights, costs),
        lead=lead,
        cohort=cohort,
        paths=(),
    )
    problem = build_problem(study)
    return Case(seed, study if rng.random() < 0.9 else None, problem, epsilon, named)


def _rates(rng: np.random.Generator, shape: tuple[int, int], name: str) -> FloatArray:
    """What each record has of an outcome by each action: small rates, ties, nothing, or the same for all."""
    table = rng.beta(0.5, 3.0, shape) * (0.01 if name == "death" and rng.random() < 0.5 else 1.0)
    kind = rng.integers(6)
    if kind == 0:
        table = np.round(table, 1)
    elif kind == 1:
        table = np.zeros(shape)
    elif kind == 2:
        table = np.repeat(table[:1], shape[0], axis=0)
    elif kind == 3:
        table = np.repeat(table[:, :1], shape[1], axis=1)
    return table


def _allowed(rng, space, names, hidden, n_actions):
    """What may be given by what is public; None for all."""
    if rng.random() < 0.5:
        return None
    levels = [len(space.features[names.index(name)].levels) for name in names]
    public = [place for place, name in enumerate(names) if name not in hidden]
    masks = {}
    mask = []
    for codes in product(*map(range, levels)):
        key = tuple(codes[place] for place in public)
        if key not in masks:
            masks[key] = rng.random(n_actions) < 0.7
            masks[key][rng.integers(n_actions)] = True
        mask.append(masks[key])
    mask = np.array(mask)
    return None if mask.all() else mask


def _versions(rng: np.random.Generator, stated: Draws) -> Draws:
    """Other versions of a table, some far from it, some the same."""
    spread = float(rng.choice([0.0, 0.1, 1.0]))

    def varied(table: FloatArray) -> FloatArray:
        many = np.repeat(table, VERSIONS, axis=0)
        return np.minimum(many * np.exp(spread * rng.normal(size=many.shape)), 1.0)

    return Draws(
        np.repeat(stated.rows, VERSIONS, axis=0),
        np.repeat(stated.shares, VERSIONS, axis=0),
        {name: varied(table) for name, table in stated.outcomes.items()},
    )
