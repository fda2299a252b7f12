"""Which columns can be the outcome of a trial.

A patient's id, what follows from a feature, or a time of follow-up beside a column of events cannot: a comparison on
such a column runs like any other and means nothing, so that it is refused. Who has looked at a column says so in the
study, `outcome_checked = ["column"]`.
"""

from __future__ import annotations

import numpy as np

from envs.toml_lines import line_numbers
from envs.toml_reader import InputFileError, one_line
from policysim.logs.column_summary import ColumnSummary, is_follow_up, is_id, says, summarise
from policysim.logs.log_source import LogSource
from policysim.logs.log_tables import LogTables
from policysim.logs.toml_text import toml_text, toml_value

# So many distinct whole numbers without a gap are a count of the rows.
FEWEST_IDS = 20
# So many rows of the rarer value show that a feature decides an outcome.
FEWEST_ROWS = 10


def check_outcomes(source: LogSource, tables: LogTables) -> None:
    """Refuse a study's outcomes that cannot be any.

    Outcomes of weight 0 are only shown, and those that the study lists as checked are taken as they are.

    Raises
    ------
    InputFileError
        One line for each: the study's file and line, the column, the reason, and what to write instead.
    """
    weighed = [name for name, weight in source.outcome.items() if weight and name in tables.outcomes.columns]
    asked = [name for name in weighed if name not in source.outcome_checked]
    found = []
    for name in asked:
        reason = _wrong(summarise(tables.outcomes[name], name), tables, source)
        if reason:
            checked = toml_value([*source.outcome_checked, name])
            found.append(
                f"{place_in_study(source, 'outcome', name)}data.outcome: {toml_text(name)} {reason}; if it is the "
                f"outcome anyway, write outcome_checked = {checked} in [data]"
            )
    if found:
        raise InputFileError("\n".join(map(one_line, found)))


def place_in_study(source: LogSource, *key: str) -> str:
    """Where a key of [data] stands, as a message begins: "trial.toml:7: "; "" without a file."""
    if source.study is None:
        return ""
    lines = line_numbers(source.study.read_text(encoding="utf-8-sig"))
    there: tuple[str | int, ...] = ("data", *key)
    while there and there not in lines:
        there = there[:-1]
    return f"{source.study.as_posix()}:{lines.get(there, 1)}: "


def _wrong(outcome: ColumnSummary, tables: LogTables, source: LogSource) -> str | None:
    """Why a column cannot be the outcome of a study."""
    if outcome.n_rows >= FEWEST_IDS and (outcome.numbers_rows or (outcome.is_id and is_id(outcome.name))):
        return "cannot be the outcome: it is an id, with a value of its own for each patient; name a column of results"
    table = tables.outcomes
    sounding = [name for name in table.columns if says(name, "status") and name not in source.features]
    statuses = [name for name in sounding if summarise(table[name], name).n_distinct == 2]
    if outcome.n_distinct > 2 and is_follow_up(outcome.name) and statuses:
        return (
            "cannot be the outcome: it is a time of follow-up, which ends early for censored patients (by "
            f"{', '.join(map(toml_text, statuses))}); name time, event and horizon instead"
        )
    if tables.are_three:  # of which rows are not matched yet
        return None
    for name in [name for name in source.features if name in tables.features.columns]:
        if decides_outcome(summarise(tables.features[name], name), outcome):
            return (
                f"cannot be the outcome: the feature {toml_text(name)} decides it, so treatment cannot change it: did "
                "it come after treatment? Leave it out"
            )
    return None


def decides_outcome(feature: ColumnSummary, outcome: ColumnSummary) -> bool:
    """Whether an outcome follows from a feature: numbers rise or fall together, each word goes with one value."""
    known = (feature.codes >= 0) & (outcome.codes >= 0)
    before, after = feature.codes[known], outcome.codes[known]
    counts = np.bincount(after, minlength=outcome.n_distinct)
    if outcome.n_distinct < 2 or len(after) - counts.max() < FEWEST_ROWS:
        return False
    of_each = np.bincount(before)
    if len(np.unique(before * outcome.n_distinct + after)) > np.count_nonzero(of_each):
        return False
    if feature.is_numeric:
        ordered = np.diff(after[np.argsort(before, kind="stable")])
        return bool((ordered >= 0).all() or (ordered <= 0).all())
    return int(of_each[of_each > 0].min()) >= FEWEST_ROWS
