"""A small trial as a file, the study section that goes with it, and how both are read."""

import pandas as pd
import pytest

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
def refused(load):
    """The lines with which the log of a section is refused."""

    def lines(text, **frames):
        with pytest.raises(ValueError) as error:
            load(text, **frames)
        return str(error.value).splitlines()

    return lines


@pytest.fixture
def read_study():
    """Read the table [data] of a study file."""

    def read(path):
        return load_study(path).log

    return read
