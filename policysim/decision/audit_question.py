"""What a study's patients risk, exactly: whether policies keep the privacy that they claim, and the sensitivity."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from policies.adjacency import AnyRecord, Listed, OneFeature, Sensitive
from policies.problem import DecisionProblem
from policies.sensitivity import Witness
from policysim.decision.audit import Finding, audit, audit_table, exceeds, table_adjacency
from policysim.errors import EXIT_CHECK, UsageError
from policysim.progress import Progress
from policysim.question.answer import Answer, Page
from policysim.question.protocol import Question
from policysim.study.declared import Study
from policysim.study.labels import hidden
from policysim.study.study_problem import build_problem
from policysim.words import cells

if TYPE_CHECKING:
    from policysim.files.probability_table import ProbabilityTable


@dataclass(frozen=True)
class SensitivityQuestion(Question):
    """The sensitivity of a study's utilities.

    Attributes
    ----------
    study : Study
        Its utilities and its adjacency.
    """

    study: Study

    @property
    def name(self) -> str:
        """The study's."""
        return self.study.name

    def answer(self, progress: Progress) -> Answer:
        """Exactly, over all records."""
        study, problem = self.study, build_problem(self.study)
        found = problem.sensitivity
        document: dict[str, Any] = {"study": study.name, "adjacency": study.adjacency}
        document |= {"value": found.value, "range": found.range}
        for name, witness in (("witness", found.witness), ("range_witness", found.range_witness)):
            document[name] = {
                "record": problem.records.describe(witness.record),
                "neighbour": problem.records.describe(witness.neighbour),
                "actions": [problem.actions[action] for action in witness.actions],
            }
        texts = {
            "title": study.title,
            "hidden": hidden(study),
            "sensitivity": f"{found.value:.6g}",
            "witness": witness_words(problem, found.witness),
            "range": f"{found.range:.6g}",
            "range_witness": witness_words(problem, found.range_witness),
        }
        return Answer(screen=Page("sensitivity-screen.txt", texts), document=document)


def witness_words(problem: DecisionProblem, witness: Witness) -> list[str]:
    """Two neighbours and what they show, a line each."""
    actions, lines = [problem.actions[action] for action in witness.actions], []
    for record in (witness.record, witness.neighbour):
        utilities = zip(actions, problem.utilities[record, list(witness.actions)], strict=True)
        lines.append(problem.records.describe(record))
        lines.append("    " + ", ".join(f"u({action}) = {utility:.6g}" for action, utility in utilities))
    return [*lines, f"action{'s' if len(actions) > 1 else ''} {', '.join(actions)}"]


@dataclass(frozen=True)
class AuditQuestion(Question):
    """Audit the policies of a study.

    Attributes
    ----------
    study : Study
        Policies, epsilons and adjacency.
    """

    study: Study
    refuses: ClassVar[Mapping[str, str]] = {"actions": "only goes with --table"}

    @property
    def name(self) -> str:
        """The study's."""
        return self.study.name

    def answer(self, progress: Progress) -> Answer:
        """Exactly, over all pairs of neighbours."""
        study, problem = self.study, build_problem(self.study)
        policies = [study.policy(name) for name in study.policies]
        found = audit(problem, policies, study.epsilons, progress)
        texts = {
            "title": study.title,
            "hidden": hidden(study),
            "records": f"{problem.n_records:,}",
            "actions": str(problem.n_actions),
            **audit_texts(found),
        }
        about: dict[str, object] = {
            "study": study.name,
            "adjacency": study.adjacency,
            "sensitive": list(study.sensitive),
            **({"public": list(study.public)} if study.public else {}),
        }
        return _answer(Page("audit-study.txt", texts), about, found)


@dataclass(frozen=True)
class TableAuditQuestion(Question):
    """Audit probabilities that were made elsewhere.

    Attributes
    ----------
    path : Path
        A .csv or .parquet file with a row for each record.
    actions : tuple of str or None
        Its action columns; None for those that are named p_<action>.
    adjacency : str or None
        A name; None for any-record, or sensitive if there are hidden features.
    sensitive : tuple of str
        Hidden features.
    claimed : float or None
        The loss that is claimed.
    """

    path: Path
    actions: tuple[str, ...] | None
    adjacency: str | None
    sensitive: tuple[str, ...]
    claimed: float | None
    refuses: ClassVar[Mapping[str, str]] = {"policy": "does not go with --table: the table is the policy"}

    @property
    def name(self) -> str:
        """The table's."""
        return self.path.stem

    def answer(self, progress: Progress) -> Answer:
        """Read the table, and compare its rows."""
        # Only a table from a file needs what reads files.
        from policysim.files.probability_table import read_probability_table  # noqa: PLC0415

        table = read_probability_table(self.path, self.actions, option="--actions")
        name = self.adjacency or (Sensitive.name if self.sensitive else AnyRecord.name)
        try:
            adjacency = table_adjacency(table, name, list(self.sensitive))
        except ValueError as error:
            raise UsageError(str(error)) from None
        about = {"table": str(self.path), "adjacency": name, "sensitive": list(self.sensitive)}
        found = audit_table(table, adjacency, self.claimed)
        return _answer(Page("audit-table.txt", {**table_texts(table, adjacency), **audit_texts(found)}), about, found)


def _answer(screen: Page, about: Mapping[str, object], found: list[Finding]) -> Answer:
    findings = [{**asdict(finding), "holds": finding.holds} for finding in found]
    document = {**about, "holds": not exceeds(found), "findings": findings}
    return Answer(screen=screen, document=document, exit_code=EXIT_CHECK if exceeds(found) else 0)


COLUMNS = (34, 9, 13, 13, 11)


def audit_texts(findings: Sequence[Finding]) -> dict[str, Any]:
    """The findings as text, from `audit` or `audit_table`: what does not hold comes first."""
    ordered = sorted(findings, key=lambda finding: finding.holds)
    by_policy: dict[str, list[Finding]] = {}
    for finding in ordered:
        by_policy.setdefault(finding.policy, []).append(finding)
    # Who claims infinity or nothing, or refuses the problem, claims nothing about it.
    claims = [finding for finding in findings if finding.claimed not in (None, math.inf) and not finding.refusal]
    refused = sum(bool(finding.refusal) for finding in findings)
    return {
        "rows": [cells(["", "ε", "claimed", "exact", "of claim"], COLUMNS), *map(_row, ordered)],
        "attained": [_attained(max(of, key=_badness)) for of in by_policy.values()],
        "holding": [f"{sum(finding.holds for finding in claims)} of {len(claims)}"] if claims else [],
        "unclaimed": [] if claims else ["nothing"],
        "refused": [str(refused)] if refused else [],
    }


def table_texts(table: ProbabilityTable, adjacency: Listed) -> dict[str, Any]:
    """What was audited and what was not."""
    alone = int((~adjacency.has_neighbour).sum())
    hidden = sorted({table.features[feature] for features in adjacency.hidden for feature in features})
    names = f" ({', '.join(hidden)})" if adjacency.name not in (AnyRecord.name, OneFeature.name) else ""
    return {
        "source": table.source,
        "n_rows": f"{len(table.table):,}",
        "actions": ", ".join(table.actions),
        "features": ", ".join(table.features) or "none",
        "adjacency": f"{adjacency.name}{names}",
        "alone": [f"{alone:,}"] if alone else [],
        "rescaled": [f"{table.n_rescaled:,}"] if table.n_rescaled else [],
    }


def _badness(finding: Finding) -> tuple[bool, float]:
    """Of two findings of a policy the worse one is that which does not hold, or else spends more of its claim."""
    return not finding.holds, _spent(finding)


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


def _attained(finding: Finding) -> dict[str, Any]:
    """Where a policy's exact loss is attained, or why there is none."""
    at = "" if finding.epsilon is None else f" at ε = {_number(finding.epsilon)}"
    unknown = finding.fault or (f"refused: {finding.refusal}" if finding.refusal else "")
    differs = bool(finding.exact) and not unknown
    pairs = zip(finding.log_chances, (finding.record, finding.neighbour), strict=True)
    return {
        "title": f"{'' if finding.holds else '✗ '}{finding.policy}{at}",
        "unknown": [unknown] if unknown else [],
        "alike": [] if differs or unknown else ["alike"],
        "actions": [finding.action] if differs else [],
        "chances": [(_chance(log_chance), record) for log_chance, record in pairs] if differs else [],
    }


def _chance(log_chance: float) -> str:
    """A probability in words, also where float64 would round it to 0."""
    if log_chance == -math.inf:
        return "0 (never)"
    return f"{math.exp(log_chance):.6g}" if log_chance > -700 else f"e^{log_chance:.6g}"


def _number(value: float) -> str:
    return "∞" if value == math.inf else f"{value:.6g}"
