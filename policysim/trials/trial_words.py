"""The words of a comparison on a log: each number is one of its findings, or a constant of the study."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from policies.catalogue import mechanism_words
from policies.exponential import Exponential
from policysim.logs.log_source import CHOSEN, ESTIMATE, SHARES, lot_words, outcome_formula
from policysim.numbers import (
    NEGLIGIBLE,
    change,
    lost,
    percent,
    plain,
    possible,
    right,
    rounded,
    rounded_up,
    to_places,
)
from policysim.report.findings import BETTER, EQUAL, NOT_SHOWN, WORSE, Findings
from policysim.report.screen import Grid, Line, Option, Screen
from policysim.study.declared import LoggedStudy
from policysim.study.gain import trace
from policysim.study.labels import hidden
from policysim.trials.evidence import LEAST_P, LEVEL
from policysim.trials.trial_findings import ARM, EACH, EVERYTHING, IN_TRACE, OPTION, PRIVATE, SAME, UP_TO, TrialDetails
from policysim.words import NO_ADVICE, capital, in_a_row

# What is done with patients without an outcome.
MISSING = {"refuse": "", "exclude": "left out", "worst": "counted as the worst"}
# Letters of a name that people gave: an arm in a line and in a table, a column, an outcome, a title.
IN_LINE, IN_TABLE, IN_COLUMN, IN_ABOUT, IN_TITLE = 40, 36, 14, 100, 190
# So many arms are named in a line, and so many products of features in a table.
NAMED_ARMS, PRODUCTS_SHOWN = 3, 10
# Beyond it a mechanism hides next to nothing, and a factor of the odds says nothing.
MOST_TELLING = 10.0
NO_CONCLUSION = "No conclusion: see the warning."
NOT_KNOWN = "–"
INTERVAL = "95\u00a0% interval"
CONCLUSIONS = {
    BETTER: "{} is better",
    WORSE: "{} is worse",
    EQUAL: "no difference, as {} gives everyone the arm of A",
    NOT_SHOWN: "the data show no difference",
}


class Unit(NamedTuple):
    """How mean outcomes are printed: what they are counted among, and with how many decimals."""

    counted_of: int
    places: int

    @property
    def head(self) -> str:
        """What is counted, as the title of a table."""
        return f"Successes of {self.counted_of}" if self.counted_of > 1 else "Mean outcome"

    def mean(self, text: str) -> str:
        """A mean outcome in words."""
        return f"{text} successes of {self.counted_of}" if self.counted_of > 1 else f"a mean outcome of {text}"

    def amount(self, value: float) -> str:
        """A mean outcome."""
        return to_places(self.counted_of * value, self.places)

    def change(self, value: float) -> str:
        """A difference of two, with its sign."""
        return change(self.counted_of * value, self.places)

    def span(self, low: float, high: float) -> str:
        """An interval of a mean outcome; – where there is none."""
        return NOT_KNOWN if math.isnan(low) or math.isnan(high) else f"{self.amount(low)} to {self.amount(high)}"

    def change_span(self, low: float, high: float) -> str:
        """An interval of a difference; – where there is none."""
        return NOT_KNOWN if math.isnan(low) or math.isnan(high) else f"{self.change(low)} to {self.change(high)}"


def unit_of(counted_of: int, rows: Sequence[Mapping[Any, Any]], *, widest: bool) -> Unit:
    """The decimals at which half of the narrowest interval of some rows, or of the widest, has two digits."""
    halves = [counted_of * (row["high"] - row["low"]) / 2 for row in rows]
    halves = [half for half in halves if half > NEGLIGIBLE]
    size = (max if widest else min)(halves, default=1.0)
    return Unit(counted_of, min(6, max(0, 1 - math.floor(math.log10(size)))))


class Shown(NamedTuple):
    """What a screen shows at one epsilon: rows of the findings by option, and how they are printed."""

    study: LoggedStudy
    findings: Findings
    epsilon: float
    options: dict[str, dict[Any, Any]]
    against_a: dict[str, dict[Any, Any]]
    arms: dict[str, dict[Any, Any]]
    of_arms: Unit
    of_changes: Unit

    @property
    def details(self) -> TrialDetails:
        """Those of the findings."""
        details: TrialDetails = self.findings.details
        return details


def trial_screen(study: LoggedStudy, findings: Findings, epsilon: float) -> Screen:
    """The screen at one epsilon of the study."""
    options, differences = findings.options, findings.differences
    now = options[(options["section"] == OPTION) & (options["epsilon"] == epsilon)]
    against = differences[
        (differences["section"] == OPTION) & (differences["epsilon"] == epsilon) & (differences["than"] == SAME)
    ]
    against_a, arms = _by_option(against), _by_option(options[options["section"] == ARM])
    counted_of = findings.details.counted_of
    of_arms = unit_of(counted_of, list(arms.values()), widest=False)
    of_changes = unit_of(counted_of, [against_a[PRIVATE], against_a[EACH]], widest=True)
    shown = Shown(study, findings, epsilon, _by_option(now), against_a, arms, of_arms, of_changes)
    return Screen(
        title=_short(study.title, IN_TITLE),
        advice=_advice(shown),
        about=tuple(_about(shown)),
        options=tuple(_introduced(shown)),
        lines=tuple(_lines(shown)),
        tables=(_options_table(shown), _arms_table(shown), _trace_table(shown)),
        notes=tuple(_notes(shown)),
        # A slider moves nothing there.
        behind=tuple(_behind(shown)) if epsilon == study.epsilon else (),
        warnings=findings.warnings,
    )


def _by_option(table: pd.DataFrame) -> dict[str, dict[Any, Any]]:
    return {row["option"]: row for row in table.to_dict("records")}


def _advice(shown: Shown) -> str:
    """One sentence before all others, which obeys the verdicts on B and C."""
    if shown.details.doubted:
        return "This log cannot answer the question: see the warning."
    at = f"ε = {plain(shown.epsilon)}"
    not_better = "B or C" if shown.against_a[EACH]["verdict"] == NOT_SHOWN else "B"
    sentences = {
        BETTER: f"Choose B rather than A: at {at} its patients do better, and their records stay hidden up to ε.",
        WORSE: f"Choose A rather than B: at {at} the patients of B do worse.",
        EQUAL: f"A and B are the same at {at}: privacy does not decide between them.",
        NOT_SHOWN: f"The data do not show that {not_better} is better than A at {at}, and A hides everything.",
    }
    return sentences[shown.against_a[PRIVATE]["verdict"]]


def _about(shown: Shown) -> list[str]:
    study, details = shown.study, shown.details
    source = study.log
    success = "Success" if details.counted_of > 1 else "Outcome"
    texts = [
        f"{details.patients:,} patients, {_allocated(source.propensity)}.",
        f"{success}: {_short(source.outcome_title or outcome_formula(source), IN_ABOUT)}.",
        f"{details.untreated:,} without a treatment left out." if details.untreated else "",
        f"{details.missing:,} without an outcome {MISSING[source.missing]}." if details.missing else "",
        f"{details.censored:,} followed for less: weighted." if details.censored else "",
    ]
    return [
        " ".join(filter(None, texts)),
        f"Secret: {hidden(study).replace('the patient', 'a future patient')}. Observer: {study.hidden_from}. The "
        f"patients of this trial are not protected by any of this. {capital(NO_ADVICE)}.",
    ]


def _allocated(propensity: str | tuple[float, ...]) -> str:
    """How patients got their treatments."""
    if propensity == SHARES:
        return "randomised with the shares of the arms"
    if lot_words(propensity):
        return f"randomised {lot_words(propensity)}"
    return "not randomised (propensities estimated)" if propensity == ESTIMATE else "with recorded probabilities"


def _introduced(shown: Shown) -> list[Option]:
    """The options with what each hides."""
    at = f"ε = {plain(shown.epsilon)}"
    how = {
        SAME: "the arm that did best in other patients: ",
        PRIVATE: "drawn at random, with odds that the record sets: ",
        EACH: "by scores that are made from other patients: ",
    }
    made = []
    for letter, row in shown.options.items():
        text = f"{how.get(letter, '')}hides {f'it up to {at}' if row['hides'] == UP_TO else row['hides']}"
        if letter == PRIVATE and row["hides"] == EVERYTHING:
            text = f"at {at} the record does not set its odds: hides everything, too"
        made.append(Option(letter, row["title"], text))
    return made


def _lines(shown: Shown) -> list[Line]:
    rate = shown.options[PRIVATE]["told_apart"]
    leaks = f"By B, two patients are told apart at most {right(rate)} times of 100 (coin toss: 50)."
    return [
        Line("Best single arm", _best_arm(shown)),
        Line("Choosing for each", _instead_of_a(shown, EACH)),
        Line("Drawn privately", _instead_of_a(shown, PRIVATE)),
        Line("Who is harmed", _who_is_harmed(shown)),
        Line("What leaks", leaks if rate > 0.5 + NEGLIGIBLE else "Nothing: B gives every patient the same odds."),
        Line("How sure", _how_sure(shown.details)),
    ]


def _best_arm(shown: Shown) -> str:
    """The best single arm, where the data show which it is."""
    details, unit = shown.details, shown.of_arms
    if details.doubted:
        return NO_CONCLUSION
    if not details.rivals:
        best = shown.arms[details.best_arm]
        return (
            f"{_arms([details.best_arm])} has {unit.mean(unit.amount(best['value']))} ({INTERVAL} "
            f"{unit.span(best['low'], best['high'])}), more than every other arm."
        )
    equal = [details.best_arm, *details.rivals]
    means = [shown.arms[arm]["value"] for arm in equal]
    worse = f" {_arms(details.worse)} {'is' if len(details.worse) == 1 else 'are'} worse." if details.worse else ""
    return f"The data cannot show which: {_arms(equal)} have {unit.mean(unit.span(min(means), max(means)))}.{worse}"


def _arms(names: Sequence[str]) -> str:
    """Some arms by name, and how many more there are."""
    quoted = [f"“{_short(name, IN_LINE)}”" for name in names[:NAMED_ARMS]]
    more = len(names) - len(quoted)
    return in_a_row([*quoted, f"{more} more"] if more else quoted, "and")


def _instead_of_a(shown: Shown, option: str) -> str:
    """The difference of an option from A, with its interval and what may be concluded."""
    row, unit = shown.against_a[option], shown.of_changes
    first = option == EACH
    compared = f"{option} instead of A{' (the arm that did best in other patients)' if first else ''}"
    conclusion = CONCLUSIONS[row["verdict"]].format(option)
    if row["verdict"] == EQUAL:
        return f"{compared}: {conclusion}."
    counted = f" {'successes ' if first else ''}of {unit.counted_of}" if unit.counted_of > 1 else ""
    ends = f"{f'{INTERVAL} ' if first else ''}{unit.change_span(row['low'], row['high'])}"
    conclusion = "no conclusion" if shown.details.doubted else conclusion
    return f"{compared}: {unit.change(row['value'])}{counted} ({ends}): {conclusion}."


def _who_is_harmed(shown: Shown) -> str:
    """The group that B harms most, where one is sure to be harmed."""
    if shown.details.doubted:
        return NO_CONCLUSION
    if not shown.study.by:
        return "Not known: the study compares no groups of patients."
    table = shown.findings.harmed
    harmed = table[(table["option"] == PRIVATE) & (table["epsilon"] == shown.epsilon)].to_dict("records")
    if not harmed:
        return "No group of patients can be shown to do worse by B instead of A."
    most, counted_of = harmed[0], shown.details.counted_of
    unit = unit_of(counted_of, [most], widest=True)
    fewer = f"fewer successes of {counted_of}" if counted_of > 1 else "less in the mean outcome"
    more = f" {len(harmed) - 1} more: harmed.csv." if len(harmed) > 1 else ""
    return (
        f"By B instead of A the group “{_short(most['group'], IN_LINE)}” ({percent(most['share'])} of patients): "
        f"{unit.amount(most['value'])} {fewer} ({INTERVAL} {unit.span(most['low'], most['high'])}, of all groups "
        f"together).{more}"
    )


def _how_sure(details: TrialDetails) -> str:
    """What the trial would have found, and whether effects differ."""
    if details.doubted:
        return NO_CONCLUSION
    texts = []
    if not math.isnan(details.least_gain):
        unit = unit_of(details.counted_of, [{"low": 0, "high": 2 * details.least_gain}], widest=True)
        of = f" of {details.counted_of}" if details.counted_of > 1 else ""
        texts.append(
            f"If C truly gained {unit.amount(details.least_gain)}{of} over A, 8 of 10 such trials would show it."
        )
    p = f"p < {LEAST_P:g}" if details.p < LEAST_P else f"p = {to_places(details.p, 2 if details.p >= 0.005 else 3)}"
    shown = "unclear, as it depends on the split" if details.p < LEVEL else "not shown"
    shown = "signs of it" if details.signs else shown
    texts.append(f"Effects that differ between patients: {shown} ({p}).")
    return " ".join(texts)


def _options_table(shown: Shown) -> Grid:
    """Each option: its value, and what it changes against A."""
    rows = []
    for letter, row in shown.options.items():
        apart = ("", "", "")
        if letter != SAME:
            other = shown.against_a[letter]
            ends = shown.of_changes.change_span(other["low"], other["high"])
            apart = shown.of_changes.change(other["value"]), ends, other["verdict"]
        value = shown.of_arms.amount(row["value"]), shown.of_arms.span(row["low"], row["high"])
        rows.append((f"{letter}  {_short(row['title'], IN_TABLE)}", *value, *apart, right(row["told_apart"])))
    head = f"{shown.of_arms.head} at ε = {plain(shown.epsilon)}"
    return Grid((head, "mean", "interval", "minus A", "interval", "verdict", "told apart"), tuple(rows), name="options")


def _arms_table(shown: Shown) -> Grid:
    """Each arm, had all patients been given it, and another outcome where there is one."""
    details = shown.details
    differences = shown.findings.differences
    against = differences[differences["section"] == ARM].set_index("than")["verdict"]
    # They are of the arm with the highest mean against this one.
    verdicts = {str(arm): {BETTER: WORSE, WORSE: BETTER}.get(verdict, verdict) for arm, verdict in against.items()}
    further: dict[str, str] = {}
    if details.further:
        table = details.tables["arms"]
        other = table[table["outcome"] == details.further].to_dict("records")
        unit = unit_of(100 if all(0 <= row["mean"] <= 1 for row in other) else 1, other, widest=False)
        further = {str(row["arm"]): unit.amount(row["mean"]) for row in other}
    rows = [
        (
            f"{_short(arm, IN_TABLE)} ({row['patients']:,.0f})",
            shown.of_arms.amount(row["value"]),
            shown.of_arms.span(row["low"], row["high"]),
            *([further[arm]] if further else []),
            verdicts.get(arm, "highest"),
        )
        for arm, row in shown.arms.items()
    ]
    title = [_short(details.further.replace("_", " "), IN_COLUMN)] if further else []
    head = ("Each arm before any model (its patients)", "mean", "interval", *title, "than the highest")
    return Grid(head, tuple(rows), name="arms")


def _trace_table(shown: Shown) -> Grid:
    """What each option and mechanism changes against A, over epsilon, and what privacy costs in all."""
    options, differences = shown.findings.options, shown.findings.differences
    epsilons = trace(shown.study.epsilons, shown.study.epsilon)
    keys = zip(differences["than"], differences["option"], differences["epsilon"], strict=True)
    values = dict(zip(keys, differences["value"], strict=True))
    made = options[options["section"] != ARM].drop_duplicates("option")
    # C is the same at each.
    titles = {
        (SAME, option): f"{option} minus A" if section == OPTION else f"{option}, minus A"
        for option, section in zip(made["option"], made["section"], strict=True)
        if option not in {SAME, EACH}
    }
    titles[EACH, PRIVATE] = "B minus C: privacy in all"
    rows = [
        (title, *(shown.of_changes.change(values[*key, epsilon]) for epsilon in epsilons))
        for key, title in titles.items()
    ]
    head = f"{shown.of_changes.head}, over ε (a smaller ε hides more)"
    return Grid((head, *map(plain, epsilons)), tuple(rows), name="differences")


def _notes(shown: Shown) -> list[str]:
    epsilon = shown.epsilon
    factor = "almost without limit"
    if epsilon <= MOST_TELLING:
        factor = f"by a factor of at most {rounded(math.exp(epsilon))}"
    texts = [
        "All are made from some of the patients and judged on the others. Intervals hold 95\u00a0%, each by itself. "
        "Told apart: two patients, of 100 times, at most.",
        f"ε = {plain(epsilon)}: a treatment changes the odds of any fact about the patient {factor}; a second "
        "treatment of the same patient leaks again, up to ε.",
    ]
    if IN_TRACE[Exponential.name] in set(shown.findings.options["option"]):
        texts.append(
            "The textbook's exponential mechanism sets its odds by the largest difference of two records' scores."
        )
    if shown.study.seen == "publication":
        texts.append(
            "If observers see only a published list: give C, and replace entries of the list at random; the patients "
            "then lose nothing."
        )
    if shown.details.unplaced:
        texts.append(f"Also compared (comparison.csv): {', '.join(shown.details.unplaced)}.")
    return texts


def _short(text: str, letters: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= letters else f"{text[: letters - 1].rstrip()}…"


def _behind(shown: Shown) -> list[Grid]:
    """The tables that `--full` adds."""
    return [grid for grid in (*_of_policies(shown), *_of_patients(shown)) if grid.rows]


Write = Callable[[float], str]


def _grid(
    name: str,
    table: pd.DataFrame,
    keys: Sequence[str],
    columns: Mapping[str, tuple[str, Write]],
    title: str,
    *words: str,
) -> Grid:
    """A table of numbers: its rows are called by what stands under some keys; words are the first head and a note."""
    head, *note = words
    rows = []
    for row in table.to_dict("records"):
        called = ": ".join(str(row[key]) for key in keys if row[key] != "")
        rows.append((called, *(write(float(row[column])) for column, (_, write) in columns.items())))
    return Grid((head, *(text for text, _ in columns.values())), tuple(rows), title, " ".join(note), name)


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _hundredths(value: float) -> str:
    return to_places(value, 2)


def _of_policies(shown: Shown) -> list[Grid]:
    """What stands behind the options: policies, tests, scores, and what example patients get."""
    study, unit, tables = shown.study, shown.of_changes, shown.details.tables
    columns: dict[str, tuple[str, Write]] = {"value": (shown.of_arms.head.lower(), shown.of_arms.amount)}
    columns |= {"difference": ("minus A", unit.change), "difference_low": ("from", unit.change)}
    columns |= {"difference_high": ("to", unit.change), "benefit_kept": ("share of the gain of C", percent)}
    columns |= {"epsilon_spent": ("ε spent", rounded), "surely_from": ("better from ε", rounded)}
    columns["break_even_gain"] = "to break even", lambda gain: possible(unit.counted_of * gain, unit.places)
    policies = _grid(
        "policies",
        tables["policies"],
        ["policy"],
        columns,
        f"The policies, at ε = {plain(study.epsilon)}",
        "Policy",
        "Share of the gain of C: only where C surely gains. ε spent: the exact privacy loss, the largest of all",
        "splits. Better from: the smallest ε at which the interval is above 0. To break even: what C would have to",
        "gain for the policy to beat A; impossible: outcomes cannot be so far apart.",
    )
    power = _grid(
        "power",
        tables["power"],
        ["what"],
        {
            "gain": (f"gain of {unit.counted_of}" if unit.counted_of > 1 else "gain", unit.amount),
            "patients": ("patients needed", rounded),
            "standard_error": ("standard error here", unit.amount),
        },
        "Which gains such a trial shows",
        "Of C over A",
        "How many patients it takes for 8 of 10 such trials to show the gain.",
    )
    heterogeneity = _grid(
        "heterogeneity",
        tables["heterogeneity"],
        ["what"],
        {"slope": ("slope", rounded), "p": ("p", rounded), "p_low": ("from", rounded), "p_high": ("to", rounded)}
        | {"splits": ("splits", _count)},
        "Do treatments do more for some patients than for others?",
        "One-sided test",
        "On patients that the scores were not fitted to. Slope: 1 where patients differ by as much as the scores say,",
        "0 where they do not; the median of the splits. p: twice the median of the splits, which is right however they",
        "depend on each other. Between from and to lie the p-values of most single splits.",
    )
    return [policies, power, heterogeneity, _scores(study, tables["scores"]), _examples(study, tables["examples"])]


def _of_patients(shown: Shown) -> list[Grid]:
    """What stands behind the arms: outcomes, censoring, balance, and confounding."""
    details, tables = shown.details, shown.details.tables
    mean = unit_of(1, tables["arms"].to_dict("records"), widest=False).amount
    # Of the products of two features those that differ most.
    products = tables["balance"]["feature"].str.contains(" × ", regex=False)
    most = tables["balance"][products].nlargest(PRODUCTS_SHOWN, "after")
    arms = _grid(
        "arms",
        tables["arms"],
        ["outcome", "arm"],
        {"rows": ("patients", _count), "missing": ("without outcome", _count), "mean": ("mean", mean)}
        | {"low": ("from", mean), "high": ("to", mean)},
        "The arms, before any model",
        "Outcome and arm",
        f"Means per patient, each with its {INTERVAL}.",
    )
    censoring = _grid(
        "censoring",
        tables["censoring"],
        ["arm"],
        {name: (name, _count) for name in ("patients", "censored")} | {"followed": ("followed to the end", _count)},
        "Who was followed for less",
        "Arm",
        "Censored: not followed to the end, and without the event until then. A known outcome is divided by the",
        "probability that it is known (Kaplan and Meier, arm by arm): right if in each arm patients who leave have the",
        "same prospects as patients who stay.",
    )
    balance = _grid(
        "balance",
        pd.concat([tables["balance"][~products], most]),
        ["feature", "level"],
        {"before": ("before weighting", _hundredths), "after": ("after", _hundredths)},
        "Do the arms' patients resemble each other?",
        "Feature",
        "Standardised differences, the largest over all pairs of arms; weights are inverse propensities. Above 0.1",
        f"arms are called imbalanced (Austin 2009): {_count(details.imbalanced)} of {_count(len(tables['balance']))}",
        f"after weighting; chance alone makes about {rounded(details.expected_by_chance)}.",
    )
    confounding = _grid(
        "e-value",
        tables["e-value"],
        ["better", "other", "of"],
        {"ratio": ("ratio", rounded), "value": ("E-value", rounded), "at_limit": ("of its interval", rounded)},
        "How strong would confounding have to be?",
        "Arm against arm",
        "If the declared confounders are modelled rightly: how many times as probable something that nobody recorded",
        "would have to make both treatment and outcome to explain away the ratio, or to move its interval to no",
        "difference (VanderWeele and Ding 2017).",
    )
    return [arms, censoring, balance, confounding]


def _scores(study: LoggedStudy, table: pd.DataFrame) -> Grid:
    """What the fitted scores are, and how all numbers were made."""
    written: dict[str, tuple[str, Callable[[float], str]]] = {
        "records": ("possible records by the declared features", _count),
        "sensitivity": ("a score moves between two neighbours by at most (Δ)", lambda value: rounded_up(value, 3)),
        "range": ("a difference of two scores moves by at most (Γ)", lambda value: rounded_up(value, 3)),
        "least loss": ("no private draw loses less, by these scores, than", lambda value: lost(value, 3)),
    }
    rows = [(written[what][0], written[what][1](value)) for what, value in table.itertuples(index=False)]
    source = study.log
    model = f"a {source.outcome_model} model of the declared features"
    if source.outcome_model == CHOSEN:
        model = "its mean or a regression, whichever cross-validation prefers, shrunk to the mean"
    least, most = source.utility_range
    data = ", ".join(path.name for path in source.files.values())
    note = [
        f"Study {study.name}, seed {study.seed}, data {data}; their digests are in the manifest.",
        f"Outcome: {outcome_formula(source)}, from {plain(least)} to {plain(most)}.",
        f"Scores: for each arm {model}, within the range of the outcome. Records count as often as they occur, and a "
        "little as if the features were independent. Assumed public: the declared features and levels, the fitted "
        "scores, the shares of records and the choice of ε.",
        "Five folds and 20 random splits; up to 160 while an interval ends near 0. The mean over splits, with a "
        "variance that covers the split.",
        *(f"{name}: {mechanism_words(name)}" for name in study.policies),
    ]
    head = ("Of the fitted scores", "")
    return Grid(head, tuple(rows), title="How the numbers were made", note=" ".join(note), name="scores")


def _examples(study: LoggedStudy, examples: pd.DataFrame) -> Grid:
    """What B gives example patients at the study's epsilon."""
    now = examples[examples["epsilon"] == study.epsilon]
    actions = [str(action) for action in now["action"].unique()]
    rows = [(str(name), *map(percent, own["probability"])) for name, own in now.groupby("patient", sort=False)]
    records = now.drop_duplicates("patient")[["patient", "record"]].itertuples(index=False)
    return Grid(
        ("Patient", *(_short(action, IN_TABLE) for action in actions)),
        tuple(rows),
        title=f"What example patients get by B, at ε = {plain(study.epsilon)}",
        note="How probable each treatment is, by B made from the whole log. "
        + " ".join(f"{capital(patient)}: {record}." for patient, record in records),
        name="examples",
    )
