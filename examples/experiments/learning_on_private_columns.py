"""Can a classifier learn from private columns as it learns from the true ones?

A notebook on randomised response replaces age and sex by k-ary reports, and ends with the plan to train a classifier on
the result as on the true data. This lesson does so with the patients of the covid study, left untreated: some columns
are handed over as joint k-ary reports, and death or pneumonia is to be foreseen. Beside the plan stands a classifier
that corrects for what made the reports (private_columns.py).

`python examples/experiments/learning_on_private_columns.py` writes reports/learning-on-private-columns, in minutes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.ticker import LogLocator
from scipy.stats import t
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

import policysim as ps
from examples.experiments.private_columns import Array, Rows, Split, Ward, fit_corrected, reported_rows, true_rows
from examples.reporting import (
    REPORTS,
    Figures,
    Row,
    compare_claim,
    comparison_in_markdown,
    draw_lines,
    in_markdown,
    new_figure,
    write_report,
)
from policies.local import KAry
from policysim.figures import set_epsilon_axis

# 1. The question.
# What is asked of the classifier: patients whose record is known, or of whom only the report is.
KNOWN, REPORTED = "the record is known", "only the report is known"
CONSTANT, LEFT_OUT, TRUE = "the same guess for all", "columns left out", "true columns"
AS_IF_TRUE, CORRECTED, LIMIT = "reports as if true", "reports, corrected", "the limit"

# From rows to the probability of the outcome in each.
Classifier = Callable[[Rows], Array]
Classifiers = Mapping[str, Classifier]
SCORES = ("accuracy", "auc", "brier", "calibration_error")
# Bins of predictions: finer near 0, as the outcome is rare.
EDGES = np.array([0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 1])
CONFIDENCE = 0.95
# What is kept of a score: further down machines differ.
DECIMALS = 6
KEYS = ["private", "asked", "trained", "epsilon"]
# A bin with fewer outcomes, or fewer patients without it, says little.
LEAST_OUTCOMES = 10
# In the order of the tables and figures.
LINES = (AS_IF_TRUE, CORRECTED, TRUE, LEFT_OUT, LIMIT, CONSTANT)
# What is drawn of each score: its title, and which axes are logarithmic.
PANELS = {
    "error_rate": ("Error rate", "xy"),
    "auc": ("AUC", "x"),
    "brier": ("Brier score", "xy"),
    "calibration_error": ("Calibration error", "xy"),
}
# Below this a calibration error is what chance leaves of none.
LEAST_SHOWN = 5e-4
KNOWN_OF = {KNOWN: "the record", REPORTED: "the report"}
# A Brier score is no worse than another if it is at most this many times it.
NO_WORSE = 1.01
SEED = 1


@dataclass(frozen=True)
class Experiment:
    """The question, as it is put here."""

    study: str = "covid"  # the patients: a study of policies
    outcome: tuple[str, ...] = ("death", "pneumonia")  # to be foreseen: any of these, after no treatment
    patients: int = 100_000  # to learn from, and as many fresh ones to be judged by
    repeats: int = 8  # other patients and other reports each time
    epsilon: float = 1.0  # the one that the text is about, among `epsilons`
    epsilons: tuple[float, ...] = (0.5, 1.0, 2.0, 3.0, 5.0, 8.0)
    # Columns that are handed over as one joint k-ary report; the others and the outcome are known.
    private: Mapping[str, tuple[str, ...]] = field(
        default_factory=lambda: {
            "age and sex": ("age", "sex"),
            "infection, pneumonia and blood clots": ("covid_positive", "pneumonia", "blood_clots"),
        }
    )

    @cached_property
    def scenario(self) -> Any:
        """Who comes, and what becomes of them."""
        return ps.load_study(self.study).scenario


# 2. The computation: each classifier is learned, and judged on fresh patients.
@dataclass(frozen=True)
class Bins:
    """Predictions against what came true, per bin: patients, sum of predictions, outcomes; each (n_bins,)."""

    patients: Array
    predicted: Array
    outcomes: Array

    def __add__(self, other: Bins) -> Bins:
        """The bins of both."""
        return Bins(self.patients + other.patients, self.predicted + other.predicted, self.outcomes + other.outcomes)

    @property
    def calibration_error(self) -> float:
        """Expected calibration error: the mean over patients of |mean prediction - rate| of their bin.

        Naeini, Cooper & Hauskrecht (2015), Obtaining well calibrated probabilities using Bayesian binning.
        """
        return float(np.abs(self.predicted - self.outcomes).sum() / self.patients.sum())


def bins(predicted: Array, outcomes: Array, weights: Array) -> Bins:
    """Patients, (m,) rows that stand for `weights` of them each, sorted into the bins of their predictions."""
    number = np.clip(np.searchsorted(EDGES, predicted, side="right") - 1, 0, len(EDGES) - 2)
    return Bins(*(_sums(number, column) for column in (weights, weights * predicted, weights * outcomes)))


def _sums(number: Array, column: Array) -> Array:
    sums: Array = np.bincount(number, weights=column, minlength=len(EDGES) - 1).astype(np.float64, copy=False)
    return sums


def scores(predicted: Array, outcomes: Array, weights: Array) -> dict[str, float]:
    """Accuracy at 1/2, area under the ROC curve, Brier score and expected calibration error.

    Examples
    --------
    >>> rounded = scores(np.array([0.9, 0.2, 0.2]), np.array([1, 0, 1]), np.array([1.0, 1.0, 1.0]))
    >>> {name: round(value, 4) for name, value in rounded.items()}
    {'accuracy': 0.6667, 'auc': 0.75, 'brier': 0.23, 'calibration_error': 0.2333}
    """
    total = weights.sum()
    return {
        "accuracy": float(weights @ ((predicted > 0.5) == outcomes) / total),
        "auc": float(roc_auc_score(outcomes, predicted, sample_weight=weights)),
        "brier": float(weights @ (predicted - outcomes) ** 2 / total),
        "calibration_error": bins(predicted, outcomes, weights).calibration_error,
    }


@dataclass(frozen=True)
class Judged:
    """One classifier on the fresh patients of one repeat."""

    private: str  # the set of private columns
    asked: str  # `KNOWN` or `REPORTED`
    trained: str  # how
    epsilon: float  # of the reports
    scores: dict[str, float]
    bins: Bins  # its predictions


def judge_all(experiment: Experiment, seed: int = SEED) -> list[Judged]:
    """Every classifier, in every repeat, at every epsilon.

    A repeat draws its patients from a stream of its own, the same for all sets of private columns, and the reports at
    each epsilon from another one. Linear algebra runs on one thread a repeat, so that results do not depend on how
    many processors there are.
    """
    ward = Ward(experiment.scenario, experiment.outcome)
    _ = ward.chance  # computed once, before threads share it
    jobs = [(number, repeat) for number in range(len(experiment.private)) for repeat in range(experiment.repeats)]
    with threadpool_limits(1), ThreadPoolExecutor(os.cpu_count()) as pool:
        return [
            one for part in pool.map(lambda job: list(one_repeat(experiment, ward, job, seed)), jobs) for one in part
        ]


def one_repeat(experiment: Experiment, ward: Ward, job: tuple[int, int], seed: int) -> Iterator[Judged]:
    """One set of private columns, by its number, in one repeat."""
    number, repeat = job
    name = list(experiment.private)[number]
    split = Split(experiment.scenario.space, experiment.private[name])
    draws = np.random.default_rng([seed, repeat])
    learn, fresh = (ward.draw(experiment.patients, draws) for _ in range(2))
    true, known = true_rows(split, learn), true_rows(split, fresh)
    without_reports = on_true_rows(true)
    limit = exact_classifier(ward.chance_given_record(split))
    once = list(judge({**without_reports, LIMIT: limit}, known))
    for epsilon in experiment.epsilons:
        # A stream for each epsilon: another one in the study leaves these as they are.
        coins = np.random.default_rng([seed, repeat, number, round(1000 * epsilon)])
        channel = split.channel(epsilon)
        seen, reported = (reported_rows(split, patients, channel, coins) for patients in (learn, fresh))
        if_known, if_reported = on_reports(seen, channel)
        limit = exact_classifier(ward.chance_given_report(split, channel))
        results = {
            KNOWN: [*once, *judge(if_known, known)],
            REPORTED: judge({**without_reports, **if_reported, LIMIT: limit}, reported),
        }
        for asked, judgements in results.items():
            for trained, by_name, binned in judgements:
                yield Judged(name, asked, trained, epsilon, by_name, binned)


def on_true_rows(true: Rows) -> Classifiers:
    """Classifiers that no report was needed for."""
    public = logistic(true.public, true)
    everything = logistic(true.columns, true)
    return {
        CONSTANT: lambda rows: np.full(len(rows.weights), true.rate),
        LEFT_OUT: lambda rows: public(rows.public),
        TRUE: lambda rows: everything(rows.columns),
    }


def on_reports(seen: Rows, channel: KAry) -> tuple[Classifiers, Classifiers]:
    """Classifiers learned from reports: for patients whose record is known, and for those with a report alone."""
    naive = logistic(seen.columns, seen)
    corrected = fit_corrected(seen, channel.matrix)

    def as_if_true(rows: Rows) -> Array:
        return naive(rows.columns)

    return (
        {AS_IF_TRUE: as_if_true, CORRECTED: lambda rows: corrected.known(rows.public, rows.codes)},
        {AS_IF_TRUE: as_if_true, CORRECTED: lambda rows: corrected.reported(rows.public, rows.codes)},
    )


def exact_classifier(chances: Array) -> Classifier:
    """The exact probability of the outcome, from a table (public parts, codes)."""
    return lambda rows: chances[rows.parts, rows.codes]


def judge(classifiers: Classifiers, rows: Rows) -> Iterator[tuple[str, dict[str, float], Bins]]:
    """Name, scores and bins of each."""
    for name, classifier in classifiers.items():
        predicted = classifier(rows)
        yield name, scores(predicted, rows.outcomes, rows.weights), bins(predicted, rows.outcomes, rows.weights)


def logistic(columns: Array, rows: Rows) -> Callable[[Array], Array]:
    """From columns to probabilities: scikit-learn's logistic regression, default penalty, run until it converges."""
    model = LogisticRegression(max_iter=2000, tol=1e-6).fit(columns, rows.outcomes, sample_weight=rows.weights)
    return lambda others: model.predict_proba(others)[:, 1]


def score_table(judged: Sequence[Judged]) -> pd.DataFrame:
    """Mean of each score over the repeats with its 95 % t interval.

    Returns
    -------
    DataFrame
        private, asked, trained, epsilon, score, mean, low, high. The interval is that of the mean over patients and
        reports; one repeat varies by the square root of the number of repeats more.
    """
    values = pd.DataFrame(
        [
            {**{key: getattr(one, key) for key in KEYS}, "score": name, "value": one.scores[name]}
            for one in judged
            for name in SCORES
        ]
    )
    grouped = values.groupby([*KEYS, "score"], sort=False)["value"]
    table = grouped.agg(["mean", "sem", "count"]).reset_index()
    reach = table["sem"] * t.ppf((1 + CONFIDENCE) / 2, table["count"] - 1)
    table["low"], table["high"] = table["mean"] - reach, table["mean"] + reach
    rounded = ["mean", "low", "high"]
    table[rounded] = table[rounded].round(DECIMALS)
    return table[[*KEYS, "score", *rounded]]


def reliability_table(judged: Sequence[Judged], private: str, epsilon: float) -> pd.DataFrame:
    """Mean prediction and rate of the outcome per bin of predictions, over the patients of all repeats.

    Returns
    -------
    DataFrame
        asked, trained, predicted, rate, patients: bins with enough outcomes, in the order of predictions.
    """
    chosen = [one for one in judged if one.private == private and one.epsilon == epsilon]
    frames = []
    for asked, trained in dict.fromkeys((one.asked, one.trained) for one in chosen):
        total = reduce(add, (one.bins for one in chosen if (one.asked, one.trained) == (asked, trained)))
        enough = (total.outcomes >= LEAST_OUTCOMES) & (total.patients - total.outcomes >= LEAST_OUTCOMES)
        patients = total.patients[enough]
        frames.append(
            pd.DataFrame(
                {
                    "asked": asked,
                    "trained": trained,
                    "predicted": np.round(total.predicted[enough] / patients, DECIMALS),
                    "rate": np.round(total.outcomes[enough] / patients, DECIMALS),
                    "patients": patients.astype(np.intp),
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


@dataclass(frozen=True)
class Scores:
    """The table of mean scores, by name; by default at one epsilon, for patients whose record is known."""

    table: pd.DataFrame
    epsilon: float

    def row(
        self, private: str, trained: str, score: str, *, asked: str = KNOWN, epsilon: float | None = None
    ) -> pd.Series:
        """Mean and interval of one score."""
        table = self.table
        chosen = (table["private"] == private) & (table["asked"] == asked) & (table["trained"] == trained)
        chosen &= table["epsilon"] == (self.epsilon if epsilon is None else epsilon)
        return table[chosen & (table["score"] == score)].iloc[0]

    def mean(self, private: str, trained: str, score: str, **more: Any) -> float:
        """Mean of one score."""
        return float(self.row(private, trained, score, **more)["mean"])


def worth_it_from(experiment: Experiment, means: Scores, private: str) -> float | None:
    """The least epsilon from which on the corrected classifier is no worse than the two that need no correction."""
    start = None
    for epsilon in sorted(experiment.epsilons, reverse=True):
        brier = {way: means.mean(private, way, "brier", epsilon=epsilon) for way in (AS_IF_TRUE, CORRECTED, LEFT_OUT)}
        if brier[CORRECTED] > NO_WORSE * min(brier[AS_IF_TRUE], brier[LEFT_OUT]):
            return start
        start = epsilon
    return start


# 3. The tables.
def worst_columns(experiment: Experiment, means: Scores) -> str:
    """The private columns whose reports, taken as true, mislead the most."""
    return max(experiment.private, key=lambda name: means.mean(name, AS_IF_TRUE, "calibration_error"))


def compare(experiment: Experiment, means: Scores) -> list[Row]:
    """The notebook's plan beside what comes of it."""
    worst = worst_columns(experiment, means)
    error, best = (means.mean(worst, name, "calibration_error") for name in (AS_IF_TRUE, TRUE))
    return [
        compare_claim(
            "training on private columns",
            "last step, a plan",
            "as on the true data",
            "with the channel corrected for, unless reports alone are asked about later",
            holds=error <= NO_WORSE * best,
            why=f"Calibration error {error:.2g} instead of {best:.2g} ({worst}, ε = {experiment.epsilon:g}).",
        )
    ]


def scores_in_words(means: Scores, private: str) -> pd.DataFrame:
    """All scores of one set of private columns at one epsilon, each with its 95 % interval."""
    rows = []
    for asked in (KNOWN, REPORTED):
        for trained in LINES:
            values = [means.row(private, trained, score, asked=asked) for score in SCORES]
            reach = [f"{row['mean']:.4f} ± {row['high'] - row['mean']:.4f}" for row in values]
            rows.append((KNOWN_OF[asked], trained, *reach))
    headings = ["known of the patient", "trained on", "accuracy", "AUC", "Brier score", "calibration error"]
    return pd.DataFrame(rows, columns=headings)


def drawn_scores(means: Scores, private: str) -> pd.DataFrame:
    """The scores of one set of private columns over epsilon, and the error rate, as a figure draws them."""
    chosen = means.table[means.table["private"] == private].drop(columns="private")
    wrong = chosen[chosen["score"] == "accuracy"].assign(score="error_rate")
    wrong[["mean", "low", "high"]] = 1 - wrong[["mean", "high", "low"]].to_numpy()
    table = pd.concat([wrong, chosen]).rename(columns={"trained": "line", "mean": "value"})
    order = table["line"].map(LINES.index)
    return table.assign(order=order).sort_values(["asked", "score", "order", "epsilon"]).drop(columns="order")


def drawn_reliability(judged: Sequence[Judged], private: str, epsilon: float) -> pd.DataFrame:
    """The reliability of the three ways to train that are drawn."""
    table = reliability_table(judged, private, epsilon).rename(columns={"trained": "line", "rate": "value"})
    table = table[table["line"].isin(LINES[:3])]
    order = table["line"].map(LINES.index)
    return table.assign(order=order).sort_values(["asked", "order", "predicted"]).drop(columns="order")


# 4. The figures.
def draw(experiment: Experiment, means: Scores, judged: Sequence[Judged]) -> Figures:
    """The scores over epsilon for each set of private columns, and the reliability of predictions."""
    figures = {}
    for number, private in enumerate(experiment.private, 1):
        table = drawn_scores(means, private)
        titles = [f"{title}, {KNOWN_OF[asked]} known" for title, _ in PANELS.values() for asked in (KNOWN, REPORTED)]
        figure, panels = new_figure(*titles, height=11.5)
        places = [(score, asked) for score in PANELS for asked in (KNOWN, REPORTED)]
        for axes, (score, asked) in zip(panels, places, strict=True):
            rows = table[(table["score"] == score) & (table["asked"] == asked)]
            ends = {name: rows[name].clip(lower=LEAST_SHOWN) for name in ("value", "low", "high")}
            draw_lines(axes, rows.assign(**ends), "epsilon")
            set_epsilon_axis(axes, rows["epsilon"])
            if "y" in PANELS[score][1]:
                axes.set_yscale("log")
                axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axes.yaxis.set_major_formatter("{x:g}")
                axes.minorticks_off()
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
        figures[f"scores-{number}"] = figure, table
    table = drawn_reliability(judged, worst_columns(experiment, means), experiment.epsilon)
    figure, panels = new_figure(*(asked.capitalize() for asked in KNOWN_OF))
    for axes, asked in zip(panels, KNOWN_OF, strict=True):
        ends = table["predicted"].min(), table["predicted"].max()
        axes.plot(ends, ends, color="#8A8A8A", linewidth=1)
        draw_lines(axes, table[table["asked"] == asked], "predicted")
        axes.set(xscale="log", yscale="log", xlabel="predicted probability", ylabel="rate of the outcome")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_major_formatter("{x:g}")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return {**figures, "reliability": (figure, table)}


# 5. The report.
def findings(experiment: Experiment, means: Scores) -> Iterator[str]:
    """The answer, a few sentences at a time."""
    epsilon, worst = experiment.epsilon, worst_columns(experiment, means)
    error, best = (means.mean(worst, name, "calibration_error") for name in (AS_IF_TRUE, TRUE))
    if error <= NO_WORSE * best:
        yield f"Here yes, as on the true data: at ε = {epsilon:g} its predictions are calibrated as well."
    else:
        yield (
            "Taken at their word, private columns teach a classifier too little. Corrected for what made the reports, "
            "they teach it more; how much depends on the columns and on ε."
        )
    for name in sorted(experiment.private, key=lambda name: -means.mean(name, AS_IF_TRUE, "brier")):
        brier = {way: f"{means.mean(name, way, 'brier'):.4f}" for way in LINES}
        yield (
            f"Private: {name}, ε = {epsilon:g}. The Brier score (low is good; of patients whose record is known) is "
            f"{brier[AS_IF_TRUE]} with reports as if true, {brier[CORRECTED]} corrected and {brier[TRUE]} on the true "
            f"columns. It is {brier[LEFT_OUT]} without these columns, and {brier[CONSTANT]} for the same guess for "
            f"all. {advice(experiment, worth_it_from(experiment, means, name))}"
        )
    accuracy = {way: f"{100 * means.mean(worst, way, 'accuracy'):.1f} %" for way in LINES}
    yield (
        f"Accuracy hides this. With {worst} private at ε = {epsilon:g} it is {accuracy[AS_IF_TRUE]} with reports as if "
        f"true, {accuracy[CORRECTED]} corrected and {accuracy[TRUE]} on the true columns; it is "
        f"{accuracy[CONSTANT]} if the outcome is forecast for nobody."
    )
    auc = {way: f"{means.mean(worst, way, 'auc', asked=REPORTED):.2f}" for way in LINES}
    yield (
        f"If only a patient's report is known, the AUC is at most {auc[LIMIT]} however one trains "
        f"({means.mean(worst, LIMIT, 'auc'):.2f} if the record is): {auc[AS_IF_TRUE]} with reports as if true, "
        f"{auc[CORRECTED]} corrected. A classifier from true columns that is given reports is right for "
        f"{100 * means.mean(worst, TRUE, 'accuracy', asked=REPORTED):.0f} % of patients."
    )
    rate = 1 - means.mean(worst, CONSTANT, "accuracy")
    yield (
        "Why: a report that is often a lie looks like a column that hardly matters, so its effect is learned too "
        f"small, and all predictions move to the rate of the outcome, {100 * rate:.1f} %: they are off by "
        f"{100 * error:.1f} percentage points on average ({worst}, ε = {epsilon:g})."
    )


def advice(experiment: Experiment, start: float | None) -> str:
    """From which epsilon on the correction pays, in words."""
    if start is None:
        return "The correction does not pay at any of these ε."
    if start > min(experiment.epsilons):
        return (
            f"Correct them from ε = {start:g} on: the score is then no worse than with reports taken as true or the "
            "columns left out; below that the correction adds more noise than it takes away."
        )
    return "Correct them: at every ε the score is no worse than with reports taken as true or the columns left out."


def readme(experiment: Experiment, means: Scores, rows: Sequence[Row]) -> str:
    """What was means, in words, beside its numbers."""
    lead = "\n".join(f"- {sentence}" for sentence in findings(experiment, means))
    sections = "\n\n".join(
        f"""## Private: {name}, ε = {experiment.epsilon:g}

{in_markdown(scores_in_words(means, name))}

![Private: {name}. Each score over ε, a line for each way to train; on the left for patients whose record is known, on
the right for patients of whom only a report is. Bands: 95 % intervals of the mean.](figures/scores-{number}.svg)"""
        for number, name in enumerate(experiment.private, 1)
    )
    outcome = " or ".join(name.replace("_", " ") for name in experiment.outcome)
    return f"""# Can a classifier learn from private columns?

{lead}

## The source's plan beside ours

{comparison_in_markdown(rows)}

{sections}

There are {experiment.repeats} repeats, each with {experiment.patients:,} patients to learn from and as many fresh
ones; ± is the 95 % interval of the mean. The same guess for all is the rate among the patients learned from: its
accuracy is what to beat. In the figures, what is below {LEAST_SHOWN:g} is drawn there.

## Can a prediction be taken at its word?

![How many patients of those with about the same predicted probability had the outcome. On the grey line a prediction
can be taken at its word; above it patients are in more danger than the prediction says.](figures/reliability.svg)

Private: {worst_columns(experiment, means)}, ε = {experiment.epsilon:g}.

## What is assumed

Patients of the study {experiment.study}, untreated; to be foreseen: {outcome}. A model with illustrative effects, not
medical advice. All but the private columns is known as it is, the outcome too. Private columns become one joint k-ary
report a patient, ε for all of them; the seed is for simulation.

Classifiers: logistic regression (scikit-learn, its default penalty), an indicator for each level. Corrected: the same
model and penalty, and a logistic model of the private values given the public ones, both by maximum likelihood of
what was seen: the true value is summed out (Carroll et al. 2006, Measurement error in nonlinear models, chapter 8).
For a patient of whom there is only a report, it is averaged over the values that the report leaves, by Bayes. The
limit is the exact probability of the outcome given what is known of the patient: no classifier has a lower expected
Brier score. On the true columns logistic regression falls short of it, as it has no interactions of columns. Accuracy
is that at a predicted probability of one half. The calibration error is the mean distance of prediction and rate in
{len(EDGES) - 1} bins, finer near 0. The same guess for all is well calibrated, too: no score is enough alone.
`python examples/experiments/learning_on_private_columns.py` writes this report.
"""


def main(experiment: Experiment | None = None, folder: Path = REPORTS / "learning-on-private-columns") -> None:
    """Write the report."""
    experiment = experiment or Experiment()
    judged = judge_all(experiment)
    means = Scores(score_table(judged), experiment.epsilon)
    rows = compare(experiment, means)
    write_report(folder, readme(experiment, means, rows), rows, draw(experiment, means, judged))


if __name__ == "__main__":
    main()
