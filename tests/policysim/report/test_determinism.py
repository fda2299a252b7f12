"""Two runs of one study on one machine write the same bytes, whatever the process, threads and folder."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small_studies import write_small_study

ROOT = Path(__file__).parents[3]
# Modules take N_THREADS when they are imported, so it is set before any of them.
CHILD = """
import sys
from policysim.study import sweep
sweep.N_THREADS = int(sys.argv[1])
from policysim.cli.main import main
from policysim.decision import redraws
from policysim.trials import evidence, trial_columns
redraws.REDRAWS = 5
trial_columns.REPEATS = 2
evidence.LOOKS = (20,)
study, trial, out = sys.argv[2:]
DAYS = ["--horizon", "2", "--total-epsilon", "1"]
# What else may depend on a process is drawn once, for the scenario.
FEW = ["--policy", "exponential", "--format", "svg", "--figures", "course"]
codes = [
    main(["compare", trial, "--epsilon", "1", "--format", "svg,png", "--figures", "frontier", "--out", out + "/trial"]),
    main(["compare", study, "--epsilon", "1,4", "--format", "svg", "--out", out + "/scenario"]),
    main(["compare", study, *DAYS, *FEW, "--out", out + "/days"]),
]
sys.exit(max(codes))
"""


TRIAL = """
title = "A trial"
[data]
file = "trial.csv"
public = true
treatment = "arm"
propensity = "equal"
outcome = { success = 1.0 }
[data.treatments]
0 = "wait"
1 = "pill"
[data.features]
sex = { levels = [0, 1] }
[compare]
policies = ["best-fixed", "randomized-response", "optimal"]
by = ["sex"]
"""


def write_trial(folder):
    """A trial of two arms, and its study."""
    rng = np.random.default_rng(0)
    columns = {"arm": np.arange(240) % 2, "sex": rng.integers(0, 2, 240), "success": rng.integers(0, 2, 240)}
    pd.DataFrame(columns).to_csv(folder / "trial.csv", index=False)
    (folder / "trial.toml").write_text(TRIAL, encoding="utf-8")
    return folder / "trial.toml"


def start(folder, hash_seed, threads):
    """One process that writes a report of each kind of question."""
    study, trial = write_small_study(folder / "study"), write_trial(folder / "study")
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "TZ": f"UTC{hash_seed}", "PYTHONPATH": str(ROOT)}
    environment |= {f"{library}_NUM_THREADS": str(threads) for library in ("OPENBLAS", "OMP")}
    command = [sys.executable, "-c", CHILD, str(threads), str(study), str(trial), str(folder)]
    return subprocess.Popen(command, env=environment, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    places = [tmp_path_factory.mktemp(name) for name in ("one", "another")]
    children = [start(place, seed, threads) for place, seed, threads in zip(places, (1, 2), (1, 3), strict=True)]
    for child in children:
        _, error = child.communicate(timeout=300)
        assert child.returncode == 0, error.decode()
    return places


def test_two_runs_write_the_same_files_with_the_same_bytes(folders):
    first, second = ({path.relative_to(folder): path for path in folder.rglob("*.*")} for folder in folders)
    assert set(first) == set(second)
    kinds = {path.suffix for path in first}
    assert kinds >= {".csv", ".html", ".svg", ".png", ".json"}
    different = [str(name) for name in first if first[name].read_bytes() != second[name].read_bytes()]
    assert different == []


def test_no_page_and_no_figure_names_the_folder_or_the_day(folders):
    for path in folders[0].rglob("*.*"):
        content = path.read_bytes()
        assert str(folders[0]).encode() not in content, path
        assert b"<dc:date>" not in content, path
