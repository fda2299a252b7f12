"""The screen that `policysim compare` prints for a study of a log."""

from __future__ import annotations

import math

from policysim.question.formats import aligned, estimate, interval, percent, rounded
from policysim.question.screen_lines import cells, wrap
from policysim.question.words import odds
from policysim.study.basis import OUTSIDE_LINE, PUBLIC_OF_LOG, hidden
from policysim.study.declared import LoggedStudy
from policysim.trials.trial_findings import LoggedFindings, LoggedRow

# What the optimum is on a log: it is optimal for scores that are themselves estimates.
LABELS = {"optimal": "optimal (for the fitted scores)"}
PRIVATE = (
    "Private: the record of a patient who is treated, through the published treatment, up to ε. Not private: the log "
    "that the scores, the shares of records and the choice of the best single treatment were fitted to."
)
MISSING = {
    "refuse": "",
    "exclude": "left out: right only if they are missing by chance within each arm",
    "worst": "counted as the worst outcome of the declared range",
}
ARMS = ("arm", "rows", "missing", "mean", "95 % interval")
ARM_COLUMNS = (40, 8, 10, 10, 22)
HEADINGS = (
    ("", "value", "minus the best", "95 % interval", "ε", "surely better"),
    ("At ε = {epsilon}", "", "for all", "", "spent", "from ε"),
)
COLUMNS = (39, 8, 15, 18, 7, 15)


def logged_screen(study: LoggedStudy, findings: LoggedFindings) -> list[str]:
    """Everything that a reader needs to choose, on one screen: the data before any model."""
    lines = [
        study.title,
        *(wrap(findings.unread) if findings.unread else []),
        *wrap(rows_words(study, findings)),
        *wrap(findings.outcome),
        "",
        *arm_lines(findings),
        *wrap(findings.censoring),
        *(line for caveat in findings.caveats for line in wrap(f"Beware: {caveat}")),
        "",
        *wrap(f"Hidden: {hidden(study)}. From: {study.hidden_from}. Assumed public: {PUBLIC_OF_LOG}."),
        *wrap(PRIVATE),
        OUTSIDE_LINE,
        "",
        *(line for words in findings.overlap_words for line in wrap(words)),
        *wrap(findings.heterogeneity_words),
        "",
        *policy_table(findings),
        *wrap(how_estimated(findings)),
        "",
    ]
    for sentence in (
        *findings.answer,
        *findings.power_words,
        percentages(findings),
        odds(findings.epsilon, findings.right_guesses),
    ):
        lines += wrap(sentence)
    return lines


def rows_words(study: LoggedStudy, findings: LoggedFindings) -> str:
    """How many patients, and what is done with those without a treatment or an outcome."""
    known = "a time of follow-up" if findings.censoring else "an outcome"
    without = f"{findings.n_missing:,} without {known}" if findings.n_missing else f"all with {known}"
    what = f" ({MISSING[study.log.missing]})" if findings.n_missing else ""
    untreated = f"{findings.n_untreated:,} without a treatment (left out), " if findings.n_untreated else ""
    left = f"; {findings.n_used:,} are used" if findings.n_used < findings.n_read else ""
    return (
        f"{findings.n_read:,} patients in the log, {untreated}{without}{what}{left}. "
        f"{study.space.size:,} possible records by the declared features."
    )


def arm_lines(findings: LoggedFindings) -> list[str]:
    """The mean of each outcome in each arm, before any model."""
    lines: list[str] = []
    for outcome in dict.fromkeys(arm["outcome"] for arm in findings.arms):
        lines.append(cells([f"{outcome} by arm, before any model", *ARMS[1:]], ARM_COLUMNS))
        for arm in findings.arms:
            if arm["outcome"] == outcome:
                mean, low, high = (float(arm[name]) for name in ("mean", "low", "high"))
                shown = [str(arm["arm"]), f"{arm['rows']:,}", f"{arm['missing']:,}"]
                lines.append(cells([*shown, estimate(mean, low, high), interval(low, high)], ARM_COLUMNS))
    return lines


def policy_table(findings: LoggedFindings) -> list[str]:
    """A row per policy at the study's epsilon."""
    lines = [cells([cell.format(epsilon=f"{findings.epsilon:g}") for cell in row], COLUMNS) for row in HEADINGS]
    for row, (mean, _), (gain, ends) in policy_rows(findings):
        label = LABELS.get(row.policy, row.policy)
        lines.append(cells([label, mean, gain, ends, rounded(row.epsilon_spent), rounded(row.surely_from)], COLUMNS))
    return lines


def policy_rows(findings: LoggedFindings) -> list[tuple[LoggedRow, tuple[str, str], tuple[str, str]]]:
    """Each policy with its mean and its gain over one treatment for all: estimate and interval, alike in a column."""
    means = aligned([row.value for row in findings.rows])
    gains = aligned([row.difference for row in findings.rows], sign=True)
    return list(zip(findings.rows, means, gains, strict=True))


def how_estimated(findings: LoggedFindings) -> str:
    """What the numbers of the table are."""
    provided = f", {findings.provided}" if findings.provided else ""
    surely = f"by more than its interval, at the least ε that was computed{provided}."
    if findings.not_covered:
        surely = f"said of no policy (–): {findings.not_covered}."
    return (
        "Each policy is made from four fifths of the patients and evaluated on the others (doubly robust), in "
        "ten random splits; intervals are 95 %, each by itself. One treatment for all is the arm that is "
        f"estimated best; the interval holds whichever is. Surely better: {surely}"
    )


def percentages(findings: LoggedFindings) -> str:
    """The benefit kept, or why there is no such percentage."""
    if findings.not_covered:
        return f"No percentage of benefit is given: {findings.not_covered}."
    kept = [row for row in findings.rows if not math.isnan(row.benefit_kept[0])]
    if not kept:
        return (
            "No percentage of benefit is given: what choosing for each patient gains over one treatment for all "
            f"may be nothing ({interval(*findings.gain[1:], sign=True)})."
        )
    parts = [f"{row.policy} {percent(row.benefit_kept[0])} ({_ends(row.benefit_kept)})" for row in kept]
    return f"Benefit kept (0 % = one treatment for all, 100 % = chosen for each): {', '.join(parts)}."


def _ends(triple: tuple[float, float, float]) -> str:
    return f"{percent(triple[1])} to {percent(triple[2])}"
