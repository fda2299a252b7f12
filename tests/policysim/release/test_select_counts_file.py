"""Reading people or counts: what is counted, and what is refused, with its line."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.levels import Levels
from policysim.files.bad_rows import DataError
from policysim.release.counts_file import MOST_PEOPLE, NO_NAME, TOTAL_ROW, read_counts


def written(tmp_path, text):
    path = tmp_path / "data.csv"
    path.write_bytes(text.encode())
    return path


def mistakes(tmp_path, text, **options):
    path = written(tmp_path, text)
    with pytest.raises(DataError) as refused:
        read_counts(path, **options)
    return str(refused.value).replace(f"{path.as_posix()}", "data.csv").splitlines()


def test_people_are_counted_per_candidate_and_the_candidates_sorted(tmp_path):
    found = read_counts(written(tmp_path, "id,disease\n1,b\n2,a\n3, b \n\n4,c\n"), column="disease")
    assert (found.candidates, found.people) == (("a", "b", "c"), {"": (1, 2, 1)})
    assert found.from_private_rows
    assert (found.source, found.column) == ("data.csv", "disease")


def test_declared_candidates_keep_their_order_and_may_be_absent(tmp_path):
    found = read_counts(written(tmp_path, "disease\nb\na\nb\n"), candidates=Levels("disease", ("z", "b", "a")))
    assert (found.candidates, found.people) == (("z", "b", "a"), {"": (0, 2, 1)})
    assert not found.from_private_rows


def test_equal_numbers_are_one_candidate_and_numbers_are_cut_into_bins(tmp_path):
    path = written(tmp_path, "sex,age\n1.0,41\n0,7\nTRUE,40\n0.0,39.5\n 1 ,≥ 40\n")
    assert read_counts(path, column="sex").people == {"": (2, 3)}
    age = Levels("age", ("< 40", "≥ 40"), cuts=(40,))
    found = read_counts(path, column="sex", by="age", candidates=Levels("sex", ("1", "0")), groups=age)
    assert (found.candidates, found.people) == (("1", "0"), {"< 40": (0, 2), "≥ 40": (3, 0)})
    assert not (found.from_private_rows or found.groups_from_private_rows)


def test_groups_are_counted_on_their_own_and_share_the_candidates(tmp_path):
    people = read_counts(written(tmp_path, "g,d\ny,a\nx,b\ny,a\n"), column="d", by="g")
    assert list(people.people.items()) == [("x", (0, 1)), ("y", (2, 0))]
    counts = read_counts(written(tmp_path, "g,d,n\ny,a,2\nx,b,1\nx,a,7\n"), score="n", column="d", by="g")
    assert list(counts.people.items()) == [("x", (7, 1)), ("y", (2, 0))]
    named = read_counts(written(tmp_path, "g,d\ny,a\nx,b\n"), column="d", by="g", groups=Levels("g", ("z", "y", "x")))
    assert list(named.people.items()) == [("z", (0, 0)), ("y", (1, 0)), ("x", (0, 1))]
    assert (people.groups_from_private_rows, named.groups_from_private_rows) == (True, False)


def test_names_of_totals_may_be_declared_and_rows_of_people_have_candidates_more_than_once(tmp_path):
    path = written(tmp_path, "d,n\na,1\ntotal,3\n")
    assert read_counts(path, score="n", candidates=Levels("d", ("a", "total"))).people == {"": (1, 3)}
    assert read_counts(path, column="d", candidates=Levels("d", ("a", "total"))).people == {"": (1, 1)}
    # Words beside candidates are no counts, and nobody counts people where one candidate has two rows.
    for text in ("d,n\na,1\nb,x\n", "d,n\na,1\nb,1.5\n", "d,n\na,1\na,2\n"):
        assert read_counts(written(tmp_path, text), column="d").from_private_rows


@given(rows=st.lists(st.tuples(st.sampled_from("xy"), st.sampled_from("abc")), min_size=1, max_size=30))
def test_people_and_their_counts_are_read_alike(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("alike")
    people = written(folder, "g,d\n" + "".join(f"{g},{d}\n" for g, d in rows))
    options = {"column": "d", "by": "g", "candidates": Levels("d", "abc")}
    one = read_counts(people, **options)
    lines = [f"{g},{d},{rows.count((g, d))}\n" for g, d in dict.fromkeys(rows)]
    two = read_counts(written(folder, "g,d,n\n" + "".join(lines)), score="n", **options)
    # Who counted them is the only difference.
    assert (one.groups_from_private_rows, two.groups_from_private_rows) == (True, False)
    assert replace(one, groups_from_private_rows=False) == two


@pytest.mark.parametrize("count", ["-1", "", "²", "9" * 17, str(MOST_PEOPLE + 1), str(MOST_PEOPLE + 2)])
def test_what_is_no_whole_number_of_people_is_refused(tmp_path, count):
    found = mistakes(tmp_path, f"d,n\na,1\nb,{count}\n", score="n")
    assert found == ["data.csv:3: row 2: n: must be a whole number of people >= 0"]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "data.csv: is empty: the first line must name the columns"),
        ("d\n", {}, "data.csv: has no rows below its header"),
        ("d,n\na,1\nb,2\na,3\n", {"score": "n"}, "data.csv:4: row 3: d: is there already: data.csv:2: row 1"),
        ("d,e\na,1\n", {}, "data.csv: name the column that holds the candidates with --column; columns: d, e"),
        ("d,n\na,1\n", {"score": "n", "by": "ward"}, "data.csv: unknown column 'ward'; known: d, n"),
        ("d,e\n ,1\n", {"column": "d"}, f"data.csv:2: row 1: d: {NO_NAME}"),
        ("d,n\na,1\nb,2\nTotal,3\n", {"score": "n"}, f"data.csv:4: row 3: d: {TOTAL_ROW}"),
        (
            "d,g,n\na,x,1\na,all,1\na,sum,2\n",
            {"score": "n", "column": "d", "by": "g"},
            f"data.csv:4: row 3: g: {TOTAL_ROW}",
        ),
        (
            "d,w,n\na,x,1\nb,y,2.0\n",
            {"column": "d"},
            "data.csv: each d stands in one row: if the column n counts people, type --score n; if each row is a "
            "person, name the candidates with --candidates",
        ),
        ("d,g\na,\n", {"column": "d", "by": "g"}, f"data.csv:2: row 1: g: {NO_NAME}"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_one_line(tmp_path, text, options, message):
    assert mistakes(tmp_path, text, **options) == [message]
