"""What the tests of the patients share: the covid scenario at full size, and one small enough to enumerate."""

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_force import scenario
from scipy.stats import chi2

import envs

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def covid() -> envs.Scenario:
    return envs.load_scenario("covid")


@pytest.fixture(scope="session")
def covid_prior(covid):
    return envs.prior(covid)


@pytest.fixture(scope="session")
def covid_response(covid) -> envs.ResponseModel:
    return envs.ResponseModel(covid)


@pytest.fixture(scope="session")
def covid_patients(covid_prior):
    """10^6 patients drawn from the prior."""
    return envs.sample_patients(covid_prior, 10**6, np.random.default_rng(20240613))


@pytest.fixture(scope="session")
def small_path() -> Path:
    return DATA / "small.toml"


@pytest.fixture(scope="session")
def small_file(small_path) -> dict[str, Any]:
    """The small scenario as plain TOML, read by nothing of the project."""
    return tomllib.loads(small_path.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def small(small_path) -> envs.Scenario:
    return envs.load_scenario(small_path)


@pytest.fixture(scope="session")
def small_response(small) -> envs.ResponseModel:
    return envs.ResponseModel(small)


@pytest.fixture(scope="session")
def chain_path(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("chain")
    scenario("chain", folder)
    return str(folder / "chain.toml")


@pytest.fixture(scope="session")
def too_far():
    """Whether counts disagree with expected counts: chi-square beyond its quantile at 1 - error.

    Cells that expect fewer than 25 are pooled into one, so that the statistic is close to its limiting law.
    """

    def check(counts, expected, *, error: float = 1e-6) -> bool:
        counts, expected = np.ravel(counts).astype(float), np.ravel(expected)
        assert np.isclose(counts.sum(), expected.sum(), rtol=1e-9)
        large = expected >= 25
        seen, wanted = list(counts[large]), list(expected[large])
        if expected[~large].sum() > 0:
            seen.append(counts[~large].sum())
            wanted.append(expected[~large].sum())
        elif counts[~large].sum() > 0:
            return True  # something came that cannot come
        seen, wanted = np.array(seen), np.array(wanted)
        statistic = ((seen - wanted) ** 2 / wanted).sum()
        return bool(statistic > chi2.ppf(1 - error, len(wanted) - 1))

    return check
