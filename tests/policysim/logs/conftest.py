"""A small trial as a file, the study section that goes with it, and how both are read."""

import numpy as np
import pandas as pd
import pytest

from policysim.cli import init_command
from policysim.cli.options import parse
from policysim.logs.load_log import load_log
from policysim.study.study_reader import load_study

SECTION = """
[data]
file = "trial.csv"
treatment = "arm"
propensity = "equal"
outcome = { success = 1.0 }
[data.features]
age = { cuts = [30, 50] }
sex = { levels = [0, 1] }
"""


@pytest.fixture
def section():
    """A study section that fits the small trial."""
    return SECTION


@pytest.fixture
def read_section(tmp_path):
    """Read the text of a study with a table [data] from a file."""

    def read(text):
        path = tmp_path / "study.toml"
        path.write_text(text, encoding="utf-8")
        return load_study(path).log

    return read


@pytest.fixture
def small_trial():
    """Six patients, two arms."""
    return pd.DataFrame(
        {
            "pid": [11, 12, 13, 14, 15, 16],
            "arm": [0, 1, 0, 1, 1, 0],
            "success": [1, 0, 1, 1, 0, 0],
            "age": [20, 30, 49, 50, 80, 29],
            "sex": [0, 1, 0, 1, 0, 1],
        }
    )


@pytest.fixture
def load(tmp_path, read_section):
    """Write data frames as files (by their endings), and load the log of a section."""

    def loaded(text, **frames):
        for name, frame in frames.items():
            path = tmp_path / name.replace("__", ".")
            frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_csv(path, index=False)
        return load_log(read_section(text))

    return loaded


@pytest.fixture
def acids():
    """400 patients whose columns are those of a four-arm trial of AIDS drugs, drawn at random."""
    rng = np.random.default_rng(7)
    n = 400
    cd40 = rng.normal(350, 110, n).round()
    return pd.DataFrame(
        {
            "": np.arange(1, n + 1),
            "pidnum": rng.permutation(np.arange(10_000, 10_000 + n)),
            "age": rng.integers(18, 71, n),
            "wtkg": rng.normal(75, 13, n).round(4),
            "karnof": rng.choice([70, 80, 90, 100], n),
            "zprior": 1,
            "gender": rng.integers(0, 2, n),
            "str2": 0,
            "strat": rng.integers(1, 4, n),
            "treat": 0,
            "offtrt": rng.integers(0, 2, n),
            "cd40": cd40,
            "cd420": cd40 + rng.normal(20, 50, n).round(),
            "cd496": np.where(rng.random(n) < 0.4, np.nan, cd40),
            "r": 0,
            "cens": (rng.random(n) < 0.25).astype(int),
            "days": rng.integers(14, 1232, n),
            "arms": rng.permutation(np.repeat([0, 1, 2, 3], n // 4)),
        }
    ).assign(
        treat=lambda d: (d.arms > 0).astype(int),
        str2=lambda d: (d.strat > 1).astype(int),
        r=lambda d: d.cd496.notna().astype(int),
    )


@pytest.fixture
def run_init():
    """`policysim init DATA [--out FILE]` and other options."""

    def run(data, out=None, *options, json=False):
        words = ["init", str(data), *(["--out", str(out)] if out else []), *(["--json"] if json else []), *options]
        return init_command.run(parse(words, [init_command.add]))

    return run


@pytest.fixture
def read_study():
    """Read the table [data] of a study file."""

    def read(path):
        return load_study(path).log

    return read
