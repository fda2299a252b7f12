"""A day and night of given records, treatments and numbers, by the NumPy code of the environments."""

import numpy as np

from envs.dynamics import Places, day, show
from envs.ward import WORD, day_tables, record_parts


def tables(course):
    """The numbers of a course's day."""
    everybody = np.zeros((1,) * len(course.scenario.space.shape), dtype=bool)
    return day_tables(course, everybody)


def simulated(t, space_of, records, actions, uniforms):
    """Outcomes, (m, n_outcomes), and the next morning's records, (m,), for numbers in [0, 1), (m, n_outcomes)."""
    space, m = space_of.space, len(records)
    places = Places(*record_parts(space_of, space.codes(records)), np.zeros(m, dtype=int), np.zeros(m, dtype=bool))
    outcomes = day(np.arange(m), np.ascontiguousarray(uniforms.T) * WORD, actions, t, places)[1]
    seen = np.empty((m, t.codes_of_fixed.shape[1]), dtype=np.int16)
    show(0, m, t, places, seen)
    return outcomes.T, space.indices(seen[:, : len(space.shape)])
