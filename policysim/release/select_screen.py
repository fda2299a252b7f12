"""What `policysim select` prints, as text and as documents: what may be published, and, if asked for, what may not."""

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


def select_screen(
    terms: Terms, found: Sequence[GroupChoice], drawn: dict[str, Any], seed: int | None, *, analysis: bool = False
) -> str:
    """The choices as text, at most 100 columns wide.

    Parameters
    ----------
    terms : Terms
    found : sequence of GroupChoice
    drawn : dict
        From `release_document`.
    seed : int or None
        The seed of a simulation; None for a release.
    analysis : bool
        Below a line, also show the counts, the probabilities and how good the choice is: all private.
    """
    kind = "Release" if seed is None else f"Simulation with seed {seed}, not a release"
    lines = [
        f"{kind} {_headline(choice, terms)}: {drawn['column']}"
        f"{'' if choice['group'] is None else ' in ' + choice['group']} = {choice['candidate']}"
        for choice in drawn["choices"]
    ]
    grouped = any(choice.group for choice in found)
    hidden, public = assumptions(terms, grouped=grouped)
    lines += wrap(f"Hidden: {hidden} ({terms.adjacency}). Assumed public: {', '.join(public)}.")
    for text in dict.fromkeys(_cost(terms, choice) for choice in found):
        lines += wrap(text)
    if grouped:
        lines += wrap(_groups(terms, found))
    if analysis:
        lines += ["", NOT_A_RELEASE.center(line_width(), "─")]
        for choice in found:
            lines += ["", *_analysis(choice)]
    return "\n".join(lines)


def assumptions(terms: Terms, *, grouped: bool) -> tuple[str, list[str]]:
    """What is hidden, in words, and what is assumed public."""
    hidden, public = "whether one person is there", ["the candidates"]
    if terms.adjacency == REPLACE:
        hidden = "what one person's value is"
        public += ["everybody's group", "the groups and their sizes"] if grouped else ["the number of people"]
    elif grouped:
        public += ["the names of the groups"]
    if terms.adjacency != REPLACE and terms.proportions:
        public += ["that no group is empty" if grouped else "that somebody is there"]
    return hidden, [*public, "the choice of ε"]


def not_available(choice: GroupChoice) -> str:
    """Why there is no exact analysis."""
    name = choice.selection.mechanism
    return (
        f"The exact analysis of {name} is not available for so many candidates: {len(choice.counts):,}, "
        f"and at most {MOST_CANDIDATES[name]:,} can be analysed. {Exponential.name} has no such limit."
    )


def warnings_about(counts: Counts, terms: Terms, found: list[GroupChoice]) -> list[str]:
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


def release_document(
    counts: Counts, terms: Terms, found: list[GroupChoice], draw: Callable[[Selection], Any]
) -> dict[str, Any]:
    """What may be published: the draws, what they claim and what they cost. Nothing else depends on the counts."""
    hidden, public = assumptions(terms, grouped=any(choice.group for choice in found))
    return {
        "column": counts.column,
        "epsilon": terms.epsilon,
        "mechanism": terms.mechanism,
        "adjacency": terms.adjacency,
        "assumptions": {"hidden": hidden, "public": public},
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
        "warnings": warnings_about(counts, terms, found),
    }


def analysis_document(found: list[GroupChoice]) -> dict[str, Any]:
    """What must not be published; null where there are too many candidates for it."""
    return {
        "note": "computed from the private data; not a release",
        "groups": [
            {
                "group": choice.group or None,
                "people": int(choice.counts.sum()),
                "candidates": [
                    {"candidate": name, "count": int(count), "score": score, "rank": int(rank), "probability": p}
                    for name, count, score, rank, p in zip(
                        choice.selection.candidates,
                        choice.counts,
                        choice.scores.tolist(),
                        choice.ranks,
                        choice.selection.probabilities.tolist()
                        if choice.selection.analysable
                        else [None] * len(choice.counts),
                        strict=True,
                    )
                ],
                "probability_right": choice.right if choice.selection.analysable else None,
                "expected_rank": choice.expected_rank if choice.selection.analysable else None,
                "not_available": None if choice.selection.analysable else not_available(choice),
            }
            for choice in found
        ],
    }


def _headline(choice: dict[str, Any], terms: Terms) -> str:
    """What is claimed, or what is lost if that is more."""
    claimed = f"ε = {_number(choice['epsilon'])}"
    if not choice["claim_holds"]:
        claimed = f"claimed {claimed} does NOT hold: loss up to {_number(choice['privacy_loss'])}"
    return f"({claimed}, {terms.mechanism})"


def _cost(terms: Terms, choice: GroupChoice) -> str:
    """Sensitivity and privacy loss; by group where they differ."""
    true, used = _number(choice.true.value), _number(choice.sensitivity)
    score = "a proportion" if terms.proportions else "a count"
    text = f"Sensitivity of {score}: {true}. "
    if terms.sensitivity is not None:
        text = f"Declared sensitivity: {used}; the true one of {score} is {true}. "
    if terms.sensitivity is not None or terms.proportions or terms.split_by_share:
        text = (f"{choice.group}: " if choice.group else "") + text
    loss = _number(choice.loss)
    if not choice.holds:
        return f"✗ {text}ε = {_number(choice.epsilon)} does not hold: the privacy loss is up to {loss}."
    if choice.loss >= choice.epsilon * (1 - 1e-9):
        return f"{text}Privacy loss: {loss}."
    text += f"Privacy loss: {loss}, {100 * choice.loss / choice.epsilon:.4g} % of ε."
    if terms.rising and terms.mechanism == Exponential.name and terms.sensitivity is None:
        text += " Counts only rise when a person is added: exponential-monotone uses all of ε."
    return text


def _groups(terms: Terms, found: Sequence[GroupChoice]) -> str:
    if terms.split_by_share:
        return "ε is split by the groups' shares, which are public; as groups are disjoint, each could use all of it."
    text = "Groups are disjoint, so each uses the whole ε."
    if terms.adjacency == REPLACE:
        worst = max(choice.loss for choice in found)
        cost = f"2ε = {_number(2 * terms.epsilon)}" if all(choice.holds for choice in found) else _number(2 * worst)
        text += f" If a person's group can change too, two choices change and the cost is up to {cost}."
    return text


def _analysis(choice: GroupChoice) -> list[str]:
    order = choice.ranks.argsort(kind="stable")
    title = f"{choice.group}: " if choice.group else ""
    lines = [
        cells([f"{title}candidate", "proportion" if choice.proportions else "count", "rank", "probability"], COLUMNS)
    ]
    scores, names = choice.scores, choice.selection.candidates
    for position in order[:MOST_ROWS]:
        score = f"{scores[position]:.6f}" if choice.proportions else f"{choice.counts[position]:,}"
        chance = _chance(float(choice.selection.probabilities[position])) if choice.selection.analysable else "-"
        lines.append(cells([_short(str(names[position])), score, str(choice.ranks[position]), chance], COLUMNS))
    if len(order) > MOST_ROWS:
        lines.append(f"and {len(order) - MOST_ROWS:,} more, all of them with --json")
    if not choice.selection.analysable:
        return [*lines, *wrap(not_available(choice))]
    best = [str(names[position]) for position in order if choice.ranks[position] == 1]
    right = best[0] if len(best) == 1 else f"one of {len(best)} with the highest score"
    lines += wrap(
        f"The right one ({right}) is chosen with probability {_chance(choice.right)}. "
        f"Expected rank: {choice.expected_rank:.4g} of {len(names)} "
        "(1 is the best; equal scores share the better rank)."
    )
    return lines


def _chance(chance: float) -> str:
    """As many digits as the largest table of the literature shows, and two more below them."""
    return f"{chance:.8f}" if chance >= 1e-4 or chance == 0 else f"{chance:.2e}"


def _number(value: float) -> str:
    return f"{value:.6g}"


def _short(name: str) -> str:
    return name if len(name) < COLUMNS[0] else name[: COLUMNS[0] - 2] + "…"
