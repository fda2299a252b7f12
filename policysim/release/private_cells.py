"""Private cells: what a model may be made from without giving away the patients of its log.

The cells of a log are its successes and failures for each class of patients and each arm. Classes are the combinations
of declared levels, and arms are declared, so that which cells there are does not depend on the data. Each patient is in
one cell, or in none without an outcome. Where a patient is replaced by another, one cell falls by one and another rises
by one: the counts move by 2 in all (patients and successes would move by 4). The noise is that of `noisy_table`, of
rate epsilon / 2 on each cell, so the privacy loss of all cells together is at most epsilon, and some outputs attain it.

The same question about the same data has one answer: the ledger keeps it, and it costs nothing to ask again.
`policysim.study.noisy_cells` plans on the cells.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from policies.arrays import IntArray
from policies.levels import NO_VALUE
from policysim.files.bad_rows import DataError
from policysim.files.data_table import read_table
from policysim.files.many_files import file_digest
from policysim.logs.column_names import is_id
from policysim.logs.load_log import load_rows
from policysim.logs.log_source import CHECK, EQUAL, ESTIMATE, LogSource, is_column
from policysim.release.delivery import Facts, ledger_facts
from policysim.release.ledger import Ledger, Release, amount, open_ledger
from policysim.release.noisy_table import TablePlan, noisy_counts
from policysim.study.declared import LoggedStudy, Study
from policysim.study.noisy_cells import COUNTED, EPSILON, FAILURES, LEAST_EPSILON, SUCCESSES
from policysim.study.study_reader import load_study

# How the level of missing values is written: in a table of cells nothing is missing.
UNKNOWN = "missing"


def private_cells(
    log: Study | str | Path,
    epsilon: Decimal | float | str = 1,
    *,
    ledger: Ledger | str | Path,
    features: Sequence[str] | str | None = None,
) -> pd.DataFrame:
    """Release how many patients of a log had success and failure, for each class and arm, and count it in a ledger.

    Noise is the operating system's. The same question about the same data gets the same cells again, at no cost.

    Parameters
    ----------
    log : Study, str or Path
        A study of a log, or the path of its file. It declares the levels and the arms; its outcome is success or
        failure of each patient. Patients without an outcome, or followed for less than the horizon, are in no cell.
    epsilon : Decimal, float or str
        What hides each patient of the log, >= 1e-6 and finite; the ledger charges it to everybody.
    ledger : Ledger, str or Path
        Of these patients; `Ledger(path, budget)` makes one.
    features : str or sequence of str, optional
        Those that make the classes; all by default. Every cell has the same noise, so few cells say more.

    Returns
    -------
    DataFrame
        A row for each class and arm, whether they occur or not: the features, the treatment, `successes` and `failures`
        (whole numbers, below 0 where few or none are there), and `epsilon`. Written as CSV, it is the `cells` of a
        study's table [cohort].

    Raises
    ------
    ValueError
        For an epsilon below 1e-6 or infinite, features that the study does not have, or something else than a study
        of a log; as DataError, for a log whose cells would not hide a patient or would mislead.
    LedgerError
        For a ledger that cannot be used; BudgetError, and nothing is released, beyond its budget.
    """
    return release_cells(log, epsilon, ledger, features)[0]


def release_cells(
    log: Study | str | Path,
    epsilon: Decimal | float | str,
    ledger: Ledger | str | Path,
    features: Sequence[str] | str | None,
) -> tuple[pd.DataFrame, Facts]:
    """The same cells, and what may be published of the ledger: the entry that they have, and what is spent by now."""
    features = [features] if isinstance(features, str) else features
    source = _countable_log(log, features)
    names = [*dict.fromkeys(features or source.features)]
    plan = cells_plan(source, names, epsilon)
    counted = ledger if isinstance(ledger, Ledger) else open_ledger(ledger)
    digests = [file_digest(path) for path in source.files.values()]
    cells = count_cells(source, names, plan)
    if digests != [file_digest(path) for path in source.files.values()]:
        raise DataError(f"{source.study}: its log was changed while it was read")
    meant = (
        source.treatment,
        source.treatments,
        source.outcome,
        source.codes,
        source.unknown,
        source.missing,
        source.follow_up,
    )
    request = repr(("private cells", digests, plan, [source.features[name] for name in names], meant))
    hidden = (*names, *(source.joined or [*plan.by][-1:]), *(source.later or _weighted(source)))
    release = Release("private cells", next(iter(source.files.values())).name, amount(plan.epsilon), hidden)
    with counted.transaction():
        held = counted.held(request)
        text = held[1] if held else json.dumps(noisy_counts(cells, plan))
        entry = held[0] if held else counted.charge(release, text, request=request)
        facts = ledger_facts(counted, entry, counted.spent())
    return cells_frame(plan, json.loads(text)), facts


def _countable_log(log: Study | str | Path, features: Sequence[str] | None) -> LogSource:
    """The log of a study; ValueError for one whose cells would not hide a patient or would mislead."""
    study = load_study(log) if isinstance(log, str | Path) else log
    if not isinstance(study, LoggedStudy):
        given = getattr(study, "name", type(log).__name__)
        raise ValueError(
            f"log must be a study with a table [data], which declares levels and arms, got {given}; policysim init LOG "
            "--outcome COLUMN writes one."
        )
    source = study.log
    weighted = _weighted(source)
    fewer = len(features or source.features) < len(source.features)
    clash = {*COUNTED} & {*source.features, source.treatment}
    wrong = {
        f"read the guesses marked {CHECK}: levels that were taken from the data show who is there": source.unread,
        "[data.treatments] must declare the arms: those that occur are private": not source.treatments,
        "a log in many files has no private cells: join them into one": len(source.parts) > 1,
        "cluster: a person may have several rows, and epsilon hides one row: keep one row of each": source.repeats,
        "propensity: a column weights each patient, and cells weigh all alike": is_column(source.propensity),
        f'propensity = "{ESTIMATE}": all features must make the classes': source.propensity == ESTIMATE and fewer,
        f"outcome: give one a weight, of {', '.join(weighted)}: a sum is no success or failure": len(weighted) > 1,
        f"features: {', '.join(clash)}: name it otherwise, as cells have such a column": clash,
    }
    for reason, applies in wrong.items():
        if applies:
            raise DataError(f"{source.study}: {reason}")
    # An id that the study names is checked where the log is read.
    for table in (read_table(path, stated=source.form) for path in source.files.values() if not source.id):
        for name in filter(is_id, table.columns):
            if name not in source.features and 1 < table[name].nunique() < len(table):
                raise DataError(
                    f"{table.name}: {name} repeats, and epsilon hides one row: keep one row of each patient, or name "
                    'the column of patients in [data]: id = "..."'
                )
    return source


def _weighted(source: LogSource) -> list[str]:
    """The outcomes of which the utility is made."""
    return [name for name, weight in source.outcome.items() if weight]


def cells_plan(source: LogSource, features: Sequence[str], epsilon: Decimal | float | str) -> TablePlan:
    """What is counted, by class and arm, and with how much noise; ValueError for an unknown feature, or no epsilon."""
    declared = float(amount(epsilon))
    if not LEAST_EPSILON <= declared < math.inf:
        raise ValueError(
            f"epsilon must be >= {LEAST_EPSILON:g}, below which there is nothing but noise, and finite, got "
            f"epsilon={epsilon!r}."
        )
    known = [source.space.feature(name) for name in features]
    levels = {each.name: [UNKNOWN if level == NO_VALUE else str(level) for level in each.levels] for each in known}
    arms = {source.treatment or "treatment": list(source.arms)}
    return TablePlan({"outcome": (SUCCESSES, FAILURES)}, declared, levels | arms)


def count_cells(source: LogSource, features: Sequence[str], plan: TablePlan) -> IntArray:
    """The true cells, which are private: for each class and arm, in C order, successes and failures; (cells,)."""
    # No cell depends on how patients got their treatments. Of whom the cells hide, no message shows a value.
    rows = load_rows(replace(source, propensity=EQUAL), show=False)
    known, rewards, (worst, best) = ~np.isnan(rows.data.rewards), rows.data.rewards, source.default_range
    if source.follow_up:
        best = 1.0
    elif not np.isin(rewards[known], (worst, best)).all():
        raise DataError(f"{source.study}: data.outcome must be 0 or 1 in each row: cells count successes and failures")
    codes = source.space.codes(rows.records)[:, [source.space.axis(name) for name in features]]
    places = np.column_stack([codes, rows.data.actions, rewards != best])[known]
    sizes = tuple(map(len, plan.levels.values()))
    return np.bincount(np.ravel_multi_index(tuple(places.T), sizes), minlength=int(np.prod(sizes)))


def cells_frame(plan: TablePlan, counts: Sequence[int]) -> pd.DataFrame:
    """Counts of cells, (cells,) in C order, as a table with a row for each class and arm."""
    frame = pd.DataFrame(product(*plan.by.values()), columns=[*plan.by])
    frame[[SUCCESSES, FAILURES]] = np.reshape(counts, (-1, 2))
    return frame.assign(**{EPSILON: plan.epsilon})
