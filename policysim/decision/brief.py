"""The first screen of a decision's page: what was found as a title, three short sentences, and three numbers.

Every number stands beside that of one treatment for all, which costs no privacy.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
from markupsafe import Markup

from policies.optimal.optimum import Optimal
from policies.reference import BestFixed
from policysim.decision.findings import KEEP, Findings, PolicyRow
from policysim.decision.summary import (
    Option,
    answer,
    counted,
    for_everybody,
    limit_words,
    more_deaths,
    most_kept,
    private_rows,
    ranked,
    rows_of,
    safest_option,
    which_epsilon,
)
from policysim.question import shown, words
from policysim.question.words import LEAST_EVENTS, NEGLIGIBLE
from policysim.study.slider import Slider

# So many numbers are in the strip, of those that a study has.
WIDTH = 3


@dataclass(frozen=True)
class Point:
    """A sentence of the brief, and the word that says what it is about."""

    lead: str
    sentence: Markup


@dataclass(frozen=True)
class Tile:
    """A number of the strip.

    Attributes
    ----------
    name : str
        In the slider's numbers.
    label : str
        What it counts, with its unit.
    value, text : float, str
        At the slider's first position.
    for_all : str
        That of one treatment for all.
    """

    name: str
    label: str
    value: float
    text: str
    for_all: str


@dataclass(frozen=True)
class Brief:
    """A title that says what was found, sentences, and a strip of numbers."""

    title: Markup
    points: tuple[Point, ...]
    strip: tuple[Tile, ...]


def brief(findings: Findings, table: pd.DataFrame, slider: Slider) -> Brief:
    """Sum up a comparison for somebody who reads one screen of it.

    Parameters
    ----------
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
    if known:
        points = _points(known, rows, findings)
    else:
        points = [Point("", sentence) for sentence in answer(findings, table)]
    return Brief(_title(known, rows, findings), tuple(points), strip(findings.count, slider))


def strip(count: int, slider: Slider) -> tuple[Tile, ...]:
    """The first `WIDTH` of the numbers that a study has, those about patients before those about utility."""
    kinds: dict[str, tuple[str, Callable[[float], str]]] = {
        "extra_deaths": (f"extra deaths per {count:,} patients", partial(words.events, count=1, sign=True)),
        "worse_than_untreated": ("of 1,000 patients get a treatment worse than none", words.of_thousand),
        "guess_rate": ("of 100 guesses about the patient can be right; 50 is guessing blind", words.plain),
        "benefit_kept": ("of the benefit of choosing for each is kept", words.percent),
        "loss": ("in utility lost per patient", words.rounded),
    }
    return tuple(
        Tile(name, label, slider.now[name], written(slider.now[name]), written(slider.for_all[name]))
        for name, (label, written) in kinds.items()
        if name in slider.now and name in slider.for_all
    )[:WIDTH]


def _title(known: Sequence[PolicyRow], rows: Mapping[str, Mapping[Hashable, Any]], findings: Findings) -> Markup:
    """The finding in one sentence without its full stop."""
    if findings.unused and not findings.used:
        return Markup("What is hidden tells no treatments apart in this model, so its price is unknown")
    if not private_rows(findings):
        return Markup("No private mechanism was compared; one treatment for all costs no privacy")
    if not findings.gain.exists:
        return Markup("One treatment for all is as good as the best for each patient: privacy need not cost anything")
    if not known:
        return Markup("One treatment for all is nearly as good as the best for each patient: there is little to lose")
    useful, at = known[0], Markup("At ε = {} ").format(shown.plain(findings.epsilon))
    if useful.benefit_kept <= NEGLIGIBLE:
        most = most_kept(rows)
        none = "no mechanism is" if most <= NEGLIGIBLE else "no mechanism compared is"
        return at + Markup("{} worth more than one treatment for all").format(none)
    keeps = Markup("the most useful private choice {}keeps {} of the benefit").format(
        "" if useful.policy == Optimal.name else "compared ", shown.percent(useful.benefit_kept)
    )
    if not counted(known, rows, findings):
        return at + keeps
    more = useful.extra_deaths - for_everybody(rows, findings).extra_deaths
    if abs(more) * findings.count < LEAST_EVENTS:
        return at + keeps + " and costs no more lives than one treatment for all"
    if more < 0:
        return at + keeps + " and costs fewer lives than one treatment for all"
    return (
        at
        + keeps
        + Markup(", and costs {} more deaths per {:,} patients than one treatment for all").format(
            shown.events(more, findings.count), findings.count
        )
    )


def _points(known: Sequence[PolicyRow], rows: Mapping[str, Mapping[Hashable, Any]], findings: Findings) -> list[Point]:
    """The safest choice, or one treatment for all; the most useful one; and the epsilon that it takes."""
    useful, enough = known[0], Point(f"To keep {words.percent(KEEP)}", which_epsilon(known, findings))
    best = "Most useful" if useful.benefit_kept > NEGLIGIBLE else "Best mechanism"
    keeps = Markup("{} keeps {} of the benefit").format(useful.policy, shown.percent(useful.benefit_kept))
    limit = limit_words(useful, rows, after="; ")
    count = counted(known, rows, findings)
    if not count:
        fixed = Markup("Giving everybody {} costs no privacy, and {} in utility per patient.").format(
            findings.one_for_all, shown.rounded(float(rows[BestFixed.name]["loss"]))
        )
        return [Point("One for all", fixed), Point(best, keeps + limit), enough]
    fixed, safest = for_everybody(rows, findings), safest_option(known, rows, findings)
    costs = Markup("costs {} deaths per {:,} patients than the best treatment for each")

    def of(option: Option) -> Markup:
        name = Markup("Giving everybody {} ").format(option.name) if option.single else Markup(option.name) + " "
        cost = costs.format(more_deaths(option.extra_deaths, count), count)
        return name + cost + Markup(" and keeps {} of the benefit").format(shown.percent(option.benefit_kept))

    if safest.name == useful.policy:
        return [Point("Safest and most useful", of(safest) + limit), Point("One for all", of(fixed) + "."), enough]
    lives = Markup(" and costs {} deaths").format(more_deaths(useful.extra_deaths, count))
    return [Point("Safest", of(safest) + "."), Point(best, keeps + lives + limit), enough]
