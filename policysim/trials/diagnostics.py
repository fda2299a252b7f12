"""What can be looked at before a policy is believed.

Balance of the arms and propensities, as tables; and what may be wrong with a log, in words.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtr
from scipy.stats import chi2_contingency, chisquare, f_oneway

from policies.arrays import ROUNDING, BoolArray, FloatArray
from policysim.logs.adjusters import as_read, with_means
from policysim.logs.clusters import patients_of_clusters
from policysim.logs.load_log import Log
from policysim.logs.log_frame import LoggedData, averaged
from policysim.logs.log_source import ESTIMATE, LogSource, is_column, lot_words
from policysim.logs.outcome_models import MOST_PRODUCTS
from policysim.logs.toml_text import toml_string, toml_text, toml_value
from policysim.logs.treatments import lot
from policysim.numbers import several
from policysim.trials.estimators import SMALLEST_ESS, effective_size, importance_weights
from policysim.trials.overlap import find_holes, levels_in_words, where_caveats, without_arm, without_outcome

POINTS = 41  # of each curve of propensities


def balance_of(log: Log, *, products: bool = False) -> pd.DataFrame:
    """How different the arms' patients are, before and after weighting by inverse propensities.

    The standardised difference of two arms is that of their means over the root of the mean of their variances, those
    before weighting (Austin 2009, Balance diagnostics for comparing the distribution of baseline covariates). Of a
    feature with levels each is a share; the largest over all pairs of arms counts.

    Parameters
    ----------
    products : bool, optional
        Whether products of each two of them are compared, too, unless they are more than models have: where
        propensities are estimated, what decided on treatment may be two features together.

    Returns
    -------
    DataFrame
        `feature`, `level` ("" for the number itself of a feature that was cut, or of an adjuster), `before`, `after`.
    """
    data, columns = log.data, list(_columns(log))
    names = [(feature, level) for feature, level, _ in columns]
    values = np.column_stack([each for *_, each in columns])
    rounding = (10 * ROUNDING * np.abs(values).max(axis=0)) ** 2
    values = values - averaged(values, data.counts)
    if products and len(names) * (len(names) - 1) <= 2 * MOST_PRODUCTS:
        one, other = np.triu_indices(len(names), 1)
        apart = np.array([names[i][0] != names[j][0] for i, j in zip(one, other, strict=True)], dtype=np.bool_)
        rounding = np.append(rounding, rounding[one[apart]] * rounding[other[apart]])
        values = np.hstack([values, values[:, one[apart]] * values[:, other[apart]]])
        words = [": ".join(filter(None, name)) for name in names]
        names += [(f"{words[i]} × {words[j]}", "") for i, j in zip(one[apart], other[apart], strict=True)]
    before, after = standardised_differences(data, values, rounding).max(axis=0, initial=0.0)
    return pd.DataFrame(names, columns=["feature", "level"]).assign(before=before, after=after)


def standardised_differences(data: LoggedData, values: FloatArray, rounding: FloatArray | float) -> FloatArray:
    """Those of each two arms that occur, before and after weighting, in some columns: (n_pairs, 2, n_columns).

    They are 0 in columns that vary by no more than `rounding`, a variance.
    """
    arms = [(data.of(rows), values[rows]) for rows in (data.actions == arm for arm in np.unique(data.actions))]
    plain = [averaged(own, mine.counts) for mine, own in arms]
    variances = [averaged((own - mean) ** 2, mine.counts) for (mine, own), mean in zip(arms, plain, strict=True)]
    weights = [mine.inverse_propensities for mine, _ in arms]
    weighted = [weight @ own / weight.sum() for weight, (_, own) in zip(weights, arms, strict=True)]
    found = np.zeros((math.comb(len(arms), 2), 2, values.shape[1]))
    for differences, (i, j) in zip(found, combinations(range(len(arms)), 2), strict=True):
        variance = (variances[i] + variances[j]) / 2
        spread = np.sqrt(np.where(variance > rounding, variance, np.inf))
        differences[:] = np.abs([plain[i] - plain[j], weighted[i] - weighted[j]]) / spread
    return found


def effective_sizes(data: LoggedData) -> FloatArray:
    """The effective sample sizes of the weights of each arm that occurs, or of those of its clusters, if it has any."""
    arms = [data.of(data.actions == arm) for arm in np.unique(data.actions)]
    sizes = [
        effective_size(1 / arm.propensities, arm.counts)
        if arm.clusters is None
        else effective_size(np.bincount(arm.clusters, 1 / arm.propensities).astype(np.float64))
        for arm in arms
    ]
    return np.array(sizes)


def _columns(log: Log) -> Iterator[tuple[str, str, FloatArray]]:
    """What is compared: numbers that were cut, each level but the first of the other features, and adjusters."""
    numbers = set() if log.raw is None else set(map(str, log.raw.columns))
    for name in log.space.names:
        if name in numbers and log.raw is not None:
            yield name, "", with_means(log.raw[[name]].to_numpy(dtype=np.float64))[:, 0]
            continue
        codes, labels = log.space.groups(name)
        mine = codes[log.records]
        for level, label in list(enumerate(labels))[1 if len(labels) == 2 else 0 :]:
            yield name, str(label), (mine == level).astype(np.float64)
    adjusters = pd.DataFrame() if log.adjusters is None else log.adjusters
    for pair, values in zip(adjusters.columns, adjusters.to_numpy().T, strict=True):
        yield str(pair[0]), str(pair[1]), values


# Beyond it arms are called imbalanced (Austin 2009).
IMBALANCE = 0.1


def imbalance_by_chance(data: LoggedData) -> float:
    """The chance that some two arms differ by more than `IMBALANCE` in one feature if treatment were randomised.

    The standardised difference of arms i and j is then about normal with variance 1 / n_i + 1 / n_j, n the effective
    sample sizes of their weights: a simulation with a fixed seed. Where whole clusters were allocated, they are those
    of the clusters' sums of weights, as of a feature that all patients of a cluster share: the chance is at most that.
    """
    sizes = effective_sizes(data if data.whole_clusters is not None else replace(data, clusters=None))
    draws = np.random.default_rng(0).normal(size=(20_000, len(sizes))) / np.sqrt(sizes)
    return float((np.ptp(draws, axis=1) > IMBALANCE).mean())


def propensities_of(data: LoggedData) -> pd.DataFrame:
    """How probable the treatments were that patients got: for each arm the share of its patients up to a propensity.

    Returns
    -------
    DataFrame
        `line` (arm), `propensity`, `value` (share of the arm's patients with at most this); without rows where no two
        patients of an arm differ.
    """
    rows: list[tuple[str, float, float]] = []
    for arm in np.unique(data.actions):
        mine, name = data.of(data.actions == arm), data.names[arm]
        own = mine.propensities
        points = np.unique(np.quantile(own, np.linspace(0, 1, POINTS), weights=mine.counts, method="inverted_cdf"))
        rows += [(name, float(point), float(averaged(own <= point, mine.counts))) for point in points]
    table = pd.DataFrame(rows, columns=["line", "propensity", "value"])
    return table if len(table) > table["line"].nunique() else table.iloc[:0]


# A chance below which equal allocation is called doubtful; shared by all features that are looked at.
DOUBTFUL = 0.001
ESTIMATED = (
    "Propensities are estimated from the {}: whatever else decided who got which treatment "
    "(confounding) biases every number here, and no interval covers that."
)

# Of fewer patients that an arm still has at the horizon, an estimate there is rough; so it is of fewer events by then.
FEWEST_FOLLOWED = FEWEST_EVENTS = 10
# So many columns that were left out are named.
NAMED = 3


class LogCaveats(NamedTuple):
    """What may be wrong with a log, a sentence for each doubt.

    `errors` are signs of what no interval covers, doubtful allocation or propensities, and treatments that some
    patients never get: with them no conclusion is drawn. `others` are guesses of `init` that nobody has read,
    confounding, as far as propensities are estimated, and too few patients.
    """

    errors: Sequence[str] = ()
    others: Sequence[str] = ()


def log_caveats(log: Log, source: LogSource) -> LogCaveats:
    """The doubts about a log, as far as a study says how treatments were given."""
    data = log.data
    by_lot = np.full((data.n_rows, data.n_actions), 1 / data.n_actions)
    finer = "declared features and the columns of adjust_for" if source.adjust_for else "declared features"
    others = [ESTIMATED.format(finer)] if source.propensity == ESTIMATE else []
    if source.unread:
        others.insert(0, source.unread_words)
    ess = effective_size(importance_weights(data, by_lot) * data.known.weights, data.counts)
    if ess < SMALLEST_ESS:
        others.append(
            f"The effective sample size of the log is {ess:,.0f} (treatment at random): below {SMALLEST_ESS} the 95 % "
            "intervals may cover less than they say."
        )
    for name, horizon, patients, censored, followed, events in log.censored.itertuples(index=False):
        at = f"{source.follow_up.time} = {horizon:g}" if source.follow_up else ""
        if followed < FEWEST_FOLLOWED and censored:
            others.append(
                f"Only {followed:,} of {patients:,} patients of {name} are followed to {at}: all numbers about it rest "
                "on them."
            )
        if events < FEWEST_EVENTS:
            others.append(
                f"Only {events:,} of {patients:,} patients of {name} have the event by {at}: what differs between arms "
                "is hardly seen by then."
            )
    others += _left_out(log, source)
    allocation = _allocation(log, source.propensity) if lot_words(source.propensity) else []
    if is_column(source.propensity):
        allocation = _recorded(log, str(source.propensity))
    overlap = where_caveats(data, by_lot, log.covariates)
    if not overlap and source.propensity == ESTIMATE and data.whole_clusters is None:
        overlap = list(without_arm(log))
    return LogCaveats([*_clusters(log), *allocation, *overlap, *without_outcome(log)], others)


def _clusters(log: Log) -> Iterator[str]:
    """Columns by which patients, or rows of one patient, were treated together, and that the study leaves out."""
    line = "intervals are too narrow without this line in [data]"
    for name, values, misplaced in log.deciding:
        but = f", but for {several(misplaced, 'patient')}" if misplaced else ""
        yield (
            f"{toml_text(name)} is left out of the study and decides the treatment: its {values:,} values that repeat "
            f"are each wholly in one arm{but}. If patients were treated together, {line}: "
            f"cluster = {toml_string(name)}"
        )
    for name in [name for name in log.repeated_ids if name not in {column.name for column in log.deciding}]:
        yield (
            f"{toml_text(name)} has the same value in several rows. If they are one patient, {line}: "
            f"cluster = {toml_string(name)}"
        )


def _left_out(log: Log, source: LogSource) -> list[str]:
    """Columns of the file that nothing is said of, in which arms differ beyond chance, also after weighting."""
    if log.undeclared is None or not log.undeclared.shape[1]:
        return []
    data = log.data.of(log.undeclared.index.to_numpy())
    differing = _differing(data, log.undeclared)
    differing = differing[~differing["name"].isin([column.name for column in log.deciding])]  # which are named already
    more = f" (and {len(differing) - NAMED} more columns)" if len(differing) > NAMED else ""
    columns, said = as_read(log.undeclared), []
    for name, difference, chance in differing.head(NAMED).itertuples(index=False, name=None):
        measured = f"standardised difference {difference:.2f}, by chance with probability {chance:.1g}"
        holes = [hole.in_words(data.names[hole.action]) for hole in find_holes(data, columns[[name]])]
        said.append(_left_out_words(name, measured, holes, source) + more)
    return said


def _differing(data: LoggedData, columns: pd.DataFrame) -> pd.DataFrame:
    """Columns, as `read_adjusters` has them, in which arms differ beyond chance after weighting, the worst first.

    The standardised difference of two arms, see `balance_of`, is then about normal with variance 1 / n_i + 1 / n_j, n
    the `effective_sizes`; it is tested at `DOUBTFUL`, shared by all columns and pairs of arms (Bonferroni), and must be
    beyond `IMBALANCE`.

    Returns
    -------
    DataFrame
        `name`, how far two arms are `apart`, and by which `chance`, of the two that differ most.
    """
    values = columns.to_numpy(dtype=np.float64)
    largest = np.abs(values).max(axis=0)
    values = values / np.where(largest > 0, largest, 1)  # the squares of large numbers are no numbers
    apart = standardised_differences(data, values, (10 * ROUNDING) ** 2)[:, 1]
    errors = np.array([math.sqrt(1 / one + 1 / other) for one, other in combinations(effective_sizes(data), 2)])
    chances = 2 * ndtr(-apart / errors[:, None]) * apart.size
    pairs, places = np.nonzero((apart > IMBALANCE) & (chances < DOUBTFUL))
    names = [str(columns.columns[place][0]) for place in places.tolist()]
    found = pd.DataFrame({"name": names, "apart": apart[pairs, places], "chance": chances[pairs, places]})
    return found.sort_values(["apart", "chance"], ascending=[False, True], kind="stable").drop_duplicates("name")


def _left_out_words(name: str, measured: str, holes: Sequence[str], source: LogSource) -> str:
    if lot_words(source.propensity):
        return (
            f"{name} differs between arms ({measured}), and the study says nothing of it: if it is from before "
            "treatment, this is no randomisation of patients."
        )
    if holes:
        return (
            f"{name} differs between arms, after weighting, too ({measured}), and cannot be adjusted for: {holes[0]}. "
            "If it is from before treatment, the log cannot tell what it does from what the treatment does."
        )
    return (
        f"{name} differs between arms, after weighting, too ({measured}), and is not adjusted for: if it is from "
        f"before treatment, outcomes may differ because of it; write adjust_for = "
        f"{toml_value([*source.adjust_for, name])} in [data]."
    )


class Weights(NamedTuple):
    """The sum of 1 / propensity over an arm's rows of a group of patients, and the chance to be so far from theirs."""

    rows: int
    patients: int
    sum: float
    chance: float


class Misfit(NamedTuple):
    """An arm whose weights do not sum to the number of patients: of all, or of those with a level (`where`)."""

    arm: str
    where: str
    weights: Weights


def _recorded(log: Log, column: str) -> list[str]:
    """Where recorded propensities do not fit: 1 / propensity sums over an arm's rows to the number of all rows."""
    data = log.data
    said = [
        f"{column} does not fit: over the {weights.rows:,} rows of “{arm}”{where} 1 / {column} sums to "
        f"{weights.sum:,.0f}, and should sum to about {weights.patients:,}, the number of all rows{where}. Every "
        "number here is biased."
        for arm, where, weights in _misfits(log, data)
    ]
    if said and data.n_actions == 2:
        for arm, name in enumerate(data.names):
            flipped = np.where(data.actions == arm, data.propensities, 1 - data.propensities)
            if (flipped > 0).all() and not _misfits(log, replace(data, propensities=flipped)):
                said[-1] += (
                    f" The column seems to be the probability of “{name}”, not that of the treatment that was "
                    f"received: put 1 - {column} into the rows of “{data.names[1 - arm]}”."
                )
                break
    return said


def _misfits(log: Log, data: LoggedData) -> list[Misfit]:
    """The arms whose weights do not sum to 1 per patient, over all patients or over those with a level of a feature.

    Tested at `DOUBTFUL`, shared by all arms and groups (Bonferroni). An arm is named once: with all patients, or else
    with the level whose sum is least probable.
    """
    everybody = np.ones(data.n_rows, dtype=np.bool_)
    found = []
    for arm in np.unique(data.actions):
        own = data.actions == arm
        of_groups = [("", _weights(data, own, everybody))]
        of_groups += [(f" with {where}", _weights(data, own, rows)) for where, rows in levels_in_words(log)]
        limit = DOUBTFUL / (len(of_groups) * data.n_actions)
        doubtful = [(where, weights) for where, weights in of_groups if weights.chance < limit]
        if doubtful:
            where, weights = doubtful[0] if not doubtful[0][0] else min(doubtful, key=lambda each: each[1].chance)
            found.append(Misfit(data.names[arm], where, weights))
    return found


def _weights(data: LoggedData, own: BoolArray, group: BoolArray) -> Weights:
    """The weights 1 / propensity of an arm's rows in a group, of which they are to make up for all patients.

    By Bernstein's inequality the weights of n patients, none above M, sum to n ± t or worse with a probability of at
    most 2 exp(-t² / 2 / (n (M - 1) + M t / 3)). M is the largest weight of the arm. Of clusters, which are treated
    alike, it is the largest sum of one, and the variance is n M at most.
    """
    counts = np.ones(data.n_rows) if data.counts is None else data.counts
    weights, rows = 1 / data.propensities, own & group
    n, reached = float(counts[group].sum()), float(data.inverse_propensities[rows].sum())
    largest = float(weights[own].max())
    variance = n * (largest - 1)
    if data.clusters is not None:
        largest = float(np.bincount(data.clusters[own], weights[own]).max())
        variance = n * largest
    apart = abs(reached - n)
    exponent = apart**2 / 2 / max(variance + largest * apart / 3, ROUNDING)
    return Weights(int(counts[rows].sum()), int(n), reached, min(1.0, 2 * math.exp(-exponent)))


def _allocation(log: Log, propensity: str | tuple[float, ...]) -> list[str]:
    """Where a declared lot does not look like one: chi-square tests of the arms and each feature, and `_differing`."""
    k = log.data.n_actions
    doubtful = f"propensity = {lot_words(propensity) if isinstance(propensity, tuple) else toml_string(propensity)}"
    chances = lot(propensity, k)
    whole, unit = log.data.whole_clusters, "clusters"
    if whole is None:
        whole, unit = log.data.by_action(), "patients"
    found = []
    # Shares are what the arms have.
    chance = 1.0 if chances is None else float(chisquare(whole, whole.sum() * chances).pvalue)
    if chance < DOUBTFUL:
        shown = ", ".join(f"{name} {n:,}" for name, n in zip(log.data.names, whole, strict=True))
        found.append(
            f"{doubtful} is doubtful: the treatments have {shown} {unit}, which a randomisation gives with "
            f"probability {chance:.1g}."
        )
    for name in log.space.names:
        chance = _chance_of_feature(log, name)
        if chance < DOUBTFUL / len(log.space.names):
            found.append(
                f"{doubtful} is doubtful: who got which treatment depends on {name} (a randomisation gives that "
                f"with probability {chance:.1g}); without the true propensities every number here is biased."
            )
    if log.adjusters is not None:
        for name, apart, chance in _differing(log.data, log.adjusters).itertuples(index=False, name=None):
            found.append(
                f"{doubtful} is doubtful: {name}, which is adjusted for, differs between arms (standardised difference "
                f"{apart:.2f}, by chance with probability {chance:.1g}). If it came after treatment, adjusting for it "
                "takes a part of the effect away: leave it out of adjust_for."
            )
    return found


def _chance_of_feature(log: Log, name: str) -> float:
    """The chance that a randomisation makes the arms differ so much in a feature, by Pearson's chi-square test.

    Of whole clusters that were allocated, by the analysis of variance of each level's share among a cluster's patients,
    and the least of these chances counts as often as there are levels (Bonferroni).
    """
    codes, labels = log.space.groups(name)
    levels, data = codes[log.records], log.data
    if data.clusters is not None and data.whole_clusters is not None:
        table = patients_of_clusters(data.clusters, data.actions, data.n_actions)
        crossed = patients_of_clusters(data.clusters, levels, len(labels))
        there = table.sum(axis=1) > 0
        shares = crossed[there] / crossed[there].sum(axis=1, keepdims=True)
        arms = table[there].argmax(axis=1)
        varying = np.ptp(shares, axis=0) > 0
        tests = f_oneway(*(shares[arms == arm][:, varying] for arm in np.unique(arms))).pvalue
        return min(1.0, float(np.nanmin(tests, initial=1.0)) * int(varying.sum()))
    crossed = np.zeros((len(labels), data.n_actions), dtype=np.intp)
    np.add.at(crossed, (levels, data.actions), 1 if data.counts is None else data.counts)
    crossed = crossed[crossed.sum(axis=1) > 0][:, crossed.sum(axis=0) > 0]
    return float(chi2_contingency(crossed).pvalue) if len(crossed) > 1 else 1.0
