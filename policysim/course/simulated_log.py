"""The simulator's own log: a row for each patient, with the exact probability of what was done.

Rows need single patients: these are drawn batch by batch through the vector environment, and written at once. So a log
may be larger than memory, and what is counted of its patients is what its rows say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import gymnasium
import numpy as np
from numpy.typing import NDArray

from envs.crowd import Tally
from envs.scenario import Scenario
from policies.arrays import FloatArray, IntArray
from policies.policy import draw_actions
from policysim.course.simulation import Simulated, require_two
from policysim.files.bad_rows import DataError
from policysim.files.columns_file import check_ending, open_writer
from policysim.files.whole_folders import check_writable, folder_beside, sync, take_names, write_synced
from policysim.logs.log_frame import ACTION, OUTCOME_PREFIX, PATIENT, PROPENSITY, REWARD
from policysim.question import OutputError
from policysim.question.extras import optional
from policysim.question.protocol import SILENT, Progress
from policysim.study.declared import ScenarioStudy

with optional():
    import pyarrow as pa
    import pyarrow.compute as pc


# What patients have after treatment, by the name of the outcome, (m,) each.
Outcomes: TypeAlias = Mapping[str, NDArray[np.bool_]]
ENVIRONMENT = "policysim:policysim/Treatment-v1"
# Patients treated at once: enough to keep the processor busy, few enough for its memory.
BATCH = 1 << 16


def simulate_log(
    study: ScenarioStudy,
    table: FloatArray,
    path: Path,
    *,
    patients: int,
    exact: float,
    seed: int,
    beside: Mapping[str, bytes] = MappingProxyType({}),
    progress: Progress = SILENT,
) -> Simulated:
    """Treat simulated patients for one day, and write each of them to a log.

    Parameters
    ----------
    study : ScenarioStudy
        Its scenario and utility.
    table : array, (n_records, n_actions)
        p(a|x).
    path : Path
        See `open_simulated_log`.
    patients : int
        How many, >= 2.
    exact : float
        The value to compare with.
    seed : int
        Of two streams, `numpy.random.SeedSequence(seed).spawn(2)`: one for what is chosen, one that seeds the
        environment.
    beside : mapping of str to bytes, optional
        Files that appear with it, in its folder.
    progress : Progress, optional
        Told of the patients that are done.

    Returns
    -------
    Simulated
        Of the patients of the log.

    Raises
    ------
    ValueError
        For fewer than two patients.
    DataError, OutputError
        See `open_simulated_log`.
    """
    require_two(patients)
    progress.expect(patients)
    policy_stream, ward_stream = np.random.SeedSequence(seed).spawn(2)
    rng, tally = np.random.default_rng(policy_stream), Tally.of(study.scenario)
    env = gymnasium.make_vec(
        ENVIRONMENT,
        num_envs=min(BATCH, patients),
        scenario=study.scenario_source,
        utility={"weights": dict(study.utility.weights), "costs": dict(study.utility.costs)},
        autoreset_mode="Disabled",
    )
    ward_seed: int | None = int(ward_stream.generate_state(1)[0])
    with open_simulated_log(study.scenario, table, path, beside) as keep:
        while tally.ended < patients:
            observations, _ = env.reset(seed=ward_seed)
            records = study.scenario.space.indices(observations)
            actions = draw_actions(table[records], rng)
            _, rewards, _, _, infos = env.step(actions)
            # The last batch is cut, and the stream goes on from one to the next.
            some, ward_seed = slice(patients - tally.ended), None
            outcomes = {name: infos["outcome"][name][some] for name in study.scenario.outcomes}
            keep(records[some], actions[some], rewards[some], outcomes)
            _count(tally, actions[some], rewards[some], outcomes)
            progress.advance(len(rewards[some]))
    return Simulated.of(study, tally, exact, 1)


def _count(tally: Tally, actions: IntArray, rewards: FloatArray, outcomes: Outcomes) -> None:
    """Count what happened to single patients, whose stay has ended."""
    happened = np.stack(list(outcomes.values()))
    for action in range(len(tally.given)):
        chosen = actions == action
        tally.given[action] += np.count_nonzero(chosen)
        tally.happened[action] += np.count_nonzero(happened & chosen, axis=1)
    tally.ended += len(actions)
    tally.returns += [rewards.sum(), rewards @ rewards]


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
        Files that appear with it, in its folder.

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
    """A fresh name beside a file, whose content takes its place when all is written, and vanishes otherwise."""
    try:
        with folder_beside(path) as folder:
            part = folder / path.name
            yield part
            sync(part)
            for name, content in beside.items():
                write_synced(folder / name, content)
            take_names(folder, {name: path.with_name(name) for name in (path.name, *beside)})
    except OSError as error:
        raise OutputError(f"cannot write {path.as_posix()}: {error.strerror or error}") from None
