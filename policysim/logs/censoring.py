"""Outcomes that take time: free of an event at a horizon, where some patients were followed for less (are censored).

Kaplan and Meier's estimator, and from it one number for each patient that may be averaged like any other outcome.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from envs.toml_reader import InputFileError, one_line
from policies.arrays import BoolArray, FloatArray, IntArray
from policysim.files.bad_rows import BadRows
from policysim.files.data_table import DataTable, meanings, missing, numbers
from policysim.logs.codes import CENSORED, COMPETING, EVENT
from policysim.logs.log_frame import Observed, patients_by_code
from policysim.logs.log_source import MISSING_OUTCOME, REFUSE, WORST, FollowUp, LogSource
from policysim.logs.outcomes import place_in_study
from policysim.logs.toml_text import toml_string
from policysim.numbers import percent


def kaplan_meier(
    times: FloatArray, happened: BoolArray, counts: IntArray | None = None
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """The estimator of Kaplan & Meier (1958) of the time to an event, and that of the time to censoring.

    At equal times events come before censorings, so that a patient who is censored at t is known to be free at t.

    Parameters
    ----------
    times, happened : array, (n,)
        Each time, and whether it is that of the event.
    counts : array of int, (n,), optional
        How many patients have it; one each by default.

    Returns
    -------
    distinct : array, (m,)
        The distinct times, rising.
    free : array, (m,)
        P(no event up to and at each time): the product of 1 - events / patients at risk.
    followed : array, (m,)
        P(not censored up to and at each time): the product of 1 - hazard.
    hazard : array, (m,)
        Of censoring at each time: censored / (at risk - events); 0 where nobody is left.
    """
    distinct, place = np.unique(times, return_inverse=True)
    events = patients_by_code(place[happened], None if counts is None else counts[happened], len(distinct))
    every = patients_by_code(place, counts, len(distinct))
    at_risk = every[::-1].cumsum()[::-1]
    left = at_risk - events
    hazard = np.divide(every - events, left, out=np.zeros(len(distinct)), where=left > 0)
    return distinct, np.cumprod(1 - events / at_risk), np.cumprod(1 - hazard), hazard


def pseudo_outcomes(
    times: FloatArray, happened: BoolArray, horizon: float, counts: IntArray | None = None
) -> tuple[FloatArray, Observed]:
    """Being free of the event at a horizon, made from what was seen of each patient of one arm.

    Parameters
    ----------
    times : array, (n,)
        Of the event, or of the end of follow-up.
    happened : array of bool, (n,)
        Which of the two.
    horizon : float
        Somebody is followed to it, or nobody is censored last.
    counts : array of int, (n,), optional
        How many patients each stands for.

    Returns
    -------
    pseudo : array, (n,)
        One number for each patient, whose mean is Kaplan and Meier's estimate; without censoring before the horizon, 1
        or 0. It may be any number.
    observed : Observed
        For outcome models: 1 or 0 where it is known whether the patient is free, with the inverse probability of that
        as weight; weight 0 elsewhere.

    Notes
    -----
    With S the probability of being free and G that of not being censored, both by Kaplan and Meier, t the horizon and
    u the patient's time, the patient's state is known if the event happened at u <= t, or if u >= t. Inverse
    probability of censoring weights are then 1 / G just before min(u, t) (Robins & Rotnitzky 1992). To the weighted
    state is added what a censored patient's follow-up adds, sum over times v < t of S(t) / S(v) dM(v) / G(v), with M
    the martingale of censoring: over an arm this sums to 0, so that the mean is that of weighting alone, which is
    Kaplan and Meier's (Satten & Datta 2001). The variance of the mean is then Greenwood's (1926), as the numbers are
    the influence function of S(t) (Andersen, Klein & Rosthoj 2003 call them pseudo-observations). So whatever takes the
    mean of outcomes, a doubly robust estimate included, may take the mean of these numbers (Rubin & van der Laan 2007),
    if within the arm censoring has nothing to do with the time to the event, nor with what decides on the policy.
    """
    distinct, free, followed, hazard = kaplan_meier(times, happened, counts)
    known = (happened & (times <= horizon)) | (times >= horizon)
    is_free = known & ~(happened & (times <= horizon))
    # G just before the time, and S at the horizon: both are 1 before the first of the times.
    before = np.append(1.0, followed)[np.searchsorted(distinct, np.minimum(times, horizon), side="left")]
    weights = np.divide(1, before, out=np.zeros(len(times)), where=known)
    ahead = np.append(1.0, free)[np.searchsorted(distinct, horizon, side="right")]
    early = (distinct < horizon) & (free > 0) & (followed > 0)
    # S(t) / S(v) / G(v), for each time before the horizon.
    gain = np.divide(ahead, free * followed, out=np.zeros(len(free)), where=early)
    compensator = np.append(0.0, np.cumsum(gain * hazard))
    # A patient is at risk of censoring at a time unless the event happens at it, or has happened.
    exposed = np.searchsorted(distinct, times, side="right") - happened
    own = np.where(happened, 0.0, gain[np.searchsorted(distinct, times)])
    pseudo: FloatArray = weights * is_free + (own - compensator[exposed])
    return pseudo, Observed(is_free.astype(np.float64), weights)


# Of an arm: all patients; those whose follow-up ends before the horizon without the event; those who are seen at the
# horizon, free of the event until then.
CENSORING = ["arm", "patients", "censored", "followed"]


def read_times(
    table: DataTable, follow_up: FollowUp, policy: str, bad: BadRows
) -> tuple[FloatArray, IntArray, BoolArray]:
    """Read both columns; bad rows have a time that is no number >= 0, or an event that is none of the codes.

    `policy` says what is done with rows in which one is missing: "refuse" (bad rows), "exclude" (their time is NaN), or
    "worst" (they count as an event at once).

    Returns
    -------
    times : array, (n_rows,)
        NaN where the row has none.
    states : array of int, (n_rows,)
        What happened at the time: `EVENT`, `CENSORED` or `COMPETING`.
    missing : array of bool, (n_rows,)
        Whether time or event is.
    """
    times, events = numbers(table[follow_up.time]), meanings(table[follow_up.event], follow_up.codes)
    columns = {follow_up.time: times, follow_up.event: events}
    gone = {name: missing(table[name], np.isnan(values)) for name, values in columns.items()}
    wrong = {
        follow_up.time: (~(np.isfinite(times) & (times >= 0)), "must be a time >= 0", ""),
        follow_up.event: (
            np.isnan(events),
            event_wanted(follow_up),
            f"; if 2 is the event and 1 is censored, write event = {{ column = {toml_string(follow_up.event)}, event = "
            "2, censored = 1 }",
        ),
    }
    for name, (rows, must, hint) in wrong.items():
        bad.add_values(table, rows & ~gone[name], name, table[name].array, must, hint=hint)
        if policy == REFUSE:
            bad.add(table, gone[name], name, lambda _: MISSING_OUTCOME)
    absent = np.logical_or(*gone.values())
    states = np.where(absent | np.isnan(events), EVENT if policy == WORST else CENSORED, events).astype(np.intp)
    return np.where(absent, 0.0 if policy == WORST else np.nan, times), states, absent


def event_wanted(follow_up: FollowUp) -> str:
    """What a value of the event's column must be, in words.

    Examples
    --------
    >>> event_wanted(FollowUp("days", "status", 365.0, {"2": EVENT, "1": CENSORED}))
    'must be 2 (the event happened) or 1 (censored)'
    """
    words = {EVENT: "the event happened", CENSORED: "censored", COMPETING: "a competing event"}
    values = [f"{value} ({words[state]})" for value, state in follow_up.codes.items()]
    return f"must be {', '.join(values[:-1])} or {values[-1]}"


def by_arm(
    times: tuple[FloatArray, IntArray],
    source: LogSource,
    actions: IntArray,
    names: Sequence[str],
    counts: IntArray | None = None,
) -> tuple[FloatArray, Observed, pd.DataFrame]:
    """The pseudo-outcomes of all rows, by the Kaplan-Meier estimators of their arms, and the censoring of each arm.

    `times` are those of all rows, and what happened then (`EVENT`, `CENSORED`, `COMPETING`); `counts` says how many
    patients each row stands for. The table of arms has the columns `CENSORING`.

    Raises
    ------
    InputFileError
        With the line of the study, one for each arm whose patients are all followed for less than the horizon.
    """
    follow_up = source.follow_up
    if follow_up is None:
        raise ValueError("a log without time, event and horizon has no pseudo-outcomes.")
    if (times[1] == COMPETING).any():
        raise InputFileError(
            one_line(
                f"{place_in_study(source, 'event')}data.event: {np.count_nonzero(times[1] == COMPETING):,} rows have a "
                f"competing event ({follow_up.words(COMPETING)}), which is not estimated yet"
            )
        )
    rewards, states, weights = np.zeros((3, len(actions)))
    arms, short = [], []
    for arm, name in enumerate(names):
        rows = np.flatnonzero(actions == arm)
        until, ended = times[0][rows], times[1][rows] == EVENT
        end = float(until.max(initial=0.0))
        if len(rows) and end < follow_up.horizon and not ended[until == end].all():
            short.append(
                f"nobody of the arm {name} is followed to {follow_up.time} = {follow_up.horizon:g}, the longest to "
                f"{end:g}: the horizon must be a time at which patients of every arm are still at risk"
            )
            continue
        each = None if counts is None else counts[rows]
        rewards[rows], own = pseudo_outcomes(until, ended, follow_up.horizon, each)
        states[rows], weights[rows] = own.rewards, own.weights
        sets = (until >= 0, ~ended & (until < follow_up.horizon), own.rewards > 0)
        arms.append((name, *(int(which.sum() if each is None else each[which].sum()) for which in sets)))
    if short:
        place = place_in_study(source, "horizon")
        raise InputFileError("\n".join(one_line(f"{place}data.horizon: {each}") for each in short))
    return rewards, Observed(states, weights), pd.DataFrame(arms, columns=CENSORING)


def censoring_words(follow_up: FollowUp | None, censored: pd.DataFrame) -> str:
    """How many patients of each arm are not followed to the horizon, and what is done about it; "" without one."""
    if not follow_up:
        return ""
    horizon = f"{follow_up.time} = {follow_up.horizon:g}"
    if not censored["censored"].any():
        return f"Every patient is followed to {horizon} or to the event."
    arms = ", ".join(
        f"{name} {number:,} of {patients:,} ({percent(number / max(1, patients))})"
        for name, patients, number, _ in censored.itertuples(index=False)
    )
    return (
        f"Censored, that is followed for less than {horizon} without the event: {arms}. Inverse probability of "
        "censoring weighting (Kaplan and Meier in each arm) makes up for them; that is right if, within each arm, the "
        "patients who leave have the same prospects as the patients who stay."
    )
