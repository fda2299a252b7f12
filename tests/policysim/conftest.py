"""The covid study at full size, built once for all tests of this folder."""

import pytest

import policysim as ps


@pytest.fixture(scope="session")
def covid():
    return ps.load_study("covid")


@pytest.fixture(scope="session")
def covid_problem(covid):
    return ps.build_problem(covid)
