"""FittedPolicy: the probabilities of a policy on one problem, computed once, and treatments drawn by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from policies.adjacency import AnyRecord, OneFeature, Sensitive
from policies.arrays import FloatArray, Frozen, IntArray, probability_table
from policies.html_table import html_table
from policies.problem import DecisionProblem
from policies.records import checked_numbers, has_features, observed_records
from policies.sampler import draw_actions
from policies.sensitivity import largest_of_choices


class Tabled(Protocol):
    """What a fitted policy is made of: a `policies.policy.Policy`."""

    @property
    def name(self) -> str:
        """In the catalogue, studies and tables."""

    @property
    def epsilon(self) -> float:
        """The privacy parameter."""

    def tables(self, problem: DecisionProblem, /) -> tuple[FloatArray, FloatArray]:
        """log p(a|x) and p(a|x), (n_records, n_actions)."""


# What is hidden from an observer, by adjacency; "{}" stands for the names of the hidden features.
HIDDEN = {
    AnyRecord.name: "each patient's whole record",
    OneFeature.name: "each single feature of a patient's record",
    Sensitive.name: "{} of each patient's record",
}
OBSERVER = "anyone who sees the treatment that is drawn for the patient"
NOT_COVERED = "the patients whose data utilities and prior were made from: what the model was fitted to"


@dataclass(frozen=True, eq=False, repr=False)
class FittedPolicy(Frozen):
    """A policy on one problem, as `Policy.fit` makes it: probabilities, what they reveal, and draws from them.

    Draws are pseudo-random, from a generator that the caller gives: for simulation, and for an environment. A treatment
    for a real patient is drawn from whole numbers by `policysim decide`.

    Attributes
    ----------
    problem : DecisionProblem
        Records, actions, utilities, prior and neighbours.
    policy : Policy
        The mechanism, with its epsilon.
    probabilities : array, (n_records, n_actions)
        p(a|x), read-only, column-major; 0 at actions that a record does not allow.
    epsilon_spent : float
        The exact privacy loss of one draw under the problem's adjacency (`policies.privacy_loss`); inf where a
        treatment rules a record out. It protects the treated patient from an observer who sees the treatment. It
        does not cover the patients to whom utilities and prior were fitted.

    Raises
    ------
    NotApplicableError
        A ValueError, for a policy that cannot be used on the problem.
    ValueError
        For a policy of somebody else that gives no probabilities.

    Examples
    --------
    >>> import pandas as pd
    >>> from policies import AnyRecord, make_policy
    >>> index = pd.Index(["young", "old"], name="age")
    >>> utilities = pd.DataFrame({"wait": [1.0, 0.0], "treat": [0.0, 1.0]}, index)
    >>> problem = DecisionProblem(utilities, [0.5, 0.5], AnyRecord())
    >>> fitted = make_policy("exponential", epsilon=1).fit(problem)
    >>> fitted.predict_proba(pd.DataFrame({"age": ["old", "young"]})).round(3).tolist()
    [[0.378, 0.622], [0.622, 0.378]]
    >>> fitted.sample(pd.DataFrame({"age": ["old", "young"]}), np.random.default_rng(0)).tolist()
    ['treat', 'wait']
    >>> fitted.act([1], np.random.default_rng(0)), round(fitted.epsilon_spent, 3), round(fitted.value, 3)
    (1, 0.5, 0.622)
    """

    problem: DecisionProblem
    policy: Tabled
    probabilities: FloatArray = field(init=False)
    epsilon_spent: float = field(init=False)

    def __post_init__(self) -> None:
        """Compute the table, and what it reveals."""
        logs, table = self.policy.tables(self.problem)
        probabilities = probability_table(table, "probabilities")
        actions = [(action,) for action in range(self.problem.n_actions)]
        spent, _ = largest_of_choices(logs, actions, self.problem.adjacency)
        vars(self).update(probabilities=probabilities, epsilon_spent=spent)

    @cached_property
    def value(self) -> float:
        """V: the expected utility per patient, under the prior."""
        return self.problem.value(self.probabilities)

    @cached_property
    def expected(self) -> Mapping[str, float]:
        """What is expected of each of the problem's outcomes per patient, under the prior; computed when asked for."""
        return MappingProxyType(self.problem.expectations(self.probabilities))

    def predict_proba(self, patients: Any) -> FloatArray:
        """p(a|x) of each patient, (m, n_actions).

        Parameters
        ----------
        patients : DataFrame, or array of int, (m, n_features)
            A DataFrame with a column for each feature (`DecisionProblem.encode`); or observations, the position of the
            level of each feature, as an environment gives them. A further column is that of the day, and is ignored:
            the policy is one of a single decision. Of records without features, record numbers, (m,).

        Raises
        ------
        ValueError
            For another shape or type, and a line for each of the first 20 rows or cells that are no record.
        """
        return self.probabilities[self._records(patients)]

    def sample(self, patients: Any, rng: np.random.Generator) -> NDArray[np.str_]:
        """Draw the name of a treatment for each patient, (m,); patients and errors as in `predict_proba`."""
        return np.asarray(self.problem.actions)[draw_actions(self.predict_proba(patients), rng)]

    def act(self, observation: ArrayLike, rng: np.random.Generator) -> int | IntArray:
        """Draw what `env.step` takes: an int for one observation, (n_features,), or (m,) for a batch, (m, n_features).

        A batch takes one uniform number of `rng` for each row, so that it draws what its rows draw one by one.
        Observations and errors as in `predict_proba`; of records without features one observation is a record number.
        """
        observed = np.asarray(observation)
        single = observed.ndim == (0 if self._n_levels is None else 1)
        rows = self._records(observed[np.newaxis] if single else observed)
        actions = draw_actions(self.probabilities[rows], rng)
        return int(actions[0]) if single else actions

    @cached_property
    def _n_levels(self) -> IntArray | None:
        """The number of levels of each feature; None of records without features."""
        records = self.problem.records
        if not has_features(records):
            return None
        return np.array([len(feature.levels) for feature in records.features])

    def _records(self, patients: Any) -> IntArray:
        """The record number of each patient, (m,)."""
        if hasattr(patients, "columns"):
            return self.problem.encode(patients)
        if self._n_levels is None:
            return checked_numbers(patients, self.problem.n_records)
        records: Any = self.problem.records
        return observed_records(records, patients, self._n_levels)

    @property
    def _protection(self) -> dict[str, str]:
        """Who is protected from whom, and who is not, in words."""
        adjacency, names = self.problem.adjacency, self.problem.records.names
        features = "the hidden features"
        if isinstance(adjacency, Sensitive) and len(names) == len(adjacency.shape):
            features = ", ".join(names[axis] for axis in adjacency.axes)
        hidden = HIDDEN.get(adjacency.name, "the difference between neighbours").format(features)
        return {
            "hidden": f"{hidden} (adjacency {adjacency.name})",
            "from": OBSERVER,
            "not protected": NOT_COVERED,
        }

    def __repr__(self) -> str:
        """The policy, what it spends, and who is protected from whom."""
        size = f"{self.problem.n_records:,} records, {self.problem.n_actions} actions"
        head = f"FittedPolicy({self.policy.name}, {size}, epsilon spent {self.epsilon_spent:.6g})"
        return "\n  ".join([head, *(f"{name}: {words}" for name, words in self._protection.items())])

    def _repr_html_(self) -> str:
        """What a notebook shows: the policy, what it spends, its value, and who is protected from whom."""
        rows: list[tuple[str, object]] = [
            ("policy", self.policy.name),
            ("ε asked for", self.policy.epsilon),
            ("ε spent by one treatment", self.epsilon_spent),
            *self._protection.items(),
            ("value", self.value),
            ("value of the best action for each", float(self.problem.prior @ self.problem.utilities.max(axis=1))),
            ("value of the best action for all", self.problem.best_fixed_value),
        ]
        return html_table("fitted policy", rows)


def require_fitted(fitted: object, asks: str) -> FittedPolicy:
    """The fitted policy that a function, `asks`, looks at; ValueError for something else, or a single record."""
    if not isinstance(fitted, FittedPolicy):
        raise ValueError(f"{asks} takes a fitted policy, make_policy(...).fit(problem), got {type(fitted).__name__}.")
    if fitted.problem.n_records < 2:
        raise ValueError(f"{asks} needs a problem with at least two records, got 1: there is nobody to hide among.")
    return fitted
