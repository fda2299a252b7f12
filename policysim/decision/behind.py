"""The tables behind the answer to one decision: what `--full` prints, and a page shows below its figures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from policysim.decision.beliefs import moved_beliefs
from policysim.decision.find import DecisionDetails
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
from policysim.report.findings import UTILITY, Findings
from policysim.report.screen import Grid
from policysim.study.labels import Labels
from policysim.words import ASSUMED_PUBLIC, capital

# Prices that differ by less, as a share of the dearest, are the same.
SAME_PRICE = 1e-4
# Of the acceptability curve so many weights are printed.
CURVE_POINTS = 7


def tables_behind(findings: Findings, labels: Labels) -> Iterator[Grid]:
    """The tables, as far as there are such."""
    details: DecisionDetails = findings.details
    yield _mechanisms(findings, labels)
    tables = details.tables
    if details.exchange is not None and details.versions:
        yield _acceptability(details, labels)
    if "beliefs" in tables:
        yield _observer(tables["beliefs"], details)
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
    search = details.tables["search"].set_index("policy")
    places, lead = _places(details), f"expected_{labels.lead}"
    rows = []
    for row in table.to_dict("records"):
        needed = search.loc[row["policy"], "better_from"] if row["policy"] in search.index else math.nan
        rows.append(
            (
                f"{row['option']} {row['policy']}".strip(),
                lost(row["loss"] * details.patients, places),
                *([to_places(row[lead] * details.patients, 1)] if lead in row else []),
                rounded(row["epsilon_spent"]),
                right(row["guess_rate"]),
                "–" if math.isnan(needed) else decimal(needed),
            )
        )
    head = (
        "Policy",
        "utility lost",
        *([labels.lead_title] if lead in table else []),
        "ε spent",
        "told apart, of 100",
        "better than best-fixed from ε",
    )
    note = f"Per {plain(details.patients)} patients. ε spent is the exact privacy loss of one treatment."
    return Grid(head, tuple(rows), f"Every policy, at ε = {plain(details.epsilon)}", note, "options")


def _places(details: DecisionDetails) -> int:
    """The decimals of utility lost in the table of options."""
    return int(details.rows.loc[details.rows["outcome"] == UTILITY, "decimals"].iloc[0])


def _acceptability(details: DecisionDetails, labels: Labels) -> Grid:
    """In how many versions B is better than A, against what one of the lead counts; and what knowing more is worth."""
    assert details.exchange is not None
    curve = details.acceptability
    chosen = np.unique(np.linspace(0, len(curve) - 1, CURVE_POINTS).round().astype(int))
    rows = [
        (rounded(row["weight"]), percent(row["better"]), percent(row["worse"]))
        for row in curve.iloc[chosen].to_dict("records")
    ]
    utility, lead = details.perfect_information
    worth = f"{rounded(utility * details.patients)} units of utility per {plain(details.patients)} patients"
    counted = "" if math.isnan(lead) else f", as much as {rounded(lead * details.patients)} {labels.lead_title}"
    note = (
        f"In how many of {plain(details.versions)} versions of the model each is better. To know which version is true "
        f"would be worth at most {worth}{counted} (expected value of perfect information)."
    )
    one = capital(labels.one_of_lead) if labels.lead else "It"
    return Grid(
        (f"{one} weighs", "B is better", "A is better"), tuple(rows), "Is B better than A?", note, "acceptability"
    )


def _observer(beliefs: pd.DataFrame, details: DecisionDetails) -> Grid:
    """What an observer of B believes, as far as it moves."""
    rows = [
        (
            f"{row['belief']} (among {row['among']})" if row["among"] else str(row["belief"]),
            percent(row["before"]),
            percent(row["least"]),
            percent(row["most"]),
        )
        for row in moved_beliefs(beliefs).to_dict("records")
    ]
    note = "By Bayes' rule, for an observer who knows the prior: the least and the largest belief after a treatment."
    title = f"What an observer of B believes, at ε = {plain(details.stated_epsilon)}"
    return Grid(("Belief", "before", "least after", "most after"), tuple(rows), title, note, "beliefs")


def _ways(publishing: pd.DataFrame, details: DecisionDetails, labels: Labels) -> Grid:
    """What each way to publish costs the patients, and its reader."""
    lead = f"expected_{labels.lead}"
    rows = [
        (
            f"{row['way']} ({row['trusted']})",
            *([to_places(row[lead] * details.patients, 1)] if lead in row else []),
            right(row["guess_rate"]),
            percent(row["true_share"]),
            rounded(row["error_of_a_count"]),
        )
        for row in publishing[publishing["epsilon"] == details.stated_epsilon].to_dict("records")
    ]
    head = (
        "Way (who must be trusted)",
        *([labels.lead_title] if lead in publishing else []),
        "told apart, of 100",
        "true entries",
        "error of a count",
    )
    note = (
        "A list or table whose entries are replaced at random hides only from readers of the list: an observer of the "
        "treatment itself learns all. The error is the standard deviation, in patients, of the count of a treatment."
    )
    return Grid(head, tuple(rows), "To give and to publish are two decisions", note, "publishing")


def _prices(prices: pd.DataFrame, details: DecisionDetails, labels: Labels) -> Grid:
    """What hiding each single feature costs at best, dearest first; features of one price share a row."""
    lead, count, places = f"extra_{labels.lead}", details.patients, _places(details)
    compared = [name for name in ("loss", lead) if name in prices]
    near = {name: SAME_PRICE * prices[name].abs().max() for name in compared}
    groups: list[tuple[list[str], dict[str, float]]] = []
    for price in prices.to_dict("records"):
        name = str(price["hides"]).replace("_", " ")
        same = groups and all(
            np.isclose(groups[-1][1][column], price[column], rtol=0, atol=least, equal_nan=True)
            for column, least in near.items()
        )
        if same:
            groups[-1][0].append(name)
        else:
            groups.append(([name], {column: float(price[column]) for column in compared}))
    rows = [
        (
            ", ".join(names),
            lost(price["loss"] * count, places),
            *([change(price[lead] * count, 1)] if lead in price else []),
        )
        for names, price in groups
    ]
    beyond = f"{labels.lead_title} beyond the best single treatment"
    note = (
        "By the best private draw if only this is hidden. Features of the same price share a line; a feature without "
        "numbers makes no difference between treatments in this model."
    )
    head = ("Hidden, all else public", "utility lost", *([beyond] if lead in prices else []))
    return Grid(
        head, tuple(rows), f"What hiding each feature costs, at ε = {plain(details.stated_epsilon)}", note, "price-list"
    )


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
    rows: Sequence[tuple[str, str]] = [
        ("Possible records", plain(details.records)),
        ("Sensitivity of the utility (Δ)", rounded_up(details.sensitivity, 3)),
        ("Range of the utility", rounded_up(details.range, 3)),
        ("Best and worst treatment differ, for half of the patients, by at most", rounded(details.median_stake)),
    ]
    return Grid(("Of the problem", "number"), tuple(rows), "Method", f"Assumed public: {ASSUMED_PUBLIC}.")
