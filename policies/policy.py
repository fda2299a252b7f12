"""Policy: a way to choose actions, with what it guarantees and a sampler.

Where records do not allow every action, each set of records that allow the same is a problem of its own. What a policy
computes of a problem, it computes of each of `DecisionProblem.classes`, which know of no mask; `by_mask` puts it
together. Neighbours allow the same actions, so a table that is epsilon-private within each class is so as a whole. The
classes are public, as the prior is.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial, wraps
from typing import Any, ClassVar, TypeAlias

import numpy as np

from policies.adjacency import Adjacency
from policies.arrays import FloatArray, IntArray, non_negative
from policies.html_table import html_table
from policies.literature import Work
from policies.problem import DecisionProblem, MaskClass
from policies.sampler import Sampler

Method: TypeAlias = Callable[..., Any]
# From a class that has a decision to make, and what else the method was given, to what the method says of it.
OfClass: TypeAlias = Callable[..., Any]


def by_mask(method: Method, together: Callable[..., Any]) -> Method:
    """A method of a policy that takes a problem, made to see problems without a mask alone.

    Parameters
    ----------
    method : callable
        From a policy, a problem and further arguments.
    together : callable
        From a problem with a mask, the method for one of its classes, and the further arguments, to the result.
    """

    @wraps(method)
    def of_problem(policy: Any, problem: DecisionProblem, *more: Any, **named: Any) -> Any:
        if problem.admissible is None or policy.across_masks:
            return method(policy, problem, *more, **named)

        def of_class(part: MaskClass, *given: Any) -> Any:
            return method(policy.among(part.columns, problem.n_actions), part.problem, *given)

        return together(problem, of_class, *more, **named)

    return of_problem


def _table(problem: DecisionProblem, of_class: OfClass, only: float, never: float) -> FloatArray:
    """One table, with what stands at the only action that a record allows, and at one that it does not allow."""
    table = np.full((problem.n_records, problem.n_actions), never, order="F")
    for part in problem.classes:
        _put(table, part, only if part.problem is None else of_class(part))
    return table


def tables_by_class(problem: Any, of_class: OfClass) -> tuple[FloatArray, FloatArray]:  # of a MaskedProblem, too
    """log p(a|x) and p(a|x), (n_records, n_actions), column-major, from those of each class with a decision to make."""
    shape = problem.n_records, problem.n_actions
    logs, probabilities = np.full(shape, -np.inf, order="F"), np.zeros(shape, order="F")
    for part in problem.classes:
        found = (0.0, 1.0) if part.problem is None else of_class(part)
        for table, of_part in zip((logs, probabilities), found, strict=True):
            _put(table, part, of_part)
    return logs, probabilities


def _put(table: FloatArray, part: MaskClass, values: FloatArray | float) -> None:
    columns = np.broadcast_to(values, (len(part.rows), len(part.columns))).T
    for action, column in zip(part.columns, columns, strict=True):
        table[part.rows, action] = column


def _check(problem: DecisionProblem, of_class: OfClass) -> None:
    for part in problem.classes:
        if part.problem is not None:
            of_class(part)


def _loss_bound(problem: DecisionProblem, of_class: OfClass) -> float:
    """The mean over the classes; who has no choice loses nothing."""
    shares = [float(problem.prior[part.rows].sum()) for part in problem.classes]
    pairs = zip(shares, problem.classes, strict=True)
    return sum((share * of_class(part) for share, part in pairs if share > 0 and part.problem is not None), 0.0)


def _sample(problem: DecisionProblem, of_class: OfClass, records: IntArray, rng: np.random.Generator) -> IntArray:
    actions, places = np.empty(len(records), dtype=np.intp), np.empty(problem.n_records, dtype=np.intp)
    for part in problem.classes:
        places[:] = -1
        places[part.rows] = np.arange(len(part.rows))
        asked = places[records]
        mine = asked >= 0
        actions[mine] = part.columns[0 if part.problem is None else of_class(part, asked[mine], rng)]
    return actions


# What a policy computes of a problem, by the name of the method, and how that is put together.
BY_MASK: Mapping[str, Callable[..., Any]] = {
    "log_probabilities": partial(_table, only=0.0, never=-np.inf),
    "probabilities": partial(_table, only=1.0, never=0.0),
    "tables": tables_by_class,
    "check": _check,
    "loss_bound": _loss_bound,
    "sample": _sample,
}


# Below exp(-745) a float64 is 0.
LOG_SMALLEST = -745.0
# What a policy may be drawn with: the filled markers of matplotlib, and its dash patterns.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "*", "d", "h", "8")
DASHES = ("solid", "dashed", "dashdot", "dotted")


@dataclass(frozen=True)
class Look:
    """How a policy is drawn, never by colour alone: "#rrggbb", one of `MARKERS`, one of `DASHES`.

    Raises
    ------
    ValueError
        For anything else.
    """

    colour: str
    marker: str
    dashes: str = "solid"

    def __post_init__(self) -> None:
        """Check each part."""
        if not re.fullmatch("#[0-9A-Fa-f]{6}", self.colour):
            raise ValueError(f"colour must be #rrggbb, got {self.colour!r}.")
        if self.marker not in MARKERS:
            raise ValueError(f"marker must be one of {' '.join(MARKERS)}, got {self.marker!r}.")
        if self.dashes not in DASHES:
            raise ValueError(f"dashes must be one of {', '.join(DASHES)}, got {self.dashes!r}.")


class NotApplicableError(ValueError):
    """A policy that cannot be used on a problem; str() says why."""


@dataclass(frozen=True)
class Policy(ABC):
    """A way to choose actions.

    `name`, a docstring and `log_probabilities` make a mechanism. All else has a default, and travels with the class:
    screens, pages, figures and records ask it here and keep no tables of their own. A class inherits no words and no
    look: whoever changes a mechanism makes another one.

    Parameters
    ----------
    epsilon : float
        The privacy parameter, >= 0; inf asks for no privacy. Policies that have none ignore it.

    Attributes
    ----------
    name : str
        In the catalogue, studies and tables: lower-case letters and digits, with hyphens between.
    uses_epsilon, uses_prior : bool
        Whether it depends on epsilon, and on the prior; both True unless a class says otherwise.
    row_wise : bool
        Whether, where all records are neighbours of each other, records with the same utilities and outcomes get the
        same probabilities, and how many such records there are matters only through the sum of their prior: then each
        distinct row is computed once (`policies.distinct`). False unless a class says otherwise itself.
    across_masks : bool
        Whether it looks at `DecisionProblem.admissible` itself. False unless a class says otherwise itself: then it
        decides for each set of records that allow the same actions as a problem of its own.
    gloss : str
        What it is, in a few words; the first line of the docstring by default.
    words : str
        What completes "treatments are chosen by"; its name and gloss by default.
    formula : str
        In one line; "" for none.
    works : tuple of Work
        What to cite for it; none by default.
    label : str
        Its name beside its line in a figure; its name by default.
    look : Look or None
        Its colour and mark. By default, and where one shown beside it has the same, the figures choose
        (`policysim.figures.looks`).
    """

    epsilon: float = np.inf
    name: ClassVar[str]
    uses_epsilon: ClassVar[bool] = True
    uses_prior: ClassVar[bool] = True
    row_wise: ClassVar[bool] = False
    across_masks: ClassVar[bool] = False
    gloss: ClassVar[str] = ""
    words: ClassVar[str] = ""
    formula: ClassVar[str] = ""
    works: ClassVar[tuple[Work, ...]] = ()
    label: ClassVar[str] = ""
    look: ClassVar[Look | None] = None

    def __init_subclass__(cls, **options: Any) -> None:
        """Give a class the defaults of what it does not say about itself; TypeError for what is no text, work or look.

        What it computes of a problem goes through `by_mask` where records do not allow every action.

        The docstring is read before `dataclass` writes one where there is none.
        """
        super().__init_subclass__(**options)
        own = vars(cls)
        name = str(getattr(cls, "name", cls.__name__))
        gloss = own.get("gloss", (own.get("__doc__") or "").strip().partition("\n")[0].rstrip("."))
        defaults = {
            "gloss": gloss,
            "words": f"the mechanism “{name}”" + (f" ({gloss})" if gloss else ""),
            "formula": "",
            "works": (),
            "label": name,
            "look": None,
            "row_wise": False,
            "across_masks": False,
        }
        for attribute, default in defaults.items():
            if attribute not in own:
                setattr(cls, attribute, default)
        for method, together in BY_MASK.items():
            if method in own and not getattr(own[method], "__isabstractmethod__", False):
                setattr(cls, method, by_mask(own[method], together))
        texts = all(isinstance(getattr(cls, attribute), str) for attribute in ("gloss", "words", "formula", "label"))
        listed: object = cls.works  # whatever a class says
        works = isinstance(listed, tuple) and all(isinstance(work, Work) for work in listed)
        if not (texts and works and isinstance(cls.look, Look | None)):
            raise TypeError(
                f"{cls.__name__}: gloss, words, formula and label must be text, works a tuple of Work, look a Look."
            )

    def __post_init__(self) -> None:
        """Check epsilon."""
        object.__setattr__(self, "epsilon", non_negative(self.epsilon, "epsilon"))

    @property
    def guarantee(self) -> float:
        """The privacy loss that this policy claims never to exceed, under the problem's adjacency."""
        return self.epsilon

    def check(self, problem: DecisionProblem) -> None:  # noqa: B027 - most policies apply to every problem
        """NotApplicableError if the policy cannot be used on a problem; cheaper than finding out by using it."""

    @abstractmethod
    def log_probabilities(self, problem: DecisionProblem) -> FloatArray:
        """log p(a|x), (n_records, n_actions), column-major; -inf where an action is never taken."""

    def probabilities(self, problem: DecisionProblem) -> FloatArray:
        """p(a|x), (n_records, n_actions), column-major; rows sum to 1."""
        return self.tables(problem)[1]

    def tables(self, problem: DecisionProblem) -> tuple[FloatArray, FloatArray]:
        """log p(a|x) and p(a|x) together, for those who need both; a policy may know p without exponentiating again."""
        logs = self.log_probabilities(problem)
        return logs, np.exp(logs)

    def among(self, actions: IntArray, n_actions: int) -> Policy:
        """The same policy on these of the actions alone; ValueError for what does not fit n_actions."""
        return self

    def loss_bound(self, problem: DecisionProblem) -> float:
        """An upper bound on the expected utility loss known from theory; NaN where there is none."""
        return np.nan

    def sample(self, problem: DecisionProblem, records: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw one action for each record index, (m,). For simulation, not for release.

        The actions are drawn from the exact table (`policies.sampler`).
        """
        return Sampler(self.probabilities(problem)).draw(records, rng).astype(np.intp)

    def _repr_html_(self) -> str:
        """What a notebook shows: what it is, what it promises, and its other parameters."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        promised = given.pop("epsilon") if self.uses_epsilon else "has none"
        rows: list[tuple[str, object]] = [
            ("what it is", (type(self).__doc__ or "").strip().partition("\n")[0]),
            *([("formula", self.formula)] if self.formula else []),
            *([("from", "; ".join(work.short for work in self.works))] if self.works else []),
            ("epsilon", promised),
            ("privacy loss at most", self.guarantee),
            ("depends on the prior", self.uses_prior),
            *((name, "default" if value is None else value) for name, value in given.items() if name != "epsilon"),
        ]
        return html_table(f"policy {getattr(self, 'name', type(self).__name__)}", rows)


def draw_actions(probabilities: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw one action for each row of p(a|x), (m, k) -> (m,), with one uniform number a row. For simulation only."""
    cumulative = np.cumsum(probabilities, axis=1)
    draws = rng.random(len(probabilities)) * cumulative[:, -1]
    actions: IntArray = (draws[:, None] >= cumulative).sum(axis=1)
    return actions


def two_values(actions: IntArray, n_actions: int, chosen: float, other: float) -> FloatArray:
    """A table, (n_records, n_actions), of one value for each record's own action and another for all others."""
    table = np.empty((len(actions), n_actions), order="F")
    for action, column in enumerate(table.T):
        column[:] = other
        np.copyto(column, chosen, where=actions == action)
    return table


def one_hot_logs(actions: IntArray, n_actions: int) -> FloatArray:
    """The log-probability table of a deterministic choice, (n_records, n_actions)."""
    return two_values(actions, n_actions, 0.0, -np.inf)


def drop_unreachable(logs: FloatArray, adjacency: Adjacency) -> None:
    """Set log p(a|x) to -inf, in place, where a is out of reach for everyone who is hidden among each other.

    Out of reach means a probability that is 0 in float64. Where one partition makes all neighbours, what happens in
    a clique is public up to who in it was asked, so this is a public change of the base measure of that clique.
    Otherwise cliques overlap and an action is dropped for everyone or for no one. Without it, rounding at
    log p = -1e15 would pass for privacy loss.
    """
    partitions = adjacency.partitions(len(logs))
    shape, axes = (partitions[0].shape, partitions[0].axes) if len(partitions) == 1 else ((len(logs),), (0,))
    for column in logs.T:
        grid = column.reshape(shape)
        lost = grid.max(axis=axes, keepdims=True) < LOG_SMALLEST
        if lost.any():
            np.copyto(grid, -np.inf, where=lost)
