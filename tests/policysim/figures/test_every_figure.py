"""What holds for every figure: nothing overlaps or is cut off, sizes, clear errors; narrow ones: test_journal.py."""

from io import BytesIO

import pandas as pd
import pytest
from figure_cases import every_figure, every_size, wrong
from matplotlib.image import imread
from svg_boxes import overlap, text_boxes

from policysim import figures


@every_figure
def test_no_words_overlap_none_are_cut_off_and_none_are_below_6_points(drawn, draw, name):
    figure = drawn(draw, name, "page")
    svg = figures.to_svg(figure)
    assert len(text_boxes(svg)) > 4
    assert wrong(figure, svg) == ([], [], [])


def test_words_that_overlap_or_are_cut_off_would_be_found(comparison):
    """The planted mistake: a name on top of another, and one beyond the edge."""
    figure = figures.frontier(comparison, policies=["exponential"])
    right, bottom = (72 * side for side in figure.get_size_inches())
    at = dict(text_boxes(figures.to_svg(figure)))["benefit kept"]
    figure.text(at[0] / right, 1 - at[3] / bottom, "on top", va="bottom")
    figure.text(0.99, 0.5, "beyond")
    boxes = dict(text_boxes(figures.to_svg(figure)))
    assert overlap(boxes["on top"], at)
    assert boxes["beyond"][1] > right


@every_size
def test_a_figure_has_the_size_that_was_asked_for_and_as_png_enough_dots_for_print(losses, size):
    figure = figures.patient_losses(losses, size=size)
    wide, high = figure.get_size_inches()
    if size == "slide":
        assert (wide, high) == (13.33, 7.5)
    assert wide == 85 / 25.4 if size == "column" else 4 < wide < 13.4
    rows, columns, _ = imread(BytesIO(figures.to_png(figure))).shape
    assert columns >= 1919 and columns / wide >= 200
    assert rows / columns == pytest.approx(high / wide, rel=0.01)


@every_figure
def test_a_size_that_there_is_not_is_named(request, draw, name):
    with pytest.raises(ValueError, match="size must be one of page, column, slide, got size='poster'"):
        draw(request.getfixturevalue(name), size="poster")


@every_figure
def test_a_missing_column_and_an_empty_table_are_refused_in_one_line(request, draw, name):
    table = request.getfixturevalue(name)
    with pytest.raises(ValueError, match=f"^{draw.__name__} has nothing to draw: its table has no rows.$"):
        draw(table[:0])
    with pytest.raises(ValueError, match=rf"^{draw.__name__} needs the columns? [\w, ]+ in its table.$"):
        draw(pd.DataFrame({"policy": ["exponential"], "outcome": ["death"]}))


@every_figure
@pytest.mark.parametrize("wrong", [None, "comparison.csv"])
def test_what_is_no_table_is_refused_in_one_line(draw, name, wrong):
    del name
    with pytest.raises(
        ValueError, match=rf"^{draw.__name__} needs a table \(a pandas DataFrame\), got (NoneType|str)\.$"
    ):
        draw(wrong)


@pytest.mark.parametrize("column", ["epsilon", "benefit_kept", "expected_death"])
def test_text_in_place_of_numbers_is_refused_in_one_line(comparison, column):
    table = comparison.astype({column: object})
    table.loc[table.index[3], column] = "n/a"
    with pytest.raises(ValueError, match=f"^frontier needs numbers in the column {column}, got 'n/a'.$"):
        figures.frontier(table)


@pytest.mark.parametrize("draw", [figures.frontier, figures.loss_by_group])
def test_two_rows_for_one_point_are_refused_in_one_line(at_one, draw):
    twice = pd.concat([at_one, at_one[at_one["policy"] == "exponential"]])
    found = "policy=exponential, epsilon=1.0, group=all, level=all"
    with pytest.raises(
        ValueError, match=f"one row for each policy x epsilon x group x level, .* several for {found}.$"
    ):
        draw(twice)
