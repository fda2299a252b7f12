"""The audit: what policies claim to reveal at most, beside what their probabilities reveal, exactly."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from envs.toml_reader import unknown
from policies.adjacency import Adjacency, AnyRecord, OneFeature
from policies.arrays import SUM_TOLERANCE, FloatArray, blocks
from policies.catalogue import make_policy
from policies.listed import Listed
from policies.policy import Policy
from policies.privacy_loss import privacy_loss_of_logs
from policies.problem import DecisionProblem
from policysim.probability_table import DataError, ProbabilityTable
from policysim.study import ADJACENCIES, checked_epsilons
from policysim.text import WIDTH, cells, wrap

COLUMNS = (34, 9, 13, 13, 11)

# Rounding that an exact loss may carry: logarithms of probabilities are exact to about 1e-15 of their size.
RELATIVE, ABSOLUTE = 1e-9, 1e-12


@dataclass(frozen=True)
class Finding:
    """What the audit found about one policy at one epsilon.

    Attributes
    ----------
    policy : str
        Its name.
    epsilon : float or None
        The epsilon that it was made for; None if it has none.
    claimed : float or None
        The privacy loss that it claims not to exceed; None if nothing is claimed.
    exact : float or None
        The privacy loss of its probabilities; None if it gave none.
    record, neighbour : str
        The neighbours that attain it, in words, the likelier one first; empty where no neighbours differ.
    action : str
        The action at which they attain it.
    log_chances : tuple of float
        log p(action) of the record and of the neighbour.
    refusal : str
        Why the policy does not apply to the problem, in its own words; empty if it does.
    fault : str
        Why what it gave is no table of probabilities; empty if it is.
    """

    policy: str
    epsilon: float | None
    claimed: float | None
    exact: float | None = None
    record: str = ""
    neighbour: str = ""
    action: str = ""
    log_chances: tuple[float, float] = (0.0, 0.0)
    refusal: str = ""
    fault: str = ""

    @property
    def holds(self) -> bool:
        """Whether nothing was found against the claim: a refusal or the absence of a claim is no failure."""
        if self.fault:
            return False
        if self.exact is None or self.claimed is None:
            return True
        return self.exact <= self.claimed * (1 + RELATIVE) + ABSOLUTE


def audit(
    problem: DecisionProblem,
    policies: Sequence[str | Policy],
    epsilons: Sequence[float],
    advance: Callable[[], object] = lambda: None,
) -> list[Finding]:
    """Compare the claim of each policy with its exact privacy loss on a problem.

    Parameters
    ----------
    problem : DecisionProblem
        What is decided, and which records are neighbours.
    policies : sequence of str or Policy
        Names from the catalogue, or policies whose epsilon is replaced.
    epsilons : sequence of float
        Values >= 0. A policy that does not depend on epsilon is audited once.
    advance : callable, optional
        Called after each finding.

    Returns
    -------
    list of Finding
        In the order of the policies, epsilons rising.

    Raises
    ------
    ValueError
        For an unknown policy, or an epsilon that is not a number >= 0.

    Examples
    --------
    >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord())
    >>> [(finding.claimed, finding.exact, finding.holds) for finding in audit(problem, ["exponential"], [1.0])]
    [(1.0, 0.5, True)]
    """
    values = checked_epsilons(epsilons)
    templates = [make_policy(item) if isinstance(item, str) else item for item in policies]
    findings = []
    for template in templates:
        for epsilon in values if template.uses_epsilon else (None,):
            policy = template if epsilon is None else replace(template, epsilon=epsilon)
            findings.append(_audit_policy(problem, policy, epsilon))
            advance()
    return findings


def audit_table(table: ProbabilityTable, adjacency: Listed, claimed: float | None = None) -> list[Finding]:
    """The exact privacy loss of probabilities that were made elsewhere, beside the one that is claimed for them.

    Raises
    ------
    DataError
        If no two rows are neighbours: there is nothing to compare, and a loss of 0 would mean nothing.
    """
    if not adjacency.has_neighbour.any():
        raise DataError(f"{table.source}: no two of its rows are neighbours under {adjacency.name}: nothing to audit")
    with np.errstate(divide="ignore"):
        logs = np.log(table.probabilities)
    found = Finding(table.source, claimed, claimed)
    return [_with_loss(found, logs, adjacency, table.actions, table.describe)]


def table_adjacency(table: ProbabilityTable, name: str, sensitive: Sequence[str] = ()) -> Listed:
    """The adjacency of the rows of a table: "any-record", "one-feature", or "sensitive" and its features.

    Raises
    ------
    ValueError
        For an unknown adjacency, a feature that is no column, or features that the adjacency lacks or cannot take.
    """
    if name not in ADJACENCIES:
        raise ValueError(unknown("adjacency", name, ADJACENCIES))
    for feature in sensitive:
        if feature not in table.features:
            raise ValueError(unknown("feature", feature, table.features))
    if name in (AnyRecord.name, OneFeature.name):
        if sensitive:
            raise ValueError(f"hidden features only go with the adjacency sensitive, not with {name}")
        return Listed.any_record(table.codes) if name == AnyRecord.name else Listed.one_feature(table.codes)
    if not sensitive:
        raise ValueError("the adjacency sensitive needs at least one hidden feature")
    return Listed.sensitive(table.codes, [table.features.index(feature) for feature in sensitive])


def exceeds(findings: Sequence[Finding]) -> bool:
    """Whether any claim does not hold: then the command ends with exit code 4."""
    return not all(finding.holds for finding in findings)


def audit_document(findings: Sequence[Finding]) -> dict[str, Any]:
    """The findings as plain values, in their order; infinities are floats still."""
    return {
        "holds": not exceeds(findings),
        "findings": [{**asdict(finding), "holds": finding.holds} for finding in findings],
    }


def audit_screen(findings: Sequence[Finding], heading: Sequence[str]) -> str:
    """The findings as text, at most 100 columns wide: what does not hold comes first.

    Parameters
    ----------
    findings : sequence of Finding
        From `audit` or `audit_table`.
    heading : sequence of str
        What was audited, a paragraph each; see `table_heading` for a table.
    """
    ordered = sorted(findings, key=lambda finding: finding.holds)
    lines = [line for paragraph in heading for line in wrap(paragraph)]
    lines += ["", cells(["", "ε", "claimed", "exact", "of claim"], COLUMNS)]
    lines += [_row(finding) for finding in ordered]
    lines += ["", "Where the exact loss is attained:"]
    for finding in _worst_of_each(ordered):
        lines += _witness_words(finding)
    return "\n".join([*lines, "", _summary(findings)])


def table_heading(table: ProbabilityTable, adjacency: Listed) -> list[str]:
    """What was audited and what was not, for `audit_screen`."""
    n_rows, alone = len(table.lines), int((~adjacency.has_neighbour).sum())
    hidden = sorted({table.features[feature] for features in adjacency.hidden for feature in features})
    names = f" ({', '.join(hidden)})" if adjacency.name not in (AnyRecord.name, OneFeature.name) else ""
    notes = [
        f"{table.source}: {n_rows:,} rows, actions {', '.join(table.actions)}; "
        f"features {', '.join(table.features) or 'none'}.",
        f"Adjacency: {adjacency.name}{names}, among the rows of the file. Records that are not in it are not covered.",
    ]
    if alone:
        notes.append(f"{alone:,} of {n_rows:,} rows have no neighbour in the file, so nothing is known about them.")
    if table.n_rescaled:
        notes.append(f"{table.n_rescaled:,} rows did not sum to 1 by up to 1e-6 and were divided by their sum.")
    return notes


def _audit_policy(problem: DecisionProblem, policy: Policy, epsilon: float | None) -> Finding:
    found = Finding(policy.name, epsilon, policy.guarantee)
    try:
        logs = policy.log_probabilities(problem)
    except ValueError as error:
        return replace(found, refusal=str(error))
    fault = _fault(logs, problem)
    if fault:
        return replace(found, fault=fault)
    return _with_loss(found, logs, problem.adjacency, problem.actions, problem.records.describe)


def _fault(logs: FloatArray, problem: DecisionProblem) -> str:
    """Why an array is no table of log-probabilities for the problem; empty if it is one."""
    if logs.shape != problem.utilities.shape:
        return f"its table has shape {logs.shape} instead of {problem.utilities.shape}"
    for rows in blocks(problem.n_records):
        # Rows of NaN or of huge logs fail the comparison too.
        with np.errstate(over="ignore"):
            sums = np.exp(logs[rows]).sum(axis=1)
        bad = np.flatnonzero(~(np.abs(sums - 1) <= SUM_TOLERANCE))
        if bad.size:
            record = problem.records.describe(rows.start + int(bad[0]))
            return f"its probabilities sum to {float(sums[bad[0]]):.9g} for [{record}]"
    return ""


def _with_loss(
    found: Finding, logs: FloatArray, adjacency: Adjacency, actions: Sequence[str], describe: Callable[[int], str]
) -> Finding:
    loss = privacy_loss_of_logs(logs, adjacency)
    if loss.epsilon == 0:
        return replace(found, exact=0.0)
    record, neighbour, action = loss.witness.record, loss.witness.neighbour, loss.witness.action
    return replace(
        found,
        exact=loss.epsilon,
        record=describe(record),
        neighbour=describe(neighbour),
        action=actions[action],
        log_chances=(float(logs[record, action]), float(logs[neighbour, action])),
    )


def _worst_of_each(findings: Sequence[Finding]) -> list[Finding]:
    """Of each policy: whatever does not hold, or else what spends most of its claim."""
    worst: dict[str, Finding] = {}
    for finding in findings:
        known = worst.get(finding.policy)
        if known is None or _badness(finding) > _badness(known):
            worst[finding.policy] = finding
    return list(worst.values())


def _badness(finding: Finding) -> tuple[bool, float]:
    return not finding.holds, 0.0 if finding.exact is None else _spent(finding)


def _spent(finding: Finding) -> float:
    """Exact loss as a share of the claim; 0 where infinity is claimed or nothing at all."""
    exact, claimed = finding.exact, finding.claimed
    if not exact or claimed is None or claimed == math.inf:
        return 0.0
    return exact / claimed if claimed else math.inf


def _row(finding: Finding) -> str:
    name = finding.policy if len(finding.policy) <= COLUMNS[0] else finding.policy[: COLUMNS[0] - 1] + "…"
    claimed = "nothing" if finding.claimed is None else _number(finding.claimed)
    if finding.exact is None:
        exact, share = "refused" if finding.refusal else "–", ""
    else:
        exact = _number(finding.exact)
        share = f"{100 * _spent(finding):.4g}\u00a0%" if finding.claimed not in (None, 0, math.inf) else "–"
    epsilon = "–" if finding.epsilon is None else _number(finding.epsilon)
    row = cells([name, epsilon, claimed, exact, share], COLUMNS)
    return row if finding.holds else f"{row}  ✗ {'no probabilities' if finding.fault else 'exceeds'}"


def _witness_words(finding: Finding) -> list[str]:
    at = "" if finding.epsilon is None else f" at ε = {_number(finding.epsilon)}"
    title = f"{'' if finding.holds else '✗ '}{finding.policy}{at}: "
    if finding.fault or finding.refusal:
        return _indented(title + (finding.fault or f"refused: {finding.refusal}"))
    if not finding.exact:
        return _indented(title + "no two neighbours differ")
    more, less = (_chance(log_chance) for log_chance in finding.log_chances)
    return [
        *_indented(f"{title}{finding.action} has probability"),
        *_indented(f"{more} for [{finding.record}]", indent="    "),
        *_indented(f"{less} for [{finding.neighbour}]", indent="    "),
    ]


def _summary(findings: Sequence[Finding]) -> str:
    """How many claims hold; who claims infinity or nothing, or refuses the problem, claims nothing about it."""
    refused = sum(bool(finding.refusal) for finding in findings)
    claims = [finding for finding in findings if finding.claimed not in (None, math.inf) and not finding.refusal]
    holding = sum(finding.holds for finding in claims)
    checked = f"{holding} of {len(claims)} claims hold." if claims else "Nothing was claimed, so no claim was checked."
    return f"{checked} {refused} refused." if refused else checked


def _chance(log_chance: float) -> str:
    """A probability in words, also where float64 would round it to 0."""
    if log_chance == -math.inf:
        return "0 (never)"
    return f"{math.exp(log_chance):.6g}" if log_chance > -700 else f"e^{log_chance:.6g}"


def _number(value: float) -> str:
    return "∞" if value == math.inf else f"{value:.6g}"


def _indented(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ")
