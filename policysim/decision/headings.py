"""What each section of a decision's page found, as its heading: one sentence of the run without its full stop."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd
from markupsafe import Markup

from envs.scenario import DEATH
from policies.reference import BestFixed, Greedy
from policysim.decision.findings import Findings
from policysim.decision.prices import WHOLE_RECORD
from policysim.decision.scenario_outcomes import COSTS
from policysim.decision.summary import private_rows
from policysim.question import formats
from policysim.question.formats import FILTERS, NEGLIGIBLE, shown
from policysim.question.words import in_a_row
from policysim.study.slider import Slider

percent, percent_1_up, plain, rounded, rounded_down = (
    FILTERS[name] for name in ("percent", "percent_1_up", "plain", "rounded", "rounded_down")
)

NONE = Markup("")
# Of what an observer knows whose belief is said.
GIVEN_PUBLIC = ", given what is public,"
# Less of the benefit would be 0.0 % in print.
LEAST_TENTH = 0.001


@dataclass(frozen=True)
class Headings:
    """A finding for each section of the page; empty where there is none, so that the subject is the heading."""

    policies: Markup = NONE
    patients: Markup = NONE
    groups: Markup = NONE
    parts: Markup = NONE
    observer: Markup = NONE
    deaths: Markup = NONE
    prices: Markup = NONE
    model: Markup = NONE
    sensitivity: Markup = NONE
    limit: Markup = NONE


def headings(
    findings: Findings,
    slider: Slider,
    *,
    most_kept: float,
    parts: pd.DataFrame,
    drivers: pd.DataFrame,
    prices: pd.DataFrame | None,
) -> Headings:
    """The headings of a comparison's page.

    Parameters
    ----------
    findings, slider
        Of the study.
    most_kept : float
        The share of the benefit that provably no mechanism exceeds; NaN where nothing is proven.
    parts : DataFrame
        From `loss_by_outcome`.
    drivers : DataFrame
        From `sensitivity_by_outcome`.
    prices : DataFrame or None
        From `price_list`.
    """
    return Headings(
        policies=_policies(findings),
        patients=_patients(slider),
        groups=_groups(slider),
        parts=_parts(parts, slider.policy),
        observer=_observer(findings),
        deaths=_deaths(findings),
        prices=_prices(prices, findings),
        model=_model(findings),
        sensitivity=_sensitivity(drivers),
        limit=_limit(most_kept, findings),
    )


def _policies(findings: Findings) -> Markup:
    """How many of the mechanisms are worth more than one treatment for all."""
    kept = [row.benefit_kept for row in private_rows(findings) if not math.isnan(row.benefit_kept)]
    better = sum(share > NEGLIGIBLE for share in kept)
    if not kept:
        return NONE
    if len(kept) == 1:
        said = "the only mechanism compared is{} worth more".format("" if better else " not")
    elif len(kept) == 2 and better != 1:
        both = "both mechanisms that spend ε are" if better else "neither of the two mechanisms that spend ε is"
        said = f"{both} worth more"
    elif better in (0, len(kept)):
        every = "all" if better else "none"
        said = f"{every} of the {len(kept)} mechanisms that spend ε {'are' if better else 'is'} worth more"
    else:
        some = "one" if better == 1 else better
        said = f"{some} of the {len(kept)} mechanisms that spend ε {'is' if better == 1 else 'are'} worth more"
    return Markup("At ε = {}, {} than one treatment for all").format(plain(findings.epsilon), said)


def _patients(slider: Slider) -> Markup:
    """How many of the example patients get what is best for them more often than not."""
    if slider.policy == Greedy.name:
        return NONE
    right = [sum(patient.probabilities[action] for action in patient.best) > 0.5 for patient in slider.patients]
    often = "all" if all(right) else sum(right) or "none"
    return Markup("At ε = {}, {} gives {} of {} example patients their best treatment more often than not").format(
        plain(slider.epsilon), slider.policy, often, len(right)
    )


def _groups(slider: Slider) -> Markup:
    """Which group loses most, beside the average."""
    if not slider.groups or slider.now["loss"] <= NEGLIGIBLE:
        return NONE
    worst = max(slider.groups, key=lambda group: group.loss)
    times = worst.loss / slider.now["loss"]
    if times < 1.05:
        return Markup("No group loses much more than the average under {}").format(slider.policy)
    return Markup("“{}” patients lose most under {}: {} times the average").format(
        worst.name, slider.policy, formats.rounded(times)
    )


def _parts(parts: pd.DataFrame, policy: str) -> Markup:
    """In which outcome a policy gains most, and in which it loses most, against one treatment for all."""
    lost = parts.pivot_table(index="outcome", columns="policy", values="lost", sort=False)
    if not {policy, BestFixed.name} <= set(lost.columns):
        return NONE
    gained = lost[BestFixed.name] - lost[policy]
    said = [
        Markup("{} most from {}").format(verb, _change(str(name), better=verb == "gains"))
        for verb, name, change in (("gains", gained.idxmax(), gained.max()), ("loses", gained.idxmin(), -gained.min()))
        if change > NEGLIGIBLE
    ]
    if not said:
        return Markup("In no outcome does {} differ from one treatment for all").format(policy)
    return Markup("Against one treatment for all, {} {}").format(policy, Markup(" and ").join(said))


def _change(name: str, *, better: bool) -> str:
    """How an outcome, or the costs, changed in which utility is gained, or lost: no weight is below 0."""
    if name == COSTS:
        return f"{'lower' if better else 'higher'} {COSTS}"
    more = "fewer" if better else "more"
    return f"{more} deaths" if name == DEATH else f"{more} cases of “{name.replace('_', ' ')}”"


def _observer(findings: Findings) -> Markup:
    """The largest change of a belief."""
    most = None if findings.beliefs is None else findings.beliefs.told
    if findings.beliefs is None or most is None:
        return NONE
    before, after = map(shown, (most.before, most.farthest[1]), most.texts)
    return Markup("At ε = {}, {} moves an observer’s probability of “{}”{} from {} to {} of 100").format(
        plain(findings.epsilon), findings.beliefs.policy, most.words, GIVEN_PUBLIC if most.among else "", before, after
    )


def _deaths(findings: Findings) -> Markup:
    """Up to which weight of a death the best private choice is worth it."""
    even = findings.break_even
    if even is None:
        return NONE
    return Markup(
        "At ε = {}, {} is worth more than one for all while a death weighs less than {} in utility; {} is assumed"
    ).format(plain(findings.epsilon), even.policy, rounded_down(even.weight), plain(even.assumed))


def _prices(prices: pd.DataFrame | None, findings: Findings) -> Markup:
    """Which single feature is dearest to hide."""
    if prices is None:
        return NONE
    single = prices[prices["used"].astype(bool) & (prices["hides"] != WHOLE_RECORD)]
    if single.empty:
        return NONE
    dearest = single.iloc[0]
    name = str(dearest["hides"]).replace("_", " ")
    if dearest["loss"] <= NEGLIGIBLE:
        return Markup("Hiding any single feature costs nothing at ε = {}").format(plain(findings.epsilon))
    if math.isnan(dearest["benefit_kept"]):
        return Markup("Of single features, “{}” costs most to hide: {} in utility per patient").format(
            name, rounded(float(dearest["loss"]))
        )
    lost = 1 - float(dearest["benefit_kept"])
    return Markup("Of single features, “{}” costs most to hide: {} of the benefit").format(
        name, formats.percent_1(lost) if lost >= LEAST_TENTH else f"less than {formats.percent_1(LEAST_TENTH)}"
    )


def _model(findings: Findings) -> Markup:
    """How often the first of the ranking stays first, and where its prior is so wrong that one for all is better."""
    found = findings.robustness
    if found is None or len(found.ranking) < 2:
        return NONE
    first = found.ranking[0]
    said = Markup("{} is first in {} of {} redraws of the model’s numbers").format(
        first, plain(found.first_holds), plain(found.redraws)
    )
    worse = [factor for factor, kept in findings.prevalence.get(first, {}).items() if kept < -NEGLIGIBLE]
    if not worse:
        return said
    return said + Markup("; worse than one for all at {} times the assumed prevalence").format(in_a_row(worse, "and"))


def _sensitivity(drivers: pd.DataFrame) -> Markup:
    """Which outcome makes up most of the sensitivity."""
    known = drivers[drivers["share"] > 0]
    if known.empty:
        return NONE
    most = known.iloc[int(known["share"].argmax())]
    return Markup("“{}” makes up {} of the sensitivity").format(
        str(most["outcome"]).replace("_", " "), percent(float(most["share"]))
    )


def _limit(most_kept: float, findings: Findings) -> Markup:
    """What no mechanism exceeds, where that is proven and less than all."""
    if math.isnan(most_kept) or not findings.gain.has_shares or most_kept > 0.99:
        return NONE
    return Markup("At ε = {}, no mechanism that gives what it publishes keeps more than {} of the benefit").format(
        plain(findings.epsilon), percent_1_up(most_kept)
    )
