"""DecisionProblem: everything that a private draw depends on, as arrays; names and groups of its records.

Results that are computed once for each problem and forgotten with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, partial, wraps
from hashlib import sha256
from threading import RLock
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, runtime_checkable
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from policies.adjacency import Adjacency, require_adjacency
from policies.arrays import BoolArray, Changed, FloatArray, Frozen, IntArray, conditional, probability_vector, read_only
from policies.html_table import html_table
from policies.mask import admissible_mask, filled_table, require_public, same_masks
from policies.outcomes import Outcomes
from policies.records import (
    RECORD,
    NumberedRecords,
    Records,
    SomeRecords,
    checked_numbers,
    encode,
    has_features,
    record_numbers,
    records_of,
)
from policies.sensitivity import Sensitivity, sensitivity, with_range


@dataclass(frozen=True, eq=False)
class CheckedPriors(Frozen, Mapping[str, FloatArray]):
    """Priors of the records, each checked when it is asked for, and not before."""

    unchecked: Mapping[str, ArrayLike]
    n_records: int

    def __getitem__(self, name: str) -> FloatArray:
        """The prior, (n_records,); KeyError for an unknown name, ValueError for what is no distribution."""
        return probability_vector(self.unchecked[name], f"priors[{name!r}]", self.n_records)

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self.unchecked)

    def __len__(self) -> int:
        """How many there are."""
        return len(self.unchecked)


@runtime_checkable
class Chooser(Protocol):
    """What makes p(a|x) of a problem: any `policies.policy.Policy`."""

    def probabilities(self, problem: DecisionProblem, /) -> FloatArray:
        """p(a|x), (n_records, n_actions)."""


def _in_order(table: Any, like: Any, name: str) -> Any:
    """A DataFrame or Series in the order of another one, as an array; anything else as it is."""
    if not hasattr(table, "reindex"):
        return table
    for axis in ("index", "columns") if like is not None else ():
        mine, wanted = getattr(table, axis, None), getattr(like, axis)
        if mine is not None and not (len(mine) == len(wanted) and set(mine) == set(wanted)):
            raise ValueError(f"{name} must have the {axis} of utilities, {list(wanted)[:6]}, got {list(mine)[:6]}.")
        table = table if mine is None else table.reindex(**{axis: wanted})
    return table.to_numpy()


# Records, times partitions into neighbours, of which the sensitivity is there in less than a second.
SOON_COMPUTED = 4_000_000
# So many actions are named in a line.
SHOWN = 8


@dataclass(frozen=True, eq=False, init=False)
class DecisionProblem(Frozen):
    """Choose an action for each record, privately.

    Parameters
    ----------
    utilities : array or DataFrame, (n_records, n_actions)
        u(x, a): the expected utility of giving record x action a. The columns of a DataFrame name the actions, its
        index the records, and named levels of the index are features to group by. What is given beside it as a
        DataFrame or Series is put in the same order.
    prior : array, (n_records,)
        The probability of each record; sums to 1 within 1e-6, as float32 does, and is divided by its sum. Records of
        probability 0 stay in the domain that is protected.
    adjacency : Adjacency
        Which two records must be hard to tell apart.
    actions : sequence of str, optional
        Names of the actions; a0, a1, ... by default. The first is "no treatment".
    records : Records, optional
        Words and groups for records; numbers by default.
    outcomes : mapping of str to array (n_records, n_actions), optional
        Further expected quantities to report, such as deaths per patient.
    lead : str, optional
        The outcome that leads: it is reported first, and `optimal-safe` keeps it. None, the default, for none.
    priors : mapping of str to array (n_records,), optional
        Other priors that patients may come from, for `optimal-robust`. Of a mapping that is no dict they are asked
        for, and checked, only when they are needed.
    admissible : array of bool, (n_records, n_actions), optional
        Which actions each record allows; all by default, and then the attribute is None. No policy takes another one.
        Neighbours must allow the same. Anything may stand in the tables at pairs that are not allowed: the attributes
        `utilities` and `outcomes` hold there what the record's worst allowed action has (`policies.mask`). So
        `dataclasses.replace` with a mask that allows more must be given these tables, too.

    Attributes
    ----------
    n_records, n_actions : int
        How many records the domain has, and how many actions, k, there are.

    Raises
    ------
    ValueError
        For arrays that are not finite, do not fit together, a prior that is not a distribution, utilities that differ
        by less than 1e-290 or more than 1e290, a lead that is no outcome, or neighbours that do not allow the same
        actions.
    """

    utilities: FloatArray
    prior: FloatArray
    adjacency: Adjacency
    actions: Sequence[str] = ()
    records: Records = field(default_factory=NumberedRecords)
    outcomes: Outcomes = field(default_factory=lambda: Outcomes({}))
    priors: Mapping[str, FloatArray] = field(default_factory=dict)
    admissible: BoolArray | None = None
    lead: str | None = None
    n_records: int = field(init=False)
    n_actions: int = field(init=False)

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
        admissible: ArrayLike | None = None,
        lead: str | None = None,
    ) -> None:
        """Check the arrays and keep read-only, column-major views of them."""
        # A DataFrame of pandas, which is not imported.
        if hasattr(utilities, "columns") and hasattr(utilities, "index"):
            actions = [str(name) for name in utilities.columns] if actions is None else actions
            records = records_of(utilities.index) if records is None else records
            prior, admissible = _in_order(prior, utilities, "prior"), _in_order(admissible, utilities, "admissible")
            outcomes = {name: _in_order(table, utilities, name) for name, table in (outcomes or {}).items()}
        mask = admissible_mask(admissible, np.shape(utilities))
        table = with_range(filled_table(utilities, mask, "utilities"))
        n_records, n_actions = table.shape
        names = tuple(f"a{i}" for i in range(n_actions)) if actions is None else tuple(map(str, actions))
        if len(names) != n_actions or len(set(names)) != n_actions:
            raise ValueError(f"actions must be {n_actions} distinct names, got actions={names!r}.")
        require_adjacency(adjacency).partitions(n_records)
        described = NumberedRecords() if records is None else records
        if mask is not None:
            require_public(mask, adjacency, names, described.describe)
        given = outcomes if isinstance(outcomes, Outcomes) else {n: np.asarray(t) for n, t in (outcomes or {}).items()}
        expected = (given if isinstance(given, Outcomes) else Outcomes(given)).checked(mask, table.shape)
        if lead is not None and lead not in expected:
            raise ValueError(f"lead must be an outcome, got lead={lead!r}; known: {', '.join(expected) or 'none'}.")
        distribution = probability_vector(prior, "prior", n_records)
        unchecked = priors.unchecked if isinstance(priors, CheckedPriors) else {} if priors is None else priors
        lazy = CheckedPriors(unchecked, n_records)
        vars(self).update(
            utilities=table,
            prior=distribution,
            adjacency=adjacency,
            actions=names,
            records=described,
            outcomes=expected,
            priors=dict(lazy) if isinstance(unchecked, dict) else lazy,
            admissible=mask,
            lead=lead,
            n_records=n_records,
            n_actions=n_actions,
        )

    def with_adjacency(self, adjacency: Adjacency) -> DecisionProblem:
        """The same problem with other neighbours; the arrays are shared.

        ValueError if the sizes do not fit, or neighbours do not allow the same actions.
        """
        adjacency.partitions(self.n_records)
        if self.admissible is not None:
            require_public(self.admissible, adjacency, tuple(self.actions), self.records.describe)
        return self._with(adjacency=adjacency)

    def with_prior(self, prior: ArrayLike) -> DecisionProblem:
        """The same problem for other patients; the tables are shared. ValueError if it is no distribution."""
        return self._with(prior=probability_vector(prior, "prior", self.n_records))

    def with_utilities(self, utilities: ArrayLike) -> DecisionProblem:
        """The same records with other utilities, (n_records, n_actions); ValueError if they do not fit."""
        table = with_range(filled_table(utilities, self.admissible, "utilities"))
        if table.shape != self.utilities.shape:
            raise ValueError(f"utilities must have shape {self.utilities.shape}, got {table.shape}.")
        return self._with(utilities=table)

    def _with(self, **changed: object) -> DecisionProblem:
        other = copy(self)
        vars(other).update(changed)
        return other

    @cached_property
    def digest(self) -> str:
        """The SHA-256 by which a proof names its problem, in hexadecimal; names of records and `priors` do not count.

        First `json.dumps(head, sort_keys=True)` and a line feed, in ASCII, where head has `actions` and `outcomes`
        (lists of names), `n_records`, `admissible` (whether there is a mask) and `partitions` (`Partition.document` of
        each). Then the bytes of the utilities, the prior, the outcomes and, if there is one, the mask: tables action
        by action, as float64 and the mask as uint8, little endian.
        """
        head = {
            "actions": list(self.actions),
            "outcomes": list(self.outcomes),
            "n_records": self.n_records,
            "admissible": self.admissible is not None,
            "partitions": [part.document() for part in self.adjacency.partitions(self.n_records)],
        }
        found = sha256(json.dumps(head, sort_keys=True).encode() + b"\n")
        for table in (self.utilities, self.prior, *self.outcomes.values()):
            found.update(np.ascontiguousarray(table.T, dtype="<f8").data)
        if self.admissible is not None:
            found.update(np.ascontiguousarray(self.admissible.T, dtype=np.uint8).data)
        return found.hexdigest()

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """The exact sensitivity of the utilities, computed once."""
        return sensitivity(self.utilities, self.adjacency, self.admissible)

    @cached_property
    def classes(self) -> tuple[MaskClass, ...]:
        """The records by which actions they allow, and the decision among these; empty where all allow all."""
        if self.admissible is None:
            return ()
        return tuple(MaskClass.of(self, *found) for found in same_masks(self.admissible, self.adjacency))

    @cached_property
    def best_actions(self) -> IntArray:
        """The first allowed action of highest utility for each record, (n_records,)."""
        if self.classes:
            return self._by_class(lambda part: 0 if part.problem is None else part.problem.best_actions)
        # Column by column: numpy's argmax takes five times as long on column-major tables.
        best, highest = np.zeros(self.n_records, dtype=np.intp), self.utilities[:, 0].copy()
        for action, column in enumerate(self.utilities.T[1:], start=1):
            best[column > highest] = action
            np.maximum(highest, column, out=highest)
        return read_only(best)

    @cached_property
    def fixed_values(self) -> FloatArray:
        """The value of giving everyone the same action, (n_actions,): `for_all` of the utilities."""
        return read_only(self.for_all(self.utilities))

    def for_all(self, table: FloatArray) -> FloatArray:
        """The expectation of a table, (n_records, n_actions), if everyone gets the same action, (n_actions,).

        Records that do not allow it get the best action for all records that allow the same.
        """
        if self.admissible is None:
            return np.asarray(self.prior @ table)
        instead = self.of_best_fixed(table)
        columns = zip(table.T, self.admissible.T, strict=True)
        return np.array([self.prior @ np.where(allows, column, instead) for column, allows in columns])

    @property
    def best_fixed_action(self) -> int:
        """The action that is best if everyone must get the same, as far as they allow it."""
        return int(self.fixed_values.argmax())

    @cached_property
    def best_fixed_actions(self) -> IntArray:
        """The action that is best for all records that allow the same, (n_records,): one where all allow all."""
        if self.classes:
            return self._by_class(lambda part: 0 if part.problem is None else part.problem.best_fixed_action)
        return read_only(np.full(self.n_records, self.best_fixed_action))

    @property
    def best_fixed_value(self) -> float:
        """The value of `best_fixed_actions`."""
        if self.admissible is None:
            return float(self.fixed_values.max())
        return float(self.prior @ self.of_best_fixed(self.utilities))

    def of_best_fixed(self, table: FloatArray) -> FloatArray:
        """What stands in a table, (n_records, n_actions), at `best_fixed_actions`, (n_records,)."""
        if self.admissible is None:
            return table[:, self.best_fixed_action]
        return np.take_along_axis(table, self.best_fixed_actions[:, None], axis=1)[:, 0]

    def _by_class(self, choose: Callable[[MaskClass], IntArray | int]) -> IntArray:
        """Actions by their numbers in each class, as actions of the records, (n_records,)."""
        chosen = np.empty(self.n_records, dtype=np.intp)
        for part in self.classes:
            chosen[part.rows] = part.columns[choose(part)]
        return read_only(chosen)

    def value(self, policy: ArrayLike | Chooser) -> float:
        """V = sum over records and actions of prior(x) p(a|x) u(x, a).

        Parameters
        ----------
        policy : array, (n_records, n_actions), Policy or FittedPolicy
            p(a|x), what makes it of this problem, as from `make_policy`, or what has it.

        Raises
        ------
        ValueError
            For a table of another shape, or the name of a policy.
        """
        if isinstance(policy, str):
            raise ValueError(f"policy must be a table or a Policy, got {policy!r}; make_policy({policy!r}) makes one.")
        given: Any = policy.probabilities if isinstance(policy, Chooser) else _in_order(policy, None, "policy")
        made = given(self) if callable(given) else given
        probabilities: FloatArray = np.asarray(made, dtype=np.float64)
        if probabilities.shape != self.utilities.shape:
            raise ValueError(f"policy must have shape {self.utilities.shape}, got {probabilities.shape}.")
        # Not np.dot: its threads only get in the way of those that evaluate several policies at a time.
        columns = zip(self.utilities.T, probabilities.T, strict=True)
        return sum(float(np.einsum("n,n->", self.prior * utility, chosen)) for utility, chosen in columns)

    def expectation(self, outcome: str, probabilities: FloatArray) -> float:
        """One outcome per patient under p(a|x), (n_records, n_actions); KeyError for an unknown outcome."""
        columns = zip(self.outcomes[outcome].T, probabilities.T, strict=True)
        return sum(float(np.dot(self.prior, column * chosen)) for column, chosen in columns)

    def expectations(self, probabilities: FloatArray) -> dict[str, float]:
        """Every outcome per patient under p(a|x), (n_records, n_actions), in the order of `outcomes`."""
        means = self.outcomes.repeated_means(self.prior[:, None] * probabilities)
        return {name: means[name] if name in means else self.expectation(name, probabilities) for name in self.outcomes}

    def encode(self, frame: Any) -> IntArray:
        """The record number of each row of a DataFrame, (m,): its levels are looked up, numbers are cut into bins.

        Parameters
        ----------
        frame : DataFrame, m rows
            A column for each feature of the records, by name; other columns are ignored. What is the same level:
            `policies.levels`. Of records without features, or without names of them, a column `record` of numbers.

        Raises
        ------
        ValueError
            For columns that are missing; or a line for each of the first 20 cells without a value, or whose value is no
            level of its feature, and for rows that are no record of the problem.

        Examples
        --------
        >>> import pandas as pd
        >>> from policies import AnyRecord
        >>> index = pd.Index(["young", "old"], name="age")
        >>> problem = DecisionProblem(pd.DataFrame({"wait": [1.0, 0.0], "treat": 0.5}, index), [0.5, 0.5], AnyRecord())
        >>> problem.encode(pd.DataFrame({"age": ["old", "old", "young"]})).tolist()
        [1, 1, 0]
        >>> problem.decode([1, 0])["age"].tolist()
        ['old', 'young']
        """
        return encode(self.records, frame) if has_features(self.records) else record_numbers(frame, self.n_records)

    def decode(self, indices: ArrayLike) -> Any:
        """A DataFrame with a row for each record number, (m,): what `encode` reads; a bin is there by its name.

        ValueError for what is no record number.
        """
        numbers = checked_numbers(indices, self.n_records)
        if has_features(self.records):
            return self.records.decode(numbers)
        import pandas as pd  # noqa: PLC0415 - half a second that most uses of this package do not need

        return pd.DataFrame({RECORD: numbers})

    def __repr__(self) -> str:
        """Size, names and neighbours."""
        names = ", ".join(self.actions[:SHOWN]) + (", ..." if self.n_actions > SHOWN else "")
        outcomes = f", outcomes {', '.join(self.outcomes)}" if self.outcomes else ""
        return f"DecisionProblem({self.n_records:,} records, {self.adjacency.name}, actions {names}{outcomes})"

    def _repr_html_(self) -> str:
        """What a notebook shows: size, stakes, and what each action is worth if everyone gets it."""
        best = float(self.prior @ self.utilities.max(axis=1))
        size = self.n_records * len(self.adjacency.partitions(self.n_records))
        known = "sensitivity" in self.__dict__ or size <= SOON_COMPUTED
        facts: list[tuple[str, object]] = [
            ("records", self.n_records),
            *([("records by what they allow", len(self.classes))] if self.classes else []),
            ("adjacency", self.adjacency.name),
            ("value of the best action for each", best),
            ("value of the best action for all", self.best_fixed_value),
            ("sensitivity Δ", self.sensitivity.value if known else "not computed"),
            ("range Γ", self.sensitivity.range if known else "not computed"),
        ]
        shares = np.bincount(self.best_actions, weights=self.prior, minlength=self.n_actions)
        means = {name: self.for_all(table) for name, table in self.outcomes.items()}
        header = (
            "action",
            "value if given to all",
            "share for whom it is best",
            *(f"{name}, to all" for name in means),
        )
        columns = (self.fixed_values, shares, *means.values())
        rows = [(action, *(column[place] for column in columns)) for place, action in enumerate(self.actions)]
        return html_table("decision problem", facts) + html_table("actions", rows, header)


@dataclass(frozen=True)
class MaskClass(Frozen):
    """The records that allow the same actions, and the decision among these.

    Attributes
    ----------
    rows, columns : array of int
        The records, and the actions that they allow.
    problem : DecisionProblem or None
        (len(rows), len(columns)), its prior that of the class (uniform in a class that never comes); None where only
        one action is allowed.
    """

    rows: IntArray
    columns: IntArray
    problem: DecisionProblem | None

    @classmethod
    def of(cls, whole: DecisionProblem, rows: IntArray, columns: IntArray, adjacency: Adjacency) -> MaskClass:
        """Of a problem; the adjacency is that of these rows."""
        rows, columns = read_only(rows), read_only(columns)
        if len(columns) == 1:
            return cls(rows, columns, None)
        part = DecisionProblem(
            whole.utilities[np.ix_(rows, columns)],
            conditional(whole.prior, rows),
            adjacency,
            [whole.actions[action] for action in columns],
            records=SomeRecords(whole.records, rows),
            outcomes=whole.outcomes.of_records(rows, columns),
            priors=Changed(whole.priors, partial(conditional, rows=rows)),
            lead=whole.lead,
        )
        return cls(rows, columns, part)


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@dataclass(frozen=True)
class _Once(Generic[Result]):
    """What is computed once: a list of one, once it is."""

    lock: RLock = field(default_factory=RLock, init=False)
    results: list[Result] = field(default_factory=list, init=False)


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
