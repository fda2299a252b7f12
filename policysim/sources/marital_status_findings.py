"""What the study of the marital status says: rows, errata, sections and their words."""

from __future__ import annotations

from collections.abc import Mapping

from policysim.sources.losses import ADD_OR_REMOVE, REPLACE_ONE
from policysim.sources.marital_status import CANDIDATE, COST, SENSITIVITY, Constants, exact_loss, probabilities
from policysim.sources.marital_status_drawings import (
    RELIABILITY,
    candidates_drawing,
    draws_drawing,
    reliability_drawing,
)
from policysim.sources.model import Erratum, Findings, Row, Section
from policysim.sources.reading import Quote
from policysim.sources.rows import claim_rows, draw_rows, figure_rows
from policysim.words import rounded

NUMBERS = (2, 7, 100, 1000)


def analyse(constants: Constants) -> Findings:
    """All that the page shows."""
    return Findings(
        lead=_lead(constants),
        rows=tuple(rows(constants)),
        errata=_errata(constants),
        sections=(
            _probabilities(constants),
            Section("The run of the source", drawing=draws_drawing(constants)),
            Section("What the right sensitivity gives", drawing=reliability_drawing(constants)),
            _candidates(constants),
            Section("What more candidates cost", drawing=candidates_drawing(constants)),
        ),
        assumptions=(
            "Public: the list of candidates and ε. A value that is not on the list is never the answer; a list taken "
            "from the private rows would tell that each value on it occurs.",
            "Neighbours differ in one person's value (replace-one), or in one person who is there or not "
            "(add-or-remove-one).",
            "Probabilities are exact. Exact loss: over all tables of as many people.",
        ),
    )


def rows(constants: Constants) -> list[Row]:
    """Every figure of the source beside ours."""

    def chosen(quote: Quote) -> Mapping[str, float]:
        exact = probabilities(constants, constants.table, quote.epsilon)
        return dict(zip(constants.counts, map(float, exact), strict=True))

    people = {"people": float(constants.table.sum())}
    return [
        *draw_rows(constants.draws, chosen, "{name} in {runs} draws, ε = {epsilon}"),
        *figure_rows(constants.people, lambda _: people, "{name}, the sum of the counts"),
        *claim_rows(constants.claims, claims(constants)),
    ]


def claims(constants: Constants) -> Mapping[str, tuple[str, bool, str]]:
    """What is right, whether the source's claim holds, and why, by subject."""
    losses = [exact_loss(constants, REPLACE_ONE, number) for number in NUMBERS]
    return {
        SENSITIVITY: (
            f"{constants.true_sensitivity:g}",
            constants.overstated <= 1,
            f"One person is one in a count, {constants.true_sensitivity:g} in the score.",
        ),
        COST: (
            f"at most {constants.epsilon:g}",
            max(losses) <= constants.epsilon,
            f"Exactly {losses[0]:.4g} with {NUMBERS[0]} candidates and {losses[-1]:.4g} with {NUMBERS[-1]:,}.",
        ),
        CANDIDATE: ("always", True, "So a value that is not on the list cannot be the answer."),
    }


def _lead(constants: Constants) -> tuple[str, ...]:
    exact = probabilities(constants, constants.table, constants.epsilon)
    right = int(exact.argmax())
    name = list(constants.counts)[right]
    replace, add = (exact_loss(constants, adjacency) for adjacency in (REPLACE_ONE, ADD_OR_REMOVE))
    better = probabilities(constants, constants.table, constants.epsilon, corrected=True)
    return (
        f"The source's run is what its mechanism gives: {name} is right, and chosen with probability "
        f"{exact[right]:.3f} at ε = {constants.epsilon:g}.",
        f"But the mechanism hardly spends its ε: the sensitivity of count/{constants.divisor:g} is "
        f"{constants.true_sensitivity:g}, not {constants.sensitivity:g}. It loses {replace:.4g} if a person's value is "
        f"replaced and {add:.4g} if a person comes or goes.",
        f"With the true sensitivity, ε = {constants.epsilon:g} gives {name} with probability "
        f"{_almost(1 - float(better[right]))}, and ε = {constants.epsilon / constants.overstated:g} gives what the "
        "source has.",
    )


def _almost(wrong: float) -> str:
    return (
        f"{1 - wrong:.3f}"
        if wrong > 1e-3
        else "1 (wrong less than once in 10¹²)"
        if wrong < 1e-12
        else f"1 − {wrong:.0e}"
    )


def _errata(constants: Constants) -> tuple[Erratum, ...]:
    replace, add = (exact_loss(constants, adjacency) for adjacency in (REPLACE_ONE, ADD_OR_REMOVE))
    return (
        Erratum(
            f"The sensitivity of count/{constants.divisor:g} is {constants.sensitivity:g}, and so a draw spends "
            f"ε = {constants.epsilon:g}.",
            f"The sensitivity is {constants.true_sensitivity:g}; a draw spends {replace:.4g} under replace-one and "
            f"{add:.4g} under add-or-remove-one.",
            f"One person changes a count by 1, and so the score by {constants.true_sensitivity:g}. The declared one is "
            f"safe, and {constants.overstated:,.0f} times too large. If a person's value is replaced, one score rises "
            "and another falls; if a person comes or goes, one score alone moves, which costs half.",
            RELIABILITY,
        ),
    )


def _probabilities(constants: Constants) -> Section:
    exact = probabilities(constants, constants.table, constants.epsilon)
    better = probabilities(constants, constants.table, constants.epsilon, corrected=True)
    return Section(
        f"Probabilities at ε = {constants.epsilon:g}",
        (),
        (
            "candidate",
            "people",
            "score",
            f"Δ = {constants.sensitivity:g}, the source",
            f"Δ = {constants.true_sensitivity:g}",
        ),
        tuple(
            (name, f"{count:,}", f"{count / constants.divisor:g}", f"{exact[place]:.6f}", rounded(float(better[place])))
            for place, (name, count) in enumerate(constants.counts.items())
        ),
    )


def _candidates(constants: Constants) -> Section:
    return Section(
        "What the number of candidates costs in privacy",
        (
            f"Nothing: the exact loss of the source's mechanism at ε = {constants.epsilon:g}, by the number of "
            "candidates.",
        ),
        ("candidates", "replace-one", "add-or-remove-one"),
        tuple(
            (f"{number:,}", *(f"{exact_loss(constants, kind, number):.7f}" for kind in (REPLACE_ONE, ADD_OR_REMOVE)))
            for number in NUMBERS
        ),
    )
