"""The comparison of policies on a log: what all splits say together, a row for each policy, epsilon and group.

Splits, and what is measured on one, are in `splits`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
import pandas as pd

from policies.arrays import FloatArray, IntArray
from policies.optimal.optimum import OptimalSafe, SameWithinLimits
from policies.policy import Policy
from policies.reference import BestFixed, Greedy
from policysim.logs.load_log import Log
from policysim.progress import SILENT, Progress
from policysim.report.findings import NOT_SHOWN, OUTCOME, verdict_of_interval
from policysim.study.declared import LoggedStudy
from policysim.study.study_problem import problem_of_log
from policysim.study.sweep import Groups, asked_for, at, at_each, evaluate_each
from policysim.trials.arms import arms_of, utility_of_arms
from policysim.trials.contrasts import against_highest
from policysim.trials.diagnostics import log_caveats
from policysim.trials.estimators import Moments, minus, over_splits
from policysim.trials.evidence import shown_gain
from policysim.trials.splits import (
    FOLDS,
    GAIN,
    GAIN_OVER_UNIFORM,
    OF_PARTS,
    PARTS,
    WITHIN,
    Measure,
    Measured,
    split_log,
)
from policysim.utility import COSTS

# Splits come by so many at a time, at most so many times.
REPEATS, MOST_TIMES = 20, 8
# What is nearer to a bound than so many errors of a median, or of a share, of splits might be beyond it by others.
CLOSE = 2.0
# A policy that is the same as A on all data, and in so large a share of the splits, is A.
NEARLY_ALL = 0.9


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
        One row per policy, epsilon and group (everyone first), with the columns of `compare` that a log has, and 95 %
        intervals `*_low`, `*_high` beside some; `policy_rows` says what they are.
    """
    templates, epsilons = asked_for([study.policy(name) for name in study.policies], study.epsilons, study.by)
    jobs = [policy for template in templates for policy in at_each(template, epsilons)]
    for_each = [each for each in jobs if each.name == Greedy.name][:1]
    stated = [each for each in jobs if each.uses_epsilon and each == at(each, study.epsilon)]

    def judged(measured: Mapping[Policy, Sequence[Measured]]) -> list[Policy]:
        """Of these the text says whether they are better: the best for each, the best private draw, that in limits."""
        fitted = {each: float(np.mean([split.fitted_value for split in measured[each]])) for each in stated}
        in_limits = [each for each in stated if each.name == OptimalSafe.name]
        return [*for_each, *sorted(fitted, key=lambda each: -fitted[each])[:1], *in_limits]

    if within := same_within_limits(study):
        templates, jobs = [*templates, within], [*jobs, within]
    measured, best_arm = measured_on_splits(study, log, jobs, judged, progress, within=within)
    groups, limits = groups_of(log, study.by), study.utility_range
    rows = []
    for template in templates:
        for epsilon in epsilons:
            policy = at(template, epsilon)
            rows.append(policy_rows(policy, epsilon, measured[policy], groups, best_arm=best_arm, limits=limits))
    table = pd.concat(rows, ignore_index=True)
    if within and not any(each.mean or each.standard_error for each in everyones(measured[within])):
        # One arm for all keeps the limits in all folds.
        table = table.loc[table["policy"] != within.name, ~table.columns.str.startswith(WITHIN)]
    return table


def same_within_limits(study: LoggedStudy) -> SameWithinLimits | None:
    """What the policy that keeps a study's limits is compared with; None if the study does not compare that policy."""
    if OptimalSafe.name not in study.policies:
        return None
    return SameWithinLimits(at_most=dict(study.at_most) or None, capacity=dict(study.capacity) or None)


def measured_on_splits(
    study: LoggedStudy,
    log: Log,
    jobs: Sequence[Policy],
    judged: Callable[[Mapping[Policy, Sequence[Measured]]], Sequence[Policy]],
    progress: Progress = SILENT,
    *,
    within: Policy | None = None,
) -> tuple[dict[Policy, list[Measured]], str]:
    """What each policy is worth on each split, and the arm that is the one for all on most folds.

    More splits are made while others might change the verdict on one of those that `judged` returns. `within` is what
    the policy that keeps the study's limits is compared with, too.
    """
    groups, splits = groups_of(log, study.by), split_log(log, study, progress)
    measured: dict[Policy, list[Measured]] = {policy: [] for policy in jobs}
    chosen = np.zeros(log.data.n_actions)
    for times in range(MOST_TIMES):
        if times and not any(is_close(everyones(measured[policy])) for policy in judged(measured)):
            break
        progress.expect(REPEATS * (FOLDS + len(jobs)))
        for split in islice(splits, REPEATS):
            own = groups if split.log is log else groups_of(split.log, study.by)
            measure = Measure(split, own, tuple(study.capacity), within)
            chosen += measure.chosen
            # What is done in all splits is expected already.
            for policy, found in evaluate_each(jobs, measure, Progress.of(progress.advance)).items():
                measured[policy].append(found)
    return settled(study, log, measured, groups), log.data.names[int(chosen.argmax())]


def settled(
    study: LoggedStudy, log: Log, measured: Mapping[Policy, Sequence[Measured]], groups: Groups
) -> dict[Policy, list[Measured]]:
    """Without the few splits that tell two policies apart which are the same on all data and in `NEARLY_ALL` splits.

    A split makes policies from four fifths of the patients. Whether any split differed decided between "equal" and
    "not shown", and another seed would often have decided otherwise. A policy that gives a group one arm for all is
    measured as A is there.
    """
    groups_as_one = _same_as_one(study, log, measured, groups)
    of_greedy = next((places for policy, places in groups_as_one.items() if policy.name == Greedy.name), ())
    of_one = next((splits for policy, splits in measured.items() if policy.name == BestFixed.name), None)
    changed: dict[Policy, list[Measured]] = {policy: [] for policy in measured}
    for policy, splits in measured.items():
        for split, split_of_one in zip(splits, of_one or splits, strict=True):
            estimates, means = list(split.estimates), list(split.means)
            for group in groups_as_one.get(policy, ()):
                of_group = {**estimates[group], **split_of_one.estimates[group]}
                estimates[group] = _without(of_group, [name for name in of_group if name.startswith("difference")])
                means[group] = split_of_one.means[group]
            for group in of_greedy:
                estimates[group] = _with_one_for_greedy(estimates[group])
            changed[policy].append(split._replace(estimates=estimates, means=means))
    return changed


def _same_as_one(
    study: LoggedStudy, log: Log, measured: Mapping[Policy, Sequence[Measured]], groups: Groups
) -> dict[Policy, set[int]]:
    """Policies that are one arm for all on all data, and in nearly all splits, with the groups where so."""

    def is_nearly_zero(splits: Sequence[Measured], group: int) -> bool:
        return NEARLY_ALL <= _share_without(split.estimates[group]["difference"] for split in splits) < 1

    nearly_zero = {
        policy: {group for group in range(len(groups)) if is_nearly_zero(splits, group)}
        for policy, splits in measured.items()
    }
    if not any(nearly_zero.values()):
        return {}
    problem = problem_of_log(study, log)
    one = BestFixed().probabilities(problem)

    def is_one(policy: Policy, group: int) -> bool:
        records = log.records[groups.rows(group)]
        return not minus(policy.probabilities(problem)[records], one[records]).any()

    return {
        policy: {group for group in places if is_one(policy, group)} for policy, places in nearly_zero.items() if places
    }


def _without(estimates: Mapping[str, Moments], names: Iterable[str]) -> dict[str, Moments]:
    """Estimates of which these are 0."""
    return {**estimates, **{name: replace(estimates[name], mean=0.0, standard_error=0.0) for name in names}}


def _with_one_for_greedy(estimates: Mapping[str, Moments]) -> dict[str, Moments]:
    """Estimates where greedy is one arm for all: it gains nothing, and others lose what they lose to that arm."""
    ends = [end for end in ("", *(f"_{part}" for part in PARTS)) if f"loss{end}" in estimates]
    differences = {end: estimates[f"difference{end}"] for end in ends}
    losses = {f"loss{end}": replace(each, mean=-each.mean) for end, each in differences.items()}
    nothing = [GAIN] if losses["loss"].mean or losses["loss"].standard_error else [GAIN, "normalized_loss"]
    return _without({**estimates, **losses}, nothing)


def judged_on_splits(
    study: LoggedStudy, log: Log, policies: Sequence[Policy], progress: Progress = SILENT
) -> pd.DataFrame:
    """Judge policies by splits of a log, and 95 % intervals of differences, as `compare_log` does.

    Returns
    -------
    DataFrame
        policy, value, low, high (of its difference from the arm for all that did best on the other folds, in utility,
        with its 95 % interval) and verdict; nothing is shown where errors that no interval covers have left signs.
        `.attrs["errors"]` and `.attrs["others"]` are the `log_caveats`; `.attrs["clusters"]` is the number of
        clusters, 0 where patients are independent; `.attrs["best_arm"]` whether one arm is shown to be better than each
        other.
    """
    measured, _ = measured_on_splits(replace(study, by=()), log, policies, lambda _: policies, progress)
    doubts = log_caveats(log, study.log)
    doubted = bool(doubts.errors)
    rows = []
    for policy in policies:
        value, low, high, _ = over_splits(everyones(measured[policy]))
        rows.append((policy.name, value, low, high, NOT_SHOWN if doubted else verdict_of_interval(low, high)))
    judged = pd.DataFrame(rows, columns=["policy", "value", "low", "high", "verdict"])
    means = utility_of_arms(log, arms_of(log, study.log))
    judged.attrs["best_arm"] = not doubted and bool((against_highest(means, log.data, log.predicted)["low"] > 0).all())
    judged.attrs |= {"errors": tuple(doubts.errors), "others": tuple(doubts.others)}
    judged.attrs["clusters"] = 0 if log.data.clusters is None else log.data.n_units
    return judged


def everyones(measured: Sequence[Measured]) -> list[Moments]:
    """The difference of everyone that a policy is judged by, on each split: within limits if that is there."""
    return [split.estimates[0].get(WITHIN, split.estimates[0]["difference"]) for split in measured]


def is_close(differences: Sequence[Moments]) -> bool:
    """Whether other splits might change the verdict on a difference: then more splits are made.

    They might move 0 into its interval, or out of it: the median of n splits has an error of about sqrt(pi / 2) times
    their standard deviation over sqrt(n). Or they might change whether it is 0 in nearly all splits (`settled`): for
    that alone, splits are made twice at most.
    """
    _, low, high, error = over_splits(differences)
    n_splits = len(differences)
    spread = float(np.std([each.mean for each in differences]))
    wobble = math.sqrt(math.pi / 2 / n_splits) * spread
    share, its_error = _share_without(differences), math.sqrt(NEARLY_ALL * (1 - NEARLY_ALL) / n_splits)
    about_nearly_all = n_splits <= REPEATS and share < 1 and abs(share - NEARLY_ALL) < CLOSE * its_error
    return bool(error > 0 and (about_nearly_all or min(abs(low), abs(high)) < CLOSE * wobble))


def _share_without(differences: Iterable[Moments]) -> float:
    """The share of some differences that are exactly 0."""
    return float(np.mean([each.mean == 0 == each.standard_error for each in differences]))


def groups_of(log: Log, by: Sequence[str]) -> Groups:
    """Everyone, and the patients of a log with each level of some features."""

    def levels_of(feature: str) -> tuple[IntArray, tuple[str, ...]]:
        codes, labels = log.space.groups(feature)
        return codes[log.records], labels

    counts = log.data.counts
    return Groups(by, levels_of, np.ones(log.data.n_rows) if counts is None else counts.astype(np.float64))


# What has an interval: the value; how much more it is than that of the arm for all that was chosen on other folds;
# greedy's value less this; and shares of what greedy gains, NaN where the interval of that gain reaches 0.
COLUMNS = ("value", "difference", "loss", "normalized_loss", "benefit_kept")
SHARES_OF = {"normalized_loss": GAIN_OVER_UNIFORM, "benefit_kept": GAIN}
ENDS = ("", "_low", "_high")


def _with_ends(
    said: Mapping[str, FloatArray], names: Iterable[str], ends: Sequence[str] = ENDS
) -> dict[str, FloatArray]:
    """Columns of estimates by name, and of the ends of their intervals."""
    return {f"{name}{end}": said[name][:, ENDS.index(end)] for name in names for end in ends}


def policy_rows(
    policy: Policy,
    epsilon: float,
    measured: Sequence[Measured],
    groups: Groups,
    *,
    best_arm: str,
    limits: tuple[float, float],
) -> pd.DataFrame:
    """What all splits together say of one policy at one epsilon: a row for each group, a column for each number.

    `best_arm` is the one for all that was chosen on most folds; `limits` are the outcomes that the study declares
    possible.
    """
    by_group = list(zip(*(split.estimates for split in measured), strict=True))
    # (n_groups, 4): the estimate, the ends of its 95 % interval, and its standard error.
    said = {
        name: np.array([over_splits([split[name] for split in splits]) for splits in by_group])
        for name in by_group[0][0]
    }
    _make_parts_add_up(said, by_group)
    used = [name for name in said if name.startswith("p_")]
    parts = [name for name in said if name == WITHIN or name.endswith(PARTS)]
    # Nothing is what is impossible; an interval still holds its estimate.
    for name, (lowest, highest) in {"value": limits, **dict.fromkeys(used, (0.0, 1.0))}.items():
        value, low, high = said[name].T[:3]
        said[name][:, 1] = np.maximum(low, np.minimum(value, lowest))
        said[name][:, 2] = np.minimum(high, np.maximum(value, highest))
    # Shares of what may be nothing are none.
    for name, whole in SHARES_OF.items():
        said[name][~(said[whole][:, 1] > 0)] = np.nan
    means = {
        name: np.mean([[group[name] for group in split.means] for split in measured], axis=0)
        for name in measured[0].means[0]
    }
    ess = means.pop("ess")
    return pd.DataFrame(
        {
            "policy": policy.name,
            "epsilon": epsilon,
            "group": [group.feature for group in groups],
            "level": [group.level for group in groups],
            "share": [group.share for group in groups],
            **_with_ends(said, COLUMNS),
            "difference_se": said["difference"][:, 3],
            # What the policy would have to gain for 8 of 10 such logs to show it; of everyone alone.
            "shown_gain": [shown_gain(everyones(measured)), *[math.nan] * (len(groups) - 1)],
            **_with_ends(said, parts),
            **means,
            **_with_ends(said, used, ("_low", "_high")),
            "ess": ess,
            "epsilon_spent": max(split.epsilon_spent for split in measured),
            "guess_rate": float(np.max([split.guess_rate for split in measured])),
            "guarantee": policy.claimed,
            "best_arm": best_arm,
            # What it is worth by the scores that it was made from: the best private draw is chosen by this. Chosen by
            # the estimates that judge it, it would look better than it is.
            "fitted_value": float(np.mean([split.fitted_value for split in measured])),
        }
    )


def _make_parts_add_up(said: Mapping[str, FloatArray], by_group: Sequence[Sequence[Mapping[str, Moments]]]) -> None:
    """Let values, shares, costs and outcomes add up, as medians over splits do not.

    The arm for all, A, is worth the median of what it is worth in each split, and a policy that and its difference. So
    the values of two policies differ as their differences say. Shares and costs are centred at their means over splits,
    in which they are known; outcomes at utility and costs.
    """
    of_a = np.median([[each["value"].mean - each["difference"].mean for each in splits] for splits in by_group], axis=1)
    shift = of_a + said["difference"][:, 0] - said["value"][:, 0]
    said["value"][:, :3] += np.where(np.isnan(shift), 0.0, shift)[:, None]
    for name, found in said.items():
        if name.startswith("p_") or name.endswith(COSTS):
            means = np.mean([[each[name].mean for each in splits] for splits in by_group], axis=1)
            found[:, :3] += (means - found[:, 0])[:, None]
    for what, whole in zip(OF_PARTS, ("value", "difference", WITHIN, "loss"), strict=True):
        if f"{what}_{COSTS}" in said:
            outcome = said[f"{what}_{OUTCOME}"]
            outcome[:, :3] += (said[whole] + said[f"{what}_{COSTS}"] - outcome)[:, :1]
