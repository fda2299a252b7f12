"""What the study of where to put the noise says."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from policysim.console import progress_bar
from policysim.sources.model import Erratum, Findings, Section
from policysim.sources.randomise_or_decide import COST, Constants, Hidden
from policysim.sources.randomise_or_decide_curves import (
    LIMIT,
    NOTABLE,
    POLICIES,
    RECORD,
    RESPONSE,
    SOURCE,
    Crossing,
    crossings,
    curves,
    kept,
    number_of_steps,
    problems_of,
    spent,
    times_ahead,
)
from policysim.sources.randomise_or_decide_drawings import NAME, benefit_drawing
from policysim.sources.rows import claim_rows
from policysim.words import percent, rounded


def analyse(constants: Constants) -> Findings:
    """All that the page shows. Nothing is drawn at random."""
    problems = problems_of(constants)
    with progress_bar() as bar:
        bar.expect(number_of_steps(constants))
        table = curves(constants, problems, bar.advance)
        found = crossings(constants, problems, table, bar.advance)
    return Findings(
        lead=_lead(constants, table, found),
        rows=tuple(claim_rows(constants.claims, {COST: _cost(constants)})),
        errata=(_erratum(constants),),
        sections=(
            Section("Which way loses less, by what must be hidden", drawing=benefit_drawing(constants, table)),
            _kept_section(constants, table, found),
            _coins_section(table, found),
        ),
        assumptions=_assumptions(constants, problems[0].n_records),
    )


def _lead(constants: Constants, table: pd.DataFrame, found: Sequence[Crossing]) -> tuple[str, ...]:
    ahead, points = times_ahead(table)
    epsilon = constants.epsilon
    pairs = "; ".join(
        f"{hidden.name} {percent(kept(table, hidden.name, RECORD, epsilon))} against "
        f"{percent(max(kept(table, hidden.name, name, epsilon) for name in SOURCE))}"
        for hidden in constants.hidden
    )
    most = max(found, key=lambda crossing: crossing.coins)
    keep = kept(table, most.hidden.name, RECORD, most.coins)
    return (
        "Of the two ways that the source offers, randomising the record and then deciding loses no more than deciding "
        f"by the exponential mechanism at {ahead} of the {points} points of the curves. Benefit kept at ε = "
        f"{epsilon:g}, with the exponential mechanism exactly calibrated, by what is hidden: {pairs}. (0 % is one "
        "treatment for all, 100 % the best for each.)",
        _who_overtakes(found),
        *_limits(constants, table),
        f"Two coins for each feature cost ε = {most.coins:.3g} with {most.hidden.name} hidden, and keep "
        f"{percent(keep)} of the benefit. Response on the decision keeps as much at ε = {rounded(most.same)}.",
        "Why: randomising the record splits ε over the hidden features and lets the public ones and the prior decide "
        "the rest, so it is best where little is hidden. The exponential mechanism's noise follows the largest "
        "effect that any hidden change can have, which almost no patient has at stake.",
    )


def _who_overtakes(found: Sequence[Crossing]) -> str:
    ordered = sorted(found, key=lambda crossing: crossing.overtaking.epsilon)
    crossed = [
        f"from ε = {rounded(one.overtaking.epsilon)} on with {one.hidden.name} hidden"
        for one in ordered
        if one.overtaking.policy
    ]
    never = [one.hidden.name for one in ordered if not one.overtaking.policy]
    if not crossed:
        return "No other noise on the decision that was tried overtakes the randomised record."
    by = " or ".join(sorted({one.overtaking.policy for one in found if one.overtaking.policy}))
    return (
        f"But noise on the decision need not be the exponential mechanism's: {by} overtakes the randomised record "
        f"{', '.join(crossed)}" + (f"; never with {' or '.join(never)} hidden." if never else ".")
    )


def _limits(constants: Constants, table: pd.DataFrame) -> list[str]:
    names = [hidden.name for hidden in constants.hidden if _is_limit(table, hidden)]
    if not names:
        return []
    return [f"With {' or '.join(names)} hidden, no ε-private mechanism keeps more than the randomised record does."]


def _is_limit(table: pd.DataFrame, hidden: Hidden) -> bool:
    wide = table[table["hidden"] == hidden.name].pivot(index="epsilon", columns="policy", values="benefit_kept")
    return bool((wide[LIMIT] - wide[RECORD] < NOTABLE).all())


def _cost(constants: Constants) -> tuple[str, bool, str]:
    features = len(constants.study.scenario.space.names)
    cost = constants.coins.epsilon
    return (
        f"{features} × {cost:.4f} = {features * cost:.2f}",
        cost == 0,
        "Losses of independent answers about one person add up.",
    )


def _erratum(constants: Constants) -> Erratum:
    right, _, _ = _cost(constants)
    return Erratum(
        "Protecting each entry of the table of patients by two coins is 0-differentially private.",
        f"ε = {constants.coins.epsilon:.4f} for each yes-or-no feature; for a patient's record ε = {right}.",
        "Two patients may differ in every feature, and each answer tells them apart a little more. Features with more "
        "than two levels, for which two coins are no answer, are given the same ε here.",
        NAME,
    )


def _kept_section(constants: Constants, table: pd.DataFrame, found: Sequence[Crossing]) -> Section:
    sets = [f"{one.name}: {', '.join(one.features).replace('_', ' ')}" for one in constants.hidden if one.features]
    return Section(
        f"Benefit kept at ε = {constants.epsilon:g}",
        (
            "Overtaken from: the ε from which on other noise on the decision keeps more than the randomised record.",
            f"What is hidden is, for {'; for '.join(sets)}." if sets else "",
        ),
        ("hidden", *POLICIES, "overtaken from ε"),
        tuple(
            (
                one.hidden.name,
                *(percent(kept(table, one.hidden.name, name, constants.epsilon)) for name in POLICIES),
                rounded(one.overtaking.epsilon) if one.overtaking.policy else "never",
            )
            for one in found
        ),
    )


def _coins_section(table: pd.DataFrame, found: Sequence[Crossing]) -> Section:
    return Section(
        "What two coins for each hidden feature cost",
        (
            "The randomised features cost ε; the treatment chosen from them reveals less of the record, its exact "
            "loss. Beside it, what response on the decision and the limit keep at the same ε, and the ε at which "
            "response on the decision keeps as much as two coins.",
        ),
        ("hidden", "ε", "kept", "exact loss of the treatment", RESPONSE, LIMIT, "same benefit at ε"),
        tuple(
            (
                one.hidden.name,
                f"{one.coins:.2f}",
                percent(kept(table, one.hidden.name, RECORD, one.coins)),
                rounded(spent(table, one.hidden.name, RECORD, one.coins)),
                *(percent(kept(table, one.hidden.name, name, one.coins)) for name in (RESPONSE, LIMIT)),
                rounded(one.same),
            )
            for one in found
        ),
    )


def _assumptions(constants: Constants, n_records: int) -> tuple[str, ...]:
    return (
        f"Patients, treatments and utility: the study {constants.study.name}, all {n_records:,} records, exactly; no "
        "patient is sampled. A model with illustrative effects, not medical advice.",
        "Neighbours differ in the hidden features alone; all other features are public. What goes with public features "
        "can be guessed from them (an infection from its symptoms): ε bounds what the treatment adds to that.",
        "The randomised record (randomized-features): every hidden feature through k-ary response with an equal share "
        "of ε, then the treatment of highest expected utility under the prior, which is public and trusted. Response "
        "on the decision (randomized-response) uses no prior.",
        "A randomised record is private before anybody decides; the other ways need somebody who sees the true "
        "record. Where nobody may, they are no alternative.",
        "Overtaken: by at least a thousandth of the benefit.",
    )
