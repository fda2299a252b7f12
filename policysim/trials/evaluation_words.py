"""What `policysim evaluate` prints: the arms, then a policy's value; the same numbers for --json."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from policysim.logs.log_source import EXCLUDE, WORST, unknown_words
from policysim.numbers import interval, percent, plain, rounded, supported_digits, with_interval
from policysim.report.screen import Grid, Line, Screen
from policysim.study.checks import MOST_ERRORS, Agreement
from policysim.trials.estimate_value import ESTIMATORS
from policysim.trials.evaluate_log import PolicyOnLog
from policysim.trials.log_to_evaluate import LogToEvaluate
from policysim.trials.trial_words import CONCLUSIONS
from policysim.utility import COSTS
from policysim.words import NO_ADVICE, UNANSWERABLE, in_a_row

PRIVATE = (
    "Private: the treated patient's record, through the published action; that is what ε protects. Not private: the "
    "log and all that is computed from it, such as the outcome model and the numbers above."
)


def evaluation_screen(evaluated: PolicyOnLog) -> Screen:
    """The screen."""
    rows = [
        (arm, f"{patients:,}", supported_digits(mean, low, high), interval(low, high))
        for arm, patients, mean, low, high in evaluated.log.arms.itertuples(index=False)
    ]
    return Screen(
        title=f"The value of a policy to the patients of {evaluated.log.table.name}",
        about=tuple(_about(evaluated)),
        lines=tuple(_lines(evaluated)),
        tables=(Grid(("Each arm given to everyone", "patients", "mean", "95\u00a0% interval"), tuple(rows)),),
        notes=(f"{PRIVATE} {evaluated.policy.privacy}",),
        advice=UNANSWERABLE if evaluated.log.doubts.errors else "",
        warnings=(
            *evaluated.log.doubts.errors,
            *evaluated.log.doubts.others,
            *evaluated.estimate.warnings,
            *(f"one arm for everyone: {text}" for text in evaluated.difference.warnings),
        ),
    )


def _about(evaluated: PolicyOnLog) -> Iterator[str]:
    """What was done with the rows of the log, and what its outcome is."""
    log, study = evaluated.log, evaluated.policy.study
    about = log.about
    wanted = "a time of follow-up" if about["censoring"] else "an outcome"
    by_arm = ", ".join(f"{name} {count:,}" for name, count in about["missing"].items() if count)
    without = f"{sum(about['missing'].values()):,} without {wanted} ({by_arm}), "
    treated = {
        EXCLUDE: f"{without}made up for by a model, right if they are missing by chance given arm and features",
        WORST: f"{without}counted with the lowest reward of the declared range",
    }
    rows = treated.get(about["missing_rule"], "") if by_arm else f"all with {wanted}"
    yield f"{about['rows_read']:,} rows, {rows}; {log.data.n_patients:,} are used."
    yield about["outcome"]
    yield about["censoring"]
    yield unknown_words(about["unknown"])
    if "clusters" in about:
        yield f"Intervals are by {about['clusters']:,} clusters."
    forbidden = ", ".join(f"{name} for {number:,}" for name, number in evaluated.contraindicated.items())
    if forbidden and study:
        yield f"Contraindicated by {study.name}, and never given by the policy: {forbidden}."


def _lines(evaluated: PolicyOnLog) -> Iterator[Line]:
    log = evaluated.log
    estimate, difference, kind = evaluated.estimate, evaluated.difference, ESTIMATORS[evaluated.estimate.estimator]
    yield Line("Policy", f"{evaluated.policy.title}.")
    yield Line("Value", f"{with_interval(estimate.value, *estimate.interval)} per patient, {kind.title}.")
    yield from _limits(evaluated)
    if evaluated.agreement:
        doubt = "Clipping biases the estimate" if estimate.clipped_share else kind.doubt
        yield Line("Exact value", _agreement(evaluated.agreement, doubt))
    conclusion = "no conclusion" if log.doubts.errors else CONCLUSIONS[evaluated.verdict].format("the policy")
    yield Line(
        "Minus one arm",
        f"{with_interval(difference.value, *difference.interval, sign=True)}: {conclusion}. The arm is the one "
        f"that did best in other patients; for most it is {difference.arm}.",
    )
    clipped = f", {percent(estimate.clipped_share)} of the weight clipped" if estimate.clipped_share else ""
    yield Line(
        "How sure",
        f"Standard error {rounded(estimate.standard_error)}, effective sample size {estimate.ess:,.0f} of "
        f"{estimate.n_rows:,} rows, largest weight {rounded(estimate.largest_weight)}{clipped}.",
    )
    if evaluated.outcome_model:
        unused = _not_used(log)
        predictors = ", ".join(map(str, log.known)) or "nothing but the arm"
        yield Line(
            "Outcome model", f"{evaluated.outcome_model}, from {predictors}.{f' Not used: {unused}.' if unused else ''}"
        )


def _limits(evaluated: PolicyOnLog) -> Iterator[Line]:
    """What the policy costs, and what it uses of each treatment that the study limits."""
    about, use = evaluated.log.about, evaluated.use.set_index("what")
    if about["costs"]:
        limit = about["at_most"].get(COSTS, "")
        most = f" (the study's limit: {limit if isinstance(limit, str) else plain(limit)})" if limit != "" else ""
        costs = with_interval(*use.loc[COSTS])
        saved = "; below 0 is a saving" if min(about["costs"].values()) < 0 else ""
        yield Line("Costs", f"{costs} units of utility per patient{most}, taken off the value{saved}.")
    shares = [
        f"“{name}” goes to {with_interval(*(100 * use.loc[name]))} of 100 (the study's limit: {plain(100 * most)})"
        for name, most in about["capacity"].items()
    ]
    if shares:
        yield Line("Use", f"{in_a_row(shares, 'and')}.")


def _agreement(agreement: Agreement, doubt: str) -> str:
    """The exact value, and whether the estimate is near it."""
    exact = f"{agreement.exact:.6f}".replace("-", "−")
    if agreement.errors_apart <= MOST_ERRORS:
        conclusion = "they agree"
    elif agreement.agrees:
        conclusion = "no verdict, because outcomes that are too rare to be in so small a log may matter"
    else:
        conclusion = f"they DISAGREE: more than {MOST_ERRORS:g} is not chance. {doubt}"
    return (
        f"{exact}, {agreement.errors_apart:.2f} standard errors from the estimate: {conclusion}. A model, {NO_ADVICE}."
    )


def _not_used(log: LogToEvaluate) -> str:
    """The columns from which nothing is predicted, with the rows in which one has no value."""
    others = []
    for name in log.table.columns:
        if name not in log.known:
            column = log.table[name]
            gaps = int(column.isin([math.inf, -math.inf]).sum() + column.isna().sum())
            others.append(f"{name} (no value in {gaps:,} rows)" if gaps else name)
    return ", ".join(others)


def evaluation_document(evaluated: PolicyOnLog) -> dict[str, Any]:
    """The same numbers as on the screen, all digits."""
    log, model = evaluated.log, evaluated.outcome_model
    exact, difference = evaluated.agreement, evaluated.difference
    agreement = exact and {"value": exact.exact, "errors_apart": exact.errors_apart, "agrees": exact.agrees}
    return {
        "log": log.table.name,
        **log.about,
        "warnings": [*log.doubts.errors, *log.doubts.others],
        "arms": evaluated.log.arms.to_dict(orient="records"),
        "policy": evaluated.policy.title,
        "contraindicated": dict(evaluated.contraindicated),
        "outcome_model": model or None,
        "predictors": list(map(str, log.known)) if model else None,
        "estimate": asdict(evaluated.estimate),
        "use": evaluated.use.to_dict(orient="records"),
        "exact": agreement,
        "best_single_arm": {**asdict(difference), "verdict": evaluated.verdict},
        "privacy": f"{PRIVATE} {evaluated.policy.privacy}",
    }
