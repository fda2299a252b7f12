"""The first screen of a decision's page, below its headline: three sentences, three numbers, and what they are of.

Every number stands beside that of one treatment for all, which costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import pandas as pd
from markupsafe import Markup

from envs.scenario import DEATH
from policies.reference import BestFixed
from policysim.decision.beliefs import Beliefs, belief_sentence
from policysim.decision.findings import Findings, PolicyRow
from policysim.decision.summary import (
    Option,
    answer,
    counted,
    for_everybody,
    more_deaths,
    most_kept,
    ranked,
    rows_of,
    safest_option,
)
from policysim.question import formats
from policysim.question.first_screen import TOLD_APART, Brief, Point, Tile
from policysim.question.formats import FILTERS, LEAST_EVENTS, NEGLIGIBLE
from policysim.question.words import ALL, attains, level_name
from policysim.study.basis import in_words
from policysim.study.declared import ScenarioStudy
from policysim.study.slider import Slider

# So many numbers are in the strip, of those that a study has.
WIDTH = 3
# A group bears nearly all if it has this share of the extra deaths, and is worth a word if it is no larger than that.
NEARLY_ALL, LARGEST = 0.9, 0.5
# Nearer to all of them than this is all but for rounding: the others have, on balance, none.
ALL_BUT_FOR_ROUNDING = 1e-6


def brief(study: ScenarioStudy, findings: Findings, table: pd.DataFrame, slider: Slider) -> Brief:
    """Sum up a comparison for somebody who reads one screen of it.

    Parameters
    ----------
    study : ScenarioStudy
        What was asked: its treatments and weights in words.
    findings : Findings
        Of the study.
    table : DataFrame
        From `compare`, with the references.
    slider : Slider
        Whose first position the strip is at.
    """
    rows = rows_of(findings, table)
    # Of hidden features that no treatment depends on, no policy has a price.
    known = ranked(findings, rows) if findings.used or not findings.unused else []
    points = (
        _points(known, rows, table, findings, study) if known else [Point("", said) for said in answer(findings, table)]
    )
    return Brief(tuple(points), strip(findings.count, slider), scale(findings, study))


def strip(count: int, slider: Slider) -> tuple[Tile, ...]:
    """The first `WIDTH` of the numbers that a study has, those about patients before those about utility."""
    kinds: dict[str, tuple[str, Callable[[Mapping[str, float]], str]]] = {
        "extra_deaths": (
            f"extra deaths per {count:,}, against the best treatment for each",
            lambda now: formats.events(now["extra_deaths"], count, sign=True),
        ),
        "guess_rate": (
            TOLD_APART,
            lambda now: formats.guess_rate(now["guess_rate"]),
        ),
        "benefit_kept": (
            "of the benefit of choosing for each patient is kept",
            lambda now: formats.percent(now["benefit_kept"]),
        ),
        "loss": ("in utility lost per patient", lambda now: formats.rounded(now["loss"])),
    }
    return tuple(
        Tile(name, label, slider.now[name], written(slider.now), written(slider.for_all))
        for name, (label, written) in kinds.items()
        if name in slider.now and name in slider.for_all
    )[:WIDTH]


def scale(findings: Findings, study: ScenarioStudy) -> str:
    """Which way ε goes, what 0 % and 100 % of the benefit are where it is said in shares, and what utility weighs."""
    shares = "Benefit: 0\u00a0% = one for all, 100\u00a0% = best for each. " if findings.gain.has_shares else ""
    weights = [
        (weight, study.scenario.outcome_title(name))
        for name, weight in study.utility.weights.items()
        if weight > 0 and (findings.deaths or name != DEATH)
    ]
    if not weights:
        return f"Smaller ε: more private. {shares}".strip()
    most, least = max(weights, key=lambda each: each[0]), min(weights, key=lambda each: each[0])
    said = f"“{most[1]}” {formats.plain(most[0])}"
    if least[0] < most[0]:
        said += f", “{least[1]}” {formats.plain(least[0])}"
    return f"Smaller ε: more private. {shares}Utility weighs {said}."


def titled(action: str, study: ScenarioStudy) -> str:
    """The name of a treatment, and its title where that is another."""
    treatment = study.scenario.treatments.get(action)
    return action if treatment is None or treatment.title == action else f"{action} ({treatment.title})"


def _points(
    known: Sequence[PolicyRow],
    rows: Mapping[str, Mapping[Hashable, Any]],
    table: pd.DataFrame,
    findings: Findings,
    study: ScenarioStudy,
) -> list[Point]:
    """The safest choice, or one treatment for all; the most useful one, and who pays; and what an observer learns."""
    useful, count = known[0], counted(known, rows, findings)
    better = useful.benefit_kept > NEGLIGIBLE
    lead = "Most useful" if better else "Best mechanism"
    at = Markup("At ε = {} ").format(FILTERS["plain"](findings.epsilon))
    learns = _learns(findings.beliefs)
    # In whole per cent where nothing is proven beside it, so that the title has the same number.
    keeps = Markup("{} keeps {} of the benefit").format(useful.policy, FILTERS["percent_1"](useful.benefit_kept))
    most, proven = most_kept(rows), Markup("")
    if attains(useful.benefit_kept, most):
        proven = Markup(" (proven: no private choice keeps more)")
    elif most < 1 and formats.percent_1_up(most) != formats.percent_1_up(1.0):
        proven = Markup(" (proven: no private choice keeps more than {})").format(FILTERS["percent_1_up"](most))
    if not count:
        free = Markup(
            "Give everybody {}: {} in utility per patient is lost against the best treatment for each, and {}."
        ).format(
            titled(findings.one_for_all, study), FILTERS["rounded"](float(rows[BestFixed.name]["loss"])), HIDES_ALL
        )
        return [Point("One for all", free), Point(lead, at + keeps + proven + "."), *learns]
    fixed, safest = for_everybody(rows, findings), safest_option(known, rows, findings)
    against = Markup("{} deaths per {:,} than the best treatment for each")

    def lives(option: Option | PolicyRow) -> Markup:
        return against.format(more_deaths(option.extra_deaths, count), count)

    def everybody(option: Option) -> Markup:
        said = Markup("Give everybody {}: {}, and {}.").format(titled(option.name, study), lives(option), HIDES_ALL)
        return said if option.name == fixed.name else said + f" It scores lower than {fixed.name} for all."

    who = who_dies(table, useful.policy, findings, study)
    costs = at + keeps + proven + Markup(" and costs {}.").format(lives(useful)) + (" " + who if who else "")
    if safest.name == useful.policy:
        return [
            Point(f"Private, with the fewest deaths, and {lead.lower()}", costs),
            Point("One for all", everybody(fixed)),
            *learns,
        ]
    fewest = everybody(safest) if safest.single else at + Markup("{}: {}.").format(safest.name, lives(safest))
    return [
        Point("Private, with the fewest deaths", fewest),
        Point(lead if not who else f"{lead}, and who pays", costs),
        *learns,
    ]


# What one treatment for all does for privacy; what decides who may get it is public.
HIDES_ALL = "nothing hidden is revealed"


def _learns(found: Beliefs | None) -> list[Point]:
    """What the treatment that says most says to an observer."""
    if found is None:
        return []
    most = found.told
    if most is None:
        return [Point("What an observer learns", belief_sentence(found))]
    before, after = map(formats.shown, (most.before, most.farthest[1]), most.texts)
    public = f"“{most.among}” " if most.among else ""
    said = Markup(
        "Of 100 {}patients to whom {} gives {}, {} are “{}”; of 100 {}patients overall, {}. Of what is hidden, this is "
        "given away most."
    ).format(public, found.policy, most.farthest[0], after, most.words, "such " if public else "", before)
    return [Point("What an observer learns", said)]


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
    who = level_name(str(group["group"]), str(group["level"])), FILTERS["percent"](float(group["share"]))
    deaths = FILTERS["more_events"](float(group["extra_deaths"]), findings.count), findings.count
    if group["part"] > 1 + ALL_BUT_FOR_ROUNDING:
        return Markup(
            "More than all of these are among “{}” patients ({} of all): {} per {:,} of them; of the others fewer die."
        ).format(*who, *deaths)
    return Markup("Net, {} of these are among “{}” patients ({} of all): {} per {:,} of them.").format(
        "all" if group["part"] >= 1 - ALL_BUT_FOR_ROUNDING else "nearly all", *who, *deaths
    )
