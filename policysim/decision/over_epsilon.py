"""What happens over epsilon, in sentences: what it takes to keep most of the benefit; where the optimum begins.

Every epsilon that is named stands with what it allows to guess.
"""

from __future__ import annotations

import math

import pandas as pd
from markupsafe import Markup

from policies.optimal.optimum import Optimal
from policies.reference import BestFixed
from policysim.decision.findings import Findings
from policysim.decision.summary import named_epsilons, ranked, rows_of, which_epsilon
from policysim.question import words
from policysim.question.shown import percent, plain, rounded_up
from policysim.question.words import ALL, LEAST_EVENTS, NEGLIGIBLE


def keep_sentences(findings: Findings, table: pd.DataFrame) -> Markup:
    """The epsilons that it takes to keep most of the benefit, and what each lets an observer guess; "" for none.

    Parameters
    ----------
    findings : Findings
        Of the study.
    table : DataFrame
        The comparison, with the references.
    """
    known = ranked(findings, rows_of(findings, table))
    if not known or (findings.unused and not findings.used):
        return Markup("")
    said = which_epsilon(known, findings)
    # What is printed of an epsilon is never below it, and what is printed lets guess so much.
    named = {rounded_up(epsilon): words.enough(epsilon, words.DIGITS) for epsilon in named_epsilons(known)}
    guesses = [
        Markup("up to {} can be right at ε = {}").format(words.below_100(rate), text)
        for text, epsilon in named.items()
        for rate in (words.guesses(epsilon),)
    ]
    if not guesses:
        return said
    return said + Markup(" Of 100 guesses at which of two patients got a treatment, {}.").format(
        Markup(", ").join(guesses)
    )


def flat_sentence(table: pd.DataFrame, findings: Findings) -> Markup:
    """Up to which epsilon the optimum does as one treatment for all, and what it costs from there on.

    Parameters
    ----------
    table : DataFrame
        The comparison, with the references.
    findings : Findings
        Of the study.

    Returns
    -------
    Markup
        Empty where the optimum was not compared, or treats patients differently at every epsilon of the study.
    """
    everyone = table[table["group"] == ALL].sort_values("epsilon")
    mine = everyone[everyone["policy"] == Optimal.name].set_index("epsilon")
    fixed = everyone[everyone["policy"] == BestFixed.name].set_index("epsilon")
    row = next((row for row in findings.rows if row.policy == Optimal.name), None)
    if row is None or not 0 < row.better_from < math.inf or not mine.index.equals(fixed.index):
        return Markup("")
    before, after = mine[mine.index < row.better_from], mine[mine.index >= row.better_from]
    same = (before["value"] - fixed["value"][before.index]).abs() <= NEGLIGIBLE * (1 + before["value"].abs())
    if before.empty or after.empty or not same.all():
        return Markup("")
    said = Markup(
        "Below ε = {} {} is worth no more than giving everybody {}; from there on it treats patients differently"
    ).format(rounded_up(row.better_from), Optimal.name, findings.one_for_all)
    if not findings.deaths or mine["extra_deaths"].isna().any():
        return said + "."
    worst = after.reset_index().iloc[int(after["extra_deaths"].to_numpy().argmax())]
    beyond = float(worst["extra_deaths"]) - float(fixed["extra_deaths"].iloc[0])
    if beyond * findings.count < LEAST_EVENTS:
        return said + "."
    kept = float(worst["benefit_kept"])
    keeps = Markup("") if math.isnan(kept) else Markup(", where it keeps {}").format(percent(kept))
    return said + Markup(", at the price of up to {} more deaths per {:,} (at ε = {}{}).").format(
        words.events(beyond, findings.count), findings.count, plain(float(worst["epsilon"])), keeps
    )
