"""The answer in three sentences: the safest choice, the most useful one, and what lies between them.

Where deaths are not counted: what choosing privately costs, beside what, and at which epsilon it costs little.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from markupsafe import Markup

from policies.catalogue import CATALOGUE
from policies.optimal.optimum import Optimal, OptimalSafe
from policies.reference import BestFixed
from policysim.decision.findings import Findings, PolicyRow
from policysim.question.formats import FILTERS, LEAST_EVENTS, NEGLIGIBLE
from policysim.question.words import ACHIEVABLE, ALL, KEEP, UNBEATABLE, attains, unused
from policysim.study.slider import best_first

decimal, events, percent, percent_down, percent_up, plain, rounded, rounded_down = (
    FILTERS[name]
    for name in ("decimal", "events", "percent", "percent_down", "percent_up", "plain", "rounded", "rounded_down")
)

BEST_FOUND = "the best mechanism found by linear programming"
BEYOND = "of what choosing for each patient is worth beyond one treatment for all"


def answer(findings: Findings, table: pd.DataFrame) -> list[Markup]:
    """Three sentences with numbers, or fewer where there is less to say.

    No policy is named for its benefit without its deaths, where deaths are counted.

    Parameters
    ----------
    findings : Findings
        Of the study.
    table : DataFrame
        From `compare`, with the references.
    """
    private, rows = private_rows(findings), rows_of(findings, table)
    if findings.unused and not findings.used:
        return [Markup.escape(unused(findings.unused))]
    if not private:
        none = Markup("No private mechanism was compared: one treatment for all costs no privacy at all.")
        return [none, *_bounds(findings, rows)]
    known = ranked(findings, rows)
    if not known and findings.gain.exists:
        return [_little(findings), _lost(private, rows, findings)]
    if not known:
        return [
            Markup(
                "One treatment for all, “{}”, is as good as the best for each patient here: privacy need not cost "
                "anything, whatever ε is."
            ).format(findings.one_for_all)
        ]
    count = counted(known, rows, findings)
    said = (
        _harm_and_benefit(known, rows, findings, count)
        if count
        else [_kept(known, rows, findings), _cost(known, rows), which_epsilon(known, findings)]
    )
    return [*said, Markup.escape(unused(findings.unused))] if findings.unused else said


def rows_of(findings: Findings, table: pd.DataFrame) -> dict[str, dict[Hashable, Any]]:
    """The rows of a comparison at the study's epsilon, of all patients, by policy."""
    at_epsilon = table[(table["epsilon"] == findings.epsilon) & (table["group"] == ALL)]
    return {str(row["policy"]): row for row in at_epsilon.to_dict("records")}


def ranked(findings: Findings, rows: Mapping[str, Mapping[Hashable, Any]]) -> list[PolicyRow]:
    """The policies that spend epsilon, best first; none where shares of the benefit say little."""
    found = {row.policy: row for row in private_rows(findings) if not math.isnan(row.benefit_kept)}
    return [found[name] for name in best_first(found, {name: float(rows[name]["value"]) for name in found})]


def private_rows(findings: Findings) -> list[PolicyRow]:
    """The rows of policies that spend epsilon, without the bounds of the limit."""
    return [row for row in findings.rows if row.policy in CATALOGUE and CATALOGUE[row.policy].uses_epsilon]


def _bounds(findings: Findings, rows: Mapping[str, Mapping[Hashable, Any]]) -> list[Markup]:
    """A sentence on the limit where only bounds of it are known."""
    if ACHIEVABLE not in rows or math.isnan(rows[ACHIEVABLE]["benefit_kept"]) or not findings.gain.has_shares:
        return []
    opening = Markup("At ε = {} some policy keeps {} ").format(
        plain(findings.epsilon), percent_down(rows[ACHIEVABLE]["benefit_kept"])
    )
    return [opening + BEYOND + _most(most_kept(rows), after=", and ") + "."]


def most_kept(rows: Mapping[str, Mapping[Hashable, Any]]) -> float:
    """The share that provably no mechanism exceeds, from the rows of one epsilon; NaN where nothing is proven."""
    proven = (float(row.get("most_kept", math.nan)) for row in rows.values())
    return min((share for share in proven if not math.isnan(share)), default=math.nan)


def _most(most: float, after: str) -> Markup:
    """What no mechanism that gives what it publishes keeps more than, or that this is not proven."""
    shown = percent_up(most)
    # That no more than all can be kept is no finding.
    if math.isnan(most) or shown.striptags() == percent_up(1.0).striptags():
        return Markup("; that no mechanism that gives what it publishes keeps more is not proven")
    return Markup("{}no mechanism that gives what it publishes keeps more than {}").format(after, shown)


def _harm_and_benefit(
    known: Sequence[PolicyRow], rows: Mapping[str, Mapping[Hashable, Any]], findings: Findings, count: int
) -> list[Markup]:
    """The safest choice, the most useful one, and what lies between them."""
    useful, fixed, safest = known[0], for_everybody(rows, findings), safest_option(known, rows, findings)
    opening = Markup("At ε = {} the safest choice ").format(plain(findings.epsilon))
    costs = Markup("costs {} deaths per {} patients than the best treatment for each, and keeps {} ")
    cost = costs.format(more_deaths(safest.extra_deaths, count), f"{count:,}", percent(safest.benefit_kept)) + BEYOND
    if safest.name == useful.policy:
        also = Markup("One treatment for all, {}, costs {} and keeps {}.").format(
            fixed.name, more_deaths(fixed.extra_deaths, count), percent(0.0)
        )
        said = opening + Markup("is also the most useful, {}: it ").format(_titled(useful, rows)) + cost
        return [said + limit_words(useful, rows, after="; "), also, which_epsilon(known, findings)]
    first = opening + Markup("is {}: it ").format(safest.words) + cost + "."
    between = which_epsilon(known, findings)
    if findings.break_even is not None:
        between = Markup(
            "Between the two, {} is worth more than giving everybody {} while a death weighs less than {} ({} is "
            "assumed); {}"
        ).format(
            findings.break_even.policy,
            fixed.name,
            rounded_down(findings.break_even.weight),
            plain(findings.break_even.assumed),
            _lowered(between),
        )
    return [first, _most_useful(useful, rows, count, alone=len(known) == 1), between]


@dataclass(frozen=True)
class Option:
    """What may be chosen: a single treatment for all, or a mechanism."""

    name: str
    benefit_kept: float
    extra_deaths: float
    single: bool = False

    @property
    def words(self) -> Markup:
        """What is done."""
        return Markup("to give everybody {}" if self.single else "{}").format(self.name)


def for_everybody(rows: Mapping[str, Mapping[Hashable, Any]], findings: Findings) -> Option:
    """One treatment for all, where deaths are counted."""
    return Option(findings.one_for_all, 0.0, float(rows[BestFixed.name]["extra_deaths"]), single=True)


def safest_option(known: Sequence[PolicyRow], rows: Mapping[str, Mapping[Hashable, Any]], findings: Findings) -> Option:
    """What costs the fewest deaths: a mechanism, or a single treatment for all."""
    fixed = for_everybody(rows, findings)
    options = [fixed, *(Option(row.policy, row.benefit_kept, row.extra_deaths) for row in known)]
    if findings.safest.action and findings.safest.action != fixed.name:
        options.append(Option(findings.safest.action, findings.safest.benefit_kept, findings.safest.extra_deaths, True))
    least = min(option.extra_deaths for option in options)
    # Of those whose deaths nobody could tell apart, the most useful; one treatment for all, which hides all, before it.
    as_safe = [option for option in options if (option.extra_deaths - least) * findings.count < LEAST_EVENTS]
    return max(as_safe, key=lambda option: (round(option.benefit_kept, 9), option.single))


def _most_useful(useful: PolicyRow, rows: Mapping[str, Mapping[Hashable, Any]], count: int, *, alone: bool) -> Markup:
    """What the best mechanism keeps and costs, or that none compared is more useful than one treatment for all."""
    better = useful.benefit_kept > NEGLIGIBLE
    if useful.policy == Optimal.name:
        opening = "The most useful is {}, which" if better else "Even {}"
    elif better:
        opening = (
            "The only mechanism compared, {}," if alone else "The most useful of the mechanisms compared is {}, which"
        )
    elif alone:
        opening = "The only mechanism compared is no more useful than one treatment for all: {}"
    else:
        opening = "None of the mechanisms compared is more useful than one treatment for all: the best, {},"
    keeps = Markup(" keeps {} and costs {}").format(
        percent(useful.benefit_kept), more_deaths(useful.extra_deaths, count)
    )
    return Markup(opening).format(_titled(useful, rows)) + keeps + limit_words(useful, rows, after="; ")


def _titled(row: PolicyRow, rows: Mapping[str, Mapping[Hashable, Any]]) -> str:
    """The name of a mechanism; of an optimum that is not proven to be one, how it was found."""
    unproven = row.policy == Optimal.name and not attains(row.benefit_kept, most_kept(rows))
    return f"{row.policy}, {BEST_FOUND}" if unproven else row.policy


def _lowered(sentence: Markup) -> Markup:
    return sentence[:1].lower() + sentence[1:]


def _kept(known: Sequence[PolicyRow], rows: Mapping[str, Mapping[Hashable, Any]], findings: Findings) -> Markup:
    """How much the best mechanism keeps, and how much any could."""
    best = known[0]
    if best.benefit_kept < -NEGLIGIBLE:
        opening = (
            "At ε = {} the only mechanism compared is worth less than one treatment for all: {} keeps {} "
            if len(known) == 1
            else "At ε = {} none of the mechanisms compared is worth as much as one treatment for all: the best, {}, "
            "keeps {} "
        )
    elif best.policy == Optimal.name:
        nothing = round(100 * best.benefit_kept) == 0
        title = "the best mechanism" if attains(best.benefit_kept, most_kept(rows)) else BEST_FOUND
        opening = "At ε = {} " + ("even " if nothing else "") + title + ", {}, keeps {} "
    else:
        opening = (
            "At ε = {} the only mechanism compared, {}, keeps {} "
            if len(known) == 1
            else "At ε = {} the best of the mechanisms compared, {}, keeps {} "
        )
    kept = Markup(opening).format(plain(findings.epsilon), best.policy, percent(best.benefit_kept)) + BEYOND
    return kept + limit_words(best, rows, after=", and ")


def counted(known: Sequence[PolicyRow], rows: Mapping[str, Mapping[Hashable, Any]], findings: Findings) -> int:
    """Among how many patients deaths are counted; 0 where those of the policies that are named are not known."""
    named = [BestFixed.name, *(row.policy for row in known[:2])]
    if not findings.deaths or any(math.isnan(rows[name].get("extra_deaths", math.nan)) for name in named):
        return 0
    return findings.count


def more_deaths(rate: float, count: int) -> Markup:
    """30 more, no more, 2 fewer."""
    if abs(rate) * count < LEAST_EVENTS:
        return Markup("no more")
    return Markup("{} {}").format(events(abs(rate), count), "more" if rate > 0 else "fewer")


def _lives(policy: str, rows: Mapping[str, Mapping[Hashable, Any]], findings: Findings, count: int) -> Markup:
    """What a policy costs in lives, and the safest treatment for all; empty where that costs no fewer."""
    if not count:
        return Markup("")
    mine, fixed = (float(rows[name]["extra_deaths"]) for name in (policy, BestFixed.name))
    for_all = Markup("one treatment for all")
    action, safest, _ = findings.safest
    if (fixed - safest) * count >= LEAST_EVENTS:
        for_all, fixed = Markup("giving everybody {}").format(action), safest
    if (mine - fixed) * count < LEAST_EVENTS:
        return Markup("")
    said = more_deaths(mine, count), more_deaths(fixed, count)
    # Two digits may not tell them apart.
    other = said[1] if said[0].striptags() != said[1].striptags() else Markup("slightly fewer")
    return Markup("costs {} deaths per {} patients than the best treatment for each, where {} costs {}").format(
        said[0], f"{count:,}", for_all, other
    )


def limit_words(best: PolicyRow, rows: Mapping[str, Mapping[Hashable, Any]], after: str) -> Markup:
    """How much more any mechanism could keep, as far as that is proven."""
    most = most_kept(rows)
    if attains(best.benefit_kept, most):
        return Markup("{}no mechanism that gives what it publishes keeps more.").format(after)
    if ACHIEVABLE in rows:
        some = Markup("; some policy keeps {}").format(percent_down(rows[ACHIEVABLE]["benefit_kept"]))
        return some + _most(most, after=", and ") + "."
    if Optimal.name in rows or UNBEATABLE in rows:
        return _most(most, after) + "."
    return Markup("; what no mechanism that gives what it publishes exceeds was not computed.")


def _little(findings: Findings) -> Markup:
    """That one treatment for all is nearly as good as the best for each."""
    gain = findings.gain
    return Markup(
        "One treatment for all, “{}”, is nearly as good as the best for each patient here: it loses {} in utility per "
        "patient, where choosing by lot loses {}, too little to give shares of it."
    ).format(findings.one_for_all, rounded(gain.best - gain.fixed), rounded(gain.best - gain.by_lot))


def _lost(private: Sequence[PolicyRow], rows: Mapping[str, Mapping[Hashable, Any]], findings: Findings) -> Markup:
    """The utility that the best mechanism loses, where no share of the benefit is said."""
    found = {row.policy: row for row in private}
    ordered = [found[name] for name in best_first(found, {name: float(rows[name]["value"]) for name in found})]
    best = ordered[0].policy
    of = "the best of the mechanisms compared" if len(ordered) > 1 else "the only mechanism compared"
    lives = _lives(best, rows, findings, counted(ordered, rows, findings))
    lost = Markup("At ε = {} {}, {}, loses {} in utility per patient").format(
        plain(findings.epsilon), of, best, rounded(float(rows[best]["loss"]))
    )
    return lost + (Markup(" and ") + lives if lives else Markup("")) + "."


def _cost(known: Sequence[PolicyRow], rows: Mapping[str, Mapping[Hashable, Any]]) -> Markup:
    """What that means in utility, beside one treatment for all and the next mechanism."""
    best, *others = known

    def cost(name: str) -> Markup:
        return Markup("{} in utility").format(rounded(float(rows[name]["loss"])))

    sentence = Markup(
        "Compared with the best treatment for each patient, which hides nothing, it costs {} per patient; one "
        "treatment for all, which needs no privacy, costs {}"
    ).format(cost(best.policy), cost(BestFixed.name))
    if others:
        sentence += Markup(", and the next mechanism, {} (benefit kept {}), {}").format(
            others[0].policy, percent(others[0].benefit_kept), cost(others[0].policy)
        )
    return sentence + "."


def which_epsilon(known: Sequence[PolicyRow], findings: Findings) -> Markup:
    """The epsilon that it takes to keep most of the benefit, and to be better than one treatment for all."""
    enough, safe = reaching(known)
    keep = percent(KEEP)
    if not enough:
        sentence = Markup("No ε lets a mechanism compared keep {}").format(keep)
    else:
        first, *more = [Markup("{} with {}").format(decimal(row.keeps_from), row.policy) for row in enough]
        sentence = Markup("Keeping {} takes ε = {}").format(keep, first)
        if len(more) == 1:
            sentence += Markup(", or {}").format(more[0])
        elif more:
            sentence += Markup(", {}, and up to {}").format(more[0], more[-1])
        for row in safe:
            sentence += Markup("; {} {} ({})").format(decimal(row.keeps_from), findings.kept_safe, row.policy)
    # Of several that are as good at this epsilon, the one that is worth more from the least epsilon on.
    equal = [row for row in known if math.isclose(row.benefit_kept, known[0].benefit_kept, abs_tol=NEGLIGIBLE)]
    best = min(equal, key=lambda row: row.better_from)
    if best.benefit_kept < -NEGLIGIBLE and math.isfinite(best.better_from):
        sentence += Markup("; {} is worth more than one treatment for all from ε = {} on").format(
            best.policy, decimal(best.better_from)
        )
    return sentence + "."


def reaching(known: Sequence[PolicyRow]) -> tuple[list[PolicyRow], list[PolicyRow]]:
    """Those that keep most of the benefit at some epsilon, the least first; and apart, the one within bounds."""
    finite = [row for row in known if math.isfinite(row.keeps_from)]
    # The optimum before what needs the same.
    reaching = sorted(finite, key=lambda row: (row.keeps_from, row.policy != Optimal.name))
    safe = [row for row in reaching if row.policy == OptimalSafe.name and len(reaching) > 1]
    return [row for row in reaching if row not in safe], safe
