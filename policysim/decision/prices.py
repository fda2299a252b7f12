"""The privacy price list: the least cost of hiding each feature; and which features no choice of a treatment needs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from envs.records import RecordSpace
from policies.adjacency import Adjacency, AnyRecord, Sensitive
from policies.arrays import ROUNDING
from policies.mask import told_apart
from policies.optimal.optimum import Optimal
from policies.privacy_loss import privacy_loss_of_logs
from policies.problem import DecisionProblem
from policies.reference import BestFixed
from policies.sensitivity import largest_range
from policysim.progress import SILENT, Progress
from policysim.study.gain import excess, gain_of

WHOLE_RECORD = "whole record"
# Records that are looked at first, to see whether a feature matters.
FEW = 4096


def price_list(problem: DecisionProblem, epsilon: float, progress: Progress = SILENT) -> pd.DataFrame:
    """What the best private policy costs if one feature is hidden, for each feature, and if the whole record is.

    Parameters
    ----------
    problem : DecisionProblem
        Its records are a product of features (`RecordSpace`); its adjacency does not matter here.
    epsilon : float
        The one that the prices are at.
    progress : Progress, optional
        Reports each price.

    Returns
    -------
    DataFrame
        hides, epsilon, value, loss, benefit_kept, extra_OUTCOME, epsilon_spent, used; dearest first. It is the optimum
        under `sensitive = [feature]`: everything else about a patient is public, and no mechanism costs less. A feature
        that the model does not use (`unused_features`) has no price: its row, at the end, has no numbers.
        What decides which treatments a patient may get cannot be hidden: it has no row, and the row of the whole record
        is of all else. benefit_kept is NaN where shares of the benefit say little (`policysim.study.gain.Gain`).
        extra_OUTCOME, of the outcome that leads, is beyond that of the best treatment for all; without one it is left
        out.
    """
    space = problem.records
    assert isinstance(space, RecordSpace)
    gain, lead = gain_of(problem), problem.lead
    fixed = BestFixed().probabilities(problem)
    for_all = np.asarray(math.nan if lead is None else problem.expectation(lead, fixed))
    unused, public = unused_features(problem, space.names), _deciding(space, problem)
    axes = {name: axis for axis, name in enumerate(space.names) if name not in public}
    protections: dict[str, Adjacency] = {name: Sensitive(space.shape, (axis,)) for name, axis in axes.items()}
    if not public:
        protections[WHOLE_RECORD] = AnyRecord()
    elif len(axes) > 1:
        protections[f"all but {', '.join(public)}"] = Sensitive(space.shape, tuple(axes.values()))
    prices: list[dict[str, object]] = []
    progress.expect(len(protections))
    for name, adjacency in protections.items():
        price: dict[str, object] = {"hides": name, "epsilon": epsilon, "used": name not in unused}
        if price["used"]:
            table = Optimal(epsilon).log_probabilities(problem.with_adjacency(adjacency))
            spent = privacy_loss_of_logs(table, adjacency).epsilon
            np.exp(table, out=table)
            value = problem.value(table)
            price |= {
                "value": value,
                "loss": gain.best - value,
                "benefit_kept": gain.kept(value) if gain.has_shares else math.nan,
                "epsilon_spent": spent,
            }
            if lead is not None:
                mean = np.asarray(problem.expectation(lead, table))
                price[f"extra_{lead}"] = float(excess(mean, for_all, abs(for_all)))
        prices.append(price)
        progress.advance()
    extra = [] if lead is None else [f"extra_{lead}"]
    columns = ["hides", "epsilon", "value", "loss", "benefit_kept", *extra, "epsilon_spent", "used"]
    return pd.DataFrame(prices, columns=columns).sort_values("loss", ascending=False, kind="stable", ignore_index=True)


def unused_features(problem: DecisionProblem, names: Sequence[str]) -> tuple[str, ...]:
    """The features without effect on the choice of a treatment: this model has no price for hiding them.

    Such a feature alone moves no difference between two treatments' utilities by more than rounding: the range of the
    utilities under `sensitive = [feature]` is 0. The best choice is then the same whatever it is, and its price of 0 is
    that of the model, which leaves out what the feature may really change. Nothing is known of records that are no
    product of features.
    """
    space = problem.records
    if not isinstance(space, RecordSpace):
        return ()
    deciding, found = _deciding(space, problem), []
    few = np.unique(np.linspace(0, problem.n_records - 1, FEW).astype(np.intp))
    for name in names:
        axis = space.axis(name)
        step = math.prod(space.shape[axis + 1 :])
        moved = problem.utilities[few] - problem.utilities[few - few // step % space.shape[axis] * step]
        # Where a few records show that it tells treatments apart, the others need not be looked at.
        if name in deciding or _tells(float(np.ptp(moved, axis=1).max()), problem):
            continue
        # The range alone: the rest of the sensitivity takes longer.
        if not _tells(
            largest_range(problem.utilities, Sensitive(space.shape, (axis,)), problem.admissible)[0], problem
        ):
            found.append(name)
    return tuple(found)


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
