"""Which epsilon, and which mechanism, do what is asked for; or a proof that none can."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from policies.catalogue import CATALOGUE
from policies.problem import DecisionProblem
from policysim.decision import record as page
from policysim.decision.adoption import DEATHS, Adoption, document
from policysim.decision.choice_screen import asked, choices_screen
from policysim.decision.choose import Choices, Verdict, Wish, choose
from policysim.decision.methods import methods, price_of
from policysim.files.whole_folders import json_text
from policysim.question import EXIT_CHECK
from policysim.question.answer import Answer, Page
from policysim.question.protocol import Progress, Question, UsageError
from policysim.question.screen_lines import wrap
from policysim.study.declared import Study
from policysim.study.study_problem import build_problem
from policysim.study.sweep import applies, usable_policies

CERTIFICATE, RECORD = "certificate.json", "decision-record.html"


@dataclass(frozen=True)
class ChoiceQuestion(Question):
    """Find the least epsilon of each policy that does what is asked for.

    Attributes
    ----------
    study : Study
        Of a scenario or of a log.
    wish : Wish
        What is asked for.
    named : tuple of str
        The policies that were asked for by name, if any.
    record : Adoption or None
        By whom and until when the decision is adopted, for a decision record; None for no record.
    """

    study: Study
    wish: Wish
    named: tuple[str, ...] = ()
    record: Adoption | None = None

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
        return answer_of_choices(study, problem, found, record=self.record)


def answer_of_choices(study: Study, problem: DecisionProblem, choices: Choices, *, record: Adoption | None) -> Answer:
    """What was found, as a screen, and with `record` as a page that people sign, unless it must be accepted first."""
    price = price_of(study, problem, choices)
    proof = choices.certificate
    refused = record.refused(choices) if record else ""
    adopted = record if record and not refused else None
    done = choices.verdict in (Verdict.CAN, Verdict.MAY) and not refused
    return Answer(
        screen=[
            *choices_screen(study, choices, CERTIFICATE if proof is not None else None),
            *(["", *wrap(refused)] if refused else ()),
        ],
        document={
            "study": study.name,
            **asdict(choices),
            "verdict": choices.verdict.value,
            "possible": choices.possible,
            "bounds": dict(choices.wish.demand(problem).at_most),
            "certificate_file": None,
            "decision_record": None,
            "record": document(problem, choices, adopted, study.title, asked(choices)) if adopted else None,
            "refused": refused or None,
            "methods": asdict(methods(study, problem, choices, price)),
        },
        pages={RECORD: Page(RECORD, page.record_values(study, problem, choices, price, adopted))} if adopted else {},
        packages=CATALOGUE.versions(row.policy for row in choices.rows),
        files={} if proof is None else {CERTIFICATE: json_text(proof).encode()},
        named={
            **({} if proof is None else {"Certificate file": CERTIFICATE}),
            **({"Decision record": RECORD} if adopted else {}),
        },
        exit_code=0 if done else EXIT_CHECK,
    )
