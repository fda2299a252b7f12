"""The comparison of policies on a log: each on held-out patients, over many splits; and the table of its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from operator import attrgetter

import numpy as np
import pandas as pd

from policies.arrays import ROUNDING, FloatArray, IntArray
from policies.policy import Policy
from policysim.logs.load_log import Log
from policysim.question.protocol import SILENT, Progress
from policysim.study.declared import LoggedStudy
from policysim.study.sweep import Column, Groups, asked_for, at, at_each, evaluate_each, tabulate
from policysim.trials.arms import AgainstBest, against_best
from policysim.trials.estimators import Moments
from policysim.trials.evidence import break_even_gain
from policysim.trials.splits import (
    BY_LOT,
    DIFFERENCE,
    FOLLOWS,
    GAIN,
    GAIN_OVER_UNIFORM,
    GREEDY_BY_LOT,
    GREEDY_FOLLOWS,
    KEPT,
    REPEATS,
    EstimateName,
    Measure,
    Measured,
    over_repeats,
    split_log,
)

ENDS = ("", "_low", "_high")


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
        One row per policy, epsilon and group (everyone first), with the `COLUMNS`: those of `compare` where a log has
        them, and 95 % intervals `*_low`, `*_high` beside some. The functions that compute them say what they are.
    """
    templates, epsilons = asked_for([study.policy(name) for name in study.policies], study.epsilons, study.by)
    jobs = [policy for template in templates for policy in at_each(template, epsilons)]
    groups = groups_of(log, study.by)
    measured: dict[Policy, list[Measured]] = {policy: [] for policy in jobs}
    progress.expect(REPEATS * len(jobs))
    for split in split_log(log, study, progress):
        measure = Measure(split, groups if split.log is log else groups_of(split.log, study.by))
        # What is done in all splits is expected already.
        for policy, found in evaluate_each(jobs, measure, Progress.of(progress.advance)).items():
            measured[policy].append(found)
    evaluations = [
        HeldOutPolicy.of(
            at(template, epsilon),
            epsilon,
            groups,
            measured[at(template, epsilon)],
            arms=log.data.names,
            value_range=study.log.utility_range,
        )
        for template in templates
        for epsilon in epsilons
    ]
    return tabulate(evaluations, COLUMNS)


def groups_of(log: Log, by: Sequence[str]) -> Groups:
    """Everyone, and the patients of a log with each level of some features."""

    def levels_of(feature: str) -> tuple[IntArray, tuple[str, ...]]:
        codes, labels = log.space.groups(feature)
        return codes[log.records], labels

    counts = log.data.counts
    return Groups(by, levels_of, np.ones(log.data.n_rows) if counts is None else counts.astype(np.float64))


@dataclass(frozen=True, eq=False)
class HeldOutPolicy:
    """One policy at one epsilon: what all splits together say of it, a mapping for each group.

    Attributes
    ----------
    policy : str
    epsilon, guarantee : float
        As it was asked for, and what the policy promises.
    groups : Groups
    estimates : list of dict of str to Moments
        By the names of `Measured`.
    means : dict of str to array, (n_groups,)
        Of what has no interval.
    epsilon_spent, guess_rate : float
        The largest of all splits.
    arms : tuple of str
    value_range : tuple of float
        What the study declares.
    """

    policy: str
    epsilon: float
    guarantee: float
    groups: Groups
    estimates: list[dict[EstimateName, Moments]]
    means: dict[str, FloatArray]
    epsilon_spent: float
    guess_rate: float
    arms: tuple[str, ...]
    value_range: tuple[float, float]

    @classmethod
    def of(
        cls,
        policy: Policy,
        epsilon: float,
        groups: Groups,
        measured: list[Measured],
        *,
        arms: tuple[str, ...],
        value_range: tuple[float, float],
    ) -> HeldOutPolicy:
        """What was measured on each split, together."""
        places = range(len(groups))
        first = measured[0]
        return cls(
            policy=policy.name,
            epsilon=epsilon,
            guarantee=policy.guarantee,
            groups=groups,
            estimates=[
                {
                    name: over_repeats([each.estimates[place][name] for each in measured])
                    for name in first.estimates[place]
                }
                for place in places
            ],
            means={
                name: np.array([[each.means[place][name] for each in measured] for place in places]).mean(axis=1)
                for name in first.means[0]
            },
            epsilon_spent=max(each.epsilon_spent for each in measured),
            guess_rate=float(np.max([each.guess_rate for each in measured])),
            arms=arms,
            value_range=value_range,
        )

    def against(self, name: str) -> AgainstBest:
        """For everyone, the estimates of this name against the best arm, whichever that is."""
        found = [self.estimates[0][name, arm] for arm in range(len(self.arms))]
        return against_best([each.mean for each in found], [each.widened_error for each in found], found[0].n)

    @cached_property
    def best(self) -> AgainstBest:
        """The difference of everyone to the best arm."""
        return self.against(DIFFERENCE)

    def triples(self, name: EstimateName) -> FloatArray:
        """An estimate of each group with the ends of its 95 % interval, (n_groups, 3)."""
        return np.array([(mine[name].mean, *mine[name].interval) for mine in self.estimates])


def _with_ends(triples: FloatArray) -> dict[str, FloatArray]:
    """(n_groups, 3) as the cells of three columns."""
    return dict(zip(ENDS, triples.T, strict=True))


def value(found: HeldOutPolicy) -> Mapping[str, FloatArray]:
    """Mean outcome per patient; its interval stays within the range that the study declares."""
    values, lows, highs = found.triples("value").T
    least, most = found.value_range
    # No policy is worth what is impossible; an interval still holds its estimate.
    lows = np.where(lows < np.minimum(values, least), np.minimum(values, least), lows)
    highs = np.where(highs > np.maximum(values, most), np.maximum(values, most), highs)
    return dict(zip(ENDS, (values, lows, highs), strict=True))


def difference(found: HeldOutPolicy) -> Mapping[str, FloatArray]:
    """Value minus that of the best single arm, given to all: in all rows the one that is estimated best for everyone.

    For everyone the interval holds whichever arm is truly the best (`arms.against_best`); in groups it is that of the
    difference to this arm.
    """
    triples = found.triples((DIFFERENCE, found.best.arm))
    triples[0] = found.best.value, *found.best.interval
    return _with_ends(triples)


def loss(found: HeldOutPolicy) -> Mapping[str, FloatArray]:
    """Greedy's value minus this."""
    return _with_ends(found.triples("loss"))


def normalized_loss(found: HeldOutPolicy) -> Mapping[str, FloatArray]:
    """The loss as a share of what greedy gains over uniform; NaN where the interval of that gain reaches 0.

    A share of what may be nothing is none.
    """
    gains = found.triples(GAIN_OVER_UNIFORM)[:, 1] > 0
    return _with_ends(np.where(gains[:, None], found.triples("normalized_loss"), np.nan))


def benefit_kept(found: HeldOutPolicy) -> Mapping[str, FloatArray]:
    """The difference as a share of what greedy gains over the best single arm; NaN as in `normalized_loss`."""
    arm = found.best.arm
    gains = (found.triples((GAIN, arm))[:, 1] > 0) & (found.against(GAIN).interval[0] > 0)
    return _with_ends(np.where(gains[:, None], found.triples((KEPT, arm)), np.nan))


def difference_se(found: HeldOutPolicy) -> list[float]:
    """The standard error of the difference to that arm."""
    return [mine[DIFFERENCE, found.best.arm].standard_error for mine in found.estimates]


def gain_to_break_even(found: HeldOutPolicy) -> list[float]:
    """What greedy would have to gain for this policy to beat one arm for all (`evidence.break_even_gain`)."""
    gains = []
    for place, mine in enumerate(found.estimates):
        best = mine["value"].mean - mine[DIFFERENCE, found.best.arm].mean
        names = (BY_LOT, FOLLOWS, GREEDY_BY_LOT, GREEDY_FOLLOWS)
        by_lot, follows, of_greedy, greedy_follows = (float(found.means[name][place]) for name in names)
        # What follows patients by less than rounding does not follow them.
        ratio = follows / greedy_follows if greedy_follows > ROUNDING * abs(of_greedy) else 0.0
        gains.append(break_even_gain(best, by_lot, of_greedy, ratio if ratio > ROUNDING else 0.0))
    return gains


def mean_of(name: str, found: HeldOutPolicy) -> FloatArray:
    """A mean of each group that has no interval."""
    return found.means[name]


def shares(found: HeldOutPolicy) -> Mapping[str, FloatArray]:
    """The share of patients who get each arm."""
    return {arm: found.means[f"p_{arm}"] for arm in found.arms}


def best_arm(found: HeldOutPolicy) -> str:
    """The arm of `difference`."""
    return found.arms[found.best.arm]


COLUMNS: tuple[Column[HeldOutPolicy], ...] = (
    Column("value", "mean outcome", "of the outcome, per patient", "estimate", value),
    Column("difference", "against one arm for all", "of the outcome, per patient", "estimate", difference),
    Column("loss", "lost against the best for each", "of the outcome, per patient", "estimate", loss),
    Column("normalized_loss", "lost, of the gain over uniform", "share", "percent", normalized_loss),
    Column("benefit_kept", "benefit kept", "share", "percent", benefit_kept),
    Column("difference_se", "standard error of the difference", "of the outcome", "rounded", difference_se),
    Column("break_even_gain", "gain needed to break even", "of the outcome", "rounded", gain_to_break_even),
    Column("best_action_rate", "best arm by the scores", "share", "percent", partial(mean_of, "best_action_rate")),
    Column(
        "worse_than_untreated", "worse than the first arm", "share", "percent", partial(mean_of, "worse_than_untreated")
    ),
    Column(
        "better_than_untreated",
        "better than the first arm",
        "share",
        "percent",
        partial(mean_of, "better_than_untreated"),
    ),
    Column("p_", "who get the arm", "share", "percent", shares),
    Column("ess", "effective sample size", "patients", "rounded", partial(mean_of, "ess")),
    Column("epsilon_spent", "ε spent", "", "rounded", attrgetter("epsilon_spent")),
    Column("guess_rate", "right guesses, at most", "of 100", "guess_rate", attrgetter("guess_rate")),
    Column("guarantee", "ε promised", "", "plain", attrgetter("guarantee")),
    Column("best_arm", "the arm compared with", "", "", best_arm),
)
