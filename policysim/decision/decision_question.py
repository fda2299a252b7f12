"""What choosing privately costs: policies compared over epsilon, of a scenario, a cohort or a problem of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import pandas as pd

from policies.catalogue import CATALOGUE, DEFAULT_POLICIES
from policies.fitted import FittedPolicy
from policies.policy import Policy
from policies.problem import DecisionProblem
from policysim.decision.decision_answer import answer_tables
from policysim.decision.prices import uses_hidden
from policysim.decision.results import Asked, Results, printable, results
from policysim.numbers import in_digits, written
from policysim.progress import Progress
from policysim.question.answer import PAGE, Answer
from policysim.question.protocol import ONLY_OVER_DAYS, ONLY_WHERE_COUNTED, StudyQuestion
from policysim.study.declared import OPTIONS, CohortStudy, ModelledStudy, Study, nearest_epsilon, require_scenario
from policysim.study.labels import Labels, labels_of
from policysim.study.stated_bounds import broken_bounds, fault_of_bound
from policysim.study.study_problem import build_problem
from policysim.study.sweep import asked_for, usable_policies
from policysim.words import ALL, unused

# The tables that have files, in their order.
FILES = (
    *("comparison", "examples", "losses-by-outcome", "frontier", "patient-losses", "beliefs", "publishing"),
    *("price-list", "floors"),
)


@dataclass(frozen=True)
class DecisionQuestion(StudyQuestion):
    """Compare policies of a scenario or a cohort over epsilon.

    Attributes
    ----------
    study : ModelledStudy
        Its model, adjacency, policies, epsilons and groups.
    listed : tuple of str
        The policies that were asked for in place of the study's: they get columns of their own.
    named : bool
        Whether each policy was asked for by name: one that cannot be used is then refused, and not left out.
    prices : bool
        Whether to find out what hiding each single feature costs at best.
    """

    study: ModelledStudy
    listed: tuple[str, ...] = ()
    named: bool = True
    prices: bool = False
    refuses: ClassVar[Mapping[str, str]] = {**ONLY_OVER_DAYS, **ONLY_WHERE_COUNTED}
    kind = "decision"
    takes = (*OPTIONS, "at_most", "price_list")

    @classmethod
    def of(cls, study: Study, options: Mapping[str, Any]) -> Self:
        """ValueError also for a bound that is none."""
        modelled = study if isinstance(study, ModelledStudy) else require_scenario(study)
        chosen = modelled.with_options(options)
        at_most, policies = options.get("at_most", {}), tuple(options.get("policies", ()))
        for outcome, most in at_most.items():
            if fault := fault_of_bound(outcome, most, chosen.outcomes):
                raise ValueError(f"at_most: {outcome}: {fault}")
        everything = "all" in policies
        return cls(
            replace(chosen, at_most=at_most) if at_most else chosen,
            listed=() if everything else policies,
            named=not everything,
            prices=options.get("price_list", False),
        )

    def with_given(self, given: Sequence[str]) -> Self:
        """Without columns for policies that are the study's own."""
        return self if "policies" in given else replace(self, listed=())

    def answer(self, progress: Progress) -> Answer:
        """Evaluate, search, redraw and draw."""
        if self.prices and isinstance(self.study, CohortStudy):
            self.study.cohort.require_hidden(self.study.space.names)
        problem = build_problem(self.study)
        policies, left_out = usable_policies(self.study.first_policies, problem, named=self.named)
        study = replace(self.study, policies=policies)
        asked = printable(Asked.of(study, prices=self.prices))
        study = replace(study, epsilon=asked.epsilon, epsilons=asked.epsilons)
        found = results(problem, labels_of(study, problem), asked, study=study, progress=progress)
        warnings = [*_warnings(found), *(f"left out: {reason}" for reason in left_out)]
        options = answer_tables(found, study=study, named=bool(self.listed), warnings=warnings)
        sensitivity = problem.sensitivity
        neighbours = (sensitivity.witness.record, sensitivity.witness.neighbour)
        return replace(
            answer_of(found, options),
            depends={
                **study.identity,
                "question": {
                    **study.choices,
                    **({"at_most": dict(study.at_most)} if study.at_most else {}),
                    "price_list": self.prices,
                },
                "records": problem.n_records,
                "actions": list(problem.actions),
                # What the file alone decides.
                "epsilon": study.epsilon,
                **({"public": list(study.public)} if study.public else {}),
                **({"capacity": dict(study.capacity)} if study.capacity else {}),
                "sensitivity": {
                    "value": float(in_digits(sensitivity.value)),
                    "range": float(in_digits(sensitivity.range)),
                    "neighbours": [problem.records.describe(record) for record in neighbours],
                    "action": problem.actions[sensitivity.witness.action],
                },
            },
            packages=CATALOGUE.versions(study.policies),
            files=study.files,
            related=study.related,
        )


def answer_of_problem(
    problem: DecisionProblem,
    *,
    epsilons: Sequence[float] | float | None = None,
    policies: Sequence[str | Policy | FittedPolicy] | None = None,
) -> Answer:
    """What a comparison on a problem of one's own finds: its tables and drawings.

    The epsilon that is looked at is 1, or the one that is nearest to it.
    """
    templates, values = asked_for(DEFAULT_POLICIES if policies is None else policies, epsilons, ())
    first = [replace(each, epsilon=values[0]) if each.uses_epsilon else each for each in templates]
    usable, _ = usable_policies(first, problem, named=policies is not None)
    kept = tuple(each for each in templates if each.name in usable)
    asked = printable(Asked(kept, nearest_epsilon(1.0, values), values))
    found = results(problem, Labels.of(problem), asked)
    return answer_of(found, answer_tables(found, named=policies is not None, warnings=_warnings(found)))


def answer_of(found: Results, options: Mapping[str, pd.DataFrame]) -> Answer:
    """The tables and the drawings of a comparison."""
    # matplotlib is the slowest import of all; everything before may still fail without it.
    from policysim.decision.decision_drawings import drawings_of_decision  # noqa: PLC0415

    tables = {name: found.tables[name] for name in FILES if name in found.tables}
    if "beliefs" in tables:
        # A class is told by what is public of it, if anything is.
        told = [] if tables["beliefs"]["among"].any() else ["among", "share"]
        tables["beliefs"] = tables["beliefs"].drop(columns=["class", *told])
    # What is drawn has the numbers of its file.
    tables = {name: written(table) for name, table in tables.items()}
    return Answer(
        kind=DecisionQuestion.kind,
        options=options,
        tables=tables,
        drawings=drawings_of_decision(found, options),
        named={"Report": PAGE},
        # Of a problem of one's own nothing but the numbers is known.
        depends={},
    )


def _warnings(found: Results) -> list[str]:
    """What must be known before the rest is read: nothing that is hidden matters, or stated bounds are broken."""
    asked, at_epsilon = found.asked, found.at_epsilon
    overall = at_epsilon[at_epsilon["group"] == ALL]
    broken = broken_bounds(found.problem, asked.at_most, asked.capacity, overall, found.labels.outcomes)
    said = [] if uses_hidden(found.problem) else [unused()]
    return [*said, *(f"{policy}: {', '.join(words)}." for policy, words in broken.items())]
