"""Train on true, private and corrected columns, over and over, and judge by fresh patients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from policies.arrays import FloatArray
from policies.local import KAry
from policysim.sources.learning import Constants
from policysim.sources.learning_correction import fit_corrected
from policysim.sources.learning_patients import Split, Ward
from policysim.sources.learning_rows import Rows, reported_rows, true_rows
from policysim.sources.learning_scores import Bins, bins, scores
from policysim.sweep import N_THREADS

# What is asked of the classifier: patients whose record is known, or of whom only the report is.
KNOWN, REPORTED = "the record is known", "only the report is known"
CONSTANT, LEFT_OUT, TRUE = "the same guess for all", "columns left out", "true columns"
REPORTS, CORRECTED, LIMIT = "reports as if true", "reports, corrected", "the limit"

# From rows to the probability of the outcome in each.
Classifier = Callable[[Rows], FloatArray]
Classifiers = Mapping[str, Classifier]


@dataclass(frozen=True)
class Judged:
    """One classifier on the fresh patients of one repeat.

    Attributes
    ----------
    private, asked, trained : str
        The set of private columns, `KNOWN` or `REPORTED`, and how it was trained.
    epsilon : float
        Of the reports.
    scores : dict
        By name.
    bins : Bins
        Its predictions.
    """

    private: str
    asked: str
    trained: str
    epsilon: float
    scores: dict[str, float]
    bins: Bins


def number_of_steps(constants: Constants) -> int:
    """How often `judge_all` will call `advance`."""
    return len(constants.private) * constants.repeats * len(constants.epsilons)


def judge_all(constants: Constants, seed: int, advance: Callable[[], object] = lambda: None) -> list[Judged]:
    """Every classifier, in every repeat, at every epsilon.

    A repeat draws its patients from a stream of its own, the same for all sets of private columns, and the reports at
    each epsilon from another one. Linear algebra runs on one thread a repeat, so that results do not depend on how
    many processors there are.
    """
    ward = Ward(constants.scenario, constants.outcome)
    ward.prepare()
    jobs = [(place, repeat) for place in range(len(constants.private)) for repeat in range(constants.repeats)]
    with threadpool_limits(1), ThreadPoolExecutor(N_THREADS) as pool:
        parts = pool.map(lambda job: list(_one_repeat(constants, ward, job, seed, advance)), jobs)
        return [judged for part in parts for judged in part]


def _one_repeat(
    constants: Constants, ward: Ward, job: tuple[int, int], seed: int, advance: Callable[[], object]
) -> Iterator[Judged]:
    """One set of private columns, by its place, in one repeat."""
    place, repeat = job
    name = constants.private[place].name
    split = Split(constants.scenario.space, constants.private[place].columns)
    draws = np.random.default_rng([seed, repeat])
    learn, fresh = (ward.draw(constants.patients, draws) for _ in range(2))
    true, known = true_rows(split, learn), true_rows(split, fresh)
    without_reports = on_true_rows(true)
    limit = exact_classifier(ward.chance_given_record(split))
    once = list(judge({**without_reports, LIMIT: limit}, known))
    for epsilon in constants.epsilons:
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
        advance()


def on_true_rows(true: Rows) -> Classifiers:
    """Classifiers that no report was needed for."""
    public = _logistic(true.public, true)
    everything = _logistic(true.columns, true)
    return {
        CONSTANT: lambda rows: np.full(len(rows.weights), true.rate),
        LEFT_OUT: lambda rows: public(rows.public),
        TRUE: lambda rows: everything(rows.columns),
    }


def on_reports(seen: Rows, channel: KAry) -> tuple[Classifiers, Classifiers]:
    """Classifiers learned from reports: for patients whose record is known, and for those with a report alone."""
    naive = _logistic(seen.columns, seen)
    corrected = fit_corrected(seen, channel.matrix)

    def as_if_true(rows: Rows) -> FloatArray:
        return naive(rows.columns)

    return (
        {REPORTS: as_if_true, CORRECTED: lambda rows: corrected.known(rows.public, rows.codes)},
        {REPORTS: as_if_true, CORRECTED: lambda rows: corrected.reported(rows.public, rows.codes)},
    )


def exact_classifier(chances: FloatArray) -> Classifier:
    """The exact probability of the outcome, from a table (public parts, codes)."""
    return lambda rows: chances[rows.parts, rows.codes]


def judge(classifiers: Classifiers, rows: Rows) -> Iterator[tuple[str, dict[str, float], Bins]]:
    """Name, scores and bins of each."""
    for name, classifier in classifiers.items():
        predicted = classifier(rows)
        yield name, scores(predicted, rows.outcomes, rows.weights), bins(predicted, rows.outcomes, rows.weights)


def _logistic(columns: FloatArray, rows: Rows) -> Callable[[FloatArray], FloatArray]:
    """From columns to probabilities: scikit-learn's logistic regression, default penalty, run until it converges."""
    # scikit-learn takes half a second to import, which no other study needs.
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    model = LogisticRegression(max_iter=2000, tol=1e-6).fit(columns, rows.outcomes, sample_weight=rows.weights)
    return lambda others: model.predict_proba(others)[:, 1]
