"""Which epsilon, and which mechanism, do what is asked for; or a proof that none can."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import pandas as pd

from policies.catalogue import CATALOGUE
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.reference import BestFixed, Greedy
from policysim.decision.choice_answer import choice_tables, to_judge
from policysim.decision.choose import Choices, Verdict, Wish, choose
from policysim.decision.redraws import redrawn
from policysim.errors import EXIT_CHECK, UsageError
from policysim.files.terminal import json_text
from policysim.progress import SILENT, Progress
from policysim.question.answer import PAGE, Answer
from policysim.question.protocol import StudyQuestion
from policysim.study.cells import COLUMNS
from policysim.study.certainty import INTERVAL, UNTOLD
from policysim.study.declared import OPTIONS, LoggedStudy, ModelledStudy, Study
from policysim.study.labels import labels_of
from policysim.study.stated_bounds import fault_of_bound
from policysim.study.study_problem import build_problem
from policysim.study.sweep import applies, usable_policies

# Policies of a log's study, judged on patients held out: policy, value, low, high, verdict.
Judge = Callable[[LoggedStudy, Sequence[Policy], Progress], pd.DataFrame]
NOT_JUDGED = pd.DataFrame([(Greedy.name, *3 * [math.nan], UNTOLD)], columns=["policy", *INTERVAL, "verdict"])
CERTIFICATE = "certificate.json"


@dataclass(frozen=True)
class ChoiceQuestion(StudyQuestion):
    """Find the least epsilon of each policy that does what is asked for.

    Attributes
    ----------
    study : Study
        Of a scenario, a cohort or a log.
    wish : Wish
        What is asked for.
    named : tuple of str
        The policies that were asked for by name, if any.
    judge : callable or None
        Judges policies of a log on patients held out, as `policysim.trials.trial_question.judged_on_held_out`, another
        kind of question, does. Without it nothing of a log can be told.
    compared : type or None
        The kind of question that `compare` asks of the study: its report is then written with the choice. None for no
        report.
    """

    study: Study
    wish: Wish
    named: tuple[str, ...] = ()
    judge: Judge | None = None
    compared: type[StudyQuestion] | None = None
    kind = "choice"
    takes = (*OPTIONS, "demands")

    @classmethod
    def of(cls, study: Study, options: Mapping[str, Any]) -> Self:
        """ValueError also for a bound that is none."""
        wish = Wish(**options["demands"])
        for outcome, most in wish.at_most.items():
            if fault := fault_of_bound(outcome, most, study.outcomes):
                raise ValueError(f"at_most: {outcome}: {fault}")
        return cls(study.with_options(options), wish, tuple(options.get("policies", ())))

    def with_given(self, given: Sequence[str]) -> Self:
        """Policies that are the study's own were not asked for by name."""
        return self if "policies" in given else replace(self, named=())

    @property
    def writes(self) -> bool:  # type: ignore[override]  # of every other question about a study it is known
        """A certificate is only found on the way."""
        return self.compared is not None

    def answer(self, progress: Progress) -> Answer:
        """Search; UsageError for a policy that was named and has no epsilon."""
        for name in self.named:
            if name in CATALOGUE and not CATALOGUE[name].uses_epsilon:
                raise UsageError(f"{name} has no ε to choose")
        study, problem = self.study, build_problem(self.study)
        asked_for = [study.policy(name) for name in study.policies]
        usable, _ = usable_policies(asked_for, problem, named="all" not in self.named)
        policies = [policy for policy in asked_for if policy.name in usable and policy.uses_epsilon]
        found = choose(problem, self.wish, [policy for policy in policies if applies(policy, problem)], progress)
        held_out = None
        if isinstance(study, LoggedStudy) and self.judge is not None:
            held_out = self.judge(study, to_judge(found), progress)
        answer = answer_of_choices(study, problem, found, held_out=held_out, progress=progress)
        return answer if self.compared is None else self._with_report(answer, self.compared, progress)

    def _with_report(self, choice: Answer, compared: type[StudyQuestion], progress: Progress) -> Answer:
        """The report of `compare` at the epsilon that was chosen, or at the study's, and the choice before it."""
        study, lines = self.study, choice.options["lines"]
        chosen = lines.loc[lines["chosen"] & (lines["section"] == "policy"), "epsilon"]
        for epsilon in chosen[(chosen > 0) & (chosen < math.inf)]:
            study = replace(study, epsilon=epsilon, epsilons=tuple(sorted({*study.epsilons, epsilon})))
        policies = {"policies": list(self.named)} if self.named else {}
        report = compared.of(study, policies).answer(progress)
        cells = {f"choice-{name}": table for name, table in choice.options.items() if {*COLUMNS} <= {*table.columns}}
        demands = {name: value for name, value in asdict(self.wish).items() if value not in (None, {})}
        return replace(
            report,
            choice=choice.options,
            tables={**cells, **report.tables},
            document=choice.document,
            depends={
                **(report.depends or {}),
                "question": {**self.study.choices, **policies, "demands": demands},
            },
            packages={**report.packages, **choice.packages},
            files={**report.files, **choice.files},
            named={"Report": PAGE, **choice.named},
            exit_code=choice.exit_code,
        )


def answer_of_choices(
    study: Study,
    problem: DecisionProblem,
    choices: Choices,
    *,
    held_out: pd.DataFrame | None = None,
    progress: Progress = SILENT,
) -> Answer:
    """What was found, as tables, and the certificate if nothing can do what was asked for.

    Of a log, `held_out` has the verdicts on patients held out; what it does not have cannot be told.
    """
    drawn = None
    if held_out is None and isinstance(study, LoggedStudy):
        held_out = NOT_JUDGED
    if isinstance(study, ModelledStudy):
        judged = [BestFixed(), Greedy(), *choices.mechanisms.values()]
        found = redrawn(study, problem, judged, progress)
        drawn = None if found is None else found.options
    tables = choice_tables(
        problem,
        choices,
        labels_of(study, problem),
        drawn,
        held_out=held_out,
        study=study,
        published=study.seen == "publication",
    )
    proof = choices.certificate
    done = bool(tables["lines"]["chosen"].any()) or choices.verdict in (Verdict.CAN, Verdict.MAY)
    return Answer(
        options=tables,
        kind=ChoiceQuestion.kind,
        document={**choice_document(study, problem, choices, tables), "certificate_file": None},
        packages=CATALOGUE.versions(choices.needs["policy"]),
        files={} if proof is None else {CERTIFICATE: json_text(proof).encode()},
        named={} if proof is None else {"Certificate file": CERTIFICATE},
        exit_code=0 if done else EXIT_CHECK,
    )


def choice_document(
    study: Study, problem: DecisionProblem, choices: Choices, tables: dict[str, pd.DataFrame]
) -> dict[str, Any]:
    """What --json prints: all that was found, what is chosen, and the verdicts by redraws."""
    lines, verdict = tables["lines"], tables["verdict"]
    return {
        "study": study.name,
        "wish": asdict(choices.wish),
        "rows": choices.needs.to_dict("records"),
        "for_all": choices.for_all.to_dict("records"),
        "chosen": next(iter(lines.loc[lines["chosen"], "option"]), None),
        "holds": verdict.loc[verdict["holds"], "key"].tolist(),
        "certainty": tables["certainty"].to_dict("records"),
        "limit": choices.limit,
        "limit_proven": choices.limit_proven,
        "least_possible": [asdict(each) for each in choices.least_possible],
        "certificate": choices.certificate,
        "verdict": choices.verdict.value,
        "possible": {Verdict.CAN: True, Verdict.CANNOT: False}.get(choices.verdict),
        "bounds": dict(choices.wish.demand(problem).at_most),
    }
