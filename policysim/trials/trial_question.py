"""What choosing privately costs the patients of a log: policies made from one part and evaluated on the other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from policies.catalogue import CATALOGUE
from policies.exponential import Exponential
from policies.policy import Policy
from policies.reference import Greedy
from policysim.logs.counted_log import is_counted, open_log, require_countable_model
from policysim.logs.load_log import Log
from policysim.logs.log_source import ESTIMATE
from policysim.numbers import written
from policysim.progress import SILENT, Progress
from policysim.question.answer import PAGE, Answer
from policysim.question.protocol import ONLY_OVER_DAYS, StudyQuestion
from policysim.study.declared import OPTIONS, LoggedStudy
from policysim.study.study_problem import problem_of_log
from policysim.study.sweep import applies, usable_policies, with_references
from policysim.trials.arms import arms_of
from policysim.trials.diagnostics import LogCaveats, balance_of, log_caveats, propensities_of
from policysim.trials.evidence import confounding_needed, heterogeneity, power_of
from policysim.trials.trial_answer import trial_tables
from policysim.trials.trial_columns import compare_log, judged_on_splits
from policysim.words import ALL

# Of a comparison, what stands beside each policy.
POLICIES = (
    "value",
    "difference",
    "difference_low",
    "difference_high",
    "benefit_kept",
    "epsilon_spent",
    "break_even_gain",
)


@dataclass(frozen=True)
class TrialQuestion(StudyQuestion):
    """Compare policies on the patients of a log.

    Attributes
    ----------
    study : LoggedStudy
        The log, its arms, outcome and features, policies, epsilons and groups.
    named : bool
        Whether each policy was asked for by name: one that cannot be used is then refused, and not left out.
    counted : bool
        Whether the log is counted and not read, also if it is in one file.
    executor : concurrent.futures.Executor or None
        Counts the files of a log; None: this thread does.
    """

    study: LoggedStudy
    named: bool = True
    counted: bool = False
    executor: Executor | None = None
    refuses: ClassVar[Mapping[str, str]] = {
        **ONLY_OVER_DAYS,
        "price_list": "does not go with {study}: prices are exact, and a log only has estimates",
        "at_most": "does not go with {study}: of a log only estimates are known, which keep no bound",
    }
    kind = "trial"
    takes = (*OPTIONS, "counted")

    @classmethod
    def of(cls, study: LoggedStudy, options: Mapping[str, Any]) -> Self:
        """The question; that the log is counted changes its numbers, and what counts it does not."""
        return cls(
            study.with_options(options),
            named="all" not in options.get("policies", ()),
            counted=bool(options.get("counted")),
        )

    def answer(self, progress: Progress) -> Answer:
        """Read, fit, evaluate on held-out patients, and draw."""
        # matplotlib is the slowest import of all.
        from policysim.trials.trial_drawings import drawings_of_trial  # noqa: PLC0415

        counted = is_counted(self.study.log, counted=self.counted)
        if counted:
            require_countable_model(self.study.log.outcome_model)
        log = open_log(self.study.log, self.executor, progress, counted=counted)
        problem = problem_of_log(self.study, log)
        policies, left_out = usable_policies(self.study.first_policies, problem, named=self.named)
        bounded = [name for name in policies if not applies(self.study.policy(name), problem)]
        left_out += tuple(f"{name}: only bounds of it could be computed" for name in bounded)
        study = replace(self.study, policies=tuple(name for name in policies if name not in bounded))
        names = with_references(study.policies)
        added = [Exponential.name] if Exponential.name not in names else []
        compared = compare_log(replace(study, policies=(*names, *added)), log, progress)
        doubts = log_caveats(log, study.log)
        tables = tables_behind(study, log, compared[compared["policy"].isin(names)], doubts)
        tables["comparison"] = written(tables["comparison"])
        warnings = [*doubts.errors, *doubts.others, *(f"left out: {reason}" for reason in left_out)]
        options = trial_tables(study, log, problem, tables, compared, warnings=warnings, told=not doubts.errors)
        tables["warnings"] = pd.DataFrame({"warning": warnings})
        return Answer(
            tables={name: table for name, table in tables.items() if not table.empty},
            drawings=drawings_of_trial(study, tables, options["examples"]),
            kind=self.kind,
            options=options,
            depends={
                **study.identity,
                "question": {**study.choices, "counted": counted},
                "records": problem.n_records,
                "actions": list(problem.actions),
                # What the file alone decides.
                "epsilon": study.epsilon,
                **({"public": list(study.public)} if study.public else {}),
            },
            packages={"scikit-learn": version("scikit-learn"), **CATALOGUE.versions(study.policies)},
            related=study.related,
            named={"Report": PAGE},
        )


def judged_on_held_out(study: LoggedStudy, policies: Sequence[Policy], progress: Progress = SILENT) -> pd.DataFrame:
    """Read the log of a study, and judge policies on it: `judged_on_splits`."""
    if is_counted(study.log):
        require_countable_model(study.log.outcome_model)
    return judged_on_splits(study, open_log(study.log, progress=progress), policies, progress)


def tables_behind(
    study: LoggedStudy, log: Log, comparison: pd.DataFrame, doubts: LogCaveats
) -> dict[str, pd.DataFrame]:
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
        arms, balance, propensities : see `arms_of` and `diagnostics`.
        censoring : arm, `patients`, `censored` and `followed` to the horizon; without rows where nobody is censored.
        policies : at the study's epsilon, of everyone, each policy's `value`, `difference` with the ends of its
            interval, `benefit_kept`, `epsilon_spent`, `break_even_gain`, and `surely_from`: the least computed epsilon
            at which that interval is above 0, inf where there is none, NaN for policies that do not depend on epsilon,
            and for all beside such doubts.
        heterogeneity, power, e-value : see `evidence`; e-value without rows where propensities are not estimated.
    """
    overall = comparison[comparison["group"] == ALL]
    now = overall[overall["epsilon"] == study.epsilon].set_index("policy")
    better = overall[overall["difference_low"] > 0].groupby("policy")["epsilon"].min()
    sure = [CATALOGUE[name].uses_epsilon and not doubts.errors for name in study.policies]
    first = [float(better.get(name, math.inf)) for name in study.policies]
    low, high = study.log.utility_range
    patients = {
        "read": log.n_read,
        "without a treatment": log.n_untreated,
        "without an outcome": sum(log.missing),
        "used": log.data.n_patients,
    }
    needed = confounding_needed(log.data, str(comparison["best_arm"].iloc[0]))
    policies = now.loc[list(study.policies), [*POLICIES]].assign(surely_from=np.where(sure, first, math.nan))
    return {
        "comparison": comparison,
        "patients": pd.DataFrame(patients.items(), columns=["what", "patients"]),
        "arms": arms_of(log, study.log),
        "balance": balance_of(log, products=study.log.propensity == ESTIMATE),
        "propensities": propensities_of(log.data),
        "censoring": log.censored[log.censored["censored"] > 0].reset_index(drop=True),
        "policies": policies.reset_index(names="policy"),
        "heterogeneity": heterogeneity(log, study),
        "power": power_of(
            float(now["difference_se"][Greedy.name]),
            log.data.n_patients,
            None if study.log.guessed_range else high - low,
        ),
        "e-value": needed if study.log.propensity == ESTIMATE else needed.iloc[:0],
    }
