"""The study file that policysim init writes, of the texts in study_text.toml, and whether compare takes it."""

from __future__ import annotations

import shlex
import tomllib
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from envs.toml_reader import TomlFile, TomlTable
from policies.catalogue import WITHOUT_LEAD
from policies.levels import NO_VALUE, level_of
from policysim.files.bad_rows import DataError
from policysim.files.csv_format import RECOGNISED, CsvFormat
from policysim.logs.column_summary import hints
from policysim.logs.data_section import read_data
from policysim.logs.init_features import Candidate
from policysim.logs.init_questions import BY_DOCTORS, FEWEST_PATIENTS, RANDOMISED, InitForm, treatment_names
from policysim.logs.load_log import load_log
from policysim.logs.log_source import CHECK, EQUAL, ESTIMATE, EXCLUDE, JOINT, SHARES
from policysim.logs.toml_text import toml_safe, toml_string, toml_text, toml_value
from policysim.numbers import several

TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
QUESTIONS: dict[str, str] = TEXTS["questions"]


def study_text(file: str, stem: str, study: str, form: InitForm, *, stated: CsvFormat = RECOGNISED) -> tuple[str, str]:
    """The text of a study, and what the screen says of it.

    Parameters
    ----------
    file : str
        The data, as the study names them.
    stem : str
        What they are called in the title.
    study : str
        The study's own path, for the command that comes next.
    form : InitForm
    stated : CsvFormat
        What the user stated of a text file.
    """
    treatment, names = form.treatment, dict(treatment_names(form))
    features = [candidate.feature.name for candidate in form.features]
    used = {*features, *form.adjust_for, *(column.name for column in (treatment, *form.outcome))}
    without = form.leaves_out or any(column.n_missing for column in (treatment, *form.outcome))
    data = {
        "file": file,
        "header": [] if stated.header else False,
        **stated.keys,
        "id": form.id or [],
        "cluster": form.cluster or [],
        "treatment": [part.name for part in form.parts] or treatment.name,
        "propensity": _propensity(form, list(names.values())),
        **_outcome(form),
        "adjust_for": list(form.adjust_for),
        "unknown": {name: codes for name, codes in form.unknown.items() if name in used} or [],
        "missing": EXCLUDE if without else [],
    }
    counts = dict(zip((str(level_of(value)) for value in treatment.values), treatment.counts, strict=True))
    doubts = hints(list(form.columns.values()))
    slots = {
        "data": toml_safe(file),
        "rows": f"{treatment.n_rows:,}",
        "patients": _patients(form),
        "title": toml_string(f"What does choosing treatments privately cost the patients of {stem}?"),
        "keys": "".join(_line(key, item) for key, item in data.items() if item != []),
        "treatment": toml_text(treatment.name),
        "arms": JOINT.join(f"{toml_safe(name)} {counts[value]:,}" for value, name in names.items()),
        "better": _better(form),
        "treatments": "".join(f"{toml_text(value)} = {toml_string(name)}\n" for value, name in names.items()),
        "features": "".join(map(_declared, form.features)),
        "names": JOINT.join(map(toml_text, features)),
        "n_features": several(len(features), "feature"),
        "records": f"{form.n_records:,}",
        "unused": JOINT.join(toml_safe(toml_text(column.name)) for column in form.unused) or "no column",
        "policies": toml_value(list(WITHOUT_LEAD)),
        "by": toml_value(features[:2]),
        "study": toml_safe(shlex.quote(study)),
        "hints": "".join(f"{hint}\n" for hint in dict.fromkeys(doubts[name] for name in features if name in doubts)),
    }
    text = Template(TEXTS["study"]).substitute(slots)
    return text, Template(TEXTS["screen"]).substitute(slots, checks=_checks(text.count(CHECK), slots["study"]))


def _patients(form: InitForm) -> str:
    """Whether each row is a patient."""
    several_rows = form.id and form.id == form.cluster
    return f"of {form.columns[form.id].n_distinct:,} patients" if several_rows else "each of them a patient"


def _checks(count: int, study: str) -> str:
    """What is to be read in the study."""
    be, read = ("is", "it") if count == 1 else ("are", "them")
    return f"{several(count, 'line')} {be} marked CHECK in {study}: read {read}."


def _line(key: str, value: object) -> str:
    check = f"  {CHECK}" if key in ("range", "missing") else ""
    return f"{TEXTS['comments'].get(key, '')}{key} = {toml_value(value)}{check}\n"


def _propensity(form: InitForm, names: list[str]) -> str | dict[str, float]:
    if isinstance(form.assigned, list):
        return dict(zip(names, form.assigned, strict=True))
    return {RANDOMISED: SHARES, BY_DOCTORS: ESTIMATE}.get(form.assigned, form.assigned)


def _outcome(form: InitForm) -> dict[str, Any]:
    """The keys of the outcome; the range where it can be outside that of outcomes within [0, 1]."""
    names = [column.name for column in form.outcome]
    if form.horizon:
        event = {"column": names[1], **form.codes} if form.codes else names[1]
        return {"time": names[0], "event": event, "horizon": form.horizon}
    if form.values:
        worth = {str(level_of(value)): form.sign * number for value, number in form.values.items()}
        low, high = min(worth.values()), max(worth.values())
        return {"outcome": {names[0]: worth}} | ({} if 0 <= low <= high <= 1 else {"range": [low, high]})
    weights = form.weights or [form.sign]
    ends = np.array([(column.values[0], column.values[-1]) for column in form.outcome], dtype=np.float64)
    least, most = np.sort(ends * np.array(weights)[:, None]).sum(axis=0).tolist()
    found = {"outcome": dict(zip(names, weights, strict=True))}
    return found if 0 <= ends.min() <= ends.max() <= 1 else {**found, "range": [least, most]}


def _better(form: InitForm) -> str:
    names = [toml_text(column.name) for column in form.outcome]
    if form.horizon:
        return f"free of {names[1]} at {names[0]} = {form.horizon:g}"
    if form.weights:
        return " + ".join(f"{weight:g} × {name}" for weight, name in zip(form.weights, names, strict=True))
    return f"{names[0]}, {'less' if form.sign < 0 else 'more'} is better"


def _declared(candidate: Candidate) -> str:
    feature = candidate.feature
    missing = {"missing": True} if feature.cuts and NO_VALUE in feature.levels else {}
    declared = {"cuts": list(feature.cuts), **missing} if feature.cuts else {"levels": list(feature.levels)}
    counts = JOINT.join(f"{count:,}" for count in candidate.counts)
    few = f"; {toml_safe(candidate.few)}" if candidate.few else ""
    return f"{toml_text(feature.name)} = {toml_value(declared)}  {CHECK} patients: {counts}{few}\n"


def checked(text: str, path: Path) -> None:
    """Read a study's text and its log as `compare` will, so that nothing is written that it refuses.

    Raises
    ------
    InputFileError, DataError
        As `load_log`; for an arm with too few patients.
    """
    file = TomlFile(path, text)
    source = read_data(TomlTable(tomllib.loads(text), (), file).table("data"), path.parent)
    file.raise_if_any()
    lot = EQUAL if source.propensity == ESTIMATE else source.propensity
    data = load_log(replace(source, study=None, propensity=lot), all_hidden=True).data
    counts = data.by_action(data.known.weights > 0)
    if counts.min() < FEWEST_PATIENTS:
        few = f"{data.names[int(counts.argmin())]} has {counts.min()} patients with an outcome"
        raise DataError(f"{source.treatment}: {few}, each arm needs {FEWEST_PATIENTS}: leave its rows out of the file")
