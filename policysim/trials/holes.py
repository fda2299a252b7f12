"""Where overlap fails: groups of patients to whom the log seems never to give an action.

Holes are found in raw counts: nobody of a group, or almost nobody, got an action. Propensities have no part in this:
estimated ones follow a hole smoothly, so that weights look harmless where there is nothing to weigh. Where counts show
none, sums of weights may.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import bdtr

from policies.arrays import FloatArray, IntArray
from policysim.logs.log_frame import MOST_LEVELS, LoggedData, counted, is_real
from policysim.trials.estimators import largest_weights

BoolArray = NDArray[np.bool_]

# The chance that a log without a hole is said to have one, at most; half of it for groups of one covariate, half for
# those of two.
ALARM = 0.01
# A group is a hole if its patients got the action with a probability below this; of a seldom action, below this part of
# its share. Groups of two covariates are so many that in a small log this cannot be shown of a tenth of the patients:
# there it is up to twice as much, but no more than it takes for `PLAIN` of the rows.
SMALLEST, SMALLEST_OF_TWO, PART = 0.05, 0.1, 0.4
PLAIN = 0.083
FEW_NUMBERS = 10  # so many different numbers are levels; of more, both ends are looked at
EXCEPTIONS = 3  # patients who got the action all the same, at the end of a column of numbers: fewer than this
DECILES = np.arange(0.1, 0.95, 0.1)
MOST_CONTEXTS = 200  # groups of one covariate within which others are looked at
LOOKED_AT = 10_000  # rows: of more, every so many-th
TOLD = 3  # holes of each action


@dataclass(frozen=True, eq=False)
class Hole:
    """A group that an action is missing in.

    Attributes
    ----------
    action : int
        Its position among the log's names.
    where : str
        The group: "age ≥ 80", "sex = 1 and site = s7".
    given, patients : int
        How many of its patients got the action, and how many there are.
    rows : array of bool
        The group, among the rows that were looked at (of more than 10,000, every so many-th).
    """

    action: int
    where: str
    given: int
    patients: int
    rows: BoolArray

    def told(self, name: str) -> str:
        """The finding in words; `name` is the action's."""
        who = "nobody" if not self.given else "almost nobody"
        return f"{self.where}: {who} got {name} ({self.given:,} of {self.patients:,} patients)"


@dataclass(frozen=True, eq=False)
class _Group:
    """Some rows."""

    where: str
    rows: BoolArray


# A group within a context: an action, how many of the context's patients in the group got it, how many there are.
_Found: TypeAlias = tuple[int, int, int, _Group]


@dataclass(frozen=True, eq=False)
class _Numbers:
    """A covariate of which both ends are looked at; `order` sorts the rows that have a number."""

    name: str
    values: FloatArray
    order: IntArray
    n_groups = 2 * EXCEPTIONS

    def contexts(self) -> Iterator[_Group]:
        """Above and below each decile."""
        for cut in np.unique(np.quantile(self.values[self.order], DECILES)).tolist():
            yield _Group(f"{self.name} ≥ {cut:g}", self.values >= cut)
            yield _Group(f"{self.name} < {cut:g}", self.values < cut)

    def groups(self, actions: IntArray, context: _Group, fewest: FloatArray) -> Iterator[_Found]:
        """The rows of a context beyond all but 0, 1 and 2 of those who got an action, at each end."""
        order = self.order[context.rows[self.order]]
        values, taken = self.values[order], actions[order]
        for action in np.flatnonzero(np.isfinite(fewest)).tolist():
            theirs = values[taken == action]
            for given in range(min(EXCEPTIONS, len(theirs))):
                first = int(np.searchsorted(values, theirs[-1 - given], side="right"))
                # Above a number, those above a larger one are no group of two covariates.
                if len(values) - first >= fewest[action] and not context.where.startswith(f"{self.name} ≥"):
                    end = _Group(f"{self.name} ≥ {values[first]:g}", self.values >= values[first])
                    yield action, given, len(values) - first, end
                last = int(np.searchsorted(values, theirs[given], side="left"))
                if last >= fewest[action] and not context.where.startswith(f"{self.name} <"):
                    end = _Group(f"{self.name} ≤ {values[last - 1]:g}", self.values <= values[last - 1])
                    yield action, given, last, end


@dataclass(frozen=True, eq=False)
class _Levels:
    """A covariate of a few levels; codes of -1 are in none."""

    name: str
    levels: tuple[str, ...]
    codes: IntArray

    @property
    def n_groups(self) -> int:
        """How many groups are looked at."""
        return len(self.levels)

    def contexts(self) -> Iterator[_Group]:
        """Each level."""
        yield from (_Group(f"{self.name} = {level}", self.codes == code) for code, level in enumerate(self.levels))

    def groups(self, actions: IntArray, context: _Group, fewest: FloatArray) -> Iterator[_Found]:
        """Each level of the rows of a context."""
        n_actions = len(fewest)
        rows = context.rows & (self.codes >= 0)
        cells = self.codes[rows] * n_actions + actions[rows]
        counts = np.bincount(cells, minlength=len(self.levels) * n_actions).reshape(-1, n_actions)
        large = counts.sum(axis=1, keepdims=True) >= fewest
        for level, action in np.argwhere(large).tolist():
            group = _Group(f"{self.name} = {self.levels[level]}", self.codes == level)
            yield action, int(counts[level, action]), int(counts[level].sum()), group


def find_holes(log: LoggedData, frame: pd.DataFrame) -> list[Hole]:
    """The holes of a log, the largest of each action first, at most three of each.

    Parameters
    ----------
    log : LoggedData
        Its actions; nothing else is looked at.
    frame : DataFrame, n_rows
        Covariates, as they were before they were cut into levels, if possible. Rows in which one is missing are in none
        of its groups, and columns of many words make none.

    Returns
    -------
    list of Hole
        None of an action that is never logged: that is no matter of groups.

    Notes
    -----
    Looked at are the levels of each covariate and, of more than ten different numbers, both ends: the numbers beyond
    the most extreme one whose patient got the action, but for at most two. Then the same within each level, and above
    and below each decile, of every other covariate; of the same one, so that a gap between two numbers is found.

    A group counts if so few of its patients got the action that this had probability alpha or less, were it given to
    each of them with probability tau or more: P(Binomial(n, tau) <= given) <= alpha. That holds for an end, too: "m or
    more patients are beyond" says that at most 0, 1 or 2 of the last m got it. Alpha is `ALARM` over all groups and
    actions (Bonferroni), so that a log in which everybody gets every action with probability tau or more is doubted at
    most once in 100 times; tau is 0.05, or less of a seldom action, see `SMALLEST`.
    """
    rows, _ = _looked_at(log)
    actions = log.actions[rows]
    columns = [_column(frame.iloc[rows, place], str(name)) for place, name in enumerate(frame.columns)]
    usable = [column for column in columns if column is not None]
    shares = np.bincount(actions, minlength=log.n_actions) / len(actions)
    if not usable or np.count_nonzero(shares) < 2:
        return []
    everyone = _Group("", np.ones(len(actions), dtype=np.bool_))
    contexts = [context for column in usable for context in column.contexts()]
    # The largest: a hole in few patients is none that counts can show.
    contexts = sorted(contexts, key=lambda group: -int(group.rows.sum()))[:MOST_CONTEXTS]
    each = np.count_nonzero(shares) * sum(column.n_groups for column in usable)
    of_one = np.minimum(SMALLEST, PART * shares)
    alpha_of_two = ALARM / 2 / (each * len(contexts))
    needed = -np.log(alpha_of_two) / (PLAIN * len(actions))
    of_two = np.minimum(max(SMALLEST, min(SMALLEST_OF_TWO, needed)), PART * shares)
    singles = list(_missing(usable, actions, everyone, of_one, ALARM / 2 / each))
    pairs = [hole for context in contexts for hole in _missing(usable, actions, context, of_two, alpha_of_two)]
    return [hole for action in range(log.n_actions) for hole in _plainest(action, singles, pairs)]


def where_caveats(log: LoggedData, probabilities: FloatArray, weights: FloatArray, frame: pd.DataFrame) -> list[str]:
    """To which patients the log seems never to give what a policy would, a sentence each.

    For each action the holes into which the policy puts probability, as counts show them; if they show none, what its
    weights say (`support_caveats`): that sees smaller ones, but not where propensities are estimated.

    Parameters
    ----------
    log : LoggedData
    probabilities : array, (n_rows, k)
        p(a|x) of the policy.
    weights : array, (n_rows,)
        Importance weights, before clipping.
    frame : DataFrame, n_rows
        Covariates.
    """
    rows, step = _looked_at(log)
    among = f" among every {step}th row" if step > 1 else ""
    said: dict[int, list[str]] = {}
    for hole in find_holes(log, frame):
        name = log.names[hole.action]
        if probabilities[rows, hole.action] @ hole.rows > 0:
            said.setdefault(hole.action, []).append(
                f"no overlap, {hole.told(name)}{among}. What {name} does to them is not in the log: it is "
                "extrapolated, and no interval covers that."
            )
    for action, sentence in support_caveats(log, probabilities, weights, frame).items():
        said.setdefault(action, [sentence])
    return [sentence for action in sorted(said) for sentence in said[action]]


def _looked_at(log: LoggedData) -> tuple[IntArray, int]:
    """Every so many-th patient, as the rows that stand for them: all of a small log."""
    step = -(-log.n_patients // LOOKED_AT)
    places = np.arange(0, log.n_patients, step)
    return places if log.counts is None else np.searchsorted(np.cumsum(log.counts), places, side="right"), step


def _column(column: pd.Series, name: str) -> _Numbers | _Levels | None:
    """A covariate as groups; None if it makes none."""
    if is_real(column):
        values: FloatArray = column.to_numpy(dtype=np.float64, na_value=np.nan)
        known = np.isfinite(values)
        if len(np.unique(values[known])) > FEW_NUMBERS:
            order = np.argsort(values, kind="stable")
            return _Numbers(name, values, order[known[order]])
    try:
        codes, levels = pd.factorize(column)
    except TypeError:  # of lists, for instance
        return None
    if not 1 < len(levels) <= MOST_LEVELS:
        return None
    return _Levels(name, tuple(map(str, levels)), codes.astype(np.intp))


def _missing(
    columns: list[_Numbers | _Levels], actions: IntArray, context: _Group, smallest: FloatArray, alpha: float
) -> Iterator[Hole]:
    """The groups of a context in which an action is missing; `smallest` by action, 0 of one that is never logged."""
    # Of so many rows it means something that nobody got it.
    fewest = np.divide(np.log(alpha), np.log1p(-smallest), out=np.full(len(smallest), np.inf), where=smallest > 0)
    for column in columns:
        for action, given, patients, group in column.groups(actions, context, fewest):
            if bdtr(given, patients, smallest[action]) <= alpha:
                where = " and ".join(filter(None, (context.where, group.where)))
                yield Hole(action, where, given, patients, context.rows & group.rows)


def _plainest(action: int, singles: list[Hole], pairs: list[Hole]) -> list[Hole]:
    """An action's holes to tell: the largest first, of one covariate before two, each mostly of patients not told of.

    One that really nobody got it in is told before one that is larger by less than a quarter.
    """
    chosen: list[Hole] = []
    told = np.zeros(0, dtype=np.bool_)
    for hole in [*sorted(singles, key=_weight), *sorted(pairs, key=_weight)]:
        if hole.action != action or len(chosen) == TOLD:
            continue
        told = told if len(told) else np.zeros(len(hole.rows), dtype=np.bool_)
        if 2 * np.count_nonzero(hole.rows & ~told) > hole.patients:
            chosen.append(hole)
            told = told | hole.rows
    return chosen


def _weight(hole: Hole) -> float:
    return -hole.patients * (0.8 if hole.given else 1.0)


# Standard deviations beyond which a group's share is called missing. A sum of independent weights >= 0 falls z of them
# (with E w^2 for the variance) below its mean with probability at most exp(-z^2 / 2) (Maurer 2003, A bound on the
# deviation probability for sums of non-negative random variables, theorem 2.1): 4e-6, of a few hundred groups 1e-3.
SURPRISE_OF_GROUP = 5.0
FEWEST_ROWS = 10  # of fewer patients a group is no finding


def support_caveats(
    log: LoggedData, probabilities: FloatArray, weights: FloatArray, frame: pd.DataFrame
) -> dict[int, str]:
    """For each action that a group of patients seems never to get a sentence: the group where that is plainest.

    Groups are the levels of each covariate that at least 10 patients have, and quarters of one with many numbers. If
    the log's policy could take action a wherever the evaluated one does, w 1{a logged} would sum over any group to
    about the sum of p(a|x), with a second moment of at most that sum times the largest w. Only sums that are far too
    small are told.

    Parameters
    ----------
    log : LoggedData
        Its actions.
    probabilities : array, (n_rows, k)
        p(a|x) of the evaluated policy.
    weights : array, (n_rows,)
        Importance weights, before clipping.
    frame : DataFrame, n_rows
        Covariates; rows in which one is missing are in none of its groups, and columns of many words make no groups.
    """
    largest = largest_weights(log, weights)
    found = []
    for position, name in enumerate(frame.columns):
        codes, labels = _groups(frame.iloc[:, position], str(name))
        expected, reached, given = _sums(log, probabilities, weights, codes, len(labels))
        # Of an action that is never logged, or only with weights of 0, nothing is known here; that is told elsewhere.
        spread = np.sqrt(expected * largest)
        surprise = np.divide(expected - reached, spread, out=np.zeros_like(spread), where=spread > 0)
        surprise[given.sum(axis=1) < FEWEST_ROWS] = 0
        for group, action in np.argwhere(surprise > SURPRISE_OF_GROUP).tolist():
            said = (
                f"overlap fails for {log.names[action]} where {labels[group]}: the log gives it to "
                f"{given[group, action]:,} of {given[group].sum():,} patients there, and the evaluated policy puts "
                f"{expected[group, action] / log.n_patients:.1%} of its probability on that."
            )
            found.append((action, surprise[group, action], said))
    return {action: said for action, _, said in sorted(found)}  # the last of each action stays


def _sums(
    log: LoggedData, probabilities: FloatArray, weights: FloatArray, groups: IntArray, n_groups: int
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Over groups and actions, (n_groups, k): sums of p(a|x), sums of weights, and numbers of rows."""
    # Rows of group -1 make a first row of each table, which is dropped.
    shape = n_groups + 1, log.n_actions
    cells = (groups + 1) * log.n_actions + log.actions
    expected: FloatArray = np.empty(shape)
    for action, column in enumerate(probabilities.T):
        expected[:, action] = np.bincount(groups + 1, column if log.counts is None else column * log.counts, shape[0])
    own = weights if log.counts is None else weights * log.counts
    reached: FloatArray = np.bincount(cells, own, shape[0] * shape[1]).reshape(shape).astype(np.float64)
    given: IntArray = counted(cells, log.counts, shape[0] * shape[1]).reshape(shape)
    return expected[1:], reached[1:], given[1:]


def _groups(column: pd.Series, name: str) -> tuple[IntArray, list[str]]:
    """The group of each row, -1 for none, and the groups in words."""
    if is_real(column) and column.iloc[:: max(1, len(column) // LOOKED_AT)].nunique() > FEW_NUMBERS:
        # Numbers are cut at their quartiles, about.
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
        finite = np.isfinite(numbers)
        cuts = np.unique(np.quantile(numbers[finite][:: max(1, len(numbers) // LOOKED_AT)], (0.25, 0.5, 0.75)))
        quarters: IntArray = np.where(finite, np.searchsorted(cuts, numbers, side="right"), -1)
        words = [f"{cut:g}" for cut in cuts.tolist()]
        between = [f"{low} <= {name} < {high}" for low, high in pairwise(words)]
        return quarters, [f"{name} < {words[0]}", *between, f"{name} >= {words[-1]}"]
    try:
        codes, levels = pd.factorize(column)
    except TypeError:  # of lists, for instance
        return np.full(len(column), -1), []
    if len(levels) > MOST_LEVELS:
        return np.full(len(column), -1), []
    return codes.astype(np.intp), [f"{name} = {level}" for level in levels]
