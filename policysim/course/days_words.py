"""The words of a comparison over days: the screen at one of its totals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from policies.exponential import Exponential, ExponentialFitted
from policies.optimal.optimum import OPTIMAL_DAILY
from policies.randomized_response import RandomizedResponse
from policies.reference import BestFixed, Uniform
from policysim.course.days import DAILY, ONCE, TREE
from policysim.course.days_findings import ALL_ELSE, A, B, C, DaysDetails
from policysim.course.treatment_course import public_over_days
from policysim.numbers import NEGLIGIBLE, about, change, days, percent, plain, right, rounded, share, to_places
from policysim.report.findings import BETTER, EQUAL, EVERYTHING, NOTHING, UTILITY, WORSE, Findings, rows_of
from policysim.report.screen import Grid, Line, Option, Screen
from policysim.study.declared import ScenarioStudy
from policysim.study.labels import about_model, listed
from policysim.words import BEST_SCHEDULE, capital, in_a_row

# The lines of the trace beside the bound, as far as they were compared.
TRACE = (TREE, ONCE, OPTIMAL_DAILY, ExponentialFitted.name)
# What ways to treat over days are called; any other policy is drawn daily by its name.
WAYS = {
    TREE: "plan tree",
    ONCE: "plan once",
    BEST_SCHEDULE: "one schedule for everyone",
    BestFixed.name: "the same single treatment on all days",
    Uniform.name: "each treatment with equal odds",
    OPTIMAL_DAILY: "drawn daily: optimum of each day",
    ExponentialFitted.name: "drawn daily: exponential mechanism, fitted",
    Exponential.name: "drawn daily: exponential mechanism of the textbook",
    RandomizedResponse.name: "drawn daily: randomized response",
}
# How a patient's treatments come about, and how such a way spends its total.
DRAWN = {
    ONCE: "one of a few schedules is drawn at random on day 1, with chances that depend on the first record",
    TREE: "drawn at random each day within a few published courses, with chances that depend on the record of the day",
}
SPENT = {
    ONCE: "All of it on the one draw on day 1: nothing adds up over the days.",
    TREE: "All of it on the course as a whole: nothing adds up over the days.",
}
COMPOSED = {
    "exact-losses": "what the days spend adds up",
    "zero-concentrated": "what the days spend adds up as ρ",
    "loss-distributions": "the privacy losses of the days add up as random numbers",
}
# So many totals, and treatments, days or features, are named at most.
MOST_TOTALS, MOST_NAMED = 6, 4
VERDICTS = {BETTER: "B is better than A", WORSE: "B is worse than A", EQUAL: "B and A are worth the same"}
AS_STATED = ", as stated (no other numbers were tried)"


def way_title(policy: str) -> str:
    """What a way to treat over days is called."""
    return WAYS.get(policy, f"drawn daily: {policy}")


class View(NamedTuple):
    """The findings at one total: options by letter, differences by letters and outcome, groups that are harmed."""

    study: ScenarioStudy
    details: DaysDetails
    total: float
    options: Mapping[str, Mapping[str, Any]]
    changes: Mapping[tuple[str, str, str], Mapping[str, Any]]
    harmed: Sequence[Mapping[str, Any]]

    @property
    def counted(self) -> list[str]:
        """The outcomes that are counted, the lead first."""
        names = [name.removeprefix("expected_") for name in self.options[B] if name.startswith("expected_")]
        return sorted(names, key=lambda name: name != self.study.lead)

    @property
    def lead(self) -> str:
        """The outcome that leads the study; "" if none does, or it is not counted over days."""
        return self.study.lead if self.study.lead in self.counted and self.study.lead else ""

    @property
    def verdict(self) -> str:
        """That on B against A."""
        return str(self.changes[B, A, UTILITY]["verdict"])

    @property
    def at(self) -> str:
        """The total in words."""
        return f"ε = {plain(self.total)}"

    @property
    def public(self) -> str:
        """What is public over days, in words; "" for nothing."""
        public = public_over_days(self.study)
        return listed(public) if len(public) <= MOST_NAMED else "what is public"


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
    changes = {(row["option"], row["than"], row["outcome"]): row for row in rows_of(differences)}
    view = View(study, details, total, findings.lettered(total), changes, rows_of(harmed))
    return Screen(
        title=f"{study.title}{' Over' if study.title.endswith(('?', '.')) else ', over'} {days(details.horizon)}",
        advice=_advice(view),
        about=_about(view),
        options=tuple(_introduced(view)),
        lines=tuple(_lines(view)),
        tables=(_numbers(view), _trace(view, findings.options)),
        notes=(_note(view),),
        behind=(_every_way(view, options),),
        warnings=findings.warnings,
    )


def _advice(view: View) -> str:
    """What to choose, and on what it depends."""
    if view.verdict != BETTER:
        return f"Choose A: within a total {view.at}, no private way that was compared is better than it."
    if view.total not in view.details.equal_at:
        enough = f"hiding the course up to {view.at} is enough"
        return f"Choose B if {enough}, else A: under this study's weights B is better."
    more, less = (A, B) if view.changes[B, A, view.lead]["verdict"] == WORSE else (B, A)
    one, equal_at = view.study.scenario.one_title(view.lead), rounded(view.details.equal_at[view.total])
    stated = f"(this study: {plain(view.study.lead_weight)})"
    return f"Choose {more} if {one} counts more than {equal_at} units of utility {stated}, {less} if less."


def _about(view: View) -> tuple[str, ...]:
    """What kind of model this is, the secret, the observer, the treatments, and ε in words."""
    study, details = view.study, view.details
    titles = {name: treatment.title for name, treatment in study.scenario.treatments.items()}
    named = "; ".join(title if name in title else f"{title} ({name})" for name, title in titles.items())
    secret = "the patient's record" if details.horizon == 1 else f"the patient's records of all {days(details.horizon)}"
    but = f", all but {view.public}" if view.public else ""
    chosen = f"Treatments, chosen by the clinic: {named}."
    first = f"{about_model(study)} Secret: {secret}{but}. Observer: {study.hidden_from}. {chosen}"
    if not 0 < view.total < math.inf:
        return (first,)
    slack = f", but for δ = {plain(details.delta)}" if details.delta else ""
    factor = f"by at most a factor of {rounded(details.odds[view.total])}{slack}"
    return (first, f"{view.at}: the treatments of all days change the odds of any fact about the patient {factor}.")


def _introduced(view: View) -> Iterator[Option]:
    """The options, each with what it gives and hides."""
    but = f" but {view.public}" if view.public else ""
    for letter, row in view.options.items():
        if letter == A:
            gives = f"{_schedule(view)}; hides everything{but}"
        elif letter == C:
            gives = "best on each day under this study's weights; hides nothing"
        elif row["hides"] == EVERYTHING:
            gives = f"at {view.at} it gives everyone the same on each day, and hides everything{but}, too"
        else:
            way = DRAWN.get(row["policy"], "with chances that depend on the record of the day")
            hides = "nothing" if row["hides"] == NOTHING else f"the whole course{but} up to {view.at}"
            gives = f"{way_title(row['policy'])}: {way}; hides {hides}"
        yield Option(letter, row["title"], gives)


def _schedule(view: View) -> str:
    """What A gives on which days."""
    schedule, treatments = view.details.schedule, view.study.scenario.treatments
    if schedule["class"].nunique() > 1:
        return f"on each day the same treatment for all who agree in {view.public}"
    titles = pd.Series([treatments[name].title for name in schedule["treatment"]], index=schedule["day"])
    runs = [run.index for _, run in titles.groupby(titles.ne(titles.shift()).cumsum())]
    if len(runs) > MOST_NAMED:
        counts = titles.value_counts(sort=False).items()
        return in_a_row([f"{title} on {days(int(count))}" for title, count in counts], "and")
    spans = [f"day {run[0]}" if len(run) == 1 else f"days {run[0]} to {run[-1]}" for run in runs]
    return in_a_row([f"{titles[run[0]]} on {span}" for run, span in zip(runs, spans, strict=True)], "and")


def _lines(view: View) -> Iterator[Line]:
    """The answer."""
    more, fewer = _changed(view, A, C)
    paid = "; ".join(filter(None, [in_a_row(more, "and"), in_a_row(fewer, "and")]))
    among = f"per {view.details.patients:,}"
    costs = f"costs (A instead of C), {among}: {paid}." if more else "costs nothing: A is as good as C."
    yield Line("Hiding everything", costs)
    if view.verdict == EQUAL:
        yield Line(f"Leaking up to {view.at}", f"buys nothing: {VERDICTS[EQUAL]}.")
    else:
        more, fewer = _changed(view, B, A)
        price = f"; for {in_a_row(more, 'and')}" if more else ""
        bought = in_a_row(fewer, "and") or "nothing that is counted"
        yield Line(f"Leaking up to {view.at}", f"buys (B instead of A), {among}: {bought}{price}.")
        yield _worth(view)
        yield Line("Who is harmed", _harmed(view))
    if view.options[B]["hides"] == EVERYTHING:
        yield Line("What leaks", "Nothing: treatments from A or B say nothing about the secret.")
        return
    apart = f"{right(view.options[B]['guess_rate'])} times of 100 (coin toss: 50)"
    yield Line("What leaks", f"By B an observer distinguishes two courses of records at most {apart}.")
    if view.details.horizon > 1:
        yield Line("How ε is spent", (SPENT.get(view.options[B]["policy"]) or _by_day(view)) + _reacting(view))


def _reacting(view: View) -> str:
    """What the best way that reacts to later days keeps of the benefit, beside choosing once on day 1."""
    ways = view.details.ways
    here = ways[(ways["horizon"] == view.details.horizon) & (ways["total_epsilon"] == view.total)]
    kept = here.set_index("way")["benefit_kept"]
    once, reacting = float(kept[ONCE]), float(kept[[TREE, *kept.index.intersection([DAILY])]].max())
    if not reacting > once + NEGLIGIBLE:
        return " Reacting to later days gains nothing here."
    return f" Reacting to later days keeps {percent(reacting)} of the benefit, choosing once {percent(once)}."


def _changed(view: View, option: str, than: str) -> tuple[list[str], list[str]]:
    """What an option has more of, and less of, than another: "30 more deaths"."""
    more: list[str] = []
    fewer: list[str] = []
    for name in (*view.counted, ALL_ELSE):
        row = view.changes[option, than, name]
        title = "units of utility lost in all else"
        title = title if name == ALL_ELSE else view.study.scenario.counted_title(name)
        size = about(row["value"] * view.details.patients)
        if row["verdict"] == WORSE:
            more.append(f"{size} more {title}")
        elif row["verdict"] == BETTER:
            fewer.append(f"{size} fewer {title}")
    return more, fewer


def _worth(view: View) -> Line:
    """Whether B is better than A, and on what it depends."""
    label, verdict = "Is that worth it?", f"{VERDICTS[view.verdict]}{AS_STATED}"
    if view.total not in view.details.equal_at:
        return Line(label, f"Under this study's weights {verdict}.")
    one, equal_at = view.study.scenario.one_title(view.lead), rounded(view.details.equal_at[view.total])
    below, above = (B, A) if view.changes[B, A, view.lead]["verdict"] == WORSE else (A, B)
    rows = (
        (f"{plain(view.study.lead_weight)} (this study)", verdict),
        (f"up to {equal_at}", f"{below} is better"),
        (f"from {equal_at}", f"{above} is better"),
    )
    return Line(label, f"A value judgement. How many units of utility count as much as {one}?", rows)


def _harmed(view: View) -> str:
    """The group that B gives most more of the lead, or less utility, than A."""
    measure = f"more {view.study.scenario.counted_title(view.lead)}" if view.lead else "more utility lost"
    if not view.study.by:
        return "Not known: no groups of patients are compared; --by FEATURE compares them."
    if not view.harmed:
        return f"No group, of those that are compared, has {measure} by B than by A."
    first, patients = view.harmed[0], view.details.patients
    more = f"{about(first['value'] * patients)} {measure} per {patients:,} of them"
    return f"By B instead of A the group “{first['group']}” ({share(first['share'])}) has {more}."


def _by_day(view: View) -> str:
    """What B, which draws each day, spends on which day."""
    policy, composition = (view.options[B][name] for name in ("policy", "composition"))
    rows = view.details.spent
    rows = rows[(rows["total_epsilon"] == view.total) & (rows["policy"] == policy) & (rows["epsilon_spent"] > 0)]
    largest = rows.nlargest(MOST_NAMED, "epsilon_spent").sort_values("day")
    texts = [f"{rounded(row['epsilon_spent'])} on day {row['day']}" for row in rows_of(largest)]
    rest = len(rows) - len(largest)
    texts += [f"no more on each of {rest} further days"] if rest else []
    return f"{capital('; '.join(filter(None, [in_a_row(texts, 'and'), COMPOSED[composition]])))}."


def agreeing(values: Sequence[float]) -> int:
    """The fewest decimals, at most two, at which rounded numbers differ by their rounded differences.

    Examples
    --------
    >>> agreeing([330.4, 299.4]), agreeing([330.4, 299.6]), agreeing([57.0, 62.0])
    (0, 1, 0)
    """
    for places in range(2):
        pairs = [(one, other) for one in values for other in values]
        if all(abs(round(a, places) - round(b, places) - round(a - b, places)) < 1e-9 for a, b in pairs):
            return places
    return 2


def _numbers(view: View) -> Grid:
    """The options side by side, and differences whose weighted sum is that in utility."""
    letters, pairs, patients = list(view.options), [(A, C), (B, A)], view.details.patients

    def cells(column: str, outcome: str, sign: int = 1) -> list[str]:
        values = {letter: view.options[letter][column] * patients for letter in letters}
        places = agreeing([values[letter] for letter in (A, B, C)])
        moved = (sign * view.changes[*pair, outcome]["value"] * patients for pair in pairs)
        return [*(to_places(value, places) for value in values.values()), *(change(value, places) for value in moved)]

    head = (
        f"Per {patients:,} patients, at a total {view.at}",
        "weighs",
        *letters,
        "A\u00a0−\u00a0C",
        "B\u00a0−\u00a0A",
    )
    rows = []
    for name in view.counted:
        weight = plain(view.study.weights[name])
        rows.append((capital(view.study.scenario.counted_title(name)), weight, *cells(f"expected_{name}", name)))
    if view.counted:
        moved = cells("loss", ALL_ELSE, -1)[len(letters) :]
        rows.append(("All else, in utility", "", *[""] * len(letters), *moved))
    rows.append(("Utility lost against C", "", *cells("loss", UTILITY, -1)))
    told = [right(view.options[letter]["guess_rate"]) for letter in letters]
    rows.append(("Two courses told apart, of 100 (toss: 50)", "", *told, *[""] * len(pairs)))
    return Grid(head, tuple(rows), name="options")


def _trace(view: View, options: pd.DataFrame) -> Grid:
    """What each way loses at each total, below what no mechanism can avoid."""
    patients = view.details.patients
    near = sorted(view.details.odds, key=lambda total: (total != view.total, abs(total - view.total)))
    totals = sorted(near[:MOST_TOTALS])
    lost = options[options["section"] == "way"].set_index(["policy", "epsilon"])["loss"]
    compared, best = set(lost.index.get_level_values("policy")), options.loc[options["option"] == B, "policy"]
    rows = []
    bounds = view.details.bounds.set_index("total_epsilon")["least_loss"]
    if not bounds.empty:
        # Rounded down: a bound never claims more than is proven.
        least = [to_places(math.floor(bounds[total] * patients), 0) for total in totals]
        rows.append(("limit: no mechanism loses less than", *least))
    for policy in dict.fromkeys([*TRACE, *best]):
        if policy in compared:
            losses = [to_places(lost[policy, total] * patients, 0) for total in totals]
            rows.append((way_title(policy), *losses))
    of_a = to_places(view.options[A]["loss"] * patients, 0)
    title = f"Utility lost, per {patients:,} (A: {of_a}; C: 0), at ε ="
    return Grid((title, *map(plain, totals)), tuple(rows), name="comparison")


def _note(view: View) -> str:
    """What the rest is made of, what the bound is about, and what ε does not cover."""
    details, scenario = view.details, view.study.scenario
    weighed = [name for name, weight in view.study.weights.items() if weight and name not in view.counted]
    titles = [scenario.counted_title(name) for name in weighed]
    titles = [*titles[:MOST_NAMED], "other outcomes"] if len(titles) > MOST_NAMED else titles
    hides = set(details.bounds["hides"])
    first = "the first two days" if "course" in hides else "the first day"
    limit = f"The limit asks privacy of {first} alone, for treatments that are given as published. " if hides else ""
    return (
        f"All else: {in_a_row([*titles, 'costs'], 'and')} of each day, by their weights. {limit}How long a stay lasts "
        f"is {'public' if details.length_public else 'hidden'}. A treatment after day {details.horizon} leaks again; "
        "ε does not cover outcomes that an observer sees."
    )


def _every_way(view: View, options: pd.DataFrame) -> Grid:
    """All that was compared at this total."""
    ways, patients = options[options["section"] == "way"], view.details.patients
    columns = {"Way": list(map(way_title, ways["policy"]))}
    columns["utility lost"] = [to_places(value * patients, 0) for value in ways["loss"]]
    if view.lead:
        title, lead = view.study.scenario.counted_title(view.lead), ways[f"expected_{view.lead}"]
        columns[title] = [to_places(value * patients, 0) for value in lead]
    columns["ε in all"] = [rounded(value) for value in ways["total_spent"]]
    columns["ε of one day"] = [rounded(value) for value in ways["epsilon_spent"]]
    columns["two told apart, of 100"] = [right(value) for value in ways["guess_rate"]]
    return Grid.of_columns(columns, f"Every way at a total {view.at}, per {patients:,} patients", name="options")
