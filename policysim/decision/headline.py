"""The finding of a comparison as a title, with one number: what the most useful private choice keeps, and its deaths.

One treatment for all stands beside it, as it costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from policies.reference import BestFixed
from policysim.decision.findings import Findings, PolicyRow
from policysim.decision.summary import most_kept, private_rows, rows_of
from policysim.question.answer import Headline
from policysim.question.formats import LEAST_EVENTS, NEGLIGIBLE, events, percent, percent_1_up, plain, rounded
from policysim.question.words import attains
from policysim.study.slider import best_first

# What is kept is a share of this.
SHARE = "of the benefit of choosing for each patient"


def headline(findings: Findings, table: pd.DataFrame) -> Headline:
    """What a comparison found, in the fewest words.

    Parameters
    ----------
    findings : Findings
        Of the study.
    table : DataFrame
        From `compare`, with the references.
    """
    if findings.unused and not findings.used:
        return Headline("The model uses nothing of what is hidden, so it cannot say what hiding it costs")
    for_all, gain = findings.one_for_all, findings.gain
    if not gain.exists:
        return Headline(f"Giving everybody {for_all} is as good as the best treatment for each patient")
    if not gain.has_shares:
        return Headline(
            f"Giving everybody {for_all} is nearly as good as the best treatment for each patient",
            rounded(gain.best - gain.fixed),
            "lost in utility per patient by one treatment for all, which costs no privacy",
        )
    rows, private = rows_of(findings, table), {row.policy: row for row in private_rows(findings)}
    if not private:
        return Headline(f"Giving everybody {for_all} costs no privacy; no private choice for each was compared")
    best = private[best_first(private, {name: float(rows[name]["value"]) for name in private})[0]]
    at = f"At ε = {plain(findings.epsilon)}"
    if best.benefit_kept <= NEGLIGIBLE:
        proven = most_kept(rows) <= NEGLIGIBLE
        none = "no private choice" if proven else "no private choice that was compared"
        finding = f"{at}, {none} is worth more than giving everybody {for_all}"
    else:
        whose = "the best private choice" if _is_limit(best, rows) else "the best private choice that was compared"
        finding = f"{at}, {whose} keeps {percent(best.benefit_kept)} {SHARE}"
        finding += _against_one_for_all(best, rows, findings)
    about, most = f"{SHARE} kept at ε = {plain(findings.epsilon)}, by {best.policy}", most_kept(rows)
    if _is_limit(best, rows):
        about += "; no mechanism that gives what it publishes keeps more"
    # That no more than all can be kept is no finding.
    elif not (math.isnan(most) or percent_1_up(most) == percent_1_up(1.0)):
        about += f"; no mechanism that gives what it publishes keeps more than {percent_1_up(most)}"
    return Headline(finding, percent(best.benefit_kept), about)


def _is_limit(best: PolicyRow, rows: Mapping[str, Mapping[Hashable, Any]]) -> bool:
    """Whether it is proven that no mechanism keeps more."""
    return attains(best.benefit_kept, most_kept(rows))


def _against_one_for_all(best: PolicyRow, rows: Mapping[str, Mapping[Hashable, Any]], findings: Findings) -> str:
    """Its deaths against those of the best treatment for all; empty where nobody can die."""
    more = best.extra_deaths - float(rows[BestFixed.name].get("extra_deaths", math.nan))
    if not findings.deaths or math.isnan(more):
        return ""
    count = findings.count
    than = f"than giving everybody {findings.one_for_all}"
    if abs(more) * count < LEAST_EVENTS:
        return f" and costs no more deaths {than}"
    return f" and costs {events(abs(more), count)} {'more' if more > 0 else 'fewer'} deaths per {count:,} {than}"
