"""The small study in which symptoms begin on later days, too, for all tests of this folder."""

import pytest
from small_studies import WITH_ONSET, write_small_study

import policysim as ps


@pytest.fixture(scope="session")
def path(tmp_path_factory):
    return write_small_study(tmp_path_factory.mktemp("course"), scenario=WITH_ONSET)


@pytest.fixture(scope="session")
def study(path):
    return ps.load_study(path)
