"""What is seen in a figure, in words: true of the table that it is drawn from."""

import pandas as pd
import pytest

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


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((0.0, 0.3, 1.0), "rises from 0\u00a0% at ε = 0.3 over 30\u00a0% at ε = 1 to 100\u00a0% at ε = 5"),
        ((1.0, 0.3, 0.0), "falls from 100\u00a0% at ε = 0.3 over 30\u00a0% at ε = 1 to 0\u00a0% at ε = 5"),
        ((0.2, 0.9, 0.2), "goes from 20\u00a0% at ε = 0.3 over 90\u00a0% at ε = 1 to 20\u00a0% at ε = 5, with a top of "
                          "90\u00a0% at ε = 1"),
        ((0.5, -0.1, 0.6), "rises from 50\u00a0% at ε = 0.3 over −10\u00a0% at ε = 1 to 60\u00a0% at ε = 5, "
                           "with a low of −10\u00a0% at ε = 1"),
        ((0.5, 0.5, 0.5), "is at 50\u00a0% throughout"),
    ],
)  # fmt: skip
def test_a_line_is_told_by_its_ends_one_place_between_and_where_it_turns(values, said):
    rows = table(optimal=values, other=(0.0, 0.5, 1.0))
    assert lines_seen(rows, "benefit_kept", percent, epsilon=1.1, names=["optimal"]) == f"optimal {said}"


def test_one_epsilon_and_references_are_told_as_they_are():
    rows = table(optimal=(0.2, 0.4, 0.9), greedy=(1.0, 1.0, 1.0))
    one = rows[rows["epsilon"] == 1]
    assert lines_seen(one, "benefit_kept", percent, epsilon=1.0) == (
        "optimal is at 40\u00a0% at ε = 1; greedy is at 100\u00a0% at ε = 1"
    )
    assert lines_seen(rows, "benefit_kept", percent, epsilon=1.0).endswith("greedy is at 100\u00a0% throughout")
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
