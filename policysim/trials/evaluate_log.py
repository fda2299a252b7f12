"""What a policy is worth to the patients of a log in which another policy chose.

`evaluate_log` takes a log and a policy as data frames. `evaluate_policy` says all that the log of a study or of a file
says about a policy made elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from policies.arrays import FloatArray, IntArray
from policysim.files.bad_rows import BadRows, DataError
from policysim.files.csv_format import RECOGNISED, CsvFormat
from policysim.files.data_table import DataTable
from policysim.files.many_files import is_many
from policysim.logs.adjusters import Covariates
from policysim.logs.clusters import read_clusters, require_clusters
from policysim.logs.counted_log import is_counted, require_countable_model
from policysim.logs.incomplete import Incomplete
from policysim.logs.log_frame import (
    ACTION,
    COLUMNS,
    LoggedData,
    as_list,
    check_seed,
    covariate_frame,
    covariate_matrix,
    one_of,
    read_log_frame,
    require_frame,
    row_probabilities,
    summed,
)
from policysim.logs.log_source import LINEAR
from policysim.logs.outcome_models import check_outcome_model
from policysim.progress import SILENT, Progress
from policysim.report.findings import NOT_SHOWN, verdict_of_interval
from policysim.study.checks import Agreement
from policysim.study.declared import LoggedStudy, ScenarioStudy
from policysim.trials.arms import ArmDifference, difference_from_one_arm
from policysim.trials.estimate_value import ESTIMATORS, CrossFit, cross_fit, estimate_value
from policysim.trials.estimators import OffPolicyEstimate, moments
from policysim.trials.log_to_evaluate import (
    LogToEvaluate,
    all_with_reward,
    count_log_file,
    read_log_file,
    read_study_log,
)
from policysim.trials.outside_policy import OutsidePolicy, require_allowed
from policysim.trials.overlap import where_caveats
from policysim.utility import COSTS


def evaluate_log(
    log: pd.DataFrame,
    probabilities: ArrayLike | pd.DataFrame,
    *,
    estimator: str = "dr",
    actions: Sequence[Any] | None = None,
    covariates: Sequence[str] | None = None,
    study: ScenarioStudy | None = None,
    outcome_model: str = "linear",
    folds: int | None = None,
    clip: float | None = None,
    seed: int = 0,
    clusters: str | ArrayLike | None = None,
) -> OffPolicyEstimate:
    """Estimate the expected reward of a policy from a log in which another policy chose.

    Parameters
    ----------
    log : DataFrame, n_rows
        A row for each decision: `action`, `reward` (more is better; NaN where `read_log` with missing="exclude" found
        none: which are observed is then modelled by the covariates), `propensity` (the probability with which the
        logged action was taken) and covariates, which are all other columns but `patient` and outcome_...: so
        `policysim simulate --log` names what counts patients and what is known only after treatment.
    probabilities : array, (n_rows, k), or DataFrame
        The evaluated policy: the probability of each action for the patient of each row, in the log's order of rows.
        The columns of a DataFrame are the actions, in any order. Where the policy was learned from these same rows,
        every estimate is too good.
    estimator : str
        "ips": inverse propensity scores. "snips": self-normalised ones. "dm": the direct method, which believes the
        outcome model: its interval leaves out that the model may be wrong, and a warning always says so. "dr": doubly
        robust, cross-fitted; right if the propensities are, whatever the outcome model.
    actions : sequence, optional
        The k actions in the order of the columns of `probabilities`. By default those that name the columns of a
        DataFrame; for an array, the categories of a categorical column `action`, else the actions that occur, sorted.
    covariates : sequence of str, optional
        The columns to predict the reward from, for "dm" and "dr", and to look for missing overlap in; by default all
        covariates of the log. Columns that are named here are taken whatever they are called. Without any, a mean for
        each action is the outcome model.
    study : ScenarioStudy, optional
        Whose contraindications the policy must keep to. What they read must be columns of the log.
    outcome_model : str
        "linear" (ridge regression for each action), "logistic" (for rewards of 0 and 1), "gradient-boosting",
        "constant" (a mean for each action), "stacked" (regressions and small trees, weighted by held-out rows), or
        "chosen": the means, or a regression that held-out rows shrink to them.
    folds : int
        The outcome model of each of this many parts is fitted on the others. By default 5, and 20 for "dm", whose
        standard error is made from them and is as rough as they are few; fewer if there are fewer rows.
    clip : float, optional
        The most that an importance weight may be; none by default, as clipping biases the estimate.
    seed : int
        Decides which rows share a fold.
    clusters : str or array, (n_rows,), optional
        Of rows that are not independent, such as those of a village or of a person: the column that names each row's
        cluster, which is then no covariate unless it is named as one; or the names themselves. Whole clusters share a
        fold, and the interval is by cluster; each action needs at least 8.

    Returns
    -------
    OffPolicyEstimate
        `.value`, `.standard_error`, `.interval` (95 %), `.ess`, `.largest_weight`, `.clipped_share`, `.warnings`.

    Raises
    ------
    ValueError
        For missing columns, fewer than two rows, probabilities of the wrong shape or that do not sum to 1 (within 1e-6)
        in a row; a propensity outside (0, 1], an unknown action, a reward or covariate that is missing or infinite (the
        first twenty rows, counted from 0, are named); a policy that gives a patient what is contraindicated (the first
        row is named); and options out of range.

    Notes
    -----
    With w = p(a|x) / propensity, v the value and q the outcome model, the rows contribute w r ("ips"),
    v + w (r - v) / mean(w) ("snips", v = sum w r / sum w) and sum_a p(a|x) q(x, a) + w (r - q(x, a)) ("dr"); the value
    is their mean and the standard error that of a mean. That of "dm" is a jackknife over the folds: it covers the fit,
    but no error of the model itself, so that its interval is only as good as the model.

    Intervals reach 1.96 standard errors to either side, and further where the rows are skewed (Hall 1988); those of
    "dm" and by clusters are Student's. They need enough rows that matter: how often they cover, and where they do not
    (rare and large losses, such as deaths; an effective sample size below 200), is in
    docs/notes/off-policy-coverage.md.

    References
    ----------
    Horvitz & Thompson (1952), A generalization of sampling without replacement from a finite universe.
    Swaminathan & Joachims (2015), The self-normalized estimator for counterfactual learning, equation 8.
    Owen (2013), Monte Carlo theory, methods and examples, equation 9.9.
    Robins, Rotnitzky & Zhao (1994), Estimation of regression coefficients when some regressors are not always observed.
    Dudik, Langford & Li (2011), Doubly robust policy evaluation and learning, equation 2.
    Chernozhukov et al. (2018), Double/debiased machine learning for treatment and structural parameters.
    Hall (1988), Theoretical comparison of bootstrap confidence intervals, table 1.
    Kott (2001), The delete-a-group jackknife.
    Bell & McCaffrey (2002), Bias reduction in standard errors for linear regression with multi-stage samples.

    Examples
    --------
    >>> import pandas as pd
    >>> log = pd.DataFrame(
    ...     {
    ...         "action": ["treat", "wait", "treat", "wait"],
    ...         "reward": [1.0, 0.0, 1.0, 1.0],
    ...         "propensity": [0.5, 0.5, 0.5, 0.5],
    ...     }
    ... )
    >>> found = evaluate_log(log, [[0.75, 0.25]] * 4, estimator="ips")  # columns: treat, wait
    >>> found.value, round(found.standard_error, 3), round(found.ess, 1)
    (0.875, 0.375, 3.2)
    >>> found.warnings[0]
    'the value may be nearly anything: its 95 % interval is −0.11 to 1.9, and 0 to 1 are possible.'
    """
    one_of(estimator, tuple(ESTIMATORS), "estimator")
    check_seed(seed)
    if isinstance(probabilities, pd.DataFrame):
        probabilities, actions = policy_columns(require_frame(log), probabilities, actions)
    data = read_log_frame(log, actions)
    log, data = with_clusters(log, data, clusters, covariates)
    policy = row_probabilities(probabilities, data.n_rows, data.names)
    table, known = DataTable("log", log), covariate_frame(log, covariates)
    require_allowed(study, policy, data, table)
    seen = ~np.isnan(data.rewards)
    if not seen.all():
        data = Incomplete.of(data, Covariates.of_frame(known), seen).column(data.rewards)
    rows = LogToEvaluate(table, data, known, all_with_reward(data), known)
    rows, _, fitted = cross_fitted(rows, estimator, outcome_model, folds=folds, seed=seed)
    return estimated(rows, policy, estimator, fitted, clip)


def with_clusters(
    log: pd.DataFrame, data: LoggedData, clusters: str | ArrayLike | None, covariates: Sequence[str] | None
) -> tuple[pd.DataFrame, LoggedData]:
    """The log without its column of clusters, unless that is a covariate; and its arrays with them.

    Raises
    ------
    ValueError
        For a column that is not there, or names that are not one for each row, or that have the log's index in another
        order.
    DataError
        A row without a cluster; or too few clusters (`logs.clusters.require_clusters`).
    """
    if clusters is None:
        return log, data
    title = clusters if isinstance(clusters, str) else "clusters"
    if not isinstance(clusters, str):
        column = pd.Series(np.asarray(clusters).tolist(), dtype=object)
        if len(column) != data.n_rows:
            raise ValueError(f"clusters must be one for each of {data.n_rows:,} rows, got {len(column):,}.")
        if isinstance(clusters, pd.Series):
            _refuse_reordered("clusters", clusters.index, log.index)
        table = DataTable("log", pd.DataFrame({title: column}))
    elif clusters in COLUMNS or clusters not in log.columns:
        raise ValueError(f"clusters must be a column of the log, got clusters={clusters!r}.")
    else:
        table = DataTable("log", log)
        log = log.drop(columns=[] if clusters in (as_list(covariates) or ()) else [clusters])
    bad = BadRows()
    numbers = read_clusters(table, title, bad)
    bad.raise_if_any()
    require_clusters("log", title, numbers, data.actions, data.names)
    return log, replace(data, clusters=numbers)


def policy_columns(
    log: pd.DataFrame, probabilities: pd.DataFrame, actions: Sequence[Any] | None
) -> tuple[ArrayLike, list[Any]]:
    """The probabilities as an array, and the actions in the order of its columns.

    A column is the action of that name, compared as text: a column "0" is the action 0. Rows are matched by position.

    Raises
    ------
    ValueError
        For columns that are not distinct, or not those that `actions` declares; and for an index that holds the log's
        labels in another order, as then the rows are not the log's.
    """
    by_name = {str(name): (place, name) for place, name in enumerate(probabilities.columns)}
    said = ", ".join(repr(str(name)) for name in probabilities.columns)
    if len(by_name) < probabilities.shape[1]:
        raise ValueError(f"the columns of probabilities must be distinct actions, got {said}.")
    columns = list(by_name) if actions is None else list(map(str, as_list(actions) or ()))
    if sorted(columns) != sorted(by_name):
        wanted = ", ".join(map(repr, columns))
        raise ValueError(f"the columns of probabilities must be the actions {wanted}, got {said}.")
    _refuse_reordered("probabilities", probabilities.index, log.index)
    logged = {str(value): value for value in log[ACTION].unique()} if ACTION in log.columns else {}
    names = [logged.get(name, by_name[name][1]) for name in columns]
    return probabilities.iloc[:, [by_name[name][0] for name in columns]].to_numpy(), names


def _refuse_reordered(name: str, index: pd.Index, of_log: pd.Index) -> None:
    """ValueError for an index that holds the log's labels in another order, as then the rows are not the log's."""
    if not index.equals(of_log) and set(index) == set(of_log):
        raise ValueError(f"{name} must have its rows in the log's order: its index is the log's, reordered.")


def evaluate_on(
    log: Path | LoggedStudy,
    policy: OutsidePolicy,
    *,
    estimator: str,
    model: str | None = None,
    clip: float | None = None,
    seed: int | None = None,
    counted: bool = False,
    stated: CsvFormat = RECOGNISED,
    executor: Executor | None = None,
    progress: Progress = SILENT,
) -> PolicyOnLog:
    """Read a log, and evaluate a policy made elsewhere on it.

    Parameters
    ----------
    log : Path or LoggedStudy
        A file of rows, a folder or a pattern; or a study of a log.
    policy : OutsidePolicy
    estimator : str
        "dr", "ips", "snips" or "dm".
    model : str, optional
        The outcome model, in place of the study's.
    clip : float, optional
        The most that an importance weight may be.
    seed : int, optional
        Decides which rows share a fold, in place of the study's.
    counted : bool, optional
        Whether the log is counted and not read, also if it is in one file.
    executor : concurrent.futures.Executor, optional
        Counts the files of a log; by default this thread does.
    progress : Progress, optional
        Reports each fold.
    """
    study = None if isinstance(log, Path) else log
    model = model or (study.log.outcome_model if study else LINEAR)
    many = is_many(log) if isinstance(log, Path) else is_counted(log.log, counted=counted)
    counted = counted or many
    if counted and ESTIMATORS[estimator].folds:
        require_countable_model(model)
    if not isinstance(log, Path):
        opened = read_study_log(log, executor, progress, counted=counted)
    elif counted:
        opened = count_log_file(log, policy, executor, progress, stated)
    else:
        opened = read_log_file(log, policy.actions, stated)
    seed = seed if seed is not None else study.seed if study else 0
    return evaluate_policy(
        opened, policy, estimator=estimator, outcome_model=model, clip=clip, seed=seed, progress=progress
    )


@dataclass(frozen=True, eq=False)
class PolicyOnLog:
    """All that a log says about a policy.

    Attributes
    ----------
    log : LogToEvaluate
        The rows that were used.
    policy : OutsidePolicy
    estimate : OffPolicyEstimate
        The policy's value.
    difference : ArmDifference
        From one arm for all, chosen on other folds.
    agreement : Agreement or None
        The estimate beside the exact value, where that is known.
    contraindicated : mapping of str to int
        How many patients must not get an arm, if there are any.
    outcome_model : str
        The one that was fitted; "" for an estimator that takes none.
    use : DataFrame
        `what` (each treatment, and costs where there are any), `value` (the share of patients that get it; units of
        utility per patient), with its 95 % interval `low`, `high`.
    """

    log: LogToEvaluate
    policy: OutsidePolicy
    estimate: OffPolicyEstimate
    difference: ArmDifference
    agreement: Agreement | None
    contraindicated: Mapping[str, int]
    outcome_model: str
    use: pd.DataFrame

    @property
    def verdict(self) -> str:
        """Whether the policy is better than one arm for everyone."""
        return NOT_SHOWN if self.log.doubts.errors else verdict_of_interval(*self.difference.interval)


def evaluate_policy(
    log: LogToEvaluate,
    policy: OutsidePolicy,
    *,
    estimator: str,
    outcome_model: str,
    clip: float | None,
    seed: int,
    progress: Progress = SILENT,
) -> PolicyOnLog:
    """Evaluate a policy made elsewhere on a log, beside its arms and the best of them.

    The estimate agrees with the exact value if they are at most five standard errors apart, or by no more than outcomes
    can explain that are too rare to be in the log (`Agreement`): one row may count as often as the largest
    importance weight says.

    Raises
    ------
    DataError
        For a policy that gives a patient what is contraindicated, or that does not know an action of the log; and as
        `OutsidePolicy.probabilities`.
    """
    for name in log.data.names:
        if name not in policy.actions:
            raise DataError(
                f"{log.table.name}: the policy has no probability of the arm {name!r}; it has "
                f"{', '.join(policy.actions)}"
            )
    # Actions that the log never takes stand behind its own.
    names = log.data.names + tuple(name for name in policy.actions if name not in log.data.names)
    costs = None if log.data.costs is None else np.append(log.data.costs, np.zeros(len(names) - log.data.n_actions))
    log = replace(log, data=replace(log.data, names=names, costs=costs))
    probabilities = policy.probabilities(log.table)[:, [policy.actions.index(name) for name in names]]
    contraindicated, mask = {}, require_allowed(policy.study, probabilities, log.data, log.table)
    if mask is not None:
        numbers = summed((~mask).astype(np.float64), log.data.counts).tolist()
        contraindicated = {name: int(number) for name, number in zip(names, numbers, strict=True) if number}
    log, rows, fitted = cross_fitted(log, estimator, outcome_model, seed=seed, progress=progress)
    probabilities, mask = probabilities[rows], None if mask is None else mask[rows]
    estimate = estimated(log, probabilities, estimator, fitted, clip)
    agreement, exact = None, policy.exact()
    if exact is not None:
        spread = exact[1] * max(1.0, estimate.largest_weight)
        agreement = Agreement(estimate.n_rows, estimate.value, estimate.standard_error, exact[0], spread)
    return PolicyOnLog(
        log=log,
        policy=policy,
        estimate=estimate,
        difference=difference_from_one_arm(
            log.data, probabilities, mask, seed=seed, estimator=estimator, fitted=fitted, clip=clip
        ),
        agreement=agreement,
        contraindicated=contraindicated,
        outcome_model=outcome_model if ESTIMATORS[estimator].folds else "",
        use=_use(log.data, probabilities),
    )


def _use(data: LoggedData, probabilities: FloatArray) -> pd.DataFrame:
    """How many patients get each treatment, and what that costs; see `PolicyOnLog.use`."""
    each = dict(zip(data.names, probabilities.T, strict=True))
    if data.costs is not None:
        each[COSTS] = probabilities @ data.costs
    found = {what: moments(values, data.counts, clusters=data.clusters) for what, values in each.items()}
    rows = [(what, mean.mean, *mean.interval) for what, mean in found.items()]
    return pd.DataFrame(rows, columns=["what", "value", "low", "high"])


def cross_fitted(
    log: LogToEvaluate,
    estimator: str,
    outcome_model: str,
    *,
    folds: int | None = None,
    seed: int,
    progress: Progress = SILENT,
) -> tuple[LogToEvaluate, IntArray, CrossFit | None]:
    """The log as an estimator takes it, which of its rows these are, and outcome models; None for one without.

    The patients of a counted log are dealt among the folds, so that a row may become several. By default there are as
    many folds as the estimator wants, or as there are patients or clusters.
    """
    wanted, data, rows = ESTIMATORS[estimator].folds, log.data, np.arange(log.data.n_rows)
    if not wanted:
        return log, rows, None
    check_outcome_model(outcome_model, data.known.rewards, log.table)
    folds, dealt = min(wanted, data.n_units) if folds is None else folds, None
    if data.counts is not None:
        data, rows, dealt = data.dealt(folds, np.random.default_rng(seed))
        log = replace(log, data=data, known=log.known.iloc[rows], looked_at=log.looked_at.iloc[rows])
    fitted = cross_fit(
        data,
        covariate_matrix(log.known),
        outcome_model=outcome_model,
        folds=folds,
        seed=seed,
        dealt=dealt,
        progress=progress,
    )
    return log, rows, fitted


def estimated(
    log: LogToEvaluate, probabilities: FloatArray, estimator: str, fitted: CrossFit | None, clip: float | None
) -> OffPolicyEstimate:
    """The value of a policy, (n_rows, k), with its warnings: first to which patients the log seems never to give it."""
    found = estimate_value(log.data, probabilities, estimator=estimator, fitted=fitted, clip=clip)
    known = {*log.doubts.errors, *log.doubts.others}
    where = [text for text in where_caveats(log.data, probabilities, log.looked_at) if text not in known]
    return replace(found, warnings=(*where, *found.warnings))
