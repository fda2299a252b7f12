"""Files that the readers can read, and the same changed: what the fuzzer draws. There is no reader of .npz here."""

import csv
import hashlib
import io
import json
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
from mutants import csv_bytes, json_bytes, parquet_bytes, toml_bytes
from small_studies import DEPENDENT, SCENARIO, STUDY

from policysim.release.privatize_note import Note, make_plan, note_document

ROOT = Path(__file__).parents[2]
TRIAL = """\
title = "A trial"
[data]
file = "data.csv"
id = "patient"
treatment = "arm"
propensity = "equal"
outcome = { cured = 1.0 }
range = [0, 1]
missing = "exclude"
[data.treatments]
pill = "the pill"
placebo = "nothing"
[data.features]
age = { cuts = [40, 60] }
sex = { levels = ["m", "f"] }
[privacy]
epsilons = [1.0, 4.0]
[compare]
policies = ["best-fixed", "exponential"]
by = ["sex"]
"""
FOLLOW_UP = TRIAL.replace("outcome = { cured = 1.0 }\nrange = [0, 1]", 'time = "days"\nevent = "cured"\nhorizon = 40')
COHORT = """\
title = "A cohort"
[cohort]
file = "data.csv"
redraws = "redraws.csv"
features = ["gene", "age"]
treatment = "dose"
patients = "patients"
[privacy]
sensitive = ["gene"]
epsilons = [1.0, 4.0]
[compare]
policies = ["best-fixed", "optimal"]
by = ["age"]
[utility]
weights = { wrong = 1, deaths = 20 }
costs = { high = 0.1 }
"""
REDRAWN = SCENARIO.replace('title = "Two symptoms"', 'title = "Two symptoms"\nredraws = "redraws.csv"')
OWN_DISEASE = (ROOT / "examples/own-disease/scenario.toml").read_text(encoding="utf-8")
SCENARIOS = [tomllib.loads(text) for text in (SCENARIO, DEPENDENT, REDRAWN, OWN_DISEASE)]
STUDIES = [tomllib.loads(text) for text in (STUDY, (ROOT / "examples/ward/study.toml").read_text(encoding="utf-8"))]
TRIALS = [tomllib.loads(TRIAL), tomllib.loads(FOLLOW_UP)]
LEDGER = {
    "private": "PRIVATE", "format": 2,
    "releases": [
        {"what": what, "data": "data.csv", "sha256": [digit * 64], "columns": ["sex"], "unchanged": ["age"],
         "epsilon": 0.5, "adjacency": adjacency, "released": "out.csv", "question": {"by": "age"},
         "date": "2026-11-23T00:00:00+00:00"}
        for what, digit, adjacency in (("privatize", "0", "replace-one"), ("select", "a", "add-or-remove-one"))
    ],
}  # fmt: skip
DIGEST = hashlib.sha256(STUDY.encode()).hexdigest()
PLAN = make_plan({"sex": ("m", "f"), "arm": ("pill", "placebo")}, 1.0)
NOTE = json.loads(json.dumps(note_document(Note(PLAN, ("patient", "age", "cured", "days"), 40, True))))
MANIFESTS = [json.loads((ROOT / f"reports/{name}/manifest.json").read_text()) for name in ("warfarin", "covid-14-days")]


def _patients():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"patient": [f"p{i:03}" for i in range(40)], "arm": rng.choice(["pill", "placebo"], 40)})
    frame["age"], frame["sex"] = rng.integers(20, 90, 40), rng.choice(["m", "f"], 40)
    return frame.assign(cured=rng.integers(0, 2, 40), days=rng.integers(10, 90, 40))


def _cohort():
    rows = [(gene, age, dose) for gene in "AB" for age in ("young", "old") for dose in ("low", "high")]
    frame = pd.DataFrame(rows, columns=["gene", "age", "dose"])
    numbers = [0.1, 0.2, 0.3, 0.05, 0.6, 0.4, 0.2, 0.1]
    return frame.assign(patients=[5, 5, 3, 3, 2, 2, 1, 1], wrong=numbers, deaths=[n / 100 for n in numbers], allowed=1)


PATIENTS, COHORT_ROWS = _patients(), _cohort()
REDRAWS = pd.concat([COHORT_ROWS.assign(draw=draw) for draw in range(3)])
LOG = PATIENTS.rename(columns={"arm": "action", "cured": "reward"}).assign(propensity=0.5)
PEOPLE = pd.DataFrame(
    {"disease": ["Diabetes", "Hepatitis", "Flu"] * 2, "ward": ["a"] * 3 + ["b"] * 3, "people": [24, 8, 0, 3, 1, 2]}
)
POLICY = pd.DataFrame({"sex": ["m", "f"], "p_pill": [0.75, 0.25], "p_placebo": [0.25, 0.75]})
NUMBERS_OF_SCENARIO = pd.DataFrame({"draw": range(12), "treatments.syrup.clears.cough": 0.5, "weights.death": 11.0})


def whole(frame):
    """A table as a file of text."""
    return frame.to_csv(index=False).encode()


def rows_of(frame):
    """A frame as rows of text, header first."""
    return list(csv.reader(io.StringIO(frame.to_csv(index=False))))


def table_file(rng, frame, stem="data", *, only=""):
    """A changed table, as one of both kinds of files."""
    ending = only or rng.choice(("csv", "csv", "parquet"))
    return {f"{stem}.{ending}": csv_bytes(rng, rows_of(frame)) if ending == "csv" else parquet_bytes(rng, frame)}


def either(rng, change, same):
    """Three quarters of such a file changed, the others as they are."""
    return change() if rng.random() < 0.75 else same


def make_ledger(rng):
    """A ledger of other releases."""
    return {"policysim-releases.json": json_bytes(rng, LEDGER)}


def make_scenario(rng):
    """A scenario, and its redraws."""
    redraws = csv_bytes(rng, rows_of(NUMBERS_OF_SCENARIO)) if rng.random() < 0.5 else whole(NUMBERS_OF_SCENARIO)
    return {"scenario.toml": toml_bytes(rng, rng.choice(SCENARIOS)), "redraws.csv": redraws}


def make_study(rng):
    """A study of a scenario."""
    scenario = rng.choice((SCENARIO, DEPENDENT)).encode()
    return {"study.toml": toml_bytes(rng, rng.choice(STUDIES)), "scenario.toml": scenario}


def make_trial(rng):
    """A study of a log, and its log."""
    study = toml_bytes(rng, rng.choice(TRIALS))
    return {
        "study.toml": study,
        **either(rng, lambda: table_file(rng, PATIENTS, only="csv"), {"data.csv": whole(PATIENTS)}),
    }


def make_cohort(rng):
    """A study of a table of one's own, and its table."""
    files = either(rng, lambda: table_file(rng, COHORT_ROWS, only="csv"), {"data.csv": whole(COHORT_ROWS)})
    redraws = table_file(rng, REDRAWS, "redraws", only="csv") if rng.random() < 0.3 else {"redraws.csv": whole(REDRAWS)}
    study = toml_bytes(rng, tomllib.loads(COHORT)) if rng.random() < 0.6 else COHORT.encode()
    return {"study.toml": study, **files, **redraws}


def make_data(rng):
    """A table of patients, of counts or of probabilities."""
    return table_file(rng, rng.choice((PATIENTS, LOG, PEOPLE, POLICY)), only="csv")


def make_parquet(rng):
    """The same as Parquet."""
    return table_file(rng, rng.choice((PATIENTS, LOG, PEOPLE, POLICY)), only="parquet")


def make_note(rng):
    """A private file and its note."""
    return {"data.csv": whole(PATIENTS), "data.csv.privacy.json": json_bytes(rng, NOTE)}


def make_beside(rng):
    """What stands beside a simulated log."""
    beside = {"made_by": "policysim simulate", "study": "study.toml", "sha256": DIGEST}
    return {
        "data.csv.study.json": json_bytes(rng, beside),
        "study.toml": STUDY.encode(),
        "scenario.toml": SCENARIO.encode(),
    }


def make_manifest(rng):
    """The manifest of a report."""
    manifest = {**rng.choice(MANIFESTS)}
    manifest["results"] = dict(list(manifest["results"].items())[:3])
    return {"manifest.json": json_bytes(rng, manifest)}
