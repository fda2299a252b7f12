"""The privacy price list: what hiding each feature costs at best."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from envs.records import RecordSpace
from policies.adjacency import Adjacency, AnyRecord, Sensitive
from policies.arrays import ROUNDING
from policies.optimal import Optimal
from policies.privacy_loss import privacy_loss_of_logs
from policies.problem import DecisionProblem
from policies.reference import Greedy
from policysim.question.progress import SILENT, Progress
from policysim.search import expected_deaths
from policysim.study import Study
from policysim.sweep import Gain

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
        hides, epsilon, value, loss, benefit_kept, extra_deaths, epsilon_spent, used; dearest first. It is the optimum
        under `sensitive = [feature]`: everything else about a patient is public, and no mechanism costs less. A feature
        that the model does not use (`unused_features`) has no price: its row, at the end, has no numbers.
        benefit_kept is NaN where shares of the benefit say little (`policysim.sweep.Gain`).
    """
    greedy = Greedy().probabilities(problem)
    gain = Gain.of(problem)
    least_deaths = expected_deaths(problem, greedy)
    unused = unused_features(study, problem, study.space.names)
    prices: list[dict[str, object]] = []
    protections = _protections(study.space)
    progress.expect(len(protections))
    for name, adjacency in protections:
        if name in unused:
            prices.append({"hides": name, "epsilon": study.epsilon, "used": False})
            progress.advance()
            continue
        logs = Optimal(study.epsilon).log_probabilities(problem.with_adjacency(adjacency))
        table = np.exp(logs)
        value = problem.value(table)
        prices.append(
            {
                "hides": name,
                "epsilon": study.epsilon,
                "value": value,
                "loss": gain.best - value,
                "benefit_kept": gain.kept(value) if gain.has_shares else np.nan,
                "extra_deaths": expected_deaths(problem, table) - least_deaths,
                "epsilon_spent": privacy_loss_of_logs(logs, adjacency).epsilon,
                "used": True,
            }
        )
        progress.advance()
    columns = ["hides", "epsilon", "value", "loss", "benefit_kept", "extra_deaths", "epsilon_spent", "used"]
    table_of_prices = pd.DataFrame(prices, columns=columns)
    return table_of_prices.sort_values("loss", ascending=False, kind="stable", ignore_index=True)


def unused_features(study: Study, problem: DecisionProblem, names: Sequence[str]) -> tuple[str, ...]:
    """Those of some features that tell no treatments apart in this model, so that it cannot say what hiding them costs.

    Such a feature alone moves no difference between two treatments' utilities by more than rounding: the range of the
    utilities under `sensitive = [feature]` is 0. The best choice is then the same whatever it is, and its price of 0 is
    that of the model, which leaves out what the feature may really change.
    """
    hidden = {name: Sensitive(study.space.shape, (study.space.axis(name),)) for name in names}
    return tuple(name for name, adjacency in hidden.items() if not uses_hidden(problem.with_adjacency(adjacency)))


def uses_hidden(problem: DecisionProblem) -> bool:
    """Whether any difference between two treatments' utilities depends on what is hidden, by more than rounding."""
    largest = max(float(problem.utilities.max()), -float(problem.utilities.min()))
    return problem.sensitivity.range > ROUNDING * largest


def _protections(space: RecordSpace) -> list[tuple[str, Adjacency]]:
    """What can be hidden: each feature by itself, and everything."""
    single: list[tuple[str, Adjacency]] = [
        (name, Sensitive(space.shape, (axis,))) for axis, name in enumerate(space.names)
    ]
    return [*single, (WHOLE_RECORD, AnyRecord())]
