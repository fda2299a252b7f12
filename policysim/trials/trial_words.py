"""The words of a comparison on a log: each number is one of its findings, or a constant of the study."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from policies.catalogue import mechanism_words
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
from policysim.study.labels import basis, listed
from policysim.study.options_table import trace
from policysim.trials.evidence import LEAST_P
from policysim.trials.trial_findings import (
    ARM,
    EACH,
    EVERYTHING,
    OPTION,
    PRIVATE,
    SAME,
    UP_TO,
    TrialDetails,
)
from policysim.words import capital, in_a_row

# What is done with patients without an outcome.
MISSING = {"refuse": "", "exclude": "left out", "worst": "counted as the worst"}
# Letters of a name that people gave: an arm in a line and in a table, a column, a title.
IN_LINE, IN_TABLE, IN_COLUMN, IN_TITLE = 40, 36, 14, 190
# So many arms are named in a line, and so many products of features in a table.
NAMED_ARMS, PRODUCTS_SHOWN = 3, 10
# Beyond it a mechanism hides next to nothing, and a factor of the odds says nothing.
MOST_TELLING = 10.0
NO_CONCLUSION = "No conclusion: see the warning."
NOT_KNOWN = "–"
CONCLUSIONS = {
    BETTER: "{option} is better",
    WORSE: "{option} is worse",
    EQUAL: "no difference, as it gives everyone the arm of A",
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


def decimals_of(widths: Sequence[float], *, widest: bool) -> int:
    """The decimals at which half of the narrowest interval, or of the widest, has two digits."""
    halves = [width / 2 for width in widths if width / 2 > NEGLIGIBLE]
    if not halves:
        return 1
    return min(6, max(0, 1 - math.floor(math.log10(max(halves) if widest else min(halves)))))


def trial_screen(study: LoggedStudy, findings: Findings, epsilon: float) -> Screen:
    """The screen at one epsilon of the study."""
    details: TrialDetails = findings.details
    options = findings.options[(findings.options["section"] == OPTION) & (findings.options["epsilon"] == epsilon)]
    arms = findings.options[findings.options["section"] == ARM]
    against = findings.differences[(findings.differences["than"] == SAME) & (findings.differences["section"] != ARM)]
    now = against[against["epsilon"] == epsilon].set_index("option")
    scale = details.counted_of
    of_arms = Unit(scale, decimals_of((scale * (arms["high"] - arms["low"])).tolist(), widest=False))
    widths = scale * (now["high"] - now["low"])[[PRIVATE, EACH]]
    of_changes = Unit(scale, decimals_of(widths.tolist(), widest=True))
    return Screen(
        title=_short(study.title, IN_TITLE),
        advice=_advice(details, *now.loc[[PRIVATE, EACH], "verdict"], epsilon),
        about=tuple(_about(study, details)),
        options=tuple(_introduced(options, epsilon)),
        lines=tuple(_lines(study, findings, options, now, arms, epsilon, of_arms=of_arms, of_changes=of_changes)),
        tables=(
            _options_table(options, now, of_arms, of_changes, epsilon),
            _arms_table(details, findings.differences, arms, of_arms),
            _trace_table(study, findings.options, findings.differences, of_changes),
        ),
        notes=tuple(_notes(study, details, epsilon)),
        behind=tuple(_behind(study, details, of_arms, of_changes)),
        warnings=findings.warnings,
    )


def _advice(details: TrialDetails, verdict: str, of_each: str, epsilon: float) -> str:
    """One sentence before all others, which obeys the verdicts on B and C."""
    if details.doubted:
        return "This log cannot answer the question: see the warning."
    at, untold = f"ε = {plain(epsilon)}", "B or C" if of_each == NOT_SHOWN else "B"
    return {
        BETTER: f"Choose B rather than A: at {at} its patients do better, and their records stay hidden up to ε.",
        WORSE: f"Choose A rather than B: at {at} the patients of B do worse.",
        EQUAL: f"A and B are the same at {at}: privacy does not decide between them.",
        NOT_SHOWN: f"The data do not show that {untold} is better than A at {at}, and A hides everything.",
    }[verdict]


def _about(study: LoggedStudy, details: TrialDetails) -> list[str]:
    source = study.log
    success = "Success" if details.counted_of > 1 else "Outcome"
    texts = [
        f"{details.patients:,} patients, {_allocated(source.propensity)}.",
        f"{success}: {_short(source.outcome_title or outcome_formula(source), 100)}.",
        f"{details.untreated:,} without a treatment left out." if details.untreated else "",
        f"{details.missing:,} without an outcome {MISSING[source.missing]}." if details.missing else "",
        f"{details.censored:,} followed for less: weighted." if details.censored else "",
    ]
    return [
        " ".join(filter(None, texts)),
        f"Secret: {_secret(study)}. Observer: {study.hidden_from}. The patients of this trial are not protected by any "
        "of this.",
    ]


def _allocated(propensity: str | tuple[float, ...]) -> str:
    """How patients got their treatments."""
    if propensity == SHARES:
        return "randomised with the shares of the arms"
    if lot_words(propensity):
        return f"randomised {lot_words(propensity)}"
    return "not randomised (propensities estimated)" if propensity == ESTIMATE else "with recorded probabilities"


def _secret(study: LoggedStudy) -> str:
    if study.public:
        return f"the record of a future patient, but for {listed(study.public)}"
    if study.sensitive:
        return f"{listed(study.sensitive)} of a future patient; the rest of the record is public"
    each = "each single feature of" if study.adjacency == "one-feature" else "the whole"
    return f"{each} record of a future patient" if each == "the whole" else f"{each} a future patient's record"


def _introduced(options: pd.DataFrame, epsilon: float) -> list[Option]:
    """The options with what each hides."""
    how = {SAME: "the arm that did best in other patients", EACH: "by scores that are made from other patients"}
    how |= {PRIVATE: "drawn at random, with odds that the record sets"}
    made = []
    for letter, title, hides in options[["option", "title", "hides"]].itertuples(index=False):
        amount = f"it up to ε = {plain(epsilon)}" if hides == UP_TO else hides
        if letter == PRIVATE and hides == EVERYTHING:
            text = f"at ε = {plain(epsilon)} the record does not set its odds: hides everything, too"
        else:
            text = f"{how[letter]}: hides {amount}" if letter in how else f"hides {amount}"
        made.append(Option(letter, title, text))
    return made


def _lines(
    study: LoggedStudy,
    findings: Findings,
    options: pd.DataFrame,
    now: pd.DataFrame,
    arms: pd.DataFrame,
    epsilon: float,
    *,
    of_arms: Unit,
    of_changes: Unit,
) -> list[Line]:
    details: TrialDetails = findings.details
    def against_a(option: str, than: str, number: str, ends: str) -> str:
        """The difference from A, with its interval and what may be concluded."""
        row = now.loc[option]
        conclusion = CONCLUSIONS[row["verdict"]].format(option=option)
        if row["verdict"] == EQUAL:
            return f"{option} instead of {than}: {conclusion}."
        number = number.format(of_changes.change(row["value"]))
        ends = ends.format(of_changes.change_span(row["low"], row["high"]))
        return f"{option} instead of {than}: {number} ({ends}): {'no conclusion' if details.doubted else conclusion}."

    rate = float(options.set_index("option").loc[PRIVATE, "told_apart"])
    leaks = f"An observer of B tells two patients apart at most {right(rate)} times of 100 (toss: 50)."
    counted = details.counted_of > 1
    first = "{} successes of 100" if counted else "{} in the mean outcome"
    return [
        Line("Best single arm", _best_arm(details, arms, of_arms)),
        Line("Choosing for each", against_a(EACH, "A (the arm that did best in other patients)", first, "95\u00a0% interval {}")),
        Line("Drawn privately", against_a(PRIVATE, SAME, "{} of 100" if counted else "{}", "{}")),
        Line("Who is harmed", _who_is_harmed(study, findings, epsilon, of_changes)),
        Line("What leaks", leaks if rate > 0.5 + NEGLIGIBLE else "Nothing: B gives every patient the same odds."),
        Line("How sure", _how_sure(details)),
    ]


def _best_arm(details: TrialDetails, arms: pd.DataFrame, unit: Unit) -> str:
    """The best single arm, where the data show which it is."""
    if details.doubted:
        return NO_CONCLUSION
    numbers = arms.set_index("option")
    if not details.rivals:
        value, low, high = numbers.loc[details.best_arm, ["value", "low", "high"]]
        return (
            f"{_arms([details.best_arm])} has {unit.mean(unit.amount(value))} (95\u00a0% interval {unit.span(low, high)}), more than every "
            "other arm."
        )
    equal = [details.best_arm, *details.rivals]
    values = numbers.loc[equal, "value"]
    have = f"have {unit.mean(unit.span(values.min(), values.max()))}"
    worse = f" {_arms(details.worse)} {'is' if len(details.worse) == 1 else 'are'} worse." if details.worse else ""
    return f"The data cannot show which: {_arms(equal)} {have}.{worse}"


def _arms(names: Sequence[str]) -> str:
    """Some arms by name, and how many more there are."""
    shown = [f"“{_short(name, IN_LINE)}”" for name in names[:NAMED_ARMS]]
    more = len(names) - len(shown)
    return in_a_row([*shown, f"{more} more"] if more else shown, "and")


def _who_is_harmed(study: LoggedStudy, findings: Findings, epsilon: float, unit: Unit) -> str:
    if findings.details.doubted:
        return NO_CONCLUSION
    if not study.by:
        return "Not known: the study compares no groups of patients."
    harmed = findings.harmed[(findings.harmed["option"] == PRIVATE) & (findings.harmed["epsilon"] == epsilon)]
    if harmed.empty:
        return "No group of patients can be shown to do worse by B instead of A."
    row = harmed.iloc[0]
    size = Unit(unit.counted_of, decimals_of([unit.counted_of * (row["high"] - row["low"])], widest=True))
    more = f" And {len(harmed) - 1} more groups (harmed.csv)." if len(harmed) > 1 else ""
    fewer = "fewer successes of 100" if unit.counted_of > 1 else "less in the mean outcome"
    return (
        f"By B instead of A the group “{_short(row['group'], IN_LINE)}” ({percent(row['share'])} of patients): "
        f"{size.amount(row['value'])} {fewer} (95\u00a0% interval of all groups together "
        f"{size.span(row['low'], row['high'])}).{more}"
    )


def _how_sure(details: TrialDetails) -> str:
    """What the trial would have found, and whether effects differ."""
    if details.doubted:
        return NO_CONCLUSION
    texts = []
    if not math.isnan(details.least_gain):
        scaled = details.counted_of * details.least_gain
        of = f" of {details.counted_of}" if details.counted_of > 1 else ""
        size = to_places(scaled, decimals_of([2 * scaled], widest=True))
        texts.append(f"If C truly gained {size}{of} over A, 8 of 10 such trials would show it.")
    shown = "there are signs that it does" if details.signs else "the data cannot show it"
    shown = "signs of it" if details.signs else "not shown"
    texts.append(f"Effects that differ between patients: {shown} ({_p_value(details.p)}).")
    return " ".join(texts)


def _p_value(p: float) -> str:
    return f"p < {LEAST_P:g}" if p < LEAST_P else f"p = {to_places(p, 2 if p >= 5 * LEAST_P else 3)}"


def _options_table(options: pd.DataFrame, now: pd.DataFrame, of_arms: Unit, of_changes: Unit, epsilon: float) -> Grid:
    """Each option: its value, and what it changes against A."""
    rows = []
    for row in options.to_dict("records"):
        letter = row["option"]
        apart: tuple[str, ...] = ("", "", "")
        if letter != SAME:
            value, low, high, verdict = now.loc[letter, ["value", "low", "high", "verdict"]]
            apart = of_changes.change(value), of_changes.change_span(low, high), verdict
        value = of_arms.amount(row["value"]), of_arms.span(row["low"], row["high"])
        rows.append((f"{letter}  {_short(row['title'], IN_TABLE)}", *value, *apart, right(row["told_apart"])))
    head = f"{of_arms.head} at ε = {plain(epsilon)} (intervals: 95\u00a0%)"
    return Grid((head, "mean", "interval", "minus A", "interval", "verdict", "told apart"), tuple(rows), name="options")


def _arms_table(details: TrialDetails, differences: pd.DataFrame, arms: pd.DataFrame, unit: Unit) -> Grid:
    """Each arm, had all patients been given it, and another outcome where there is one."""
    against = differences[differences["section"] == ARM].set_index("than")["verdict"]
    opposite = {BETTER: WORSE, WORSE: BETTER}
    other = details.tables["arms"].query("outcome == @details.further").set_index("arm")
    further, title = {}, ()
    if details.further:
        scale = 100 if other["mean"].between(0, 1).all() else 1
        of_other = Unit(scale, decimals_of((scale * (other["high"] - other["low"])).tolist(), widest=False))
        further = {str(arm): of_other.amount(mean) for arm, mean in other["mean"].items()}
        title = (_short(details.further.replace("_", " "), IN_COLUMN),)
    rows = []
    for row in arms.to_dict("records"):
        arm = row["option"]
        verdict = "highest" if arm == details.best_arm else opposite.get(against[arm], against[arm])
        rows.append(
            (
                f"{_short(arm, IN_TABLE)} ({row['patients']:,.0f})",
                unit.amount(row["value"]),
                unit.span(row["low"], row["high"]),
                *([further[arm]] if further else []),
                verdict,
            )
        )
    head = "Each arm before any model (its patients)", "mean", "interval", *title, "verdict"
    return Grid(head, tuple(rows), name="arms")


def _trace_table(study: LoggedStudy, options: pd.DataFrame, differences: pd.DataFrame, unit: Unit) -> Grid:
    """What each option and mechanism changes against A, over epsilon, and what privacy costs in all."""
    epsilons = trace(study.epsilons, study.epsilon)
    wide = differences.pivot_table(index=["than", "option"], columns="epsilon", values="value", sort=False)
    # C is the same at each.
    shown = {
        (SAME, option): f"{option} minus A" if section == OPTION else f"{title}, minus A"
        for option, title, section in options[["option", "title", "section"]].drop_duplicates().itertuples(index=False)
        if section != ARM and option not in {SAME, EACH}
    }
    shown[EACH, PRIVATE] = "B minus C: privacy in all"
    rows = [(title, *map(unit.change, wide.loc[key, epsilons])) for key, title in shown.items()]
    return Grid((f"{unit.head}, over ε (a smaller ε hides more)", *map(plain, epsilons)), tuple(rows), name="differences")


def _notes(study: LoggedStudy, details: TrialDetails, epsilon: float) -> list[str]:
    factor = f"by a factor of at most {rounded(math.exp(min(epsilon, MOST_TELLING)))}"
    by_factor = factor if epsilon <= MOST_TELLING else "almost without limit"
    texts = [
        "All are made from some of the patients and judged on the others. Told apart: of 100, at most.",
        f"ε = {plain(epsilon)}: a treatment changes the odds of any fact about the patient {by_factor}; a second "
        "treatment of the same patient leaks again, up to ε.",
        "The textbook's exponential mechanism sets its odds by the largest difference of two records' scores.",
    ]
    if study.seen == "publication":
        texts.append(
            "Observers see only a published list: give C, and replace entries of the list at random; the patients then "
            "lose nothing."
        )
    if details.unplaced:
        texts.append(f"Also compared (comparison.csv): {', '.join(details.unplaced)}.")
    return texts


def _short(text: str, letters: int) -> str:
    text = " ".join(str(text).split())
    return text if len(text) <= letters else f"{text[: letters - 1].rstrip()}…"


Column = tuple[str, str, Callable[[float], str]]


def _grid(name: str, table: pd.DataFrame, keys: Sequence[str], columns: Sequence[Column], **words: str) -> Grid:
    """A table whose rows are called by what stands under some keys, a column for each of some numbers."""
    titles = [": ".join(filter(None, map(str, row))) for row in table[list(keys)].to_numpy()]
    texts = [[write(float(value)) for value in table[column]] for column, _, write in columns]
    rows = tuple((title, *row) for title, *row in zip(titles, *texts, strict=True))
    return Grid((words.pop("head"), *(title for _, title, _ in columns)), rows, name=name, **words)


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _hundredths(value: float) -> str:
    return to_places(value, 2)


def _behind(study: LoggedStudy, details: TrialDetails, of_arms: Unit, of_changes: Unit) -> list[Grid]:
    """The tables that `--full` adds."""
    at = f"at ε = {plain(study.epsilon)}"
    scale = details.counted_of
    of = f" of {scale}" if scale > 1 else ""

    def least_possible(value: float) -> str:
        return possible(scale * value, of_changes.places)

    made: Mapping[str, Callable[[pd.DataFrame], Grid]] = {
        "policies": lambda table: _grid(
            "policies",
            table,
            ["policy"],
            [
                ("value", f"{'successes' if scale > 1 else 'mean outcome'}{of}", of_arms.amount),
                ("difference", "instead of A", of_changes.change),
                ("difference_low", "from", of_changes.change),
                ("difference_high", "to", of_changes.change),
                ("benefit_kept", "share of the gain of C", percent),
                ("epsilon_spent", "ε spent", rounded),
                ("surely_from", "better from ε", rounded),
                ("break_even_gain", "to break even", least_possible),
            ],
            title=f"The policies, {at}",
            head="Policy",
            note="Share of the gain of C: only where C surely gains. ε spent: the exact privacy loss, the largest of all "
            "splits. Better from: the smallest ε at which the interval is above 0. To break even: what C would have to "
            "gain for the policy to beat A; impossible: outcomes cannot be so far apart.",
        ),
        "arms": lambda table: _grid(
            "arms",
            table,
            ["outcome", "arm"],
            [
                ("rows", "patients", _count),
                ("missing", "without outcome", _count),
                ("mean", "mean", _means_text(table)),
                ("low", "from", _means_text(table)),
                ("high", "to", _means_text(table)),
            ],
            title="The arms, before any model",
            head="Outcome and arm",
            note="Means per patient with their 95\u00a0% intervals.",
        ),
        "patients": lambda table: _grid(
            "patients", table, ["what"], [("patients", "number", _count)], title="Who is counted", head="Patients"
        ),
        "censoring": lambda table: _grid(
            "censoring",
            table,
            ["arm"],
            [
                ("patients", "patients", _count),
                ("censored", "censored", _count),
                ("followed", "followed to the end", _count),
            ],
            title="Who was followed for less",
            head="Arm",
            note="Censored: not followed to the end, and without the event until then. A known outcome is divided by the "
            "probability that it is known (Kaplan and Meier, arm by arm): right if in each arm patients who leave have "
            "the same prospects as patients who stay.",
        ),
        "balance": lambda table: _grid(
            "balance",
            _plainest(table),
            ["feature", "level"],
            [("before", "before weighting", _hundredths), ("after", "after", _hundredths)],
            title="Do the arms' patients resemble each other?",
            head="Feature",
            note="Standardised differences, the largest over all pairs of arms; weights are inverse propensities. Above "
            f"0.1 arms are called imbalanced (Austin 2009): {_count(details.imbalanced)} of {_count(len(table))} after "
            f"weighting; chance alone makes about {rounded(details.expected_by_chance)}.",
        ),
        "heterogeneity": lambda table: _grid(
            "heterogeneity",
            table,
            ["what"],
            [
                ("slope", "slope", rounded),
                ("p", "p", rounded),
                ("p_low", "from", rounded),
                ("p_high", "to", rounded),
                ("splits", "splits", _count),
            ],
            title="Do treatments do more for some patients than for others?",
            head="One-sided test",
            note="On patients that the scores were not fitted to. Slope: 1 where patients differ by as much as the "
            "scores say, 0 where they do not; the median of the splits. p: twice the median of the splits, which is "
            "right however they depend on each other. Between from and to lie the p-values of most single splits.",
        ),
        "power": lambda table: _grid(
            "power",
            table,
            ["what"],
            [
                ("gain", f"gain{of}", lambda value: to_places(scale * value, of_changes.places)),
                ("patients", "patients needed", rounded),
                ("standard_error", "standard error here", lambda value: to_places(scale * value, of_changes.places)),
            ],
            title="Which gains such a trial shows",
            head="Of C over A",
            note="How many patients it takes for 8 of 10 such trials to show the gain.",
        ),
        "e-value": lambda table: _grid(
            "e-value",
            table,
            ["better", "other", "of"],
            [("ratio", "ratio", rounded), ("value", "E-value", rounded), ("at_limit", "of its interval", rounded)],
            title="How strong would confounding have to be?",
            head="Arm against arm",
            note="If the declared confounders are modelled rightly: by which factor something that nobody recorded would "
            "have to change the odds of both treatment and outcome to explain away the ratio, or to move its interval to "
            "no difference (VanderWeele and Ding 2017).",
        ),
        "scores": lambda table: _scores_grid(study, table),
        "examples": lambda table: _examples_grid(study, table),
    }
    return [make(details.tables[name]) for name, make in made.items() if name in details.tables]


def _means_text(arms: pd.DataFrame) -> Callable[[float], str]:
    """How the means of all outcomes are written: so that half of the narrowest interval has two digits."""
    widths = (arms["high"] - arms["low"]).dropna()
    places = decimals_of(widths.tolist(), widest=False)
    return lambda value: to_places(value, places)


def _plainest(balance: pd.DataFrame) -> pd.DataFrame:
    """The features, and of the products of two those that differ most."""
    products = balance["feature"].str.contains(" × ", regex=False)
    return pd.concat([balance[~products], balance[products].nlargest(PRODUCTS_SHOWN, "after")])


def _scores_grid(study: LoggedStudy, table: pd.DataFrame) -> Grid:
    """What the fitted scores are, and how every number was made."""
    shown = {
        "records": ("possible records by the declared features", _count),
        "sensitivity": ("a score moves between two neighbours by at most (Δ)", lambda value: rounded_up(value, 3)),
        "range": ("a difference of two scores moves by at most (Γ)", lambda value: rounded_up(value, 3)),
        "least loss": ("no private draw loses less, by these scores, than", lambda value: lost(value, 3)),
    }
    rows = tuple((shown[what][0], shown[what][1](value)) for what, value in table.itertuples(index=False))
    source = study.log
    model = (
        "its mean or a regression, whichever cross-validation prefers, shrunk to the mean"
        if source.outcome_model == CHOSEN
        else f"a {source.outcome_model} model of the declared features"
    )
    data = ", ".join(path.name for path in source.files.values())
    note = [
        f"Study {study.name}, seed {study.seed}, data {data}; their digests are in the manifest. Outcome: "
        f"{outcome_formula(source)}, from {plain(source.utility_range[0])} to {plain(source.utility_range[1])}.",
        f"Scores: for each arm {model}, within the range of the outcome. Records count as often as they occur, and a "
        "little as if the features were independent. Assumed public: "
        f"{basis(study).public}.",
        "Five folds and 20 random splits; up to 160 while an interval is near 0. The mean over splits, with a variance "
        "that covers the split.",
        *(f"{name}: {mechanism_words(name)}" for name in study.policies),
    ]
    return Grid(
        ("Of the fitted scores", ""), rows, title="How the numbers were made", note=" ".join(note), name="scores"
    )


def _examples_grid(study: LoggedStudy, examples: pd.DataFrame) -> Grid:
    """What B gives example patients at the study's epsilon."""
    now = examples[examples["epsilon"] == study.epsilon]
    wide = now.pivot_table(index="patient", columns="action", values="probability", sort=False)
    rows = tuple((str(patient), *map(percent, row)) for patient, *row in wide.itertuples())
    records = now.drop_duplicates("patient").set_index("patient")["record"]
    note = " ".join(f"{capital(str(patient))}: {record}." for patient, record in records.items())
    return Grid(
        ("Patient", *(_short(arm, IN_LINE) for arm in wide.columns)),
        rows,
        title=f"What example patients get by B, at ε = {plain(study.epsilon)}",
        note=f"How probable each treatment is, by B made from the whole log. {note}",
        name="examples",
    )
