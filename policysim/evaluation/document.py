"""An evaluation for --json."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from policysim.evaluation.evaluated_log import EvaluatedLog
from policysim.evaluation.result import Evaluation
from policysim.evaluation.screen import PRIVATE
from policysim.evaluation.target import Target
from policysim.offpolicy.estimation import NEED_MODEL


def evaluation_document(log: EvaluatedLog, target: Target, found: Evaluation, outcome_model: str) -> dict[str, Any]:
    """The same numbers as on the screen, all digits."""
    models = found.estimate.estimator in NEED_MODEL
    return {
        "log": log.table.name,
        "rows_read": log.n_read,
        "missing": dict(zip(log.data.names, log.missing, strict=True)),
        "missing_rule": log.missing_rule,
        "estimated_propensities": log.estimated_propensities,
        "arms": found.arms.to_dict(orient="records"),
        "policy": target.title,
        "outcome_model": outcome_model if models else None,
        "predictors": list(log.predictors) if models else None,
        "estimate": asdict(found.estimate),
        "exact": _exact(found),
        "best_single_arm": asdict(found.difference),
        "privacy": f"{PRIVATE} {target.privacy}",
    }


def _exact(found: Evaluation) -> dict[str, Any] | None:
    agreement = found.agreement
    if agreement is None:
        return None
    return {"value": agreement.exact, "errors_apart": agreement.errors_apart, "agrees": agreement.agrees}
