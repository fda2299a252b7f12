"""The privacy price list: what hiding each feature costs at best.

What drives the sensitivity: how much of it each outcome's weight makes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd

from envs.records import RecordSpace
from envs.scenario import DEATH
from envs.treatment_response import ResponseModel
from policies.adjacency import Adjacency, AnyRecord, Sensitive, largest_difference
from policies.arrays import ROUNDING, FloatArray
from policies.mask import told_apart
from policies.optimal.optimum import Optimal
from policies.privacy_loss import privacy_loss_of_logs
from policies.problem import DecisionProblem
from policies.reference import Greedy
from policies.sensitivity import score_range
from policysim.decision.search import expected_deaths
from policysim.question.protocol import SILENT, Progress
from policysim.study.declared import ScenarioStudy, Study
from policysim.study.sweep import Gain

WHOLE_RECORD = "whole record"
# Records that are looked at first, to see whether a feature matters.
FEW = 4096


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
        What decides which treatments a patient may get cannot be hidden: it has no row, and the row of the whole record
        is of all else. benefit_kept is NaN where shares of the benefit say little (`policysim.study.sweep.Gain`).
    """
    gain = Gain.of(problem)
    least_deaths = expected_deaths(problem, Greedy().probabilities(problem))
    unused = unused_features(study, problem, study.space.names)
    prices: list[dict[str, object]] = []
    protections = _protections(study.space, problem)
    progress.expect(len(protections))
    for name, adjacency in protections:
        if name in unused:
            prices.append({"hides": name, "epsilon": study.epsilon, "used": False})
            progress.advance()
            continue
        table = Optimal(study.epsilon).log_probabilities(problem.with_adjacency(adjacency))
        spent = privacy_loss_of_logs(table, adjacency).epsilon
        np.exp(table, out=table)
        value = problem.value(table)
        prices.append(
            {
                "hides": name,
                "epsilon": study.epsilon,
                "value": value,
                "loss": gain.best - value,
                "benefit_kept": gain.kept(value) if gain.has_shares else np.nan,
                "extra_deaths": expected_deaths(problem, table) - least_deaths,
                "epsilon_spent": spent,
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
    deciding = _deciding(study.space, problem)
    rare = [
        name
        for name in names
        if name not in deciding and not _seen_to_tell(study.space, problem, study.space.axis(name))
    ]
    hidden = {name: Sensitive(study.space.shape, (study.space.axis(name),)) for name in rare}
    # The range alone: the rest of the sensitivity takes longer.
    ranges = {name: score_range(problem.utilities, each, problem.admissible) for name, each in hidden.items()}
    return tuple(name for name, found in ranges.items() if not _tells(found, problem))


def _seen_to_tell(space: RecordSpace, problem: DecisionProblem, axis: int) -> bool:
    """Whether a feature tells treatments apart among a few records already: then the others need not be looked at."""
    records = np.unique(np.linspace(0, problem.n_records - 1, FEW).astype(np.intp))
    step = math.prod(space.shape[axis + 1 :])
    first = records - records // step % space.shape[axis] * step
    moved = problem.utilities[records] - problem.utilities[first]
    return _tells(float(np.ptp(moved, axis=1).max()), problem)


def _deciding(space: RecordSpace, problem: DecisionProblem) -> tuple[str, ...]:
    """The features that decide which treatments a patient may get."""
    mask = problem.admissible
    if mask is None:
        return ()
    single = {name: Sensitive(space.shape, (axis,)) for axis, name in enumerate(space.names)}
    return tuple(name for name, adjacency in single.items() if told_apart(mask, adjacency) is not None)


def uses_hidden(problem: DecisionProblem) -> bool:
    """Whether any difference between two treatments' utilities depends on what is hidden, by more than rounding."""
    return _tells(problem.sensitivity.range, problem)


def _tells(found: float, problem: DecisionProblem) -> bool:
    return found > ROUNDING * max(float(problem.utilities.max()), -float(problem.utilities.min()))


def _protections(space: RecordSpace, problem: DecisionProblem) -> list[tuple[str, Adjacency]]:
    """What can be hidden: each feature by itself, and everything."""
    public = _deciding(space, problem)
    axes = {name: axis for axis, name in enumerate(space.names) if name not in public}
    single: list[tuple[str, Adjacency]] = [(name, Sensitive(space.shape, (axis,))) for name, axis in axes.items()]
    if not public:
        return [*single, (WHOLE_RECORD, AnyRecord())]
    together = Sensitive(space.shape, tuple(axes.values()))
    return [*single, (f"all but {', '.join(public)}", together)] if len(axes) > 1 else single


COSTS = "costs of treatments"


def sensitivity_by_outcome(study: ScenarioStudy, problem: DecisionProblem) -> pd.DataFrame:
    """Each outcome's own sensitivity, and its part in the overall one.

    As u(x, a) = -sum_o weight_o P(o | x, a) - cost(x, a), the difference of u between two records is the sum of
    those of the outcomes and of the costs; costs make none of it where no rule lets them depend on the record.

    Parameters
    ----------
    study : ScenarioStudy
        Its outcomes and weights.
    problem : DecisionProblem
        Built from it.

    Returns
    -------
    DataFrame
        The outcomes that have a weight, the largest contribution first, and last the costs.

        outcome : its name
        weight : in units of utility; NaN for the costs
        sensitivity : max over neighbours x, x' and actions a of weight |P(o | x, a) - P(o | x', a)|, or of costs
        contribution : to the difference of u between the two neighbours and under the action that attain the overall
            sensitivity; these add up to it. Negative for what makes it smaller
        share : contribution / sensitivity of the problem; 0 where that is 0

    Examples
    --------
    >>> import policysim as ps
    >>> study = ps.load_study("covid")
    >>> table = sensitivity_by_outcome(study, ps.build_problem(study))
    >>> table.loc[0, "outcome"]
    'death'
    """
    scenario, adjacency = study.scenario, problem.adjacency
    response = ResponseModel(scenario)
    found = problem.sensitivity
    pair = [found.witness.record, found.witness.neighbour]
    # (n_outcomes,): less of an outcome is more utility.
    differences = -np.subtract(*response.outcome_probabilities(pair)[:, found.witness.action, :])
    allowed = problem.admissible

    def largest(columns: Iterable[FloatArray]) -> float:
        # Neighbours allow the same: what neither may get makes no difference between them.
        kept = columns if allowed is None else map(np.multiply, columns, allowed.T)
        return max(largest_difference(column, adjacency).value for column in kept)

    rows = []
    for outcome, difference in zip(scenario.outcomes, differences, strict=True):
        weight = float(study.utility.weights.get(outcome, 0.0))
        if weight:
            own = abs(weight) * largest(_columns(response, outcome, problem))
            rows.append((outcome, weight, own, weight * float(difference)))
    rows.sort(key=lambda row: -row[3])
    rows.append((COSTS, np.nan, 0.0, 0.0))
    if scenario.costs_by_record:
        grids = [np.broadcast_to(cost, scenario.space.shape).ravel() for cost in response.costs(study.utility.costs)]
        lost = -float(np.subtract(*grids[found.witness.action][pair]))
        rows[-1] = (COSTS, np.nan, largest(grids), lost)
    table = pd.DataFrame(rows, columns=["outcome", "weight", "sensitivity", "contribution"])
    return table.assign(share=table["contribution"] / found.value if found.value > 0 else 0.0)


def _columns(response: ResponseModel, outcome: str, problem: DecisionProblem) -> Iterator[FloatArray]:
    """P(outcome | x, a) for each action, (n_records,) each; 0 where not allowed. The problem has the deaths already."""
    if outcome == DEATH:
        chances = iter(problem.outcomes["deaths"].T)
    else:
        shape = response.scenario.space.shape
        tables = (response.chance(outcome, action) for action in range(len(problem.actions)))
        chances = (np.broadcast_to(chance, shape).ravel() for chance in tables)
    if problem.admissible is None:
        yield from chances
    else:
        # Neighbours allow the same: what is 0 for all of them makes no difference.
        yield from (np.where(allows, chance, 0.0) for chance, allows in zip(chances, problem.admissible.T, strict=True))
