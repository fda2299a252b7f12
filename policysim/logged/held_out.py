"""The comparison of policies on a log, as one tidy table: values on held-out patients, with intervals."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pandas as pd

from policies.policy import Policy
from policysim.logged.estimates import Estimate, over_repeats
from policysim.logged.measures import (
    GAIN_OVER_UNIFORM,
    Group,
    Measure,
    Measured,
    difference_to,
    gain_over,
    groups_of,
    kept_over,
)
from policysim.logged.simultaneous import AgainstBest, against_best
from policysim.logged.splits import REPEATS, split_log
from policysim.logs.trial import Log
from policysim.notebooks.comparison import Comparison
from policysim.question.progress import SILENT, Progress
from policysim.study import LoggedStudy
from policysim.sweep import N_THREADS, asked_for, at, at_each

# A number with the ends of its 95 % interval; there is none where a percentage is refused.
Triple = tuple[float, float, float]
REFUSED: Triple = (np.nan, np.nan, np.nan)


def compare_log(study: LoggedStudy, log: Log, progress: Progress = SILENT) -> pd.DataFrame:
    """Compare a study's policies, each made from one part of the log and evaluated on the other, over many splits.

    Values are doubly robust; every patient counts once in each split, under the version of the policy that was made
    without that patient. Policies see the fitted scores only through these versions, so that nobody is judged by
    scores that were fitted to the same patients.

    Parameters
    ----------
    study : LoggedStudy
        Policies, epsilons, groups and seed.
    log : Log
        Its log.
    progress : Progress, optional
        Told of each fit and each policy in each split.

    Returns
    -------
    DataFrame
        One row per policy, epsilon and group (everyone first), with the columns of `compare` where a log has them, and
        95 % intervals `*_low`, `*_high` beside

        value : mean outcome per patient; its interval stays within the range that the study declares
        difference : value minus that of the best single arm, given to all; the same arm in all rows: the one that is
            estimated best for everyone. For everyone the interval holds whichever arm is truly the best
            (`simultaneous.against_best`); in groups it is that of the difference to this arm
        loss : greedy's value minus this
        normalized_loss, benefit_kept : shares of what greedy gains over uniform and over the best single arm; NaN
            where the interval of that gain reaches 0: a share of what may be nothing
        best_action_rate, worse_than_untreated : by the fitted scores of the other folds
        ess : effective sample size of the importance weights, (sum w)^2 / sum w^2
        best_arm : the arm of `difference`
    """
    templates, epsilons = asked_for(study.policies, study.epsilons, study.by)
    jobs = [policy for template in templates for policy in at_each(template, epsilons)]
    groups = groups_of(log, study.by)
    measured: dict[Policy, list[Measured]] = {policy: [] for policy in jobs}
    progress.expect(REPEATS * len(jobs))
    with ThreadPoolExecutor(N_THREADS) as pool:
        for split in split_log(log, study, progress):
            for policy, found in zip(jobs, pool.map(Measure(split, groups), jobs), strict=True):
                measured[policy].append(found)
                progress.advance()
    rows = [
        row
        for template in templates
        for epsilon in epsilons
        for row in _rows(log, at(template, epsilon), epsilon, groups, measured[at(template, epsilon)])
    ]
    table = pd.DataFrame(rows)
    low, high = study.log.utility_range
    # No policy is worth what is impossible; an interval still holds its estimate.
    table["value_low"] = table["value_low"].clip(lower=table["value"].clip(upper=low))
    table["value_high"] = table["value_high"].clip(upper=table["value"].clip(lower=high))
    return Comparison(table)


@dataclass(frozen=True, eq=False)
class _Together:
    """What all splits say of one policy in one group."""

    estimates: dict[str, Estimate]
    n_arms: int

    @classmethod
    def of(cls, measured: list[Measured], place: int, n_arms: int) -> _Together:
        names = measured[0].estimates[place]
        return cls({name: over_repeats([each.estimates[place][name] for each in measured]) for name in names}, n_arms)

    def triple(self, name: str) -> Triple:
        found = self.estimates[name]
        return found.value, *found.interval

    def against(self, name: Callable[[int], str]) -> AgainstBest:
        """The difference to the best arm, whichever that is."""
        found = [self.estimates[name(arm)] for arm in range(self.n_arms)]
        return against_best([each.value for each in found], [each.widened_error for each in found], found[0].n)


def _rows(
    log: Log, policy: Policy, epsilon: float, groups: list[Group], measured: list[Measured]
) -> list[dict[str, object]]:
    """One policy at one epsilon, a row for each group."""
    together = [_Together.of(measured, place, log.data.n_actions) for place in range(len(groups))]
    everyone = together[0]
    best, gain = everyone.against(difference_to), everyone.against(gain_over)
    rows = []
    for place, (group, mine) in enumerate(zip(groups, together, strict=True)):
        gains = gain.interval[0] > 0 and mine.triple(gain_over(best.arm))[1] > 0
        triples = {
            "value": mine.triple("value"),
            "difference": (best.value, *best.interval) if mine is everyone else mine.triple(difference_to(best.arm)),
            "loss": mine.triple("loss"),
            "normalized_loss": mine.triple("normalized_loss") if mine.triple(GAIN_OVER_UNIFORM)[1] > 0 else REFUSED,
            "benefit_kept": mine.triple(kept_over(best.arm)) if gains else REFUSED,
        }
        means = {name: float(np.mean([each.means[place][name] for each in measured])) for name in measured[0].means[0]}
        rows.append(
            {
                "policy": policy.name,
                "epsilon": epsilon,
                "group": group.feature,
                "level": group.level,
                "share": group.rows.size / log.data.n_rows,
                **{f"{name}{end}": number for name, triple in triples.items() for end, number in _ends(triple)},
                **means,
                "epsilon_spent": max(each.epsilon_spent for each in measured),
                "guarantee": policy.guarantee,
                "best_arm": log.data.names[best.arm],
            }
        )
    return rows


def _ends(triple: Triple) -> list[tuple[str, float]]:
    return list(zip(("", "_low", "_high"), triple, strict=True))
