"""A policy made elsewhere, as a log evaluates it: a table of action probabilities, or a policy of the catalogue.

The rows of a table are found by the columns that it shares with a log. A policy of the catalogue works on the records
of a scenario: its exact value is known. Either must keep to what the contraindications of a scenario leave to patients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pandas as pd

from envs.records import Feature, Lookup
from envs.toml_reader import unknown
from envs.treatment_response import contraindication_of, forbidden
from policies.arrays import BoolArray, FloatArray, IntArray
from policies.levels import MISSING, NO_VALUE, level_of, level_wanted, sorted_keys
from policies.policy import Policy
from policysim.files.bad_rows import BadRows, DataError
from policysim.files.data_table import DataTable, coded
from policysim.files.probability_table import PREFIX, ProbabilityTable
from policysim.logs.log_frame import OUTCOME_PREFIX, LoggedData, summed
from policysim.logs.toml_text import toml_string
from policysim.study.declared import ScenarioStudy
from policysim.study.labels import hidden
from policysim.study.study_problem import build_problem

# So many values of a column are named.
NAMED = 20


@dataclass(frozen=True, eq=False)
class OutsidePolicy:
    """A policy made elsewhere.

    Attributes
    ----------
    title, privacy : str
        What it is, in words; what is known of its privacy loss, in a sentence.
    actions : tuple of str
        In the order of its columns.
    study : ScenarioStudy or None
        Whose contraindications it must keep to; None where nothing is known of any.
    features : callable
        () -> what it knows of a patient; DataError if it knows only the patients' order.
    probabilities : callable
        p(a|x) for each row of a log, (n_rows, n_actions); DataError lists rows that it does not cover.
    exact : callable
        () -> its value per patient under a scenario's model, and how far two patients' rewards can be apart at most;
        None where no model says.
    """

    title: str
    privacy: str
    actions: tuple[str, ...]
    study: ScenarioStudy | None
    features: Callable[[], tuple[Feature, ...]]
    probabilities: Callable[[DataTable], FloatArray]
    exact: Callable[[], tuple[float, float] | None] = lambda: None


def table_policy(found: ProbabilityTable, study: ScenarioStudy | None = None) -> OutsidePolicy:
    """A table of action probabilities from a file, whose rows are found by its features, or are those of the log."""
    rows = f"found by {', '.join(found.features)}" if found.features else "in the log's order"
    return OutsidePolicy(
        title=f"{found.table.name}, {len(found.table):,} rows, {rows}",
        privacy=f"The ε of {found.table.name} is not checked here; policysim audit --table does that.",
        actions=found.actions,
        study=study,
        features=partial(_features_of, found, study),
        probabilities=partial(_rows_of, found),
    )


def catalogue_policy(policy: Policy, study: ScenarioStudy) -> OutsidePolicy:
    """A policy with its epsilon on the problem of a study; DataError for rows that are no records of the scenario."""
    spends = f" at ε = {policy.epsilon:g}" if policy.uses_epsilon else ""

    @cache
    def table_and_value() -> tuple[FloatArray, float]:
        problem = build_problem(study)
        table = policy.probabilities(problem)
        return table, problem.value(table)

    return OutsidePolicy(
        title=f"{policy.name}{spends}, on the records of {study.name}",
        privacy=f"Hidden by ε: {hidden(study)}." if policy.uses_epsilon else "This policy has no ε.",
        actions=study.scenario.actions,
        study=study,
        features=lambda: study.space.features,
        probabilities=lambda table: table_and_value()[0][
            study.space.indices(level_codes(study, study.space.names, table))
        ],
        exact=lambda: (table_and_value()[1], study.utility.spread(study.scenario, 1)),
    )


def _features_of(found: ProbabilityTable, study: ScenarioStudy | None) -> tuple[Feature, ...]:
    """The columns by which rows are found, with the values that they have here, and what contraindications read."""
    table, keys = found.table, found.features
    if not keys:
        raise DataError(
            f"{table.name}: has only columns {PREFIX}<action>, for the rows of a log in its order, and this log is "
            "counted: add columns that identify patients"
        )
    features = []
    for name in keys:
        values = sorted_keys(set(coded(table[name])[1]))
        features.append(Feature(name, tuple(NO_VALUE if key == MISSING else level_of(key) for key in values)))
    if study is not None:
        read = study.scenario.contraindication_features
        features += [study.space.feature(name) for name in read if name not in keys]
    return tuple(features)


def _rows_of(found: ProbabilityTable, table: DataTable) -> FloatArray:
    """p(a|x) for each row of a log; DataError lists rows that do not have exactly one row here."""
    own, keys = found.table, found.features
    if not keys:
        if len(table) != len(own):
            raise DataError(
                f"{own.name}: has only columns {PREFIX}<action>, so it needs the rows of the log, in its "
                f"order; it has {len(own):,} rows, and {len(table):,} of {table.name} are used"
            )
        return found.probabilities
    for name in keys:
        if name not in table.columns:
            hint = unknown("column", name, table.columns)
            raise DataError(f"{own.name}: no such column in {table.name}: {hint}")
        if name.startswith(OUTCOME_PREFIX):
            raise DataError(f"{own.name}: {name}: an outcome is known only after treatment: no policy knows it")
    wanted, offered = _groups(table, own, keys)
    # For each group a row that offers it (0 where none does), and how many do.
    n_groups = int(max(wanted.max(), offered.max())) + 1
    row_of: IntArray = np.zeros(n_groups, dtype=np.intp)
    row_of[offered] = np.arange(len(offered))
    copies = np.bincount(offered, minlength=n_groups)[wanted]
    _require_shared_values(found, table)
    asked, bad = table.frame_of(keys), BadRows()
    # Patients who are alike to the policy are named once.
    first = np.zeros(len(table), dtype=np.bool_)
    first[np.unique(wanted, return_index=True)[1]] = True
    alike = np.bincount(wanted, minlength=n_groups)[wanted]
    for wrong, words in ((copies == 0, "no row"), (copies > 1, "more than one row")):

        def say(row: int, words: str = words) -> str:
            more = f" (so for {alike[row]:,} rows)" if alike[row] > 1 else ""
            return f"{own.name} has {words} for {', '.join(map(str, asked.iloc[row]))}{more}"

        bad.add(table, wrong & first, ", ".join(keys), say)
    bad.raise_if_any()
    return found.probabilities[row_of[wanted]]


def _require_shared_values(found: ProbabilityTable, table: DataTable) -> None:
    """DataError for a column of a policy that has no value of the log's, such as ages where a log has age groups."""
    for name in found.features:
        values = coded(table[name])[1]
        if len(values) <= NAMED and not set(values) & set(coded(found.table[name])[1]):
            wanted = ", ".join(toml_string(str(level_of(value))) for value in values)
            raise DataError(f"{found.table.name}: {name}: must be written as in {table.name}: {wanted}")


def _groups(first: DataTable, second: DataTable, keys: Sequence[str]) -> tuple[IntArray, IntArray]:
    """Rows of two tables numbered so that equal numbers are equal keys: 1, 1.0, true and "1" are the same value."""
    group: IntArray = np.zeros(len(first) + len(second), dtype=np.intp)
    for name in keys:
        codes, values = coded(pd.concat([first[name], second[name]]))
        # Numbered anew each time, so that the product never overflows.
        group = np.asarray(pd.factorize(group * len(values) + codes)[0], dtype=np.intp)
    return group[: len(first)], group[len(first) :]


def allowed_rows(study: ScenarioStudy | None, actions: Sequence[str], table: DataTable) -> BoolArray | None:
    """What a study's contraindications leave to each row of a log, (n_rows, n_actions).

    None without a study, or if it has no contraindications.

    Raises
    ------
    DataError
        For rows that are no records of the study in what contraindications read, and an action that is none of its
        treatments.
    """
    scenario = None if study is None else study.scenario
    if study is None or scenario is None or not scenario.contraindication_features:
        return None
    for name in actions:
        if name not in scenario.actions:
            raise DataError(f"{study.name}: {unknown('treatment', name, scenario.actions)}")
    at = Lookup(level_codes(study, scenario.contraindication_features, table))
    return np.column_stack([~at.of(forbidden(scenario, name)) for name in actions])


def require_allowed(
    study: ScenarioStudy | None, probabilities: FloatArray, data: LoggedData, table: DataTable
) -> BoolArray | None:
    """The `allowed_rows` of a log; DataError if a policy, (n_rows, n_actions), gives a row what it must not get.

    It says the first, and how many.
    """
    allowed = allowed_rows(study, data.names, table)
    if study is None or allowed is None:
        return None
    given = (probabilities > 0) & ~allowed
    if not given.any():
        return allowed
    action = int(given.any(axis=0).argmax())
    row = int(given[:, action].argmax())
    wrong, name = int(summed(given[:, action].astype(np.float64), data.counts)), data.names[action]
    codes = level_codes(study, study.scenario.contraindication_features, table)[row]
    why = contraindication_of(study.scenario, name, codes.tolist())
    raise DataError(
        f"{table.places([row])[0]}: {name} is contraindicated for this patient ({why}), and the policy gives it with "
        f"probability {probabilities[row, action]:g}; it does so to {wrong:,} of {data.n_patients:,} patients, who "
        "must not get it"
    )


def level_codes(study: ScenarioStudy, names: Sequence[str], table: DataTable) -> IntArray:
    """The levels of these features in each row, (n_rows, n_features); 0 for the features that are not named.

    DataError for a missing column, and for each value that is no level.
    """
    space, bad = study.space, BadRows()
    for name in names:
        message = table.unknown_column(name)
        if message:
            raise DataError(f"{message}; it is a feature of {study.name}")
    codes: IntArray = np.zeros((len(table), len(space.names)), dtype=np.intp)
    for name in names:
        feature = space.feature(name)
        column = codes[:, space.axis(name)] = table.codes(feature)
        bad.add_values(table, column < 0, name, table[name].array, level_wanted(feature), show=False)
    bad.raise_if_any()
    return codes
