"""The figures of a study with their words and their data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import pandas as pd

from policies.reference import BestFixed, Greedy
from policysim import figures
from policysim.decision.results import Results
from policysim.decision.scenario_outcomes import titled
from policysim.figures.card import Curves, card
from policysim.figures.curves import choices_seen, lines_seen, spending_seen
from policysim.figures.looks import is_level
from policysim.figures.parts import WORDS as ICON_WORDS
from policysim.figures.parts import died_words
from policysim.question import words
from policysim.question.answer import ColumnGroup, Drawing, TextTable, wide
from policysim.question.formats import (
    NEGLIGIBLE,
    events,
    percent,
    percent_1,
    plain,
    population,
    rounded,
    sensitivity,
    written,
)
from policysim.question.words import ALL
from policysim.study.basis import in_words


def epsilon_drawings(table: pd.DataFrame, choices: pd.DataFrame, epsilon: float, count: int) -> list[Drawing]:
    """The figures over epsilon.

    Parameters
    ----------
    table : DataFrame
        A comparison.
    choices : DataFrame
        From `example_probabilities`, of one policy.
    epsilon : float
        The study's: where it is decided which policies are drawn, if they are many.
    count : int
        Among how many patients deaths are counted, in all that is said of the study.
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
    region = (
        " Shaded: what provably no mechanism that gives what it publishes reaches (between two ε: at the larger)."
        if proven
        else ""
    )
    panels = _panels(drawn, count)
    names = figures.telling(drawn, epsilon=epsilon)
    seen = [
        f"{panel.title[0].upper()}{panel.title[1:]}: "
        f"{lines_seen(drawn, panel.values, panel.write, epsilon=epsilon, names=names)}."
        for panel in panels
    ]
    # What follows epsilon is told as columns, and what is the same at every epsilon in words.
    level = drawn["policy"].map(is_level)
    lines = drawn if level.all() else drawn[~level]
    same = [
        f"{row['policy']}: " + ", ".join(f"{panel.title} {panel.write(row[panel.values])}" for panel in panels)
        for row in drawn[level].drop_duplicates("policy").to_dict("records")
    ]
    harm = f", and {panels[1].title}," if len(panels) > 1 else ""
    drawings = [
        Drawing(
            "frontier",
            "What each ε keeps, and what it costs",
            f"{shown}{harm} against ε, a line for each of {len(names)} policies; the star at the left is one "
            "treatment for all, which costs no privacy. On top: of 100 guesses between two records that must look "
            f"alike, how many an observer can get right at most, 100 e^ε / (1 + e^ε).{region}",
            lambda size: figures.frontier(table, epsilon=epsilon, count=count, size=size),
            _over_epsilon(
                [replace(panel, rows=lines) for panel in panels],
                "policy",
                f"The same at every ε: {'; '.join(same)}." if same else "",
            ),
            epsilons,
            seen=" ".join(seen),
        )
    ]
    spending = figures.spenders(table)
    if not spending.empty:
        drawings.append(
            Drawing(
                "spent-vs-claimed",
                "Privacy spent against privacy claimed",
                "The exact privacy loss of each policy against the ε that it was given: a policy on the diagonal uses "
                f"all of it, one below the diagonal wastes some. {figures.nothing_spent(table)}".rstrip(),
                lambda size: figures.spent_vs_claimed(table, epsilon=epsilon, size=size),
                _over_epsilon([ColumnGroup("ε spent", spending, "epsilon_spent", rounded)], "policy"),
                epsilons,
                seen=spending_seen(spending, epsilon),
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
                    ColumnGroup(str(patient), rows, "probability", percent)
                    for patient, rows in choices.groupby("patient", sort=False)
                ],
                "action",
            ),
            epsilons,
            seen=choices_seen(choices, epsilon),
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


def frontier_drawing(frontier: pd.DataFrame | None, table: pd.DataFrame, count: int) -> Drawing | None:
    """Benefit against deaths among `count` patients; None without a frontier."""
    if frontier is None:
        return None
    return Drawing(
        "benefit-vs-deaths",
        "Benefit against deaths",
        "A black line for each ε, from the safest to the most useful mechanism; a dot for each of the others.",
        lambda size: figures.benefit_vs_harm(frontier, table, count=count, size=size),
        TextTable(
            ("ε", "penalty on a death", "benefit kept", f"extra deaths per {count:,}"),
            tuple(
                (
                    plain(row["epsilon"]),
                    rounded(row["penalty"]),
                    percent_1(row["benefit_kept"]),
                    events(row["extra_deaths"], count, sign=True),
                )
                for row in frontier.to_dict("records")
            ),
        ),
        table="frontier.csv",
        seen="; ".join(
            f"at ε = {plain(float(line['epsilon'].iloc[0]))} from {_corner(line.iloc[-1], count)} to "
            f"{_corner(line.iloc[0], count)}"
            for _, line in frontier.groupby("epsilon")
        ).capitalize()
        + ".",
    )


def _corner(row: pd.Series, count: int) -> str:
    return f"{percent(row['benefit_kept'])} with {events(row['extra_deaths'], count, sign=True)} deaths"


def icons_drawing(at_epsilon: pd.DataFrame, policy: str) -> Drawing | None:
    """What a policy does to 1,000 patients; None where it was not compared."""
    rows = at_epsilon[(at_epsilon["group"] == ALL) & (at_epsilon["policy"] == policy)]
    if rows.empty or rows["better_than_untreated"].isna().any():
        return None
    row = rows.iloc[0]
    counts = figures.icon_counts(row)
    said = [f"{counts[name]:,} {text}" for name, text in ICON_WORDS.items() if name in ("better", "same", "worse")]
    extra = float(row.get("extra_deaths", math.nan))
    if not math.isnan(extra):
        said.append(died_words(extra))
    return Drawing(
        "icon-array",
        f"1,000 patients under {policy}, at ε = {plain(float(row['epsilon']))}",
        "A mark for each of 1,000 patients, by whether they score higher with the treatment that they get than "
        "untreated, the same, or lower. The last marks are black: one for each extra death, none for less than half of "
        "one.",
        lambda size: figures.icon_array(at_epsilon, policy=policy, size=size),
        TextTable(
            ("of 1,000 patients", policy),
            tuple((text, number) for number, _, text in (one.partition(" ") for one in said)),
        ),
        seen=f"Of 1,000 patients, {words.in_a_row(said, 'and')}.",
    )


def parts_drawing(parts: pd.DataFrame | None, epsilon: float) -> Drawing | None:
    """What the benefit is made of; None where one treatment for all, against which it is counted, is not among them."""
    if parts is None:
        return None
    gained = figures.gained_by_outcome(parts)
    if gained.empty:
        return None
    rows = gained.assign(outcome=[str(name).replace("_", " ") for name in gained["outcome"]])
    told = []
    for name, of in rows.groupby("policy", sort=False):
        most = of.iloc[int(of["gained"].abs().to_numpy().argmax())]
        if abs(most["gained"]) > NEGLIGIBLE:
            largest = f"{most['outcome']} ({rounded(most['gained'], sign=True)})"
            told.append(f"{name} {rounded(of['gained'].sum(), sign=True)}, most of it in {largest}")
    return Drawing(
        "benefit-parts",
        "What the benefit is made of",
        f"The utility per patient that each policy gains over one treatment for all at ε = {plain(epsilon)}, by "
        "the outcomes and costs of treatments that it is gained in. The diamond is the sum.",
        lambda size: figures.benefit_parts(parts, size=size),
        wide(
            [ColumnGroup("utility gained per patient", rows, "gained", partial(rounded, sign=True))],
            index="outcome",
            columns="policy",
            name_index=str,
        ),
        table="losses-by-outcome.csv",
        seen=f"Utility against one treatment for all: {'; '.join(told) or 'the same under every policy'}.",
    )


def groups_drawing(at_epsilon: pd.DataFrame, policies: Sequence[str]) -> Drawing | None:
    """Who bears the loss; None without groups."""
    rows = at_epsilon[at_epsilon["policy"].isin(list(policies)) & at_epsilon["loss"].notna()]
    if rows.empty or (rows["group"] == ALL).all():
        return None
    drawn = rows[rows["policy"].isin(figures.telling(rows))]
    everyone = drawn[drawn["group"] == ALL].set_index("policy")["loss"]
    losing = [name for name in dict.fromkeys(drawn["policy"]) if name != Greedy.name]
    grouped = drawn[drawn["group"] != ALL].dropna(subset="loss")
    worst = grouped.loc[grouped.groupby("policy", sort=False)["loss"].idxmax()]
    told = [
        f"{row['policy']} costs {words.group_name(row['group'], row['level'])} {rounded(row['loss'])}, everyone "
        f"{rounded(everyone[row['policy']])}"
        for row in worst.to_dict("records")
        if row["loss"] > NEGLIGIBLE
    ]
    return Drawing(
        "loss-by-group",
        "Who bears the loss",
        "The utility that each group of patients loses"
        + (f", a panel for each of {len(losing)} policies." if len(losing) > 1 else f" under {losing[0]}."),
        lambda size: figures.loss_by_group(rows, size=size),
        None,
        seen=f"Utility lost per patient by those who lose most: {'; '.join(told) or 'nobody loses anything'}.",
    )


def weights_drawing(drivers: pd.DataFrame | None) -> Drawing | None:
    """Which outcome drives the sensitivity; None where no scenario says."""
    if drivers is None:
        return None
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
                    rounded(row["weight"]),
                    sensitivity(row["sensitivity"]),
                    sensitivity(row["contribution"]),
                    percent(row["share"]),
                )
                for row in drivers.to_dict("records")
            ),
            (("in units of utility", 3), ("of Δ", 1)),
        ),
        seen="; ".join(
            f"{str(row['outcome']).replace('_', ' ')}: {sensitivity(row['contribution'])}, {percent(row['share'])} of Δ"
            for row in drivers.sort_values("contribution", ascending=False).head(3).to_dict("records")
        )
        + ".",
    )


def patients_drawing(losses: pd.DataFrame, epsilon: float) -> Drawing:
    """How losses vary between patients."""
    drawn = losses[losses["policy"] != Greedy.name]
    told = [
        f"under {name} half lose {rounded(float(of.loc[of['quantile'] >= 0.5, 'loss'].min()))} or less, and the "
        f"worst-off {100 * (1 - of['quantile'].max()):g} % {rounded(float(of['loss'].max()))} or more"
        for name, of in drawn.groupby("policy", sort=False)
    ]
    return Drawing(
        "patient-losses",
        f"How much single patients lose, at ε = {plain(epsilon)}",
        "The utility that patients lose against the best treatment for each, from who loses least to who loses most; a "
        "level piece of a line is patients who lose the same.",
        lambda size: figures.patient_losses(losses, size=size),
        wide(
            [ColumnGroup("utility that a patient loses at most", losses, "loss", rounded)],
            index="quantile",
            columns="policy",
            name_index=lambda share: f"{100 * share:g} %",
        ),
        seen=f"Of all patients, {'; '.join(told)}.",
    )


def _panels(drawn: pd.DataFrame, count: int) -> list[ColumnGroup]:
    """What the panels of the frontier show, with how it is written."""
    panels = [
        ColumnGroup("benefit kept", drawn, "benefit_kept", percent)
        if drawn["benefit_kept"].notna().any()
        else ColumnGroup("utility lost per patient", drawn, "loss", rounded)
    ]
    harm = figures.harm_of(drawn)
    if harm:
        per = count if harm == "extra_deaths" else population(drawn[harm])
        title = f"{harm.replace('_', ' ')} per {per:,} patients"
        panels.append(ColumnGroup(title, drawn, harm, lambda rate: events(rate, per)))
    return panels


def _over_epsilon(panels: Sequence[ColumnGroup], columns: str, note: str = "") -> TextTable:
    return wide(panels, index="epsilon", columns=columns, name_index=plain, note=note)


def drawings(found: Results, options: Mapping[str, pd.DataFrame]) -> list[Drawing]:
    """The figures of a comparison, in the order of the page."""
    count, epsilon = int(options["rows"]["patients"].iloc[0]), found.asked.epsilon
    shares = bool(options["rows"]["section"].eq("benefit").any())
    seen = in_words(written(found.tables["comparison"]), found.problem.records)
    seen = seen[
        ~seen["policy"].isin({"randomized-response", "exponential"} - {policy.name for policy in found.asked.policies})
    ]
    seen = seen if shares else seen.assign(benefit_kept=math.nan)
    at_epsilon = seen[seen["epsilon"] == epsilon]
    parts = (
        titled(written(found.tables["losses-by-outcome"]), found.labels.outcomes)
        if "losses-by-outcome" in found.tables
        else None
    )
    curve = found.tables.get("frontier") if shares else None
    examples = found.tables["examples"]
    drawn: list[Drawing | None] = [
        *epsilon_drawings(seen, examples[examples["policy"] == examples["policy"].iloc[0]], epsilon, count)[:1],
        parts_drawing(parts, epsilon),
        frontier_drawing(None if curve is None else written(curve), seen, count),
        groups_drawing(at_epsilon, [*(policy.name for policy in found.asked.private), BestFixed.name]),
    ]
    return [drawing for drawing in drawn if drawing is not None]
