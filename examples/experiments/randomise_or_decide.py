"""Randomise the record and then decide, or decide and randomise the decision?

The report behind the covid study protects the table of patients by two coins for each answer, or chooses treatments by
the exponential mechanism, and does not say which loses less. This lesson computes both exactly, over ε, for each set of
features that the published treatment must hide.

`python examples/experiments/randomise_or_decide.py` writes reports/randomise-or-decide, in a few minutes.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd
from scipy.optimize import brentq

import policysim as ps
from examples.reporting import (
    REPORTS,
    Figures,
    Row,
    compare_claim,
    comparison_in_markdown,
    in_markdown,
    new_figure,
    write_report,
)
from policies.local import TwoCoin
from policysim.figures import looks, set_epsilon_axis

# 1. The question: the ways to be private, and what must be hidden.
# The exponential mechanism as the source has it: the textbook's.
SOURCE = "exponential"
RECORD, RESPONSE, LIMIT = "randomized-features", "randomized-response", "optimal"
# What else can be done to a decision.
OTHERS = ("exponential-fitted", RESPONSE)
POLICIES = (RECORD, SOURCE, *OTHERS, LIMIT)
# Less is no reason to choose: a tenth of a percent of the benefit.
NOTABLE = 1e-3
# Relative accuracy of the epsilon where one way overtakes the other.
ACCURACY = 0.01
FIGURE = "benefit-by-hidden-features"
LABELS = {RECORD: "randomized-features: the record", LIMIT: "optimal (the limit)"}
# The source's response to one question: heads, the truth; tails, a second coin decides.
COINS = TwoCoin.truth_or_opposite(0.5, 0.5)
BACKGROUND = ("age", "sex", "vaccine", "asthma", "obesity", "smoking", "diabetes", "heart_disease", "hypertension")
SYMPTOMS = ("taste", "fever", "headache", "pneumonia", "stomach", "myocarditis", "blood_clots")


@dataclass(frozen=True)
class Hidden:
    """What the published treatment must hide: features, or the whole record if there are none."""

    name: str
    features: tuple[str, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """The question, as it is put here."""

    study: str = "covid"  # patients, treatments and utility: a study of policies
    epsilon: float = 1.0  # the one that the text is about, among `epsilons`
    epsilons: tuple[float, ...] = (0.1, 0.3, 1, 2, 3, 5, 8, 16, 32)
    coins: TwoCoin = COINS
    hidden: tuple[Hidden, ...] = (
        Hidden("infection", ("covid_positive",)),
        Hidden("background", BACKGROUND),
        Hidden("symptoms", SYMPTOMS),
        Hidden("infection and symptoms", ("covid_positive", *SYMPTOMS)),
        Hidden("the whole record"),
    )

    @cached_property
    def problem(self) -> ps.DecisionProblem:
        """The study's decision problem."""
        return ps.build_problem(ps.load_study(self.study))

    @cached_property
    def features(self) -> tuple[str, ...]:
        """All features of a record."""
        return tuple(ps.load_study(self.study).scenario.space.names)

    def problem_of(self, hidden: Hidden) -> ps.DecisionProblem:
        """The problem with the neighbours that a hidden set asks for; all share their tables."""
        space = ps.load_study(self.study).scenario.space
        axes = tuple(space.axis(name) for name in hidden.features)
        return self.problem.with_adjacency(ps.Sensitive(space.shape, axes) if axes else ps.AnyRecord())

    def two_coins(self, hidden: Hidden) -> float:
        """epsilon of two coins for each hidden feature: losses add up."""
        return self.coins.epsilon * len(hidden.features or self.features)


@dataclass(frozen=True)
class Crossing:
    """Where the curves of one hidden set cross."""

    hidden: Hidden
    overtaken: float  # the ε from which noise on the decision keeps notably more than the randomised record; or inf
    by: str  # what overtakes it, "" if nothing does
    coins: float  # epsilon of two coins for each hidden feature
    same: float  # the epsilon at which response on the decision keeps as much as these coins; inf if none does


# 2. The computation.
def curves(experiment: Experiment) -> pd.DataFrame:
    """hidden, policy, epsilon, benefit_kept, epsilon_spent (of the published treatment), the two coins included."""
    frames = []
    for hidden in experiment.hidden:
        epsilons = sorted({*map(float, experiment.epsilons), experiment.epsilon, experiment.two_coins(hidden)})
        table = ps.compare(experiment.problem_of(hidden), policies=POLICIES, epsilons=epsilons)
        frames.append(table[["policy", "epsilon", "benefit_kept", "epsilon_spent"]].assign(hidden=hidden.name))
    return pd.concat(frames, ignore_index=True)[["hidden", "policy", "epsilon", "benefit_kept", "epsilon_spent"]]


def lookup(table: pd.DataFrame, hidden: str, policy: str, epsilon: float, column: str = "benefit_kept") -> float:
    """Benefit kept, or another column, at a point of the curves."""
    chosen = (table["hidden"] == hidden) & (table["policy"] == policy) & (table["epsilon"] == epsilon)
    return float(table.loc[chosen, column].item())


def crossings(experiment: Experiment, table: pd.DataFrame) -> list[Crossing]:
    """Where curves cross, for each hidden set."""

    def find(hidden: Hidden) -> Crossing:
        problem, coins = experiment.problem_of(hidden), experiment.two_coins(hidden)
        overtaken, by = overtaking(problem, table[table["hidden"] == hidden.name])
        try:
            same = ps.smallest_epsilon(problem, RESPONSE, keep=lookup(table, hidden.name, RECORD, coins))
        except ValueError:  # no epsilon keeps as much
            same = math.inf
        return Crossing(hidden, overtaken, by, coins, same)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(find, experiment.hidden))


def overtaking(problem: ps.DecisionProblem, rows: pd.DataFrame) -> tuple[float, str]:
    """The first epsilon at which one of `OTHERS` keeps notably more than the randomised record, to two digits."""
    wide = rows.pivot(index="epsilon", columns="policy", values="benefit_kept")
    lead = wide[list(OTHERS)].max(axis=1) - wide[RECORD] - NOTABLE
    ahead, behind = lead.index[lead > 0], lead.index[lead <= 0]
    if not len(ahead):
        return math.inf, ""
    first = float(ahead[0])
    by, before = str(wide.loc[first, list(OTHERS)].astype(float).idxmax()), behind[behind < first]
    if not len(before):
        return first, by
    low, high = math.log(before[-1]), math.log(first)
    ends = {low: float(lead[before[-1]]), high: float(lead[first])}

    def measure(log_epsilon: float) -> float:
        return ends[log_epsilon] if log_epsilon in ends else ahead_by(problem, math.exp(log_epsilon)) - NOTABLE

    return math.exp(brentq(measure, low, high, xtol=ACCURACY / 2)), by


def ahead_by(problem: ps.DecisionProblem, epsilon: float) -> float:
    """By how much of the benefit the better of `OTHERS` is ahead of the randomised record."""
    values = {
        name: problem.value(ps.make_policy(name, epsilon=epsilon).probabilities(problem)) for name in (RECORD, *OTHERS)
    }
    benefit = float(problem.prior @ problem.utilities.max(axis=1) - problem.fixed_values.max())
    return (max(values[name] for name in OTHERS) - values[RECORD]) / benefit


# 3. The tables.
def compare(experiment: Experiment) -> list[Row]:
    """The source's claim beside what is right."""
    cost, features = experiment.coins.epsilon, len(experiment.features)
    return [
        compare_claim(
            "two coins for each feature of a record: ε",
            "text: “0-differential privacy”",
            "0",
            f"{features} × {cost:.4f} = {features * cost:.2f}",
            holds=cost == 0,
            why="Losses of independent answers about one person add up.",
        )
    ]


def benefit_table(experiment: Experiment, table: pd.DataFrame, results: Sequence[Crossing]) -> pd.DataFrame:
    """Benefit kept at the ε of the text, by what is hidden."""
    rows = []
    for one in results:
        shares = {name: percent(lookup(table, one.hidden.name, name, experiment.epsilon)) for name in POLICIES}
        overtaken = two_digits(one.overtaken) if one.by else "never"
        rows.append({"hidden": one.hidden.name, **shares, "overtaken from ε": overtaken})
    return pd.DataFrame(rows)


def coins_table(table: pd.DataFrame, results: Sequence[Crossing]) -> pd.DataFrame:
    """What two coins for each hidden feature cost and keep."""
    rows = []
    for one in results:
        name, coins = one.hidden.name, one.coins
        spent = two_digits(lookup(table, name, RECORD, coins, "epsilon_spent"))
        row = {"hidden": name, "ε": f"{coins:.2f}", "kept": percent(lookup(table, name, RECORD, coins))}
        row["exact loss of the treatment"] = spent
        row |= {policy: percent(lookup(table, name, policy, coins)) for policy in (RESPONSE, LIMIT)}
        rows.append({**row, "same benefit at ε": two_digits_up(one.same)})
    return pd.DataFrame(rows)


def percent(share: float) -> str:
    """A whole percentage."""
    return f"{round(100 * share)}\u00a0%".replace("-", "−")


def two_digits(value: float) -> str:
    """Two significant digits."""
    return "∞" if math.isinf(value) else f"{value:#.2g}".rstrip(".")


def two_digits_up(value: float) -> str:
    """Two significant digits of an ε that is enough, never below it."""
    if math.isinf(value):
        return "∞"
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    return two_digits(math.ceil(value / step) * step)


# 4. The figure.
def draw(table: pd.DataFrame) -> Figures:
    """A panel for each hidden set, with a star where two coins for each hidden feature are; `table` has `two_coins`."""
    names = list(dict.fromkeys(table["hidden"]))
    figure, panels = new_figure(*(f"Hidden: {name}" for name in names), height=10.0)
    for axes, name in zip(panels, names, strict=True):
        rows = table[table["hidden"] == name]
        axes.axhline(0, color="#555555", linewidth=1, label="one treatment for all")
        for policy, look in looks(POLICIES).items():
            line = rows[rows["policy"] == policy]
            # The limit is a wide pale line: others that reach it are seen on it.
            wide = {"linewidth": 5, "alpha": 0.3, "zorder": 1} if policy == LIMIT else {"marker": look.marker}
            style = {"color": look.colour, "linestyle": look.dashes, "label": LABELS.get(policy, policy), **wide}
            axes.plot(line["epsilon"], 100 * line["benefit_kept"], **style)
        stars = rows[rows["two_coins"]]
        star = {"color": "white", "markersize": 13, "markeredgecolor": "black", "zorder": 5}
        axes.plot(stars["epsilon"], 100 * stars["benefit_kept"], "*", label="two coins for each hidden feature", **star)
        set_epsilon_axis(axes, rows["epsilon"])
        axes.set(ylim=(100 * table["benefit_kept"].min() - 5, 105), ylabel="benefit kept, %")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return {FIGURE: (figure, table)}


# 5. The report.
def findings(experiment: Experiment, table: pd.DataFrame, results: Sequence[Crossing]) -> Iterator[str]:
    """The answer, a sentence or two at a time."""
    wide = table.pivot(index=["hidden", "epsilon"], columns="policy", values="benefit_kept")
    ahead, epsilon = wide[RECORD] >= wide[SOURCE], experiment.epsilon
    yield (
        "Of the two ways that the source offers, randomising the record and then deciding loses no more than deciding "
        f"by the textbook's exponential mechanism at {int(ahead.sum())} of the {len(ahead)} points of the curves."
    )
    pairs = "; ".join(
        f"{hidden.name} {percent(lookup(table, hidden.name, RECORD, epsilon))} against "
        f"{percent(lookup(table, hidden.name, SOURCE, epsilon))}"
        for hidden in experiment.hidden
    )
    yield (
        f"Benefit kept at ε = {epsilon:g} (0 % is one treatment for all, 100 % the best for each), by what is "
        f"hidden: {pairs}."
    )
    crossed = [
        f"from ε = {two_digits(one.overtaken)} on with {one.hidden.name} hidden"
        for one in sorted(results, key=lambda crossing: crossing.overtaken)
        if one.by
    ]
    never = [one.hidden.name for one in results if not one.by]
    if crossed:
        by = " or ".join(sorted({one.by for one in results if one.by}))
        yield (
            f"But noise on the decision need not be the textbook's: {by} overtakes the randomised record, "
            f"by at least a thousandth of the benefit, {', '.join(crossed)}"
            + (f"; never with {' or '.join(never)} hidden." if never else ".")
        )
    else:
        yield "No other noise on the decision that was tried overtakes the randomised record."
    short = (wide[LIMIT] - wide[RECORD]).groupby("hidden").max()
    limits = [hidden.name for hidden in experiment.hidden if short[hidden.name] < NOTABLE]
    if limits:
        yield f"With {' or '.join(limits)} hidden, the randomised record keeps what the best ε-private mechanism does."
    most = max(results, key=lambda crossing: crossing.coins)
    yield (
        f"Two coins for each feature cost ε = {most.coins:.3g} with {most.hidden.name} hidden, and keep "
        f"{percent(lookup(table, most.hidden.name, RECORD, most.coins))} of the benefit. Response on the decision "
        f"keeps as much at ε = {two_digits_up(most.same)}."
    )


def readme(experiment: Experiment, table: pd.DataFrame, results: Sequence[Crossing], rows: Sequence[Row]) -> str:
    """The findings in words, beside their numbers."""
    sets = [f"{one.name}: {', '.join(one.features).replace('_', ' ')}" for one in experiment.hidden if one.features]
    lead = "\n".join(f"- {sentence}" for sentence in findings(experiment, table, results))
    return f"""# Randomise the record, or the decision?

{lead}
- Why: randomising the record splits ε over the hidden features and lets the public ones and the prior decide the
  rest, so it is best where little is hidden. The noise of the textbook's exponential mechanism follows the largest
  effect that any hidden change can have, which almost no patient has at stake.

## The source's claim beside ours

{comparison_in_markdown(rows)}

## Which way loses less, by what must be hidden

![Benefit kept over ε, a panel for each set of hidden features. Nothing can be above the limit, the wide grey line. 0 %
is one treatment for all, which needs no privacy.](figures/{FIGURE}.svg)

## Benefit kept at ε = {experiment.epsilon:g}

{in_markdown(benefit_table(experiment, table, results))}

Hidden are, for {"; for ".join(sets)}.

## What two coins for each hidden feature cost

{in_markdown(coins_table(table, results))}

The randomised features cost ε; the treatment that is chosen from them reveals less of the record, its exact loss.
Beside it: what response on the decision and the limit keep at the same ε, and the ε at which response on the decision
keeps as much as two coins. Features with more than two levels are given the ε of two coins.

## What is assumed

Patients, treatments and utility are those of the study {experiment.study}, all {experiment.problem.n_records:,}
records, exactly: a model with illustrative effects, not medical advice. Neighbours differ in the hidden features
alone; ε bounds what the treatment adds to what the public ones reveal. In the randomised record each hidden feature
goes through k-ary response with an equal share of ε; then the treatment is chosen by expected utility under the
prior, which is public. A randomised record is private before anybody decides; the other ways need somebody who sees
the true record. `python examples/experiments/randomise_or_decide.py` writes this report.
"""


def main(experiment: Experiment | None = None, folder: Path = REPORTS / "randomise-or-decide") -> None:
    """Write the report."""
    experiment = experiment or Experiment()
    table = curves(experiment)
    results, rows = crossings(experiment, table), compare(experiment)
    coins = {hidden.name: experiment.two_coins(hidden) for hidden in experiment.hidden}
    at_coins = (table["policy"] == RECORD) & (table["epsilon"] == table["hidden"].map(coins)).astype(bool)
    write_report(folder, readme(experiment, table, results, rows), rows, draw(table.assign(two_coins=at_coins)))


if __name__ == "__main__":
    main()
