"""What `policysim select` prints, as documents and as text: what may be published, and, if asked for, what may not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from policies.exponential import Exponential
from policies.selection import MOST_CANDIDATES, Selection
from policysim.question.answer import Page
from policysim.question.words import cells, line_width
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


def select_screen(drawn: dict[str, Any], seed: int | None, analysis: dict[str, Any] | None = None) -> Page:
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
    numbers = ("epsilon", "privacy_loss", "sensitivity", "true_sensitivity")
    choices = [
        {
            "group": "" if choice["group"] is None else f"{choice['group']}: ",
            "where": "" if choice["group"] is None else f" in {choice['group']}",
            "candidate": str(choice["candidate"]),
            **{name: f"{choice[name]:.6g}" for name in numbers},
            "held": ["held"] if choice["claim_holds"] else [],
            "broken": [] if choice["claim_holds"] else ["broken"],
        }
        for choice in drawn["choices"]
    ]
    alike = len({tuple(choice[name] for name in numbers) for choice in choices}) == 1
    whole = all(choice["epsilon"] == drawn["epsilon"] for choice in drawn["choices"])
    most = f"{2 * max(drawn['epsilon'], drawn['privacy_loss']):.6g}"
    texts = {
        "kind": "Release" if seed is None else f"Simulation with seed {seed}, not a release",
        **{name: drawn[name] for name in ("mechanism", "column", "score", "adjacency")},
        "hidden": drawn["assumptions"]["hidden"],
        "public": ", ".join(drawn["assumptions"]["public"]),
        "choices": choices,
        "costs": [{**choices[0], "group": ""}] if alike else choices,
        "of_two": [most] if len(choices) > 1 and whole and drawn["adjacency"] == REPLACE else [],
        "analysis": [NOT_A_RELEASE.center(line_width(), "─")] if analysis else [],
        "groups": [_analysis(group, drawn["score"]) for group in analysis["groups"]] if analysis else [],
    }
    return Page("select-screen.txt", texts)


def _analysis(group: dict[str, Any], score: str) -> dict[str, Any]:
    """What is known of a group: its best candidates, and how probably the right one is chosen."""
    title = "" if group["group"] is None else f"{group['group']}: "
    rows = [cells([f"{title}candidate", score, "rank", "probability"], COLUMNS)]
    best_first = sorted(group["candidates"], key=lambda row: row["rank"])
    for row in best_first[:MOST_ROWS]:
        name, value = str(row["candidate"]), f"{row['score']:.6f}" if score == "proportion" else f"{row['count']:,}"
        short = name if len(name) < COLUMNS[0] else name[: COLUMNS[0] - 2] + "…"
        chance = "-" if row["probability"] is None else _chance(row["probability"])
        rows.append(cells([short, value, str(row["rank"]), chance], COLUMNS))
    known = not group["not_available"]
    best = [str(row["candidate"]) for row in best_first if row["rank"] == 1]
    return {
        "rows": rows,
        "more": [f"{len(best_first) - MOST_ROWS:,}"] if len(best_first) > MOST_ROWS else [],
        "not_available": group["not_available"] or "",
        "known": [_chance(group["probability_right"])] if known else [],
        "right": best if len(best) == 1 else [],
        "several": [str(len(best))] if len(best) > 1 else [],
        "expected_rank": f"{group['expected_rank']:.4g}" if known else "",
        "candidates": str(len(best_first)),
    }


def _chance(chance: float) -> str:
    """As many digits as the largest table of the literature shows, and two more below them."""
    return f"{chance:.8f}" if chance >= 1e-4 or chance == 0 else f"{chance:.2e}"
