"""Which epsilon, and which mechanism, do what is asked for; or a proof that none can."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from policies.catalogue import CATALOGUE
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.reference import BestFixed, Greedy
from policysim.decision.choice_answer import choice_tables, to_judge
from policysim.decision.choice_record import Adoption, record_tables
from policysim.decision.choose import Choices, Verdict, Wish, choose
from policysim.decision.redraws import redrawn
from policysim.files.json_text import json_text
from policysim.question import EXIT_CHECK
from policysim.question.answer import Answer, Page
from policysim.question.protocol import SILENT, Progress, Question, UsageError
from policysim.study.certainty import INTERVAL, UNTOLD
from policysim.study.declared import LoggedStudy, ModelledStudy, Study
from policysim.study.labels import labels_of
from policysim.study.options_table import DEATHS
from policysim.study.study_problem import build_problem
from policysim.study.sweep import applies, usable_policies

# Policies of a log's study, judged on patients held out: policy, value, low, high, verdict.
Judge = Callable[[LoggedStudy, Sequence[Policy], Progress], pd.DataFrame]
NOT_JUDGED = pd.DataFrame([(Greedy.name, *3 * [math.nan], UNTOLD)], columns=["policy", *INTERVAL, "verdict"])
CERTIFICATE, RECORD = "certificate.json", "decision-record.html"


@dataclass(frozen=True)
class ChoiceQuestion(Question):
    """Find the least epsilon of each policy that does what is asked for.

    Attributes
    ----------
    study : Study
        Of a scenario, a cohort or a log.
    wish : Wish
        What is asked for.
    named : tuple of str
        The policies that were asked for by name, if any.
    record : Adoption or None
        By whom and until when the decision is adopted, for a decision record; None for no record.
    judge : callable or None
        Judges policies of a log on patients held out, as `policysim.trials.trial_question.judged_on_held_out`, another
        kind of question, does. Without it nothing of a log can be told.
    """

    study: Study
    wish: Wish
    named: tuple[str, ...] = ()
    record: Adoption | None = None
    judge: Judge | None = None

    @property
    def writes(self) -> bool:
        """A certificate is only found on the way."""
        return self.record is not None

    @property
    def name(self) -> str:
        """The study's."""
        return self.study.name

    def answer(self, progress: Progress) -> Answer:
        """Search; UsageError for a policy that was named and has no epsilon."""
        for name in self.named:
            if name in CATALOGUE and not CATALOGUE[name].uses_epsilon:
                raise UsageError(f"{name} has no ε to choose")
        study, problem = self.study, build_problem(self.study)
        if self.record and self.record.accepted_deaths is not None and DEATHS not in problem.outcomes:
            raise UsageError(f"--accept deaths does not go with {study.name}, which counts no deaths")
        asked_for = [study.policy(name) for name in study.policies]
        usable, _ = usable_policies(asked_for, problem, named="all" not in self.named)
        policies = [policy for policy in asked_for if policy.name in usable and policy.uses_epsilon]
        found = choose(problem, self.wish, [policy for policy in policies if applies(policy, problem)], progress)
        held_out = None
        if isinstance(study, LoggedStudy) and self.judge is not None:
            held_out = self.judge(study, to_judge(found), progress)
        return answer_of_choices(study, problem, found, record=self.record, held_out=held_out, progress=progress)


def answer_of_choices(
    study: Study,
    problem: DecisionProblem,
    choices: Choices,
    *,
    record: Adoption | None,
    held_out: pd.DataFrame | None = None,
    progress: Progress = SILENT,
) -> Answer:
    """What was found, as tables, and with `record` as a page that people sign, unless it must be accepted first.

    Of a log, `held_out` has the verdicts on patients held out; what it does not have cannot be told.
    """
    drawn = None
    if held_out is None and isinstance(study, LoggedStudy):
        held_out = NOT_JUDGED
    if isinstance(study, ModelledStudy):
        judged = [BestFixed(), Greedy(), *choices.mechanisms.values()]
        found = redrawn(study, problem, judged, progress)
        drawn = None if found is None else found.options
    accepted = record.accepted_deaths if record else math.inf
    labels = labels_of(study, problem)
    published = study.seen == "publication"
    tables = choice_tables(
        problem, choices, labels, drawn, held_out=held_out, study=study, accepted=accepted, published=published
    )
    refused = bool(tables["verdict"].set_index("key").loc["refused", "holds"])
    adopted = record if record and not refused else None
    proof = choices.certificate
    given = bool(tables["lines"]["chosen"].any())
    done = (given or choices.verdict in (Verdict.CAN, Verdict.MAY)) and not refused
    page = {"tables": record_tables(study, problem, choices, tables, adopted)} if adopted else {}
    return Answer(
        options=tables,
        kind="choice",
        document={
            **choice_document(study, problem, choices, tables),
            "certificate_file": None,
            "decision_record": None,
            "record": asdict(adopted) if adopted else None,
            "refused": refused,
        },
        pages={RECORD: Page(RECORD, page)} if adopted else {},
        packages=CATALOGUE.versions(choices.needs["policy"]),
        files={} if proof is None else {CERTIFICATE: json_text(proof).encode()},
        named={
            **({} if proof is None else {"Certificate file": CERTIFICATE}),
            **({"Decision record": RECORD} if adopted else {}),
        },
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
