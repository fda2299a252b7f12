"""Can a classifier learn from private columns as it learns from the true ones?

`python examples/learning_on_private_columns.py` writes reports/learning-on-private-columns, in a few minutes. Patients
of the covid study, untreated; some columns are handed over as joint k-ary reports. private_columns.py has the parts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np
import pandas as pd
from experiment_report import Asked, run, table_section
from private_columns import Array, Rows, Split, Ward, fit_corrected, reported_rows, true_rows
from scipy.stats import t
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

import policysim as ps
from policies.local import KAry
from policysim.figures.card import Curves
from policysim.figures.described import EPSILON, Described, Lines
from policysim.question.answer import Headline
from policysim.question.protocol import SILENT, Progress
from policysim.sources.engine import Section, SourceFindings, SourceRow

# What is asked of the classifier: patients whose record is known, or of whom only the report is.
KNOWN, REPORTED = "the record is known", "only the report is known"
CONSTANT, LEFT_OUT, TRUE = "the same guess for all", "columns left out", "true columns"
REPORTS, CORRECTED, LIMIT = "reports as if true", "reports, corrected", "the limit"

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
# In the order of the lines' looks.
LINES = (REPORTS, CORRECTED, TRUE, LEFT_OUT, LIMIT, CONSTANT)
# What is drawn of each score, its vertical axis, and which axes are logarithmic.
PANELS = {
    "error_rate": ("Error rate", "1 − accuracy (log scale)", "xy"),
    "auc": ("AUC", "area under the ROC curve", "x"),
    "brier": ("Brier score", "Brier score (log scale)", "xy"),
    "calibration_error": ("Calibration error", "calibration error (log scale)", "xy"),
}
RELIABILITY = "reliability"
# Below this a calibration error is what chance leaves of none.
LEAST_SHOWN = 5e-4
KNOWN_OF = {KNOWN: "the record", REPORTED: "the report"}
ASKED = {KNOWN: "record known", REPORTED: "report alone"}
# A Brier score is no worse than another if it is at most this many times it.
NO_WORSE = 1.01


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
    place = np.clip(np.searchsorted(EDGES, predicted, side="right") - 1, 0, len(EDGES) - 2)
    return Bins(*(_sums(place, column) for column in (weights, weights * predicted, weights * outcomes)))


def _sums(place: Array, column: Array) -> Array:
    sums: Array = np.bincount(place, weights=column, minlength=len(EDGES) - 1).astype(np.float64, copy=False)
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


def judge_all(experiment: Experiment, seed: int, progress: Progress = SILENT) -> list[Judged]:
    """Every classifier, in every repeat, at every epsilon; a step is a repeat for one set of private columns.

    A repeat draws its patients from a stream of its own, the same for all sets of private columns, and the reports at
    each epsilon from another one. Linear algebra runs on one thread a repeat, so that results do not depend on how
    many processors there are.
    """
    ward = Ward(experiment.scenario, experiment.outcome)
    _ = ward.chance  # computed once, before threads share it
    jobs = [(place, repeat) for place in range(len(experiment.private)) for repeat in range(experiment.repeats)]
    progress.expect(len(jobs))
    judged: list[Judged] = []
    with threadpool_limits(1), ThreadPoolExecutor(os.cpu_count()) as pool:
        for part in pool.map(lambda job: list(one_repeat(experiment, ward, job, seed)), jobs):
            judged += part
            progress.advance()
    return judged


def one_repeat(experiment: Experiment, ward: Ward, job: tuple[int, int], seed: int) -> Iterator[Judged]:
    """One set of private columns, by its place, in one repeat."""
    place, repeat = job
    name = list(experiment.private)[place]
    split = Split(experiment.scenario.space, experiment.private[name])
    draws = np.random.default_rng([seed, repeat])
    learn, fresh = (ward.draw(experiment.patients, draws) for _ in range(2))
    true, known = true_rows(split, learn), true_rows(split, fresh)
    without_reports = on_true_rows(true)
    limit = exact_classifier(ward.chance_given_record(split))
    once = list(judge({**without_reports, LIMIT: limit}, known))
    for epsilon in experiment.epsilons:
        # A stream for each epsilon: another one in the study leaves these as they are.
        coins = np.random.default_rng([seed, repeat, place, round(1000 * epsilon)])
        channel = split.channel(epsilon)
        seen, reported = (reported_rows(split, patients, channel, coins) for patients in (learn, fresh))
        if_known, if_reported = on_reports(seen, channel)
        limit = exact_classifier(ward.chance_given_report(split, channel))
        results = {
            KNOWN: [*once, *judge(if_known, known)],
            REPORTED: judge({**without_reports, **if_reported, LIMIT: limit}, reported),
        }
        for asked, found in results.items():
            for trained, by, kept in found:
                yield Judged(name, asked, trained, epsilon, by, kept)


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
        {REPORTS: as_if_true, CORRECTED: lambda rows: corrected.known(rows.public, rows.codes)},
        {REPORTS: as_if_true, CORRECTED: lambda rows: corrected.reported(rows.public, rows.codes)},
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
    each = pd.DataFrame(
        [
            {**{key: getattr(one, key) for key in KEYS}, "score": name, "value": one.scores[name]}
            for one in judged
            for name in SCORES
        ]
    )
    grouped = each.groupby([*KEYS, "score"], sort=False)["value"]
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
    """The table of mean scores, by name, at one epsilon for patients whose record is known unless told."""

    table: pd.DataFrame
    epsilon: float

    def row(
        self, private: str, trained: str, score: str, *, asked: str = KNOWN, epsilon: float | None = None
    ) -> pd.Series:
        """Mean and interval of one score."""
        at = self.table
        chosen = (at["private"] == private) & (at["asked"] == asked) & (at["trained"] == trained)
        chosen &= at["epsilon"] == (self.epsilon if epsilon is None else epsilon)
        return at[chosen & (at["score"] == score)].iloc[0]

    def mean(self, private: str, trained: str, score: str, **more: Any) -> float:
        """Mean of one score."""
        return float(self.row(private, trained, score, **more)["mean"])


def ask(experiment: Experiment, seed: int = 1) -> Asked:
    """The experiment as a question; patients and reports are drawn from the seed."""
    return Asked(
        script="examples/learning_on_private_columns.py",
        title="Can a classifier learn from private columns?",
        source="A notebook on randomised response: it replaces age and sex by k-ary reports and ends with the plan to "
        "train a classifier on the result as on the true data. Here the patients are those of the covid study, left "
        "untreated.",
        find=lambda progress: findings(experiment, judge_all(experiment, seed, progress)),
        seed=seed,
    )


def findings(experiment: Experiment, judged: Sequence[Judged]) -> SourceFindings:
    """All that is to be said."""
    found = Scores(score_table(judged), experiment.epsilon)
    worst = max(experiment.private, key=lambda name: found.mean(name, REPORTS, "calibration_error"))
    error, best = (found.mean(worst, name, "calibration_error") for name in (REPORTS, TRUE))
    rate = 1 - found.mean(worst, CONSTANT, "accuracy")
    sections = [
        part for place, name in enumerate(experiment.private, 1) for part in by_columns(experiment, found, name, place)
    ]
    claim = SourceRow.claim(
        "training on private columns",
        "last step, a plan",
        "as on the true data",
        "with the channel corrected for, unless reports alone are asked about later",
        holds=error <= NO_WORSE * best,
        why=f"Calibration error {error:.2g} instead of {best:.2g} ({worst}, ε = {experiment.epsilon:g}).",
        drawing=RELIABILITY,
    )
    known = reliability_table(judged, worst, experiment.epsilon)
    known = known[known["asked"] == KNOWN]
    return SourceFindings(
        headline=Headline(
            "Private columns teach a classifier as well as the true data"
            if error <= NO_WORSE * best
            else "Private columns taken at their word mislead a classifier, unless what made them is corrected for",
            f"{100 * error:.1f} points",
            f"of percentage, by which the classifier's predicted probabilities are off on average ({worst} private, "
            f"ε = {experiment.epsilon:g}); {100 * best:.1f} on the true data",
        ),
        card=Curves(
            {
                name: [
                    (100 * float(one), 100 * float(other))
                    for one, other in known.loc[known["trained"] == name, ["predicted", "rate"]].itertuples(index=False)
                ]
                for name in (REPORTS, CORRECTED)
                if (known["trained"] == name).any()
            },
            x="predicted, %",
            y="patients with the outcome, %",
            log="",
            diagonal=True,
        ),
        lead=tuple(lead(experiment, found, worst)),
        rows=(claim,),
        sections=(
            Section(
                "What is lost, and why",
                (
                    "A report that is often a lie looks like a column that hardly matters, so its effect is learned "
                    f"too small, and all predictions move to the rate of the outcome, {100 * rate:.1f} %: they are off "
                    f"by {100 * error:.1f} percentage points on average ({worst}, ε = {experiment.epsilon:g}). Sum "
                    "over what the true values may have been, with the channel's known probabilities.",
                ),
            ),
            *sections,
            Section(
                "Can a prediction be taken at its word?",
                drawing=reliability_drawing(
                    f"Private: {worst}, ε = {experiment.epsilon:g}. How many patients of those with about the same "
                    "predicted probability had the outcome. On the grey line a prediction can be taken at its word; "
                    "above it patients are in more danger than they are told.",
                    ordered(reliability_table(judged, worst, experiment.epsilon), "predicted"),
                ),
            ),
        ),
        assumptions=assumptions(experiment),
    )


def lead(experiment: Experiment, found: Scores, worst: str) -> Iterator[str]:
    """The answer."""
    at = experiment.epsilon
    error, best = (found.mean(worst, name, "calibration_error") for name in (REPORTS, TRUE))
    if error <= NO_WORSE * best:
        yield f"Here yes, as on the true data: at ε = {at:g} its predictions are calibrated as well."
    else:
        yield (
            "Taken at their word, private columns teach a classifier too little. Corrected for what made the reports, "
            "they teach it more; how much depends on the columns and on ε."
        )
    for name in sorted(experiment.private, key=lambda name: -found.mean(name, REPORTS, "brier")):
        brier = {way: f"{found.mean(name, way, 'brier'):.4f}" for way in LINES}
        yield (
            f"Private: {name}, ε = {at:g}. The Brier score (low is good; of patients whose record is known) is "
            f"{brier[REPORTS]} with reports as if true, {brier[CORRECTED]} corrected and {brier[TRUE]} on the true "
            f"columns. It is {brier[LEFT_OUT]} without these columns, and {brier[CONSTANT]} for the same guess for "
            "all. " + advice(experiment, worth_it_from(experiment, found, name))
        )
    accuracy = {way: f"{100 * found.mean(worst, way, 'accuracy'):.1f} %" for way in LINES}
    yield (
        f"Accuracy hides this. With {worst} private at ε = {at:g} it is {accuracy[REPORTS]} with reports as if true, "
        f"{accuracy[CORRECTED]} corrected and {accuracy[TRUE]} on the true columns; it is {accuracy[CONSTANT]} if the "
        "outcome is forecast for nobody."
    )
    auc = {way: f"{found.mean(worst, way, 'auc', asked=REPORTED):.2f}" for way in LINES}
    yield (
        f"If only a patient's report is known, the AUC is at most {auc[LIMIT]} however one trains "
        f"({found.mean(worst, LIMIT, 'auc'):.2f} if the record is): {auc[REPORTS]} with reports as if true, "
        f"{auc[CORRECTED]} corrected. A classifier from true columns that is given reports is right for "
        f"{100 * found.mean(worst, TRUE, 'accuracy', asked=REPORTED):.0f} % of patients."
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


def worth_it_from(experiment: Experiment, found: Scores, private: str) -> float | None:
    """The least epsilon from which on the corrected classifier is no worse than the two that need no correction."""
    start = None
    for epsilon in sorted(experiment.epsilons, reverse=True):
        brier = {way: found.mean(private, way, "brier", epsilon=epsilon) for way in (REPORTS, CORRECTED, LEFT_OUT)}
        if brier[CORRECTED] > NO_WORSE * min(brier[REPORTS], brier[LEFT_OUT]):
            return start
        start = epsilon
    return start


def by_columns(experiment: Experiment, found: Scores, private: str, place: int) -> Iterator[Section]:
    """The scores of one set of private columns: at the epsilon of the text, and over epsilon."""
    rows = []
    for asked in (KNOWN, REPORTED):
        for trained in LINES:
            values = [found.row(private, trained, score, asked=asked) for score in SCORES]
            reach = [f"{row['mean']:.4f} ± {row['high'] - row['mean']:.4f}" for row in values]
            rows.append((KNOWN_OF[asked], trained, *reach))
    headings = ["known of the patient", "trained on", "accuracy", "AUC", "Brier score", "calibration error"]
    yield table_section(
        f"Private: {private}, ε = {experiment.epsilon:g}",
        f"{experiment.repeats} repeats, each with {experiment.patients:,} patients to learn from and as many fresh "
        "ones; ± is the 95 % interval of the mean. The same guess for all is the rate among the patients learned "
        "from: its accuracy is what to beat.",
        pd.DataFrame(rows, columns=headings),
    )
    chosen = found.table[found.table["private"] == private].drop(columns="private")
    wrong = chosen[chosen["score"] == "accuracy"].assign(score="error_rate")
    wrong[["mean", "low", "high"]] = 1 - wrong[["mean", "high", "low"]].to_numpy()
    numbers = ordered(pd.concat([wrong, chosen]).rename(columns={"mean": "rate"}), "epsilon", "score")
    yield Section(f"Over ε: {private}", drawing=scores_drawing(f"scores-{place}", private, numbers))


def ordered(table: pd.DataFrame, x: str, *first: str) -> pd.DataFrame:
    """The table of a figure: lines in the order of their looks, values by the name "value"."""
    table = table.rename(columns={"trained": "line", "rate": "value"})
    if x == "predicted":
        table = table[table["line"].isin(LINES[:3])]
    place = table["line"].map(LINES.index)
    return table.assign(place=place).sort_values(["asked", *first, "place", x]).drop(columns="place")


def assumptions(experiment: Experiment) -> tuple[str, ...]:
    """What is taken for granted, and how this was computed."""
    outcome = " or ".join(name.replace("_", " ") for name in experiment.outcome)
    return (
        f"Patients of the study {experiment.study}, untreated; to be foreseen: {outcome}. A model with illustrative "
        "effects, not medical advice. All but the private columns is known as it is, the outcome too.",
        "Private columns become one joint k-ary report a patient, ε for all of them. The seed is for simulation: a "
        "release draws from the operating system.",
        "Classifiers: logistic regression (scikit-learn, its default penalty), an indicator for each level. Corrected: "
        "the same model and penalty, and a logistic model of the private values given the public ones, both by maximum "
        "likelihood of what was seen: the true value is summed out (Carroll et al. 2006, Measurement error in "
        "nonlinear models, chapter 8). For a patient of whom there is only a report, it is averaged over the values "
        "that the report leaves, by Bayes.",
        "The limit: the exact probability of the outcome given what is known of the patient, from the model. No "
        "classifier has a lower expected Brier score; on the true columns logistic regression falls short of it as it "
        "has no interactions of columns.",
        "Accuracy: at a predicted probability of one half. Calibration error: mean distance of prediction and rate in "
        "16 bins, finer near 0. The same guess for all is well calibrated too: no score is enough alone.",
    )


def scores_drawing(name: str, private: str, table: pd.DataFrame) -> Described:
    """A row of panels for each score, a column for each question."""
    panels = []
    for score, (title, label, log) in PANELS.items():
        drawn = table.loc[table["score"] == score, ["low", "high"]].clip(lower=LEAST_SHOWN)
        least, most = float(drawn["low"].min()), float(drawn["high"].max())
        limits = (least / 1.1, most * 1.1) if "y" in log else (least - 0.02, most + 0.02)
        panels += [
            Lines(
                f"{title}, {words}",
                EPSILON,
                label,
                only={"score": score, "asked": asked},
                log=log,
                limits=limits,
                least=LEAST_SHOWN,
            )
            for asked, words in ASKED.items()
        ]
    description = (
        f"Private: {private}. Error rate (1 − accuracy), area under the ROC curve, Brier score and expected "
        "calibration error against ε, a line for each way to train; on the left for patients whose record is known, "
        "on the right for patients of whom only a report is. Bands: 95 % intervals of the mean over the repeats. Low "
        f"values are good, but high ones of the AUC; what is below {LEAST_SHOWN:g} is drawn there."
    )
    keys = ["asked", "score", "epsilon"]
    # What is drawn, column by column of the figure.
    drawn = pd.MultiIndex.from_product([ASKED, PANELS, sorted(set(table["epsilon"]))], names=keys)
    shown = in_words(table.pivot_table("value", keys, "line", sort=False).loc[drawn].reset_index())
    return Described(name, description, table, tuple(panels), height=11.5, across=len(ASKED), shown=shown)


def in_words(table: pd.DataFrame) -> pd.DataFrame:
    """The table below a figure, with the words of the other tables."""
    names = {"asked": "known of the patient", "line": "trained on", "value": "rate", "epsilon": "ε"}
    words = {"asked": KNOWN_OF, "score": {score: title for score, (title, *_) in PANELS.items()}}
    return table.replace(words).rename(columns=names)


def reliability_drawing(description: str, table: pd.DataFrame) -> Described:
    """Rate of the outcome against what was predicted."""
    seen = table[["predicted", "value"]]
    ends = float(seen.min().min()), float(seen.max().max())
    labels = ("predicted probability (log scale)", "rate of the outcome (log scale)")
    panels = tuple(
        Lines(
            asked[0].upper() + asked[1:],
            *labels,
            x="predicted",
            only={"asked": asked},
            log="xy",
            limits=(ends[0] / 1.2, ends[1] * 1.2),
            diagonal=ends,
        )
        for asked in ASKED
    )
    shown = in_words(pd.concat([table[table["asked"] == asked] for asked in ASKED]))
    return Described(RELIABILITY, description, table, panels, shown=shown)


if __name__ == "__main__":
    sys.exit(run(lambda seed: ask(Experiment(), seed)))
