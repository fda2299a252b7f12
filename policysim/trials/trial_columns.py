"""The comparison of policies on a log: each made from one part, and evaluated on patients that had no part in that.

First the repeated splits, and what is measured of one policy on one split, group by group; then what all splits say
together, a row for each policy, epsilon and group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

import numpy as np
import pandas as pd

from policies.arrays import FloatArray, IntArray
from policies.optimal.optimum import OptimalSafe, SameWithinLimits
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.reference import BestFixed, Greedy, Uniform
from policysim.files.bad_rows import DataError
from policysim.logs.load_log import Log
from policysim.logs.log_frame import LoggedData, averaged
from policysim.logs.outcome_models import robust_values
from policysim.progress import SILENT, Progress
from policysim.report.findings import NOT_SHOWN, OUTCOME, verdict_of_interval
from policysim.study.checks import checked_tables, guess_rate_of
from policysim.study.declared import LoggedStudy, build_adjacency
from policysim.study.study_problem import fit_problem, problem_of_log
from policysim.study.sweep import Groups, asked_for, at, at_each, evaluate_each, prepare
from policysim.trials.arms import arm_means, arms_of, utility_of_arms
from policysim.trials.contrasts import against_highest
from policysim.trials.diagnostics import log_caveats
from policysim.trials.estimate_value import row_values
from policysim.trials.estimators import NOTHING, Moments, effective_size, minus, moments, one_more, over_splits
from policysim.trials.evidence import shown_gain
from policysim.utility import COSTS

# Splits come by so many at a time, at most so many times.
REPEATS, MOST_TIMES = 20, 8
# What is nearer to a bound than so many errors of a median, or of a share, of splits might be beyond it by others.
CLOSE = 2.0
# A policy that is the same as A on all data, and in so large a share of the splits, is A.
NEARLY_ALL = 0.9
FOLDS = 5
FEWEST_PATIENTS = 10


@dataclass(frozen=True, eq=False)
class Split:
    """A log, split at random into folds.

    Attributes
    ----------
    log : Log
        All of it. Of a counted log, each row is divided among the folds.
    folds : array, (n_rows,)
        The fold of each row.
    problems : tuple of DecisionProblem
        Number j is fitted to the rows outside fold j.
    scores : array, (n_rows, n_actions)
        u(x, a) of each row, fitted without it: policies are made from them.
    values : array, (n_rows, n_actions)
        The doubly robust value of each arm to each row (Robins, Rotnitzky & Zhao 1994): what an outcome model that was
        fitted without the row predicts, and of the arm that was given the weighted residual, too; less what the arm
        costs. The model is that of the scores, or where there is `Log.predicted` that of it.
    """

    log: Log
    folds: IntArray
    problems: tuple[DecisionProblem, ...]
    scores: FloatArray
    values: FloatArray

    def evaluate(self, policy: Policy) -> tuple[FloatArray, float, float, float]:
        """Make the policy for each fold from all others: nobody is treated by a version that was made with them.

        p(a|x) of each patient, (n_rows, n_actions); of all versions the largest loss and guess rate (or NaN), and the
        mean of what each is worth by the scores that it was made from.
        """
        table = np.empty_like(self.scores)
        losses, rates, worth = [], [], []
        for fold, problem in enumerate(self.problems):
            rows = self.folds == fold
            _, mine, spent = checked_tables(policy, problem)
            table[rows] = mine[self.log.records[rows]]
            losses.append(spent)
            rates.append(guess_rate_of(mine, problem, spent))
            worth.append(problem.value(mine))
        return table, float(np.max(losses)), float(np.max(rates)), float(np.mean(worth))


def split_log(log: Log, study: LoggedStudy, progress: Progress = SILENT) -> Iterator[Split]:
    """Independent random splits into `FOLDS` folds without end, from the study's seed; progress counts the folds.

    Raises
    ------
    ValueError
        Names an arm with fewer than `FEWEST_PATIENTS` rows.
    """
    counts = log.data.by_action(log.data.known.weights > 0)
    few = [f"{name} has {n}" for name, n in zip(log.data.names, counts, strict=True) if n < FEWEST_PATIENTS]
    if few:  # what a model says of an arm that nobody got is a guess
        raise DataError(
            f"each treatment needs at least {FEWEST_PATIENTS} patients with an outcome, {', '.join(few)}: leave it out "
            "of [data.treatments] and of the log."
        )
    rng = np.random.default_rng(study.seed)
    adjacency = build_adjacency(study)
    while True:
        dealt, folds = log.dealt(FOLDS, rng)
        scores = np.empty((dealt.data.n_rows, log.data.n_actions))
        problems = []
        for fold in range(FOLDS):
            mine = folds == fold
            problem = fit_problem(dealt, ~mine, study, adjacency)
            scores[mine] = problem.utilities[dealt.records[mine]]
            problems.append(problem)
            progress.advance()
        # Costs are known: outcomes alone are predicted.
        outcomes = scores if log.data.costs is None else scores + log.data.costs
        values = robust_values(dealt.data, outcomes if dealt.predicted is None else dealt.predicted)
        values = log.data.less_costs(values)
        yield Split(dealt, folds, tuple(problems), scores, values)


def calibration_of(log: Log, study: LoggedStudy) -> pd.DataFrame:
    """What the scores predict beside what was seen, in thirds of each arm's patients by their scores.

    A score is that of the arm that the patient got, in the first split: fitted without the patient.

    Returns
    -------
    DataFrame
        `line` (arm), `predicted` (mean score, weighted by inverse propensities), `value` (mean outcome, see
        `arm_means`) with its 95 % interval `low`, `high`, and `patients`. Thirds of fewer than `FEWEST_PATIENTS` are
        left out; patients of equal scores are in the same third.
    """
    split = next(split_log(log, study))
    data = split.log.data
    # What arms cost is not predicted.
    scores = data.of_taken(split.scores if data.costs is None else split.scores + data.costs)
    rows = []
    for arm, name in enumerate(data.names):
        own = np.flatnonzero(data.actions == arm)
        of_arm = data.of(own)
        # The scores of the patients who stand there.
        places = (np.floor(np.multiply((1 / 3, 2 / 3), of_arm.n_patients - 1)) + 0.5) / of_arm.n_patients
        cuts = np.unique(np.quantile(scores[own], places, weights=of_arm.counts, method="inverted_cdf"))
        thirds = np.searchsorted(cuts, scores[own])
        for third in np.unique(thirds):
            members = own[thirds == third]
            patients = data.of(members)
            if patients.n_patients >= FEWEST_PATIENTS:
                predicted = float(np.average(scores[members], weights=patients.inverse_propensities))
                _, n, *seen = arm_means(patients, study.log.utility_range).iloc[arm]
                rows.append((name, predicted, *seen, n))
    return pd.DataFrame(rows, columns=["line", "predicted", "value", "low", "high", "patients"])


def ratio_of_means(
    part: FloatArray, whole: FloatArray, counts: IntArray | None = None, *, clusters: IntArray | None = None
) -> Moments:
    """mean(part) / mean(whole), with the delta method's error: of the mean of (part - ratio whole) / mean(whole)."""
    below = float(averaged(whole, counts)) if len(whole) else 0.0
    if below == 0:
        return NOTHING
    ratio = float(averaged(part, counts)) / below
    apart = moments(minus(part, ratio * whole), counts, clusters=clusters)
    return replace(apart, mean=ratio, standard_error=abs(apart.standard_error / below))


# Estimates that are no columns: what greedy gains over uniform, and over one arm for all.
GAIN_OVER_UNIFORM, GAIN = "gain over uniform", "gain"
# How the policy that keeps a study's limits differs from `SameWithinLimits`: one arm for all may be impossible there.
WITHIN = "difference_within"
# The two parts of a utility with costs, as columns: what is expected, and how it differs from one arm for all, within
# limits, and from greedy.
PARTS, OF_PARTS = (OUTCOME, COSTS), ("expected", "difference", WITHIN, "loss")


class Measured(NamedTuple):
    """One policy on one split, a mapping for each group: estimates by name, and means of what has no interval."""

    estimates: list[dict[str, Moments]]
    means: list[dict[str, float]]
    epsilon_spent: float
    guess_rate: float
    fitted_value: float


class _Group(NamedTuple):
    """Some patients: which rows, and what the log says of them."""

    rows: IntArray
    data: LoggedData

    def moments(self, contributions: FloatArray, beyond: FloatArray | None = None) -> Moments:
        """Those of what all rows contribute, (n_rows,), in this group; of a difference with `Measure._beyond`."""
        unseen = 0.0 if beyond is None or not len(self.rows) else one_more(beyond[self.rows], self.data)
        return moments(contributions[self.rows], self.data.counts, unseen, clusters=self.data.clusters)

    def value(self, contributions: FloatArray, weights: FloatArray | None) -> Moments:
        """The same of a value; of outcomes 0 and 1 that do not vary at all, with `weights` of rows, as if some did."""
        found = self.moments(contributions)
        return found if weights is None or found.standard_error else self.moments(contributions, weights)

    def ratio(self, part: FloatArray, whole: FloatArray) -> Moments:
        """The `ratio_of_means` of what all rows contribute, in this group."""
        return ratio_of_means(part[self.rows], whole[self.rows], self.data.counts, clusters=self.data.clusters)


class Measure:
    """Measures policies on one split, group by group.

    Attributes
    ----------
    chosen : array, (n_actions,)
        The share of patients for whom each arm is the one for all that was chosen on the other folds.
    """

    def __init__(self, split: Split, groups: Groups, limited: Sequence[str] = (), within: Policy | None = None) -> None:
        for problem in split.problems:
            prepare(problem)
        data, values = split.log.data, split.values
        self._split, self._limited = split, [data.names.index(name) for name in limited]
        self._greedy, uniform, self._one = (split.evaluate(each())[0] for each in (Greedy, Uniform, BestFixed))
        self._within = None if within is None else split.evaluate(within)[0]
        self.chosen = averaged(self._one, data.counts)
        self._value_of_greedy = row_values(self._greedy, values)
        self._over_uniform = minus(self._value_of_greedy, row_values(uniform, values))
        self._gain = minus(self._value_of_greedy, row_values(self._one, values))
        self._binary = data.is_binary
        beyond = self._beyond(self._greedy, self._one)
        self._groups = [_Group(rows, data.of(rows)) for rows in map(groups.rows, range(len(groups)))]
        # No policy changes these.
        self._gains = [
            {GAIN_OVER_UNIFORM: group.moments(self._over_uniform), GAIN: group.moments(self._gain, beyond)}
            for group in self._groups
        ]

    def __call__(self, policy: Policy) -> Measured:
        """Make the policy outside of each fold and measure it there."""
        table, *of_versions = self._split.evaluate(policy)
        data, values = self._split.log.data, row_values(table, self._split.values)
        # Rows without an outcome are made up for by the others, whose weights grow.
        weights = data.of_taken(table) / data.propensities * data.known.weights
        loss = minus(self._value_of_greedy, values)
        others = self._compared_with(policy)
        apart = {name: minus(values, row_values(other, self._split.values)) for name, other in others.items()}
        beyond = {name: self._beyond(table, other) for name, other in others.items()}
        parts = self._parts(table, others)
        estimates, means = [], []
        for group, gains in zip(self._groups, self._gains, strict=True):
            estimates.append(
                {
                    "value": group.value(values, weights if self._binary else None),
                    "loss": group.moments(loss),
                    "normalized_loss": group.ratio(loss, self._over_uniform),
                    "benefit_kept": group.ratio(apart["difference"], self._gain),
                }
                | {name: group.moments(apart[name], beyond[name]) for name in others}
                | gains
                | {name: group.moments(part) for name, part in parts.items()}
            )
            shares = averaged(table[group.rows], group.data.counts).tolist()
            chosen = {f"p_{name}": share for name, share in zip(data.names, shares, strict=True)}
            means.append(chosen | {"ess": effective_size(weights[group.rows], group.data.counts)})
        return Measured(estimates, means, *of_versions)

    def _compared_with(self, policy: Policy) -> dict[str, FloatArray]:
        """Tables that a policy's differences are from, by name."""
        others = {"difference": self._one}
        if self._within is not None and policy.name == OptimalSafe.name:
            others[WITHIN] = self._within
        return others

    def _parts(self, table: FloatArray, others: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        """What is estimated of a policy beside its value, a number for each row: use of limited arms, and `PARTS`.

        Costs are known exactly for each patient; what is estimated is their mean over other patients.
        """
        data, names = self._split.log.data, self._split.problems[0].actions
        parts = {f"p_{names[arm]}": table[:, arm] for arm in self._limited}
        if data.costs is None:
            return parts
        costs = np.broadcast_to(data.costs, table.shape)
        for name, values in zip(PARTS, (self._split.values + costs, costs), strict=True):
            mine = row_values(table, values)
            parts[f"expected_{name}"] = mine
            parts |= {f"{what}_{name}": minus(mine, row_values(other, values)) for what, other in others.items()}
            parts[f"loss_{name}"] = minus(row_values(self._greedy, values), mine)
        return parts

    def _beyond(self, table: FloatArray, other: FloatArray) -> FloatArray | None:
        """The weight of how far a policy gives a row's own arm more, or less, than another does, (n_rows,).

        None where outcomes are not 0 and 1: there it is not asked for.
        """
        data = self._split.log.data
        return data.of_taken(np.abs(table - other)) / data.propensities if self._binary else None


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
    alike = _same_as_one(study, log, measured, groups)
    greedy = next((policy for policy in alike if policy.name == Greedy.name), None)
    of_one = next((splits for policy, splits in measured.items() if policy.name == BestFixed.name), None)
    told: dict[Policy, list[Measured]] = {policy: [] for policy in measured}
    for policy, splits in measured.items():
        for split, measured_as in zip(splits, of_one or splits, strict=True):
            estimates, means = list(split.estimates), list(split.means)
            for group in range(len(groups)):
                if group in alike.get(policy, ()):
                    found = {**estimates[group], **measured_as.estimates[group]}
                    estimates[group] = _without(found, [name for name in found if name.startswith("difference")])
                    means[group] = measured_as.means[group]
                if greedy and group in alike[greedy]:
                    estimates[group] = _with_one_for_greedy(estimates[group])
            told[policy].append(split._replace(estimates=estimates, means=means))
    return told


def _same_as_one(
    study: LoggedStudy, log: Log, measured: Mapping[Policy, Sequence[Measured]], groups: Groups
) -> dict[Policy, set[int]]:
    """Policies that are one arm for all on all data, and in nearly all splits, with the groups where so."""

    def is_nearly_zero(splits: Sequence[Measured], group: int) -> bool:
        return NEARLY_ALL <= _share_without(split.estimates[group]["difference"] for split in splits) < 1

    mostly = {
        policy: {group for group in range(len(groups)) if is_nearly_zero(splits, group)}
        for policy, splits in measured.items()
    }
    if not any(mostly.values()):
        return {}
    problem = problem_of_log(study, log)
    one = BestFixed().probabilities(problem)

    def is_one(policy: Policy, group: int) -> bool:
        records = log.records[groups.rows(group)]
        return not minus(policy.probabilities(problem)[records], one[records]).any()

    return {policy: {group for group in places if is_one(policy, group)} for policy, places in mostly.items() if places}


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
