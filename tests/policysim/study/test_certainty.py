"""How often an option is better, and the verdict: planted studies of each kind."""

import math

import numpy as np
import pandas as pd
import pytest

from policysim.study.certainty import best_for_all, certainty, verdict_of_interval


def redraws(better, draws=200, equal=0, rng=None):
    """A study in which "optimal" is better than one for all in so many draws, and equal in so many."""
    rng = rng or np.random.default_rng(1)
    rows = []
    for draw in range(draws):
        base = rng.normal()
        gain = 0.0 if draw >= draws - equal else (0.1 if draw < better else -0.1)
        # What rounding makes of equal values is no difference.
        rows += [
            (draw, "best-fixed", base, 0.01),
            (draw, "optimal", base + gain + 1e-15, 0.01 - gain / 100),
            (draw, "for all: a", base, 0.01),
            (draw, "for all: b", base + (0.2 if draw % 4 == 0 else -0.2), 0.02),
        ]
    return pd.DataFrame(rows, columns=["draw", "option", "value", "expected_death"])


@pytest.mark.parametrize(
    ("better", "equal", "verdict"),
    [
        (200, 0, "better"),
        (180, 0, "better"),
        (179, 0, "cannot be told"),
        (100, 0, "cannot be told"),
        (21, 0, "cannot be told"),
        (20, 0, "not better"),
        (0, 0, "not better"),
        (0, 200, "equal"),
        (10, 180, "equal"),
    ],
)
def test_a_study_of_each_verdict(better, equal, verdict):
    found = certainty(redraws(better, equal=equal), "best-fixed", "death").set_index(["measure", "policy"])
    for measure in ("value", "lead"):
        row = found.loc[measure, "optimal"]
        assert (row["better"], row["equal"], row["draws"], row["verdict"]) == (better, equal, 200, verdict)
    assert found.loc[("value", "best-fixed"), "verdict"] == "equal"
    assert found.loc[("value", "for all: b"), "better"] == 50


def test_treatments_for_all_are_counted_by_where_they_are_best():
    found = best_for_all(redraws(200))
    assert dict(zip(found["row"], found["value"], strict=True)) == {"a": 150.0, "b": 50.0}


def test_of_equal_treatments_the_first_counts_and_order_is_by_count():
    rows = [(draw, f"for all: {name}", value) for draw in range(3) for name, value in (("x", 1.0), ("y", 1.0))]
    rows += [(draw, "for all: z", 2.0 if draw else 0.0) for draw in range(3)]
    found = best_for_all(pd.DataFrame(rows, columns=["draw", "option", "value"]))
    assert found[["row", "value"]].to_numpy().tolist() == [["z", 2.0], ["x", 1.0], ["y", 0.0]]


def test_without_redraws_the_stated_numbers_decide_and_no_draw_is_counted():
    found = certainty(redraws(1, draws=1), "best-fixed", stated=True).set_index(["measure", "policy"])
    assert found.loc[("value", "optimal"), "verdict"] == "better"
    assert set(found["draws"]) == {0}


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1e-9, 0.1, "better"),
        (-0.1, -1e-9, "not better"),
        (-0.1, 0.1, "cannot be told"),
        (0.0, 0.1, "cannot be told"),
        (-0.1, 0.0, "cannot be told"),
        (0.0, 0.0, "equal"),
        (math.nan, math.nan, "cannot be told"),
    ],
)
def test_the_interval_of_a_difference_decides(low, high, verdict):
    assert verdict_of_interval(low, high) == verdict
