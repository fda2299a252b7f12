"""What choosing privately costs the patients of a log: policies made from one part and evaluated on the other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from policies.catalogue import CATALOGUE, mechanism_words
from policies.exponential import Exponential
from policies.optimal.optimum import Optimal
from policies.problem import DecisionProblem
from policies.reference import Greedy, Uniform
from policysim.files.workers import Workers
from policysim.logs.counted_log import is_counted, open_log, require_countable_model
from policysim.logs.load_log import Log
from policysim.logs.log_source import ESTIMATE, outcome_formula
from policysim.logs.outcome_models import CHOSEN
from policysim.question import formats
from policysim.question.answer import Answer, Drawing, Page
from policysim.question.formats import written
from policysim.question.protocol import ONLY_OVER_DAYS, Progress, StudyQuestion
from policysim.question.screen_lines import left_out_lines
from policysim.question.words import ALL
from policysim.study.basis import PUBLIC_OF_LOG, hidden
from policysim.study.declared import OPTIONS, LoggedStudy
from policysim.study.example_patients import witness_rows
from policysim.study.gain import Proof, prove_loss
from policysim.study.slider import Shown, show
from policysim.study.study_problem import problem_of_log
from policysim.study.sweep import applies, usable_policies, with_references
from policysim.trials.arms import arms_of
from policysim.trials.diagnostics import (
    LogCaveats,
    balance_of,
    calibration_of,
    log_caveats,
    propensities_of,
)
from policysim.trials.evidence import ASKED, confounding_needed, heterogeneity, power_of
from policysim.trials.trial_answer import trial_tables
from policysim.trials.trial_columns import ENDS, compare_log
from policysim.trials.trial_findings import LoggedFindings, find
from policysim.trials.trial_screen import (
    LABELS,
    PRIVATE,
    brief,
    headings,
    headline,
    how_estimated,
    logged_screen,
    percentages,
    policy_rows,
    rows_words,
)

CENSORING = (
    "An outcome that is known, 1 or 0, is divided by the probability that it is known: Kaplan and Meier's estimate for "
    "the censoring of the arm. What a censored patient's follow-up tells is added. So the mean of an arm is Kaplan and "
    "Meier's estimate, with Greenwood's variance. Outcome models are fitted to known outcomes with the same weights."
)

BY_CROSS_VALIDATION = "The mean, a regression or small boosted trees, as cross-validation chooses and shrinks it,"


@dataclass(frozen=True)
class TrialQuestion(StudyQuestion):
    """Compare policies on the patients of a log.

    Attributes
    ----------
    study : LoggedStudy
        The log, its arms, outcome and features, policies, epsilons and groups.
    named : bool
        Whether each policy was asked for by name: one that cannot be used is then refused, and not left out.
    workers : Workers or None
        Who counts the log; None: it is read, unless it is in many files.
    options : bool
        Whether to put arms and policies side by side as options (`trial_tables`), for `ps.report`.
    """

    study: LoggedStudy
    named: bool = True
    workers: Workers | None = None
    options: bool = False
    refuses: ClassVar[Mapping[str, str]] = {
        **ONLY_OVER_DAYS,
        "price_list": "does not go with {study}: prices are exact, and a log only has estimates",
        "at_most": "does not go with {study}: of a log only estimates are known, which keep no bound",
    }
    takes = (*OPTIONS, "counted")

    @classmethod
    def of(cls, study: LoggedStudy, options: Mapping[str, Any]) -> Self:
        """Who counts the log changes no number, but that it is counted does: it is then counted by this process."""
        return cls(
            study.with_options(options),
            named="all" not in options.get("policies", ()),
            workers=Workers() if options.get("counted") else None,
        )

    def answer(self, progress: Progress) -> Answer:
        """Read, fit, evaluate on held-out patients, and draw."""
        counted = is_counted(self.study.log, self.workers)
        if counted:
            require_countable_model(self.study.log.outcome_model)
        log = open_log(self.study.log, self.workers, progress)
        problem = problem_of_log(self.study, log)
        policies, left_out = usable_policies(self.study.first_policies, problem, named=self.named)
        bounded = [name for name in policies if not applies(self.study.policy(name), problem)]
        left_out += tuple(f"{name}: only bounds of it could be computed" for name in bounded)
        study = replace(self.study, policies=tuple(name for name in policies if name not in bounded))
        names = with_references(study.policies)
        added = [Exponential.name] if self.options and Exponential.name not in names else []
        compared = compare_log(replace(study, policies=(*names, *added)), log, progress)
        table = compared[compared["policy"].isin(names)]
        doubts = log_caveats(log, study.log)
        tables = tables_of(study, log, table, doubts)
        proof = prove_loss(problem, study.epsilon) if Optimal.name in study.policies else None
        findings = find(study, log, tables, doubts)
        tables["comparison"] = written(table)
        shown = show(study, problem, tables["comparison"], progress)
        answer = answer_of_log(
            study,
            problem,
            tables,
            findings,
            shown,
            proof=proof,
            counted=counted,
            left_out=left_out,
        )
        if not self.options:
            return answer
        return replace(answer, options=trial_tables(study, log, tables, compared, doubts), kind="trial")


def tables_of(study: LoggedStudy, log: Log, comparison: pd.DataFrame, doubts: LogCaveats) -> dict[str, pd.DataFrame]:
    """All that a comparison on a log found, as tables.

    Parameters
    ----------
    study : LoggedStudy
    log : Log
    comparison : DataFrame
        From `compare_log`, with greedy and best-fixed among its policies.
    doubts : LogCaveats
        Where errors that no interval covers have left signs in the log, no policy is surely better.

    Returns
    -------
    dict of str to DataFrame
        comparison : the same.
        patients : `what` (read, without a treatment, without an outcome, used) and how many `patients`.
        arms, balance, calibration, propensities : see `arms_of` and `diagnostics`.
        gain : what choosing for each without privacy gains over `best_arm` for all: `gain`, `gain_low`, `gain_high`.
        policies : the rows of the study's policies at its epsilon, of everyone; `surely_from` is the least computed
            epsilon at which the interval of the difference to the best single treatment is above 0: inf where there is
            none, NaN for policies that do not depend on epsilon, and for all beside such doubts.
        heterogeneity, power, e_value : see `evidence`; e_value without rows where propensities are not estimated.
    """
    overall = comparison[comparison["group"] == ALL]
    now = overall[overall["epsilon"] == study.epsilon].set_index("policy", drop=False)
    one_for_all = str(comparison["best_arm"].iloc[0])
    gain = {f"gain{end}": [now.at[Greedy.name, f"difference{end}"]] for end in ENDS}
    better = overall[overall["difference_low"] > 0].groupby("policy")["epsilon"].min()
    sure = [CATALOGUE[name].uses_epsilon and not doubts.not_covered for name in study.policies]
    first = [float(better.get(name, math.inf)) for name in study.policies]
    low, high = study.log.utility_range
    patients = {
        "read": log.n_read,
        "without a treatment": log.n_untreated,
        "without an outcome": sum(log.missing),
        "used": log.data.n_patients,
    }
    needed = confounding_needed(log.data, one_for_all)
    return {
        "comparison": comparison,
        "patients": pd.DataFrame(patients.items(), columns=["what", "patients"]),
        "arms": arms_of(log, study.log),
        "balance": balance_of(log),
        "calibration": calibration_of(log, study),
        "propensities": propensities_of(log.data),
        "gain": pd.DataFrame({"best_arm": [one_for_all], **gain}),
        "policies": now.loc[list(study.policies)].assign(surely_from=np.where(sure, first, math.nan)),
        "heterogeneity": heterogeneity(log, study),
        "power": power_of(float(now["difference_se"][Greedy.name]), log.data.n_patients, high - low),
        "e_value": needed if study.log.propensity == ESTIMATE else needed.iloc[:0],
    }


def answer_of_log(
    study: LoggedStudy,
    problem: DecisionProblem,
    tables: Mapping[str, pd.DataFrame],
    findings: LoggedFindings,
    shown: Shown,
    *,
    proof: Proof | None,
    counted: bool,
    left_out: tuple[str, ...] = (),
) -> Answer:
    """What a comparison on a log says, shows and keeps.

    Parameters
    ----------
    study : LoggedStudy
        What was asked.
    problem : DecisionProblem
        Fitted to the whole log: what example patients would get.
    tables : mapping of str to DataFrame
        From `tables_of`.
    findings : LoggedFindings
        From `find`.
    shown : Shown
        From `show`.
    proof : Proof or None
        What no policy loses less than by the fitted scores, if the optimum is among the policies.
    counted : bool
        Whether the log was counted.
    left_out : tuple of str, optional
        Policies that could not be used, and why.
    """
    # matplotlib is the slowest import of all; everything before may still fail without it.
    from policysim.trials import trial_drawings as drawn  # noqa: PLC0415

    slider, table = shown.slider, tables["comparison"]
    at_epsilon = table[(table["epsilon"] == study.epsilon) & ~table["policy"].isin([Greedy.name, Uniform.name])]
    drawings: list[Drawing | None] = [
        drawn.gain_drawing(table, study.epsilon),
        drawn.choices_drawing(shown.first, slider.policy),
        drawn.groups_drawing(at_epsilon),
        drawn.calibration_drawing(tables["calibration"]),
        drawn.propensities_drawing(tables["propensities"]),
        drawn.card_drawing(findings),
    ]
    values = {
        "study": study,
        "brief": brief(findings, slider),
        "headings": headings(findings, problem, tables["balance"], at_epsilon),
        "problem": problem,
        "findings": findings,
        "balance": tables["balance"].to_dict("records"),
        "slider": slider,
        "individualise": findings.heterogeneity_words.removeprefix(ASKED).lstrip(),
        "rows_words": rows_words(study, findings),
        "policy_rows": policy_rows(findings),
        "how_estimated": how_estimated(findings),
        "percentages": percentages(findings),
        "private": PRIVATE,
        "witness": witness_rows(problem, problem.sensitivity.witness),
        "labels": LABELS,
        "proof": proof,
        "method": _method(study),
    }
    return Answer(
        screen=[*logged_screen(study, findings), *left_out_lines(left_out)],
        document={
            "unread_checks": study.log.unread,
            "findings": asdict(findings),
            "comparison": table.to_dict(orient="records"),
        },
        headline=headline(findings),
        sentences=findings.answer,
        tables={
            "comparison": table,
            "arms": tables["arms"],
            "examples": shown.probabilities,
            "findings": findings_table(findings, problem),
            "calibration": tables["calibration"],
            "balance": tables["balance"],
            **({} if tables["propensities"].empty else {"propensities": tables["propensities"]}),
        },
        drawings=[drawing for drawing in drawings if drawing is not None],
        pages={"report.html": Page("logged.html", values)},
        position=slider.position,
        depends={
            **study.identity,
            "question": {**study.choices, "counted": counted},
            "records": problem.n_records,
            "actions": list(problem.actions),
            **study.stated,
        },
        packages=CATALOGUE.versions(study.policies),
        named={"Report": "report.html"},
    )


def findings_table(findings: LoggedFindings, problem: DecisionProblem) -> pd.DataFrame:
    """What the page says beyond the comparison and the arms: quantity, subject ("" for none) and value."""
    found = problem.sensitivity
    gain = zip(("estimate", "low", "high"), findings.gain, strict=True)
    rows: list[tuple[str, str, float]] = [
        ("epsilon", "", findings.epsilon),
        ("right_guesses", "", findings.right_guesses),
        ("patients", "read", findings.n_read),
        *([("patients", "without a treatment", findings.n_untreated)] if findings.n_untreated else []),
        ("patients", "without an outcome", findings.n_missing),
        ("patients", "used", findings.n_used),
        *(("gain of greedy over the best single arm", end, value) for end, value in gain),
        ("heterogeneity", "slope", findings.heterogeneity["slope"]),
        ("heterogeneity", "p", findings.heterogeneity["chance"]),
        ("standard error of that gain", "", findings.power["standard_error"]),
        ("least gain seen with 80 % power", "", findings.power["least_gain"]),
        *(("patients needed", f"for a gain of {gain:g}", count) for gain, count in findings.power["patients"].items()),
        *(("epsilon_surely_better", row.policy, row.surely_from) for row in findings.rows),
        *(("break_even_gain", row.policy, row.break_even_gain) for row in findings.rows),
        ("sensitivity", "", found.value),
        ("range", "", found.range),
        *(
            ("score_at_sensitivity", f"{name}, record {place} of 2", float(problem.utilities[record, action]))
            for place, record in enumerate((found.witness.record, found.witness.neighbour), start=1)
            for action, name in enumerate(problem.actions)
        ),
    ]
    return pd.DataFrame([row for row in rows if not math.isnan(row[2])], columns=["quantity", "subject", "value"])


def _method(study: LoggedStudy) -> dict[str, str]:
    source = study.log
    low, high = map(formats.plain, source.utility_range)
    model = BY_CROSS_VALIDATION if source.outcome_model == CHOSEN else f"The {source.outcome_model} outcome model"
    return {
        "Study": f"{study.name} (SHA-256 {study.digest[:12]}…), seed {study.seed}.",
        "Data": "; ".join(f"{name} (SHA-256 {digest[:12]}…)" for name, digest in study.identity["data"].items()) + ".",
        "Outcome": f"{outcome_formula(source)}, from {low} to {high}; propensities: {source.propensity}.",
        **({"Censoring": CENSORING} if source.follow_up else {}),
        "Scores": f"{model} of each arm on the declared features, clipped to the outcome's range. Domain and "
        "sensitivity are those of the declared levels, never of the rows that are there.",
        "Prior": "The share of each record among the patients, with √n imagined ones spread as if the features were "
        "independent.",
        "Hidden": f"{hidden(study)}. From: {study.hidden_from}. Assumed public: {PUBLIC_OF_LOG}.",
        "Value": "Doubly robust and cross-fitted: each patient counts under the version of policy and scores "
        "that was made without that patient. Five folds, ten random splits; the mean over splits, with a variance "
        "that covers how much depends on the split (Chernozhukov et al. 2018, definition 3.3). Intervals are 95 %, "
        "each by itself: among many, some miss.",
        **{name: mechanism_words(name) for name in study.policies},
        "ε of the curve": ", ".join(formats.plain(epsilon) for epsilon in study.epsilons),
    }
