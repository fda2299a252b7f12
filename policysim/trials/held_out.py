"""Whether policies are better than one arm for all, on patients of a log who had no part in making them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from policies.policy import Policy
from policysim.logs.counted_log import is_counted, open_log, require_countable_model
from policysim.logs.load_log import Log
from policysim.question.protocol import SILENT, Progress
from policysim.study.certainty import ENDS, UNTOLD, verdict_of_interval
from policysim.study.declared import LoggedStudy
from policysim.trials.diagnostics import log_caveats
from policysim.trials.estimators import over_splits
from policysim.trials.trial_columns import measured_on_splits


def judged_on_held_out(study: LoggedStudy, policies: Sequence[Policy], progress: Progress = SILENT) -> pd.DataFrame:
    """Read the log of a study, and judge policies as `compare` does: by splits, and 95 % intervals of differences.

    Returns
    -------
    DataFrame
        See `judged_on_splits`.
    """
    if is_counted(study.log, None):
        require_countable_model(study.log.outcome_model)
    return judged_on_splits(study, open_log(study.log, None, progress), policies, progress)


def judged_on_splits(
    study: LoggedStudy, log: Log, policies: Sequence[Policy], progress: Progress = SILENT
) -> pd.DataFrame:
    """The same of a log that was read.

    Returns
    -------
    DataFrame
        policy, value, low, high (of its difference from the arm for all that did best on the other folds, in utility,
        with its 95 % interval) and verdict; nothing can be told where errors that no interval covers have left signs.
    """
    measured, _ = measured_on_splits(replace(study, by=()), log, policies, policies, progress)
    told = not log_caveats(log, study.log).errors
    rows = []
    for policy in policies:
        value, low, high, _ = over_splits([each.estimates[0]["difference"] for each in measured[policy]])
        rows.append((policy.name, value, low, high, verdict_of_interval(low, high) if told else UNTOLD))
    return pd.DataFrame(rows, columns=["policy", *ENDS, "verdict"])
