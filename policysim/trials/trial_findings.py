"""What a comparison on a log found: the numbers and sentences behind the printed screen, the report and --json."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from policies.catalogue import CATALOGUE
from policysim.logs.censoring import censoring_words
from policysim.logs.load_log import Log
from policysim.logs.log_source import outcome_words
from policysim.question.formats import rounded, with_interval
from policysim.study.declared import LoggedStudy
from policysim.trials.diagnostics import LogCaveats, balance_words
from policysim.trials.evidence import break_even_words, e_value_words, heterogeneity_words, power_words
from policysim.trials.trial_columns import ENDS

FOLLOWS_CHANCE = "where treatments hardly differ between patients, fitted scores follow chance"
NO_DOUBT = LogCaveats()
NOT_SAID = "This log is not said to show a gain or to exclude one"


@dataclass(frozen=True)
class LoggedRow:
    """One policy at the study's epsilon; each triple is an estimate with the ends of its 95 % interval.

    `surely_from` is the least computed epsilon at which the interval of the difference to the best single treatment is
    above 0; inf where there is none, NaN for policies that do not depend on epsilon, and for all where errors that no
    interval covers have left signs in the log (`LogCaveats.not_covered`). `break_even_gain` is how much choosing for
    each without privacy would have to gain for this policy to beat the best single treatment (`power`).
    """

    policy: str
    value: tuple[float, float, float]
    difference: tuple[float, float, float]
    loss: tuple[float, float, float]
    benefit_kept: tuple[float, float, float]
    epsilon_spent: float
    surely_from: float
    break_even_gain: float


@dataclass(frozen=True)
class LoggedFindings:
    """What a study of a log found at its epsilon.

    Attributes
    ----------
    epsilon : float
        The one that it is about.
    unread : str
        How many guesses of the study file are still marked as such; "" if none is.
    n_read, n_untreated, n_missing, n_used : int
        Rows of the log, those without a treatment, which are left out, those of the others without an outcome, and
        those that the estimates rest on.
    arms : list of dict
        For each outcome and arm: outcome, arm, rows, missing, mean, low, high.
    caveats : list of str
        What may be wrong with the log.
    not_covered, provided : str
        Of that, what lets no interval show anything, and on what they depend; "" if nothing.
    outcome : str
        What the outcome is, where it is not a column alone.
    outcome_range : tuple of float
        Its least and largest value, as declared.
    censoring : str
        How many patients of each arm are not followed to the horizon; "" if there is none.
    overlap_words : list of str
        Balance of the arms; where propensities are estimated, how much confounding it takes.
    heterogeneity : dict
        Whether there is anything to individualise: `slope` and `chance`, the p-value.
    heterogeneity_words : str
        The same in a sentence.
    one_for_all : str
        The arm that is estimated best: what differences are against.
    gain : tuple of float
        What choosing for each patient without privacy gains over the best single treatment, with its 95 % interval.
    rows : list of LoggedRow
        The policies of the study.
    right_guesses : float
        e^eps / (1 + e^eps): how often the better guess between two equally likely neighbours can be right at most.
    answer : list of str
        The answer in three sentences.
    power : dict
        What a log of this size can show: `standard_error`, `least_gain`, and `patients` by gain.
    power_words : list of str
        The same in sentences, with the gains at which the policies break even.
    """

    epsilon: float
    unread: str
    n_read: int
    n_untreated: int
    n_missing: int
    n_used: int
    arms: list[dict[Hashable, Any]]
    caveats: list[str]
    not_covered: str
    provided: str
    outcome: str
    outcome_range: tuple[float, float]
    censoring: str
    overlap_words: list[str]
    heterogeneity: dict[str, float]
    heterogeneity_words: str
    one_for_all: str
    gain: tuple[float, float, float]
    rows: list[LoggedRow]
    right_guesses: float
    answer: list[str]
    power: dict[str, Any]
    power_words: list[str]


def find(study: LoggedStudy, log: Log, tables: Mapping[str, pd.DataFrame], doubts: LogCaveats) -> LoggedFindings:
    """Sum up a comparison from its tables (`trial_question.tables_of`): the one place that makes findings of them."""
    (gained,) = tables["gain"].to_dict("records")
    one_for_all, gain = str(gained["best_arm"]), _triple(gained, "gain")
    patients = tables["patients"].set_index("what")["patients"].to_dict()
    slope, chance = map(float, tables["heterogeneity"].loc[0, ["slope", "p"]])
    power, needed = tables["power"], tables["e_value"]
    rows = [
        LoggedRow(
            policy=row["policy"],
            value=_triple(row, "value"),
            difference=_triple(row, "difference"),
            loss=_triple(row, "loss"),
            benefit_kept=_triple(row, "benefit_kept"),
            epsilon_spent=float(row["epsilon_spent"]),
            surely_from=float(row["surely_from"]),
            break_even_gain=float(row["break_even_gain"]),
        )
        for row in tables["policies"].to_dict("records")
    ]
    thresholds = break_even_words(study.epsilon, [(row.policy, row.break_even_gain) for row in individual(rows)])
    return LoggedFindings(
        epsilon=study.epsilon,
        unread=_unread_words(study),
        n_read=patients["read"],
        n_untreated=patients["without a treatment"],
        n_missing=patients["without an outcome"],
        n_used=patients["used"],
        arms=tables["arms"].to_dict("records"),
        caveats=doubts.said,
        not_covered=doubts.not_covered,
        provided=doubts.provided,
        outcome=outcome_words(study.log),
        outcome_range=study.log.utility_range,
        censoring=censoring_words(study.log.follow_up, log.censored, log.data.names),
        overlap_words=[balance_words(tables["balance"]), *([] if needed.empty else [e_value_words(needed)])],
        heterogeneity={"slope": slope, "chance": chance},
        heterogeneity_words=heterogeneity_words(tables["heterogeneity"], doubts.not_covered, doubts.provided),
        one_for_all=one_for_all,
        gain=gain,
        rows=rows,
        right_guesses=1 / (1 + math.exp(-study.epsilon)),
        answer=[
            _without_privacy(one_for_all, gain, doubts),
            _at_epsilon(study, rows, doubts),
            _from_which(rows, doubts),
        ],
        power={
            "standard_error": float(power["standard_error"].iloc[0]) if len(power) else math.nan,
            "least_gain": float(power["gain"].iloc[0]) if len(power) else math.nan,
            "patients": dict(zip(power["gain"].iloc[1:].tolist(), power["patients"].iloc[1:].tolist(), strict=True)),
        },
        power_words=[power_words(power), *([thresholds] if thresholds else [])],
    )


def _triple(row: Mapping[Hashable, Any], name: str) -> tuple[float, float, float]:
    value, low, high = (float(row[f"{name}{end}"]) for end in ENDS)
    return value, low, high


def _unread_words(study: LoggedStudy) -> str:
    """How many guesses of the study file nobody has read yet."""
    count, file = study.log.unread, study.log.study
    if not count or file is None:
        return ""
    are = "guess marked # CHECK is" if count == 1 else "guesses marked # CHECK are"
    return (
        f"{count} {are} unread in {file.name}: what follows is only as good as they are. Read each and delete the mark."
    )


def individual(rows: list[LoggedRow]) -> list[LoggedRow]:
    """The private policies that choose for each patient."""
    return [row for row in rows if CATALOGUE[row.policy].uses_epsilon]


def _without_privacy(one_for_all: str, gain: tuple[float, float, float], doubts: LogCaveats = NO_DOUBT) -> str:
    """What choosing for each patient is worth without privacy, and, in a sentence of its own, what that shows."""
    _, low, high = gain
    if not any(gain):
        return (
            f"Without privacy, choosing for each patient by fitted scores is exactly as good as {one_for_all} for all."
        )
    verdict = (
        f"{NOT_SAID}: {doubts.not_covered}"
        if doubts.not_covered
        else f"These data show this gain; {excluded(high)}"
        if low > 0
        else f"Any gain by this choice is excluded: {FOLLOWS_CHANCE}"
        if high < 0
        else f"A gain cannot be told from none: {excluded(high)}, smaller ones are not"
    )
    changes = "is estimated to change" if doubts.not_covered else "changes"
    provided = f" All this holds {doubts.provided}." if doubts.provided else ""
    return (
        f"Without privacy, choosing for each patient by fitted scores {changes} the mean outcome by "
        f"{with_interval(*gain, sign=True)} against {one_for_all} for all. {verdict}.{provided}"
    )


def excluded(high: float) -> str:
    """What an interval of the gain leaves out; `high`, >= 0, is its upper end."""
    # Two digits, rounded up: nothing is called excluded that is not.
    digits = 1 - math.floor(math.log10(high)) if high > 0 else 0
    shown = rounded(math.ceil(high * 10.0**digits - 1e-9) / 10.0**digits)
    return f"gains above {shown} are excluded"


def _at_epsilon(study: LoggedStudy, rows: list[LoggedRow], doubts: LogCaveats) -> str:
    private = individual(rows)
    if not private:
        return "The study compares no private policy that chooses for each patient."
    same = [row.policy for row in private if not any(row.difference)]
    others = [row for row in private if any(row.difference)]
    parts = []
    if others:
        best = max(others, key=lambda row: row.difference[0])
        differs = "is estimated to differ" if doubts.not_covered else "differs"
        parts.append(
            f"the best private choice for each patient ({best.policy}) {differs} from one treatment for all by "
            f"{with_interval(*best.difference, sign=True)}"
        )
    if same:
        verb = "is" if len(same) == 1 else "are"
        parts.append(f"{', '.join(same)} {verb} worth exactly the same as one treatment for all")
    return f"At ε = {study.epsilon:g}, {'; '.join(parts)}."


def _from_which(rows: list[LoggedRow], doubts: LogCaveats = NO_DOUBT) -> str:
    private = individual(rows)
    if doubts.not_covered:
        return (
            "This log cannot say from which ε a private choice for each patient is surely better than one treatment "
            f"for all: {doubts.not_covered}."
        )
    surely = min((row.surely_from for row in private), default=math.inf)
    better = (
        "A private choice for each patient is better than one treatment for all by more than its 95\u00a0% interval"
    )
    if math.isinf(surely):
        return f"{better} at no ε that was computed. That does not prove that it gains nothing."
    names = ", ".join(row.policy for row in private if row.surely_from == surely)
    provided = f" That holds {doubts.provided}." if doubts.provided else ""
    return f"{better} first at ε = {rounded(surely)} ({names}).{provided}"
