"""Randomise the record and then decide, or decide and randomise the decision?

`python examples/randomise_or_decide.py` writes reports/randomise-or-decide, in a few minutes. Exact curves of benefit
over epsilon, for each set of features that the published treatment must hide.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd
from experiment_report import Asked, run, table_section
from matplotlib.axes import Axes
from scipy.optimize import brentq

import policysim as ps
from policies.local import TwoCoin
from policysim.figures import looks, set_epsilon_axis
from policysim.figures.card import Curves
from policysim.figures.curves import draw_policies
from policysim.figures.described import Described
from policysim.question.answer import Headline
from policysim.question.formats import rounded_up
from policysim.question.protocol import SILENT, Progress
from policysim.sources.engine import Section, SourceFindings, SourceRow

# The exponential mechanism, as the source has it (sensitivity of raw utilities) and calibrated exactly.
SOURCE = ("exponential", "exponential-tight")
RECORD, RESPONSE, LIMIT = "randomized-features", "randomized-response", "optimal"
# What else can be done to a decision.
OTHERS = ("exponential-capped", RESPONSE)
POLICIES = (RECORD, *SOURCE, *OTHERS, LIMIT)
# Less is no reason to choose: a tenth of a percent of the benefit.
NOTABLE = 1e-3
# Relative accuracy of the epsilon where one way overtakes the other.
ACCURACY = 0.01
FIGURE = "benefit-by-hidden-features"
LABELS = {RECORD: "randomized-features: the record", LIMIT: "optimal (the limit)"}
# The limit is a wide pale line: others that reach it are seen on it.
WIDE: dict[str, Any] = {"linewidth": 5, "alpha": 0.3, "markersize": 0, "zorder": 1}
STAR: dict[str, Any] = {
    "color": "white",
    "marker": "*",
    "markersize": 13,
    "markeredgecolor": "black",
    "linestyle": "none",
    "zorder": 5,
}
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
    overtaken: (
        float  # the epsilon from which noise on the decision keeps notably more than the randomised record; or inf
    )
    by: str  # what overtakes it, "" if nothing does
    coins: float  # epsilon of two coins for each hidden feature
    same: float  # the epsilon at which response on the decision keeps as much as these coins; inf if none does


def curves(experiment: Experiment, progress: Progress = SILENT) -> pd.DataFrame:
    """hidden, policy, epsilon, benefit_kept, epsilon_spent (of the published treatment), the two coins included."""
    frames = []
    progress.expect(len(experiment.hidden))
    for hidden in experiment.hidden:
        epsilons = sorted({*map(float, experiment.epsilons), experiment.epsilon, experiment.two_coins(hidden)})
        table = ps.compare(experiment.problem_of(hidden), policies=POLICIES, epsilons=epsilons)
        frames.append(table[["policy", "epsilon", "benefit_kept", "epsilon_spent"]].assign(hidden=hidden.name))
        progress.advance()
    return pd.concat(frames, ignore_index=True)[["hidden", "policy", "epsilon", "benefit_kept", "epsilon_spent"]]


def kept(table: pd.DataFrame, hidden: str, policy: str, epsilon: float, column: str = "benefit_kept") -> float:
    """Benefit kept, or another column, at a point of the curves."""
    chosen = (table["hidden"] == hidden) & (table["policy"] == policy) & (table["epsilon"] == epsilon)
    return float(table.loc[chosen, column].item())


def crossings(experiment: Experiment, table: pd.DataFrame, progress: Progress = SILENT) -> list[Crossing]:
    """Where curves cross, for each hidden set."""

    def find(hidden: Hidden) -> Crossing:
        problem, coins = experiment.problem_of(hidden), experiment.two_coins(hidden)
        overtaken, by = overtaking(problem, table[table["hidden"] == hidden.name])
        try:
            same = ps.smallest_epsilon(problem, RESPONSE, keep=kept(table, hidden.name, RECORD, coins))
        except ValueError:  # no epsilon keeps as much
            same = math.inf
        return Crossing(hidden, overtaken, by, coins, same)

    progress.expect(len(experiment.hidden))
    found = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for crossing in pool.map(find, experiment.hidden):
            found.append(crossing)
            progress.advance()
    return found


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


def ask(experiment: Experiment, seed: int = 1) -> Asked:
    """The experiment as a question. Nothing is drawn at random."""

    def find(progress: Progress) -> SourceFindings:
        table = curves(experiment, progress)
        return findings(experiment, table, crossings(experiment, table, progress))

    return Asked(
        script="examples/randomise_or_decide.py",
        title="Randomise the record, or the decision?",
        source="The report behind the covid study: it protects the table of patients by two coins for each answer, or "
        "chooses treatments by the exponential mechanism, and does not say which loses less.",
        find=find,
        seed=seed,
    )


def findings(experiment: Experiment, table: pd.DataFrame, found: Sequence[Crossing]) -> SourceFindings:
    """All that is to be said."""
    coins = {hidden.name: experiment.two_coins(hidden) for hidden in experiment.hidden}
    at_coins = (table["policy"] == RECORD) & (table["epsilon"] == table["hidden"].map(coins)).astype(bool)
    cost = experiment.coins.epsilon
    claim = SourceRow.claim(
        "two coins for each feature of a record: ε",
        "text: “0-differential privacy”",
        "0",
        f"{len(experiment.features)} × {cost:.4f} = {len(experiment.features) * cost:.2f}",
        holds=cost == 0,
        why="Losses of independent answers about one person add up.",
    )
    wide = table.pivot(index=["hidden", "epsilon"], columns="policy", values="benefit_kept")
    ahead = int((wide[RECORD] >= wide[list(SOURCE)].max(axis=1)).sum())
    first = experiment.hidden[0].name
    return SourceFindings(
        headline=Headline(
            f"Randomising the record loses no more than the exponential mechanism at {ahead} of {len(wide)} points",
            percent(kept(table, first, RECORD, experiment.epsilon)),
            f"of the benefit kept at ε = {experiment.epsilon:g} by randomising the {first}; by the exponential "
            f"mechanism, {percent(max(kept(table, first, name, experiment.epsilon) for name in SOURCE))}",
        ),
        card=Curves(
            {
                words: [(epsilon, float(share)) for epsilon, share in wide.loc[first, name].items()]
                for name, words in ((RECORD, "the record"), (SOURCE[-1], "the decision"))
            },
            x="ε (log scale)",
            y=f"benefit kept, {first} hidden",
            share=True,
        ),
        lead=tuple(lead(experiment, table, found)),
        rows=(claim,),
        sections=(
            Section(
                "Which way loses less, by what must be hidden",
                drawing=drawing(table.assign(two_coins=at_coins)),
            ),
            *tables(experiment, table, found),
        ),
        assumptions=(
            f"Patients, treatments and utility: the study {experiment.study}, all {experiment.problem.n_records:,} "
            "records, exactly; no patient is sampled. A model with illustrative effects, not medical advice.",
            "Neighbours differ in the hidden features alone; all other features are public. What goes with public "
            "features can be guessed from them (an infection from its symptoms): ε bounds what the treatment adds.",
            "The randomised record (randomized-features): every hidden feature through k-ary response with an equal "
            "share of ε, then the treatment of highest expected utility under the prior, which is public and trusted. "
            "Response on the decision (randomized-response) uses no prior.",
            "A randomised record is private before anybody decides; the other ways need somebody who sees the true "
            "record. Where nobody may, they are no alternative.",
            "Features with more than two levels, for which two coins are no answer, are given the ε of two coins.",
        ),
    )


def lead(experiment: Experiment, table: pd.DataFrame, found: Sequence[Crossing]) -> Iterator[str]:
    """The answer."""
    wide = table.pivot(index=["hidden", "epsilon"], columns="policy", values="benefit_kept")
    ahead, at = wide[RECORD] >= wide[list(SOURCE)].max(axis=1), experiment.epsilon
    pairs = "; ".join(
        f"{hidden.name} {percent(kept(table, hidden.name, RECORD, at))} against "
        f"{percent(max(kept(table, hidden.name, name, at) for name in SOURCE))}"
        for hidden in experiment.hidden
    )
    yield (
        "Of the two ways that the source offers, randomising the record and then deciding loses no more than deciding "
        f"by the exponential mechanism at {int(ahead.sum())} of the {len(ahead)} points of the curves."
    )
    yield (
        f"Benefit kept at ε = {at:g} (0 % is one treatment for all, 100 % the best for each), with the exponential "
        f"mechanism exactly calibrated, by what is hidden: {pairs}."
    )
    ordered = sorted(found, key=lambda crossing: crossing.overtaken)
    crossed = [f"from ε = {two_digits(one.overtaken)} on with {one.hidden.name} hidden" for one in ordered if one.by]
    never = [one.hidden.name for one in ordered if not one.by]
    if crossed:
        by = " or ".join(sorted({one.by for one in found if one.by}))
        yield (
            f"But noise on the decision need not be the exponential mechanism's: {by} overtakes the randomised record, "
            f"by at least a thousandth of the benefit, {', '.join(crossed)}"
            + (f"; never with {' or '.join(never)} hidden." if never else ".")
        )
    else:
        yield "No other noise on the decision that was tried overtakes the randomised record."
    short = (wide[LIMIT] - wide[RECORD]).groupby("hidden").max()
    limits = [hidden.name for hidden in experiment.hidden if short[hidden.name] < NOTABLE]
    if limits:
        yield f"With {' or '.join(limits)} hidden, the randomised record keeps what the best ε-private mechanism does."
    most = max(found, key=lambda crossing: crossing.coins)
    yield (
        f"Two coins for each feature cost ε = {most.coins:.3g} with {most.hidden.name} hidden, and keep "
        f"{percent(kept(table, most.hidden.name, RECORD, most.coins))} of the benefit. Response on the decision keeps "
        f"as much at ε = {rounded_up(most.same)}."
    )
    yield (
        "Why: randomising the record splits ε over the hidden features and lets the public ones and the prior decide "
        "the rest, so it is best where little is hidden. The exponential mechanism's noise follows the largest effect "
        "that any hidden change can have, which almost no patient has at stake."
    )


def tables(experiment: Experiment, table: pd.DataFrame, found: Sequence[Crossing]) -> Iterator[Section]:
    """Benefit at the epsilon of the text, and what two coins cost."""
    at = experiment.epsilon
    rows = [
        {
            "hidden": one.hidden.name,
            **{name: percent(kept(table, one.hidden.name, name, at)) for name in POLICIES},
            "overtaken from ε": two_digits(one.overtaken) if one.by else "never",
        }
        for one in found
    ]
    sets = [f"{one.name}: {', '.join(one.features).replace('_', ' ')}" for one in experiment.hidden if one.features]
    words = f"What is hidden is, for {'; for '.join(sets)}."
    yield table_section(f"Benefit kept at ε = {at:g}", words, pd.DataFrame(rows))
    rows = [
        {
            "hidden": one.hidden.name,
            "ε": f"{one.coins:.2f}",
            "kept": percent(kept(table, one.hidden.name, RECORD, one.coins)),
            "exact loss of the treatment": two_digits(kept(table, one.hidden.name, RECORD, one.coins, "epsilon_spent")),
            **{name: percent(kept(table, one.hidden.name, name, one.coins)) for name in (RESPONSE, LIMIT)},
            "same benefit at ε": rounded_up(one.same),
        }
        for one in found
    ]
    words = (
        "The randomised features cost ε; the treatment chosen from them reveals less of the record, its exact loss. "
        "Beside it, what response on the decision and the limit keep at the same ε, and the ε at which response on the "
        "decision keeps as much as two coins."
    )
    yield table_section("What two coins for each hidden feature cost", words, pd.DataFrame(rows))


@dataclass(frozen=True)
class HiddenPanel:
    """Benefit kept over epsilon where one set of features is hidden: a line for each policy."""

    hidden: str
    limits: tuple[float, float]  # of the vertical axis, per cent

    def draw(self, axes: Axes, table: pd.DataFrame) -> None:
        """Draw the set's rows on the axes."""
        rows = table[table["hidden"] == self.hidden]
        axes.axhline(0, color="#555555", linewidth=1, label="one treatment for all")
        draw_policies(axes, rows, "benefit_kept", looks=looks(POLICIES), scale=100, labels=LABELS)
        for line in axes.get_lines():
            if line.get_label() == LABELS[LIMIT]:
                line.set(**WIDE)
        stars = rows[rows["two_coins"]]
        axes.plot(stars["epsilon"], 100 * stars["benefit_kept"], label="two coins for each hidden feature", **STAR)
        set_epsilon_axis(axes, rows["epsilon"])
        axes.set_ylim(*self.limits)
        axes.set_ylabel("benefit kept, %")
        axes.set_title(f"Hidden: {self.hidden}", loc="left", fontweight="bold")


def drawing(table: pd.DataFrame) -> Described:
    """A panel for each hidden set; the page has the benefit at each epsilon, a column for each policy."""
    limits = 100 * float(table["benefit_kept"].min()) - 5, 105.0
    panels = tuple(HiddenPanel(hidden, limits) for hidden in dict.fromkeys(table["hidden"]))
    shown = table.assign(benefit_kept=table["benefit_kept"].map(percent))
    shown = shown.pivot(index=["hidden", "epsilon"], columns="policy", values="benefit_kept")[list(POLICIES)]
    description = (
        "Benefit kept against ε, a panel for each set of hidden features. randomized-features: the record is "
        "randomised, then decided on. exponential and exponential-tight: the exponential mechanism, as the source has "
        "it and calibrated exactly. exponential-capped and randomized-response: other noise on the decision. 0 % is "
        "one treatment for all, which needs no privacy; nothing can be above the limit, the wide grey line. Stars: two "
        "coins for each hidden feature."
    )
    order = shown.reindex(list(dict.fromkeys(table["hidden"])), level="hidden").reset_index()
    return Described(FIGURE, description, table, panels, height=10.0, across=2, shown=order)


def percent(share: float) -> str:
    """A whole percentage."""
    return f"{round(100 * share)}\u00a0%".replace("-", "−")


def two_digits(value: float) -> str:
    """Two significant digits."""
    return "∞" if math.isinf(value) else f"{value:#.2g}".rstrip(".")


if __name__ == "__main__":
    sys.exit(run(lambda seed: ask(Experiment(), seed)))
