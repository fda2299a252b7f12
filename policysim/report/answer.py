"""The answer in three sentences: what privacy costs here, with which mechanism, at which epsilon."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd
from markupsafe import Markup

from policies.catalogue import CATALOGUE
from policies.optimal import Optimal
from policies.reference import BestFixed
from policysim.evaluate import ACHIEVABLE, ALL, UNBEATABLE
from policysim.findings import KEEP, Findings, Row
from policysim.report.ranking import best_first
from policysim.report.shown import events, percent, percent_up, plain, rounded
from policysim.words import NEGLIGIBLE, population

# How exact the searches for an epsilon are, relative to it: closer ones are equal.
SEARCHED = 1e-3
# Fewer deaths than this, in as many patients as show two digits, are not told from none.
LEAST = 0.01
BEYOND = "of what choosing for each patient is worth beyond one treatment for all"


def answer(findings: Findings, table: pd.DataFrame) -> list[Markup]:
    """Three sentences with numbers, or fewer where there is less to say.

    Parameters
    ----------
    findings : Findings
        Of the study.
    table : DataFrame
        From `compare`, with the references.
    """
    private = private_rows(findings)
    at_epsilon = table[(table["epsilon"] == findings.epsilon) & (table["group"] == ALL)]
    rows = {str(row["policy"]): row for row in at_epsilon.to_dict("records")}
    if not private:
        none = Markup("No private mechanism was compared: one treatment for all costs no privacy at all.")
        return [none, *_bounds(findings, rows)]
    found = {row.policy: row for row in private if not math.isnan(row.benefit_kept)}
    known = [found[name] for name in best_first(found, {name: float(rows[name]["value"]) for name in found})]
    if not known:
        return [
            Markup(
                "One treatment for all, “{}”, is as good as the best for each patient here: privacy need not cost "
                "anything, whatever ε is."
            ).format(findings.one_for_all)
        ]
    return [_kept(known, rows, findings), _cost(known, rows, deaths=bool(findings.deaths)), _which_epsilon(known)]


def private_rows(findings: Findings) -> list[Row]:
    """The rows of policies that spend epsilon, without the bounds of the limit."""
    return [row for row in findings.rows if row.policy in CATALOGUE and CATALOGUE[row.policy].uses_epsilon]


def _bounds(findings: Findings, rows: Mapping[str, Mapping[Hashable, Any]]) -> list[Markup]:
    """A sentence on the limit where only bounds of it are known."""
    if UNBEATABLE not in rows or math.isnan(rows[UNBEATABLE]["benefit_kept"]):
        return []
    opening = Markup("At ε = {} ").format(plain(findings.epsilon))
    return [opening + _between(rows) + Markup(" {}.").format(BEYOND)]


def _between(rows: Mapping[str, Mapping[Hashable, Any]]) -> Markup:
    """What can be kept, and what cannot be exceeded."""
    most = Markup("none can keep more than {}").format(percent_up(rows[UNBEATABLE]["benefit_kept"]))
    if ACHIEVABLE not in rows:
        return most
    return Markup("some policy keeps {}, and ").format(percent(rows[ACHIEVABLE]["benefit_kept"])) + most


def _kept(known: Sequence[Row], rows: Mapping[str, Mapping[Hashable, Any]], findings: Findings) -> Markup:
    """How much the best mechanism keeps, and how much any could."""
    best = known[0]
    limit = _limit(best, rows)
    if best.benefit_kept < 0:
        opening = (
            "At ε = {} the only mechanism compared is worth less than one treatment for all: {} keeps {} "
            if len(known) == 1
            else "At ε = {} none of the mechanisms compared is worth as much as one treatment for all: the best, {}, "
            "keeps {} "
        )
    elif best.policy == Optimal.name:
        nothing = round(100 * best.benefit_kept) == 0
        opening = "At ε = {} " + ("even " if nothing else "") + "the best mechanism, {}, keeps {} "
    else:
        opening = (
            "At ε = {} the only mechanism compared, {}, keeps {} "
            if len(known) == 1
            else "At ε = {} the best of the mechanisms compared, {}, keeps {} "
        )
    return Markup(opening).format(plain(findings.epsilon), best.policy, percent(best.benefit_kept)) + BEYOND + limit


def _limit(best: Row, rows: Mapping[str, Mapping[Hashable, Any]]) -> Markup:
    if best.policy == Optimal.name:
        return Markup(", and none can keep more.")
    if UNBEATABLE in rows:
        return Markup("; " if ACHIEVABLE in rows else ", and ") + _between(rows) + Markup(".")
    return Markup("; what no mechanism can exceed was not computed.")


def _cost(known: Sequence[Row], rows: Mapping[str, Mapping[Hashable, Any]], *, deaths: bool) -> Markup:
    """What that means in deaths (or utility), beside one treatment for all and the next mechanism."""
    best, *others = known
    named = [best.policy, BestFixed.name, *(row.policy for row in others[:1])]
    deaths = deaths and all(not math.isnan(rows[name].get("extra_deaths", math.nan)) for name in named)
    column = "extra_deaths" if deaths else "loss"
    count = population(rows[name][column] for name in named) if deaths else 1

    def cost(name: str) -> Markup:
        value = float(rows[name][column])
        if not deaths:
            return Markup("{} in utility").format(rounded(value))
        if abs(value) * count < LEAST:
            return Markup("no more")
        return Markup("{} {}").format(events(abs(value), count), "more" if value > 0 else "fewer")

    per = Markup(" deaths per {} patients").format(f"{count:,}") if deaths else Markup(" per patient")
    sentence = Markup(
        "Compared with the best treatment for each patient, which hides nothing, it costs {}{}; one treatment for all, "
        "which needs no privacy, costs {}"
    ).format(cost(best.policy), per, cost(BestFixed.name))
    if others:
        sentence += Markup(", and the next mechanism, {} (benefit kept {}), {}").format(
            others[0].policy, percent(others[0].benefit_kept), cost(others[0].policy)
        )
    return sentence + "."


def _which_epsilon(known: Sequence[Row]) -> Markup:
    """The epsilon that it takes to keep most of the benefit, and to be better than one treatment for all."""
    reaching = _least_epsilon_first([row for row in known if math.isfinite(row.keeps_from)])
    keep = percent(KEEP)
    if not reaching:
        sentence = Markup("No ε lets a mechanism compared keep {}").format(keep)
    else:
        first, *more = [Markup("{} with {}").format(rounded(row.keeps_from), row.policy) for row in reaching]
        sentence = Markup("To keep {} takes ε = {}").format(keep, first)
        if len(more) == 1:
            sentence += Markup(", or {}").format(more[0])
        elif more:
            sentence += Markup(", {}, and as much as {}").format(more[0], more[-1])
    # Of several that are as good at this epsilon, the one that is worth more from the least epsilon on.
    equal = [row for row in known if math.isclose(row.benefit_kept, known[0].benefit_kept, abs_tol=NEGLIGIBLE)]
    best = min(equal, key=lambda row: row.better_from)
    if best.benefit_kept < 0 and math.isfinite(best.better_from):
        sentence += Markup("; {} is worth more than one treatment for all from ε = {} on").format(
            best.policy, rounded(best.better_from)
        )
    return sentence + "."


def _least_epsilon_first(rows: Sequence[Row]) -> list[Row]:
    """By the epsilon that they take; the optimum before what the search cannot tell from it."""
    ordered = sorted(rows, key=lambda row: row.keeps_from)
    optimum = next((row for row in ordered if row.policy == Optimal.name), None)
    if optimum is None:
        return ordered
    tied = [row for row in ordered if row is not optimum and row.keeps_from >= optimum.keeps_from * (1 - SEARCHED)]
    return [*(row for row in ordered if row is not optimum and row not in tied), optimum, *tied]
