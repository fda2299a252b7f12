"""evaluate_log: what a policy is worth to the patients of a log, estimated.

The evaluated policy as a data frame whose columns are the actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
from numpy.typing import ArrayLike

from policysim.files.data_table import DataTable
from policysim.logs.log_frame import (
    ACTION,
    check_seed,
    covariate_frame,
    covariate_matrix,
    read_log_frame,
    require_frame,
    row_probabilities,
    several,
)
from policysim.study.declared import ScenarioStudy
from policysim.trials.contraindicated import AllowedTreatments
from policysim.trials.estimate_value import cross_fit, estimate_value, estimator_named
from policysim.trials.estimators import OffPolicyEstimate, importance_weights
from policysim.trials.holes import where_caveats


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
) -> OffPolicyEstimate:
    """Estimate the expected reward of a policy from a log in which another policy chose.

    Parameters
    ----------
    log : DataFrame, n_rows
        A row for each decision: `action`, `reward` (more is better), `propensity` (the probability with which the
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
        "constant" (a mean for each action), or "chosen" among these by held-out rows, shrunk to the means.
    folds : int
        The outcome model of each of this many parts is fitted on the others. By default 5, and 20 for "dm", whose
        standard error is made from them and is as rough as they are few; fewer if there are fewer rows.
    clip : float, optional
        The most that an importance weight may be; none by default, as clipping biases the estimate.
    seed : int
        Decides which rows share a fold.

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

    Intervals reach 1.96 standard errors to either side, and further where the rows are skewed (Hall 1988); "dm": by
    Student's t. They need enough rows that matter: how often they cover, and where they do not (rare and large losses,
    such as deaths; an effective sample size below 200), is in docs/off-policy-coverage.md.

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
    'effective sample size 3 of 4 rows: below 200 the 95 % interval may cover less than it says.'
    """
    kind = estimator_named(estimator)
    check_seed(seed)
    if isinstance(probabilities, pd.DataFrame):
        probabilities, actions = policy_columns(require_frame(log), probabilities, actions)
    data = read_log_frame(log, actions)
    table = row_probabilities(probabilities, data.n_rows, data.names)
    allowed = AllowedTreatments.of(study, data.names, DataTable("log", log))
    if allowed is not None:
        allowed.require(table, data)
    known = covariate_frame(log, covariates)
    fitted = None
    if kind.needs_model:
        folds = min(kind.folds, data.n_rows) if folds is None else folds
        fitted = cross_fit(data, covariate_matrix(known), outcome_model=outcome_model, folds=folds, seed=seed)
    found = estimate_value(data, table, estimator=estimator, fitted=fitted, clip=clip)
    where = where_caveats(data, table, importance_weights(data, table).raw, known)
    return replace(found, warnings=(*where, *found.warnings))


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
    columns = [str(name) for name in probabilities.columns]
    if len(set(columns)) < len(columns):
        raise ValueError(f"the columns of probabilities must be distinct actions, got {_listed(columns)}.")
    if actions is not None:
        wanted = list(map(str, several(actions) or ()))
        if sorted(wanted) != sorted(columns):
            raise ValueError(
                f"the columns of probabilities must be the actions {_listed(wanted)}, got {_listed(columns)}."
            )
        columns = wanted
    by_name = {str(name): name for name in probabilities.columns}
    if not probabilities.index.equals(log.index) and set(probabilities.index) == set(log.index):
        raise ValueError("probabilities must have its rows in the log's order: its index is the log's, reordered.")
    logged = {str(value): value for value in log[ACTION].unique()} if ACTION in log.columns else {}
    return probabilities[[by_name[name] for name in columns]].to_numpy(), [
        logged.get(name, by_name[name]) for name in columns
    ]


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names))
