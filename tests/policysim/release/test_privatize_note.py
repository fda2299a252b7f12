"""The note beside a private file: what it says, what it must not say, and notes that do not fit."""

import copy
import json
import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from private_files import COLUMNS, DECLARED, JUNK, LEVELS, read_rows, run, write_people

from policies.local import KAry
from policysim.files.bad_rows import DataError
from policysim.files.terminal import json_text
from policysim.release.exact import declared_epsilon, response_weights
from policysim.release.privatize import privatize_files, read_private
from policysim.release.privatize_note import Randomization, note_document, note_path, read_note
from policysim.release.privatize_source import open_source

SEED = 987654321
THREE = {"a": ("0", "1"), "b": ("0", "1", "2"), "c": ("0", "1")}


def loss(document):
    """The exact privacy loss of a whole row, from the note alone: the product of its channels, over all pairs."""
    joint = np.ones((1, 1))
    for channel in document["channels"]:
        joint = np.kron(joint, KAry(**channel["parameters"]).matrix)
    return max(float(np.log(column.max() / column.min())) for column in joint.T)


@pytest.mark.parametrize("separately", [False, True])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_what_the_note_says_loses_epsilon_and_no_more(epsilon, separately):
    note = note_document(Randomization(THREE, epsilon, separately=separately), [], 1, release=True)
    assert loss(note) == pytest.approx(epsilon, abs=1e-12)


@pytest.mark.parametrize("parts", range(2, 8))
def test_parts_never_sum_above_epsilon_in_exact_arithmetic(parts):
    levels = {f"column {i}": ("0", "1", "2") for i in range(parts)}
    for epsilon in (*(i / 10 for i in range(1, 40)), 1 / 3, math.log(2), math.nextafter(1, 0)):
        channels = [part.channel for part in Randomization(levels, epsilon, separately=True).parts]
        declared = min(Fraction(epsilon), Fraction(repr(epsilon)))
        # What is stated, however it is read, and what is drawn with.
        assert sum(Fraction(channel.epsilon) for channel in channels) <= declared
        assert sum(Fraction(repr(channel.epsilon)) for channel in channels) <= declared
        ratio = math.prod(
            Fraction(*response_weights(channel.n_values, declared_epsilon(channel.epsilon))) for channel in channels
        )
        assert ratio <= Fraction(
            Context(prec=60).exp(Decimal(repr(epsilon)) if declared != epsilon else Decimal(epsilon))
        )
        # Nor is more taken off than rounding needs.
        assert sum(channel.epsilon for channel in channels) >= epsilon * (1 - 1e-15)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_neither_file_nor_note_shows_the_seed_or_the_true_counts(capsys, tmp_path, ending):
    data, out = write_people(tmp_path / f"data{ending}", 60), tmp_path / f"out.simulated{ending}"
    _, printed, _ = run(
        capsys, data, *COLUMNS, *DECLARED, "--epsilon", 1, "--simulate", SEED, "--true", "--json", "--out", out
    )
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path != data)
    for shape in (str(SEED).encode(), SEED.to_bytes(4, "little"), SEED.to_bytes(4, "big"), b"seed", b"true"):
        assert shape not in written
    assert str(SEED) not in printed
    note = json.loads(note_path(out).read_text())
    assert set(note) == {"format", "drawn", "epsilon", "rows", "columns", "channels", "unchanged", "guarantee"}


def test_a_private_parquet_file_keeps_nothing_that_was_said_about_the_true_rows(tmp_path):
    data, out = tmp_path / "data.parquet", tmp_path / "out.simulated.parquet"
    # Only "rare" occurs: a dictionary, statistics or metadata that are copied would give it away.
    values = pa.array(["rare"] * 40).dictionary_encode()
    field = pa.field("secret", values.type, metadata={"mean": "all-are-rare"})
    schema = pa.schema([field], metadata={"summary": "40-times-rare", "pandas": '{"num_categories": 1}'})
    pq.write_table(pa.table([values], schema=schema), data)
    levels = ("rare", "common", "usual")
    privatize_files(open_source(data), out, Randomization({"secret": levels}, 0.1), seed=1)
    found = pq.read_table(out)
    assert found.column("secret").chunk(0).dictionary.to_pylist() == list(levels)
    said = {**(pq.read_schema(out).metadata or {}), **(pq.read_schema(out).field("secret").metadata or {})}
    assert not {b"summary", b"pandas", b"mean"} & set(said)


@pytest.fixture
def private(tmp_path):
    data = write_people(tmp_path / "data.csv", 60)
    out = tmp_path / "private.simulated.csv"
    privatize_files(open_source(data), out, Randomization(LEVELS, 1.0), seed=1)
    return out


def test_a_note_is_read_as_it_was_written(private):
    plan, note = read_note(private)
    assert json_text(note) == note_path(private).read_text()
    assert plan == Randomization(LEVELS, 1.0)
    note_path(private).write_text(json.dumps({**note, "rows_per_person": 1, "added": "later"}))
    assert read_note(private) == (plan, note)
    assert note == note_document(plan, ["person", "note"], 60, release=False)


def changed(document, path, value):
    """A copy of a document with another value at a path."""
    document = copy.deepcopy(document)
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return document


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("format",), 2, "format must be 1, got 2"),
        (("epsilon",), 2.0, "channels does not follow from the rest"),
        (("epsilon",), -1, "epsilon must be > 0 and finite, got epsilon=-1.0."),
        (("rows",), "60", "its keys are not those of one"),
        (("columns", 0, "levels"), "ab", "columns does not follow from the rest"),
        (("columns", 0, "levels"), [1, 2], "columns does not follow from the rest"),
        (("columns", 0, "levels"), ["young"], "age_band: needs at least two levels, got young."),
        (("columns", 0, "levels_from"), "hearsay", "columns does not follow from the rest"),
        (("unchanged",), "person", "unchanged does not follow from the rest"),
    ],
)
def test_a_note_that_does_not_hold_together_is_refused(tmp_path, path, value, message):
    private = tmp_path / "private.csv"
    document = note_document(Randomization(LEVELS, 1.0), ["person", "note"], 60, release=False)
    note_path(private).write_text(json.dumps(changed(document, path, value)))
    with pytest.raises(DataError) as error:
        read_note(private)
    assert str(error.value).startswith(f"{note_path(private)}: not a mechanism note: {message}")
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff", b"[" * 100_000, b"{}"])
def test_what_is_no_note_is_refused_in_one_line(capsys, private, content):
    note_path(private).write_bytes(content)
    code, printed, err = run(capsys, "--estimate", private)
    assert (code, printed, len(err.splitlines())) == (3, "", 1)
    assert err.startswith(f"policysim: {note_path(private)}: not a mechanism note: ")


@given(st.data())
def test_junk_anywhere_in_a_note_never_raises_anything_else(tmp_path_factory, data):
    document = note_document(Randomization(LEVELS, 1.0, separately=True), ["person"], 60, release=True)
    path, place = [], document
    while isinstance(place, dict | list) and place and (not path or data.draw(st.booleans())):
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        path.append(key)
        place = place[key]
    private = tmp_path_factory.getbasetemp() / "junk.csv"
    note_path(private).write_text(json.dumps(changed(document, path, data.draw(JUNK))))
    try:
        read_note(private)
    except DataError as error:
        assert len(str(error).splitlines()) == 1


def test_a_note_that_is_missing_or_cannot_be_read_is_one_line(private):
    note_path(private).unlink()
    with pytest.raises(DataError, match=r"its mechanism note private.simulated.csv.privacy.json is missing beside it$"):
        read_note(private)
    note_path(private).mkdir()
    with pytest.raises(DataError, match=r"cannot be read: Is a directory$"):
        read_note(private)


def test_a_file_that_does_not_fit_its_note_is_refused(private):
    whole = private.read_text()
    header, *rows = whole.splitlines(keepends=True)
    private.write_text(whole + "0060,old,1,\n")
    with pytest.raises(
        DataError, match=r"private.simulated.csv: does not fit its note: it has 61 rows, the note says 60$"
    ):
        read_private(private)
    private.write_text(header.replace("sex", "gender") + "".join(rows))
    with pytest.raises(DataError, match=r"private.simulated.csv: does not fit its note, which names a column 'sex'$"):
        read_private(private)
    private.write_text(header + rows[0].replace("0000,", "0000,very ") + "".join(rows[1:]))
    with pytest.raises(
        DataError, match=r"private.simulated.csv:2: row 1: age_band: must be one of young, old; a level NA"
    ):
        read_private(private)


def test_other_columns_may_be_dropped_from_a_private_file(private, tmp_path):
    _, rows = read_rows(private)
    small = tmp_path / "small.csv"
    small.write_text("sex,age_band\n" + "".join(f"{row[2]},{row[1]}\n" for row in rows))
    note_path(small).write_bytes(note_path(private).read_bytes())
    assert (read_private(small)[1][0].reports == read_private(private)[1][0].reports).all()
