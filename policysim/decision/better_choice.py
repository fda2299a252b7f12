"""The least epsilon at which a mechanism meets the demands and is also better than the same treatment for everyone.

At the least epsilon that meets the demands a mechanism may gain too little to be better in 9 of 10 versions of the
model, and more at a larger one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.reference import BestFixed
from policysim.decision.choose import Choices, row_of
from policysim.decision.demands import SCAN_FROM, SCAN_TO, SCANNED
from policysim.decision.redraws import Redrawn, redrawn
from policysim.numbers import DIGITS, enough, next_below, steady
from policysim.progress import SILENT, Progress
from policysim.report.findings import BETTER, rows_of, verdict_of_versions
from policysim.study.checks import checked_tables
from policysim.study.declared import ModelledStudy
from policysim.study.sweep import evaluated_on


def raised_to_better(
    study: ModelledStudy, problem: DecisionProblem, choices: Choices, versions: Redrawn, progress: Progress = SILENT
) -> tuple[Choices, Redrawn]:
    """Raise the epsilon of one mechanism, if it is then the one that meets the demands and is better at the least.

    Mechanisms that meet the demands and are not better are tried at larger epsilons in ratios of `SCANNED`, below the
    least at which another one is better; then at each of two digits before the first that is enough.

    Parameters
    ----------
    study : ModelledStudy
        With versions of its model.
    problem : DecisionProblem
        Built from it.
    choices : Choices
        Each mechanism at the least epsilon that meets the demands.
    versions : Redrawn
        What these mechanisms, and the best single treatment, are worth in each version.
    progress : Progress, optional
        Reports each version.

    Returns
    -------
    tuple of Choices and Redrawn
        With that mechanism at its larger epsilon, which `Choices.raised` names; the same if there is none.
    """
    allowed = rows_of(choices.needs[choices.needs["allowed"]])
    reached = [row["epsilon"] for row in allowed if _is_better(versions, row["policy"])]
    most = min([*reached, SCAN_TO, choices.wish.max_epsilon])
    waiting = [row for row in allowed if row["epsilon"] < most and not _is_better(versions, row["policy"])]
    if choices.for_all["allowed"].any() or not waiting:
        return choices, versions

    def better_at(epsilon: float) -> tuple[dict[str, Any], Policy, Redrawn] | None:
        """The best of the waiting mechanisms that are better at an epsilon: its row, itself, and its versions."""
        names = [row["policy"] for row in waiting if row["epsilon"] < epsilon]
        tried = list(_meeting(problem, choices, [replace(choices.mechanisms[name], epsilon=epsilon) for name in names]))
        again = redrawn(study, problem, [BestFixed(), *(policy for _, policy in tried)], progress) if tried else None
        if again is None:
            return None
        better = [(row, policy, again) for row, policy in tried if _is_better(again, row["policy"])]
        return min(better, key=lambda found: -steady(found[0]["value"]), default=None)

    first, before = None, max(SCAN_FROM, min(row["epsilon"] for row in waiting))
    for epsilon in _grid(before, most):
        first = better_at(epsilon)
        if first is not None:
            break
        before = epsilon
    if first is None:
        return choices, versions
    between = itertools.takewhile(lambda decimal: decimal > before, _decimals_below(first[0]["epsilon"]))
    row, policy, again = next(filter(None, map(better_at, sorted(between))), first)
    name = row["policy"]
    rows = [row if other["policy"] == name else other for other in rows_of(choices.needs)]
    rows.sort(key=lambda row: (row["epsilon"], -steady(row["value"])))
    raised = replace(
        choices,
        needs=pd.DataFrame(rows, columns=choices.needs.columns).astype({"allowed": bool}),
        mechanisms={**choices.mechanisms, name: policy},
        raised=name,
    )
    options = [versions.options[versions.options["option"] != name], again.options[again.options["option"] == name]]
    return raised, replace(versions, options=pd.concat(options, ignore_index=True))


def _is_better(versions: Redrawn, policy: str) -> bool:
    """Whether a mechanism is better than the best single treatment in 9 of 10 versions."""
    difference = versions.differences(policy, BestFixed.name, "value")
    if difference is None:
        return False
    return verdict_of_versions(float(np.mean(difference > 0)), float(np.mean(difference == 0))) == BETTER


def _meeting(
    problem: DecisionProblem, choices: Choices, policies: Sequence[Policy]
) -> Iterator[tuple[dict[str, Any], Policy]]:
    """Those of some policies that meet the demands, and their rows."""
    demand = choices.wish.demand(problem)
    for policy in policies:
        on = evaluated_on(policy, problem)
        _, table, spent = checked_tables(policy, on)
        row = row_of(on, policy.name, table, policy.epsilon, spent)
        if demand.margin(on, table) >= 0 and not row["guess_rate"] > choices.wish.most_guessed:
            yield row, policy


def _grid(low: float, high: float) -> Iterator[float]:
    """Epsilons of two digits above `low` and below `high`, in ratios of `SCANNED`."""
    steps = math.ceil(math.log(high / low) / math.log(SCANNED))
    rounded = dict.fromkeys(enough(low * SCANNED**step, DIGITS) for step in range(1, steps + 1))
    return (epsilon for epsilon in rounded if low < epsilon < high)


def _decimals_below(epsilon: float) -> Iterator[float]:
    """The decimals of two digits below an epsilon, falling."""
    while True:
        epsilon = next_below(epsilon)
        yield epsilon
