"""The screen that `policysim compare` prints."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from policies.catalogue import CATALOGUE
from policies.problem import DecisionProblem
from policies.sensitivity import Witness
from policysim.decision.beliefs import belief_sentence
from policysim.decision.findings import Findings
from policysim.decision.redraws import BENEFIT, KEPT, how_drawn
from policysim.decision.scenario_outcomes import EventTable, event_lines
from policysim.question.formats import (
    decimal,
    events,
    guess_rate,
    percent,
    percent_1,
    percent_down,
    percent_up,
    plain,
    rounded,
    sensitivity,
)
from policysim.question.screen_lines import cells, wrap
from policysim.question.words import ACHIEVABLE, ASSUMED_PUBLIC, KEEP, UNBEATABLE, level_name, odds, unused
from policysim.study.basis import OUTSIDE_LINE, basis, hidden
from policysim.study.declared import ScenarioStudy, Study
from policysim.study.gain import benefit
from policysim.study.stated_bounds import legend, marked

HEADINGS = (
    ("", "benefit", "extra deaths", "ε", "guess", "ε to beat", "ε to keep"),
    ("At ε = {epsilon}", "kept", "per {count:,}", "spent", "rate", "one for all", "{keep}"),
)
COLUMNS: tuple[int, ...] = (25, 8, 14, 8, 7, 12, 10)
# Which of them is left out where no record can die.
DEATHS = 2
PRICE_COLUMNS = (28, 14, 28)


def comparison_screen(
    study: ScenarioStudy,
    problem: DecisionProblem,
    findings: Findings,
    *,
    answer: Sequence[str],
    happened: EventTable | None = None,
) -> list[str]:
    """Everything that a reader needs to choose, on one screen; `answer` and `happened` are those of the page."""
    deaths = findings.deaths
    count = findings.count
    one = study.scenario.treatments.get(findings.one_for_all)
    titles = dict.fromkeys([findings.one_for_all, *([] if one is None else [one.title])])
    labels = {"one for all": f"one for all ({', '.join(titles)})"}
    shown = "   ".join(f"{labels.get(name, name)} {events(rate, count)}" for name, rate in deaths.items())
    return [
        study.title,
        f"{basis(study).disclaimer} {problem.n_records:,} possible records, {problem.n_actions} treatments.",
        "",
        *wrap(" ".join(answer)),
        "",
        *wrap(f"Hidden: {hidden(study)}. From: {study.hidden_from}. Assumed public: {ASSUMED_PUBLIC}."),
        OUTSIDE_LINE,
        *([f"Deaths per {count:,}:   {shown}"] if deaths else []),
        "",
        *policy_table(findings),
        *wrap(legend(findings.broken)),
        *wrap(benefit(findings.gain)),
        "",
        *event_lines(happened),
        *wrap(odds(findings.epsilon, findings.right_guesses)),
        *wrap(belief_sentence(findings.beliefs)),
        *wrap(worst_off(findings)),
        *wrap(why(problem, findings)),
        *wrap(basis(study).illustrative),
        *wrap(robust(findings)),
        *wrap(prevalence(findings)),
        *(line for said in findings.without_effect for line in wrap(said)),
    ]


def policy_table(findings: Findings) -> list[str]:
    """A row per policy at the study's epsilon."""
    count = findings.count
    heading = {"epsilon": plain(findings.epsilon), "count": count, "keep": percent(KEEP)}
    rows = [[cell.format(**heading) for cell in row] for row in HEADINGS]
    for row in findings.rows:
        # A share that is a bound is rounded so that it claims less.
        write = {UNBEATABLE: percent_up, ACHIEVABLE: percent_down}.get(row.policy, percent)
        rows.append(
            [
                f"{row.policy}{marked(row.policy, findings.broken)}",
                write(row.benefit_kept),
                events(row.extra_deaths, count, sign=True),
                rounded(row.epsilon_spent),
                guess_rate(row.guess_rate),
                decimal(row.better_from),
                decimal(row.keeps_from),
            ]
        )
    widths = COLUMNS
    if not findings.deaths:
        widths = (*COLUMNS[:DEATHS], *COLUMNS[DEATHS + 1 :])
        rows = [[*row[:DEATHS], *row[DEATHS + 1 :]] for row in rows]
    return [cells(row, widths) for row in rows]


def robust(findings: Findings) -> str:
    """Whether the ranking and the benefit depend on the uncertain numbers of the model."""
    found = findings.robustness
    if found is None or len(found.ranking) < 2:
        return ""
    shares = any(each.outcome == KEPT for each in found.ranges)
    said = percent if shares else rounded
    ranges = [
        f"{each.policy} {said(each.low)} to {said(each.high)}"
        for each in found.ranges
        if each.outcome == (KEPT if shares else BENEFIT) and CATALOGUE[each.policy].uses_epsilon
    ]
    what = "Benefit kept" if shares else "Utility per patient beyond one treatment for all"
    benefit = f" {what}, in 90 % of them: {', '.join(ranges)}." if ranges else ""
    return (
        f"Robust? Redrawn {found.redraws} times: {how_drawn(found)}. The policies, made for the numbers as stated, "
        f"rank as here in {found.holds} of {found.redraws}: {' > '.join(found.ranking)}.{benefit}"
    )


def prevalence(findings: Findings) -> str:
    """What the optimum, which trusts the prior, keeps when the prevalence is another one."""
    if not findings.prevalence:
        return ""
    kept = [
        f"{name} {', '.join(percent(share) for share in shares.values())}"
        for name, shares in findings.prevalence.items()
    ]
    factors = ", ".join(next(iter(findings.prevalence.values())))
    return f"Wrong prior? Benefit kept if the prevalence is {factors} times the assumed one: {'; '.join(kept)}."


def worst_off(findings: Findings) -> str:
    """Who bears the loss."""
    worst = findings.worst
    if worst is None or rounded(worst.loss) == "0":
        return ""
    count = findings.count
    group = level_name(worst.group, worst.level)
    deaths = f", {events(worst.extra_deaths, count, sign=True)} deaths per {count:,}" if findings.deaths else ""
    return (
        f"Worst off under {worst.policy}: {group} ({percent(worst.share)} of patients), who lose "
        f"{rounded(worst.loss)} in utility each (all: {rounded(worst.overall_loss)}){deaths}."
    )


def why(problem: DecisionProblem, findings: Findings) -> str:
    """What drives the cost of calibrating to the sensitivity."""
    found = problem.sensitivity
    return (
        f"Why: half of the patients have {rounded(findings.typical_stake)} or less in utility at stake, but "
        f"the exponential mechanism's noise follows the sensitivity {sensitivity(found.value)} (range "
        f"{sensitivity(found.range)})."
    )


def price_lines(prices: pd.DataFrame, count: int, *, deaths: bool = True) -> list[str]:
    """The price list: what hiding each feature costs at best, dearest first; without deaths where nobody can die."""
    epsilon = plain(prices["epsilon"].iloc[0])
    shown = 3 if deaths else 2
    widths = PRICE_COLUMNS[:shown]
    lines = [
        f"What the best mechanism costs at ε = {epsilon} if only this is hidden, all else public:",
        cells(["", "benefit kept", f"extra deaths per {count:,}"][:shown], widths),
    ]
    priced = prices[prices["used"]]
    for hides, kept, extra in zip(priced["hides"], priced["benefit_kept"], priced["extra_deaths"], strict=True):
        values = [str(hides).replace("_", " "), percent_1(kept), events(extra, count, sign=True)]
        lines.append(cells(values[:shown], widths))
    without = prices.loc[~prices["used"], "hides"].tolist()
    return [*lines, *(wrap(unused(without)) if without else ())]


def sensitivity_screen(study: Study, problem: DecisionProblem) -> list[str]:
    """What `policysim sensitivity` prints."""
    found = problem.sensitivity
    return [
        f"{study.title} Hidden: {hidden(study)}.",
        "",
        f"Sensitivity Δ = {found.value:.6g}: the most that one action's expected utility differs between neighbours",
        *witness_words(problem, found.witness),
        f"Range Γ = {found.range:.6g}: the most that the difference between two actions does (at most 2Δ)",
        *witness_words(problem, found.range_witness),
    ]


def witness_words(problem: DecisionProblem, witness: Witness) -> list[str]:
    """Two neighbours and what they show, a line each."""
    actions = [problem.actions[action] for action in witness.actions]
    utilities = problem.utilities
    return [
        f"    {problem.records.describe(record)}\n        "
        + ", ".join(f"u({problem.actions[a]}) = {utilities[record, a]:.6g}" for a in witness.actions)
        for record in (witness.record, witness.neighbour)
    ] + [f"    action{'s' if len(actions) > 1 else ''} {', '.join(actions)}"]
