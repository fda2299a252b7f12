"""Hostile files: each reader takes them, or refuses them in plain words.

Hypothesis prints the files that fail. They stay as a case in finds/, see `finds` in tests/support/hostile_files.py.
"""

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hostile_files import (
    BESIDES,
    COHORTS,
    LOG,
    MANIFESTS,
    NOTES,
    PATIENTS,
    PEOPLE,
    POLICY,
    SCENARIOS,
    STUDIES,
    TRIALS,
    damaged_files,
    file_bytes,
    finds,
    hostile,
    in_folder,
    is_read,
)
from hypothesis import event, given
from hypothesis import strategies as st

import envs
import policysim as ps
from envs.toml_reader import InputFileError
from envs.treatment_response import treatment_costs
from policysim.cli.reproduce_command import understood
from policysim.files.data_table import read_table
from policysim.files.probability_table import read_probability_table
from policysim.logs.load_log import load_log
from policysim.release.counts_file import read_counts
from policysim.release.privatize import private_document, private_screen, read_private
from policysim.release.privatize_source import levels_in, open_source
from policysim.report.reproduce import read_manifest
from policysim.study.declared import LoggedStudy
from policysim.study.study_reader import study_of
from policysim.trials.log_to_evaluate import read_log_file
from policysim.utility import Utility


def read_scenario():
    """A scenario, all of whose numbers can be computed; or its mistakes by file and line."""
    try:
        scenario = envs.load_scenario("scenario.toml")
    except InputFileError as error:
        for mistake in str(error).split("\n"):
            assert re.fullmatch(r"scenario\.toml:[1-9]\d*: \S.*|(scenario\.toml|redraws\.csv): \S.*", mistake)
        raise
    prior, response, utility = envs.prior(scenario), envs.ResponseModel(scenario), Utility.of(scenario)
    assert abs(prior.sum() - 1) <= 1e-12 and prior.min() >= 0
    for chances in (response.death, *map(response.probability, scenario.outcomes)):
        assert ((chances >= 0) & (chances <= 1)).all()
    assert response.admissible is None or response.admissible.any(axis=1).all()
    assert all(np.isfinite(cost).all() for cost in treatment_costs(scenario, utility.costs))
    assert np.isfinite(utility.weight_vector(scenario.outcomes)).all()


def read_study():
    study = ps.load_study("study.toml")
    if isinstance(study, LoggedStudy):
        load_log(study.log)


def read_note():
    private_screen(private_document(Path("data.csv"), *read_private(Path("data.csv"))))


def read_command_of_manifest():
    understood(read_manifest(Path("manifest.json").absolute()))


def read_levels(path):
    levels_in(open_source(path), ["sex", "arm"])


def read_policy(path):
    read_probability_table(path).describe(0)


PATIENT_COLUMNS = {"treatment": "arm", "outcome": "cured", "id": "patient"}
# Tables, CSV or Parquet, and their readers, each of which refuses in its own words.
TABLE_READERS = {
    "log": (PATIENTS, partial(ps.read_log, propensity="equal", missing="exclude", **PATIENT_COLUMNS)),
    "log to evaluate": (LOG, partial(read_log_file, actions=["pill", "placebo", "drip"])),
    "table": (PATIENTS, read_table),
    "levels": (PATIENTS, read_levels),
    "counts": (PEOPLE, partial(read_counts, column="disease", score="people", by="ward")),
    "policy": (POLICY, read_policy),
}
READERS = {
    "scenario": (SCENARIOS, read_scenario),
    "study": (STUDIES, read_study),
    "trial": (TRIALS, read_study),
    "cohort": (COHORTS, read_study),
    "note": (NOTES, read_note),
    "manifest": (MANIFESTS, read_command_of_manifest),
    "beside": (BESIDES, partial(study_of, Path("data.csv"))),
}
for kind, (table, read) in TABLE_READERS.items():
    for name in ("data.csv", "data.parquet"):
        READERS[f"{kind} in {name}"] = ([{name: table}], partial(read, Path(name)))


@pytest.mark.parametrize("kind", READERS)
def test_whole_files_are_read(kind):
    alternatives, read = READERS[kind]
    for files in alternatives:
        with in_folder({name: file_bytes(name, content) for name, content in files.items()}):
            assert is_read(read)


@pytest.mark.parametrize("kind", READERS)
@hostile(10)
@given(data=st.data())
def test_hostile_files_are_read_or_refused(kind, data):
    alternatives, read = READERS[kind]
    with in_folder(data.draw(damaged_files(*alternatives), "files")):
        event("read" if is_read(read) else "refused")


@pytest.mark.parametrize(("kind", "files", "_"), finds(*READERS, "table"))
def test_files_that_once_failed_are_read_or_refused(kind, files, _):
    readers = (
        [partial(read, Path(*files)) for _, read in TABLE_READERS.values()] if kind == "table" else [READERS[kind][1]]
    )
    for read in readers:
        with in_folder(files):
            is_read(read)
