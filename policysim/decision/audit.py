"""The audit: what policies claim to reveal at most, beside what their probabilities reveal, exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from envs.toml_reader import unknown
from policies.adjacency import Adjacency, AnyRecord, Listed, OneFeature
from policies.arrays import FloatArray
from policies.catalogue import make_policy
from policies.policy import (
    ClaimError,
    InadmissibleError,
    NoTableError,
    NotApplicableError,
    Policy,
    table_fault,
)
from policies.privacy_loss import privacy_loss_of_logs
from policies.problem import DecisionProblem
from policysim.files.bad_rows import DataError
from policysim.progress import SILENT, Progress
from policysim.study.checks import within_claim
from policysim.study.declared import ADJACENCIES
from policysim.study.sweep import checked_epsilons

if TYPE_CHECKING:
    from policysim.files.probability_table import ProbabilityTable


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
        return within_claim(self.exact, self.claimed)


def audit(
    problem: DecisionProblem,
    policies: Sequence[str | Policy],
    epsilons: Sequence[float],
    progress: Progress = SILENT,
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
    progress : Progress, optional
        Told of each finding.

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
    jobs = [(template, e) for template in templates for e in (values if template.uses_epsilon else (None,))]
    progress.expect(len(jobs))
    findings = []
    for template, epsilon in jobs:
        policy = template if epsilon is None else replace(template, epsilon=epsilon)
        findings.append(_audit_policy(problem, policy, epsilon))
        progress.advance()
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


def _audit_policy(problem: DecisionProblem, policy: Policy, epsilon: float | None) -> Finding:
    found = Finding(policy.name, epsilon, None)
    try:
        found = replace(found, claimed=policy.claimed)
        logs, probabilities = policy.tables(problem)
    except NotApplicableError as error:
        return replace(found, refusal=str(error))
    except (ClaimError, InadmissibleError) as error:
        return replace(found, fault=str(error))
    except NoTableError as error:
        return replace(found, fault=error.fault)
    # Those of this package are audited, too.
    if fault := table_fault(policy, problem, logs, probabilities):
        return replace(found, fault=fault)
    return _with_loss(found, logs, problem.adjacency, problem.actions, problem.records.describe)


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
