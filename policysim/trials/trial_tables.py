"""The tables behind the answer of a comparison on a log, which `--full` adds, and how means are printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pandas as pd

from policies.catalogue import mechanism_words
from policies.optimal.optimum import OptimalSafe
from policysim.logs.log_source import CHOSEN, outcome_formula
from policysim.numbers import change, decimals, percent, plain, rounded, rounded_down, rounded_up, to_places
from policysim.report.findings import OUTCOME, Findings
from policysim.report.screen import Grid
from policysim.study.declared import LoggedStudy
from policysim.trials.trial_findings import EACH, PRIVATE, SAME, TrialDetails, same_within
from policysim.utility import COSTS
from policysim.words import capital

# Letters of the name of an arm, and so many products of features in a table.
ARM_LETTERS, PRODUCTS_SHOWN = 36, 10
CALIBRATION = "Are outcomes as the scores predict?"
INTERVAL = "95\u00a0% interval"


class Unit(NamedTuple):
    """How means are printed: what they are counted among, with how many decimals, and what they are means of."""

    counted_of: int
    places: int
    what: str = OUTCOME

    @property
    def title(self) -> str:
        """What is counted, as the title of a table."""
        return f"Mean {self.what}" if self.counted_of == 1 else f"Successes of {self.counted_of}"

    @property
    def noun(self) -> str:
        """The same after a number."""
        return f"in the mean {self.what}" if self.counted_of == 1 else f"successes of {self.counted_of}"

    def mean(self, value: float) -> str:
        """A mean outcome."""
        return to_places(self.counted_of * value, self.places)

    def change(self, value: float) -> str:
        """A difference of two, with its sign."""
        return change(self.counted_of * value, self.places)

    def span(self, low: float, high: float) -> str:
        """An interval of a mean outcome."""
        return f"{self.mean(low)} to {self.mean(high)}"

    def change_span(self, low: float, high: float) -> str:
        """An interval of a difference."""
        return f"{self.change(low)} to {self.change(high)}"


class View(NamedTuple):
    """The findings at one epsilon: options by letter, differences by two letters, and arms with the verdict on each."""

    study: LoggedStudy
    findings: Findings
    epsilon: float
    options: Mapping[str, Mapping[str, Any]]
    changes: Mapping[tuple[str, str], Mapping[str, Any]]
    arms: pd.DataFrame
    unit: Unit

    @property
    def private(self) -> str:
        """The letter of the private draw that is advised on: the one within the study's limits, if it has any."""
        within = (letter for letter, row in self.options.items() if row["policy"] == OptimalSafe.name)
        return next(within, PRIVATE)

    @property
    def same(self) -> str:
        """The letter of what that draw is compared with, the same for everyone: A, unless A breaks the limits."""
        return same_within(self.findings.options)

    @property
    def nothing_to_follow(self) -> bool:
        """Whether even choosing for each patient gives everyone the same arm."""
        change = self.changes[EACH, SAME]
        return bool(change["low"] == change["high"] == 0)

    @property
    def details(self) -> TrialDetails:
        """Those of the findings."""
        details: TrialDetails = self.findings.details
        return details

    @property
    def at(self) -> str:
        """The epsilon in words."""
        return f"ε = {plain(self.epsilon)}"


def short(text: str, letters: int) -> str:
    """A text of at most so many letters, on one line."""
    text = " ".join(text.split())
    return text if len(text) <= letters else f"{text[: letters - 1].rstrip()}…"


def behind(view: View) -> Iterator[Grid]:
    """The tables that `--full` adds."""
    yield _policies(view)
    if not view.details.tables["limits"].empty:
        yield _limits(view)
    yield _arms(view)
    yield _balance(view.details)
    yield _calibration(view)
    if not view.details.tables["e-value"].empty:
        yield _confounding(view.details)
    yield _examples(view)
    yield _method(view)


def _policies(view: View) -> Grid:
    """The study's policies."""
    table, unit = view.details.tables["policies"], view.unit
    columns: dict[str, Iterable[str]] = {
        "Policy": table["policy"],
        unit.title.lower(): table["value"].map(unit.mean),
        "minus A": table["difference"].map(unit.change),
        "from": table["difference_low"].map(unit.change),
        "to": table["difference_high"].map(unit.change),
        "share of the gain of C": table["benefit_kept"].map(percent),
        "ε spent": table["epsilon_spent"].map(rounded),
        "better from ε": table["surely_from"].map(rounded),
    }
    note = (
        "Share of the gain of C: only where C surely gains. ε spent: the exact privacy loss, the largest of all "
        "splits. Better from: the smallest ε at which the interval is above 0."
    )
    return Grid.of_columns(columns, f"The policies, at {view.at}", note, "policies")


def _limits(view: View) -> Grid:
    """What each option uses beside each limit of the study."""
    table = view.details.tables["limits"]
    now = table[table["epsilon"] == view.epsilon]
    units = [Unit(1, view.unit.places) if what == COSTS else Unit(100, 1) for what in now["what"]]
    columns: dict[str, Iterable[str]] = {
        "Limit and option": now["what"] + ": " + now["option"],
        "at most": [unit.mean(limit) for unit, limit in zip(units, now["limit"], strict=True)],
        "held-out use": [unit.mean(value) for unit, value in zip(units, now["value"], strict=True)],
        "interval": [unit.span(low, high) for unit, low, high in zip(units, now["low"], now["high"], strict=True)],
    }
    note = (
        "Of a treatment: patients of 100 that get it; of costs: units of utility per patient. An option is made from "
        "some of the patients and counted on the others, so that one within the limits may exceed them by chance."
    )
    return Grid.of_columns(columns, f"The limits of the study, at {view.at}", note, "limits")


def _arms(view: View) -> Grid:
    """Each outcome in each arm; what is done about patients whose outcome is not known."""
    table = view.details.tables["arms"]
    mean = Unit(1, decimals((table["high"] - table["low"]).min() / 2)).mean
    columns = {
        "Outcome and arm": table["outcome"] + ": " + table["arm"],
        "patients": table["rows"].map(plain),
        "without outcome": table["missing"].map(plain),
        "mean": table["mean"].map(mean),
        "from": table["low"].map(mean),
        "to": table["high"].map(mean),
    }
    note = f"Means per patient, each with its {INTERVAL}."
    if not view.details.tables["censoring"].empty:
        note += (
            " A known outcome is divided by the probability that it is known, by hazards of censoring in each arm that "
            "depend on the patient as far as held-out patients show it: right if, among patients of the same arm and "
            "features, those who are followed for less have the same prospects as the others."
        )
    return Grid.of_columns(columns, "The arms, each given to everyone", note, "arms")


def _balance(details: TrialDetails) -> Grid:
    """How alike the arms' patients are; of the products of two features those that differ most."""
    table = details.tables["balance"]
    products = table["feature"].str.contains(" × ", regex=False)
    shown = pd.concat([table[~products], table[products].nlargest(PRODUCTS_SHOWN, "after")])
    columns = {
        "Feature": shown["feature"] + (": " + shown["level"]).where(shown["level"] != "", ""),
        "before weighting": shown["before"].map(rounded),
        "after": shown["after"].map(rounded),
    }
    note = (
        "Standardised differences, the largest over all pairs of arms; weights are inverse propensities. Above 0.1 "
        f"arms are called imbalanced (Austin 2009): {details.imbalanced} of {len(table)} after weighting; chance alone "
        f"makes about {rounded(details.expected_by_chance)}."
    )
    return Grid.of_columns(columns, "Do the arms' patients resemble each other?", note, "balance")


def _calibration(view: View) -> Grid:
    """Whether outcomes are as the scores predict."""
    table, unit = view.details.tables["calibration"], view.unit._replace(what=OUTCOME)
    columns = {
        "Thirds of an arm's patients, by score": table["line"],
        "patients": table["patients"].map(plain),
        f"{unit.title.lower()}, predicted": table["predicted"].map(unit.mean),
        "seen": table["value"].map(unit.mean),
        "interval": map(unit.span, table["low"], table["high"]),
    }
    holds = int(table["predicted"].between(table["low"], table["high"]).sum())
    note = (
        f"In {holds} of {len(table)} thirds the prediction is in the {INTERVAL} of what was seen "
        "in these patients, who had no part in it. Benefits cannot be checked so: nobody got two treatments."
    )
    return Grid.of_columns(columns, CALIBRATION, note, "calibration")


def _confounding(details: TrialDetails) -> Grid:
    """How strong confounding would have to be."""
    table = details.tables["e-value"]
    columns = {
        "Arm against arm": table["better"] + " against " + table["other"] + ", " + table["of"],
        "ratio": table["ratio"].map(rounded),
        "E-value": table["value"].map(rounded),
        "of its interval": table["at_limit"].map(rounded),
    }
    note = (
        "If the declared confounders are modelled rightly: how many times as probable something that nobody recorded "
        "would have to make both treatment and outcome to explain away the ratio, or to move its interval to no "
        "difference (VanderWeele and Ding 2017)."
    )
    return Grid.of_columns(columns, "How strong would confounding have to be?", note, "e-value")


def _examples(view: View) -> Grid:
    """What B gives example patients."""
    table = view.details.tables["examples"]
    now = table[table["epsilon"] == view.epsilon]
    # Arms may have the same first letters.
    head = ("Patient", *(short(str(action), ARM_LETTERS) for action in now["action"].unique()))
    rows = [(str(name), *map(percent, row["probability"])) for name, row in now.groupby("patient", sort=False)]
    records = now.drop_duplicates("patient")[["patient", "record"]].itertuples(index=False)
    details = " ".join(f"{capital(patient)}: {record}." for patient, record in records)
    note = f"How probable each treatment is, by B made from the whole log. {details}"
    return Grid(head, tuple(rows), f"What example patients get by B, at {view.at}", note, "examples")


def _method(view: View) -> Grid:
    """What the fitted scores are, and how all numbers were made."""
    study, source = view.study, view.study.log
    titles: dict[str, tuple[str, Callable[[float], str]]] = {
        "records": ("possible records by the declared features", plain),
        "sensitivity": ("a score moves between two neighbours by at most (Δ)", rounded_up),
        "range": ("a difference of two scores moves by at most (Γ)", rounded_up),
        "least loss": ("no private draw loses less, by these scores, than", rounded_down),
    }
    rows = []
    for what, value in view.details.tables["scores"].itertuples(index=False):
        title, write = titles[what]
        rows.append((title, write(value)))
    model = f"a {source.outcome_model} model of the declared features"
    if source.outcome_model == CHOSEN:
        model = "its mean or a regression, whichever cross-validation prefers, shrunk to the mean"
    least, most = study.utility_range
    note = [
        f"Study {study.name}, seed {study.seed}, data {', '.join(path.name for path in source.files.values())}; their "
        f"digests are in the manifest. {capital(view.unit.what)}: {outcome_formula(source)}"
        f"{' minus costs' if source.costs else ''}, from {plain(least)} to {plain(most)}.",
        f"Scores: for each arm {model}, within the range of the outcome. Records count as often as they occur, and a "
        "little as if the features were independent. Assumed public: the declared features and levels, the fitted "
        "scores, the shares of records and the choice of ε.",
        "Five folds and 20 random splits; up to 160 while others might change a verdict. The median over splits, with "
        "a variance that covers the split.",
        *(f"{name}: {mechanism_words(name)}" for name in study.policies),
    ]
    return Grid(("Of the fitted scores", ""), tuple(rows), "How the numbers were made", " ".join(note), "scores")
