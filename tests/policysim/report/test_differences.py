"""Which cells of two CSV files differ."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.toml_reader import InputFileError
from policysim.report import differences as compared
from policysim.report.differences import TextRows, csv_rows, same_numbers
from policysim.report.differences import differences as find

numbers = st.floats(min_value=1e-6, max_value=1e9).flatmap(lambda value: st.sampled_from([value, -value]))


def table(*rows, columns=("policy", "epsilon", "loss")):
    return TextRows(columns, tuple(rows))


def differences(name, old, new):
    return list(find(name, old, new))


def printed(value):
    return f"{value:.8g}"


@given(numbers, st.integers(-1, 1))
def test_numbers_that_one_unit_of_the_last_printed_digit_separates_agree(value, units):
    # The eighth digit of value: the first one stands at 10^exponent.
    exponent = int(f"{abs(value):.7e}".split("e")[1])
    other = float(printed(value)) + units * 10.0 ** (exponent - 7)
    assert differences("t.csv", table(("a", "1", printed(value))), table(("a", "1", printed(other)))) == []


@given(numbers)
def test_a_number_that_differs_by_more_than_the_last_digit_can_is_found(value):
    # Rounding both to eight digits can take 1e-7 of it back.
    other = value * (1 + 1.2e-5) if abs(value) < 1e-3 else value * (1 + 3e-7)
    found = differences("t.csv", table(("a", "1", printed(value))), table(("a", "1", printed(other))))
    assert [(one.column, one.old, one.new) for one in found] == [("loss", printed(value), printed(other))]


@pytest.mark.parametrize(
    ("old", "new"), [("", "0.5"), ("inf", "-inf"), ("inf", "1e300"), ("optimal", "greedy"), ("1", "one"), ("nan", "1")]
)
def test_cells_that_are_not_both_numbers_agree_only_if_their_texts_do(old, new):
    assert differences("t.csv", table(("a", "1", old)), table(("a", "1", old))) == []
    for one, other in ((old, new), (new, old)):
        assert len(differences("t.csv", table(("a", "1", one)), table(("a", "1", other)))) == 1


def test_a_difference_names_row_key_column_old_and_new():
    old = table(("a", "1", "3"), ("a", "2", "3"), ("b", "1", "3"))
    new = table(("a", "1", "3"), ("a", "2", "4"), ("b", "1", "3"))
    (found,) = differences("t.csv", old, new)
    assert (found.file, found.row, found.column, found.old, found.new) == ("t.csv", 2, "loss", "3", "4")
    assert found.key == {"policy": "a", "epsilon": "2"}


def test_a_new_column_is_a_difference_of_the_file():
    (found,) = differences("t.csv", table(("a", "1", "3")), table(("a", "1"), columns=("policy", "epsilon")))
    assert (found.row, found.column, found.old, found.new) == (0, "columns", "policy, epsilon, loss", "policy, epsilon")


def test_a_row_that_only_one_table_has_is_named_by_its_key():
    old, new = table(("a", "1", "3"), ("b", "1", "4")), table(("c", "1", "5"), ("a", "1", "3"))
    found = [(one.row, one.key, one.column, one.old, one.new) for one in differences("t.csv", old, new)]
    assert found == [
        (2, {"policy": "b"}, "row", "there", "missing"),
        (0, {"policy": "c"}, "row", "missing", "there"),
    ]


ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("123"), st.sampled_from(["0.5", "0.7"])), min_size=1)


@given(ROWS, st.randoms(use_true_random=False))
def test_rows_that_moved_agree(rows, random):
    moved = random.sample(rows, len(rows))
    assert differences("t.csv", table(*rows), table(*moved)) == []
    # A report that is there keeps its order only if it is the same.
    as_file = ["\n".join(map(",".join, [("policy", "epsilon", "loss"), *order])).encode() for order in (rows, moved)]
    assert same_numbers(*as_file) == (rows == moved)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("123")), min_size=1, unique=True), st.data())
def test_a_number_changed_in_a_row_that_moved_is_the_only_difference(keys, data):
    new = [(*key, str(place / 7)) for place, key in enumerate(keys)]
    place = data.draw(st.integers(0, len(new) - 1))
    changed = [(*row[:2], "9") if number == place else row for number, row in enumerate(new)]
    order = data.draw(st.permutations(range(len(new))))
    found = differences("t.csv", table(*(changed[number] for number in order)), table(*new))
    assert [(one.row, one.column, one.old, one.new) for one in found] == [
        (order.index(place) + 1, "loss", "9", new[place][2])
    ]


def test_numbers_are_counted(tmp_path):
    (tmp_path / "t.csv").write_text('name,x,y\n"a, b",1,\nc,inf,2e-3\n', encoding="utf-8")
    found = csv_rows(tmp_path / "t.csv")
    assert found.rows == (("a, b", "1", ""), ("c", "inf", "2e-3"))
    assert found.n_numbers == 3


def test_a_file_that_is_no_table_is_refused_in_one_line(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    for content, words in ((b"x,y\n1,2\n1\n", "row 2 must have 2 cells, got 1"), (b"x\n\xff\n", "must be UTF-8 text")):
        path.write_bytes(content)
        with pytest.raises(InputFileError, match=words):
            csv_rows(path)
    path.unlink()
    with pytest.raises(InputFileError, match="cannot be read"):
        csv_rows(path)
    monkeypatch.setattr(compared, "MOST_BYTES", 100)
    path.write_bytes(b"x\n" * 51)
    with pytest.raises(InputFileError, match="must not be larger than"):
        csv_rows(path)
    path.write_bytes(b"")
    assert csv_rows(path) == TextRows((), ())
