"""What a policy is worth to the patients of a log in which another policy chose: the question, and what it prints.

The data come before any model, then the policy; `evaluation_document` is the same for --json.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from policysim.errors import EXIT_CHECK
from policysim.files.many_files import is_many
from policysim.logs.counted_log import is_counted, require_countable_model
from policysim.logs.log_source import EXCLUDE, LINEAR, WORST
from policysim.numbers import interval, percent, rounded, supported_digits, with_interval
from policysim.progress import Progress
from policysim.question.answer import Answer, Page
from policysim.question.protocol import Question
from policysim.study.certainty import BETTER, NOT_BETTER, verdict_of_interval
from policysim.study.checks import MOST_ERRORS, Agreement
from policysim.study.declared import LoggedStudy
from policysim.trials.estimate_value import ESTIMATORS
from policysim.trials.evaluate_log import (
    LogToEvaluate,
    PolicyOnLog,
    count_log_file,
    evaluate_policy,
    read_log_file,
    read_study_log,
)
from policysim.trials.outside_policy import OutsidePolicy
from policysim.words import NO_ADVICE, cells

ARMS = ("Before any model", "rows", "mean", "95 % interval")
ARM_COLUMNS = (34, 12, 12, 26)
PRIVATE = (
    "Private: the treated patient's record, through the published action; that is what ε protects. Not private: the "
    "log and all that is computed from it, such as the outcome model and the numbers above."
)
# Of the interval of a difference above 0, below it, or neither.
VERDICTS = {BETTER: "better", NOT_BETTER: "worse"}


def evaluation_texts(
    log: LogToEvaluate, target: OutsidePolicy, found: PolicyOnLog, outcome_model: str
) -> dict[str, Any]:
    """What the screen says: the data before any model, then the policy."""
    about, value, apart, kind = log.about, found.estimate, found.difference, ESTIMATORS[found.estimate.estimator]
    arms = [
        cells([arm, f"{rows:,}", supported_digits(mean, low, high), interval(low, high)], ARM_COLUMNS)
        for arm, rows, mean, low, high in found.arms.itertuples(index=False)
    ]
    wanted = "a time of follow-up" if about["censoring"] else "an outcome"
    by_arm = ", ".join(f"{name} {count:,}" for name, count in about["missing"].items() if count)
    missing = [f"{sum(about['missing'].values()):,} without {wanted} ({by_arm})"] if by_arm else []
    forbidden = ", ".join(f"{name} for {number:,}" for name, number in found.contraindicated.items())
    return {
        "log": log.table.name,
        "read": f"{about['rows_read']:,}",
        "left_out": missing if about["missing_rule"] == EXCLUDE else [],
        "worst": missing if about["missing_rule"] == WORST else [],
        "complete": [] if missing else [wanted],
        "used": f"{log.data.n_patients:,}",
        "estimated": ["estimated"] if about["estimated_propensities"] else [],
        "outcome": about["outcome"],
        "forbidden": [forbidden] if forbidden else [],
        "study": target.study.name if target.study else "",
        "arms": [cells(list(ARMS), ARM_COLUMNS), *arms],
        "censoring": about["censoring"],
        "policy": target.title,
        "models": [outcome_model] if kind.folds else [],
        "predictors": ", ".join(log.predictors) or "nothing but the arm",
        "unused": _not_used(log),
        "estimator": kind.title,
        "value": with_interval(value.value, *value.interval),
        "standard_error": rounded(value.standard_error),
        "ess": f"{value.ess:,.0f}",
        "rows": f"{value.n_rows:,}",
        "largest_weight": rounded(value.largest_weight),
        "clipped": [percent(value.clipped_share)] if value.clipped_share else [],
        **_agreement_texts(found.agreement, "Clipping biases the estimate" if value.clipped_share else kind.doubt),
        "warnings": value.warnings,
        "difference": with_interval(apart.value, *apart.interval, sign=True),
        "verdict": VERDICTS.get(verdict_of_interval(*apart.interval), "no difference is shown"),
        "arm": apart.arm,
        "warnings_of_difference": apart.warnings,
        "privacy": f"{PRIVATE} {target.privacy}",
    }


def _agreement_texts(found: Agreement | None, doubt: str) -> dict[str, Any]:
    """The exact value, where it is known, and whether the estimate is near it."""
    if found is None:
        return {"known": []}
    near = found.errors_apart <= MOST_ERRORS
    return {
        "known": [f"{found.exact:.6f}".replace("-", "−")],
        "errors_apart": f"{found.errors_apart:.2f}",
        "agrees": ["agrees"] if near else [],
        "too_few": ["too few"] if found.agrees and not near else [],
        "disagrees": [] if found.agrees or near else [doubt],
        "most": f"{MOST_ERRORS:g}",
        "no_advice": NO_ADVICE,
    }


def _not_used(log: LogToEvaluate) -> list[str]:
    """The columns from which nothing is predicted, with the rows in which one has no value: one text, or none."""
    others = []
    for name in log.table.columns:
        if name not in log.predictors:
            column = log.table[name]
            gaps = int(column.isin([math.inf, -math.inf]).sum() + column.isna().sum())
            others.append(f"{name} (no value in {gaps:,} rows)" if gaps else name)
    return [", ".join(others)] if others else []


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
    counted : bool
        Whether the log is counted and not read, also if it is in one file.
    executor : concurrent.futures.Executor or None
        Counts the files of a log; None: this thread does.
    """

    log: Path | LoggedStudy
    target: OutsidePolicy
    estimator: str
    model: str | None = None
    clip: float | None = None
    seed: int | None = None
    counted: bool = False
    executor: Executor | None = None
    unit: ClassVar[str] = "fold"

    @property
    def name(self) -> str:
        """The log's."""
        return self.log.stem if isinstance(self.log, Path) else self.log.name

    def answer(self, progress: Progress) -> Answer:
        """Read and estimate."""
        study = None if isinstance(self.log, Path) else self.log
        model = self.model or (study.log.outcome_model if study else LINEAR)
        if isinstance(self.log, Path):
            counted = self.counted or is_many(self.log)
        else:
            counted = is_counted(self.log.log, counted=self.counted)
        if counted and ESTIMATORS[self.estimator].folds:
            require_countable_model(model)
        if not isinstance(self.log, Path):
            log = read_study_log(self.log, self.executor, progress, counted=counted)
        elif counted:
            log = count_log_file(self.log, self.target, self.executor, progress)
        else:
            log = read_log_file(self.log, self.target.actions)
        seed = self.seed if self.seed is not None else study.seed if study else 0
        options: dict[str, Any] = {"estimator": self.estimator, "outcome_model": model, "clip": self.clip, "seed": seed}
        found = evaluate_policy(log, self.target, **options, progress=progress)
        agrees = found.agreement is None or found.agreement.agrees
        return Answer(
            screen=Page("evaluation-screen.txt", evaluation_texts(log, self.target, found, model)),
            document=evaluation_document(log, self.target, found, model),
            exit_code=0 if agrees else EXIT_CHECK,
        )
