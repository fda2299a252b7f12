"""The comparison of policies on a log, as one tidy table: values on held-out patients, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd

from policies.policy import Policy
from policysim.logged.estimates import NOTHING, over_repeats
from policysim.logged.measures import QUANTITIES, SHARE_OF, Group, Measure, Measured, groups_of
from policysim.logged.splits import FOLDS, REPEATS, split_log
from policysim.logs.trial import Log
from policysim.notebooks.comparison import Comparison
from policysim.study import LoggedStudy
from policysim.sweep import N_THREADS, asked_for, at, at_each


def compare_log(study: LoggedStudy, log: Log, advance: Callable[[], object] = lambda: None) -> pd.DataFrame:
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
    advance : callable, optional
        Called `number_of_steps` times in all.

    Returns
    -------
    DataFrame
        One row per policy, epsilon and group (everyone first), with the columns of `compare` where a log has them, and
        95 % intervals `*_low`, `*_high` beside

        value : mean outcome per patient
        difference : value minus that of the best single treatment (chosen outside the fold, as all policies are)
        loss : greedy's value minus this
        normalized_loss, benefit_kept : shares of what greedy gains over uniform and over the best single treatment;
            NaN where the interval of that gain reaches 0: a share of what may be nothing
        best_action_rate, worse_than_untreated : by the fitted scores of the other folds
        ess : effective sample size of the importance weights, (sum w)^2 / sum w^2
    """
    templates, epsilons = asked_for(study.policies, study.epsilons, study.by)
    jobs = [policy for template in templates for policy in at_each(template, epsilons)]
    groups = groups_of(log, study.by)
    measured: dict[Policy, list[Measured]] = {policy: [] for policy in jobs}
    with ThreadPoolExecutor(N_THREADS) as pool:
        for split in split_log(log, study, advance):
            for policy, found in zip(jobs, pool.map(Measure(split, groups), jobs), strict=True):
                measured[policy].append(found)
                advance()
    frames = [
        _rows(groups, log.data.n_rows, at(template, epsilon), epsilon, measured[at(template, epsilon)])
        for template in templates
        for epsilon in epsilons
    ]
    return Comparison(pd.concat(frames, ignore_index=True))


def number_of_steps(policies: Sequence[Policy], epsilons: Sequence[float]) -> int:
    """How often `compare_log` will call `advance`."""
    return REPEATS * (FOLDS + sum(len(at_each(policy, epsilons)) for policy in policies))


def _rows(groups: list[Group], n_rows: int, policy: Policy, epsilon: float, measured: list[Measured]) -> pd.DataFrame:
    """The rows of one policy at one epsilon, a group each."""
    rows = []
    for g, group in enumerate(groups):
        row: dict[str, object] = {
            "policy": policy.name,
            "epsilon": epsilon,
            "group": group.feature,
            "level": group.level,
            "share": group.rows.size / n_rows,
        }
        together = {
            name: over_repeats([each.estimates[g][name] for each in measured]) for name in measured[0].estimates[g]
        }
        for name in QUANTITIES:
            refused = name in SHARE_OF and not together[SHARE_OF[name]].positive
            found = NOTHING if refused else together[name]
            row[name] = found.value
            row[f"{name}_low"], row[f"{name}_high"] = found.interval
        for name in measured[0].means[g]:
            row[name] = float(np.mean([each.means[g][name] for each in measured]))
        row["epsilon_spent"] = max(each.epsilon_spent for each in measured)
        row["guarantee"] = policy.guarantee
        rows.append(row)
    return pd.DataFrame(rows)
