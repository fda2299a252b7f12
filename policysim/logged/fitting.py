"""Scores fitted to a log: the decision problem on which policies are made."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from envs.records import RecordSpace
from policies.adjacency import Adjacency
from policies.arrays import FloatArray, IntArray, blocks
from policies.problem import DecisionProblem
from policysim.logs.trial import Log
from policysim.offpolicy.outcome_models import OutcomeModel, fit_outcome_model
from policysim.study import LoggedStudy, build_adjacency


def problem_of_log(study: LoggedStudy, log: Log) -> DecisionProblem:
    """The decision problem whose scores are fitted to all rows of a study's log.

    Its values are those of the outcome model, on the rows that it was fitted to: too good. What policies are worth to
    other patients is in `policysim.logged.held_out`.
    """
    return fit_problem(log, np.ones(log.data.n_rows, dtype=np.bool_), study, build_adjacency(study))


def fit_problem(log: Log, rows: NDArray[np.bool_], study: LoggedStudy, adjacency: Adjacency) -> DecisionProblem:
    """Fit the scores and the prior to some rows of a log.

    Parameters
    ----------
    log : Log
        The whole log.
    rows : array of bool, (n_rows,)
        Those to fit to.
    study : LoggedStudy
        Its outcome model, the declared range of its utility, and its seed.
    adjacency : Adjacency
        Over the declared records.

    Returns
    -------
    DecisionProblem
        Over all declared records, whether they occur or not: u(x, a) is the outcome model's prediction, clipped to the
        declared range, so that no row of the log can move a score beyond it.
    """
    source, data = study.log, log.data
    model = fit_outcome_model(
        source.outcome_model,
        indicators(log.space, log.records[rows]),
        data.actions[rows],
        data.rewards[rows],
        data.n_actions,
        seed=study.seed,
    )
    return DecisionProblem(
        np.clip(_scores(model, log.space, data.n_actions), *source.utility_range),
        smoothed_prior(log.space, log.records[rows]),
        adjacency,
        data.names,
        records=log.space,
    )


def indicators(space: RecordSpace, records: IntArray) -> FloatArray:
    """Records as covariates, (m,) -> (m, n_levels - n_features): 0 and 1 for each level but the first of a feature."""
    codes = space.codes(records)
    columns = [codes[:, axis, None] == np.arange(1, n_levels) for axis, n_levels in enumerate(space.shape)]
    return np.hstack(columns).astype(np.float64)


def smoothed_prior(space: RecordSpace, records: IntArray) -> FloatArray:
    """The share of each declared record among the patients, with sqrt(n) imagined ones, (space.size,).

    (count + sqrt(n) product of marginal shares) / (n + sqrt(n)): records that few or none of the patients have get what
    independent features would give them. sqrt(n) pseudo-counts are the minimax choice for one cell (Steinhaus 1957, The
    problem of estimation; Fienberg & Holland 1973 for many).
    """
    n = len(records)
    codes = space.codes(records)
    expected = np.ones(())
    for axis, n_levels in enumerate(space.shape):
        # One more patient in each level: none is impossible.
        counts = np.bincount(codes[:, axis], minlength=n_levels) + 1.0
        expected = np.multiply.outer(expected, counts / counts.sum())
    counted = np.bincount(records, minlength=space.size)
    mass = counted + np.sqrt(n) * expected.ravel()
    prior: FloatArray = mass / mass.sum()
    return prior


def _scores(model: OutcomeModel, space: RecordSpace, n_actions: int) -> FloatArray:
    table = np.empty((space.size, n_actions), order="F")
    for rows in blocks(space.size):
        table[rows] = model.predict(indicators(space, np.arange(rows.start, rows.stop)))
    return table
