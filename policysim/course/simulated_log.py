"""The simulator's own log: a row for each patient, with the exact probability of what was done."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from envs.records import Feature
from envs.scenario import Scenario
from policies.arrays import FloatArray
from policysim.course.simulation import Decisions
from policysim.files.bad_rows import DataError
from policysim.files.columns_file import check_ending, open_writer
from policysim.files.output import check_writable, part_beside
from policysim.logs.log_frame import ACTION, OUTCOME_PREFIX, PATIENT, PROPENSITY, REWARD
from policysim.question import OutputError
from policysim.question.extras import optional

with optional():
    import pyarrow as pa
    import pyarrow.compute as pc


@contextmanager
def open_simulated_log(scenario: Scenario, table: FloatArray, path: Path) -> Iterator[Callable[[Decisions], None]]:
    """Write a log while patients are simulated: hand what this yields to `simulation.simulate` as `keep`.

    Parameters
    ----------
    scenario : Scenario
        Names of features, treatments and outcomes.
    table : array, (n_records, n_actions)
        p(a|x) of the one day.
    path : Path
        Ends in .csv or .parquet. The file appears when the block ends well; an older one stays as it was otherwise.

    Notes
    -----
    Columns: `patient`, counted from 0; the features of the record before treatment, as `RecordSpace.decode` names their
    levels; `action`, the treatment's name; `reward`, the realised utility; `propensity`, p(a|x) of that action under
    the table, bit for bit; and `outcome_<name>` for each outcome of the scenario, 0 or 1, after treatment. CSV holds
    the shortest decimals that are read as the same float64.

    Raises
    ------
    DataError
        For another ending, or a feature that has the name of another column.
    OutputError
        If the file cannot be written.
    """
    ending = check_ending(path)
    schema = _schema(scenario)
    check_log_path(path)
    with _appearing(path) as part:
        written = pa.schema([(name, pa.string()) for name in schema.names]) if ending == ".csv" else schema
        with open_writer(part, written, ending) as writer:
            n_rows = 0

            def keep(decisions: Decisions) -> None:
                nonlocal n_rows
                batch = _batch(scenario, table, decisions, n_rows, schema)
                n_rows += batch.num_rows
                columns = [pc.cast(column, field.type) for column, field in zip(batch.columns, written, strict=True)]
                writer.write(pa.RecordBatch.from_arrays(columns, schema=written))

            yield keep


def check_log_path(path: Path) -> None:
    """OutputError, before anything is simulated, if no file can be written there."""
    if path.is_dir():
        raise OutputError(f"{path.as_posix()}: is a folder")
    check_writable(path.parent)


def _schema(scenario: Scenario) -> pa.Schema:
    features = {feature.name: _type(feature) for feature in scenario.space.features}
    outcomes = {f"{OUTCOME_PREFIX}{name}": pa.int8() for name in scenario.outcomes}
    own = {PATIENT: pa.int64(), ACTION: pa.string(), REWARD: pa.float64(), PROPENSITY: pa.float64()}
    for name in features:
        if name in own or name in outcomes:
            raise DataError(f"the scenario's feature {name!r} has the name of another column of a log: rename it")
    return pa.schema([(PATIENT, own.pop(PATIENT)), *features.items(), *own.items(), *outcomes.items()])


def _type(feature: Feature) -> pa.DataType:
    """Whole numbers where all levels are, text where any is text."""
    return pa.int64() if all(isinstance(level, int) for level in feature.levels) else pa.string()


def _batch(
    scenario: Scenario, table: FloatArray, decisions: Decisions, first: int, schema: pa.Schema
) -> pa.RecordBatch:
    features = scenario.space.decode(decisions.records)
    columns: dict[str, Any] = {
        PATIENT: np.arange(first, first + len(decisions.records)),
        ACTION: np.asarray(scenario.actions, dtype=object)[decisions.actions],
        REWARD: decisions.rewards,
        PROPENSITY: table[decisions.records, decisions.actions],
        **{f"{OUTCOME_PREFIX}{name}": column.astype(np.int8) for name, column in decisions.outcomes.items()},
    }
    for field in schema:
        if field.name in features:
            levels = features[field.name]
            columns[field.name] = levels.astype(str) if field.type == pa.string() else levels
    return pa.RecordBatch.from_arrays(
        [pa.array(columns[field.name], type=field.type) for field in schema], schema=schema
    )


@contextmanager
def _appearing(path: Path) -> Iterator[Path]:
    """A fresh name beside a file, whose content takes its place when all is written, and vanishes otherwise."""
    try:
        with part_beside(path) as part:
            yield part
            with part.open("rb") as stream:
                os.fsync(stream.fileno())
            part.replace(path)
    except OSError as error:
        raise OutputError(f"cannot write {path.as_posix()}: {error.strerror or error}") from None
