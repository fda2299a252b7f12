"""The words of `policysim audit`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from policies.adjacency import AnyRecord, Listed, OneFeature
from policysim.decision.audit import Finding
from policysim.numbers import percent_up, plain, rounded_up, several, steady
from policysim.report.screen import Grid, Line, Screen

if TYPE_CHECKING:
    from policysim.files.probability_table import ProbabilityTable

# Digits of a loss, which is rounded up.
LOSS_DIGITS = 3
# Smaller probabilities are printed as a power of e.
LEAST_LOG_CHANCE = -700
# Characters of a policy's name, or a file's.
MOST_NAME = 34


def audit_screen(findings: Sequence[Finding], title: str, about: Sequence[str]) -> Screen:
    """What an audit found: claims that do not hold come first.

    Parameters
    ----------
    findings : sequence of Finding
        From `audit` or `audit_table`.
    title : str
        Of the study, or the table's file.
    about : sequence of str
        What was audited, and what was not.
    """
    ordered = sorted(findings, key=lambda finding: finding.holds)
    by_policy: dict[str, list[Finding]] = {}
    for finding in ordered:
        by_policy.setdefault(finding.policy, []).append(finding)
    worst = [max(some, key=lambda finding: (not finding.holds, _spent(finding))) for some in by_policy.values()]
    head = ("", "ε", "claimed", "exact", "share of claim", "odds change by at most", "claim holds")
    return Screen(
        title=title,
        about=tuple(about),
        lines=(Line("Do the claims hold?", _answer(findings)),),
        tables=(Grid(head, tuple(map(_row, ordered))),),
        notes=tuple(_shown_by(finding) for finding in worst),
    )


def about_table(table: ProbabilityTable, adjacency: Listed) -> Iterator[str]:
    """Which rows were audited, and which were not."""
    hidden = sorted({table.features[feature] for features in adjacency.hidden for feature in features})
    names = "" if adjacency.name in {AnyRecord.name, OneFeature.name} else f" ({', '.join(hidden)})"
    rows = several(len(table.table), "row")
    yield f"{rows}; treatments {', '.join(table.actions)}; features {', '.join(table.features) or 'none'}."
    yield f"Adjacency: {adjacency.name}{names}, among the rows of the file. Records that are not in it are not covered."
    if alone := int((~adjacency.has_neighbour).sum()):
        yield f"{plain(alone)} of {rows} have no neighbour in the file, so the audit says nothing about them."
    if table.n_rescaled:
        yield f"{several(table.n_rescaled, 'row')} did not quite sum to one: each was divided by its sum."


def _answer(findings: Sequence[Finding]) -> str:
    """How many claims hold, and the most that an observer can change the odds."""
    # A policy that claims infinity or nothing, or refuses the problem, claims nothing about it.
    claims = [finding for finding in findings if finding.claimed not in {None, math.inf} and not finding.refusal]
    held = sum(finding.holds for finding in claims)
    refused = sum(bool(finding.refusal) for finding in findings)
    text = "Nothing was claimed, so no claim was checked."
    if claims:
        text = f"{'Yes' if held == len(claims) else 'No'}: {held} of {len(claims)}."
    if refused:
        text += f" Policies that cannot be used on this problem: {refused}."
    if len(findings) == 1 and findings[0].exact is not None:
        text += (
            f" The most that one treatment lets an observer change the odds between two neighbours: factor "
            f"{_factor(findings[0])} (ε = {_exact(findings[0])})."
        )
    return text


def _row(finding: Finding) -> tuple[str, ...]:
    name = finding.policy if len(finding.policy) <= MOST_NAME else finding.policy[: MOST_NAME - 1] + "…"
    epsilon = "–" if finding.epsilon is None else plain(finding.epsilon)
    claimed = "nothing" if finding.claimed is None else plain(finding.claimed)
    if finding.exact is None:
        reason = "refused" if finding.refusal else "–"
        return name, epsilon, claimed, reason, "–", "–", "no probabilities" if finding.fault else "–"
    none = finding.claimed in {None, 0, math.inf}
    share = "–" if none else percent_up(min(_spent(finding), 1.0) if finding.holds else _spent(finding))
    holds = "–" if finding.claimed in {None, math.inf} else "yes" if finding.holds else "no"
    return name, epsilon, claimed, _exact(finding), share, _factor(finding), holds


def _shown_by(finding: Finding) -> str:
    """The two records and the treatment that show a policy's exact loss, or why there are none."""
    name = finding.policy + ("" if finding.epsilon is None else f" at ε = {plain(finding.epsilon)}")
    if finding.fault:
        return f"{name}: {finding.fault}."
    if finding.refusal:
        return f"{name}: refused: {finding.refusal}."
    if not finding.exact:
        return f"{name}: all neighbours have the same probabilities."
    (first, second), action = map(_chance, finding.log_chances), finding.action
    return (
        f"{name}: {action} has probability {first} for [{finding.record}] and {second} for [{finding.neighbour}]: "
        f"it changes the odds by a factor of {_factor(finding)}."
    )


def _spent(finding: Finding) -> float:
    """Exact loss as a share of the claim; 0 where infinity is claimed or nothing at all."""
    exact, claimed = finding.exact, finding.claimed
    if not exact or claimed is None or claimed == math.inf:
        return 0.0
    return exact / claimed if claimed else math.inf


def _loss(finding: Finding) -> float:
    """The exact loss; the claimed one where rounding alone separates them."""
    exact, claimed = finding.exact or 0.0, finding.claimed
    return min(exact, claimed) if finding.holds and claimed is not None else exact


def _exact(finding: Finding) -> str:
    return rounded_up(steady(_loss(finding)), LOSS_DIGITS)


def _factor(finding: Finding) -> str:
    """By how much the odds change at most: e to the loss."""
    loss = _loss(finding)
    if -loss > LEAST_LOG_CHANCE:
        return rounded_up(steady(math.exp(loss)), LOSS_DIGITS)
    return "∞" if loss == math.inf else f"e^{rounded_up(loss, LOSS_DIGITS)}"


def _chance(log_chance: float) -> str:
    """A probability, also where it is smaller than any float."""
    if log_chance == -math.inf:
        return "0 (never)"
    if log_chance < LEAST_LOG_CHANCE:
        return f"e^{plain(log_chance)}"
    return plain(math.exp(log_chance))
