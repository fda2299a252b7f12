"""DecisionProblem: everything that a private choice depends on, as arrays.

Results that are computed once for each problem and forgotten with it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, wraps
from threading import RLock
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from policies.adjacency import Adjacency, require_adjacency
from policies.arrays import FloatArray, IntArray, finite_table, probability_vector, read_only
from policies.html_table import html_table
from policies.sensitivity import Sensitivity, sensitivity

# Records, times partitions into neighbours, of which the sensitivity is there in less than a second.
SOON_COMPUTED = 4_000_000


class Records(Protocol):
    """What a problem knows about its records beyond their number: names for people, groups for tables."""

    @property
    def names(self) -> tuple[str, ...]:
        """The features by which records can be grouped."""

    def describe(self, record: int) -> str:
        """One record in words."""

    def groups(self, feature: str) -> tuple[IntArray, tuple[str, ...]]:
        """The level of each record, (n_records,), and the labels of the levels; ValueError for an unknown feature."""


@dataclass(frozen=True)
class NumberedRecords:
    """Records without features: known by their row alone."""

    names: tuple[str, ...] = ()

    def describe(self, record: int) -> str:
        """Name the row."""
        return f"record {record}"

    def groups(self, feature: str) -> tuple[IntArray, tuple[str, ...]]:
        """There are none."""
        raise ValueError(f"unknown group {feature!r}: the problem has no features.")


class Changed(Mapping[str, FloatArray]):
    """A mapping whose arrays are changed whenever they are asked for, and not before.

    Parameters
    ----------
    arrays : mapping of str to array
    change : callable
        From a name and its array to another array.
    """

    def __init__(self, arrays: Mapping[str, Any], change: Callable[[str, Any], FloatArray]) -> None:
        self._arrays, self._change = arrays, change

    def __getitem__(self, name: str) -> FloatArray:
        """The changed array; KeyError for an unknown name."""
        return self._change(name, self._arrays[name])

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self._arrays)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._arrays)


def _checked_priors(priors: Mapping[str, Any], n_records: int) -> Mapping[str, FloatArray]:
    checked = Changed(priors, lambda name, prior: probability_vector(prior, f"priors[{name!r}]", n_records))
    return dict(checked) if isinstance(priors, dict) else checked


@dataclass(frozen=True, eq=False, init=False)
class DecisionProblem:
    """Choose an action for each record, privately.

    Parameters
    ----------
    utilities : array, (n_records, n_actions)
        u(x, a): the expected utility of giving record x action a.
    prior : array, (n_records,)
        The probability of each record; sums to 1. Records of probability 0 stay in the domain that is protected.
    adjacency : Adjacency
        Which two records must be hard to tell apart.
    actions : sequence of str, optional
        Names of the actions; a0, a1, ... by default. The first is "no treatment".
    records : Records, optional
        Words and groups for records; numbers by default.
    outcomes : mapping of str to array (n_records, n_actions), optional
        Further expected quantities to report, such as deaths per patient.
    priors : mapping of str to array (n_records,), optional
        Other priors that patients may come from, for `optimal-robust`. Of a mapping that is no dict they are asked
        for, and checked, only when they are needed.

    Raises
    ------
    ValueError
        For arrays that are not finite, do not fit together, or a prior that is not a distribution.
    """

    utilities: FloatArray
    prior: FloatArray
    adjacency: Adjacency
    actions: Sequence[str] = ()
    records: Records = field(default_factory=NumberedRecords)
    outcomes: Mapping[str, FloatArray] = field(default_factory=dict)
    priors: Mapping[str, FloatArray] = field(default_factory=dict)

    def __init__(
        self,
        utilities: ArrayLike,
        prior: ArrayLike,
        adjacency: Adjacency,
        actions: Sequence[str] | None = None,
        *,
        records: Records | None = None,
        outcomes: Mapping[str, ArrayLike] | None = None,
        priors: Mapping[str, ArrayLike] | None = None,
    ) -> None:
        """Check the arrays and keep read-only, column-major views of them."""
        table = finite_table(utilities, "utilities")
        n_records, n_actions = table.shape
        names = tuple(f"a{i}" for i in range(n_actions)) if actions is None else tuple(map(str, actions))
        if len(names) != n_actions or len(set(names)) != n_actions:
            raise ValueError(f"actions must be {n_actions} distinct names, got actions={names!r}.")
        require_adjacency(adjacency).partitions(n_records)
        expected = {name: finite_table(values, name) for name, values in (outcomes or {}).items()}
        for name, values in expected.items():
            if values.shape != table.shape:
                raise ValueError(f"outcomes[{name!r}] must have shape {table.shape}, got {values.shape}.")
        for key, value in {
            "utilities": table,
            "prior": probability_vector(prior, "prior", n_records),
            "adjacency": adjacency,
            "actions": names,
            "records": NumberedRecords() if records is None else records,
            "outcomes": expected,
            "priors": _checked_priors({} if priors is None else priors, n_records),
        }.items():
            object.__setattr__(self, key, value)

    def with_adjacency(self, adjacency: Adjacency) -> DecisionProblem:
        """The same problem with other neighbours; the arrays are shared. ValueError if the sizes do not fit."""
        adjacency.partitions(self.n_records)
        return self._with(adjacency=adjacency)

    def with_prior(self, prior: ArrayLike) -> DecisionProblem:
        """The same problem for other patients; the tables are shared. ValueError if it is no distribution."""
        return self._with(prior=probability_vector(prior, "prior", self.n_records))

    def with_utilities(self, utilities: ArrayLike) -> DecisionProblem:
        """The same records with other utilities, (n_records, n_actions); ValueError if they do not fit."""
        table = finite_table(utilities, "utilities")
        if table.shape != self.utilities.shape:
            raise ValueError(f"utilities must have shape {self.utilities.shape}, got {table.shape}.")
        return self._with(utilities=table)

    def _with(self, **changed: object) -> DecisionProblem:
        other = object.__new__(DecisionProblem)
        for attribute in fields(self):
            object.__setattr__(other, attribute.name, changed.get(attribute.name, getattr(self, attribute.name)))
        return other

    @property
    def n_records(self) -> int:
        """Number of records in the domain."""
        return len(self.utilities)

    @property
    def n_actions(self) -> int:
        """Number of actions, k."""
        return len(self.actions)

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """The exact sensitivity of the utilities, computed once."""
        return sensitivity(self.utilities, self.adjacency)

    @cached_property
    def best_actions(self) -> IntArray:
        """The first action of highest utility for each record, (n_records,)."""
        # Column by column: numpy's argmax takes five times as long on column-major tables.
        best, highest = np.zeros(self.n_records, dtype=np.intp), self.utilities[:, 0].copy()
        for action, column in enumerate(self.utilities.T[1:], start=1):
            best[column > highest] = action
            np.maximum(highest, column, out=highest)
        return best

    @cached_property
    def fixed_values(self) -> FloatArray:
        """The value of giving everyone the same action, (n_actions,)."""
        return read_only(self.prior @ self.utilities)

    @property
    def best_fixed_action(self) -> int:
        """The action that is best if everyone must get the same."""
        return int(self.fixed_values.argmax())

    def value(self, probabilities: FloatArray) -> float:
        """V = sum over records and actions of prior(x) p(a|x) u(x, a)."""
        # Not np.dot: its threads only get in the way of those that evaluate several policies at a time.
        columns = zip(self.utilities.T, probabilities.T, strict=True)
        return sum(float(np.einsum("n,n->", self.prior * utility, chosen)) for utility, chosen in columns)

    def _repr_html_(self) -> str:
        """What a notebook shows: size, stakes, and what each action is worth if everyone gets it."""
        best = float(self.prior @ self.utilities.max(axis=1))
        size = self.n_records * len(self.adjacency.partitions(self.n_records))
        known = "sensitivity" in self.__dict__ or size <= SOON_COMPUTED
        facts: list[tuple[str, object]] = [
            ("records", self.n_records),
            ("adjacency", self.adjacency.name),
            ("value of the best action for each", best),
            ("value of the best action for all", float(self.fixed_values.max())),
            ("sensitivity Δ", self.sensitivity.value if known else "not computed"),
            ("range Γ", self.sensitivity.range if known else "not computed"),
        ]
        shares = np.bincount(self.best_actions, weights=self.prior, minlength=self.n_actions)
        means = {name: self.prior @ table for name, table in self.outcomes.items()}
        header = (
            "action",
            "value if given to all",
            "share for whom it is best",
            *(f"{name}, to all" for name in means),
        )
        columns = (self.fixed_values, shares, *means.values())
        rows = [(action, *(column[place] for column in columns)) for place, action in enumerate(self.actions)]
        return html_table("decision problem", facts) + html_table("actions", rows, header)


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@dataclass(frozen=True)
class _Once(Generic[Result]):
    """What is computed once: a list of one, once it is."""

    lock: RLock = field(default_factory=RLock)
    results: list[Result] = field(default_factory=list)


def once_per_problem(
    compute: Callable[Concatenate[DecisionProblem, Arguments], Result],
) -> Callable[Concatenate[DecisionProblem, Arguments], Result]:
    """Remember what a function of a problem and of hashable positional arguments returned.

    Threads that ask for the same at the same time wait for the first of them, and compute it once.
    """
    known: WeakKeyDictionary[DecisionProblem, dict[Hashable, _Once[Result]]] = WeakKeyDictionary()

    @wraps(compute)
    def remembered(problem: DecisionProblem, /, *args: Arguments.args, **options: Arguments.kwargs) -> Result:
        slot = known.setdefault(problem, {}).setdefault(args, _Once())
        with slot.lock:
            if not slot.results:
                slot.results.append(compute(problem, *args, **options))
            return slot.results[0]

    return remembered
