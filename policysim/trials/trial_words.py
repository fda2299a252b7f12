"""The words of a comparison on a log: each number is one of its findings, or a constant of the study."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd

from policies.exponential import Exponential
from policies.optimal.optimum import OptimalSafe
from policysim.logs.log_source import ESTIMATE, SHARES, LogSource, lot_words, outcome_formula, unknown_words
from policysim.numbers import NEGLIGIBLE, decimals, percent, plain, right, rounded
from policysim.report.findings import BETTER, EQUAL, NOT_SHOWN, OUTCOME, UP_TO, UTILITY, WORSE, Findings, rows_of
from policysim.report.screen import Grid, Line, Option, Screen
from policysim.report.weighed import Weighed, named_outcomes
from policysim.study.declared import LoggedStudy
from policysim.study.gain import trace
from policysim.study.labels import hidden
from policysim.trials.evidence import LEAST_P, LEVEL
from policysim.trials.splits import PARTS
from policysim.trials.trial_findings import ARM, EACH, EXPECTED, IN_TRACE, OPTION, PRIVATE, SAME
from policysim.trials.trial_tables import ARM_LETTERS, INTERVAL, Unit, View, behind, short
from policysim.utility import COSTS
from policysim.words import NO_ADVICE, UNANSWERABLE, capital, in_a_row, odds_factor

# What is done with patients without an outcome.
MISSING = {"refuse": "", "exclude": "made up for by a model", "worst": "counted as the worst"}
# Letters of a name that people gave: an outcome, a title.
OUTCOME_LETTERS, TITLE_LETTERS = 100, 190
# So many arms are named in a line.
NAMED_ARMS = 3
HIDES_A_ROW = "A person with several rows is not hidden as a whole: ε hides one row, which is one treatment."
NO_CONCLUSION = "No conclusion: see the warning."
CONCLUSIONS = {
    BETTER: "{} is better",
    WORSE: "{} is worse",
    EQUAL: "as {} gives everyone the same arm",
    NOT_SHOWN: "the data show no difference",
}


def trial_screen(study: LoggedStudy, findings: Findings, epsilon: float) -> Screen:
    """The screen at one epsilon of the study."""
    view = _view(study, findings, epsilon)
    return Screen(
        title=short(study.title, TITLE_LETTERS),
        advice=_advice(view),
        about=tuple(_about(view)),
        options=tuple(_introduced(view)),
        lines=tuple(_lines(view)),
        tables=(_options_table(view), _arms_table(view), _trace_table(view)),
        notes=tuple(_notes(view)),
        # A slider moves nothing there.
        behind=tuple(behind(view)) if epsilon == study.epsilon else (),
        warnings=findings.warnings,
    )


def _view(study: LoggedStudy, findings: Findings, epsilon: float) -> View:
    details, differences = findings.details, findings.differences
    outcome = differences["outcome"].iloc[0]
    differences = differences[differences["outcome"] == outcome]
    now = differences[(differences["section"] == OPTION) & (differences["epsilon"] == epsilon)]
    against_a = now[now["than"] == SAME]
    of_arms = differences[differences["section"] == ARM]
    arms = details.tables["arms"]
    arms = arms[arms["outcome"] == outcome].set_index("arm")
    # Those are verdicts on the arm with the highest mean against each other one.
    verdicts = of_arms.set_index("than")["verdict"].replace(BETTER, WORSE)
    arms = arms.assign(verdict=verdicts.reindex(arms.index, fill_value="highest"))
    widths = [(arms["high"] - arms["low"]).min(), *(against_a["high"] - against_a["low"])]
    what = UTILITY if study.log.costs else OUTCOME
    unit = Unit(details.counted_of, decimals(details.counted_of * np.nanmax(widths) / 2), what)
    changes = {(row["option"], row["than"]): row for row in rows_of(now)}
    return View(study, findings, epsilon, findings.lettered(epsilon), changes, arms, unit)


def _advice(view: View) -> str:
    """One sentence before all others, which obeys the verdicts on B and C."""
    if view.details.doubted:
        return UNANSWERABLE
    draw, same, what = view.private, view.same, "arm" if view.same == SAME else "chances"
    not_better = f"{draw} or C" if same == SAME and view.changes[EACH, SAME]["verdict"] == NOT_SHOWN else draw
    equal = f"At {view.at} {draw} gives everyone the same {what}, as {same} does: privacy does not decide between them."
    if view.nothing_to_follow and same == SAME:
        equal = f"The data show nothing to follow: {draw} and C give everyone the same arm, as A does."
    sentences = {
        BETTER: f"Choose {draw} rather than {same}: at {view.at} its patients do better, and their records stay hidden "
        "up to ε.",
        WORSE: f"Choose {same} rather than {draw}: at {view.at} the patients of {draw} do worse.",
        EQUAL: equal,
        NOT_SHOWN: f"The data do not show that {not_better} is better than {same} at {view.at}, and {same} hides "
        "everything.",
    }
    impossible = "A is not possible within the limits. " if _breaks(view, SAME) else ""
    return f"{impossible}{sentences[view.changes[draw, same]['verdict']]}"


def _breaks(view: View, letter: str) -> bool:
    """Whether an option exceeds a limit of the study."""
    limits = view.details.tables["limits"]
    now = limits[(limits["epsilon"] == view.epsilon) & (limits["option"] == letter)]
    return bool((now["value"] > now["limit"] + NEGLIGIBLE).any())


def _about(view: View) -> Iterator[str]:
    source, tables = view.study.log, view.details.tables
    patients = tables["patients"].set_index("what")["patients"]
    untreated, missing = patients["without a treatment or feature"], patients["without an outcome"]
    censoring = tables["censoring"]
    horizon = source.follow_up.horizon if source.follow_up else None
    censored = censoring.loc[censoring["horizon"] == horizon, "censored"].sum()
    success = "Outcome" if view.unit.counted_of == 1 else "Success"
    texts = [
        f"{patients['used']:,} patients, {_allocated(source.propensity)}.",
        f"Intervals are by {patients['clusters']:,} clusters ({short(source.cluster, ARM_LETTERS)})."
        if source.cluster
        else "",
        f"{success}: {short(source.outcome_title or outcome_formula(source), OUTCOME_LETTERS)}.",
        f"Utility: the outcome minus costs ({_costs(source)})." if source.costs else "",
        f"{untreated:,} without a treatment or a feature left out." if untreated else "",
        f"{missing:,} without an outcome {MISSING[source.missing]}." if missing else "",
        f"{censored:,} followed for less: weighted." if censored else "",
    ]
    yield " ".join(filter(None, texts))
    yield (
        f"Secret: {hidden(view.study).replace('the patient', 'a future patient')}. Observer: {view.study.hidden_from}. "
        f"The patients of this trial are not protected by any of this. {capital(NO_ADVICE)}."
    )


def _costs(source: LogSource) -> str:
    """What treatments cost or save, in units of utility; without those that cost nothing."""
    priced = [(name, cost) for (_, name), cost in zip(source.treatments, source.costs, strict=True) if cost]
    shown = [
        f"{short(name, ARM_LETTERS)} {'saves ' if cost < 0 else ''}{plain(abs(cost))}"
        for name, cost in priced[:NAMED_ARMS]
    ]
    return ", ".join([*shown, f"{len(priced) - len(shown)} more"] if len(priced) > len(shown) else shown)


def _allocated(propensity: str | tuple[float, ...]) -> str:
    """How patients got their treatments."""
    if propensity == SHARES:
        return "randomised with the shares of the arms"
    if lot_words(propensity):
        return f"randomised {lot_words(propensity)}"
    return "not randomised (propensities estimated)" if propensity == ESTIMATE else "with recorded probabilities"


def _introduced(view: View) -> Iterator[Option]:
    """The options with what each hides."""
    how = {
        view.same: "drawn at random, with the same chances for everyone; ",
        SAME: "the arm that did best in other patients; ",
        PRIVATE: "drawn at random, with chances that depend on the record; ",
        EACH: "by scores that are made from other patients; ",
        view.private: "drawn at random, with chances that depend on the record; ",
    }
    for letter, row in view.options.items():
        hides = f"it up to {view.at}" if row["hides"] == UP_TO else row["hides"]
        text = f"{how.get(letter, '')}hides {hides}"
        if letter == PRIVATE and row["hides"] == UP_TO:
            factor = rounded(odds_factor(view.epsilon))
            text += f": a treatment changes the odds of any fact by at most a factor of {factor}"
        elif letter == PRIVATE:
            text = f"at {view.at} its chances do not depend on the record: it hides everything, too"
        yield Option(letter, row["title"], text)


def _lines(view: View) -> Iterator[Line]:
    apart = view.options[view.private]["told_apart"]
    leaks = (
        f"By {view.private} an observer distinguishes two patients at most {right(apart)} times of 100 (coin toss: 50)."
    )
    nothing = f"Nothing: a treatment from A or {view.private} says nothing about the secret."
    yield Line("Best single arm", _best_arm(view))
    yield Line("Choosing for each", _instead_of(view, EACH, SAME))
    yield Line("Drawn privately", _instead_of(view, PRIVATE, SAME))
    if not view.details.tables["limits"].empty:
        yield Line("Within limits", f"{_within_limits(view)} {_use(view)}")
    yield Line("Who is harmed", _who_is_harmed(view))
    yield Line("What leaks", leaks if apart > 0.5 + NEGLIGIBLE else nothing)
    yield Line("How sure", _how_sure(view))


def _best_arm(view: View) -> str:
    """The best single arm, where the data show which it is."""
    arms, unit = view.arms, view.unit
    if view.details.doubted:
        return NO_CONCLUSION
    equal = arms[arms["verdict"] != WORSE].sort_values("mean", ascending=False, kind="stable")
    means = [unit.mean(value) for value in equal["mean"]]
    if len(equal) == 1:
        ends = unit.span(equal["low"].iloc[0], equal["high"].iloc[0])
        return f"{_named(equal)} has {means[0]} {unit.noun} ({INTERVAL} {ends}), more than every other arm."
    worse = arms[arms["verdict"] == WORSE]
    beside = f" Worse: {_named(worse)}." if len(worse) else ""
    return f"The data cannot show which: {_named(equal)} have {means[-1]} to {means[0]} {unit.noun}.{beside}"


def _named(arms: pd.DataFrame) -> str:
    """Some arms by name, and how many more there are."""
    quoted = [f"“{short(str(name), ARM_LETTERS)}”" for name in arms.index[:NAMED_ARMS]]
    more = len(arms) - len(quoted)
    return in_a_row([*quoted, f"{more} more"] if more else quoted, "and")


def _within_limits(view: View) -> str:
    """What the draw within limits gains over what is the same for everyone and keeps them, too."""
    if view.options[view.private]["policy"] != OptimalSafe.name:
        return f"No option is made to keep them, as the policy {OptimalSafe.name} is."
    broken = f"A breaks them, {view.same} does not. " if _breaks(view, SAME) else ""
    return f"{broken}{_instead_of(view, view.private, view.same)}"


def _instead_of(view: View, option: str, than: str) -> str:
    """The difference of two options, with its interval and what may be concluded."""
    row, unit = view.changes[option, than], view.unit
    conclusion = "no conclusion" if view.details.doubted else CONCLUSIONS[row["verdict"]].format(option)
    if row["verdict"] == EQUAL:
        why = ": the data show nothing to follow" if view.nothing_to_follow and not view.details.doubted else ""
        same = conclusion if than == SAME else f"as {option} gives everyone the same chances"
        return f"{option} instead of {than}: no change, {same}{why}."
    ends = unit.change_span(row["low"], row["high"])
    change = f"{unit.change(row['value'])} {unit.noun} ({INTERVAL} {ends})"
    return f"{option} instead of {than}: {change}: {conclusion}.{_parts(view, option, than)}"


def _parts(view: View, option: str, than: str) -> str:
    """The outcome and the costs behind a difference in utility, where costs make a tenth of what is gained or lost."""
    if not view.study.log.costs:
        return ""
    table = view.findings.differences
    pair = table["option"].eq(option) & table["than"].eq(than) & table["epsilon"].eq(view.epsilon)
    outcome, costs = (float(table.loc[pair & table["outcome"].eq(name), "value"].iloc[0]) for name in PARTS)
    now = {option: dict(zip(EXPECTED, (outcome, costs), strict=True)), than: dict.fromkeys(EXPECTED, 0.0)}
    named = named_outcomes(Weighed(PARTS, None, {OUTCOME: -1.0, COSTS: 1.0}, {}), now, [(option, than)])
    if COSTS not in named or not round(costs, view.unit.places):  # nor what would be printed as 0
        return ""
    more = "more" if costs > 0 else "less"
    return (
        f" The mean outcome changes by {view.unit.change(outcome)}, and costs are {view.unit.mean(abs(costs))} {more}."
    )


def _use(view: View) -> str:
    """What the draw within the limits uses of patients that had no part in making it, beside each limit."""
    limits = view.details.tables["limits"]
    now = limits[(limits["epsilon"] == view.epsilon) & (limits["option"] == view.private)]
    uses = []
    for row in rows_of(now):
        if row["what"] == COSTS:
            unit = view.unit
            uses.append(f"costs are {unit.mean(row['value'])} (at most {unit.mean(row['limit'])})")
        else:
            name = short(str(row["what"]), ARM_LETTERS)
            uses.append(f"“{name}” goes to {right(row['value'])} of 100 (at most {plain(100 * row['limit'])})")
    return f"Held-out use of {view.private}: {in_a_row(uses, 'and')}."


def _who_is_harmed(view: View) -> str:
    """The group that B harms most, where one is sure to be harmed."""
    if view.details.doubted:
        return NO_CONCLUSION
    if not view.study.by:
        return "Not known: no groups of patients are compared; --by FEATURE compares them."
    table, unit = view.findings.harmed, view.unit
    harmed = rows_of(table[(table["option"] == view.private) & (table["epsilon"] == view.epsilon)])
    if not harmed:
        return f"No group of patients can be shown to do worse by {view.private} instead of {view.same}."
    most = harmed[0]
    instead, ends = f"{view.private} instead of {view.same}", unit.change_span(-most["high"], -most["low"])
    more = f" {len(harmed) - 1} more: harmed.csv." if len(harmed) > 1 else ""
    return (
        f"By {instead} the group “{short(most['group'], ARM_LETTERS)}” ({percent(most['share'])} of "
        f"patients): {unit.change(-most['value'])} {unit.noun} ({INTERVAL} {ends}, of all groups together).{more}"
    )


def _how_sure(view: View) -> str:
    """What the trial would have found, and whether effects differ."""
    tables, unit = view.details.tables, view.unit
    if view.details.doubted:
        return NO_CONCLUSION
    power = tables["power"][tables["power"]["epsilon"] == view.epsilon]
    least = power.groupby("option")["gain"].first()
    gain, draw = "", view.private
    if EACH in least:
        gain = f"If C truly gained {unit.mean(least[EACH])} {unit.noun} over A, 8 of 10 such trials would show it"
        over = "" if view.same == SAME else f" over {view.same}"
        gain += f"; {draw} would have to gain {unit.mean(least[draw])}{over}. " if draw in least else ". "
    test = tables["heterogeneity"].iloc[0]
    p = f"p < {LEAST_P:g}" if test["p"] < LEAST_P else f"p = {rounded(test['p'])}"
    unsure = "unclear, as it depends on the split" if test["p"] < LEVEL else "not shown"
    return f"{gain}Effects that differ between patients: {'signs of it' if test['signs'] else unsure} ({p})."


def _options_table(view: View) -> Grid:
    """Each option: its value, and what it changes against A."""
    unit, rows = view.unit, []
    for letter, row in view.options.items():
        against_a = ("", "", "")
        if letter != SAME:
            other = view.changes[letter, SAME]
            against_a = (unit.change(other["value"]), unit.change_span(other["low"], other["high"]), other["verdict"])
        value = (unit.mean(row["value"]), unit.span(row["low"], row["high"]))
        rows.append((f"{letter}  {short(row['title'], ARM_LETTERS)}", *value, *against_a, right(row["told_apart"])))
    head = (f"{unit.title} at {view.at}", "mean", "interval", "minus A", "interval", "verdict", "told apart")
    return Grid(head, tuple(rows), name="options")


def _arms_table(view: View) -> Grid:
    """Each arm, had all patients been given it."""
    arms = view.arms
    patients = zip(arms.index, arms["rows"], strict=True)
    columns: dict[str, Iterable[str]] = {
        "Each arm given to everyone (its patients)": [f"{short(str(arm), ARM_LETTERS)} ({n:,})" for arm, n in patients],
        "mean": arms["mean"].map(view.unit.mean),
        "interval": map(view.unit.span, arms["low"], arms["high"]),
        "than the highest": arms["verdict"],
    }
    return Grid.of_columns(columns, name="arms")


def _trace_table(view: View) -> Grid:
    """What each option and mechanism changes against A, over epsilon, and what privacy costs in all."""
    differences = view.findings.differences
    # These are the same at each epsilon.
    moving = differences[(differences["section"] != ARM) & ~differences["option"].isin([EACH, view.same])]
    main, parts = differences["outcome"].iloc[0], set(PARTS) if _parts(view, view.private, view.same) else set()
    moving = moving[(moving["outcome"] == main) | moving["outcome"].isin(parts) & (moving["option"] == view.private)]
    epsilons = trace(view.study.epsilons, view.study.epsilon)
    rows = []
    for (option, than, outcome), changes in moving.groupby(["option", "than", "outcome"], sort=False):
        values = changes.set_index("epsilon")["value"]
        title = option if than == SAME else f"{option} minus {than}"
        if outcome != main:
            title += f": {outcome}"
        elif than != SAME:
            title += ": privacy in all" if than == EACH else ": within limits"
        rows.append((str(title), *(view.unit.change(values[epsilon]) for epsilon in epsilons)))
    head = (f"{view.unit.title}, minus A, over ε", *map(plain, epsilons))
    return Grid(head, tuple(rows), name="differences")


def _notes(view: View) -> Iterator[str]:
    yield (
        "All are made from some of the patients and judged on the others. Intervals hold 95\u00a0%, each by itself. "
        "Each difference is a median over splits of the patients, so they need not add up. A second treatment of a "
        "patient leaks again, up to ε."
    )
    if view.study.log.repeats:
        yield HIDES_A_ROW
    if IN_TRACE[Exponential.name] in set(view.findings.options["option"]):
        yield "The textbook's exponential mechanism sets its odds by the largest difference of two records' scores."
    if view.study.seen == "publication":
        yield (
            "If observers see only a published list: give C, and replace entries of the list at random; the patients "
            "then lose nothing."
        )
    unknown = unknown_words(dict(view.details.tables["unknown"].itertuples(index=False)))
    if unknown:
        yield unknown
    if view.details.unplaced:
        yield f"Also compared (comparison.csv): {', '.join(view.details.unplaced)}."
