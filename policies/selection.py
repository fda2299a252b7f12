"""A private selection of one candidate, from a score for each: the central model."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from policies.adjacency import AnyRecord
from policies.arrays import TOO_LARGE, FloatArray, Frozen, IntArray, non_negative, positive, read_only
from policies.exponential import Exponential, softmax
from policies.html_table import html_table
from policies.noisy_max import MOST_ACTIONS, PermuteAndFlip, ReportNoisyMax, scaled_scores, win_integrals
from policies.selection_release import by_flips, by_noise, by_weights, gaps_below_best, places_on_grid, release_weights

# "exponential" for scores that are declared to be monotone.
EXPONENTIAL_MONOTONE = "exponential-monotone"
# Candidates that a notebook shows, and among how many a mechanism's probabilities are there at once.
MOST_SHOWN = 10
SOON_COMPUTED = {ReportNoisyMax.name: 16, PermuteAndFlip.name: 200}
# The most candidates whose probabilities are computed: the work grows with the third power.
MOST_CANDIDATES = {ReportNoisyMax.name: MOST_ACTIONS, PermuteAndFlip.name: 2000}


def select(
    scores: ArrayLike,
    *,
    epsilon: float,
    sensitivity: float = 1.0,
    mechanism: str = "exponential",
    monotone: bool = False,
    candidates: Sequence[str] | Sequence[int] | None = None,
) -> Selection:
    """Choose one candidate privately: the data behind the scores are hidden up to epsilon.

    Parameters
    ----------
    scores : array, (k,)
        One finite score per candidate, k >= 1; higher is better. In any unit. A release takes whole numbers, Fractions
        and Decimals exactly, and floats up to 2^20 times the sensitivity, beyond which their rounding is too coarse.
    epsilon : float
        The privacy parameter, >= 0; 0 chooses uniformly, inf the first candidate of highest score.
    sensitivity : float, optional
        The most by which one person can change any score, > 0 and finite, in the unit of the scores. Floats may be off
        by a unit in their last place; what else they are off by, as long sums are, is to be added here.
    mechanism : str, optional
        "exponential": P(r) proportional to exp(score_r / s) (McSherry & Talwar 2007, theorem 6).
        "permute-and-flip": visit the candidates in random order and take each with probability
        exp((score - largest score) / s), until one is taken (McKenna & Sheldon 2020).
        "report-noisy-max": Laplace noise of scale s on each score, then the largest (Dwork & Roth 2014, section 3.3).
        Each with s = 2 sensitivity / epsilon, or s = sensitivity / epsilon if the scores are monotone.
        "exponential-monotone" is "exponential" for scores that are declared to be monotone.
    monotone : bool, optional
        Whether between any two neighbouring data sets no score rises while another one falls, as counts do when a
        person is added. This is declared: it cannot be checked from one vector of scores.
    candidates : sequence, optional
        k distinct names; 0 to k - 1 by default. The list itself must be public.

    Returns
    -------
    Selection

    Raises
    ------
    ValueError
        For scores that are no vector of finite numbers, a parameter out of range, an unknown mechanism, or names that
        are not k distinct ones.

    Examples
    --------
    >>> chosen = select([24, 8, 28, 5], epsilon=0.1)
    >>> chosen.probabilities.round(8).tolist()
    [0.32706751, 0.14696091, 0.39948116, 0.12649042]
    >>> select([0.1, 0.9], epsilon=5.5, candidates=("Violent", "NonViolent")).probabilities.round(8).tolist()
    [0.09975049, 0.90024951]
    """
    given = _score_vector(scores)[1]
    return Selection(_names(candidates, len(given)), epsilon, sensitivity, mechanism, bool(monotone), given)


@dataclass(frozen=True, eq=False)
class Selection(Frozen):
    """A private selection among candidates, made by `select`.

    Attributes
    ----------
    candidates : tuple
        Their names.
    epsilon, sensitivity, mechanism, monotone
        As given to `select`; "exponential-monotone" declares that scores are monotone.
    given : tuple
        The scores before they became floats.
    """

    candidates: tuple[str | int, ...]
    epsilon: float
    sensitivity: float
    mechanism: str
    monotone: bool
    given: tuple[Any, ...]

    def __post_init__(self) -> None:
        """Check everything, also what was replaced."""
        if self.mechanism not in MECHANISMS:
            raise ValueError(f"mechanism must be one of {', '.join(MECHANISMS)}, got mechanism={self.mechanism!r}.")
        given = _score_vector(self.given)[1]
        checked = {
            "given": given,
            "candidates": _names(self.candidates, len(given)),
            "epsilon": non_negative(self.epsilon, "epsilon"),
            "sensitivity": positive(self.sensitivity, "sensitivity"),
            "monotone": self.monotone or self.mechanism == EXPONENTIAL_MONOTONE,
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @cached_property
    def scores(self) -> FloatArray:
        """In the order of the candidates, (k,)."""
        return _score_vector(self.given)[0]

    @property
    def scale(self) -> float:
        """s, in the unit of the scores: inf at epsilon = 0, and 0 at epsilon = inf.

        Scores whose differences move by at most Gamma between neighbours are hidden up to Gamma / s.
        """
        if self.epsilon == 0:
            return math.inf
        return (1 if self.monotone else 2) * self.sensitivity / self.epsilon

    @property
    def analysable(self) -> bool:
        """Whether there are few enough candidates to compute `probabilities`; a release has no limit."""
        return len(self.scores) <= MOST_CANDIDATES.get(self.mechanism, math.inf)

    @cached_property
    def probabilities(self) -> FloatArray:
        """P(candidate), (k,); sums to 1. ValueError if there are too many candidates to compute it.

        It depends on the private scores alone and must not be published.
        """
        k = len(self.scores)
        if not self.analysable:
            raise ValueError(
                f"the probabilities of {self.mechanism} are computed for at most {MOST_CANDIDATES[self.mechanism]} "
                f"candidates, got {k}; "
                f"{Exponential.name} has no such limit."
            )
        if self.scale in (0, math.inf):
            limit = np.full(k, 1 / k) if self.scale else np.eye(k)[self.scores.argmax()]
            return read_only(limit)
        with np.errstate(over="ignore"):
            row: FloatArray = _PROBABILITIES[self.mechanism](self.scores[None, :], self.scale)[0]
        return read_only(row / row.sum())

    def _repr_html_(self) -> str:
        """What a notebook shows: the terms, and the candidates of the highest scores with their probabilities."""
        terms: list[tuple[str, object]] = [
            ("epsilon", self.epsilon),
            ("sensitivity", self.sensitivity),
            ("monotone", self.monotone),
            ("scale s", self.scale),
            ("candidates", len(self.scores)),
        ]
        soon = "probabilities" in self.__dict__ or len(self.scores) <= SOON_COMPUTED.get(self.mechanism, math.inf)
        known: Any = self.probabilities if soon else ["not computed"] * len(self.scores)
        order = np.argsort(-self.scores, kind="stable")[:MOST_SHOWN]
        rows = [(str(self.candidates[place]), self.scores[place], known[place]) for place in order]
        caption = "highest scores: these depend on private data, and must not be published"
        header = ("candidate", "score", "probability")
        return html_table(f"private selection: {self.mechanism}", terms) + html_table(caption, rows, header)

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Any:
        """Draw candidates by their probabilities: one, or an array (size,). For simulation, never for a release.

        Who knows the state of `rng` knows what noise there was, and floating-point draws leave holes.
        """
        positions: IntArray = rng.choice(len(self.scores), size=1 if size is None else size, p=self.probabilities)
        if size is None:
            return self.candidates[int(positions[0])]
        names: NDArray[Any] = np.asarray(self.candidates)
        return names[positions]

    def release(self) -> Any:
        """Run the mechanism once, for publication: with the operating system's randomness, in whole numbers only.

        Returns
        -------
        The chosen candidate. It depends on the data through the mechanism alone, and costs epsilon each time.

        Raises
        ------
        ValueError
            For a float that is so large that its rounding is not covered by the proof of privacy. That it was raised
            tells of the scores, as every refusal does.

        Notes
        -----
        Privacy is proved for the whole numbers themselves, see `policies.selection_release`, which also says what of
        the work is the same for all scores. The probabilities of the exponential mechanism and of permute-and-flip are
        those of `probabilities` up to a share of 1e-8 for each scale that a score lies below the best, and 1e-16.
        """
        if self.epsilon == math.inf:
            return self.candidates[int(self.scores.argmax())]
        if self.epsilon == 0:
            return self.candidates[secrets.randbelow(len(self.candidates))]
        places = places_on_grid(self.given, self.sensitivity)
        weights = release_weights(self.epsilon, self.monotone)
        return self.candidates[_RELEASES[self.mechanism](gaps_below_best(places, weights), weights)]


def _exponential(scores: FloatArray, scale: float) -> FloatArray:
    return softmax(scores, scale, np.zeros(scores.shape[1]), AnyRecord())[1]


def _permute_and_flip(scores: FloatArray, scale: float) -> FloatArray:
    heads = np.exp(scaled_scores(scores, scale))
    return heads * win_integrals(heads)


def _report_noisy_max(scores: FloatArray, scale: float) -> FloatArray:
    return np.exp(ReportNoisyMax().logs_of_scores(scores, scale))


_PROBABILITIES: dict[str, Callable[[FloatArray, float], FloatArray]] = {
    Exponential.name: _exponential,
    EXPONENTIAL_MONOTONE: _exponential,
    PermuteAndFlip.name: _permute_and_flip,
    ReportNoisyMax.name: _report_noisy_max,
}
_RELEASES = {
    Exponential.name: by_weights,
    EXPONENTIAL_MONOTONE: by_weights,
    PermuteAndFlip.name: by_flips,
    ReportNoisyMax.name: by_noise,
}
MECHANISMS = tuple(_PROBABILITIES)


def _names(candidates: Any, k: int) -> tuple[str | int, ...]:
    """k distinct names; their positions by default."""
    if candidates is None:
        return tuple(range(k))
    try:
        names = tuple(candidates)
        distinct = len(set(names)) == len(names) == k
    except TypeError:  # no sequence, or a name that cannot be looked up
        distinct = False
    if not distinct:
        raise ValueError(f"candidates must be {k} distinct names, got candidates={candidates!r}.")
    return names


def _score_vector(scores: ArrayLike) -> tuple[FloatArray, tuple[Any, ...]]:
    """A read-only copy of the scores, and each as it was given; ValueError names what is wrong with them."""
    try:
        given = np.asarray(scores)
        # NumPy drops the imaginary part of an array of complex numbers, with no more than a warning.
        if given.dtype.kind == "c":
            raise TypeError
        vector: FloatArray = np.array(given, dtype=np.float64)
    except OverflowError:
        raise ValueError(f"scores must be finite as floats, {TOO_LARGE}.") from None
    except (TypeError, ValueError):
        raise ValueError(f"scores must be numbers, got scores={scores!r}.") from None
    if vector.ndim != 1 or not len(vector):
        raise ValueError(f"scores must be (k,) with k >= 1, got shape {vector.shape}.")
    bad = np.flatnonzero(~np.isfinite(vector))
    if bad.size:
        raise ValueError(f"scores must be finite, got scores[{int(bad[0])}]={float(vector[bad[0]])!r}.")
    # A list may mix whole numbers and floats, which one array of numbers would not.
    exact = given if isinstance(scores, np.ndarray) else np.asarray(scores, dtype=object)
    return read_only(vector), tuple(exact)
