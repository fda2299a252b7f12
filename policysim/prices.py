"""The privacy price list: what hiding each feature costs at best."""

from __future__ import annotations

import numpy as np
import pandas as pd

from envs.records import RecordSpace
from policies.adjacency import Adjacency, AnyRecord, Sensitive
from policies.optimal import Optimal
from policies.privacy_loss import privacy_loss_of_logs
from policies.problem import DecisionProblem
from policies.reference import Greedy
from policysim.question.progress import SILENT, Progress
from policysim.search import expected_deaths
from policysim.study import Study

WHOLE_RECORD = "whole record"


def price_list(study: Study, problem: DecisionProblem, progress: Progress = SILENT) -> pd.DataFrame:
    """What the best private policy costs if one feature is hidden, for each feature, and if the whole record is.

    Parameters
    ----------
    study : Study
        Its epsilon is the one that the prices are at.
    problem : DecisionProblem
        Built from it; its adjacency does not matter here.
    progress : Progress, optional
        Told of each price.

    Returns
    -------
    DataFrame
        hides, epsilon, value, loss, benefit_kept, extra_deaths, epsilon_spent; dearest first. It is the optimum under
        `sensitive = [feature]`: everything else about a patient is public, and no mechanism costs less.
    """
    greedy = Greedy().probabilities(problem)
    best, fixed = problem.value(greedy), float(problem.fixed_values.max())
    least_deaths = expected_deaths(problem, greedy)
    prices = []
    protections = _protections(study.space)
    progress.expect(len(protections))
    for name, adjacency in protections:
        logs = Optimal(study.epsilon).log_probabilities(problem.with_adjacency(adjacency))
        table = np.exp(logs)
        value = problem.value(table)
        prices.append(
            {
                "hides": name,
                "epsilon": study.epsilon,
                "value": value,
                "loss": best - value,
                "benefit_kept": (value - fixed) / (best - fixed) if best > fixed else np.nan,
                "extra_deaths": expected_deaths(problem, table) - least_deaths,
                "epsilon_spent": privacy_loss_of_logs(logs, adjacency).epsilon,
            }
        )
        progress.advance()
    return pd.DataFrame(prices).sort_values("loss", ascending=False, kind="stable", ignore_index=True)


def _protections(space: RecordSpace) -> list[tuple[str, Adjacency]]:
    """What can be hidden: each feature by itself, and everything."""
    single: list[tuple[str, Adjacency]] = [
        (name, Sensitive(space.shape, (axis,))) for axis, name in enumerate(space.names)
    ]
    return [*single, (WHOLE_RECORD, AnyRecord())]
