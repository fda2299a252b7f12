"""The projection onto the simplex against its optimality conditions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.local import project_onto_simplex

numbers = st.floats(-1e6, 1e6, allow_subnormal=False)
points = st.lists(st.one_of(numbers, st.floats(-1, 1), st.sampled_from([0.0, 0.25, 0.5])), min_size=1, max_size=40)


@given(points)
def test_the_projection_meets_the_conditions_for_the_nearest_point(point):
    """y >= 0, sum y = 1, and x - y is one number t where y > 0 and x <= t elsewhere: sufficient, by convexity."""
    x = np.array(point)
    y = project_onto_simplex(x)
    rounding = 1e-15 * len(x) * max(1, np.abs(x).max())  # of a sum of len(x) numbers of this size
    assert (y >= 0).all()
    assert y.sum() == pytest.approx(1, abs=1e-13 + rounding)
    shift = (x - y)[y > 0]
    assert np.ptp(shift) <= 1e-13 + 4 * rounding
    assert (x[y == 0] <= shift.max() + 1e-13 + 4 * rounding).all()


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=10))
def test_proportions_stay(weights):
    shares = np.array(weights) / np.sum(weights)
    assert project_onto_simplex(shares) == pytest.approx(shares, abs=1e-14)


def test_each_row_is_projected_on_its_own():
    rows = np.random.default_rng(0).normal(size=(3, 4, 5))
    expected = [[project_onto_simplex(row) for row in block] for block in rows]
    assert project_onto_simplex(rows) == pytest.approx(np.array(expected), abs=1e-15)


@pytest.mark.parametrize("bad", [[], [np.nan, 1.0], [np.inf, 0.0], 3.0])
def test_what_is_no_point_is_refused(bad):
    with pytest.raises(ValueError, match="finite numbers"):
        project_onto_simplex(bad)
