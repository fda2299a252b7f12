"""What a report on one decision says: its findings as the words and tables of a screen."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from envs.scenario import SYMPTOMS
from policies.exponential import Exponential, ExponentialFitted
from policies.optimal.optimum import Optimal, OptimalSafe
from policies.reference import BestFixed
from policysim.decision.behind import tables_behind
from policysim.decision.find import DecisionDetails
from policysim.numbers import (
    NEGLIGIBLE,
    about,
    decimal,
    percent,
    places_of_share,
    plain,
    right,
    rounded,
    rounded_up,
    rounded_weight,
    several,
    share,
    span,
    to_places,
)
from policysim.report.findings import BETTER, EQUAL, NOT_SHOWN, UTILITY, WORSE, Findings, rows_of, verdict_of_versions
from policysim.report.screen import Grid, Line, Option, Screen
from policysim.report.weighed import REST, cells_of, changed, row_title
from policysim.study.labels import Labels
from policysim.utility import COSTS
from policysim.words import KEEP, UNBEATABLE, capital, in_a_row

# What the lines of the trace are called.
TRACED = {
    Optimal.name: "limit: the least that any private draw loses",
    UNBEATABLE: "limit: no private draw loses less than",
    ExponentialFitted.name: "exponential mechanism, fitted",
    Exponential.name: "exponential mechanism of the textbook",
}
# Where a screen has more lines with it, the curve over ε stands behind, and the textbook's mechanism goes unexplained.
MOST_LINES = 45
# Spreads of the model's numbers beside the default, and what they are called.
WIDER = {2: "twice the spread", 3: "three times"}


def screen_of(findings: Findings, labels: Labels, *, seen: str = "treatment") -> Screen:
    """The words of a report on one decision.

    Parameters
    ----------
    findings : Findings
        From `policysim.decision.find.find`.
    labels : Labels
        What people call the parts of the problem.
    seen : {"treatment", "publication"}, optional
        What an observer sees.
    """
    trace, behind = tuple(_trace(findings)), tuple(tables_behind(findings, labels))
    screen = Screen(
        title=labels.title,
        advice=_beyond_limits(findings) + advice(findings, labels, seen),
        about=_about(labels),
        options=_introduced(findings),
        lines=tuple(_lines(findings, labels)),
        tables=(_numbers(findings), *trace),
        notes=tuple(_notes(findings, crowded=False)),
        behind=behind,
        warnings=findings.warnings,
    )
    if len(screen.text().splitlines()) <= MOST_LINES:
        return screen
    notes = tuple(_notes(findings, crowded=True))
    return replace(screen, tables=screen.tables[:1], notes=notes, behind=(*trace, *behind))


def _about(labels: Labels) -> tuple[str, ...]:
    """What kind of model this is, what is secret, who observes, and what the treatments are."""
    named = labels.actions.items()
    treatments = "; ".join(title if name in title else f"{title} ({name})" for name, title in named)
    secret = f"Secret: {labels.hidden}. Observer: {labels.hidden_from}."
    return (" ".join(filter(None, [labels.disclaimer, secret, f"Treatments, chosen by the clinic: {treatments}."])),)


def lettered_now(findings: Findings) -> dict[str, dict[str, Any]]:
    """The options with letters at the epsilon of the words, by letter."""
    return findings.lettered(findings.details.epsilon)


def _difference(findings: Findings, option: str, than: str) -> dict[str, Any]:
    """The difference of two options in utility, at the epsilon of the words."""
    table = findings.differences
    pair = table["option"].eq(option) & table["than"].eq(than) & table["outcome"].eq(UTILITY)
    return rows_of(table[pair & table["epsilon"].eq(findings.details.epsilon)])[0]


def _verdict(findings: Findings, option: str, than: str) -> str:
    """The verdict on an option against another, in utility."""
    return str(_difference(findings, option, than)["verdict"])


def _printed(details: DecisionDetails) -> dict[str, dict[str, Any]]:
    """The rows of the printed table, by outcome."""
    return {row["outcome"]: row for row in rows_of(details.table)}


def _introduced(findings: Findings) -> tuple[Option, ...]:
    """Each option, and what it hides."""
    options = []
    for letter, row in lettered_now(findings).items():
        # A policy that claims no ε has its exact loss.
        claims = math.isfinite(row["guarantee"])
        epsilon = plain(row["guarantee"]) if claims else rounded_up(row["epsilon_spent"], 3)
        hides = {
            "everything": "hides everything: the treatment says nothing about the secret",
            "nothing": "hides nothing",
            "up to ε": f"drawn at random; hides the secret up to ε = {epsilon}",
        }[row["hides"]]
        hidden = "hides nothing" if row["hides"] == "nothing" else "it is the same for everyone, and hides everything"
        best = f"best under {findings.details.judged_by}; {hidden}"
        hides = {"B": _hides_best(findings), "C": best}.get(letter, hides)
        if row["policy"] == BestFixed.name:
            hides = f"best single treatment under {findings.details.judged_by}; hides everything"
        options.append(Option(letter, str(row["title"]), hides))
    return tuple(options)


def _hides_best(findings: Findings) -> str:
    """What B hides, how it is drawn, and whether any draw does better."""
    details: DecisionDetails = findings.details
    now, epsilon = lettered_now(findings), plain(details.epsilon)
    best = "; no draw that hides as much loses less utility" if details.at_limit else ""
    if details.same:
        alike = "patients who are alike in what is public" if " or " in details.same else "everyone"
        given = "everyone the same as A" if details.same_as_a else f"{alike} the same ({details.same})"
        return f"at ε = {epsilon} it gives {given}, and hides everything, too"
    if now["B"]["hides"] == "nothing":
        return f"at ε = {epsilon} it hides nothing"
    return (
        f"drawn at random, with chances that depend on the record; hides it up to ε = {epsilon}: a treatment changes "
        f"the odds of any fact by at most a factor of {rounded(details.odds)}{best}"
    )


def _beyond_limits(findings: Findings) -> str:
    """Which of A and B break limits of the study, and what does not, before one of them is advised; "" for neither."""
    details: DecisionDetails = findings.details
    broken = [f"{letter} ({', '.join(details.broken[letter])})" for letter in "AB" if letter in details.broken]
    if not broken:
        return ""
    safe = [letter for letter, row in lettered_now(findings).items() if row["policy"] == OptimalSafe.name]
    best = "".join(f"; {letter} is the best private draw within them" for letter in safe)
    return f"Beyond the limits of this study: {' and '.join(broken)}{best}. Without these limits: "


def advice(findings: Findings, labels: Labels, seen: str) -> str:
    """When to choose which option, in one sentence before all others."""
    details: DecisionDetails = findings.details
    verdict, title = _verdict(findings, "B", "A"), str(lettered_now(findings)["A"]["title"])
    first = f"{title[:1].lower()}{title[1:]}"
    if seen == "publication" and _verdict(findings, "A", "C") == WORSE:
        return (
            "Observers see a published list alone: give each patient the best treatment (C), and replace entries of "
            "the list at random."
        )
    if len(details.zones) > 1:
        return _advice_by_weight(details, labels, first)
    if verdict == BETTER and details.same:
        return f"Choose B ({details.same}): both hide everything, and B is better under {details.judged_by}."
    if verdict == BETTER:
        return (
            f"Choose B if hiding the secret up to ε = {plain(details.epsilon)} is enough, else A ({first}): under "
            f"{details.judged_by} B is better."
        )
    why = {WORSE: "B is worse", EQUAL: "B is worth the same"}.get(verdict, "the model cannot show that B is better")
    return f"Choose A ({first}): it hides everything, and {why}."


def _advice_by_weight(details: DecisionDetails, labels: Labels, title: str) -> str:
    """The same where it depends on what one of the leading outcome counts for."""
    sides = {WORSE: f"A ({title})", BETTER: "B (the best private draw)"}
    sure = [zone for zone in rows_of(details.zones)[::-1] if zone["verdict"] in sides]
    clauses = []
    for place, zone in enumerate(sure):
        low, high = float(zone["low"]), float(zone["high"])
        size = f"more than {rounded(low)}" if math.isinf(high) else f"less than {rounded(high)}"
        size = f"{rounded(low)} to {rounded(high)}" if low > 0 and high < math.inf else size
        one, unit = (labels.one_of_lead, f" {details.unit}") if place == 0 else ("it", "")
        beyond = _beyond_own(labels) if place == 0 else ""
        clauses.append(f"{sides[zone['verdict']]} if {one} counts for {size}{unit}{beyond}")
    between = "; in between this model does not decide" if len(clauses) > 1 else "; else this model does not decide"
    unsure = between if NOT_SHOWN in set(details.zones["verdict"]) else ""
    condition = "" if details.versions else ", as the numbers are stated"
    return f"Choose {', '.join(clauses)}{unsure}{condition}."


def _lines(findings: Findings, labels: Labels) -> Iterator[Line]:
    """The labelled lines."""
    details: DecisionDetails = findings.details
    epsilon = plain(details.epsilon)
    yield Line("Hiding everything", _costs(findings))
    if details.same and not details.same_as_a:
        both = "Both hide everything: the weights decide, not privacy."
        yield Line("A or B?", f"{both} B {_trades(findings, *details.leaking)}.")
    elif not details.same:
        yield Line(f"Leaking up to ε = {epsilon}", f"{_trades(findings, *details.leaking)}.")
    if _verdict(findings, "B", "A") != EQUAL:
        yield _worth(findings, labels)
    if details.drawn and _verdict(findings, "B", "A") != EQUAL:
        yield Line("How sure", _how_sure(details))
    yield Line("Who is harmed", _harmed(findings, labels))
    yield Line("What leaks", _leaks(findings))
    if math.isfinite(details.past_epsilon):
        yield Line("Past patients", _past(findings))


def _costs(findings: Findings) -> str:
    """What hiding everything costs: the option that does, instead of C."""
    details: DecisionDetails = findings.details
    option, than = details.hiding
    more, fewer = changed(details.table, option, than)
    per = f"({option} instead of {than}), per {plain(details.patients)}"
    lost = -_difference(findings, option, than)["value"] * details.patients
    if lost == 0 and not more and not fewer:
        return f"costs nothing ({option} instead of {than}): what everyone gets is best for each patient."
    if not more and not fewer:
        return f"costs {per}: {about(lost)} units of utility."
    paid = in_a_row(more, "and") or "nothing that is counted"
    return f"costs {per}: {'; '.join(filter(None, [paid, in_a_row(fewer, 'and')]))}."


def _trades(findings: Findings, option: str, than: str) -> str:
    """What an option buys and costs instead of another."""
    details: DecisionDetails = findings.details
    more, fewer = changed(details.table, option, than)
    per = f"({option} instead of {than}), per {plain(details.patients)}"
    if not more and not fewer:
        saved = -float(_printed(details)[UTILITY][f"{option} − {than}"])
        return f"buys {per}: {f'{about(saved)} units of utility' if saved > 0 else 'nothing'}"
    bought = in_a_row(fewer, "and") or "nothing that is counted"
    price = f"; for {in_a_row(more, 'and')}" if more else ""
    return f"buys {per}: {bought}{price}"


def _worth(findings: Findings, labels: Labels) -> Line:
    """Whether B is better than A, and on what it depends."""
    details: DecisionDetails = findings.details
    row = _difference(findings, "B", "A")
    verdict = _verdict_words(details, row)
    if details.zones.empty:
        weighs = f" {capital(labels.one_of_lead)} weighs {rounded_weight(details.lead_weight)}."
        weighs = weighs if details.lead_weight > 0 else ""
        return Line("Is that worth it?", f"Under {details.judged_by} {verdict}.{weighs}")
    question = f"A value judgement. How many {details.unit} count as much as {labels.one_of_lead}{_beyond_own(labels)}?"
    rows = [
        (f"{rounded(details.stated_worth)} (this study)", verdict),
        *(_zone(zone, details) for zone in rows_of(details.zones)),
    ]
    return Line("Is that worth it?", question, tuple(rows))


def _beyond_own(labels: Labels) -> str:
    """What the worth of one symptom leaves out, where symptoms lead: each has a weight of its own."""
    return ", beyond its own weight" if labels.lead == SYMPTOMS else ""


def _verdict_words(details: DecisionDetails, row: Mapping[str, Any]) -> str:
    """A verdict on B against A, with its condition."""
    if details.versions:
        return verdict_in_versions(str(row["verdict"]), int(row["better_in"]), details.versions)
    where = "" if details.epsilon == details.stated_epsilon else f" at ε = {plain(details.epsilon)}"
    words = {BETTER: "B is better than A", WORSE: "B is worse than A", EQUAL: "B and A are worth the same"}
    return f"{words[str(row['verdict'])]}, as stated (no other numbers were tried){where}"


def verdict_in_versions(verdict: str, better: int, versions: int) -> str:
    """A verdict on B against A, and in how many versions of the model B is better."""
    count = f"in {plain(better)} of {plain(versions)} versions of the model"
    return {
        BETTER: f"B is better than A {count}",
        WORSE: f"A is better: B beats it only {count}",
        NOT_SHOWN: f"the model cannot show it: B is better than A {count}",
        EQUAL: "B and A are worth the same",
    }[verdict]


def _zone(zone: Mapping[str, Any], details: DecisionDetails) -> tuple[str, str]:
    """One zone of the exchange: for which worth of one of the lead which verdict holds."""
    low, high = float(zone["low"]), float(zone["high"])
    where = f"up to {rounded(high)}" if low == 0 else f"{rounded(low)} to {rounded(high)}"
    where = f"from {rounded(low)}" if math.isinf(high) else where
    sure = " in at least 9 of 10 versions" if details.versions else ""
    words = {BETTER: f"B is better{sure}", WORSE: f"A is better{sure}", NOT_SHOWN: "the model cannot show a difference"}
    return where, words[str(zone["verdict"])]


def _how_sure(details: DecisionDetails) -> str:
    """How the versions of the model were made, and what other spreads give."""
    drawn = details.drawn
    if "together" in drawn:
        return f"The versions come with the model: in each, its {plain(drawn['together'])} numbers have other values."
    ways = []
    if drawn.get("stated"):
        ways.append(f"{several(drawn['stated'], 'number')} vary within stated intervals")
    if drawn.get("default"):
        numbers = f"{plain(drawn['default'])} of {plain(details.numbers)}"
        ways.append(f"numbers of treatments ({numbers}) vary by an assumed spread, {plain(details.spread)}")
    wider = []
    for row in rows_of(details.wider):
        unsure = verdict_of_versions(row["better_in"] / details.versions) == NOT_SHOWN
        wider.append(f"at {WIDER[row['times']]} in {plain(row['better_in'])}{' (below 9 of 10)' if unsure else ''}")
    beside = f" B is better {', '.join(wider)}." if wider else ""
    return f"{capital(in_a_row(ways, 'and'))}.{beside}"


def _harmed(findings: Findings, labels: Labels) -> str:
    """Who does worse by B instead of A: the group that is hit hardest, and a part of a group that is hit harder."""
    details: DecisionDetails = findings.details
    table = findings.harmed
    measure = f"more {labels.lead_title}" if labels.lead else "more utility lost"
    # Groups are compared at the ε of the study.
    when = "" if details.epsilon == details.stated_epsilon else f"At ε = {plain(details.stated_epsilon)}: "
    if not details.groups_compared:
        return "Not known: no groups of patients are compared; --by FEATURE compares them."
    if table.empty:
        return f"{when}No group, of those that are compared, has {measure} by B than by A."
    rows = rows_of(table)
    first, hardest = rows[0], max(rows, key=lambda row: float(row["value"]))
    more, most = (about(row["value"] * details.patients) for row in (first, hardest))
    per = f"per {plain(details.patients)} of them"
    whom = f"the group “{first['group']}” ({share(first['share'])})"
    beside = "" if most == more else f"; hardest hit is “{hardest['group']}” ({share(hardest['share'])}): {most}"
    words = f"{when}By B instead of A {whom} has {more} {measure} {per}"
    return f"{words}{beside}."


def _beliefs(findings: Findings) -> dict[str, dict[str, Any]]:
    """The belief that B moves most, under each option, by letter; empty where hardly any moves."""
    table = findings.leaks
    now = table[table["epsilon"] == findings.details.epsilon] if len(table) else table
    return {row["option"]: row for row in rows_of(now)}


def _leaks(findings: Findings) -> str:
    """What an observer learns from B."""
    if findings.details.same:
        return "Nothing: a treatment from A or B says nothing about the secret."
    if not (beliefs := _beliefs(findings)):
        apart = right(lettered_now(findings)["B"]["guess_rate"])
        return f"By B an observer distinguishes two patients {apart} times of 100 (coin toss: 50)."
    row = beliefs["B"]
    among = f" among “{row['among']}”" if row["among"] else ""
    places = places_of_share(row["before"])
    before, low, high = (span(row[name], row[name], places) for name in ("before", "low", "high"))
    return f"By B an observer's belief “{row['belief']}”{among} moves from {before} % to between {low} and {high} %."


def _past(findings: Findings) -> str:
    """How those behind the table are protected, and what it costs beside what protecting future ones costs."""
    details: DecisionDetails = findings.details
    future = float(lettered_now(findings)["B"]["loss"])
    past, future_costs = (about(loss * details.patients) for loss in (details.past_loss, future))
    return (
        f"Noise in their counts hides each of them up to ε = {plain(details.past_epsilon)}. It costs {past} units of "
        f"utility per {plain(details.patients)} patients (simulated from these counts: the best for each by noisy "
        f"counts instead of exact ones). Protecting future patients costs {future_costs} (B instead of C)."
    )


def _numbers(findings: Findings) -> Grid:
    """The options as columns, what is counted as rows, and the differences, which add up to the utility."""
    details: DecisionDetails = findings.details
    now = lettered_now(findings)
    letters, pairs = list(now), [f"{option} − {than}" for option, than in details.pairs]
    with_costs = COSTS in set(details.table["outcome"])
    shown = [row for row in _printed(details).values() if row["outcome"] != REST or any(row[pair] for pair in pairs)]
    rows = [(row_title(row, details.rest, with_costs), *cells_of(row, letters, pairs)) for row in shown]
    # A head that does not break.
    heads = [pair.replace(" ", "\u00a0") for pair in pairs]
    if beliefs := _beliefs(findings):
        of_b, places = beliefs["B"], places_of_share(beliefs["B"]["before"])
        title = f"Belief “{of_b['belief']}” (before: {span(of_b['before'], of_b['before'], places)} %), %"
        cells = [span(beliefs[letter]["low"], beliefs[letter]["high"], places) for letter in letters]
        rows.append((title, "", *cells, *[""] * len(pairs)))
    told = [right(now[letter]["guess_rate"]) for letter in letters]
    rows.append(("Two patients told apart, of 100 (toss: 50)", "", *told, *[""] * len(pairs)))
    head = (f"Per {plain(details.patients)} patients, at ε = {plain(details.epsilon)}", "weighs", *letters, *heads)
    return Grid(head, tuple(rows))


def _trace(findings: Findings) -> Iterator[Grid]:
    """Utility lost over a few epsilons, beside the limit."""
    details: DecisionDetails = findings.details
    table = details.trace
    epsilons = sorted(table["epsilon"].unique())
    if len(epsilons) < 2:
        return
    places = int(_printed(details)[UTILITY]["decimals"])
    of_a, of_c = (to_places(_printed(details)[UTILITY][letter], places) for letter in "AC")
    rows = []
    for policy, lines in table.groupby("policy", sort=False):
        losses = lines.set_index("epsilon")["loss"]
        cells = [to_places(losses[value], places) if value in losses.index else "–" for value in epsilons]
        rows.append((f"  {TRACED.get(str(policy), str(policy))}", *cells))
    head = f"Utility lost, per {plain(details.patients)} (A: {of_a}; C: {of_c}), at ε ="
    yield Grid((head, *map(plain, epsilons)), tuple(rows))


def _notes(findings: Findings, *, crowded: bool) -> Iterator[str]:
    """Why the textbook's mechanism does badly; and in a paragraph of its own the other observer, who sees a list."""
    details: DecisionDetails = findings.details
    if details.textbook is not None and details.sensitivity > NEGLIGIBLE and not crowded:
        yield _why_textbook(details)
    texts = []
    if not math.isnan(details.list_true) and lettered_now(findings)["C"]["hides"] == "nothing" and not crowded:
        texts.append(
            "If only a list is published, and nobody sees the treatment: give C, and replace treatments in it at "
            f"random (at ε = {plain(details.epsilon)}, {percent(details.list_true)} stay true)."
        )
    if not details.same:
        texts.append("A second treatment of a patient leaks again, up to ε.")
    if math.isinf(details.past_epsilon):
        texts.append("The patients in the table are not protected.")
    if texts:
        yield " ".join(texts)
    if details.unlettered:
        yield f"No room here, but in --full: {in_a_row(details.unlettered, 'and')}."


def _why_textbook(details: DecisionDetails) -> str:
    """Why the exponential mechanism of the textbook loses more than the fitted one."""
    why = details.textbook
    assert why is not None
    beats = f"it is better than A from ε = {decimal(why.beats_from)} on"
    beats = beats if why.beats_from > 0 else "it is better than A at every ε"
    beats = "it is never better than A" if math.isinf(why.beats_from) else beats
    keeps = f", with {percent(KEEP)} of C's gain from ε = {decimal(why.keeps_from)}"
    keeps = keeps if math.isfinite(why.keeps_from) else ""
    return (
        "The textbook's exponential mechanism starts from equal odds of all treatments, and is as random as its most "
        f"extreme pair of records needs (Δ = {rounded_up(why.sensitivity, 3)} in utility; for half of the patients "
        f"treatments differ by at most {rounded(why.median_difference)}): {beats}{keeps}."
    )
