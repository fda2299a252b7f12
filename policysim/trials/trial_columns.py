"""The comparison of policies on a log: each on held-out patients, over many splits; and the table of its columns."""

from __future__ import annotations

import math
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
from policysim.study.sweep import Columns, Groups, asked_for, at, at_each, evaluate_each, tabulate
from policysim.trials.estimators import OverSplits, over_splits
from policysim.trials.evidence import break_even_gain
from policysim.trials.splits import (
    BY_LOT,
    FOLLOWS,
    GAIN,
    GAIN_OVER_UNIFORM,
    GREEDY_BY_LOT,
    GREEDY_FOLLOWS,
    REPEATS,
    Measure,
    Measured,
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
    chosen = np.zeros(log.data.n_actions)
    progress.expect(REPEATS * len(jobs))
    for split in split_log(log, study, progress):
        measure = Measure(split, groups if split.log is log else groups_of(split.log, study.by))
        chosen += measure.chosen
        # What is done in all splits is expected already.
        for policy, found in evaluate_each(jobs, measure, Progress.of(progress.advance)).items():
            measured[policy].append(found)
    best_arm = log.data.names[int(chosen.argmax())]
    asked = [(at(template, epsilon), epsilon) for template in templates for epsilon in epsilons]
    common = groups, best_arm, study.log.utility_range
    return tabulate([HeldOutPolicy(made, epsilon, measured[made], *common) for made, epsilon in asked], COLUMNS)


def groups_of(log: Log, by: Sequence[str]) -> Groups:
    """Everyone, and the patients of a log with each level of some features."""

    def levels_of(feature: str) -> tuple[IntArray, tuple[str, ...]]:
        codes, labels = log.space.groups(feature)
        return codes[log.records], labels

    counts = log.data.counts
    return Groups(by, levels_of, np.ones(log.data.n_rows) if counts is None else counts.astype(np.float64))


@dataclass(frozen=True, eq=False)
class HeldOutPolicy:
    """One policy at one epsilon, as it was asked for, measured on each split: what columns are computed from.

    `best_arm` is the one for all that was chosen on most folds; `value_range` is what the study declares.
    """

    made: Policy
    epsilon: float
    measured: list[Measured]
    groups: Groups
    best_arm: str
    value_range: tuple[float, float]

    @property
    def policy(self) -> str:
        """Its name."""
        return self.made.name

    @cached_property
    def estimates(self) -> list[dict[str, OverSplits]]:
        """What all splits together say, a mapping for each group."""
        of_groups = zip(*(each.estimates for each in self.measured), strict=True)
        return [{name: over_splits([mine[name] for mine in group]) for name in group[0]} for group in of_groups]

    @cached_property
    def means(self) -> dict[str, FloatArray]:
        """The mean over splits of what has no interval, (n_groups,)."""
        names = self.measured[0].means[0]
        return {n: np.mean([[mine[n] for mine in each.means] for each in self.measured], axis=0) for n in names}

    def triples(self, name: str) -> FloatArray:
        """An estimate of each group with the ends of its 95 % interval, (n_groups, 3)."""
        return np.array([mine[name][:3] for mine in self.estimates])


def with_ends(name: str, found: HeldOutPolicy) -> Mapping[str, FloatArray]:
    """An estimate with the ends of its interval, as the cells of three columns."""
    return dict(zip(ENDS, found.triples(name).T, strict=True))


def value(found: HeldOutPolicy) -> Mapping[str, FloatArray]:
    """Mean outcome per patient; its interval stays within the range that the study declares."""
    values, lows, highs = found.triples("value").T
    least, most = found.value_range
    # No policy is worth what is impossible; an interval still holds its estimate.
    lows, highs = np.maximum(lows, np.minimum(values, least)), np.minimum(highs, np.maximum(values, most))
    return dict(zip(ENDS, (values, lows, highs), strict=True))


def share_of(gain: str, name: str, found: HeldOutPolicy) -> Mapping[str, FloatArray]:
    """A share of what greedy gains; NaN where the interval of that gain reaches 0: a share of what may be nothing."""
    gains = found.triples(gain)[:, 1] > 0
    return dict(zip(ENDS, np.where(gains, found.triples(name).T, np.nan), strict=True))


def difference_se(found: HeldOutPolicy) -> list[float]:
    """The standard error of the difference."""
    return [mine["difference"].standard_error for mine in found.estimates]


def gain_to_break_even(found: HeldOutPolicy) -> list[float]:
    """What greedy would have to gain for this policy to beat one arm for all (`evidence.break_even_gain`).

    inf where that is more than two outcomes can be apart: it is impossible.
    """
    gains = []
    for place, mine in enumerate(found.estimates):
        best = mine["value"].value - mine["difference"].value
        names = (BY_LOT, FOLLOWS, GREEDY_BY_LOT, GREEDY_FOLLOWS)
        by_lot, follows, of_greedy, greedy_follows = (float(found.means[name][place]) for name in names)
        # What follows patients by less than rounding does not follow them.
        ratio = follows / greedy_follows if greedy_follows > ROUNDING * abs(of_greedy) else 0.0
        gain = break_even_gain(best, by_lot, of_greedy, ratio if ratio > ROUNDING else 0.0)
        # One arm for all never beats itself.
        possible = any(mine["difference"][:3]) and gain <= found.value_range[1] - found.value_range[0]
        gains.append(gain if possible else math.inf)
    return gains


def shares(found: HeldOutPolicy) -> Mapping[str, FloatArray]:
    """The share of patients who get each arm."""
    return {name.removeprefix("p_"): values for name, values in found.means.items() if name.startswith("p_")}


def most(name: str, found: HeldOutPolicy) -> float:
    """The largest of all splits."""
    return float(np.max([getattr(each, name) for each in found.measured]))


COLUMNS: Columns[HeldOutPolicy] = {
    "value": value,
    # The mean over folds of the policy's value less that of the arm for all that was chosen elsewhere.
    "difference": partial(with_ends, "difference"),
    # Greedy's value less this.
    "loss": partial(with_ends, "loss"),
    "normalized_loss": partial(share_of, GAIN_OVER_UNIFORM, "normalized_loss"),
    "benefit_kept": partial(share_of, GAIN, "benefit_kept"),
    "difference_se": difference_se,
    "break_even_gain": gain_to_break_even,
    "p_": shares,
    "ess": lambda found: found.means["ess"],
    "epsilon_spent": partial(most, "epsilon_spent"),
    "guess_rate": partial(most, "guess_rate"),
    "guarantee": attrgetter("made.guarantee"),
    "best_arm": attrgetter("best_arm"),
}
