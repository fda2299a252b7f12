"""What a study's patients risk, exactly: whether policies keep the privacy that they claim, and the sensitivity."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from policies.adjacency import AnyRecord, Listed, OneFeature, Sensitive
from policies.problem import DecisionProblem
from policies.sensitivity import Witness
from policysim.decision.audit import Finding, audit, audit_document, audit_table, exceeds, table_adjacency
from policysim.question import EXIT_CHECK
from policysim.question.answer import Answer
from policysim.question.protocol import Progress, Question, UsageError
from policysim.question.screen_lines import cells, wrap
from policysim.study.basis import hidden
from policysim.study.declared import Study
from policysim.study.study_problem import build_problem

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
        document = {"study": study.name, "adjacency": study.adjacency, **_sensitivity_document(problem)}
        return Answer(screen=sensitivity_screen(study, problem), document=document)


def sensitivity_screen(study: Study, problem: DecisionProblem) -> list[str]:
    """What `policysim sensitivity` prints."""
    found = problem.sensitivity
    return [
        f"{study.title} Hidden: {hidden(study)}.",
        "",
        f"Sensitivity Δ = {found.value:.6g}: the most that one action's expected utility differs between neighbours",
        *witness_words(problem, found.witness),
        f"Range Γ = {found.range:.6g}: the most that the difference between two actions does (at most 2Δ)",
        *witness_words(problem, found.range_witness),
    ]


def witness_words(problem: DecisionProblem, witness: Witness) -> list[str]:
    """Two neighbours and what they show, a line each."""
    actions = [problem.actions[action] for action in witness.actions]
    utilities = problem.utilities
    return [
        f"    {problem.records.describe(record)}\n        "
        + ", ".join(f"u({problem.actions[a]}) = {utilities[record, a]:.6g}" for a in witness.actions)
        for record in (witness.record, witness.neighbour)
    ] + [f"    action{'s' if len(actions) > 1 else ''} {', '.join(actions)}"]


def _sensitivity_document(problem: DecisionProblem) -> dict[str, Any]:
    found = problem.sensitivity
    witnesses = {"witness": found.witness, "range_witness": found.range_witness}
    return {
        "value": found.value,
        "range": found.range,
        **{
            name: {
                "record": problem.records.describe(witness.record),
                "neighbour": problem.records.describe(witness.neighbour),
                "actions": [problem.actions[action] for action in witness.actions],
            }
            for name, witness in witnesses.items()
        },
    }


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
        heading = [
            study.title,
            f"Hidden: {hidden(study)}. {problem.n_records:,} records, {problem.n_actions} actions; exact, over all "
            "pairs.",
        ]
        about = {"study": study.name, **study.hiding}
        policies = [study.policy(name) for name in study.policies]
        return _answer(audit(problem, policies, study.epsilons, progress), heading, about)


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
        return _answer(audit_table(table, adjacency, self.claimed), table_heading(table, adjacency), about)


def _answer(findings: Sequence[Finding], heading: Sequence[str], about: Mapping[str, object]) -> Answer:
    return Answer(
        screen=audit_screen(list(findings), list(heading)),
        document={**about, **audit_document(list(findings))},
        exit_code=EXIT_CHECK if exceeds(list(findings)) else 0,
    )


COLUMNS = (34, 9, 13, 13, 11)


def audit_screen(findings: Sequence[Finding], heading: Sequence[str]) -> list[str]:
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
    return [*lines, "", _summary(findings)]


def table_heading(table: ProbabilityTable, adjacency: Listed) -> list[str]:
    """What was audited and what was not, for `audit_screen`."""
    n_rows, alone = len(table.table), int((~adjacency.has_neighbour).sum())
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
    return wrap(text, indent, indent + "  ")
