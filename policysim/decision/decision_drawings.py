"""The figures of a decision's report, at most six; their captions are in `study/findings/decision.toml`."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from policies.randomized_response import RandomizedResponse
from policies.reference import BestFixed, Greedy
from policysim import figures
from policysim.decision.results import Results
from policysim.figures.curves import lines_seen
from policysim.figures.looks import is_level
from policysim.numbers import NEGLIGIBLE, counted, percent, plain, population, rounded, written
from policysim.question.answer import Drawing
from policysim.study.labels import Labels, in_words
from policysim.study.options_table import EXPONENTIAL, ONE, PRIVATE
from policysim.words import ALL, NOISY_VALUES, capital, level_name

# So many prices, the dearest, are told to readers who cannot see the bars.
MOST_TOLD = 5


def drawings_of_decision(found: Results, options: Mapping[str, pd.DataFrame]) -> list[Drawing]:
    """The figures of a comparison, in the order of the page.

    Parameters
    ----------
    found : Results
        What was computed.
    options : mapping of str to DataFrame
        From `answer_tables`: among how many patients the lead is counted, whether shares of the benefit are said, and
        which policies are options.
    """
    tables, epsilon = found.tables, found.asked.epsilon
    # What is drawn has the numbers of its file.
    seen = in_words(written(tables["comparison"]), found.problem.records)
    columns = options["columns"][options["columns"]["stated"]].set_index("option")
    rows = options["rows"]
    count, shares = int(rows["patients"].iloc[0]), bool(rows["section"].eq("benefit").any())
    # What was compared for the noised copy alone has no line of its own; the exponential mechanism always has one.
    unasked = {RandomizedResponse.name} - {policy.name for policy in found.asked.policies}
    seen = seen[~seen["policy"].isin(unasked)]
    seen = seen if shares else seen.assign(benefit_kept=math.nan)
    at_epsilon = seen[seen["epsilon"] == epsilon]
    labels = found.labels
    drawn = [frontier_drawing(seen, epsilon, count, labels)]
    if "losses-by-outcome" in tables:
        parts = written(tables["losses-by-outcome"])
        parts = parts.assign(outcome=parts["outcome"].replace(dict(labels.outcomes)))
        drawn.append(parts_drawing(parts, labels.lead_title))
    if shares and "frontier" in tables:
        drawn.append(harm_drawing(written(tables["frontier"]), seen, count, labels))
    chosen = [columns["policy"].get(option, "") for option in (ONE, PRIVATE, EXPONENTIAL)]
    drawn.append(groups_drawing(at_epsilon[at_epsilon["policy"].isin([*chosen, BestFixed.name])]))
    if "price-list" in tables:
        drawn.append(prices_drawing(written(tables["price-list"])))
    ways = written(tables["publishing"])
    drawn.append(publishing_drawing(ways if shares else ways.assign(benefit_kept=math.nan)))
    return [drawing for drawing in drawn if drawing is not None]


def frontier_drawing(table: pd.DataFrame, epsilon: float, count: int, labels: Labels) -> Drawing | None:
    """Utility lost and the lead over epsilon; None without an epsilon that is above 0 and finite.

    `epsilon` is the study's: where it is decided which policies are drawn, if they are many.
    """
    drawn = figures.over_epsilon(table)
    if drawn.empty:
        return None
    # The best for each loses nothing, and what treats by lot is no choice: they would be level lines.
    drawn = drawn[[name == BestFixed.name or not is_level(name) for name in drawn["policy"]]]
    names, harm = figures.telling(drawn, epsilon=epsilon), figures.harm_of(drawn, labels.lead)
    seen = f"Utility lost per patient: {lines_seen(drawn, 'loss', rounded, epsilon=epsilon, names=names)}."
    if harm:
        outcome = harm.removeprefix("expected_")
        per = count if outcome == labels.lead else population(drawn[harm])
        lines = lines_seen(drawn, harm, lambda rate: counted(rate, per, 1), epsilon=epsilon, names=names)
        seen += f" {capital(labels.outcomes[outcome])} per {per:,} patients: {lines}."
    return Drawing(
        "frontier",
        lambda size: figures.frontier(
            table, policies=names, lead=labels.lead, titles=labels.outcomes, count=count, size=size
        ),
        epsilons=tuple(float(value) for value in sorted(table["epsilon"].unique())),
        seen=seen,
    )


def parts_drawing(parts: pd.DataFrame, lead: str) -> Drawing | None:
    """What the benefit is made of; None where one treatment for all, against which it is counted, is not among them.

    `lead` is the title of the outcome that leads.
    """
    gained = figures.gained_by_outcome(parts)
    if gained.empty:
        return None
    told = []
    for name, of in gained.groupby("policy", sort=False):
        most = of.iloc[int(of["gained"].abs().to_numpy().argmax())]
        if abs(most["gained"]) > NEGLIGIBLE:
            largest = f"{str(most['outcome']).replace('_', ' ')} ({rounded(most['gained'], sign=True)})"
            told.append(f"{name} {rounded(of['gained'].sum(), sign=True)}, most of it in {largest}")
    return Drawing(
        "benefit-parts",
        lambda size: figures.benefit_parts(parts, lead=lead, size=size),
        seen=f"Utility against one treatment for all: {'; '.join(told) or 'the same under every policy'}.",
    )


def harm_drawing(frontier: pd.DataFrame, table: pd.DataFrame, count: int, labels: Labels) -> Drawing:
    """Benefit against the lead."""
    told, expected = [], f"expected_{labels.lead}"
    for _, line in frontier.groupby("epsilon"):
        ends = [
            f"{percent(row['benefit_kept'])} with {counted(row[expected], count, 1)} {labels.lead_title}"
            for row in (line.iloc[-1], line.iloc[0])
        ]
        told.append(f"at ε = {plain(float(line['epsilon'].iloc[0]))} from {' to '.join(ends)}")
    return Drawing(
        "benefit-vs-lead",
        lambda size: figures.benefit_vs_harm(
            frontier, table, outcome=labels.lead, titles=labels.outcomes, count=count, size=size
        ),
        seen=f"Of {count:,} patients, {'; '.join(told)}.",
    )


def groups_drawing(rows: pd.DataFrame) -> Drawing | None:
    """Who bears the loss; None without groups, and where none loses anything."""
    grouped = rows[(rows["group"] != ALL) & (rows["policy"] != Greedy.name)].dropna(subset="loss")
    if grouped.empty or grouped["loss"].max() <= NEGLIGIBLE:
        return None
    everyone = rows[rows["group"] == ALL].set_index("policy")["loss"]
    worst = grouped.loc[grouped.groupby("policy", sort=False)["loss"].idxmax()]
    told = [
        f"{row['policy']} costs {level_name(row['group'], row['level'])} {rounded(row['loss'])}, everyone "
        f"{rounded(everyone[row['policy']])}"
        for row in worst.to_dict("records")
    ]
    return Drawing(
        "loss-by-group",
        lambda size: figures.loss_by_group(rows, size=size),
        seen=f"Utility lost per patient by those who lose most: {'; '.join(told)}.",
    )


def prices_drawing(prices: pd.DataFrame) -> Drawing:
    """What hiding each feature costs at best."""
    told = [
        f"{str(row['hides']).replace('_', ' ')} {rounded(row['loss'])}"
        for row in prices[prices["loss"] > NEGLIGIBLE].head(MOST_TOLD).to_dict("records")
    ]
    return Drawing(
        "price-list",
        lambda size: figures.price_bars(prices, size=size),
        seen=f"Utility lost per patient, dearest first: {'; '.join(told) or 'none'}.",
    )


def publishing_drawing(ways: pd.DataFrame) -> Drawing | None:
    """What a reader of noised copies can know; None with fewer than two epsilons, or where nothing is known."""
    rows = ways[ways["epsilon"].between(0, math.inf, inclusive="neither")]
    if rows["epsilon"].nunique() < 2 or rows[["true_share", "error_of_a_count"]].isna().all(axis=None):
        return None
    copies = rows[rows["way"] == NOISY_VALUES].sort_values("epsilon")
    pairs = copies[["true_share", "epsilon"]].to_numpy().tolist()
    told = [f"{percent(share)} at {plain(epsilon)}" for share, epsilon in pairs]
    return Drawing(
        "publishing",
        lambda size: figures.publishing(rows, size=size),
        seen=f"True values among noised copies, by ε: {', '.join(told)}.",
    )
