"""The patients: which records exist, how probable each is, and what a treatment does to them.

records        the record space: names and levels, record indices, words
scenario       the frozen numbers of a cohort and its treatments
cohort         the exact probability of every record, and patients drawn from it
treatment_response   what each treatment does to each record: its rules applied, hazards, outcome probabilities, and a
               day of treatment with the night after it
backup         such a day averaged over exactly
dynamics, kernel     such a day drawn for single patients, by NumPy and one after the other (compiled: for many, too)
ward           the numbers of a day as tables, and who comes
inpatients     the patients of an environment, and their random numbers
treatment, treatment_vector  the Gymnasium environments, of one patient (and the charts, as text) and of many
sb3            the latter as Stable-Baselines3 wants it; only this needs that library
scenario_reader  reads scenarios/*.toml, with every mistake by line (scenario.py lists their keys)
toml_reader    checked reading of TOML (toml_lines: the line of each key)

This package knows nothing of privacy.
"""

from envs.cohort import prior, sample_patients
from envs.records import Feature, RecordSpace, record_space
from envs.scenario import Scenario
from envs.scenario_reader import load_scenario, scenario_names
from envs.toml_reader import InputFileError
from envs.treatment_response import ResponseModel

__all__ = [
    "Feature",
    "InputFileError",
    "RecordSpace",
    "ResponseModel",
    "Scenario",
    "load_scenario",
    "prior",
    "record_space",
    "sample_patients",
    "scenario_names",
]
