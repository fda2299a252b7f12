"""The words of `policysim choose`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from policysim.decision.choose_findings import DOUBTED, EACH, IMPOSSIBLE, MECHANISM, OPEN, SINGLE, UNSURE, ChooseDetails
from policysim.decision.demands import SCANNED
from policysim.numbers import (
    DIGITS,
    NEGLIGIBLE,
    about,
    apart,
    change,
    decimal,
    digits_of,
    enough,
    interval,
    kept,
    least,
    lost,
    not_above,
    percent,
    plain,
    right,
    rounded_down,
    to_places,
)
from policysim.report.findings import EQUAL, NOT_SHOWN, UTILITY, WORSE, Findings, rows_of
from policysim.report.screen import Grid, Line, Option, Screen
from policysim.study.checks import LEVEL
from policysim.study.labels import Labels
from policysim.words import UNANSWERABLE, in_a_row

# Digits of a value beside its limit, and of a limit: two could be equal.
VALUE_DIGITS, MOST_DIGITS = 4, 6
# The lead is bounded per so many patients, and guesses and shares are counted of a hundred.
LEAD_PER, HUNDRED = 100_000, 100
NOTHING_CHOSEN = {
    DOUBTED: UNANSWERABLE,
    IMPOSSIBLE: "No mechanism can meet all these demands: that is proved. Choose others.",
}


def screen_of(findings: Findings, labels: Labels) -> Screen:
    """What the findings say."""
    details: ChooseDetails = findings.details
    options = findings.options[findings.options["section"] == "option"]
    introduced = [Option(row["option"], title_of(row), hides(row)) for row in rows_of(options)]
    fitted = " by the fitted scores" if details.of_log else ""
    demands = f"Does an option meet them? In brackets, what it has{fitted}."
    lines = [
        Line("Demands", demands, tuple(_demand_rows(details, labels))),
        Line("Not possible", _impossible(details, labels)),
        Line("A smaller ε", _smaller(details, labels)),
        Line("B instead of A", _cost(findings, labels)),
    ]
    return Screen(
        title=labels.title,
        advice=f"{advice(findings)}{_beyond(findings.details)}",
        about=tuple(filter(None, [labels.disclaimer, f"Secret: {labels.hidden}. Observer: {labels.hidden_from}."])),
        options=tuple(introduced),
        lines=tuple(line for line in lines if line.text),
        tables=(_table(findings, labels),),
        notes=tuple(_notes(findings)),
        warnings=findings.warnings,
    )


def title_of(row: Mapping[str, Any]) -> str:
    """An option in words."""
    if row["hides"] == "everything":
        title = f"{row['title']} for everyone".replace(", for", " for")
        return f"{title[:1].upper()}{title[1:]}"
    if row["hides"] == "nothing":
        return "Best for each patient"
    return "Best private draw" if row["title"] == "optimal" else f"Private draw ({row['title']})"


def hides(row: Mapping[str, Any]) -> str:
    """What an option hides."""
    if row["hides"] == "everything":
        return "hides everything: the treatment says nothing about the secret"
    if row["hides"] == "nothing":
        return "best under the weights of this study; hides nothing"
    if row["epsilon"] == 0:
        return "drawn at random, with chances that do not depend on the secret; hides everything, too"
    return f"drawn at random, with chances that depend on the record; hides it up to ε = {decimal(row['epsilon'])}"


def advice(findings: Findings) -> str:
    """What to choose, and why; never against a verdict."""
    details: ChooseDetails = findings.details
    second = next((row for row in rows_of(findings.options) if row["option"] == "B"), None)
    if details.choice in NOTHING_CHOSEN:
        return NOTHING_CHOSEN[details.choice]
    if details.choice == SINGLE:
        return (
            f"Choose {details.chosen}: it gives everyone the same treatment, meets the demands, and needs no ε."
            f"{_as_hidden(findings, second)}"
        )
    if details.choice == EACH:
        return (
            "Choose C: it meets the demands. Observers see a publication only: give each patient the best treatment, "
            f"and publish a noisy table (policysim privatize), or a copy that randomised response at the study's ε = "
            f"{plain(details.copy_epsilon)} has changed. Patients lose nothing."
        )
    if second is None or details.choice == OPEN:
        return (
            "None of the mechanisms that were compared meets the demands within the ε that they allow. Whether another "
            "one can is not proved."
        )
    if details.choice == UNSURE:
        # Of a log no larger ε is tested: of several, the one that looks best would look better than it is.
        tested = " at its least ε" if details.of_log else ""
        return (
            f"Choose {details.single}, although it does not meet the demands: mechanisms meet them, but none is shown "
            f"to be better than {details.single}{tested}. {_sureness(second, details)}"
        )
    return (
        f"Choose B at ε = {decimal(second['epsilon'])}: of all mechanisms that meet the demands and are better than "
        f"{details.single}, it needs the least ε. {_sureness(second, details)}"
    )


def _beyond(details: ChooseDetails) -> str:
    """Which limits of the study, which are no demands, the chosen option does not keep."""
    return f" {details.chosen} is beyond the limits of this study: {details.beyond}." if details.beyond else ""


def _as_hidden(findings: Findings, second: Mapping[str, Any] | None) -> str:
    """Whether B, at ε = 0, hides as much as the single treatment that is chosen, meets the demands and loses less."""
    chosen = findings.options.loc[findings.options["chosen"], "loss"]
    if second is None or not second["allowed"] or second["epsilon"] > 0 or not (second["loss"] < chosen).any():
        return ""
    count = findings.details.patients
    less, more = (about(count * loss) for loss in (second["loss"], chosen.iloc[0]))
    fitted = ", by the fitted scores" if findings.details.of_log else ""
    return (
        f" B at ε = 0, a draw whose chances do not depend on the secret, hides as much and loses less: {less} instead "
        f"of {more} units of utility per {plain(count)}{fitted}."
    )


def _sureness(row: Mapping[str, Any], details: ChooseDetails) -> str:
    """How B fares against the best single treatment by utility."""
    single = details.single
    (judged,) = rows_of(details.verdicts[details.verdicts["policy"] == row["policy"]])
    if details.versions:
        versions = f"{plain(judged['better_in'])} of {plain(details.versions)} versions of the model"
        return f"B has more utility than {single} in {versions}, in which its uncertain numbers vary."
    if math.isfinite(judged["low"]):
        by = f", by {plain(details.clusters)} clusters" if details.clusters else ""
        return (
            f"On patients who were not used to build it, B has {interval(judged['low'], judged['high'], sign=True)} "
            f"more utility than {single} ({percent(LEVEL)} interval{by})."
        )
    if details.of_log:
        return f"Nobody has tested B against {single} on other patients."
    return f"B against {single}, by the stated numbers alone: {judged['verdict']}."


def _demand_rows(details: ChooseDetails, labels: Labels) -> Iterator[tuple[str, str]]:
    """Each demand, and which options meet it."""
    first = details.demands[details.demands["epsilon"] != details.next_epsilon]
    for _, rows in first.groupby(["demand", "outcome"], sort=False):
        met = [f"{row['option']} {'yes' if row['met'] else 'no'}{_in_brackets(row)}" for row in rows_of(rows)]
        # An option and its number stay in one line.
        yield demand_words(rows_of(rows)[0], details, labels), ", ".join(text.replace(" ", "\u00a0") for text in met)


def demand_words(row: Mapping[str, Any], details: ChooseDetails, labels: Labels) -> str:
    """A demand in a few words."""
    limit, single, outcome = row["limit"], details.single, labels.outcomes.get(row["outcome"], row["outcome"])
    if row["demand"] == "keep":
        return f"gain kept ≥ {plain(HUNDRED * limit)}\u00a0%"
    if row["demand"] == "max_loss":
        return f"loss ≤ {plain(limit)} of a random draw's"
    if row["demand"] == "max_extra_lead":
        return f"{outcome} beyond {single} ≤ {plain(LEAD_PER * limit)} per {plain(LEAD_PER)}"
    if row["demand"] == "at_most":
        same = isinstance(details.wish.at_most.get(row["outcome"]), str)
        return f"{outcome} ≤ {f'as with {single}' if same else f'{plain(limit)} per patient'}"
    ever = " by any mechanism" if row["demand"] == "max_guess" else ""
    return f"told apart ≤ {plain(HUNDRED * limit)} of {HUNDRED}{ever}"


def _in_brackets(row: Mapping[str, Any]) -> str:
    """What an option has of what is demanded, rounded towards caution, and on the side of the limit where it is."""
    value, limit = row["value"], row["limit"]
    if math.isnan(value):
        return ""
    value = 0.0 if abs(value) < NEGLIGIBLE else value
    if row["demand"] == "keep":
        share = HUNDRED * (max(value, limit) if row["met"] else value)
        return f" ({plain(not_above(share, VALUE_DIGITS))}\u00a0%)"
    scale = {"max_extra_lead": LEAD_PER, "max_guess": HUNDRED, "max_guess_rate": HUNDRED}.get(row["demand"], 1)
    return f" ({plain(enough(scale * (min(value, limit) if row['met'] else value), VALUE_DIGITS))})"


def _impossible(details: ChooseDetails, labels: Labels) -> str:
    """Why no mechanism meets the demands; "" where some may."""
    if details.choice != IMPOSSIBLE:
        return ""
    allowed, texts = details.wish.max_epsilon, []
    if details.limit == math.inf and details.limit_proven:
        texts.append("No mechanism meets the demands, even one that hides nothing.")
    elif details.limit_proven and allowed < details.limit:
        # In as many digits as separate it from what is allowed.
        apart_in = (digits for digits in range(DIGITS, MOST_DIGITS) if not_above(details.limit, digits) > allowed)
        needed = rounded_down(details.limit, next(apart_in, MOST_DIGITS))
        texts.append(f"The other demands take more than ε = {needed}; guesses allow ε = {rounded_down(allowed, 3)}.")
    texts += [
        f"At least {rounded_down(least_of_all, MOST_DIGITS)} {labels.outcomes[name]} per patient are unavoidable."
        for name, least_of_all in details.least_possible.items()
        if math.isfinite(least_of_all)
    ]
    return " ".join(texts)


def _smaller(details: ChooseDetails, labels: Labels) -> str:
    """Why the next smaller ε is not enough for B, and what is proved of all mechanisms."""
    if details.choice in {EACH, SINGLE, IMPOSSIBLE}:
        return ""
    texts = []
    if details.next_impossible:
        texts.append(
            f"ε = {decimal(details.next_epsilon)} is not enough, for B or for any other mechanism: that is proved."
        )
    elif details.raised:
        texts.append(f"At ε = {decimal(details.next_epsilon)} B is not shown to be better than {details.single}.")
    elif details.next_epsilon > 0:
        rows = details.demands[(details.demands["epsilon"] == details.next_epsilon) & ~details.demands["met"]]
        failing = [f"{demand_words(row, details, labels)}{_in_brackets(row)}" for row in rows_of(rows)]
        if failing:
            texts.append(f"At ε = {decimal(details.next_epsilon)} B does not meet: {in_a_row(failing, 'and')}.")
    if not details.next_impossible and details.limit_proven and 0 < details.limit < math.inf:
        digits = min(digits_of(float(details.rows["epsilon"].min())), MOST_DIGITS) if len(details.rows) else DIGITS
        does = "meets the demands" if details.raised else "does"
        texts.append(f"At ε = {rounded_down(details.limit, digits)} or less no mechanism {does}: that is proved.")
    return " ".join(texts)


def _cost(findings: Findings, labels: Labels) -> str:
    """What B costs and brings against A."""
    details: ChooseDetails = findings.details
    if findings.differences.empty or details.choice in {EACH, SINGLE}:
        return ""
    (of_utility,) = rows_of(findings.differences[findings.differences["outcome"] == UTILITY])
    held_out = details.of_log and math.isfinite(of_utility["low"])
    saved = "less" if of_utility["value"] >= 0 else "more"
    texts = [f"{about(details.patients * of_utility['value'])} {saved} utility lost"]
    if details.lead is not None:
        more = details.patients * float(findings.options.loc[findings.options["option"] == "B", "more_lead"].iloc[0])
        places = apart(findings.options[f"expected_{details.lead}"].dropna(), details.patients)
        word = "more" if more > 0 else "fewer"
        counted = f"{to_places(abs(more), places)} {word}" if more else "as many"
        texts.insert(0, f"{counted} {labels.outcomes[details.lead]}")
    sure = ""
    if details.single != "A" and details.versions:
        versions = f"{plain(of_utility['better_in'])} of {plain(details.versions)} versions of the model"
        sure = f" B has more utility than A in {versions}."
    how = " who were not used to build B" if held_out else ", by the fitted scores" if details.of_log else ""
    doubt = ": no conclusion" if details.choice == DOUBTED else ""
    return f"Per {plain(details.patients)} patients{how}: {' and '.join(texts)}{doubt}.{sure}"


def _table(findings: Findings, labels: Labels) -> Grid:
    """Each option and mechanism at its least ε."""
    details: ChooseDetails = findings.details
    table, per = findings.options, details.patients
    losses = table["loss"].astype(np.float64)
    in_rows = rows_of(table)
    title = f"At its least ε{', fitted' if details.of_log else ''}"
    columns = {
        title: [f"{row['option'] or ' '}  {row['title']}" for row in in_rows],
        "ε": [plain(row["epsilon"]) if row["hides"] == "nothing" else least(row["epsilon"]) for row in in_rows],
    }
    for outcome in filter(None, dict.fromkeys([details.lead, *details.wish.at_most])):
        values = table[f"expected_{outcome}"].astype(np.float64)
        places = apart(values.dropna(), per)
        columns[f"{labels.outcomes[outcome]} per {plain(per)}"] = [to_places(per * value, places) for value in values]
        if outcome == details.lead:
            columns["more than A"] = [change(per * value, places) for value in table["more_lead"]]
    places = apart(losses.dropna(), per)
    columns[f"utility lost per {plain(per)}"] = [lost(per * value, places) for value in losses]
    if details.shares:
        columns["gain kept"] = [kept(value) for value in table["benefit_kept"]]
    if details.versions:
        columns[f"beats {details.single}, of {plain(details.versions)}"] = [
            plain(value) for value in table["better_in"]
        ]
    columns[f"told apart, of {HUNDRED}"] = [right(value) for value in table["guess_rate"]]
    columns[""] = [_remark(row, findings) for row in in_rows]
    return Grid.of_columns(columns, name="options")


def _remark(row: Mapping[str, Any], findings: Findings) -> str:
    """Why an option is what is chosen, or is not."""
    details: ChooseDetails = findings.details
    if row["chosen"]:
        return "chosen"
    if not row["allowed"]:
        if row["hides"] != "up to ε":
            return "demands not met"
        return "not allowed" if row["epsilon"] < math.inf else "at no ε"
    if row["hides"] == "nothing":
        return "hides nothing"
    # Of the mechanisms of a log only B is judged.
    judged = details.choice in {MECHANISM, UNSURE} and (row["option"] or not details.of_log)
    if judged and row["verdict"] in {NOT_SHOWN, EQUAL, WORSE}:
        return "not better" if row["verdict"] == WORSE else "not shown better"
    chosen = findings.options.loc[findings.options["chosen"], "epsilon"]
    return "larger ε" if (row["epsilon"] > chosen).any() else ""


def _notes(findings: Findings) -> Iterator[str]:
    """What the words of the table mean."""
    details: ChooseDetails = findings.details
    if details.shares:
        yield f"Gain kept: {percent(0.0)} is {details.single}, {percent(1.0)} is C."
    yield (
        f"Told apart: how often an observer of one treatment distinguishes two patients (coin toss: {HUNDRED // 2} of "
        f"{HUNDRED}). A second treatment leaks again: only ε bounds what several reveal together."
    )
    if details.limit_proven and details.limit > 0:
        yield "Proofs are about mechanisms that give each patient the treatment that observers see."
    if details.wish.scanned:
        yield (
            f"What is limited may rise and fall with ε: but for optimal, a least ε is the least of a grid in steps of "
            f"{percent(SCANNED - 1)}."
        )
