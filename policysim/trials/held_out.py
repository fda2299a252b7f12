"""The comparison of policies on a log, as one tidy table: values on held-out patients, with intervals.

What is measured of one policy on one split of a log, group by group.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from policies.arrays import ROUNDING, FloatArray, IntArray
from policies.policy import Policy
from policies.reference import Greedy, Uniform
from policysim.logs.load_log import Log
from policysim.logs.log_frame import averaged
from policysim.question.protocol import SILENT, Progress
from policysim.question.words import ALL
from policysim.study.declared import LoggedStudy
from policysim.study.sweep import N_THREADS, asked_for, at, at_each
from policysim.trials.arms import AgainstBest, against_best
from policysim.trials.estimators import ImportanceWeights
from policysim.trials.power import break_even_gain
from policysim.trials.splits import REPEATS, HeldOut, Split, SplitMean, mean, minus, over_repeats, share, split_log

# A number with the ends of its 95 % interval; there is none where a percentage is refused.
Triple = tuple[float, float, float]
REFUSED: Triple = (np.nan, np.nan, np.nan)


def compare_log(study: LoggedStudy, log: Log, progress: Progress = SILENT) -> pd.DataFrame:
    """Compare a study's policies, each made from one part of the log and evaluated on the other, over many splits.

    Values are doubly robust; every patient counts once in each split, under the version of the policy that was made
    without that patient. Policies see the fitted scores only through these versions, so that nobody is judged by
    scores that were fitted to the same patients.

    Parameters
    ----------
    study : LoggedStudy
        Policies, epsilons, groups and seed.
    log : Log
        Its log.
    progress : Progress, optional
        Told of each fit and each policy in each split.

    Returns
    -------
    DataFrame
        One row per policy, epsilon and group (everyone first), with the columns of `compare` where a log has them, and
        95 % intervals `*_low`, `*_high` beside

        value : mean outcome per patient; its interval stays within the range that the study declares
        difference : value minus that of the best single arm, given to all; the same arm in all rows: the one that is
            estimated best for everyone. For everyone the interval holds whichever arm is truly the best
            (`arms.against_best`); in groups it is that of the difference to this arm
        loss : greedy's value minus this
        normalized_loss, benefit_kept : shares of what greedy gains over uniform and over the best single arm; NaN
            where the interval of that gain reaches 0: a share of what may be nothing
        difference_se : standard error of the difference to that arm
        break_even_gain : what greedy would have to gain for this policy to beat one arm for all (`power`)
        best_action_rate, worse_than_untreated, better_than_untreated : by the fitted scores of the other folds
        ess : effective sample size of the importance weights, (sum w)^2 / sum w^2
        best_arm : the arm of `difference`
    """
    templates, epsilons = asked_for([study.policy(name) for name in study.policies], study.epsilons, study.by)
    jobs = [policy for template in templates for policy in at_each(template, epsilons)]
    groups = groups_of(log, study.by)
    measured: dict[Policy, list[Measured]] = {policy: [] for policy in jobs}
    progress.expect(REPEATS * len(jobs))
    with ThreadPoolExecutor(N_THREADS) as pool:
        for split in split_log(log, study, progress):
            own = groups if split.log is log else groups_of(split.log, study.by)
            for policy, found in zip(jobs, pool.map(Measure(split, own), jobs), strict=True):
                measured[policy].append(found)
                progress.advance()
    rows = [
        row
        for template in templates
        for epsilon in epsilons
        for row in _rows(log, at(template, epsilon), epsilon, groups, measured[at(template, epsilon)])
    ]
    table = pd.DataFrame(rows)
    low, high = study.log.utility_range
    # No policy is worth what is impossible; an interval still holds its estimate.
    table["value_low"] = table["value_low"].clip(lower=table["value"].clip(upper=low))
    table["value_high"] = table["value_high"].clip(upper=table["value"].clip(lower=high))
    return table


@dataclass(frozen=True, eq=False)
class _Together:
    """What all splits say of one policy in one group."""

    estimates: dict[str, SplitMean]
    n_arms: int

    @classmethod
    def of(cls, measured: list[Measured], place: int, n_arms: int) -> _Together:
        names = measured[0].estimates[place]
        return cls({name: over_repeats([each.estimates[place][name] for each in measured]) for name in names}, n_arms)

    def triple(self, name: str) -> Triple:
        found = self.estimates[name]
        return found.value, *found.interval

    def against(self, name: Callable[[int], str]) -> AgainstBest:
        """The difference to the best arm, whichever that is."""
        found = [self.estimates[name(arm)] for arm in range(self.n_arms)]
        return against_best([each.value for each in found], [each.widened_error for each in found], found[0].n)


def _rows(
    log: Log, policy: Policy, epsilon: float, groups: list[GroupRows], measured: list[Measured]
) -> list[dict[str, object]]:
    """One policy at one epsilon, a row for each group."""
    together = [_Together.of(measured, place, log.data.n_actions) for place in range(len(groups))]
    everyone = together[0]
    best, gain = everyone.against(difference_to), everyone.against(gain_over)
    rows = []
    for place, (group, mine) in enumerate(zip(groups, together, strict=True)):
        gains = gain.interval[0] > 0 and mine.triple(gain_over(best.arm))[1] > 0
        triples = {
            "value": mine.triple("value"),
            "difference": (best.value, *best.interval) if mine is everyone else mine.triple(difference_to(best.arm)),
            "loss": mine.triple("loss"),
            "normalized_loss": mine.triple("normalized_loss") if mine.triple(GAIN_OVER_UNIFORM)[1] > 0 else REFUSED,
            "benefit_kept": mine.triple(kept_over(best.arm)) if gains else REFUSED,
        }
        means = {name: float(np.mean([each.means[place][name] for each in measured])) for name in measured[0].means[0]}
        parts = [means.pop(name) for name in (BY_LOT, FOLLOWS, GREEDY_BY_LOT, GREEDY_FOLLOWS)]
        apart = mine.estimates[difference_to(best.arm)]
        rows.append(
            {
                "policy": policy.name,
                "epsilon": epsilon,
                "group": group.feature,
                "level": group.level,
                "share": _patients(log, group.rows) / log.data.n_patients,
                **{f"{name}{end}": number for name, triple in triples.items() for end, number in _ends(triple)},
                "difference_se": apart.standard_error,
                "break_even_gain": _break_even(mine.triple("value")[0] - apart.value, *parts),
                **means,
                "epsilon_spent": max(each.epsilon_spent for each in measured),
                "guess_rate": float(np.max([each.guess_rate for each in measured])),
                "guarantee": policy.guarantee,
                "best_arm": log.data.names[best.arm],
            }
        )
    return rows


def _patients(log: Log, rows: IntArray) -> int:
    return rows.size if log.data.counts is None else int(log.data.counts[rows].sum())


def _break_even(best: float, by_lot: float, follows: float, of_greedy: float, greedy_follows: float) -> float:
    """See `power.break_even_gain`; what follows patients by less than rounding does not follow them."""
    ratio = follows / greedy_follows if greedy_follows > ROUNDING * abs(of_greedy) else 0.0
    return break_even_gain(best, by_lot, of_greedy, ratio if ratio > ROUNDING else 0.0)


def _ends(triple: Triple) -> list[tuple[str, float]]:
    return list(zip(("", "_low", "_high"), triple, strict=True))


@dataclass(frozen=True, eq=False)
class GroupRows:
    """Some of a log's patients: those with a level of a feature, or everyone ("all", "all"); `rows` are theirs."""

    feature: str
    level: str
    rows: IntArray


def groups_of(log: Log, by: tuple[str, ...]) -> list[GroupRows]:
    """Everyone, and the patients with each level of some features."""
    groups = [GroupRows(ALL, ALL, np.arange(log.data.n_rows))]
    for feature in by:
        codes, labels = log.space.groups(feature)
        mine = codes[log.records]
        groups += [GroupRows(feature, label, np.flatnonzero(mine == level)) for level, label in enumerate(labels)]
    return groups


@dataclass(frozen=True, eq=False)
class Measured:
    """One policy on one split, group by group: estimates by name, and means of what has no interval."""

    estimates: list[dict[str, SplitMean]]
    means: list[dict[str, float]]
    epsilon_spent: float
    guess_rate: float


def difference_to(arm: int) -> str:
    """The name of the estimate of a policy's value minus that of an arm."""
    return f"difference to {arm}"


def gain_over(arm: int) -> str:
    """The name of the estimate of what greedy gains over an arm."""
    return f"gain over {arm}"


def kept_over(arm: int) -> str:
    """The name of the estimate of a policy's share of that gain."""
    return f"benefit kept over {arm}"


GAIN_OVER_UNIFORM = "gain over uniform"
# Of a policy and of greedy: what treatments drawn with its shares are worth, and what following the patients adds to
# that by the fitted scores.
BY_LOT, FOLLOWS, GREEDY_BY_LOT, GREEDY_FOLLOWS = "by lot", "follows", "greedy by lot", "greedy follows"


class Measure:
    """Measures policies on one split.

    Parameters
    ----------
    split : Split
        A log, and the scores that were fitted without each part of it.
    groups : list of GroupRows
        Whose patients are measured one by one.
    """

    def __init__(self, split: Split, groups: list[GroupRows]) -> None:
        self._split, self._groups, self._counts = split, groups, split.log.data.counts
        for problem in split.problems:
            _ = problem.sensitivity, problem.best_actions  # computed once, before threads share them
        greedy, uniform = (split.evaluate(policy) for policy in (Greedy(), Uniform()))
        self._greedy, self._uniform, self._first = greedy.contributions, uniform.contributions, greedy.probabilities
        self._arms = [split.arm(arm) for arm in range(split.log.data.n_actions)]
        self._best: IntArray = split.scores.argmax(axis=1)
        # "Untreated" is the first action.
        self._worse: NDArray[np.bool_] = split.scores < split.scores[:, :1]
        self._better: NDArray[np.bool_] = split.scores > split.scores[:, :1]

    def __call__(self, policy: Policy) -> Measured:
        """Make the policy outside of each fold and measure it there."""
        held_out = self._split.evaluate(policy)
        return Measured(
            [self._estimates(held_out.contributions, group.rows) for group in self._groups],
            [self._means(held_out, group.rows) for group in self._groups],
            held_out.epsilon_spent,
            held_out.guess_rate,
        )

    def _estimates(self, contributions: FloatArray, rows: IntArray) -> dict[str, SplitMean]:
        mine, greedy, uniform = contributions[rows], self._greedy[rows], self._uniform[rows]
        loss, whole = minus(greedy, mine), minus(greedy, uniform)
        each = None if self._counts is None else self._counts[rows]
        found = {
            "value": mean(mine, each),
            "loss": mean(loss, each),
            "normalized_loss": share(loss, whole, each),
            GAIN_OVER_UNIFORM: mean(whole, each),
        }
        for arm, contributed in enumerate(self._arms):
            apart, gain = minus(mine, contributed[rows]), minus(greedy, contributed[rows])
            found |= {
                difference_to(arm): mean(apart, each),
                gain_over(arm): mean(gain, each),
                kept_over(arm): share(apart, gain, each),
            }
        return found

    def _means(self, held_out: HeldOut, rows: IntArray) -> dict[str, float]:
        names = [f"p_{name}" for name in self._split.log.data.names]
        parts = (BY_LOT, FOLLOWS, GREEDY_BY_LOT, GREEDY_FOLLOWS)
        if not rows.size:
            rates = ["best_action_rate", "worse_than_untreated", "better_than_untreated"]
            return dict.fromkeys([*rates, *names, "ess", *parts], np.nan)
        chosen, weights = held_out.probabilities[rows], held_out.weights[rows]
        each = None if self._counts is None else self._counts[rows]
        return {
            "best_action_rate": float(averaged(np.take_along_axis(chosen, self._best[rows, None], axis=1)[:, 0], each)),
            "worse_than_untreated": float(averaged((chosen * self._worse[rows]).sum(axis=1), each)),
            "better_than_untreated": float(averaged((chosen * self._better[rows]).sum(axis=1), each)),
            **dict(zip(names, averaged(chosen, each).tolist(), strict=True)),
            "ess": ImportanceWeights(weights, weights, each).ess,
            **dict(zip(parts, (*self._parts(chosen, rows), *self._parts(self._first[rows], rows)), strict=True)),
        }

    def _parts(self, chosen: FloatArray, rows: IntArray) -> tuple[float, float]:
        """What is worth drawing treatments with the same shares, and what following the patients adds by the scores."""
        each = None if self._counts is None else self._counts[rows]
        shares = averaged(chosen, each)
        arms = [float(averaged(contributed[rows], each)) for contributed in self._arms]
        follows = ((chosen - shares) * self._split.scores[rows]).sum(axis=1)
        return float(shares @ arms), float(averaged(follows, each))
