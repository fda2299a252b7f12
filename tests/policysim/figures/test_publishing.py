"""What the figure of publishing draws, and what it refuses."""

import math

import pytest

from policysim import figures


def lines_of(axes):
    return {line.get_label(): line for line in axes.get_lines()}


def test_what_a_reader_can_know_stands_beside_what_those_keep_who_give_it(published):
    true, error, benefit = figures.publishing(published).axes
    assert set(lines_of(true)) == {"noisy values", "noisy values, most true", "the commonest, always"}
    assert {"noisy table", "noisy values"} <= set(lines_of(error))
    assert set(lines_of(benefit)) == {
        *("private draw", "private record", "best for each, list randomised", "the same for everyone"),
    }
    mine = published[published["way"] == "noisy table"]
    assert lines_of(error)["noisy table"].get_ydata() == pytest.approx(mine["error_of_a_count"].to_numpy())
    assert lines_of(true)["the commonest, always"].get_ydata()[0] == published["common_share"].iloc[0]


def test_where_nothing_is_to_be_gained_no_benefit_is_drawn(published):
    assert len(figures.publishing(published.assign(benefit_kept=math.nan)).axes) == 2


def test_a_table_without_numbers_is_refused(published):
    with pytest.raises(ValueError, match="publishing has nothing to draw"):
        figures.publishing(published[published["way"] == "nothing"])
