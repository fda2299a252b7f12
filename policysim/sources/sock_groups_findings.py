"""What the study of the sock groups says: rows, errata, sections and their words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from policies.arrays import FloatArray
from policysim.sources.model import Erratum, Findings, Row, Section
from policysim.sources.reading import Quote
from policysim.sources.rows import claim_rows, draw_rows, figure_rows
from policysim.sources.sock_groups import (
    COEFFICIENT,
    DISJOINT,
    EPSILON_TEXT,
    NOTABLE,
    SENSITIVITY,
    WHO,
    WHY,
    Constants,
    Outcome,
    left_disparity,
    outcomes,
    probabilities,
    proportions,
    rarely,
)
from policysim.sources.sock_groups_drawings import DISPARITY, SIZE, disparity_drawing, size_drawing
from policysim.words import rounded


def rows(constants: Constants, found: Sequence[Outcome]) -> list[Row]:
    """Every figure of the source beside ours."""

    def named(values: FloatArray) -> Mapping[str, float]:
        return dict(zip(constants.candidates, map(float, values), strict=True))

    def chosen(quote: Quote) -> Mapping[str, float]:
        return named(probabilities(constants.counts(quote.data), quote.epsilon, constants.sensitivity))

    shares = {name: constants.split(name) for name in constants.groups}
    return [
        *figure_rows(
            constants.scores, lambda q: named(proportions(constants.counts(q.data))), "score of {name}, {data}"
        ),
        *figure_rows(constants.probabilities, chosen, "P({name}), {data}, ε = {epsilon}"),
        *draw_rows(constants.draws, chosen, "{name} in {runs} draws, {data}, ε = {epsilon}"),
        *figure_rows(constants.shares, lambda _: shares, "ε of {name}"),
        *claim_rows(constants.claims, claims(constants, found)),
    ]


def claims(constants: Constants, found: Sequence[Outcome]) -> Mapping[str, tuple[str, bool, str]]:
    """What is right, whether the source's claim holds, and why, by subject."""
    small, large = constants.by_size
    source, whole, *_ = found
    rates = [float(proportions(constants.counts(name))[0]) for name in (small, large)]
    n = [int(constants.counts(name).sum()) for name in (small, large)]
    return {
        EPSILON_TEXT: (
            f"ε = {constants.epsilon:g}",
            constants.epsilon == constants.text_epsilon,
            f"The figures come from {constants.epsilon:g} shared out.",
        ),
        SENSITIVITY: (
            f"1/{n[0]} and 1/{n[1]}",
            constants.sensitivity * max(n) <= 1,
            "One person of n moves a proportion by 1/n.",
        ),
        DISJOINT: (
            f"the whole ε for each: {constants.epsilon:g}",
            False,
            "A split is safe but not needed: each person is in one group only, if sock colour is public.",
        ),
        COEFFICIENT: (
            "1 instead of ½",
            True,
            "These scores are not monotone: as one proportion rises the other falls.",
        ),
        WHO: (
            f"{small}: {source.rare[0]:.3f}, rate {rates[0]:.3f}; {large}: {source.rare[1]:.3f}",
            source.rare[0] > max(rates[0], source.rare[1]) and rates[0] < rates[1],
            "True of its computation.",
        ),
        WHY: (
            "the split of ε, and a Δ that is too large",
            whole.disparity > 0,
            f"With the whole ε for each group, {small} gets {whole.rare[0]:.4f} and {large} {whole.rare[1]:.4f}.",
        ),
    }


def analyse(constants: Constants) -> Findings:
    """All that the page shows."""
    found = outcomes(constants)
    return Findings(
        lead=_lead(constants, found),
        rows=tuple(rows(constants, found)),
        errata=_errata(constants, found),
        sections=(
            _calibrations(constants, found),
            Section("What disparity is left, over ε", drawing=disparity_drawing(constants)),
            Section("What the size of a group does", drawing=size_drawing(constants)),
        ),
        assumptions=(
            "Public: the two candidates, sock colours, group sizes and ε. Neighbours differ in one person's value.",
            "If sock colour is private too, one person counts in both groups: each answer must then be calibrated for "
            "a person who comes or goes (Δ = ½, as n is not public), and the two together cost 2ε. A split by group "
            "size is then itself computed from private data.",
            "P(candidate) from the exponential mechanism, exactly; exact loss over all tables of the group's size.",
            "The mechanism reports the commonest value. P(rare) is how often it errs, not an estimate of the rate.",
        ),
    )


def _lead(constants: Constants, found: Sequence[Outcome]) -> tuple[str, ...]:
    source, whole, _, right = found
    small, large = constants.by_size
    rare = constants.candidates[0]
    largest, peak, notable_until = left_disparity(constants)
    n = [int(constants.counts(name).sum()) for name in constants.by_size]
    return (
        f"The source finds that the small group is reported {rare} too often: {small} {source.rare[0]:.3f}, "
        f"{large} {source.rare[1]:.3f} at ε = {constants.epsilon:g}. Its figures are right; its explanation is wrong.",
        f"The split of ε by group size does it, not the mechanism: give both groups the whole ε, as disjoint groups "
        f"may have, and {small} gets {whole.rare[0]:.4f}, {large} {whole.rare[1]:.4f}.",
        f"The noise is also {n[0]} and {n[1]} times too large: one person moves a proportion of n people by 1/n, not "
        f"by {constants.sensitivity:g}. Of the ε = {constants.epsilon:g} that the source claims to spend, each person "
        f"loses at most {rounded(max(source.loss))}.",
        f"With both corrected the disparity is at most {largest:.2f}, at ε = {rounded(peak)}, and below {NOTABLE:g} "
        f"from ε = {rounded(notable_until)} on; at ε = {constants.epsilon:g} it is "
        + ("less than one in 10¹²." if abs(right.disparity) < 1e-12 else f"{rounded(right.disparity)}."),
    )


def _errata(constants: Constants, found: Sequence[Outcome]) -> tuple[Erratum, ...]:
    source, whole, *_ = found
    small, large = constants.by_size
    said = [
        rarely(constants.counts(name), constants.text_epsilon * float(share), constants.sensitivity)
        for name in constants.by_size
        for share in [constants.split(name) / constants.epsilon]
    ]
    n = [int(constants.counts(name).sum()) for name in constants.by_size]
    delta = f"{constants.sensitivity:g}"
    return (
        Erratum(
            f"The small group is hit because the mechanism overvalues rare values ({source.rare[0]:.3f} against "
            f"{source.rare[1]:.3f}).",
            f"With the whole ε for each group: {whole.rare[0]:.4f} against {whole.rare[1]:.4f}, the other way round.",
            f"{small} was given ε = {source.claimed[0]:g} and {large} {source.claimed[1]:g}. A person is in one group "
            "only, so each group may use all of it (parallel composition), as long as sock colour and group sizes are "
            "public.",
            DISPARITY,
        ),
        Erratum(
            f"The sensitivity of a proportion is {delta}.",
            f"It is 1/n if one person's value is replaced: 1/{n[0]} and 1/{n[1]}; ½ if people may come and go and n is "
            "not public.",
            f"Claimed and exact loss of the source: {source.claimed[0]:g} and {source.loss[0]:.3f} for {small}, "
            f"{source.claimed[1]:g} and {source.loss[1]:.3f} for {large}. It is the right mechanism at ε = "
            f"{source.claimed[0] / n[0] / constants.sensitivity:g} for each group.",
            SIZE,
        ),
        Erratum(
            f"ε = {constants.text_epsilon:g} (in the text).",
            f"The figures are those of ε = {constants.epsilon:g}.",
            f"At ε = {constants.text_epsilon:g} they would be {said[0]:.3f} for {small} and {said[1]:.3f} for {large}.",
            DISPARITY,
        ),
    )  # fmt: skip


def _calibrations(constants: Constants, found: Sequence[Outcome]) -> Section:
    rare = constants.candidates[0]
    small, large = constants.by_size
    return Section(
        f"What each correction does at ε = {constants.epsilon:g}",
        (
            f"P({rare}) should be near 0 for both: most people of both groups are {constants.candidates[1]}. Exact "
            "loss: of a person whose value is replaced, over all tables of the group's size.",
        ),
        (
            "calibration",
            *(f"P({rare}), {name}" for name in (small, large)),
            "difference",
            *(f"ε claimed, {name}" for name in (small, large)),
            *(f"exact loss, {name}" for name in (small, large)),
        ),
        tuple(
            (
                one.name,
                rounded(one.rare[0]),
                rounded(one.rare[1]),
                rounded(one.disparity, sign=True),
                *(f"{value:g}" for value in one.claimed),
                *(rounded(value) for value in one.loss),
            )
            for one in found
        ),
    )
