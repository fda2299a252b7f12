"""Who bears the extra deaths of a policy, if it is nearly all one group of patients."""

from __future__ import annotations

import math

import pandas as pd
from markupsafe import Markup

from policysim.decision.findings import Findings
from policysim.question.formats import FILTERS, LEAST_EVENTS
from policysim.question.words import ALL, level_name
from policysim.study.basis import in_words
from policysim.study.declared import ScenarioStudy

more_events, percent = (FILTERS[name] for name in ("more_events", "percent"))

# A group bears nearly all if it has this share of the extra deaths, and is worth a word if it is no larger than that.
NEARLY_ALL, LARGEST = 0.9, 0.5
# Nearer to all of them than this is all but for rounding: the others have, on balance, none.
ROUNDING = 1e-6


def who_dies(table: pd.DataFrame, policy: str, findings: Findings, study: ScenarioStudy) -> Markup:
    """A sentence on the smallest group that has nearly all extra deaths of a policy at the study's epsilon.

    Parameters
    ----------
    table : DataFrame
        From `compare`: the groups of the study are those that are looked at.
    policy : str
        One of its policies.
    findings : Findings
        Of the study: its epsilon, and among how many patients deaths are counted.
    study : ScenarioStudy
        The words for its groups.

    Returns
    -------
    Markup
        Empty where there are no groups or no extra deaths, or where none has nearly all.
    """
    rows = in_words(table[(table["epsilon"] == findings.epsilon) & (table["policy"] == policy)], study.scenario.space)
    everyone, groups = rows[rows["group"] == ALL], rows[(rows["group"] != ALL) & (rows["share"] <= LARGEST)]
    extra = float(everyone["extra_deaths"].iloc[0]) if len(everyone) else math.nan
    if not extra * findings.count >= LEAST_EVENTS:
        return Markup("")
    part = groups["share"] * groups["extra_deaths"] / extra
    bearing = groups.assign(part=part)[part >= NEARLY_ALL]
    if bearing.empty:
        return Markup("")
    group = bearing.iloc[int(bearing["share"].argmin())]
    who = level_name(str(group["group"]), str(group["level"])), percent(float(group["share"]))
    deaths = more_events(float(group["extra_deaths"]), findings.count), findings.count
    if group["part"] > 1 + ROUNDING:
        return Markup(
            "More than all of these are among “{}” patients ({} of all): {} per {:,} of them; of the others fewer die."
        ).format(*who, *deaths)
    return Markup("Net, {} of these are among “{}” patients ({} of all): {} per {:,} of them.").format(
        "all" if group["part"] >= 1 - ROUNDING else "nearly all", *who, *deaths
    )
