"""What may be wrong with a log, before anybody believes a policy's value on it, in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2_contingency, chisquare

from policysim.logs.load_log import Log
from policysim.logs.log_source import EQUAL, ESTIMATE, LogSource
from policysim.question.formats import percent
from policysim.trials.caveats import SMALLEST_ESS
from policysim.trials.estimators import importance_weights
from policysim.trials.holes import where_caveats

# A chance below which equal allocation is called doubtful; shared by all features that are looked at.
DOUBTFUL = 0.001
ESTIMATED = (
    "Propensities are estimated from the declared features: whatever else decided who got which treatment "
    "(confounding) biases every number here, and no interval covers that."
)

# Of fewer patients that an arm still has at the horizon, a Kaplan-Meier estimate there is rough.
FEWEST_FOLLOWED = 10

# The same in a clause, for sentences that would otherwise call something shown.
EXTRAPOLATED = "no interval covers what is extrapolated where overlap fails"
BIASED = (
    "if the propensities are not equal, of which there are signs, every number here is biased, and no interval covers "
    "that"
)
CONDITION = "provided that nothing but the declared features decided who got which treatment"


@dataclass(frozen=True)
class LogCaveats:
    """What may be wrong with a log, a sentence for each doubt.

    Attributes
    ----------
    confounding, allocation, overlap, few : tuple of str
        Estimated propensities; equal ones that do not look equal; treatments that some patients never get; too few
        patients.
    """

    confounding: tuple[str, ...] = ()
    allocation: tuple[str, ...] = ()
    overlap: tuple[str, ...] = ()
    few: tuple[str, ...] = ()

    @property
    def said(self) -> list[str]:
        """All sentences."""
        return [*self.confounding, *self.allocation, *self.overlap, *self.few]

    @property
    def not_covered(self) -> str:
        """Errors for which there are signs and that no interval covers: none shows or excludes anything; "" if none."""
        return "; ".join([*([EXTRAPOLATED] if self.overlap else []), *([BIASED] if self.allocation else [])])

    @property
    def provided(self) -> str:
        """What must hold for the intervals to mean anything and what no data can show; "" if nothing."""
        return CONDITION if self.confounding else ""


def log_caveats(log: Log, source: LogSource) -> LogCaveats:
    """The doubts about a log: allocation, confounding, overlap, too few patients.

    Parameters
    ----------
    log : Log
        Read.
    source : LogSource
        What the study says about it.
    """
    data = log.data
    by_lot = np.full((data.n_rows, data.n_actions), 1 / data.n_actions)
    weights = importance_weights(data, by_lot)
    followed = [
        f"Only {arm.followed:,} of {arm.patients:,} patients of {name} are followed to the horizon: what is said of it "
        "rests on them."
        for name, arm in zip(data.names, log.censored, strict=False)
        if arm.followed < FEWEST_FOLLOWED and arm.censored
    ]
    few = (
        f"The effective sample size of the log is {weights.ess:,.0f} (treatment by lot): below {SMALLEST_ESS} the "
        "95 % intervals may cover less than they say."
    )
    return LogCaveats(
        confounding=(ESTIMATED,) if source.propensity == ESTIMATE else (),
        allocation=tuple(_allocation(log)) if source.propensity == EQUAL else (),
        overlap=tuple(where_caveats(data, by_lot, weights.raw, log.covariates)),
        few=(*((few,) if weights.ess < SMALLEST_ESS else ()), *followed),
    )


def outcome_words(source: LogSource) -> str:
    """What the outcome is, where the study says it in words or follow-up may end before it; else ""."""
    exactly = outcome_formula(source)
    if source.outcome_title:
        return f"The outcome: {source.outcome_title} ({exactly})."
    return f"The outcome: {exactly}." if source.follow_up else ""


def outcome_formula(source: LogSource) -> str:
    """What the outcome is by the names of columns: of one column its name, and else the weighted sum."""
    weights = {name: weight for name, weight in source.outcome.items() if weight}
    if source.follow_up:
        return source.follow_up.title
    if list(weights.values()) == [1]:
        return next(iter(weights))
    return " + ".join(f"{weight:g} × {name}" for name, weight in weights.items())


def censoring_words(log: Log, source: LogSource) -> str:
    """How many patients of each arm are not followed to the horizon, and what is done about it; "" without one."""
    if not source.follow_up:
        return ""
    horizon = f"{source.follow_up.time} = {source.follow_up.horizon:g}"
    if not any(arm.censored for arm in log.censored):
        return f"Every patient is followed to {horizon} or to the event."
    arms = ", ".join(
        f"{name} {arm.censored:,} of {arm.patients:,} ({percent(arm.censored / max(1, arm.patients))})"
        for name, arm in zip(log.data.names, log.censored, strict=True)
    )
    return (
        f"Censored, that is followed for less than {horizon} without the event: {arms}. Inverse probability of "
        "censoring weighting (Kaplan and Meier in each arm) makes up for them; that is right if within each arm those "
        "who leave have the same prospects as those who stay."
    )


def _allocation(log: Log) -> list[str]:
    """Where "equal" propensities do not look equal: Pearson's chi-square tests of the arms, and of each feature."""
    k = log.data.n_actions
    counts = log.data.by_action()
    # Rows without an outcome were allocated too.
    counts = counts + (np.array(log.missing) if log.n_read > log.data.n_patients else 0)
    found = []
    chance = float(chisquare(counts).pvalue)
    if chance < DOUBTFUL:
        shown = ", ".join(f"{name} {n:,}" for name, n in zip(log.data.names, counts, strict=True))
        found.append(
            f'propensity = "equal" is doubtful: the treatments have {shown} patients, which happens by lot with '
            f"probability {chance:.1g}."
        )
    for name in log.space.names:
        codes, labels = log.space.groups(name)
        crossed = np.zeros((len(labels), k))
        np.add.at(crossed, (codes[log.records], log.data.actions), 1 if log.data.counts is None else log.data.counts)
        crossed = crossed[crossed.sum(axis=1) > 0]
        if len(crossed) > 1:
            chance = float(chi2_contingency(crossed).pvalue)
            if chance < DOUBTFUL / len(log.space.names):
                found.append(
                    f'propensity = "equal" is doubtful: who got which treatment depends on {name} (by lot that would '
                    f"happen with probability {chance:.1g}); without the true propensities every number here is biased."
                )
    return found
