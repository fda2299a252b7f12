"""The screen that `policysim choose` prints."""

from __future__ import annotations

import math
from typing import Any

from policies.optimal.optimum import Optimal
from policysim.decision.choose import Choice, Choices, Verdict, Wish
from policysim.question.formats import (
    DIGITS,
    LEAST_EVENTS,
    MOST_COUNTED,
    decimal,
    digits_of,
    events,
    guess_rate,
    not_above,
    of_100,
    percent,
    plain,
    rounded,
    rounded_down,
    rounded_up,
)
from policysim.question.screen_lines import cells, wrap
from policysim.question.words import NO_MECHANISM
from policysim.study.basis import OUTSIDE_LINE, basis, hidden
from policysim.study.declared import LoggedStudy, Study

HEADINGS = (
    ("", "", "benefit", "extra deaths", "bound on", "guess"),
    ("", "least ε", "kept", "per {count:,}", "guesses", "rate"),
)
COLUMNS = (28, 11, 12, 17, 14, 10)
DEATHS = 3
# How many of the groups that force a bound are named.
GROUPS_NAMED = 3
# Digits of a bound and of what is allowed: two could be equal.
SHOWN = 6
UNPROVEN = (
    "No mechanism was found that does this within what is allowed; a proof that none exists could not be checked, so "
    "there is no verdict."
)
GUESS_BOUND = (
    "Bound on guesses: somebody who sees a published treatment and guesses which of two such patients it was given to "
    "is right at most so often in 100, under any mechanism with this ε; 50 is guessing blind."
)
GUESS_RATE = (
    "The guess rate is that of the mechanism itself, as it was made for this prior, and holds for one treatment; only "
    "ε says what several reveal together."
)
UNUSED = (
    "The model does not use what is hidden to tell treatments apart, so nothing can be said about what hiding it costs."
)
NO_SHARES = (
    "Benefit kept: –. One treatment for all is so close to the best for each patient that shares of the difference say "
    "little."
)


def choices_screen(study: Study, choices: Choices, certificate_file: str | None) -> list[str]:
    """The answer first, then what each policy needs, then the proof if there is one."""
    lines = [
        study.title,
        basis(study).disclaimer,
        *wrap(f"Hidden: {hidden(study)}. From: {study.hidden_from}. Asked for: {asked(choices)}."),
        OUTSIDE_LINE,
        "",
        *(wrap(UNUSED) if not choices.used else ()),
        *wrap(answer(choices)),
        *wrap(least_possible(choices)),
        "",
        *_table(study, choices),
    ]
    if any(row.epsilon < math.inf and not row.allowed for row in choices.rows):
        lines.append("* more than is allowed")
    lines += wrap(f"{GUESS_BOUND} {GUESS_RATE}")
    if not choices.has_shares:
        lines += wrap(NO_SHARES)
    if choices.certificate is not None and certificate_file is not None:
        lines += ["", *proof(choices.certificate, certificate_file)]
    return lines


def asked(choices: Choices) -> str:
    """The demands in words: a limit on ε in as many digits as the ε that is chosen, or three."""
    wish, parts = choices.wish, []
    if wish.keep is not None:
        parts.append(f"keep {100 * wish.keep:.10g}\u00a0% of the benefit")
    if wish.max_loss is not None:
        parts.append(f"lose at most {wish.max_loss:g} of what choosing by lot loses")
    if wish.max_extra_deaths is not None:
        parts.append(f"at most {wish.max_extra_deaths * 100_000:g} extra deaths per 100,000")
    for name, most in wish.at_most.items():
        what = name.replace("_", " ")
        as_for_all = f"no more {what} than under one treatment for all"
        parts.append(as_for_all if isinstance(most, str) else f"at most {most:.10g} {what} per patient")
    if wish.max_guess is not None:
        most = rounded_down(wish.max_epsilon, max(3, digits_of(choices.least.epsilon) if choices.least else 0))
        parts.append(f"at most {100 * wish.max_guess:g} of 100 guesses right, whatever the mechanism (ε ≤ {most})")
    if wish.max_guess_rate is not None:
        parts.append(f"a guess rate of at most {100 * wish.max_guess_rate:g} of 100, for one treatment")
    return "; ".join(parts)


def answer(choices: Choices) -> str:
    """In a sentence or two: that one treatment for all does it, or which policy needs least, or that none can."""
    if choices.one_for_all is not None:
        return f"Giving everybody {choices.one_for_all.action} meets this already, and costs no privacy."
    if choices.least is not None:
        beside = f", but is {worse(choices)}" if worse(choices) else ""
        least = decimal(choices.least.epsilon)
        return f"{choices.least.policy} needs least: ε = {least}{beside}.{_none_below(choices)}{_searched(choices)}"
    if choices.verdict is Verdict.NONE:
        return UNPROVEN
    if choices.verdict is Verdict.MAY:
        found = "was found to do it" if choices.wish.scanned else "can"
        none = f"None of these policies {found} within what is allowed; another mechanism may."
        return f"{none}{_none_below(choices)}{_searched(choices)}"
    return _cannot(choices)


def _cannot(choices: Choices) -> str:
    """That no mechanism can, with what is proven of it, in as many digits as tell it from what is allowed."""
    if choices.limit_proven and choices.limit == math.inf:
        return f"No mechanism can: {without_privacy(choices.wish)}."
    allowed = choices.wish.max_epsilon
    if choices.limit_proven and allowed < choices.limit < math.inf:
        for digits in range(DIGITS, SHOWN):
            if not_above(choices.limit, digits) > allowed:
                least, most = rounded_down(choices.limit, digits), rounded_down(allowed, max(digits, 3))
                return f"{NO_MECHANISM.capitalize()} can: that takes more than ε = {least}, and {most} is allowed."
    return f"{NO_MECHANISM.capitalize()} can: that takes a larger ε than is allowed ({rounded_down(allowed, SHOWN)})."


def without_privacy(wish: Wish) -> str:
    """That a wish cannot be met at any epsilon, without a full stop."""
    if wish.bounded:
        return "no choice of treatments does that, even without any privacy"
    return "not even the best treatment for each patient, without any privacy, does that"


def _searched(choices: Choices) -> str:
    """How the least epsilon was searched where that leaves gaps, after a space."""
    names, wish = [row.policy for row in choices.rows], choices.wish
    if not wish.scanned or not names:
        return ""
    exact = Optimal.name in names and wish.bounded
    said = f" At each ε, {Optimal.name} is the best within the bounds on outcomes." if exact else ""
    if names == [Optimal.name] and wish.max_guess_rate is None:
        return said
    what = [("outcomes", wish.bounded), ("guess rates", wish.max_guess_rate is not None)]
    may = " and ".join(name for name, limited in what if limited).capitalize()
    whose = "the ε of the others" if exact and wish.max_guess_rate is None else "these ε"
    return f"{said} {may} may rise and fall with ε: {whose} are the least found in steps of 15 %, then refined."


def least_possible(choices: Choices) -> str:
    """Where no mechanism can: what the limited outcomes are at least, as far as it is proven; empty elsewhere."""
    said = []
    for found in choices.least_possible:
        parts = [] if math.isnan(found.alone) else [f"{found.outcome} {rounded_down(found.alone, SHOWN)}"]
        if not math.isnan(found.with_others) and found.with_others > found.alone:
            parts.append(f"{rounded_down(found.with_others, SHOWN)} with the rest of what was asked for")
        said += [", ".join(parts)] if parts else []
    if not said:
        return ""
    allowed = choices.wish.max_epsilon
    where = "without any privacy" if allowed == math.inf else f"at ε = {rounded_down(allowed, 3)}"
    return f"The least possible per patient, {where}: {'; '.join(said)}."


def _none_below(choices: Choices) -> str:
    """A sentence on what is proven of all mechanisms, after a space; none where every epsilon may do."""
    if choices.limit == 0:
        return ""
    if not choices.limit_proven:
        return " What any other mechanism needs is not proven."
    return f" {none_needs_less(choices)}."


def none_needs_less(choices: Choices) -> str:
    """What is proven of all mechanisms, without a full stop: a number of its own only where none attains it."""
    if choices.least is not None and choices.attains(choices.least):
        return f"To {digits_of(choices.least.epsilon)} digits, {NO_MECHANISM} needs less"
    return f"{NO_MECHANISM.capitalize()} does this at ε = {_limit_down(choices)} or less"


def _limit_down(choices: Choices) -> str:
    """The limit in as many digits as the row that needs least."""
    digits = digits_of(choices.rows[0].epsilon) if choices.rows else DIGITS
    return rounded_down(choices.limit, min(digits, SHOWN))


def worse(choices: Choices) -> str:
    """Where the policy that needs least costs more deaths than one treatment for all, which reveals nothing: so much.

    Empty where it costs no more, where deaths are not counted, and where one treatment for all is what is chosen.
    """
    more, count = choices.more_deaths, choices.count
    # NaN, where deaths are not counted, is not more.
    if choices.one_for_all is not None or not more * MOST_COUNTED >= LEAST_EVENTS:
        return ""
    where = "in deaths and in privacy" if choices.dominated else "in deaths"
    return (
        f"worse {where} than giving everybody {choices.safest.action}: it costs {more_or_fewer(more, count)} deaths "
        f"per {count:,} patients"
    )


def proof(certificate: dict[str, Any], file: str) -> list[str]:
    """Where the proof is, and which patients force it."""
    weights = certificate["objective"]
    lost = " + ".join(name if weight == 1 else f"{rounded(weight)} × {name}" for name, weight in weights.items())
    bound, allowed = rounded_down(certificate["bound"], SHOWN), rounded_up(certificate["allowed"], SHOWN)
    hiding = [group["lambda"] - min(group["costs"]) for group in certificate["groups"]]
    if sum(hiding) <= 0:
        return wrap(
            f"Certificate: {file}. Even the best treatment for each patient comes to {bound} in {lost}, and at most "
            f"{allowed} is allowed."
        )
    lines = wrap(
        f"Certificate: {file}. At ε = {rounded_down(certificate['epsilon'], 3)} every mechanism that gives what it "
        f"publishes comes to at least {bound} in {lost}, and at most {allowed} is allowed. What it costs most to hide, "
        "by the order of the treatments that suits the patients best:"
    )
    for group, cost in list(zip(certificate["groups"], hiding, strict=True))[:GROUPS_NAMED]:
        patients, share = percent(group["prior"]), percent(cost / sum(hiding))
        lines.append(f"    {' > '.join(group['order'])}: {patients} of patients, {share} of that cost")
    return lines


def more_or_fewer(rate: float, count: int) -> str:
    """30 more, less than 0.01 fewer, no more."""
    which = "more" if rate > 0 else "fewer"
    if abs(rate) * MOST_COUNTED < LEAST_EVENTS:
        return "no more"
    if abs(rate) * count < LEAST_EVENTS:
        return f"less than {plain(LEAST_EVENTS)} {which}"
    return f"{events(abs(rate), count)} {which}"


def _table(study: Study, choices: Choices) -> list[str]:
    """What each policy needs; a log has no deaths."""
    rows = [
        *([cell.format(count=choices.count) for cell in row] for row in HEADINGS),
        ["any private choice", limit_shown(choices), "", "", "", ""],
        *(row_cells(choices, row, row.policy) for row in [choices.one_for_all] if row),
        *([row_cells(choices, choices.safest, f"{choices.safest.action} for all")] if worse(choices) else []),
        *(
            row_cells(choices, row, row.policy if row.allowed or row.epsilon == math.inf else f"{row.policy} *")
            for row in choices.rows
        ),
    ]
    shown = [place for place in range(len(COLUMNS)) if place != DEATHS or not isinstance(study, LoggedStudy)]
    widths = tuple(COLUMNS[place] for place in shown)
    return [cells([row[place] for place in shown], widths) for row in rows]


def limit_shown(choices: Choices) -> str:
    """The epsilon that any mechanism needs, in a table: the first row's if it attains it; – where nothing is proven."""
    if not choices.limit_proven or choices.limit == math.inf:
        return "none" if choices.limit_proven else "–"
    if choices.rows and choices.attains(choices.rows[0]):
        return decimal(choices.rows[0].epsilon)
    return f"> {_limit_down(choices)}" if choices.limit > 0 else "0"


def row_cells(choices: Choices, row: Choice, name: str) -> list[str]:
    """What a row needs, keeps and costs, as in `HEADINGS`."""
    return [
        name,
        "none" if row.epsilon == math.inf else decimal(row.epsilon),
        percent(row.benefit_kept if choices.has_shares else math.nan),
        events(row.extra_deaths, choices.count, sign=True),
        "–" if math.isnan(row.right_guesses) else of_100(row.right_guesses),
        guess_rate(row.guess_rate),
    ]
