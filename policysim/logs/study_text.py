"""The study file that policysim init writes, of the texts in study_text.toml, and whether compare takes it."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from envs.toml_reader import TomlFile, TomlTable, dotted
from policies.catalogue import WITHOUT_LEAD
from policysim.errors import UsageError
from policysim.files.bad_rows import DataError
from policysim.logs.data_section import read_data
from policysim.logs.init_questions import FEWEST_PATIENTS, InitAnswers
from policysim.logs.load_log import LoggedDecisions, load_rows
from policysim.logs.log_source import CHECK, JOINT, LogSource, outcome_formula
from policysim.logs.toml_text import toml_safe, toml_string, toml_text, toml_value
from policysim.numbers import several

TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
# Keys of [data] in the order of the file.
KEYS = (
    *("file", "header", "separator", "decimal", "encoding", "id", "cluster", "treatment", "propensity", "outcome"),
    *("time", "event", "horizon", "range", "adjust_for", "unknown", "missing"),
)


def checked(data: dict[str, Any], folder: Path) -> tuple[LogSource, LoggedDecisions]:
    """Read a table [data] and the rows of its log as `compare` will, so that nothing is written that it refuses.

    Raises
    ------
    UsageError
        One line for each key that cannot be.
    InputFileError, DataError
        As `load_rows`; for an arm with too few patients.
    """
    file = TomlFile(folder, "")
    source = replace(read_data(TomlTable(data, ("data",), file), folder), study=None)
    if file.mistakes:
        raise UsageError("\n".join(f"{dotted(key)}: {message}" for key, message in file.mistakes))
    rows = load_rows(source, show=True)
    counts = rows.data.by_action(~np.isnan(rows.data.rewards))
    if counts.min() < FEWEST_PATIENTS:
        few = f"{rows.data.names[int(counts.argmin())]} has {counts.min()} patients with an outcome"
        must = f"each arm needs {FEWEST_PATIENTS}: leave its rows out of the file"
        raise DataError(f"{source.treatment}: {few}, {must}")
    return source, rows


def study_text(
    answers: InitAnswers, data: Mapping[str, Any], source: LogSource, rows: LoggedDecisions, study: str
) -> tuple[str, str]:
    """The text of a study, and what the screen says of it.

    Parameters
    ----------
    answers : InitAnswers
    data : dict
        The table [data].
    source : LogSource
    rows : LoggedDecisions
        Those of its log that are used, from `checked`.
    study : str
        The study's own path, for the command that comes next.
    """
    features, codes = list(source.features), source.space.codes(rows.records)
    declared = ""
    for name, levels, size in zip(features, codes.T, source.space.shape, strict=True):
        counts = JOINT.join(f"{count:,}" for count in np.bincount(levels, minlength=size))
        declared += f"{toml_text(name)} = {toml_value(data['features'][name])}  {CHECK} patients: {counts}\n"
    keys = ""
    for key in [key for key in KEYS if key in data]:
        check = f"  {CHECK}" if key in ("range", "missing") else ""
        keys += f"{TEXTS['comments'].get(key, '')}{key} = {toml_value(data[key])}{check}\n"
    arms = zip(rows.data.names, rows.data.by_action(), strict=True)
    left_out = answers.n_rows - rows.data.n_rows
    later = [name for name in features if name in answers.later()]
    several_rows = f"of {answers.columns[source.id].n_distinct:,} patients" if source.repeats else ""
    title = f"What does choosing treatments privately cost the patients of {Path(data['file']).stem}?"
    slots = {
        "data": toml_safe(data["file"]),
        "rows": f"{answers.n_rows:,}",
        "patients": several_rows or "each of them a patient",
        "left_out": f" Left out: {left_out:,} without a treatment or a feature." if left_out else "",
        "title": toml_string(title),
        "keys": keys,
        "treatment": toml_text(source.treatment),
        "arms": JOINT.join(f"{toml_safe(name)} {count:,}" for name, count in arms),
        "better": better_in_words(data, source),
        "treatments": "".join(f"{toml_text(value)} = {toml_string(name)}\n" for value, name in source.treatments),
        "features": declared,
        "names": JOINT.join(map(toml_text, features)),
        "n_features": several(len(features), "feature"),
        "records": f"{source.space.size:,}",
        "unused": JOINT.join(toml_safe(toml_text(column.name)) for column in answers.unused) or "no column",
        "policies": toml_value(list(WITHOUT_LEAD)),
        "by": toml_value(features[:2]),
        "study": toml_safe(shlex.quote(study)),
        "later": f"No features, if they came after treatment: {JOINT.join(map(toml_text, later))}.\n" if later else "",
    }
    text = Template(TEXTS["study"]).substitute(slots)
    return text, Template(TEXTS["screen"]).substitute(slots, checks=several(text.count(CHECK), "line"))


def better_in_words(data: Mapping[str, Any], source: LogSource) -> str:
    """What the outcome is, and of a single column which direction is better."""
    weights = data.get("outcome", {})
    if list(weights.values()) in ([1], [-1]):
        ((name, weight),) = weights.items()
        return f"{toml_text(name)}, {'more' if weight > 0 else 'less'} is better"
    return outcome_formula(source)
