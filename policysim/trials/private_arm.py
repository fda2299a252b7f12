"""One arm for everybody, chosen privately from a log: what is protected then are the log's own patients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from policies.selection import Selection, select
from policysim.files.bad_rows import DataError
from policysim.logs.log_frame import LoggedData
from policysim.logs.log_source import EQUAL, LogSource
from policysim.question.screen_lines import wrap
from policysim.question.words import percent, rounded


@dataclass(frozen=True, eq=False)
class PrivateArm:
    """A private choice among the arms.

    Attributes
    ----------
    selection : Selection
        The choice: its `release` draws an arm, its `probabilities` must not be published.
    right : float
        The probability of the arm that the log itself puts first (of all of them, where several share its score).
    loss : float
        How much lower the mean outcome is expected to be than under the arm of the highest mean, by the arms' means.
    """

    selection: Selection
    right: float
    loss: float


def learn_arm(data: LoggedData, source: LogSource, epsilon: float) -> PrivateArm:
    """Choose one arm for everybody by the exponential mechanism on counts.

    Each patient adds to the score of the arm that they got 1 for the best outcome of the declared range, -1 for the
    worst, and in proportion between; 0 where the outcome is not known, because of censoring too. Arms that were given
    with equal probability are then ranked by their means, on average.

    Raises
    ------
    DataError
        For propensities that are not equal by design: those of a column or of a model are data of patients themselves.

    Notes
    -----
    P(arm) is proportional to exp(epsilon score / 2). Proof of epsilon-differential privacy for the log's patients,
    their number being public: let one patient's whole row change. If the arm stays, one score moves by at most 2 and
    no other; if it changes, one score moves by at most 1 and another by at most 1. So differences between two arms'
    scores move by at most 2, and the ratio of the probabilities of any arm, exp(epsilon d / 2) over a mean of
    exp(epsilon d' / 2) with d - d' <= 2, is at most e^epsilon (bounded range: Durfee & Rogers 2019; McSherry & Talwar
    2007). Scores that only counted successes would spend the same epsilon on half the difference.
    """
    if source.propensity != EQUAL:
        raise DataError(
            f'--learn-epsilon needs propensity = "{EQUAL}", got "{source.propensity}": propensities that are read or '
            "estimated are data of patients, which counts do not protect"
        )
    low, high = source.utility_range
    signed = np.where(data.known.weights > 0, 2 * (data.known.rewards - low) / (high - low) - 1, 0.0)
    each = np.ones(data.n_rows) if data.counts is None else data.counts
    scores = np.bincount(data.actions, weights=signed * each, minlength=data.n_actions)
    whole = [int(score) if score == int(score) else float(score) for score in scores.tolist()]
    selection = select(whole, epsilon=epsilon, sensitivity=1, candidates=data.names)
    given = data.by_action()
    sums = np.bincount(data.actions, weights=data.rewards * each, minlength=data.n_actions)
    # Of an arm that nobody got nothing is known: the worst.
    means = np.divide(sums, given, out=np.full(data.n_actions, low), where=given > 0)
    chances = selection.probabilities
    first = selection.scores == selection.scores.max()
    return PrivateArm(selection, float(chances[first].sum()), float(means.max() - chances @ means))


def private_arm_document(found: PrivateArm) -> dict[str, Any]:
    """The same for --json."""
    chances = zip(found.selection.candidates, found.selection.probabilities.tolist(), strict=True)
    return {
        "epsilon": found.selection.epsilon,
        "probabilities": {str(name): chance for name, chance in chances},
        "right": found.right,
        "expected_loss": found.loss,
    }


def private_arm_words(found: PrivateArm) -> list[str]:
    """The choice and what it protects, in sentences."""
    chances = ", ".join(
        f"{name} {percent(float(chance))}"
        for name, chance in zip(found.selection.candidates, found.selection.probabilities, strict=True)
    )
    return [
        f"One arm for everybody, learned privately from the log (ε = {found.selection.epsilon:g}, the exponential "
        f"mechanism on counts): with probability {found.right:.2f} the arm that the log puts first ({chances}); the "
        f"mean outcome is expected to be {rounded(found.loss)} below that of the best arm, by the arms' means.",
        "Private is here the row of each patient of the log, treatment and outcome included, from whoever sees only "
        "the arm that is chosen. Not private: everything else that is said here, these probabilities too. The record "
        "of a treated patient needs no protection then, as everybody gets the same arm.",
    ]


def private_arm_lines(found: PrivateArm) -> list[str]:
    """The same on a screen, with an arm that is drawn now."""
    drawn = f"Drawn now, by the operating system's randomness: {found.selection.release()}."
    return ["", *(line for text in [*private_arm_words(found), drawn] for line in wrap(text))]
