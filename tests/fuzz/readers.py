"""What is fuzzed: each reader with files that it can read, which are changed, and whole commands on such files.

`make` draws the files of one input, by name, and the arguments of a command; `read` has them in the current folder.
There is no reader of .npz: nothing here reads such files.
"""

import csv
import hashlib
import io
import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from mutants import CELLS, NUMBERS, TEXTS, any_frame, csv_bytes, json_bytes, parquet_bytes, toml_bytes
from small_studies import DEPENDENT, SCENARIO, STUDY

import policysim as ps
from envs.scenario_reader import load_scenario
from policysim.cli.gallery import Card, escaped
from policysim.cli.main import ADD
from policysim.cli.parser import build_parser, parse
from policysim.files.data_table import read_table
from policysim.files.probability_table import read_probability_table
from policysim.logs.guess_columns import read_columns
from policysim.logs.guess_features import guess_features
from policysim.logs.guess_roles import Asked, Named, guess_roles
from policysim.logs.load_log import load_log
from policysim.logs.study_text import study_text
from policysim.output.manifest import read_manifest
from policysim.release.counts_file import read_counts
from policysim.release.ledger import read_ledger
from policysim.release.privatize_note import is_release, make_plan, note_document, Note
from policysim.release.privatize_source import levels_in, open_source
from policysim.release.privatize_table import private_document, private_screen, read_private
from policysim.sources.source_question import load_source_study
from policysim.study.declared import LoggedStudy
from policysim.study.question_options import KEYS, read_options
from policysim.study.study_reader import FOLDER, load_study, study_of
from policysim.trials.evaluate_log import read_log_file

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
FOLLOW_UP = TRIAL.replace("outcome = { cured = 1.0 }\nrange = [0, 1]", 'time = "age"\nevent = "cured"\nhorizon = 40')
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
SOURCES = [
    tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.toml")) if "analysis" in path.read_text()
]
LEDGER = {
    "private": "PRIVATE", "format": 2,
    "releases": [
        {"what": what, "data": "data.csv", "sha256": [digit * 64], "columns": ["sex"], "unchanged": ["age"], "epsilon": 0.5,
         "adjacency": adjacency, "released": "out.csv", "question": {"by": "age"}, "date": "2026-11-23T00:00:00+00:00"}
        for what, digit, adjacency in (("privatize", "0", "replace-one"), ("select", "a", "add-or-remove-one"))
    ],
}  # fmt: skip
DIGEST = hashlib.sha256(STUDY.encode()).hexdigest()
PLAN = make_plan({"sex": ("m", "f"), "arm": ("pill", "placebo")}, 1.0)
NOTE = json.loads(json.dumps(note_document(Note(PLAN, ("patient", "age", "cured"), 40, True))))
MANIFESTS = [json.loads((ROOT / f"reports/{name}/manifest.json").read_text()) for name in ("warfarin", "sock-groups", "covid-14-days")]


def _patients():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"patient": [f"p{i:03}" for i in range(40)], "arm": rng.choice(["pill", "placebo"], 40)})
    frame["age"], frame["sex"] = rng.integers(20, 90, 40), rng.choice(["m", "f"], 40)
    return frame.assign(cured=rng.integers(0, 2, 40))


def _cohort():
    rows = [(gene, age, dose) for gene in "AB" for age in ("young", "old") for dose in ("low", "high")]
    frame = pd.DataFrame(rows, columns=["gene", "age", "dose"])
    numbers = [0.1, 0.2, 0.3, 0.05, 0.6, 0.4, 0.2, 0.1]
    return frame.assign(patients=[5, 5, 3, 3, 2, 2, 1, 1], wrong=numbers, deaths=[n / 100 for n in numbers], allowed=1)


PATIENTS, COHORT_ROWS = _patients(), _cohort()
REDRAWS = pd.concat([COHORT_ROWS.assign(draw=draw) for draw in range(3)])
LOG = PATIENTS.rename(columns={"arm": "action", "cured": "reward"}).assign(propensity=0.5)
PEOPLE = pd.DataFrame({"disease": ["Diabetes", "Hepatitis", "Flu"] * 2, "ward": ["a"] * 3 + ["b"] * 3, "people": [24, 8, 0, 3, 1, 2]})
POLICY = pd.DataFrame({"sex": ["m", "f"], "p_pill": [0.75, 0.25], "p_placebo": [0.25, 0.75]})
NUMBERS_OF_SCENARIO = pd.DataFrame({"draw": range(12), "treatments.syrup.clears.cough": 0.5, "weights.death": 11.0})


def _csv(frame):
    return frame.to_csv(index=False).encode()


# What a command can read, in place of what was changed.
CLEAN = {
    ("simulate", "study.toml"): STUDY.encode(), ("compare", "data.csv"): _csv(PATIENTS), ("init", "data.csv"): _csv(PATIENTS),
    ("privatize", "data.csv"): _csv(PATIENTS), ("select", "data.csv"): _csv(PEOPLE), ("evaluate", "data.csv"): _csv(LOG),
    ("evaluate", "policy.csv"): _csv(POLICY), ("audit", "data.csv"): _csv(POLICY), ("compare", "redraws.csv"): _csv(REDRAWS),
}  # fmt: skip


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


def make_scenario(rng):
    """A scenario, and its redraws."""
    redraws = csv_bytes(rng, rows_of(NUMBERS_OF_SCENARIO)) if rng.random() < 0.5 else _csv(NUMBERS_OF_SCENARIO)
    return {"scenario.toml": toml_bytes(rng, rng.choice(SCENARIOS)), "redraws.csv": redraws}


def make_study(rng):
    """A study of a scenario."""
    scenario = rng.choice((SCENARIO, DEPENDENT)).encode()
    return {"study.toml": toml_bytes(rng, rng.choice(STUDIES)), "scenario.toml": scenario}


def make_trial(rng):
    """A study of a log, and its log."""
    study = toml_bytes(rng, rng.choice(TRIALS))
    return {"study.toml": study, **either(rng, lambda: table_file(rng, PATIENTS, only="csv"), {"data.csv": _csv(PATIENTS)})}


def make_cohort(rng):
    """A study of a table of one's own, and its table."""
    files = either(rng, lambda: table_file(rng, COHORT_ROWS, only="csv"), {"data.csv": _csv(COHORT_ROWS)})
    redraws = table_file(rng, REDRAWS, "redraws", only="csv") if rng.random() < 0.3 else {"redraws.csv": _csv(REDRAWS)}
    study = toml_bytes(rng, tomllib.loads(COHORT)) if rng.random() < 0.6 else COHORT.encode()
    return {"study.toml": study, **files, **redraws}


def read_trial(_):
    """The study and its log."""
    study = load_study("study.toml")
    if isinstance(study, LoggedStudy):
        load_log(study.log)


def read_data(rng):
    """A table by each of its readers, whose refusals are theirs alone."""
    path = next(path for path in map(Path, ("data.csv", "data.parquet")) if path.exists())
    header = rng.random() < 0.8
    ways = (
        lambda: ps.read_log(path, treatment="arm", outcome="cured", propensity="equal", id="patient", header=header),
        lambda: ps.read_log(path, treatment="arm", outcome={"cured": 1}, propensity="estimate", missing="exclude"),
        lambda: read_log_file(path, ["pill", "placebo"]),
        lambda: read_table(path, header=header),
        lambda: levels_in(open_source(path), ["sex", "arm"]),
        lambda: read_counts(path, column="arm", by="sex"),
        lambda: read_counts(path, column="disease", score="people", by="ward"),
        lambda: read_probability_table(path).describe(0),
        lambda: guessed(path, header),
    )
    rng.choice(ways)()


def guessed(path, header):
    """What init makes of a file, which is then read."""
    named = Named(outcome="cured") if header else Named(outcome="4", treatment=["1"])
    asked = Asked(path.as_posix(), named, ["policysim", "init", str(path)])
    roles = guess_roles(read_columns(path, header=header), asked)
    features = guess_features(roles, asked)
    if features.chosen:
        text, _ = study_text(path.name, path.stem, "made.toml", roles, features, header=header)
        Path("made.toml").write_text(text, encoding="utf-8")
        load_study("made.toml")


def make_data(rng):
    """A table of patients, of counts or of probabilities."""
    return table_file(rng, rng.choice((PATIENTS, LOG, PEOPLE, POLICY)), only="csv")


def make_parquet(rng):
    """The same as Parquet."""
    return table_file(rng, rng.choice((PATIENTS, LOG, PEOPLE, POLICY)), only="parquet")


def make_note(rng):
    """A private file and its note."""
    return {"data.csv": _csv(PATIENTS), "data.csv.privacy.json": json_bytes(rng, NOTE)}


def read_a_note(_):
    """The note, and what is printed of it."""
    path = Path("data.csv")
    is_release(Path("data.csv.privacy.json"))
    private_screen(private_document(path, *read_private(path)))


def make_beside(rng):
    """What stands beside a simulated log."""
    beside = {"made_by": "policysim simulate", "study": "study.toml", "sha256": DIGEST}
    return {"data.csv.study.json": json_bytes(rng, beside), "study.toml": STUDY.encode(), "scenario.toml": SCENARIO.encode()}


def make_manifest(rng):
    """The manifest of a report."""
    manifest = {**rng.choice(MANIFESTS)}
    manifest["results"] = dict(list(manifest["results"].items())[:3])
    return {"manifest.json": json_bytes(rng, manifest)}


def read_a_manifest(_):
    """A manifest, its options and its card."""
    found = read_manifest(Path("manifest.json").absolute())
    card = Card.of(found, "reports")
    escaped(card.finding)
    read_options(found.question, list(KEYS))


def read_frames(rng):
    """A data frame given to a function."""
    cohort, log = any_frame(rng, COHORT_ROWS), any_frame(rng, LOG)
    policy = any_frame(rng, pd.DataFrame({"pill": [0.5] * 40, "placebo": [0.5] * 40}))
    names = {"features": ["gene", "age"], "treatment": "dose", "patients": "patients"}
    ways = (
        lambda: ps.problem_from_frame(cohort, **names, weights={"wrong": 1, "deaths": 20}, sensitive=["gene"]),
        lambda: ps.read_log(any_frame(rng, PATIENTS), treatment="arm", outcome="cured", propensity="equal"),
        lambda: ps.evaluate_log(log, np.full((40, 2), 0.5), estimator=rng.choice(("ips", "snips"))),
        lambda: ps.evaluate_log(log, policy, estimator="snips", covariates=[]),
        lambda: ps.evaluate_log(log, np.full((40, 2), 0.5), estimator="dr", outcome_model="constant"),
        lambda: ps.DecisionProblem(any_frame(rng, POLICY[["p_pill", "p_placebo"]]), [0.5, 0.5], ps.AnyRecord()),
        lambda: ps.privacy_loss(any_frame(rng, POLICY[["p_pill", "p_placebo"]]), ps.AnyRecord()),
    )
    rng.choice(ways)()


def make_options(rng):
    """The arguments of a command line."""
    return {}, arguments(rng)


# The options of each command, as argparse knows them.
OPTIONS = {
    name: [action for action in parser._actions if action.option_strings and "--help" not in action.option_strings]  # noqa: SLF001
    for name, parser in build_parser(ADD)[1].choices.items()
}
WORDS = (
    "1", "0.1,1,inf", "1e6", "80%", "sex", "age", "arm", "sex=m,f", "arm=pill,placebo", "deaths=0.003", "deaths=one-for-all", "greedy", "optimal",
    "exponential", "one-feature", "any-record", "sensitive", "svg", "frontier", "page", "table", "values", "14", "2", "data.csv", "out.csv", "out",
    "study.toml", "cured", "patient", "dr", "ips", "linear", "replace-one", "add-or-remove-one", "people", "disease", "covid",
)  # fmt: skip
# What reaches another machine, or takes a day.
LEFT_OUT = ("--cluster", "--patients", "--horizon")


def arguments(rng, most=6):
    """Some options of some command, with values that fit, or do not."""
    command = rng.choice(list(OPTIONS))
    found = [command]
    for _ in range(rng.randrange(most)):
        action = rng.choice(OPTIONS[command])
        option = max(action.option_strings, key=len)
        if option not in LEFT_OUT:
            found.append(option)
            if action.nargs != 0:
                found.append(str(rng.choice(WORDS if rng.random() < 0.6 else (*TEXTS, *NUMBERS))))
    return [each.replace("\x00", "0").replace("/dev/zero", "/dev/null") for each in found]


def make_command(rng):
    """A command with files that it takes, changed or not, and some options."""
    files, given = _asked(rng)
    if rng.random() < 0.5:  # else nothing would come as far as the answer
        files |= {name: CLEAN[given[0], name] for name in files if (given[0], name) in CLEAN and rng.random() < 0.8}
    if rng.random() < 0.4:
        old, new = rng.choice(NAMES), rng.choice(HARD)
        files = {name: renamed(name, content, old, new) for name, content in files.items()}
    extra = arguments(rng, 3) if rng.random() < 0.5 else [given[0]]
    if rng.random() < 0.04:
        given = [given[0], rng.choice(TEXTS).replace("\x00", "0").replace("/dev/zero", "/dev/null"), *given[2:]]
    return files, [*given, *(extra[1:] if extra[0] == given[0] else [])]


# Names in the files, and what they could be called.
NAMES = ("pill", "placebo", "arm", "sex", "age", "cured", "fever", "cough", "infected", "syrup", "young", "gene", "dose", "high", "wrong", "deaths",
         "disease", "Flu", "ward", "p_pill", "m", "A small study", "A trial", "nothing")  # fmt: skip
HARD = (*(text for text in TEXTS if text.isprintable() and text.strip()), "a_b^c", "$\\frac{1$", "$$", "x" * 2000, "ε = 1", "a, b", "{{ x }}", "1.0", "-")


def renamed(file, content, old, new):
    """A file in which a name is another one throughout."""
    if file.endswith(".toml"):
        pattern, said = rf'"{old}"|(?<![\w"]){old}(?![\w"])', json.dumps(new, ensure_ascii=False)
    elif file.endswith(".csv"):
        pattern, said = rf"(?<![\w]){old}(?![\w])", f'"{new.replace(chr(34), 2 * chr(34))}"' if {",", '"'} & set(new) else new
    else:
        return content
    try:
        return re.sub(pattern, lambda _: said, content.decode()).encode()
    except UnicodeDecodeError:
        return content


def _asked(rng):
    data = either(rng, lambda: table_file(rng, PATIENTS), {"data.csv": _csv(PATIENTS)})
    name = next(iter(data))
    ending = Path(name).suffix
    kind = rng.randrange(13)
    if kind <= 3:
        study = {
            0: lambda: make_study(rng), 1: lambda: make_cohort(rng), 2: lambda: make_trial(rng),
            3: lambda: {"study.toml": STUDY.encode(), "redraws.csv": b"", **make_scenario(rng)},
        }[kind]()  # fmt: skip
        if rng.random() < 0.5:
            text = {0: STUDY, 1: COHORT, 2: rng.choice((TRIAL, FOLLOW_UP)), 3: STUDY}[kind]
            study |= {"study.toml": text.encode()} | ({"data.csv": _csv(COHORT_ROWS)} if kind == 1 else {})
        asked = rng.choice((["compare"], ["compare", "--figures", "frontier"], ["choose", "--keep", "0.5"], ["sensitivity"], ["compare", "--full"]))
        return study, [asked[0], "study.toml", *(["--out", "out"] if asked[0] == "compare" else []), *asked[1:]]
    if kind == 4:
        return make_study(rng), ["simulate", "study.toml", "--patients", "50", "--log", f"log{ending}"]
    if kind == 5:
        return data, ["init", name]
    if kind <= 7:
        options = ["--column", "sex", "--column", "arm", "--epsilon", "1", "--levels", "sex=m,f", "--levels", "arm=pill,placebo"]
        form = rng.choice((["--out", f"out{ending}"], ["--out", "out.csv", "--as", "table"], ["--out", f"out{ending}", "--separately"]))
        return {**data, **_ledger(rng)}, ["privatize", name, *options, *form]
    if kind == 8:
        people = table_file(rng, PEOPLE)
        return {**people, **_ledger(rng)}, ["select", next(iter(people)), "--column", "disease", "--score", "people", "--by", "ward", "--epsilon", "1"]
    if kind == 9:
        return make_note(rng), ["privatize", "data.csv", "--estimate"]
    if kind == 10:
        log, table = table_file(rng, LOG), table_file(rng, POLICY, "policy")
        return {**log, **table}, ["evaluate", next(iter(log)), "--table", next(iter(table)), "--estimator", rng.choice(("ips", "snips", "dr"))]
    if kind == 11:
        table = table_file(rng, POLICY)
        return {**table, "study.toml": STUDY.encode(), "scenario.toml": SCENARIO.encode()}, ["audit", "--table", next(iter(table))]
    return make_manifest(rng), ["reproduce", "manifest.json"]


def _ledger(rng):
    return {"policysim-releases.json": json_bytes(rng, LEDGER)} if rng.random() < 0.3 else {}


@dataclass(frozen=True)
class Target:
    """What is fuzzed: draws its files (and arguments), and reads them; more numbers may be drawn in reading."""

    make: Callable
    read: Callable


TARGETS = {
    "study": Target(make_study, lambda _: load_study("study.toml")),
    "scenario": Target(make_scenario, lambda _: load_scenario("scenario.toml")),
    "trial": Target(make_trial, read_trial),
    "cohort": Target(make_cohort, lambda _: load_study("study.toml")),
    "source": Target(lambda rng: {"study.toml": toml_bytes(rng, rng.choice(SOURCES))}, lambda _: load_source_study(Path("study.toml"))),
    "csv": Target(make_data, read_data),
    "parquet": Target(make_parquet, read_data),
    "note": Target(make_note, read_a_note),
    "ledger": Target(lambda rng: {"ledger.json": json_bytes(rng, LEDGER)}, lambda _: read_ledger(Path("ledger.json"))),
    "manifest": Target(make_manifest, read_a_manifest),
    "beside": Target(make_beside, lambda _: study_of(Path("data.csv"))),
    "frame": Target(lambda _: {}, read_frames),
    "options": Target(make_options, None),
    "command": Target(make_command, None),
}
_ = CELLS, parse
