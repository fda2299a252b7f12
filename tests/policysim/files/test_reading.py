"""Tables in memory and their bad rows: the same whatever kind of file they came from, and in however many parts."""

from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from policies.levels import MISSING, Levels
from policysim.files.bad_rows import SHOWN, BadRows, DataError
from policysim.files.data_table import DataTable, coded, read_table
from policysim.files.probability_table import read_probability_table
from policysim.release.counts_file import read_counts


class Place:
    def __init__(self, name):
        self.name = name

    def places(self, rows):
        return [f"{self.name}: row {row}" for row in rows]


def lines(bad):
    with pytest.raises(DataError) as error:
        bad.raise_if_any()
    return str(error.value).splitlines()


@given(
    masks=st.lists(st.lists(st.booleans(), min_size=60, max_size=60), min_size=1, max_size=4),
    cuts=st.sets(st.integers(1, 59), max_size=4),
)
def test_the_first_twenty_are_listed_in_order_and_the_rest_counted_however_a_table_is_cut(masks, cuts):
    tables = [Place(f"t{number}") for number in range(2)]
    whole, parts = BadRows(), BadRows()
    for kind, mask in enumerate(masks):
        whole.add(tables[kind % 2], np.array(mask), f"c{kind}", lambda row: f"r{row}")
    for first, end in pairwise([0, *sorted(cuts), 60]):
        for kind, mask in enumerate(masks):
            say = lambda row, first=first: f"r{first + row}"  # noqa: E731 - a rule in one line
            parts.add(tables[kind % 2], np.array(mask[first:end]), f"c{kind}", say, before=first)
    # By brute force: a table after the one whose mistake was noted first.
    met = list(dict.fromkeys(kind % 2 for kind, mask in enumerate(masks) if any(mask)))
    expected = sorted(
        (met.index(kind % 2), row, kind) for kind, mask in enumerate(masks) for row, wrong in enumerate(mask) if wrong
    )
    if not expected:
        assert not whole.raise_if_any() and not parts.raise_if_any()
        return
    said = [f"t{met[number]}: row {row}: c{kind}: r{row}" for number, row, kind in expected]
    more = [f"... and {len(said) - SHOWN} more"] if len(said) > SHOWN else []
    assert lines(whole) == [*said[:SHOWN], *more]
    if len({number for number, _, _ in expected}) == 1:
        assert sorted(lines(parts)) == sorted([*said[:SHOWN], *more])
    assert parts.count == len(said)


def test_what_cannot_be_printed_stays_on_its_line():
    bad = BadRows()
    bad.add_values(Place("t"), np.array([True]), "a\nb", ["c\nd\x1b"], "must be e")
    assert lines(bad) == [r"t: row 0: a\nb: must be e, got 'c\nd\x1b'"]


@pytest.mark.parametrize("value", [None, float("nan"), np.nan, pd.NA, pd.NaT, "", "  "])
def test_no_value_is_missing_and_words_for_it_are_shown(value):
    bad = BadRows()
    bad.add_values(Place("t"), np.array([True, True]), "a", [value, "NA"], "must be 1")
    assert lines(bad) == ["t: row 0: a: must be 1, is missing", "t: row 1: a: must be 1, got 'NA'"]


def test_quotes_behind_a_space_are_left_out_and_what_is_not_seen_is_escaped(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('x,y\n1, "a ""b"""\n1.0, c \nNA,c\n,"c"\n2,\u200bc\n')
    table = read_table(path)
    codes, keys = coded(table["x"])
    assert [keys[code] for code in codes] == [1.0, 1.0, MISSING, MISSING, 2.0]
    codes, keys = coded(table["y"])
    assert [keys[code] for code in codes] == ['a "b"', "c", "c", "c", r"\u200bc"]
    assert table.codes(Levels("y", ("c", r"\u200bc", 'a "b"'))).tolist() == [2, 0, 0, 0, 1]


def test_the_line_of_a_row_is_that_of_the_file(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('\ufeffa,b\n\n1,"x\ny"\n\n2,z\n')
    table = read_table(path)
    assert table.places([0, 1]) == [f"{path}:3: row 1", f"{path}:6: row 2"]
    frame = table.frame_of(table.columns)
    assert (table.short_place(1), DataTable("frame", frame).short_place(1)) == ("line 6", "row 1")
    assert DataTable("frame", frame).places([1]) == ["frame: row 1"]


@pytest.mark.parametrize("kind", [str, object, float])
def test_counts_are_the_same_from_parquet(tmp_path, kind):
    people = pd.DataFrame({"ward": ["n", "s", "n"], "ill": ["flu", "cold", "cold"], "n": [3, 0, 2]}).astype({"n": kind})
    people.to_csv(tmp_path / "p.csv", index=False)
    people.to_parquet(tmp_path / "p.parquet")
    options = {"column": "ill", "score": "n", "by": "ward"}
    csv, parquet = (read_counts(tmp_path / f"p.{ending}", **options) for ending in ("csv", "parquet"))
    assert csv.people == parquet.people == {"n": (2, 3), "s": (0, 0)}


CELLS = st.lists(st.sampled_from(["p_a", "p_b", "x", " ", "0.5", "1", "nan", '"', ",", "\n", "\r\n", "\ufeff", "é"]))


@given(content=CELLS.map("".join).map(str.encode) | st.binary(max_size=60))
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_whatever_a_file_holds_it_is_read_or_refused_by_lines_that_name_it(tmp_path_factory, ending, content):
    path = tmp_path_factory.getbasetemp() / f"any.{ending}"
    path.write_bytes(content)
    for read in (read_table, read_probability_table, lambda path: read_counts(path, column="x")):
        try:
            read(path)
        except DataError as error:
            *first, last = str(error).splitlines()
            assert all(line.startswith(path.as_posix()) for line in first)
            assert last.startswith((path.as_posix(), "... and "))
