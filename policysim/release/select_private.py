"""The work of `policysim select`: a private selection for each group, its cost, and how good it is.

It says what may be published, and apart from it what may not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from functools import cached_property
from typing import Any

import numpy as np

from envs.toml_reader import unknown
from policies.arrays import FloatArray, IntArray
from policies.exponential import Exponential
from policies.noisy_max import PermuteAndFlip
from policies.selection import EXPONENTIAL_MONOTONE, MECHANISMS, MOST_CANDIDATES, Selection, select
from policysim.files.bad_rows import DataError
from policysim.numbers import enough, steady
from policysim.release.counts_file import Counts
from policysim.release.ledger import ADD_OR_REMOVE, ADJACENCIES, REPLACE, Release, amount
from policysim.words import cells, line_width, wrapped

# Rounding that a privacy loss may show above what is claimed.
TOLERANCE = 1e-9
# What summing floats leaves, relative.
ROUNDING = 1e-12
COLUMNS = (40, 14, 8, 16)
MOST_ROWS = 20
NOT_A_RELEASE = " Analysis of the private data, not a release: publish nothing below this line "


@dataclass(frozen=True)
class Terms:
    """How to choose.

    Parameters
    ----------
    epsilon : float
        The privacy parameter, >= 0 and finite.
    mechanism : str
        One of `policies.selection.MECHANISMS`.
    adjacency : str
        "replace-one": one person's value changes, and the number of people (of each group) is public.
        "add-or-remove-one": one person is there or not.
    sensitivity : float or None
        What is declared, in the unit of the score; None for the true one.
    proportions : bool
        The score is the share of people and not their number.
    split_by_share : bool
        Each group gets epsilon times its share of all people, and not the whole epsilon.
    rows_each : int
        How many rows a person has at most: a sensitivity of so many rows hides them all.

    Raises
    ------
    ValueError
        For an unknown name, or terms that exclude each other.
    """

    epsilon: float
    mechanism: str = PermuteAndFlip.name
    adjacency: str = REPLACE
    sensitivity: float | None = None
    proportions: bool = False
    split_by_share: bool = False
    rows_each: int = 1

    def __post_init__(self) -> None:
        """Check names and what goes together."""
        if self.mechanism not in MECHANISMS:
            raise ValueError(unknown("mechanism", self.mechanism, MECHANISMS))
        if self.adjacency not in ADJACENCIES:
            raise ValueError(unknown("adjacency", self.adjacency, ADJACENCIES))
        if self.mechanism == EXPONENTIAL_MONOTONE and not self.rising:
            raise ValueError(
                f"{self.mechanism} needs scores that only rise when a person is added: "
                f"counts under {ADD_OR_REMOVE}; use {Exponential.name}"
            )
        if self.split_by_share and self.adjacency != REPLACE:
            raise ValueError(f"the shares of groups must be public, which they are under {REPLACE} only")
        if self.rows_each > 1 and (self.proportions or self.split_by_share):
            raise ValueError("shares need a public number of rows for each person: score the number of people")

    def true_sensitivity(self, people: Sequence[int] | IntArray) -> tuple[float, float]:
        """`true_sensitivity` for all rows of a person, of a group with so many people for each candidate, (k,)."""
        by_a_row = true_sensitivity(self.adjacency, self.proportions, int(sum(people)), len(people))
        return self.rows_each * by_a_row[0], self.rows_each * by_a_row[1]

    @property
    def rising(self) -> bool:
        """Whether scores are monotone: a person who is added raises one count, and lowers all other proportions."""
        return self.adjacency == ADD_OR_REMOVE and not self.proportions

    @property
    def monotone(self) -> bool:
        """Whether the mechanism makes use of that; the exponential mechanism as published does not."""
        return self.rising and self.mechanism != Exponential.name


def true_sensitivity(adjacency: str, proportions: bool, n_people: int, n_candidates: int) -> tuple[float, float]:
    """By how much one person moves a count or proportion, and a difference of two (range), at most, over all data sets.

    Notes
    -----
    With c_j people for candidate j, and n in all:

    - A count under replace-one: one falls by 1 and another rises by 1, so value 1, range 2. Under add-or-remove-one
      a single one rises or falls, so value 1, range 1.
    - A proportion under replace-one: n does not change, so the above over n.
    - A proportion under add-or-remove-one: a new person for b takes b from c_b / n to (c_b + 1) / (n + 1), a rise of
      (n - c_b) / (n (n + 1)), and each other j falls by c_j / (n (n + 1)). Both are at most 1 / (n + 1), and their sum
      at most 2 / (n + 1), where c_b = 0 and c_j = n. As n >= 1 is unknown: value 1/2, range 1, at n = 1.

    A single candidate reveals nothing: range 0.

    Examples
    --------
    >>> true_sensitivity("replace-one", True, 100, 2)
    (0.01, 0.02)
    >>> true_sensitivity("add-or-remove-one", True, 100, 2)
    (0.5, 1.0)
    """
    value, spread = (1.0, 2.0) if adjacency == REPLACE else (1.0, 1.0)
    if proportions:
        value, spread = (1 / n_people, 2 / n_people) if adjacency == REPLACE else (0.5, 1.0)
    return value, spread if n_candidates > 1 else 0.0


@dataclass(frozen=True, eq=False)
class GroupChoice:
    """The choice for one group.

    Attributes
    ----------
    group : str
        Its name; "" where there is but one.
    terms : Terms
        How it is made.
    selection : Selection
        The mechanism. It runs on counts, which are whole, in either case: a share is a count in another unit.
    """

    group: str
    terms: Terms
    selection: Selection

    @cached_property
    def counts(self) -> IntArray:
        """People per candidate, (k,). Private, as everything computed from it."""
        return np.array(self.selection.given, dtype=np.intp)

    @property
    def sensitivity(self) -> float:
        """The one in use, in the unit of the score."""
        return self.true_sensitivity if self.terms.sensitivity is None else self.terms.sensitivity

    @property
    def true_sensitivity(self) -> float:
        """What is true, in the unit of the score."""
        return self.terms.true_sensitivity(self.counts)[0]

    @property
    def true_range(self) -> float:
        """The most by which a difference of two scores changes."""
        return self.terms.true_sensitivity(self.counts)[1]

    @property
    def epsilon(self) -> float:
        """What is claimed for this group."""
        return self.selection.epsilon

    @property
    def loss(self) -> float:
        """range / s with the true range: no two neighbouring data sets differ by more.

        For counts this is the exact loss over data sets of all sizes: large ones come as close as one likes.
        """
        calibrated = (1 if self.selection.monotone else 2) * self.sensitivity
        return self.epsilon * (self.true_range / calibrated)

    @property
    def holds(self) -> bool:
        """Whether the loss is within epsilon."""
        return self.loss <= self.epsilon * (1 + TOLERANCE)

    @property
    def scores(self) -> FloatArray:
        """Counts or shares, (k,)."""
        counts = self.counts.astype(np.float64)
        return counts / counts.sum() if self.terms.proportions else counts

    @cached_property
    def ranks(self) -> IntArray:
        """The rank of each candidate by its true score, (k,): 1 is the best, equal ones share the better rank."""
        ordered = np.sort(-self.counts)
        ranks: IntArray = 1 + np.searchsorted(ordered, -self.counts)
        return ranks


def choices_by_group(counts: Counts, terms: Terms) -> list[GroupChoice]:
    """The choice for each group; DataError for shares of nobody, or for nobody where their number is public."""
    total = sum(map(sum, counts.people.values()))
    found = []
    for group, people in counts.people.items():
        n = sum(people)
        # Under add-or-remove-one, that nobody is there is not to be told either.
        if n == 0 and (terms.proportions or (total == 0 and terms.adjacency == REPLACE)):
            raise DataError(f"{counts.source}: {group + ' has no people' if group else 'counts no people'}")
        true, _ = terms.true_sensitivity(people)
        declared = true if terms.sensitivity is None else terms.sensitivity
        # 1/n times n is 1, also where floating point disagrees.
        unit = 1.0 if terms.sensitivity is None and terms.adjacency == REPLACE else declared * n
        selection = select(
            people,
            epsilon=terms.epsilon * (n / total) if terms.split_by_share else terms.epsilon,
            sensitivity=unit if terms.proportions else declared,
            mechanism=terms.mechanism,
            monotone=terms.monotone,
            candidates=counts.candidates,
        )
        found.append(GroupChoice(group, terms, selection))
    return found


def release_document(
    counts: Counts, terms: Terms, found: list[GroupChoice], draw: Callable[[Selection], Any]
) -> dict[str, Any]:
    """What may be published: the draws, what they claim and what they cost. Nothing else depends on the counts."""
    hidden, public, grouped = "whether one person is there", ["the candidates"], any(choice.group for choice in found)
    if terms.adjacency == REPLACE:
        hidden = "what one person's value is" if terms.rows_each == 1 else "what one person's values are"
        public += ["everybody's group", "the groups and their sizes"] if grouped else ["the number of people"]
    elif grouped:
        public += ["the names of the groups"]
    if terms.adjacency != REPLACE and terms.proportions:
        public += ["that no group is empty" if grouped else "that somebody is there"]
    return {
        "column": counts.column,
        "epsilon": terms.epsilon,
        "mechanism": terms.mechanism,
        "adjacency": terms.adjacency,
        "assumptions": {"hidden": hidden, "public": [*public, "the choice of ε"]},
        "score": "proportion" if terms.proportions else "count",
        "choices": [
            {
                "group": choice.group or None,
                "candidate": draw(choice.selection),
                "epsilon": choice.epsilon,
                "sensitivity": choice.sensitivity,
                "true_sensitivity": choice.true_sensitivity,
                "privacy_loss": choice.loss,
                "claim_holds": choice.holds,
            }
            for choice in found
        ],
        "privacy_loss": max(choice.loss for choice in found),
        "group_change_loss": _group_change_loss(terms, found),
        "warnings": _warnings(counts, terms, found),
    }


def _group_change_loss(terms: Terms, found: list[GroupChoice]) -> float | None:
    """What a person who changes group loses at most, by the two choices together; None where that is not asked.

    A person who leaves a group lowers one count of it, where one who changes value lowers one and raises another: half
    the range at the same scale, and so half the loss. The same for who joins. Where presence is hidden, what is hidden
    is just that: who leaves and who joins lose all of it each. The scale of a declared sensitivity of proportions moves
    with the size of a group; then, too, each of the two loses up to what a change of value does. Where epsilon is split
    by shares, the sizes of groups are published as they are, and nothing bounds what that tells.
    """
    if len(found) < 2 or terms.split_by_share:
        return None
    two_largest = math.fsum(sorted(choice.loss for choice in found)[-2:])
    moves = terms.proportions and terms.sensitivity is not None
    return two_largest if moves or terms.adjacency != REPLACE else two_largest / 2


def release_of(counts: Counts, by: str | None, terms: Terms, found: list[GroupChoice], *, each: bool) -> Release:
    """What the choices cost a person, who is in one group: epsilon, or the true loss where that is larger.

    Who is absent is protected, too, where presence is hidden: then everybody is charged.
    """
    grouped, replaces = () if by is None else (by,), terms.adjacency == REPLACE
    not_covered = {"not covered": "which values occur"} if counts.from_private_rows else {}
    return Release(
        "select",
        counts.source,
        max(map(_charged, found)),
        (counts.column, *(() if replaces else grouped)),
        grouped if replaces else (),
        adjacency=terms.adjacency,
        # Shares of people, and of groups, show how many there are.
        shows_rows=replaces and (terms.proportions or terms.split_by_share),
        each=each and replaces,
        details=not_covered,
    )


def _charged(choice: GroupChoice) -> Decimal:
    """The epsilon of a choice, or its loss, rounded up, where that is more than the last digits of a float."""
    if choice.loss <= choice.epsilon * (1 + ROUNDING):
        return amount(choice.epsilon)
    return Context(prec=12, rounding=ROUND_CEILING).create_decimal_from_float(choice.loss)


def _warnings(counts: Counts, terms: Terms, found: list[GroupChoice]) -> list[str]:
    """What the user must know before publishing, one line each."""
    lines = []
    if counts.from_private_rows:
        lines.append(
            f"the candidates are taken from the private rows of {counts.source}, so a rare one reveals that somebody "
            "has it; list all possible ones with --candidates"
        )
    if counts.groups_from_private_rows and terms.adjacency != REPLACE:
        lines.append(
            f"the names of the groups are taken from the private rows of {counts.source}, so a rare one reveals that "
            "somebody is in it; list all possible ones with --groups"
        )
    for choice in found:
        if not choice.holds:
            where = f" for {choice.group}" if choice.group else ""
            lines.append(
                f"the claim of ε = {_spent(choice.epsilon)} does not hold{where}: the declared sensitivity "
                f"{choice.sensitivity:.6g} is less than the mechanism needs (true: {choice.true_sensitivity:.6g}); "
                f"the privacy loss is up to {_spent(choice.loss)}"
            )
    return lines


def analysis_document(found: Sequence[GroupChoice]) -> dict[str, Any]:
    """What must not be published; null where there are too many candidates for it."""
    groups = []
    for choice in found:
        selection, n = choice.selection, len(choice.counts)
        chances: list[float | None] = [None] * n
        right = rank = reason = None
        if selection.analysable:
            probabilities = selection.probabilities
            right, rank = float(probabilities[choice.ranks == 1].sum()), float(probabilities @ choice.ranks)
            chances = probabilities.tolist()
        else:
            reason = (
                f"The exact analysis of {selection.mechanism} is not available for so many candidates: {n:,}, and at "
                f"most {MOST_CANDIDATES[selection.mechanism]:,} can be analysed. {Exponential.name} has no such limit."
            )
        columns = (selection.candidates, choice.counts.tolist(), choice.scores.tolist(), choice.ranks.tolist(), chances)
        names = ("candidate", "count", "score", "rank", "probability")
        groups.append(
            {
                "group": choice.group or None,
                "people": int(choice.counts.sum()),
                "candidates": [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)],
                "probability_right": right,
                "expected_rank": rank,
                "not_available": reason,
            }
        )
    return {"note": "computed from the private data; not a release", "groups": groups}


def select_screen(drawn: dict[str, Any], seed: int | None, analysis: dict[str, Any] | None = None) -> str:
    """The choices as a screen.

    Parameters
    ----------
    drawn : dict
        From `release_document`.
    seed : int or None
        The seed of a simulation; None for a release.
    analysis : dict, optional
        From `analysis_document`, to be shown below a line.
    """
    kind = "Release" if seed is None else f"Simulation with seed {seed}, not a release"
    assumed, choices = drawn["assumptions"], drawn["choices"]
    lines, costs = [], []
    for choice in choices:
        where, title = ("", "") if choice["group"] is None else (f" in {choice['group']}", f"{choice['group']}: ")
        epsilon, loss = f"ε = {_spent(choice['epsilon'])}", _spent(choice["privacy_loss"])
        claim = epsilon if choice["claim_holds"] else f"claimed {epsilon} does NOT hold: loss up to {loss}"
        lines.append(f"{kind} ({claim}, {drawn['mechanism']}): {drawn['column']}{where} = {choice['candidate']}")
        cost = (
            f"Sensitivity of a {drawn['score']}: {choice['true_sensitivity']:.6g}, in use: "
            f"{choice['sensitivity']:.6g}. Privacy loss: {loss} at {epsilon}."
        )
        costs.append((title, cost))
    alike = len({cost for _, cost in costs}) == 1
    about = [
        f"Hidden: {assumed['hidden']} ({drawn['adjacency']}). Assumed public: {', '.join(assumed['public'])}.",
        *([costs[0][1]] if alike else [title + cost for title, cost in costs]),
    ]
    if drawn["group_change_loss"] is not None:
        most = _spent(drawn["group_change_loss"])
        about.append(f"If a person's group changes, too, two choices change: a privacy loss of up to {most} in all.")
    lines += wrapped(*about)
    if analysis:
        lines += ["", NOT_A_RELEASE.center(line_width(), "─")]
        for group in analysis["groups"]:
            lines += ["", *_analysis(group, drawn["score"])]
    return "\n".join([*lines, ""])


def _spent(loss: float) -> str:
    """A privacy loss in six digits, rounded up; the last digits of a float do not count."""
    return f"{enough(steady(loss), 6):g}"


def _analysis(group: dict[str, Any], score: str) -> list[str]:
    """What is known of a group: its best candidates, and how probably the right one is chosen."""
    title = "" if group["group"] is None else f"{group['group']}: "
    lines = [cells([f"{title}candidate", score, "rank", "probability"], COLUMNS)]
    best_first = sorted(group["candidates"], key=lambda row: row["rank"])
    for row in best_first[:MOST_ROWS]:
        name, value = str(row["candidate"]), f"{row['score']:.6f}" if score == "proportion" else f"{row['count']:,}"
        short = name if len(name) < COLUMNS[0] else name[: COLUMNS[0] - 2] + "…"
        chance = "-" if row["probability"] is None else _chance(row["probability"])
        lines.append(cells([short, value, str(row["rank"]), chance], COLUMNS))
    if len(best_first) > MOST_ROWS:
        lines.append(f"and {len(best_first) - MOST_ROWS:,} more, all of them with --json")
    if group["not_available"]:
        return lines + wrapped(group["not_available"])
    best = [str(row["candidate"]) for row in best_first if row["rank"] == 1]
    right = best[0] if len(best) == 1 else f"one of {len(best)} with the highest score"
    return lines + wrapped(
        f"The right one ({right}) is chosen with probability {_chance(group['probability_right'])}. Expected "
        f"rank: {group['expected_rank']:.4g} of {len(best_first)} (the first is the best; equal scores share the "
        "better rank)."
    )


def _chance(chance: float) -> str:
    """As many digits as the largest table of the literature shows, and two more below them."""
    return f"{chance:.8f}" if chance >= 1e-4 or chance == 0 else f"{chance:.2e}"
