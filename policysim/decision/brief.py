"""The first screen of a decision's page, below its headline: three short sentences, and three numbers.

Every number stands beside that of one treatment for all, which costs no privacy.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd
from markupsafe import Markup

from policies.reference import BestFixed
from policysim.decision.findings import Findings, PolicyRow
from policysim.decision.summary import (
    Option,
    answer,
    counted,
    for_everybody,
    limit_words,
    more_deaths,
    ranked,
    rows_of,
    safest_option,
    which_epsilon,
)
from policysim.question import shown, words
from policysim.question.first_screen import Brief, Point, Tile
from policysim.question.words import NEGLIGIBLE
from policysim.study.slider import Slider

# So many numbers are in the strip, of those that a study has.
WIDTH = 3


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
    points = _points(known, rows, findings) if known else [Point("", said) for said in answer(findings, table)]
    return Brief(tuple(points), strip(findings.count, slider))


def strip(count: int, slider: Slider) -> tuple[Tile, ...]:
    """The first `WIDTH` of the numbers that a study has, those about patients before those about utility."""
    kinds: dict[str, tuple[str, Callable[[float], str]]] = {
        "extra_deaths": (f"extra deaths per {count:,} patients", partial(words.events, count=count, sign=True)),
        "worse_than_untreated": ("of 1,000 patients get a treatment worse than none", words.of_thousand),
        "guess_rate": ("of 100 guesses about the patient can be right; 50 is guessing blind", words.guess_rate),
        "benefit_kept": ("of the benefit of choosing for each is kept", words.percent),
        "loss": ("in utility lost per patient", words.rounded),
    }
    return tuple(
        Tile(name, label, slider.now[name], written(slider.now[name]), written(slider.for_all[name]))
        for name, (label, written) in kinds.items()
        if name in slider.now and name in slider.for_all
    )[:WIDTH]


def _points(known: Sequence[PolicyRow], rows: Mapping[str, Mapping[Hashable, Any]], findings: Findings) -> list[Point]:
    """The safest choice, or one treatment for all; the most useful one; and the epsilon that it takes."""
    useful = known[0]
    enough = Point(f"To keep {words.percent(words.KEEP)}", which_epsilon(known, findings, others=False))
    best = "Most useful" if useful.benefit_kept > NEGLIGIBLE else "Best mechanism"
    keeps = Markup("{} keeps {} of the benefit").format(useful.policy, shown.percent(useful.benefit_kept))
    limit = limit_words(useful, rows, after="; ")
    count = counted(known, rows, findings)
    if not count:
        free = Markup("Giving everybody {} costs no privacy, and {} in utility per patient.").format(
            findings.one_for_all, shown.rounded(float(rows[BestFixed.name]["loss"]))
        )
        return [Point("One for all", free), Point(best, keeps + limit), enough]
    fixed, safest = for_everybody(rows, findings), safest_option(known, rows, findings)
    costs = Markup("costs {} deaths per {:,} patients than the best treatment for each")

    def of(option: Option) -> Markup:
        name = Markup("Giving everybody {} " if option.single else "{} ").format(option.name)
        cost = costs.format(more_deaths(option.extra_deaths, count), count)
        return name + cost + Markup(" and keeps {} of the benefit").format(shown.percent(option.benefit_kept))

    if safest.name == useful.policy:
        return [Point("Safest and most useful", of(safest) + limit), Point("One for all", of(fixed) + "."), enough]
    lives = Markup(" and costs {} deaths").format(more_deaths(useful.extra_deaths, count))
    return [Point("Safest", of(safest) + "."), Point(best, keeps + lives + limit), enough]
