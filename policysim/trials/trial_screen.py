"""What people read of a study of a log: the printed screen, the first screen of its page, headings and the headline."""

from __future__ import annotations

import math

import pandas as pd

from policies.problem import DecisionProblem
from policysim.question import formats, words
from policysim.question.answer import Headline
from policysim.question.first_screen import TOLD_APART, Brief, Point, Tile
from policysim.question.formats import aligned, estimate, interval, percent, plain, rounded
from policysim.question.screen_lines import cells, wrap
from policysim.question.words import odds
from policysim.study.basis import OUTSIDE_LINE, PUBLIC_OF_LOG, hidden
from policysim.study.declared import LoggedStudy
from policysim.study.slider import Slider
from policysim.trials.evidence import LEAST_P, LEVEL
from policysim.trials.trial_findings import LoggedFindings, LoggedRow, individual

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
    arms: list[str] = []
    for outcome in dict.fromkeys(arm["outcome"] for arm in findings.arms):
        arms.append(cells([f"{outcome} by arm, before any model", *ARMS[1:]], ARM_COLUMNS))
        for arm in findings.arms:
            if arm["outcome"] == outcome:
                mean, low, high = (float(arm[name]) for name in ("mean", "low", "high"))
                shown = [str(arm["arm"]), f"{arm['rows']:,}", f"{arm['missing']:,}"]
                arms.append(cells([*shown, estimate(mean, low, high), interval(low, high)], ARM_COLUMNS))
    lines = [
        study.title,
        *(wrap(findings.unread) if findings.unread else []),
        *wrap(rows_words(study, findings)),
        *wrap(findings.outcome),
        "",
        *arms,
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
    parts = ["{} {} ({} to {})".format(row.policy, *map(percent, row.benefit_kept)) for row in kept]
    return f"Benefit kept (0 % = one treatment for all, 100 % = chosen for each): {', '.join(parts)}."


LEADS = ("Without privacy", "At ε = {}", "Surely better")


def brief(findings: LoggedFindings, slider: Slider) -> Brief:
    """The answer in its three sentences, and the numbers of the slider beside those of the best single treatment."""
    points = zip(LEADS, findings.answer, strict=True)
    return Brief(
        tuple(Point(lead.format(plain(findings.epsilon)), sentence) for lead, sentence in points),
        strip(findings, slider),
    )


def strip(findings: LoggedFindings, slider: Slider) -> tuple[Tile, ...]:
    """The gain over one treatment for all, the mean outcome, and how often a guess is right."""
    now, texts, (_, low, high) = slider.now, slider.texts, findings.rows[0].value
    # What a policy differs from is the same arm for all of them.
    arm = now["value"] - now["difference"]
    low_end, high_end = findings.outcome_range
    mean = f"mean outcome (from {plain(low_end)} to {plain(high_end)})"
    gain = "change of the mean outcome against one treatment for all"
    tiles = [
        Tile("difference", gain, now["difference"], texts["difference"], "0", is_estimate=True),
        Tile("value", mean, now["value"], texts["value"], estimate(arm, low, high), is_estimate=True),
    ]
    if "guess_rate" in slider.now:
        rate = slider.now["guess_rate"]
        tiles.append(Tile("guess_rate", TOLD_APART, rate, formats.guess_rate(rate), "50"))
    return tuple(tiles)


def headings(
    findings: LoggedFindings, problem: DecisionProblem, balance: pd.DataFrame, at_epsilon: pd.DataFrame
) -> dict[str, str]:
    """A finding for each section, by its identifier; "" where the subject is the heading."""
    largest = float(balance["before"].max()) if len(balance) else math.nan
    alike = f"The arms differ by at most {largest:.2f} standard deviations in any feature of their patients"
    gain = findings.power["least_gain"]
    seen = f"A gain of {rounded(gain)} is seen with 80\u00a0% power, a smaller one less often"
    spending = [row for row in individual(findings.rows) if math.isfinite(row.epsilon_spent)]
    spent = ""
    if spending:
        least = min(spending, key=lambda row: row.epsilon_spent)
        spent = f"Of ε = {plain(findings.epsilon)}, {least.policy} spends least: {rounded(least.epsilon_spent)}"
    return {
        "arms": _arms(findings),
        "balance": "" if math.isnan(largest) else alike,
        "individualise": _individualise(findings),
        "policies": _policies(findings),
        "power": seen if math.isfinite(gain) else "",
        "groups": _groups(findings, at_epsilon),
        "sensitivity": f"A score moves by up to {rounded(problem.sensitivity.value)} between two neighbours",
        "spent": spent,
    }


def _arms(findings: LoggedFindings) -> str:
    """From which arm to which the mean of the outcome runs, which is the first of the table."""
    outcome = findings.arms[0]["outcome"]
    rows = [row for row in findings.arms if row["outcome"] == outcome and not math.isnan(row["mean"])]
    if len(rows) < 2:
        return ""
    ends = (pick(rows, key=lambda row: float(row["mean"])) for pick in (min, max))
    said = " to ".join(f"{estimate(row['mean'], row['low'], row['high'])} ({row['arm']})" for row in ends)
    return f"The means of the arms run from {said}"


def _individualise(findings: LoggedFindings) -> str:
    """Nothing is said to be shown where no interval shows anything."""
    chance = findings.heterogeneity["chance"]
    if findings.not_covered or math.isnan(findings.heterogeneity["slope"]):
        return ""
    p = f"p = {chance:.2g}" if chance >= LEAST_P else f"p < {LEAST_P:g}"
    if chance < LEVEL:
        return f"Where the scores say that a treatment does more, it does ({p})"
    return f"No sign that treatments do more for some patients than for others ({p})"


def _policies(findings: LoggedFindings) -> str:
    private = individual(findings.rows)
    if not private:
        return ""
    best = max(private, key=lambda row: row.difference[0])
    if not any(best.difference):
        return f"Of the private choices {best.policy} does best: it does the same as one treatment for all"
    return (
        f"Of the private choices {best.policy} does best, {estimate(*best.difference, sign=True)} against one "
        f"treatment for all (95\u00a0% interval {interval(*best.difference[1:], sign=True)})"
    )


def _groups(findings: LoggedFindings, at_epsilon: pd.DataFrame) -> str:
    """In how many groups the best private policy differs from one treatment for all by more than its interval."""
    private = individual(findings.rows)
    if not private or findings.not_covered:
        return ""
    best = max(private, key=lambda row: row.difference[0]).policy
    rows = at_epsilon[(at_epsilon["policy"] == best) & (at_epsilon["group"] != words.ALL)]
    if rows.empty:
        return ""
    worse, better = int((rows["difference_high"] < 0).sum()), int((rows["difference_low"] > 0).sum())
    return (
        f"Under {best}, {worse or 'none'} of {len(rows)} groups {'does' if worse == 1 else 'do'} worse and "
        f"{better or 'none'} better by more than the 95\u00a0% interval"
    )


def headline(findings: LoggedFindings) -> Headline:
    """What a comparison on a log found, in the fewest words; a gain is named only where its interval is above 0."""
    gain, for_all = findings.gain, f"giving everybody {findings.one_for_all}"
    about = (
        "is the change of the mean outcome if each patient's treatment is chosen by fitted scores, without privacy "
        f"(95\u00a0% interval {interval(*gain[1:], sign=True)})"
    )
    if findings.provided and any(gain):
        about += f"; {findings.provided}"
    if findings.not_covered:
        title = f"This log cannot show whether choosing for each patient is better than {for_all}"
    elif not any(gain):
        return Headline(f"Fitted scores choose as well for each patient as {for_all}")
    elif gain[1] > 0:
        surely = min((row.surely_from for row in individual(findings.rows)), default=math.inf)
        private = f", and a private choice first at ε = {rounded(surely)}"
        if not math.isfinite(surely):
            private = ", but not privately at any ε that was computed"
        title = f"Choosing for each patient is better than {for_all}{private}"
    elif gain[2] < 0:
        title = f"Choosing for each patient by fitted scores is worse than {for_all}"
    else:
        title = f"{findings.n_used:,} patients show no gain from choosing for each of them over {for_all}"
    return Headline(title, estimate(*gain, sign=True), about)
