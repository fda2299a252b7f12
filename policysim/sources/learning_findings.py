"""What the study of learning on private columns says."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from policysim.console import progress_bar
from policysim.sources.learning import PLAN, Constants, Private
from policysim.sources.learning_drawings import LINES, RELIABILITY, reliability_drawing, scores_drawing
from policysim.sources.learning_runs import (
    CONSTANT,
    CORRECTED,
    KNOWN,
    LEFT_OUT,
    LIMIT,
    REPORTED,
    REPORTS,
    TRUE,
    judge_all,
    number_of_steps,
)
from policysim.sources.learning_scores import SCORES
from policysim.sources.learning_summary import reliability_table, score_table
from policysim.sources.model import Erratum, Findings, Section
from policysim.sources.rows import claim_rows
from policysim.words import rounded

KNOWN_OF = {KNOWN: "the record", REPORTED: "the report"}
# A Brier score is no worse than another if it is at most this many times it.
NO_WORSE = 1.01


@dataclass(frozen=True)
class Scores:
    """The table of mean scores, by name."""

    table: pd.DataFrame

    def row(self, private: str, asked: str, trained: str, epsilon: float, score: str) -> pd.Series:
        """Mean and interval of one score."""
        at = self.table
        chosen = (at["private"] == private) & (at["asked"] == asked) & (at["trained"] == trained)
        return at[chosen & (at["epsilon"] == epsilon) & (at["score"] == score)].iloc[0]

    def mean(self, private: str, asked: str, trained: str, epsilon: float, score: str) -> float:
        """Mean of one score."""
        return float(self.row(private, asked, trained, epsilon, score)["mean"])


def analyse(constants: Constants, seed: int) -> Findings:
    """All that the page shows; patients and reports are drawn from the seed."""
    with progress_bar() as bar:
        bar.expect(number_of_steps(constants))
        judged = judge_all(constants, seed, bar.advance)
    found = Scores(score_table(judged))
    worst = max(constants.private, key=lambda one: _naive(constants, found, one, "calibration_error"))
    reliability = reliability_table(judged, worst.name, constants.epsilon)
    sections = []
    for place, private in enumerate(constants.private):
        drawing = scores_drawing(f"scores-{place + 1}", private.name, found.table)
        sections += [_table(constants, found, private), Section(f"Over ε: {private.name}", drawing=drawing)]
    drawing = reliability_drawing(worst.name, constants.epsilon, reliability)
    return Findings(
        lead=_lead(constants, found, worst),
        rows=tuple(claim_rows(constants.claims, {PLAN: _plan(constants, found, worst)})),
        errata=(_erratum(constants, found, worst),),
        sections=(*sections, Section("Can a prediction be taken at its word?", drawing=drawing)),
        assumptions=_assumptions(constants),
    )


def _naive(constants: Constants, found: Scores, private: Private, score: str) -> float:
    return found.mean(private.name, KNOWN, REPORTS, constants.epsilon, score)


def _lead(constants: Constants, found: Scores, worst: Private) -> tuple[str, ...]:
    at = constants.epsilon

    def mean(asked: str, trained: str, score: str) -> float:
        return found.mean(worst.name, asked, trained, at, score)

    accuracy = {name: f"{100 * mean(KNOWN, name, 'accuracy'):.1f} %" for name in (CONSTANT, REPORTS, CORRECTED, TRUE)}
    ordered = sorted(constants.private, key=lambda one: -_naive(constants, found, one, "brier"))
    return (
        _answer(constants, found, worst),
        *(_by_columns(constants, found, private) for private in ordered),
        f"Accuracy hides this: with {worst.name} private at ε = {at:g} it is {accuracy[REPORTS]} for reports as if "
        f"true, {accuracy[CORRECTED]} corrected, {accuracy[TRUE]} on the true columns, and {accuracy[CONSTANT]} for "
        "who foresees the outcome for nobody.",
        f"Where only the report of a patient is known, the AUC is at most {mean(REPORTED, LIMIT, 'auc'):.2f} however "
        f"one trains ({mean(KNOWN, LIMIT, 'auc'):.2f} where the record is): {mean(REPORTED, REPORTS, 'auc'):.2f} with "
        f"reports as if true, {mean(REPORTED, CORRECTED, 'auc'):.2f} corrected. A classifier from true columns that is "
        f"given reports is right for {100 * mean(REPORTED, TRUE, 'accuracy'):.0f} % of patients.",
    )


def _answer(constants: Constants, found: Scores, worst: Private) -> str:
    _, holds, _ = _plan(constants, found, worst)
    if holds:
        return f"Here yes, as on the true data: at ε = {constants.epsilon:g} its predictions are calibrated as well."
    return (
        "Not as on the true data: taken at their word, private columns teach it too little. It can if what made the "
        "reports is corrected for, and how well depends on the columns and on ε."
    )


def _by_columns(constants: Constants, found: Scores, private: Private) -> str:
    brier = {
        name: f"{found.mean(private.name, KNOWN, name, constants.epsilon, 'brier'):.4f}"
        for name in (REPORTS, CORRECTED, TRUE, LEFT_OUT, CONSTANT)
    }
    start = worth_it_from(constants, found, private)
    advice = (
        f"Correct them from ε = {start:g} on: the score is then no worse than with reports taken as true or the "
        "columns left out; below that the correction adds more noise than it takes away."
        if start is not None and start > constants.epsilons[0]
        else "Correct them: at every ε the score is no worse than with reports taken as true or the columns left out."
        if start is not None
        else "The correction does not pay at any of these ε."
    )
    return (
        f"Private: {private.name}, ε = {constants.epsilon:g}. For patients whose record is known, the Brier score is "
        f"{brier[REPORTS]} if reports are taken as true, {brier[CORRECTED]} if the channel is corrected for, "
        f"{brier[TRUE]} on the true columns, {brier[LEFT_OUT]} with the columns left out, and {brier[CONSTANT]} for "
        f"the same guess for all. {advice}"
    )


def worth_it_from(constants: Constants, found: Scores, private: Private) -> float | None:
    """The least epsilon from which on the corrected classifier is no worse than the two that need no correction."""
    start = None
    for epsilon in reversed(constants.epsilons):
        brier = {
            name: found.mean(private.name, KNOWN, name, epsilon, "brier") for name in (REPORTS, CORRECTED, LEFT_OUT)
        }
        if brier[CORRECTED] > NO_WORSE * min(brier[REPORTS], brier[LEFT_OUT]):
            return start
        start = epsilon
    return start


def _plan(constants: Constants, found: Scores, worst: Private) -> tuple[str, bool, str]:
    error, best = (
        found.mean(worst.name, KNOWN, name, constants.epsilon, "calibration_error") for name in (REPORTS, TRUE)
    )
    return (
        "with the channel corrected for, unless reports alone are asked about later",
        error <= NO_WORSE * best,
        f"Calibration error {rounded(error)} instead of {rounded(best)} ({worst.name}, ε = {constants.epsilon:g}).",
    )


def _erratum(constants: Constants, found: Scores, worst: Private) -> Erratum:
    error, rate = (
        found.mean(worst.name, KNOWN, name, constants.epsilon, score)
        for name, score in ((REPORTS, "calibration_error"), (CONSTANT, "accuracy"))
    )
    return Erratum(
        "With the private columns in place of the true ones, train as on the true data.",
        "Sum over what the true values may have been, with the channel's known probabilities.",
        "A report that is often a lie looks like a column that hardly matters, so its effect is learned too small, and "
        f"all predictions move to the rate of the outcome, {100 * (1 - rate):.1f} %: they are off by "
        f"{100 * error:.1f} percentage points on average ({worst.name}, ε = {constants.epsilon:g}).",
        RELIABILITY,
    )


def _table(constants: Constants, found: Scores, private: Private) -> Section:
    lines = []
    for asked in (KNOWN, REPORTED):
        for trained in LINES:
            values = [found.row(private.name, asked, trained, constants.epsilon, score) for score in SCORES]
            reach = [f"{row['mean']:.4f} ± {row['high'] - row['mean']:.4f}" for row in values]
            lines.append((KNOWN_OF[asked], trained, *reach))
    return Section(
        f"Private: {private.name}, ε = {constants.epsilon:g}",
        (
            f"{constants.repeats} repeats, each with {constants.patients:,} patients to learn from and as many fresh "
            "ones; ± is the 95 % interval of the mean. The same guess for all is the rate among the patients learned "
            "from: its accuracy is what to beat.",
        ),
        ("known of the patient", "trained on", "accuracy", "AUC", "Brier score", "calibration error"),
        tuple(lines),
    )


def _assumptions(constants: Constants) -> tuple[str, ...]:
    outcome = " or ".join(name.replace("_", " ") for name in constants.outcome)
    return (
        f"Patients of the study {constants.study.name}, untreated; to be foreseen: {outcome}. A model with "
        "illustrative effects, not medical advice. All but the private columns is known as it is, the outcome too.",
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
