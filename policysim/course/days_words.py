"""The words of a comparison over days: the screen at one of its totals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import pandas as pd

from policies.exponential import Exponential, ExponentialFitted
from policies.optimal.optimum import OPTIMAL_DAILY
from policies.randomized_response import RandomizedResponse
from policies.reference import BestFixed, Uniform
from policysim.course.course_limit import RATIONALS
from policysim.course.days import ONCE, TREE
from policysim.course.days_findings import ALL_ELSE, A, B, C, DaysDetails
from policysim.course.treatment_course import public_over_days
from policysim.numbers import about, change, days, kept, percent, percent_1, plain, rounded, rounded_down, to_places
from policysim.report.findings import BETTER, EQUAL, UTILITY, WORSE, Findings
from policysim.report.screen import Grid, Line, Option, Screen
from policysim.study.declared import ScenarioStudy
from policysim.study.labels import about_model, listed
from policysim.words import BEST_SCHEDULE, capital, in_a_row

# The lines of the trace beside the bound, as far as they were compared.
TRACE = (TREE, ONCE, OPTIMAL_DAILY, ExponentialFitted.name)
# What draws no treatment anew each day, and what other ways are called.
WAYS = {
    TREE: "plan tree",
    ONCE: "plan once",
    BEST_SCHEDULE: "one schedule for everyone",
    BestFixed.name: "the same single treatment on all days",
    Uniform.name: "each treatment with equal odds",
}
DAILY = {
    OPTIMAL_DAILY: "optimum of each day",
    ExponentialFitted.name: "exponential mechanism, fitted",
    Exponential.name: "exponential mechanism of the textbook",
    RandomizedResponse.name: "randomized response",
}
# How a patient's treatments come about.
DRAWN = {
    ONCE: "one of a few schedules is drawn at random on day 1, with odds that the first record sets",
    TREE: "drawn at random each day within a few published courses, with odds that the record of the day sets",
}
COMPOSED = {
    "exact-losses": "what the days spend adds up",
    "zero-concentrated": "what the days spend adds up as ρ",
    "loss-distributions": "the privacy losses of the days add up as random numbers",
}
# So many totals, groups and days are named at most.
MOST_TOTALS, MOST_GROUPS, MOST_NAMED = 6, 2, 4
# Fewer cases than this have the decimals of the table.
ROUGH = 10
# Short of 100 %, where an observer may still be wrong.
MOST_SURE = 0.999
NO_VERSIONS = "As stated (the model has no versions over days)."


def way_title(policy: str) -> str:
    """What a way to treat over days is called."""
    return WAYS.get(policy) or f"drawn daily: {DAILY.get(policy, policy)}"


class Change(NamedTuple):
    """How much more of an outcome, or of utility, an option has than another; and whether that is better."""

    value: float
    verdict: str


class View(NamedTuple):
    """The findings at one total: options by letter, changes by two letters and outcome, and groups that are harmed."""

    study: ScenarioStudy
    details: DaysDetails
    total: float
    options: Mapping[str, Mapping[str, Any]]
    changes: Mapping[tuple[str, str], Mapping[str, Change]]
    harmed: Sequence[Mapping[str, Any]]
    patients: int
    equal_at: float

    @property
    def private(self) -> Mapping[str, Any]:
        """The best private way."""
        return self.options[B]

    @property
    def counted(self) -> list[str]:
        """The outcomes that are counted, the lead first."""
        names = [name.removeprefix("expected_") for name in self.private if name.startswith("expected_")]
        return sorted(names, key=lambda name: name != self.study.lead)

    @property
    def lead(self) -> str:
        """The outcome that leads the study; "" if none does, or it is not counted over days."""
        return self.study.lead if self.study.lead in self.counted and self.study.lead else ""

    @property
    def at(self) -> str:
        """The total in words."""
        return f"ε = {plain(self.total)}"

    @property
    def all_but(self) -> str:
        """What is not hidden, in words."""
        public = public_over_days(self.study)
        return f" but {listed(public) if len(public) <= MOST_NAMED else 'what is public'}" if public else ""


def words_of_days(findings: Findings, study: ScenarioStudy, total: float) -> Screen:
    """The screen at a total.

    Parameters
    ----------
    findings : Findings
        From `policysim.course.days_findings.find`.
    study : ScenarioStudy
        Of which it was found.
    total : float
        One of the totals.
    """
    details: DaysDetails = findings.details
    options, differences, harmed = (
        table[table["epsilon"] == total] for table in (findings.options, findings.differences, findings.harmed)
    )
    changes: dict[tuple[str, str], dict[str, Change]] = {}
    for row in differences.to_dict("records"):
        pair = changes.setdefault((row["option"], row["than"]), {})
        pair[row["outcome"]] = Change(row["value"], row["verdict"])
    lettered: Any = options[options["section"] == "option"].set_index("option").to_dict("index")
    groups: Any = harmed.to_dict("records")
    equal_at = details.exchange.set_index("total_epsilon")["equal_at"].get(total, math.nan)
    view = View(study, details, total, lettered, changes, groups, details.patients, float(equal_at))
    return Screen(
        title=f"{study.title}{' Over' if study.title.endswith(('?', '.')) else ', over'} {days(details.horizon)}",
        advice=_advice(view),
        about=tuple(_about(view)),
        options=tuple(_introduced(view)),
        lines=tuple(_lines(view)),
        tables=(_numbers(view), _trace(view, findings.options)),
        notes=tuple(_notes(view)),
        behind=tuple(_behind(view, options)),
        warnings=findings.warnings,
    )


def _advice(view: View) -> str:
    """What to choose, and on what it depends."""
    of_b = view.changes[B, A]
    if of_b[UTILITY].verdict != BETTER:
        return f"Choose A: within a total {view.at}, no private way that was compared is better than it."
    if not view.lead:
        return "Choose A if nothing may leak; B is better than A under this study's weights."
    one, equal_at = view.study.scenario.one_title(view.lead), view.equal_at
    if math.isnan(equal_at):
        return f"Choose A if nothing may leak; B is better than A, whatever {one} counts."
    more, less = (A, B) if of_b[view.lead].verdict == WORSE else (B, A)
    return (
        f"Choose {more} if {one} counts more than {rounded(equal_at)} units of utility (this study: "
        f"{plain(view.study.lead_weight)}), {less} if less."
    )


def _about(view: View) -> Iterator[str]:
    """What kind of model this is, the secret, the observer, the treatments, and ε in words."""
    study, details = view.study, view.details
    titles = {name: treatment.title for name, treatment in study.scenario.treatments.items()}
    named = "; ".join(name if name == title else f"{name} {title}" for name, title in titles.items())
    yield f"{about_model(study)} Treatments: {named}."
    secret = "the patient's record" if details.horizon == 1 else f"the patient's records of all {days(details.horizon)}"
    yield f"Secret: {secret}{view.all_but.replace(' but', ', all but')}. Observer: {study.hidden_from}."
    slack = f", but for δ = {plain(details.delta)}" if details.delta else ""
    if 0 < view.total < math.inf:
        yield (
            f"{view.at}: the treatments of all days change the odds of any fact about the patient up to "
            f"{rounded(details.odds[view.total])}-fold{slack}."
        )


def _introduced(view: View) -> Iterator[Option]:
    """The options, each with what it gives and hides."""
    hides = {
        "everything": f"hides everything{view.all_but}",
        "up to ε": f"hides the whole course{view.all_but} up to {view.at}",
        "nothing": "hides nothing",
    }
    yield Option(A, view.options[A]["title"], f"{_schedule(view)}; {hides['everything']}")
    for letter, row in list(view.options.items())[1:]:
        policy, hidden = str(row["policy"]), hides[row["hides"]]
        if letter == C:
            gives = "on each day, under this study's weights"
        elif letter == B and row["hides"] == "everything":
            gives = f"at {view.at} it gives everyone the same as A, and so"
        elif row["hides"] == "everything":
            gives = f"{way_title(policy)}: at {view.at} everyone gets the same on each day"
        elif policy in DRAWN:
            gives = f"{way_title(policy)}: {DRAWN[policy]}"
        else:
            gives = f"{way_title(policy)}, with odds that the record of the day sets"
        yield Option(letter, row["title"], f"{gives}{' ' if gives.endswith(' so') else '; '}{hidden}")


def _schedule(view: View) -> str:
    """What A gives on which days."""
    schedule, treatments = view.details.schedule, view.study.scenario.treatments
    if schedule["class"].nunique() > 1:
        return f"on each day the same treatment for all who agree in {view.all_but.removeprefix(' but ')}"
    by_treatment = groupby(schedule.to_dict("records"), key=lambda row: str(row["treatment"]))
    runs = [(name, list(rows)) for name, rows in by_treatment]
    titles = {name: treatments[name].title for name, _ in runs}
    if len(runs) == 1:
        return f"{titles[runs[0][0]]} every day" if len(schedule) > 1 else titles[runs[0][0]]
    if len(runs) > MOST_NAMED:
        counts = schedule["treatment"].value_counts(sort=False)
        return in_a_row([f"{titles[str(name)]} on {days(int(count))}" for name, count in counts.items()], "and")
    texts = [
        f"{titles[name]} on day {rows[0]['day']}"
        if len(rows) == 1
        else f"{titles[name]} on days {rows[0]['day']} to {rows[-1]['day']}"
        for name, rows in runs
    ]
    return in_a_row(texts, "and")


def _lines(view: View) -> Iterator[Line]:
    """The answer."""
    among = f"per {view.patients:,} patients"
    better, worse = _changes(view, A, C)
    text = "costs nothing: A is as good as C in all that is counted."
    if worse:
        beyond = f"; {in_a_row(better, 'and')}" if better else ""
        lost = f"{in_a_row(worse, 'and')}{beyond}; {_units(view, A, C)} units in all"
        text = f"costs (A instead of C), {among}: {lost}."
    yield Line("Hiding everything", text)
    verdict = view.changes[B, A][UTILITY].verdict
    if verdict == EQUAL:
        yield Line("Leaking up to ε", "buys nothing: B is as good as A.")
    else:
        better, worse = _changes(view, B, A)
        parts = [in_a_row(better, "and")] if better else ["nothing that is counted"]
        parts += [f"for {in_a_row(worse, 'and')}"] if worse else []
        gained = "gained" if verdict == BETTER else "lost"
        text = f"{'; '.join(parts)}; {_units(view, B, A)} units {gained} in all."
        yield Line("Leaking up to ε", f"buys (B instead of A), {among}: {text}")
        yield _worth(view)
        yield Line("Who is harmed", _harmed(view))
    rate = view.private["guess_rate"]
    text = (
        f"Two courses of records are told apart at most {percent_1(min(rate, MOST_SURE) if rate < 1 else rate)} of the "
        "time (toss: 50\u00a0%)."
    )
    yield Line("What leaks", "Nothing." if view.private["hides"] == "everything" else text)
    if view.details.horizon > 1:
        yield Line("How ε is spent", _spending(view))


def _changes(view: View, option: str, than: str) -> tuple[list[str], list[str]]:
    """What an option makes better than another, and what worse."""
    better: list[str] = []
    worse: list[str] = []
    for name in (*view.counted, ALL_ELSE):
        change_per_patient, verdict = view.changes[option, than][name]
        value = change_per_patient * view.patients
        side = better if verdict == BETTER else worse
        fewer = "fewer" if verdict == BETTER else "more"
        if verdict != EQUAL and name == ALL_ELSE:
            side.append(f"{about(value)} {fewer} units of utility lost in all else")
        elif verdict != EQUAL:
            places = _places(view, f"expected_{name}")
            size = about(value) if abs(value) >= ROUGH else to_places(abs(value), places)
            side.append(f"{size} {fewer} {view.study.scenario.counted_title(name)}")
    return better, worse


def _units(view: View, option: str, than: str) -> str:
    """The size of a difference in utility."""
    return about(view.changes[option, than][UTILITY].value * view.patients)


def _worth(view: View) -> Line:
    """Whether what B buys is worth what it costs: by what one of the lead counts."""
    equal_at, label = view.equal_at, "Is that worth it?"
    verdict = view.changes[B, A][UTILITY].verdict
    if not view.lead or math.isnan(equal_at):
        sentence = "B is better than A" if verdict == BETTER else "B is not better than A"
        whatever = f", whatever {view.study.scenario.one_title(view.lead)} counts" if view.lead else ""
        return Line(
            label, f"{sentence} under this study's weights{whatever if verdict == BETTER else ''}. {NO_VERSIONS}"
        )
    one = view.study.scenario.one_title(view.lead)
    below, above = (B, A) if view.changes[B, A][view.lead].verdict == WORSE else (A, B)
    stated = B if verdict == BETTER else A
    here = f" (this study: {plain(view.study.lead_weight)})"
    return Line(
        label,
        f"{NO_VERSIONS.removesuffix('.')}, by what {one} counts:",
        (
            (f"up to {rounded(equal_at)}{here if stated == below else ''}", f"{below} is better than {above}"),
            (f"from {rounded(equal_at)}{here if stated == above else ''}", f"{above} is better than {below}"),
        ),
    )


def _harmed(view: View) -> str:
    """The groups that B gives more of the lead, or less utility, than A."""
    what = f"more {view.study.scenario.counted_title(view.lead)}" if view.lead else "more units of utility lost"
    if not view.study.by:
        return "Not known: no groups of patients are compared."
    if not view.harmed:
        return f"No group that was compared has {what} under B than under A."
    first, *others = [
        f"“{row['group']}” ({percent(row['share'])}): {about(row['value'] * view.patients)}"
        for row in view.harmed[:MOST_GROUPS]
    ]
    return f"By B instead of A, most: {first} {what} per {view.patients:,} of them{''.join(f'; {x}' for x in others)}."


def _spending(view: View) -> str:
    """On which days B spends its total."""
    if view.private["hides"] == "everything":
        return "Not at all: B gives everyone the same on each day."
    policy = str(view.private["policy"])
    if policy == ONCE:
        return "All of it on the one draw on day 1: nothing adds up over the days."
    if policy == TREE:
        return "All of it on the course as a whole: nothing adds up over the days."
    return f"{_by_day(view, policy)}."


def _by_day(view: View, policy: str) -> str:
    """What a policy that draws each day spends on which day."""
    rows = view.details.spent
    rows = rows[(rows["total_epsilon"] == view.total) & (rows["policy"] == policy)]
    spending = rows[rows["epsilon_spent"] > 0].sort_values("epsilon_spent", ascending=False, kind="stable")
    if spending.empty:
        return "nothing"
    named = spending.head(MOST_NAMED).sort_values("day").to_dict("records")
    texts = [f"{rounded(row['epsilon_spent'])} on day {row['day']}" for row in named]
    rest = len(spending) - len(named)
    texts += [f"less on {rest} more"] if rest else []
    same = ", and nothing on other days" if len(spending) < len(rows) else ""
    adds = f"; {COMPOSED[str(spending['composition'].iloc[0])]}" if len(spending) > 1 else ""
    return f"{in_a_row(texts, 'and')}{same}{adds}"


def agreeing(values: Sequence[float]) -> int:
    """The fewest decimals, at most two, at which rounded numbers differ by their rounded differences.

    Examples
    --------
    >>> agreeing([330.2, 299.6]), agreeing([330.4, 299.6]), agreeing([57.0, 62.0])
    (0, 1, 0)
    """
    for places in range(2):
        pairs = [(one, other) for one in values for other in values]
        if all(abs(round(a, places) - round(b, places) - round(a - b, places)) < 1e-9 for a, b in pairs):
            return places
    return 2


def _places(view: View, column: str) -> int:
    """The decimals of A, B and C in a row of the table."""
    return agreeing([view.options[letter][column] * view.patients for letter in (A, B, C)])


def _numbers(view: View) -> Grid:
    """The options side by side, and differences whose weighted sum is that in utility."""
    options, pairs = view.options.values(), [(A, C), (B, A)]
    head = (f"Total {view.at} (a smaller ε hides more)", "weighs", *view.options, *(f"{a} − {b}" for a, b in pairs))

    def cells(column: str, outcome: str, sign: int = 1) -> list[str]:
        places = _places(view, column)
        moved = (change(sign * view.changes[pair][outcome].value * view.patients, places) for pair in pairs)
        return [*(to_places(option[column] * view.patients, places) for option in options), *moved]

    rows = []
    for name in view.counted:
        title = capital(f"{view.study.scenario.counted_title(name)} per {view.patients:,}")
        rows.append((title, plain(view.study.weights[name]), *cells(f"expected_{name}", name)))
    if view.counted:
        blank = [""] * len(options)
        rows.append(("All else, in utility lost", "", *blank, *cells("loss", ALL_ELSE, -1)[len(options) :]))
    rows.append((f"Utility lost per {view.patients:,}", "", *cells("loss", UTILITY, -1)))
    told_apart = [kept(option["guess_rate"]) for option in options]
    rows.append(("Two courses told apart (toss: 50\u00a0%)", "", *told_apart, *[""] * len(pairs)))
    return Grid(head, tuple(rows), name="options")


def _trace(view: View, options: pd.DataFrame) -> Grid:
    """What each way loses at each total, below what no mechanism can avoid."""
    near = sorted(view.details.odds, key=lambda total: (total != view.total, abs(total - view.total)))
    totals = sorted(near[:MOST_TOTALS])
    ways = options[options["section"] == "way"].set_index(["policy", "epsilon"])["loss"]
    private = options[options["option"] == B].set_index("epsilon")["policy"]
    bounds = view.details.bounds.set_index("total_epsilon")["least_loss"]
    rows = []
    if not bounds.empty:
        least = [float(bounds.get(total, math.nan)) * view.patients for total in totals]
        rows.append(("limit: no mechanism loses less than", *map(_whole_below, least)))
    compared = set(options.loc[options["section"] == "way", "policy"])
    for policy in (name for name in dict.fromkeys([*TRACE, *private]) if name in compared):
        values = [float(ways[policy, total]) * view.patients for total in totals]
        texts = [
            f"{to_places(value, 0)}{' B' if private[total] == policy else '  '}"
            for value, total in zip(values, totals, strict=True)
        ]
        rows.append((way_title(policy), *texts))
    of_a = to_places(view.options[A]["loss"] * view.patients, 0)
    head = (f"Utility lost per {view.patients:,} (A: {of_a}; C: 0)", *(f"ε = {plain(total)}" for total in totals))
    return Grid(head, tuple(rows), name="comparison")


def _whole_below(value: float) -> str:
    """A lower bound as a whole number, or with two digits below 10."""
    return rounded_down(value, max(2, 1 + math.floor(math.log10(value)))) if value > 0 else plain(value)


def _notes(view: View) -> Iterator[str]:
    """What the rest is made of, what the bound is about, and what ε does not cover."""
    details, scenario = view.details, view.study.scenario
    weighed = [name for name, weight in view.study.weights.items() if weight and name not in view.counted]
    names = [scenario.counted_title(name) for name in weighed[:MOST_NAMED]]
    more = len(weighed) - len(names)
    names += [f"{more} more outcomes" if more > 1 else scenario.counted_title(weighed[-1])] if more else []
    note = (
        f"All else: {in_a_row([*names, 'costs'], 'and')} of each day, by their weights. B marks the best private way."
    )
    bounds = details.bounds[details.bounds["total_epsilon"] == view.total]
    if not bounds.empty:
        bound = bounds.iloc[0]
        first = "the first two days" if bound["hides"] == "course" else "the first day"
        proof = "in rational arithmetic" if bound["proof"] == RATIONALS else "with sums that are rounded up"
        note += f" The limit asks privacy of {first} alone, for treatments that are given as published; proven {proof}."
    yield (
        f"{note} How long a stay lasts is {'public' if details.length_public else 'hidden'}. A treatment after day "
        f"{details.horizon} leaks again; ε does not cover outcomes that an observer sees."
    )


def _behind(view: View, options: pd.DataFrame) -> Iterator[Grid]:
    """Every way at this total, what the days spend, the best way at each horizon, and the courses of the tree."""
    ways = options[options["section"] == "way"]
    lead = f"expected_{view.lead}"
    head = ["Way", "utility lost"]
    head += [view.study.scenario.counted_title(view.lead)] if view.lead else []
    rows = [
        (
            way_title(row["policy"]),
            to_places(row["loss"] * view.patients, 0),
            *([to_places(row[lead] * view.patients, 0)] if view.lead else []),
            rounded(row["total_spent"]),
            rounded(row["epsilon_spent"]),
            percent_1(row["guess_rate"]),
        )
        for row in ways.to_dict("records")
    ]
    head += ["ε in all", "ε of one day", "two told apart"]
    yield Grid(
        tuple(head),
        tuple(rows),
        title=f"Every way at a total {view.at}, per {view.patients:,} patients",
        name="options",
    )
    drawn = view.details.spent[view.details.spent["total_epsilon"] == view.total]["policy"].unique()
    yield Grid(
        ("Way", "ε"),
        tuple((way_title(str(policy)), _by_day(view, str(policy))) for policy in drawn),
        title=f"What ways that draw anew each day spend of a total {view.at}",
        name="spent",
    )
