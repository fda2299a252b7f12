"""What is fuzzed: each reader with files that it can read, which are changed, and whole commands on such files.

`make` draws the files of one input, by name, and the arguments of a command; `read` has them in the current folder.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from commands import make_command, make_options
from inputs import (
    COHORT_ROWS,
    LOG,
    PATIENTS,
    POLICY,
    make_beside,
    make_cohort,
    make_data,
    make_ledger,
    make_manifest,
    make_note,
    make_parquet,
    make_scenario,
    make_study,
    make_trial,
)
from mutants import any_frame

import policysim as ps
from envs.scenario_reader import load_scenario
from policysim.cli.gallery import Card, escaped
from policysim.files.data_table import read_table
from policysim.files.probability_table import read_probability_table
from policysim.logs.column_summary import read_columns
from policysim.logs.guess_roles import InitAsked, Named, guess_features, guess_roles
from policysim.logs.load_log import load_log
from policysim.logs.study_text import study_text
from policysim.output.manifest import KEYS, read_manifest, read_options
from policysim.output.screen import printed
from policysim.release.counts_file import read_counts
from policysim.release.ledger import read_ledger
from policysim.release.privatize import private_document, private_screen, read_private
from policysim.release.privatize_note import is_release
from policysim.release.privatize_source import levels_in, open_source
from policysim.study.declared import LoggedStudy
from policysim.study.study_reader import load_study, study_of
from policysim.trials.evaluate_log import read_log_file


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
    asked = InitAsked(path.as_posix(), named, ["policysim", "init", str(path)])
    roles = guess_roles(read_columns(path, header=header), asked)
    features = guess_features(roles, asked)
    if features.chosen:
        text, _ = study_text(path.name, path.stem, "made.toml", roles, features, header=header)
        Path("made.toml").write_text(text, encoding="utf-8")
        load_study("made.toml")


def read_a_note(_):
    """The note, and what is printed of it."""
    path = Path("data.csv")
    is_release(Path("data.csv.privacy.json"))
    printed(private_screen(private_document(path, *read_private(path))))


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
    "csv": Target(make_data, read_data),
    "parquet": Target(make_parquet, read_data),
    "note": Target(make_note, read_a_note),
    "ledger": Target(make_ledger, lambda _: read_ledger(Path("policysim-releases.json"))),
    "manifest": Target(make_manifest, read_a_manifest),
    "beside": Target(make_beside, lambda _: study_of(Path("data.csv"))),
    "frame": Target(lambda _: {}, read_frames),
    "options": Target(make_options, None),
    "command": Target(make_command, None),
}
