"""What an observer of a treatment believes about a patient's features, exactly, under the prior.

The observer knows the prior, the policy, and all that is public of the patient: the class of the records that are
hidden among each other. No odds change by more than e^loss, loss being the largest log(p(a|x) / p(a|x')) of two records
of the class. Under any-record and sensitive that is the exact privacy loss there, at most epsilon. Under one-feature it
may be epsilon times the number of features: these are beliefs of somebody who knows no feature, and epsilon bounds what
somebody learns who knows every other one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from envs.records import RecordSpace
from policies.adjacency import public_classes
from policies.arrays import FloatArray, probability_table
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.records import Records
from policysim.numbers import NEGLIGIBLE
from policysim.study.gain import EQUAL
from policysim.study.labels import level_in_words
from policysim.study.sweep import evaluated_on, rows_on
from policysim.words import level_name

# A belief that moves by less is left out; where no belief moves by more than this, nothing is said.
LEAST_MOVED, LEAST_OF_STRONGEST = 0.02, 1e-3
# So many flags that a class lacks are named one by one.
MOST_LACKED = 3


def beliefs(problem: DecisionProblem, probabilities: ArrayLike, feature: str) -> pd.DataFrame:
    """What an observer who sees the treatment believes about one hidden feature: Bayes' rule under the prior.

    P(feature = level | action, class) = sum of prior(x) p(action|x) over the records x with that level, of a class that
    agrees in all that is public, divided by the same sum over all its records. Under any-record and one-feature there
    is one class; under one-feature epsilon does not bound these beliefs, but those given every other feature.

    Parameters
    ----------
    problem : DecisionProblem
        The prior, who must look alike, and records that have features (`problem.records.groups`).
    probabilities : array, (n_records, n_actions)
        p(a|x); rows sum to 1 within 1e-9.
    feature : str
        One of `problem.records.names` that is not public.

    Returns
    -------
    DataFrame
        `level`, `action`, `before` (the share of the level) and `after` (its share among those who are given the
        action; NaN for an action that is never given): a row for each level and action. Where features are public, for
        each class that the prior holds possible, too; `class`, a category, has its levels in words and comes first.

    Raises
    ------
    ValueError
        For an unknown or a public feature, or something else than a table of probabilities for the problem.

    References
    ----------
    Evfimievski, Gehrke & Srikant (2003), Limiting privacy breaches in privacy preserving data mining, PODS.

    Examples
    --------
    >>> from envs import record_space
    >>> from policies import AnyRecord
    >>> problem = DecisionProblem(
    ...     [[1.0, 0.0], [0.0, 1.0]], [0.9, 0.1], AnyRecord(), ["wait", "treat"], records=record_space({"ill": [0, 1]})
    ... )
    >>> beliefs(problem, [[0.75, 0.25], [0.25, 0.75]], "ill").round(3)
      level action  before  after
    0     0   wait     0.9  0.964
    1     0  treat     0.9  0.750
    2     1   wait     0.1  0.036
    3     1  treat     0.1  0.250
    """
    table = probability_table(probabilities, "probabilities")
    if table.shape != problem.utilities.shape:
        raise ValueError(f"probabilities must have shape {problem.utilities.shape}, got {table.shape}.")
    observer = Observer(problem)
    levels, before, after = observer.learns([problem.prior * column for column in table.T], feature)
    classes = pd.Series(observer.words(level_name), dtype="category")
    columns = {
        "class": classes.repeat(len(levels) * problem.n_actions).array,
        "level": np.tile(np.repeat(np.array(levels, dtype=object), problem.n_actions), len(before)),
        "action": np.tile(np.array(problem.actions, dtype=object), before.size),
        "before": np.repeat(before.ravel(), problem.n_actions),
        "after": after.ravel(),
    }
    return pd.DataFrame({name: column for name, column in columns.items() if observer.public or name != "class"})


class Observer:
    """Somebody who knows the prior, the policy, and all that is public of each patient.

    Parameters
    ----------
    problem : DecisionProblem
        Its adjacency says what is public.

    Attributes
    ----------
    possible : array of int, (n_classes,)
        The classes of `public_classes` that the prior holds possible.
    shares : array, (n_classes,)
        The probability of each.
    classes : array of int, (n_records,)
        The class of each record.
    public : mapping of str to (array of int, tuple of str)
        The features that are the same throughout each class: the level of each class, (n_classes,), and the labels.
    """

    def __init__(self, problem: DecisionProblem) -> None:
        self._records = problem.records
        self.classes = public_classes(problem.adjacency, problem.n_records)
        shares = np.bincount(self.classes, problem.prior).astype(np.float64, copy=False)
        self._n_classes, self.possible = len(shares), np.flatnonzero(shares)
        self.shares = shares[self.possible]
        first = np.unique(self.classes, return_index=True)[1]
        groups = {name: self._records.groups(name) for name in self._records.names if len(first) > 1}
        self.public = {
            name: (codes[first[self.possible]], labels)
            for name, (codes, labels) in groups.items()
            if np.array_equal(codes[first][self.classes], codes)
        }

    def joint(self, given: Sequence[FloatArray], feature: str) -> tuple[tuple[str, ...], FloatArray]:
        """The levels of a hidden feature, and how often each comes with each action, (n_classes, n_levels, n_actions).

        `given` has prior(x) p(a|x), (n_records,), for each action.
        """
        if feature in self.public:
            raise ValueError(f"feature {feature!r} is public: an observer knows it before the treatment.")
        codes, levels = self._records.groups(feature)
        cells, shape = self.classes * len(levels) + codes, (self._n_classes, len(levels))
        sums = [np.bincount(cells, each, self._n_classes * len(levels)).reshape(shape) for each in given]
        return levels, np.stack(sums, axis=2)[self.possible].astype(np.float64, copy=False)

    def learns(
        self, given: Sequence[FloatArray], feature: str, rarest: float = 0.0
    ) -> tuple[tuple[str, ...], FloatArray, FloatArray]:
        """The levels of a hidden feature, their shares, (n_classes, n_levels), and those after (..., n_actions) each.

        `given` as for `joint`. NaN after an action that at most the share `rarest` of a class get.
        """
        levels, joint = self.joint(given, feature)
        before, actions = joint.sum(axis=2), joint.sum(axis=1, keepdims=True)
        patients = before.sum(axis=1)
        frequent = actions > rarest * patients[:, None, None]
        after = np.divide(joint, actions, out=np.full_like(joint, np.nan), where=frequent)
        return levels, before / patients[:, None], after

    def words(self, in_words: Callable[[str, str], str]) -> list[str]:
        """The public levels of each class; empty texts where nothing is public."""
        parts = [
            np.array([in_words(name, level) for level in levels], dtype=object)[codes]
            for name, (codes, levels) in self.public.items()
        ]
        return [", ".join(each) for each in zip(*parts, strict=True)] or [""] * len(self.shares)


def hidden_beliefs(problem: DecisionProblem, policy: Policy, features: Sequence[str]) -> pd.DataFrame:
    """How far the treatments that a policy chooses move a belief in each level of the hidden features.

    Each level is of the class of patients, by public features, in which the belief moves most. Treatments
    that are given to fewer than `NEGLIGIBLE` of them are left out.

    Parameters
    ----------
    problem : DecisionProblem
        The prior, who must look alike, and records that have features.
    policy : Policy
        At its epsilon.
    features : sequence of str
        Those that are looked at; what is public among them is left out.

    Returns
    -------
    DataFrame
        policy, feature, level, belief (in words); before, least and most: the belief before, and after the treatments
        that make it least and most, which are least_after and most_after; among and share: the patients, in words,
        whose belief moves most (empty where nothing is public), and their share of all; class: theirs of
        `public_classes`. A row for each level.
    """
    on = evaluated_on(policy, problem)
    row = rows_on(on, problem)
    given = [problem.prior * column[row] for column in policy.probabilities(on).T]
    observer, rows = Observer(problem), []
    for name in (name for name in features if name not in observer.public):
        levels, before, after = observer.learns(given, name, NEGLIGIBLE)
        # Beliefs that differ by rounding are equal: which of them is least must not depend on the machine.
        change = np.round(np.nanmax(np.abs(after - before[:, :, None]), axis=2), EQUAL)
        # Of the classes in which a belief moves farthest, the commonest.
        farthest = np.where(change == change.max(axis=0), np.round(observer.shares, EQUAL)[:, None], -1.0)
        for place, (level, worst) in enumerate(zip(levels, farthest.argmax(axis=0), strict=True)):
            chances = after[worst, place]
            known = {key: labels[codes[worst]] for key, (codes, labels) in observer.public.items()}
            near = np.round(chances, EQUAL)
            least, most = int(np.nanargmin(near)), int(np.nanargmax(near))
            rows.append(
                {
                    "policy": policy.name,
                    "feature": name,
                    "level": level,
                    "belief": level_in_words(problem.records, name, level),
                    "before": float(before[worst, place]),
                    "least": float(chances[least]),
                    "least_after": problem.actions[least],
                    "most": float(chances[most]),
                    "most_after": problem.actions[most],
                    "among": among(problem.records, known),
                    "share": float(observer.shares[worst]),
                    "class": int(observer.possible[worst]),
                }
            )
    return pd.DataFrame(rows)


def among(records: Records, levels: Mapping[str, str]) -> str:
    """Public levels in words; many flags that are absent are counted, not named."""
    flags = [each.name for each in records.features if each.flag] if isinstance(records, RecordSpace) else []
    absent = [name for name, level in levels.items() if name in flags and level == "0"]
    counted = absent if len(absent) > MOST_LACKED else []
    named = [level_in_words(records, name, level) for name, level in levels.items() if name not in counted]
    return ", ".join([*named, *([f"none of {len(counted)} other flags"] if counted else [])])


def moved_beliefs(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of `hidden_beliefs` that a treatment moves, farthest first, with `change`, the larger of the two.

    Of two levels of a feature the second, which says the same as the first.
    """
    of_feature = table.groupby("feature")["level"]
    changes = _with_changes(table)[(of_feature.transform("size") != 2) | (of_feature.cumcount() > 0)]
    return changes[changes["change"] >= LEAST_MOVED].sort_values("change", ascending=False, kind="stable")


def strongest_belief(table: pd.DataFrame | None) -> pd.Series | None:
    """The row of `hidden_beliefs` in which the belief moves most, with `change`; of several, the one rarest before.

    None where hardly any belief moves.
    """
    if table is None or table.empty:
        return None
    changes = _with_changes(table).assign(rarity=table["before"].round(EQUAL))
    strongest = changes.sort_values(["change", "rarity"], ascending=[False, True], kind="stable").iloc[0]
    return strongest if strongest["change"] >= LEAST_OF_STRONGEST else None


def _with_changes(table: pd.DataFrame) -> pd.DataFrame:
    """With the larger of the two changes; 0 for what rounding leaves of none."""
    change = np.maximum(table["before"] - table["least"], table["most"] - table["before"])
    return table.assign(change=change.round(EQUAL))


def patients_of_belief(problem: DecisionProblem, belief: pd.Series) -> tuple[FloatArray, FloatArray]:
    """The prior of the class of patients that a belief is about, and of those among them who have the level, (n,)."""
    codes, levels = problem.records.groups(belief["feature"])
    mine = problem.prior * (public_classes(problem.adjacency, problem.n_records) == belief["class"])
    return mine, mine * (codes == levels.index(belief["level"]))
