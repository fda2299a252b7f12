"""Outcomes that take time: free of an event at a horizon, where some patients were followed for less (are censored).

From hazards, those of Kaplan and Meier's estimator or of Cox's model (1972), one number for each patient that may be
averaged like any other outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np
import pandas as pd
from scipy.optimize import minimize

from envs.toml_reader import InputFileError, one_line
from policies.arrays import ROUNDING, BoolArray, FloatArray, IntArray
from policies.levels import LevelKey, level_key, level_of
from policysim.files.bad_rows import BadRows
from policysim.files.data_table import DataTable, coded, meanings, missing, numbers
from policysim.logs.log_frame import LoggedData, Observed, summed
from policysim.logs.log_source import (
    CENSORED,
    COMPETING,
    EVENT,
    MISSING_OUTCOME,
    REFUSE,
    STATE_KEYS,
    STATES,
    WORST,
    ZERO_ONE,
    FollowUp,
    LogSource,
)
from policysim.logs.outcome_models import one_thread, with_products
from policysim.logs.outcomes import MOST_WORDS, place_in_study
from policysim.logs.toml_text import toml_string, toml_value
from policysim.numbers import percent


def pseudo_outcomes(
    times: FloatArray,
    states: IntArray | BoolArray,
    horizon: float,
    counts: IntArray | None = None,
    relative: FloatArray | None = None,
) -> tuple[FloatArray, Observed]:
    """Being free of the event at a horizon, made from what was seen of each patient of one arm.

    A patient to whom a competing event happened is free of the event for ever, and at risk of nothing.

    Parameters
    ----------
    times : array, (n,)
        Of an event, or of the end of follow-up.
    states : array of int, (n,)
        Which of them: `CENSORED` (0), `EVENT` (1) or `COMPETING` (2).
    horizon : float
        Somebody is followed to it, or nobody is censored last.
    counts : array of int, (n,), optional
        How many patients each stands for.
    relative : array, (n, 3), optional
        The logarithm of each patient's hazard of being censored, of the event, and of a competing one, over the arm's
        own: see `relative_hazards`. By default all patients have the arm's.

    Returns
    -------
    pseudo : array, (n,)
        One number for each patient, whose mean is the estimate of the probability of being free; without censoring
        before the horizon, 1 or 0. It may be any number.
    observed : Observed
        For outcome models: 1 or 0 where it is known whether the patient is free, with the inverse probability of that
        as weight; weight 0 elsewhere.

    Notes
    -----
    With S the probability of no event of either kind, F the cumulative incidence of the event and G the probability of
    not being censored, t the horizon and u the patient's time, the patient's state is known if an event happened at
    u <= t, or if u >= t. Inverse probability of censoring weights are then 1 / G just before min(u, t) (Robins &
    Rotnitzky 1992). To the weighted state is added what a censored patient's follow-up adds, sum over times v < t of
    Q(v) dM(v) / G(v), with M the martingale of censoring and Q(v) = 1 - (F(t) - F(v)) / S(v) the probability that who
    is at risk after v is free at t; without competing events that is S(t) / S(v). So the mean of these numbers is right
    if either the hazards of censoring or those of events are, given what `relative` was made from (Rubin & van der Laan
    2007, A doubly robust censoring unbiased transformation), and whatever takes the mean of outcomes, a doubly robust
    estimate included, may take the mean of these.

    Where all patients have the arm's hazards, the second part sums to 0, and the mean is Kaplan and Meier's estimate
    (Satten & Datta 2001), or with competing events Aalen and Johansen's (1978), 1 - F(t). The variance of the mean is
    then Greenwood's (1926): the numbers are the influence function of S(t) (Andersen, Klein & Rosthoj 2003 call them
    pseudo-observations).

    The hazard of a patient at a time is exp(relative) times the arm's, which is Breslow's (1974): events over the sum
    of exp(relative) of the patients at risk, so that the martingales of an arm sum to 0 at each time. At equal times
    events come before censorings, so that a patient who is censored at t is known to be free at t.
    """
    relative = np.zeros((len(times), len(STATES))) if relative is None else relative
    curves = Hazards.of(times, states, np.ones(len(times)) if counts is None else counts, relative)
    is_free, ended = free_at(times, states, horizon), states != CENSORED
    known = ~np.isnan(is_free)
    is_free = np.where(known, is_free, 0.0)
    before = np.searchsorted(curves.times, np.minimum(times, horizon), side="left")
    # A patient is at risk of censoring at a time unless an event happens at it, or has happened.
    exposed = np.searchsorted(curves.times, times, side="right") - ended
    position = np.searchsorted(curves.times, times)
    pseudo, weights = np.zeros((2, len(times)))
    # Patients with the same hazards have the same curves.
    kinds, kind = np.unique(relative, axis=0, return_inverse=True)
    order = np.argsort(kind, kind="stable")
    step = max(1, MOST_ENTRIES // len(curves.times))
    for first in range(0, len(kinds), step):
        some = order[slice(*np.searchsorted(kind[order], (first, first + step)))]
        followed, gain, compensator = curves.ahead(kinds[first : first + step], horizon)
        curve = kind[some] - first
        weights[some] = np.where(known[some], 1 / followed[curve, before[some]], 0.0)
        adds = np.where(ended[some], 0.0, gain[curve, position[some]]) - compensator[curve, exposed[some]]
        pseudo[some] = weights[some] * is_free[some] + adds
    return pseudo, Observed(is_free, weights)


def free_at(times: FloatArray, states: IntArray | BoolArray, horizon: float) -> FloatArray:
    """Whether each patient is free of the event at a horizon, 1 or 0; NaN where follow-up ended before, (n,).

    Examples
    --------
    >>> free_at(np.array([1.0, 2.0, 3.0, 9.0]), np.array([EVENT, CENSORED, COMPETING, CENSORED]), 5.0).tolist()
    [0.0, nan, 1.0, 1.0]
    """
    by_then = (states != CENSORED) & (times <= horizon)
    is_free = ~(by_then & (states == EVENT))
    return np.where(by_then | (times >= horizon), is_free, np.nan)


# Of tables of curves, that are made at a time.
MOST_ENTRIES = 2_000_000
# A patient's hazard at one time is at most this, or the arm's own where that is larger.
MOST_HAZARD = 0.5


@dataclass(frozen=True, eq=False)
class Hazards:
    """The hazards of an arm at each of its distinct times, (m,): of being censored, of the event, of a competing one.

    `times` are rising; `hazards` is (3, m).
    """

    times: FloatArray
    hazards: FloatArray

    @classmethod
    def of(
        cls, times: FloatArray, states: IntArray | BoolArray, sizes: FloatArray | IntArray, relative: FloatArray
    ) -> Hazards:
        """Breslow's estimators from rows that stand for so many patients; with `relative` 0, Kaplan and Meier's."""
        distinct, position = np.unique(times, return_inverse=True)
        hazards = np.zeros((3, len(distinct)))
        for cause in STATES:
            happened = np.bincount(position, sizes * (states == cause), len(distinct))
            exposed = sizes * np.exp(relative[:, cause])
            at_risk = np.bincount(position, exposed)[::-1].cumsum()[::-1]
            if cause == CENSORED:  # events come first
                at_risk = at_risk - np.bincount(position, exposed * (states != CENSORED), len(distinct))
            np.divide(happened, at_risk, out=hazards[cause], where=happened > 0)
        return cls(distinct, hazards)

    def ahead(self, relative: FloatArray, horizon: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What `pseudo_outcomes` needs of some patients' curves, whose hazards are exp(relative) times these, (k, 3).

        Returns
        -------
        followed : array, (k, m + 1)
            G before each time, and after the last.
        gain : array, (k, m)
            Q / G at each time before the horizon; else 0.
        compensator : array, (k, m + 1)
            The sum of it times the hazard of censoring before each time, and after the last.
        """
        hazards = np.exp(relative)[:, :, None] * self.hazards
        np.minimum(hazards, np.maximum(self.hazards, MOST_HAZARD), out=hazards)
        censoring, event, competing = hazards[:, CENSORED], hazards[:, EVENT], hazards[:, COMPETING]
        followed, free = (1 - censoring).cumprod(axis=1), np.maximum(1 - event - competing, 0).cumprod(axis=1)
        incidence = np.cumsum(event * _shifted(free, 1.0)[:, :-1], axis=1)
        until = int(np.searchsorted(self.times, horizon, side="right"))
        at_horizon = incidence[:, until - 1 : until] if until else np.zeros((len(hazards), 1))
        early = (self.times < horizon) & (free > 0) & (followed > 0)
        still = 1 - np.divide(at_horizon - incidence, free, out=np.zeros(free.shape), where=early)
        gain = np.divide(still, followed, out=np.zeros(free.shape), where=early)
        return _shifted(followed, 1.0), gain, _shifted((gain * censoring).cumsum(axis=1), 0.0)


def _shifted(curves: FloatArray, first: float) -> FloatArray:
    """(k, m) -> (k, m + 1), with the same number before all others."""
    return np.hstack([np.full((len(curves), 1), first), curves])


# Ridge penalties of the slopes, in events.
PENALTIES = (300.0, 30.0, 3.0)
# Of fewer events, or fewer patients without one, no slope is fitted.
FEWEST_EVENTS = 10
# Of more rows, slopes are fitted to so many, drawn at random: their error is then far below that of the arm.
MOST_FITTED = 20_000


def relative_hazards(
    covariates: FloatArray, ranks: IntArray, happened: BoolArray, parts: IntArray, counts: IntArray | None = None
) -> FloatArray:
    """The logarithm of each patient's hazard over that of a mean patient of the arm, (n,), by a model without the row.

    Parameters
    ----------
    covariates : array, (n, n_covariates)
        Of the patients of one arm.
    ranks : array of int, (n,)
        The order of their times; equal ones are ties.
    happened : array of bool, (n,)
        Whether what the hazard is of happened then.
    parts : array of int, (n,)
        Rows of the same part are predicted by a model that was fitted without them.
    counts : array of int, (n,), optional
        How many patients each row stands for.

    Returns
    -------
    array, (n,)
        All 0 where no model predicts held-out rows better than the arm alone does: then everything that is made of
        them is what Kaplan and Meier's estimators say.

    Notes
    -----
    Ridge regression by the partial likelihood, ties as Breslow (1974) has them; on the covariates, or on their pairwise
    products as well. Penalty and covariates are those of the largest cross-validated partial likelihood (Verweij & van
    Houwelingen 1993, Cross-validation in survival analysis).
    """
    sizes = np.ones(len(ranks)) if counts is None else counts.astype(np.float64)
    nothing = np.zeros(len(ranks))
    centre, spread = covariates.mean(axis=0), covariates.std(axis=0)
    varies = spread > 10 * ROUNDING * np.abs(centre)
    if not varies.any() or min(sizes[happened].sum(), sizes[~happened].sum()) < FEWEST_EVENTS:
        return nothing
    scaled = (covariates[:, varies] - centre[varies]) / spread[varies]
    designs = {design.shape[1]: design for design in (scaled, with_products(scaled))}
    rows = np.arange(len(ranks))
    if len(rows) > MOST_FITTED:
        rows = np.sort(np.random.default_rng(0).choice(len(ranks), MOST_FITTED, replace=False))
    of_all = Likelihood.of(ranks[rows], happened[rows], sizes[rows])
    folds = [(parts == part, rows[parts[rows] != part]) for part in np.unique(parts)]
    fitted = [(held_out, rest, Likelihood.of(ranks[rest], happened[rest], sizes[rest])) for held_out, rest in folds]
    best = sum(of_all.at(nothing[rows])[0] - of_rest.at(nothing[rest])[0] for _, rest, of_rest in fitted)
    chosen = nothing
    for design in designs.values():
        slopes = np.zeros((len(fitted), design.shape[1]))
        for penalty in PENALTIES:
            gained, relative = 0.0, np.zeros(len(ranks))
            for fold, (held_out, rest, of_rest) in enumerate(fitted):
                with one_thread():  # of so small products
                    slopes[fold] = of_rest.fit(design[rest], penalty, slopes[fold])
                gained += of_all.at(design[rows] @ slopes[fold])[0] - of_rest.at(design[rest] @ slopes[fold])[0]
                relative[held_out] = design[held_out] @ slopes[fold]
            if gained > best:
                best, chosen = gained, relative
    return chosen


@dataclass(frozen=True, eq=False)
class Likelihood:
    """Cox's partial likelihood of some rows.

    Attributes
    ----------
    position : array of int, (n,)
        Of each row among the distinct times.
    events : array, (n,)
        How many patients of the row the event happened to.
    sizes : array, (n,)
        How many patients the row stands for.
    at_time : array, (m,)
        How many events there are at each time.
    """

    position: IntArray
    events: FloatArray
    sizes: FloatArray
    at_time: FloatArray

    @classmethod
    def of(cls, ranks: IntArray, happened: BoolArray, sizes: FloatArray) -> Likelihood:
        """From the order of times, whether it was the event, and how many patients each row stands for."""
        position = np.unique(ranks, return_inverse=True)[1]
        events = np.where(happened, sizes, 0.0)
        at_time: FloatArray = np.bincount(position, events).astype(np.float64)
        return cls(position, events, sizes, at_time)

    def at(self, relative: FloatArray) -> tuple[float, FloatArray]:
        """The logarithm of the likelihood where hazards are exp(relative) times the arm's, (n,), and its derivative."""
        hazards = self.sizes * np.exp(relative)
        at_risk = np.bincount(self.position, hazards)[::-1].cumsum()[::-1]
        seen = self.at_time > 0
        value = float(self.events @ relative - self.at_time[seen] @ np.log(at_risk[seen]))
        increments = np.divide(self.at_time, at_risk, out=np.zeros(len(at_risk)), where=seen)
        return value, self.events - hazards * np.cumsum(increments)[self.position]

    def fit(self, design: FloatArray, penalty: float, start: FloatArray) -> FloatArray:
        """The slopes of the largest likelihood less penalty / 2 times the sum of their squares, (n_columns,)."""

        def loss(slopes: FloatArray) -> tuple[float, FloatArray]:
            value, residuals = self.at(np.clip(design @ slopes, -30, 30))
            return float(penalty / 2 * slopes @ slopes - value), penalty * slopes - design.T @ residuals

        fitted: FloatArray = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 100}).x
        return fitted


# Of an arm and a horizon: all patients; those whose follow-up ends before it without an event; those who are seen at
# it, free of any event until then; those to whom the event happened by then.
CENSORING = ["arm", "horizon", "patients", "censored", "followed", "events"]


def read_times(table: DataTable, follow_up: FollowUp, policy: str, bad: BadRows) -> tuple[pd.DataFrame, BoolArray]:
    """Read both columns; bad rows have a time that is no number >= 0, or an event that is none of the codes.

    `policy` says what is done with rows in which one is missing: "refuse" (bad rows), "exclude" (their time is NaN), or
    "worst" (they count as an event at once).

    Returns
    -------
    followed : DataFrame, n_rows
        The `time`, NaN where the row has none; and the `state`, what happened then: `EVENT`, `CENSORED` or `COMPETING`.
    missing : array of bool, (n_rows,)
        Whether time or event is.
    """
    times, events = numbers(table[follow_up.time]), meanings(table[follow_up.event], follow_up.codes)
    columns = {follow_up.time: times, follow_up.event: events}
    gone = {name: missing(table[name], np.isnan(values)) for name, values in columns.items()}
    wrong = ~(np.isfinite(times) & (times >= 0)) & ~gone[follow_up.time]
    bad.add_values(table, wrong, follow_up.time, table[follow_up.time].array, "must be a time >= 0")
    _refuse_events(table, follow_up, np.isnan(events) & ~gone[follow_up.event], bad)
    for name, rows in gone.items() if policy == REFUSE else ():
        bad.add(table, rows, name, lambda _: MISSING_OUTCOME)
    absent = np.logical_or(*gone.values())
    states = np.where(absent | np.isnan(events), EVENT if policy == WORST else CENSORED, events).astype(np.intp)
    times = np.where(absent, 0.0 if policy == WORST else np.nan, times)
    return pd.DataFrame({"time": times, "state": states}), absent


def _refuse_events(table: DataTable, follow_up: FollowUp, wrong: BoolArray, bad: BadRows) -> None:
    """Events that are none of the codes: one line for each value, or for all if they are many."""
    column, cells = follow_up.event, table[follow_up.event]
    positions, keys = coded(cells)
    wrong_values = np.unique(positions[wrong])
    lines = [(wrong & (positions == value), _instead_of_event(follow_up, keys, keys[value])) for value in wrong_values]
    if len(wrong_values) > MOST_WORDS:
        lines = [(wrong, "")]
    for rows, hint in lines:
        must = event_wanted(follow_up)
        bad.add_values(table, rows, column, cells.array, must, hint=hint if bad.show else "", once=True)


def _instead_of_event(follow_up: FollowUp, occurring: Sequence[LevelKey], key: LevelKey) -> str:
    """What may be meant by a value that is none of the codes, of those that occur in a column, and what to write."""
    column, value = toml_string(follow_up.event), toml_value(level_of(key))
    if follow_up.codes == ZERO_ONE:
        codes = "event = 2, censored = 1" if key == level_key("2") else "event = ..., censored = ..."
        case = "if 2 is the event and 1 is censored" if key == level_key("2") else "if 1 and 0 are not its codes"
        return f"; {case}, write event = {{ column = {column}, {codes} }}"
    unused = [code for code in follow_up.codes if level_key(code) not in occurring]
    if unused:
        likest = max(
            unused, key=lambda code: SequenceMatcher(None, code.casefold(), str(level_of(key)).casefold()).ratio()
        )
        state = STATE_KEYS[follow_up.codes[likest]]
        return f"; did you mean {state} = {value} in place of {toml_value(level_of(level_key(likest)))}?"
    competing = [level_of(level_key(code)) for code, state in follow_up.codes.items() if state == COMPETING]
    added = toml_value([*competing, level_of(key)]) if competing else value
    return f"; if it is another event, after which this one is impossible, write competing = {added} beside event"


def event_wanted(follow_up: FollowUp) -> str:
    """What a value of the event's column must be, in words.

    Examples
    --------
    >>> event_wanted(FollowUp("days", "status", (365.0,), {"2": EVENT, "1": CENSORED}))
    'must be 2 (the event happened) or 1 (censored)'
    """
    words = {EVENT: "the event happened", CENSORED: "censored", COMPETING: "a competing event"}
    values = [f"{value} ({words[state]})" for value, state in follow_up.codes.items()]
    return f"must be {', '.join(values[:-1])} or {values[-1]}"


def by_arm(
    followed: pd.DataFrame,
    horizons: Sequence[float],
    data: LoggedData,
    covariates: FloatArray,
    parts: IntArray,
) -> tuple[list[tuple[FloatArray, Observed]], pd.DataFrame]:
    """The pseudo-outcomes of all rows at each horizon, from the hazards of their arms, and the censoring of each arm.

    Parameters
    ----------
    followed : DataFrame, n
        From `read_times`; patients without a time have no part.
    horizons : sequence of float
    data : LoggedData
        The treatments of these patients, and their counts.
    covariates : array, (n, n_covariates)
        What hazards are modelled by, within each arm (`relative_hazards`).
    parts : array of int, (n,)
        Rows of the same part are predicted by models that were fitted without them.

    Returns
    -------
    list
        For each horizon what `pseudo_outcomes` returns; 0 for patients without a time.
    DataFrame
        With the columns `CENSORING`.
    """
    pseudo, rewards, weights = np.zeros((3, len(horizons), data.n_rows))
    arms, last = [], max(horizons)
    for arm, name in enumerate(data.names):
        rows = np.flatnonzero((data.actions == arm) & followed["time"].notna())
        times, states = (followed[column].to_numpy()[rows] for column in ("time", "state"))
        counts = None if data.counts is None else data.counts[rows]
        # At equal times events come before censorings.
        ranks = 2 * np.unique(times, return_inverse=True)[1] + (states == CENSORED)
        relative = np.zeros((len(rows), len(STATES)))
        for cause in STATES if ((states == CENSORED) & (times < last)).any() else ():
            happened = (states == cause) & (times <= last)
            relative[:, cause] = relative_hazards(covariates[rows], ranks, happened, parts[rows], counts)
        for place, horizon in enumerate(horizons):
            pseudo[place, rows], known = pseudo_outcomes(times, states, horizon, counts, relative)
            rewards[place, rows], weights[place, rows] = known.rewards, known.weights
            ended = (states != CENSORED) & (times <= horizon)
            sets = (
                times >= 0,
                (states == CENSORED) & (times < horizon),
                (times >= horizon) & ~ended,
                (states == EVENT) & (times <= horizon),
            )
            sizes = (int(summed(patients.astype(np.int64), counts)) for patients in sets)
            arms.append((name, horizon, *sizes))
    return list(zip(pseudo, map(Observed, rewards, weights), strict=True)), pd.DataFrame(arms, columns=CENSORING)


def check_horizons(followed: pd.DataFrame, source: LogSource, data: LoggedData) -> None:
    """Refuse horizons that say nothing: where nobody of an arm is followed to one, or no event happened by one.

    Raises
    ------
    InputFileError
        With the line of the study.
    """
    follow_up = source.follow_up
    if follow_up is None:
        return
    wrong = []
    events = followed["time"][followed["state"] == EVENT].dropna()
    for horizon in follow_up.horizons:
        at = f"{follow_up.time} = {horizon:g}"
        for arm, name in enumerate(data.names):
            of_arm = followed[data.actions == arm].dropna()
            end = float(of_arm["time"].max())
            if end < horizon and (of_arm["state"][of_arm["time"] == end] == CENSORED).any():
                wrong.append(
                    f"nobody of the arm {name} is followed to {at}, the longest to {end:g}: the horizon must be a time "
                    "at which patients of every arm are still at risk"
                )
        if not len(events):
            wrong.append(f"nobody has the event, so that there is nothing to compare at {at}")
        elif events.min() > horizon:
            wrong.append(
                f"nobody has the event by {at}: {len(events):,} rows have it, the first at {events.min():g}; choose a "
                "later horizon"
            )
    if wrong:
        place = place_in_study(source, "horizon")
        raise InputFileError("\n".join(one_line(f"{place}data.horizon: {each}") for each in dict.fromkeys(wrong)))


# What is done about censoring, and when that is right.
CENSORING_RULE = (
    "Inverse probability of censoring weighting makes up for them, by hazards of each arm that depend on the patient "
    "as far as held-out patients show it; that is right if, among patients of the same arm and features, those who "
    "leave have the same prospects as those who stay."
)


def censoring_words(follow_up: FollowUp | None, censored: pd.DataFrame) -> str:
    """How many patients of each arm are not followed to the horizon, and what is done about it; "" without one."""
    if not follow_up:
        return ""
    horizon = f"{follow_up.time} = {follow_up.horizon:g}"
    censored = censored[censored["horizon"] == follow_up.horizon]
    if not censored["censored"].any():
        return f"Every patient is followed to {horizon} or to the event."
    arms = ", ".join(
        f"{name} {number:,} of {patients:,} ({percent(number / max(1, patients))})"
        for name, patients, number in censored[["arm", "patients", "censored"]].itertuples(index=False)
    )
    return f"Censored, that is followed for less than {horizon} without the event: {arms}. {CENSORING_RULE}"
