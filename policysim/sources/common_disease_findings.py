"""What the study of the most common disease says: rows, errata, sections and their words."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from policies.arrays import FloatArray
from policysim.sources.common_disease import (
    REPEATED,
    SENSITIVITY,
    ZERO,
    Constants,
    exact_loss,
    probabilities,
    weights,
)
from policysim.sources.common_disease_drawings import (
    PROBABILITIES,
    larger_drawing,
    probabilities_drawing,
    reliability_drawing,
)
from policysim.sources.digits import as_printed
from policysim.sources.largest_industry import agreeing_gaps, fewest_candidates, gap_of_one, possible
from policysim.sources.losses import ADD_OR_REMOVE, REPLACE_ONE, loss_at
from policysim.sources.model import CUT, WRONG, Erratum, Findings, Row, Section
from policysim.sources.reading import Quote
from policysim.sources.rows import claim_rows, figure_rows
from policysim.words import rounded

USES = (1, 10, 100, 1000)


def analyse(constants: Constants) -> Findings:
    """All that the page shows."""
    found = tuple(rows(constants))
    return Findings(
        lead=_lead(constants),
        rows=found,
        errata=_errata(found),
        sections=(
            Section("What is chosen", drawing=probabilities_drawing(constants)),
            Section("How reliable the answer is", drawing=reliability_drawing(constants)),
            Section("The larger table", _larger(constants), drawing=larger_drawing(constants)),
            _repeated(constants),
        ),
        assumptions=(
            "Public: the list of candidates and how many there are, and ε. A list taken from the private rows would "
            "tell that each candidate on it occurs.",
            "Neighbours differ in one person's value (replace-one), or in one person who is there or not "
            "(add-or-remove-one). Under the latter no count falls while another rises, so the scores are monotone.",
            "Probabilities are exact. Exact loss: over all tables of as many people and candidates.",
        ),
    )


def rows(constants: Constants) -> list[Row]:
    """Every figure of the source beside ours."""
    counts, delta = constants.table, constants.sensitivity

    def named(values: FloatArray) -> Mapping[str, float]:
        return dict(zip(constants.counts, map(float, values), strict=True))

    def chosen(quote: Quote) -> Mapping[str, float]:
        return named(probabilities(counts, quote.epsilon, delta))

    def weighed(quote: Quote) -> Mapping[str, float]:
        return named(weights(counts, quote.epsilon, delta))

    return [
        *figure_rows(constants.probabilities, chosen, "P({name}), ε = {epsilon}"),
        *figure_rows(constants.weights, weighed, "weight of {name}, ε = {epsilon}"),
        _larger_row(constants),
        *claim_rows(constants.claims, claims(constants)),
    ]


def _larger_row(constants: Constants) -> Row:
    larger = constants.larger
    fewest = fewest_candidates(larger)
    low, high = agreeing_gaps(larger, 2 * fewest) or (0, 0)
    return Row(
        f"right in {larger.runs:,} draws, {larger.people:,} people, ε = {larger.epsilon:g}",
        larger.where,
        str(larger.right),
        f"plausible with {fewest} candidates or more",
        reason=f"With {2 * fewest} candidates, if the runner-up has {low} to {high} people fewer.",
    )


def claims(constants: Constants) -> Mapping[str, tuple[str, bool, str]]:
    """What is right, whether the source's claim holds, and why, by subject."""
    counts, delta = constants.table, constants.sensitivity

    def once(table: np.typing.NDArray[np.intp]) -> FloatArray:
        return probabilities(table, 1.0, delta)

    def twice(table: np.typing.NDArray[np.intp]) -> FloatArray:
        return np.outer(once(table), once(table)).ravel()

    one, two = (loss_at(counts, choice, REPLACE_ONE) for choice in (once, twice))
    uniform = probabilities(counts, 0.0, delta)
    return {
        SENSITIVITY: ("1", delta == 1, "One person adds at most 1 to a count, or takes 1 away."),
        REPEATED: (
            "adds up",
            bool(np.isclose(two, 2 * one)),
            f"Exact loss of this table against its neighbours at ε = 1: {one:.4f} once, {two:.4f} twice.",
        ),
        ZERO: ("uniform", bool((uniform == 1 / len(counts)).all()), ""),
    }


def _lead(constants: Constants) -> tuple[str, ...]:
    counts, larger = constants.table, constants.larger
    right = int(counts.argmax())
    at = {epsilon: float(probabilities(counts, epsilon, constants.sensitivity)[right]) for epsilon in (0.1, 1.0)}
    fewest = fewest_candidates(larger)
    low, high = agreeing_gaps(larger, 2 * fewest) or (0, 0)
    return (
        f"Among {counts.sum()} people the right answer, {constants.commonest}, comes with probability {at[0.1]:.2f} at "
        f"ε = 0.1 and {at[1.0]:.2f} at ε = 1. The source's probabilities agree with ours.",
        f"Its {larger.right} of {larger.runs:,} right answers for {larger.people:,} people are plausible, and tell "
        f"something of a table that it does not print: there were {fewest} candidates or more, and with "
        f"{2 * fewest} of them the runner-up had {low} to {high} people fewer than the {larger.largest} of the largest "
        "industry.",
        f"Those {larger.runs:,} draws of one table, published, would cost ε = {larger.runs * larger.epsilon:g} and not "
        f"{larger.epsilon:g}: uses add up.",
    )


def _errata(found: tuple[Row, ...]) -> tuple[Erratum, ...]:
    return tuple(
        Erratum(
            f"{row.what}: {row.printed}.",
            f"{as_printed(float(row.ours), row.printed)} ({row.shown}).",
            f"{CUT} The other figures of the table are rounded.",
            PROBABILITIES,
        )
        for row in found
        if row.verdict == WRONG and not isinstance(row.ours, str)
    )


def _larger(constants: Constants) -> tuple[str, ...]:
    larger = constants.larger
    low, high = larger.interval
    fewest = fewest_candidates(larger)
    one = possible(larger, 2 * fewest, round(gap_of_one(larger)))
    least, most = one or (np.nan, np.nan)
    return (
        f"The source gives {larger.people:,} people, a largest industry of {larger.largest} and {larger.right} right "
        f"answers of {larger.runs:,} at ε = {larger.epsilon:g}: a probability between {low:.3f} and {high:.3f} (95 %). "
        "Whether the mechanism gives that depends on the other counts, which it does not give. "
        f"The other {larger.others:,} people must fit into the other industries, none larger than the runner-up.",
        f"One runner-up with {gap_of_one(larger):.0f} people fewer, and all others far behind, gives {larger.right} of "
        f"{larger.runs:,}. With {2 * fewest} candidates and that runner-up the probability can be anything from "
        f"{least:.2f} (as many runners-up as there can be) to {most:.2f}. So this is a check of plausibility, not of "
        "equality.",
    )


def _repeated(constants: Constants) -> Section:
    epsilon = constants.larger.epsilon
    spent = {adjacency: exact_loss(constants, 1.0, adjacency) for adjacency in (REPLACE_ONE, ADD_OR_REMOVE)}
    return Section(
        "What it costs, once and repeatedly",
        (
            f"At ε = 1 the mechanism loses exactly {spent[REPLACE_ONE]:.3f} if a person's value is replaced, and "
            f"{spent[ADD_OR_REMOVE]:.3f} if a person comes or goes: there half of ε would do.",
            f"Answers from the same people add up. At ε = {epsilon:g} each, someone who must tell two equally likely "
            "neighbouring tables apart is right at most so often:",
        ),
        ("answers", "ε in all", "right guesses of 100, at most"),
        tuple((f"{uses:,}", f"{uses * epsilon:g}", _guesses(uses * epsilon)) for uses in USES),
    )


def _guesses(epsilon: float) -> str:
    share = 100 / (1 + np.exp(-epsilon))
    return rounded(share) if share < 99 else "99.99 or more" if share > 99.99 else f"{share:.2f}"
