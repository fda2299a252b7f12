"""What a policy is worth to the patients of a log in which another policy chose: the question, and what it prints.

The data come before any model, then the policy; `evaluation_document` is the same for --json.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from policysim.files.many_files import is_many
from policysim.files.workers import Workers
from policysim.logs.counted_log import is_counted, require_countable_model
from policysim.logs.log_source import EXCLUDE, WORST
from policysim.logs.outcome_models import LINEAR
from policysim.question import EXIT_CHECK
from policysim.question.answer import Answer
from policysim.question.formats import estimate, interval, percent, rounded, with_interval
from policysim.question.protocol import Progress, Question
from policysim.question.screen_lines import cells, wrap
from policysim.question.words import NO_ADVICE
from policysim.study.certainty import BETTER, NOT_BETTER, verdict_of_interval
from policysim.study.checks import MOST_ERRORS, Agreement
from policysim.study.declared import LoggedStudy
from policysim.trials.estimate_value import ESTIMATORS
from policysim.trials.estimators import OffPolicyEstimate
from policysim.trials.evaluate_log import (
    LogToEvaluate,
    PolicyOnLog,
    count_log_file,
    evaluate_policy,
    read_log_file,
    read_study_log,
)
from policysim.trials.outside_policy import OutsidePolicy

ARMS = ("Before any model", "rows", "mean", "95 % interval")
ARM_COLUMNS = (34, 12, 12, 26)
MISSING = {
    EXCLUDE: "left out, right only if they are missing by chance within each arm",
    WORST: "counted with the lowest reward of the declared range",
}
PRIVATE = (
    "Private: the treated patient's record, through the published action; that is what ε protects. Not private: the "
    "log and all that is computed from it, such as the outcome model and the numbers above."
)
# Of the interval of a difference above 0, below it, or neither.
VERDICTS = {BETTER: "better", NOT_BETTER: "worse"}


def evaluation_screen(log: LogToEvaluate, target: OutsidePolicy, found: PolicyOnLog, outcome_model: str) -> list[str]:
    """An evaluation as text, at most 100 columns wide: the data before any model, then the policy."""
    value, apart, kind = found.estimate, found.difference, ESTIMATORS[found.estimate.estimator]
    arms = [
        cells([arm, f"{rows:,}", estimate(mean, low, high), interval(low, high)], ARM_COLUMNS)
        for arm, rows, mean, low, high in found.arms.itertuples(index=False)
    ]
    forbidden = ", ".join(f"{name} for {number:,}" for name, number in found.contraindicated.items())
    study = target.study.name if target.study else ""
    predictors = ", ".join(log.predictors) or "nothing but the arm"
    clipped = f", {percent(value.clipped_share)} of the weight clipped" if value.clipped_share else ""
    verdict = VERDICTS.get(verdict_of_interval(*apart.interval), "no difference is shown")
    paragraphs = [
        rows_words(log),
        log.about["outcome"],
        f"Contraindicated by {study}, and never given by the policy: {forbidden}." if forbidden else "",
        ["", cells(list(ARMS), ARM_COLUMNS), *arms],
        log.about["censoring"],
        [""],
        f"Policy: {target.title}.",
        f"Outcome model: {outcome_model}, from {predictors}.{_not_used(log)}" if kind.folds else "",
        ["", f"Value ({kind.title})   {with_interval(value.value, *value.interval)}"],
        f"Standard error {rounded(value.standard_error)}, effective sample size {value.ess:,.0f} of {value.n_rows:,} "
        f"rows, largest weight {rounded(value.largest_weight)}{clipped}.",
        "" if found.agreement is None else _agreement_words(found.agreement, value),
        *(f"Warning: {warning}" for warning in value.warnings),
        [""],
        f"Minus one arm for all   {with_interval(apart.value, *apart.interval, sign=True)}: {verdict}.",
        f"The arm is the one that did best in the other folds; for most patients {apart.arm}.",
        *(f"Warning: {warning}" for warning in apart.warnings),
        [""],
        f"{PRIVATE} {target.privacy}",
    ]
    return [line for each in paragraphs for line in (wrap(each) if isinstance(each, str) else each)]


def rows_words(log: LogToEvaluate) -> str:
    """How many rows, what is done with those without an outcome, and where propensities come from."""
    about, n_missing = log.about, sum(log.about["missing"].values())
    by_arm = ", ".join(f"{name} {count:,}" for name, count in about["missing"].items() if count)
    wanted = "a time of follow-up" if about["censoring"] else "an outcome"
    rule = MISSING.get(about["missing_rule"], "")
    what = f"{n_missing:,} without {wanted} ({by_arm}), {rule}" if n_missing else f"all with {wanted}"
    known = " Propensities were estimated: confounding is possible." if about["estimated_propensities"] else ""
    return f"{log.table.name}: {about['rows_read']:,} rows, {what}; {log.data.n_patients:,} are used.{known}"


def _agreement_words(found: Agreement, estimated: OffPolicyEstimate) -> str:
    if found.errors_apart <= MOST_ERRORS:
        verdict = "they agree"
    elif found.agrees:
        verdict = "no verdict, because outcomes that are too rare to be in so small a log may matter"
    else:
        doubt = "Clipping biases the estimate" if estimated.clipped_share else ESTIMATORS[estimated.estimator].doubt
        verdict = f"they DISAGREE: more than {MOST_ERRORS:g} is not chance. {doubt}"
    exact = f"{found.exact:.6f}".replace("-", "−")
    return f"Exact value   {exact}, {found.errors_apart:.2f} standard errors apart: {verdict}. A model, {NO_ADVICE}."


def _not_used(log: LogToEvaluate) -> str:
    """The columns from which nothing is predicted, with the rows in which one has no value."""
    others = []
    for name in log.table.columns:
        if name not in log.predictors:
            column = log.table[name]
            gaps = int(column.isin([math.inf, -math.inf]).sum() + column.isna().sum())
            others.append(f"{name} (no value in {gaps:,} rows)" if gaps else name)
    return f" Not used: {', '.join(others)}." if others else ""


def evaluation_document(
    log: LogToEvaluate, target: OutsidePolicy, found: PolicyOnLog, outcome_model: str
) -> dict[str, Any]:
    """The same numbers as on the screen, all digits."""
    models, exact = bool(ESTIMATORS[found.estimate.estimator].folds), found.agreement
    agreement = exact and {"value": exact.exact, "errors_apart": exact.errors_apart, "agrees": exact.agrees}
    return {
        "log": log.table.name,
        **log.about,
        "arms": found.arms.to_dict(orient="records"),
        "policy": target.title,
        "contraindicated": dict(found.contraindicated),
        "outcome_model": outcome_model if models else None,
        "predictors": list(log.predictors) if models else None,
        "estimate": asdict(found.estimate),
        "exact": agreement,
        "best_single_arm": asdict(found.difference),
        "privacy": f"{PRIVATE} {target.privacy}",
    }


@dataclass(frozen=True)
class EvaluationQuestion(Question):
    """Estimate the value of a policy.

    Attributes
    ----------
    log : Path or LoggedStudy
        A file of rows, or a study of a log.
    target : OutsidePolicy
        The policy.
    estimator : str
        "dr", "ips", "snips" or "dm".
    model : str or None
        The outcome model, in place of the study's.
    clip : float or None
        The most that an importance weight may be.
    seed : int or None
        Decides which rows share a fold, in place of the study's.
    workers : Workers or None
        Who counts the log; None: it is read, unless it is in many files.
    """

    log: Path | LoggedStudy
    target: OutsidePolicy
    estimator: str
    model: str | None = None
    clip: float | None = None
    seed: int | None = None
    workers: Workers | None = None
    unit: ClassVar[str] = "fold"

    @property
    def name(self) -> str:
        """The log's."""
        return self.log.stem if isinstance(self.log, Path) else self.log.name

    def answer(self, progress: Progress) -> Answer:
        """Read and estimate."""
        study = None if isinstance(self.log, Path) else self.log
        model = self.model or (study.log.outcome_model if study else LINEAR)
        many = self.workers is not None or is_many(self.log) if isinstance(self.log, Path) else False
        if ESTIMATORS[self.estimator].folds and (many or (study and is_counted(study.log, self.workers))):
            require_countable_model(model)
        if not isinstance(self.log, Path):
            log = read_study_log(self.log, self.workers, progress)
        elif many:
            log = count_log_file(self.log, self.target, self.workers or Workers(), progress)
        else:
            log = read_log_file(self.log, self.target.actions)
        seed = self.seed if self.seed is not None else study.seed if study else 0
        options: dict[str, Any] = {"estimator": self.estimator, "outcome_model": model, "clip": self.clip, "seed": seed}
        found = evaluate_policy(log, self.target, **options, progress=progress)
        agrees = found.agreement is None or found.agreement.agrees
        return Answer(
            screen=evaluation_screen(log, self.target, found, model),
            document=evaluation_document(log, self.target, found, model),
            exit_code=0 if agrees else EXIT_CHECK,
        )
