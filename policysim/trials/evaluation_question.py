"""What a policy is worth to the patients of a log in which another policy chose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from policysim.files.output import EXIT_CHECK
from policysim.logs.outcome_models import LINEAR
from policysim.question.answer import Answer
from policysim.question.progress import Progress
from policysim.study.declared import LoggedStudy
from policysim.trials.evaluated_log import Target, read_log_file, read_study_log
from policysim.trials.evaluation_screen import evaluation_document, evaluation_screen
from policysim.trials.log_evaluation import evaluate


@dataclass(frozen=True)
class EvaluationQuestion:
    """Estimate the value of a policy.

    Attributes
    ----------
    log : Path or LoggedStudy
        A file of rows, or a study of a log.
    target : Target
        The policy.
    estimator : str
        "dr", "ips", "snips" or "dm".
    model : str or None
        The outcome model, in place of the study's.
    clip : float or None
        The most that an importance weight may be.
    seed : int or None
        Decides which rows share a fold, in place of the study's.
    """

    log: Path | LoggedStudy
    target: Target
    estimator: str
    model: str | None = None
    clip: float | None = None
    seed: int | None = None
    refuses: ClassVar[Mapping[str, str]] = {}
    unit: ClassVar[str] = "fold"
    writes: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The log's."""
        return self.log.stem if isinstance(self.log, Path) else self.log.name

    def answer(self, progress: Progress) -> Answer:
        """Read and estimate."""
        study = None if isinstance(self.log, Path) else self.log
        log = read_log_file(self.log, self.target.actions) if isinstance(self.log, Path) else read_study_log(self.log)
        model = self.model or (study.log.outcome_model if study else LINEAR)
        seed = self.seed if self.seed is not None else study.seed if study else 0
        found = evaluate(
            log,
            self.target,
            estimator=self.estimator,
            outcome_model=model,
            clip=self.clip,
            seed=seed,
            progress=progress,
        )
        agrees = found.agreement is None or found.agreement.agrees
        return Answer(
            screen=evaluation_screen(log, self.target, found, model),
            document=evaluation_document(log, self.target, found, model),
            exit_code=0 if agrees else EXIT_CHECK,
        )
