"""Where a log has nothing to say: groups of patients to whom it never gives an action, or who have no outcome under it.

Such holes are found in raw counts: nobody of a group, or almost nobody, got an action. Propensities have no part in
this: estimated ones follow a hole smoothly, so that weights look harmless where there is nothing to weigh.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import bdtr

from policies.arrays import BoolArray, FloatArray, IntArray
from policysim.logs.load_log import Log
from policysim.logs.log_frame import MOST_LEVELS, LoggedData, is_real

# The chance that a log without a hole is said to have one, at most; half of it for groups of one covariate, half for
# those of two.
ALARM = 0.01
# A group is a hole if its patients got the action with a probability below this; of a seldom action, below this part of
# its share. Groups of two covariates are so many that in a small log this cannot be shown of a tenth of the patients:
# there it is up to twice as much, but no more than it takes for `PLAIN` of the rows.
SMALLEST, SMALLEST_OF_TWO, PART = 0.05, 0.1, 0.4
PLAIN = 0.083
FEW_NUMBERS = 10  # so many different numbers are levels; of more, deciles and both ends are looked at
EXCEPTIONS = 3  # patients who got the action all the same, at the end of a column of numbers: fewer than this
DECILES = np.arange(0.1, 0.95, 0.1)
MOST_IN_PAIRS = 200  # groups of which two together are looked at: the largest
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
        How many of its patients got the action, and how many there are; or so many of the clusters that they are in.
    rows : array of bool
        The group, among the rows that were looked at (of more than 10,000, every so many-th).
    """

    action: int
    where: str
    given: int
    patients: int
    rows: BoolArray
    unit: str = "patients"

    def in_words(self, name: str) -> str:
        """The finding in words; `name` is the action's."""
        who = "nobody" if not self.given else "almost nobody"
        return f"{self.where}: {who} got {name} ({self.given:,} of {self.patients:,} {self.unit})"


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
    Looked at are the levels of each covariate and, of more than ten different numbers, those above and below each
    decile, and both ends: the numbers beyond the most extreme one whose patient got an action, but for at most two.
    Then each two of the largest of these groups together.

    A group counts if so few of its patients got the action that this had probability alpha or less, were it given to
    each of them with probability tau or more: P(Binomial(n, tau) <= given) <= alpha. That holds for an end, too: "m or
    more patients are beyond" says that at most 0, 1 or 2 of the last m got it. Alpha is `ALARM` over all groups and
    actions (Bonferroni), so that a log in which everybody gets every action with probability tau or more is doubted at
    most once in 100 times; tau is 0.05, or less of a seldom action, see `SMALLEST`. Where whole clusters were
    allocated, the clusters that have patients in a group are counted, and not the patients.
    """
    rows, _ = _looked_at(log)
    actions = log.actions[rows]
    columns = [(str(name), frame.iloc[rows, place]) for place, name in enumerate(frame.columns)]
    groups = [group for name, column in columns for group in _groups(name, column, actions)]
    if not groups:
        return []
    members, actions, unit = _counted(log, rows, np.array([inside for _, inside in groups], dtype=np.float64))
    shares = np.bincount(actions, minlength=log.n_actions) / len(actions)
    if np.count_nonzero(shares) < 2:
        return []
    each = np.count_nonzero(shares) * len(groups)
    large = np.argsort(-members.sum(axis=1), kind="stable")[:MOST_IN_PAIRS]
    one, other = np.triu_indices(len(large), 1)
    alphas = ALARM / 2 / each, ALARM / 2 / (np.count_nonzero(shares) * max(1, len(one)))
    needed = -np.log(alphas[1]) / (PLAIN * len(actions))
    least = SMALLEST, max(SMALLEST, min(SMALLEST_OF_TWO, needed))
    sizes = _counts(members, members, large)
    holes = []
    for action in np.flatnonzero(shares).tolist():
        given = _counts(members * (actions == action), members, large)
        found: list[Hole] = []
        for pairs in (False, True):
            # Of so many rows with so few who got it, the largest first; who really nobody is, before a quarter more.
            missing = bdtr(given[pairs], sizes[pairs], min(least[pairs], PART * shares[action])) <= alphas[pairs]
            weight = np.where(missing, sizes[pairs] * np.where(given[pairs] > 0, 0.8, 1.0), -1.0)
            for place in np.argsort(-weight, kind="stable")[: int(missing.sum())].tolist():
                parts = [groups[large[at[place]]] for at in (one, other)] if pairs else [groups[place]]
                where = " and ".join(name for name, _ in parts)
                inside = np.logical_and.reduce([rows for _, rows in parts])
                hole = Hole(action, where, int(given[pairs][place]), int(sizes[pairs][place]), inside, unit)
                if len(found) < TOLD and _is_new(hole, found):
                    found.append(hole)
        holes += found
    return holes


def _counted(log: LoggedData, rows: IntArray, members: FloatArray) -> tuple[FloatArray, IntArray, str]:
    """Who counts as a member of each group, (n_groups, m), with the action of each: patients, or whole clusters."""
    if log.clusters is None or log.whole_clusters is None:
        return members, log.actions[rows], "patients"
    _, first, own = np.unique(log.clusters[rows], return_index=True, return_inverse=True)
    clusters = np.array([np.bincount(own, inside) > 0 for inside in members], dtype=np.float64)
    return clusters, log.actions[rows][first], "clusters"


def _is_new(hole: Hole, found: list[Hole]) -> bool:
    """Whether more than half of its patients are in none of the holes that were found before."""
    reported = np.logical_or.reduce([np.zeros_like(hole.rows), *(known.rows for known in found)])
    return bool(2 * np.count_nonzero(hole.rows & ~reported) > np.count_nonzero(hole.rows))


def _counts(some: FloatArray, members: FloatArray, large: IntArray) -> tuple[IntArray, IntArray]:
    """How many of some members of each group there are, and of each two of the large groups."""
    both = (some[large] @ members[large].T)[np.triu_indices(len(large), 1)]
    return some.sum(axis=1).astype(np.intp), both.astype(np.intp)


def where_caveats(log: LoggedData, probabilities: FloatArray, frame: pd.DataFrame) -> list[str]:
    """The holes of a log into which a policy, p(a|x), (n_rows, k), puts probability, a sentence each."""
    rows, step = _looked_at(log)
    among = f" among every {step}th row" if step > 1 else ""
    return [
        _no_overlap(hole, log.names[hole.action], among)
        for hole in find_holes(log, frame)
        if probabilities[rows, hole.action] @ hole.rows > 0
    ]


def _no_overlap(hole: Hole, name: str, among: str = "") -> str:
    return (
        f"no overlap, {hole.in_words(name)}{among}. The log does not show the effect of {name} on them: it is "
        "extrapolated, and no interval covers that."
    )


def levels_in_words(log: Log) -> Iterator[tuple[str, BoolArray]]:
    """Each level of each declared feature in words, "sex = f" or "age ≥ 60", and its rows."""
    for feature in log.space.features:
        codes, labels = log.space.groups(feature.name)
        level = codes[log.records]
        named = f"{feature.name} " if feature.cuts else f"{feature.name} = "
        yield from ((f"{named}{label}", level == code) for code, label in enumerate(labels))


def _empty_levels(log: Log, among: BoolArray, hits: BoolArray) -> Iterator[tuple[str, int, BoolArray]]:
    """The levels of which no row is a hit, with their patients among some rows, and their rows.

    They count if this had a probability below `ALARM`, shared by all levels and arms (Bonferroni), were each patient a
    hit with `PART` of the share that they are among all these rows.
    """
    counts = np.ones(log.data.n_rows) if log.data.counts is None else log.data.counts
    share = PART * counts[among & hits].sum() / max(1.0, counts[among].sum())
    n_levels = sum(len(feature.levels) for feature in log.space.features)
    for where, rows in levels_in_words(log):
        n = counts[among & rows].sum()
        empty = not (among & hits & rows).any()
        if empty and (1 - share) ** n < ALARM / (n_levels * log.data.n_actions):
            yield where, int(n), rows


def without_arm(log: Log) -> Iterator[str]:
    """Levels of which nobody got an arm, where propensities are estimated: nothing is known of them but by a model."""
    data = log.data
    for arm, name in enumerate(data.names):
        hits = data.actions == arm
        for where, n, rows in _empty_levels(log, np.ones(data.n_rows, dtype=np.bool_), hits):
            yield _no_overlap(Hole(arm, where, 0, n, rows), name)


def without_outcome(log: Log) -> Iterator[str]:
    """Levels of which nobody in an arm has an outcome: a model extrapolates it from others."""
    data = log.data
    for arm, name in enumerate(data.names):
        for where, n, _ in _empty_levels(log, data.actions == arm, data.known.weights > 0):
            yield (
                f"{where}: nobody with {name} has an outcome (0 of {n:,} patients). The log does not show the effect "
                f"of {name} on them: it is extrapolated, and no interval covers that."
            )


def _looked_at(log: LoggedData) -> tuple[IntArray, int]:
    """Every so many-th patient, as the rows that stand for them: all of a small log."""
    step = -(-log.n_patients // LOOKED_AT)
    places = np.arange(0, log.n_patients, step)
    return places if log.counts is None else np.searchsorted(np.cumsum(log.counts), places, side="right"), step


def _groups(name: str, column: pd.Series, actions: IntArray) -> Iterator[tuple[str, BoolArray]]:
    """The groups that a covariate makes, with the rows of each."""
    if is_real(column):
        values: FloatArray = column.to_numpy(dtype=np.float64, na_value=np.nan)
        known = np.isfinite(values)
        distinct = np.unique(values[known])
        if len(distinct) > FEW_NUMBERS:
            ends = [np.sort(values[known & (actions == action)]) for action in np.unique(actions)]
            deciles = np.quantile(values[known], DECILES)
            first = np.searchsorted(distinct, [*deciles, *(each for end in ends for each in end[:EXCEPTIONS])])
            beyond = np.searchsorted(distinct, [each for end in ends for each in end[-EXCEPTIONS:]], side="right")
            for place in np.unique(first[first > 0]):
                yield f"{name} ≤ {distinct[place - 1]:g}", values <= distinct[place - 1]
            from_here = np.append(np.searchsorted(distinct, deciles), beyond)
            for place in np.unique(from_here[from_here < len(distinct)]):
                yield f"{name} ≥ {distinct[place]:g}", values >= distinct[place]
            return
    try:
        codes, levels = pd.factorize(column)
    except TypeError:  # of lists, for instance
        return
    if 1 < len(levels) <= MOST_LEVELS:
        yield from ((f"{name} = {level}", codes == code) for code, level in enumerate(levels))
