"""What `policysim select` prints, as documents and as text: what may be published, and, if asked for, what may not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from policies.exponential import Exponential
from policies.selection import MOST_CANDIDATES, Selection
from policysim.question.screen_lines import cells, line_width, wrap
from policysim.release.counts_file import Counts
from policysim.release.ledger import REPLACE
from policysim.release.select_private import GroupChoice, Terms

COLUMNS = (40, 14, 8, 16)
MOST_ROWS = 20
NOT_A_RELEASE = " Analysis of the private data, not a release: publish nothing below this line "


def release_document(
    counts: Counts, terms: Terms, found: list[GroupChoice], draw: Callable[[Selection], Any]
) -> dict[str, Any]:
    """What may be published: the draws, what they claim and what they cost. Nothing else depends on the counts."""
    hidden, public, grouped = "whether one person is there", ["the candidates"], any(choice.group for choice in found)
    if terms.adjacency == REPLACE:
        hidden = "what one person's value is"
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
                "true_sensitivity": choice.true.value,
                "privacy_loss": choice.loss,
                "claim_holds": choice.holds,
            }
            for choice in found
        ],
        "privacy_loss": max(choice.loss for choice in found),
        "warnings": _warnings(counts, terms, found),
    }


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
                f"the claim of ε = {choice.epsilon:.6g} does not hold{where}: the declared sensitivity "
                f"{choice.sensitivity:.6g} is less than the mechanism needs (true: {choice.true.value:.6g}); "
                f"the privacy loss is up to {choice.loss:.6g}"
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
    """The choices as text, at most 100 columns wide.

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
    lines, costs = [], {}
    for choice in drawn["choices"]:
        claim, loss = f"ε = {choice['epsilon']:.6g}", f"{choice['privacy_loss']:.6g}"
        true, used = f"{choice['true_sensitivity']:.6g}", f"{choice['sensitivity']:.6g}"
        costs[choice["group"]] = (
            f"Sensitivity of a {drawn['score']}: {true}, in use: {used}. Privacy loss: {loss} at {claim}."
        )
        if not choice["claim_holds"]:
            claim = f"claimed {claim} does NOT hold: loss up to {loss}"
        where = "" if choice["group"] is None else f" in {choice['group']}"
        lines.append(f"{kind} ({claim}, {drawn['mechanism']}): {drawn['column']}{where} = {choice['candidate']}")
    hidden, public = drawn["assumptions"]["hidden"], ", ".join(drawn["assumptions"]["public"])
    lines += wrap(f"Hidden: {hidden} ({drawn['adjacency']}). Assumed public: {public}.")
    alike = len(set(costs.values())) == 1
    for group, cost in list(costs.items())[:1] if alike else costs.items():
        lines += wrap(cost if alike else f"{group}: {cost}")
    whole = all(choice["epsilon"] == drawn["epsilon"] for choice in drawn["choices"])
    if len(costs) > 1 and whole and drawn["adjacency"] == REPLACE:
        most = 2 * max(drawn["epsilon"], drawn["privacy_loss"])
        lines += wrap(f"If a person's group can change too, two choices change: a privacy loss of up to {most:.6g}.")
    if analysis is not None:
        lines += ["", NOT_A_RELEASE.center(line_width(), "─")]
        for group in analysis["groups"]:
            lines += ["", *_analysis(group, drawn["score"])]
    return "\n".join(lines)


def _analysis(group: dict[str, Any], score: str) -> list[str]:
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
        return [*lines, *wrap(group["not_available"])]
    best = [str(row["candidate"]) for row in best_first if row["rank"] == 1]
    right = best[0] if len(best) == 1 else f"one of {len(best)} with the highest score"
    lines += wrap(
        f"The right one ({right}) is chosen with probability {_chance(group['probability_right'])}. "
        f"Expected rank: {group['expected_rank']:.4g} of {len(best_first)} "
        "(1 is the best; equal scores share the better rank)."
    )
    return lines


def _chance(chance: float) -> str:
    """As many digits as the largest table of the literature shows, and two more below them."""
    return f"{chance:.8f}" if chance >= 1e-4 or chance == 0 else f"{chance:.2e}"
