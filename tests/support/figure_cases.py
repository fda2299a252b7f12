"""Every figure, with the fixtures of tests/policysim/figures/conftest.py that it is drawn from."""

import pytest

from policysim import figures

# Each figure with the tables that it is drawn from here.
CASES = [
    (figures.frontier, "comparison"),
    (figures.frontier, "logged"),
    (figures.action_probabilities, "choices"),
    (figures.loss_by_group, "at_one"),
    (figures.forest, "logged_at_one"),
    (figures.benefit_parts, "parts"),
    (figures.price_bars, "prices"),
    (figures.patient_losses, "losses"),
    (figures.value_over_days, "course"),
    (figures.ways_over_days, "ways"),
    (figures.published_over_days, "given_daily"),
    (figures.publishing, "published"),
]
every_figure = pytest.mark.parametrize(("draw", "name"), CASES, ids=[f"{draw.__name__}-{name}" for draw, name in CASES])
every_size = pytest.mark.parametrize("size", figures.SIZES)
