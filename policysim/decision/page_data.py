"""What the controls of a page on one decision show: other weights of the leading outcome, and any two options."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from policysim.decision.exchange import BEYOND, Exchange
from policysim.decision.find import DecisionDetails
from policysim.decision.words import lettered_now, verdict_in_versions
from policysim.numbers import plain, rounded
from policysim.report.findings import UTILITY, Findings, rows_of
from policysim.report.weighed import REST, row_title
from policysim.study.labels import Labels
from policysim.utility import COSTS
from policysim.words import capital

# The slider of the weight has about so many positions, from so small a part of the smallest weight that matters.
POSITIONS, SMALLEST = 80, 0.1


def page_data(found: Mapping[float, Findings], labels: Labels) -> dict[str, Any]:
    """What the controls of the page show.

    Parameters
    ----------
    found : mapping of float to Findings
        The findings at each epsilon.
    labels : Labels
        What people call the parts of the problem.

    Returns
    -------
    dict
        "compare" (`compared`), and where versions of the model have another verdict at another weight of the leading
        outcome "weight" (`weighed`).
    """
    each = [found[epsilon] for epsilon in sorted(found)]
    details = next(findings.details for findings in each if findings.details.epsilon == findings.details.stated_epsilon)
    return {"compare": compared(each), **({"weight": weighed(details, labels)} if _depends(details) else {})}


def _depends(details: DecisionDetails) -> bool:
    """Whether there are versions of the model, and the weight of the leading outcome matters in one."""
    return bool(details.lead_weight > 0 and details.versions > 0 and details.exchange.lead.any())


def weighed(details: DecisionDetails, labels: Labels) -> dict[str, Any]:
    """The verdict on B against A at other weights of the leading outcome.

    Returns
    -------
    dict
        title; note; position (of the stated weight); and at each position labels (what one of the leading outcome
        counts for, in words) and texts (the verdict).
    """
    exchange = details.exchange
    size = details.unit_weight if details.unit else 1.0
    stated, one = details.lead_weight / size, labels.one_of_lead
    counts = counted_weights(exchange, stated, size)
    texts = []
    for count in counts:
        better = round(exchange.better_share(count * size) * exchange.versions)
        texts.append(capital(verdict_in_versions(exchange.verdict_at(count * size), better, exchange.versions)) + ".")
    return {
        "title": f"Is B better than A if {one} counts for more, or for less?",
        "note": f"This study: {_counts_for(stated, details)}. A and B stay as they were made, at "
        f"ε = {plain(details.epsilon)} and under the weights of this study.",
        "position": counts.index(stated),
        "labels": [f"{capital(one)} counts for {_counts_for(count, details)}" for count in counts],
        "texts": texts,
    }


def _counts_for(count: float, details: DecisionDetails) -> str:
    """What one of the leading outcome counts for, in units of another and in utility."""
    if not details.unit:
        return f"{rounded(count)} units of utility"
    return f"{rounded(count)} {details.unit} ({rounded(count * details.unit_weight)} units of utility)"


def counted_weights(exchange: Exchange, stated: float, size: float) -> list[float]:
    """The positions of the slider, rising: 0, the stated weight, and numbers of two digits beyond all that matters."""
    marks = [stated, *(end / size for end in exchange.zones["low"] if end > 0)]
    steps = np.geomspace(SMALLEST * min(marks), BEYOND * max(marks), POSITIONS)
    others = {float(f"{step:.2g}") for step in steps}
    return sorted({0.0, stated, *(count for count in others if rounded(count) != rounded(stated))})


def compared(findings: list[Findings]) -> dict[str, Any]:
    """The printed numbers of the options at each epsilon, for a reader who picks two of them.

    Returns
    -------
    dict
        options (letter and title), and tables: for each epsilon its head, and rows of title, decimals, weight (None
        where it has none), kind ("count", "rest" for what makes a column add up, or "utility") and a number for each
        option.
    """
    letters = lettered_now(findings[0])
    return {
        "options": [[letter, str(row["title"])] for letter, row in letters.items()],
        "tables": [_table(each.details, list(letters)) for each in findings],
    }


def _table(details: DecisionDetails, letters: list[str]) -> dict[str, Any]:
    kinds = {REST: "rest", UTILITY: "utility"}
    rows = []
    for row in rows_of(details.table):
        kind = kinds.get(row["outcome"], "count")
        weight = None if math.isnan(row["weight"]) else row["weight"]
        values = [] if kind == "rest" else [row[letter] for letter in letters]
        title = row_title(row, details.rest, COSTS in set(details.table["outcome"]))
        rows.append([title, int(row["decimals"]), weight, kind, values])
    return {"head": f"Per {plain(details.patients)} patients, at ε = {plain(details.epsilon)}", "rows": rows}
