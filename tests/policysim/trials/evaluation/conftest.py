"""The simulator's own logs of the small study, one for each logging policy, and a way to run commands."""

from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest
from small_studies import write_small_study

import policysim as ps
from policies.policy import Policy
from policysim.cli.main import main

PATIENTS = 8_000
LOGGING = {"uniform": 1.0, "exponential": 3.0, "randomized-response": 1.5}


@pytest.fixture(scope="session")
def study(tmp_path_factory):
    return write_small_study(tmp_path_factory.mktemp("logs"))


@pytest.fixture(scope="session")
def problem(study):
    return ps.build_problem(ps.load_study(study))


class Logged(NamedTuple):
    """A log with the policy that made it."""

    policy: Policy
    path: Path
    patients: int


@pytest.fixture(scope="session")
def logs(study):
    """The log of each logging policy."""
    made = {}
    for seed, (name, epsilon) in enumerate(LOGGING.items()):
        path = study.parent / f"{name}.parquet"
        arguments = ["--policy", name, "--epsilon", str(epsilon), "--seed", str(seed), "--patients", str(PATIENTS)]
        assert main(["simulate", str(study), *arguments, "--log", str(path)]) == 0
        made[name] = Logged(ps.make_policy(name, epsilon=epsilon), path, PATIENTS)
    return made


@pytest.fixture(params=LOGGING)
def logged(logs, request):
    """Each of them in turn."""
    return logs[request.param]


@pytest.fixture
def uniform_log(logs):
    """The log in which each treatment was as probable, as a data frame."""
    return pd.read_parquet(logs["uniform"].path)
