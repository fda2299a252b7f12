"""The tables behind the answer to one decision: what `--full` prints, and a page shows below its figures."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from policysim.decision.beliefs import moved_beliefs
from policysim.decision.find import DecisionDetails
from policysim.decision.record_risk import WHOLE
from policysim.numbers import (
    change,
    decimal,
    lost,
    percent,
    plain,
    right,
    rounded,
    rounded_up,
    to_places,
)
from policysim.report.findings import UTILITY, Findings, rows_of
from policysim.report.screen import Grid
from policysim.study.labels import Labels
from policysim.words import ASSUMED_PUBLIC, capital

# Of the acceptability curve so many weights are printed.
CURVE_POINTS = 7


def tables_behind(findings: Findings, labels: Labels) -> Iterator[Grid]:
    """The tables, as far as there are such."""
    details: DecisionDetails = findings.details
    yield _mechanisms(findings, labels)
    tables = details.tables
    if details.versions:
        yield _acceptability(details, labels)
    if "beliefs" in tables and len(moved_beliefs(tables["beliefs"])):
        yield _observer(tables["beliefs"], details)
    yield _guesses(findings, details)
    yield _ways(tables["publishing"], details, labels)
    if "price-list" in tables:
        yield _prices(tables["price-list"], details, labels)
    if "prevalence" in tables:
        yield _prevalence(tables["prevalence"], details)
    yield _method(details)


def _mechanisms(findings: Findings, labels: Labels) -> Grid:
    """Every policy that was compared, at the epsilon of the words."""
    details: DecisionDetails = findings.details
    table = findings.options[findings.options["epsilon"] == details.epsilon].drop_duplicates("policy")
    needed = table["policy"].map(details.tables["search"].set_index("policy")["better_from"])
    places, count = _places(details), details.patients
    columns = {
        "Policy": [f"{row['option']} {row['policy']}".strip() for row in table.to_dict("records")],
        "utility lost": [lost(loss * count, places) for loss in table["loss"]],
        **_of_lead(table, f"expected_{labels.lead}", labels.lead_title, count),
        "ε spent": map(rounded, table["epsilon_spent"]),
        "told apart, of 100": map(right, table["guess_rate"]),
        "better than best-fixed from ε": ["–" if math.isnan(epsilon) else decimal(epsilon) for epsilon in needed],
    }
    note = f"Per {plain(count)} patients. ε spent is the exact privacy loss of one treatment."
    return Grid.of_columns(columns, f"Every policy, at ε = {plain(details.epsilon)}", note, "options")


def _of_lead(table: pd.DataFrame, column: str, title: str, count: int) -> dict[str, list[str]]:
    """The column of the outcome that leads among so many patients; none where it is not counted."""
    return {title: [to_places(rate * count, 1) for rate in table[column]]} if column in table else {}


def _places(details: DecisionDetails) -> int:
    """The decimals of utility lost in the table of options."""
    return int(details.table.loc[details.table["outcome"] == UTILITY, "decimals"].iloc[0])


def _acceptability(details: DecisionDetails, labels: Labels) -> Grid:
    """In how many versions B is better than A, against what one of the lead counts; and what knowing more is worth."""
    places = np.unique(np.linspace(0, len(details.acceptability) - 1, CURVE_POINTS).round().astype(int))
    curve = details.acceptability.iloc[places]
    utility, lead = details.perfect_information
    worth = f"{rounded(utility * details.patients)} units of utility per {plain(details.patients)} patients"
    counted = "" if math.isnan(lead) else f", as much as {rounded(lead * details.patients)} {labels.lead_title}"
    note = (
        f"In how many of {plain(details.versions)} versions of the model each is better. To know which version is true "
        f"would be worth at most {worth}{counted} (expected value of perfect information)."
    )
    one = capital(labels.one_of_lead) if labels.lead else "It"
    columns = {
        f"{one} weighs": map(rounded, curve["weight"]),
        "B is better": map(percent, curve["better"]),
        "A is better": map(percent, curve["worse"]),
    }
    return Grid.of_columns(columns, "Is B better than A?", note, "acceptability")


def _observer(beliefs: pd.DataFrame, details: DecisionDetails) -> Grid:
    """What an observer of B believes, as far as it moves."""
    moved = moved_beliefs(beliefs)
    columns = {
        "Belief": [
            f"{belief} (among {among})" if among else str(belief)
            for belief, among in moved[["belief", "among"]].to_numpy()
        ],
        "before": map(percent, moved["before"]),
        "least after": map(percent, moved["least"]),
        "most after": map(percent, moved["most"]),
    }
    note = "By Bayes' rule, for an observer who knows the prior: the least and the largest belief after a treatment."
    title = f"What an observer of B believes, at ε = {plain(details.stated_epsilon)}"
    return Grid.of_columns(columns, title, note, "beliefs")


def _guesses(findings: Findings, details: DecisionDetails) -> Grid:
    """How often an observer's best guess of the record, and of features whose guess gets better, is right."""
    table = details.tables["record-risk"]
    policies = {letter: row["policy"] for letter, row in findings.lettered(details.stated_epsilon).items()}
    after = table.set_index(["what", "policy"])["after"].to_dict()
    bounded = bool(table["bound"].notna().all())
    rows = []
    for row in rows_of(table.drop_duplicates("what")):
        what, best = row["what"], [row["before"], *(after[row["what"], policy] for policy in policies.values())]
        cells = [rounded(100 * rate) for rate in best]
        if what == WHOLE or len(set(cells)) > 1:
            rows.append((what.replace("_", " "), *cells, *([rounded_up(100 * row["bound"])] if bounded else [])))
    head = ("Best guess of", "before", *policies, *(["most at this ε"] if bounded else []))
    title = f"How often an observer's best guess is right, of 100, at ε = {plain(details.stated_epsilon)}"
    limit = "No draw at this ε makes it right more often than the last column says."
    limit = limit if bounded else "Where single features are hidden, ε sets no limit to this."
    note = f"The guess is the likeliest value by all that is public, without and with a treatment. {limit}"
    return Grid(head, tuple(rows), title, note, "record-risk")


def _ways(publishing: pd.DataFrame, details: DecisionDetails, labels: Labels) -> Grid:
    """What each way to publish costs the patients, and its reader."""
    now = publishing[publishing["epsilon"] == details.stated_epsilon]
    columns = {
        "Way (who must be trusted)": [f"{way} ({trusted})" for way, trusted in now[["way", "trusted"]].to_numpy()],
        **_of_lead(now, f"expected_{labels.lead}", labels.lead_title, details.patients),
        "told apart, of 100": map(right, now["guess_rate"]),
        "true entries": map(percent, now["true_share"]),
        "error of a count": map(rounded, now["error_of_a_count"]),
    }
    note = (
        "A list or table whose entries are replaced at random hides only from readers of the list: an observer of the "
        "treatment itself learns all. The error is the standard deviation, in patients, of the count of a treatment."
    )
    return Grid.of_columns(columns, "To give and to publish are two decisions", note, "publishing")


def _prices(prices: pd.DataFrame, details: DecisionDetails, labels: Labels) -> Grid:
    """What hiding each single feature costs at best, dearest first; features of one price share a row."""
    lead, count, places = f"extra_{labels.lead}", details.patients, _places(details)
    texts = {"utility lost": [lost(loss * count, places) for loss in prices["loss"]]}
    if lead in prices:
        beyond = f"{labels.lead_title} beyond the best single treatment"
        texts[beyond] = [change(more * count, 1) for more in prices[lead]]
    features: dict[tuple[str, ...], list[str]] = {}
    for feature, price in zip(prices["hides"], zip(*texts.values(), strict=True), strict=True):
        features.setdefault(price, []).append(str(feature).replace("_", " "))
    rows = tuple((", ".join(names), *price) for price, names in features.items())
    title = f"What hiding each feature costs, at ε = {plain(details.stated_epsilon)}"
    note = (
        "By the best private draw if only this is hidden. Features of the same price share a line; a feature without "
        "numbers makes no difference between treatments in this model."
    )
    return Grid(("Hidden, all else public", *texts), rows, title, note, "price-list")


def _prevalence(prevalence: pd.DataFrame, details: DecisionDetails) -> Grid:
    """What policies lose where the condition is more or less common than assumed."""
    places = _places(details)
    wide = prevalence.pivot_table(index="policy", columns="factor", values="loss", sort=False)
    rows = [
        (str(name), *(to_places(loss * details.patients, places) for loss in row))
        for name, row in zip(wide.index, wide.to_numpy(), strict=True)
    ]
    head = ("Times the assumed share", *(rounded(float(factor)) for factor in wide.columns))
    title = "Utility lost where the condition is more or less common than assumed"
    return Grid(head, tuple(rows), title, "By policies that were made for the assumed share.", "prevalence")


def _method(details: DecisionDetails) -> Grid:
    """Numbers of the problem that the mechanisms work with, and what is assumed to be public."""
    rows = (
        ("Possible records", plain(details.records)),
        ("Sensitivity of the utility (Δ)", rounded_up(details.sensitivity, 3)),
        ("Range of the utility", rounded_up(details.range, 3)),
        ("Best and worst treatment differ, for half of the patients, by at most", rounded(details.median_stake)),
    )
    note = " ".join([f"Assumed public: {ASSUMED_PUBLIC}.", *details.idle])
    return Grid(("Of the problem", "number"), rows, "Method", note)
