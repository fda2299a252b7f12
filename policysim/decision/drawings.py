"""The figures of a report on one decision, with their words."""

from __future__ import annotations

import math

import pandas as pd

from policies.exponential import Exponential
from policies.optimal.optimum import Optimal, OptimalSafe
from policies.reference import BestFixed, Greedy
from policysim import figures
from policysim.decision.evidence import Evidence
from policysim.decision.find import DecisionDetails
from policysim.figures.curves import lines_seen
from policysim.figures.looks import is_level
from policysim.numbers import NEGLIGIBLE, counted, percent, plain, population, rounded, written
from policysim.report.contents import Drawing
from policysim.report.findings import Findings
from policysim.study.gain import gain_of
from policysim.study.labels import Labels, in_words
from policysim.words import ACHIEVABLE, ALL, NOISY_VALUES, UNBEATABLE, capital, level_name

# So many prices, the dearest, are described to readers who cannot see the bars.
MOST_DESCRIBED = 5
# The names of all figures, of which a study has those that apply.
FIGURES = ("frontier", "benefit-parts", "benefit-vs-lead", "loss-by-group", "acceptability", "price-list", "publishing")


def drawings_of_decision(evidence: Evidence, findings: Findings) -> list[Drawing]:
    """The figures, in the order of the page."""
    details: DecisionDetails = findings.details
    tables, epsilon, labels, count = evidence.tables, evidence.epsilon, evidence.labels, details.patients
    # What is drawn has the numbers of its file.
    table = in_words(written(tables["comparison"]), evidence.problem.records)
    shares = gain_of(evidence.problem).has_shares
    table = table if shares else table.assign(benefit_kept=math.nan)
    framing = {Exponential.name, Optimal.name, OptimalSafe.name, ACHIEVABLE, UNBEATABLE, BestFixed.name, Greedy.name}
    table = table[table["policy"].isin({evidence.best_private, *framing, *evidence.named})]
    beside_b = table[table["epsilon"].eq(epsilon) & table["policy"].isin([evidence.best_private, BestFixed.name])]
    made = [frontier_drawing(table, epsilon, count, labels)]
    if "losses-by-outcome" in tables:
        made.append(parts_drawing(written(tables["losses-by-outcome"]), evidence, labels))
    if shares and "frontier" in tables:
        made.append(harm_drawing(written(tables["frontier"]), table, count, labels))
    made.append(groups_drawing(beside_b, epsilon))
    if details.versions and labels.lead:
        made.append(acceptability_drawing(details, labels))
    if "price-list" in tables:
        made.append(prices_drawing(written(tables["price-list"]), epsilon))
    ways = written(tables["publishing"])
    made.append(publishing_drawing(ways if shares else ways.assign(benefit_kept=math.nan)))
    return [drawing for drawing in made if drawing is not None]


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
        "Utility and harm against ε",
        "A line for each mechanism, strong for the limit and the exponential mechanisms; the star is the best single "
        "treatment for everyone, which costs no privacy. Dashed red: the ε chosen above. Shaded, where that is proven: "
        "beyond every mechanism that gives what it shows.",
        seen,
        "comparison.csv",
        tuple(float(value) for value in sorted(table["epsilon"].unique())),
    )


def parts_drawing(parts: pd.DataFrame, evidence: Evidence, labels: Labels) -> Drawing | None:
    """What the benefit is made of; None where the best single treatment, against which it is counted, is not there."""
    chosen = [BestFixed.name, evidence.best_private, Greedy.name, *evidence.named]
    parts = parts[parts["policy"].isin(chosen)].assign(outcome=parts["outcome"].replace(dict(labels.outcomes)))
    gained = figures.gained_by_outcome(parts)
    if gained.empty:
        return None
    described = []
    for name, of in gained.groupby("policy", sort=False):
        most = of.iloc[int(of["gained"].abs().to_numpy().argmax())]
        if abs(most["gained"]) > NEGLIGIBLE:
            largest = f"{str(most['outcome']).replace('_', ' ')} ({rounded(most['gained'], sign=True)})"
            described.append(f"{name} {rounded(of['gained'].sum(), sign=True)}, most of it in {largest}")
    return Drawing(
        "benefit-parts",
        lambda size: figures.benefit_parts(parts, lead=labels.lead_title, size=size),
        f"What the benefit is made of, at ε = {plain(evidence.epsilon)}",
        "To the right: the gain over the best single treatment for everyone; to the left: the loss, in utility per "
        "patient.",
        f"Utility against the best single treatment: {'; '.join(described) or 'the same under every policy'}.",
        "losses-by-outcome.csv",
    )


def harm_drawing(frontier: pd.DataFrame, table: pd.DataFrame, count: int, labels: Labels) -> Drawing:
    """Benefit against the lead."""
    described, expected = [], f"expected_{labels.lead}"
    for _, line in frontier.groupby("epsilon"):
        ends = [
            f"{percent(row['benefit_kept'])} with {counted(row[expected], count, 1)} {labels.lead_title}"
            for row in (line.iloc[-1], line.iloc[0])
        ]
        described.append(f"at ε = {plain(float(line['epsilon'].iloc[0]))} from {' to '.join(ends)}")
    return Drawing(
        "benefit-vs-lead",
        lambda size: figures.benefit_vs_harm(
            frontier, table, outcome=labels.lead, titles=labels.outcomes, count=count, size=size
        ),
        f"Benefit against {labels.lead_title}",
        "A black line for each ε, from the safest mechanism to the most useful; a dot for each of the others.",
        f"Of {count:,} patients, {'; '.join(described)}.",
        "frontier.csv",
    )


def groups_drawing(rows: pd.DataFrame, epsilon: float) -> Drawing | None:
    """Who bears the loss; None without groups, and where none loses anything."""
    grouped = rows[(rows["group"] != ALL) & (rows["policy"] != Greedy.name)].dropna(subset="loss")
    if grouped.empty or grouped["loss"].max() <= NEGLIGIBLE:
        return None
    everyone = rows[rows["group"] == ALL].set_index("policy")["loss"]
    worst = grouped.loc[grouped.groupby("policy", sort=False)["loss"].idxmax()]
    described = [
        f"{row['policy']} costs {level_name(row['group'], row['level'])} {rounded(row['loss'])}, everyone "
        f"{rounded(everyone[row['policy']])}"
        for row in worst.to_dict("records")
    ]
    return Drawing(
        "loss-by-group",
        lambda size: figures.loss_by_group(rows, size=size),
        f"Who bears the loss, at ε = {plain(epsilon)}",
        "Utility lost in each group, against the best treatment for each patient.",
        f"Utility lost per patient in the group that loses most: {'; '.join(described)}.",
        "comparison.csv",
    )


def prices_drawing(prices: pd.DataFrame, epsilon: float) -> Drawing:
    """What hiding each feature costs at best."""
    described = [
        f"{str(row['hides']).replace('_', ' ')} {rounded(row['loss'])}"
        for row in prices[prices["loss"] > NEGLIGIBLE].head(MOST_DESCRIBED).to_dict("records")
    ]
    return Drawing(
        "price-list",
        lambda size: figures.price_bars(prices, size=size),
        f"What hiding each feature costs, at ε = {plain(epsilon)}",
        "Utility lost per patient by the best private draw if one feature is hidden, and all else is public.",
        f"Utility lost per patient, dearest first: {'; '.join(described) or 'none'}.",
        "price-list.csv",
    )


def publishing_drawing(ways: pd.DataFrame) -> Drawing | None:
    """What readers of a randomised list can know; None with fewer than two epsilons, or where nothing is known."""
    rows = ways[ways["epsilon"].between(0, math.inf, inclusive="neither")]
    if rows["epsilon"].nunique() < 2 or rows[["true_share", "error_of_a_count"]].isna().all(axis=None):
        return None
    copies = rows[rows["way"] == NOISY_VALUES].sort_values("epsilon")
    pairs = copies[["true_share", "epsilon"]].to_numpy().tolist()
    described = [f"{percent(share)} at {plain(epsilon)}" for share, epsilon in pairs]
    return Drawing(
        "publishing",
        lambda size: figures.publishing(rows, size=size),
        "What readers of a randomised list can know, against ε",
        "Each patient gets the best treatment, and entries of the published list are replaced at random. Beside it "
        "stands the benefit of mechanisms that give what they show.",
        f"True entries of the list, by ε: {', '.join(described)}.",
        "publishing.csv",
    )


def acceptability_drawing(details: DecisionDetails, labels: Labels) -> Drawing:
    """In how many versions of the model B is better than A, against what one of the leading outcome weighs."""
    curve = written(details.acceptability)
    stated = details.lead_weight
    ends = [f"{percent(row['better'])} at {rounded(row['weight'])}" for row in (curve.iloc[0], curve.iloc[-1])]
    return Drawing(
        "acceptability",
        lambda size: figures.acceptability(curve, stated=stated, one=labels.one_of_lead, size=size),
        f"Is B better than A? It depends on what {labels.one_of_lead} weighs",
        f"The share of {plain(details.versions)} versions of the model in which B is better than A (the acceptability "
        "curve). Shaded: from 10 to 90 of 100 versions, where the model cannot show a difference. Dashed: this study.",
        f"B is better than A in {' and '.join(ends)}.",
        "acceptability.csv",
    )
