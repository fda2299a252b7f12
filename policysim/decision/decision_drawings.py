"""The figures of a study with their words and their data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from envs.scenario import Scenario
from policies.reference import BestFixed
from policysim import figures
from policysim.figures.card import Curves, card
from policysim.figures.looks import is_level
from policysim.figures.seen import lines_seen
from policysim.question import words
from policysim.question.answer import ColumnGroup, Drawing, TextTable, wide
from policysim.question.words import ALL


def epsilon_drawings(table: pd.DataFrame, choices: pd.DataFrame, epsilon: float) -> list[Drawing]:
    """The figures over epsilon.

    Parameters
    ----------
    table : DataFrame
        A comparison.
    choices : DataFrame
        From `example_probabilities`, of one policy.
    epsilon : float
        The study's: where it is decided which policies are drawn, if they are many.
    """
    drawn = figures.over_epsilon(table)
    if drawn.empty:
        return []
    epsilons = tuple(float(value) for value in sorted(table["epsilon"].unique()))
    has_shares = drawn["benefit_kept"].notna().any()
    shown = (
        "Benefit kept (0 % is one treatment for all, 100 % the best for each)"
        if has_shares
        else "Utility lost per patient"
    )
    proven = has_shares and len(figures.out_of_reach(drawn)) > 1
    region = " Shaded: what provably no mechanism can reach (between two ε: at the larger)." if proven else ""
    panels = _panels(drawn)
    harm = f", and {panels[1].title}," if len(panels) > 1 else ""
    drawings = [
        Drawing(
            "frontier",
            "What each ε keeps, and what it costs",
            f"{shown}{harm} against ε, a line for each of at most seven policies; the star at the left is one "
            "treatment for all, which costs no privacy. On top: of 100 guesses between two records that must look "
            f"alike, how many an observer can get right at most, 100 e^ε / (1 + e^ε).{region}",
            lambda size: figures.frontier(table, epsilon=epsilon, size=size),
            _over_epsilon(*_loss_data(drawn, panels)),
            epsilons,
            seen=_frontier_seen(drawn, panels, epsilon),
        )
    ]
    spending = figures.spenders(table)
    if not spending.empty:
        drawings.append(
            Drawing(
                "spent-vs-claimed",
                "Privacy spent against privacy claimed",
                "The exact privacy loss of each of at most six policies against the ε that it was given: a policy on "
                "the diagonal uses all of it, one below the diagonal wastes some.",
                lambda size: figures.spent_vs_claimed(table, epsilon=epsilon, size=size),
                _over_epsilon([ColumnGroup("ε spent", spending, "epsilon_spent", words.rounded)], "policy"),
                epsilons,
            )
        )
    (policy,) = choices["policy"].unique()
    drawings.append(
        Drawing(
            "action-probabilities",
            f"What example patients get under {policy}",
            f"The probability of each treatment over ε under {policy}, a panel for each example patient.",
            lambda size: figures.action_probabilities(choices, size=size),
            _over_epsilon(
                [
                    ColumnGroup(str(patient), rows, "probability", words.percent)
                    for patient, rows in choices.groupby("patient", sort=False)
                ],
                "action",
            ),
            epsilons,
        )
    )
    return drawings


def card_drawing(table: pd.DataFrame, best: str, one_for_all: str, epsilon: float) -> Drawing | None:
    """The benefit that a policy keeps over epsilon, or the utility that it loses; None where nothing can be drawn."""
    rows = figures.over_epsilon(table)
    column = "benefit_kept" if rows["benefit_kept"].notna().any() else "loss"
    mine = rows[(rows["policy"] == best) & rows[column].notna()]
    if len(mine) < 2:
        return None
    shares = column == "benefit_kept"
    reach = figures.out_of_reach(rows) if shares else rows.iloc[:0]
    fixed = rows.loc[rows["policy"] == BestFixed.name, column]
    now = mine.loc[mine["epsilon"] == epsilon, column]
    return card(
        Curves(
            {best: _points(mine, column)},
            x="ε (log scale)",
            y="benefit kept" if shares else "utility lost per patient",
            share=shares,
            level=((f"{one_for_all} for all", float(fixed.iloc[0])),) if len(fixed) else (),
            out_of_reach=_points(reach, "most_kept") if len(reach) > 1 else (),
            mark=(epsilon, float(now.iloc[0])) if len(now) else None,
            limits=(min(-0.05, float(mine[column].min())), 1.03) if shares else None,
        )
    )


def _points(rows: pd.DataFrame, column: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in zip(rows["epsilon"], rows[column], strict=True)]


def frontier_drawing(frontier: pd.DataFrame | None, table: pd.DataFrame) -> Drawing | None:
    """Benefit against deaths; None without a frontier."""
    if frontier is None:
        return None
    count = words.population(frontier["extra_deaths"])
    return Drawing(
        "benefit-vs-deaths",
        "Benefit against deaths",
        "A line for each ε: the most benefit that linear programming finds for ε-private mechanisms with so many extra "
        "deaths, from the safest to the most useful; a dot for each mechanism and ε.",
        lambda size: figures.benefit_vs_harm(frontier, table, size=size),
        TextTable(
            ("ε", "penalty on a death", "benefit kept", f"extra deaths per {count:,}"),
            tuple(
                (
                    words.plain(row["epsilon"]),
                    words.rounded(row["penalty"]),
                    words.percent_1(row["benefit_kept"]),
                    words.events(row["extra_deaths"], count, sign=True),
                )
                for row in frontier.to_dict("records")
            ),
        ),
        table="frontier.csv",
    )


def titled(table: pd.DataFrame, scenario: Scenario) -> pd.DataFrame:
    """A table whose outcomes are called what the scenario calls its events."""
    titles = {name: event.title for name, event in scenario.events.items()}
    return table.assign(outcome=table["outcome"].replace(titles)) if titles else table


def parts_drawing(parts: pd.DataFrame, epsilon: float) -> Drawing:
    """What the loss is made of."""
    rows = parts.rename(columns={"outcome": "lost in"})
    return Drawing(
        "loss-by-outcome",
        "What the loss is made of",
        f"The utility that each of at most seven policies loses at ε = {words.plain(epsilon)}, by the outcomes and "
        "costs of treatments that it is lost in; what is gained is to the left of 0.",
        lambda size: figures.loss_by_outcome(parts, size=size),
        wide(
            [ColumnGroup("utility lost per patient", rows, "lost", words.rounded)],
            index="lost in",
            columns="policy",
            name_index=lambda name: str(name).replace("_", " "),
        ),
        table="losses-by-outcome.csv",
    )


def groups_drawing(at_epsilon: pd.DataFrame, policies: Sequence[str]) -> Drawing | None:
    """Who bears the loss; None without groups."""
    rows = at_epsilon[at_epsilon["policy"].isin(list(policies)) & at_epsilon["loss"].notna()]
    if rows.empty or (rows["group"] == ALL).all():
        return None
    return Drawing(
        "loss-by-group",
        "Who bears the loss",
        "The utility that each group of patients loses, a dot for each of at most seven policies; the group that loses "
        "most under a policy is named.",
        lambda size: figures.loss_by_group(rows, size=size),
        None,
    )


def weights_drawing(drivers: pd.DataFrame) -> Drawing:
    """Which outcome drives the sensitivity."""
    return Drawing(
        "sensitivity-by-weight",
        "What drives the sensitivity",
        "For each outcome, how far its weighted probability can move between two neighbours, and how much of the "
        "sensitivity it makes up between the two that attain it.",
        lambda size: figures.sensitivity_by_weight(drivers, size=size),
        TextTable(
            ("outcome", "weight", "of itself", "in the sensitivity", "share"),
            tuple(
                (
                    str(row["outcome"]).replace("_", " "),
                    words.rounded(row["weight"]),
                    words.sensitivity(row["sensitivity"]),
                    words.sensitivity(row["contribution"]),
                    words.percent(row["share"]),
                )
                for row in drivers.to_dict("records")
            ),
            (("in units of utility", 3), ("of Δ", 1)),
        ),
    )


def patients_drawing(losses: pd.DataFrame, epsilon: float) -> Drawing:
    """How losses vary between patients."""
    per = losses.groupby("policy").size().max()
    return Drawing(
        "patient-losses",
        f"How much single patients lose, at ε = {words.plain(epsilon)}",
        f"{per} dots for each policy, each standing for {100 / per:g} of 100 patients, at the utility that they lose.",
        lambda size: figures.patient_losses(losses, size=size),
        wide(
            [ColumnGroup("utility that a patient loses at most", losses, "loss", words.rounded)],
            index="quantile",
            columns="policy",
            name_index=lambda share: f"{100 * share:g} %",
        ),
    )


def _panels(drawn: pd.DataFrame) -> list[ColumnGroup]:
    """What the panels of the frontier show, with how it is written."""
    panels = [
        ColumnGroup("benefit kept", drawn, "benefit_kept", words.percent)
        if drawn["benefit_kept"].notna().any()
        else ColumnGroup("utility lost per patient", drawn, "loss", words.rounded)
    ]
    harm = figures.harm_of(drawn)
    if harm:
        count = words.population(drawn[harm])
        title = f"{harm.replace('_', ' ')} per {count:,} patients"
        panels.append(ColumnGroup(title, drawn, harm, lambda rate: words.events(rate, count)))
    return panels


def _frontier_seen(drawn: pd.DataFrame, panels: Sequence[ColumnGroup], epsilon: float) -> str:
    names = figures.telling(drawn, epsilon=epsilon)
    said = (
        f"{panel.title[0].upper()}{panel.title[1:]}: "
        f"{lines_seen(drawn, panel.values, panel.write, epsilon=epsilon, names=names)}."
        for panel in panels
    )
    return " ".join(said)


def _loss_data(drawn: pd.DataFrame, panels: Sequence[ColumnGroup]) -> tuple[list[ColumnGroup], str, str]:
    """What follows epsilon as columns, and what is the same at every epsilon in words."""
    level = drawn["policy"].map(is_level)
    lines = drawn if level.all() else drawn[~level]
    said = [
        f"{row['policy']}: " + ", ".join(f"{panel.title} {panel.write(row[panel.values])}" for panel in panels)
        for row in drawn[level].drop_duplicates("policy").to_dict("records")
    ]
    note = f"The same at every ε: {'; '.join(said)}." if said else ""
    return [replace(panel, rows=lines) for panel in panels], "policy", note


def _over_epsilon(panels: Sequence[ColumnGroup], columns: str, note: str = "") -> TextTable:
    return wide(panels, index="epsilon", columns=columns, name_index=words.plain, note=note)
