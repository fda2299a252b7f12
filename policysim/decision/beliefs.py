"""What a published treatment tells an observer about a patient's features, exactly, under the prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from policies.arrays import FloatArray, probability_table
from policies.catalogue import make_policy
from policies.distinct import distinct_rows
from policies.problem import DecisionProblem
from policysim.question.words import NEGLIGIBLE, level_name, rounded
from policysim.study.declared import ScenarioStudy
from policysim.study.slider import EQUAL
from policysim.study.sweep import evaluated_on

# Smaller changes of a belief are not said; a change of this size shows in so many digits.
LEAST_CHANGE, DIGITS = 1e-6, range(2, 7)


def beliefs(problem: DecisionProblem, probabilities: ArrayLike, feature: str) -> pd.DataFrame:
    """What an observer who sees the treatment believes about one feature: Bayes' rule under the prior.

    P(feature = level | action) = sum of prior(x) p(action|x) over the records x with that level, divided by the same
    sum over all records. The observer knows the prior and the policy, and nothing else about the patient. Where all
    records are neighbours, an epsilon-private policy multiplies no odds by more than e^epsilon.

    Parameters
    ----------
    problem : DecisionProblem
        The prior, and records that have features (`problem.records.groups`).
    probabilities : array, (n_records, n_actions)
        p(a|x); rows sum to 1 within 1e-9.
    feature : str
        One of `problem.records.names`.

    Returns
    -------
    DataFrame
        `level`, `action`, `before` (the share of the level) and `after` (its share among those who are given the
        action; NaN for an action that is never given): a row for each level and action.

    Raises
    ------
    ValueError
        For an unknown feature, or something else than a table of probabilities for the problem.

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
    levels, before, after = _learnt(problem, [problem.prior * column for column in table.T], feature)
    rows = [
        (level, action, before[place], after[place, given])
        for place, level in enumerate(levels)
        for given, action in enumerate(problem.actions)
    ]
    return pd.DataFrame(rows, columns=["level", "action", "before", "after"])


def _learnt(
    problem: DecisionProblem, given: Sequence[FloatArray], feature: str
) -> tuple[tuple[str, ...], FloatArray, FloatArray]:
    """The levels of a feature, their shares, (n_levels,), and those after each action, (n_levels, n_actions).

    `given` has prior(x) p(a|x), (n_records,), for each action.
    """
    codes, levels = problem.records.groups(feature)
    joint = np.stack([np.bincount(codes, each, len(levels)) for each in given], axis=1)
    shares = joint.sum(axis=1)
    of_actions = joint.sum(axis=0)
    after = np.divide(joint, of_actions, out=np.full_like(joint, np.nan), where=of_actions > 0)
    return levels, shares / shares.sum(), after


@dataclass(frozen=True)
class BeliefRange:
    """How far the treatments move an observer's belief in one level of a feature.

    Attributes
    ----------
    feature, level, words : str
        What it is about; the level in the words of the scenario.
    before, least, most : float
        The belief before, and after the treatments that make it least and most.
    least_after, most_after : str
        These treatments.
    """

    feature: str
    level: str
    words: str
    before: float
    least: float
    least_after: str
    most: float
    most_after: str

    @property
    def change(self) -> float:
        """The larger of the two changes; 0 for what rounding leaves of none."""
        return round(max(self.before - self.least, self.most - self.before), EQUAL)


@dataclass(frozen=True)
class Beliefs:
    """What the treatments tell about everything that is hidden, chosen by one policy: a range for each level."""

    policy: str
    ranges: tuple[BeliefRange, ...]

    @property
    def strongest(self) -> BeliefRange:
        """The level in which the belief moves most; of several, the one that is rarest before."""
        return min(self.ranges, key=lambda each: (-each.change, round(each.before, EQUAL)))

    @property
    def moved(self) -> list[BeliefRange]:
        """Those that a treatment moves, farthest first; of two levels the second, which says the same of the first."""
        levels = [each.feature for each in self.ranges]
        first = {each.feature: each for each in reversed(self.ranges)}
        told = [each for each in self.ranges if levels.count(each.feature) != 2 or each is not first[each.feature]]
        return sorted((each for each in told if each.change >= LEAST_CHANGE), key=lambda each: -each.change)

    @property
    def unmoved(self) -> list[str]:
        """The features of which no treatment says anything, in words."""
        moved = {each.feature for each in self.moved}
        return [
            name.replace("_", " ") for name in dict.fromkeys(each.feature for each in self.ranges) if name not in moved
        ]

    def table(self) -> pd.DataFrame:
        """A row for each level."""
        columns = ["feature", "level", "before", "least", "least_after", "most", "most_after"]
        rows = [(self.policy, *(getattr(each, column) for column in columns)) for each in self.ranges]
        return pd.DataFrame(rows, columns=["policy", *columns])


def hidden_beliefs(study: ScenarioStudy, problem: DecisionProblem, policy: str) -> Beliefs:
    """What the treatments tell about each hidden feature, chosen by a policy at the study's epsilon.

    Treatments that are given to fewer than `NEGLIGIBLE` of the patients are left out.
    """
    template = make_policy(policy, epsilon=study.epsilon)
    on = evaluated_on(template, problem)
    found = None if on is problem else distinct_rows(problem)
    columns = template.probabilities(on).T
    given = {
        action: problem.prior * (column if found is None else column[found.row])
        for action, column in zip(problem.actions, columns, strict=True)
        if on.prior @ column > NEGLIGIBLE
    }
    ranges = []
    for name in study.sensitive or study.space.names:
        feature = study.space.feature(name)
        levels, before, after = _learnt(problem, list(given.values()), name)
        # Beliefs that differ by rounding are equal: which of them is least must not depend on the machine.
        least, most = np.round(after, EQUAL).argmin(axis=1), np.round(after, EQUAL).argmax(axis=1)
        actions = list(given)
        ranges += [
            BeliefRange(
                feature=name,
                level=level,
                words=feature.in_words(level) if feature.words else level_name(name, level),
                before=float(before[place]),
                least=float(after[place, least[place]]),
                least_after=actions[least[place]],
                most=float(after[place, most[place]]),
                most_after=actions[most[place]],
            )
            for place, level in enumerate(levels)
        ]
    return Beliefs(policy, tuple(ranges))


@dataclass(frozen=True)
class Learnt:
    """What the treatment that says most says about one level of a feature: of 100 patients, as text.

    Attributes
    ----------
    seen : str
        The treatment.
    words : str
        The level in words.
    before, after : float
        Its share of all patients, and of those who are given the treatment.
    texts : tuple of str
        Both, of 100, with as many digits as tell them apart.
    """

    seen: str
    words: str
    before: float
    after: float
    texts: tuple[str, str]


def learnt(found: Beliefs) -> Learnt | None:
    """What the treatment that says most says to an observer; None where none says anything."""
    most = found.strongest
    if most.change < LEAST_CHANGE:
        return None
    rises = round(most.most - most.before, EQUAL) >= most.change
    seen, after = (most.most_after, most.most) if rises else (most.least_after, most.least)
    texts = [(rounded(100 * most.before, digits=digits), rounded(100 * after, digits=digits)) for digits in DIGITS]
    pair = next((pair for pair in texts if pair[0] != pair[1]), texts[-1])
    return Learnt(seen, most.words, most.before, after, pair)


def belief_sentence(found: Beliefs | None) -> str:
    """What the treatment that says most says to an observer; empty where no policy was looked at."""
    if found is None:
        return ""
    most = learnt(found)
    if most is None:
        return (
            f"Under {found.policy}, no treatment that is given moves an observer's belief about a hidden feature by as "
            "much as one in a million."
        )
    moves = "rises" if most.after > most.before else "falls"
    return (
        f"Under {found.policy}, seeing {most.seen}, an observer's probability of “{most.words}” {moves} from "
        f"{most.texts[0]} to {most.texts[1]} of 100, if only the prior is known: the largest change in any hidden "
        "feature."
    )
