"""The first screen of a trial's page, and what each of its sections found, as its heading."""

from __future__ import annotations

import math

import pandas as pd

from policies.problem import DecisionProblem
from policysim.question import formats, words
from policysim.question.first_screen import TOLD_APART, Brief, Point, Tile
from policysim.question.formats import estimate, interval, plain, rounded
from policysim.study.slider import Slider
from policysim.trials.diagnostics import Diagnostics
from policysim.trials.heterogeneity import LEAST_P, LEVEL
from policysim.trials.trial_findings import LoggedFindings, individual

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
    findings: LoggedFindings, problem: DecisionProblem, diagnostics: Diagnostics, at_epsilon: pd.DataFrame
) -> dict[str, str]:
    """A finding for each section, by its identifier; "" where the subject is the heading."""
    return {
        "arms": _arms(findings),
        "balance": _balance(diagnostics.balance),
        "individualise": _individualise(findings),
        "policies": _policies(findings),
        "power": _power(findings),
        "groups": _groups(findings, at_epsilon),
        "sensitivity": f"A score moves by up to {rounded(problem.sensitivity.value)} between two neighbours",
        "spent": _spent(findings),
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


def _balance(balance: pd.DataFrame) -> str:
    largest = float(balance["before"].max()) if len(balance) else math.nan
    if math.isnan(largest):
        return ""
    return f"The arms differ by at most {largest:.2f} standard deviations in any feature of their patients"


def _individualise(findings: LoggedFindings) -> str:
    """Nothing is said to be shown where no interval shows anything."""
    chance = findings.heterogeneity.chance
    if findings.not_covered or math.isnan(findings.heterogeneity.slope):
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


def _power(findings: LoggedFindings) -> str:
    gain = findings.power.least_gain
    return (
        f"A gain of {rounded(gain)} is seen with 80\u00a0% power, a smaller one less often"
        if math.isfinite(gain)
        else ""
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


def _spent(findings: LoggedFindings) -> str:
    rows = [row for row in individual(findings.rows) if math.isfinite(row.epsilon_spent)]
    if not rows:
        return ""
    least = min(rows, key=lambda row: row.epsilon_spent)
    return f"Of ε = {plain(findings.epsilon)}, {least.policy} spends least: {rounded(least.epsilon_spent)}"
