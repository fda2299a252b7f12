"""Records: names and levels on one side, numbers on the other."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs import Feature, RecordSpace, record_space

TEXT = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_categories=("C",)), min_size=1, max_size=6)
LEVELS = st.one_of(
    st.lists(TEXT, min_size=2, max_size=4, unique=True),
    st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=4, unique=True),
)
SPACES = st.dictionaries(TEXT, LEVELS, min_size=1, max_size=5)
FIXED = settings(derandomize=True, deadline=None, database=None, max_examples=60)


def ward() -> RecordSpace:
    """2 x 2 x 3 x 2 records, two of the features flags."""
    return RecordSpace(
        (
            Feature("covid_positive", flag=True),
            Feature("fever", flag=True),
            Feature("age", ("0-39", "40-79", "80+")),
            Feature("sex", (0, 1)),
        )
    )


@FIXED
@given(SPACES)
def test_records_are_numbered_with_the_last_feature_fastest(levels):
    space = record_space(levels)
    wanted = list(itertools.product(*levels.values()))
    everyone = np.arange(space.size)
    frame, codes = space.decode(everyone), space.codes(everyone)
    assert list(frame.columns) == list(levels)
    assert list(frame.itertuples(index=False, name=None)) == wanted
    assert space.size == len(wanted) == math.prod(space.shape)
    assert [space.record(dict(zip(levels, values, strict=True))) for values in wanted] == everyone.tolist()
    assert codes.tolist() == [list(row) for row in itertools.product(*(range(len(v)) for v in levels.values()))]
    assert np.array_equal(space.indices(codes), everyone)
    for axis, name in enumerate(levels):
        own, labels = space.groups(name)
        assert labels == tuple(str(level) for level in levels[name])
        assert own.tolist() == codes[:, axis].tolist()


def test_levels_of_text_and_numbers_together_come_back():
    space = record_space({"dose": ["none", 1, 2], "sex": [0, 1]})
    frame = space.decode(np.arange(space.size))
    assert frame["dose"].tolist() == ["none", "none", 1, 1, 2, 2]


def test_values_along_a_feature_broadcast_over_the_grid():
    grid = np.broadcast_to(ward().along("age", [1.0, 2.0, 3.0]), ward().shape)
    assert grid[1, 0, 2, 1] == 3.0
    assert grid[0, 1, 0, 0] == 1.0


def test_features_that_are_not_named_have_their_first_level():
    assert ward().record({}) == 0
    assert ward().record({"fever": 1}) == 6
    assert ward().record({"sex": 1, "age": "80+", "covid_positive": 1}) == 12 + 4 + 1


def test_a_record_of_an_unknown_feature_or_level_is_refused():
    with pytest.raises(ValueError, match="unknown feature 'fevr'; known: covid_positive, fever, age, sex"):
        ward().record({"fevr": 1})
    with pytest.raises(ValueError, match=r"fever must be one of \[0, 1\], got 2"):
        ward().record({"fever": 2})


def test_a_record_in_words_names_what_is_present_then_every_other_feature():
    space = ward()
    assert space.describe(space.record({"covid_positive": 1, "fever": 1, "age": "80+"})) == (
        "covid positive, fever, age 80+, sex 0"
    )
    assert space.describe(space.record({"fever": 1, "sex": 1})) == "fever, age 0-39, sex 1"
    assert space.describe(0) == "nothing present, age 0-39, sex 0"


def test_a_record_of_a_space_without_flags_is_described_by_its_values():
    assert record_space({"sex": [0, 1], "dose": ["low", "high"]}).describe(1) == "sex 0, dose high"


def test_no_two_records_have_the_same_words():
    space = ward()
    assert len({space.describe(record) for record in range(space.size)}) == space.size


@pytest.mark.parametrize("record", [-1, 24, 10**9])
def test_a_record_outside_the_space_is_refused(record):
    with pytest.raises(ValueError, match=r"record indices must be in \[0, 24\)"):
        ward().codes([0, record])
    with pytest.raises(ValueError, match=r"record indices must be in \[0, 24\)"):
        ward().describe(record)


@pytest.mark.parametrize("levels", [(), (0,), (0, 0), ("a", "b", "a")])
def test_a_feature_needs_two_distinct_levels(levels):
    with pytest.raises(ValueError, match="feature 'x' needs at least two distinct levels"):
        Feature("x", levels)


def test_features_need_distinct_names():
    with pytest.raises(ValueError, match=r"distinct names, got \['x', 'x'\]"):
        RecordSpace((Feature("x"), Feature("x")))
    with pytest.raises(ValueError, match="distinct names"):
        RecordSpace(())


def test_the_covid_records_are_those_of_the_design(covid):
    assert covid.space.size == 2**15 * 5 * 2 * 4 == 1_310_720
    assert covid.space.names[-3:] == ("age", "sex", "vaccine")
    assert "death" not in covid.space.names


def test_a_covid_record_in_words(covid):
    record = covid.space.record({"covid_positive": 1, "blood_clots": 1, "age": "60-79", "vaccine": "v2"})
    assert covid.space.describe(record) == "infected, blood clots, age 60-79, male, vaccine v2"
