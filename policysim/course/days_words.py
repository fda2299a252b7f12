"""The words of a comparison over days: the screen at one of its totals."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from policies.exponential import Exponential, ExponentialFitted
from policies.optimal.optimum import OPTIMAL_DAILY
from policies.randomized_response import RandomizedResponse
from policies.reference import BestFixed, Uniform
from policysim.course.days import ONCE, TREE
from policysim.course.days_findings import PAIRS, TITLES, A, B, C, DaysDetails, as_stated
from policysim.course.schedules import LEAST_GAIN
from policysim.course.treatment_course import public_over_days
from policysim.numbers import about, days, plain, right, rounded, share, to_places
from policysim.report.findings import BETTER, EQUAL, EVERYTHING, NOTHING, UTILITY, WORSE, Findings, rows_of
from policysim.report.screen import Grid, Line, Option, Screen
from policysim.report.weighed import REST, cells_of, changed, row_title
from policysim.study.declared import ScenarioStudy
from policysim.study.labels import about_model, listed
from policysim.utility import COSTS
from policysim.words import BEST_SCHEDULE, capital, in_a_row

# The lines of the trace beside the bound, as far as they were compared.
TRACE = (TREE, ONCE, OPTIMAL_DAILY, ExponentialFitted.name, Exponential.name)
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
    ONCE: "a schedule drawn at random on day 1, with chances that depend on the first record",
    TREE: "drawn at random each day within a few published courses, with chances that depend on the record of the day",
}
# The same, short, of a line of the trace that is no option.
DRAWN_OTHERWISE = {
    TREE: "Plan tree: drawn daily within published courses. ",
    ONCE: "Plan once: one, drawn on day 1. ",
}
SPENT = {
    ONCE: "All of it on the one draw on day 1.",
    TREE: "All of it on the course as a whole.",
}
COMPOSED = {
    "exact-losses": "what the days spend adds up",
    "zero-concentrated": "what the days spend adds up as ρ",
    "loss-distributions": "the privacy losses of the days add up as random numbers",
}
# So many totals, and treatments, days or features, are named at most.
MOST_TOTALS, MOST_NAMED = 6, 4
IN_FULL = "No room here, but in --full: the ways at other totals. "
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
    def rows(self) -> pd.DataFrame:
        """The rows of the table of outcomes, as printed."""
        return self.details.rows[self.details.rows["epsilon"] == self.total]

    @property
    def lead(self) -> str:
        """The outcome that leads the study; "" if none does, or it is not counted over days."""
        return self.study.lead if self.study.lead and (B, A, self.study.lead) in self.changes else ""

    @property
    def exchange(self) -> Mapping[str, Any] | None:
        """What one of the lead must count for A and B to be equal; None where nothing makes them so."""
        table = self.details.exchange
        return next(iter(rows_of(table[table["epsilon"] == self.total])), None)

    @property
    def verdict(self) -> str:
        """That on B against A."""
        return str(self.changes[B, A, UTILITY]["verdict"])

    def days_of(self, policy: str) -> pd.DataFrame:
        """The days on which a policy that draws anew each day spends something."""
        rows = self.details.spent
        spends = (rows["total_epsilon"] == self.total) & (rows["epsilon_spent"] > 0)
        found: pd.DataFrame = rows[spends & (rows["policy"] == policy)]
        return found

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
    # Further options leave no room for the trace; the textbook's mechanism then goes unexplained.
    crowded, trace = len(view.options) > len(TITLES), _trace(view, findings.options)
    return Screen(
        title=f"{study.title}{' Over' if study.title.endswith(('?', '.')) else ', over'} {days(details.horizon)}",
        advice=_advice(view),
        about=(_about(view),),
        options=tuple(_introduced(view)),
        lines=tuple(_lines(view, findings.options)),
        tables=(_numbers(view), *(() if crowded else (trace,))),
        notes=(f"{IN_FULL if crowded else _of_trace(view, findings.options)}{_note(view)}",),
        behind=(*((trace,) if crowded else ()), _every_way(view, options)),
        warnings=findings.warnings,
    )


def _advice(view: View) -> str:
    """What to choose, and on what it depends."""
    if view.verdict != BETTER:
        return f"Choose A: within a total {view.at}, no private way that was compared is better than it."
    if (exchange := view.exchange) is None:
        enough = f"hiding the course up to {view.at} is enough"
        return f"Choose B if {enough}, else A: under this study's weights B is better."
    more, less = (A, B) if view.changes[B, A, view.lead]["verdict"] == WORSE else (B, A)
    one, equal_at = view.study.scenario.one_title(view.lead), rounded(exchange["equal_at"])
    counts = f"counts more than {equal_at} {exchange['unit']} (this study: {rounded(exchange['stated'])})"
    return f"Choose {more} if {one} {counts}, {less} if less."


def _about(view: View) -> str:
    """What kind of model this is, the secret, the observer, the treatments, and ε in words."""
    study, details = view.study, view.details
    titles = {name: treatment.title for name, treatment in study.scenario.treatments.items()}
    named = "; ".join(title if name in title else f"{title} ({name})" for name, title in titles.items())
    secret = "the patient's record" if details.horizon == 1 else f"the patient's records of all {days(details.horizon)}"
    but = f", all but {view.public}" if view.public else ""
    chosen = f"Treatments, chosen by the clinic: {named}."
    first = f"{about_model(study)} Secret: {secret}{but}. Observer: {study.hidden_from}. {chosen}"
    if not 0 < view.total < math.inf:
        return first
    slack = f", but for δ = {plain(details.delta)}" if details.delta else ""
    factor = f"by at most a factor of {rounded(details.odds[view.total])}{slack}"
    return f"{first} {view.at}: the treatments of all days change the odds of any fact about the patient {factor}."


def _introduced(view: View) -> Iterator[Option]:
    """The options, each with what it gives and hides."""
    but = f" but {view.public}" if view.public else ""
    for letter, row in view.options.items():
        if letter == A:
            gives = f"{_schedule(view)}; hides everything{but}"
        elif letter == C:
            gives = "best on each day under this study's weights; hides nothing"
        elif row["hides"] == EVERYTHING:
            same = WAYS[Uniform.name] if row["policy"] == Uniform.name else "everyone the same"
            gives = f"at {view.at} it gives {same} on each day, and hides everything{but}, too"
        else:
            way = DRAWN.get(row["policy"]) or _drawn_daily(view.days_of(row["policy"]))
            hides = "nothing" if row["hides"] == NOTHING else f"the whole course{but} up to {view.at}"
            gives = f"{way_title(row['policy']).removeprefix('drawn daily: ')}: {way}; hides {hides}"
        yield Option(letter, row["title"], gives)


def _drawn_daily(days: pd.DataFrame) -> str:
    """When a way that draws anew each day looks at the record, of the days on which it spends something."""
    if len(days) == 1:
        return f"drawn at random on day {days['day'].iloc[0]} alone, with chances that depend on the record of that day"
    return "drawn at random each day, with chances that depend on the record of the day"


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
    spans: dict[str, list[str]] = {}
    for run in runs:
        spans.setdefault(titles[run[0]], []).append(f"{run[0]}" if len(run) == 1 else f"{run[0]} to {run[-1]}")
    return ", ".join(f"{title} on {_days(of_title)}" for title, of_title in spans.items())


def _days(spans: Sequence[str]) -> str:
    """Days in words: day 2; days 1 and 3 to 5."""
    return f"day{'s' if len(spans) > 1 or not spans[0].isdigit() else ''} {in_a_row(spans, 'and')}"


def _lines(view: View, options: pd.DataFrame) -> Iterator[Line]:
    """The answer."""
    more, fewer = (in_a_row(each, "and") for each in changed(view.rows, A, C))
    paid, among = "; ".join(filter(None, [more or "nothing that is counted", fewer])), f"per {view.details.patients:,}"
    nothing = view.changes[A, C, UTILITY]["verdict"] == EQUAL
    costs = "costs nothing: A is as good as C." if nothing else f"costs (A instead of C), {among}: {paid}."
    yield Line("Hiding everything", costs)
    if view.verdict == EQUAL:
        yield Line(f"Leaking up to {view.at}", f"buys nothing: {VERDICTS[EQUAL]}.")
    else:
        more, fewer = (in_a_row(each, "and") for each in changed(view.rows, B, A))
        price = f"; for {more}" if more else ""
        bought = fewer or "nothing that is counted"
        yield Line(f"Leaking up to {view.at}", f"buys (B instead of A), {among}: {bought}{price}.")
        yield _worth(view)
        yield Line("Who is harmed", _harmed(view))
    if view.options[B]["hides"] == EVERYTHING:
        yield Line("What leaks", "Nothing: treatments from A or B say nothing about the secret.")
        return
    apart = f"{right(view.options[B]['guess_rate'])} times of 100 (coin toss: 50)"
    yield Line("What leaks", f"By B two patients are told apart at most {apart}.")
    if view.details.horizon > 1:
        spent = SPENT.get(view.options[B]["policy"]) or _by_day(view)
        yield Line("How ε is spent", f"{spent}{_reacting(view, options)}")


def _reacting(view: View, options: pd.DataFrame) -> str:
    """What the best way that reacts to later days loses, where choosing once loses more; sizes as in the trace."""
    ways = options[(options["section"] == "way") & (options["epsilon"] == view.total)]
    losses = ways[ways["policy"].isin([*TRACE, view.options[B]["policy"]])].set_index("policy")["loss"]
    once, reacting = float(losses[ONCE]), float(losses.drop(ONCE).min())
    # The schedules are searched to this share of what there is to gain.
    if not once - reacting > LEAST_GAIN * float(view.options[A]["loss"]):
        return ""
    by_reacting, by_once = (to_places(size * view.details.patients, 0) for size in (reacting, once))
    loses = f"loses {by_reacting} units of utility per {view.details.patients:,}, choosing once {by_once}"
    return f" Reacting to later days {loses}."


def _worth(view: View) -> Line:
    """Whether B is better than A, and on what it depends."""
    label, verdict = "Is that worth it?", f"{VERDICTS[view.verdict]}{AS_STATED}"
    if (exchange := view.exchange) is None:
        return Line(label, f"Under this study's weights {verdict}.")
    one, equal_at = view.study.scenario.one_title(view.lead), rounded(exchange["equal_at"])
    below, above = (B, A) if view.changes[B, A, view.lead]["verdict"] == WORSE else (A, B)
    rows = (
        (f"{rounded(exchange['stated'])} (this study)", verdict),
        (f"up to {equal_at}", f"{below} is better"),
        (f"from {equal_at}", f"{above} is better"),
    )
    return Line(label, f"A value judgement. How many {exchange['unit']} count as much as {one}?", rows)


def _harmed(view: View) -> str:
    """The group that B gives most more of the lead, or less utility, than A."""
    measure = f"more {view.study.scenario.counted_title(view.lead)}" if view.lead else "more utility lost"
    if not view.study.by:
        return "Not known: no groups of patients are compared; --by FEATURE compares them."
    if not view.harmed:
        return f"No group, of those that are compared, has {measure} by B than by A."
    first, patients = view.harmed[0], view.details.patients
    more = f"{about(first['value'] * patients)} {measure} per {patients:,} of them"
    return f"By B instead of A “{first['group']}” ({share(first['share'])}) has {more}."


def _by_day(view: View) -> str:
    """What B, which draws each day, spends on which day."""
    policy, composition = (view.options[B][name] for name in ("policy", "composition"))
    rows = view.days_of(policy)
    largest = rows.nlargest(MOST_NAMED, "epsilon_spent").sort_values("day")
    texts = [f"{rounded(row['epsilon_spent'])} on day {row['day']}" for row in rows_of(largest)]
    if len(rows) == 1:
        return f"All of it on day {rows['day'].iloc[0]}."
    rest = len(rows) - len(largest)
    texts += [f"no more on each of {rest} further days"] if rest else []
    within = " within each public class" if view.public else ""
    return f"{capital('; '.join(filter(None, [in_a_row(texts, 'and'), COMPOSED[composition] + within])))}."


def _numbers(view: View) -> Grid:
    """The options side by side, and differences whose weighted sum is that in utility."""
    letters, pairs = list(view.options), [f"{option} − {than}" for option, than in PAIRS]
    head = f"Per {view.details.patients:,} patients, at a total {view.at}"
    rows: list[tuple[str, ...]] = []
    for row in rows_of(view.rows):
        if row["outcome"] != REST or any(row[pair] for pair in pairs):
            rest = [re.sub("^days (with|in the state) ", "", title) for title in view.details.rest[view.total]]
            title = row_title(row, rest, COSTS in set(view.rows["outcome"]))
            rows.append((title, *cells_of(row, letters, pairs)))
    told = [right(view.options[letter]["guess_rate"]) for letter in letters]
    rows.append(("Two patients told apart, of 100 (toss: 50)", "", *told, *[""] * len(pairs)))
    heads = (pair.replace(" ", "\u00a0") for pair in pairs)
    return Grid((head, "weighs", *letters, *heads), tuple(rows), name="options")


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


def _textbook(view: View, options: pd.DataFrame) -> str:
    """Why the exponential mechanism of the textbook loses more than the fitted one; "" where it does not."""
    ways = options[options["section"] == "way"].set_index(["policy", "epsilon"])["loss"]
    names = [Exponential.name, ExponentialFitted.name]
    if not set(names) <= set(ways.index.get_level_values("policy")):
        return ""
    textbook, fitted = (ways[name] for name in names)
    if not any(as_stated(fitted[total] - textbook[total], textbook[total]) == WORSE for total in textbook.index):
        return ""
    of_a = view.options[A]["loss"]
    better = [total for total in textbook.index if as_stated(of_a - textbook[total], of_a) == BETTER]
    beats = f"better than A from ε = {plain(min(better))} on" if better else "better than A at no ε above"
    return f"The textbook's exponential mechanism starts each day from equal odds: {beats}. "


def _of_trace(view: View, options: pd.DataFrame) -> str:
    """What its lines are, as far as no option says it, and what the bound is about."""
    others = [text for policy, text in DRAWN_OTHERWISE.items() if policy != view.options[B]["policy"]]
    bounds = view.details.bounds
    longer = [plain(total) for total in bounds.loc[bounds["hides"] == "course", "total_epsilon"]]
    days = "days 1 and 2 alone" if longer else "day 1 alone"
    if 0 < len(longer) < len(bounds):
        days = f"day 1 alone; at ε = {in_a_row(longer, 'and')} of days 1 and 2"
    limit = "" if bounds.empty else f"The limit asks privacy of {days}. "
    return f"{_textbook(view, options)}{''.join(others)}{limit}"


def _note(view: View) -> str:
    """What ε does not cover."""
    length = "public" if view.details.length_public else "hidden"
    return (
        f"The length of a stay is {length}. Treatment after day {view.details.horizon} leaks again, and so do "
        "outcomes that are seen."
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
