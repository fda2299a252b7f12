"""What happens over epsilon, in sentences: what keeps most of the benefit; where the optimum begins, and costs more.

Every epsilon that is named stands with what it allows to guess.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
from markupsafe import Markup

from policies.optimal.optimum import Optimal
from policies.reference import BestFixed
from policysim.decision.findings import Findings
from policysim.decision.summary import ranked, reaching, rows_of, which_epsilon
from policysim.question import formats, words
from policysim.question.formats import FILTERS, LEAST_EVENTS, NEGLIGIBLE
from policysim.question.words import ALL

decimal, more_events, percent, plain = (FILTERS[name] for name in ("decimal", "more_events", "percent", "plain"))


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
    enough, safe = reaching(known)
    named = dict.fromkeys(row.keeps_from for row in [*enough[:1], *safe])
    guesses = [
        Markup("up to {} can be right at ε = {}").format(formats.below_100(words.guesses(epsilon)), decimal(epsilon))
        for epsilon in named
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
    mine, fixed = _over_epsilon(table, Optimal.name), _over_epsilon(table, BestFixed.name)
    row = next((row for row in findings.rows if row.policy == Optimal.name), None)
    if row is None or not 0 < row.better_from < math.inf or not mine.index.equals(fixed.index):
        return Markup("")
    last = formats.next_below(row.better_from)
    before, after = mine[mine.index <= last], mine[mine.index > last]
    same = (before["value"] - fixed["value"][before.index]).abs() <= NEGLIGIBLE * (1 + before["value"].abs())
    if before.empty or after.empty or not same.all():
        return Markup("")
    said = Markup(
        "Up to ε = {} {} is worth no more than giving everybody {}; from ε = {} on it treats patients differently"
    ).format(decimal(last), Optimal.name, findings.one_for_all, decimal(row.better_from))
    if not findings.deaths or mine["extra_deaths"].isna().any():
        return said + "."
    worst = after.reset_index().iloc[int(after["extra_deaths"].to_numpy().argmax())]
    beyond = float(worst["extra_deaths"]) - float(fixed["extra_deaths"].iloc[0])
    if beyond * findings.count < LEAST_EVENTS:
        return said + "."
    kept = float(worst["benefit_kept"])
    keeps = Markup("") if math.isnan(kept) else Markup(", where it keeps {}").format(percent(kept))
    return said + Markup(", at the price of up to {} more deaths per {:,} (at ε = {}{}).").format(
        formats.events(beyond, findings.count), findings.count, plain(float(worst["epsilon"])), keeps
    )


def rise_sentence(table: pd.DataFrame, findings: Findings, actions: Sequence[str]) -> Markup:
    """Where the optimum costs more deaths at a larger epsilon, and which treatment it then gives to more patients.

    Parameters
    ----------
    table : DataFrame
        The comparison, with the references.
    findings : Findings
        Of the study.
    actions : sequence of str
        The treatments.

    Returns
    -------
    Markup
        Of the largest rise without a fall between, not counting what `flat_sentence` says: that from one treatment for
        all to the first epsilon at which the optimum is worth more. Empty where there is none that is more than
        rounding.
    """
    mine = _over_epsilon(table, Optimal.name)
    if not findings.deaths or mine.empty or mine["extra_deaths"].isna().any():
        return Markup("")
    begins = next((row.better_from for row in findings.rows if row.policy == Optimal.name), math.nan)
    mine = mine[mine.index > formats.next_below(begins)] if flat_sentence(table, findings) else mine
    places = list(_largest_rise(mine["extra_deaths"].tolist()))
    ends = mine.iloc[places]
    before, after = ends["extra_deaths"]
    written = [formats.events(deaths, findings.count, sign=True) for deaths in (before, after)]
    if (after - before) * findings.count < LEAST_EVENTS or written[0] == written[1]:
        return Markup("")
    said = Markup(
        "More ε does not always mean fewer deaths: from ε = {} to ε = {} the extra deaths of {} rise from {} to {} per "
        "{:,}"
    ).format(
        *(plain(epsilon) for epsilon in ends.index),
        Optimal.name,
        *(more_events(deaths, findings.count) for deaths in (before, after)),
        findings.count,
    )
    gained = max(actions, key=lambda action: float(ends[f"p_{action}"].diff().iloc[-1]))
    shares = ends[f"p_{gained}"].tolist()
    if formats.percent(shares[0]) != formats.percent(shares[1]):
        said += Markup(", and {} goes from {} to {} of patients").format(gained, *map(percent, shares))
    return said + ". It maximises utility, not survival."


def _over_epsilon(table: pd.DataFrame, policy: str) -> pd.DataFrame:
    """The rows of everyone under a policy, by epsilon."""
    rows = table[(table["group"] == ALL) & (table["policy"] == policy)]
    return rows.set_index("epsilon").sort_index()


def _largest_rise(numbers: Sequence[float]) -> tuple[int, int]:
    """Between which places numbers rise most without a fall between; the first place twice where they never rise.

    Examples
    --------
    >>> _largest_rise([46, 30, 14, 18, 17, 18, 4]), _largest_rise([3, 2])
    ((2, 3), (0, 0))
    """
    start, found = 0, (0, 0)
    for place in range(1, len(numbers)):
        if numbers[place] <= numbers[place - 1]:
            start = place
        elif numbers[place] - numbers[start] > numbers[found[1]] - numbers[found[0]]:
            found = (start, place)
    return found
