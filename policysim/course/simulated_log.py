"""The simulator's own log: a row for each patient, with the exact probability of what was done.

Patients are written at once, batch by batch. So a log may be larger than memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from envs.scenario import Scenario
from policies.arrays import FloatArray, IntArray
from policysim.errors import OutputError, optional
from policysim.files.bad_rows import DataError
from policysim.files.columns_writer import check_ending, open_writer
from policysim.files.whole_files import check_writable, take_names, temporary_folder
from policysim.logs.log_frame import ACTION, OUTCOME_PREFIX, PATIENT, PROPENSITY, REWARD

with optional():
    import pyarrow as pa
    import pyarrow.compute as pc


# What patients have after treatment, by the name of the outcome, (m,) each.
Outcomes: TypeAlias = Mapping[str, NDArray[np.bool_]]


@contextmanager
def open_simulated_log(
    scenario: Scenario, table: FloatArray, path: Path, beside: Mapping[str, bytes] = MappingProxyType({})
) -> Iterator[Callable[[IntArray, IntArray, FloatArray, Outcomes], None]]:
    """Write a log while patients are simulated: call what this yields with what each batch decided and led to.

    With each patient's record before treatment, (m,), the position of the treatment, (m,), the realised utility, (m,),
    and what the patient has after treatment, of the scenario's outcomes.

    Parameters
    ----------
    scenario : Scenario
        Names of features, treatments and outcomes.
    table : array, (n_records, n_actions)
        p(a|x) of the one day.
    path : Path
        Ends in .csv or .parquet. The file appears when the block ends well; an older one stays as it was otherwise.
    beside : mapping of str to bytes, optional
        Files that appear after it, in its folder; the last says that all are there (`take_names`).

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
    with _appearing(path, beside) as part:
        written = pa.schema([(name, pa.string()) for name in schema.names]) if ending == ".csv" else schema
        with open_writer(part, written, ending) as writer:
            n_rows = 0

            def keep(records: IntArray, actions: IntArray, rewards: FloatArray, outcomes: Outcomes) -> None:
                nonlocal n_rows
                columns: dict[str, Any] = {
                    PATIENT: np.arange(n_rows, n_rows + len(records)),
                    ACTION: np.asarray(scenario.actions, dtype=object)[actions],
                    REWARD: rewards,
                    PROPENSITY: table[records, actions],
                    **{f"{OUTCOME_PREFIX}{name}": column.astype(np.int8) for name, column in outcomes.items()},
                }
                for name, levels in scenario.space.decode(records).items():
                    columns[str(name)] = levels.astype(str) if schema.field(name).type == pa.string() else levels
                n_rows += len(records)
                arrays = [pa.array(columns[field.name], type=field.type) for field in schema]
                cast = [pc.cast(column, field.type) for column, field in zip(arrays, written, strict=True)]
                writer.write(pa.RecordBatch.from_arrays(cast, schema=written))

            yield keep


def check_log_path(path: Path) -> None:
    """OutputError, before anything is simulated, if no file can be written there."""
    if path.is_dir():
        raise OutputError(f"{path.as_posix()}: is a folder")
    check_writable(path.parent)


def _schema(scenario: Scenario) -> pa.Schema:
    # Whole numbers where all levels are, text where any is text.
    features = {
        feature.name: pa.int64() if all(isinstance(level, int) for level in feature.levels) else pa.string()
        for feature in scenario.space.features
    }
    outcomes = {f"{OUTCOME_PREFIX}{name}": pa.int8() for name in scenario.outcomes}
    own = {PATIENT: pa.int64(), ACTION: pa.string(), REWARD: pa.float64(), PROPENSITY: pa.float64()}
    for name in features:
        if name in own or name in outcomes:
            raise DataError(f"the scenario's feature {name!r} has the name of another column of a log: rename it")
    return pa.schema([(PATIENT, own.pop(PATIENT)), *features.items(), *own.items(), *outcomes.items()])


@contextmanager
def _appearing(path: Path, beside: Mapping[str, bytes]) -> Iterator[Path]:
    """A temporary file, which takes the name of the log when all is written, and then come the files beside it."""
    *_, last = names = [path.name, *beside]
    try:
        with temporary_folder(path.with_name(last)) as temporary:
            yield temporary / path.name
            for name, content in beside.items():
                (temporary / name).write_bytes(content)
            take_names(temporary, names)
    except OSError as error:
        raise OutputError(f"cannot write {path.as_posix()}: {error.strerror or error}") from None
