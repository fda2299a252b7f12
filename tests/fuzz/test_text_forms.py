"""Tables in every form of text: what is read is what was written, or the file is refused; never another table."""

import codecs
import csv
import gzip
import io
import re

import pyarrow as pa
import pytest
from hostile_files import hostile, in_folder
from hypothesis import event, given
from hypothesis import strategies as st

from policysim.files.bad_rows import DataError
from policysim.files.csv_format import CsvFormat
from policysim.files.data_table import read_table

ENCODINGS = {"utf-8": b"", "utf-8-sig": b"", "cp1252": b"", "utf-16": b"", "utf-16-le": b"", "utf-16-be": b""}
SEPARATORS = (",", ";", "\t", "|", " ")
PACKED = {"": bytes, ".gz": gzip.compress, ".zst": lambda content: pa.compress(content, "zstd", asbytes=True)}
ODD = ["NA", "a b", "a,b", "c;d", "e|f", "g\th", 'i"j', "'k", "-", "="]
WORDS = st.text("abcé#x", max_size=4) | st.sampled_from(ODD)
BROKEN = ["two\nlines", "\r\n", "a\r"]
NUMBERS = st.integers(-99, 99_999).map(str) | st.decimals(-99, 999, places=2).map(str)
LOOKS_LIKE_A_COMMA_NUMBER = re.compile(r"\s*[+-]?[0-9,.]*,[0-9,.]*")


@st.composite
def tables(draw, headers=(True,)):
    """A name, its bytes, what is to be read (columns and rows) and all that can be stated of it."""
    has_header, separator = draw(st.sampled_from(headers)), draw(st.sampled_from(SEPARATORS))
    encoding, decimal = draw(st.sampled_from(sorted(ENCODINGS))), draw(st.sampled_from(".,"))
    n_columns, line_end = draw(st.integers(2, 4)), draw(st.sampled_from(["\n", "\r\n", "\r"]))
    # Line breaks within cells would be blank lines, or none, between runs of spaces.
    cells = WORDS | NUMBERS | (st.sampled_from(BROKEN) if separator != " " else st.nothing())
    rows = draw(st.lists(st.lists(cells, min_size=n_columns, max_size=n_columns), min_size=not has_header, max_size=6))
    names = draw(st.lists(st.text("abcé", min_size=1, max_size=4), min_size=n_columns, max_size=n_columns, unique=True))
    number = re.compile(r"[+-]?[0-9]+\.[0-9]+")
    shown = [[c.replace(".", ",") if decimal == "," and number.fullmatch(c) else c for c in row] for row in rows]
    # Python's writer leaves some cells without quotes that need them: with other line ends, and between spaces.
    bare = all(cell not in BROKEN and (separator != " " or (cell and "\t" not in cell)) for row in rows for cell in row)
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])) if bare else csv.QUOTE_ALL
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, delimiter=separator, lineterminator=line_end, quoting=quoting)
    writer.writerows([*([names] if has_header else []), *shown])
    text = stream.getvalue()
    if separator == " " and draw(st.booleans()):  # aligned columns
        text = re.sub(r"^(?=.)", "  ", text.replace('" "', '"   "'), flags=re.MULTILINE)
    if draw(st.booleans()):
        text = draw(st.sampled_from(["#byhand\n", "\n#two\n\n"])) + text
    packed = draw(st.sampled_from(sorted(PACKED)))
    name = "data" + (".tsv" if separator == "\t" else draw(st.sampled_from([".csv", ".txt", ".dat"]))) + packed
    names = names if has_header else [str(place) for place in range(n_columns)]
    stated = CsvFormat(has_header, separator, decimal, encoding)
    return name, PACKED[packed](text.encode(encoding)), (names, rows), stated


def read(name, content, stated):
    """Columns and rows of a file; None if it is refused in lines that name it."""
    with in_folder({name: content}):
        try:
            table = read_table(name, stated=stated, may_be_empty=True)
        except DataError as error:
            assert all(line.startswith((name, "... and")) for line in str(error).splitlines()), error
            return None, str(error)
    return (table.columns, [list(row.values()) for row in table.rows.to_pylist()]), ""


def has_other_numbers(rows, decimal):
    """Whether a cell is no number of this decimal sign, but one of the other: as 1.5 is beside 2,5."""
    one = re.compile(r"[+-]?[0-9]*[.,][0-9]+")
    return any(one.fullmatch(cell) and ("." in cell) == (decimal == ",") for row in rows for cell in row)


@hostile(150)
@given(written=tables([True, False]))
def test_a_form_that_is_stated_is_read_as_it_was_written(written):
    name, content, expected, stated = written
    found, why = read(name, content, stated)
    if found is None:  # rows that look like a header where there is none; a first row that looks like a title
        event(why.split(": ", 1)[1])
        assert not stated.header and "is a header" in why
    else:
        assert found == expected


@hostile(150)
@given(written=tables())
def test_a_form_that_is_recognised_is_read_as_it_was_written_or_refused(written):
    name, content, (names, rows), stated = written
    found, why = read(name, content, CsvFormat())
    has_commas = any(LOOKS_LIKE_A_COMMA_NUMBER.fullmatch(cell) for row in rows for cell in row)
    decimals = any("." in cell for row in rows for cell in row)
    if found is not None:
        assert found == (names, rows)
        event("read")
    else:
        event(why.split(": ", 1)[1])
        # Only numbers leave it open how they are written, and words between spaces whether they are columns.
        assert has_commas or (decimals and stated.decimal == ",") or stated.separator == " "


@pytest.mark.parametrize("encoding", ENCODINGS)
@hostile(10)
@given(data=st.data())
def test_spoiled_bytes_are_read_or_refused_in_lines_that_name_the_file(encoding, data):
    name, content, _, _ = data.draw(tables())
    spot = data.draw(st.integers(0, len(content)))
    spoiled = content[:spot] + data.draw(st.sampled_from([b"", b"\xff", b"\0", b'"', b"\x81\n"])) + content[spot + 1 :]
    found, _ = read(name, spoiled, data.draw(st.sampled_from([CsvFormat(), CsvFormat(encoding=encoding)])))
    event("refused" if found is None else "read")


def test_marks_of_every_encoding_are_no_part_of_the_first_name():
    marks = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE, "utf-8": codecs.BOM_UTF8}
    for encoding, mark in marks.items():
        content = 2 * mark + "a,b\n1,é\n".encode(encoding)
        assert read("t.csv", content, CsvFormat()) == ((["a", "b"], [["1", "é"]]), "")
