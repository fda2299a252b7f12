"""What is seen in a figure, in words: true of the table that it is drawn from."""

import pandas as pd

from policysim.figures.curves import choices_seen, lines_seen
from policysim.numbers import percent

EPSILONS = [0.3, 1.0, 5.0]


def table(**lines):
    rows = [
        (name, epsilon, value)
        for name, values in lines.items()
        for epsilon, value in zip(EPSILONS, values, strict=True)
    ]
    return pd.DataFrame(rows, columns=["policy", "epsilon", "benefit_kept"])


def test_a_line_is_told_by_its_ends_and_one_place_between_and_a_level_one_by_its_number():
    rows = table(optimal=(0.2, -0.4, 0.9), greedy=(1.0, 1.0, 1.0))
    optimal = "optimal has 20\u00a0% at ε = 0.3, −40\u00a0% at ε = 1 and 90\u00a0% at ε = 5"
    assert lines_seen(rows, "benefit_kept", percent, epsilon=1.1, names=["optimal"]) == optimal
    assert lines_seen(rows, "benefit_kept", percent, epsilon=1.1) == f"{optimal}; greedy has 100\u00a0%"
    one = rows[rows["epsilon"] == 1]
    assert lines_seen(one, "benefit_kept", percent, epsilon=2.0, names=["optimal"]) == (
        "optimal has −40\u00a0% at ε = 1"
    )
    assert lines_seen(rows.assign(benefit_kept=float("nan")), "benefit_kept", percent, epsilon=1.0) == ""


def test_what_patients_most_probably_get_is_told_at_the_nearest_epsilon():
    rows = pd.DataFrame(
        [
            ("optimal", e, "healthy", action, p)
            for e in (0.5, 2.0, float("inf"))
            for action, p in (("a", 0.4), ("b", 0.6))
        ],
        columns=["policy", "epsilon", "patient", "action", "probability"],
    )
    assert choices_seen(rows, 1.7) == "At ε = 2: “healthy” gets b in 60\u00a0% of cases."
