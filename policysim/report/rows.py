"""Tables of the page: who bears the loss, what is wrong where the prevalence is, and all findings as one table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from policies.catalogue import CATALOGUE
from policies.problem import DecisionProblem
from policies.reference import BestFixed
from policysim.evaluate import ALL
from policysim.findings import Findings
from policysim.study import Study
from policysim.words import NEGLIGIBLE, level_name


@dataclass(frozen=True)
class GroupLoss:
    """A group of patients: its name, its share, its loss per patient under each policy, and where it is worst off."""

    name: str
    share: float
    losses: dict[str, float]
    worst: frozenset[str]


def losing(study: Study) -> tuple[str, ...]:
    """The policies whose losses are told apart by group and patient: those that spend epsilon, and one for all."""
    return (*(name for name in study.policies if CATALOGUE[name].uses_epsilon), BestFixed.name)


def group_losses(at_epsilon: pd.DataFrame, policies: Sequence[str]) -> list[GroupLoss]:
    """The loss of each group under each policy, everyone first; empty without groups.

    Parameters
    ----------
    at_epsilon : DataFrame
        Rows of a comparison at one epsilon.
    policies : sequence of str
        Those to show.
    """
    rows = at_epsilon[at_epsilon["policy"].isin(list(policies)) & at_epsilon["loss"].notna()]
    if rows.empty or (rows["group"] == ALL).all():
        return []
    losses = rows.pivot_table(index=["group", "level"], columns="policy", values="loss", sort=False)
    shares = rows.drop_duplicates(["group", "level"]).set_index(["group", "level"])["share"]
    grouped = losses[losses.index.get_level_values("group") != ALL]
    worst = {name: grouped[name].idxmax() for name in grouped if grouped[name].max() > NEGLIGIBLE}
    return [
        GroupLoss(
            "everyone" if group == ALL else level_name(str(group), str(level)),
            float(shares[(group, level)]),
            {name: float(losses.loc[(group, level), name]) for name in policies if name in losses},
            frozenset(str(name) for name, key in worst.items() if key == (group, level)),
        )
        for group, level in losses.index
    ]


def findings_table(findings: Findings, problem: DecisionProblem) -> pd.DataFrame:
    """What the page says beyond the comparison: quantity, subject ("" for none) and value; no row for NaN."""
    found = problem.sensitivity
    rows: list[tuple[str, str, float]] = [
        ("epsilon", "", findings.epsilon),
        ("right_guesses", "", findings.right_guesses),
        *(("deaths", name, rate) for name, rate in findings.deaths.items()),
        *(("epsilon_to_beat_one_for_all", row.policy, row.better_from) for row in findings.rows),
        *(("epsilon_to_keep", row.policy, row.keeps_from) for row in findings.rows),
        ("typical_stake", "", findings.typical_stake),
        ("sensitivity", "", found.value),
        ("range", "", found.range),
        *(
            ("utility_at_sensitivity", f"{name}, record {place} of 2", problem.utilities[record, action])
            for place, record in enumerate((found.witness.record, found.witness.neighbour), start=1)
            for action, name in enumerate(problem.actions)
        ),
        *(
            ("benefit_kept_at_prevalence", f"{name} × {factor}", kept)
            for name, shares in findings.prevalence.items()
            for factor, kept in shares.items()
        ),
    ]
    if findings.robustness is not None:
        redrawn = findings.robustness
        rows += [
            ("redraws", "", redrawn.redraws),
            ("redraws_with_this_ranking", " > ".join(redrawn.ranking), redrawn.holds),
            ("redraws_with_this_first", redrawn.ranking[0], redrawn.first_holds),
        ]
    kept = [(name, subject, float(value)) for name, subject, value in rows if not math.isnan(value)]
    return pd.DataFrame(kept, columns=["quantity", "subject", "value"])
